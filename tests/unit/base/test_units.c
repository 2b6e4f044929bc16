/* test_units.c - where seconds become picoseconds: up, but not by the noise of doubles. */
#include "stepsim/units.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>

#include "assert_aborts.h"
#include "assert_close.h"

static void zero_is_zero(void **state)
{
    (void)state;
    assert_time_equal(sim_time_from_seconds(0.0), 0);
    assert_time_equal(sim_time_from_seconds(-0.0), 0);
}

static void fractions_round_up(void **state)
{
    (void)state;
    /* However short, something that takes time takes at least a picosecond. */
    assert_time_equal(sim_time_from_seconds(DBL_MIN), 1);
    assert_time_equal(sim_time_from_seconds(1e-30), 1);
    assert_time_equal(sim_time_from_seconds(0.25e-12), 1);
    assert_time_equal(sim_time_from_seconds(1e-12), 1);
    assert_time_equal(sim_time_from_seconds(1.001e-12), 2);
    assert_time_equal(sim_time_from_seconds(1.999e-12), 2);
    /* 1 MiB at 196 GB/s: 1048576/196e9 s = 5349877.55.. ps. */
    assert_time_equal(sim_time_from_seconds(1048576.0 / 196e9), 5349878);
    /* 1/3 s, far from any whole picosecond. */
    assert_time_equal(sim_time_from_seconds(1.0 / 3.0), INT64_C(333333333334));
}

/* What a person writes in YAML, "7 ns", arrives as a double near 7e-9. */
static void written_decimals_stay_whole(void **state)
{
    (void)state;
    static const struct {
        const char *suffix;
        sim_time unit_ps;
    } units[] = {{"e-12", 1}, {"e-9", 1000}, {"e-6", 1000000}, {"e-3", 1000000000}};
    for (size_t u = 0; u < sizeof units / sizeof units[0]; u++) {
        for (int n = 1; n <= 10000; n++) {
            char text[32];
            snprintf(text, sizeof text, "%d%s", n, units[u].suffix);
            assert_time_equal(sim_time_from_seconds(strtod(text, NULL)), n * units[u].unit_ps);
        }
    }
}

/* n operations of 1/n of a time whose picoseconds divide by n last that time, not n more. */
static void computed_quotients_stay_whole(void **state)
{
    (void)state;
    for (int n = 1; n <= 1000; n++) {
        const double whole_s = 1e-9 * n;
        assert_time_equal(sim_time_from_seconds(whole_s / n), 1000);
        assert_time_equal(sim_time_from_seconds(whole_s), 1000 * (sim_time)n);
    }
}

/* The neighbours of 2.5 s that a double can tell apart from it by a picosecond. */
static void noise_is_forgiven_and_no_more(void **state)
{
    (void)state;
    const double s = 2.5;
    const sim_time ps = INT64_C(2500000000000);
    assert_time_equal(sim_time_from_seconds(nextafter(s, 3.0)), ps);
    assert_time_equal(sim_time_from_seconds(nextafter(s, 2.0)), ps);
    assert_time_equal(sim_time_from_seconds(s * (1.0 + 8.0 * DBL_EPSILON)), ps + 1);
    assert_time_equal(sim_time_from_seconds(s + 1e-12), ps + 1);
    assert_time_equal(sim_time_from_seconds(s - 1e-12), ps - 1);
}

static void there_and_back_is_the_same(void **state)
{
    (void)state;
    assert_close(sim_time_seconds(1), 1e-12, 0.0);
    assert_close(sim_time_seconds(INT64_C(2500000000000)), 2.5, 0.0);
    /* Up to 2^50 ps the two roundings of the way there and back stay below half a picosecond. */
    for (sim_time n = 0; n < 10000; n++) {
        const sim_time late = (INT64_C(1) << 50) - n;
        assert_time_equal(sim_time_from_seconds(sim_time_seconds(late)), late);
        assert_time_equal(sim_time_from_seconds(sim_time_seconds(n)), n);
    }
    assert_close(sim_time_seconds(-1000), -1e-9, 0.0);
}

static void the_range_ends_at_a_million_seconds(void **state)
{
    (void)state;
    assert_time_equal(sim_time_from_seconds(1e6), INT64_C(1000000000000000000));
}

static void pass_too_long(void)
{
    sim_time_from_seconds(nextafter(1e6, 2e6));
}

static void pass_negative(void)
{
    sim_time_from_seconds(-1e-12);
}

static void pass_nan(void)
{
    sim_time_from_seconds(strtod("nan", NULL));
}

static void pass_infinity(void)
{
    sim_time_from_seconds(HUGE_VAL);
}

static void pass_none(void)
{
    (void)sim_time_seconds(SIM_TIME_NONE);
}

static void nonsense_is_a_bug(void **state)
{
    (void)state;
    assert_aborts(pass_too_long);
    assert_aborts(pass_negative);
    assert_aborts(pass_nan);
    assert_aborts(pass_infinity);
    assert_aborts(pass_none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zero_is_zero),
        cmocka_unit_test(fractions_round_up),
        cmocka_unit_test(written_decimals_stay_whole),
        cmocka_unit_test(computed_quotients_stay_whole),
        cmocka_unit_test(noise_is_forgiven_and_no_more),
        cmocka_unit_test(there_and_back_is_the_same),
        cmocka_unit_test(the_range_ends_at_a_million_seconds),
        cmocka_unit_test(nonsense_is_a_bug),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
