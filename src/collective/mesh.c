/*
 * mesh.c - every rank exchanges with all the others at once, in one step (two for all-reduce).
 *
 * Published per link as alpha + n beta / p: p - 1 links carry n / p each. Here beta belongs to
 * all links that the group reaches together, so the step moves n (p-1)/p.
 */
#include "collective_internal.h"

static struct collective_level_cost cost(const struct collective_level_ask *ask)
{
    const double ranks = ask->ranks;
    const uint32_t passes = collective_passes(ask->kind);
    return collective_steps(ask, passes, passes * ask->bytes * (ranks - 1.0) / ranks);
}

const struct collective collective_mesh = {
    .name = "mesh",
    .title = "Full mesh, all peers at once",
    .formula = "alpha + n (p-1)/p beta; all-reduce twice",
    .kinds = KINDS_REDUCE | KIND_BIT(COLLECTIVE_ALL_TO_ALL),
    .peers = 0,
    .cost = cost,
};
