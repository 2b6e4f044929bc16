/*
 * variant.c - one changed scenario, simulated in an arena of its own.
 */
#include "advice_internal.h"

bool variant_run(const struct scenario *scenario, struct variant_result *result)
{
    struct arena *arena = arena_create("variant");
    struct error_list errors;
    error_list_init(&errors, arena);
    struct run run = {0};
    const struct run_options options = {.steps = 1};
    const bool legal = run_simulate(&run, scenario, &options, arena, &errors);
    if (legal) {
        *result = (struct variant_result){.step_time_s = run.report->step_time_s,
                                          .tokens_per_s = run.report->tokens_per_s,
                                          .peak_bytes = run.report->peak_bytes,
                                          .fits = run.report->fits};
    }
    arena_destroy(arena);
    return legal;
}
