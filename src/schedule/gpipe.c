/*
 * gpipe.c - all forwards, then all backwards (Huang et al., 1811.06965).
 *
 * Backwards run in the order of the forwards. The paper draws them in reverse; makespan
 * and memory are the same, because nothing is freed before the last forward.
 */
#include "schedule/schedule_internal.h"

extern const struct schedule schedule_gpipe;

static bool check(const struct schedule_ask *ask, struct location at, struct error_list *errors)
{
    const bool chunks = schedule_check_chunks(&schedule_gpipe, ask, at, errors);
    return schedule_check_microbatches(&schedule_gpipe, ask, 0, at, errors) && chunks;
}

static const struct pipeline_order *build(const struct schedule_ask *ask, struct arena *arena)
{
    struct schedule_draft draft = schedule_draft_begin(ask, 2 * ask->microbatches, arena);
    for (uint32_t s = 0; s < ask->pp; s++) {
        schedule_draft_stage(&draft, s);
        for (uint32_t i = 0; i < ask->microbatches; i++)
            schedule_draft_forward(&draft, 0);
        for (uint32_t i = 0; i < ask->microbatches; i++)
            schedule_draft_backward(&draft, 0);
    }
    return schedule_draft_finish(&draft);
}

static double makespan(const struct schedule_ask *ask, const struct schedule_times *times)
{
    const double pass = times->forward + times->backward_input + times->backward_weight;
    return ((double)ask->microbatches + (double)ask->pp - 1.0) * pass;
}

static uint32_t in_flight_max(const struct schedule_ask *ask, uint32_t stage)
{
    ASSERT(stage < ask->pp);
    return ask->microbatches;
}

const struct schedule schedule_gpipe = {
    .name = "gpipe",
    .title = "GPipe: all forwards, then all backwards",
    .bubble_formula = "(p-1)*(F+B+W), share (p-1)/(m+p-1)",
    .in_flight_formula = "m",
    .region = "everywhere",
    .vpp_min = 1,
    .vpp_max = 1,
    .check = check,
    .build = build,
    .makespan = makespan,
    .in_flight_max = in_flight_max,
};
