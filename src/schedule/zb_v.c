/*
 * zb_v.c - zero bubble on a V: two chunks per stage, the second on the way back, with the
 * backward split (Qi et al., 2405.15362). First and last chunk of the model share stage 0.
 *
 * Order of stage s, chunk 0 going up, chunk 1 coming back, every W right after its input
 * gradient except where the drain needs the gradients first:
 *   fill      2*(p-s)-1 times F0; s times (F1 F0); p-s times (F1 B1 W)
 *   steady    (F0 B0 W F1 B1 W) until every forward is issued
 *   drain     s times (B0 B1); p-s times (B0 W); the weight gradients left
 * It is written for at least 2p-1 microbatches; with fewer, the missing ones are left out.
 *
 * Alive: after the fill of chunk 0, stage s holds 2p-1-s of chunk 0 and s+1 of chunk 1,
 * together 2p half-size activations, the memory of p whole ones in 1F1B. No later point
 * passes it.
 *
 * Makespan 2m*(F+B+W) + bubble. For m >= 2p-1 and p >= 2 the bubble is the largest of the
 * delays that eight chains of actions add to the work of a stage:
 *     (p-1)*B                      the gradient's way up the stages in the fill
 *     F + (p-2)*W, B + (p-2)*W     the same, held up by weight gradients
 *     2*(p-1)*(B-W)                input gradients of the drain that outlast its W
 *     2*(p-1)*F - (p-1)*B - W      forwards of the fill that are longer than gradients
 *     2*(p-1)*F - (2*p-1)*W
 *     (2*p-3)*F - (p-2)*B
 *     (2*p-3)*F + B - 2*(p-1)*W
 * It is (p-1)*B where F <= B, W <= B <= 2W, hence p-1 slots for F = B = W: each stage waits
 * s slots for its first forward and p-1-s in the drain, and never between. For m <= p one
 * round trip dominates and every microbatch beyond the first adds a fixed time. Between p
 * and 2p-1 the chains mix with no closed form, and the makespan is NAN.
 */
#include <math.h>

#include "schedule/schedule_internal.h"

extern const struct schedule schedule_zb_v;

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static bool check(const struct schedule_ask *ask, struct location at, struct error_list *errors)
{
    const bool chunks = schedule_check_chunks(&schedule_zb_v, ask, at, errors);
    return schedule_check_microbatches(&schedule_zb_v, ask, 0, at, errors) && chunks;
}

static void backward_and_weight(struct schedule_draft *draft, uint32_t chunk)
{
    schedule_draft_input_gradient(draft, chunk);
    schedule_draft_weight_gradient(draft);
}

static void write_stage(struct schedule_draft *draft, const struct schedule_ask *ask,
                        uint32_t stage)
{
    const uint32_t behind = ask->pp - stage; /* stages from this one to the turn of the V */
    for (uint32_t i = 0; i < 2 * behind - 1; i++)
        schedule_draft_forward(draft, 0);
    for (uint32_t i = 0; i < stage; i++) {
        schedule_draft_forward(draft, 1);
        schedule_draft_forward(draft, 0);
    }
    for (uint32_t i = 0; i < behind; i++) {
        schedule_draft_forward(draft, 1);
        backward_and_weight(draft, 1);
    }
    /* The fill has issued pp forwards of chunk 1. */
    for (uint32_t i = ask->pp; i < ask->microbatches || i < 2 * ask->pp - 1; i++) {
        schedule_draft_forward(draft, 0);
        backward_and_weight(draft, 0);
        schedule_draft_forward(draft, 1);
        backward_and_weight(draft, 1);
    }
    for (uint32_t i = 0; i < stage; i++) {
        schedule_draft_input_gradient(draft, 0);
        schedule_draft_input_gradient(draft, 1);
    }
    for (uint32_t i = 0; i < behind; i++)
        backward_and_weight(draft, 0);
    while (schedule_draft_weight_gradient(draft))
        ;
}

static const struct pipeline_order *build(const struct schedule_ask *ask, struct arena *arena)
{
    struct schedule_draft draft = schedule_draft_begin(ask, 6 * ask->microbatches, arena);
    for (uint32_t s = 0; s < ask->pp; s++) {
        schedule_draft_stage(&draft, s);
        write_stage(&draft, ask, s);
    }
    return schedule_draft_finish(&draft);
}

/* m >= 2p-1, p >= 2 */
static double bubble_filled(double p, double f, double b, double w)
{
    const double chains[] = {
        (p - 1.0) * b,
        f + (p - 2.0) * w,
        b + (p - 2.0) * w,
        2.0 * (p - 1.0) * (b - w),
        2.0 * (p - 1.0) * f - (p - 1.0) * b - w,
        2.0 * (p - 1.0) * f - (2.0 * p - 1.0) * w,
        (2.0 * p - 3.0) * f - (p - 2.0) * b,
        (2.0 * p - 3.0) * f + b - 2.0 * (p - 1.0) * w,
    };
    double largest = chains[0];
    for (size_t i = 1; i < sizeof(chains) / sizeof(chains[0]); i++)
        largest = fmax(largest, chains[i]);
    return largest;
}

static double makespan(const struct schedule_ask *ask, const struct schedule_times *times)
{
    const double f = times->forward;
    const double b = times->backward_input;
    const double w = times->backward_weight;
    const double p = (double)ask->pp;
    const double m = (double)ask->microbatches;
    const double work = 2.0 * m * (f + b + w);
    if (ask->pp == 1)
        return work;
    if (ask->microbatches >= 2 * ask->pp - 1)
        return work + bubble_filled(p, f, b, w);
    if (ask->microbatches > ask->pp)
        return (double)NAN;
    const double hidden = fmin(fmin(2.0 * f, f + b), fmin(3.0 * b + w, 2.0 * (b + w)));
    return work + 2.0 * (p - 1.0) * (f + b) - (m - 1.0) * hidden;
}

static uint32_t in_flight_max(const struct schedule_ask *ask, uint32_t stage)
{
    ASSERT(stage < ask->pp);
    return smaller(ask->microbatches, 2 * ask->pp - 1 - stage) +
           smaller(ask->microbatches, stage + 1);
}

const struct schedule schedule_zb_v = {
    .name = "zb_v",
    .title = "Zero bubble V: two chunks per stage, split backward",
    .bubble_formula = "(p-1)*B where m >= 2p-1, F <= B, W <= B <= 2W",
    .in_flight_formula = "min(m, 2p-1-s) + min(m, s+1), at most 2p",
    .region = "m <= p or m >= 2p-1",
    .v_shaped = true,
    .splits_backward = true,
    .vpp_min = 2,
    .vpp_max = 2,
    .check = check,
    .build = build,
    .makespan = makespan,
    .in_flight_max = in_flight_max,
};
