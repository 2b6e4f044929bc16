/*
 * program_builder.c - collects ops in growing arrays, then lays them out as programs.
 *
 * Every op has its own entry in the tables of durations and deltas, so that a class can
 * replace any of them.
 */
#include "program_builder.h"

#include <string.h>

#include "stepsim/error.h"

struct built_op {
    struct build_op op;
    uint32_t number; /* of all ops: its duration */
    uint32_t wait_count;
    struct op_ref waits[8];
};

struct built_stream {
    struct built_op *ops;
    uint32_t count, room;
};

struct built_program {
    struct built_stream streams[STREAM_COUNT];
};

struct built_duration {
    uint32_t rank_class;
    struct op_ref op;
    sim_time duration;
};

struct builder {
    struct arena *arena;
    struct programs programs;
    struct built_program *built;
    uint32_t built_room;
    uint32_t op_count;
    struct rank_class *classes;
    uint32_t class_room;
    struct built_duration *durations;
    uint32_t duration_count, duration_room;
    struct sim_rank *ranks;
    uint32_t rank_room;
    struct sim_group *groups;
    uint32_t group_room;
    uint32_t *members;
    uint32_t member_room;
};

/* Room for one more item of `size` bytes behind `count`. */
static void *grown(struct arena *arena, void *items, uint32_t count, uint32_t *room, size_t size)
{
    if (count < *room) {
        return items;
    }
    *room = *room == 0 ? 16 : *room * 2;
    void *larger = arena_calloc(arena, *room, size);
    if (count > 0) {
        memcpy(larger, items, count * size);
    }
    return larger;
}

struct builder *builder_create(struct arena *arena)
{
    struct builder *b = ARENA_NEW(arena, struct builder);
    b->arena = arena;
    b->programs.contention_compute_ppm = 1000000;
    return b;
}

void builder_contention(struct builder *b, int64_t ppm)
{
    b->programs.contention_compute_ppm = ppm;
}

void builder_jitter(struct builder *b, int64_t ppm, uint64_t seed)
{
    b->programs.jitter_ppm = ppm;
    b->programs.jitter_seed = seed;
}

uint32_t builder_program(struct builder *b)
{
    b->built =
        grown(b->arena, b->built, b->programs.program_count, &b->built_room, sizeof *b->built);
    return b->programs.program_count++;
}

struct op_ref builder_op(struct builder *b, uint32_t program, struct build_op op)
{
    struct built_stream *stream = &b->built[program].streams[op.stream];
    stream->ops = grown(b->arena, stream->ops, stream->count, &stream->room, sizeof *stream->ops);
    stream->ops[stream->count] = (struct built_op){.op = op, .number = b->op_count++};
    return (struct op_ref){.stream = op.stream, .index = stream->count++};
}

void builder_wait(struct builder *b, uint32_t program, struct op_ref op, struct op_ref awaited)
{
    struct built_op *built = &b->built[program].streams[op.stream].ops[op.index];
    ASSERT(built->wait_count < sizeof built->waits / sizeof *built->waits);
    built->waits[built->wait_count++] = awaited;
}

uint32_t builder_class(struct builder *b, uint32_t program, uint32_t stage, int64_t static_bytes)
{
    struct programs *programs = &b->programs;
    b->classes =
        grown(b->arena, b->classes, programs->class_count, &b->class_room, sizeof *b->classes);
    b->classes[programs->class_count] =
        (struct rank_class){.program = program, .stage = stage, .static_bytes = static_bytes};
    programs->stage_count = stage >= programs->stage_count ? stage + 1 : programs->stage_count;
    return programs->class_count++;
}

void builder_class_duration(struct builder *b, uint32_t rank_class, struct op_ref op,
                            sim_time duration)
{
    b->durations =
        grown(b->arena, b->durations, b->duration_count, &b->duration_room, sizeof *b->durations);
    b->durations[b->duration_count++] =
        (struct built_duration){.rank_class = rank_class, .op = op, .duration = duration};
}

uint32_t builder_rank(struct builder *b, uint32_t rank_class)
{
    struct programs *programs = &b->programs;
    b->ranks = grown(b->arena, b->ranks, programs->rank_count, &b->rank_room, sizeof *b->ranks);
    struct sim_rank *rank = &b->ranks[programs->rank_count];
    rank->rank_class = rank_class;
    rank->rank = programs->rank_count;
    memset(rank->group, 0xFF, sizeof rank->group);
    memset(rank->peer, 0xFF, sizeof rank->peer);
    b->classes[rank_class].rank_count++;
    programs->world++;
    return programs->rank_count++;
}

void builder_link(struct builder *b, uint32_t rank, uint32_t next)
{
    b->ranks[rank].peer[PEER_NEXT] = next;
    b->ranks[next].peer[PEER_PREVIOUS] = rank;
}

void builder_group(struct builder *b, enum group_slot slot, enum stream stream,
                   const uint32_t *ranks, uint32_t count)
{
    struct programs *programs = &b->programs;
    b->groups =
        grown(b->arena, b->groups, programs->group_count, &b->group_room, sizeof *b->groups);
    b->groups[programs->group_count] = (struct sim_group){.member_first = programs->member_count,
                                                          .member_count = count,
                                                          .size = count,
                                                          .slot = (uint8_t)slot,
                                                          .stream = (uint8_t)stream};
    for (uint32_t i = 0; i < count; i++) {
        b->members = grown(b->arena, b->members, programs->member_count, &b->member_room,
                           sizeof *b->members);
        b->members[programs->member_count++] = ranks[i];
        b->ranks[ranks[i]].group[slot] = programs->group_count;
    }
    programs->group_count++;
}

static struct program_op lay_out_op(const struct built_op *built, uint32_t wait_first)
{
    return (struct program_op){
        .kind = (uint8_t)built->op.kind,
        .flags = (uint8_t)built->op.flags,
        .wait_count = (uint8_t)built->wait_count,
        .wait_first = wait_first,
        .duration = built->number,
        .peer = built->op.peer,
        .message = built->op.message,
        .delta_start = built->op.delta_start == 0 ? 0 : 1 + 2 * built->number,
        .delta_end = built->op.delta_end == 0 ? 0 : 2 + 2 * built->number,
        .label = built->number,
    };
}

static void lay_out_program(struct builder *b, const struct built_program *built,
                            struct program_label *labels, struct program *out)
{
    for (uint32_t s = 0; s < STREAM_COUNT; s++) {
        for (uint32_t i = 0; i < built->streams[s].count; i++) {
            out->wait_count += built->streams[s].ops[i].wait_count;
        }
    }
    struct program_wait *waits = ARENA_ARRAY(b->arena, out->wait_count, struct program_wait);
    uint32_t wait_first = 0;
    for (uint32_t s = 0; s < STREAM_COUNT; s++) {
        const struct built_stream *stream = &built->streams[s];
        struct program_op *ops = ARENA_ARRAY(b->arena, stream->count, struct program_op);
        for (uint32_t i = 0; i < stream->count; i++) {
            const struct built_op *op = &stream->ops[i];
            ops[i] = lay_out_op(op, wait_first);
            for (uint32_t w = 0; w < op->wait_count; w++) {
                waits[wait_first++] = (struct program_wait){.index = op->waits[w].index,
                                                            .stream = op->waits[w].stream};
            }
            out->message_count += op->op.kind == PROGRAM_OP_RECV;
            labels[op->number] =
                (struct program_label){.name = op->op.name == NULL ? "op" : op->op.name,
                                       .microbatch = op->op.microbatch,
                                       .layer = op->op.layer,
                                       .pass = op->op.pass};
        }
        out->ops[s] = ops;
        out->op_count[s] = stream->count;
    }
    out->waits = waits;
}

static void lay_out_tables(struct builder *b, struct rank_class *class)
{
    sim_time *durations = ARENA_ARRAY(b->arena, b->op_count, sim_time);
    int64_t *deltas = ARENA_ARRAY(b->arena, 1 + 2 * (size_t)b->op_count, int64_t);
    for (uint32_t p = 0; p < b->programs.program_count; p++) {
        for (uint32_t s = 0; s < STREAM_COUNT; s++) {
            const struct built_stream *stream = &b->built[p].streams[s];
            for (uint32_t i = 0; i < stream->count; i++) {
                const struct built_op *op = &stream->ops[i];
                durations[op->number] = op->op.duration;
                deltas[1 + 2 * op->number] = op->op.delta_start;
                deltas[2 + 2 * op->number] = op->op.delta_end;
            }
        }
    }
    class->durations_ps = durations;
    class->deltas_bytes = deltas;
    for (uint32_t i = 0; i < b->duration_count; i++) {
        const struct built_duration *d = &b->durations[i];
        if (&b->classes[d->rank_class] == class) {
            const struct built_program *built = &b->built[class->program];
            durations[built->streams[d->op.stream].ops[d->op.index].number] = d->duration;
        }
    }
}

const struct programs *builder_finish_unchecked(struct builder *b)
{
    struct programs *programs = ARENA_NEW(b->arena, struct programs);
    *programs = b->programs;
    struct program_label *labels = ARENA_ARRAY(b->arena, b->op_count, struct program_label);
    struct program *laid = ARENA_ARRAY(b->arena, programs->program_count, struct program);
    for (uint32_t p = 0; p < programs->program_count; p++) {
        lay_out_program(b, &b->built[p], labels, &laid[p]);
    }
    for (uint32_t c = 0; c < programs->class_count; c++) {
        lay_out_tables(b, &b->classes[c]);
    }
    programs->programs = laid;
    programs->classes = b->classes;
    programs->duration_count = b->op_count;
    programs->delta_count = 1 + 2 * b->op_count;
    programs->ranks = b->ranks;
    programs->groups = b->groups;
    programs->members = b->members;
    programs->labels = labels;
    programs->label_count = b->op_count;
    return programs;
}

const struct programs *builder_finish(struct builder *b)
{
    const struct programs *programs = builder_finish_unchecked(b);
    programs_check(programs);
    return programs;
}
