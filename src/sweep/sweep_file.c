/*
 * sweep_file.c - the sweep file: which keys there are, and what each may hold.
 */
#include <string.h>

#include "stepsim/schema.h"
#include "stepsim/search.h"
#include "sweep/sweep_internal.h"

static const char *const file_keys[] = {"title",   "base",  "set",    "axes",  "zip",
                                        "derived", "where", "sample", "layout"};
#define FILE_KEY_COUNT (sizeof file_keys / sizeof file_keys[0])

static bool expect_kind(const struct yaml_tree_entry *entry, enum yaml_tree_kind kind,
                        const char *what, struct error_list *errors)
{
    if (entry->value->kind == kind) {
        return true;
    }
    error_add(errors, ERROR_wrong_type, entry->value->at, entry->key, "must be %s", what);
    return false;
}

/* A key of the scenario; the base is not loaded yet, so only the path is looked at. */
static bool check_key(const struct yaml_tree_entry *entry, struct arena *arena,
                      struct error_list *errors)
{
    if (schema_find(entry->key) != NULL || strncmp(entry->key, "cluster.levels.", 15) == 0 ||
        strcmp(entry->key, "parallel.stages") == 0) {
        return true;
    }
    const char *nearest = schema_nearest(entry->key, arena);
    error_add(errors, ERROR_unknown_key, entry->at, entry->key, "is no key of a scenario%s%s%s",
              nearest != NULL ? ", did you mean \"" : "", nearest != NULL ? nearest : "",
              nearest != NULL ? "\"?" : "");
    return false;
}

static struct scenario_override *read_overrides(struct sweep *sweep, const struct yaml_tree *map,
                                                struct error_list *errors)
{
    struct scenario_override *list =
        ARENA_ARRAY(sweep->arena, map->count + 1, struct scenario_override);
    for (uint32_t i = 0; i < map->count; i++) {
        check_key(&map->entries[i], sweep->arena, errors);
        list[i] = (struct scenario_override){map->entries[i].key,
                                             yaml_text_of(map->entries[i].value, sweep->arena)};
    }
    return list;
}

/* Several axes of equal length become one. */
static void read_zip(struct sweep *sweep, const struct yaml_tree *map, struct sweep_axis *axis,
                     struct error_list *errors)
{
    struct sweep_axis *parts = ARENA_ARRAY(sweep->arena, map->count, struct sweep_axis);
    for (uint32_t i = 0; i < map->count; i++) {
        if (!check_key(&map->entries[i], sweep->arena, errors) ||
            !axis_read(sweep, &map->entries[i], &parts[i], errors)) {
            return;
        }
        if (parts[i].value_count != parts[0].value_count) {
            error_add(errors, ERROR_conflicting_keys, map->entries[i].at, map->entries[i].key,
                      "has %u values and %s has %u; zipped axes move together",
                      parts[i].value_count, map->entries[0].key, parts[0].value_count);
            return;
        }
    }
    const uint32_t values = map->count > 0 ? parts[0].value_count : 0;
    const char **keys = ARENA_ARRAY(sweep->arena, map->count, const char *);
    const char **texts = ARENA_ARRAY(sweep->arena, (size_t)map->count * values, const char *);
    for (uint32_t i = 0; i < map->count; i++) {
        keys[i] = map->entries[i].key;
        for (uint32_t j = 0; j < values; j++) {
            texts[(size_t)j * map->count + i] = parts[i].texts[j];
        }
    }
    *axis = (struct sweep_axis){keys, map->count, values, texts, map->at};
}

static void read_axes(struct sweep *sweep, const struct yaml_tree *axes,
                      const struct yaml_tree *zips, struct error_list *errors)
{
    const uint32_t plain = axes != NULL ? axes->count : 0;
    const uint32_t zipped = zips != NULL ? zips->count : 0;
    struct sweep_axis *list = ARENA_ARRAY(sweep->arena, plain + zipped + 1, struct sweep_axis);
    for (uint32_t i = 0; i < plain; i++) {
        check_key(&axes->entries[i], sweep->arena, errors);
        axis_read(sweep, &axes->entries[i], &list[i], errors);
    }
    for (uint32_t i = 0; i < zipped; i++) {
        if (zips->items[i]->kind != YAML_TREE_MAP) {
            error_add(errors, ERROR_wrong_type, zips->items[i]->at, "zip",
                      "is a list of maps of axes that move together");
            continue;
        }
        read_zip(sweep, zips->items[i], &list[plain + i], errors);
    }
    sweep->axes = list;
    sweep->axis_count = plain + zipped;
}

static void read_derived(struct sweep *sweep, const struct yaml_tree *map,
                         struct error_list *errors)
{
    sweep->derived = ARENA_ARRAY(sweep->arena, map->count + 1, struct sweep_expression);
    sweep->derived_count = map->count;
    for (uint32_t i = 0; i < map->count; i++) {
        const struct yaml_tree_entry *entry = &map->entries[i];
        const bool is_key =
            schema_find(entry->key) != NULL || strcmp(entry->key, "parallel.stages") == 0;
        if (!is_key && strchr(entry->key, '.') != NULL) {
            check_key(entry, sweep->arena, errors);
        }
        expect_kind(entry, YAML_TREE_SCALAR, "an SQL expression", errors);
        sweep->derived[i] = (struct sweep_expression){.name = entry->key,
                                                      .text = entry->value->text,
                                                      .at = entry->value->at,
                                                      .is_key = is_key};
    }
}

static void read_wheres(struct sweep *sweep, const struct yaml_tree *node,
                        struct error_list *errors)
{
    const bool list = node->kind == YAML_TREE_LIST;
    const uint32_t count = list ? node->count : 1;
    sweep->wheres = ARENA_ARRAY(sweep->arena, count + 1, struct sweep_expression);
    sweep->where_count = count;
    for (uint32_t i = 0; i < count; i++) {
        const struct yaml_tree *item = list ? node->items[i] : node;
        if (item->kind != YAML_TREE_SCALAR) {
            error_add(errors, ERROR_wrong_type, item->at, "where",
                      "is an SQL condition, or a list of conditions that must all hold");
            continue;
        }
        sweep->wheres[i] = (struct sweep_expression){.text = item->text, .at = item->at};
    }
}

static void read_sample(struct sweep *sweep, const struct yaml_tree *map, struct error_list *errors)
{
    static const char *const kinds[] = {"grid", "random", "latin_hypercube"};
    for (uint32_t i = 0; i < map->count; i++) {
        const struct yaml_tree_entry *entry = &map->entries[i];
        const char *text = entry->value->kind == YAML_TREE_SCALAR ? entry->value->text : "";
        struct quantity_problem problem = {.message = ""};
        if (strcmp(entry->key, "kind") == 0) {
            uint32_t kind = 0;
            while (kind < 3 && strcmp(kinds[kind], text) != 0) {
                kind++;
            }
            sweep->sampling = (enum sweep_sampling)(kind % 3);
            if (kind == 3) {
                error_add(errors, ERROR_bad_value, entry->value->at, "sample.kind",
                          "is one of: grid, random, latin_hypercube");
            }
        } else if (strcmp(entry->key, "points") == 0 || strcmp(entry->key, "seed") == 0) {
            uint64_t *number = entry->key[0] == 'p' ? &sweep->sample_points : &sweep->seed;
            if (!quantity_parse_uint(text, UINT32_MAX, number, &problem)) {
                error_add(errors, problem.code, entry->value->at, entry->key, "%s",
                          problem.message);
            }
        } else {
            error_add(errors, ERROR_unknown_key, entry->at, entry->key,
                      "sample has kind, points and seed");
        }
    }
    if ((sweep->sampling == SAMPLE_GRID) != (sweep->sample_points == 0)) {
        error_add(errors, ERROR_conflicting_keys, map->at, "sample.points",
                  "a grid has all its points; random and latin_hypercube need the number of "
                  "points, at least 1");
    }
}

/* {search: all, top: 20}, or {search: {parallel.tp: [4, 8]}}: keys that are not named are kept. */
static void read_search(struct sweep *sweep, const struct yaml_tree *map, struct error_list *errors)
{
    size_t keys = 0;
    while (search_keys[keys].key != NULL) {
        keys++;
    }
    for (uint32_t i = 0; i < map->count; i++) {
        const struct yaml_tree_entry *entry = &map->entries[i];
        const struct yaml_tree *value = entry->value;
        struct quantity_problem problem = {.message = ""};
        uint64_t top = 0;
        if (strcmp(entry->key, "search") == 0 && value->kind == YAML_TREE_MAP) {
            struct search_change *changes =
                ARENA_ARRAY(sweep->arena, keys + value->count, struct search_change);
            for (size_t k = 0; k < keys; k++) {
                changes[k].key = search_keys[k].key;
            }
            for (uint32_t k = 0; k < value->count; k++) {
                const char *text = yaml_text_of(value->entries[k].value, sweep->arena);
                const size_t length = strlen(text);
                const bool list = value->entries[k].value->kind == YAML_TREE_LIST;
                changes[keys + k] = (struct search_change){
                    .key = value->entries[k].key,
                    .values = list ? arena_strndup(sweep->arena, text + 1, length - 2) : text};
            }
            sweep->changes = changes;
            sweep->change_count = (uint32_t)keys + value->count;
            sweep->layout_search = true;
        } else if (strcmp(entry->key, "search") == 0 && value->kind == YAML_TREE_SCALAR &&
                   strcmp(value->text, "all") == 0) {
            sweep->layout_search = true;
        } else if (strcmp(entry->key, "top") == 0 && value->kind == YAML_TREE_SCALAR &&
                   quantity_parse_uint(value->text, 1000000, &top, &problem) && top > 0) {
            sweep->top = (uint32_t)top;
        } else {
            error_add(errors, ERROR_bad_value, entry->at, entry->key,
                      "layout is fixed, search, a list of maps of keys, or {search: all or a map "
                      "of keys and values, top: a number of points}");
        }
    }
    if (!sweep->layout_search) {
        error_add(errors, ERROR_missing_key, map->at, "layout",
                  "layout as a map has search: all, or search: {parallel.tp: [4, 8]}");
    }
}

static void read_layouts(struct sweep *sweep, const struct yaml_tree_entry *entry,
                         struct error_list *errors)
{
    const struct yaml_tree *node = entry->value;
    if (node->kind == YAML_TREE_SCALAR && strcmp(node->text, "fixed") == 0) {
        return;
    }
    if (node->kind == YAML_TREE_SCALAR && strcmp(node->text, "search") == 0) {
        sweep->layout_search = true;
        return;
    }
    if (node->kind == YAML_TREE_MAP) {
        read_search(sweep, node, errors);
        return;
    }
    if (!expect_kind(entry, YAML_TREE_LIST, "fixed, search, or a list of maps of keys", errors)) {
        return;
    }
    const struct scenario_override **lists =
        ARENA_ARRAY(sweep->arena, node->count + 1, const struct scenario_override *);
    uint32_t *sizes = ARENA_ARRAY(sweep->arena, node->count + 1, uint32_t);
    for (uint32_t i = 0; i < node->count; i++) {
        if (node->items[i]->kind != YAML_TREE_MAP) {
            error_add(errors, ERROR_wrong_type, node->items[i]->at, "layout",
                      "each listed layout is a map of keys, {parallel.tp: 8}");
            continue;
        }
        lists[i] = read_overrides(sweep, node->items[i], errors);
        sizes[i] = node->items[i]->count;
    }
    sweep->layouts = lists;
    sweep->layout_sizes = sizes;
    sweep->layout_count = node->count;
}

/* Paths are relative to the sweep file. */
static const char *beside(const struct sweep *sweep, const char *path)
{
    const char *slash = strrchr(sweep->path, '/');
    if (path[0] == '/' || slash == NULL) {
        return path;
    }
    return arena_printf(sweep->arena, "%.*s%s", (int)(slash - sweep->path) + 1, sweep->path, path);
}

static void read_entry(struct sweep *sweep, const struct yaml_tree_entry *entry,
                       struct error_list *errors)
{
    if (strcmp(entry->key, "title") == 0) {
        sweep->title =
            expect_kind(entry, YAML_TREE_SCALAR, "text", errors) ? entry->value->text : NULL;
    } else if (strcmp(entry->key, "base") == 0) {
        if (expect_kind(entry, YAML_TREE_SCALAR, "the path of a scenario", errors)) {
            sweep->base_path = beside(sweep, entry->value->text);
        }
    } else if (strcmp(entry->key, "set") == 0) {
        if (expect_kind(entry, YAML_TREE_MAP, "a map of keys and values", errors)) {
            sweep->sets = read_overrides(sweep, entry->value, errors);
            sweep->set_count = entry->value->count;
        }
    } else if (strcmp(entry->key, "derived") == 0) {
        if (expect_kind(entry, YAML_TREE_MAP, "a map of names and SQL expressions", errors)) {
            read_derived(sweep, entry->value, errors);
        }
    } else if (strcmp(entry->key, "where") == 0) {
        read_wheres(sweep, entry->value, errors);
    } else if (strcmp(entry->key, "sample") == 0) {
        if (expect_kind(entry, YAML_TREE_MAP, "a map of kind, points and seed", errors)) {
            read_sample(sweep, entry->value, errors);
        }
    } else if (strcmp(entry->key, "layout") == 0) {
        read_layouts(sweep, entry, errors);
    }
}

static bool known(const char *key)
{
    for (size_t i = 0; i < FILE_KEY_COUNT; i++) {
        if (strcmp(file_keys[i], key) == 0) {
            return true;
        }
    }
    return strncmp(key, "x-", 2) == 0;
}

bool sweep_file_read(struct sweep *sweep, struct error_list *errors)
{
    const size_t errors_before = errors->count;
    const struct yaml_tree *root = yaml_tree_read(sweep->path, sweep->arena, errors);
    if (root == NULL) {
        return false;
    }
    if (root->kind != YAML_TREE_MAP) {
        error_add(errors, ERROR_wrong_type, root->at, NULL,
                  "a sweep file is a map with base: and axes:");
        return false;
    }
    for (uint32_t i = 0; i < root->count; i++) {
        const struct yaml_tree_entry *entry = &root->entries[i];
        if (!known(entry->key)) {
            const char *nearest = text_nearest(entry->key, file_keys, FILE_KEY_COUNT);
            error_add(errors, ERROR_unknown_key, entry->at, entry->key,
                      "a sweep file has no such "
                      "key%s%s%s",
                      nearest != NULL ? ", did you mean \"" : "", nearest != NULL ? nearest : "",
                      nearest != NULL ? "\"?" : "");
        }
        read_entry(sweep, entry, errors);
    }
    const struct yaml_tree *axes = yaml_tree_get(root, "axes");
    const struct yaml_tree *zips = yaml_tree_get(root, "zip");
    if ((axes != NULL && axes->kind != YAML_TREE_MAP) ||
        (zips != NULL && zips->kind != YAML_TREE_LIST)) {
        error_add(errors, ERROR_wrong_type, axes != NULL ? axes->at : zips->at, "axes",
                  "axes is a map of keys and values, zip a list of such maps");
    } else {
        read_axes(sweep, axes, zips, errors);
    }
    if (sweep->base_path == NULL) {
        error_add(errors, ERROR_missing_key, root->at, "base",
                  "a sweep varies a scenario: base: SIM.yaml");
    }
    return errors->count == errors_before;
}
