/*
 * steps.c - steps one after another: the loads of each, and the engine.
 *
 * Programs stay what they are; a step with other loads fills the tables of costs again. The
 * first step is kept whole for the report, later ones only with what a row of the report says.
 */
#include "run_internal.h"

#include "stepsim/rng.h"

static const struct timeline *run_engine(const struct programs *programs,
                                         const struct engine_options *options, struct arena *arena)
{
    const char *failure = NULL;
    const struct timeline *timeline = engine_run(programs, options, arena, &failure);
    if (timeline == NULL) {
        assert_fail(failure, __FILE__, __LINE__); /* programs that do not end are our bug */
    }
    return timeline;
}

static const struct timeline *first_step(const struct programs *programs,
                                         const struct run_options *options, struct arena *arena)
{
    struct engine_options engine = options->engine;
    engine.observe = options->observe_all ? OBSERVE_ALL : OBSERVE_CLASSES;
    return run_engine(programs, &engine, arena);
}

static const struct timeline *later_step(const struct programs *programs,
                                         const struct stepping *stepping, struct arena *arena)
{
    struct engine_options engine = stepping->options->engine;
    engine.observe = OBSERVE_NONE;
    arena_reset(stepping->scratch);
    const struct timeline *whole = run_engine(programs, &engine, stepping->scratch);
    struct timeline *kept = ARENA_NEW(arena, struct timeline);
    *kept = (struct timeline){.end = whole->end,
                              .ops = whole->ops,
                              .events = whole->events,
                              .digest = whole->digest,
                              .event_digest = whole->event_digest};
    return kept;
}

static struct step_loads loads_of(const struct expert_loads *loads)
{
    return (struct step_loads){
        .max_over_mean = loads->max_over_mean,
        .mean_max_over_mean = loads->mean_max_over_mean,
        .dropped_ratio = loads->dropped_ratio,
        .padded_ratio = loads->padded_ratio,
        .rows_mean = loads->rows_mean,
        .migrations = loads->migrations,
    };
}

const struct expert_loads *steps_first_loads(struct stepping *stepping, struct arena *arena)
{
    if (stepping->routing == NULL) {
        return NULL;
    }
    stepping->loads = ARENA_ARRAY(arena, stepping->options->steps, struct step_loads);
    const struct expert_loads *loads = routing_step(stepping->routing, 0);
    stepping->loads[0] = loads_of(loads);
    return loads;
}

const struct timeline *const *steps_run(const struct run *run, const struct stepping *stepping,
                                        struct arena *arena)
{
    const uint32_t count = stepping->options->steps;
    const struct timeline **steps = ARENA_ARRAY(arena, count, const struct timeline *);
    for (uint32_t i = 0; i < count; i++) {
        struct programs programs = *run->programs;
        if (i > 0 && stepping->routing != NULL) {
            const struct expert_loads *loads = routing_step(stepping->routing, i);
            programs = *plan_loads_change(run->plan, loads);
            stepping->loads[i] = loads_of(loads);
        } else if (i > 0 && programs.jitter_ppm == 0) {
            steps[i] = steps[0];
            continue;
        }
        programs.jitter_seed = rng_mix(run->programs->jitter_seed, i);
        steps[i] = i == 0 ? first_step(&programs, stepping->options, arena)
                          : later_step(&programs, stepping, arena);
    }
    return steps;
}

sim_time steps_balanced_end(const struct plan_ask *ask, const struct stepping *stepping,
                            struct arena *arena)
{
    struct plan_ask balanced = *ask;
    struct arena *programs = arena_create("balanced");
    balanced.loads = routing_even(stepping->routing, programs);
    const struct plan *plan = programs_build(&balanced, programs);
    const sim_time end = later_step(plan->programs, stepping, arena)->end;
    arena_destroy(programs);
    return end;
}
