/*
 * recompute_menu.c - each recompute module toggled against the scenario as it is.
 */
#include "advice_internal.h"

const struct module_name recompute_module_names[RECOMPUTE_MODULE_COUNT] = {
    {"attention_core", MODULE_ATTENTION_CORE}, {"qkv", MODULE_QKV},
    {"mla_kv_up_proj", MODULE_MLA_KV_UP_PROJ}, {"norm", MODULE_NORM},
    {"activation", MODULE_ACTIVATION},         {"permute", MODULE_PERMUTE},
    {"expert_mlp", MODULE_EXPERT_MLP},         {"mlp", MODULE_MLP},
    {"moe_layer", MODULE_MOE_LAYER},           {"layer", MODULE_LAYER},
};

struct recompute_menu advice_recompute(const struct scenario *scenario, struct arena *arena)
{
    struct recompute_item *items =
        ARENA_ARRAY(arena, RECOMPUTE_MODULE_COUNT, struct recompute_item);
    struct recompute_menu menu = {.items = items};
    struct variant_result base;
    if (!variant_run(scenario, &base))
        return menu;
    for (int m = 0; m < RECOMPUTE_MODULE_COUNT; m++) {
        const struct module_name *module = &recompute_module_names[m];
        struct scenario changed = *scenario;
        changed.recompute.modules ^= module->bit;
        struct variant_result result;
        if (!variant_run(&changed, &result))
            continue;
        const bool on = (scenario->recompute.modules & module->bit) != 0;
        const double sign = on ? -1.0 : 1.0;
        items[menu.count++] = (struct recompute_item){
            .module = module->name,
            .on = on,
            .saved_bytes = sign * (base.peak_bytes - result.peak_bytes),
            .added_s = sign * (result.step_time_s - base.step_time_s),
        };
    }
    return menu;
}
