/* simulate_files.h - what `simulate` draws or writes beside its answer. */
#ifndef STEPSIM_SIMULATE_FILES_H
#define STEPSIM_SIMULATE_FILES_H

#include "cli_internal.h"
#include "stepsim/run.h"

struct simulate_files {
    const char *trace;     /* file, or NULL */
    const char *gantt_svg; /* file, or NULL */
};

/* Mistakes in the names that can be told before the simulation. */
void simulate_files_check(struct cli *cli, const struct simulate_files *files);
/* False with errors if a file cannot be written. */
bool simulate_files_write(struct cli *cli, const struct run *run,
                          const struct simulate_files *files);
/* The pipeline in characters. */
void simulate_gantt_print(struct cli *cli, const struct run *run);

#endif
