/*
 * tree.c - all-reduce up and down a binary tree over the domains, a chain inside each.
 *
 * The tensor is pipelined, so its length counts once each way and only the depth of the
 * tree pays latency: NCCL's choice for small and middle sizes on many nodes. Two
 * complementary trees share the work, so that no rank sends more than 2 n.
 */
#include "collective_internal.h"

/* Share of a ring's bandwidth that a tree keeps, in NCCL's tuning model (tuning.cc). */
#define TREE_RATE 0.92

static struct collective_level_cost cost(const struct collective_level_ask *ask)
{
    if (ask->ranks <= 1 && ask->inner.ranks <= 1)
        return (struct collective_level_cost){0};
    const uint32_t depth = collective_log2_ceil(ask->ranks);
    const uint32_t chain = ask->inner.ranks > 1 ? ask->inner.ranks - 1 : 0;
    const double bytes = 2.0 * ask->bytes;
    const double latency_s =
        ask->launch_s + 2.0 * (depth * ask->alpha_s + chain * ask->inner.alpha_s);
    return (struct collective_level_cost){
        .time_s = latency_s + bytes / (ask->bytes_per_s * TREE_RATE),
        .latency_s = latency_s,
        .sent_bytes = bytes,
        .steps = 2 * (depth + chain),
    };
}

const struct collective collective_tree = {
    .name = "tree",
    .title = "Double binary tree over nodes, chains inside",
    .formula = "2 (log2(nodes) alpha + (p/nodes - 1) alpha_inner) + 2 n beta / 0.92",
    .kinds = KIND_BIT(COLLECTIVE_ALL_REDUCE),
    .peers = 2,
    .cost = cost,
};
