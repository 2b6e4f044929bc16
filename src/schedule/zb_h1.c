/*
 * zb_h1.c - zero bubble with the memory of 1F1B (Qi et al., 2401.10241).
 *
 * The order of 1F1B, with the backward split: stage s runs the weight gradient of a
 * microbatch s backwards later, so later stages hand their input gradient on early and keep
 * s weight gradients for the cool-down, where 1F1B waits. s delayed activations and p-s
 * awaiting their backward make p on every stage: what stage 0 of 1F1B holds.
 *
 * With q = min(m, p) the makespan is
 *     m*(F+B+W) + (q-1)*max(F, B, F+B-W) + (p-q)*(F+B)
 * for any durations. The published bubble (p-1)*(F+B-W) is the case m >= p, W <= min(F, B).
 */
#include <math.h>

#include "schedule/schedule_internal.h"

extern const struct schedule schedule_zb_h1;

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static bool check(const struct schedule_ask *ask, struct location at, struct error_list *errors)
{
    const bool chunks = schedule_check_chunks(&schedule_zb_h1, ask, at, errors);
    return schedule_check_microbatches(&schedule_zb_h1, ask, 0, at, errors) && chunks;
}

static const struct pipeline_order *build(const struct schedule_ask *ask, struct arena *arena)
{
    struct schedule_draft draft = schedule_draft_begin(ask, 3 * ask->microbatches, arena);
    for (uint32_t s = 0; s < ask->pp; s++) {
        schedule_draft_stage(&draft, s);
        for (uint32_t i = 0; i < ask->pp - 1 - s; i++)
            schedule_draft_forward(&draft, 0);
        for (uint32_t i = 0; i < ask->microbatches; i++) {
            schedule_draft_forward(&draft, 0);
            schedule_draft_input_gradient(&draft, 0);
            if (i >= s)
                schedule_draft_weight_gradient(&draft);
        }
        while (schedule_draft_weight_gradient(&draft))
            ;
    }
    return schedule_draft_finish(&draft);
}

static double makespan(const struct schedule_ask *ask, const struct schedule_times *times)
{
    const double f = times->forward;
    const double b = times->backward_input;
    const double w = times->backward_weight;
    const double filled = (double)smaller(ask->microbatches, ask->pp);
    const double step = fmax(fmax(f, b), f + b - w);
    return (double)ask->microbatches * (f + b + w) + (filled - 1.0) * step +
           ((double)ask->pp - filled) * (f + b);
}

static uint32_t in_flight_max(const struct schedule_ask *ask, uint32_t stage)
{
    ASSERT(stage < ask->pp);
    return smaller(ask->microbatches, ask->pp);
}

const struct schedule schedule_zb_h1 = {
    .name = "zb_h1",
    .title = "Zero bubble H1: 1F1B with delayed weight gradients",
    .bubble_formula = "(p-1)*max(F, B, F+B-W) where m >= p",
    .in_flight_formula = "min(m, p)",
    .region = "everywhere",
    .splits_backward = true,
    .vpp_min = 1,
    .vpp_max = 1,
    .check = check,
    .build = build,
    .makespan = makespan,
    .in_flight_max = in_flight_max,
};
