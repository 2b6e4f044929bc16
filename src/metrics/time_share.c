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

/* The stream whose op the slice is counted as; STREAM_COUNT if nothing runs. */
static unsigned claiming_stream(const struct sweep_slice *slice)
{
    if (slice->running[STREAM_COMPUTE] != NULL)
        return STREAM_COMPUTE;
    for (unsigned i = 0; i < CAUSE_PRIORITY_COUNT; i++) {
        for (unsigned s = 0; s < STREAM_COUNT; s++) {
            if (slice->running[s] != NULL && slice->running[s]->cause == cause_priority[i])
                return s;
        }
    }
    return STREAM_COUNT;
}

void time_share_add(struct time_share *share, const struct sweep_slice *slice)
{
    const sim_time length = slice->until - slice->from;
    const unsigned stream = claiming_stream(slice);
    if (stream == STREAM_COUNT) {
        share->all_ps[slice->waits_for_group ? CAUSE_IMBALANCE : CAUSE_BUBBLE] += length;
        return;
    }
    const struct program_op *op = slice->running[stream];
    ASSERT(op->cause < CAUSE_COUNT);
    share->all_ps[op->cause] += length;
    if (share->balanced_ps == NULL || slice->length[stream] <= 0)
        return;
    const double excess =
        1.0 - (double)share->balanced_ps[op->duration] / (double)slice->length[stream];
    if (excess > 0.0 && op->kind != PROGRAM_OP_RECV && op->kind != PROGRAM_OP_SEND)
        share->excess_ps[op->cause] += (sim_time)((double)length * excess);
}

/*
 * Balance would take end - balanced_end off the step. It is taken from where it can be seen:
 * the excess of this rank's own ops and its waits for ranks of its stage, in proportion if
 * they are more than that; what is missing is in the bubble, since other stages were late.
 */
void time_share_finish(const struct time_share *share, sim_time end, sim_time balanced_end,
                       sim_time *share_ps)
{
    sim_time seen = share->all_ps[CAUSE_IMBALANCE];
    for (unsigned c = 0; c < CAUSE_COUNT; c++) {
        share_ps[c] = share->all_ps[c];
        seen += share->excess_ps[c];
    }
    if (balanced_end == 0)
        return;
    const sim_time gain = end > balanced_end ? end - balanced_end : 0;
    const double part = seen > gain ? (double)gain / (double)seen : 1.0;
    const sim_time waits = (sim_time)((double)share->all_ps[CAUSE_IMBALANCE] * part);
    share_ps[CAUSE_BUBBLE] += share_ps[CAUSE_IMBALANCE] - waits;
    share_ps[CAUSE_IMBALANCE] = waits;
    for (unsigned c = 0; c < CAUSE_COUNT; c++) {
        const sim_time taken = (sim_time)((double)share->excess_ps[c] * part);
        share_ps[c] -= taken;
        share_ps[CAUSE_IMBALANCE] += taken;
    }
    const sim_time missing = gain - share_ps[CAUSE_IMBALANCE];
    const sim_time rest = missing < share_ps[CAUSE_BUBBLE] ? missing : share_ps[CAUSE_BUBBLE];
    if (rest > 0) {
        share_ps[CAUSE_BUBBLE] -= rest;
        share_ps[CAUSE_IMBALANCE] += rest;
    }
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
