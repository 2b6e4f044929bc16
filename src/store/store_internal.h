/*
 * store_internal.h - what the files of src/store share.
 */
#ifndef STEPSIM_STORE_INTERNAL_H
#define STEPSIM_STORE_INTERNAL_H

#include <sqlite3.h>

#include "stepsim/arena.h"
#include "stepsim/metric.h"
#include "stepsim/schema.h"
#include "stepsim/store.h"

#define STORE_APPLICATION_ID 0x53744570 /* "StEp" */
#define STORE_SCHEMA_VERSION 2

/* Tables that a point has rows in, in the order in which they are packed. */
enum store_table { TABLE_RUNS, TABLE_RUN_KEYS, TABLE_STAGES, TABLE_STEPS, TABLE_RUN_COSTS, TABLES };

struct store {
    const char *path;
    enum store_mode mode;
    sqlite3 *handle;
    struct arena *arena;
    sqlite3_stmt *insert[TABLES]; /* prepared when first used */
    uint32_t insert_values[TABLES];
    uint32_t sweep_id;
    int64_t invocation_id;
    bool wal;
};

/* Reports what SQLite says about the store, with what was being done. Returns false. */
bool store_fail(const struct store *store, const char *doing, struct error_list *errors);
/* Runs statements that return nothing. */
bool store_exec(struct store *store, const char *sql, struct error_list *errors);
/* The first value of a query as a number, 0 if there is no row. */
bool store_number(struct store *store, const char *sql, int64_t *number, struct error_list *errors);
/* NULL with an error. */
sqlite3_stmt *store_prepare(struct store *store, const char *sql, struct error_list *errors);

/* ---- Columns of `runs` read off the tables (columns.c) ---- */

enum column_kind { COLUMN_KEY, COLUMN_METRIC };

struct column {
    const char *name; /* "parallel_tp" */
    const char *type; /* "integer", "real", "text" */
    enum column_kind kind;
    const char *source;           /* "parallel.tp", "memory.peak_bytes" */
    const struct schema_row *row; /* COLUMN_KEY */
    const struct schema_table *table;
    size_t base_offset;          /* of the struct that the row's offset is into */
    const struct metric *metric; /* COLUMN_METRIC */
};

#define COLUMNS_MAX 512
/* The list is built once per process and constant afterwards. */
const struct column *store_columns(uint32_t *count);

/* ---- SQL texts (migrate.c) ---- */

bool store_migrate(struct store *store, struct error_list *errors);
/* The text of the views that are generated: time_share and comm. In the heap of `out`. */
void store_generated_views(struct text *out);

#endif
