/*
 * whatif.c - how the step time moves when one resource, or one named thing, changes.
 *
 * An elasticity is ln(step' / step) / ln(factor) of a small factor: percent of step time per
 * percent of the resource. Resources are what the scenario says about device and links, so each
 * trial is a copy of the scenario with numbers scaled. For latencies and issue times, which are
 * better when smaller, the factor divides. Upgrades are data: configs/whatif.yaml.
 */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "search_internal.h"
#include "stepsim/text.h"
#include "stepsim/yaml_tree.h"

#define ROWS_MAX 64

struct trial {
    const struct whatif_ask *ask;
    struct arena *arena, *scratch;
    struct whatif_answer *answer;
    struct whatif_row *rows;
};

static struct whatif_row *add_row(struct trial *trial, const char *name, const char *title)
{
    ASSERT(trial->answer->count < ROWS_MAX);
    struct whatif_row *row = &trial->rows[trial->answer->count++];
    *row = (struct whatif_row){.name = name, .title = title, .elasticity = (double)NAN};
    return row;
}

/* Runs a changed scenario; its errors become the reason. */
static void measure(struct trial *trial, struct whatif_row *row, const struct scenario *scenario,
                    struct error_list *errors)
{
    struct run run;
    const struct run_options options = {.steps = 1};
    if (scenario == NULL || !run_simulate(&run, scenario, &options, trial->scratch, errors)) {
        row->reason =
            arena_strdup(trial->arena, errors->count > 0 ? errors->items[0].message : "refused");
    } else {
        row->done = true;
        row->step_s = run.report->step_time_s;
        row->fits = run.report->fits;
        row->change = row->step_s / trial->answer->base.step_s - 1.0;
    }
    arena_reset(trial->scratch);
}

/* ---- Elasticities ---- */

static void scale_hbm(struct scenario *scenario, double factor)
{
    scenario->cluster.device.hbm_bytes_per_s *= factor;
}

static void scale_cube(struct scenario *scenario, double factor)
{
    scenario->cluster.device.peak_flop_per_s *= factor;
}

static void scale_host_link(struct scenario *scenario, double factor)
{
    scenario->cluster.device.host_down_bytes_per_s *= factor;
    scenario->cluster.device.host_up_bytes_per_s *= factor;
    scenario->cluster.host_bytes_per_s *= factor;
}

static void scale_host_issue(struct scenario *scenario, double factor)
{
    scenario->cluster.device.host_eager_s /= factor;
    scenario->cluster.device.host_graph_s /= factor;
    scenario->cluster.device.host_moe_sync_s /= factor;
}

static void scale_latency(struct scenario *scenario, double factor)
{
    for (uint32_t i = 0; i < scenario->cluster.level_count; i++) {
        scenario->cluster.levels[i].latency_s /= factor;
        scenario->cluster.levels[i].launch_s /= factor;
    }
}

static const struct resource {
    const char *name, *title;
    void (*scale)(struct scenario *scenario, double factor);
} resources[] = {
    {"cube", "peak FLOP/s of the matrix cores", scale_cube},
    {"hbm", "HBM bandwidth", scale_hbm},
    {"host link", "copies to and from the host", scale_host_link},
    {"host issue", "kernels issued per second by the host", scale_host_issue},
    {"latency", "latency and launch time of every level, made smaller", scale_latency},
};

static void add_elasticity(struct trial *trial, struct whatif_row *row,
                           const struct scenario *changed)
{
    struct error_list errors;
    error_list_init(&errors, trial->scratch);
    measure(trial, row, changed, &errors);
    if (row->done) {
        row->elasticity =
            log(row->step_s / trial->answer->base.step_s) / log(1.0 + trial->ask->percent / 100.0);
    }
}

static void add_elasticities(struct trial *trial)
{
    const double factor = 1.0 + trial->ask->percent / 100.0;
    struct scenario *changed = ARENA_NEW(trial->arena, struct scenario);
    for (size_t i = 0; i < sizeof resources / sizeof resources[0]; i++) {
        *changed = *trial->answer->scenario;
        resources[i].scale(changed, factor);
        add_elasticity(trial, add_row(trial, resources[i].name, resources[i].title), changed);
    }
    for (uint32_t level = 0; level < changed->cluster.level_count; level++) {
        *changed = *trial->answer->scenario;
        changed->cluster.levels[level].bytes_per_s *= factor;
        const struct level_spec *spec = &changed->cluster.levels[level];
        struct whatif_row *row = add_row(
            trial, spec->link, arena_printf(trial->arena, "bandwidth of level %s", spec->name));
        add_elasticity(trial, row, changed);
    }
}

/* ---- Upgrades ---- */

static bool names(const struct yaml_tree *entry, const char *key, const char *name)
{
    const struct yaml_tree *list = yaml_tree_get(entry, key);
    for (uint32_t i = 0; list != NULL && list->kind == YAML_TREE_LIST && i < list->count; i++) {
        if (strcmp(list->items[i]->text, name) == 0) {
            return true;
        }
    }
    return list == NULL;
}

#define UPGRADE_KEYS_MAX 16

struct upgrade {
    struct scenario_override keys[UPGRADE_KEYS_MAX];
    uint32_t count;
};

/* "LAST" in a key is the outermost level. */
static const char *upgrade_key(const struct trial *trial, const char *key)
{
    const char *last = strstr(key, "LAST");
    if (last == NULL) {
        return key;
    }
    return arena_printf(trial->arena, "%.*s%u%s", (int)(last - key), key,
                        trial->answer->scenario->cluster.level_count - 1, last + strlen("LAST"));
}

static void collect_keys(const struct trial *trial, const struct yaml_tree *entry, bool scale,
                         struct upgrade *upgrade)
{
    const struct yaml_tree *map = yaml_tree_get(entry, scale ? "scale" : "set");
    for (uint32_t i = 0; map != NULL && i < map->count; i++) {
        ASSERT(upgrade->count < UPGRADE_KEYS_MAX);
        const char *key = upgrade_key(trial, map->entries[i].key);
        const char *text = map->entries[i].value->text;
        if (scale) {
            double now = 0.0;
            const bool known = scenario_number(trial->answer->scenario, key, &now);
            ASSERT(known);
            text = arena_printf(trial->arena, "%s B/s",
                                text_double(trial->arena, now * strtod(text, NULL)));
        }
        upgrade->keys[upgrade->count++] = (struct scenario_override){key, text};
    }
}

static void add_upgrade(struct trial *trial, const struct yaml_tree *entry)
{
    const struct scenario *scenario = trial->answer->scenario;
    if (!names(entry, "clusters", scenario->cluster.name) ||
        !names(entry, "devices", scenario->cluster.device.name)) {
        return;
    }
    struct upgrade upgrade = {0};
    collect_keys(trial, entry, false, &upgrade);
    collect_keys(trial, entry, true, &upgrade);
    const struct scenario_source *source = trial->ask->source;
    const uint32_t own = source->override_count;
    struct scenario_override *keys =
        ARENA_ARRAY(trial->arena, own + upgrade.count, struct scenario_override);
    for (uint32_t i = 0; i < own + upgrade.count; i++) {
        keys[i] = i < own ? source->overrides[i] : upgrade.keys[i - own];
    }
    struct scenario_source changed = *source;
    changed.overrides = keys;
    changed.override_count = own + upgrade.count;
    struct error_list errors;
    error_list_init(&errors, trial->scratch);
    struct whatif_row *row =
        add_row(trial, yaml_tree_get(entry, "name")->text, yaml_tree_get(entry, "title")->text);
    row->upgrade = true;
    measure(trial, row, scenario_load(&changed, trial->arena, &errors), &errors);
}

static bool add_upgrades(struct trial *trial, struct error_list *errors)
{
    const char *path = arena_printf(trial->arena, "%s/whatif.yaml", trial->ask->source->config_dir);
    const struct yaml_tree *file = yaml_tree_read(path, trial->arena, errors);
    const struct yaml_tree *list = file != NULL ? yaml_tree_get(file, "upgrades") : NULL;
    for (uint32_t i = 0; list != NULL && i < list->count; i++) {
        add_upgrade(trial, list->items[i]);
    }
    return file != NULL;
}

const struct whatif_answer *whatif_run(const struct whatif_ask *ask, struct arena *arena,
                                       struct error_list *errors)
{
    struct whatif_answer *answer = ARENA_NEW(arena, struct whatif_answer);
    struct trial trial = {.ask = ask,
                          .arena = arena,
                          .scratch = arena_create("whatif"),
                          .answer = answer,
                          .rows = ARENA_ARRAY(arena, ROWS_MAX, struct whatif_row)};
    answer->scenario = scenario_load(ask->source, arena, errors);
    answer->percent = ask->percent;
    answer->rows = trial.rows;
    struct run run;
    const struct run_options options = {.steps = 1};
    bool done = answer->scenario != NULL &&
                run_simulate(&run, answer->scenario, &options, trial.scratch, errors);
    if (done) {
        answer->base.step_s = run.report->step_time_s;
        answer->base.mfu = run.report->mfu;
        answer->base.tokens_per_s = run.report->tokens_per_s;
        answer->base.fits = run.report->fits;
        add_elasticities(&trial);
        done = add_upgrades(&trial, errors);
    }
    arena_destroy(trial.scratch);
    return done ? answer : NULL;
}

struct cJSON *whatif_json(const struct whatif_answer *answer)
{
    cJSON *root = cJSON_CreateObject();
    cJSON_AddNumberToObject(root, "step_time_s", answer->base.step_s);
    cJSON_AddNumberToObject(root, "percent", answer->percent);
    cJSON *elasticities = cJSON_AddArrayToObject(root, "elasticities");
    cJSON *upgrades = cJSON_AddArrayToObject(root, "upgrades");
    for (uint32_t i = 0; i < answer->count; i++) {
        const struct whatif_row *row = &answer->rows[i];
        cJSON *item = cJSON_CreateObject();
        cJSON_AddStringToObject(item, "name", row->name);
        cJSON_AddStringToObject(item, "title", row->title);
        if (row->done) {
            cJSON_AddNumberToObject(item, "step_time_s", row->step_s);
            cJSON_AddNumberToObject(item, "change", row->change);
            if (!row->upgrade) {
                cJSON_AddNumberToObject(item, "elasticity", row->elasticity);
            }
            cJSON_AddBoolToObject(item, "fits", row->fits);
        } else {
            cJSON_AddStringToObject(item, "reason", row->reason);
        }
        cJSON_AddItemToArray(row->upgrade ? upgrades : elasticities, item);
    }
    return root;
}
