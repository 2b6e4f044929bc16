/*
 * engine.c - the loop: instants, their three phases, and the proof of the end state.
 *
 * The states of an op, all kept as counters and bits of its rank:
 *
 *     waiting --start_op--> running --complete--> done (counter of its stream moves on)
 *
 * A collective that has arrived and a recv that was posted count as running; the first
 * starts in begin_group() when its last member has arrived, the second ends in
 * resolve() when its message came. A completion marks the rank's own stream and the
 * streams whose ops wait for exactly this op; the start phase looks at those only.
 *
 * Nothing a handler does depends on the order within its phase: completions and starts
 * touch counters, bits and sums; memory and slowed compute are settled per instant.
 */
#include "stepsim/engine.h"

#include "stepsim/error.h"
#include "stepsim/rng.h"

#include "engine/digest.h"
#include "engine/engine_internal.h"
#define ENGINE_CLOCK_RUNS
#include "engine/no_malloc.h"

static inline void make_ready(struct engine *engine, uint32_t rank, unsigned streams)
{
    struct engine_rank *state = &engine->ranks[rank];
    streams &= ~(unsigned)state->running;
    if (streams == 0) {
        return;
    }
    if (state->ready == 0) {
        engine->dirty[engine->dirty_count++] = rank;
    }
    state->ready = (uint16_t)(state->ready | streams);
}

/* A message reaches its receiver, which may or may not have posted the recv. */
static void deliver(struct engine *engine, uint32_t sender, const struct engine_op *send)
{
    const uint32_t rank = engine->programs->ranks[sender].peer[send->peer];
    const struct engine_rank *state = &engine->ranks[rank];
    const struct engine_class *class = &engine->classes[state->engine_class];
    ASSERT(send->message < class->message_count);
    const uint64_t slot = engine->message_first[rank] + send->message;
    ASSERT((engine->arrived[slot / 64] >> slot % 64 & 1) == 0);
    engine->arrived[slot / 64] |= UINT64_C(1) << slot % 64;
    engine->unread++;

    const uint32_t stream = class->message_stream[send->message];
    if ((state->running >> stream & 1) != 0) {
        const struct engine_op *recv = engine_next_op(engine, rank, stream);
        if (recv->kind == PROGRAM_OP_RECV && recv->message == send->message) {
            engine->received[engine->received_count++] = rank << 4 | stream;
        }
    }
}

static void observe_start(struct engine *engine, uint32_t rank, uint32_t stream)
{
    const struct observed_times *times = &engine->observed_times[engine->observed_index[rank]];
    times->start[stream][engine->ranks[rank].done[stream]] = engine->now;
}

static void observe_end(struct engine *engine, uint32_t rank, uint32_t stream)
{
    const struct observed_times *times = &engine->observed_times[engine->observed_index[rank]];
    times->end[stream][engine->ranks[rank].done[stream] - 1] = engine->now;
}

/* The part of an end that most ops do not have. */
static void complete_extras(struct engine *engine, uint32_t rank, uint32_t stream,
                            const struct engine_op *op)
{
    if ((op->flags & ENGINE_OP_DELTA_END) != 0) {
        memory_level_change(engine, rank, stream, false);
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
    const struct engine_op *op = engine_next_op(engine, rank, stream);
    const unsigned bit = 1u << stream;
    state->hash += digest_completion(engine->now, stream, state->done[stream]);
    state->done[stream]++;
    state->running = (uint16_t)(state->running & ~bit);
    if ((op->flags & ENGINE_OP_COMPUTE_STREAM) != 0) {
        state->compute_busy += engine->now;
    }
    const unsigned extras =
        ENGINE_OP_DELTA_END | ENGINE_OP_CONTENDS | ENGINE_OP_SENDS | ENGINE_OP_LAST;
    if ((op->flags & extras) != 0) {
        complete_extras(engine, rank, stream, op);
    }
    if (state->observed != 0) {
        observe_end(engine, rank, stream);
    }
    engine->ops++;
    make_ready(engine, rank, (op->flags & ENGINE_OP_LAST) != 0 ? op->notify : op->notify | bit);
}

static void complete_group(struct engine *engine, uint32_t group)
{
    const struct sim_group *members = &engine->programs->groups[group];
    const uint32_t *member = &engine->programs->members[members->member_first];
    const uint32_t stream = engine->groups[group].stream;
    for (uint32_t i = 0; i < members->member_count; i++) {
        complete(engine, member[i], stream);
    }
}

static void shuffle_events(struct engine *engine, struct event *events, uint32_t count)
{
    struct rng rng = rng_stream(engine->options->shuffle_seed, engine->shuffle_draws++);
    for (uint32_t i = count; i > 1; i--) {
        const uint64_t j = rng_below(&rng, i);
        const struct event swapped = events[i - 1];
        events[i - 1] = events[j];
        events[j] = swapped;
    }
}

static void shuffle_list(struct engine *engine, uint32_t *list, uint32_t count)
{
    if (engine->options->shuffle_seed == 0) {
        return;
    }
    struct rng rng = rng_stream(engine->options->shuffle_seed, engine->shuffle_draws++);
    for (uint32_t i = count; i > 1; i--) {
        const uint64_t j = rng_below(&rng, i);
        const uint32_t swapped = list[i - 1];
        list[i - 1] = list[j];
        list[j] = swapped;
    }
}

static inline bool due_now(const struct engine *engine)
{
    return event_queue_count(engine->queue) > 0 &&
           event_queue_next_time(engine->queue) == engine->now;
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

/* Phase 0: everything that ends now. */
static void complete_due(struct engine *engine)
{
    while (due_now(engine)) {
        struct event *due = engine->due;
        const uint32_t count = event_queue_pop_ties(engine->queue, due, engine->due_capacity);
        engine->events += count;
        if (engine->options->shuffle_seed != 0) {
            shuffle_events(engine, due, count);
        }
        for (uint32_t i = 0; i < count; i++) {
            handle_event(engine, &due[i]);
        }
    }
}

/*
 * When a transfer that begins now will end. With a network model, this is where it
 * will be asked, once for all transfers of an instant; closed-form durations are final.
 */
static inline sim_time transfer_duration(const struct engine *engine, sim_time closed_form)
{
    ASSERT_SLOW(engine->programs->network == NULL);
    (void)engine;
    return closed_form;
}

/* The part of a start that most ops do not have. */
static void start_extras(struct engine *engine, uint32_t rank, uint32_t stream,
                         const struct engine_op *op)
{
    if ((op->flags & ENGINE_OP_DELTA_START) != 0) {
        memory_level_change(engine, rank, stream, true);
    }
    if ((op->flags & ENGINE_OP_CONTENDS) != 0) {
        slowed_compute_contend(engine, rank, 1);
    }
    if ((op->flags & ENGINE_OP_COMPUTE_STREAM) != 0) {
        engine->ranks[rank].compute_busy -= engine->now;
    }
    if (engine->ranks[rank].observed != 0) {
        observe_start(engine, rank, stream);
    }
}

static const unsigned start_extra_flags =
    ENGINE_OP_DELTA_START | ENGINE_OP_CONTENDS | ENGINE_OP_COMPUTE_STREAM;

/* Its last member has arrived: the collective begins. */
static void begin_group(struct engine *engine, uint32_t group)
{
    struct engine_group *state = &engine->groups[group];
    if (state->starts != 0) {
        const struct sim_group *members = &engine->programs->groups[group];
        const uint32_t *member = &engine->programs->members[members->member_first];
        for (uint32_t i = 0; i < members->member_count; i++) {
            const struct engine_op *op = engine_next_op(engine, member[i], state->stream);
            start_extras(engine, member[i], state->stream, op);
        }
    }
    engine_push(engine, transfer_duration(engine, state->duration), group, EVENT_GROUP);
    state->arrived = 0;
    state->duration = 0;
    state->starts = 0;
}

/* Phase 1: recvs whose message came, and groups that are complete. */
static void resolve(struct engine *engine)
{
    shuffle_list(engine, engine->received, engine->received_count);
    for (uint32_t i = 0; i < engine->received_count; i++) {
        const uint32_t rank = engine->received[i] >> 4;
        const uint32_t stream = engine->received[i] & 15;
        const struct engine_op *recv = engine_next_op(engine, rank, stream);
        const uint64_t slot = engine->message_first[rank] + recv->message;
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

static void arrive(struct engine *engine, uint32_t rank, const struct engine_op *op,
                   sim_time duration)
{
    const uint32_t group = engine->programs->ranks[rank].group[op->peer];
    ASSERT(group < engine->programs->group_count);
    struct engine_group *state = &engine->groups[group];
    state->duration = duration > state->duration ? duration : state->duration;
    if ((op->flags & start_extra_flags) != 0 || engine->ranks[rank].observed != 0) {
        state->starts = 1;
    }
    state->arrived++;
    if (state->arrived == engine->programs->groups[group].member_count) {
        engine->met[engine->met_count++] = group;
    }
}

/* A recv that was posted after its message came ends in the next round of the instant. */
static void post_recv(struct engine *engine, uint32_t rank, uint32_t stream,
                      const struct engine_op *op)
{
    const uint64_t slot = engine->message_first[rank] + op->message;
    if ((engine->arrived[slot / 64] >> slot % 64 & 1) != 0) {
        engine->received[engine->received_count++] = rank << 4 | stream;
    }
}

static inline bool waits_hold(const struct engine_rank *state, const struct engine_class *class,
                              const struct engine_op *op)
{
    const struct program_wait *wait = &class->waits[op->wait_first];
    for (uint32_t i = 0; i < op->wait_count; i++) {
        if (state->done[wait[i].stream] <= wait[i].index) {
            return false;
        }
    }
    return true;
}

/* Phase 2 for one stream that is not running: its next op starts if its waits hold. */
static inline void start_op(struct engine *engine, uint32_t rank, uint32_t stream)
{
    struct engine_rank *state = &engine->ranks[rank];
    const struct engine_class *class = &engine->classes[state->engine_class];
    if (state->done[stream] == class->op_count[stream]) {
        return;
    }
    const struct engine_op *op = &class->ops[stream][state->done[stream]];
    if (!waits_hold(state, class, op)) {
        return;
    }
    state->running = (uint16_t)(state->running | 1u << stream);
    sim_time duration = class->durations_ps[op->duration];
    if (op->kind == PROGRAM_OP_COLLECTIVE) {
        arrive(engine, rank, op, duration);
        return;
    }
    if ((op->flags & start_extra_flags) != 0 || state->observed != 0) {
        start_extras(engine, rank, stream, op);
    }
    if (op->kind == PROGRAM_OP_RECV) {
        post_recv(engine, rank, stream, op);
        return;
    }
    if (op->kind == PROGRAM_OP_COMPUTE && engine->programs->jitter_ppm != 0) {
        duration = jitter_duration(engine, rank, stream, duration);
    }
    if ((op->flags & ENGINE_OP_SLOWED) != 0) {
        slowed_compute_start(engine, rank, duration);
        return;
    }
    if (op->kind == PROGRAM_OP_SEND) {
        duration = transfer_duration(engine, duration);
    }
    engine_push(engine, duration, rank, stream);
}

/* Phase 2: every stream that something of this instant may have released. */
static void start_ready(struct engine *engine)
{
    shuffle_list(engine, engine->dirty, engine->dirty_count);
    for (uint32_t i = 0; i < engine->dirty_count; i++) {
        const uint32_t rank = engine->dirty[i];
        unsigned ready = engine->ranks[rank].ready;
        engine->ranks[rank].ready = 0;
        for (; ready != 0; ready &= ready - 1) {
            start_op(engine, rank, (uint32_t)__builtin_ctz(ready));
        }
    }
    engine->dirty_count = 0;
}

static void run_instant(struct engine *engine)
{
    do {
        complete_due(engine);
        resolve(engine);
        start_ready(engine);
    } while (due_now(engine) || engine->met_count > 0 || engine->received_count > 0);
    if (engine->slowed != NULL) {
        slowed_compute_settle(engine);
    }
}

/* False when the event budget ran out. */
static bool run_clock(struct engine *engine)
{
    const uint64_t budget = engine->options->event_budget;
    run_instant(engine); /* everything that may start at 0 */
    while (event_queue_count(engine->queue) > 0) {
        if (budget != 0 && engine->events > budget) {
            return false;
        }
        const sim_time next = event_queue_next_time(engine->queue);
        ASSERT(next > engine->now);
        engine->now = next;
        run_instant(engine);
    }
    return budget == 0 || engine->events <= budget;
}

/* With every op done nothing may be left over. */
static void prove_end(const struct engine *engine)
{
    const struct programs *programs = engine->programs;
    ASSERT(engine->unread == 0);
    for (uint32_t i = 0; i < programs->group_count; i++) {
        ASSERT(engine->groups[i].arrived == 0);
    }
    for (uint32_t i = 0; i < programs->rank_count; i++) {
        const struct engine_rank *rank = &engine->ranks[i];
        ASSERT(rank->running == 0 && rank->contending == 0);
        for (uint32_t stream = 0; stream < STREAM_COUNT; stream++) {
            const struct engine_class *class = &engine->classes[rank->engine_class];
            ASSERT(rank->done[stream] == class->op_count[stream]);
        }
    }
}

static const struct timeline *finish(struct engine *engine, struct arena *arena)
{
    struct timeline *timeline = engine->timeline;
    memory_level_finish(engine);
    for (uint32_t i = 0; i < engine->programs->rank_count; i++) {
        struct rank_result *result = &engine->results[i];
        result->compute_busy = engine->ranks[i].compute_busy;
        result->busy_hash = engine->ranks[i].hash;
        timeline->end = result->end > timeline->end ? result->end : timeline->end;
    }
    timeline->ranks = engine->results;
    timeline->observed = engine->observed;
    timeline->observed_count = engine->observed_count;
    timeline->ops = engine->ops;
    timeline->events = engine->events;
    timeline->stale_events = engine->stale_events;
    digest_timeline(timeline, engine->programs, arena);
    return timeline;
}

const struct timeline *engine_run(const struct programs *programs,
                                  const struct engine_options *options, struct arena *arena,
                                  const char **failure)
{
    ASSERT(programs->network == NULL);
    ASSERT(programs->contention_compute_ppm == 0 || programs->contention_compute_ppm >= 1000000);
    ASSERT(programs->jitter_ppm >= 0 && programs->jitter_ppm <= 1000000);
    struct engine *engine = engine_prepare(programs, options, arena);
    *failure = NULL;
    if (!run_clock(engine) || engine->streams_left > 0) {
        *failure = deadlock_text(engine, arena);
        return NULL;
    }
    prove_end(engine);
    return finish(engine, arena);
}
