/*
 * compose.c - names, paths and `base:` become complete maps; overrides are grafted in.
 *
 * Trees are shared and read-only, so composing copies the maps along the changed
 * paths and nothing else. One function, graft(), lays a newer tree over an older
 * one along the schema:
 *
 *   older          newer                  result
 *   anything       null                   the key is gone
 *   section map    map                    merged key by key
 *   section text   map                    the text becomes its key (cp: 8 is cp.size: 8)
 *   section map    plain text             replaced, or one key set where the section keeps the rest
 *   include name   map without base       {base: name} and the map's keys
 *   list           map of index or name   those items changed
 *   otherwise                             replaced
 *
 * An override is the nested map of its dotted key. Its value, when it is a map
 * itself, replaces what was there: `--set moe.routing={load: balanced}` leaves no
 * stale key behind. Keys beside a `base:` merge at every depth.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config_internal.h"

#define BASE_DEPTH_MAX 8

static const struct yaml_tree *graft(struct compose *compose, struct schema_scope scope,
                                     const struct yaml_tree *old, const struct yaml_tree *new);

/* A map with room for one more entry than it has. */
struct map_edit {
    struct yaml_tree *map;
    struct yaml_tree_entry *entries;
};

static struct map_edit edit_map(struct compose *compose, const struct yaml_tree *old, uint32_t more)
{
    struct map_edit edit = {.map = ARENA_NEW(compose->arena, struct yaml_tree)};
    *edit.map = *old;
    edit.entries = ARENA_ARRAY(compose->arena, old->count + more, struct yaml_tree_entry);
    if (old->count > 0)
        memcpy(edit.entries, old->entries, old->count * sizeof *edit.entries);
    edit.map->entries = edit.entries;
    return edit;
}

/* Sets, adds or (value NULL) removes a key. */
static void edit_entry(struct map_edit *edit, const struct yaml_tree_entry *entry,
                       const struct yaml_tree *value)
{
    uint32_t at = 0;
    while (at < edit->map->count && strcmp(edit->entries[at].key, entry->key) != 0)
        at++;
    const bool there = at < edit->map->count;
    if (value) {
        edit->entries[at] = (struct yaml_tree_entry){entry->key, entry->at, value};
        edit->map->count += there ? 0 : 1;
    } else if (there) {
        memmove(&edit->entries[at], &edit->entries[at + 1],
                (edit->map->count - at - 1) * sizeof *edit->entries);
        edit->map->count--;
    }
}

/* {key: value}, with the place and the writer of the value. */
static const struct yaml_tree *single_map(struct compose *compose, const char *key,
                                          const struct yaml_tree *value)
{
    struct yaml_tree_entry *entry = ARENA_NEW(compose->arena, struct yaml_tree_entry);
    *entry = (struct yaml_tree_entry){key, value->at, value};
    struct yaml_tree *map = ARENA_NEW(compose->arena, struct yaml_tree);
    *map = (struct yaml_tree){.kind = YAML_TREE_MAP,
                              .writer = value->writer,
                              .count = 1,
                              .at = value->at,
                              .text = "",
                              .entries = entry};
    return map;
}

static const struct yaml_tree *graft_map(struct compose *compose, struct schema_scope scope,
                                         const struct yaml_tree *old, const struct yaml_tree *new)
{
    struct map_edit edit = edit_map(compose, old, new->count);
    for (uint32_t i = 0; i < new->count; i++) {
        const struct yaml_tree_entry *entry = &new->entries[i];
        const struct schema_scope inner = schema_scope_enter(scope, entry->key, strlen(entry->key));
        const struct yaml_tree *before = yaml_tree_get(edit.map, entry->key);
        edit_entry(&edit, entry, graft(compose, inner, before, entry->value));
    }
    return edit.map;
}

/* The item that an index or a name stands for, or the count of the list. */
static uint32_t find_item(const struct yaml_tree *list, const char *name)
{
    struct quantity_problem problem;
    uint64_t index = 0;
    if (quantity_parse_uint(name, UINT32_MAX, &index, &problem))
        return index < list->count ? (uint32_t)index : list->count;
    for (uint32_t i = 0; i < list->count; i++) {
        const struct yaml_tree *item = list->items[i];
        const struct yaml_tree *label =
            item->kind == YAML_TREE_MAP ? yaml_tree_get(item, "name") : NULL;
        if (label && label->kind == YAML_TREE_SCALAR && strcmp(label->text, name) == 0)
            return i;
    }
    return list->count;
}

static const struct yaml_tree *graft_list(struct compose *compose, const struct schema_row *row,
                                          const struct yaml_tree *old, const struct yaml_tree *new)
{
    struct yaml_tree *list = ARENA_NEW(compose->arena, struct yaml_tree);
    const struct yaml_tree **items =
        arena_calloc(compose->arena, old->count, sizeof(const struct yaml_tree *));
    if (old->count > 0)
        memcpy(items, old->items, old->count * sizeof(const struct yaml_tree *));
    *list = *old;
    list->items = items;
    for (uint32_t i = 0; i < new->count; i++) {
        const struct yaml_tree_entry *entry = &new->entries[i];
        const uint32_t at = find_item(old, entry->key);
        if (at == old->count) {
            char quoted[CONFIG_QUOTE_SIZE];
            error_add(compose->errors, ERROR_unknown_key, entry->at, row->key,
                      "has no entry %s; an entry is meant by its index from 0 to %u or its name",
                      config_quote(quoted, entry->key), old->count ? old->count - 1 : 0);
            continue;
        }
        const struct yaml_tree *item =
            graft(compose, schema_scope_of_table(row->items), items[at], entry->value);
        items[at] = item ? item : items[at];
    }
    return list;
}

/* Two overrides of entries of a list that is not there yet: {0: {a: 1}} and {0: {b: 2}}. */
static const struct yaml_tree *graft_items(struct compose *compose, const struct schema_row *row,
                                           const struct yaml_tree *old, const struct yaml_tree *new)
{
    struct map_edit edit = edit_map(compose, old, new->count);
    for (uint32_t i = 0; i < new->count; i++) {
        const struct yaml_tree_entry *entry = &new->entries[i];
        const struct yaml_tree *before = yaml_tree_get(edit.map, entry->key);
        const struct schema_scope scope = schema_scope_of_table(row->items);
        edit_entry(&edit, entry, graft(compose, scope, before, entry->value));
    }
    return edit.map;
}

/* A map over an include: keys of the included table, on top of what was there. */
static const struct yaml_tree *graft_include(struct compose *compose, const struct schema_row *row,
                                             const struct yaml_tree *old,
                                             const struct yaml_tree *new)
{
    if (yaml_tree_get(new, "base"))
        return new;
    if (old->kind == YAML_TREE_SCALAR)
        old = single_map(compose, "base", old);
    if (old->kind != YAML_TREE_MAP)
        return new;
    return graft_map(compose, schema_scope_of_table(row->items), old, new);
}

static const struct yaml_tree *graft_merging(struct compose *compose, struct schema_scope scope,
                                             const struct yaml_tree *old,
                                             const struct yaml_tree *new)
{
    const struct schema_row *row = schema_scope_row(scope);
    if (row && row->kind == SCHEMA_INCLUDE)
        return graft_include(compose, row, old, new);
    if (row && row->items && old->kind == YAML_TREE_LIST)
        return graft_list(compose, row, old, new);
    if (row && row->items) {
        const bool path = old->kind == YAML_TREE_MAP && old->writer == YAML_TREE_PATH;
        return path ? graft_items(compose, row, old, new) : new;
    }
    if (row && !(row->kind == SCHEMA_FACT && new->writer == YAML_TREE_PATH))
        return new;
    const struct schema_row *shorthand = schema_scope_shorthand(scope);
    if (old->kind == YAML_TREE_SCALAR && shorthand)
        old = single_map(compose, shorthand->key + scope.skip, old);
    return old->kind == YAML_TREE_MAP ? graft_map(compose, scope, old, new) : new;
}

static const struct yaml_tree *graft(struct compose *compose, struct schema_scope scope,
                                     const struct yaml_tree *old, const struct yaml_tree *new)
{
    static const struct yaml_tree empty_map = {
        .kind = YAML_TREE_MAP, .writer = YAML_TREE_PATH, .text = ""};
    if (yaml_tree_is_null(new))
        return NULL;
    if (new->kind == YAML_TREE_MAP && (new->writer == YAML_TREE_PATH || compose->merge_maps)) {
        if (!old && new->writer == YAML_TREE_PATH)
            old = &empty_map;
        return old ? graft_merging(compose, scope, old, new) : new;
    }
    const struct schema_row *shorthand = schema_scope_shorthand(scope);
    const bool keeps = shorthand && (shorthand->flags & SCHEMA_KEEPS);
    if (keeps && old && old->kind == YAML_TREE_MAP && new->kind == YAML_TREE_SCALAR)
        return graft_map(compose, scope, old,
                         single_map(compose, shorthand->key + scope.skip, new));
    return new;
}

/* ---- Overrides ---- */

const struct yaml_tree *compose_override(struct compose *compose, const struct yaml_tree *root,
                                         const struct scenario_override *override)
{
    const char *key = override->key;
    const size_t length = strlen(key);
    const bool sound =
        length > 0 && length < 200 && key[0] != '.' && key[length - 1] != '.' && !strstr(key, "..");
    if (!sound) {
        error_add(compose->errors, ERROR_usage, (struct location){0}, key,
                  "is not a key path; write for example parallel.tp=8");
        return root;
    }
    const struct yaml_tree *tree =
        yaml_tree_parse_override(override->value, key, compose->arena, compose->errors);
    /* From the last component outwards: a.b=v becomes {a: {b: v}}. */
    for (size_t end = length; tree && end > 0;) {
        size_t start = end;
        while (start > 0 && key[start - 1] != '.')
            start--;
        const char *component = arena_strndup(compose->arena, key + start, end - start);
        struct yaml_tree *map = ARENA_NEW(compose->arena, struct yaml_tree);
        *map = *single_map(compose, component, tree);
        map->writer = YAML_TREE_PATH;
        tree = map;
        end = start > 0 ? start - 1 : 0;
    }
    if (!tree)
        return root;
    compose->merge_maps = false;
    return graft_map(compose, schema_scope_of_table(&scenario_schema), root, tree);
}

/* ---- Includes ---- */

static const struct yaml_tree *with_name(struct compose *compose, const struct yaml_tree *map,
                                         const char *name)
{
    struct yaml_tree *named = ARENA_NEW(compose->arena, struct yaml_tree);
    *named = *map;
    named->name = name;
    return named;
}

/* Keys beside `base:` on top of the base's. */
static const struct yaml_tree *include_base(struct compose *compose,
                                            const struct schema_table *table, const char *key,
                                            const struct yaml_tree *map)
{
    const struct yaml_tree *base = yaml_tree_get(map, "base");
    if (base->kind != YAML_TREE_SCALAR) {
        error_add(compose->errors, ERROR_wrong_type, base->at, key,
                  "base takes the name or path of a %s, but holds %s", table->noun,
                  yaml_tree_kind_noun(base));
        return NULL;
    }
    const struct yaml_tree *old = compose_include(compose, table, key, base);
    if (!old)
        return NULL;
    struct map_edit rest = edit_map(compose, map, 0);
    edit_entry(&rest, &(struct yaml_tree_entry){.key = "base"}, NULL);
    compose->merge_maps = true;
    struct yaml_tree *merged = ARENA_NEW(compose->arena, struct yaml_tree);
    *merged = *graft_map(compose, schema_scope_of_table(table), old, rest.map);
    merged->at = map->at.line ? map->at : old->at;
    return merged;
}

const struct yaml_tree *compose_include(struct compose *compose, const struct schema_table *table,
                                        const char *key, const struct yaml_tree *node)
{
    const struct yaml_tree *result = NULL;
    if (compose->depth == BASE_DEPTH_MAX) {
        error_add(compose->errors, ERROR_yaml_limit, node->at, key,
                  "base leads through more than %d files, probably in a circle", BASE_DEPTH_MAX);
        return NULL;
    }
    compose->depth++;
    if (node->kind == YAML_TREE_MAP) {
        result = yaml_tree_get(node, "base")
                     ? include_base(compose, table, key, node)
                     : with_name(compose, node, node->name ? node->name : "inline");
    } else if (node->kind == YAML_TREE_SCALAR && !yaml_tree_is_null(node)) {
        result = compose_named(compose, table, key, node);
        if (result && yaml_tree_get(result, "base")) {
            const char *name = result->name;
            result = include_base(compose, table, key, result);
            result = result ? with_name(compose, result, name) : NULL;
        }
    } else {
        error_add(compose->errors, ERROR_wrong_type, node->at, key,
                  "takes the name or path of a %s or a map of its keys, but holds %s", table->noun,
                  yaml_tree_kind_noun(node));
    }
    compose->depth--;
    return result;
}
