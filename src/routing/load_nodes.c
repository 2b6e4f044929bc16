/*
 * load_nodes.c - node-limited routing: a token reaches few nodes, so no node gets all tokens.
 *
 * A token that may reach M of N nodes divides its choices among them, and no node can be
 * among the choices of a token more than once: with all tokens at a node it has N / M times
 * the mean. Experts of a node that would have more give up in proportion; those of other
 * nodes gain in proportion.
 */
#include <math.h>

#include "routing_internal.h"

struct node_sum {
    double load, mean; /* mean: experts of the node */
};

static void sum_nodes(const struct node_limit *nodes, const double *load, uint32_t experts,
                      struct node_sum *sums)
{
    for (uint32_t n = 0; n < nodes->nodes; n++)
        sums[n] = (struct node_sum){0};
    for (uint32_t e = 0; e < experts; e++) {
        sums[nodes->node_of[e]].load += load[e];
        sums[nodes->node_of[e]].mean += 1.0;
    }
}

void load_limit_nodes(const struct node_limit *nodes, double *load, uint32_t experts,
                      struct arena *scratch)
{
    if (nodes->limit == 0 || nodes->limit >= nodes->nodes)
        return; /* with every node in reach nothing is cut */
    const double most = (double)nodes->nodes / (double)nodes->limit;
    struct node_sum *sums = ARENA_ARRAY(scratch, nodes->nodes, struct node_sum);
    for (uint32_t round = 0; round < nodes->nodes; round++) {
        sum_nodes(nodes, load, experts, sums);
        double over = 0.0;
        double below = 0.0;
        for (uint32_t n = 0; n < nodes->nodes; n++) {
            over += fmax(0.0, sums[n].load - most * sums[n].mean);
            below += sums[n].load < most * sums[n].mean ? sums[n].load : 0.0;
        }
        if (over <= 1e-9 || below <= 0.0)
            return;
        for (uint32_t e = 0; e < experts; e++) {
            const struct node_sum *sum = &sums[nodes->node_of[e]];
            const bool full = sum->load >= most * sum->mean;
            load[e] *= full ? most * sum->mean / sum->load : 1.0 + over / below;
        }
    }
}
