/* search_stages.h - prints what `search --stages` found. */
#ifndef STEPSIM_SEARCH_STAGES_H
#define STEPSIM_SEARCH_STAGES_H

#include "cli_internal.h"
#include "stepsim/search.h"

void stages_print(struct cli *cli, const struct stages_answer *answer, bool json);

#endif
