/*
 * search.h - the best parallel layouts of one model on one cluster, proven by a bound.
 *
 * A space is a list of axes, each a key of the scenario with the values it takes; a candidate is
 * one value per axis, everything else stays as in the file. Candidates that the program refuses
 * are not legal. Every legal one gets a lower bound of its step time and memory
 * (plan_lower_bound); then they are simulated in the order of their bounds until the next bound
 * is above the worst of the top K. What is returned is therefore exactly what simulating all of
 * them returns (`exhaustive`). Equal scores are ordered by candidate number, that is by the
 * values of the axes in their order.
 *
 * Work is spread over worker processes in batches of fixed size, so that answer and counts do
 * not depend on their number.
 *
 * Everything lives in the arena given to the call.
 */
#ifndef STEPSIM_SEARCH_H
#define STEPSIM_SEARCH_H

#include "stepsim/run.h"

struct cJSON;

/* ---- The space ---- */

struct search_value {
    const char *text; /* as after --set KEY= */
    uint32_t number;  /* what the key's field becomes, where it is a number, choice or set */
};

struct search_axis {
    const char *key; /* "parallel.tp" */
    const struct search_value *values;
    uint32_t count;
};

#define SEARCH_AXES_MAX 20

/* What a key can do in a search; the last row has no key. */
struct search_key {
    const char *key;
    const char *meaning; /* which values it takes when none are given */
};
extern const struct search_key search_keys[];

/* --vary KEY=A,B and --keep KEY. An item without values keeps the file's. */
struct search_change {
    const char *key;
    const char *values; /* "1,2,4" or "[],[norm]"; NULL: keep */
};

/* ---- The question ---- */

enum search_objective { SEARCH_TOKENS_PER_S, SEARCH_MFU, SEARCH_COST, SEARCH_MEMORY };

struct search_counts {
    uint64_t candidates; /* combinations of values */
    uint64_t legal;      /* accepted by the program */
    uint64_t fits;       /* of the legal: not shown to exceed memory, by bound or simulation */
    uint64_t bounded;    /* of those: never simulated, since their bound is too high */
    uint64_t simulated;  /* also those that turned out not to fit */
};

struct search_progress {
    const char *phase; /* "bounding", "bounding closely", "simulating" */
    uint64_t done, total;
    struct search_counts counts;
    double best_step_s; /* 0: none yet */
    double best_mfu;
};

struct search_ask {
    const struct scenario_source *source; /* the file with its --set; needs a cache */
    const struct search_change *changes;
    uint32_t change_count;
    enum search_objective objective;
    /* SQL over keys and results, see `stepsim search --help`; NULL: the objective above. What it
     * answers is minimised; it must not fall as the step or the memory grows, unless exhaustive. */
    const char *objective_text;
    const char *const *wheres; /* SQL conditions that a layout must meet */
    uint32_t where_count;
    /* Above 0: layouts that score above it are not wanted, and not looked at. */
    double score_cut;
    uint32_t top;    /* at least 1 */
    bool exhaustive; /* simulate everything that is legal */
    bool advise;     /* also look at one GiB more and a node less */
    uint32_t jobs;   /* at least 1 */
    void (*progress)(void *user, const struct search_progress *progress);
    void *user;
};

/* ---- The answer ---- */

struct search_figures {
    double step_s, tokens_per_s, mfu, peak_bytes;
    bool fits;
    sim_time time_share_ps[CAUSE_COUNT];
};

struct search_layout {
    uint64_t candidate; /* its number in the space */
    const struct scenario *scenario;
    const struct layout *layout;
    const char *schedule;
    /* "KEY=VALUE" of every axis, as --set takes them; choice_count of them. */
    const char *const *choices;
    uint32_t choice_count;
    struct search_figures figures;
    double score;         /* what is minimised, see search_score */
    const char *why_lost; /* one sentence; of the best one how it won */
};

struct search_answer {
    const struct scenario *scenario; /* the file's */
    const struct search_axis *axes;
    uint32_t axis_count;
    struct search_counts counts;
    const struct search_layout *layouts; /* best first */
    uint32_t layout_count;
    bool written_legal; /* is the file's own layout legal, whether in the space or not */
    struct search_figures written;
    /* Advice, one sentence each; NULL when not asked for. */
    const char *one_more_gib, *one_node_less;
    double wall_s;
};

/* NULL with errors: a bad space, or (ERROR_does_not_fit) nothing fits. */
const struct search_answer *search_run(const struct search_ask *ask, struct arena *arena,
                                       struct error_list *errors);

/* What is minimised: seconds per token, device-seconds per token, or bytes. */
double search_score(enum search_objective objective, const struct scenario *scenario, double step_s,
                    double peak_bytes);

/* {"layouts": [{"world": {...}, "step_time_s":, "mfu":, "why_lost":, ...}], "counts": {...}, ...}.
 * The caller frees. */
struct cJSON *search_json(const struct search_answer *answer);

/* ---- Stage splits ---- */

/* One deal of layers to chunks, simulated. */
struct stage_split_trial {
    const char *name;       /* "as written", "balanced", "tail", "found" */
    const uint32_t *layers; /* of every chunk, in model order */
    struct search_figures figures;
    uint32_t slowest_stage; /* its compute stream is busy longest */
    double slowest_s;
};

struct stages_answer {
    const struct scenario *scenario;
    uint32_t chunk_count;
    const struct stage_split_trial *trials; /* in the order above; "found" is last, the best */
    uint32_t count;
    uint32_t simulated;
};

struct stages_ask {
    const struct scenario_source *source;
    enum search_objective objective; /* SEARCH_MEMORY, or any other for time */
    uint32_t jobs;
};

/*
 * The best split of the scenario's own layout: from the best of the splits that have a rule, one
 * layer at a time is moved from a chunk to any other while the simulated step (or peak) gets
 * shorter. Embedding, head and MTP modules stay where they are and count as load. Found by
 * descent, so not proven: another split may be better still. Splits that do not fit are taken
 * only when none does. NULL with errors if the scenario is refused.
 */
const struct stages_answer *search_stages(const struct stages_ask *ask, struct arena *arena,
                                          struct error_list *errors);

/* ---- What if ---- */

/* How a prediction moves. Elasticities scale one resource by a few percent; upgrades are entries
 * of configs/whatif.yaml. */
struct whatif_row {
    const char *name;  /* "hbm", "hccs", "double NIC" */
    const char *title; /* what was changed */
    bool upgrade;
    bool done; /* false: refused, see reason */
    double step_s;
    double change;     /* of the step time, -0.05: five percent faster */
    double elasticity; /* percent of step time per percent of the resource; upgrades: NAN */
    bool fits;
    const char *reason; /* why there is no answer */
};

struct whatif_answer {
    const struct scenario *scenario;
    struct search_figures base;
    double percent; /* of the elasticities */
    const struct whatif_row *rows;
    uint32_t count;
};

struct whatif_ask {
    const struct scenario_source *source; /* the file with its --set; needs config_dir */
    double percent;                       /* above 0, at most 100 */
};

/* NULL with errors if the scenario itself cannot be simulated. */
const struct whatif_answer *whatif_run(const struct whatif_ask *ask, struct arena *arena,
                                       struct error_list *errors);
/* {"step_time_s":, "elasticities": [...], "upgrades": [...]}. The caller frees. */
struct cJSON *whatif_json(const struct whatif_answer *answer);

/* ---- Launch arguments ---- */

enum launch_dialect { LAUNCH_MEGATRON, LAUNCH_MINDSPEED };

/* Arguments of a launch script for this layout, one per line, with a comment for each setting
 * that the dialect cannot say. */
const char *launch_arguments(const struct scenario *scenario, const struct layout *layout,
                             enum launch_dialect dialect, struct arena *arena);

#endif
