/*
 * check.h - a committed file of scenarios, metrics and tolerances, and what moved since.
 *
 * The file is JSON:
 *   {"scenarios": [{"file": "study/sim.yaml",          relative to the baseline's folder
 *                   "set": {"parallel.vpp": "2"},      optional overrides
 *                   "metrics": {"mfu": {"value": 0.3, "rel": 0.01},
 *                               "memory.peak_bytes": {"value": 1e10, "abs": 1e6}},
 *                   "terms": {"time_s": {...}, "memory_bytes": {...}}}]}
 * A metric is a name of metric.h with its value and exactly one tolerance: |now - value| may be
 * at most rel * |value|, or abs. A value is written by an update and may be missing before. An
 * entry without metrics gets check_default_metrics with CHECK_DEFAULT_REL by its first update.
 * `terms` are written by updates too; from them a check tells which term moved.
 *
 * A scenario that is refused or cannot be read is a failed check, not an error of the caller.
 */
#ifndef STEPSIM_CHECK_H
#define STEPSIM_CHECK_H

#include "stepsim/compare.h"

#define CHECK_DEFAULT_REL 1e-6
extern const char *const check_default_metrics[];
extern const size_t check_default_metric_count;

struct baseline_metric {
    const char *name;
    size_t index; /* in metric_table */
    bool has_value;
    double value;
    bool relative;
    double tolerance;
};

struct baseline_scenario {
    const char *file; /* as written */
    const char *name; /* the file, and what is set: tells entries apart */
    const struct scenario_override *overrides;
    uint32_t override_count;
    struct baseline_metric *metrics;
    uint32_t metric_count;
    bool has_terms;
    struct answer_terms terms;
    struct location at;
};

struct baseline {
    const char *path;
    struct baseline_scenario *scenarios;
    uint32_t scenario_count;
};

/* NULL with errors. Values and metrics may be missing only if `for_update`. */
struct baseline *baseline_read(const char *path, bool for_update, struct arena *arena,
                               struct error_list *errors);
/* Replaces the file, or leaves it as it was with the error file_not_writable. */
bool baseline_write(const struct baseline *baseline, struct error_list *errors);

struct check_metric {
    const struct baseline_metric *baseline;
    double now;
    bool within;
};

struct check_scenario {
    const struct baseline_scenario *baseline;
    const char *failure;                /* why it could not be simulated, or NULL */
    const struct check_metric *metrics; /* metric_count of the baseline, unless it failed */
    struct answer_terms terms;          /* now */
    bool within;
};

struct check {
    const struct check_scenario *scenarios; /* scenario_count of the baseline */
    uint32_t scenario_count, failed_count;
    uint32_t metric_count, failed_metrics;
};

/* Runs every scenario. config_dir as in scenario_source. */
struct check check_run(const struct baseline *baseline, const char *config_dir,
                       struct arena *arena);
/* Takes the values of the check over, where the scenario could be simulated. */
void check_update(struct baseline *baseline, const struct check *check);

/* The caller frees it with cJSON_Delete. */
struct cJSON *check_json(const struct check *check, struct arena *arena);
/* JUnit XML: a test suite per scenario, a test case per metric. */
char *check_junit(const struct check *check, struct arena *arena);
/* What moved in one scenario, "" if nothing did or the baseline holds no terms. */
const char *check_moved_text(const struct check_scenario *scenario, struct arena *arena);

#endif
