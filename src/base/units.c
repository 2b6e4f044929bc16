/*
 * units.c - the one rounding of simulated time.
 *
 * Rounding up means that no operation is shorter than its model says, so a sum
 * of many small transfers never beats the link. A double is no exact decimal,
 * though: 1e-9 * 1e12 is 1000.0000000000001, and a plain ceiling would make 1 ns
 * into 1001 ps. Closed forms would then be off by one picosecond per operation.
 * A product that a few roundings separate from a whole number is that number.
 */
#include "stepsim/units.h"

#include <float.h>
#include <math.h>

#include "stepsim/error.h"

/* 10^6 s is 10^18 ps, safely inside int64. */
#define SECONDS_MAX 1e6

/* Half an ulp each for the input, its scaling, and two operations of a formula before. */
#define ROUNDINGS_RATIO (4.0 * DBL_EPSILON)

sim_time sim_time_from_seconds(double seconds)
{
    ASSERT(isfinite(seconds));
    ASSERT(seconds >= 0.0);
    ASSERT(seconds <= SECONDS_MAX);

    const double exact_ps = seconds * SIM_TIME_PER_S;
    const double nearest_ps = nearbyint(exact_ps);
    if (fabs(exact_ps - nearest_ps) <= nearest_ps * ROUNDINGS_RATIO)
        return (sim_time)nearest_ps;
    return (sim_time)ceil(exact_ps);
}

double sim_time_seconds(sim_time time)
{
    ASSERT(time != SIM_TIME_NONE);
    return (double)time / SIM_TIME_PER_S;
}
