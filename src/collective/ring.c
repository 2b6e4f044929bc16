/*
 * ring.c - p - 1 steps, each passing one shard to the next rank; all-reduce goes round twice.
 */
#include "collective_internal.h"

static struct collective_level_cost cost(const struct collective_level_ask *ask)
{
    const double ranks = ask->ranks;
    const uint32_t passes = collective_passes(ask->kind);
    return collective_steps(ask, passes * (ask->ranks - 1),
                            passes * ask->bytes * (ranks - 1.0) / ranks);
}

const struct collective collective_ring = {
    .name = "ring",
    .title = "Ring",
    .formula = "(p-1) alpha + n (p-1)/p beta; all-reduce twice",
    .kinds = KINDS_REDUCE,
    .peers = 1,
    .cost = cost,
};
