/* test_assert_close.c - the comparisons that all other tests rest on refuse what they should. */
#include "assert_close.h"

#include <stdlib.h>

static void relative_tolerance_is_of_double_precision(void **state)
{
    (void)state;
    assert_true(values_close(1.0 + 1e-10, 1.0, 1e-9));
    /* At single precision these two are equal. */
    assert_false(values_close(1.00000001, 1.0, 1e-9));
    assert_false(values_close(0.9, 0.2, 1e-9));
    assert_true(values_close(-2.0, -2.02, 0.01));
    assert_false(values_close(2.0, -2.0, 0.01));
}

static void expected_zero_wants_zero(void **state)
{
    (void)state;
    assert_true(values_close(0.0, 0.0, 1e-9));
    assert_false(values_close(1e-300, 0.0, 1e-9));
    assert_true(values_within(1e-12, 0.0, 1e-9));
    assert_false(values_within(2e-9, 0.0, 1e-9));
}

static void nan_is_close_to_nothing(void **state)
{
    (void)state;
    const double not_a_number = strtod("nan", NULL);
    assert_false(values_close(not_a_number, not_a_number, 1.0));
    assert_false(values_close(not_a_number, 1.0, 1.0));
    assert_false(values_close(1.0, not_a_number, 1.0));
    assert_false(values_within(not_a_number, 0.0, 1.0));
}

static void infinities_are_equal_or_far(void **state)
{
    (void)state;
    assert_true(values_close(HUGE_VAL, HUGE_VAL, 0.0));
    assert_true(values_within(-HUGE_VAL, -HUGE_VAL, 0.0));
    assert_false(values_close(1.0, HUGE_VAL, 1.0));
    assert_false(values_close(-HUGE_VAL, HUGE_VAL, 1.0));
    assert_false(values_close(HUGE_VAL, 1.0, 1.0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(relative_tolerance_is_of_double_precision),
        cmocka_unit_test(expected_zero_wants_zero),
        cmocka_unit_test(nan_is_close_to_nothing),
        cmocka_unit_test(infinities_are_equal_or_far),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
