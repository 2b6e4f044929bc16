/*
 * staged.c - all-to-all in two stages: inside a domain, then between domains.
 *
 * Inside, a rank gives each neighbour all that is meant for the neighbour's peers in every
 * domain; outside, ranks with the same place exchange pairwise. Few peers, at the price of
 * moving nearly everything twice.
 */
#include "collective_internal.h"

static struct collective_level_cost cost(const struct collective_level_ask *ask)
{
    struct collective_level_cost total = collective_pairwise.cost(ask);
    collective_add_inner_mesh(ask, ask->kind, ask->bytes, &total);
    return total;
}

const struct collective collective_staged = {
    .name = "staged",
    .title = "Two-level all-to-all: inside, then between",
    .formula = "mesh(p_intra, n) + pairwise(p_inter, n)",
    .kinds = KIND_BIT(COLLECTIVE_ALL_TO_ALL),
    .peers = 1,
    .two_level = true,
    .cost = cost,
};
