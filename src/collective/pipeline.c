/*
 * pipeline.c - while a block crosses to the next domain, the one before it goes round inside.
 *
 * p = p_inter * p_intra ranks. Reduce-scatter and all-gather take p_inter - 1 steps in which
 * a rank sends n / p outside and its mesh moves n / p on each link inside, and one more step
 * inside; an all-to-all moves n / p_inter outside per step and spreads as much inside.
 */
#include <math.h>

#include "collective_internal.h"

/* Time of one step inside, that brings `bytes` per rank to all its mesh. */
static double inner_step_s(const struct collective_level_ask *ask, double bytes)
{
    if (ask->inner.ranks <= 1)
        return 0.0;
    const struct collective_level_ask inner = {
        .alpha_s = ask->inner.alpha_s,
        .ramp_s = ask->inner.ramp_s,
        .bytes_per_s = ask->inner.bytes_per_s,
    };
    return collective_step_s(&inner, bytes);
}

static struct collective_level_cost cost(const struct collective_level_ask *ask)
{
    if (ask->ranks <= 1 && ask->inner.ranks <= 1)
        return (struct collective_level_cost){0};
    const double outer = ask->ranks;
    const double inner = ask->inner.ranks > 1 ? ask->inner.ranks : 1;
    const double loops = collective_loops(ask);
    const uint32_t passes = collective_passes(ask->kind);
    double outside = ask->bytes / outer / loops; /* per step */
    double inside = outside * (inner - 1.0) / inner;
    if (ask->kind != COLLECTIVE_ALL_TO_ALL)
        outside /= inner;

    const double step_s = fmax(collective_step_s(ask, outside), inner_step_s(ask, inside));
    const double pass_s = (outer - 1.0) * step_s + inner_step_s(ask, inside);
    const double wait_s =
        (outer - 1.0) * fmax(ask->alpha_s, inner > 1.0 ? ask->inner.alpha_s : 0.0) +
        (inner > 1.0 ? ask->inner.alpha_s : 0.0);
    return (struct collective_level_cost){
        .time_s = ask->launch_s + passes * loops * pass_s,
        .latency_s = ask->launch_s + passes * loops * wait_s,
        .sent_bytes = passes * loops * outside * (outer - 1.0),
        .inner_sent_bytes = passes * loops * inside * outer,
        .steps = passes * ask->ranks,
    };
}

const struct collective collective_pipeline = {
    .name = "pipeline",
    .title = "Domains and their insides overlapped",
    .formula = "(p_inter-1) max(n/p beta_inter + alpha_inter, n/p beta_intra + alpha_intra) + n/p "
               "beta_intra + alpha_intra; all-reduce twice",
    .kinds = KINDS_REDUCE | KIND_BIT(COLLECTIVE_ALL_TO_ALL),
    .peers = 1,
    .two_level = true,
    .cost = cost,
};
