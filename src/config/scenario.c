/*
 * scenario.c - loading from end to end: read, override, fill, check, sort the errors.
 */
#include "stepsim/scenario.h"

#include <string.h>

#include "config/config_internal.h"

#ifndef STEPSIM_CONFIG_DIR
#define STEPSIM_CONFIG_DIR "configs"
#endif

/* ---- Errors in the order of the files ---- */

/* The scenario's own file comes first, others in the order in which they were met. */
static size_t file_rank(const struct error_list *errors, size_t first, const char *file,
                        const char *own)
{
    if (file && strcmp(file, own) == 0)
        return first;
    for (size_t i = first; i < errors->count && i < ERROR_LIST_MAX; i++) {
        const char *other = errors->items[i].at.file;
        if (file == other || (file && other && strcmp(file, other) == 0))
            return i + 1;
    }
    return ERROR_LIST_MAX + 1;
}

static bool stands_before(const struct error *a, size_t a_file, const struct error *b,
                          size_t b_file)
{
    if (a_file != b_file)
        return a_file < b_file;
    if (a->at.line != b->at.line)
        return a->at.line < b->at.line;
    return a->at.column < b->at.column;
}

static void sort_errors(struct error_list *errors, size_t first, const char *own)
{
    const size_t end = errors->count < ERROR_LIST_MAX ? errors->count : ERROR_LIST_MAX;
    size_t files[ERROR_LIST_MAX];
    for (size_t i = first; i < end; i++)
        files[i] = file_rank(errors, first, errors->items[i].at.file, own);
    for (size_t i = first + 1; i < end; i++) {
        const struct error moved = errors->items[i];
        const size_t file = files[i];
        size_t at = i;
        for (; at > first && stands_before(&moved, file, &errors->items[at - 1], files[at - 1]);
             at--) {
            errors->items[at] = errors->items[at - 1];
            files[at] = files[at - 1];
        }
        errors->items[at] = moved;
        files[at] = file;
    }
}

/* ---- Loading ---- */

struct scenario *scenario_load(const struct scenario_source *source, struct arena *arena,
                               struct error_list *errors)
{
    ASSERT((source->path == NULL) != (source->text == NULL));
    const size_t errors_before = errors->count;
    struct compose compose = {
        .arena = arena,
        .errors = errors,
        .cache = source->cache,
        .config_dir = source->config_dir ? source->config_dir : STEPSIM_CONFIG_DIR,
    };
    const char *name = source->text_name ? source->text_name : "text";
    const struct yaml_tree *root = source->path ? compose_file(&compose, source->path)
                                                : compose_text(&compose, source->text, name);
    for (uint32_t i = 0; root && i < source->override_count; i++)
        root = compose_override(&compose, root, &source->overrides[i]);
    if (!root)
        return NULL;

    struct scenario *scenario = ARENA_NEW(arena, struct scenario);
    scenario->path = arena_strdup(arena, source->path ? source->path : name);
    const struct schema_fill fill = {
        .arena = arena, .errors = errors, .compose = &compose, .prefix = ""};
    schema_fill_table(&fill, &scenario_schema, scenario, root);
    config_check_model(&scenario->model, "model.", errors);
    config_check_device(&scenario->cluster.device, "cluster.device.", errors);
    config_check_scenario(scenario, errors);
    if (errors->count == errors_before)
        return scenario;
    sort_errors(errors, errors_before < ERROR_LIST_MAX ? errors_before : ERROR_LIST_MAX,
                scenario->path);
    return NULL;
}

/* Fills the struct of one file by itself; false with errors. */
static bool load_part(const struct schema_table *table, void *base, const char *name,
                      struct compose *compose)
{
    const struct yaml_tree node = {
        .kind = YAML_TREE_SCALAR, .writer = YAML_TREE_OVERRIDE, .text = name};
    const size_t errors_before = compose->errors->count;
    const struct yaml_tree *map = compose_include(compose, table, table->noun, &node);
    if (!map)
        return false;
    const struct schema_fill fill = {
        .arena = compose->arena, .errors = compose->errors, .compose = compose, .prefix = ""};
    memcpy(base, &map->name, sizeof map->name);
    schema_fill_table(&fill, table, base, map);
    return compose->errors->count == errors_before;
}

static struct compose compose_for(const char *config_dir, struct arena *arena,
                                  struct error_list *errors)
{
    return (struct compose){.arena = arena,
                            .errors = errors,
                            .config_dir = config_dir ? config_dir : STEPSIM_CONFIG_DIR};
}

struct model_spec *scenario_load_model(const char *name, const char *config_dir,
                                       struct arena *arena, struct error_list *errors)
{
    const size_t errors_before = errors->count;
    struct compose compose = compose_for(config_dir, arena, errors);
    struct model_spec *model = ARENA_NEW(arena, struct model_spec);
    if (load_part(&model_schema, model, name, &compose))
        config_check_model(model, "", errors);
    return errors->count == errors_before ? model : NULL;
}

struct cluster_spec *scenario_load_cluster(const char *name, const char *config_dir,
                                           struct arena *arena, struct error_list *errors)
{
    const size_t errors_before = errors->count;
    struct compose compose = compose_for(config_dir, arena, errors);
    struct cluster_spec *cluster = ARENA_NEW(arena, struct cluster_spec);
    if (load_part(&cluster_schema, cluster, name, &compose))
        config_check_device(&cluster->device, "device.", errors);
    return errors->count == errors_before ? cluster : NULL;
}

struct device_spec *scenario_load_device(const char *name, const char *config_dir,
                                         struct arena *arena, struct error_list *errors)
{
    const size_t errors_before = errors->count;
    struct compose compose = compose_for(config_dir, arena, errors);
    struct device_spec *device = ARENA_NEW(arena, struct device_spec);
    if (load_part(&device_schema, device, name, &compose))
        config_check_device(device, "", errors);
    return errors->count == errors_before ? device : NULL;
}
