/*
 * deduplicated.c - expert exchange that crosses to another domain once per token that has an
 * expert there, and makes the copies inside (DeepEP, HybridEP).
 *
 * With copies k spread evenly over p_inter domains a given domain holds at least one of a token's
 * experts with probability 1 - (1 - 1/p_inter)^k. A rank sends its tokens to the rank with its own
 * place in each domain, which forwards them as they arrive, so the longer of the two parts counts:
 *
 *     outside  token_bytes (p_inter - 1) (1 - (1 - 1/p_inter)^k)
 *     inside   token_bytes k (p_intra - 1)/p_intra
 *
 * Both parts are one kernel. The way back (combine) has the same volumes.
 */
#include <math.h>

#include "collective_internal.h"

static struct collective_level_cost cost(const struct collective_level_ask *ask)
{
    const double domains = ask->ranks;
    const double copies = ask->token_bytes > 0.0 ? ask->bytes / ask->token_bytes : 0.0;
    const double reached = 1.0 - pow(1.0 - 1.0 / domains, copies);
    const double bytes = ask->token_bytes * (domains - 1.0) * reached;
    const struct collective_level_cost outside = collective_steps(ask, ask->ranks - 1, bytes);
    struct collective_level_cost inside = {0};
    collective_add_inner_mesh(ask, COLLECTIVE_ALL_TO_ALL, ask->bytes, &inside);
    struct collective_level_cost total = outside;
    total.inner_sent_bytes = inside.inner_sent_bytes;
    total.time_s = fmax(outside.time_s, inside.time_s);
    total.latency_s = fmin(total.time_s, fmax(outside.latency_s, inside.latency_s));
    return total;
}

const struct collective collective_deduplicated = {
    .name = "deduplicated",
    .title = "One copy per domain, further copies inside",
    .formula = "max(pairwise(p_inter, tokens * reached domains), mesh(p_intra, tokens * copies))",
    .kinds = KIND_BIT(COLLECTIVE_ALL_TO_ALL_DEDUPLICATED),
    .peers = 1,
    .two_level = true,
    .cost = cost,
};
