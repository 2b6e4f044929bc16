/*
 * placement.h - which rank of the expert group holds which expert of a layer.
 *
 * A placement is position_of[expert]; every position holds experts / positions of them. Loads
 * are relative (routing.h); the heaviest position sets the pace of a layer.
 */
#ifndef STEPSIM_PLACEMENT_H
#define STEPSIM_PLACEMENT_H

#include "stepsim/arena.h"
#include "stepsim/rng.h"

struct placement {
    uint32_t experts, positions; /* experts is a multiple of positions */
    uint32_t *position_of;       /* [experts] */
};

struct placement placement_create(uint32_t experts, uint32_t positions, struct arena *arena);

/* Experts in the order of their numbers. */
void placement_contiguous(struct placement *placement);
/* In a random order. */
void placement_random(struct placement *placement, struct rng *rng);
/* From the heaviest expert to the lightest, each to the lightest position with room. Ties go to
 * the lower number. */
void placement_greedy(struct placement *placement, const double *load, struct arena *scratch);
/* Swaps experts between the heaviest position and others, at each turn the swap that leaves
 * the lightest heavier one of the two, until none helps. Few experts move. */
void placement_improve(struct placement *placement, const double *load, struct arena *scratch);

/* Load of the heaviest position over the mean. */
double placement_heaviest(const struct placement *placement, const double *load,
                          struct arena *scratch);

#endif
