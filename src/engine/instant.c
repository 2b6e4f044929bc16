/*
 * instant.c - all that happens at one time: completions, resolution, starts.
 *
 * The states of an op, all kept as cursors and bits of its rank:
 *
 *     waiting --start_op--> running --complete--> done (cursor of its stream moves on)
 *
 * A collective that has arrived and a recv that was posted count as running; the first
 * starts in begin_group() when its last member has arrived, the second ends in
 * resolve() when its message came. A completion marks the rank's own stream and the
 * streams whose ops wait for exactly this op; the start phase looks at those only.
 *
 * Nothing a handler does depends on the order within its phase: completions and starts
 * touch counters, bits and sums; memory and slowed compute are settled per instant.
 */
#include "stepsim/rng.h"

#define ENGINE_CLOCK_RUNS
#include "engine/digest.h"
#include "engine/engine_internal.h"
#include "engine/no_malloc.h"

/* Ranks looked at ahead of the loop over them, and ops ahead of a cursor: one cache line. */
enum { PREFETCH_DISTANCE = 6, PREFETCH_OPS = 4 };

static inline void make_ready(struct engine *engine, uint32_t rank, unsigned streams)
{
    struct engine_rank *state = &engine->ranks[rank];
    streams &= ~(unsigned)state->running;
    if (streams != 0 && state->ready == 0) {
        engine->dirty[engine->dirty_count++] = rank;
    }
    state->ready = (uint16_t)(state->ready | streams);
}

/* A message reaches its receiver, which may or may not have posted the recv. */
static void deliver(struct engine *engine, uint32_t sender, const struct engine_op *send)
{
    const uint32_t rank = engine->sim_ranks[sender].peer[send->peer];
    ASSERT(rank < engine->programs->rank_count);
    const uint32_t message = engine_side_of(engine, sender, send)->message;
    const struct engine_program *program = engine_program_of(engine, rank);
    ASSERT(message < program->message_count);
    const uint64_t slot = engine->message_first[rank] + message;
    ASSERT((engine->arrived[slot / 64] >> slot % 64 & 1) == 0);
    engine->arrived[slot / 64] |= UINT64_C(1) << slot % 64;
    engine->unread++;

    const uint32_t stream = program->message_stream[message];
    if ((engine->ranks[rank].running >> stream & 1) != 0) {
        const struct engine_op *recv = engine_next_op(engine, rank, stream);
        if (recv->kind == PROGRAM_OP_RECV &&
            engine_side_of(engine, rank, recv)->message == message) {
            engine->received[engine->received_count++] = rank << 4 | stream;
        }
    }
}

/* The part of an end that most ops do not have; the cursor is still at the op. */
static void complete_extras(struct engine *engine, uint32_t rank, uint32_t cursor,
                            const struct engine_op *op)
{
    if ((op->flags & ENGINE_OP_DELTA_END) != 0) {
        const struct engine_class *class = &engine->classes[engine->ranks[rank].engine_class];
        const uint32_t delta = class->program->sides[op->side].delta_end;
        memory_level_change(engine, rank, cursor, class->deltas_bytes[delta]);
    }
    if ((op->flags & ENGINE_OP_CONTENDS) != 0) {
        slowed_compute_contend(engine, rank, -1);
    }
    if ((op->flags & ENGINE_OP_SENDS) != 0) {
        deliver(engine, rank, op);
    }
    if ((op->flags & ENGINE_OP_LAST) != 0) {
        engine->results[rank].end = engine->now;
        engine->streams_left--;
    }
}

static inline void complete(struct engine *engine, uint32_t rank, uint32_t stream)
{
    struct engine_rank *state = &engine->ranks[rank];
    const uint32_t cursor = state->cursor[stream];
    const struct engine_op *op = engine_op_at(engine, rank, cursor);
    const unsigned bit = 1u << stream;
    if ((op->flags & ENGINE_OP_END_EXTRAS) != 0) {
        complete_extras(engine, rank, cursor, op);
    }
    if (state->observed != 0) {
        engine->observed_times[engine->observed_index[rank]].end[cursor] = engine->now;
    }
    if ((op->flags & ENGINE_OP_COMPUTE_STREAM) != 0) {
        state->compute_busy += engine->now;
    }
    state->hash += digest_completion(engine->now, cursor);
    state->cursor[stream] = cursor + 1;
    state->running = (uint16_t)(state->running & ~bit);
    make_ready(engine, rank, op->wakes);
}

static void complete_group(struct engine *engine, uint32_t group)
{
    const struct engine_group *state = &engine->groups[group];
    const uint32_t *members = state->members;
    const uint32_t count = state->member_count;
    const uint32_t stream = state->stream;
    for (uint32_t i = 0; i < count; i++) {
        if (i + PREFETCH_DISTANCE < count) {
            __builtin_prefetch(&engine->ranks[members[i + PREFETCH_DISTANCE]], 1);
        }
        complete(engine, members[i], stream);
    }
}

static void draw_order(struct engine *engine, uint32_t *list, uint32_t count)
{
    struct rng rng = rng_stream(engine->options->shuffle_seed, engine->shuffle_draws++);
    for (uint32_t i = count; i > 1; i--) {
        const uint64_t j = rng_below(&rng, i);
        const uint32_t swapped = list[i - 1];
        list[i - 1] = list[j];
        list[j] = swapped;
    }
}

static inline void shuffle_list(struct engine *engine, uint32_t *list, uint32_t count)
{
    if (engine->shuffled != NULL) {
        draw_order(engine, list, count);
    }
}

static inline bool due_now(const struct engine *engine)
{
    return engine->queue->count > 0 && queue_next_time(engine->queue) == engine->now;
}

static inline void handle_event(struct engine *engine, const struct event *event)
{
    if ((event->detail & EVENT_GROUP) != 0) {
        complete_group(engine, event->target);
        return;
    }
    const uint32_t generation = event->detail >> EVENT_GENERATION_SHIFT;
    if (generation == 0) {
        complete(engine, event->target, event->detail & (EVENT_GROUP - 1));
    } else if (slowed_compute_wake(engine, event->target, generation)) {
        complete(engine, event->target, STREAM_COMPUTE);
    }
}

/* All events of the instant so far, in an order drawn from the seed. */
static void complete_due_shuffled(struct engine *engine)
{
    uint32_t count = 0;
    while (due_now(engine)) {
        const struct event *taken;
        const uint32_t more = queue_take(engine->queue, UINT32_MAX, &taken);
        for (uint32_t i = 0; i < more; i++) {
            engine->shuffled[count++] = taken[i];
        }
    }
    engine->events += count;
    struct rng rng = rng_stream(engine->options->shuffle_seed, engine->shuffle_draws++);
    for (uint32_t i = count; i > 0; i--) {
        const uint64_t j = rng_below(&rng, i);
        handle_event(engine, &engine->shuffled[j]);
        engine->shuffled[j] = engine->shuffled[i - 1];
    }
}

/* Phase 0: everything that ends now. */
static inline void complete_due(struct engine *engine)
{
    if (engine->shuffled != NULL) {
        complete_due_shuffled(engine);
        return;
    }
    while (due_now(engine)) {
        const struct event *taken;
        const uint32_t count = queue_take(engine->queue, UINT32_MAX, &taken);
        engine->events += count;
        for (uint32_t i = 0; i < count; i++) {
            handle_event(engine, &taken[i]);
        }
    }
}

/* The part of a start that most ops do not have. */
static void start_extras(struct engine *engine, uint32_t rank, uint32_t cursor,
                         const struct engine_op *op)
{
    if ((op->flags & ENGINE_OP_DELTA_START) != 0) {
        const struct engine_class *class = &engine->classes[engine->ranks[rank].engine_class];
        const uint32_t delta = class->program->sides[op->side].delta_start;
        memory_level_change(engine, rank, cursor, class->deltas_bytes[delta]);
    }
    if ((op->flags & ENGINE_OP_CONTENDS) != 0) {
        slowed_compute_contend(engine, rank, 1);
    }
}

static inline void begin_op(struct engine *engine, uint32_t rank, uint32_t cursor,
                            const struct engine_op *op)
{
    struct engine_rank *state = &engine->ranks[rank];
    if ((op->flags & ENGINE_OP_START_EXTRAS) != 0) {
        start_extras(engine, rank, cursor, op);
    }
    if ((op->flags & ENGINE_OP_COMPUTE_STREAM) != 0) {
        state->compute_busy -= engine->now;
    }
    if (state->observed != 0) {
        engine->observed_times[engine->observed_index[rank]].start[cursor] = engine->now;
    }
}

/* Its last member has arrived: the collective begins. */
static void begin_group(struct engine *engine, uint32_t group)
{
    struct engine_group *state = &engine->groups[group];
    if (state->starts != 0) {
        for (uint32_t i = 0; i < state->member_count; i++) {
            const uint32_t rank = state->members[i];
            const uint32_t cursor = engine->ranks[rank].cursor[state->stream];
            begin_op(engine, rank, cursor, engine_op_at(engine, rank, cursor));
        }
    }
    if (engine->live == NULL || !transfers_begin_group(engine, group)) {
        engine_push(engine, state->duration, group, EVENT_GROUP);
    }
    state->arrived = 0;
    state->duration = 0;
    state->starts = 0;
}

/* Phase 1: recvs whose message came, and groups that are complete. */
static inline void resolve(struct engine *engine)
{
    shuffle_list(engine, engine->received, engine->received_count);
    for (uint32_t i = 0; i < engine->received_count; i++) {
        const uint32_t rank = engine->received[i] >> 4;
        const uint32_t stream = engine->received[i] & 15;
        const struct engine_op *recv = engine_next_op(engine, rank, stream);
        const uint64_t slot =
            engine->message_first[rank] + engine_side_of(engine, rank, recv)->message;
        engine->arrived[slot / 64] &= ~(UINT64_C(1) << slot % 64);
        engine->unread--;
        complete(engine, rank, stream);
    }
    engine->received_count = 0;
    shuffle_list(engine, engine->met, engine->met_count);
    for (uint32_t i = 0; i < engine->met_count; i++) {
        begin_group(engine, engine->met[i]);
    }
    engine->met_count = 0;
}

static inline void arrive(struct engine *engine, uint32_t rank, const struct engine_op *op,
                          sim_time duration)
{
    const uint32_t group = engine->sim_ranks[rank].group[op->peer];
    ASSERT(group < engine->programs->group_count);
    struct engine_group *state = &engine->groups[group];
    if (engine->live != NULL && (duration > state->duration || state->arrived == 0 ||
                                 (duration == state->duration && op->duration < state->priced))) {
        state->priced = op->duration;
    }
    state->duration = duration > state->duration ? duration : state->duration;
    if ((op->flags & (ENGINE_OP_START_EXTRAS | ENGINE_OP_COMPUTE_STREAM)) != 0 ||
        engine->ranks[rank].observed != 0) {
        state->starts = 1;
    }
    state->arrived++;
    if (state->arrived == state->member_count) {
        engine->met[engine->met_count++] = group;
    }
}

/* A recv that is posted after its message came ends in the next round of the instant. */
static void post_recv(struct engine *engine, uint32_t rank, uint32_t stream,
                      const struct engine_op *op)
{
    const uint64_t slot = engine->message_first[rank] + engine_side_of(engine, rank, op)->message;
    if ((engine->arrived[slot / 64] >> slot % 64 & 1) != 0) {
        engine->received[engine->received_count++] = rank << 4 | stream;
    }
}

static inline bool need_holds(const struct engine_rank *state, uint32_t need)
{
    return state->cursor[need >> NEED_STREAM_SHIFT] >= (need & NEED_CURSOR_MASK);
}

static bool further_needs_hold(const struct engine *engine, uint32_t rank,
                               const struct engine_op *op)
{
    const struct engine_program *program = engine_program_of(engine, rank);
    const struct engine_side *side = &program->sides[op->side];
    const uint32_t *needs = &program->needs[side->wait_first];
    for (uint32_t i = 0; i < side->wait_count; i++) {
        if (!need_holds(&engine->ranks[rank], needs[i])) {
            return false;
        }
    }
    return true;
}

/* Phase 2 for one stream that has ops left and runs none: its next op starts if it may. */
static inline void start_op(struct engine *engine, uint32_t rank, uint32_t stream)
{
    struct engine_rank *state = &engine->ranks[rank];
    const struct engine_class *class = &engine->classes[state->engine_class];
    const uint32_t cursor = state->cursor[stream];
    const struct engine_op *op = &class->ops[cursor];
    if (!need_holds(state, op->need)) {
        return;
    }
    if ((op->flags & ENGINE_OP_MORE_WAITS) != 0 && !further_needs_hold(engine, rank, op)) {
        return;
    }
    __builtin_prefetch(op + PREFETCH_OPS);
    state->running = (uint16_t)(state->running | 1u << stream);
    sim_time duration = class->durations_ps[op->duration];
    if (op->kind == PROGRAM_OP_COLLECTIVE) {
        arrive(engine, rank, op, duration);
        return;
    }
    begin_op(engine, rank, cursor, op);
    if (op->kind == PROGRAM_OP_RECV) {
        post_recv(engine, rank, stream, op);
        return;
    }
    if (engine->jitter_ppm != 0 && op->kind == PROGRAM_OP_COMPUTE) {
        duration = jitter_duration(engine, rank, stream, duration);
    }
    if ((op->flags & ENGINE_OP_SLOWED) != 0) {
        slowed_compute_start(engine, rank, duration);
        return;
    }
    if (engine->live != NULL && (op->kind == PROGRAM_OP_SEND || op->kind == PROGRAM_OP_COPY) &&
        transfers_begin_own(engine, rank, stream, op, duration)) {
        return;
    }
    engine_push(engine, duration, rank, stream);
}

/* Phase 2: every stream that something of this instant may have released. */
static inline void start_ready(struct engine *engine)
{
    const uint32_t count = engine->dirty_count;
    shuffle_list(engine, engine->dirty, count);
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t rank = engine->dirty[i];
        if (i + PREFETCH_DISTANCE < count) {
            __builtin_prefetch(&engine->ranks[engine->dirty[i + PREFETCH_DISTANCE]], 1);
        }
        unsigned ready = engine->ranks[rank].ready;
        engine->ranks[rank].ready = 0;
        for (; ready != 0; ready &= ready - 1) {
            start_op(engine, rank, (uint32_t)__builtin_ctz(ready));
        }
    }
    engine->dirty_count = 0;
}

/* Transfers that a network model ends now. */
static void complete_transfers(struct engine *engine)
{
    const uint32_t count = transfers_advance(engine);
    shuffle_list(engine, engine->transfers_done, count);
    for (uint32_t i = 0; i < count; i++) {
        const struct transfer_end end = transfers_end(engine, engine->transfers_done[i]);
        if (end.group) {
            complete_group(engine, end.target);
        } else {
            complete(engine, end.target, end.stream);
        }
    }
}

void engine_run_instant(struct engine *engine)
{
    if (engine->live != NULL) {
        complete_transfers(engine);
    }
    do {
        complete_due(engine);
        resolve(engine);
        start_ready(engine);
    } while (engine->met_count > 0 || engine->received_count > 0 || due_now(engine));
    if (engine->slowed != NULL) {
        slowed_compute_settle(engine);
    }
    if (engine->live != NULL) {
        engine->network->settle(engine->live, engine->now);
    }
}
