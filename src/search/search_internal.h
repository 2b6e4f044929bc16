/*
 * search_internal.h - what the files of the search share.
 */
#ifndef STEPSIM_SEARCH_INTERNAL_H
#define STEPSIM_SEARCH_INTERNAL_H

#include "stepsim/search.h"

/* ---- Space (space.c) ---- */

/* The splits of one shape of pipeline that are worked out once. */
struct known_split {
    uint32_t pp, vpp;
    bool v_shaped;
    uint32_t *layers;  /* balanced: of every chunk, in model order */
    const char *apart; /* MTP modules and head on chunks of their own; NULL: cannot be */
};

struct space {
    const struct scenario *base;
    struct search_axis axes[SEARCH_AXES_MAX];
    const struct axis_row *rows[SEARCH_AXES_MAX]; /* how to apply each */
    uint32_t axis_count;
    uint32_t outer_count; /* the first so many axes are degrees, looked at before the others */
    uint64_t inner_size;  /* combinations of the others */
    uint64_t alike;       /* so many neighbours have the same ops */
    uint64_t *outers;     /* combinations of degrees that some layout accepts, ascending */
    struct run *likes;    /* of each of them, up to the layout; its groups are those of all */
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

/* ---- Splits (splits.c) ---- */

/* Fills the space's splits; errors of the model are added. */
void splits_find(struct space *space, struct arena *arena, struct error_list *errors);
/* Those of a scenario's pipeline, NULL if it has none. */
const struct known_split *splits_known(const struct space *space, const struct scenario *scenario);
/* Puts a split into a scenario. */
void splits_tail(struct scenario *scenario, struct arena *arena);
bool splits_use_balanced(const struct space *space, struct scenario *scenario);

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

/* ---- Wishes: expressions of the user (wishes.c) ---- */

struct formula;

/* What expressions are asked about. */
struct wish_point {
    const struct scenario *scenario;
    uint64_t number;                      /* of the candidate */
    const struct search_figures *figures; /* NULL: not simulated yet */
};

struct wish {
    struct formula *formula;
    bool late; /* names a result, so it is known only after the simulation */
};

struct wishes {
    const struct space *space;
    struct wish *conditions;
    uint32_t condition_count;
    struct formula *objective; /* NULL: a named one */
    struct wish_names *names;
};

bool wishes_build(struct wishes *wishes, const struct space *space, const struct search_ask *ask,
                  struct arena *arena, struct error_list *errors);
void wishes_release(struct wishes *wishes);
/* Do the conditions hold that do, or do not, name results? */
bool wishes_hold(const struct wishes *wishes, const struct wish_point *point, bool late);
/* The objective for a step and a peak; lower is better. */
double wishes_score(const struct wishes *wishes, const struct wish_point *point, double step_s,
                    double peak_bytes);

/* ---- Candidates (search.c) ---- */

#define MORE_MEMORY_BYTES GIB_BYTES

struct candidate {
    uint64_t number;
    double quick_bound, bound, memory_bound;
    bool refined; /* bound and memory_bound are the full ones */
    bool done;    /* simulated */
    bool holds;   /* and what the user wants of the results */
    double score;
    struct search_figures figures;
};

/* What a worker keeps of the candidate before, whose ops and costs its neighbours share. */
struct kept {
    struct arena *arena; /* NULL: nothing is kept yet */
    uint64_t key;
    bool filled;
    struct run run;
};

struct numbered {
    uint64_t number, index;
};

struct slot;

struct hunt {
    const struct search_ask *ask;
    struct space space;
    struct wishes wishes;
    struct arena *arena;
    double limit_bytes;
    struct slot *slots;
    uint64_t slot_count;
    struct candidate *candidates; /* by quick bound; shared memory */
    uint64_t candidate_count;
    uint64_t refined, simulated; /* candidates, so far */
    uint64_t *phase_done;        /* one of them */
    uint64_t batch_count;        /* being bounded or simulated */
    uint64_t *batch;             /* indices into candidates */
    struct numbered *pairs;      /* scratch of a batch */
    uint64_t *heap, heap_count;  /* indices, the lowest bound on top */
    struct search_progress progress;
    struct kept ops; /* each worker has its own */
};

/* The best within a limit of memory, best first. */
struct ranking {
    const struct candidate **best;
    uint64_t count;
};

const struct scenario *candidate_scenario(const struct hunt *hunt, uint64_t number,
                                          struct arena *arena);
/* Candidates simulated before are not simulated again. */
struct ranking hunt_best_within(struct hunt *hunt, double limit_bytes, uint32_t top);

/* ---- The answer (search_answer.c) ---- */

void answer_list(const struct hunt *hunt, const struct ranking *ranking,
                 struct search_answer *answer);
void answer_written(const struct hunt *hunt, struct search_answer *answer);
const char *answer_one_more_gib(struct hunt *hunt, const struct search_layout *best);
const char *answer_one_node_less(const struct hunt *hunt, const struct search_layout *best);
void answer_refuse(const struct hunt *hunt, struct error_list *errors);

/* ---- Single scenarios (search.c) ---- */

/* Simulates; false if the program refuses it. */
bool figures_of(const struct scenario *scenario, struct search_figures *figures,
                struct arena *arena);

/* ---- Why (why_lost.c) ---- */

const char *why_lost(const struct search_layout *layout, const struct search_layout *best,
                     struct arena *arena);
const char *why_won(const struct search_layout *best, const struct search_layout *second,
                    struct arena *arena);

#endif
