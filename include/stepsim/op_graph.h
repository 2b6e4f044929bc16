/*
 * op_graph.h - what one microbatch does in one block: ops, shapes, dependencies and
 * the tensors it keeps; no times.
 *
 * A pipeline chunk is a sequence of blocks (embedding, layers, MTP modules, head). For
 * each kind of block that occurs there is one op list per pass:
 *   PASS_FORWARD          forward
 *   PASS_RECOMPUTE        what the backward pass runs again (recompute modules)
 *   PASS_BACKWARD_INPUT   input gradient
 *   PASS_BACKWARD_WEIGHT  weight gradient
 * A full backward runs recompute, then input and weight gradient op by op
 * (`weight_after` tells where the weight-gradient ops of a plain backward go).
 *
 * Inside a list an op names the ops it needs (`after`); compute ops also run in list
 * order, since the compute stream is in order. A communication op with nothing between
 * it and its consumer is exposed by construction; overlap comes from lists in which
 * independent compute lies between.
 *
 * Shapes are per rank after tensor, sequence, context and expert sharding. `rows_scale`
 * ops grow with the routed rows of the rank (expert imbalance).
 */
#ifndef STEPSIM_OP_GRAPH_H
#define STEPSIM_OP_GRAPH_H

#include "stepsim/collective.h"
#include "stepsim/compute_cost.h"
#include "stepsim/layout.h"
#include "stepsim/model.h"

enum op_pass {
    PASS_FORWARD,
    PASS_RECOMPUTE,
    PASS_BACKWARD_INPUT,
    PASS_BACKWARD_WEIGHT,
    PASS_COUNT
};

enum op_class { OP_CLASS_COMPUTE, OP_CLASS_COLLECTIVE };

#define OP_AFTER_MAX 3
#define OP_NONE (-1)

struct op {
    const char *name;      /* "qkv", "attention", "dispatch", unique inside a list */
    enum op_class op_class;
    enum stream stream;
    uint32_t module;       /* module_bit set it belongs to, for recompute */
    int16_t after[OP_AFTER_MAX]; /* indices in the same list, OP_NONE when unused */
    bool rows_scale;       /* grows with the routed rows of the rank */
    bool in_weight_pass;   /* plain backward: a weight-gradient op merged into the list */
    int16_t fused_collective; /* matmul fused with this collective of the list, or OP_NONE */
    bool fused_away;       /* collective that runs inside a fused matmul */
    double kernels;        /* launches the host issues */
    struct compute_ask compute;
    enum collective_kind collective;
    enum group_slot group;
    double bytes;          /* collective bytes, convention of collective.h */
    double token_bytes, copies;
    uint32_t span_size, span_stride; /* part of the group that takes part; 0: the whole group */
};

struct op_list {
    const struct op *ops;
    uint32_t count;
};

/* A tensor that forward keeps for backward. */
struct saved_tensor {
    const char *name;
    double bytes;          /* per rank and microbatch */
    uint32_t module;       /* recomputing any of these modules drops it */
    bool for_weight;       /* an input of a weight gradient: lives until W */
    bool rows_scale;
};

#define SAVED_TENSORS_MAX 40

struct block_ops {
    enum block_kind kind;
    bool windowed;
    struct op_list pass[PASS_COUNT];
    struct op_list backward;           /* input and weight gradient merged, for a full backward */
    struct saved_tensor saved[SAVED_TENSORS_MAX];
    uint32_t saved_count;
    double workspace_forward_bytes;    /* alive only while the pass runs */
    double workspace_backward_bytes;
    double workspace_rows_bytes;       /* part of both that grows with the routed rows */
    double workspace_gradient_bytes;   /* of the weight gradient: a tensor before it is added */
    bool moe;
    double host_syncs;                 /* device-to-host synchronisations of one pass */
};

struct op_graph {
    const struct scenario *scenario;
    const struct model *model;
    const struct layout *layout;
    double tokens;            /* tokens of one microbatch on one rank (after cp) */
    double boundary_bytes;    /* what one rank sends to the next stage */
    const struct block_ops *blocks;
    uint32_t block_count;
};

/* The block that a layer, or another slot of a chunk, uses. */
const struct block_ops *op_graph_block(const struct op_graph *graph, enum block_kind kind,
                                       bool windowed);

struct op_graph_ask {
    const struct scenario *scenario;
    const struct model *model;
    const struct layout *layout;
    bool decouple_weight; /* weight gradients come after the communication that the input
                             gradient feeds, so that they can hide it */
    bool splits_backward; /* the schedule runs weight gradients as actions of their own */
    bool pairs;           /* the schedule overlaps forward and backward of two microbatches */
};

/* False with errors: recompute, overlap or swap settings whose preconditions do not hold. */
bool op_graph_check(const struct op_graph_ask *ask, struct error_list *errors);
/* NULL with the same errors. */
const struct op_graph *op_graph_build(const struct op_graph_ask *ask, struct arena *arena,
                                      struct error_list *errors);

/* Does the recompute setting cover this layer: `index` counts layers inside the chunk. */
bool op_graph_recomputes(const struct op_graph *graph, uint32_t stage, uint32_t chunk,
                         uint32_t index);

/* FLOPs that one rank executes for one op (0 for communication). */
double op_flop(const struct op *op);

#endif
