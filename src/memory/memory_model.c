/*
 * memory_model.c - static bytes per stage and what a block keeps for its backward pass.
 *
 * Bytes per parameter with bf16 weights, fp32 gradients, fp32 master and moments: 2 + 4 + 12
 * = 18 unsharded; ZeRO 1 divides the 12 by the shards, ZeRO 2 also the gradients, ZeRO 3
 * also the weights. Reusing the fp32 master for the bf16 copy takes off 2 bytes per shard
 * (cases.md rule 2; agrees with public Ascend CI logs to 1 %).
 */
#include "stepsim/memory_model.h"

#include <math.h>
#include <string.h>

static double element_bytes(enum precision precision)
{
    switch (precision) {
    case PRECISION_BF16:
    case PRECISION_FP16:
        return 2.0;
    case PRECISION_FP32:
        return 4.0;
    case PRECISION_FP8:
        return 1.0;
    }
    ASSERT(!"not a precision");
    return 0.0;
}

/* Experts of a layer that a rank holds besides its own: of the replicated ones it owns its
 * share already. */
static double foreign_experts(const struct op_graph *graph)
{
    const struct moe_run_spec *moe = &graph->scenario->moe;
    if (moe->placement == NULL || strcmp(moe->placement, "replicate_hot") != 0)
        return 0.0;
    return (double)moe->placement_hot * (1.0 - 1.0 / (double)graph->layout->ep);
}

/* Parameters of one expert on one rank. */
static double expert_params(const struct op_graph *graph, enum block_kind kind)
{
    const struct layout *layout = graph->layout;
    const double experts = (double)layout->experts_per_rank * (double)layout->ep;
    return experts > 0.0 ? graph->model->block_params[kind].expert / experts / (double)layout->etp
                         : 0.0;
}

double memory_model_replicas(const struct op_graph *graph, uint32_t stage, uint32_t chunk)
{
    const struct layout_chunk *slots = &graph->layout->chunks[stage * graph->layout->vpp + chunk];
    double params = (double)slots->mtp * expert_params(graph, BLOCK_MTP);
    for (uint32_t i = 0; i < slots->layer_count; i++)
        params += expert_params(graph, graph->model->layer_kind[slots->first_layer + i]);
    return params * (double)graph->scenario->moe.placement_hot;
}

static void add_block(const struct op_graph *graph, enum block_kind kind, double times,
                      struct param_count *sum)
{
    const struct layout *layout = graph->layout;
    const struct param_count *block = &graph->model->block_params[kind];
    sum->tp_sharded += times * block->tp_sharded / (double)layout->tp;
    sum->tp_replicated += times * block->tp_replicated;
    sum->expert += times * block->expert / (double)(layout->ep * layout->etp);
    sum->expert += times * expert_params(graph, kind) * foreign_experts(graph);
}

static void chunk_params(const struct op_graph *graph, const struct layout_chunk *chunk,
                         struct param_count *sum)
{
    const struct model *model = graph->model;
    for (uint32_t i = 0; i < chunk->layer_count; i++) {
        add_block(graph, model->layer_kind[chunk->first_layer + i], 1.0, sum);
    }
    if (chunk->embedding) {
        add_block(graph, BLOCK_EMBEDDING, 1.0, sum);
    }
    add_block(graph, BLOCK_MTP, (double)chunk->mtp, sum);
    if (chunk->mtp > 0 && !chunk->embedding && graph->scenario->memory.mtp_own_embedding) {
        add_block(graph, BLOCK_EMBEDDING, 1.0, sum);
    }
    if (chunk->mtp > 0 && !chunk->head) {
        add_block(graph, BLOCK_HEAD, 1.0, sum); /* the MTP pass needs a head where it runs */
    }
    /* A tied head shares the embedding's weights only where both are on one stage. */
    if (chunk->head) {
        const bool shared = graph->model->spec->tied_embedding && chunk->embedding;
        if (!shared) {
            add_block(graph, BLOCK_HEAD, 1.0, sum);
        }
    }
}

struct param_count memory_model_params(const struct op_graph *graph, uint32_t stage, uint32_t chunk)
{
    struct param_count sum = {0};
    chunk_params(graph, &graph->layout->chunks[stage * graph->layout->vpp + chunk], &sum);
    return sum;
}

/* Communicators that a rank of this layout creates; each holds two buffers. */
static uint32_t communicators(const struct layout *layout)
{
    uint32_t count = 0;
    for (int slot = 0; slot < GROUP_SLOT_COUNT; slot++) {
        if (slot != GROUP_ENDS && layout->spans[slot].size > 1) {
            count++;
        }
    }
    return count + (layout->pp > 1 ? 1u : 0u);
}

struct state_bytes {
    double weights, gradients, optimizer;
};

/* Bytes of one parameter's states on one rank of `shards`. */
static struct state_bytes state_bytes(const struct scenario *scenario, double shards)
{
    const struct precision_spec *precision = &scenario->precision;
    const uint32_t zero = scenario->parallel.zero;
    const double weight = element_bytes(precision->compute) == 1.0
                              ? 2.0 /* fp8 training keeps bf16 weights */
                              : element_bytes(precision->compute);
    const double moments = 2.0 * element_bytes(precision->moments);
    double master = element_bytes(precision->master);
    if (precision->compute == PRECISION_FP32) {
        master = 0.0;
    } else if (precision->reuse_fp32_param) {
        master -= weight;
    }
    return (struct state_bytes){
        .weights = weight / (zero >= 3 ? shards : 1.0),
        .gradients = element_bytes(precision->gradients) / (zero >= 2 ? shards : 1.0),
        .optimizer = (master + moments) / (zero >= 1 ? shards : 1.0),
    };
}

/* The largest block, whose second copy is alive while weights are loaded. */
static double largest_block_bytes(const struct op_graph *graph, uint32_t stage)
{
    double largest = 0.0;
    for (uint32_t chunk = 0; chunk < graph->layout->vpp; chunk++) {
        const struct layout_chunk *slots =
            &graph->layout->chunks[stage * graph->layout->vpp + chunk];
        for (uint32_t i = 0; i < slots->layer_count; i++) {
            struct param_count block = {0};
            add_block(graph, graph->model->layer_kind[slots->first_layer + i], 1.0, &block);
            largest = fmax(largest, 2.0 * param_count_sum(&block));
        }
    }
    return largest;
}

struct stage_memory memory_model_stage(const struct op_graph *graph, uint32_t stage)
{
    const struct layout *layout = graph->layout;
    const struct scenario *scenario = graph->scenario;
    struct stage_memory memory = {0};
    for (uint32_t chunk = 0; chunk < layout->vpp; chunk++) {
        chunk_params(graph, &layout->chunks[stage * layout->vpp + chunk], &memory.params);
    }
    const double dense = memory.params.tp_sharded + memory.params.tp_replicated;
    const double dense_shards = (double)layout->spans[GROUP_DP_CP].size;
    const double expert_shards = (double)layout->spans[GROUP_EDP].size;
    const struct state_bytes d = state_bytes(scenario, dense_shards);
    const struct state_bytes e = state_bytes(scenario, expert_shards);
    memory.weights = dense * d.weights + memory.params.expert * e.weights;
    memory.gradients = dense * d.gradients + memory.params.expert * e.gradients;
    memory.optimizer = dense * d.optimizer + memory.params.expert * e.optimizer;
    if (scenario->swap.optimizer) {
        memory.optimizer = 0.0; /* on the host; pieces come through the optimizer step */
    }
    memory.buffers = 2.0 * scenario->collectives.buffer_bytes * (double)communicators(layout);
    memory.reserve = scenario->memory.reserve_bytes;
    if (scenario->precision.gradients != PRECISION_FP32) {
        /* The optimizer works on a 32-bit copy of its gradient shard. */
        const bool sharded = scenario->parallel.zero >= 1;
        memory.optimizer_workspace = 4.0 * (dense / (sharded ? dense_shards : 1.0) +
                                            memory.params.expert / (sharded ? expert_shards : 1.0));
    }
    memory.load_workspace = largest_block_bytes(graph, stage);
    return memory;
}

struct kept_bytes memory_model_kept(const struct op_graph *graph, const struct block_ops *block,
                                    bool recompute, double rows_ratio)
{
    const struct recompute_spec *spec = &graph->scenario->recompute;
    const uint32_t modules = recompute ? spec->modules : 0;
    struct kept_bytes kept = {0};
    for (uint32_t i = 0; i < block->saved_count; i++) {
        const struct saved_tensor *tensor = &block->saved[i];
        double bytes = tensor->bytes * (tensor->rows_scale ? rows_ratio : 1.0);
        const bool input = strcmp(tensor->name, "input") == 0;
        if (input && recompute && spec->method == RECOMPUTE_UNIFORM && spec->layers > 1) {
            bytes /= (double)spec->layers; /* one checkpoint per group of layers */
        }
        if (!input && (tensor->module & modules) != 0) {
            kept.recomputed += bytes;
            continue;
        }
        if (strcmp(tensor->name, "logits") == 0) {
            kept.logits += bytes;
        }
        if (tensor->for_weight) {
            kept.until_weight += bytes;
        } else {
            kept.until_backward += bytes;
        }
    }
    return kept;
}

double memory_model_swapped(const struct op_graph *graph, const struct block_ops *block,
                            bool recompute)
{
    const uint32_t swapped = graph->scenario->swap.activations;
    const uint32_t modules = recompute ? graph->scenario->recompute.modules : 0;
    double bytes = 0.0;
    for (uint32_t i = 0; i < block->saved_count; i++) {
        const struct saved_tensor *tensor = &block->saved[i];
        if ((tensor->module & modules) == 0 && (tensor->module & swapped) != 0) {
            bytes += tensor->bytes;
        }
    }
    return bytes;
}
