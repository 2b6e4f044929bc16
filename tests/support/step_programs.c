/*
 * step_programs.c - writes the synthetic step straight into the structs of programs.h.
 *
 * Every duration and delta is a row of a short table, so a class is a few hundred bytes.
 */
#include "step_programs.h"

#include <string.h>

#include "stepsim/error.h"

enum { US_PS = 1000000 };

/* Durations; forward rows first, the backward ones take twice as long where it is compute. */
enum {
    TAKES_NOTHING,
    TAKES_ATTENTION,
    TAKES_EXPERTS,
    TAKES_TP,
    TAKES_EP,
    TAKES_SEND,
    TAKES_DP,
    TAKES_ATTENTION_B,
    TAKES_EXPERTS_B,
    TAKES_COUNT
};

static const sim_time durations_ps[TAKES_COUNT] = {
    [TAKES_ATTENTION] = 300 * US_PS,   [TAKES_EXPERTS] = 400 * US_PS,
    [TAKES_TP] = 90 * US_PS,           [TAKES_EP] = 140 * US_PS,
    [TAKES_SEND] = 60 * US_PS,         [TAKES_DP] = (sim_time)5000 * US_PS,
    [TAKES_ATTENTION_B] = 600 * US_PS, [TAKES_EXPERTS_B] = 800 * US_PS,
};

enum { BYTES_NONE, BYTES_SAVE, BYTES_RELEASE, BYTES_TAKE_BUFFER, BYTES_GIVE_BUFFER, BYTES_COUNT };

static const int64_t deltas_bytes[BYTES_COUNT] = {
    [BYTES_SAVE] = 100000,
    [BYTES_RELEASE] = -100000,
    [BYTES_TAKE_BUFFER] = 7000,
    [BYTES_GIVE_BUFFER] = -7000,
};

enum {
    LABEL_ATTENTION,
    LABEL_EXPERTS,
    LABEL_TP,
    LABEL_DISPATCH,
    LABEL_COMBINE,
    LABEL_SEND,
    LABEL_RECV,
    LABEL_DP,
    LABEL_COUNT
};

static const struct program_label labels[LABEL_COUNT] = {
    [LABEL_ATTENTION] = {.name = "attention", .microbatch = -1, .layer = -1},
    [LABEL_EXPERTS] = {.name = "experts", .microbatch = -1, .layer = -1},
    [LABEL_TP] = {.name = "tp", .microbatch = -1, .layer = -1},
    [LABEL_DISPATCH] = {.name = "dispatch", .microbatch = -1, .layer = -1},
    [LABEL_COMBINE] = {.name = "combine", .microbatch = -1, .layer = -1},
    [LABEL_SEND] = {.name = "send", .microbatch = -1, .layer = -1},
    [LABEL_RECV] = {.name = "recv", .microbatch = -1, .layer = -1},
    [LABEL_DP] = {.name = "grad_reduce", .microbatch = -1, .layer = -1},
};

/* One program while it is written; `last` is the op that the next one waits for. */
struct stage_writer {
    const struct step_shape *shape;
    uint32_t stage;
    struct program_op *ops[STREAM_COUNT];
    uint32_t op_count[STREAM_COUNT];
    struct program_wait *waits;
    uint32_t wait_count;
    struct program_wait last;
    bool has_last;
    struct program_wait pass; /* the end of the pass before, for the next compute op */
    bool has_pass;
    uint32_t message_count;
};

static struct program_op *write_op(struct stage_writer *w, enum stream stream,
                                   enum program_op_kind kind, uint32_t duration, uint32_t label)
{
    struct program_op *op = &w->ops[stream][w->op_count[stream]++];
    op->kind = (uint8_t)kind;
    op->duration = duration;
    op->label = label;
    op->wait_first = w->wait_count;
    return op;
}

static void add_wait(struct stage_writer *w, struct program_op *op, struct program_wait wait)
{
    w->waits[w->wait_count++] = wait;
    op->wait_count++;
}

/* In the chain of the microbatch: waits for the op before it if that is on another stream. */
static struct program_op *write_chained(struct stage_writer *w, enum stream stream,
                                        enum program_op_kind kind, uint32_t duration,
                                        uint32_t label)
{
    struct program_op *op = write_op(w, stream, kind, duration, label);
    if (w->has_last && w->last.stream != (uint32_t)stream) {
        add_wait(w, op, w->last);
    }
    if (w->has_pass && stream == STREAM_COMPUTE) {
        add_wait(w, op, w->pass);
        w->has_pass = false;
    }
    w->last = (struct program_wait){.index = w->op_count[stream] - 1, .stream = (uint32_t)stream};
    w->has_last = true;
    return op;
}

static void write_exchange(struct stage_writer *w, uint32_t label)
{
    struct program_op *op = write_chained(w, STREAM_EP, PROGRAM_OP_COLLECTIVE, TAKES_EP, label);
    op->peer = GROUP_EP;
    op->flags = PROGRAM_OP_CONTENDS;
    if (w->shape->memory) {
        op->delta_start = BYTES_TAKE_BUFFER;
        op->delta_end = BYTES_GIVE_BUFFER;
    }
}

static void write_layer(struct stage_writer *w, bool forward)
{
    struct program_op *op =
        write_chained(w, STREAM_COMPUTE, PROGRAM_OP_COMPUTE,
                      forward ? TAKES_ATTENTION : TAKES_ATTENTION_B, LABEL_ATTENTION);
    op->flags = PROGRAM_OP_SLOWED;
    if (w->shape->memory && forward) {
        op->delta_start = BYTES_SAVE;
    }
    if (w->shape->tp > 1) {
        op = write_chained(w, STREAM_TP, PROGRAM_OP_COLLECTIVE, TAKES_TP, LABEL_TP);
        op->peer = GROUP_TP;
    }
    write_exchange(w, LABEL_DISPATCH);
    op = write_chained(w, STREAM_COMPUTE, PROGRAM_OP_COMPUTE,
                       forward ? TAKES_EXPERTS : TAKES_EXPERTS_B, LABEL_EXPERTS);
    op->flags = PROGRAM_OP_SLOWED;
    if (w->shape->memory && !forward) {
        op->delta_end = BYTES_RELEASE;
    }
    write_exchange(w, LABEL_COMBINE);
}

/* One pass of one microbatch; the stage does one pass after the other. */
static void write_pass(struct stage_writer *w, uint32_t microbatch, bool forward)
{
    const bool first = w->stage == 0, last = w->stage + 1 == w->shape->pp;
    if (w->op_count[STREAM_EP] > 0) {
        w->pass.stream = STREAM_EP;
        w->pass.index = w->op_count[STREAM_EP] - 1;
        w->has_pass = true;
    }
    w->has_last = false;
    if (forward ? !first : !last) {
        struct program_op *op =
            write_chained(w, STREAM_RECV, PROGRAM_OP_RECV, TAKES_NOTHING, LABEL_RECV);
        op->peer = forward ? PEER_PREVIOUS : PEER_NEXT;
        op->message = w->message_count++;
    }
    for (uint32_t layer = 0; layer < w->shape->layers; layer++) {
        write_layer(w, forward);
    }
    if (forward ? !last : !first) {
        struct program_op *op =
            write_chained(w, STREAM_SEND, PROGRAM_OP_SEND,
                          w->shape->free_links ? TAKES_NOTHING : TAKES_SEND, LABEL_SEND);
        op->peer = forward ? PEER_NEXT : PEER_PREVIOUS;
        op->message = microbatch; /* number_messages() makes an ordinal of it */
    }
}

static void write_stage(struct stage_writer *w)
{
    const uint32_t microbatches = w->shape->microbatches;
    uint32_t warmup = w->shape->pp - 1 - w->stage;
    warmup = warmup < microbatches ? warmup : microbatches;
    uint32_t forward = 0, backward = 0;
    for (uint32_t slot = 0; slot < microbatches + warmup; slot++) {
        if (forward < microbatches) {
            write_pass(w, forward++, true);
        }
        if (slot >= warmup) {
            write_pass(w, backward++, false);
        }
    }
    if (w->shape->dp > 1) {
        struct program_op *op =
            write_chained(w, STREAM_DP, PROGRAM_OP_COLLECTIVE, TAKES_DP, LABEL_DP);
        op->peer = GROUP_DP_CP;
    }
}

/* Position of the recv of one microbatch among all recvs of its stage. */
static uint32_t recv_ordinal(const struct program *receiver, uint32_t peer, uint32_t microbatch)
{
    for (uint32_t i = 0; i < receiver->op_count[STREAM_RECV]; i++) {
        const struct program_op *op = &receiver->ops[STREAM_RECV][i];
        if (op->peer == peer && microbatch-- == 0) {
            return op->message;
        }
    }
    ASSERT(false);
    return 0;
}

static void number_messages(struct program *programs, uint32_t stage, struct program_op *sends)
{
    for (uint32_t i = 0; i < programs[stage].op_count[STREAM_SEND]; i++) {
        const bool next = sends[i].peer == PEER_NEXT;
        sends[i].message = recv_ordinal(&programs[next ? stage + 1 : stage - 1],
                                        next ? PEER_PREVIOUS : PEER_NEXT, sends[i].message);
    }
}

static void write_programs(const struct step_shape *shape, struct program *out, struct arena *arena)
{
    const uint32_t passes = 2 * shape->microbatches;
    struct program_op **sends = ARENA_ARRAY(arena, shape->pp, struct program_op *);
    for (uint32_t stage = 0; stage < shape->pp; stage++) {
        struct stage_writer w = {.shape = shape, .stage = stage};
        for (uint32_t s = 0; s < STREAM_COUNT; s++) {
            const bool used = s == STREAM_COMPUTE || s == STREAM_TP || s == STREAM_EP;
            const uint32_t most = used ? 2 * passes * shape->layers
                                  : s == STREAM_SEND || s == STREAM_RECV ? passes
                                                                         : 1;
            w.ops[s] = ARENA_ARRAY(arena, most, struct program_op);
        }
        w.waits = ARENA_ARRAY(arena, passes * (5 * shape->layers + 3) + 1, struct program_wait);
        write_stage(&w);
        for (uint32_t s = 0; s < STREAM_COUNT; s++) {
            out[stage].ops[s] = w.ops[s];
            out[stage].op_count[s] = w.op_count[s];
        }
        out[stage].waits = w.waits;
        out[stage].wait_count = w.wait_count;
        out[stage].message_count = w.message_count;
        sends[stage] = w.ops[STREAM_SEND];
    }
    for (uint32_t stage = 0; stage < shape->pp; stage++) {
        number_messages(out, stage, sends[stage]);
    }
}

/* Groups of one stage and slot: member m of group g is rank first + g * step + m * stride. */
struct tiling {
    enum group_slot slot;
    enum stream stream;
    uint32_t groups, size, step, stride;
};

struct rank_writer {
    const struct step_shape *shape;
    struct sim_rank *ranks;
    struct sim_group *groups;
    uint32_t *members;
    uint32_t group_count, member_count;
};

static void write_groups(struct rank_writer *w, uint32_t first, struct tiling tiling)
{
    const uint32_t groups = w->shape->folded ? 1 : tiling.groups;
    const uint32_t simulated = w->shape->folded ? 1 : tiling.size;
    for (uint32_t g = 0; g < groups; g++) {
        w->groups[w->group_count] = (struct sim_group){.member_first = w->member_count,
                                                       .member_count = simulated,
                                                       .size = tiling.size,
                                                       .slot = (uint8_t)tiling.slot,
                                                       .stream = (uint8_t)tiling.stream};
        for (uint32_t m = 0; m < simulated; m++) {
            const uint32_t rank = first + g * tiling.step + m * tiling.stride;
            w->members[w->member_count++] = rank;
            w->ranks[rank].group[tiling.slot] = w->group_count;
        }
        w->group_count++;
    }
}

static void write_ranks(struct rank_writer *w, struct programs *programs, struct arena *arena)
{
    const struct step_shape *shape = w->shape;
    const uint32_t width = shape->folded ? 1 : shape->dp * shape->tp;
    const uint32_t true_width = shape->dp * shape->tp;
    const uint32_t count = shape->pp * width;
    w->ranks = ARENA_ARRAY(arena, count, struct sim_rank);
    w->groups = ARENA_ARRAY(arena, 3 * (size_t)count, struct sim_group);
    w->members = ARENA_ARRAY(arena, 3 * (size_t)count, uint32_t);
    for (uint32_t r = 0; r < count; r++) {
        const uint32_t stage = r / width;
        memset(w->ranks[r].group, 0xFF, sizeof w->ranks[r].group);
        w->ranks[r].rank_class = stage;
        w->ranks[r].rank = stage * true_width + r % width;
        w->ranks[r].peer[PEER_NEXT] = stage + 1 < shape->pp ? r + width : UINT32_MAX;
        w->ranks[r].peer[PEER_PREVIOUS] = stage > 0 ? r - width : UINT32_MAX;
    }
    for (uint32_t stage = 0; stage < shape->pp; stage++) {
        const uint32_t first = stage * width;
        write_groups(w, first,
                     (struct tiling){GROUP_TP, STREAM_TP, shape->dp, shape->tp, shape->tp, 1});
        write_groups(
            w, first,
            (struct tiling){GROUP_EP, STREAM_EP, true_width / shape->ep, shape->ep, shape->ep, 1});
        write_groups(w, first,
                     (struct tiling){GROUP_DP_CP, STREAM_DP, shape->tp, shape->dp, 1, shape->tp});
    }
    programs->ranks = w->ranks;
    programs->rank_count = count;
    programs->groups = w->groups;
    programs->group_count = w->group_count;
    programs->members = w->members;
    programs->member_count = w->member_count;
    programs->world = shape->pp * true_width;
}

const struct programs *step_programs_build(const struct step_shape *shape, struct arena *arena)
{
    ASSERT(shape->dp * shape->tp % shape->ep == 0);
    struct programs *programs = ARENA_NEW(arena, struct programs);
    struct program *written = ARENA_ARRAY(arena, shape->pp, struct program);
    struct rank_class *classes = ARENA_ARRAY(arena, shape->pp, struct rank_class);
    write_programs(shape, written, arena);
    for (uint32_t stage = 0; stage < shape->pp; stage++) {
        classes[stage] = (struct rank_class){.program = stage,
                                             .durations_ps = durations_ps,
                                             .deltas_bytes = deltas_bytes,
                                             .stage = stage,
                                             .rank_count = shape->dp * shape->tp,
                                             .static_bytes = 1000000};
    }
    programs->programs = written;
    programs->program_count = shape->pp;
    programs->classes = classes;
    programs->class_count = shape->pp;
    programs->duration_count = TAKES_COUNT;
    programs->delta_count = BYTES_COUNT;
    programs->labels = labels;
    programs->label_count = LABEL_COUNT;
    programs->stage_count = shape->pp;
    programs->contention_compute_ppm = shape->contention_ppm == 0 ? 1000000 : shape->contention_ppm;
    programs->jitter_ppm = shape->jitter_ppm;
    programs->jitter_seed = 1;
    struct rank_writer w = {.shape = shape};
    write_ranks(&w, programs, arena);
    return programs;
}
