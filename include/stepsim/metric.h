/*
 * metric.h - the table of scalar metrics: one row per number that simulate prints.
 *
 * The rows live in src/metrics/metric_list.def. The JSON of a report, the columns of a
 * database and docs/reference/metrics.md are read off this table, so a metric is added
 * by adding a row.
 *
 * A name is the place of the number in `simulate --json`: "memory.peak_bytes" is the key
 * peak_bytes of the object memory. Every value is a finite double; flags are 0 or 1.
 */
#ifndef STEPSIM_METRIC_H
#define STEPSIM_METRIC_H

#include <stddef.h>

#include "stepsim/report.h"

enum metric_kind {
    METRIC_REAL,  /* any number */
    METRIC_COUNT, /* a whole number */
    METRIC_RATIO, /* between 0 and 1 */
    METRIC_FLAG,  /* 0 or 1, true or false in JSON */
    METRIC_KIND_COUNT
};

/* "real", "count", "ratio", "flag". */
const char *metric_kind_name(enum metric_kind kind);

struct metric {
    const char *name;
    const char *unit; /* "s", "bytes", "FLOP/s"; "" for pure numbers */
    enum metric_kind kind;
    const char *meaning;
    double (*value)(const struct report *report);
};

extern const struct metric metric_table[];
extern const size_t metric_count;

/* NULL if there is none. */
const struct metric *metric_find(const char *name);

#endif
