/*
 * registry.c - the families of named things behind `list`, `describe` and the references.
 *
 * Most families are tables of the program; models, devices and clusters are files. A new
 * row of a table needs nothing here.
 */
#include <cjson/cJSON.h>
#include <string.h>

#include "cli_internal.h"
#include "stepsim/collective.h"
#include "stepsim/compute_cost.h"
#include "stepsim/metric.h"
#include "stepsim/schedule.h"
#include "stepsim/schema.h"

static cJSON *entry_create(const char *kind, const char *name, const char *title)
{
    cJSON *entry = cJSON_CreateObject();
    ASSERT(entry != NULL);
    cJSON_AddStringToObject(entry, "kind", kind);
    cJSON_AddStringToObject(entry, "name", name);
    cJSON_AddStringToObject(entry, "title", title);
    return entry;
}

/* "no upper limit" reads better than 0. */
static const char *limit_text(struct cli *cli, uint32_t limit)
{
    return limit == 0 ? "any" : arena_printf(cli->arena, "%u", limit);
}

/* ---- Schedules ---- */

static struct name_list schedule_names(struct cli *cli)
{
    const char **names = ARENA_ARRAY(cli->arena, schedule_count, const char *);
    for (size_t i = 0; i < schedule_count; i++) {
        names[i] = schedule_registry[i]->name;
    }
    return (struct name_list){names, schedule_count};
}

static const char *schedule_title(struct cli *cli, const char *name)
{
    (void)cli;
    return schedule_find(name)->title;
}

static cJSON *describe_schedule(struct cli *cli, const char *name)
{
    const struct schedule *schedule = schedule_find(name);
    cJSON *entry = entry_create("schedule", name, schedule->title);
    cJSON_AddStringToObject(entry, "bubble", schedule->bubble_formula);
    cJSON_AddStringToObject(entry, "forwards_in_flight", schedule->in_flight_formula);
    cJSON_AddStringToObject(entry, "formulas_hold", schedule->region);
    cJSON_AddStringToObject(entry, "vpp_min", limit_text(cli, schedule->vpp_min));
    cJSON_AddStringToObject(entry, "vpp_max", limit_text(cli, schedule->vpp_max));
    cJSON_AddBoolToObject(entry, "v_shaped", schedule->v_shaped);
    cJSON_AddBoolToObject(entry, "splits_backward", schedule->splits_backward);
    cJSON_AddBoolToObject(entry, "overlaps", schedule->overlaps);
    return entry;
}

/* ---- Collectives ---- */

static struct name_list collective_names(struct cli *cli)
{
    const char **names = ARENA_ARRAY(cli->arena, collective_count, const char *);
    for (size_t i = 0; i < collective_count; i++) {
        names[i] = collective_registry[i]->name;
    }
    return (struct name_list){names, collective_count};
}

static const char *collective_title(struct cli *cli, const char *name)
{
    (void)cli;
    return collective_find(name)->title;
}

static cJSON *describe_collective(struct cli *cli, const char *name)
{
    (void)cli;
    const struct collective *collective = collective_find(name);
    cJSON *entry = entry_create("collective", name, collective->title);
    cJSON_AddStringToObject(entry, "formula", collective->formula);
    cJSON *kinds = cJSON_AddArrayToObject(entry, "computes");
    for (unsigned k = 0; k < COLLECTIVE_KIND_COUNT; k++) {
        if ((collective->kinds & (1u << k)) != 0) {
            cJSON_AddItemToArray(kinds,
                                 cJSON_CreateString(collective_kind_name((enum collective_kind)k)));
        }
    }
    return entry;
}

/* ---- Compute models ---- */

static const struct compute *compute_of(const char *name)
{
    for (size_t i = 0; i < compute_count; i++) {
        if (strcmp(compute_registry[i]->name, name) == 0) {
            return compute_registry[i];
        }
    }
    ASSERT(!"a name of the registry");
    return NULL;
}

static struct name_list compute_names(struct cli *cli)
{
    const char **names = ARENA_ARRAY(cli->arena, compute_count, const char *);
    for (size_t i = 0; i < compute_count; i++) {
        names[i] = compute_registry[i]->name;
    }
    return (struct name_list){names, compute_count};
}

static const char *compute_title(struct cli *cli, const char *name)
{
    (void)cli;
    return compute_of(name)->title;
}

static cJSON *describe_compute(struct cli *cli, const char *name)
{
    (void)cli;
    const struct compute *compute = compute_of(name);
    cJSON *entry = entry_create("compute", name, compute->title);
    cJSON_AddStringToObject(entry, "formula", compute->formula);
    return entry;
}

/* ---- Networks: choices of one key ---- */

static const struct schema_row *network_row(void)
{
    const struct schema_row *row = schema_find("network");
    ASSERT(row != NULL);
    return row;
}

static struct name_list network_names(struct cli *cli)
{
    const struct schema_row *row = network_row();
    const char **names = ARENA_ARRAY(cli->arena, row->choice_count, const char *);
    for (uint32_t i = 0; i < row->choice_count; i++) {
        names[i] = row->choices[i].name;
    }
    return (struct name_list){names, row->choice_count};
}

static const struct schema_choice *network_choice(const char *name)
{
    const struct schema_row *row = network_row();
    uint32_t i = 0;
    while (i < row->choice_count && strcmp(row->choices[i].name, name) != 0) {
        i++;
    }
    ASSERT(i < row->choice_count);
    return &row->choices[i];
}

static const char *network_title(struct cli *cli, const char *name)
{
    const struct schema_choice *choice = network_choice(name);
    return choice->pending == NULL
               ? choice->meaning
               : arena_printf(cli->arena, "%s (not there yet)", choice->meaning);
}

static cJSON *describe_network(struct cli *cli, const char *name)
{
    cJSON *entry = entry_create("network", name, network_title(cli, name));
    cJSON_AddBoolToObject(entry, "available", network_choice(name)->pending == NULL);
    return entry;
}

/* ---- Errors ---- */

static struct name_list error_names(struct cli *cli)
{
    const char **names = ARENA_ARRAY(cli->arena, ERROR_CODE_COUNT, const char *);
    for (unsigned i = 0; i < ERROR_CODE_COUNT; i++) {
        names[i] = error_code_name((enum error_code)i);
    }
    return (struct name_list){names, ERROR_CODE_COUNT};
}

static enum error_code error_of(const char *name)
{
    unsigned i = 0;
    while (i < ERROR_CODE_COUNT && strcmp(error_code_name((enum error_code)i), name) != 0) {
        i++;
    }
    ASSERT(i < ERROR_CODE_COUNT);
    return (enum error_code)i;
}

static const char *error_title(struct cli *cli, const char *name)
{
    (void)cli;
    return error_code_meaning(error_of(name));
}

static cJSON *describe_error(struct cli *cli, const char *name)
{
    cJSON *entry = entry_create("error", name, error_title(cli, name));
    cJSON_AddNumberToObject(entry, "exit_status", error_code_exit_status(error_of(name)));
    return entry;
}

/* ---- Metrics ---- */

static struct name_list metric_names(struct cli *cli)
{
    const char **names = ARENA_ARRAY(cli->arena, metric_count, const char *);
    for (size_t i = 0; i < metric_count; i++) {
        names[i] = metric_table[i].name;
    }
    return (struct name_list){names, metric_count};
}

static const char *metric_title(struct cli *cli, const char *name)
{
    (void)cli;
    return metric_find(name)->meaning;
}

static cJSON *describe_metric(struct cli *cli, const char *name)
{
    const struct metric *metric = metric_find(name);
    cJSON *entry = entry_create("metric", name, metric_title(cli, name));
    cJSON_AddStringToObject(entry, "unit", metric->unit);
    cJSON_AddStringToObject(entry, "values", metric_kind_name(metric->kind));
    return entry;
}

const struct registry registry_table[] = {
    {"models", "Model architectures (configs/models)", model_names, model_title, describe_model},
    {"devices", "Devices (configs/devices)", device_names, device_title, describe_device},
    {"clusters", "Clusters (configs/clusters)", cluster_names, cluster_title, describe_cluster},
    {"schedules", "Pipeline schedules", schedule_names, schedule_title, describe_schedule},
    {"collectives", "Collective algorithms", collective_names, collective_title,
     describe_collective},
    {"compute", "Compute models", compute_names, compute_title, describe_compute},
    {"networks", "Network models", network_names, network_title, describe_network},
    {"errors", "Error codes", error_names, error_title, describe_error},
    {"metrics", "Metrics", metric_names, metric_title, describe_metric},
};
const size_t registry_count = sizeof registry_table / sizeof registry_table[0];

const struct registry *registry_find(const char *kind)
{
    for (size_t i = 0; i < registry_count; i++) {
        if (strcmp(registry_table[i].kind, kind) == 0) {
            return &registry_table[i];
        }
    }
    return NULL;
}
