/*
 * double_ring.c - two rings in opposite directions with half the tensor each.
 *
 * The steps are those of one ring; both directions of the links are in use, so the rate is
 * that of two links.
 */
#include "collective_internal.h"

static struct collective_level_cost cost(const struct collective_level_ask *ask)
{
    return collective_ring.cost(ask);
}

const struct collective collective_double_ring = {
    .name = "double_ring",
    .title = "Two rings in opposite directions",
    .formula = "(p-1) alpha + n (p-1)/p beta; all-reduce twice",
    .kinds = KINDS_REDUCE,
    .peers = 2,
    .cost = cost,
};
