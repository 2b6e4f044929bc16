/*
 * page_internal.h - the rows of a page, and its parts.
 */
#ifndef STEPSIM_PAGE_INTERNAL_H
#define STEPSIM_PAGE_INTERNAL_H

#include "stepsim/arena.h"
#include "stepsim/page.h"

#define PAGE_BEST 10u /* runs that are drawn without scripts */

struct page_key {
    const char *key, *text;
};

struct page_stage {
    double parts[7]; /* GiB: weights, gradients, optimizer, activations, logits, buffers, reserve */
};

struct page_run {
    int64_t run_id, sweep_id, point_no;
    const char *model;
    bool fits, pareto;
    double step_time_s, tokens_per_s, mfu, peak_gib, headroom_gib;
    double share[CAUSE_COUNT];
    const char *verdict;
    const struct page_key *keys; /* swept */
    uint32_t key_count;
    const struct page_stage *stages; /* of the best runs only */
    uint32_t stage_count;
};

struct page_rejected {
    const char *status, *code, *example;
    int64_t points;
};

struct page_data {
    const char *title;
    struct page_run *runs; /* fastest that fit first, then those that do not fit */
    uint32_t run_count;
    int64_t runs_in_file;
    const struct page_rejected *rejected;
    uint32_t rejected_count;
};

extern const char *const page_memory_parts[7];
extern const char *const page_cause_colours[CAUSE_COUNT];
extern const char *const page_memory_colours[7];

/* False with errors. */
bool page_read(const struct page_ask *ask, struct page_data *data, struct arena *arena,
               struct error_list *errors);
/* "parallel.tp=8, parallel.pp=16", or "run 12". */
const char *page_run_name(const struct page_run *run, struct arena *arena);

/* Tables and drawings without scripts. */
void page_add_static(struct text *out, const struct page_data *data, struct arena *arena);
/* The data as JSON that may stand inside a script element. */
void page_add_json(struct text *out, const struct page_data *data, struct arena *arena);
void page_add_escaped(struct text *out, const char *value);

/* The bundle of tools/report, empty if it was not asked for. */
extern const char page_charts[];
extern const size_t page_charts_length;

#endif
