/*
 * A range against arithmetic by hand: two inputs on which the step depends in a known way.
 *
 * No pipeline, replicas that reduce their gradients after the backward pass, a host that costs
 * nothing. Data loading and logging stand beside everything else, so the step is
 * A + step_overhead with slope 1. The kernels go as fast as they go: A = K + C / sustained_ratio.
 */
#include <string.h>

#include "config_fixture.h"
#include "stepsim/range.h"

static const char PLAIN[] =
    "model: toy_dense\n"
    "cluster:\n"
    "  base: toy\n"
    "  device:\n"
    "    base: toy_die\n"
    "    host_eager: {value: 0 s, source: x, grade: assumed}\n"
    "devices: 8\n"
    "parallel: {tp: 1, pp: 1}\n"
    "overlap: {grad_reduce: false, param_gather: false}\n"
    "training: {seq_len: 1024, micro_batch_size: 1, global_batch_size: 64}\n";

#define OVERHEAD  "cluster.device.step_overhead"
#define SUSTAINED "cluster.device.sustained_ratio"

static const struct report *simulate(struct config_fixture *fixture, const char *const *sets)
{
    const struct scenario *scenario = config_accept(fixture, PLAIN, sets);
    const struct run_options options = {.steps = 1};
    struct run *run = ARENA_NEW(fixture->arena, struct run);
    assert_true(run_simulate(run, scenario, &options, fixture->arena, &fixture->errors));
    return run->report;
}

static double step_at(struct config_fixture *fixture, const char *set)
{
    return simulate(fixture, CONFIG_SETS(set))->step_time_s;
}

static const struct range *range_of(struct config_fixture *fixture, const struct report *point,
                                    uint32_t jobs)
{
    const struct range_ask ask = {.point = point, .jobs = jobs};
    return range_run(&ask, fixture->arena);
}

static void one_input_has_its_slope(void **state)
{
    struct config_fixture *fixture = *state;
    const struct report *point = simulate(
        fixture,
        CONFIG_SETS(OVERHEAD "={value: 1 s, low: 0.5 s, high: 3 s, source: x, grade: assumed}"));
    const struct range *range = range_of(fixture, point, 1);
    assert_int_equal(range->tried, 1);
    assert_int_equal(range->input_count, 1);
    assert_string_equal(range->inputs[0].key, OVERHEAD);
    assert_close(range->inputs[0].low, 0.5, 0.0);
    assert_close(range->inputs[0].step_time_s.low, point->step_time_s - 0.5, 1e-9);
    assert_close(range->inputs[0].step_time_s.high, point->step_time_s + 2.0, 1e-9);
    assert_close(range->step_time_s.low, point->step_time_s - 0.5, 1e-9);
    assert_close(range->step_time_s.high, point->step_time_s + 2.0, 1e-9);
    /* The same tokens in the longest and in the shortest step. */
    assert_close(range->tokens_per_s.low, 64.0 * 1024.0 / (point->step_time_s + 2.0), 1e-9);
    assert_close(range->tokens_per_s.high, 64.0 * 1024.0 / (point->step_time_s - 0.5), 1e-9);
    assert_close(range->mfu.low * range->step_time_s.high, point->mfu * point->step_time_s, 1e-9);
    assert_close(range->peak_bytes.low, point->peak_bytes, 0.0);
}

/* K and C from two runs elsewhere; what a third and a fourth give is then arithmetic. */
static void two_inputs_are_combined_as_a_root_of_squares(void **state)
{
    struct config_fixture *fixture = *state;
    const double whole = step_at(fixture, SUSTAINED "=1");
    const double half = step_at(fixture, SUSTAINED "=0.5");
    const double per_ratio = half - whole; /* K + 2 C - K - C */
    const struct report *point = simulate(
        fixture,
        CONFIG_SETS(OVERHEAD "={value: 1 s, low: 0.9 s, high: 1.2 s, source: x, grade: assumed}",
                    SUSTAINED "={value: 0.8, low: 0.64, high: 1, source: x, grade: assumed}"));
    const double step_s = point->step_time_s;
    /* 1 / 0.64 - 1 / 0.8 = 0.3125; 1 / 0.8 - 1 / 1 = 0.25 */
    const double slow_s = step_s + 0.3125 * per_ratio;
    const double fast_s = step_s - 0.25 * per_ratio;
    const double up = hypot(log(slow_s / step_s), log((step_s + 0.2) / step_s));
    const double down = hypot(log(fast_s / step_s), log((step_s - 0.1) / step_s));
    const struct range *range = range_of(fixture, point, 1);
    assert_int_equal(range->tried, 2);
    assert_close(range->step_time_s.high, step_s * exp(up), 1e-6);
    assert_close(range->step_time_s.low, step_s * exp(-down), 1e-6);
    /* The largest mover comes first, whatever its place in the schema. */
    const bool ratio_first = log(slow_s / step_s) > log((step_s + 0.2) / step_s);
    assert_string_equal(range->inputs[0].key, ratio_first ? SUSTAINED : OVERHEAD);
    assert_string_equal(range->inputs[1].key, ratio_first ? OVERHEAD : SUSTAINED);
}

/* One end at the value is one run; an interval that is a point is none, nor is a value alone. */
static void what_cannot_be_off_is_not_tried(void **state)
{
    struct config_fixture *fixture = *state;
    const struct report *point = simulate(
        fixture,
        CONFIG_SETS(OVERHEAD "={value: 1 s, low: 1 s, high: 2 s, source: x, grade: assumed}",
                    SUSTAINED "={value: 1, low: 1, high: 1, source: x, grade: assumed}"));
    assert_int_equal(range_runs(point->scenario, fixture->arena), 1);
    const struct range *range = range_of(fixture, point, 1);
    assert_int_equal(range->tried, 1);
    assert_close(range->step_time_s.low, point->step_time_s, 0.0);
    assert_close(range->step_time_s.high, point->step_time_s + 1.0, 1e-9);
}

/* The toy files assume a lot and give no interval: all of it is held, and named. */
static void assumptions_without_interval_are_named(void **state)
{
    struct config_fixture *fixture = *state;
    const struct report *point = simulate(fixture, NULL);
    const struct range *range = range_of(fixture, point, 1);
    assert_int_equal(range->tried, 0);
    assert_int_equal(range->input_count, 0);
    assert_close(range->step_time_s.low, point->step_time_s, 0.0);
    assert_close(range->step_time_s.high, point->step_time_s, 0.0);
    assert_true(range->held_count > 10);
    bool named = false;
    for (uint32_t i = 0; i < range->held_count; i++)
        named = named || strcmp(range->held[i], OVERHEAD) == 0;
    assert_true(named);
    named = false;
    for (uint32_t i = 0; i < point->note_count; i++)
        named = named || strstr(point->notes[i], "so held where a range is asked for") != NULL;
    assert_true(named);
}

/* An interval of a measured number counts as well; what it does not move is not listed. */
static void what_does_not_matter_is_tried_and_not_listed(void **state)
{
    struct config_fixture *fixture = *state;
    const struct report *point = simulate(
        fixture, CONFIG_SETS("cluster.device.host_up={value: 20 GB/s, low: 10 GB/s, high: 30 GB/s, "
                             "source: x, grade: measured}"));
    const struct range *range = range_of(fixture, point, 1);
    assert_int_equal(range->tried, 1);
    assert_int_equal(range->input_count, 0);
}

/* At a tenth of the peak the device would do more than its peak. */
static void an_end_that_is_refused_is_told(void **state)
{
    struct config_fixture *fixture = *state;
    const struct report *point = simulate(
        fixture,
        CONFIG_SETS("cluster.device.marketed={value: 310 TFLOP/s, low: 1 GFLOP/s, high: 320 "
                    "TFLOP/s, source: x, grade: assumed}",
                    "mfu.peak=marketed"));
    const struct range *range = range_of(fixture, point, 1);
    assert_int_equal(range->input_count, 1);
    assert_non_null(range->inputs[0].refused);
    assert_close(range->inputs[0].step_time_s.low, point->step_time_s, 0.0);
    assert_close(range->mfu.low, point->mfu * 310.0 / 320.0, 1e-9);
}

/* More usable memory than the job needs, or less: the verdict turns, the step stays. */
static void a_verdict_that_turns_matters(void **state)
{
    struct config_fixture *fixture = *state;
    const struct report *point = simulate(
        fixture, CONFIG_SETS("cluster.device.hbm_usable={value: 60 GiB, low: 1 GiB, high: 61 GiB, "
                             "source: x, grade: assumed}"));
    assert_true(point->fits);
    const struct range *range = range_of(fixture, point, 1);
    assert_int_equal(range->input_count, 1);
    assert_false(range->inputs[0].fits_low);
    assert_true(range->inputs[0].fits_high);
    assert_close(range->step_time_s.high, point->step_time_s, 0.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CONFIG_TEST(one_input_has_its_slope),
        CONFIG_TEST(two_inputs_are_combined_as_a_root_of_squares),
        CONFIG_TEST(what_cannot_be_off_is_not_tried),
        CONFIG_TEST(assumptions_without_interval_are_named),
        CONFIG_TEST(what_does_not_matter_is_tried_and_not_listed),
        CONFIG_TEST(an_end_that_is_refused_is_told),
        CONFIG_TEST(a_verdict_that_turns_matters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
