/*
 * routing.h - how unequal the experts' loads are, step by step.
 *
 * routing_step() draws the load of every expert of every MoE layer for one step (or takes it
 * from a file), narrows it by the auxiliary loss, applies the policy (dropless, drop, drop and
 * pad) and the placement of experts on ranks, and answers with the rows of every rank position
 * in the expert group, relative to perfect balance. Cost is (layers x experts) for each draw,
 * never per token.
 *
 * Load of an expert: its tokens over the mean of all experts of the layer, so that the mean is
 * 1. A token chooses an expert at most once, so no load passes experts / top_k; drawn loads
 * above that are cut, and the others grow.
 *
 * Position: index inside the expert group, 0 .. ep-1. With replicas shared every replica of
 * the expert group sees the same loads, so ranks split into (stage x position) classes only.
 * With replicas independent the replicas follow one another: edp * ep + position.
 *
 * Draws depend on (seed, layer, replica, microbatch, step) alone, never on call order.
 * Everything lives in the arena.
 */
#ifndef STEPSIM_ROUTING_H
#define STEPSIM_ROUTING_H

#include "stepsim/layout.h"

struct expert_loads {
    uint32_t layers;    /* model layers plus MTP modules; dense layers have ratio 1 */
    /* ep; edp * ep with independent replicas; 1 if every rank has the same ratios whatever
     * the loads (drop and pad) */
    uint32_t positions;
    uint32_t draws;     /* microbatches that have ratios of their own; 0 or 1: one for all */
    /* [(draw * layers + layer) * positions + position] rows that the rank computes, padding
     * included, over the rows of perfect balance without dropping and padding. */
    const double *rows_ratio;
    /* Same index: bytes that the rank receives in a dispatch over the balanced bytes; what it
     * sends in a combine. */
    const double *receive_ratio;
    /* Same index: bytes that it sends in a dispatch over the balanced bytes (ragged sources);
     * 1 unless sources differ. */
    const double *send_ratio;
    double even_ratio;           /* rows_ratio of all ranks if loads were balanced */
    double max_over_mean;        /* largest device load over the mean, over all layers */
    double mean_max_over_mean;   /* mean over layers (and draws) of the heaviest device's */
    double rows_mean;            /* computed rows over those of a dropless step, all layers */
    double dropped_ratio;        /* dropped tokens over routed tokens, all layers */
    double padded_ratio;         /* padding rows over computed rows */
    const double *layer_dropped; /* [layers] */
    /* Dynamic placement, else NULL. [layer * positions + position]: experts that leave the
     * rank when the step is over, as many as come. */
    const double *moved;
    uint32_t migrations; /* experts that move, all layers */
    uint32_t replicated; /* experts of a layer that every rank holds besides its own */
};

struct routing;

struct routing_ask {
    const struct scenario *scenario;
    const struct model *model;
    const struct cluster *cluster;
    const struct layout *layout;
    struct arena *scratch; /* reset by every call; outlives the routing */
};

/* Whether routing_build() answers with a routing; an error counts as yes. */
bool routing_differs(const struct scenario *scenario, const struct layout *layout);

/* True and *routing NULL where loads are balanced and nothing is dropped or padded, or the
 * model is dense; false with errors on the user's mistakes. */
bool routing_build(const struct routing_ask *ask, struct arena *arena, struct error_list *errors,
                   struct routing **routing);

/* What balanced loads would be under the same policy: one position, even_ratio everywhere. */
const struct expert_loads *routing_even(const struct routing *routing, struct arena *arena);

/* Steps are asked for in order from 0. The answer is overwritten by the next call. */
const struct expert_loads *routing_step(struct routing *routing, uint32_t step);

#endif
