/*
 * random_programs.h - random programs that cannot deadlock, and an oracle for their times.
 *
 * Ops are created in one global order: each waits only for ops created before it, a
 * collective is appended to all its members at once, and a send comes before its recv. So
 * creation order is an order in which everything can be computed by looking back only:
 * no queue, no clock. Small duration bounds make ties the normal case.
 */
#ifndef TESTS_RANDOM_PROGRAMS_H
#define TESTS_RANDOM_PROGRAMS_H

#include "program_builder.h"

struct random_shape {
    uint64_t seed;
    uint32_t ranks; /* a chain of stages, each the peer of its neighbours; even */
    uint32_t steps; /* ops, collectives or messages */
    sim_time duration_bound;
};

/* One op as created; `step` is shared by the members of a collective and by a message. */
struct random_op {
    uint32_t rank;
    struct op_ref ref;
    struct build_op op;
    struct op_ref waits[2];
    uint32_t wait_count;
    uint32_t step;
    sim_time start, end; /* by the oracle */
};

struct random_programs {
    const struct programs *programs;
    struct random_op *ops;
    uint32_t op_count;
};

struct random_programs random_programs_build(const struct random_shape *shape, struct arena *arena);
/* Net level of memory after each instant, by sorting; returns the highest and its first time. */
int64_t random_programs_peak(const struct random_programs *random, uint32_t rank,
                             struct arena *arena, sim_time *time);

#endif
