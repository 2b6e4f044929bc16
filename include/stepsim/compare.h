/*
 * compare.h - two answers side by side: which keys differ, and where time and memory went.
 *
 * The terms of time are those of time_share, in whole picoseconds, and sum to the step; the
 * terms of memory are those of the fullest stage and sum to its peak. So the differences of
 * the terms sum exactly to the difference of the whole: a waterfall without a remainder.
 *
 * Everything lives in the arena.
 */
#ifndef STEPSIM_COMPARE_H
#define STEPSIM_COMPARE_H

#include "stepsim/report.h"

struct arena;
struct cJSON;

enum memory_term {
    MEMORY_TERM_WEIGHTS,
    MEMORY_TERM_GRADIENTS,
    MEMORY_TERM_OPTIMIZER,
    MEMORY_TERM_ACTIVATIONS,
    MEMORY_TERM_LOGITS,
    MEMORY_TERM_BUFFERS,
    MEMORY_TERM_RESERVE,
    MEMORY_TERM_COUNT
};
/* "weights", ... as in `simulate --json`. */
const char *memory_term_name(enum memory_term term);

struct answer_terms {
    sim_time time_ps[CAUSE_COUNT];
    double memory_bytes[MEMORY_TERM_COUNT]; /* of the fullest stage */
    uint32_t time_stage, memory_stage;      /* which stage they describe */
};

struct answer {
    const char *name;         /* how the user called it */
    const char *title;        /* of the scenario, or NULL */
    const struct cJSON *keys; /* the resolved scenario, plain values */
    const double *metrics;    /* metric_count entries of metric_table; NaN: not there */
    struct answer_terms terms;
};

struct answer_terms answer_terms_of(const struct report *report);
/* answer_free() gives back what is not of the arena. */
struct answer answer_of_report(const char *name, const struct report *report, struct arena *arena);
void answer_free(struct answer *answer);

/* The sums of the terms: step time and peak. */
sim_time answer_step_ps(const struct answer_terms *terms);
double answer_peak_bytes(const struct answer_terms *terms);

/* A key whose values differ; a side that lacks it has NULL. */
struct key_difference {
    const char *key;
    const char *a, *b; /* as JSON: quantities in SI units */
};
struct key_differences {
    const struct key_difference *items; /* in the order of the scenario table */
    uint32_t count;
};
struct key_differences compare_keys(const struct answer *a, const struct answer *b,
                                    struct arena *arena);

/* "tp +310 ms, bubble -20 ms": the terms that moved most, at most four, "" if none moved. */
const char *compare_time_text(const struct answer_terms *before, const struct answer_terms *after,
                              struct arena *arena);
const char *compare_memory_text(const struct answer_terms *before, const struct answer_terms *after,
                                struct arena *arena);

/* The whole comparison as JSON. The caller frees it with cJSON_Delete. */
struct cJSON *compare_json(const struct answer *a, const struct answer *b, struct arena *arena);

#endif
