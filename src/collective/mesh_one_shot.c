/*
 * mesh_one_shot.c - all-reduce by sending the whole tensor to everyone and adding up locally.
 *
 * One step instead of two, p/2 times the bytes: for small tensors.
 */
#include "collective_internal.h"

static struct collective_level_cost cost(const struct collective_level_ask *ask)
{
    return collective_steps(ask, 1, ask->bytes * ((double)ask->ranks - 1.0));
}

const struct collective collective_mesh_one_shot = {
    .name = "mesh_one_shot",
    .title = "Full mesh, whole tensor to every peer",
    .formula = "alpha + n (p-1) beta",
    .kinds = KIND_BIT(COLLECTIVE_ALL_REDUCE),
    .peers = 0,
    .cost = cost,
};
