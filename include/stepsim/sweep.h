/*
 * sweep.h - many variants of one scenario: which points there are, and running them.
 *
 * A sweep file names a base scenario, axes, derived keys and constraints (`stepsim sweep
 * --help`, docs/sweeps.md). sweep_load() turns it into a fixed list of points: the same file
 * gives the same points in the same order on every machine, and a point is known by its
 * number. sweep_run() simulates those that the database does not hold yet.
 *
 * Constraints and derived keys are SQL expressions over the values of a point, evaluated by
 * SQLite on an empty database behind an authorizer: no tables, no files, a list of functions.
 *
 * Points run in worker processes, forked once and fed by number; the caller's process is the
 * only writer. A point that crashes, takes too long or too much memory ends its worker and
 * becomes a row of status failed. Results do not depend on the number of workers.
 */
#ifndef STEPSIM_SWEEP_H
#define STEPSIM_SWEEP_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "stepsim/scenario.h"
#include "stepsim/store.h"

struct sweep;

struct sweep_source {
    const char *path;
    const char *config_dir;
};

/* Everything lives in the arena. NULL with errors. */
struct sweep *sweep_load(const struct sweep_source *source, struct arena *arena,
                         struct error_list *errors);
/* Releases what does not live in the arena. Accepts NULL. */
void sweep_release(struct sweep *sweep);

const char *sweep_name(const struct sweep *sweep);
uint64_t sweep_point_count(const struct sweep *sweep);
/* All combinations of the axes, before constraints and sampling. */
double sweep_combinations(const struct sweep *sweep);
/* Swept keys, the same for every point; false in *is_key: a helper of the sweep. */
uint32_t sweep_key_count(const struct sweep *sweep);
const char *sweep_key_name(const struct sweep *sweep, uint32_t key, bool *is_key);
const char *sweep_key_text(const struct sweep *sweep, uint64_t point_no, uint32_t key);

/* ---- Parts of a sweep ---- */

/* index % count selects the points; count 1: all. */
struct sweep_shard {
    uint32_t index, count;
};

/* "2/8", or "auto": from the environment of Slurm (array and step), Open MPI, PMI or PMIx. An
 * index from 1 to N, where 0 counts as N. False with an error. */
bool sweep_shard_parse(const char *text, struct sweep_shard *shard, struct error_list *errors);
/* Is the point part of the shard? Points are dealt evenly after a seeded shuffle. */
bool *sweep_shard_points(const struct sweep *sweep, struct sweep_shard shard, struct arena *arena);

/* ---- Running ---- */

struct sweep_progress {
    uint64_t done, total;                /* of this part, earlier invocations included */
    uint64_t now;                        /* of them, by this invocation */
    uint64_t statuses[RUN_STATUS_COUNT]; /* of this invocation */
    double elapsed_s;
    double best_tokens_per_s; /* of this invocation, 0: none yet */
    uint64_t best_point_no;
    double writing_s; /* spent in the database */
};

struct sweep_options {
    struct sweep_shard shard;
    uint32_t jobs;
    double point_timeout_s;      /* 0: none */
    uint64_t point_memory_bytes; /* address space of a worker, 0: no limit */
    const char *command_line;
    bool retry_failed;
    enum { SWEEP_STALE_REFUSE, SWEEP_STALE_KEEP, SWEEP_STALE_RERUN } stale;
    const volatile sig_atomic_t *stop; /* becomes nonzero: finish what runs, commit, return */
    void (*progress)(void *context, const struct sweep_progress *progress); /* a few per second */
    void *context;
};

enum sweep_end { SWEEP_COMPLETE, SWEEP_STOPPED, SWEEP_ERROR };
enum sweep_end sweep_run(const struct sweep *sweep, struct store *store,
                         const struct sweep_options *options, struct sweep_progress *progress,
                         struct error_list *errors);

#endif
