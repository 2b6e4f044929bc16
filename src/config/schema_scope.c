/*
 * schema_scope.c - walking down a key path by ranges of rows.
 *
 * Rows of one section stand together, so a path is a range of rows and one step
 * down narrows the range. Loading a map compares each of its keys with the rows
 * of its own section only.
 */
#include <string.h>

#include "config/config_internal.h"

struct schema_scope schema_scope_of_table(const struct schema_table *table)
{
    return (struct schema_scope){.table = table, .end = table->row_count};
}

size_t schema_scope_component(struct schema_scope scope, const struct schema_row *row,
                              const char **component)
{
    *component = row->key + scope.skip;
    return strcspn(*component, ".");
}

struct schema_scope schema_scope_enter(struct schema_scope scope, const char *component,
                                       size_t length)
{
    struct schema_scope inner = {.table = scope.table, .skip = scope.skip + (uint32_t)length + 1};
    uint32_t row = schema_scope_row(scope) ? scope.end : scope.first; /* nothing below a row */
    const struct schema_row *rows = scope.table->rows;
    for (; row < scope.end; row++) {
        const char *key = rows[row].key + scope.skip;
        if (strncmp(key, component, length) == 0 && (key[length] == '\0' || key[length] == '.'))
            break;
    }
    inner.first = row;
    for (; row < scope.end; row++) {
        const char *key = rows[row].key + scope.skip;
        if (strncmp(key, component, length) != 0 || (key[length] != '\0' && key[length] != '.'))
            break;
    }
    inner.end = row;
    return inner;
}

bool schema_scope_is_empty(struct schema_scope scope)
{
    return scope.first == scope.end;
}

const struct schema_row *schema_scope_row(struct schema_scope scope)
{
    if (scope.end - scope.first != 1 || scope.skip == 0)
        return NULL;
    const struct schema_row *row = &scope.table->rows[scope.first];
    return row->key[scope.skip - 1] == '\0' ? row : NULL;
}

const struct schema_row *schema_scope_shorthand(struct schema_scope scope)
{
    if (scope.skip == 0 || schema_scope_row(scope))
        return NULL;
    for (uint32_t i = scope.first; i < scope.end; i++) {
        const struct schema_row *row = &scope.table->rows[i];
        if ((row->flags & SCHEMA_SHORTHAND) && !strchr(row->key + scope.skip, '.'))
            return row;
    }
    return NULL;
}

uint32_t schema_row_index(const struct schema_table *table, const char *key)
{
    for (uint32_t i = 0; i < table->row_count; i++) {
        if (strcmp(table->rows[i].key, key) == 0)
            return i;
    }
    assert_fail("every key that code names is a row", __FILE__, __LINE__);
}
