/*
 * collective_steps.c - steps, loops and the mesh inside: the parts of the algorithms' formulas.
 */
#include <math.h>

#include "collective_internal.h"

#include "stepsim/error.h"

double collective_step_s(const struct collective_level_ask *ask, double bytes)
{
    const double move_s = bytes / ask->bytes_per_s;
    const double ramp_s = move_s > 0.0 ? ask->ramp_s * move_s / (move_s + ask->ramp_s) : 0.0;
    return ask->alpha_s + move_s + ramp_s;
}

double collective_loops(const struct collective_level_ask *ask)
{
    if (ask->buffer_bytes <= 0.0)
        return 1.0;
    return fmax(1.0, ceil(ask->bytes / ask->buffer_bytes));
}

uint32_t collective_passes(enum collective_kind kind)
{
    return kind == COLLECTIVE_ALL_REDUCE ? 2 : 1;
}

uint32_t collective_log2_ceil(uint32_t ranks)
{
    ASSERT(ranks >= 1);
    uint32_t log = 0;
    while ((uint64_t)1 << log < ranks)
        log++;
    return log;
}

struct collective_level_cost collective_steps(const struct collective_level_ask *ask,
                                              uint32_t steps, double bytes)
{
    ASSERT(ask->bytes_per_s > 0.0);
    if (ask->ranks <= 1)
        return (struct collective_level_cost){0};
    struct collective_level_cost cost = {
        .time_s = ask->launch_s,
        .latency_s = ask->launch_s,
        .sent_bytes = bytes,
        .steps = steps,
    };
    ASSERT(steps > 0);
    const double count = collective_loops(ask) * steps;
    cost.time_s += count * collective_step_s(ask, bytes / count);
    cost.latency_s += count * ask->alpha_s;
    return cost;
}

void collective_add_inner_mesh(const struct collective_level_ask *ask, enum collective_kind kind,
                               double bytes, struct collective_level_cost *cost)
{
    if (ask->inner.ranks <= 1)
        return;
    const struct collective_level_ask inside = {
        .kind = kind,
        .bytes = bytes,
        .ranks = ask->inner.ranks,
        .alpha_s = ask->inner.alpha_s,
        .ramp_s = ask->inner.ramp_s,
        .bytes_per_s = ask->inner.bytes_per_s,
        .buffer_bytes = ask->buffer_bytes,
    };
    const struct collective_level_cost mesh = collective_mesh.cost(&inside);
    cost->time_s += mesh.time_s;
    cost->latency_s += mesh.latency_s;
    cost->inner_sent_bytes += mesh.sent_bytes;
    cost->steps += mesh.steps;
}
