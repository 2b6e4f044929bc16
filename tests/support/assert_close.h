/*
 * assert_close.h - comparing doubles and simulated times in tests.
 *
 * cmocka compares floats (at single precision) and integers (doubles are cast to
 * them first), so both are useless for a double. These three print both values
 * with all their digits. A NaN is never close to anything; equal infinities are.
 *
 * This header also includes cmocka and the headers that it wants before it.
 */
#ifndef TEST_ASSERT_CLOSE_H
#define TEST_ASSERT_CLOSE_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "stepsim/units.h"

/* |actual - expected| <= absolute */
static inline bool values_within(double actual, double expected, double absolute)
{
    return (isinf(expected) && actual == expected) || fabs(actual - expected) <= absolute;
}

/* |actual - expected| <= relative * |expected|; an expected 0 wants exactly 0. */
static inline bool values_close(double actual, double expected, double relative)
{
    return (isinf(expected) && actual == expected) ||
           (!isinf(expected) && fabs(actual - expected) <= relative * fabs(expected));
}

struct comparison {
    double actual, expected, tolerance;
};

static inline void check_close(struct comparison c, const char *text, const char *file, int line)
{
    if (values_close(c.actual, c.expected, c.tolerance))
        return;
    print_error("%s is %.17g, expected %.17g within a ratio of %g (off by %g)\n", text, c.actual,
                c.expected, c.tolerance, (c.actual - c.expected) / c.expected);
    _fail(file, line);
}

static inline void check_within(struct comparison c, const char *text, const char *file, int line)
{
    if (values_within(c.actual, c.expected, c.tolerance))
        return;
    print_error("%s is %.17g, expected %.17g within %g (off by %g)\n", text, c.actual, c.expected,
                c.tolerance, c.actual - c.expected);
    _fail(file, line);
}

static inline void check_time_equal(sim_time actual, sim_time expected, const char *text,
                                    const char *file, int line)
{
    if (actual == expected)
        return;
    print_error("%s is %lld ps, expected %lld ps (off by %g ps)\n", text, (long long)actual,
                (long long)expected, (double)actual - (double)expected);
    _fail(file, line);
}

#define assert_close(actual, expected, relative)                                                   \
    check_close((struct comparison){(actual), (expected), (relative)}, #actual, __FILE__, __LINE__)
#define assert_within(actual, expected, absolute)                                                  \
    check_within((struct comparison){(actual), (expected), (absolute)}, #actual, __FILE__, __LINE__)
#define assert_time_equal(actual, expected)                                                        \
    check_time_equal((actual), (expected), #actual, __FILE__, __LINE__)

#endif
