/*
 * one_f_one_b.c - 1F1B: stage s runs pp-1-s forwards, then one forward and one backward in
 * turn (PipeDream-Flush, Narayanan et al., 2006.09503).
 *
 * Fewer microbatches than stages are legal: the warm-up of the first stages then holds all
 * of them. The last stage is busy from its first forward to its last backward, so the
 * makespan is the way to it, its own work, and the way back, for any durations.
 */
#include "schedule/schedule_internal.h"

extern const struct schedule schedule_one_f_one_b;

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static bool check(const struct schedule_ask *ask, struct location at, struct error_list *errors)
{
    const bool chunks = schedule_check_chunks(&schedule_one_f_one_b, ask, at, errors);
    return schedule_check_microbatches(&schedule_one_f_one_b, ask, 0, at, errors) && chunks;
}

static const struct pipeline_order *build(const struct schedule_ask *ask, struct arena *arena)
{
    struct schedule_draft draft = schedule_draft_begin(ask, 2 * ask->microbatches, arena);
    for (uint32_t s = 0; s < ask->pp; s++) {
        schedule_draft_stage(&draft, s);
        const uint32_t warmup = smaller(ask->pp - 1 - s, ask->microbatches);
        for (uint32_t i = 0; i < warmup; i++)
            schedule_draft_forward(&draft, 0);
        for (uint32_t i = 0; i < ask->microbatches; i++) {
            schedule_draft_forward(&draft, 0);
            schedule_draft_backward(&draft, 0);
        }
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
    return smaller(ask->microbatches, ask->pp - stage);
}

const struct schedule schedule_one_f_one_b = {
    .name = "1f1b",
    .title = "1F1B: one forward and one backward in turn",
    .bubble_formula = "(p-1)*(F+B+W), share (p-1)/(m+p-1)",
    .in_flight_formula = "min(m, p-s)",
    .region = "everywhere",
    .vpp_min = 1,
    .vpp_max = 1,
    .check = check,
    .build = build,
    .makespan = makespan,
    .in_flight_max = in_flight_max,
};
