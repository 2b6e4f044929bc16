/* test_compute_tiles.c - matrix products on a device with round numbers: 100 TFLOP/s, 10 cores,
 * tiles of 128 x 256, 1 TB/s. */
#include "stepsim/compute_cost.h"

#include "assert_close.h"
#include "device_builder.h"

#define TINY 1e-12

static struct compute_ask matmul(double m, double n, double k)
{
    return (struct compute_ask){
        .kind = COMPUTE_MATMUL, .m = m, .n = n, .k = k, .weight_bytes_per_element = 2.0};
}

static double time_s(struct compute_ask ask, const struct device_spec *device)
{
    return compute_cost(&ask, device, false).time_s;
}

/* Ten tiles on ten cores: 2 * 1280 * 256 * 1024 flop at the peak. */
static void one_full_wave_runs_at_the_peak(void **state)
{
    (void)state;
    const struct device_spec device = device_round();
    const struct compute_ask ask = matmul(1280, 256, 1024);
    const struct compute_cost cost = compute_cost(&ask, &device, false);
    assert_close(cost.flop, 671088640.0, TINY);
    assert_close(cost.time_s, 6.7108864e-6, TINY);
    /* 1280*1024 + 1024*256 + 1280*256 elements of two bytes. */
    assert_close(cost.bytes, 3801088.0, TINY);
    assert_string_equal(cost.bound, "cube");
}

/* The eleventh tile opens a second wave of ten slots: 11/20 of the slots are useful. */
static void a_last_wave_of_one_tile_costs_its_square_root(void **state)
{
    (void)state;
    const struct device_spec device = device_round();
    assert_close(time_s(matmul(1408, 256, 1024), &device),
                 2.0 * 1408 * 256 * 1024 / 100e12 / sqrt(11.0 / 20.0), TINY);
}

/* 2560 columns of 128 rows: upright tiles fill 10 slots of one wave, as good as lying ones; 128
 * columns and 2560 rows can only lie: ten tiles of 256 x 128. */
static void a_tile_lies_the_better_way(void **state)
{
    (void)state;
    const struct device_spec device = device_round();
    const double full_s = 2.0 * 2560 * 128 * 4096 / 100e12;
    assert_close(time_s(matmul(2560, 128, 4096), &device), full_s, TINY);
    assert_close(time_s(matmul(128, 2560, 4096), &device), full_s, TINY);
}

static void half_of_the_speed_at_k_half(void **state)
{
    (void)state;
    struct device_spec device = device_round();
    const double fast_s = time_s(matmul(1280, 2560, 1024), &device);
    device.matmul_k_half = 1024.0;
    assert_close(time_s(matmul(1280, 2560, 1024), &device), 2.0 * fast_s, TINY);
}

/* Sixteen rows: the weights, 1024 * 2560 elements, take 5.24 us of 1 TB/s, the array 0.84 us. */
static void few_rows_wait_for_the_weights(void **state)
{
    (void)state;
    const struct device_spec device = device_round();
    const struct compute_ask ask = matmul(16, 2560, 1024);
    const struct compute_cost cost = compute_cost(&ask, &device, false);
    const double bytes = 2.0 * (16 * 1024 + 1024 * 2560 + 16 * 2560);
    assert_close(cost.time_s, bytes / 1e12, TINY);
    assert_string_equal(cost.bound, "hbm");
}

/* A weight gradient that is added to a 32-bit buffer: 8 bytes a value instead of 2, and the 6 more
 * pass between a core and the L2, 4 TB/s here, while its array waits. */
static void a_wide_result_holds_the_cores(void **state)
{
    (void)state;
    struct device_spec device = device_round();
    device.l2_bytes_per_s = 4e12;
    struct compute_ask ask = matmul(1280, 2560, 1024);
    const struct compute_cost narrow = compute_cost(&ask, &device, false);
    ask.result_bytes = 8.0;
    const struct compute_cost wide = compute_cost(&ask, &device, false);
    assert_close(wide.bytes - narrow.bytes, 6.0 * 1280 * 2560, TINY);
    assert_close(wide.time_s - narrow.time_s, 6.0 * 1280 * 2560 / 4e12, 1e-9);
    assert_close(wide.flop, narrow.flop, TINY);
    ask.kind = COMPUTE_GROUPED_MATMUL;
    ask.groups = 3.0;
    const struct compute_cost grouped = compute_cost(&ask, &device, false);
    ask.result_bytes = 2.0;
    assert_close(grouped.bytes - compute_cost(&ask, &device, false).bytes,
                 3.0 * 6.0 * 1280 * 2560, TINY);
}

/* Few rows: the bytes decide, and they are 2 (mk + kn) + 8 mn. */
static void a_wide_result_of_few_rows_waits_for_the_memory(void **state)
{
    (void)state;
    const struct device_spec device = device_round();
    struct compute_ask ask = matmul(1280, 2560, 16);
    ask.result_bytes = 8.0;
    const struct compute_cost cost = compute_cost(&ask, &device, false);
    const double bytes = 2.0 * (1280 * 16 + 16 * 2560) + 8.0 * 1280 * 2560;
    assert_close(cost.time_s, bytes / 1e12, TINY);
    assert_string_equal(cost.bound, "hbm");
}

/* Rows are paid for in sixteens: 8 rows on an array of 16 use half of it. */
static void eight_rows_cost_as_much_as_half_filled_sixteen(void **state)
{
    (void)state;
    struct device_spec device = device_round();
    device.hbm_bytes_per_s = 1e18;
    assert_close(time_s(matmul(8, 2560, 1024), &device), 2.0 * 8 * 2560 * 1024 / 100e12 / sqrt(0.5),
                 TINY);
}

/* A wave reads 10 * 128 rows and 256 columns of k = 1024: 3,145,728 bytes, twice this L2. */
static void half_outside_the_l2_goes_half_way_to_the_spill_ratio(void **state)
{
    (void)state;
    struct device_spec device = device_round();
    const double fits_s = time_s(matmul(1280, 256, 1024), &device);
    device.l2_bytes = 1572864.0;
    device.matmul_spill_ratio = 0.5;
    /* 1 / (1 + 0.5 (1/0.5 - 1)) = 2/3 */
    assert_close(time_s(matmul(1280, 256, 1024), &device), 1.5 * fits_s, TINY);
}

static void an_unaligned_k_runs_at_its_ratio(void **state)
{
    (void)state;
    struct device_spec device = device_round();
    device.matmul_unaligned_ratio = 0.5;
    device.matmul_align = 128.0;
    assert_close(time_s(matmul(1280, 2560, 4096), &device), 2.0 * 1280 * 2560 * 4096 / 100e12,
                 TINY);
    assert_close(time_s(matmul(1280, 2560, 4095), &device), 2.0 * 1280 * 2560 * 4095 / 50e12, TINY);
}

static void the_start_up_is_added_and_is_all_of_nothing(void **state)
{
    (void)state;
    struct device_spec device = device_round();
    device.matmul_startup_s = 5e-6;
    assert_close(time_s(matmul(1280, 256, 1024), &device), 11.7108864e-6, TINY);
    const struct compute_ask nothing = matmul(0, 256, 1024);
    struct device_spec free_memory = device;
    free_memory.hbm_bytes_per_s = 1e18;
    const struct compute_cost cost = compute_cost(&nothing, &free_memory, false);
    assert_close(cost.time_s, 5e-6, 1e-6);
    assert_close(cost.flop, 0.0, 0.0);
    assert_string_equal(cost.bound, "floor");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_full_wave_runs_at_the_peak),
        cmocka_unit_test(a_last_wave_of_one_tile_costs_its_square_root),
        cmocka_unit_test(a_tile_lies_the_better_way),
        cmocka_unit_test(half_of_the_speed_at_k_half),
        cmocka_unit_test(few_rows_wait_for_the_weights),
        cmocka_unit_test(a_wide_result_holds_the_cores),
        cmocka_unit_test(a_wide_result_of_few_rows_waits_for_the_memory),
        cmocka_unit_test(eight_rows_cost_as_much_as_half_filled_sixteen),
        cmocka_unit_test(half_outside_the_l2_goes_half_way_to_the_spill_ratio),
        cmocka_unit_test(an_unaligned_k_runs_at_its_ratio),
        cmocka_unit_test(the_start_up_is_added_and_is_all_of_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
