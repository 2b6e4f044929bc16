/*
 * deadlock.c - names what waits for what when a step cannot end.
 *
 * Ops that wait for another rank (a collective that has arrived, a recv that was
 * posted) come first, since they are where a deadlock closes; then ops that wait for
 * another stream of their own rank. Within both, order is by rank and stream.
 */
#include "stepsim/text.h"

#include "engine/engine_internal.h"
#include "engine/no_malloc.h"

enum { REPORTED_OPS_MAX = 10 };

static bool stream_done(const struct engine *engine, uint32_t rank, uint32_t stream)
{
    return engine->ranks[rank].cursor[stream] == engine_program_of(engine, rank)->first[stream + 1];
}

/* Index of the next op of a stream. */
static uint32_t next_index(const struct engine *engine, uint32_t rank, uint32_t stream)
{
    return engine->ranks[rank].cursor[stream] - engine_program_of(engine, rank)->first[stream];
}

static const struct program_op *program_op_at(const struct engine *engine, uint32_t rank,
                                              uint32_t stream, uint32_t index)
{
    const struct programs *programs = engine->programs;
    const struct rank_class *class = &programs->classes[programs->ranks[rank].rank_class];
    return &programs->programs[class->program].ops[stream][index];
}

static void add_rank(struct text *text, const struct engine *engine, uint32_t rank)
{
    const struct sim_rank *sim_rank = &engine->programs->ranks[rank];
    text_add(text, "rank %u (stage %u)", sim_rank->rank,
             engine->programs->classes[sim_rank->rank_class].stage);
}

/* "compute op 12 `attention` (pass F, microbatch 2, layer 7)" */
static void add_op(struct text *text, const struct engine *engine, uint32_t rank, uint32_t stream,
                   uint32_t index)
{
    const struct program_op *op = program_op_at(engine, rank, stream, index);
    text_add(text, "%s op %u", stream_name((enum stream)stream), index);
    if (op->label >= engine->programs->label_count) {
        return;
    }
    const struct program_label *label = &engine->programs->labels[op->label];
    text_add(text, " `%s`", label->name);
    const char *comma = " (";
    if (label->pass != '\0') {
        text_add(text, "%spass %c", comma, label->pass);
        comma = ", ";
    }
    if (label->microbatch >= 0) {
        text_add(text, "%smicrobatch %d", comma, (int)label->microbatch);
        comma = ", ";
    }
    if (label->layer >= 0) {
        text_add(text, "%slayer %d", comma, (int)label->layer);
        comma = ", ";
    }
    text_add(text, "%schunk %u)", comma, (unsigned)label->chunk);
}

static bool has_arrived(const struct engine *engine, uint32_t rank, uint32_t group)
{
    const struct engine_rank *state = &engine->ranks[rank];
    const uint32_t stream = engine->groups[group].stream;
    if ((state->running >> stream & 1) == 0) {
        return false;
    }
    const struct engine_op *op = engine_next_op(engine, rank, stream);
    return op->kind == PROGRAM_OP_COLLECTIVE &&
           engine->programs->ranks[rank].group[op->peer] == group;
}

static void add_group(struct text *text, const struct engine *engine, uint32_t group)
{
    const struct sim_group *sim_group = &engine->programs->groups[group];
    text_add(text, "waits for group %u (%s): %u of %u members have arrived", group,
             group_slot_name((enum group_slot)sim_group->slot), engine->groups[group].arrived,
             sim_group->member_count);
    const uint32_t stream = engine->groups[group].stream;
    for (uint32_t i = 0; i < sim_group->member_count; i++) {
        const uint32_t member = engine->programs->members[sim_group->member_first + i];
        if (has_arrived(engine, member, group)) {
            continue;
        }
        text_add(text, "; first missing is ");
        add_rank(text, engine, member);
        if (stream_done(engine, member, stream)) {
            text_add(text, ", whose %s stream has ended", stream_name((enum stream)stream));
        } else {
            text_add(text, ", at ");
            add_op(text, engine, member, stream, next_index(engine, member, stream));
        }
        return;
    }
}

/* The send of this message, if the peer has one: it has not ended. */
static void add_sender(struct text *text, const struct engine *engine, uint32_t receiver,
                       uint32_t message)
{
    for (uint32_t p = 0; p < RANK_PEERS_MAX; p++) {
        const uint32_t sender = engine->programs->ranks[receiver].peer[p];
        if (sender >= engine->programs->rank_count) {
            continue;
        }
        const uint32_t *first = engine_program_of(engine, sender)->first;
        for (uint32_t stream = 0; stream < STREAM_COUNT; stream++) {
            for (uint32_t i = 0; i < first[stream + 1] - first[stream]; i++) {
                const struct program_op *op = program_op_at(engine, sender, stream, i);
                if (op->kind == PROGRAM_OP_SEND && op->message == message &&
                    engine->programs->ranks[sender].peer[op->peer] == receiver) {
                    add_rank(text, engine, sender);
                    text_add(text, ", whose ");
                    add_op(text, engine, sender, stream, i);
                    text_add(text, " has not ended");
                    return;
                }
            }
        }
    }
    text_add(text, "nobody: no peer sends it");
}

static void add_running(struct text *text, const struct engine *engine, uint32_t rank,
                        const struct program_op *op)
{
    if (op->kind == PROGRAM_OP_RECV) {
        text_add(text, "waits for message %u from ", op->message);
        add_sender(text, engine, rank, op->message);
    } else if (op->kind == PROGRAM_OP_COLLECTIVE) {
        add_group(text, engine, engine->programs->ranks[rank].group[op->peer]);
    } else {
        text_add(text, "runs");
    }
}

static void add_waiting(struct text *text, const struct engine *engine, uint32_t rank,
                        const struct program_op *op)
{
    const struct programs *programs = engine->programs;
    const struct rank_class *class = &programs->classes[programs->ranks[rank].rank_class];
    const struct program_wait *waits = programs->programs[class->program].waits;
    for (uint32_t i = 0; i < op->wait_count; i++) {
        const struct program_wait wait = waits[op->wait_first + i];
        if (next_index(engine, rank, wait.stream) <= wait.index) {
            text_add(text, "waits for ");
            add_op(text, engine, rank, wait.stream, wait.index);
            return;
        }
    }
    text_add(text, "may start");
}

static void add_line(struct text *text, const struct engine *engine, uint32_t rank, uint32_t stream)
{
    const uint32_t index = next_index(engine, rank, stream);
    const struct program_op *op = program_op_at(engine, rank, stream, index);
    text_add(text, "\n  ");
    add_rank(text, engine, rank);
    text_add(text, ": ");
    add_op(text, engine, rank, stream, index);
    text_add(text, " ");
    if ((engine->ranks[rank].running >> stream & 1) != 0) {
        add_running(text, engine, rank, op);
    } else {
        add_waiting(text, engine, rank, op);
    }
}

/* Adds the ops of one sort; beyond the limit they are only counted. */
static uint32_t add_ops(struct text *text, const struct engine *engine, bool running,
                        uint32_t count)
{
    for (uint32_t rank = 0; rank < engine->programs->rank_count; rank++) {
        for (uint32_t stream = 0; stream < STREAM_COUNT; stream++) {
            const bool runs = (engine->ranks[rank].running >> stream & 1) != 0;
            if (stream_done(engine, rank, stream) || runs != running) {
                continue;
            }
            if (count++ < REPORTED_OPS_MAX) {
                add_line(text, engine, rank, stream);
            }
        }
    }
    return count;
}

/* Ops done so far, of all ranks. */
static uint64_t ops_done(const struct engine *engine)
{
    uint64_t ops = 0;
    for (uint32_t rank = 0; rank < engine->programs->rank_count; rank++) {
        for (uint32_t stream = 0; stream < STREAM_COUNT; stream++) {
            ops += next_index(engine, rank, stream);
        }
    }
    return ops;
}

const char *deadlock_text(const struct engine *engine, struct arena *arena)
{
    struct text text = {0};
    const uint64_t budget = engine->options->event_budget;
    if (budget != 0 && engine->events > budget) {
        text_add(&text, "event budget of %llu passed", (unsigned long long)budget);
    } else {
        text_add(&text, "deadlock");
    }
    text_add(&text, " at %lld ps, %llu ops done; not done:", (long long)engine->now,
             (unsigned long long)ops_done(engine));
    uint32_t count = add_ops(&text, engine, true, 0);
    count = add_ops(&text, engine, false, count);
    if (count > REPORTED_OPS_MAX) {
        text_add(&text, "\n  and %u more", count - REPORTED_OPS_MAX);
    }
    const char *copy = arena_strdup(arena, text_string(&text));
    text_free(&text);
    return copy;
}
