/*
 * hold.c - the hold model: with n events pending, pop one and push one later.
 *
 * Three kinds of delay: exponential; bimodal, 90 % around 10 us and 10 % around 10 ms;
 * and few distinct values, so that most events tie.
 */
#include <math.h>
#include <stdio.h>

#include "bench.h"

#include "stepsim/event_queue.h"
#include "stepsim/rng.h"

enum { DELAYS = 1 << 16, REPEATS = 3 };

enum delay_kind { DELAY_EXPONENTIAL, DELAY_BIMODAL, DELAY_FEW, DELAY_KINDS };

static const char *const delay_names[DELAY_KINDS] = {"exponential", "bimodal", "few values"};

static sim_time draw(struct rng *rng, enum delay_kind kind)
{
    const double us_ps = 1e6;
    const double exponential = -log(1.0 - rng_uniform(rng));
    switch (kind) {
    case DELAY_EXPONENTIAL:
        return 1 + (sim_time)(exponential * 100.0 * us_ps);
    case DELAY_BIMODAL:
        return 1 + (sim_time)(exponential * (rng_below(rng, 10) == 0 ? 1e4 : 10.0) * us_ps);
    default:
        return (sim_time)(1 + rng_below(rng, 4)) * 100000000;
    }
}

static double hold_ns(enum delay_kind kind, uint32_t pending, bool binary)
{
    static sim_time delays[DELAYS];
    struct arena *arena = arena_create("hold");
    struct event_queue *queue = event_queue_create(arena, pending, binary);
    struct rng rng = rng_stream(1, (uint64_t)kind);
    for (uint32_t i = 0; i < DELAYS; i++) {
        delays[i] = draw(&rng, kind);
    }
    for (uint32_t i = 0; i < pending; i++) {
        const struct event event = {.time = delays[i % DELAYS], .target = i};
        event_queue_push(queue, &event);
    }
    const uint32_t holds = pending < 100000 ? 2000000 : 2 * pending + 2000000;
    double best_ns = INFINITY;
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        const double start_s = bench_cpu_s();
        for (uint32_t i = 0; i < holds; i++) {
            struct event event = event_queue_pop(queue);
            event.time += delays[i % DELAYS];
            event_queue_push(queue, &event);
        }
        const double ns = (bench_cpu_s() - start_s) * 1e9 / holds;
        best_ns = ns < best_ns ? ns : best_ns;
    }
    arena_destroy(arena);
    return best_ns;
}

void bench_hold(void)
{
    printf("hold model, ns for one pop and one push\n");
    printf("  %-12s %-7s %8s %8s %8s %8s %8s\n", "delays", "queue", "100", "1000", "10000",
           "100000", "1000000");
    for (int kind = 0; kind < DELAY_KINDS; kind++) {
        for (int binary = 0; binary < 2; binary++) {
            printf("  %-12s %-7s", delay_names[kind], binary != 0 ? "binary" : "radix");
            for (uint32_t pending = 100; pending <= 1000000; pending *= 10) {
                printf(" %8.1f", hold_ns((enum delay_kind)kind, pending, binary != 0));
                fflush(stdout);
            }
            printf("\n");
        }
    }
}
