/*
 * memory_model.h - bytes that do not move during a step, per pipeline stage.
 *
 * Parameters live in three buckets with their own divisors (model.h):
 *   tp_sharded     / tp           gradients and states over dp*cp by ZeRO level
 *   tp_replicated  whole          over dp*cp
 *   expert         / (ep*etp)     over edp
 * ZeRO 1 shards optimizer states, 2 also gradients, 3 also weights. Bytes per parameter
 * follow the precision keys: bf16 weights 2, gradients by `gradients`, master copy and two
 * moments for Adam; reuse_fp32_param drops the separate bf16 copy's share of the master.
 *
 * What moves (activations, logits, workspaces) comes from the op graph and the engine's
 * allocation timeline.
 */
#ifndef STEPSIM_MEMORY_MODEL_H
#define STEPSIM_MEMORY_MODEL_H

#include "stepsim/op_graph.h"

struct stage_memory {
    double weights, gradients, optimizer; /* bytes per rank */
    double buffers;                       /* communicators: two buffers per group */
    double reserve;                       /* framework and driver */
    double optimizer_workspace;           /* temporary in the optimizer step */
    double load_workspace;                /* second copy of a block while weights are loaded */
    struct param_count params;            /* per rank after tp, ep, etp; before ZeRO */
};

/* Parameters of one chunk on one rank, after tp, ep and etp, before ZeRO. */
struct param_count memory_model_params(const struct op_graph *graph, uint32_t stage,
                                       uint32_t chunk);

/* Parameters of the experts of one chunk that placement replicate_hot puts on every rank. */
double memory_model_replicas(const struct op_graph *graph, uint32_t stage, uint32_t chunk);

/* Memory of one rank of `stage`. */
struct stage_memory memory_model_stage(const struct op_graph *graph, uint32_t stage);

/* Bytes that forward keeps of one block for one microbatch, after swap and, for a layer
 * that recomputes, after recompute. rows_ratio scales tensors that follow the routed rows
 * (1: balanced). */
struct kept_bytes {
    double until_backward; /* freed when the input gradient is done */
    double until_weight;   /* freed when the weight gradient is done */
    double logits;         /* part of the two that belongs to the loss */
    double recomputed;     /* brought back during the backward pass */
};

struct kept_bytes memory_model_kept(const struct op_graph *graph, const struct block_ops *block,
                                    bool recompute, double rows_ratio);

/* Bytes of one block and microbatch that leave for the host between forward and backward:
 * tensors of the swap.activations modules that are not recomputed. */
double memory_model_swapped(const struct op_graph *graph, const struct block_ops *block,
                            bool recompute);

#endif
