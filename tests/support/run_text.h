/* run_text.h - simulates a scenario given as text, with one key changed. */
#ifndef TESTS_RUN_TEXT_H
#define TESTS_RUN_TEXT_H

#include "assert_close.h"

#include "stepsim/run.h"

/* key NULL: as it stands. Errors are printed, and fail the test. */
static inline struct run run_text(struct arena *arena, const char *text, const char *key,
                                  const char *value)
{
    struct error_list errors;
    error_list_init(&errors, arena);
    const struct scenario_override override = {key, value};
    const struct scenario_source source = {.text = text,
                                           .text_name = "test",
                                           .overrides = &override,
                                           .override_count = key != NULL ? 1 : 0};
    const struct scenario *scenario = scenario_load(&source, arena, &errors);
    struct run run = {0};
    const struct run_options options = {.steps = 1};
    if (scenario == NULL || !run_simulate(&run, scenario, &options, arena, &errors))
        print_error("%s", error_list_text(&errors, arena));
    assert_non_null(run.report);
    return run;
}

#endif
