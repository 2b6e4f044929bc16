/*
 * routing.h - how unequal the experts' loads are, for one training step.
 *
 * routing_build() draws the tokens of every expert of every MoE layer for one step (or reads
 * them), applies the policy (dropless, drop, drop and pad) and the placement of experts on
 * ranks, and answers with the rows of every rank position in the expert group, relative to
 * perfect balance. Cost is (layers x experts), never per token.
 *
 * Position: index inside the expert group, 0 .. ep-1. With replicas shared every replica of
 * the expert group sees the same loads, so ranks split into (stage x position) classes only.
 *
 * Everything lives in the arena.
 */
#ifndef STEPSIM_ROUTING_H
#define STEPSIM_ROUTING_H

#include "stepsim/layout.h"

struct expert_loads {
    uint32_t layers;    /* model layers plus MTP modules; dense layers have ratio 1 */
    uint32_t positions; /* ep */
    /* [layer * positions + position] rows that the rank computes, padding included, over the
     * rows of perfect balance. */
    const double *rows_ratio;
    /* [layer * positions + position] bytes that the rank receives in a dispatch over the
     * balanced bytes; what it sends in a combine. Without padding equal to rows_ratio. */
    const double *receive_ratio;
    /* [layer * positions + position] bytes that it sends in a dispatch over the balanced
     * bytes (ragged sources); 1 unless sources differ. */
    const double *send_ratio;
    double max_over_mean;        /* largest device load over the mean, over all layers */
    double dropped_ratio;        /* dropped tokens over routed tokens, all layers */
    double padded_ratio;         /* padding rows over computed rows */
    const double *layer_dropped; /* [layers] */
};

#endif
