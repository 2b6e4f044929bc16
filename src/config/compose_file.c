/*
 * compose_file.c - which file a name means, and trees that are read once.
 *
 * A plain name is a file of the configuration folder, by its file name or, for
 * devices, by one of its aliases. Anything with a slash or ending in .yaml is a
 * path, relative to the file that names it. The cache keeps parsed trees by path,
 * so a sweep reads each file once.
 */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/config_internal.h"
#include "stepsim/text.h"

#define NAMES_MAX 4096

/* ---- Cache ---- */

struct cached {
    const char *path; /* of a file, or name of a text */
    const char *text; /* NULL for a file */
    const struct yaml_tree *tree;
    struct cached *next;
};

struct scenario_cache {
    struct arena *arena;
    struct cached *first;
};

struct scenario_cache *scenario_cache_create(void)
{
    struct arena *arena = arena_create("scenario cache");
    struct scenario_cache *cache = ARENA_NEW(arena, struct scenario_cache);
    cache->arena = arena;
    return cache;
}

void scenario_cache_destroy(struct scenario_cache *cache)
{
    if (cache)
        arena_destroy(cache->arena);
}

static const struct yaml_tree *cache_find(const struct scenario_cache *cache, const char *path,
                                          const char *text)
{
    for (const struct cached *entry = cache ? cache->first : NULL; entry; entry = entry->next) {
        const bool same_text = text ? entry->text && strcmp(entry->text, text) == 0 : !entry->text;
        if (same_text && strcmp(entry->path, path) == 0)
            return entry->tree;
    }
    return NULL;
}

static void cache_add(struct scenario_cache *cache, const char *path, const char *text,
                      const struct yaml_tree *tree)
{
    struct cached *entry = ARENA_NEW(cache->arena, struct cached);
    *entry = (struct cached){.path = arena_strdup(cache->arena, path),
                             .text = text ? arena_strdup(cache->arena, text) : NULL,
                             .tree = tree,
                             .next = cache->first};
    cache->first = entry;
}

/* ---- Files ---- */

/* The map without its top-level x- keys. */
static const struct yaml_tree *without_free_keys(struct arena *arena, const struct yaml_tree *root)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < root->count; i++)
        kept += strncmp(root->entries[i].key, "x-", 2) != 0;
    if (kept == root->count)
        return root;
    struct yaml_tree *map = ARENA_NEW(arena, struct yaml_tree);
    struct yaml_tree_entry *entries = ARENA_ARRAY(arena, kept, struct yaml_tree_entry);
    *map = *root;
    map->entries = entries;
    map->count = 0;
    for (uint32_t i = 0; i < root->count; i++) {
        if (strncmp(root->entries[i].key, "x-", 2) != 0)
            entries[map->count++] = root->entries[i];
    }
    return map;
}

/* A root must be a map; NULL with an error otherwise. */
static const struct yaml_tree *accept_root(struct compose *compose, struct arena *arena,
                                           const struct yaml_tree *root)
{
    if (!root)
        return NULL;
    if (root->kind == YAML_TREE_MAP)
        return without_free_keys(arena, root);
    error_add(compose->errors, ERROR_wrong_type, root->at, NULL,
              "the file must be a map of keys, but holds %s", yaml_tree_kind_noun(root));
    return NULL;
}

/* Keeps a sound tree; one with errors is parsed anew, so that they are reported anew. */
static const struct yaml_tree *keep(struct compose *compose, const struct cached *kept,
                                    size_t errors_before)
{
    if (kept->tree && compose->cache && compose->errors->count == errors_before)
        cache_add(compose->cache, kept->path, kept->text, kept->tree);
    return kept->tree;
}

static struct arena *tree_arena(const struct compose *compose)
{
    return compose->cache ? compose->cache->arena : compose->arena;
}

const struct yaml_tree *compose_file(struct compose *compose, const char *path)
{
    const struct yaml_tree *tree = cache_find(compose->cache, path, NULL);
    if (tree)
        return tree;
    struct arena *arena = tree_arena(compose);
    const size_t errors_before = compose->errors->count;
    tree = accept_root(compose, arena, yaml_tree_read(path, arena, compose->errors));
    return keep(compose, &(struct cached){.path = path, .tree = tree}, errors_before);
}

const struct yaml_tree *compose_text(struct compose *compose, const char *text, const char *name)
{
    const struct yaml_tree *tree = cache_find(compose->cache, name, text);
    if (tree)
        return tree;
    struct arena *arena = tree_arena(compose);
    const size_t errors_before = compose->errors->count;
    tree = accept_root(
        compose, arena,
        yaml_tree_parse(text, strlen(text), arena_strdup(arena, name), arena, compose->errors));
    return keep(compose, &(struct cached){.path = name, .text = text, .tree = tree}, errors_before);
}

/* ---- Names ---- */

static int compare_names(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

const char *const *scenario_config_names(const char *config_dir, const char *folder,
                                         struct arena *arena, size_t *count)
{
    const char **names = arena_calloc(arena, NAMES_MAX, sizeof(const char *));
    DIR *directory = opendir(arena_printf(arena, "%s/%s", config_dir, folder));
    *count = 0;
    const struct dirent *file = directory ? readdir(directory) : NULL;
    for (; file && *count < NAMES_MAX; file = readdir(directory)) {
        const size_t length = strlen(file->d_name);
        if (length > 5 && file->d_name[0] != '.' && strcmp(file->d_name + length - 5, ".yaml") == 0)
            names[(*count)++] = arena_strndup(arena, file->d_name, length - 5);
    }
    if (directory)
        closedir(directory);
    qsort(names, *count, sizeof *names, compare_names);
    return names;
}

static bool has_alias(const struct yaml_tree *tree, const char *name)
{
    const struct yaml_tree *aliases = tree ? yaml_tree_get(tree, "aliases") : NULL;
    for (uint32_t i = 0; aliases && aliases->kind == YAML_TREE_LIST && i < aliases->count; i++) {
        const struct yaml_tree *alias = aliases->items[i];
        if (alias->kind == YAML_TREE_SCALAR && strcmp(alias->text, name) == 0)
            return true;
    }
    return false;
}

static const struct yaml_tree *named_tree(struct arena *arena, const struct yaml_tree *tree,
                                          const char *name)
{
    struct yaml_tree *named = ARENA_NEW(arena, struct yaml_tree);
    *named = *tree;
    named->name = arena_strdup(arena, name);
    return named;
}

/* The file of the folder one of whose aliases is the name, or NULL. Broken files are passed over.
 */
static const struct yaml_tree *find_by_alias(struct compose *compose, const char *folder,
                                             const char *name)
{
    size_t count = 0;
    const char *const *names =
        scenario_config_names(compose->config_dir, folder, compose->arena, &count);
    struct error_list quiet;
    error_list_init(&quiet, compose->arena);
    struct compose silent = *compose;
    silent.errors = &quiet;
    for (size_t i = 0; i < count; i++) {
        const char *path =
            arena_printf(compose->arena, "%s/%s/%s.yaml", compose->config_dir, folder, names[i]);
        const struct yaml_tree *tree = compose_file(&silent, path);
        if (has_alias(tree, name))
            return named_tree(compose->cache ? compose->cache->arena : compose->arena, tree,
                              names[i]);
    }
    return NULL;
}

static void report_unknown_name(struct compose *compose, const struct schema_table *table,
                                const char *key, const struct yaml_tree *node)
{
    size_t count = 0;
    const char *const *names =
        scenario_config_names(compose->config_dir, table->folder, compose->arena, &count);
    char quoted[CONFIG_QUOTE_SIZE];
    const char *near = text_nearest(node->text, names, count);
    struct text list = {0};
    for (size_t i = 0; i < count && i < 12; i++)
        text_add(&list, "%s%s", i ? ", " : "", names[i]);
    if (count > 12)
        text_add(&list, " and %zu more", count - 12);
    error_add(compose->errors, ERROR_unknown_name, node->at, key, "no %s %s in %s/%s%s%s%s; %s %s",
              table->noun, config_quote(quoted, node->text), compose->config_dir, table->folder,
              near ? "; did you mean " : "", near ? near : "", near ? "?" : "",
              count ? "there are" : "the folder is empty", text_string(&list));
    text_free(&list);
}

static bool is_plain_name(const char *text)
{
    const size_t length = strlen(text);
    const bool yaml = length > 5 && strcmp(text + length - 5, ".yaml") == 0;
    const size_t safe = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                     "0123456789_.-+ ");
    return !yaml && text[safe] == '\0' && text[0] != '.';
}

/* No pipe and no device: an include never waits. */
static bool is_readable_file(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode) && access(path, R_OK) == 0;
}

/* A path as it is meant in the file that holds the node. */
static const char *resolve_path(struct compose *compose, const struct yaml_tree *node)
{
    const char *slash = node->at.file ? strrchr(node->at.file, '/') : NULL;
    const char *path = strncmp(node->text, "./", 2) == 0 ? node->text + 2 : node->text;
    if (path[0] == '/' || !slash)
        return path;
    return arena_printf(compose->arena, "%.*s/%s", (int)(slash - node->at.file), node->at.file,
                        path);
}

/* "dir/x.yaml" to "x" */
static const char *stem(struct compose *compose, const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    const size_t length = strlen(name);
    const bool yaml = length > 5 && strcmp(name + length - 5, ".yaml") == 0;
    return arena_strndup(compose->arena, name, yaml ? length - 5 : length);
}

static const struct yaml_tree *open_path(struct compose *compose, const char *key,
                                         const struct yaml_tree *node)
{
    const char *path = resolve_path(compose, node);
    const struct yaml_tree *tree = cache_find(compose->cache, path, NULL);
    if (!tree && !is_readable_file(path)) {
        error_add(compose->errors, ERROR_file_not_found, node->at, key,
                  "%s is not a file that can be read", path);
        return NULL;
    }
    tree = compose_file(compose, path);
    return tree ? named_tree(compose->arena, tree, stem(compose, path)) : NULL;
}

const struct yaml_tree *compose_named(struct compose *compose, const struct schema_table *table,
                                      const char *key, const struct yaml_tree *node)
{
    if (!is_plain_name(node->text))
        return open_path(compose, key, node);
    const char *path = arena_printf(compose->arena, "%s/%s/%s.yaml", compose->config_dir,
                                    table->folder, node->text);
    const struct yaml_tree *tree = cache_find(compose->cache, path, NULL);
    if (tree && tree->name)
        return tree;
    if (tree || is_readable_file(path)) {
        tree = compose_file(compose, path);
        return tree ? named_tree(compose->arena, tree, node->text) : NULL;
    }
    if (table == &device_schema)
        tree = find_by_alias(compose, table->folder, node->text);
    if (!tree)
        report_unknown_name(compose, table, key, node);
    else if (compose->cache)
        cache_add(compose->cache, path, NULL, tree);
    return tree;
}
