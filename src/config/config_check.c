/*
 * config_check.c - rules between keys that need no arithmetic of model or layout.
 *
 * What joins model, layout and schedule is checked where it is computed
 * (model_check, layout_build, ...). Here is what the loader itself must know: values
 * that follow from another key, and settings that must not be left to a default. A
 * rule is silent about keys that an error stands for already.
 */
#include "config/config_internal.h"

/* A table, its origins, and how its keys begin. */
struct checked {
    const struct schema_table *table;
    const struct origin *origins; /* NULL when the table could not be read at all */
    const char *prefix;
    struct error_list *errors;
};

static const struct origin *origin_of(const struct checked *checked, const char *key)
{
    static const struct origin refused = {.kind = ORIGIN_REFUSED};
    return checked->origins ? &checked->origins[schema_row_index(checked->table, key)] : &refused;
}

static bool sound(const struct checked *checked, const char *key)
{
    return origin_of(checked, key)->kind != ORIGIN_REFUSED;
}

static bool written(const struct checked *checked, const char *key)
{
    const enum origin_kind kind = origin_of(checked, key)->kind;
    return kind == ORIGIN_FILE || kind == ORIGIN_SET;
}

static void report(const struct checked *checked, enum error_code code, const char *key,
                   struct location at, const char *message)
{
    const char *path = arena_printf(checked->errors->arena, "%s%s", checked->prefix, key);
    error_add(checked->errors, code, at, path, "%s", message);
}

/* ---- Model ---- */

/* Multi-head attention has as many key-value heads as heads; written or not, it is one model. */
static void complete_kv_heads(const struct checked *checked, struct model_spec *model)
{
    const char *key = "attention.kv_heads";
    struct attention_spec *attention = &model->attention;
    if (!sound(checked, "attention.kind") || !sound(checked, "attention.heads") ||
        !sound(checked, key) || written(checked, key))
        return;
    if (attention->kind == ATTENTION_GQA)
        report(checked, ERROR_missing_key, key, origin_of(checked, "attention.kind")->at,
               "is missing; grouped-query attention needs it, for example kv_heads: 8");
    if (attention->kind != ATTENTION_MHA)
        return;
    attention->kv_heads = attention->heads;
    struct origin *origins = (struct origin *)model->origins;
    origins[schema_row_index(checked->table, key)].kind = ORIGIN_DEFAULT;
}

void config_check_model(struct model_spec *model, const char *prefix, struct error_list *errors)
{
    const struct checked checked = {&model_schema, model->origins, prefix, errors};
    complete_kv_heads(&checked, model);
    if (sound(&checked, "norm.per_layer") && model->norms_per_layer == 3)
        report(&checked, ERROR_out_of_range, "norm.per_layer",
               origin_of(&checked, "norm.per_layer")->at, "is 3; a layer has 2 norms or 4");
}

/* ---- Device ---- */

void config_check_device(const struct device_spec *device, const char *prefix,
                         struct error_list *errors)
{
    const struct checked checked = {&device_schema, device->origins, prefix, errors};
    if (sound(&checked, "hbm_usable") && sound(&checked, "hbm_capacity") &&
        device->usable_bytes > device->hbm_bytes)
        report(&checked, ERROR_conflicting_keys, "hbm_usable",
               origin_of(&checked, "hbm_usable")->at,
               "is above hbm_capacity; a process cannot allocate more than there is");
}

/* ---- Scenario ---- */

/* Megatron lets the expert tensor size follow tp in silence; here the user says which is meant. */
static void check_etp(const struct checked *checked, const struct scenario *scenario)
{
    const struct checked model = {&model_schema, scenario->model.origins, "model.",
                                  checked->errors};
    if (!sound(&model, "moe.experts") || !sound(checked, "parallel.ep") ||
        !sound(checked, "parallel.etp") || written(checked, "parallel.etp"))
        return;
    if (scenario->model.moe.experts > 0 && scenario->parallel.ep > 1)
        report(
            checked, ERROR_missing_key, "parallel.etp", origin_of(checked, "parallel.ep")->at,
            "is missing; with experts and ep above 1, say how many tensor ranks share one expert "
            "(etp: 1 keeps experts whole; it never follows tp)");
}

static void check_stages(const struct checked *checked, const struct scenario *scenario)
{
    const char *split = "parallel.stages.split";
    const bool counted =
        written(checked, "parallel.stages.first") || written(checked, "parallel.stages.last") ||
        !sound(checked, "parallel.stages.first") || !sound(checked, "parallel.stages.last");
    if (sound(checked, split) && scenario->parallel.split == SPLIT_FIRST_LAST && !counted)
        report(checked, ERROR_missing_key, "parallel.stages.first", origin_of(checked, split)->at,
               "is missing; split first_last needs first, last or both");
}

static void check_recompute(const struct checked *checked, const struct scenario *scenario)
{
    const char *method = "recompute.layers.method";
    if (sound(checked, method) && sound(checked, "recompute.modules") &&
        scenario->recompute.method != RECOMPUTE_ALL && scenario->recompute.modules == 0)
        report(checked, ERROR_conflicting_keys, "recompute.layers", origin_of(checked, method)->at,
               "has no effect while recompute.modules is empty; name the modules, for example "
               "modules: [layer]");
}

void config_check_scenario(const struct scenario *scenario, struct error_list *errors)
{
    const struct checked checked = {&scenario_schema, scenario->origins, "", errors};
    check_etp(&checked, scenario);
    check_stages(&checked, scenario);
    check_recompute(&checked, scenario);
}
