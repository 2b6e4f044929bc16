/*
 * model_error.c - how far predictions were from published runs, for the kind of a scenario.
 *
 * The figures are data that tools/validation writes; here the nearest group is picked: the
 * device and kind of model if several studies measured it, else all devices of the vendor.
 */
#include <stdlib.h>
#include <string.h>

#include "stepsim/range.h"
#include "stepsim/yaml_tree.h"

/* Below this a group says more about its few runs than about the models. */
#define ROWS_MIN     5
#define FAMILIES_MIN 2

static const char *text_of(const struct yaml_tree *map, const char *key)
{
    const struct yaml_tree *value = yaml_tree_get(map, key);
    return value != NULL && value->kind == YAML_TREE_SCALAR ? value->text : "";
}

static double number_of(const struct yaml_tree *map, const char *key)
{
    return strtod(text_of(map, key), NULL);
}

static bool is_enough(const struct yaml_tree *group)
{
    return number_of(group, "rows") >= ROWS_MIN && number_of(group, "families") >= FAMILIES_MIN;
}

/* The group of a key ("device" or "vendor") and kind of model that holds enough runs, or NULL. */
static const struct yaml_tree *find_group(const struct yaml_tree *groups, const char *key,
                                          const char *name, const char *models)
{
    for (uint32_t i = 0; i < groups->count; i++) {
        const struct yaml_tree *group = groups->items[i];
        if (group->kind == YAML_TREE_MAP && strcmp(text_of(group, key), name) == 0 &&
            strcmp(text_of(group, "models"), models) == 0 && is_enough(group))
            return group;
    }
    return NULL;
}

bool range_model_error(const struct scenario *scenario, const char *config_dir,
                       struct range_model_error *error, struct arena *arena)
{
    struct error_list errors;
    error_list_init(&errors, arena);
    const struct yaml_tree *file = yaml_tree_read(
        arena_printf(arena, "%s/validation_scores.yaml", config_dir), arena, &errors);
    const struct yaml_tree *groups = file != NULL ? yaml_tree_get(file, "groups") : NULL;
    if (groups == NULL || groups->kind != YAML_TREE_LIST)
        return false;
    const struct device_spec *device = &scenario->cluster.device;
    const char *models = scenario->model.moe.experts > 0 ? "moe" : "dense";
    const char *name = device->name;
    const struct yaml_tree *group = find_group(groups, "device", name, models);
    if (group == NULL) {
        name = device->vendor;
        group = find_group(groups, "vendor", name, models);
    }
    if (group == NULL)
        return false;
    *error = (struct range_model_error){
        .group = arena_printf(arena, "%s models on %s",
                              strcmp(models, "moe") == 0 ? "MoE" : "dense", name),
        .rows = (uint32_t)number_of(group, "rows"),
        .families = (uint32_t)number_of(group, "families"),
        .mean_abs_log = number_of(group, "mean_abs_log"),
        .source = text_of(file, "source"),
    };
    return true;
}
