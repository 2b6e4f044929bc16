/*
 * units.c - the one rounding of simulated time.
 *
 * Rounding up means that no operation is shorter than its model says, so summing
 * many small transfers never beats the link. The product is rounded to the
 * nearest double before the ceiling is taken: 3e-6 s is exactly 3,000,000 ps,
 * although 3e-6 is no exact double.
 */
#include "stepsim/units.h"

#include <math.h>

#include "stepsim/error.h"

/* 10^6 s is 10^18 ps, safely inside int64. */
#define SECONDS_MAX 1e6

sim_time sim_time_from_seconds(double seconds)
{
    ASSERT(isfinite(seconds));
    ASSERT(seconds >= 0.0);
    ASSERT(seconds <= SECONDS_MAX);
    return (sim_time)ceil(seconds * SIM_TIME_PER_S);
}

double sim_time_seconds(sim_time time)
{
    ASSERT(time != SIM_TIME_NONE);
    return (double)time / SIM_TIME_PER_S;
}
