/*
 * steps.c - steps one after another: the loads of each, and the engine.
 *
 * Programs stay what they are; a step with other loads fills the tables of costs again. The
 * first step is kept whole for the report, of later ones what a row of the report says.
 *
 * Loads follow from step to step, but no load depends on a time: so the loads of some steps
 * are drawn in order, and then these steps are simulated side by side. How many changes nothing.
 */
#include <pthread.h>

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

static struct step_outcome outcome_of(const struct programs *programs,
                                      const struct timeline *timeline)
{
    struct step_outcome outcome = {.end = timeline->end};
    for (uint32_t r = 0; r < programs->rank_count; r++) {
        if (timeline->ranks[r].peak_bytes > outcome.peak_bytes) {
            outcome.peak_bytes = timeline->ranks[r].peak_bytes;
        }
    }
    return outcome;
}

/* ---- Loads ---- */

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

/* ---- Later steps ---- */

/* One step that is being simulated; each has an arena of its own. */
struct lane {
    struct programs programs;
    struct engine_options engine;
    struct arena *scratch;
    struct step_outcome outcome;
    pthread_t thread;
    bool threaded;
};

static void *run_lane(void *raw)
{
    struct lane *lane = raw;
    arena_reset(lane->scratch);
    lane->outcome =
        outcome_of(&lane->programs, run_engine(&lane->programs, &lane->engine, lane->scratch));
    return NULL;
}

/* Steps from `step` on, one per lane. A thread that cannot be had is done without. */
static void run_lanes(struct lane *lanes, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        lanes[i].threaded = pthread_create(&lanes[i].thread, NULL, run_lane, &lanes[i]) == 0;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (i == 0 || !lanes[i].threaded) {
            run_lane(&lanes[i]);
        }
    }
    for (uint32_t i = 1; i < count; i++) {
        if (lanes[i].threaded) {
            pthread_join(lanes[i].thread, NULL);
        }
    }
}

static void fill_lane(const struct run *run, const struct stepping *stepping, struct lane *lane,
                      uint32_t slot, uint32_t step)
{
    lane->programs = *run->programs;
    if (stepping->routing != NULL) {
        const struct expert_loads *loads = routing_step(stepping->routing, step);
        lane->programs = *plan_loads_change(run->plan, loads, slot);
        stepping->loads[step] = loads_of(loads);
    }
    lane->programs.jitter_seed = rng_mix(run->programs->jitter_seed, step);
    lane->engine = stepping->options->engine;
    lane->engine.observe = OBSERVE_NONE;
}

static void run_later(const struct run *run, const struct stepping *stepping,
                      struct step_outcome *outcomes)
{
    struct lane lanes[PLAN_LATER_MAX] = {0};
    uint32_t lane_count = stepping->options->jobs > 1 ? stepping->options->jobs : 1;
    lane_count = lane_count < PLAN_LATER_MAX ? lane_count : PLAN_LATER_MAX;
    for (uint32_t i = 0; i < lane_count; i++) {
        lanes[i].scratch = arena_create("step");
    }
    for (uint32_t step = 1; step < stepping->options->steps;) {
        const uint32_t left = stepping->options->steps - step;
        const uint32_t count = left < lane_count ? left : lane_count;
        for (uint32_t i = 0; i < count; i++) {
            fill_lane(run, stepping, &lanes[i], i, step + i);
        }
        run_lanes(lanes, count);
        for (uint32_t i = 0; i < count; i++) {
            outcomes[step++] = lanes[i].outcome;
        }
    }
    for (uint32_t i = 0; i < lane_count; i++) {
        arena_destroy(lanes[i].scratch);
    }
}

const struct step_outcome *steps_run(const struct run *run, const struct stepping *stepping,
                                     const struct timeline **first, struct arena *arena)
{
    const struct run_options *options = stepping->options;
    struct step_outcome *outcomes = ARENA_ARRAY(arena, options->steps, struct step_outcome);
    struct engine_options engine = options->engine;
    engine.observe = options->observe_all ? OBSERVE_ALL : OBSERVE_CLASSES;
    struct programs programs = *run->programs;
    programs.jitter_seed = rng_mix(run->programs->jitter_seed, 0);
    *first = run_engine(&programs, &engine, arena);
    outcomes[0] = outcome_of(&programs, *first);
    if (stepping->routing != NULL || programs.jitter_ppm != 0) {
        run_later(run, stepping, outcomes);
        return outcomes;
    }
    for (uint32_t step = 1; step < options->steps; step++) {
        outcomes[step] = outcomes[0];
    }
    return outcomes;
}

const struct step_outcome *steps_balanced(const struct plan_ask *ask,
                                          const struct stepping *stepping, struct arena *arena)
{
    if (stepping->routing == NULL) {
        return NULL;
    }
    struct arena *scratch = arena_create("balanced");
    struct plan_ask balanced = *ask;
    balanced.loads = routing_even(stepping->routing, scratch);
    struct engine_options engine = stepping->options->engine;
    engine.observe = OBSERVE_NONE;
    const struct programs *programs = programs_build(&balanced, scratch)->programs;
    struct step_outcome *outcome = ARENA_NEW(arena, struct step_outcome);
    *outcome = outcome_of(programs, run_engine(programs, &engine, scratch));
    arena_destroy(scratch);
    return outcome;
}
