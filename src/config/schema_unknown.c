/*
 * schema_unknown.c - keys that the schema does not know, and what was probably meant.
 *
 * Three answers, the first that fits: a key of Megatron, MindSpeed or a later
 * version has a sentence of its own; a key near to one of this section is a slip
 * of the pen; a key of another section is in the wrong place. The rows that were
 * meant are marked, so that they are not reported as missing as well.
 */
#include <stdio.h>
#include <string.h>

#include "config/config_internal.h"
#include "stepsim/text.h"

const struct schema_refusal schema_refusals[] = {
    {"lengths", ERROR_not_yet_modelled,
     "packed samples of unequal length are not simulated; write training.seq_len"},
    {"tp_2d", ERROR_not_supported,
     "two-dimensional tensor parallelism is not simulated; write parallel.tp"},
    {"tp_x", ERROR_not_supported,
     "two-dimensional tensor parallelism is not simulated; write parallel.tp"},
    {"tp_y", ERROR_not_supported,
     "two-dimensional tensor parallelism is not simulated; write parallel.tp"},
    {"use_nd_matmul", ERROR_not_supported,
     "multi-dimensional tensor parallelism is not simulated; write parallel.tp"},
    {"moe_zero_memory", ERROR_not_supported,
     "this recompute of routed activations is not simulated; write recompute.modules"},
    {"moe_adaptive_recompute_activation", ERROR_not_supported,
     "recompute that adapts to the load is not simulated; write recompute.modules"},
    {"adaptive_recompute_device_size", ERROR_not_supported,
     "adaptive recompute is not simulated; write recompute.modules"},
    {"moe_unperm2_mem_optim", ERROR_not_supported,
     "this saving in unpermute is not simulated; write recompute.modules"},
    {"moe_experts_pipeline_degree", ERROR_not_supported,
     "slicing of experts by a degree is not simulated; write moe.overlap.intra_layer"},
    {"moe_bmm_mc2", ERROR_not_supported,
     "fusion of expert matmuls with their exchange is not simulated"},
    {"moe_flex_dispatcher", ERROR_not_supported,
     "the flex dispatcher is not simulated; write moe.dispatcher"},
    {"enable_high_availability", ERROR_not_supported, "fault recovery is not simulated"},
    {"context_parallel_kv_cache_policy", ERROR_not_supported,
     "caching of keys and values in context parallelism is not simulated"},
    {"adaptive_cp", ERROR_not_supported,
     "adaptive context parallelism is not simulated; write parallel.cp"},
    {"hierarchical_context_parallel_sizes", ERROR_not_supported,
     "nested rings are not simulated; write parallel.cp with method hybrid"},
    {"unaligned_linear", ERROR_not_supported, "widths that do not divide by tp are not simulated"},
    {"cpu_offloading", ERROR_not_supported,
     "offloading as Transformer Engine does it is not simulated; write swap"},
    {"optimizer_cpu_offload", ERROR_not_supported,
     "an optimizer on the CPU is not simulated; write swap.optimizer"},
    {"delay_wgrad_compute", ERROR_not_supported,
     "delayed weight gradients are part of a schedule here; write schedule.kind"},
    {"fp8", ERROR_not_supported, "fp8 recipes are not simulated; write precision"},
    {"lora", ERROR_not_supported, "adapters are not simulated"},
    {"tensor_model_parallel_size", ERROR_unknown_key, "it is parallel.tp here"},
    {"pipeline_model_parallel_size", ERROR_unknown_key, "it is parallel.pp here"},
    {"virtual_pipeline_model_parallel_size", ERROR_unknown_key, "it is parallel.vpp here"},
    {"num_layers_per_virtual_pipeline_stage", ERROR_unknown_key,
     "write the number of chunks per stage, parallel.vpp, instead"},
    {"context_parallel_size", ERROR_unknown_key, "it is parallel.cp here"},
    {"context_parallel_algo", ERROR_unknown_key, "it is parallel.cp.method here"},
    {"expert_model_parallel_size", ERROR_unknown_key,
     "it is parallel.ep here, the real size of the group: with tp-extend-ep it is tp times larger"},
    {"expert_tensor_parallel_size", ERROR_unknown_key, "it is parallel.etp here"},
    {"moe_tp_extend_ep", ERROR_unknown_key,
     "write parallel.ep as the real size of the group, and etp: 1"},
    {"use_distributed_optimizer", ERROR_unknown_key, "it is parallel.zero: 1 here"},
    {"pipeline_model_parallel_layout", ERROR_unknown_key, "it is parallel.stages.layout here"},
    {"num_layer_list", ERROR_unknown_key, "it is parallel.stages.layers here"},
    {"moe_fb_overlap", ERROR_unknown_key, "it is schedule.kind: overlapped_1f1b here"},
    {"schedules_method", ERROR_unknown_key, "it is schedule.kind here"},
    {"moe_alltoall_overlap_comm", ERROR_unknown_key, "it is moe.overlap.intra_layer here"},
    {"use_ascend_mc2", ERROR_unknown_key, "it is overlap.matmul_collective: mc2 here"},
    {"use_ascend_coc", ERROR_unknown_key, "it is overlap.matmul_collective: coc here"},
    {"overlap_grad_reduce", ERROR_unknown_key, "it is overlap.grad_reduce here"},
    {"overlap_param_gather", ERROR_unknown_key, "it is overlap.param_gather here"},
    {"reuse_fp32_param", ERROR_unknown_key, "it is precision.reuse_fp32_param here"},
    {"swap_optimizer", ERROR_unknown_key, "it is swap.optimizer here"},
    {"recompute_granularity", ERROR_unknown_key, "it is recompute.modules here"},
    {"num_layers", ERROR_unknown_key, "it is model.layers here"},
    {"num_experts", ERROR_unknown_key, "it is model.moe.experts here"},
};
const size_t schema_refusal_count = sizeof schema_refusals / sizeof schema_refusals[0];

/* Equal but for - and _, and for leading dashes. */
static bool same_option(const char *key, const char *name)
{
    while (*key == '-')
        key++;
    for (; *key && *name; key++, name++) {
        if ((*key == '-' ? '_' : *key) != *name)
            return false;
    }
    return *key == *name;
}

const struct schema_refusal *schema_find_refusal(const char *key)
{
    for (size_t i = 0; i < schema_refusal_count; i++) {
        if (same_option(key, schema_refusals[i].name))
            return &schema_refusals[i];
    }
    return NULL;
}

/* The distinct components that a scope offers, as text of their own. */
#define OFFERED_MAX 64
struct offered {
    const char *names[OFFERED_MAX];
    size_t count;
};

static void collect_offered(struct schema_scope scope, struct arena *arena, struct offered *offered)
{
    offered->count = 0;
    const char *before = "";
    size_t before_length = 0;
    for (uint32_t i = scope.first; i < scope.end; i++) {
        const char *component = NULL;
        const size_t length = schema_scope_component(scope, &scope.table->rows[i], &component);
        if (length == before_length && strncmp(component, before, length) == 0)
            continue;
        ASSERT(offered->count < OFFERED_MAX);
        offered->names[offered->count++] = arena_strndup(arena, component, length);
        before = component;
        before_length = length;
    }
}

static void mark_refused(struct schema_scope scope, struct schema_slot *slots)
{
    for (uint32_t i = scope.first; i < scope.end; i++) {
        if (!slots[i].node)
            slots[i].refused = true;
    }
}

/* The scope of another section of the table whose last component is the key, or an empty one. */
static struct schema_scope find_elsewhere(const struct schema_table *table, const char *key)
{
    const size_t wanted = strlen(key);
    for (uint32_t i = 0; i < table->row_count; i++) {
        struct schema_scope scope = schema_scope_of_table(table);
        for (const char *at = table->rows[i].key; *at;) {
            const size_t length = strcspn(at, ".");
            scope = schema_scope_enter(scope, at, length);
            if (length == wanted && strncmp(at, key, length) == 0)
                return scope;
            at += length + (at[length] == '.');
        }
    }
    return (struct schema_scope){0};
}

static char *offered_list(const struct offered *offered, struct arena *arena)
{
    struct text text = {0};
    const size_t shown = offered->count <= 16 ? offered->count : 12;
    for (size_t i = 0; i < shown; i++)
        text_add(&text, "%s%s", i ? ", " : "", offered->names[i]);
    if (shown < offered->count)
        text_add(&text, " and %zu more", offered->count - shown);
    char *copy = arena_strdup(arena, text_string(&text));
    text_free(&text);
    return copy;
}

/* Full path of an unknown key. */
static void write_path(char *out, size_t size, const struct schema_fill *fill,
                       struct schema_scope scope, const char *key)
{
    char quoted[CONFIG_QUOTE_SIZE];
    config_quote(quoted, key);
    quoted[strlen(quoted) - 1] = '\0';
    const char *below = scope.table->rows[scope.first].key;
    snprintf(out, size, "%s%.*s%s", fill->prefix, (int)scope.skip, below, quoted + 1);
}

void schema_report_unknown(const struct schema_fill *fill, struct schema_scope scope,
                           const struct yaml_tree_entry *entry, struct schema_slot *slots)
{
    struct arena *arena = fill->errors->arena;
    const struct schema_refusal *refusal = schema_find_refusal(entry->key);
    if (config_errors_full(fill->errors)) {
        error_add(fill->errors, ERROR_unknown_key, entry->at, NULL, "%s", "");
        return;
    }
    char path[256];
    write_path(path, sizeof path, fill, scope, entry->key);
    if (refusal) {
        error_add(fill->errors, refusal->code, entry->at, path, "%s", refusal->reason);
        return;
    }
    struct offered offered;
    collect_offered(scope, arena, &offered);
    const char *near = text_nearest(entry->key, offered.names, offered.count);
    const struct schema_scope elsewhere =
        near ? (struct schema_scope){0} : find_elsewhere(scope.table, entry->key);
    if (near) {
        mark_refused(schema_scope_enter(scope, near, strlen(near)), slots);
        error_add(fill->errors, ERROR_unknown_key, entry->at, path,
                  "no such key; did you mean %.*s%s?", (int)scope.skip,
                  scope.table->rows[scope.first].key, near);
    } else if (!schema_scope_is_empty(elsewhere)) {
        mark_refused(elsewhere, slots);
        error_add(fill->errors, ERROR_unknown_key, entry->at, path,
                  "no such key here; did you mean %s%.*s?", fill->prefix, (int)elsewhere.skip - 1,
                  scope.table->rows[elsewhere.first].key);
    } else {
        error_add(fill->errors, ERROR_unknown_key, entry->at, path,
                  "no such key; this place takes %s", offered_list(&offered, arena));
    }
}
