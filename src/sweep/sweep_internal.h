/*
 * sweep_internal.h - what the files of src/sweep share.
 */
#ifndef STEPSIM_SWEEP_INTERNAL_H
#define STEPSIM_SWEEP_INTERNAL_H

#include "stepsim/arena.h"
#include "stepsim/sweep.h"
#include "stepsim/yaml_tree.h"

struct cJSON;
struct search_change;

/* Keys that move together: one key, or several that are zipped. */
struct sweep_axis {
    const char *const *keys;
    uint32_t key_count;
    uint32_t value_count;
    const char *const *texts; /* value_count * key_count, YAML text of an override */
    struct location at;
};

struct sweep_expression {
    const char *name; /* key or helper of a derived value; NULL: a constraint */
    const char *text; /* SQL */
    struct location at;
    bool is_key; /* the derived value overrides a key of the scenario */
    bool late;   /* needs the parameter counts of the model */
};

enum sweep_sampling { SAMPLE_GRID, SAMPLE_RANDOM, SAMPLE_LATIN_HYPERCUBE };

struct sweep {
    const char *path, *title;
    const char *base_path, *config_dir;
    const struct scenario_override *sets;
    uint32_t set_count;
    const struct sweep_axis *axes;
    uint32_t axis_count;
    struct sweep_expression *derived;
    uint32_t derived_count;
    struct sweep_expression *wheres;
    uint32_t where_count;
    enum sweep_sampling sampling;
    uint64_t sample_points, seed;
    /* Listed layouts: the best one of each point counts. */
    const struct scenario_override *const *layouts;
    const uint32_t *layout_sizes;
    uint32_t layout_count;
    bool layout_search; /* the fastest layout of each point, found by search_run() */
    const struct search_change *changes; /* what the search varies and keeps */
    uint32_t change_count;
    uint32_t top; /* only the best so many points matter; 0: all */
    /* Resolved */
    const struct scenario *base;
    struct store_base *store_base;
    struct scenario_cache *cache;
    const char *definition, *hash, *base_json;
    double combinations;
    /* Points: axis keys, then derived values. */
    const char *const *key_names;
    const bool *key_is_override;
    uint32_t key_count;
    uint64_t point_count;
    const char *const *texts; /* point_count * key_count */
    struct arena *arena;
};

/* ---- The file (sweep_file.c, axis.c) ---- */

bool sweep_file_read(struct sweep *sweep, struct error_list *errors);
/* The values of one key: a list, or a range. False with errors. */
bool axis_read(struct sweep *sweep, const struct yaml_tree_entry *entry, struct sweep_axis *axis,
               struct error_list *errors);
/* A node as the YAML text of an override. */
const char *yaml_text_of(const struct yaml_tree *node, struct arena *arena);

/* ---- Expressions (expression.c) ---- */

struct expressions;
/* NULL with errors. Marks which expressions are late. */
struct expressions *expressions_create(struct sweep *sweep, struct error_list *errors);
void expressions_destroy(struct expressions *expressions);
/* Texts of the axis keys of one point; fills derived (derived_count texts, in the arena).
 * False when a constraint does not hold, or (failed) when an expression cannot be computed. */
struct expression_point {
    const char *const *axis_texts;
    const char **derived;
    bool failed;
};
bool expressions_hold(struct expressions *expressions, struct expression_point *point,
                      struct arena *arena, struct error_list *errors);

/* ---- Points (points.c) ---- */

bool points_build(struct sweep *sweep, struct error_list *errors);

/* ---- Workers (worker.c) ---- */

/* What a worker is asked. */
struct worker_question {
    uint64_t point_no;
    double score_cut; /* layouts that score above it are not wanted; 0: all are */
};

/* What a worker answers, followed by `length` packed bytes. */
struct worker_answer {
    uint64_t point_no;
    uint64_t length;
    enum run_status status;
    double tokens_per_s;
};

/* Serves point numbers from the socket until it ends; never returns. */
_Noreturn void worker_serve(const struct sweep *sweep, int socket_fd);
/* The swept keys of a point as the store wants them. */
const struct store_key *sweep_store_keys(const struct sweep *sweep, uint64_t point_no,
                                         struct arena *arena);

#endif
