/*
 * run_internal.h - the steps of a run, one after another (steps.c).
 */
#ifndef STEPSIM_RUN_INTERNAL_H
#define STEPSIM_RUN_INTERNAL_H

#include "stepsim/run.h"

/* What the steps need besides the run itself. */
struct stepping {
    const struct run_options *options;
    struct routing *routing; /* NULL: balanced */
    struct step_loads *loads; /* [steps] with routing, else NULL */
};

/* Loads of the first step, or NULL; valid until steps_run(). */
const struct expert_loads *steps_first_loads(struct stepping *stepping, struct arena *arena);

/* All steps. Of the first one *first is the whole timeline. Steps that nothing tells apart
 * are simulated once. */
const struct step_outcome *steps_run(const struct run *run, const struct stepping *stepping,
                                     const struct timeline **first, struct arena *arena);

/* The first step under perfect balance, which says what imbalance costs; NULL without routing. */
const struct step_outcome *steps_balanced(const struct plan_ask *ask,
                                          const struct stepping *stepping, struct arena *arena);

#endif
