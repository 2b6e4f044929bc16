/*
 * engine_fixture.h - runs the engine on a test's programs.
 */
#ifndef TESTS_ENGINE_FIXTURE_H
#define TESTS_ENGINE_FIXTURE_H

#include <string.h>

#include "assert_close.h"
#include "program_builder.h"

#include "stepsim/engine.h"

/* The run must succeed; every rank is observed, so observed[i] is rank i. */
static inline const struct timeline *run_all(const struct programs *programs, struct arena *arena)
{
    const struct engine_options options = {.observe = OBSERVE_ALL};
    const char *failure = NULL;
    const struct timeline *timeline = engine_run(programs, &options, arena, &failure);
    if (timeline == NULL) {
        print_error("%s\n", failure);
    }
    assert_non_null(timeline);
    assert_null(failure);
    return timeline;
}

/* The run must fail; returns what it says. */
static inline const char *run_fails(const struct programs *programs, uint64_t event_budget,
                                    struct arena *arena)
{
    const struct engine_options options = {.event_budget = event_budget};
    const char *failure = NULL;
    assert_null(engine_run(programs, &options, arena, &failure));
    assert_non_null(failure);
    return failure;
}

/* Asserts when one op of one rank started and ended. */
static inline void check_op_times(const struct timeline *timeline, uint32_t rank, struct op_ref op,
                                  const sim_time times[2])
{
    const struct observed_rank *observed = &timeline->observed[rank];
    assert_int_equal(observed->rank, rank);
    assert_time_equal(observed->start[op.stream][op.index], times[0]);
    assert_time_equal(observed->end[op.stream][op.index], times[1]);
}

#define assert_op_times(timeline, rank, op, start, end)                                            \
    check_op_times((timeline), (rank), (op), (const sim_time[]){(start), (end)})

#endif
