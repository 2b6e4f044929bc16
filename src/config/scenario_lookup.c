/*
 * scenario_lookup.c - a key path of a loaded scenario: its row, its value, its origin.
 */
#include <string.h>

#include "config/config_internal.h"

/* A row together with the struct that holds its value. */
struct found {
    const struct schema_row *row;
    const void *base;
    const struct origin *origin;
};

/* The item that a component (index or level name) means, or NULL. */
static const void *find_item(const struct schema_row *row, const void *base, const char *component,
                             size_t length)
{
    const uint32_t count = schema_item_count(row, base);
    uint64_t index = 0;
    struct quantity_problem problem;
    char name[64];
    if (length >= sizeof name)
        return NULL;
    memcpy(name, component, length);
    name[length] = '\0';
    if (quantity_parse_uint(name, UINT32_MAX, &index, &problem))
        return index < count ? schema_item(row, base, (uint32_t)index) : NULL;
    for (uint32_t i = 0; row->kind == SCHEMA_LEVELS && i < count; i++) {
        const struct level_spec *level = (const void *)schema_item(row, base, i);
        if (strcmp(level->name, name) == 0)
            return level;
    }
    return NULL;
}

static struct found find_in(const struct schema_table *table, const void *base, const char *key);

/* The key goes on behind a row of another table. */
static struct found find_below(const struct schema_row *row, const void *base, const char *rest)
{
    if (row->kind == SCHEMA_INCLUDE)
        return find_in(row->items, (const char *)base + row->offset, rest);
    const size_t length = strcspn(rest, ".");
    const void *item = rest[length] == '.' ? find_item(row, base, rest, length) : NULL;
    return item ? find_in(row->items, item, rest + length + 1) : (struct found){0};
}

static struct found find_in(const struct schema_table *table, const void *base, const char *key)
{
    struct schema_scope scope = schema_scope_of_table(table);
    for (const char *at = key; *at;) {
        const size_t length = strcspn(at, ".");
        scope = schema_scope_enter(scope, at, length);
        if (schema_scope_is_empty(scope))
            return (struct found){0};
        at += length;
        const struct schema_row *row = schema_scope_row(scope);
        if (row && row->items && *at == '.')
            return find_below(row, base, at + 1);
        if (row && *at == '.')
            return (struct found){0};
        at += *at == '.';
    }
    const struct schema_row *row = schema_scope_row(scope);
    row = row ? row : schema_scope_shorthand(scope);
    const struct origin *origins = schema_origins(table, base);
    return row ? (struct found){row, base, origins ? &origins[row - table->rows] : NULL}
               : (struct found){0};
}

static struct found find(const struct scenario *scenario, const char *key)
{
    return find_in(&scenario_schema, scenario, key);
}

const struct origin *scenario_origin(const struct scenario *scenario, const char *key)
{
    return find(scenario, key).origin;
}

struct location scenario_at(const struct scenario *scenario, const char *key)
{
    const struct origin *origin = scenario_origin(scenario, key);
    if (origin && origin->kind == ORIGIN_FILE)
        return origin->at;
    return (struct location){.file = scenario->path};
}

const char *scenario_value_text(const struct scenario *scenario, const char *key,
                                struct arena *arena)
{
    const struct found found = find(scenario, key);
    if (!found.row || found.row->items || (found.origin && found.origin->kind == ORIGIN_ABSENT))
        return NULL;
    return schema_value_text(found.row, found.base, arena);
}

bool scenario_number(const struct scenario *scenario, const char *key, double *value)
{
    const struct found found = find(scenario, key);
    if (!found.row || (found.origin && found.origin->kind == ORIGIN_ABSENT))
        return false;
    return schema_value_number(found.row, found.base, value);
}
