/* explain_ops.h - the ops of a scenario with their costs and how often they run. */
#ifndef STEPSIM_EXPLAIN_OPS_H
#define STEPSIM_EXPLAIN_OPS_H

#include "cli_internal.h"
#include "stepsim/run.h"

enum explain_pass { EXPLAIN_FORWARD, EXPLAIN_RECOMPUTE, EXPLAIN_BACKWARD, EXPLAIN_PASS_COUNT };
const char *explain_pass_name(enum explain_pass pass);

/* One op of one pass of one kind of block. */
struct explain_op {
    const struct block_ops *block;
    const char *block_name; /* "moe", "dense windowed" */
    enum explain_pass pass;
    const struct op *op;
    struct op_cost cost;
    uint32_t calls; /* in one step on the described stage */
};

struct explain_filter {
    const char *op;    /* NULL: all */
    const char *block; /* NULL: all */
    const char *pass;  /* NULL: all */
};

struct explain_ops {
    struct explain_op *items;
    uint32_t count;
    uint32_t stage; /* that calls are counted for */
};

/* All ops that the filter lets pass, block by block, in the order of their lists. */
struct explain_ops explain_ops_build(const struct run *run, const struct explain_filter *filter,
                                     struct arena *arena);

#endif
