/*
 * run.h - the pipeline as one call: from a scenario to a report.
 *
 * run_simulate() is design.md section 1, readable top to bottom in src/run/run.c. The
 * intermediate results stay reachable in struct run, for explain, trace and tests.
 */
#ifndef STEPSIM_RUN_H
#define STEPSIM_RUN_H

#include "stepsim/engine.h"
#include "stepsim/report.h"
#include "stepsim/schedule.h"

struct run_options {
    bool ranks_all;         /* --ranks all */
    uint32_t steps;         /* --steps, at least 1 */
    uint32_t jobs;          /* steps simulated at the same time; 0 and 1: one */
    bool unfused;           /* test: no fusion of compute ops; same digest */
    bool observe_all;       /* every rank's op times, for traces */
    double started_s;       /* run_clock_s() before loading, for wall_s; 0: the call itself */
    struct engine_options engine;
};

struct run {
    const struct scenario *scenario;
    const struct model *model;
    const struct cluster *cluster;
    const struct layout *layout;
    const struct schedule *schedule;
    const struct op_graph *graph;
    const struct plan_costs *costs; /* of run_bound() */
    const struct pipeline_order *order;
    const struct plan *plan;
    const struct programs *programs; /* of the plan */
    const struct timeline *timeline; /* of the first step */
    struct report *report;
};

/*
 * Fills *run as far as it gets; everything lives in the arena. False with errors on the
 * user's mistakes. A layout that does not fit in memory is an answer, not an error:
 * report->fits is false.
 */
bool run_simulate(struct run *run, const struct scenario *scenario,
                  const struct run_options *options, struct arena *arena,
                  struct error_list *errors);

/* The same without the engine: up to the layout and the op graph, for counts and checks. */
bool run_prepare(struct run *run, const struct scenario *scenario, struct arena *arena,
                 struct error_list *errors);

/* What the layout needs at least: never above what run_simulate() answers, and many times
 * cheaper. A layout whose static memory passes memory_cut_bytes gets no time (plan.h). False with
 * errors as run_prepare(). */
struct run_bound_ask {
    const struct scenario *scenario;
    double memory_cut_bytes; /* INFINITY: none */
    /* What run_bound() filled for a scenario with the same model, cluster, degrees and rank order,
     * or NULL: it is not worked out again, and must live on. With same_ops the scenarios differ in
     * vpp, stages, microbatch group, ZeRO and swap alone. */
    const struct run *like;
    bool same_ops;
    bool quick; /* a looser bound for a fraction of the time, see plan.h; never above the other */
};
bool run_bound(struct run *run, const struct run_bound_ask *ask, struct plan_bound *bound,
               struct arena *arena, struct error_list *errors);

/* Seconds of the monotonic clock, for wall times. */
double run_clock_s(void);

#endif
