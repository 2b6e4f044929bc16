/*
 * schedule.h - pipeline schedules: in which order each stage runs its work, untimed.
 *
 * PLUG-IN: a schedule is one file src/schedule/NAME.c that defines
 * `const struct schedule schedule_NAME`. It is a pure function from sizes to one list of
 * actions per stage. Laws that hold for every schedule (tests/law/test_schedules.c):
 *  1. each (microbatch, chunk) once forward and once backward (and once W if split);
 *  2. an action comes after what it needs on the same stage, and executing all lists
 *     in order never deadlocks (messages are buffered);
 *  3. chunk activations alive on a stage reach `in_flight_max` and never pass it. One is
 *     alive from the start of its forward to the end of its full backward or, where the
 *     backward is split, of its W;
 *  4. with equal chunks and free links the makespan equals `makespan`, or `makespan` is
 *     NAN where the schedule states that it has no closed form (`region`);
 *  5. microbatches of one chunk run in rising order, forward and backward, and W actions
 *     run in the order in which their input gradients ran.
 *
 * Chunk c of stage s is chunk c*pp + s of the model. In a V-shaped schedule, which has
 * two chunks per stage, chunk 1 runs back: it is chunk 2*pp - 1 - s of the model.
 *
 * F, B and W are durations per chunk: forward, input gradient, weight gradient. A full
 * backward takes B + W, an FB pair takes `overlapped`, here called D.
 *
 * Closed forms (p = pp, v = vpp, m = microbatches, g = group, V = (v-1)*g):
 *
 *   gpipe, 1f1b       (m+p-1)*(F+B+W)
 *   interleaved       (v*m+p-1)*(F+B+W)
 *   overlapped_1f1b   (V+p)*(F+B+W) + (v*m-V-1)*D           where D >= max(F, B+W)
 *   zb_h1             m*(F+B+W) + (q-1)*max(F, B, F+B-W) + (p-q)*(F+B), q = min(m, p)
 *   zb_v              2m*(F+B+W) + bubble, see zb_v.c       where m <= p or m >= 2p-1
 *   dualpipe_v        (2m-p-2)*D + 2p*F + (p+2)*B + 3*W + max(p*F, (p-1)*B)
 *                     + (p-1)*max(B, W)                     where D >= max(F, B+W)
 *
 * docs/NOTATION.md derives them, with a drawing of each schedule.
 */
#ifndef STEPSIM_SCHEDULE_H
#define STEPSIM_SCHEDULE_H

#include "stepsim/arena.h"
#include "stepsim/error.h"
#include "stepsim/programs.h" /* enum step_phase */

enum order_kind {
    ORDER_F,  /* forward of (microbatch, chunk) */
    ORDER_B,  /* full backward: input and weight gradient */
    ORDER_BI, /* input gradient only; its W comes later */
    ORDER_W,  /* weight gradient */
    ORDER_FB, /* forward of (microbatch, chunk) overlapped with the full backward of
                 (back_microbatch, back_chunk): communication of one hides behind compute
                 of the other. Both inputs are there when it starts, both outputs when it
                 ends; the microbatches differ. */
    ORDER_FBI /* the same with an input gradient only */
};

struct order_action {
    uint8_t kind;  /* enum order_kind */
    uint8_t phase; /* enum step_phase: warm-up before the first backward of the stage,
                      cool-down after its last forward, steady between */
    uint16_t chunk;
    uint16_t back_chunk;      /* FB and FBI only, else 0 */
    uint32_t microbatch;      /* 0-based */
    uint32_t back_microbatch; /* FB and FBI only, else 0 */
};

struct pipeline_order {
    uint32_t stage_count, chunk_count; /* pp, vpp */
    uint32_t microbatches;
    const struct order_action **actions; /* [stage_count][action_count[stage]] */
    const uint32_t *action_count;
};

struct schedule_ask {
    uint32_t pp, vpp, microbatches;
    uint32_t group;  /* microbatches per virtual-stage turn, 0: pp */
    uint32_t layer_slots; /* layers incl. no-ops, for schedules that restrict them; 0: unknown */
};

struct schedule_times {
    double forward, backward_input, backward_weight; /* per chunk */
    double overlapped; /* an FB pair per chunk; used by overlapping schedules only */
};

struct schedule {
    const char *name;    /* as written in YAML */
    const char *title;
    const char *bubble_formula;    /* shown by `describe` and docs */
    const char *in_flight_formula; /* the same, for in_flight_max; s is the stage */
    const char *region;            /* where makespan holds, in words */
    bool v_shaped;
    bool splits_backward; /* uses W actions */
    bool overlaps;        /* uses FB actions */
    uint32_t vpp_min, vpp_max; /* 0: no upper limit; check() may narrow it by pp */
    /* True when the schedule runs these sizes. Otherwise adds errors with codes
     * schedule_vpp, microbatches_below_minimum, microbatches_not_multiple_of_group,
     * fb_overlap_gbs_not_above_dp_pp_mbs, layers_not_divisible_by_pp or out_of_range (group),
     * each with what would work. Sizes of 0 are the caller's bug, except microbatches. */
    bool (*check)(const struct schedule_ask *ask, struct location at, struct error_list *errors);
    /* For sizes that pass check(). Linear in pp*vpp*microbatches; lives in the arena. */
    const struct pipeline_order *(*build)(const struct schedule_ask *ask, struct arena *arena);
    /* Closed forms for equal chunks, free links: whole makespan in seconds. */
    double (*makespan)(const struct schedule_ask *ask, const struct schedule_times *times);
    /* Largest number of chunk activations alive on a stage (law 3). */
    uint32_t (*in_flight_max)(const struct schedule_ask *ask, uint32_t stage);
};

extern const struct schedule *const schedule_registry[]; /* sorted, NULL-terminated */
extern const size_t schedule_count;

/* NULL if there is none. */
const struct schedule *schedule_find(const char *name);

#endif
