/*
 * pairwise.c - all-to-all in p - 1 steps; in step i a rank exchanges with the rank i further.
 *
 * The published sum takes the largest block of each step; blocks are equal here and the
 * imbalance of a routed exchange is a factor on the bytes.
 */
#include "collective_internal.h"

static struct collective_level_cost cost(const struct collective_level_ask *ask)
{
    const double ranks = ask->ranks;
    return collective_steps(ask, ask->ranks - 1, ask->bytes * (ranks - 1.0) / ranks);
}

const struct collective collective_pairwise = {
    .name = "pairwise",
    .title = "Pairwise all-to-all",
    .formula = "(p-1) alpha + beta sum over steps of max n(i, i+k)",
    .kinds = KIND_BIT(COLLECTIVE_ALL_TO_ALL),
    .peers = 1,
    .cost = cost,
};
