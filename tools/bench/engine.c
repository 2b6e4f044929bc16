/*
 * engine.c - a synthetic training step of 6,144 ranks, on all of them and folded.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "bench.h"
#include "step_programs.h"

#include "stepsim/engine.h"

enum { REPEATS = 5 };

struct engine_case {
    const char *name;
    struct step_shape shape;
    bool binary_heap;
};

#define FULL_SIZE .pp = 16, .dp = 48, .tp = 8, .ep = 32, .microbatches = 64, .layers = 4

static const struct engine_case cases[] = {
    {.name = "all ranks", .shape = {FULL_SIZE}},
    {.name = "all ranks, binary heap", .shape = {FULL_SIZE}, .binary_heap = true},
    {.name = "all ranks, jitter 50 ppm", .shape = {FULL_SIZE, .jitter_ppm = 50}},
    {.name = "all ranks, memory", .shape = {FULL_SIZE, .memory = true}},
    {.name = "all ranks, slowed compute",
     .shape = {FULL_SIZE, .memory = true, .contention_ppm = 1150000}},
    {.name = "folded, 16 ranks", .shape = {FULL_SIZE, .folded = true, .memory = true}},
};

static long resident_mib(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss / 1024;
}

static void run_case(const struct engine_case *c)
{
    struct arena *plan = arena_create("plan");
    struct arena *run = arena_create("run");
    const struct programs *programs = step_programs_build(&c->shape, plan);
    const struct engine_options options = {.observe = OBSERVE_NONE, .binary_heap = c->binary_heap};
    const struct timeline *timeline = NULL;
    double best_s = INFINITY;
    size_t run_bytes = 0;
    struct timeline kept = {0};
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        const char *failure;
        arena_reset(run);
        const double start_s = bench_cpu_s();
        timeline = engine_run(programs, &options, run, &failure);
        const double s = bench_cpu_s() - start_s;
        if (timeline == NULL) {
            fprintf(stderr, "%s\n", failure);
            exit(70);
        }
        best_s = s < best_s ? s : best_s;
        run_bytes = arena_used_bytes(run);
        kept = *timeline;
    }
    printf("  %-26s %7.4f s %6.2f M ops %6.2f M events %6.1f M ops/s %6.1f ns/event "
           "%5.0f bytes/rank %4ld MiB  step %.3f ms\n",
           c->name, best_s, (double)kept.ops * 1e-6, (double)kept.events * 1e-6,
           (double)kept.ops / best_s * 1e-6, best_s * 1e9 / (double)kept.events,
           (double)run_bytes / programs->rank_count, resident_mib(), (double)kept.end * 1e-9);
    arena_destroy(run);
    arena_destroy(plan);
}

void bench_engine(void)
{
    printf("synthetic step: PP16 DP48 TP8 EP32, 64 microbatches, 4 layers a stage\n");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        run_case(&cases[i]);
    }
}
