/*
 * metrics_internal.h - what the files of src/metrics share.
 *
 * The measures of time walk one observed rank with a sweep: slices of the step between
 * which nothing starts or ends on any stream of that rank.
 */
#ifndef STEPSIM_METRICS_INTERNAL_H
#define STEPSIM_METRICS_INTERNAL_H

#include "stepsim/report.h"
#include "stepsim/text.h"

/* One slice: the op that runs on each stream, NULL where the stream is idle or waits. */
struct sweep_slice {
    sim_time from, until; /* from < until */
    const struct program_op *running[STREAM_COUNT];
    sim_time length[STREAM_COUNT]; /* of a running op: what its duration turned out to be */
    /* A collective among ranks of this stage that has arrived and waits for the others. */
    bool waits_for_group;
};

struct sweep {
    const struct programs *programs;
    const struct program *program;
    const sim_time *durations_ps; /* of the class of the rank */
    const struct observed_rank *times;
    const sim_time *transfer_ps; /* per recv ordinal: how long its message is on the wire */
    sim_time now, end;
    uint32_t next[STREAM_COUNT];
};

/*
 * Starts at time 0 and ends with the step. A recv counts as running only while its message
 * is on the wire: for the duration of the send that feeds it, backwards from its end.
 */
void sweep_init(struct sweep *sweep, const struct programs *programs,
                const struct timeline *timeline, const struct observed_rank *times,
                struct arena *arena);
/* False when the step is over. */
bool sweep_next(struct sweep *sweep, struct sweep_slice *slice);

/* The observed rank with the longest busy compute stream; ties go to the first. */
const struct observed_rank *observed_busiest(const struct timeline *timeline);

/* Order in which causes claim a picosecond while the compute stream is idle. */
#define CAUSE_PRIORITY_COUNT 6
extern const enum time_cause cause_priority[CAUSE_PRIORITY_COUNT];
/* Is it one of them: communication or a copy. */
bool cause_is_comm(enum time_cause cause);

/* Picoseconds by cause, and what of them is the excess of an op over perfect balance. */
struct time_share {
    const sim_time *balanced_ps; /* by duration index; NULL: all loads are equal */
    sim_time all_ps[CAUSE_COUNT], excess_ps[CAUSE_COUNT];
};
void time_share_add(struct time_share *share, const struct sweep_slice *slice);
/* Fills share_ps[CAUSE_COUNT], which sums to the step. balanced_end 0: no such reference. */
void time_share_finish(const struct time_share *share, sim_time end, sim_time balanced_end,
                       sim_time *share_ps);

/* Time with communication running, and exposed, by cause and phase; starts zeroed. */
struct overlap {
    sim_time total_ps[CAUSE_COUNT][PHASE_COUNT], exposed_ps[CAUSE_COUNT][PHASE_COUNT];
};
void overlap_add(struct overlap *overlap, const struct program_label *labels,
                 const struct sweep_slice *slice);
/* Fills comm[CAUSE_COUNT] except bytes_per_device. */
void overlap_finish(const struct overlap *overlap, struct comm_report *comm);

/* Idle share of all compute streams, weighted by the ranks of each class. */
double bubble_measure(const struct programs *programs, const struct timeline *timeline,
                      struct arena *arena);

/* Fills stages, peak, limit, headroom, fits: those of the first step. */
void memory_measure(struct report *report, const struct report_parts *parts, struct arena *arena);
/* Peak of the fullest stage while it loads or updates, which no expert load changes. */
double memory_other_peak(const struct report_parts *parts);

/* Fills notes and verdict; the numbers must be there. */
void notes_write(struct report *report, struct arena *arena);
void verdict_write(struct report *report, const struct report_parts *parts, struct arena *arena);

#endif
