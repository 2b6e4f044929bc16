/* test_compute_stream.c - kernels that move bytes: L2 of 100 MB at 4 TB/s, memory at 1 TB/s. */
#include "stepsim/compute_cost.h"

#include "assert_close.h"
#include "device_builder.h"

#define TINY 1e-12

static struct compute_cost cost_of(enum compute_kind kind, double bytes, double kernels,
                                   const struct device_spec *device)
{
    const struct compute_ask ask = {.kind = kind, .bytes = bytes, .kernels = kernels};
    return compute_cost(&ask, device, false);
}

static void large_tensors_stream_from_memory(void **state)
{
    (void)state;
    const struct device_spec device = device_round();
    const struct compute_cost cost = cost_of(COMPUTE_VECTOR, 1e9, 1, &device);
    assert_close(cost.time_s, 1e-3, TINY);
    assert_close(cost.bytes, 1e9, TINY);
    assert_string_equal(cost.bound, "hbm");
}

static void small_tensors_come_from_the_l2(void **state)
{
    (void)state;
    const struct device_spec device = device_round();
    const struct compute_cost cost = cost_of(COMPUTE_VECTOR, 40e6, 1, &device);
    assert_close(cost.time_s, 10e-6, TINY);
    assert_close(cost.bytes, 0.0, 0.0);
    assert_string_equal(cost.bound, "l2");
    /* 400 MB in ten kernels are ten small tensors. */
    assert_close(cost_of(COMPUTE_VECTOR, 400e6, 10, &device).time_s, 100e-6, TINY);
}

/* Between one and two sizes of the L2 the share that still hits falls in a straight line: 150 MB,
 * half at 4 TB/s and half at 1 TB/s. */
static void the_l2_fades_out(void **state)
{
    (void)state;
    const struct device_spec device = device_round();
    assert_close(cost_of(COMPUTE_VECTOR, 100e6, 1, &device).time_s, 25e-6, TINY);
    assert_close(cost_of(COMPUTE_VECTOR, 150e6, 1, &device).time_s, 18.75e-6 + 75e-6, TINY);
    assert_close(cost_of(COMPUTE_VECTOR, 200e6, 1, &device).time_s, 200e-6, TINY);
}

static void each_kernel_starts_once(void **state)
{
    (void)state;
    struct device_spec device = device_round();
    device.vector_startup_s = 3e-6;
    assert_close(cost_of(COMPUTE_VECTOR, 0, 4, &device).time_s, 12e-6, TINY);
    assert_string_equal(cost_of(COMPUTE_VECTOR, 4e6, 4, &device).bound, "floor");
    assert_close(cost_of(COMPUTE_VECTOR, 1e9, 2, &device).time_s, 1e-3 + 6e-6, TINY);
    /* Fewer than one kernel is one. */
    assert_close(cost_of(COMPUTE_VECTOR, 0, 0, &device).time_s, 3e-6, TINY);
}

static void each_kind_has_its_traffic(void **state)
{
    (void)state;
    struct device_spec device = device_round();
    device.vector_traffic_ratio = 2.0;
    device.permute_traffic_ratio = 3.0;
    assert_close(cost_of(COMPUTE_VECTOR, 1e9, 1, &device).time_s, 2e-3, TINY);
    assert_close(cost_of(COMPUTE_PERMUTE, 1e9, 1, &device).time_s, 3e-3, TINY);
    assert_close(cost_of(COMPUTE_OPTIMIZER, 1e9, 1, &device).time_s, 1e-3, TINY);
    /* The optimizer's states are cold: no L2. */
    assert_close(cost_of(COMPUTE_OPTIMIZER, 40e6, 1, &device).time_s, 40e-6, TINY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(large_tensors_stream_from_memory),
        cmocka_unit_test(small_tensors_come_from_the_l2),
        cmocka_unit_test(the_l2_fades_out),
        cmocka_unit_test(each_kernel_starts_once),
        cmocka_unit_test(each_kind_has_its_traffic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
