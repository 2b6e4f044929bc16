/*
 * trace_internal.h - the file that events are written to, and the parts of a trace.
 */
#ifndef STEPSIM_TRACE_INTERNAL_H
#define STEPSIM_TRACE_INTERNAL_H

#include <stdbool.h>

#include "stepsim/trace.h"

/* ---- The file (trace_file.c) ---- */

struct trace_file;

/* NULL, with errno set, if it cannot be created. Compressed if the name ends in .gz. */
struct trace_file *trace_file_open(const char *path);
/* Starts an event; the text is its line without the separator: a JSON object. */
void trace_file_event(struct trace_file *file, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Writes text as it is, outside of events. */
void trace_file_raw(struct trace_file *file, const char *text);
uint64_t trace_file_events(const struct trace_file *file);
/* False, with errno set, if anything could not be written. Frees the file. */
bool trace_file_close(struct trace_file *file);

/* The text between quotes of a JSON string, at most 200 bytes of it, in the buffer. */
struct trace_quoted {
    char text[1216];
};
const char *trace_quote(struct trace_quoted *buffer, const char *text);

/* A moment or a length in microseconds with three decimals, cut to whole nanoseconds. */
struct trace_time {
    char text[32];
};
const char *trace_time_text(struct trace_time *buffer, int64_t nanoseconds);
int64_t trace_nanoseconds(sim_time time);

/* ---- One rank (trace_rank.c, trace_counters.c) ---- */

struct trace {
    const struct trace_ask *ask;
    const struct programs *programs;
    struct trace_file *file;
    struct arena *scratch; /* emptied after each rank */
    const uint32_t
        *observed_of; /* by simulated rank: index into timeline.observed, or UINT32_MAX */
    const uint32_t *message_first; /* by simulated rank: number of its first message */
    const sim_time *sent;          /* by message number: its send started; SIM_TIME_NONE: unknown */
    const sim_time *transfer;      /* by message number: time on the wire as programmed */
};

struct trace_rank {
    const struct observed_rank *times;
    const struct sim_rank *rank;
    const struct rank_class *rank_class;
    const struct program *program;
};

/* When an op is seen to start: a recv when its message is on the wire. */
sim_time trace_op_start(const struct trace *trace, const struct trace_rank *rank, unsigned stream,
                        uint32_t index);

void trace_rank_write(const struct trace *trace, const struct trace_rank *rank);
void trace_counters_write(const struct trace *trace, const struct trace_rank *rank);

#endif
