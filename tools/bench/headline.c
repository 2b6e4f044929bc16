/*
 * headline.c - the headline scenario, from its YAML to the finished report.
 *
 * Every repetition starts from nothing: own arena, no cache of parsed files. The engine's
 * part is measured again on the programs of that run, and once more with the times of every op of
 * every rank kept, as a trace needs them.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"

#include "stepsim/run.h"
#include "stepsim/scenario.h"

#define SCENARIO STEPSIM_CONFIG_DIR "/../sims/pangu_ultra_moe_6k/sim.yaml"

struct headline {
    double load_s, simulate_s, engine_s, observed_s;
    uint32_t ranks, classes;
    uint64_t events, ops;
    size_t bytes;
};

static void give_up(const struct error_list *errors, struct arena *arena)
{
    fprintf(stderr, "%s\n", error_list_text(errors, arena));
    exit(2);
}

/* One repetition; keeps the shortest time of each part. */
static void run_once(bool ranks_all, struct headline *best)
{
    struct arena *arena = arena_create("headline");
    struct error_list errors;
    error_list_init(&errors, arena);
    const double start_s = bench_now_s();
    const struct scenario_source source = {.path = SCENARIO, .config_dir = STEPSIM_CONFIG_DIR};
    const struct scenario *scenario = scenario_load(&source, arena, &errors);
    const double loaded_s = bench_now_s();
    struct run run;
    const struct run_options options = {.ranks_all = ranks_all, .steps = 1};
    if (scenario == NULL || !run_simulate(&run, scenario, &options, arena, &errors)) {
        give_up(&errors, arena);
    }
    const double done_s = bench_now_s();
    best->bytes = arena_used_bytes(arena);
    const struct engine_options engine = {.observe = OBSERVE_CLASSES};
    const char *failure;
    const double engine_start_s = bench_now_s();
    const struct timeline *timeline = engine_run(run.programs, &engine, arena, &failure);
    best->engine_s = fmin(best->engine_s, bench_now_s() - engine_start_s);
    const struct engine_options observe_all = {.observe = OBSERVE_ALL};
    const double observed_start_s = bench_now_s();
    engine_run(run.programs, &observe_all, arena, &failure);
    best->observed_s = fmin(best->observed_s, bench_now_s() - observed_start_s);
    best->load_s = fmin(best->load_s, loaded_s - start_s);
    best->simulate_s = fmin(best->simulate_s, done_s - loaded_s);
    best->ranks = run.programs->rank_count;
    best->classes = run.programs->class_count;
    best->events = timeline == NULL ? 0 : timeline->events;
    best->ops = timeline == NULL ? 0 : timeline->ops;
    arena_destroy(arena);
}

void bench_headline(void)
{
    printf("headline scenario: pangu_ultra_moe_6k\n");
    for (int all = 0; all < 2; all++) {
        struct headline best = {INFINITY, INFINITY, INFINITY, INFINITY, 0, 0, 0, 0, 0};
        for (int repeat = 0; repeat < (all != 0 ? 3 : 20); repeat++) {
            run_once(all != 0, &best);
        }
        printf("  %4u ranks, %2u classes: load %.2f ms, simulate %.2f ms, of which engine %.2f ms; "
               "%.3f M ops, %.3f M events, %.1f ns/op, arena %.1f MiB; "
               "%.1f M events/s, with all times kept %.1f M\n",
               best.ranks, best.classes, best.load_s * 1e3, best.simulate_s * 1e3,
               best.engine_s * 1e3, (double)best.ops * 1e-6, (double)best.events * 1e-6,
               best.engine_s * 1e9 / (double)best.ops, (double)best.bytes / MIB_BYTES,
               (double)best.events / best.engine_s * 1e-6,
               (double)best.events / best.observed_s * 1e-6);
    }
}
