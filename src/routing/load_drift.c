/*
 * load_drift.c - loads move between experts from step to step.
 *
 * Pairs of experts exchange their loads, so the shape of the distribution stays what it was and
 * only who is hot changes. Exchanging loads a and b moves |a - b| of the layer's load; a budget
 * that grows by the drift each step pays for it, and is overdrawn by at most one exchange, so
 * that the mean over steps is exact.
 */
#include <math.h>

#include "routing_internal.h"

void load_drift(double *load, uint32_t experts, double *budget, struct rng *rng)
{
    if (experts < 2)
        return;
    /* Loads that are nearly equal cannot move much: a bound on the pairs looked at. */
    for (uint32_t turn = 0; turn < 4 * experts && *budget > 0.0; turn++) {
        const uint32_t a = (uint32_t)rng_below(rng, experts);
        const uint32_t b = (uint32_t)rng_below(rng, experts);
        const double kept = load[a];
        load[a] = load[b];
        load[b] = kept;
        *budget -= fabs(load[a] - load[b]) / (double)experts;
    }
    *budget = fmin(*budget, 0.0);
}
