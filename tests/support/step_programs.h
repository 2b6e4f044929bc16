/*
 * step_programs.h - a synthetic training step of any size, for laws and the benchmark.
 *
 * 1F1B over pp stages; every stage has dp * tp ranks, expert groups of ep consecutive
 * ones, tensor groups of tp consecutive ones and data groups of stride tp. Per layer:
 * attention, TP collective, dispatch, experts, combine; messages between stages; one DP
 * collective at the end. All ranks of a stage are one class, so that the same step can be
 * built with one rank for each stage.
 */
#ifndef TESTS_STEP_PROGRAMS_H
#define TESTS_STEP_PROGRAMS_H

#include "stepsim/arena.h"
#include "stepsim/programs.h"

struct step_shape {
    uint32_t pp, dp, tp, ep; /* ep divides dp * tp */
    uint32_t microbatches;
    uint32_t layers;        /* of a stage */
    bool folded;            /* one rank for each stage */
    bool free_links;        /* messages take no time */
    bool memory;            /* activations and buffers come and go */
    int64_t contention_ppm; /* 0: none */
    int64_t jitter_ppm;
};

const struct programs *step_programs_build(const struct step_shape *shape, struct arena *arena);

#endif
