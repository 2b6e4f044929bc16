/*
 * layout.h - the five parallel dimensions: rank <-> coordinates, groups, and which
 * layers each pipeline chunk holds.
 *
 * Two views of the ranks of one pipeline stage, innermost first:
 *   attention view  tp, cp, dp          (tp*cp*dp ranks)
 *   expert view     etp, ep, edp        (etp*ep*edp, the same number)
 * and pp outermost (order "tp-cp-ep-dp-pp"). The world is a multiple of
 * lcm(pp*tp*cp, pp*ep*etp). dp = world/(tp*pp*cp), edp = world/(pp*ep*etp). parallel.ep is
 * the real size of the expert group: what Megatron calls EP 4 with tp-extend-ep on TP 8 is
 * ep 32, etp 1. A dense model has ep = etp = 1.
 *
 * parallel.order may be any order of the five words, innermost first; the attention view
 * takes it without ep, the expert view without cp and with etp for tp, edp for dp. Both
 * must put pp at the same rank distance.
 *
 * Chunks: stage s holds vpp chunks. Model order walks chunk 0 of stages 0..pp-1, then
 * chunk 1 ...; with a V-shaped schedule odd chunks run from stage pp-1 back to stage 0, so
 * that with vpp 2 chunk 1 of stage s is model chunk 2*pp-1-s and embedding, MTP and head
 * are all on stage 0. The slots of a chunk: input embedding, layers, MTP modules, head with
 * loss. The embedding is in model chunk 0, the head in the last, and so are the MTP modules
 * unless a layout string puts them before it.
 *
 * parallel.stages.split:
 *   even        the same number of layers in every chunk
 *   noop        the same number of slots in every chunk; noop_layers names the empty ones
 *   layers      a list, per stage (then each entry divides by vpp) or per chunk in model order
 *   first_last  so many on the first and/or last stage, the others even
 *   layout      a string in Megatron's notation: E embedding, t layer, m MTP module, L loss,
 *               | between chunks in model order, *n repeats the item before it, ( ) groups,
 *               commas and blanks mean nothing: "Et|(tt|)*30,L"
 *   balanced    layout_balance() on training FLOPs with causal attention
 *
 * Everything illegal is refused here with a stable code, the values that clash and the
 * nearest legal neighbours; every error that can be seen is reported at once. Keys that the
 * chosen split does not read must be left out, so that no override leaves one behind.
 */
#ifndef STEPSIM_LAYOUT_H
#define STEPSIM_LAYOUT_H

#include "stepsim/cluster.h"
#include "stepsim/model.h"
#include "stepsim/programs.h" /* enum group_slot */

struct layout_chunk {
    uint32_t first_layer, layer_count; /* contiguous in model order; may be 0 layers */
    uint32_t noop_count;               /* empty slots, for printing */
    bool embedding;
    uint32_t mtp; /* MTP modules */
    bool head;    /* final norm, head, loss */
};

/* A dimension of a view: the digit of a rank is rank / stride % size. */
enum layout_axis_name {
    LAYOUT_TP,
    LAYOUT_CP,
    LAYOUT_DP,
    LAYOUT_PP,
    LAYOUT_ETP,
    LAYOUT_EP,
    LAYOUT_EDP,
    LAYOUT_AXIS_COUNT
};

struct layout_axis {
    uint32_t size, stride;
};

struct layout {
    uint32_t tp, pp, vpp, cp, dp, ep, etp, edp, world;
    uint32_t microbatches; /* per replica and step */
    uint32_t micro_batch_size;
    uint32_t seq_len;
    uint32_t experts_per_rank; /* 0: dense */
    uint32_t ulysses, ring;    /* cp = ulysses * ring */
    /* Heads on one rank while attention runs, after the split over tp and Ulysses ranks. With
     * fewer key heads than ranks each head is on kv_replication of them (else 1). */
    uint32_t heads_per_rank, kv_heads_per_rank, kv_replication;
    uint32_t layer_slots;   /* layers and no-op slots of the whole model */
    bool sequence_parallel; /* false whenever tp is 1 */
    bool v_shaped;
    const struct layout_chunk *chunks; /* [pp * vpp], index stage * vpp + chunk */
    struct layout_axis axes[LAYOUT_AXIS_COUNT];
    /* The shape of the groups of a slot. Where groups of one slot lie differently in nodes,
     * spans_differ is set and the span is that of the group with the longest way: outermost
     * level first, then fewest members per domain from the outside in. */
    struct group_span spans[GROUP_SLOT_COUNT];
    bool spans_differ[GROUP_SLOT_COUNT];
    /* Two ranks: neighbouring stages, the worst pair. The hand-off from the last stage back to
     * the first (vpp above 1) is GROUP_ENDS. Size 1 when pp is 1. */
    struct group_span pp_next;
    /* Both NULL for a layout that was built like another. */
    const char *split_text; /* "3,4,4,...": layers per stage, as printed */
    const char *chunk_text; /* layout string of the resolved split; no-op slots are left out */
};

struct layout_ask {
    const struct scenario *scenario;
    const struct model *model;
    const struct cluster *cluster;
    bool v_shaped; /* property of the schedule */
    /* A layout with the same degrees, rank order and cluster, or NULL: its groups are taken over
     * instead of being worked out again. */
    const struct layout *like;
};

const struct layout *layout_build(const struct layout_ask *ask, struct arena *arena,
                                  struct error_list *errors);

/* What `balanced` weighs, forward plus backward work in any common unit (FLOPs): finite, not
 * negative. The embedding is on model chunk 0, the head and all MTP modules (with their head
 * passes) on the last. */
struct layout_weights {
    const double *layer; /* [model->layers] */
    double embedding, mtp, head;
};

struct layout_balance_ask {
    struct layout_weights weights;
    uint32_t layers, pp, vpp;
    bool v_shaped;
};

/* Splits layers into chunks so that the heaviest stage is as light as possible; ties go to the
 * split whose heaviest chunk is lightest, then to the most even one (least sum of squared chunk
 * weights), then to the lexicographically smallest. With several chunks per stage this is done
 * under four caps on the layers of a chunk (the lightest possible one, one and two of the last
 * layer more, none), and the result with the least sum over rounds of their heaviest chunk is
 * taken: chunks k*pp to k*pp + pp-1 are round k, and run at the same time. counts has pp*vpp
 * entries in model order. Deterministic; balance.c says for which weights it is exact. */
void layout_balance(const struct layout_balance_ask *ask, struct arena *arena, uint32_t *counts);

/* The weights that `balanced` uses: training FLOPs of one token with causal attention, router
 * and MTP counted. Lives in the arena. */
struct layout_weights layout_weights(const struct model *model, uint32_t seq_len,
                                     struct arena *arena);

struct rank_coordinates {
    uint32_t tp, cp, dp, pp; /* attention view */
    uint32_t etp, ep, edp;   /* expert view */
};

struct rank_coordinates layout_coordinates(const struct layout *layout, uint32_t rank);
/* The rank with these coordinates of the attention view. */
uint32_t layout_rank(const struct layout *layout, uint32_t tp, uint32_t cp, uint32_t dp,
                     uint32_t pp);

/* Number of groups of a kind, and the group of a rank; group numbers are dense and follow the
 * lowest rank of the group. Only ranks of the first and last stage are in a GROUP_ENDS group;
 * the others get UINT32_MAX. */
uint32_t layout_group_count(const struct layout *layout, enum group_slot slot);
uint32_t layout_group_of(const struct layout *layout, enum group_slot slot, uint32_t rank);
/* Members of one group in rank order; members has spans[slot].size entries. */
void layout_group_members(const struct layout *layout, enum group_slot slot, uint32_t group,
                          uint32_t *members);

/* Stage and chunk that run model-order chunk k, and the reverse. */
uint32_t layout_stage_of(const struct layout *layout, uint32_t model_chunk);
uint32_t layout_chunk_of(const struct layout *layout, uint32_t model_chunk);
uint32_t layout_model_chunk(const struct layout *layout, uint32_t stage, uint32_t chunk);

#endif
