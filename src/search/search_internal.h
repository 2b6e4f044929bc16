/*
 * search_internal.h - what the files of the search share.
 */
#ifndef STEPSIM_SEARCH_INTERNAL_H
#define STEPSIM_SEARCH_INTERNAL_H

#include "stepsim/search.h"

/* ---- Space (space.c) ---- */

/* The balanced split of one shape of pipeline. */
struct known_split {
    uint32_t pp, vpp;
    bool v_shaped;
    uint32_t *layers; /* of every chunk, in model order */
};

struct space {
    const struct scenario *base;
    struct search_axis axes[SEARCH_AXES_MAX];
    const struct axis_row *rows[SEARCH_AXES_MAX]; /* how to apply each */
    uint32_t axis_count;
    uint32_t outer_count; /* the first so many axes are degrees, looked at before the others */
    uint64_t inner_size;  /* combinations of the others */
    uint64_t *outers;     /* combinations of degrees that some layout accepts, ascending */
    uint64_t outer_size, outer_total;
    struct known_split *splits;
    uint32_t split_count;
};

bool space_build(struct space *space, const struct search_ask *ask, struct arena *arena,
                 struct error_list *errors);
/* The scenario of candidate (outer, inner); NULL where two values mean the same as another
 * candidate. */
const struct scenario *space_scenario(const struct space *space, uint64_t outer, uint64_t inner,
                                      struct arena *arena);
/* The value that a candidate has on an axis. */
const struct search_value *space_value(const struct space *space, uint32_t axis, uint64_t outer,
                                       uint64_t inner);

/* ---- Workers (workers.c) ---- */

/* Calls work(user, i, arena) for every i below count on worker processes; results go to shared
 * memory. The arena is reset behind each call. poll, if any, is called now and then. */
struct share {
    uint64_t count, grain; /* so many neighbours go to one worker at a time */
    uint32_t jobs;
    void (*work)(void *user, uint64_t index, struct arena *arena);
    void (*poll)(void *user, uint64_t done);
    void *user;
};
void share_work(const struct share *share);
/* Memory that workers and parent share, zeroed. */
void *share_alloc(size_t bytes);
void share_free(void *memory, size_t bytes);

/* ---- Candidates (search.c) ---- */

/* Simulates; false if the program refuses it. */
bool figures_of(const struct scenario *scenario, struct search_figures *figures,
                struct arena *arena);

/* ---- Why (why_lost.c) ---- */

const char *why_lost(const struct search_layout *layout, const struct search_layout *best,
                     struct arena *arena);
const char *why_won(const struct search_layout *best, const struct search_layout *second,
                    struct arena *arena);

#endif
