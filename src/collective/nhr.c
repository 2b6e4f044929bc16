/*
 * nhr.c - nonuniform hierarchical ring: as few steps as halving and doubling, for any p.
 */
#include "collective_internal.h"

static struct collective_level_cost cost(const struct collective_level_ask *ask)
{
    const double ranks = ask->ranks;
    const uint32_t passes = collective_passes(ask->kind);
    return collective_steps(ask, passes * collective_log2_ceil(ask->ranks),
                            passes * ask->bytes * (ranks - 1.0) / ranks);
}

const struct collective collective_nhr = {
    .name = "nhr",
    .title = "Nonuniform hierarchical ring",
    .formula = "ceil(log2 p) alpha + n (p-1)/p beta; all-reduce twice",
    .kinds = KINDS_REDUCE,
    .peers = 1,
    .cost = cost,
};
