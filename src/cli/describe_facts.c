/*
 * describe_facts.c - models, devices and clusters: files of the configuration folder.
 *
 * Each is read through the loader, so that what is printed is what a simulation would use,
 * with the source and grade of every number.
 */
#include <cjson/cJSON.h>
#include <string.h>

#include "cli_internal.h"
#include "stepsim/model.h"
#include "stepsim/schema.h"
#include "stepsim/text.h"

static struct name_list file_names(struct cli *cli, const char *folder)
{
    struct name_list names = {0};
    names.items = scenario_config_names(cli->config_dir, folder, cli->arena, &names.count);
    return names;
}

struct name_list model_names(struct cli *cli)
{
    return file_names(cli, "models");
}

struct name_list device_names(struct cli *cli)
{
    return file_names(cli, "devices");
}

struct name_list cluster_names(struct cli *cli)
{
    return file_names(cli, "clusters");
}

/* Titles for lists: a file that cannot be read has none, `describe` tells why. */
static const char *title_or_empty(struct cli *cli, size_t errors_before, const char *title)
{
    cli->errors.count = errors_before;
    return title != NULL ? title : "";
}

const char *model_title(struct cli *cli, const char *name)
{
    const size_t errors_before = cli->errors.count;
    const struct model_spec *model =
        scenario_load_model(name, cli->config_dir, cli->arena, &cli->errors);
    return title_or_empty(cli, errors_before, model != NULL ? model->title : NULL);
}

const char *cluster_title(struct cli *cli, const char *name)
{
    const size_t errors_before = cli->errors.count;
    const struct cluster_spec *cluster =
        scenario_load_cluster(name, cli->config_dir, cli->arena, &cli->errors);
    return title_or_empty(cli, errors_before, cluster != NULL ? cluster->title : NULL);
}

const char *device_title(struct cli *cli, const char *name)
{
    const size_t errors_before = cli->errors.count;
    const struct device_spec *device =
        scenario_load_device(name, cli->config_dir, cli->arena, &cli->errors);
    return title_or_empty(cli, errors_before, device != NULL ? device->title : NULL);
}

static cJSON *entry_create(const char *kind, const char *name, const char *title)
{
    cJSON *entry = cJSON_CreateObject();
    ASSERT(entry != NULL);
    cJSON_AddStringToObject(entry, "kind", kind);
    cJSON_AddStringToObject(entry, "name", name);
    cJSON_AddStringToObject(entry, "title", title != NULL ? title : name);
    return entry;
}

/* ---- Models ---- */

static void add_blocks(struct cli *cli, cJSON *entry, const struct model *model)
{
    const uint32_t counts[BLOCK_KIND_COUNT] = {
        [BLOCK_EMBEDDING] = 1,
        [BLOCK_DENSE] = model->dense_layers,
        [BLOCK_MOE] = model->moe_layers,
        [BLOCK_MTP] = model->spec->mtp_layers,
        [BLOCK_HEAD] = 1,
    };
    cJSON *blocks = cJSON_AddArrayToObject(entry, "blocks");
    for (unsigned k = 0; k < BLOCK_KIND_COUNT; k++) {
        if (counts[k] == 0) {
            continue;
        }
        const double params = param_count_sum(&model->block_params[k]);
        cJSON *row = cJSON_CreateObject();
        cJSON_AddItemToArray(blocks, row);
        cJSON_AddStringToObject(row, "block", block_kind_name((enum block_kind)k));
        cJSON_AddNumberToObject(row, "count", counts[k]);
        cJSON_AddStringToObject(row, "parameters_each", count_text(cli, params));
        cJSON_AddStringToObject(row, "active_each", count_text(cli, model->active_params[k]));
        cJSON_AddStringToObject(
            row, "forward_flop_per_token",
            text_si(cli->arena, model_linear_flop(model, (enum block_kind)k), "FLOP"));
    }
}

static void add_training_flop(struct cli *cli, cJSON *entry, const struct model *model)
{
    static const double lengths[] = {4096.0, 8192.0, 32768.0, 131072.0};
    cJSON *rows = cJSON_AddArrayToObject(entry, "training_flop_per_token");
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        cJSON *row = cJSON_CreateObject();
        cJSON_AddItemToArray(rows, row);
        cJSON_AddNumberToObject(row, "sequence", lengths[i]);
        const struct {
            const char *name;
            struct flop_convention convention;
        } columns[] = {
            {"full_attention", {ATTENTION_COUNT_FULL, true, false}},
            {"causal_attention", {ATTENTION_COUNT_CAUSAL, true, false}},
            {"full_without_mtp", {ATTENTION_COUNT_FULL, false, false}},
        };
        for (size_t c = 0; c < sizeof columns / sizeof columns[0]; c++) {
            const double flop =
                model_train_flop_per_token(model, lengths[i], &columns[c].convention);
            cJSON_AddStringToObject(row, columns[c].name, text_si(cli->arena, flop, "FLOP"));
        }
    }
}

struct cJSON *describe_model(struct cli *cli, const char *name)
{
    const struct model_spec *spec =
        scenario_load_model(name, cli->config_dir, cli->arena, &cli->errors);
    if (spec == NULL) {
        return NULL;
    }
    struct scenario *scenario = ARENA_NEW(cli->arena, struct scenario);
    scenario->model = *spec; /* counting looks at nothing else */
    const struct model *model = model_build(scenario, cli->arena, &cli->errors);
    if (model == NULL) {
        return NULL;
    }
    cJSON *entry = entry_create("model", name, spec->title);
    if (spec->source != NULL) {
        cJSON_AddStringToObject(entry, "source", spec->source);
    }
    cJSON_AddNumberToObject(entry, "layers", spec->layers);
    cJSON_AddNumberToObject(entry, "hidden_size", spec->hidden_size);
    cJSON_AddNumberToObject(entry, "vocab_size", spec->vocab_size);
    cJSON_AddNumberToObject(entry, "params_total", model->params_total);
    cJSON_AddNumberToObject(entry, "params_active", model->params_active);
    cJSON_AddNumberToObject(entry, "params_embedding", model->params_embedding);
    cJSON_AddNumberToObject(entry, "params_mtp", model->params_mtp);
    if (spec->published.params_total > 0.0) {
        cJSON_AddNumberToObject(entry, "published_total", spec->published.params_total);
    }
    if (spec->published.params_active > 0.0) {
        cJSON_AddNumberToObject(entry, "published_active", spec->published.params_active);
    }
    add_blocks(cli, entry, model);
    add_training_flop(cli, entry, model);
    return entry;
}

/* ---- Devices and clusters ---- */

const char *fact_grade_text(enum fact_grade grade)
{
    switch (grade) {
    case GRADE_MEASURED:
        return "measured";
    case GRADE_VENDOR:
        return "vendor";
    case GRADE_FITTED:
        return "fitted";
    case GRADE_ASSUMED:
        return "assumed";
    default:
        return "";
    }
}

const char *fact_text(struct cli *cli, double value, const char *unit)
{
    if (unit[0] == '\0') {
        return text_double(cli->arena, value);
    }
    return strncmp(unit, "byte", 4) == 0
               ? text_si(cli->arena, value, arena_printf(cli->arena, "B%s", unit + 4))
               : text_si(cli->arena, value, unit);
}

const char *fact_interval_text(struct cli *cli, const struct origin *origin, const char *unit)
{
    return origin != NULL && origin->bounded
               ? arena_printf(cli->arena, "%s to %s", fact_text(cli, origin->low, unit),
                              fact_text(cli, origin->high, unit))
               : "";
}

/* The facts of one struct, read through the rows of its table. */
struct fact_struct {
    const struct schema_table *table;
    const void *base;
    const struct origin *origins;
    const char *prefix;
};

static void add_facts(struct cli *cli, cJSON *array, struct fact_struct facts)
{
    const struct schema_table *table = facts.table;
    const struct origin *origins = facts.origins;
    for (uint32_t i = 0; i < table->row_count; i++) {
        const struct schema_row *row = &table->rows[i];
        if (row->kind != SCHEMA_FACT) {
            continue;
        }
        double value = 0.0;
        memcpy(&value, (const char *)facts.base + row->offset, sizeof value);
        const char *unit = quantity_unit(row->dimension);
        cJSON *fact = cJSON_CreateObject();
        cJSON_AddItemToArray(array, fact);
        cJSON_AddStringToObject(fact, "fact",
                                arena_printf(cli->arena, "%s%s", facts.prefix, row->key));
        cJSON_AddNumberToObject(fact, "value", value);
        cJSON_AddStringToObject(fact, "unit", unit);
        cJSON_AddStringToObject(fact, "text", fact_text(cli, value, unit));
        cJSON_AddStringToObject(fact, "interval", fact_interval_text(cli, &origins[i], unit));
        cJSON_AddStringToObject(fact, "grade", fact_grade_text(origins[i].grade));
        cJSON_AddStringToObject(fact, "source", origins[i].source != NULL ? origins[i].source : "");
    }
}

struct cJSON *describe_device(struct cli *cli, const char *name)
{
    const struct device_spec *device =
        scenario_load_device(name, cli->config_dir, cli->arena, &cli->errors);
    if (device == NULL) {
        return NULL;
    }
    cJSON *entry = entry_create("device", name, device->title);
    cJSON_AddStringToObject(entry, "vendor", device->vendor);
    cJSON_AddStringToObject(entry, "unit", device->unit);
    cJSON *facts = cJSON_AddArrayToObject(entry, "facts");
    add_facts(cli, facts, (struct fact_struct){&device_schema, device, device->origins, ""});
    return entry;
}

struct cJSON *describe_cluster(struct cli *cli, const char *name)
{
    const struct cluster_spec *cluster =
        scenario_load_cluster(name, cli->config_dir, cli->arena, &cli->errors);
    if (cluster == NULL) {
        return NULL;
    }
    cJSON *entry = entry_create("cluster", name, cluster->title);
    cJSON_AddStringToObject(entry, "device", cluster->device.name);
    cJSON_AddStringToObject(entry, "collectives", cluster->collectives);
    cJSON_AddNumberToObject(entry, "devices_per_node", cluster->devices_per_node);
    cJSON *levels = cJSON_AddArrayToObject(entry, "levels");
    cJSON *facts = cJSON_AddArrayToObject(entry, "facts");
    add_facts(cli, facts, (struct fact_struct){&cluster_schema, cluster, cluster->origins, ""});
    for (uint32_t l = 0; l < cluster->level_count; l++) {
        const struct level_spec *level = &cluster->levels[l];
        cJSON *row = cJSON_CreateObject();
        cJSON_AddItemToArray(levels, row);
        cJSON_AddStringToObject(row, "level", level->name);
        cJSON_AddStringToObject(
            row, "devices", level->size == 0 ? "all" : arena_printf(cli->arena, "%u", level->size));
        cJSON_AddStringToObject(row, "link", level->link);
        add_facts(cli, facts,
                  (struct fact_struct){&level_schema, level, level->origins,
                                       arena_printf(cli->arena, "%s.", level->name)});
    }
    return entry;
}
