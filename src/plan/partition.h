/*
 * partition.h - classes of ranks that behave alike (exact folding).
 *
 * Two ranks share a class if they have the same start colour and if, in every kind of group
 * they belong to and at both pipeline peers, they meet the same number of members of each
 * class: the coarsest equitable partition. The start colour says what the rank itself is:
 * its stage, and its table of costs (expert position, speed). Classes are numbered by their
 * lowest rank, which is the representative.
 *
 * In closed form all groups of a slot cost the same, whatever nodes they lie in, so places
 * in the cluster are no part of the colour.
 */
#ifndef STEPSIM_PLAN_PARTITION_H
#define STEPSIM_PLAN_PARTITION_H

#include "stepsim/arena.h"
#include "stepsim/layout.h"

struct partition {
    const uint32_t *class_of; /* [world]; NULL: the class is the stage */
    uint32_t count;
    uint32_t *representative; /* [count] lowest rank */
    uint32_t *rank_count;     /* [count] */
};

/* A few passes over world x group kinds. */
struct partition_ask {
    const struct layout *layout;
    uint32_t *colours;                     /* [world], any numbers; becomes class_of */
    const struct cluster_domains *domains; /* whose ranks share something */
    uint32_t domain_count;                 /* kinds of them */
};
void partition_build(const struct partition_ask *ask, struct arena *arena,
                     struct partition *partition);

/* What partition_build() finds when colours are the stages, without looking at every rank. */
void partition_by_stage(const struct layout *layout, struct arena *arena,
                        struct partition *partition);

uint32_t partition_class(const struct partition *partition, const struct layout *layout,
                         uint32_t rank);

/* The rank of the next or previous stage (PEER_NEXT, PEER_PREVIOUS), around the ends. */
uint32_t partition_peer(const struct layout *layout, uint32_t rank, int peer);

#endif
