/*
 * schema_fill.c - a map becomes a struct, row by row.
 *
 * Four passes over one table: place every written key in the slot of its row;
 * let rows that imply another (a list of layers implies split: layers) choose it;
 * read values and defaults in row order, so that `when` looks at rows already
 * read; store the origins. A slot that an error stands for is refused and raises
 * no second error: not as missing, not in later checks.
 */
#include <string.h>

#include "config/config_internal.h"

/* ---- Placing keys ---- */

static void place_map(const struct schema_fill *fill, struct schema_scope scope,
                      const struct yaml_tree *map, struct schema_slot *slots);

static void refuse_scope(struct schema_scope scope, struct schema_slot *slots)
{
    for (uint32_t i = scope.first; i < scope.end; i++)
        slots[i].refused = true;
}

/* A section that is not written as a map: nothing, plain text for its shorthand, or a mistake. */
static void place_section(const struct schema_fill *fill, struct schema_scope scope,
                          const struct yaml_tree_entry *entry, struct schema_slot *slots)
{
    const struct schema_row *shorthand = schema_scope_shorthand(scope);
    if (yaml_tree_is_null(entry->value))
        return;
    if (shorthand && entry->value->kind == YAML_TREE_SCALAR) {
        slots[shorthand - scope.table->rows].node = entry->value;
        return;
    }
    refuse_scope(scope, slots);
    const char *first = scope.table->rows[scope.first].key;
    struct schema_row section = scope.table->rows[scope.first];
    section.key = arena_strndup(fill->errors->arena, first, scope.skip - 1);
    schema_fill_error(fill, &section, ERROR_wrong_type, entry->value->at,
                      "is a section and takes a map of keys, but holds %s",
                      yaml_tree_kind_noun(entry->value));
}

static void place_entry(const struct schema_fill *fill, struct schema_scope scope,
                        const struct yaml_tree_entry *entry, struct schema_slot *slots)
{
    const struct schema_scope inner = schema_scope_enter(scope, entry->key, strlen(entry->key));
    if (schema_scope_is_empty(inner)) {
        schema_report_unknown(fill, scope, entry, slots);
        return;
    }
    const struct schema_row *row = schema_scope_row(inner);
    struct schema_slot *slot = &slots[inner.first];
    if (row && yaml_tree_is_null(entry->value)) {
        slot->refused = true;
        schema_fill_error(fill, row, ERROR_wrong_type, entry->at,
                          "holds nothing; write a value or leave the key out");
    } else if (row) {
        slot->node = entry->value;
    } else if (entry->value->kind == YAML_TREE_MAP) {
        for (uint32_t i = inner.first; i < inner.end; i++)
            slots[i].section_at = entry->value->at;
        place_map(fill, inner, entry->value, slots);
    } else {
        place_section(fill, inner, entry, slots);
    }
}

static void place_map(const struct schema_fill *fill, struct schema_scope scope,
                      const struct yaml_tree *map, struct schema_slot *slots)
{
    for (uint32_t i = 0; i < map->count; i++)
        place_entry(fill, scope, &map->entries[i], slots);
}

/* ---- Rows that imply a value of another ---- */

static void report_clash(const struct schema_fill *fill, const struct schema_table *table,
                         const struct schema_slot *slots, const struct schema_row *row)
{
    const uint32_t target = schema_row_index(table, row->implies.key);
    const struct schema_slot *chosen = &slots[target];
    const char *wanted = table->rows[target].choices[row->implies.index].name;
    const char *other;
    struct location at;
    if (chosen->node) {
        other = chosen->node->text;
        at = chosen->node->at;
    } else {
        other = chosen->implied_by->key;
        at = slots[chosen->implied_by - table->rows].node->at;
    }
    const char *place = at.line ? arena_printf(fill->errors->arena, "line %u", at.line) : "--set";
    schema_fill_error(
        fill, row, ERROR_conflicting_keys, slots[row - table->rows].node->at,
        "means %s%s: %s, which clashes with %s (%s); keep one of the two (an override "
        "takes a key away with %s%s=null)",
        fill->prefix, row->implies.key, wanted, other, place, fill->prefix, row->key);
}

static void imply(const struct schema_fill *fill, const struct schema_table *table,
                  struct schema_slot *slots)
{
    for (uint32_t i = 0; i < table->row_count; i++) {
        const struct schema_row *row = &table->rows[i];
        if (!row->implies.key || !slots[i].node)
            continue;
        const uint32_t target = schema_row_index(table, row->implies.key);
        struct schema_slot *chosen = &slots[target];
        const char *wanted = table->rows[target].choices[row->implies.index].name;
        const bool written = chosen->node && chosen->node->kind == YAML_TREE_SCALAR;
        const bool clash =
            written ? strcmp(chosen->node->text, wanted) != 0
                    : chosen->implied_by && chosen->implied_by->implies.index != row->implies.index;
        if (chosen->refused || (chosen->node && !written))
            continue;
        if (clash) {
            report_clash(fill, table, slots, row);
            slots[i].refused = true;
        } else if (!written) {
            chosen->implied_by = row;
        }
    }
}

/* ---- Reading values ---- */

enum applies { APPLIES, APPLIES_NOT, APPLIES_UNKNOWN };

static enum applies row_applies(const struct schema_table *table, const struct schema_row *row,
                                const void *base, const struct origin *origins)
{
    if (!row->when.key)
        return APPLIES;
    const uint32_t steering = schema_row_index(table, row->when.key);
    ASSERT(&table->rows[steering] < row);
    if (origins[steering].kind == ORIGIN_REFUSED)
        return APPLIES_UNKNOWN;
    if (origins[steering].kind == ORIGIN_ABSENT)
        return APPLIES_NOT;
    const uint32_t index = schema_value_index(&table->rows[steering], base);
    return row->when.mask >> index & 1u ? APPLIES : APPLIES_NOT;
}

static void report_no_effect(const struct schema_fill *fill, const struct schema_table *table,
                             const struct schema_row *row, const void *base,
                             const struct yaml_tree *node)
{
    const struct schema_row *steering = &table->rows[schema_row_index(table, row->when.key)];
    const char *value = schema_value_text(steering, base, fill->errors->arena);
    schema_fill_error(fill, row, ERROR_conflicting_keys, node->at,
                      "has no effect while %s%s is %s; leave it out or change %s%s", fill->prefix,
                      steering->key, value, fill->prefix, steering->key);
}

static void report_missing(const struct schema_fill *fill, const struct schema_row *row,
                           const struct schema_slot *slot)
{
    const char *dot = strrchr(row->key, '.');
    const char *name = dot ? dot + 1 : row->key;
    const bool unit = quantity_unit(row->dimension)[0] != '\0';
    const char *example = row->example ? row->example
                          : unit       ? quantity_example(row->dimension)
                                       : "NUMBER";
    if (row->kind == SCHEMA_FACT)
        schema_fill_error(fill, row, ERROR_missing_key, slot->section_at,
                          "is missing; write %s: {value: %s, source: .., grade: ..}", name,
                          example);
    else if (row->kind == SCHEMA_LEVELS)
        schema_fill_error(fill, row, ERROR_missing_key, slot->section_at,
                          "is missing; write a list of levels, innermost first");
    else
        schema_fill_error(fill, row, ERROR_missing_key, slot->section_at,
                          "is missing; write for example %s: %s", name, example);
}

static void read_default(const struct schema_fill *fill, const struct schema_row *row, void *base,
                         const char *text, struct origin *origin)
{
    const struct yaml_tree node = {
        .kind = strcmp(text, "[]") == 0 ? YAML_TREE_LIST : YAML_TREE_SCALAR, .text = text};
    origin->kind = ORIGIN_DEFAULT;
    if (row->kind == SCHEMA_ITEMS)
        return; /* zeroed: no items */
    const bool good = schema_value_read(fill, row, base, &node, origin);
    ASSERT(good);
}

/* A plain text that stands for one key of the item as {key: text}; others as they are. */
static const struct yaml_tree *item_map(const struct schema_fill *fill,
                                        const struct schema_table *table,
                                        const struct yaml_tree *node)
{
    const struct schema_row *row = table->rows;
    while (row < table->rows + table->row_count && !(row->flags & SCHEMA_SHORTHAND))
        row++;
    if (node->kind != YAML_TREE_SCALAR || row == table->rows + table->row_count)
        return node;
    struct yaml_tree_entry *entry = ARENA_NEW(fill->arena, struct yaml_tree_entry);
    *entry = (struct yaml_tree_entry){.key = row->key, .at = node->at, .value = node};
    struct yaml_tree *map = ARENA_NEW(fill->arena, struct yaml_tree);
    *map = (struct yaml_tree){.kind = YAML_TREE_MAP,
                              .at = node->at,
                              .writer = node->writer,
                              .entries = entry,
                              .count = 1};
    return map;
}

static void read_items(const struct schema_fill *fill, const struct schema_row *row, void *base,
                       const struct yaml_tree *node, struct origin *origin)
{
    const struct schema_table *table = row->items;
    const bool in_place = row->kind == SCHEMA_LEVELS;
    const uint32_t most = in_place ? (uint32_t)row->maximum : 65536;
    const uint32_t least = in_place ? (uint32_t)row->minimum : 0;
    origin->kind = ORIGIN_REFUSED;
    if (node->kind != YAML_TREE_LIST) {
        schema_fill_error(fill, row, ERROR_wrong_type, node->at, "takes %s, but holds %s",
                          schema_kind_noun(row), yaml_tree_kind_noun(node));
        return;
    }
    if (node->count < least || node->count > most) {
        schema_fill_error(fill, row, ERROR_out_of_range, node->at,
                          "has %u entries; it takes %u to %u", node->count, least, most);
        return;
    }
    if (row->pending && node->count > 0) {
        schema_fill_error(fill, row, ERROR_not_yet_modelled, node->at, "is not modelled yet: %s",
                          row->pending);
        return;
    }
    char *items = (char *)base + row->offset;
    if (!in_place) {
        items = arena_calloc(fill->arena, node->count, table->struct_size);
        memcpy((char *)base + row->offset, &items, sizeof items);
    }
    memcpy((char *)base + row->count_offset, &node->count, sizeof node->count);
    origin->kind = node->writer == YAML_TREE_FILE ? ORIGIN_FILE : ORIGIN_SET;
    for (uint32_t i = 0; i < node->count; i++) {
        struct schema_fill inner = *fill;
        inner.prefix = arena_printf(fill->arena, "%s%s.%u.", fill->prefix, row->key, i);
        const struct yaml_tree *item = item_map(fill, table, node->items[i]);
        if (item->kind == YAML_TREE_MAP)
            schema_fill_table(&inner, table, items + i * table->struct_size, item);
        else
            schema_fill_error(fill, row, ERROR_wrong_type, node->items[i]->at,
                              "takes maps as entries, but entry %u is %s", i,
                              yaml_tree_kind_noun(node->items[i]));
    }
}

static void read_include(const struct schema_fill *fill, const struct schema_row *row, void *base,
                         const struct yaml_tree *node, struct origin *origin)
{
    char *struct_base = (char *)base + row->offset;
    const char *key = arena_printf(fill->arena, "%s%s", fill->prefix, row->key);
    const struct yaml_tree *map = compose_include(fill->compose, row->items, key, node);
    origin->kind = ORIGIN_REFUSED;
    if (!map)
        return;
    struct schema_fill inner = *fill;
    inner.prefix = arena_printf(fill->arena, "%s.", key);
    memcpy(struct_base, &map->name, sizeof map->name);
    schema_fill_table(&inner, row->items, struct_base, map);
    origin->kind = node->writer == YAML_TREE_FILE ? ORIGIN_FILE : ORIGIN_SET;
}

static void read_written(const struct schema_fill *fill, const struct schema_row *row, void *base,
                         const struct yaml_tree *node, struct origin *origin)
{
    origin->at = node->at;
    if (row->kind == SCHEMA_INCLUDE) {
        read_include(fill, row, base, node, origin);
    } else if (row->items) {
        read_items(fill, row, base, node, origin);
    } else {
        origin->kind = node->writer == YAML_TREE_FILE ? ORIGIN_FILE : ORIGIN_SET;
        if (!schema_value_read(fill, row, base, node, origin))
            origin->kind = ORIGIN_REFUSED;
    }
}

/* The slots and the struct of the table that is being filled. */
struct target {
    const struct schema_table *table;
    struct schema_slot *slots;
    struct origin *origins;
    void *base;
};

static void read_row(const struct schema_fill *fill, const struct target *target, uint32_t index)
{
    const struct schema_row *row = &target->table->rows[index];
    const struct schema_slot *slot = &target->slots[index];
    struct origin *origin = &target->origins[index];
    const enum applies applies = row_applies(target->table, row, target->base, target->origins);
    if (slot->refused) {
        origin->kind = ORIGIN_REFUSED;
    } else if (slot->node && applies == APPLIES_NOT) {
        report_no_effect(fill, target->table, row, target->base, slot->node);
        origin->kind = ORIGIN_REFUSED;
    } else if (slot->node) {
        read_written(fill, row, target->base, slot->node, origin);
    } else if (slot->implied_by) {
        const struct yaml_tree *by = target->slots[slot->implied_by - target->table->rows].node;
        const struct schema_choice *choice = &row->choices[slot->implied_by->implies.index];
        read_default(fill, row, target->base, choice->name, origin);
        origin->kind = by->writer == YAML_TREE_FILE ? ORIGIN_FILE : ORIGIN_SET;
        origin->at = by->at;
    } else if (applies == APPLIES && (row->flags & SCHEMA_REQUIRED)) {
        report_missing(fill, row, slot);
        origin->kind = ORIGIN_REFUSED;
    } else if (applies == APPLIES && row->fallback) {
        read_default(fill, row, target->base, row->fallback, origin);
    }
}

void schema_fill_table(const struct schema_fill *fill, const struct schema_table *table, void *base,
                       const struct yaml_tree *map)
{
    struct schema_slot slots[SCHEMA_ROWS_MAX] = {0};
    ASSERT(map->kind == YAML_TREE_MAP);
    ASSERT(table->row_count <= SCHEMA_ROWS_MAX);
    for (uint32_t i = 0; i < table->row_count; i++)
        slots[i].section_at = map->at;
    place_map(fill, schema_scope_of_table(table), map, slots);
    imply(fill, table, slots);

    struct origin *origins = ARENA_ARRAY(fill->arena, table->row_count, struct origin);
    const struct target target = {table, slots, origins, base};
    for (uint32_t i = 0; i < table->row_count; i++)
        read_row(fill, &target, i);
    if (table->origins_offset != SCHEMA_NO_ORIGINS)
        memcpy((char *)base + table->origins_offset, &origins, sizeof origins);
}
