/*
 * schema_fact.c - numbers of hardware: a value that says where it comes from.
 *
 * In files a fact is {value:, source:, grade:}, all three, and may carry low: and high:,
 * the interval in which the true value plausibly lies. An override may be a bare quantity;
 * it then says that --set is its source and that it is assumed. An override of the value
 * alone never keeps source and interval of the old value.
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
    const struct yaml_tree *value, *source, *grade, *low, *high;
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
        else if (strcmp(entry->key, "low") == 0)
            parts->low = entry->value;
        else if (strcmp(entry->key, "high") == 0)
            parts->high = entry->value;
        else if (strcmp(entry->key, "note") != 0) {
            char quoted[CONFIG_QUOTE_SIZE];
            schema_fill_error(
                fill, row, ERROR_unknown_key, entry->at,
                "%s is not part of a fact; it takes value, low, high, source, grade and "
                "note",
                config_quote(quoted, entry->key));
            good = false;
        }
    }
    return good;
}

static bool bound_fails(const struct schema_fill *fill, const struct schema_row *row,
                        const struct yaml_tree *bound, const char *relation,
                        const struct yaml_tree *value)
{
    char quoted_bound[CONFIG_QUOTE_SIZE];
    char quoted_value[CONFIG_QUOTE_SIZE];
    schema_fill_error(fill, row, ERROR_bad_interval, bound->at,
                      "%s is %s the value %s; the interval of a fact holds its value",
                      config_quote(quoted_bound, bound->text), relation,
                      config_quote(quoted_value, value->text));
    return false;
}

/* The interval, which is optional; an end without the other is half a sentence. */
static bool read_interval(const struct schema_fill *fill, const struct schema_row *row,
                          const struct fact_parts *parts, double value, struct origin *origin)
{
    if (!parts->low && !parts->high)
        return true;
    if (!parts->low || !parts->high) {
        schema_fill_error(
            fill, row, ERROR_bad_interval, (parts->low ? parts->low : parts->high)->at,
            "the interval of a fact has two ends; %s is missing", parts->low ? "high" : "low");
        return false;
    }
    bool good = schema_read_quantity(fill, row, parts->low, &origin->low);
    good = schema_read_quantity(fill, row, parts->high, &origin->high) && good;
    if (good && origin->low > value)
        good = bound_fails(fill, row, parts->low, "above", parts->value);
    if (good && origin->high < value)
        good = bound_fails(fill, row, parts->high, "below", parts->value);
    origin->bounded = good;
    return good;
}

/* An override of the value stands alone: what the file says of the old value does not hold. */
static void drop_stale(struct fact_parts *parts)
{
    const struct yaml_tree **told[] = {&parts->low, &parts->high};
    for (size_t i = 0; i < sizeof told / sizeof told[0]; i++) {
        if (*told[i] && (*told[i])->writer != YAML_TREE_OVERRIDE)
            *told[i] = NULL;
    }
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
    if (parts.value->writer == YAML_TREE_OVERRIDE)
        drop_stale(&parts);
    if (good)
        good = read_interval(fill, row, &parts, *out, origin);
    if (parts.value->writer == YAML_TREE_OVERRIDE &&
        !(parts.source && parts.source->writer == YAML_TREE_OVERRIDE)) {
        /* The source in the file speaks of another value. */
        origin->kind = ORIGIN_SET;
        origin->grade = GRADE_ASSUMED;
        origin->source = "--set";
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
