/*
 * store.h - results in an SQLite file that survives anything and opens anywhere.
 *
 * One row of `runs` per simulated point. docs/reference/database.md is generated from the
 * schema; the columns of `runs` that hold keys and metrics are read off the tables of
 * schema.h and metric.h, so a new key or metric is a new column, added when a file is opened
 * for writing.
 *
 * Rules
 * 1. A point is (sweep_id, point_no); run_id is sweep_id * 2^32 + point_no. A row that is
 *    there is done: writing it again changes nothing, and this is the state from which a
 *    sweep resumes.
 * 2. `runs` and its child tables hold nothing that depends on the moment, the machine or the
 *    number of workers; that is in `run_costs` and `invocations`. Two files with the same
 *    points are equal row for row in all other tables.
 * 3. Points are packed into bytes by the process that simulated them and written by one
 *    writer, in one transaction per batch. A kill at any moment loses the open batch only.
 * 4. While a writer has the file open it is in WAL mode (a rollback journal on a network
 *    file system); the last writer leaves one plain file behind.
 *
 * Errors are database, database_version and database_busy, with the path in the position.
 */
#ifndef STEPSIM_STORE_H
#define STEPSIM_STORE_H

#include <stdbool.h>
#include <stdint.h>

#include "stepsim/report.h"
#include "stepsim/text.h"

struct store;
struct arena;
struct cJSON;

enum store_mode {
    STORE_READ,  /* must exist; nothing in it can change */
    STORE_WRITE, /* created if it does not exist, migrated if it is older */
};

/* NULL with an error. The store lives in the arena until store_close(). */
struct store *store_open(const char *path, enum store_mode mode, struct arena *arena,
                         struct error_list *errors);
/* Accepts NULL. False with an error if the last writer could not tidy up; rows are safe. */
bool store_close(struct store *store, struct error_list *errors);
/* Does the path lie on a file system that several machines share (NFS, Lustre, ...)? */
bool store_on_network(const char *path);

/* ---- Points ---- */

enum run_status { RUN_OK, RUN_DOES_NOT_FIT, RUN_REJECTED, RUN_FAILED, RUN_STATUS_COUNT };
/* "ok", "does_not_fit", "rejected", "failed". */
const char *run_status_name(enum run_status status);

/* The resolved scenario that the points of a sweep vary, with what is computed once from it. */
struct store_base {
    const struct cJSON *json; /* scenario_json() without origins */
    const char *model_hash, *calibration_id;
};
/* Everything, the JSON included, lives in the arena's lifetime: free with store_base_destroy. */
struct store_base *store_base_create(const struct scenario *scenario, struct arena *arena);
void store_base_destroy(struct store_base *base);

struct store_key {
    const char *key;  /* "model.layers", or the name of a helper variable */
    const char *text; /* as written; numbers and quantities are stored as numbers */
};

struct store_point {
    uint64_t point_no;
    enum run_status status;
    const char *code, *message;      /* why it is not ok, or NULL */
    uint32_t error_count;            /* mistakes found; the first is code and message */
    const struct scenario *scenario; /* NULL when it could not be loaded */
    const struct report *report;     /* NULL unless ok or does_not_fit */
    const struct store_key *keys;    /* the swept ones */
    uint32_t key_count;
    int32_t layout_no;             /* which of the listed layouts, or -1 */
    const struct store_base *base; /* of the sweep, NULL: the whole scenario is kept */
    double wall_s, cpu_s;          /* what the point cost */
    uint64_t memory_peak_bytes;    /* of the process that simulated it */
};

/* Appends the bytes of a point. Texts and numbers only: any process may write them. */
void store_pack(struct text *out, const struct store_point *point, struct arena *scratch);

/* ---- Writing ---- */

/* What is asked of many points. Two with the same hash are the same sweep. */
struct store_sweep {
    const char *kind; /* "single", "sweep", "search" */
    const char *name;
    const char *hash;       /* identifies definition and base */
    const char *definition; /* JSON */
    const char *base;       /* JSON of the resolved base scenario, or NULL */
    uint64_t points_total;  /* 0: open-ended */
};

/* Finds or adds the sweep and notes this invocation of the program. */
struct store_invocation {
    const char *command_line;
    const char *shard; /* "2-of-8", or NULL */
    uint32_t jobs;
};
bool store_begin_sweep(struct store *store, const struct store_sweep *sweep,
                       const struct store_invocation *invocation, struct error_list *errors);
/* Marks the invocation as ended. */
bool store_end_sweep(struct store *store, bool complete, struct error_list *errors);
uint32_t store_sweep_id(const struct store *store);
/* The next free point number of an open-ended sweep. */
bool store_next_point(struct store *store, uint64_t *point_no, struct error_list *errors);

/* Which points of the sweep are there: done[point_no] becomes true, tokens_per_s[point_no] what it
 * reached if its status is ok. Counts them. */
struct store_done {
    bool *done;
    double *tokens_per_s;
    uint64_t count; /* entries of both */
    uint64_t found;
};
bool store_done_points(struct store *store, struct store_done *points, struct error_list *errors);
/* Points of the sweep by another commit of the program. */
bool store_stale_points(struct store *store, uint64_t *count, struct error_list *errors);
/* Removes failed points, or those of another commit, so that they are run again. */
bool store_forget_failed(struct store *store, struct error_list *errors);
bool store_forget_stale(struct store *store, struct error_list *errors);

/* Writes packed points, one after the other in `bytes`, in one transaction. */
bool store_write(struct store *store, const struct text *bytes, struct error_list *errors);

/* ---- Joining, reading ---- */

struct store_merge_counts {
    uint64_t sweeps, points_added, points_there;
};
/* Copies every point of another database that is not there yet. */
bool store_merge(struct store *store, const char *from, struct store_merge_counts *counts,
                 struct error_list *errors);

/* A query: any one SELECT, over a file that cannot change. */
struct store_query;
/* NULL with an error. The values, bound to ?1 ?2 ..., may be NULL entries. */
struct store_query *store_query_open(struct store *store, const char *sql,
                                     const char *const *values, uint32_t value_count,
                                     struct error_list *errors);
uint32_t store_query_columns(const struct store_query *query);
const char *store_query_heading(const struct store_query *query, uint32_t column);
enum store_cell_kind { STORE_NULL, STORE_INTEGER, STORE_REAL, STORE_TEXT };
struct store_cell {
    enum store_cell_kind kind;
    int64_t integer;
    double real;
    const char *text; /* of TEXT; valid until the next row */
};
/* False at the end, or with an error. */
bool store_query_next(struct store_query *query, struct error_list *errors);
struct store_cell store_query_cell(const struct store_query *query, uint32_t column);
void store_query_close(struct store_query *query);

/* The column of `runs` for a key or metric ("parallel.tp", "parallel_tp"), in the arena, or
 * NULL. */
const char *store_column_of(const char *name, struct arena *arena);
/* The `runs` column nearest to a misspelt name, or NULL. */
const char *store_column_nearest(const char *name, struct arena *arena);
/* docs/reference/database.md. */
char *store_reference_markdown(struct arena *arena);

#endif
