/*
 * hierarchical.c - expert exchange that sends a token to another domain once, not once per copy.
 *
 * All-gather between domains among the ranks with the same place: every rank then holds
 * the tokens of its place in all p_inter domains. All-to-all inside: each of these tokens
 * has copies / p_inter experts in this domain on average. So
 *
 *     outside  token_bytes (p_inter - 1),  inside  token_bytes copies (p_intra - 1)/p_intra
 *
 * The all-gather takes NHR's steps: it moves the least bytes in the fewest steps for any number
 * of domains, which is why the vendor's rule never prefers another one. The way back (combine)
 * is a reduce-scatter of the same volumes.
 */
#include "collective_internal.h"

static struct collective_level_cost cost(const struct collective_level_ask *ask)
{
    struct collective_level_ask outside = *ask;
    outside.kind = COLLECTIVE_ALL_GATHER;
    outside.bytes = ask->token_bytes * ask->ranks;
    struct collective_level_cost total = collective_nhr.cost(&outside);
    collective_add_inner_mesh(ask, COLLECTIVE_ALL_TO_ALL, ask->bytes, &total);
    return total;
}

const struct collective collective_hierarchical = {
    .name = "hierarchical",
    .title = "All-gather between domains, all-to-all inside",
    .formula = "nhr(p_inter, p_inter * tokens) + mesh(p_intra, tokens * copies)",
    .kinds = KIND_BIT(COLLECTIVE_ALL_TO_ALL_HIERARCHICAL),
    .peers = 1,
    .two_level = true,
    .cost = cost,
};
