/*
 * schema.c - walking the tables, finding rows by key, and words about a row.
 */
#include "stepsim/schema.h"

#include <stdio.h>
#include <string.h>

#include "config/config_internal.h"
#include "stepsim/text.h"

/* ---- Tables ---- */

static const struct schema_table *const tables[] = {
    &scenario_schema, &model_schema, &cluster_schema, &level_schema, &device_schema,
};

size_t schema_table_count(void)
{
    return sizeof tables / sizeof tables[0];
}

const struct schema_table *schema_table_at(size_t index)
{
    ASSERT(index < schema_table_count());
    return tables[index];
}

/* ---- Walking ---- */

static void walk_table(const struct schema_table *table, const char *prefix, schema_visitor *visit,
                       void *context)
{
    for (uint32_t i = 0; i < table->row_count; i++) {
        const struct schema_row *row = &table->rows[i];
        char key[256];
        snprintf(key, sizeof key, "%s%s", prefix, row->key);
        visit(context, key, row);
        if (row->items) {
            const bool list = row->kind != SCHEMA_INCLUDE;
            snprintf(key, sizeof key, "%s%s%s", prefix, row->key, list ? ".N." : ".");
            walk_table(row->items, key, visit, context);
        }
    }
}

void schema_walk(schema_visitor *visit, void *context)
{
    walk_table(&scenario_schema, "", visit, context);
}

static const struct schema_row *find_in(const struct schema_table *table, const char *key)
{
    struct schema_scope scope = schema_scope_of_table(table);
    for (const char *at = key; *at;) {
        const size_t length = strcspn(at, ".");
        scope = schema_scope_enter(scope, at, length);
        at += length + (at[length] == '.');
        const struct schema_row *row = schema_scope_row(scope);
        if (row && row->items && *at) {
            if (row->kind != SCHEMA_INCLUDE) {
                const size_t index = strcspn(at, ".");
                at += index + (at[index] == '.');
            }
            return *at ? find_in(row->items, at) : row;
        }
        if (schema_scope_is_empty(scope) || (row && *at))
            return NULL;
    }
    const struct schema_row *row = schema_scope_row(scope);
    return row ? row : schema_scope_shorthand(scope);
}

const struct schema_row *schema_find(const char *key)
{
    return find_in(&scenario_schema, key);
}

struct search {
    const char *wanted;
    struct arena *arena;
    const char *best;
    unsigned distance;
};

static void compare_key(void *context, const char *key, const struct schema_row *row)
{
    struct search *search = context;
    (void)row;
    const char *dot = strrchr(key, '.');
    const char *last = dot ? dot + 1 : key;
    /* A whole path that is nearly right, or a last component that is. */
    const char *forms[] = {key, last};
    for (size_t i = 0; i < 2; i++) {
        const char *near = text_nearest(search->wanted, &forms[i], 1);
        const unsigned distance = near ? text_distance(search->wanted, near) : 0;
        if (near && (!search->best || distance < search->distance)) {
            search->best = arena_strdup(search->arena, key);
            search->distance = distance;
        }
    }
}

const char *schema_nearest(const char *key, struct arena *arena)
{
    struct search search = {.wanted = key, .arena = arena};
    if (strlen(key) > 100)
        return NULL;
    schema_walk(compare_key, &search);
    return search.best;
}

/* ---- Words ---- */

const char *schema_kind_noun(const struct schema_row *row)
{
    switch (row->kind) {
    case SCHEMA_STRING:
        return "text";
    case SCHEMA_STRING_LIST:
        return "a list of names";
    case SCHEMA_NAME:
        return "a name";
    case SCHEMA_WORD:
    case SCHEMA_CHOICE:
    case SCHEMA_SWITCH:
        return "one of a few words";
    case SCHEMA_BOOL:
        return "true or false";
    case SCHEMA_UINT:
    case SCHEMA_UINT64:
        return "a whole number";
    case SCHEMA_QUANTITY:
        return quantity_unit(row->dimension)[0] ? "a quantity with unit" : "a number";
    case SCHEMA_FACT:
        return "a fact {value, source, grade}";
    case SCHEMA_UINT_LIST:
        return "a list of whole numbers";
    case SCHEMA_SET:
        return "a list of names";
    case SCHEMA_ITEMS:
    case SCHEMA_LEVELS:
        return "a list of maps";
    case SCHEMA_INCLUDE:
        return "a name, a path or a map";
    }
    assert_fail("a kind of row", __FILE__, __LINE__);
}

char *schema_choice_names(const struct schema_row *row, bool with_pending, struct arena *arena)
{
    struct text text = {0};
    for (uint32_t i = 0; i < row->choice_count; i++) {
        const struct schema_choice *choice = &row->choices[i];
        if (choice->name && (with_pending || !choice->pending))
            text_add(&text, "%s%s", text.length ? ", " : "", choice->name);
    }
    char *copy = arena_strdup(arena, text_string(&text));
    text_free(&text);
    return copy;
}

/* Bounds of quantities are orders of magnitude, bounds of counts are exact. */
static char *bound(double value, enum dimension dimension, struct arena *arena)
{
    if (quantity_unit(dimension)[0])
        return arena_printf(arena, "%g", value);
    return text_double(arena, value);
}

char *schema_range(const struct schema_row *row, struct arena *arena)
{
    const char *unit = quantity_unit(row->dimension);
    const char *low = bound(row->minimum, row->dimension, arena);
    const char *high = bound(row->maximum, row->dimension, arena);
    const char *word = row->zero_word ? arena_printf(arena, ", or %s", row->zero_word) : "";
    if (row->minimum >= row->maximum)
        return arena_strdup(arena, "");
    return arena_printf(arena, "%s to %s%s%s%s", low, high, unit[0] ? " " : "", unit, word);
}
