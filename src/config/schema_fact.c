/*
 * schema_fact.c - numbers of hardware: a value that says where it comes from.
 *
 * In files a fact is {value:, source:, grade:}, all three. An override may be a
 * bare quantity; it then says that --set is its source and that it is assumed. An
 * override of the value alone never keeps the source of the old value.
 */
#include <string.h>

#include "config/config_internal.h"

static const char *const grade_names[] = {
    [GRADE_NONE] = "",         [GRADE_MEASURED] = "measured", [GRADE_VENDOR] = "vendor",
    [GRADE_FITTED] = "fitted", [GRADE_ASSUMED] = "assumed",
};

static bool read_grade(const struct schema_fill *fill, const struct schema_row *row,
                       const struct yaml_tree *node, enum fact_grade *grade)
{
    for (unsigned i = GRADE_MEASURED; i <= GRADE_ASSUMED; i++) {
        if (node->kind == YAML_TREE_SCALAR && strcmp(node->text, grade_names[i]) == 0) {
            *grade = (enum fact_grade)i;
            return true;
        }
    }
    char quoted[CONFIG_QUOTE_SIZE];
    schema_fill_error(fill, row, ERROR_bad_value, node->at,
                      "the grade %s is not one of measured, vendor, fitted, assumed",
                      config_quote(quoted, node->text));
    return false;
}

/* The parts of a fact that were written. */
struct fact_parts {
    const struct yaml_tree *value, *source, *grade;
};

static bool take_parts(const struct schema_fill *fill, const struct schema_row *row,
                       const struct yaml_tree *node, struct fact_parts *parts)
{
    bool good = true;
    for (uint32_t i = 0; i < node->count; i++) {
        const struct yaml_tree_entry *entry = &node->entries[i];
        if (strcmp(entry->key, "value") == 0)
            parts->value = entry->value;
        else if (strcmp(entry->key, "source") == 0)
            parts->source = entry->value;
        else if (strcmp(entry->key, "grade") == 0)
            parts->grade = entry->value;
        else if (strcmp(entry->key, "note") != 0) {
            char quoted[CONFIG_QUOTE_SIZE];
            schema_fill_error(fill, row, ERROR_unknown_key, entry->at,
                              "%s is not part of a fact; it takes value, source, grade and note",
                              config_quote(quoted, entry->key));
            good = false;
        }
    }
    return good;
}

static bool read_fact_map(const struct schema_fill *fill, const struct schema_row *row, double *out,
                          const struct yaml_tree *node, struct origin *origin)
{
    struct fact_parts parts = {0};
    bool good = take_parts(fill, row, node, &parts);
    if (!parts.value) {
        schema_fill_error(fill, row, ERROR_missing_key, node->at, "has no value");
        return false;
    }
    good = schema_read_quantity(fill, row, parts.value, out) && good;
    origin->at = parts.value->at;
    if (parts.value->writer == YAML_TREE_OVERRIDE &&
        !(parts.source && parts.source->writer == YAML_TREE_OVERRIDE)) {
        /* The source in the file speaks of another value. */
        *origin = (struct origin){.kind = ORIGIN_SET, .grade = GRADE_ASSUMED, .source = "--set"};
        return good;
    }
    const bool has_source = parts.source && parts.source->kind == YAML_TREE_SCALAR &&
                            !yaml_tree_is_null(parts.source) && parts.source->text[0] != '\0';
    if (!has_source || !parts.grade) {
        schema_fill_error(fill, row, ERROR_missing_source, node->at,
                          "has no %s; a number of hardware needs a source and a grade (measured, "
                          "vendor, fitted, assumed)",
                          has_source ? "grade" : "source");
        return false;
    }
    origin->source = parts.source->text;
    return read_grade(fill, row, parts.grade, &origin->grade) && good;
}

bool schema_read_fact(const struct schema_fill *fill, const struct schema_row *row, double *out,
                      const struct yaml_tree *node, struct origin *origin)
{
    if (node->kind == YAML_TREE_MAP)
        return read_fact_map(fill, row, out, node, origin);
    if (node->writer == YAML_TREE_OVERRIDE) {
        origin->source = "--set";
        origin->grade = GRADE_ASSUMED;
        return schema_read_quantity(fill, row, node, out);
    }
    if (!schema_read_quantity(fill, row, node, out))
        return false;
    char quoted[CONFIG_QUOTE_SIZE];
    schema_fill_error(fill, row, ERROR_missing_source, node->at,
                      "a number of hardware needs its source; write {value: %s, source: WHERE, "
                      "grade: measured|vendor|fitted|assumed}",
                      config_quote(quoted, node->text));
    return false;
}
