/* sweep.c - from a sweep file to its list of points and its identity. */
#include <cjson/cJSON.h>
#include <string.h>
#include <xxhash.h>

#include "stepsim/search.h"
#include "sweep/sweep_internal.h"

static bool load_base(struct sweep *sweep, struct error_list *errors)
{
    const struct scenario_source source = {
        .path = sweep->base_path,
        .config_dir = sweep->config_dir,
        .overrides = sweep->sets,
        .override_count = sweep->set_count,
        .cache = sweep->cache,
    };
    sweep->base = scenario_load(&source, sweep->arena, errors);
    if (sweep->base == NULL) {
        return false;
    }
    sweep->store_base = store_base_create(sweep->base, sweep->arena);
    return true;
}

/* ---- Identity ---- */

static cJSON *axes_json(const struct sweep *sweep)
{
    cJSON *list = cJSON_CreateArray();
    for (uint32_t i = 0; i < sweep->axis_count; i++) {
        const struct sweep_axis *axis = &sweep->axes[i];
        cJSON *object = cJSON_CreateObject();
        for (uint32_t j = 0; j < axis->key_count; j++) {
            cJSON *values = cJSON_AddArrayToObject(object, axis->keys[j]);
            for (uint32_t k = 0; k < axis->value_count; k++) {
                const char *text = axis->texts[(size_t)k * axis->key_count + j];
                cJSON_AddItemToArray(values, cJSON_CreateString(text));
            }
        }
        cJSON_AddItemToArray(list, object);
    }
    return list;
}

static cJSON *overrides_json(const struct scenario_override *overrides, uint32_t count)
{
    cJSON *object = cJSON_CreateObject();
    for (uint32_t i = 0; i < count; i++) {
        cJSON_AddStringToObject(object, overrides[i].key, overrides[i].value);
    }
    return object;
}

/* Everything that decides which points there are, but no titles and paths. */
static void define(struct sweep *sweep)
{
    static const char *const samplings[] = {"grid", "random", "latin_hypercube"};
    cJSON *json = cJSON_CreateObject();
    cJSON_AddItemToObject(json, "set", overrides_json(sweep->sets, sweep->set_count));
    cJSON_AddItemToObject(json, "axes", axes_json(sweep));
    cJSON *derived = cJSON_AddArrayToObject(json, "derived");
    for (uint32_t i = 0; i < sweep->derived_count; i++) {
        cJSON *item = cJSON_CreateObject();
        cJSON_AddStringToObject(item, sweep->derived[i].name, sweep->derived[i].text);
        cJSON_AddItemToArray(derived, item);
    }
    cJSON *wheres = cJSON_AddArrayToObject(json, "where");
    for (uint32_t i = 0; i < sweep->where_count; i++) {
        cJSON_AddItemToArray(wheres, cJSON_CreateString(sweep->wheres[i].text));
    }
    cJSON *sample = cJSON_AddObjectToObject(json, "sample");
    cJSON_AddStringToObject(sample, "kind", samplings[sweep->sampling]);
    cJSON_AddNumberToObject(sample, "points", (double)sweep->sample_points);
    cJSON_AddNumberToObject(sample, "seed", (double)sweep->seed);
    cJSON_AddBoolToObject(json, "search", sweep->layout_search);
    for (uint32_t i = 0; i < sweep->change_count; i++) {
        const struct search_change *change = &sweep->changes[i];
        const char *name = arena_printf(sweep->arena, "search %s", change->key);
        cJSON_AddStringToObject(json, name, change->values != NULL ? change->values : "kept");
    }
    if (sweep->top > 0) {
        cJSON_AddNumberToObject(json, "top", (double)sweep->top);
    }
    cJSON *layouts = cJSON_AddArrayToObject(json, "layout");
    for (uint32_t i = 0; i < sweep->layout_count; i++) {
        cJSON_AddItemToArray(layouts, overrides_json(sweep->layouts[i], sweep->layout_sizes[i]));
    }
    char *text = cJSON_PrintUnformatted(json);
    sweep->definition = arena_strdup(sweep->arena, text);
    cJSON_free(text);
    cJSON_Delete(json);

    char *base = cJSON_PrintUnformatted(sweep->store_base->json);
    sweep->base_json = arena_strdup(sweep->arena, base);
    cJSON_free(base);
    const char *both = arena_printf(sweep->arena, "%s\n%s", sweep->definition,
                                    scenario_canonical(sweep->base, sweep->arena));
    const XXH128_hash_t hash = XXH3_128bits(both, strlen(both));
    sweep->hash = arena_printf(sweep->arena, "%016llx%016llx", (unsigned long long)hash.high64,
                               (unsigned long long)hash.low64);
}

struct sweep *sweep_load(const struct sweep_source *source, struct arena *arena,
                         struct error_list *errors)
{
    struct sweep *sweep = ARENA_NEW(arena, struct sweep);
    sweep->arena = arena;
    sweep->path = arena_strdup(arena, source->path);
    sweep->config_dir = source->config_dir;
    sweep->cache = scenario_cache_create();
    if (!sweep_file_read(sweep, errors) || !load_base(sweep, errors) ||
        !points_build(sweep, errors)) {
        sweep_release(sweep);
        return NULL;
    }
    define(sweep);
    return sweep;
}

void sweep_release(struct sweep *sweep)
{
    if (sweep != NULL) {
        if (sweep->store_base != NULL) {
            store_base_destroy(sweep->store_base);
        }
        scenario_cache_destroy(sweep->cache);
    }
}

const char *sweep_name(const struct sweep *sweep)
{
    return sweep->title != NULL ? sweep->title : sweep->path;
}

uint64_t sweep_point_count(const struct sweep *sweep)
{
    return sweep->point_count;
}

double sweep_combinations(const struct sweep *sweep)
{
    return sweep->combinations;
}

uint32_t sweep_key_count(const struct sweep *sweep)
{
    return sweep->key_count;
}

const char *sweep_key_name(const struct sweep *sweep, uint32_t key, bool *is_key)
{
    *is_key = sweep->key_is_override[key];
    return sweep->key_names[key];
}

const char *sweep_key_text(const struct sweep *sweep, uint64_t point_no, uint32_t key)
{
    return sweep->texts[point_no * sweep->key_count + key];
}

const struct store_key *sweep_store_keys(const struct sweep *sweep, uint64_t point_no,
                                         struct arena *arena)
{
    struct store_key *keys = ARENA_ARRAY(arena, sweep->key_count + 1, struct store_key);
    for (uint32_t i = 0; i < sweep->key_count; i++) {
        keys[i] = (struct store_key){sweep->key_names[i], sweep_key_text(sweep, point_no, i)};
    }
    return keys;
}
