/*
 * halving_doubling.c - recursive halving and doubling.
 *
 * With p a power of two: log2 p steps, and each rank moves n (p-1)/p. Otherwise the p - p'
 * ranks beyond the largest power p' hand their tensor to a partner first and get the result
 * back, which is one more step and n more bytes in each pass (HCCL documentation).
 */
#include "collective_internal.h"

static struct collective_level_cost cost(const struct collective_level_ask *ask)
{
    const uint32_t log_ceil = collective_log2_ceil(ask->ranks);
    const uint32_t power = 1u << log_ceil;
    const uint32_t passes = collective_passes(ask->kind);
    if (power == ask->ranks) {
        const double share = ((double)power - 1.0) / power;
        return collective_steps(ask, passes * log_ceil, passes * ask->bytes * share);
    }
    const double core = power / 2.0;
    const double share = (core - 1.0) / core + 1.0;
    return collective_steps(ask, passes * log_ceil, passes * ask->bytes * share);
}

const struct collective collective_halving_doubling = {
    .name = "halving_doubling",
    .title = "Recursive halving and doubling",
    .formula = "log2(p) alpha + n (p-1)/p beta; p no power of two: (floor(log2 p) + 1) alpha + n "
               "((p'-1)/p' + 1) beta; all-reduce twice",
    .kinds = KINDS_REDUCE,
    .peers = 1,
    .cost = cost,
};
