/*
 * program_builder.h - small stream programs for tests, written op by op.
 *
 * Every field of an op that a test does not set is zero, so every field it does set
 * matters to that test. Durations are picoseconds. All memory is of the arena.
 *
 *     struct builder *b = builder_create(arena);
 *     uint32_t p = builder_program(b);
 *     struct op_ref a = builder_op(b, p, (struct build_op){.duration = 10});
 *     struct op_ref c = builder_op(b, p, (struct build_op){.kind = PROGRAM_OP_COLLECTIVE, ...});
 *     builder_wait(b, p, c, a);
 *     builder_rank(b, builder_class(b, p, 0, 0));
 *     const struct programs *programs = builder_finish(b);
 */
#ifndef TESTS_PROGRAM_BUILDER_H
#define TESTS_PROGRAM_BUILDER_H

#include "stepsim/arena.h"
#include "stepsim/programs.h"

struct builder;

struct build_op {
    enum program_op_kind kind;
    enum stream stream;
    sim_time duration;
    uint32_t peer;    /* group slot, or PEER_NEXT, PEER_PREVIOUS */
    uint32_t message; /* ordinal at the receiver */
    unsigned flags;   /* program_op_flag */
    int64_t delta_start;
    int64_t delta_end;
    const char *name; /* NULL: "op" */
    char pass;
    int32_t microbatch;
    int32_t layer;
};

struct op_ref {
    uint32_t stream;
    uint32_t index;
};

struct builder *builder_create(struct arena *arena);
/* Millionths that contention adds up to; 1000000 unless set. */
void builder_contention(struct builder *b, int64_t ppm);
void builder_jitter(struct builder *b, int64_t ppm, uint64_t seed);

uint32_t builder_program(struct builder *b);
struct op_ref builder_op(struct builder *b, uint32_t program, struct build_op op);
/* `op` waits for `awaited`, of another stream of the same program. */
void builder_wait(struct builder *b, uint32_t program, struct op_ref op, struct op_ref awaited);

uint32_t builder_class(struct builder *b, uint32_t program, uint32_t stage, int64_t static_bytes);
/* The op takes this long for ranks of the class, instead of the duration of its build_op. */
void builder_class_duration(struct builder *b, uint32_t rank_class, struct op_ref op,
                            sim_time duration);
/* Returns its index, which is also its true rank. */
uint32_t builder_rank(struct builder *b, uint32_t rank_class);
/* `next` follows `rank` in the pipeline, and `rank` precedes it. */
void builder_link(struct builder *b, uint32_t rank, uint32_t next);
/* A group of the given ranks. */
void builder_group(struct builder *b, enum group_slot slot, enum stream stream,
                   const uint32_t *ranks, uint32_t count);

/* The programs, checked by programs_check(). */
const struct programs *builder_finish(struct builder *b);
/* The same without the check, for programs that must fail. */
const struct programs *builder_finish_unchecked(struct builder *b);

#endif
