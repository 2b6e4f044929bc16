/*
 * report.h - metrics with units: what simulate prints, stores and compares.
 *
 * The names are those of `simulate --json` (design.md 5); metric_list.def holds one row
 * per scalar metric (name, unit, kind, meaning) from which CSV, database and docs are read.
 * time_share is of the observed rank with the longest busy compute stream; its entries
 * are integer picoseconds that sum to the step, each picosecond counted once: by the op on
 * the compute stream if it is busy, else by the first of tp, ep, cp, dp, swap, pp that has a
 * running op on that rank (a message runs only while it is on the wire), else as imbalance
 * if the rank waits for a collective of its own stage, else as bubble. Under unequal expert
 * loads imbalance is what perfect balance would take off the step: the extra time of heavier
 * experts and exchanges of this rank, its waits for others, and of the bubble what is left.
 *
 * Of several simulated steps the report describes the first; `steps` has a row for each.
 *
 * Everything lives in the arena of report_build().
 */
#ifndef STEPSIM_REPORT_H
#define STEPSIM_REPORT_H

#include "stepsim/plan.h"
#include "stepsim/timeline.h"

struct comm_report {
    double total_s;          /* time with such communication running */
    double exposed_s;        /* of it, what time_share gives to this cause */
    double bytes_per_device; /* sent in one step */
    double exposed_share[PHASE_COUNT]; /* exposed over total, per phase; 0 where total is 0 */
};

enum memory_phase { /* where a peak can sit */
    MEMORY_LOAD,
    MEMORY_WARMUP,
    MEMORY_STEADY,
    MEMORY_COOLDOWN,
    MEMORY_OPTIMIZER,
    MEMORY_PHASE_COUNT
};
const char *memory_phase_name(enum memory_phase phase);

struct stage_report {
    uint32_t stage;
    double peak_bytes;
    /* At the peak; they sum to it. */
    double weights, gradients, optimizer, activations, logits, buffers, reserve;
    enum memory_phase peak_phase;
    double compute_busy_s, end_s;
    uint32_t layers;
};

struct step_report {
    uint32_t step;
    double step_time_s, mfu, tokens_per_s;
    double peak_bytes; /* of the fullest stage */
    bool fits;
    double load_max_over_mean, load_mean_max_over_mean, dropped_ratio;
    uint32_t migrations;
};

struct report {
    const struct scenario *scenario;
    const struct model *model;
    const struct cluster *cluster;
    const struct layout *layout;
    const char *scenario_hash;
    /* speed */
    double step_time_s, tokens_per_s, tokens_per_s_per_device;
    double days; /* days_for_tokens, 0 when no tokens were given */
    double mfu, hfu;
    double peak_flop_per_s, model_flop_per_token, model_flop_per_s_per_device;
    double hardware_flop_per_token; /* executed: with recompute and padding */
    struct flop_convention convention;
    /* where time goes */
    sim_time time_share_ps[CAUSE_COUNT]; /* sums to the step */
    uint32_t time_share_stage;
    struct comm_report comm[CAUSE_COUNT]; /* tp, ep, cp, pp, dp, swap */
    double bubble_ratio;                  /* idle share of the compute streams, over stages */
    /* memory */
    const struct stage_report *stages;
    uint32_t stage_count;
    uint32_t peak_stage;
    double peak_bytes, limit_bytes, headroom_bytes;
    bool fits; /* every simulated step; the figures above are of the first one */
    uint32_t misfit_steps, worst_step;
    double worst_peak_bytes;    /* of all simulated steps, in worst_step */
    double balanced_peak_bytes; /* of the first step under perfect balance */
    /* experts */
    double load_max_over_mean, dropped_ratio;
    double load_mean_max_over_mean, padded_ratio;
    uint32_t migrations;          /* of all steps */
    const double *layer_dropped;  /* [layer_count] dropped share of each layer, NULL: none */
    uint32_t layer_count;
    double balanced_step_time_s;  /* what perfect balance would take */
    double mean_step_time_s, mean_mfu; /* over all steps */
    /* steps */
    const struct step_report *steps;
    uint32_t step_count;
    /* engine */
    bool ranks_all;
    uint32_t simulated_ranks, classes;
    uint64_t events, digest, event_digest;
    double wall_s; /* load to report */
    /* what the answer leaves out or assumes, one sentence each */
    const char *const *notes;
    uint32_t note_count;
    const char *verdict; /* one sentence: the largest loss and what would recover it */
    double anchor_ratio; /* measured over predicted given by the user, 0: none */
};

/* Expert loads of one step. */
struct step_loads {
    double max_over_mean, mean_max_over_mean; /* of devices, see routing.h */
    double dropped_ratio, padded_ratio, rows_mean;
    uint32_t migrations;
};

/* What of a step every row says. */
struct step_outcome {
    sim_time end;
    int64_t peak_bytes; /* of the fullest rank while the schedule runs */
};

/* What a report is made from; all of it must outlive the report. */
struct report_parts {
    const struct scenario *scenario;
    const struct model *model;
    const struct cluster *cluster;
    const struct layout *layout;
    const struct plan *plan;
    const struct timeline *timeline;   /* of the first step, which is described */
    const struct step_outcome *steps;  /* [step_count] */
    uint32_t step_count;
    bool ranks_all;
    const struct step_loads *loads; /* [step_count]; NULL: balanced */
    const double *layer_dropped;    /* of the first step, [layers with MTP]; NULL: none */
    const struct step_outcome *balanced; /* the first step under perfect balance; NULL: it is */
};

/*
 * The report lives in the arena; wall_s and anchor_ratio are left to the caller. NULL with
 * the error mfu_above_one if the peak and the FLOP convention give an impossible MFU.
 */
struct report *report_build(const struct report_parts *parts, struct arena *arena,
                            struct error_list *errors);

struct cJSON;
/* The object of `simulate --json`. The caller frees it with cJSON_Delete. Asserts that
 * every number is finite. */
struct cJSON *report_json(const struct report *report);

#endif
