/*
 * units.h - simulated time, and the one place where seconds become picoseconds.
 *
 * Simulated time is a signed 64-bit count of picoseconds (range 106 days). Cost
 * models answer in seconds as double; sim_time_from_seconds() rounds up, once,
 * so that a transfer never beats its link. Inside functions quantities are plain
 * doubles whose names end in their unit: _s, _bytes, _flop, _bytes_per_s,
 * _flop_per_s, _tokens, _ratio. GB is 10^9 bytes, GiB is 2^30.
 */
#ifndef STEPSIM_UNITS_H
#define STEPSIM_UNITS_H

#include <stdint.h>

typedef int64_t sim_time; /* picoseconds */

#define SIM_TIME_NONE INT64_MIN /* "has not happened" */
#define SIM_TIME_PER_S 1e12
#define GIB_BYTES 1073741824.0
#define MIB_BYTES 1048576.0

/* Rounds up to whole picoseconds; a value within four double roundings of a whole number is
 * that number, so 1e-9 s is 1000 ps. Asserts finite, not negative, at most 10^6 s. */
sim_time sim_time_from_seconds(double seconds);

/* The nearest double. Times below 2^50 ps (18 minutes) survive the way there and back. */
double sim_time_seconds(sim_time time);

#endif
