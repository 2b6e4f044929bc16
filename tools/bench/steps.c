/*
 * steps.c - training steps of the headline scenario under loads that drift.
 *
 * Default granularity: loads are drawn once per step and shared by the replicas, so ranks split
 * into (stage x expert position). Every step draws loads, fills tables, and plays the step.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench.h"

#include "stepsim/run.h"
#include "stepsim/scenario.h"

#define SCENARIO STEPSIM_CONFIG_DIR "/../sims/pangu_ultra_moe_6k/sim.yaml"
#define STEPS    200

struct measured {
    double wall_s, cpu_s;
    uint32_t ranks;
    double events_per_step;
};

static struct measured measure(uint32_t jobs)
{
    struct arena *arena = arena_create("steps");
    struct error_list errors;
    error_list_init(&errors, arena);
    const struct scenario_override overrides[] = {
        {"moe.routing", "{load: zipf, s: 0.2, drift: 1 %}"},
        {"moe.placement", "{kind: dynamic, every: 10}"},
    };
    const struct scenario_source source = {.path = SCENARIO,
                                           .config_dir = STEPSIM_CONFIG_DIR,
                                           .overrides = overrides,
                                           .override_count = 2};
    const double start_s = bench_now_s();
    const double start_cpu_s = bench_cpu_s();
    const struct scenario *scenario = scenario_load(&source, arena, &errors);
    struct run run;
    const struct run_options options = {.steps = STEPS, .jobs = jobs};
    if (scenario == NULL || !run_simulate(&run, scenario, &options, arena, &errors)) {
        fprintf(stderr, "%s\n", error_list_text(&errors, arena));
        exit(2);
    }
    const struct measured measured = {
        .wall_s = bench_now_s() - start_s,
        .cpu_s = bench_cpu_s() - start_cpu_s,
        .ranks = run.programs->rank_count,
        .events_per_step = (double)run.timeline->events,
    };
    arena_destroy(arena);
    return measured;
}

void bench_steps(void)
{
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    printf("steps: pangu_ultra_moe_6k, Zipf 0.2 drifting 1 %% per step, dynamic placement\n");
    for (uint32_t jobs = 1; jobs == 1 || (long)jobs <= processors; jobs *= 2) {
        const struct measured measured = measure(jobs);
        printf(
            "  %u steps, %u at a time: %u ranks, %.2f M events a step; wall clock %.1f s, %.1f ms "
            "per step; processor time %.1f ms per step\n",
            STEPS, jobs, measured.ranks, measured.events_per_step * 1e-6, measured.wall_s,
            measured.wall_s * 1e3 / STEPS, measured.cpu_s * 1e3 / STEPS);
    }
}
