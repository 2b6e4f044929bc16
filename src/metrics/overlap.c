/*
 * overlap.c - how much of the communication hides behind computation.
 *
 * Communication of one kind runs while any op with that cause runs on the rank. It is
 * exposed while the compute stream is idle (or itself runs such an op) and no cause before it
 * in cause_priority runs: the picosecond that time_share gives to it. Both are times, not
 * sums over ops: two messages at once count once.
 */
#include "metrics_internal.h"

/* The first running op of this cause, or NULL. */
static const struct program_op *running_op(const struct sweep_slice *slice, enum time_cause cause)
{
    for (unsigned s = 0; s < STREAM_COUNT; s++) {
        if (slice->running[s] != NULL && slice->running[s]->cause == cause) {
            return slice->running[s];
        }
    }
    return NULL;
}

void overlap_add(struct overlap *overlap, const struct program_label *labels,
                 const struct sweep_slice *slice)
{
    const struct program_op *compute = slice->running[STREAM_COMPUTE];
    const sim_time length = slice->until - slice->from;
    bool idle = compute == NULL || cause_is_comm((enum time_cause)compute->cause);
    for (unsigned i = 0; i < CAUSE_PRIORITY_COUNT; i++) {
        const enum time_cause cause = cause_priority[i];
        const struct program_op *op = running_op(slice, cause);
        if (op == NULL) {
            continue;
        }
        const unsigned phase = labels[op->label].phase;
        ASSERT(phase < PHASE_COUNT);
        overlap->total_ps[cause][phase] += length;
        overlap->exposed_ps[cause][phase] += idle ? length : 0;
        idle = false; /* claimed */
    }
}

void overlap_finish(const struct overlap *overlap, struct comm_report *comm)
{
    for (unsigned c = 0; c < CAUSE_COUNT; c++) {
        sim_time total = 0;
        sim_time exposed = 0;
        for (unsigned p = 0; p < PHASE_COUNT; p++) {
            const sim_time phase_ps = overlap->total_ps[c][p];
            total += phase_ps;
            exposed += overlap->exposed_ps[c][p];
            comm[c].exposed_share[p] =
                phase_ps > 0 ? (double)overlap->exposed_ps[c][p] / (double)phase_ps : 0.0;
        }
        ASSERT(exposed <= total);
        comm[c].total_s = sim_time_seconds(total);
        comm[c].exposed_s = sim_time_seconds(exposed);
    }
}
