/*
 * trace_counters.c - memory and link use of a rank, as they change.
 *
 * Changes of all streams are sorted by time and summed within an instant, so an op that
 * ends where another begins leaves no spike. A first value at time 0 is ignored by one
 * viewer (MindStudio Insight), so it is put at the first nanosecond.
 */
#include <stdio.h>
#include <stdlib.h>

#include "stepsim/arena.h"
#include "trace_internal.h"

struct change {
    int64_t at_ns;
    int64_t bytes;   /* memory */
    int32_t running; /* ops of the cause: +1, -1 */
    uint8_t cause;
};

static const enum time_cause link_causes[] = {CAUSE_TP, CAUSE_EP, CAUSE_CP,
                                              CAUSE_PP, CAUSE_DP, CAUSE_SWAP};
#define LINK_CAUSE_COUNT (sizeof link_causes / sizeof link_causes[0])

static int compare_changes(const void *left, const void *right)
{
    const struct change *a = left;
    const struct change *b = right;
    return (a->at_ns > b->at_ns) - (a->at_ns < b->at_ns);
}

static uint32_t op_total(const struct trace_rank *rank)
{
    uint32_t total = 0;
    for (unsigned s = 0; s < STREAM_COUNT; s++) {
        total += rank->program->op_count[s];
    }
    return total;
}

static void write_memory(const struct trace *trace, const struct trace_rank *rank)
{
    const int64_t *deltas = rank->rank_class->deltas_bytes;
    struct change *changes =
        ARENA_ARRAY(trace->scratch, 2 * (size_t)op_total(rank) + 1, struct change);
    size_t count = 0;
    changes[count++] = (struct change){.at_ns = 1, .bytes = rank->rank_class->static_bytes};
    for (unsigned s = 0; s < STREAM_COUNT; s++) {
        for (uint32_t i = 0; i < rank->program->op_count[s]; i++) {
            const struct program_op *op = &rank->program->ops[s][i];
            const int64_t start_ns = trace_nanoseconds(rank->times->start[s][i]);
            const int64_t end_ns = trace_nanoseconds(rank->times->end[s][i]);
            if (deltas[op->delta_start] != 0) {
                changes[count++] = (struct change){.at_ns = start_ns > 1 ? start_ns : 1,
                                                   .bytes = deltas[op->delta_start]};
            }
            if (deltas[op->delta_end] != 0) {
                changes[count++] = (struct change){.at_ns = end_ns > 1 ? end_ns : 1,
                                                   .bytes = deltas[op->delta_end]};
            }
        }
    }
    qsort(changes, count, sizeof *changes, compare_changes);
    int64_t level = 0;
    for (size_t i = 0; i < count; i++) {
        level += changes[i].bytes;
        if (i + 1 < count && changes[i + 1].at_ns == changes[i].at_ns) {
            continue;
        }
        struct trace_time at;
        trace_file_event(trace->file,
                         "{\"ph\":\"C\",\"pid\":%u,\"tid\":0,\"ts\":%s,\"name\":\"memory GiB\","
                         "\"args\":{\"GiB\":%.4f}}",
                         rank->rank->rank, trace_time_text(&at, changes[i].at_ns),
                         (double)level / GIB_BYTES);
    }
}

/* Sends only for messages: what a device receives occupies the link of its neighbour. */
static bool occupies_link(const struct program_op *op)
{
    return op->kind == PROGRAM_OP_COLLECTIVE || op->kind == PROGRAM_OP_SEND ||
           op->kind == PROGRAM_OP_COPY;
}

static size_t collect_link_changes(const struct trace_rank *rank, struct change *changes,
                                   double *busy_s)
{
    size_t count = 0;
    for (unsigned s = 0; s < STREAM_COUNT; s++) {
        for (uint32_t i = 0; i < rank->program->op_count[s]; i++) {
            const struct program_op *op = &rank->program->ops[s][i];
            const sim_time start = rank->times->start[s][i];
            const sim_time end = rank->times->end[s][i];
            if (!occupies_link(op)) {
                continue;
            }
            busy_s[op->cause] += sim_time_seconds(end - start);
            const int64_t start_ns = trace_nanoseconds(start);
            const int64_t end_ns = trace_nanoseconds(end);
            if (start_ns == end_ns) {
                continue;
            }
            changes[count++] = (struct change){
                .at_ns = start_ns > 1 ? start_ns : 1, .running = 1, .cause = op->cause};
            changes[count++] = (struct change){
                .at_ns = end_ns > 1 ? end_ns : 1, .running = -1, .cause = op->cause};
        }
    }
    qsort(changes, count, sizeof *changes, compare_changes);
    return count;
}

static void write_links(const struct trace *trace, const struct trace_rank *rank)
{
    struct change *changes =
        ARENA_ARRAY(trace->scratch, 2 * (size_t)op_total(rank) + 1, struct change);
    double busy_s[CAUSE_COUNT] = {0};
    int64_t running[CAUSE_COUNT] = {0};
    const size_t count = collect_link_changes(rank, changes, busy_s);
    const double *sent_bytes =
        &trace->ask->plan->sent_bytes[(size_t)rank->rank_class->stage * CAUSE_COUNT];
    for (size_t i = 0; i < count; i++) {
        running[changes[i].cause] += changes[i].running;
        if (i + 1 < count && changes[i + 1].at_ns == changes[i].at_ns) {
            continue;
        }
        char series[512];
        size_t used = 0;
        for (size_t c = 0; c < LINK_CAUSE_COUNT; c++) {
            const enum time_cause cause = link_causes[c];
            if (busy_s[cause] <= 0.0) {
                continue;
            }
            const double rate = sent_bytes[cause] / busy_s[cause] * (double)running[cause] / 1e9;
            used += (size_t)snprintf(series + used, sizeof series - used, "%s\"%s\":%.3f",
                                     used > 0 ? "," : "", time_cause_name(cause), rate);
            ASSERT(used < sizeof series);
        }
        struct trace_time at;
        trace_file_event(trace->file,
                         "{\"ph\":\"C\",\"pid\":%u,\"tid\":0,\"ts\":%s,\"name\":\"sending GB/s\","
                         "\"args\":{%s}}",
                         rank->rank->rank, trace_time_text(&at, changes[i].at_ns), series);
    }
}

void trace_counters_write(const struct trace *trace, const struct trace_rank *rank)
{
    write_memory(trace, rank);
    write_links(trace, rank);
}
