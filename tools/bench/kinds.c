/*
 * kinds.c - what one op of each kind costs the engine.
 *
 * 512 ranks in a ring run 2,000 ops of one kind each: compute, compute that communication slows,
 * messages (a send and a recv), collectives of 8 ranks, copies.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"
#include "program_builder.h"

#include "stepsim/engine.h"

enum { RANKS = 512, GROUP = 8, OPS = 2000, REPEATS = 3 };

enum kind { KIND_COMPUTE, KIND_SLOWED, KIND_MESSAGE, KIND_COLLECTIVE, KIND_COPY, KINDS };

static const char *const names[KINDS] = {"compute", "compute, slowed", "send and recv",
                                         "collective of 8", "copy"};

static void add_ops(struct builder *b, uint32_t program, enum kind kind, uint32_t i)
{
    const sim_time duration = 1000000 + (sim_time)(i * 7919u % 100000u);
    struct build_op op = {.kind = PROGRAM_OP_COMPUTE, .duration = duration};
    switch (kind) {
    case KIND_SLOWED:
        op.flags = PROGRAM_OP_SLOWED;
        break;
    case KIND_MESSAGE:
        op.kind = PROGRAM_OP_SEND;
        op.stream = STREAM_SEND;
        op.peer = PEER_NEXT;
        op.message = i;
        builder_op(b, program,
                   (struct build_op){.kind = PROGRAM_OP_RECV,
                                     .stream = STREAM_RECV,
                                     .peer = PEER_PREVIOUS,
                                     .message = i});
        break;
    case KIND_COLLECTIVE:
        op.kind = PROGRAM_OP_COLLECTIVE;
        op.stream = STREAM_TP;
        op.peer = GROUP_TP;
        break;
    case KIND_COPY:
        op.kind = PROGRAM_OP_COPY;
        op.stream = STREAM_COPY_OUT;
        break;
    case KIND_COMPUTE:
    case KINDS:
        break;
    }
    builder_op(b, program, op);
}

static const struct programs *build(enum kind kind, struct arena *arena)
{
    struct builder *b = builder_create(arena);
    const uint32_t program = builder_program(b);
    for (uint32_t i = 0; i < OPS; i++)
        add_ops(b, program, kind, i);
    if (kind == KIND_SLOWED)
        builder_contention(b, 1150000);
    const uint32_t class = builder_class(b, program, 0, 0);
    uint32_t ranks[RANKS];
    for (uint32_t r = 0; r < RANKS; r++)
        ranks[r] = builder_rank(b, class);
    for (uint32_t r = 0; r < RANKS; r++)
        builder_link(b, ranks[r], ranks[(r + 1) % RANKS]);
    for (uint32_t r = 0; kind == KIND_COLLECTIVE && r < RANKS; r += GROUP)
        builder_group(b, GROUP_TP, STREAM_TP, &ranks[r], GROUP);
    return builder_finish(b);
}

void bench_kinds(void)
{
    printf("| op | ns per op of a rank |\n| --- | ---: |\n");
    for (int kind = 0; kind < KINDS; kind++) {
        struct arena *plan = arena_create("plan");
        struct arena *run = arena_create("run");
        const struct programs *programs = build((enum kind)kind, plan);
        const struct engine_options options = {.observe = OBSERVE_NONE};
        double best_s = INFINITY;
        for (int repeat = 0; repeat < REPEATS; repeat++) {
            const char *failure;
            arena_reset(run);
            const double start_s = bench_cpu_s();
            if (engine_run(programs, &options, run, &failure) == NULL) {
                fprintf(stderr, "%s\n", failure);
                exit(70);
            }
            best_s = fmin(best_s, bench_cpu_s() - start_s);
        }
        printf("| %s | %.1f |\n", names[kind], best_s * 1e9 / ((double)OPS * RANKS));
        arena_destroy(run);
        arena_destroy(plan);
    }
}
