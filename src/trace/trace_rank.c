/*
 * trace_rank.c - one rank as a process: its name, its lanes, its ops and its messages.
 *
 * Markers and other ops that take no time are left out. The arrow of a message begins where its
 * send begins and ends where its recv is drawn, so it never points backwards.
 */
#include <stdio.h>

#include "trace_internal.h"

/* The order of lanes, and their names: what a profile of a device calls them. */
static const struct {
    enum stream stream;
    const char *name;
} lanes[STREAM_COUNT] = {
    {STREAM_COMPUTE, "compute"},        {STREAM_TP, "tensor parallel"},
    {STREAM_EP, "expert parallel"},     {STREAM_CP, "context parallel"},
    {STREAM_SEND, "pipeline send"},     {STREAM_RECV, "pipeline receive"},
    {STREAM_DP, "data parallel"},       {STREAM_COPY_OUT, "copy to host"},
    {STREAM_COPY_IN, "copy from host"},
};

static const char *pass_word(char pass)
{
    switch (pass) {
    case 'F':
        return "forward";
    case 'B':
        return "backward";
    case 'W':
        return "weight gradient";
    case 'R':
        return "recompute";
    default:
        return "optimizer";
    }
}

static void write_names(const struct trace *trace, const struct trace_rank *rank)
{
    const uint32_t pid = rank->rank->rank;
    const uint32_t alike = rank->rank_class->rank_count;
    trace_file_event(trace->file,
                     "{\"ph\":\"M\",\"pid\":%u,\"tid\":0,\"name\":\"process_name\","
                     "\"args\":{\"name\":\"stage %u, rank %u\"}}",
                     pid, rank->rank_class->stage, pid);
    trace_file_event(trace->file,
                     "{\"ph\":\"M\",\"pid\":%u,\"tid\":0,\"name\":\"process_labels\","
                     "\"args\":{\"labels\":\"%u rank%s like it\"}}",
                     pid, alike, alike == 1 ? "" : "s");
    trace_file_event(trace->file,
                     "{\"ph\":\"M\",\"pid\":%u,\"tid\":0,\"name\":\"process_sort_index\","
                     "\"args\":{\"sort_index\":%u}}",
                     pid, rank->times->rank);
    for (unsigned l = 0; l < STREAM_COUNT; l++) {
        if (rank->program->op_count[lanes[l].stream] == 0) {
            continue;
        }
        const unsigned tid = (unsigned)lanes[l].stream;
        trace_file_event(trace->file,
                         "{\"ph\":\"M\",\"pid\":%u,\"tid\":%u,\"name\":\"thread_name\","
                         "\"args\":{\"name\":\"%s\"}}",
                         pid, tid, lanes[l].name);
        trace_file_event(trace->file,
                         "{\"ph\":\"M\",\"pid\":%u,\"tid\":%u,\"name\":\"thread_sort_index\","
                         "\"args\":{\"sort_index\":%u}}",
                         pid, tid, l);
    }
}

/* "F mb3 attention" */
static void op_name(char *name, size_t size, const struct program_label *label)
{
    struct trace_quoted quoted;
    trace_quote(&quoted, label->name);
    if (label->microbatch >= 0) {
        snprintf(name, size, "%c mb%d %.160s", label->pass, label->microbatch, quoted.text);
    } else {
        snprintf(name, size, "%c %.160s", label->pass, quoted.text);
    }
}

sim_time trace_op_start(const struct trace *trace, const struct trace_rank *rank, unsigned stream,
                        uint32_t index)
{
    const struct program_op *op = &rank->program->ops[stream][index];
    const sim_time start = rank->times->start[stream][index];
    if (op->kind != PROGRAM_OP_RECV) {
        return start;
    }
    const sim_time end = rank->times->end[stream][index];
    const uint32_t message = trace->message_first[rank->times->rank] + op->message;
    sim_time wire = trace->sent[message];
    if (wire == SIM_TIME_NONE) {
        wire = end - trace->transfer[message];
    }
    return wire > start ? wire : start;
}

static void write_op(const struct trace *trace, const struct trace_rank *rank, unsigned stream,
                     uint32_t index)
{
    const struct program_op *op = &rank->program->ops[stream][index];
    const struct program_label *label = &trace->programs->labels[op->label];
    const int64_t start_ns = trace_nanoseconds(trace_op_start(trace, rank, stream, index));
    const int64_t end_ns = trace_nanoseconds(rank->times->end[stream][index]);
    struct trace_time start;
    struct trace_time length;
    char name[200];
    char where[64] = "";
    op_name(name, sizeof name, label);
    if (label->layer >= 0) {
        snprintf(where, sizeof where, ",\"layer\":%d", label->layer);
    }
    trace_file_event(trace->file,
                     "{\"ph\":\"X\",\"pid\":%u,\"tid\":%u,\"ts\":%s,\"dur\":%s,\"name\":\"%s\","
                     "\"cat\":\"%s\",\"args\":{\"pass\":\"%s\",\"phase\":\"%s\",\"chunk\":%u%s,"
                     "\"counts as\":\"%s\"}}",
                     rank->rank->rank, stream, trace_time_text(&start, start_ns),
                     trace_time_text(&length, end_ns - start_ns), name,
                     time_cause_name((enum time_cause)op->cause), pass_word(label->pass),
                     step_phase_name((enum step_phase)label->phase), label->chunk, where,
                     time_cause_name((enum time_cause)op->cause));
}

/* One end of an arrow, or nothing if the other end is not drawn. */
static void write_arrow(const struct trace *trace, const struct trace_rank *rank, unsigned stream,
                        uint32_t index)
{
    const struct program_op *op = &rank->program->ops[stream][index];
    const uint32_t peer = rank->rank->peer[op->peer];
    if (peer == UINT32_MAX || trace->observed_of[peer] == UINT32_MAX) {
        return;
    }
    const bool sends = op->kind == PROGRAM_OP_SEND;
    const uint32_t receiver = sends ? peer : rank->times->rank;
    struct trace_time at;
    trace_time_text(&at, trace_nanoseconds(trace_op_start(trace, rank, stream, index)));
    trace_file_event(trace->file,
                     "{\"ph\":\"%s\",\"pid\":%u,\"tid\":%u,\"ts\":%s,\"id\":%u,"
                     "\"name\":\"message\",\"cat\":\"pp\"%s}",
                     sends ? "s" : "f", rank->rank->rank, stream, at.text,
                     trace->message_first[receiver] + op->message + 1,
                     sends ? "" : ",\"bp\":\"e\"");
}

static void write_peak(const struct trace *trace, const struct trace_rank *rank)
{
    const struct rank_result *result = &trace->ask->timeline->ranks[rank->times->rank];
    struct trace_time at;
    trace_file_event(trace->file,
                     "{\"ph\":\"I\",\"pid\":%u,\"tid\":%u,\"ts\":%s,\"s\":\"p\","
                     "\"name\":\"peak memory\",\"args\":{\"GiB\":%.3f}}",
                     rank->rank->rank, (unsigned)STREAM_COMPUTE,
                     trace_time_text(&at, trace_nanoseconds(result->peak_time)),
                     (double)result->peak_bytes / GIB_BYTES);
}

void trace_rank_write(const struct trace *trace, const struct trace_rank *rank)
{
    write_names(trace, rank);
    for (unsigned s = 0; s < STREAM_COUNT; s++) {
        for (uint32_t i = 0; i < rank->program->op_count[s]; i++) {
            const unsigned kind = rank->program->ops[s][i].kind;
            const bool empty = rank->times->start[s][i] == rank->times->end[s][i];
            if (kind == PROGRAM_OP_MARKER || (kind == PROGRAM_OP_COMPUTE && empty)) {
                continue;
            }
            write_op(trace, rank, s, i);
            if (kind == PROGRAM_OP_SEND || kind == PROGRAM_OP_RECV) {
                write_arrow(trace, rank, s, i);
            }
        }
    }
    write_peak(trace, rank);
}
