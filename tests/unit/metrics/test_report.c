/* Speed and utilisation from a step of known length; numbers worked in report_fixture.h. */
#include "assert_close.h"

#include "report_fixture.h"

static struct report_fixture fixture;

/* 1,024 tokens in 1 ms: 1.024 M tokens/s. MFU = 1.024e6 * 824,832 / (2 * 1e12). */
static void speed_and_utilisation(void **state)
{
    (void)state;
    fixture_init(&fixture, 1000000000);
    const struct report *report = fixture_report(&fixture);
    assert_close(report->step_time_s, 1e-3, 1e-15);
    assert_close(report->tokens_per_s, 1.024e6, 1e-14);
    assert_close(report->tokens_per_s_per_device, 0.512e6, 1e-14);
    assert_close(report->model_flop_per_token, FIXTURE_FLOP_PER_TOKEN, 1e-14);
    assert_close(report->mfu, 1.024e6 * FIXTURE_FLOP_PER_TOKEN / 2e12, 1e-14);
    assert_close(report->mfu, 0.422313984, 1e-9);
    assert_close(report->hfu, report->mfu, 1e-15);
    assert_close(report->days, 1e12 / 1.024e6 / 86400.0, 1e-14);
    fixture_free(&fixture);
}

/* The printed numbers give the printed MFU, exactly. */
static void mfu_is_its_definition(void **state)
{
    (void)state;
    fixture_init(&fixture, 1234567891);
    const struct report *report = fixture_report(&fixture);
    const double again = report->tokens_per_s * report->model_flop_per_token /
                         ((double)report->layout->world * report->peak_flop_per_s);
    assert_within(again, report->mfu, 0.0);
    fixture_free(&fixture);
}

/* A quarter of the forward work runs twice: 3 + 1/4 passes instead of 3. */
static void recompute_counts_in_hfu_only(void **state)
{
    (void)state;
    fixture_init(&fixture, 1000000000);
    fixture.recompute_flop[0] = 0.5;
    const struct report *report = fixture_report(&fixture);
    assert_close(report->hfu / report->mfu, 3.25 / 3.0, 1e-14);
    assert_close(report->mfu, 0.422313984, 1e-9);
    fixture_free(&fixture);
}

/* At 0.42231 ms the MFU would be 1.00001, at 0.42232 ms it is 0.99999. */
static void more_than_the_peak_is_refused(void **state)
{
    (void)state;
    fixture_init(&fixture, 422310000);
    assert_null(report_build(&fixture.parts, fixture.arena, &fixture.errors));
    assert_int_equal(fixture.errors.count, 1);
    assert_int_equal(fixture.errors.items[0].code, ERROR_mfu_above_one);
    fixture_free(&fixture);

    fixture_init(&fixture, 422320000);
    assert_true(fixture_report(&fixture)->mfu < 1.0);
    fixture_free(&fixture);
}

static void shares_are_of_the_busiest_observed_rank(void **state)
{
    (void)state;
    fixture_init(&fixture, 1000000000);
    hand_op(&fixture.hand, STREAM_COMPUTE, CAUSE_COMPUTE, 0, 600000000);
    hand_op(&fixture.hand, STREAM_TP, CAUSE_TP, 600000000, 1000000000);
    fixture.sent_bytes[CAUSE_TP] = 77.0;
    const struct report *report = fixture_report(&fixture);
    sim_time sum = 0;
    for (unsigned c = 0; c < CAUSE_COUNT; c++) {
        sum += report->time_share_ps[c];
    }
    assert_time_equal(sum, 1000000000);
    assert_time_equal(report->time_share_ps[CAUSE_TP], 400000000);
    assert_int_equal(report->time_share_stage, 0);
    assert_close(report->comm[CAUSE_TP].exposed_s, 0.4e-3, 1e-12);
    assert_close(report->comm[CAUSE_TP].bytes_per_device, 77.0, 1e-15);
    /* stage 0 is busy for 0.6 of the step, stage 1 not at all */
    assert_close(report->bubble_ratio, 0.7, 1e-12);
    fixture_free(&fixture);
}

static void every_step_has_a_row(void **state)
{
    (void)state;
    fixture_init(&fixture, 1000000000);
    fixture.steps[1].end = 2000000000;
    fixture.parts.step_count = 2;
    const struct report *report = fixture_report(&fixture);
    assert_int_equal(report->step_count, 2);
    assert_int_equal(report->steps[1].step, 2);
    assert_close(report->steps[0].tokens_per_s, 1.024e6, 1e-14);
    assert_close(report->steps[1].step_time_s, 2e-3, 1e-15);
    assert_close(report->steps[1].mfu, report->mfu / 2.0, 1e-14);
    fixture_free(&fixture);
}

/* A job fits if every step does: the second one is 1 GiB above the limit. */
static void the_fullest_step_decides(void **state)
{
    (void)state;
    fixture_init(&fixture, 1000000000);
    fixture.parts.step_count = 2;
    assert_true(fixture_report(&fixture)->fits);
    const double limit = fixture_report(&fixture)->limit_bytes;
    fixture.steps[1].peak_bytes = (int64_t)(limit + GIB_BYTES);
    const struct report *report = fixture_report(&fixture);
    assert_false(report->fits);
    assert_true(report->steps[0].fits);
    assert_false(report->steps[1].fits);
    assert_int_equal(report->misfit_steps, 1);
    assert_int_equal(report->worst_step, 2);
    assert_close(report->worst_peak_bytes, limit + GIB_BYTES, 1e-12);
    assert_non_null(strstr(report->verdict, "of step 2 needs"));
    fixture_free(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(speed_and_utilisation),
        cmocka_unit_test(mfu_is_its_definition),
        cmocka_unit_test(recompute_counts_in_hfu_only),
        cmocka_unit_test(more_than_the_peak_is_refused),
        cmocka_unit_test(shares_are_of_the_busiest_observed_rank),
        cmocka_unit_test(every_step_has_a_row),
        cmocka_unit_test(the_fullest_step_decides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
