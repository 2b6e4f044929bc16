/*
 * scale.c - the headline job unfolded and grown, as a table for docs/PERFORMANCE.md.
 *
 * One run of each size, from YAML to the finished report. The batch grows with the devices, so
 * that every replica has the same microbatches. Sizes ascend: the peak memory of the process
 * after a run is that of the run.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "bench.h"

#include "stepsim/run.h"
#include "stepsim/scenario.h"

#define SCENARIO STEPSIM_CONFIG_DIR "/../sims/pangu_ultra_moe_6k/sim.yaml"

static const struct scale_case {
    const char *devices, *global_batch, *slow_ranks, *network;
    bool ranks_all;
} cases[] = {
    {"6144", "3072", "[]", "closed_form", false},
    {"6144", "3072", "[]", "ports", false},
    {"6144", "3072", "[]", "fair_share", false},
    {"6144", "3072", "[{rank: 17, factor: 1.2}]", "closed_form", false},
    {"6144", "3072", "[{rank: 17, factor: 1.2}]", "fair_share", false},
    {"98304", "49152", "[]", "closed_form", false},
    {"98304", "49152", "[{rank: 17, factor: 1.2}]", "closed_form", false},
    {"6144", "3072", "[]", "closed_form", true},
    {"6144", "3072", "[]", "ports", true},
    {"6144", "3072", "[]", "fair_share", true},
    {"98304", "49152", "[]", "closed_form", true},
};

static void run_case(const struct scale_case *c)
{
    struct arena *arena = arena_create("scale");
    struct error_list errors;
    error_list_init(&errors, arena);
    const struct scenario_override overrides[] = {{"devices", c->devices},
                                                  {"training.global_batch_size", c->global_batch},
                                                  {"noise.slow_ranks", c->slow_ranks},
                                                  {"network", c->network}};
    const struct scenario_source source = {.path = SCENARIO,
                                           .config_dir = STEPSIM_CONFIG_DIR,
                                           .overrides = overrides,
                                           .override_count = 4};
    const double wall_s = bench_now_s();
    const double cpu_s = bench_cpu_s();
    const struct scenario *scenario = scenario_load(&source, arena, &errors);
    struct run run = {0};
    const struct run_options options = {.ranks_all = c->ranks_all, .steps = 1};
    if (scenario == NULL || !run_simulate(&run, scenario, &options, arena, &errors)) {
        fprintf(stderr, "%s\n", error_list_text(&errors, arena));
        exit(2);
    }
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("| %s | %s | %s | %s | %u | %u | %.2f M | %.3f s | %.3f s | %ld MiB |\n", c->devices,
           c->network, c->ranks_all ? "all" : "folded", c->slow_ranks[1] == ']' ? "none" : "one",
           run.report->classes, run.report->simulated_ranks, (double)run.report->events * 1e-6,
           bench_cpu_s() - cpu_s, bench_now_s() - wall_s, usage.ru_maxrss / 1024);
    fflush(stdout);
    arena_destroy(arena);
}

void bench_scale(void)
{
    printf("| NPUs | network | ranks | slow ranks | classes | simulated | events | processor time "
           "| wall "
           "clock | peak memory |\n"
           "| ---: | --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        run_case(&cases[i]);
}
