/*
 * interleaved.c - interleaved 1F1B on vpp chunks per stage (Narayanan et al., 2104.04473),
 * in the order that Megatron-LM runs, with its microbatch group.
 *
 * The last stage is busy from its first forward to its last backward, which again makes
 * the makespan hold for any durations and any group of at least pp.
 */
#include "schedule/schedule_internal.h"

extern const struct schedule schedule_interleaved;

static bool check(const struct schedule_ask *ask, struct location at, struct error_list *errors)
{
    const bool chunks = schedule_check_chunks(&schedule_interleaved, ask, at, errors);
    return schedule_check_microbatches(&schedule_interleaved, ask, 1, at, errors) &&
           schedule_check_group(ask, at, errors) && chunks;
}

static const struct pipeline_order *build(const struct schedule_ask *ask, struct arena *arena)
{
    const uint32_t turns = ask->vpp * ask->microbatches;
    struct schedule_draft draft = schedule_draft_begin(ask, 2 * turns, arena);
    for (uint32_t s = 0; s < ask->pp; s++) {
        schedule_draft_stage(&draft, s);
        const uint32_t warmup = schedule_turn_warmup(ask, s, 0);
        for (uint32_t i = 0; i < warmup; i++)
            schedule_draft_forward(&draft, schedule_turn_forward_chunk(ask, i));
        for (uint32_t i = 0; i < turns; i++) {
            if (warmup + i < turns)
                schedule_draft_forward(&draft, schedule_turn_forward_chunk(ask, warmup + i));
            schedule_draft_backward(&draft, schedule_turn_backward_chunk(ask, i));
        }
    }
    return schedule_draft_finish(&draft);
}

static double makespan(const struct schedule_ask *ask, const struct schedule_times *times)
{
    const double pass = times->forward + times->backward_input + times->backward_weight;
    const double turns = (double)ask->vpp * (double)ask->microbatches;
    return (turns + (double)ask->pp - 1.0) * pass;
}

/* The warm-up and the forward before the first backward. */
static uint32_t in_flight_max(const struct schedule_ask *ask, uint32_t stage)
{
    return schedule_turn_warmup(ask, stage, 1);
}

const struct schedule schedule_interleaved = {
    .name = "interleaved",
    .title = "Interleaved 1F1B on virtual stages",
    .bubble_formula = "(p-1)*(F+B+W) of a chunk, share (p-1)/(v*m+p-1)",
    .in_flight_formula = "min(v*m, (v-1)*g + 2*(p-1-s) + 1)",
    .region = "everywhere",
    .vpp_min = 2,
    .vpp_max = 0,
    .check = check,
    .build = build,
    .makespan = makespan,
    .in_flight_max = in_flight_max,
};
