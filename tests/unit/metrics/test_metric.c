/* The metric table: names, order and values. */
#include "assert_close.h"

#include "report_fixture.h"
#include "stepsim/metric.h"

static struct report_fixture fixture;

static void names_are_unique_and_found(void **state)
{
    (void)state;
    assert_true(metric_count > 50);
    for (size_t i = 0; i < metric_count; i++) {
        assert_ptr_equal(metric_find(metric_table[i].name), &metric_table[i]);
        assert_true(strlen(metric_table[i].meaning) > 10);
    }
    assert_null(metric_find("mfv"));
}

static void every_value_is_finite_and_in_range(void **state)
{
    (void)state;
    fixture_init(&fixture, 1000000000);
    hand_op(&fixture.hand, STREAM_COMPUTE, CAUSE_COMPUTE, 0, 250000000);
    const struct report *report = fixture_report(&fixture);
    for (size_t i = 0; i < metric_count; i++) {
        const double value = metric_table[i].value(report);
        assert_true(isfinite(value));
        if (metric_table[i].kind == METRIC_RATIO) {
            assert_true(value >= 0.0 && value <= 1.0);
        }
        if (metric_table[i].kind == METRIC_COUNT) {
            assert_within(value, round(value), 0.0);
        }
    }
    assert_close(metric_find("time_share.compute")->value(report), 0.25, 1e-15);
    assert_close(metric_find("time_share.bubble")->value(report), 0.75, 1e-15);
    assert_close(metric_find("world.microbatches")->value(report), 8.0, 1e-15);
    fixture_free(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_unique_and_found),
        cmocka_unit_test(every_value_is_finite_and_in_range),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
