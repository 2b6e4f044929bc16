/*
 * run.c - from a scenario to a report, top to bottom.
 *
 * Above programs_build() nothing knows durations; below it nothing knows transformers.
 */
#include "stepsim/run.h"

#include <string.h>

#include "run_internal.h"
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

/* The op graph of another layout, which depends on chunks, sharding and swap only through layout
 * and scenario. */
static const struct op_graph *graph_like(const struct run *run, const struct run *like,
                                         struct arena *arena)
{
    struct op_graph *graph = ARENA_NEW(arena, struct op_graph);
    *graph = *like->graph;
    graph->scenario = run->scenario;
    graph->layout = run->layout;
    graph->model = run->model;
    return graph;
}

/* ask->like may be NULL. */
static bool prepare(struct run *run, const struct run_bound_ask *ask, struct arena *arena,
                    struct error_list *errors)
{
    const struct scenario *scenario = ask->scenario;
    const struct run *like = ask->like;
    *run = (struct run){.scenario = scenario};
    run->schedule = find_schedule(scenario, arena, errors);
    run->model = like != NULL ? like->model : model_build(scenario, arena, errors);
    run->cluster = like != NULL ? like->cluster : cluster_build(scenario, arena, errors);
    if (run->schedule == NULL || run->model == NULL || run->cluster == NULL) {
        return false;
    }
    const struct layout_ask layout_ask = {
        .scenario = scenario,
        .model = run->model,
        .cluster = run->cluster,
        .v_shaped = run->schedule->v_shaped,
        .like = like != NULL ? like->layout : NULL,
    };
    run->layout = layout_build(&layout_ask, arena, errors);
    if (run->layout == NULL) {
        return false;
    }
    const struct schedule_ask schedule_ask = schedule_ask_of(scenario, run->layout);
    const struct location at = scenario_at(scenario, "schedule.kind");
    const bool schedule_fits = run->schedule->check(&schedule_ask, at, errors);
    const struct op_graph_ask graph_ask = {
        .scenario = scenario,
        .model = run->model,
        .layout = run->layout,
        .decouple_weight = run->schedule->splits_backward || run->schedule->overlaps,
        .splits_backward = run->schedule->splits_backward,
        .pairs = run->schedule->overlaps,
    };
    if (ask->same_ops) {
        run->graph = op_graph_check(&graph_ask, errors) ? graph_like(run, like, arena) : NULL;
    } else {
        run->graph = op_graph_build(&graph_ask, arena, errors);
    }
    return schedule_fits && run->graph != NULL;
}

bool run_prepare(struct run *run, const struct scenario *scenario, struct arena *arena,
                 struct error_list *errors)
{
    const struct run_bound_ask ask = {.scenario = scenario};
    return prepare(run, &ask, arena, errors);
}

bool run_bound(struct run *run, const struct run_bound_ask *bound_ask, struct plan_bound *bound,
               struct arena *arena, struct error_list *errors)
{
    if (!prepare(run, bound_ask, arena, errors)) {
        return false;
    }
    const struct schedule_ask ask = schedule_ask_of(bound_ask->scenario, run->layout);
    run->order = bound_ask->quick ? NULL : run->schedule->build(&ask, arena);
    /* The bound holds for whatever loads: it asks no more than whether they differ. */
    static const struct expert_loads unknown = {0};
    const struct plan_ask plan_ask = {
        .graph = run->graph,
        .cluster = run->cluster,
        .schedule = run->schedule,
        .order = run->order,
        .loads = routing_differs(bound_ask->scenario, run->layout) ? &unknown : NULL,
    };
    const struct plan_bound_ask lower = {
        .plan = &plan_ask,
        .memory_cut_bytes = bound_ask->memory_cut_bytes,
        .costs = bound_ask->same_ops ? bound_ask->like->costs : NULL,
        .quick = bound_ask->quick,
    };
    *bound = plan_lower_bound(&lower, &run->costs, arena);
    return true;
}

/* The dropped share of every layer in the first step, kept from the steps behind it. */
static const double *layer_dropped(const struct expert_loads *loads, struct arena *arena)
{
    if (loads == NULL || loads->dropped_ratio <= 0.0)
        return NULL;
    double *dropped = ARENA_ARRAY(arena, loads->layers, double);
    memcpy(dropped, loads->layer_dropped, loads->layers * sizeof *dropped);
    return dropped;
}

/* scratch: of the routing, and for the length of the call. */
static bool simulate(struct run *run, const struct run_options *options, struct arena *scratch,
                     struct arena *arena, struct error_list *errors)
{
    const struct scenario *scenario = run->scenario;
    struct stepping stepping = {.options = options};
    const struct routing_ask routing_ask = {.scenario = scenario,
                                            .model = run->model,
                                            .cluster = run->cluster,
                                            .layout = run->layout,
                                            .scratch = scratch};
    if (!routing_build(&routing_ask, arena, errors, &stepping.routing))
        return false;
    const struct expert_loads *loads = steps_first_loads(&stepping, arena);
    const double *dropped = layer_dropped(loads, arena);
    const struct schedule_ask ask = schedule_ask_of(scenario, run->layout);
    run->order = run->schedule->build(&ask, arena);
    const struct plan_ask plan_ask = {
        .graph = run->graph,
        .cluster = run->cluster,
        .schedule = run->schedule,
        .order = run->order,
        .loads = loads,
        /* Noise differs from rank to rank, so nothing folds. */
        .ranks_all = options->ranks_all || scenario->noise.kernel_jitter > 0.0,
        .unfused = options->unfused,
    };
    run->plan = programs_build(&plan_ask, arena);
    run->programs = run->plan->programs;
    const struct step_outcome *steps = steps_run(run, &stepping, &run->timeline, arena);
    const struct report_parts parts = {
        .scenario = scenario,
        .model = run->model,
        .cluster = run->cluster,
        .layout = run->layout,
        .plan = run->plan,
        .timeline = run->timeline,
        .steps = steps,
        .step_count = options->steps,
        .ranks_all = plan_ask.ranks_all,
        .loads = stepping.loads,
        .layer_dropped = dropped,
        .balanced = steps_balanced(&plan_ask, &stepping, arena),
    };
    run->report = report_build(&parts, arena, errors);
    return run->report != NULL;
}

bool run_simulate(struct run *run, const struct scenario *scenario,
                  const struct run_options *options, struct arena *arena, struct error_list *errors)
{
    ASSERT(options->steps >= 1);
    const double started_s = options->started_s > 0.0 ? options->started_s : run_clock_s();
    if (!run_prepare(run, scenario, arena, errors)) {
        return false;
    }
    struct arena *scratch = arena_create("routing");
    const bool done = simulate(run, options, scratch, arena, errors);
    arena_destroy(scratch);
    if (done) {
        run->report->wall_s = run_clock_s() - started_s;
    }
    return done;
}
