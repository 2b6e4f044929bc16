/* test_flash_attention.c - fused attention on the round device: 100 TFLOP/s, efficiency 0.5 at head
 * size 128, 10 cores. */
#include "stepsim/compute_cost.h"

#include "assert_close.h"
#include "device_builder.h"

#define TINY 1e-12

static struct compute_ask attention(enum compute_kind kind, double heads, double sequence)
{
    return (struct compute_ask){
        .kind = kind,
        .queries = sequence,
        .keys = sequence,
        .sequence = sequence,
        .batch = 1,
        .heads = heads,
        .kv_heads = heads,
        .qk_dim = 128,
        .v_dim = 128,
    };
}

static struct compute_cost forward(struct compute_ask ask, const struct device_spec *device)
{
    return compute_cost(&ask, device, false);
}

/* 10 heads x 1280 queries are 100 blocks: ten full waves. 4 S^2 D flop per head at half of the
 * peak. */
static void full_cores_run_at_the_devices_efficiency(void **state)
{
    (void)state;
    const struct device_spec device = device_round();
    const struct compute_cost cost =
        forward(attention(COMPUTE_ATTENTION_FORWARD, 10, 1280), &device);
    const double flop = 10 * 4.0 * 1280 * 1280 * 128;
    assert_close(cost.flop, flop, TINY);
    assert_close(cost.time_s, flop / 50e12, TINY);
    /* Q, K, V and O, 10 * 1280 rows of 128 two-byte elements. */
    assert_close(cost.bytes, 4 * 10 * 1280 * 128 * 2.0, TINY);
    assert_string_equal(cost.bound, "cube");
}

static void causal_halves_the_work_by_its_visible_keys(void **state)
{
    (void)state;
    const struct device_spec device = device_round();
    struct compute_ask ask = attention(COMPUTE_ATTENTION_FORWARD, 10, 1280);
    const double full_s = forward(ask, &device).time_s;
    ask.keys /= 2.0;
    assert_close(forward(ask, &device).time_s, full_s / 2.0, TINY);
}

/* Five products against two: 2.5 times with equal widths; widths of MLA, 192 and 128, make it
 * (3*192 + 2*128) / (192 + 128) = 2.6. */
static void backward_is_five_products_for_two(void **state)
{
    (void)state;
    struct device_spec device = device_round();
    struct compute_ask ask = attention(COMPUTE_ATTENTION_FORWARD, 10, 1280);
    const struct compute_cost ahead = forward(ask, &device);
    ask.kind = COMPUTE_ATTENTION_BACKWARD;
    assert_close(forward(ask, &device).flop, 2.5 * ahead.flop, TINY);
    assert_close(forward(ask, &device).time_s, 2.5 * ahead.time_s, TINY);
    device.attention_backward_ratio = 0.8;
    assert_close(forward(ask, &device).time_s, 2.5 / 0.8 * ahead.time_s, TINY);

    ask.qk_dim = 192;
    const double back_flop = forward(ask, &device).flop;
    ask.kind = COMPUTE_ATTENTION_FORWARD;
    assert_close(back_flop, 2.6 * forward(ask, &device).flop, TINY);
}

/* One head of 256 queries: two blocks on ten cores. */
static void few_blocks_leave_cores_idle(void **state)
{
    (void)state;
    const struct device_spec device = device_round();
    const double flop = 4.0 * 256 * 256 * 128;
    assert_close(forward(attention(COMPUTE_ATTENTION_FORWARD, 1, 256), &device).time_s,
                 flop / 50e12 / 0.2, TINY);
    /* 130 queries need two blocks as well, and no less time per key. */
    struct compute_ask ask = attention(COMPUTE_ATTENTION_FORWARD, 1, 256);
    ask.queries = 130;
    assert_close(forward(ask, &device).time_s, flop / 50e12 / 0.2, TINY);
}

static void efficiency_halves_at_the_half_sequence(void **state)
{
    (void)state;
    struct device_spec device = device_round();
    const struct compute_ask ask = attention(COMPUTE_ATTENTION_FORWARD, 10, 1280);
    const double fast_s = forward(ask, &device).time_s;
    device.attention_seq_half = 1280;
    assert_close(forward(ask, &device).time_s, 2.0 * fast_s, TINY);
}

/* Softmax: 8 flop per pair at 4 TFLOP/s cost as much as 8/4 * 100/4 = 50 more channels at
 * 100 TFLOP/s. A pair of size 64 then costs (64 + 50) / (128 + 50) of one of size 128. */
static void a_small_head_pays_the_same_softmax(void **state)
{
    (void)state;
    const struct device_spec device = device_round();
    struct compute_ask ask = attention(COMPUTE_ATTENTION_FORWARD, 10, 1280);
    const double wide_s = forward(ask, &device).time_s;
    ask.qk_dim = ask.v_dim = 64;
    assert_close(forward(ask, &device).time_s, wide_s * 114.0 / 178.0, TINY);
}

static void grouped_keys_save_traffic_not_flop(void **state)
{
    (void)state;
    const struct device_spec device = device_round();
    struct compute_ask ask = attention(COMPUTE_ATTENTION_FORWARD, 10, 1280);
    const struct compute_cost many = forward(ask, &device);
    ask.kv_heads = 2;
    const struct compute_cost few = forward(ask, &device);
    assert_close(few.flop, many.flop, TINY);
    assert_close(few.bytes, many.bytes * (10 + 2) / 20.0, TINY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(full_cores_run_at_the_devices_efficiency),
        cmocka_unit_test(causal_halves_the_work_by_its_visible_keys),
        cmocka_unit_test(backward_is_five_products_for_two),
        cmocka_unit_test(few_blocks_leave_cores_idle),
        cmocka_unit_test(efficiency_halves_at_the_half_sequence),
        cmocka_unit_test(a_small_head_pays_the_same_softmax),
        cmocka_unit_test(grouped_keys_save_traffic_not_flop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
