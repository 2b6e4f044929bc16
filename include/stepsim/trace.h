/*
 * trace.h - the timeline of a step as a file for trace viewers.
 *
 * The format is the trace event JSON that Perfetto, chrome://tracing and MindStudio Insight
 * open. A name that ends in .gz is compressed (MindStudio Insight wants plain .json). What a
 * viewer shows:
 *  - one process for each observed rank, named after its true rank and its stage;
 *  - one lane for each stream that has ops; an op is named "F mb3 attention": pass, microbatch,
 *    op; its phase, chunk, layer, and what the time counts as are arguments;
 *  - an arrow from every send to its recv, if both ranks are observed;
 *  - counters: memory in GiB, and for each kind of communication the rate at which the rank
 *    sends while it runs, in GB/s (bytes of the kind in the step over its time on the wire);
 *  - a mark at the peak of memory.
 * A recv is drawn while its message is on the wire, not while the rank waits for it.
 *
 * Times are written in microseconds with three decimals: starts and ends are cut to whole
 * nanoseconds, so ops of one lane never overlap. Each event is one line. The file is
 * written as it is made; memory is needed for one rank at a time.
 */
#ifndef STEPSIM_TRACE_H
#define STEPSIM_TRACE_H

#include "stepsim/plan.h"
#include "stepsim/timeline.h"

struct trace_ask {
    const char *path;
    const char *title;         /* of the scenario, or NULL */
    const char *scenario_hash; /* or NULL */
    const struct plan *plan;
    const struct timeline *timeline;
};

/* The number of events written, or 0 with the error file_not_writable. */
uint64_t trace_write(const struct trace_ask *ask, struct error_list *errors);

#endif
