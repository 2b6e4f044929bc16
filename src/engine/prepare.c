/*
 * prepare.c - turns programs into the engine's tables, and allocates all it will need.
 *
 * Sizes follow from the programs: a stream has at most one op running, hence at most
 * one event (a slowed compute op STALE_EVENTS_MAX more); a group event takes the place
 * of its members' events; every list of an instant holds an entry at most once.
 */
#include "stepsim/error.h"

#include "engine/engine_internal.h"
#include "engine/no_malloc.h"

/* What the programs use; tables for the rest are left out. */
struct used {
    uint64_t events;   /* that may be pending */
    uint64_t messages; /* of all ranks */
    unsigned flags;    /* engine_op_flag of any op */
};

static uint8_t op_flags(const struct programs *programs, const struct program_op *op,
                        enum stream stream, bool last)
{
    const bool slowing = programs->contention_compute_ppm > 1000000;
    unsigned flags = 0;
    flags |= op->delta_start != 0 ? ENGINE_OP_DELTA_START : 0u;
    flags |= op->delta_end != 0 ? ENGINE_OP_DELTA_END : 0u;
    flags |= last ? ENGINE_OP_LAST : 0u;
    flags |= op->kind == PROGRAM_OP_SEND ? ENGINE_OP_SENDS : 0u;
    flags |= stream == STREAM_COMPUTE ? ENGINE_OP_COMPUTE_STREAM : 0u;
    if (slowing && (op->flags & PROGRAM_OP_CONTENDS) != 0 && op->kind != PROGRAM_OP_RECV) {
        flags |= ENGINE_OP_CONTENDS;
    }
    if (slowing && (op->flags & PROGRAM_OP_SLOWED) != 0) {
        ASSERT(stream == STREAM_COMPUTE && op->kind == PROGRAM_OP_COMPUTE);
        flags |= ENGINE_OP_SLOWED;
    }
    return (uint8_t)flags;
}

/* Returns the flags of all ops together. */
static unsigned copy_stream(const struct programs *programs, const struct program *program,
                            enum stream stream, struct engine_op *out)
{
    unsigned flags = 0;
    for (uint32_t i = 0; i < program->op_count[stream]; i++) {
        const struct program_op *op = &program->ops[stream][i];
        out[i].kind = op->kind;
        out[i].flags = op_flags(programs, op, stream, i + 1 == program->op_count[stream]);
        out[i].peer = (uint8_t)op->peer;
        out[i].wait_count = op->wait_count;
        out[i].wait_first = op->wait_first;
        out[i].duration = op->duration;
        out[i].message = op->message;
        out[i].delta_start = op->delta_start;
        out[i].delta_end = op->delta_end;
        flags |= out[i].flags;
    }
    return flags;
}

/* Tells every op which streams wait for it. */
static void add_notices(const struct program *program, struct engine_op *const *ops)
{
    for (uint32_t stream = 0; stream < STREAM_COUNT; stream++) {
        for (uint32_t i = 0; i < program->op_count[stream]; i++) {
            const struct engine_op *op = &ops[stream][i];
            for (uint32_t w = 0; w < op->wait_count; w++) {
                const struct program_wait wait = program->waits[op->wait_first + w];
                ASSERT(wait.stream < STREAM_COUNT && wait.stream != stream);
                ASSERT(wait.index < program->op_count[wait.stream]);
                struct engine_op *awaited = &ops[wait.stream][wait.index];
                awaited->notify = (uint16_t)(awaited->notify | 1u << stream);
            }
        }
    }
}

static unsigned prepare_program(const struct programs *programs, const struct program *program,
                                struct arena *arena, struct engine_class *out)
{
    unsigned flags = 0;
    struct engine_op *ops[STREAM_COUNT];
    uint8_t *message_stream = ARENA_ARRAY(arena, program->message_count, uint8_t);
    for (uint32_t stream = 0; stream < STREAM_COUNT; stream++) {
        const uint32_t count = program->op_count[stream];
        ops[stream] = ARENA_ARRAY(arena, count, struct engine_op);
        flags |= copy_stream(programs, program, (enum stream)stream, ops[stream]);
        out->ops[stream] = ops[stream];
        out->op_count[stream] = count;
        for (uint32_t i = 0; i < count; i++) {
            if (ops[stream][i].kind == PROGRAM_OP_RECV) {
                ASSERT(ops[stream][i].message < program->message_count);
                message_stream[ops[stream][i].message] = (uint8_t)stream;
            }
        }
    }
    add_notices(program, ops);
    out->waits = program->waits;
    out->message_stream = message_stream;
    out->message_count = program->message_count;
    return flags;
}

static struct engine_class *prepare_classes(const struct programs *programs, struct used *used,
                                            struct arena *arena)
{
    struct engine_class *by_program =
        ARENA_ARRAY(arena, programs->program_count, struct engine_class);
    for (uint32_t i = 0; i < programs->program_count; i++) {
        used->flags |= prepare_program(programs, &programs->programs[i], arena, &by_program[i]);
    }
    struct engine_class *classes = ARENA_ARRAY(arena, programs->class_count, struct engine_class);
    for (uint32_t i = 0; i < programs->class_count; i++) {
        ASSERT(programs->classes[i].program < programs->program_count);
        classes[i] = by_program[programs->classes[i].program];
        classes[i].durations_ps = programs->classes[i].durations_ps;
        classes[i].deltas_bytes = programs->classes[i].deltas_bytes;
    }
    return classes;
}

static void prepare_ranks(struct engine *engine, struct used *used, struct arena *arena)
{
    const struct programs *programs = engine->programs;
    uint64_t *message_first = ARENA_ARRAY(arena, programs->rank_count, uint64_t);
    engine->ranks = ARENA_ARRAY(arena, programs->rank_count, struct engine_rank);
    engine->results = ARENA_ARRAY(arena, programs->rank_count, struct rank_result);
    engine->dirty = ARENA_ARRAY(arena, programs->rank_count, uint32_t);
    for (uint32_t i = 0; i < programs->rank_count; i++) {
        struct engine_rank *rank = &engine->ranks[i];
        ASSERT(programs->ranks[i].rank_class < programs->class_count);
        rank->engine_class = programs->ranks[i].rank_class;
        const struct engine_class *class = &engine->classes[rank->engine_class];
        for (uint32_t stream = 0; stream < STREAM_COUNT; stream++) {
            if (class->op_count[stream] > 0) {
                rank->ready = (uint16_t)(rank->ready | 1u << stream);
                used->events++;
                engine->streams_left++;
            }
        }
        if (rank->ready != 0) {
            engine->dirty[engine->dirty_count++] = i;
        }
        message_first[i] = used->messages;
        used->messages += class->message_count;
    }
    engine->message_first = message_first;
    engine->arrived = ARENA_ARRAY(arena, used->messages / 64 + 1, uint64_t);
}

static void prepare_groups(struct engine *engine, struct arena *arena)
{
    const struct programs *programs = engine->programs;
    engine->groups = ARENA_ARRAY(arena, programs->group_count, struct engine_group);
    engine->met = ARENA_ARRAY(arena, programs->group_count, uint32_t);
    for (uint32_t i = 0; i < programs->group_count; i++) {
        ASSERT(programs->groups[i].stream < STREAM_COUNT);
        engine->groups[i].stream = programs->groups[i].stream;
    }
}

static void prepare_side_tables(struct engine *engine, struct used *used, struct arena *arena)
{
    const struct programs *programs = engine->programs;
    if ((used->flags & (ENGINE_OP_DELTA_START | ENGINE_OP_DELTA_END)) != 0) {
        engine->memory = ARENA_ARRAY(arena, programs->rank_count, struct memory_level);
        for (uint32_t i = 0; i < programs->rank_count; i++) {
            struct memory_level *memory = &engine->memory[i];
            memory->level = programs->classes[programs->ranks[i].rank_class].static_bytes;
            memory->peak_bytes = memory->level;
            memory->peak_label = UINT32_MAX;
            memory->taken_key = ENGINE_NONE;
        }
    }
    if ((used->flags & (ENGINE_OP_SLOWED | ENGINE_OP_CONTENDS)) != 0) {
        engine->slowed = ARENA_ARRAY(arena, programs->rank_count, struct slowed_compute);
        engine->unsettled = ARENA_ARRAY(arena, programs->rank_count, uint32_t);
        for (uint32_t i = 0; i < programs->rank_count; i++) {
            engine->slowed[i].generation = 1; /* 0 marks events that cannot be overtaken */
        }
        used->events += (uint64_t)programs->rank_count * STALE_EVENTS_MAX;
    }
}

static void observe(struct engine *engine, uint32_t rank, uint32_t *index, struct arena *arena)
{
    const struct engine_class *class = &engine->classes[engine->ranks[rank].engine_class];
    struct observed_rank *observed = &engine->observed[engine->observed_count];
    struct observed_times *times = &engine->observed_times[engine->observed_count];
    index[rank] = engine->observed_count++;
    engine->ranks[rank].observed = 1;
    observed->rank = rank;
    for (uint32_t stream = 0; stream < STREAM_COUNT; stream++) {
        times->start[stream] = ARENA_ARRAY(arena, class->op_count[stream], sim_time);
        times->end[stream] = ARENA_ARRAY(arena, class->op_count[stream], sim_time);
        observed->start[stream] = times->start[stream];
        observed->end[stream] = times->end[stream];
    }
}

static void prepare_observed(struct engine *engine, struct arena *arena)
{
    const struct programs *programs = engine->programs;
    const enum engine_observe which = engine->options->observe;
    if (which == OBSERVE_NONE) {
        return;
    }
    uint32_t *index = ARENA_ARRAY(arena, programs->rank_count, uint32_t);
    bool *seen = ARENA_ARRAY(arena, programs->class_count, bool);
    const uint32_t most = which == OBSERVE_ALL ? programs->rank_count : programs->class_count;
    engine->observed = ARENA_ARRAY(arena, most, struct observed_rank);
    engine->observed_times = ARENA_ARRAY(arena, most, struct observed_times);
    for (uint32_t i = 0; i < programs->rank_count; i++) {
        const uint32_t class = programs->ranks[i].rank_class;
        if (which == OBSERVE_ALL || !seen[class]) {
            seen[class] = true;
            observe(engine, i, index, arena);
        }
    }
    engine->observed_index = index;
}

struct engine *engine_prepare(const struct programs *programs, const struct engine_options *options,
                              struct arena *arena)
{
    enum { DUE_BATCH = 256 };
    struct used used = {0};
    struct engine *engine = ARENA_NEW(arena, struct engine);
    engine->programs = programs;
    engine->options = options;
    engine->timeline = ARENA_NEW(arena, struct timeline);
    /* An event's target and the lists pack a rank into 28 bits. */
    ASSERT(programs->rank_count < UINT32_C(1) << 28);
    engine->classes = prepare_classes(programs, &used, arena);
    prepare_ranks(engine, &used, arena);
    prepare_groups(engine, arena);
    prepare_side_tables(engine, &used, arena);
    prepare_observed(engine, arena);
    ASSERT(used.events < UINT32_MAX);
    engine->received = ARENA_ARRAY(arena, used.events, uint32_t);
    engine->queue = event_queue_create(arena, (uint32_t)used.events, options->binary_heap);
    /* A shuffle needs all events of an instant at once. */
    engine->due_capacity = options->shuffle_seed != 0 ? (uint32_t)used.events + 1 : DUE_BATCH;
    engine->due = ARENA_ARRAY(arena, engine->due_capacity, struct event);
    return engine;
}
