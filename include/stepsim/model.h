/*
 * model.h - what a model is made of: blocks, parameters by bucket, FLOPs per token.
 *
 * Exact arithmetic from true widths; nothing here knows a layout or a duration.
 *
 * Parameter buckets differ in how a layout divides them:
 *   tp_sharded     split over the tensor group
 *   tp_replicated  whole on every tensor rank: norms, router, learned positions, the MLA
 *                  down-projections (q_a, kv_a) with their norms, the gate of the shared
 *                  experts, and the biases that are added after a tensor reduction
 *   expert         routed experts, split over ep and etp
 *
 * Totals follow design.md 5: `total` and `active` leave out the input embedding and
 * the MTP modules and include the head (a tied head counts once, as the head).
 * Active counts top_k routed experts, the shared experts and the router. The routing
 * bias of moe.router_bias is not trained by gradients and is counted nowhere.
 *
 * FLOPs per token are forward matmul FLOPs (2 per multiply-add). A training step
 * does three times that (forward, input gradient, weight gradient). Attention counts
 * scores and values over `keys` visible keys: seq_len in full attention, half of it
 * in causal attention, the mean visible number with a window. Norms, biases, rotary
 * embedding, activation functions, softmax and the input embedding count nothing.
 *
 * Which layers are MoE: the first first_dense_layers are dense, then every layer_freq-th
 * layer, starting with the first after them. Which layers have the window: layers 0,
 * window_every, 2 * window_every, ... The layer in an MTP module is like the last layer.
 */
#ifndef STEPSIM_MODEL_H
#define STEPSIM_MODEL_H

#include "stepsim/arena.h"
#include "stepsim/scenario.h"

struct param_count {
    double tp_sharded;
    double tp_replicated;
    double expert;
};

double param_count_sum(const struct param_count *count);

enum block_kind {
    BLOCK_EMBEDDING, /* input embedding (and learned positions) */
    BLOCK_DENSE,     /* attention and dense FFN */
    BLOCK_MOE,       /* attention and experts */
    BLOCK_MTP,       /* one MTP module without its head pass: projection 2h -> h, three norms
                        (of both inputs and the final one), a layer */
    BLOCK_HEAD,      /* final norm and head */
    BLOCK_KIND_COUNT
};

const char *block_kind_name(enum block_kind kind);

struct model {
    const struct model_spec *spec;
    uint32_t layers;
    const enum block_kind *layer_kind; /* [layers] BLOCK_DENSE or BLOCK_MOE */
    const bool *layer_windowed;        /* [layers] does the sliding window apply */
    enum block_kind mtp_layer_kind;    /* what the layer inside an MTP module is */
    /* One block of each kind as it stands on a device: the embedding and the head of a tied
     * model both count here, since a pipeline holds both. A kind that the model does not
     * have counts what it would have. */
    struct param_count block_params[BLOCK_KIND_COUNT];
    double active_params[BLOCK_KIND_COUNT]; /* used per token; 0 for the input embedding */
    double params_total, params_active;
    double
        params_embedding; /* what the total leaves out: 0 for a tied model with rotary positions */
    double params_mtp;    /* all MTP modules */
    uint32_t dense_layers, moe_layers;
};

/* NULL, with errors added, for wrong combinations inside the model (heads, widths, top_k above
 * experts ...). The model points into the scenario, which must outlive it. */
const struct model *model_build(const struct scenario *scenario, struct arena *arena,
                                struct error_list *errors);

/* Widths that attention works with, whatever its kind: key heads (all heads for MHA and MLA),
 * and the widths of one query or key head and of one value head. */
uint32_t model_kv_heads(const struct model *model);
uint32_t model_qk_head_dim(const struct model *model);
uint32_t model_v_head_dim(const struct model *model);

/* Which tokens attend to which: decides the attention FLOPs. */
enum attention_count { ATTENTION_COUNT_FULL, ATTENTION_COUNT_CAUSAL };

/* Mean visible keys of one query at this sequence length. Without a window S (full) or S/2
 * (causal); with a window of w keys below S: w (full), or w - w*w/(2S) (causal: the first w
 * queries see fewer). */
double model_visible_keys(const struct model *model, bool windowed, double seq_len,
                          enum attention_count count);

/* Forward matmul FLOPs of one token in one block without attention scores and values and without
 * the router. */
double model_linear_flop(const struct model *model, enum block_kind kind);
/* Scores and values of one token in one layer over `keys` visible keys. */
double model_attention_flop(const struct model *model, double keys);
/* Router FLOPs of one token in one MoE block (counted apart: mfu.router); 0 for a dense model. */
double model_router_flop(const struct model *model);

struct flop_convention {
    enum attention_count attention;
    bool mtp; /* the MTP modules, each with a head pass */
    bool router;
};

/* Forward FLOPs of one token in the layer inside an MTP module, its projection and its head pass.
 */
double model_mtp_flop(const struct model *model, double seq_len,
                      const struct flop_convention *convention);
/* Forward FLOPs of one token in one layer, attention and (if counted) router included. */
double model_layer_flop(const struct model *model, uint32_t layer, double seq_len,
                        const struct flop_convention *convention);

/* The same for the whole model, forward, input gradient and weight gradient: 3x forward. */
double model_train_flop_per_token(const struct model *model, double seq_len,
                                  const struct flop_convention *convention);

/* The same for a packed batch: sum over samples, attention by the sum of squares. */
double model_train_flop_per_batch(const struct model *model, const double *sample_lengths,
                                  uint32_t samples, const struct flop_convention *convention);

#endif
