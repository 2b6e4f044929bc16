/*
 * validate.h - published measurements, how they become scenarios, and how far predictions are off.
 *
 * Three steps, each usable alone: measurements_read() turns a CSV file into rows,
 * measurement_map() turns a row into keys of a scenario by fixed rules, validate_run()
 * simulates the mapped rows in worker processes. score_rows() then compares.
 *
 * Two formats are read; the header line tells them apart:
 *   measurements   columns id, family, kind, model, ... iter_time_s, mem_gib, grade
 *   ascend runs    columns id, group, model, ranks, ... flags, step_ms, peak_mem_mb
 *
 * Rules of mapping. A rule reads the row and sets keys; no rule reads the measured time or
 * memory, and no rule tries several values. What a source does not state is filled in by a
 * stated rule. Tables of names (devices, models, words for recompute and overlap) are data:
 * configs/validate.yaml. A row that cannot be mapped has a reason.
 *
 * Rows count as eligible if they are of grade A or B, a whole step, and of 16-bit precision.
 *
 * Everything lives in the arena given to the reader.
 */
#ifndef STEPSIM_VALIDATE_H
#define STEPSIM_VALIDATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stepsim/error.h"
#include "stepsim/scenario.h"

struct cJSON;
struct yaml_tree;

/* ---- Rows ---- */

enum measurement_kind { MEASUREMENT_STEP, MEASUREMENT_LAYER, MEASUREMENT_CHUNK };
enum measurement_format { FORMAT_MEASUREMENTS, FORMAT_ASCEND_RUNS };

struct measurement {
    const struct measurement_set *set;
    const char *const *cells; /* set->column_count texts */
    uint32_t line;            /* of the file */
    const char *id, *family, *grade;
    const char *device; /* as the file names it; "ascend" rows of the second format: hardware */
    enum measurement_kind kind;
    bool moe, ascend;
    bool reported; /* the time was printed, not derived from a rate */
    bool sixteen_bit;
    double step_s;          /* measured, 0: none */
    double memory_bytes;    /* measured peak of one rank, 0: none */
    bool first_step_memory; /* printed after the first step, which ran before Adam had moments */
};

struct measurement_set {
    const char *path;
    enum measurement_format format;
    const char *const *columns;
    uint32_t column_count;
    const struct measurement *rows;
    uint32_t count;
};

/* NULL with errors if the file cannot be read or has neither format. */
const struct measurement_set *measurements_read(const char *path, struct arena *arena,
                                                struct error_list *errors);

/* The text of a column, "" if there is no such column or nothing in it. */
const char *measurement_text(const struct measurement *row, const char *column);
/* The number at the start of a column's text, or the fallback. */
double measurement_number(const struct measurement *row, const char *column, double fallback);
bool measurement_eligible(const struct measurement *row);

/* ---- Mapping ---- */

/* A rule: its name, the sentence that the documentation prints, and what it does. */
struct mapping;
struct mapping_rule {
    const char *name;
    const char *sentence;
    void (*apply)(struct mapping *mapping);
};

extern const struct mapping_rule measurement_rules[], ascend_rules[]; /* end with no name */

#define MAPPING_KEYS_MAX 128

struct mapping {
    const struct measurement *row;
    const struct yaml_tree *tables; /* configs/validate.yaml */
    struct arena *arena;
    struct scenario_override keys[MAPPING_KEYS_MAX];
    uint32_t count;
    const char *reason;     /* not NULL: the row cannot be mapped */
    bool recompute_unknown; /* the source does not say: whole layers if it does not fit without */
};

/* The tables, NULL with errors. */
const struct yaml_tree *mapping_tables(const char *config_dir, struct arena *arena,
                                       struct error_list *errors);
struct mapping *measurement_map(const struct measurement *row, const struct yaml_tree *tables,
                                struct arena *arena);
/* The mapped row as YAML text of a scenario. */
const char *mapping_yaml(const struct mapping *mapping);

/* Used by rules. Setting a key again replaces its value; mapping_append adds to a list. */
void mapping_set(struct mapping *mapping, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void mapping_append(struct mapping *mapping, const char *key, const char *item);
/* The value of a key set before, or NULL. */
const char *mapping_value(const struct mapping *mapping, const char *key);
/* Gives up on the row; the first reason stays. */
void mapping_refuse(struct mapping *mapping, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- Predictions ---- */

struct prediction {
    bool done;
    double step_s;
    double memory_bytes; /* largest peak of a stage that a framework's allocator would report */
    bool fits;
    char device[64];  /* of the scenario: a name of configs/devices */
    char reason[256]; /* why there is no prediction */
};

/* Overrides beside the row's own, say constants on trial. */
struct validate_extra {
    const struct scenario_override *overrides;
    uint32_t count;
};

struct validate_ask {
    const struct measurement *const *rows;
    uint32_t count;
    const struct yaml_tree *tables;
    const char *config_dir;
    const struct validate_extra *extras; /* [count], or NULL */
    uint32_t jobs;                       /* worker processes, at least 1 */
    void (*progress)(void *user, uint32_t done, uint32_t count);
    void *user;
};

/* One prediction per row, in the arena. A row that crashes its worker fails alone. */
const struct prediction *validate_run(const struct validate_ask *ask, struct arena *arena);

/* ---- Scores ---- */

struct scored_row {
    const struct measurement *row;
    const struct prediction *prediction;
};

/* A mean over nothing is NAN. */
struct score {
    uint32_t n, eligible;
    double mae_log;          /* mean over families of the mean |ln(predicted / measured)| */
    double median_log;       /* median of |ln| over rows */
    double anchored_mae_log; /* the first row of a family sets one factor, the others are scored */
    double bias_log;         /* as mae_log, signed */
    double within[3];        /* shares of rows within 10, 20, 30 % */
    uint32_t memory_n;
    double memory_mae_log;
    double kendall_tau; /* mean over families of four scored rows and more */
};

/* Which rows a score is over; NULL as filter takes all eligible rows. */
typedef bool (*score_filter)(const struct measurement *row, const void *user);
struct score score_rows(const struct scored_row *rows, uint32_t count, score_filter filter,
                        const void *user);
/* ln(predicted / measured), NAN without both. */
double score_log_error(const struct scored_row *row);
double score_memory_log_error(const struct scored_row *row);

/* {"overall":, "by_group":, "apart":, "rows":}. The caller frees. */
struct cJSON *validate_json(const struct scored_row *rows, uint32_t count);

/* The groups of a set, in the order printed: name and filter with its argument. */
struct score_group {
    const char *name;
    score_filter filter;
    const void *user;
};
/* Fills at most `maximum` groups; the number. */
uint32_t score_groups(const struct scored_row *rows, uint32_t count, struct score_group *groups,
                      uint32_t maximum, struct arena *arena);

#endif
