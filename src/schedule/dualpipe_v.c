/*
 * dualpipe_v.c - DualPipe cut in half: two chunks per stage on a V, forward and backward of
 * different microbatches overlapped, backwards split where that shortens fill and drain
 * (DeepSeek-V3, 2412.19437, and its published DualPipeV).
 *
 * Order of stage s, with k = p-1-s stages between it and the turn of the V; FxBy is a pair,
 * B a full backward, b an input gradient, W the oldest weight gradient waiting:
 *   1  2k times F0
 *   2  s+1 times (F0 F1)
 *   3  k times (b1 W F1)
 *   4  m-2p+s+1 times (F0B1 F1B0); the first F0B1 of the last stage runs as F0 then B1,
 *      because B1 would hold up an F0 that is there already
 *   5  k times (B1 F1B0)
 *   6  s+1 times (B1 B0), split from the middle on
 *   7  k times (W b0)
 *   8  s+1 times W
 *
 * The makespan is the longest chain, which runs through the last stage (p-1, the turn):
 *   max(3p*F, 2p*F + (p-1)*B)   until its first B1: p-1 forwards on the way to it and 2p+1
 *                               of its own, or the first microbatch's 2p forwards around
 *                               the V and p-1 gradients up
 *   (B+W) + (2m-2p-1)*D         the B1 and the pairs of step 4
 *   (p-1)*D + (B+W)             the last forward down to stage 0 in pairs, its B1 there
 *   p*B + (p-1)*max(B, W) + W   gradients up (p-1), the turn (1), down again between the
 *                               weight gradients of step 7 (p-1), the last W of stage 0
 * as long as a pair takes at least as long as either half alone. docs/NOTATION.md shows how
 * the two published bubbles follow from it.
 */
#include <math.h>

#include "schedule/schedule_internal.h"

extern const struct schedule schedule_dualpipe_v;

static bool check_layers(const struct schedule_ask *ask, struct location at,
                         struct error_list *errors)
{
    const uint32_t multiple = 2 * ask->pp;
    const uint32_t rest = ask->layer_slots % multiple;
    if (rest == 0)
        return true;
    error_add(errors, ERROR_layers_not_divisible_by_pp, at, "schedule.kind",
              "dualpipe_v needs a multiple of 2*pp = %u layer slots, there are %u: add %u no-op "
              "layers for %u slots, change pp, or use zb_v",
              multiple, ask->layer_slots, multiple - rest, ask->layer_slots + multiple - rest);
    return false;
}

static bool check(const struct schedule_ask *ask, struct location at, struct error_list *errors)
{
    const bool chunks = schedule_check_chunks(&schedule_dualpipe_v, ask, at, errors);
    const bool microbatches = schedule_check_microbatches(&schedule_dualpipe_v, ask, 2, at, errors);
    return check_layers(ask, at, errors) && microbatches && chunks;
}

/* Steps 1 to 3. */
static void write_fill(struct schedule_draft *draft, uint32_t stage, uint32_t behind)
{
    for (uint32_t i = 0; i < 2 * behind; i++)
        schedule_draft_forward(draft, 0);
    for (uint32_t i = 0; i < stage + 1; i++) {
        schedule_draft_forward(draft, 0);
        schedule_draft_forward(draft, 1);
    }
    for (uint32_t i = 0; i < behind; i++) {
        schedule_draft_input_gradient(draft, 1);
        schedule_draft_weight_gradient(draft);
        schedule_draft_forward(draft, 1);
    }
}

/* Steps 4 and 5. */
static void write_steady(struct schedule_draft *draft, uint32_t behind, uint32_t rounds)
{
    for (uint32_t i = 0; i < rounds; i++) {
        if (i == 0 && behind == 0) {
            schedule_draft_forward(draft, 0);
            schedule_draft_backward(draft, 1);
        } else {
            schedule_draft_pair(draft, 0, 1);
        }
        schedule_draft_pair(draft, 1, 0);
    }
    for (uint32_t i = 0; i < behind; i++) {
        schedule_draft_backward(draft, 1);
        schedule_draft_pair(draft, 1, 0);
    }
}

/* Steps 6 to 8. Of the 2*(s+1) backwards of step 6 the second half is split. */
static void write_drain(struct schedule_draft *draft, uint32_t stage, uint32_t behind)
{
    for (uint32_t i = 0; i < 2 * (stage + 1); i++) {
        const uint32_t chunk = i % 2 == 0 ? 1 : 0;
        if (i <= stage)
            schedule_draft_backward(draft, chunk);
        else
            schedule_draft_input_gradient(draft, chunk);
    }
    for (uint32_t i = 0; i < behind; i++) {
        schedule_draft_weight_gradient(draft);
        schedule_draft_input_gradient(draft, 0);
    }
    while (schedule_draft_weight_gradient(draft))
        ;
}

static const struct pipeline_order *build(const struct schedule_ask *ask, struct arena *arena)
{
    const uint32_t capacity = 4 * ask->microbatches + 2 * ask->pp; /* at most 2p split */
    struct schedule_draft draft = schedule_draft_begin(ask, capacity, arena);
    ASSERT(ask->microbatches >= 2 * ask->pp);
    for (uint32_t s = 0; s < ask->pp; s++) {
        const uint32_t behind = ask->pp - 1 - s;
        schedule_draft_stage(&draft, s);
        write_fill(&draft, s, behind);
        write_steady(&draft, behind, ask->microbatches - 2 * ask->pp + s + 1);
        write_drain(&draft, s, behind);
    }
    return schedule_draft_finish(&draft);
}

static double makespan(const struct schedule_ask *ask, const struct schedule_times *times)
{
    const double f = times->forward;
    const double b = times->backward_input;
    const double w = times->backward_weight;
    const double pair = times->overlapped;
    const double p = (double)ask->pp;
    if (pair < f || pair < b + w)
        return (double)NAN;
    return (2.0 * (double)ask->microbatches - p - 2.0) * pair + 2.0 * p * f + (p + 2.0) * b +
           3.0 * w + fmax(p * f, (p - 1.0) * b) + (p - 1.0) * fmax(b, w);
}

/* 2p-1-s of chunk 0 and s+1 of chunk 1 after step 2, one more while a pair runs. */
static uint32_t in_flight_max(const struct schedule_ask *ask, uint32_t stage)
{
    ASSERT(stage < ask->pp);
    return 2 * ask->pp + 1;
}

const struct schedule schedule_dualpipe_v = {
    .name = "dualpipe_v",
    .title = "DualPipeV: overlapped forward and backward on a V",
    .bubble_formula = "(p-1)*(D+B-2W) - F on the last stage where p*F <= (p-1)*B and W <= B",
    .in_flight_formula = "2p+1",
    .region = "D >= max(F, B+W)",
    .v_shaped = true,
    .splits_backward = true,
    .overlaps = true,
    .vpp_min = 2,
    .vpp_max = 2,
    .check = check,
    .build = build,
    .makespan = makespan,
    .in_flight_max = in_flight_max,
};
