/*
 * time_share.c - what every picosecond of the step was spent on.
 *
 * While the compute stream is busy, its op says what the time is. While it is idle, the
 * first cause in cause_priority that is running on the rank is what the rank waits for. If
 * none runs, a rank that has arrived at a collective of its stage waits for slower ranks of
 * the same stage, which is imbalance; else it waits for another stage: the bubble. Integer
 * sums, so the shares add up to the step exactly.
 */
#include "metrics_internal.h"

/* Innermost parallel dimension first: what is nearest to the compute stream blocks it. */
const enum time_cause cause_priority[CAUSE_PRIORITY_COUNT] = {
    CAUSE_TP, CAUSE_EP, CAUSE_CP, CAUSE_DP, CAUSE_SWAP, CAUSE_PP,
};

bool cause_is_comm(enum time_cause cause)
{
    for (unsigned i = 0; i < CAUSE_PRIORITY_COUNT; i++) {
        if (cause_priority[i] == cause) {
            return true;
        }
    }
    return false;
}

static enum time_cause slice_cause(const struct sweep_slice *slice)
{
    if (slice->running[STREAM_COMPUTE] != NULL) {
        return (enum time_cause)slice->running[STREAM_COMPUTE]->cause;
    }
    for (unsigned i = 0; i < CAUSE_PRIORITY_COUNT; i++) {
        for (unsigned s = 0; s < STREAM_COUNT; s++) {
            if (slice->running[s] != NULL && slice->running[s]->cause == cause_priority[i]) {
                return cause_priority[i];
            }
        }
    }
    return slice->waits_for_group ? CAUSE_IMBALANCE : CAUSE_BUBBLE;
}

void time_share_add(sim_time *share_ps, const struct sweep_slice *slice)
{
    const enum time_cause cause = slice_cause(slice);
    ASSERT(cause < CAUSE_COUNT);
    share_ps[cause] += slice->until - slice->from;
}

double bubble_measure(const struct programs *programs, const struct timeline *timeline,
                      struct arena *arena)
{
    double *simulated = ARENA_ARRAY(arena, programs->class_count, double);
    for (uint32_t r = 0; r < programs->rank_count; r++) {
        simulated[programs->ranks[r].rank_class] += 1.0;
    }
    /* Each simulated rank of a class stands for its share of the true ranks. */
    double busy_s = 0.0;
    double weight_sum = 0.0;
    for (uint32_t r = 0; r < programs->rank_count; r++) {
        const uint32_t c = programs->ranks[r].rank_class;
        const double weight = (double)programs->classes[c].rank_count / simulated[c];
        busy_s += sim_time_seconds(timeline->ranks[r].compute_busy) * weight;
        weight_sum += weight;
    }
    const double step_s = sim_time_seconds(timeline->end);
    ASSERT(step_s > 0.0 && weight_sum > 0.0);
    const double idle = 1.0 - busy_s / (weight_sum * step_s);
    ASSERT(idle > -1e-9);
    return idle > 0.0 ? idle : 0.0;
}
