/*
 * run.c - from a scenario to a report, top to bottom.
 *
 * Above programs_build() nothing knows durations; below it nothing knows transformers.
 */
#include "stepsim/run.h"

#include "stepsim/rng.h"
#include "stepsim/text.h"

static const struct schedule *find_schedule(const struct scenario *scenario, struct arena *arena,
                                            struct error_list *errors)
{
    const struct schedule *schedule = schedule_find(scenario->schedule.kind);
    if (schedule == NULL) {
        const char **names = ARENA_ARRAY(arena, schedule_count + 1, const char *);
        for (size_t i = 0; i < schedule_count; i++) {
            names[i] = schedule_registry[i]->name;
        }
        const char *nearest = text_nearest(scenario->schedule.kind, names, schedule_count);
        error_add(errors, ERROR_unknown_name, scenario_at(scenario, "schedule.kind"),
                  "schedule.kind",
                  "there is no schedule \"%s\"%s%s%s; `stepsim list schedules` "
                  "prints them",
                  scenario->schedule.kind, nearest != NULL ? ", did you mean \"" : "",
                  nearest != NULL ? nearest : "", nearest != NULL ? "\"" : "");
    }
    return schedule;
}

static struct schedule_ask schedule_ask_of(const struct scenario *scenario,
                                           const struct layout *layout)
{
    struct schedule_ask ask = {
        .pp = layout->pp,
        .vpp = layout->vpp,
        .microbatches = layout->microbatches,
        .group = scenario->schedule.microbatch_group,
    };
    for (uint32_t i = 0; i < layout->pp * layout->vpp; i++) {
        ask.layer_slots += layout->chunks[i].layer_count + layout->chunks[i].noop_count;
    }
    return ask;
}

bool run_prepare(struct run *run, const struct scenario *scenario, struct arena *arena,
                 struct error_list *errors)
{
    *run = (struct run){.scenario = scenario};
    run->schedule = find_schedule(scenario, arena, errors);
    run->model = model_build(scenario, arena, errors);
    run->cluster = cluster_build(scenario, arena, errors);
    if (run->schedule == NULL || run->model == NULL || run->cluster == NULL) {
        return false;
    }
    const struct layout_ask layout_ask = {
        .scenario = scenario,
        .model = run->model,
        .cluster = run->cluster,
        .v_shaped = run->schedule->v_shaped,
    };
    run->layout = layout_build(&layout_ask, arena, errors);
    if (run->layout == NULL) {
        return false;
    }
    const struct schedule_ask ask = schedule_ask_of(scenario, run->layout);
    const struct location at = scenario_at(scenario, "schedule.kind");
    const bool schedule_fits = run->schedule->check(&ask, at, errors);
    const struct op_graph_ask graph_ask = {
        .scenario = scenario,
        .model = run->model,
        .layout = run->layout,
        .decouple_weight = run->schedule->splits_backward || run->schedule->overlaps,
        .splits_backward = run->schedule->splits_backward,
        .pairs = run->schedule->overlaps,
    };
    run->graph = op_graph_build(&graph_ask, arena, errors);
    return schedule_fits && run->graph != NULL;
}

/* Step by step; steps without random noise are alike and are simulated once. */
static const struct timeline *const *
run_steps(const struct run *run, const struct run_options *options, struct arena *arena)
{
    const struct timeline **steps = ARENA_ARRAY(arena, options->steps, const struct timeline *);
    struct engine_options engine = options->engine;
    engine.observe = options->observe_all ? OBSERVE_ALL : OBSERVE_CLASSES;
    for (uint32_t i = 0; i < options->steps; i++) {
        if (i > 0 && run->programs->jitter_ppm == 0) {
            steps[i] = steps[0];
            continue;
        }
        struct programs programs = *run->programs;
        programs.jitter_seed = rng_mix(run->programs->jitter_seed, i);
        const char *failure = NULL;
        steps[i] = engine_run(&programs, &engine, arena, &failure);
        if (steps[i] == NULL) {
            assert_fail(failure, __FILE__, __LINE__); /* programs that do not end are our bug */
        }
    }
    return steps;
}

bool run_bound(struct run *run, const struct run_bound_ask *bound_ask, struct plan_bound *bound,
               struct arena *arena, struct error_list *errors)
{
    if (!run_prepare(run, bound_ask->scenario, arena, errors)) {
        return false;
    }
    const struct schedule_ask ask = schedule_ask_of(bound_ask->scenario, run->layout);
    run->order = run->schedule->build(&ask, arena);
    const struct plan_ask plan_ask = {
        .graph = run->graph,
        .cluster = run->cluster,
        .schedule = run->schedule,
        .order = run->order,
    };
    *bound = plan_lower_bound(&plan_ask, bound_ask->memory_cut_bytes, arena);
    return true;
}

bool run_simulate(struct run *run, const struct scenario *scenario,
                  const struct run_options *options, struct arena *arena, struct error_list *errors)
{
    ASSERT(options->steps >= 1);
    const double started_s = options->started_s > 0.0 ? options->started_s : run_clock_s();
    if (!run_prepare(run, scenario, arena, errors)) {
        return false;
    }
    /* Noise differs from rank to rank, so nothing folds. */
    const bool ranks_all = options->ranks_all || scenario->noise.kernel_jitter > 0.0;
    const struct schedule_ask ask = schedule_ask_of(scenario, run->layout);
    run->order = run->schedule->build(&ask, arena);
    const struct plan_ask plan_ask = {
        .graph = run->graph,
        .cluster = run->cluster,
        .schedule = run->schedule,
        .order = run->order,
        .ranks_all = ranks_all,
        .unfused = options->unfused,
    };
    run->plan = programs_build(&plan_ask, arena);
    run->programs = run->plan->programs;
    const struct timeline *const *steps = run_steps(run, options, arena);
    run->timeline = steps[0];
    const struct report_parts parts = {
        .scenario = scenario,
        .model = run->model,
        .cluster = run->cluster,
        .layout = run->layout,
        .plan = run->plan,
        .steps = steps,
        .step_count = options->steps,
        .ranks_all = ranks_all,
    };
    struct report *report = report_build(&parts, arena, errors);
    if (report == NULL) {
        return false;
    }
    report->wall_s = run_clock_s() - started_s;
    run->report = report;
    return true;
}
