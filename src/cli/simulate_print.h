/* simulate_print.h - the answer of `simulate` for people. */
#ifndef STEPSIM_SIMULATE_PRINT_H
#define STEPSIM_SIMULATE_PRINT_H

#include "cli_internal.h"
#include "range_print.h"
#include "stepsim/run.h"

/* The range may be one that was not found. */
void simulate_print(struct cli *cli, const struct run *run, const struct range_answer *range);
/* Only the breakdown of the step. */
void simulate_print_time(struct cli *cli, const struct report *report);

#endif
