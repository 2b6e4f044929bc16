/*
 * main.c - stepsim_bench: how fast the engine and the whole pipeline are on this machine.
 *
 *     stepsim_bench [engine] [kinds] [headline] [hold] [steps] [scale]
 *
 * Without arguments it runs all parts. Every figure is the best of several runs (scale and
 * steps: of one); hold and engine count processor time, headline the wall clock. Nothing is
 * written to any file.
 */
#include "bench.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static const struct part {
    const char *name;
    void (*run)(void);
} parts[] = {
    {"engine", bench_engine}, /* first, so that its peak memory is its own */
    {"kinds", bench_kinds},   {"headline", bench_headline}, {"hold", bench_hold},
    {"steps", bench_steps},   {"scale", bench_scale},
};

enum { PARTS = sizeof parts / sizeof *parts };

static double clock_s(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

double bench_now_s(void)
{
    return clock_s(CLOCK_MONOTONIC);
}

double bench_cpu_s(void)
{
    return clock_s(CLOCK_PROCESS_CPUTIME_ID);
}

static const struct part *find_part(const char *name)
{
    for (size_t i = 0; i < PARTS; i++) {
        if (strcmp(parts[i].name, name) == 0) {
            return &parts[i];
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    for (int a = 1; a < argc; a++) {
        if (find_part(argv[a]) == NULL) {
            fprintf(stderr,
                    "stepsim_bench: no part %s; there are engine, kinds, headline, hold, "
                    "steps, scale\n",
                    argv[a]);
            return 2;
        }
    }
    for (size_t i = 0; i < PARTS; i++) {
        bool wanted = argc == 1;
        for (int a = 1; a < argc; a++) {
            wanted = wanted || find_part(argv[a]) == &parts[i];
        }
        if (wanted) {
            parts[i].run();
        }
    }
    return 0;
}
