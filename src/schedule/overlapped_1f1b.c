/*
 * overlapped_1f1b.c - interleaved 1F1B whose steady state consists of FB pairs: the forward
 * of one microbatch overlapped with the backward of another ("adaptive pipe overlap";
 * MindSpeed's moe-fb-overlap on virtual stages, Megatron's combined 1F1B).
 *
 * In plain interleaved 1F1B the forward of a turn may be what its backward needs, so the
 * two cannot run together. One forward more in the warm-up makes them independent, and
 * costs one chunk activation. A pair on the last stage is followed at once by the next, so
 * the makespan is the way to the last stage, its vpp*m turns, of which all but (vpp-1)*g + 1
 * run as pairs, and the way back.
 *
 * MindSpeed wants a global batch above dp*pp*micro_batch_size with virtual stages, and runs
 * a pipeline only with virtual stages; one stage without chunks is legal.
 */
#include <math.h>

#include "schedule/schedule_internal.h"

extern const struct schedule schedule_overlapped_1f1b;

/* Legal counts are the multiples of the group above pp. */
static bool check_above_pp(const struct schedule_ask *ask, struct location at,
                           struct error_list *errors)
{
    if (ask->vpp < 2 || ask->microbatches > ask->pp)
        return true;
    const uint32_t group = schedule_turn_group(ask);
    const uint32_t smallest = group > ask->pp ? group : 2 * ask->pp;
    error_add(errors, ERROR_fb_overlap_gbs_not_above_dp_pp_mbs, at, "schedule.kind",
              "overlapped_1f1b on virtual stages needs training.global_batch_size above dp * pp * "
              "micro_batch_size, so more than %u microbatches per replica, there are %u: raise it "
              "to %u * micro_batch_size * dp, lower dp or pp, or use interleaved, which runs pp "
              "microbatches",
              ask->pp, ask->microbatches, smallest);
    return false;
}

static bool check(const struct schedule_ask *ask, struct location at, struct error_list *errors)
{
    struct schedule wanted = schedule_overlapped_1f1b;
    if (ask->pp > 1)
        wanted.vpp_min = 2;
    const bool chunks = schedule_check_chunks(&wanted, ask, at, errors);
    return schedule_check_microbatches(&wanted, ask, 0, at, errors) &&
           check_above_pp(ask, at, errors) && chunks && schedule_check_group(ask, at, errors);
}

static const struct pipeline_order *build(const struct schedule_ask *ask, struct arena *arena)
{
    const uint32_t turns = ask->vpp * ask->microbatches;
    struct schedule_draft draft = schedule_draft_begin(ask, 2 * turns, arena);
    for (uint32_t s = 0; s < ask->pp; s++) {
        schedule_draft_stage(&draft, s);
        const uint32_t warmup = schedule_turn_warmup(ask, s, 1);
        const uint32_t pairs = turns - warmup;
        for (uint32_t i = 0; i < warmup; i++)
            schedule_draft_forward(&draft, schedule_turn_forward_chunk(ask, i));
        for (uint32_t i = 0; i < pairs; i++)
            schedule_draft_pair(&draft, schedule_turn_forward_chunk(ask, warmup + i),
                                schedule_turn_backward_chunk(ask, i));
        for (uint32_t i = pairs; i < turns; i++)
            schedule_draft_backward(&draft, schedule_turn_backward_chunk(ask, i));
    }
    return schedule_draft_finish(&draft);
}

static double makespan(const struct schedule_ask *ask, const struct schedule_times *times)
{
    const double backward = times->backward_input + times->backward_weight;
    if (times->overlapped < times->forward || times->overlapped < backward)
        return (double)NAN;
    const double lead = (double)(ask->vpp - 1) * (double)schedule_turn_group(ask);
    const double turns = (double)ask->vpp * (double)ask->microbatches;
    return (lead + (double)ask->pp) * (times->forward + backward) +
           (turns - lead - 1.0) * times->overlapped;
}

/* The warm-up with its extra forward, and the forward of the first pair. */
static uint32_t in_flight_max(const struct schedule_ask *ask, uint32_t stage)
{
    return schedule_turn_warmup(ask, stage, 2);
}

const struct schedule schedule_overlapped_1f1b = {
    .name = "overlapped_1f1b",
    .title = "Interleaved 1F1B with forward and backward of two microbatches overlapped",
    .bubble_formula = "(p-1)*(F+B+W) of a chunk, as interleaved; of the v*m turns, "
                      "v*m-(v-1)*g-1 are pairs that take D",
    .in_flight_formula = "min(v*m, (v-1)*g + 2*(p-1-s) + 2)",
    .region = "D >= max(F, B+W)",
    .overlaps = true,
    .vpp_min = 1,
    .vpp_max = 0,
    .check = check,
    .build = build,
    .makespan = makespan,
    .in_flight_max = in_flight_max,
};
