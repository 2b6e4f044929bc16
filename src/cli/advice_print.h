/*
 * advice_print.h - variants that the program ran to answer a question, for people and JSON.
 */
#ifndef STEPSIM_ADVICE_PRINT_H
#define STEPSIM_ADVICE_PRINT_H

#include "cli_internal.h"
#include "stepsim/advice.h"

struct cJSON;

/* The fastest single changes that fit. */
void advice_print_fit(struct cli *cli, const struct fit_changes *changes);
struct cJSON *advice_fit_json(const struct fit_changes *changes);
/* The menu of `explain --recompute`. */
int advice_print_recompute(struct cli *cli, const struct recompute_menu *menu, bool json);

#endif
