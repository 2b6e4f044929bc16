/* test_grouped_matmul.c - the products of several experts in one kernel, on the round device. */
#include "stepsim/compute_cost.h"

#include "assert_close.h"
#include "device_builder.h"

#define TINY 1e-12

static struct compute_ask experts(double groups, double m, double n, double k)
{
    return (struct compute_ask){.kind = COMPUTE_GROUPED_MATMUL,
                                .groups = groups,
                                .m = m,
                                .n = n,
                                .k = k,
                                .weight_bytes_per_element = 2.0};
}

static double time_s(struct compute_ask ask, const struct device_spec *device)
{
    return compute_cost(&ask, device, false).time_s;
}

/* 32 experts of 4096 x 2048 weights are 537 MB: they stream whatever the few rows do. */
static void few_rows_stream_all_weights(void **state)
{
    (void)state;
    const struct device_spec device = device_round();
    const struct compute_ask ask = experts(32, 1, 2048, 4096);
    const struct compute_cost cost = compute_cost(&ask, &device, false);
    assert_string_equal(cost.bound, "hbm");
    assert_close(cost.time_s, 32 * 2.0 * 4096 * 2048 / 1e12, 1e-3);
    assert_close(time_s(experts(32, 8, 2048, 4096), &device), cost.time_s, 1e-2);
}

/* Ten experts of 2560 rows on ten cores: at least the flop, at most 4 % of rounding above them. */
static void many_rows_run_near_the_peak(void **state)
{
    (void)state;
    const struct device_spec device = device_round();
    const double ideal_s = 10 * 2.0 * 2560 * 2048 * 4096 / 100e12;
    const double taken_s = time_s(experts(10, 2560, 2048, 4096), &device);
    assert_true(taken_s >= ideal_s * (1.0 - TINY));
    assert_true(taken_s <= ideal_s * 1.04);
}

/* m is a mean: a row more or less at a tile border is a row, not a tile. */
static void a_mean_row_count_moves_smoothly_over_tile_borders(void **state)
{
    (void)state;
    const struct device_spec device = device_round();
    for (double border = 128; border <= 4096; border += 128) {
        const double below_s = time_s(experts(64, border - 0.5, 2048, 4096), &device);
        const double above_s = time_s(experts(64, border + 0.5, 2048, 4096), &device);
        assert_true(above_s >= below_s);
        assert_close(above_s, below_s, 0.02);
    }
}

static void the_devices_ratio_slows_the_cube_only(void **state)
{
    (void)state;
    struct device_spec device = device_round();
    const double fast_s = time_s(experts(10, 2560, 2048, 4096), &device);
    const double streamed_s = time_s(experts(32, 1, 2048, 4096), &device);
    device.grouped_matmul_ratio = 0.8;
    assert_close(time_s(experts(10, 2560, 2048, 4096), &device), fast_s / 0.8, TINY);
    assert_close(time_s(experts(32, 1, 2048, 4096), &device), streamed_s, TINY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_rows_stream_all_weights),
        cmocka_unit_test(many_rows_run_near_the_peak),
        cmocka_unit_test(a_mean_row_count_moves_smoothly_over_tile_borders),
        cmocka_unit_test(the_devices_ratio_slows_the_cube_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
