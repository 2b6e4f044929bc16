/*
 * prepare.c - turns programs into the engine's tables, and allocates all it will need.
 *
 * Sizes follow from the programs: a stream has at most one op running, hence at most
 * one event (a slowed compute op STALE_EVENTS_MAX more); a group event takes the place
 * of its members' events; every list of an instant holds an entry at most once.
 */
#include "engine/engine_internal.h"
#include "engine/no_malloc.h"

/* What the programs use; tables for the rest are left out. */
struct used {
    uint64_t events;   /* that may be pending */
    uint64_t messages; /* of all ranks */
    unsigned flags;    /* engine_op_flag of any op */
};

/* One program while it is copied. */
struct copy {
    const struct programs *programs;
    const struct program *program;
    struct engine_program *out;
    struct engine_op *ops;
    struct engine_side *sides;
    uint32_t *needs;
    uint8_t *message_stream;
    uint32_t side_count, need_count;
    unsigned flags; /* of all ops together */
};

static unsigned op_flags(const struct programs *programs, const struct program_op *op,
                         uint32_t stream, bool last)
{
    const bool slowing = programs->contention_compute_ppm > 1000000;
    unsigned flags = 0;
    flags |= op->delta_start != 0 ? ENGINE_OP_DELTA_START : 0u;
    flags |= op->delta_end != 0 ? ENGINE_OP_DELTA_END : 0u;
    flags |= last ? ENGINE_OP_LAST : 0u;
    flags |= op->kind == PROGRAM_OP_SEND ? ENGINE_OP_SENDS : 0u;
    flags |= stream == STREAM_COMPUTE ? ENGINE_OP_COMPUTE_STREAM : 0u;
    flags |= op->wait_count > 1 ? ENGINE_OP_MORE_WAITS : 0u;
    if (slowing && (op->flags & PROGRAM_OP_CONTENDS) != 0 && op->kind != PROGRAM_OP_RECV) {
        flags |= ENGINE_OP_CONTENDS;
    }
    if (slowing && (op->flags & PROGRAM_OP_SLOWED) != 0) {
        ASSERT(stream == STREAM_COMPUTE && op->kind == PROGRAM_OP_COMPUTE);
        flags |= ENGINE_OP_SLOWED;
    }
    return flags;
}

/* A wait as a need; the op that is awaited learns that `stream` waits for it. */
static uint32_t copy_wait(struct copy *copy, uint32_t stream, struct program_wait wait)
{
    ASSERT(wait.stream < STREAM_COUNT && wait.stream != stream);
    ASSERT(wait.index < copy->program->op_count[wait.stream]);
    const uint32_t awaited = copy->out->first[wait.stream] + wait.index;
    copy->ops[awaited].wakes = (uint16_t)(copy->ops[awaited].wakes | 1u << stream);
    return wait.stream << NEED_STREAM_SHIFT | (awaited + 1);
}

static bool needs_side(const struct program_op *op)
{
    return op->kind == PROGRAM_OP_SEND || op->kind == PROGRAM_OP_RECV || op->delta_start != 0 ||
           op->delta_end != 0 || op->wait_count > 1;
}

static void copy_op(struct copy *copy, uint32_t stream, uint32_t index)
{
    const struct program_op *op = &copy->program->ops[stream][index];
    struct engine_op *out = &copy->ops[copy->out->first[stream] + index];
    const bool last = index + 1 == copy->program->op_count[stream];
    out->kind = op->kind & 15u;
    out->peer = op->peer & 15u;
    out->flags = (uint8_t)op_flags(copy->programs, op, stream, last);
    out->duration = op->duration;
    copy->flags |= out->flags;
    const struct program_wait *waits = &copy->program->waits[op->wait_first];
    if (op->wait_count > 0) {
        out->need = copy_wait(copy, stream, waits[0]);
    }
    if (needs_side(op)) {
        out->side = copy->side_count++;
        copy->sides[out->side] = (struct engine_side){
            .message = op->message,
            .delta_start = op->delta_start,
            .delta_end = op->delta_end,
            .wait_first = copy->need_count,
            .wait_count = op->wait_count > 1 ? op->wait_count - 1u : 0u,
        };
        for (uint32_t i = 1; i < op->wait_count; i++) {
            copy->needs[copy->need_count++] = copy_wait(copy, stream, waits[i]);
        }
    }
    if (op->kind == PROGRAM_OP_RECV) {
        ASSERT(op->message < copy->program->message_count);
        copy->message_stream[op->message] = (uint8_t)stream;
    }
}

/*
 * When op `cursor` of a stream ends, can its successor start? Not if that waits for an op
 * which itself waits for `cursor` or a later one, perhaps through others: then looking
 * would be in vain, and the end of the awaited op wakes the stream anyway. Only first
 * waits are followed, and not far; what is not seen costs a look.
 */
static bool successor_must_wait(const struct engine_op *ops, uint32_t stream, uint32_t cursor)
{
    enum { FOLLOWED_MAX = 4 };
    uint32_t need = ops[cursor + 1].need;
    for (int i = 0; i < FOLLOWED_MAX && need != 0; i++) {
        need = ops[(need & NEED_CURSOR_MASK) - 1].need;
        if (need >> NEED_STREAM_SHIFT == stream && (need & NEED_CURSOR_MASK) > cursor) {
            return true;
        }
    }
    return false;
}

/* Every op also wakes its own stream, for its successor. */
static void wake_successors(struct copy *copy)
{
    for (uint32_t stream = 0; stream < STREAM_COUNT; stream++) {
        for (uint32_t i = copy->out->first[stream]; i + 1 < copy->out->first[stream + 1]; i++) {
            if (!successor_must_wait(copy->ops, stream, i)) {
                copy->ops[i].wakes = (uint16_t)(copy->ops[i].wakes | 1u << stream);
            }
        }
    }
}

static void prepare_program(struct copy *copy, struct arena *arena)
{
    const struct program *program = copy->program;
    for (uint32_t stream = 0; stream < STREAM_COUNT; stream++) {
        copy->out->first[stream + 1] = copy->out->first[stream] + program->op_count[stream];
    }
    ASSERT(copy->out->first[STREAM_COUNT] < NEED_CURSOR_MASK);
    copy->ops = ARENA_ARRAY(arena, copy->out->first[STREAM_COUNT], struct engine_op);
    /* At most so many: counting them first would read all ops twice. */
    copy->sides = ARENA_ARRAY(arena, copy->out->first[STREAM_COUNT], struct engine_side);
    copy->needs = ARENA_ARRAY(arena, program->wait_count, uint32_t);
    copy->message_stream = ARENA_ARRAY(arena, program->message_count, uint8_t);
    for (uint32_t stream = 0; stream < STREAM_COUNT; stream++) {
        for (uint32_t i = 0; i < program->op_count[stream]; i++) {
            copy_op(copy, stream, i);
        }
    }
    wake_successors(copy);
    copy->out->ops = copy->ops;
    copy->out->sides = copy->sides;
    copy->out->needs = copy->needs;
    copy->out->message_stream = copy->message_stream;
    copy->out->message_count = program->message_count;
}

static struct engine_class *prepare_classes(const struct programs *programs, struct used *used,
                                            struct arena *arena)
{
    struct engine_program *prepared =
        ARENA_ARRAY(arena, programs->program_count, struct engine_program);
    for (uint32_t i = 0; i < programs->program_count; i++) {
        struct copy copy = {
            .programs = programs, .program = &programs->programs[i], .out = &prepared[i]};
        prepare_program(&copy, arena);
        used->flags |= copy.flags;
    }
    struct engine_class *classes = ARENA_ARRAY(arena, programs->class_count, struct engine_class);
    for (uint32_t i = 0; i < programs->class_count; i++) {
        const struct rank_class *class = &programs->classes[i];
        ASSERT(class->program < programs->program_count);
        classes[i] = (struct engine_class){.ops = prepared[class->program].ops,
                                           .durations_ps = class->durations_ps,
                                           .deltas_bytes = class->deltas_bytes,
                                           .program = &prepared[class->program]};
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
        const struct engine_program *program = engine->classes[rank->engine_class].program;
        for (uint32_t stream = 0; stream < STREAM_COUNT; stream++) {
            rank->cursor[stream] = program->first[stream];
            if (program->first[stream + 1] > program->first[stream]) {
                rank->ready = (uint16_t)(rank->ready | 1u << stream);
                used->events++;
                engine->streams_left++;
            }
        }
        if (rank->ready != 0) {
            engine->dirty[engine->dirty_count++] = i;
        }
        message_first[i] = used->messages;
        used->messages += program->message_count;
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
        const struct sim_group *group = &programs->groups[i];
        ASSERT(group->stream < STREAM_COUNT);
        engine->groups[i].stream = group->stream;
        engine->groups[i].member_count = group->member_count;
        engine->groups[i].members = &programs->members[group->member_first];
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
            memory->peak_op = ENGINE_NONE;
            memory->taken_op = ENGINE_NONE;
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
    const struct engine_program *program = engine_program_of(engine, rank);
    const uint32_t op_count = program->first[STREAM_COUNT];
    struct observed_rank *observed = &engine->observed[engine->observed_count];
    struct observed_times *times = &engine->observed_times[engine->observed_count];
    index[rank] = engine->observed_count++;
    engine->ranks[rank].observed = 1;
    observed->rank = rank;
    times->start = ARENA_ARRAY(arena, op_count, sim_time);
    times->end = ARENA_ARRAY(arena, op_count, sim_time);
    for (uint32_t stream = 0; stream < STREAM_COUNT; stream++) {
        observed->start[stream] = times->start + program->first[stream];
        observed->end[stream] = times->end + program->first[stream];
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

static void prepare_network(struct engine *engine, struct arena *arena)
{
    const struct programs *programs = engine->programs;
    if (programs->network == NULL || programs->network->model->create == NULL) {
        return;
    }
    const uint32_t slots = programs->group_count + programs->rank_count * TRANSFERS_OF_RANK;
    uint32_t *members_most = ARENA_ARRAY(arena, slots, uint32_t);
    for (uint32_t i = 0; i < slots; i++) {
        members_most[i] = i < programs->group_count ? programs->groups[i].member_count : 1;
    }
    engine->network = programs->network->model;
    engine->live = engine->network->create(programs->network, members_most, slots, arena);
    engine->transfers_done = ARENA_ARRAY(arena, slots, uint32_t);
}

struct engine *engine_prepare(const struct programs *programs, const struct engine_options *options,
                              struct arena *arena)
{
    struct used used = {0};
    struct engine *engine = ARENA_NEW(arena, struct engine);
    engine->programs = programs;
    engine->options = options;
    engine->sim_ranks = programs->ranks;
    engine->jitter_ppm = programs->jitter_ppm;
    engine->timeline = ARENA_NEW(arena, struct timeline);
    /* The lists pack a rank into 28 bits. */
    ASSERT(programs->rank_count < UINT32_C(1) << 28);
    engine->classes = prepare_classes(programs, &used, arena);
    prepare_ranks(engine, &used, arena);
    prepare_groups(engine, arena);
    prepare_side_tables(engine, &used, arena);
    prepare_observed(engine, arena);
    prepare_network(engine, arena);
    ASSERT(used.events < UINT32_MAX / 2);
    engine->received = ARENA_ARRAY(arena, used.events, uint32_t);
    engine->queue = event_queue_create(arena, (uint32_t)used.events, options->binary_heap);
    if (options->shuffle_seed != 0) {
        engine->shuffled = ARENA_ARRAY(arena, used.events, struct event);
    }
    return engine;
}
