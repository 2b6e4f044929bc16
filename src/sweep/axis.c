/*
 * axis.c - the values of an axis: a list, or a range in equal steps or equal ratios.
 *
 * Values are kept as the YAML text of an override, so everything that --set understands can be
 * swept: numbers, quantities, names, lists, whole sections.
 */
#include <math.h>
#include <string.h>

#include "stepsim/schema.h"
#include "sweep/sweep_internal.h"

#define AXIS_VALUES_MAX 100000u

static void add_yaml(struct text *out, const struct yaml_tree *node)
{
    if (node->kind == YAML_TREE_SCALAR) {
        if (node->plain) {
            text_add(out, "%s", node->text);
            return;
        }
        text_add(out, "'");
        for (const char *c = node->text; *c != '\0'; c++) {
            text_add(out, *c == '\'' ? "''" : "%c", *c);
        }
        text_add(out, "'");
        return;
    }
    const bool map = node->kind == YAML_TREE_MAP;
    text_add(out, map ? "{" : "[");
    for (uint32_t i = 0; i < node->count; i++) {
        text_add(out, "%s", i > 0 ? ", " : "");
        if (map) {
            text_add(out, "%s: ", node->entries[i].key);
        }
        add_yaml(out, map ? node->entries[i].value : node->items[i]);
    }
    text_add(out, map ? "}" : "]");
}

const char *yaml_text_of(const struct yaml_tree *node, struct arena *arena)
{
    struct text out = {0};
    add_yaml(&out, node);
    const char *copy = arena_strdup(arena, text_string(&out));
    text_free(&out);
    return copy;
}

/* How a number of a dimension is written back. */
static const char *suffix_of(enum dimension dimension)
{
    switch (dimension) {
    case DIMENSION_BYTES:
        return " B";
    case DIMENSION_BYTES_PER_S:
        return " B/s";
    case DIMENSION_FLOP_PER_S:
        return " FLOP/s";
    case DIMENSION_SECONDS:
        return " s";
    case DIMENSION_NONE:
    case DIMENSION_COUNT:
    case DIMENSION_RATIO:
    case DIMENSION_NUMBER:
        return "";
    }
    return "";
}

/* The parts of a range as numbers; absent ones keep their value. */
struct range {
    double from, to, step, count;
    bool logarithmic, from_given, to_given;
    enum dimension dimension;
    bool whole;
};

static bool range_number(const struct yaml_tree_entry *entry, enum dimension dimension,
                         double *value, struct error_list *errors)
{
    struct quantity_problem problem;
    const bool scalar = entry->value->kind == YAML_TREE_SCALAR;
    if (!scalar || !quantity_parse(entry->value->text, dimension, value, &problem)) {
        error_add(errors, scalar ? problem.code : ERROR_wrong_type, entry->value->at, entry->key,
                  "%s", scalar ? problem.message : "must be a number");
        return false;
    }
    return true;
}

static bool read_range(const struct yaml_tree *map, struct range *range, struct error_list *errors)
{
    bool good = true;
    for (uint32_t i = 0; i < map->count; i++) {
        const struct yaml_tree_entry *entry = &map->entries[i];
        if (strcmp(entry->key, "from") == 0) {
            good = range_number(entry, range->dimension, &range->from, errors) && good;
            range->from_given = true;
        } else if (strcmp(entry->key, "to") == 0) {
            good = range_number(entry, range->dimension, &range->to, errors) && good;
            range->to_given = true;
        } else if (strcmp(entry->key, "step") == 0) {
            good = range_number(entry, range->dimension, &range->step, errors) && good;
        } else if (strcmp(entry->key, "count") == 0) {
            good = range_number(entry, DIMENSION_NUMBER, &range->count, errors) && good;
        } else if (strcmp(entry->key, "scale") == 0 && entry->value->kind == YAML_TREE_SCALAR &&
                   (strcmp(entry->value->text, "log") == 0 ||
                    strcmp(entry->value->text, "linear") == 0)) {
            range->logarithmic = strcmp(entry->value->text, "log") == 0;
        } else {
            error_add(errors, ERROR_unknown_key, entry->at, entry->key,
                      "a range has from, to, and either step or count, and scale: linear | log");
            good = false;
        }
    }
    return good;
}

/* Values of a range; 0 when it makes no sense. */
static uint32_t range_count(const struct range *range)
{
    if (!range->from_given || !range->to_given || !(range->to >= range->from)) {
        return 0;
    }
    if (range->logarithmic) {
        return range->from > 0.0 && range->step == 0.0 && range->count >= 2.0 &&
                       range->count <= AXIS_VALUES_MAX
                   ? (uint32_t)range->count
                   : 0;
    }
    if (range->step > 0.0 && range->count == 0.0) {
        const double steps = floor((range->to - range->from) / range->step + 1e-9);
        return steps < AXIS_VALUES_MAX ? (uint32_t)steps + 1 : 0;
    }
    return range->step == 0.0 && range->count >= 2.0 && range->count <= AXIS_VALUES_MAX
               ? (uint32_t)range->count
               : 0;
}

static double range_value(const struct range *range, uint32_t index, uint32_t count)
{
    if (range->step > 0.0) {
        return range->from + range->step * index;
    }
    const double share = (double)index / (double)(count - 1);
    return range->logarithmic ? range->from * pow(range->to / range->from, share)
                              : range->from + (range->to - range->from) * share;
}

static bool expand_range(struct sweep *sweep, const struct yaml_tree_entry *entry,
                         struct sweep_axis *axis, struct error_list *errors)
{
    const struct schema_row *row = schema_find(entry->key);
    struct range range = {.whole = row != NULL &&
                                   (row->kind == SCHEMA_UINT || row->kind == SCHEMA_UINT64),
                          .dimension = DIMENSION_NUMBER};
    if (row != NULL && (row->kind == SCHEMA_QUANTITY || row->kind == SCHEMA_FACT)) {
        range.dimension = row->dimension;
    }
    if (!read_range(entry->value, &range, errors)) {
        return false;
    }
    const uint32_t count = range_count(&range);
    if (count == 0) {
        error_add(errors, ERROR_bad_value, entry->value->at, entry->key,
                  "is no range: {from: A, to: B, step: S}, {from: A, to: B, count: N} or {from: A, "
                  "to: B, count: N, scale: log} with A at most B and 2 to %u values",
                  AXIS_VALUES_MAX);
        return false;
    }
    const char **texts = ARENA_ARRAY(sweep->arena, count, const char *);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        const double value = range_value(&range, i, count);
        const char *number = text_double(sweep->arena, range.whole ? round(value) : value);
        number = range.whole ? arena_printf(sweep->arena, "%.0f", round(value)) : number;
        const char *text = arena_printf(sweep->arena, "%s%s", number, suffix_of(range.dimension));
        if (kept == 0 || strcmp(texts[kept - 1], text) != 0) {
            texts[kept++] = text; /* rounding may make neighbours equal */
        }
    }
    axis->texts = texts;
    axis->value_count = kept;
    return true;
}

bool axis_read(struct sweep *sweep, const struct yaml_tree_entry *entry, struct sweep_axis *axis,
               struct error_list *errors)
{
    const char **keys = ARENA_ARRAY(sweep->arena, 1, const char *);
    keys[0] = entry->key;
    *axis = (struct sweep_axis){.keys = keys, .key_count = 1, .at = entry->at};
    if (entry->value->kind == YAML_TREE_MAP) {
        return expand_range(sweep, entry, axis, errors);
    }
    if (entry->value->kind != YAML_TREE_LIST || entry->value->count == 0) {
        error_add(errors, ERROR_wrong_type, entry->value->at, entry->key,
                  "an axis is a list of values, [4, 8, 16], or a range, {from: 4, to: 16, step: "
                  "4}; one value for all points belongs into set:");
        return false;
    }
    const char **texts = ARENA_ARRAY(sweep->arena, entry->value->count, const char *);
    for (uint32_t i = 0; i < entry->value->count; i++) {
        texts[i] = yaml_text_of(entry->value->items[i], sweep->arena);
    }
    axis->texts = texts;
    axis->value_count = entry->value->count;
    return true;
}
