/*
 * range.h - what a prediction would be if the numbers that nobody measured were off.
 *
 * A fact of cluster or device may carry an interval in which its true value plausibly lies
 * (low and high, origin.h). Each such input is moved to its low and to its high end, one at a
 * time and everything else held, and the scenario is simulated again. Deviations are ln of the
 * quotient to the point value. Those of all inputs that lengthen the step are combined as the
 * root of the sum of their squares, which takes the inputs as independent, and so are those
 * that shorten it; of an input the farther end counts. The point value therefore always lies in
 * the range.
 *
 * What the range does not hold: errors of the cost models and of fitted constants, told beside
 * it as the mean error on published runs (range_model_error); what the scenario itself states,
 * such as routing and batch; assumed facts without an interval, which are held and named.
 *
 * Runs are spread over threads. The answer does not depend on their number.
 */
#ifndef STEPSIM_RANGE_H
#define STEPSIM_RANGE_H

#include "stepsim/run.h"

struct range_span {
    double low, high;
};

/* One input at both ends of its interval. */
struct range_input {
    const char *key; /* "cluster.levels.cluster.alltoall_efficiency" */
    enum fact_grade grade;
    const char *unit; /* SI; "" for plain numbers */
    double value, low, high;
    /* The answer at low and at high; that of the point where the program refuses the end. */
    struct range_span step_time_s, mfu, peak_bytes;
    bool fits_low, fits_high;
    const char *refused; /* the reason if an end could not be simulated, else NULL */
};

struct range {
    struct range_span step_time_s, tokens_per_s, mfu, peak_bytes;
    /* Those that move step or peak by more than RANGE_MATTERS, or turn the verdict on memory;
     * the one that moves the step most first. The spans above hold all inputs. */
    const struct range_input *inputs;
    uint32_t input_count;
    uint32_t tried;          /* inputs whose interval is more than a point */
    const char *const *held; /* keys of assumed facts without an interval */
    uint32_t held_count;
};

#define RANGE_MATTERS 0.001

struct range_ask {
    const struct report *point; /* of the scenario as it stands */
    uint32_t jobs;              /* threads, at least 1 */
};

/* In the arena. */
const struct range *range_run(const struct range_ask *ask, struct arena *arena);

/* Simulations that range_run() makes, to tell beforehand what it costs. */
uint32_t range_runs(const struct scenario *scenario, struct arena *arena);

struct cJSON;
/* {"step_time_s": {"low":, "high":}, ..., "inputs": [...], "held": [...]}. The caller frees. */
struct cJSON *range_json(const struct range *range);

/* ---- How far models of this kind were off (model_error.c) ---- */

/* Mean |ln(predicted / measured)| over published runs of one group. */
struct range_model_error {
    const char *group; /* "MoE models on ascend_910b3" */
    uint32_t rows;
    uint32_t families;   /* studies, which count alike in the mean */
    double mean_abs_log; /* of the step time */
    const char *source;  /* where the figure comes from */
};

/*
 * The figure for a scenario from validation_scores.yaml of the configuration folder: of its
 * device and kind of model if several studies published runs, else of its vendor. False if
 * there is no such file or no such group.
 */
bool range_model_error(const struct scenario *scenario, const char *config_dir,
                       struct range_model_error *error, struct arena *arena);

#endif
