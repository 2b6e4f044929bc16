/* simulate_store.h - the result of `simulate --db`. */
#ifndef STEPSIM_SIMULATE_STORE_H
#define STEPSIM_SIMULATE_STORE_H

#include "cli_internal.h"
#include "stepsim/run.h"

/* Adds the result to the database; false with errors. */
bool simulate_store(struct cli *cli, const char *db, const struct run *result);

#endif
