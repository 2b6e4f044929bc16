/* run_clock.c - the wall clock, which is reported and decides nothing. */
#include <time.h>

#include "stepsim/run.h"

double run_clock_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}
