/*
 * timeline.h - what happened in one step: the engine's answer.
 *
 * Totals exist for every simulated rank. Start and end of every op exist for
 * observed ranks only, since 6,144 ranks with all their ops would fill memory;
 * by default one rank of each class (the first in programs.ranks) is observed.
 *
 * When an op starts: compute, copy, send and marker when their stream reaches them
 * and their waits hold; a recv when it is posted; a collective when its last member
 * has arrived. The time a rank spent waiting for the other members is therefore the
 * gap between the op before it (or its last wait) and its start.
 *
 * Memory of an instant is the net level after everything that happens in it, so ends
 * count before starts whatever the order of events, and an op without duration that
 * takes and returns memory leaves no peak.
 */
#ifndef STEPSIM_TIMELINE_H
#define STEPSIM_TIMELINE_H

#include "stepsim/programs.h"

struct rank_result {
    sim_time end;          /* its last op done */
    sim_time compute_busy; /* its compute stream was running an op */
    int64_t peak_bytes;    /* high-water mark, static memory included */
    sim_time peak_time;    /* first instant of the peak */
    /* Label of the op that took the most bytes in that instant (ties: lowest stream, then
     * lowest index); UINT32_MAX: the static memory was never exceeded. */
    uint32_t peak_label;
    uint64_t busy_hash; /* commutative sum over mixed (time, stream, op) completions */
};

/* Times of one observed rank; arrays have program.op_count[stream] entries. */
struct observed_rank {
    uint32_t rank; /* index into programs.ranks */
    const sim_time *start[STREAM_COUNT];
    const sim_time *end[STREAM_COUNT];
};

struct timeline {
    sim_time end;                    /* the step */
    const struct rank_result *ranks; /* programs.rank_count */
    const struct observed_rank *observed;
    uint32_t observed_count;
    uint64_t ops;          /* completed, one for each rank and op */
    uint64_t events;       /* popped from the queue; one for a whole group */
    uint64_t stale_events; /* of these, how many a re-timing of compute had overtaken */
    uint64_t digest;       /* canonical: equal on any machine, folded or full */
    uint64_t event_digest; /* of this mode only: every completion of every rank */
};

#endif
