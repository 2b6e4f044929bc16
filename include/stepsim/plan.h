/*
 * plan.h - op graph x pipeline order x costs -> stream programs.
 *
 * This is the one border where durations enter: above it nothing knows a time, below it
 * nothing knows a transformer.
 *
 * A block pass becomes a few program ops: consecutive compute ops with nothing waiting in
 * between are fused into one, whose duration is the sum of their whole picoseconds, so
 * that fused and unfused programs give the same digest. Communication ops sit on their
 * streams with waits in both directions. An overlapped pair (ORDER_FB) interleaves the
 * segments of a forward and a backward on the compute stream.
 */
#ifndef STEPSIM_PLAN_H
#define STEPSIM_PLAN_H

#include "stepsim/memory_model.h"
#include "stepsim/routing.h"
#include "stepsim/schedule.h"

struct plan_builder;

struct plan_ask {
    const struct op_graph *graph;
    const struct cluster *cluster;
    const struct schedule *schedule;
    const struct pipeline_order *order;
    const struct expert_loads *loads; /* NULL: perfect balance */
    bool ranks_all;
    bool unfused;
};

/* What the plan knows of communication volumes, for the report: bytes one device sends in
 * a step by cause, summed over its stage; index stage * CAUSE_COUNT + cause. */
struct plan {
    const struct programs *programs;
    const double *sent_bytes;
    const double *hardware_flop; /* per stage: FLOPs one rank executes in a step */
    /* Of these, per stage: the first time forward, and the forward run again by recompute;
     * their ratio makes HFU from MFU in whatever convention MFU counts. */
    const double *forward_flop, *recompute_flop;
    const struct stage_memory *stage_memory; /* per stage */
    const double *logits_bytes;  /* per stage: logits kept from the loss to its backward */
    /* Per stage: FLOPs of all passes that grow with the routed rows, at perfect balance. */
    const double *rows_flop;
    /* With unequal loads [programs->duration_count]: what each duration is at perfect balance,
     * migrations 0; else NULL. */
    const sim_time *balanced_ps;
    struct plan_builder *builder; /* of src/plan */
};

const struct plan *programs_build(const struct plan_ask *ask, struct arena *arena);

/* ---- Lower bounds, for searches ---- */

/* Neither is ever above what the simulation answers. */
struct plan_bound {
    double step_s;
    double peak_bytes; /* of the fullest stage */
};

/* Priced templates of an op graph, kept for layouts of which the ops are the same (run.h). */
struct plan_costs;

struct plan_bound_ask {
    const struct plan_ask *plan; /* ranks_all and unfused make no difference */
    /* A layout whose memory passes this without any activation gets no time (step_s 0);
     * INFINITY for no cut. */
    double memory_cut_bytes;
    const struct plan_costs *costs; /* of such a layout, or NULL */
    /* The work of the fullest stage between filling and draining the pipeline, and memory without
     * activations: looser, several times cheaper, and needs no order of actions. */
    bool quick;
};

/* From the same costs as the programs, without building them. *costs becomes what was priced,
 * NULL where nothing was; it lives in the arena. */
struct plan_bound plan_lower_bound(const struct plan_bound_ask *ask,
                                   const struct plan_costs **costs, struct arena *arena);
/* The same programs with the costs of other loads of the same shape, for a later step. There is
 * room for PLAN_LATER_MAX steps at a time: the next call with the same slot overwrites its
 * programs, plan->programs keeps those of the first step. The plan must have been built with
 * loads. */
#define PLAN_LATER_MAX 16
const struct programs *plan_loads_change(const struct plan *plan, const struct expert_loads *loads,
                                         uint32_t slot);

/* ---- One op alone, for explain ---- */

struct op_cost {
    double time_s;       /* as the programs take it, before contention and fusion */
    double scale;        /* growth with the number of devices, contained in time_s */
    double flop;         /* executed */
    double bytes;        /* compute: HBM traffic; communication: sent by one rank */
    const char *bound;   /* "cube", "hbm", ...; communication: "links" or "latency" */
    const char *model;   /* name of the compute model, or algorithms: "mesh+ring" */
    const char *formula; /* of the model, or of the algorithm with the longest part */
    uint32_t term_count;
    struct cost_term terms[COST_TERMS_MAX];
};

/* ask needs graph and cluster only. Texts live in the arena. */
void plan_op_cost(const struct plan_ask *ask, const struct op *op, struct arena *arena,
                  struct op_cost *cost);

#endif
