/*
 * trace.c - the whole file: who says when each message left, then rank after rank.
 */
#include "stepsim/trace.h"

#include <errno.h>
#include <string.h>

#include "stepsim/arena.h"
#include "stepsim_version.h"
#include "trace_internal.h"

static const struct program *program_of(const struct programs *programs, uint32_t rank)
{
    return &programs->programs[programs->classes[programs->ranks[rank].rank_class].program];
}

static void find_observed(struct trace *trace, struct arena *arena)
{
    const struct timeline *timeline = trace->ask->timeline;
    uint32_t *observed_of = ARENA_ARRAY(arena, trace->programs->rank_count, uint32_t);
    for (uint32_t r = 0; r < trace->programs->rank_count; r++) {
        observed_of[r] = UINT32_MAX;
    }
    for (uint32_t i = 0; i < timeline->observed_count; i++) {
        observed_of[timeline->observed[i].rank] = i;
    }
    trace->observed_of = observed_of;
}

/* Start, if the sender is observed, and programmed length of every send of one rank. */
static void note_sends(const struct trace *trace, uint32_t r, sim_time *sent, sim_time *transfer)
{
    const struct programs *programs = trace->programs;
    const struct sim_rank *rank = &programs->ranks[r];
    const struct program *program = program_of(programs, r);
    const uint32_t observed = trace->observed_of[r];
    for (unsigned s = 0; s < STREAM_COUNT; s++) {
        for (uint32_t i = 0; i < program->op_count[s]; i++) {
            const struct program_op *op = &program->ops[s][i];
            if (op->kind != PROGRAM_OP_SEND) {
                continue;
            }
            const uint32_t message = trace->message_first[rank->peer[op->peer]] + op->message;
            transfer[message] = programs->classes[rank->rank_class].durations_ps[op->duration];
            sent[message] = observed != UINT32_MAX
                                ? trace->ask->timeline->observed[observed].start[s][i]
                                : SIM_TIME_NONE;
        }
    }
}

static void find_messages(struct trace *trace, struct arena *arena)
{
    const struct programs *programs = trace->programs;
    uint32_t *first = ARENA_ARRAY(arena, programs->rank_count, uint32_t);
    uint32_t count = 0;
    for (uint32_t r = 0; r < programs->rank_count; r++) {
        first[r] = count;
        count += program_of(programs, r)->message_count;
    }
    trace->message_first = first;
    sim_time *sent = ARENA_ARRAY(arena, count, sim_time);
    sim_time *transfer = ARENA_ARRAY(arena, count, sim_time);
    for (uint32_t r = 0; r < programs->rank_count; r++) {
        note_sends(trace, r, sent, transfer);
    }
    trace->sent = sent;
    trace->transfer = transfer;
}

static void write_ranks(const struct trace *trace)
{
    const struct timeline *timeline = trace->ask->timeline;
    for (uint32_t i = 0; i < timeline->observed_count; i++) {
        const struct observed_rank *times = &timeline->observed[i];
        const struct sim_rank *sim_rank = &trace->programs->ranks[times->rank];
        const struct trace_rank rank = {
            .times = times,
            .rank = sim_rank,
            .rank_class = &trace->programs->classes[sim_rank->rank_class],
            .program = program_of(trace->programs, times->rank),
        };
        trace_rank_write(trace, &rank);
        trace_counters_write(trace, &rank);
        arena_reset(trace->scratch);
    }
}

/* What the file is, after the events: one viewer looks for them within the first megabyte. */
static void write_end(const struct trace *trace)
{
    struct trace_quoted title;
    struct trace_quoted hash;
    trace_file_raw(trace->file, "\n],\n\"displayTimeUnit\":\"ms\",\n\"otherData\":{\"program\":"
                                "\"stepsim " STEPSIM_VERSION " " STEPSIM_COMMIT "\",\"title\":\"");
    trace_file_raw(trace->file,
                   trace_quote(&title, trace->ask->title != NULL ? trace->ask->title : ""));
    trace_file_raw(trace->file, "\",\"scenario\":\"");
    trace_file_raw(
        trace->file,
        trace_quote(&hash, trace->ask->scenario_hash != NULL ? trace->ask->scenario_hash : ""));
    trace_file_raw(trace->file, "\"}}\n");
}

uint64_t trace_write(const struct trace_ask *ask, struct error_list *errors)
{
    const struct location nowhere = {ask->path, 0, 0};
    struct trace trace = {.ask = ask, .programs = ask->plan->programs};
    trace.file = trace_file_open(ask->path);
    if (trace.file == NULL) {
        error_add(errors, ERROR_file_not_writable, nowhere, NULL, "%s", strerror(errno));
        return 0;
    }
    struct arena *arena = arena_create("trace");
    trace.scratch = arena_create("trace of one rank");
    find_observed(&trace, arena);
    find_messages(&trace, arena);
    trace_file_raw(trace.file, "{\"traceEvents\":[\n");
    write_ranks(&trace);
    write_end(&trace);
    arena_destroy(trace.scratch);
    arena_destroy(arena);
    const uint64_t events = trace_file_events(trace.file);
    if (!trace_file_close(trace.file)) {
        error_add(errors, ERROR_file_not_writable, nowhere, NULL, "%s", strerror(errno));
        return 0;
    }
    return events;
}
