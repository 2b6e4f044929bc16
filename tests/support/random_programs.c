/*
 * random_programs.c - draws steps one by one, and times each as it is drawn.
 */
#include "random_programs.h"

#include <stdlib.h>

#include "stepsim/error.h"
#include "stepsim/rng.h"

enum { STATIC_BYTES = 1000 };

struct drawing {
    const struct random_shape *shape;
    struct builder *builder;
    struct rng rng;
    struct random_op *ops;
    uint32_t op_count;
    uint32_t *recvs;         /* of each rank, so far */
    struct random_op **last; /* of each rank and stream, as op_of() says */
};

static sim_time later(sim_time a, sim_time b)
{
    return a > b ? a : b;
}

static struct random_op **last_of(struct drawing *d, uint32_t rank, uint32_t stream)
{
    return &d->last[rank * STREAM_COUNT + stream];
}

/* Appends an op; its start is when its stream is free and its waits hold. */
static struct random_op *append(struct drawing *d, uint32_t rank, uint32_t step, struct build_op op)
{
    if (rng_below(&d->rng, 3) == 0) {
        op.delta_start = (int64_t)rng_below(&d->rng, 50) - 10;
    }
    if (rng_below(&d->rng, 3) == 0) {
        op.delta_end = 10 - (int64_t)rng_below(&d->rng, 50);
    }
    struct random_op *made = &d->ops[d->op_count++];
    *made = (struct random_op){.rank = rank, .op = op, .step = step};
    made->ref = builder_op(d->builder, rank, op);
    struct random_op **last = last_of(d, rank, op.stream);
    made->start = *last == NULL ? 0 : (*last)->end;
    *last = made;
    while (made->wait_count < 2 && rng_below(&d->rng, 2) == 0) {
        const uint32_t stream = (uint32_t)rng_below(&d->rng, STREAM_COUNT);
        struct random_op *awaited = *last_of(d, rank, stream);
        if (stream != (uint32_t)op.stream && awaited != NULL) {
            builder_wait(d->builder, rank, made->ref, awaited->ref);
            made->waits[made->wait_count++] = awaited->ref;
            made->start = later(made->start, awaited->end);
        }
    }
    made->end = made->start + op.duration;
    return made;
}

static sim_time draw_duration(struct drawing *d)
{
    return (sim_time)rng_below(&d->rng, (uint64_t)d->shape->duration_bound);
}

static void draw_local(struct drawing *d, uint32_t step)
{
    static const enum stream streams[] = {STREAM_COMPUTE, STREAM_COMPUTE, STREAM_COMPUTE,
                                          STREAM_COPY_OUT, STREAM_COPY_IN};
    const uint32_t rank = (uint32_t)rng_below(&d->rng, d->shape->ranks);
    struct build_op op = {.stream = streams[rng_below(&d->rng, 5)]};
    op.kind = op.stream == STREAM_COMPUTE ? PROGRAM_OP_COMPUTE : PROGRAM_OP_COPY;
    op.duration = draw_duration(d);
    if (rng_below(&d->rng, 10) == 0) {
        op.kind = PROGRAM_OP_MARKER;
        op.duration = 0;
    }
    append(d, rank, step, op);
}

/* TP: pairs of neighbours; EP: every other rank; DP_CP: all. */
static void draw_collective(struct drawing *d, uint32_t step)
{
    static const struct build_op kinds[] = {
        {.kind = PROGRAM_OP_COLLECTIVE, .stream = STREAM_TP, .peer = GROUP_TP},
        {.kind = PROGRAM_OP_COLLECTIVE, .stream = STREAM_EP, .peer = GROUP_EP},
        {.kind = PROGRAM_OP_COLLECTIVE, .stream = STREAM_DP, .peer = GROUP_DP_CP},
    };
    struct build_op op = kinds[rng_below(&d->rng, 3)];
    const uint32_t ranks = d->shape->ranks;
    uint32_t first = 0, stride = 1, count = ranks;
    if (op.stream == STREAM_TP) {
        first = (uint32_t)rng_below(&d->rng, ranks / 2) * 2;
        count = 2;
    } else if (op.stream == STREAM_EP) {
        first = (uint32_t)rng_below(&d->rng, 2);
        stride = 2;
        count = ranks / 2;
    }
    struct random_op *members = &d->ops[d->op_count];
    sim_time start = 0, longest = 0;
    for (uint32_t i = 0; i < count; i++) {
        op.duration = draw_duration(d);
        longest = later(longest, op.duration);
        start = later(start, append(d, first + i * stride, step, op)->start);
    }
    for (uint32_t i = 0; i < count; i++) {
        members[i].start = start;
        members[i].end = start + longest;
    }
}

static void draw_message(struct drawing *d, uint32_t step)
{
    const uint32_t lower = (uint32_t)rng_below(&d->rng, d->shape->ranks - 1);
    const bool up = rng_below(&d->rng, 2) == 0;
    const uint32_t sender = up ? lower : lower + 1, receiver = up ? lower + 1 : lower;
    struct build_op op = {.kind = PROGRAM_OP_SEND,
                          .stream = STREAM_SEND,
                          .peer = up ? PEER_NEXT : PEER_PREVIOUS,
                          .message = d->recvs[receiver]++,
                          .duration = draw_duration(d)};
    const struct random_op *send = append(d, sender, step, op);
    op.kind = PROGRAM_OP_RECV;
    op.stream = STREAM_RECV;
    op.peer = up ? PEER_PREVIOUS : PEER_NEXT;
    op.duration = 0;
    struct random_op *recv = append(d, receiver, step, op);
    recv->end = later(recv->start, send->end);
}

static void add_groups(struct drawing *d, struct arena *arena)
{
    const uint32_t count = d->shape->ranks;
    uint32_t *ranks = ARENA_ARRAY(arena, count, uint32_t);
    for (uint32_t first = 0; first < count; first += 2) {
        ranks[0] = first;
        ranks[1] = first + 1;
        builder_group(d->builder, GROUP_TP, STREAM_TP, ranks, 2);
    }
    for (uint32_t first = 0; first < 2; first++) {
        for (uint32_t i = 0; i < count / 2; i++) {
            ranks[i] = first + 2 * i;
        }
        builder_group(d->builder, GROUP_EP, STREAM_EP, ranks, count / 2);
    }
    for (uint32_t i = 0; i < count; i++) {
        ranks[i] = i;
    }
    builder_group(d->builder, GROUP_DP_CP, STREAM_DP, ranks, count);
}

struct random_programs random_programs_build(const struct random_shape *shape, struct arena *arena)
{
    ASSERT(shape->ranks >= 2 && shape->ranks % 2 == 0);
    struct drawing d = {
        .shape = shape, .builder = builder_create(arena), .rng = rng_stream(shape->seed, 11)};
    d.ops = ARENA_ARRAY(arena, (size_t)shape->steps * (shape->ranks + 1), struct random_op);
    d.recvs = ARENA_ARRAY(arena, shape->ranks, uint32_t);
    d.last = ARENA_ARRAY(arena, (size_t)shape->ranks * STREAM_COUNT, struct random_op *);
    for (uint32_t r = 0; r < shape->ranks; r++) {
        const uint32_t program = builder_program(d.builder);
        builder_rank(d.builder, builder_class(d.builder, program, r / 2, STATIC_BYTES));
    }
    for (uint32_t r = 0; r + 1 < shape->ranks; r++) {
        builder_link(d.builder, r, r + 1);
    }
    add_groups(&d, arena);
    for (uint32_t step = 0; step < shape->steps; step++) {
        const uint64_t kind = rng_below(&d.rng, 10);
        if (kind < 5) {
            draw_local(&d, step);
        } else if (kind < 8) {
            draw_collective(&d, step);
        } else {
            draw_message(&d, step);
        }
    }
    return (struct random_programs){
        .programs = builder_finish(d.builder), .ops = d.ops, .op_count = d.op_count};
}

struct memory_step {
    sim_time time;
    int64_t bytes;
};

static int by_time(const void *a, const void *b)
{
    const sim_time x = ((const struct memory_step *)a)->time;
    const sim_time y = ((const struct memory_step *)b)->time;
    return (x > y) - (x < y);
}

int64_t random_programs_peak(const struct random_programs *random, uint32_t rank,
                             struct arena *arena, sim_time *time)
{
    struct memory_step *steps =
        ARENA_ARRAY(arena, 2 * (size_t)random->op_count, struct memory_step);
    size_t count = 0;
    for (uint32_t i = 0; i < random->op_count; i++) {
        const struct random_op *op = &random->ops[i];
        if (op->rank == rank) {
            steps[count++] = (struct memory_step){op->start, op->op.delta_start};
            steps[count++] = (struct memory_step){op->end, op->op.delta_end};
        }
    }
    qsort(steps, count, sizeof *steps, by_time); /* sums of one instant need no order */
    int64_t level = STATIC_BYTES, peak = STATIC_BYTES;
    *time = 0;
    for (size_t i = 0; i < count; i++) {
        level += steps[i].bytes;
        const bool instant_over = i + 1 == count || steps[i + 1].time > steps[i].time;
        if (instant_over && level > peak) {
            peak = level;
            *time = steps[i].time;
        }
    }
    return peak;
}
