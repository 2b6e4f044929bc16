/* test_unfused_attention.c - attention as separate kernels on the round device. */
#include "stepsim/compute_cost.h"

#include "assert_close.h"
#include "device_builder.h"

#define TINY 1e-12

static struct compute_ask attention(enum compute_kind kind)
{
    return (struct compute_ask){
        .kind = kind,
        .queries = 2560,
        .keys = 1280, /* causal: not believed */
        .sequence = 2560,
        .batch = 2,
        .heads = 5,
        .kv_heads = 5,
        .qk_dim = 128,
        .v_dim = 128,
    };
}

/* Ten heads of 2560^2 scores: two products of 2 S^2 D, and 4 passes of two bytes over the scores,
 * 524 MB, which no L2 of 100 MB holds. */
static void forward_is_two_products_and_four_passes(void **state)
{
    (void)state;
    const struct device_spec device = device_round();
    const struct compute_ask ask = attention(COMPUTE_ATTENTION_UNFUSED);
    const struct compute_cost cost = compute_cost(&ask, &device, false);
    const double scores = 10 * 2560.0 * 2560.0;
    assert_close(cost.flop, 2 * 2.0 * scores * 128, TINY);
    /* Tiles fill their waves: S = Q K^T 2000 tiles, O = P V 100 lying ones. 256 flop per score
     * at the peak take longer than its two bytes and the operands' own. */
    const double product_s = 2.0 * scores * 128 / 100e12;
    assert_true(product_s > 2.0 * (scores + 2 * 10 * 2560.0 * 128) / 1e12);
    assert_close(cost.time_s, 2 * product_s + 4 * 2.0 * scores / 1e12, TINY);
}

static void backward_is_four_products_and_five_passes(void **state)
{
    (void)state;
    const struct device_spec device = device_round();
    const struct compute_ask ahead = attention(COMPUTE_ATTENTION_UNFUSED);
    const struct compute_ask back = attention(COMPUTE_ATTENTION_UNFUSED_BACKWARD);
    const double scores = 10 * 2560.0 * 2560.0;
    const struct compute_cost ahead_cost = compute_cost(&ahead, &device, false);
    const struct compute_cost back_cost = compute_cost(&back, &device, false);
    assert_close(back_cost.flop, 2.0 * ahead_cost.flop, TINY);
    const double products_s = ahead_cost.time_s - 4 * 2.0 * scores / 1e12;
    assert_close(back_cost.time_s, 2.0 * products_s + 5 * 2.0 * scores / 1e12, TINY);
}

/* At a sequence of 4096 the fused kernel must win: it moves no scores. */
static void fused_is_faster(void **state)
{
    (void)state;
    const struct device_spec device = device_round();
    struct compute_ask ask = attention(COMPUTE_ATTENTION_UNFUSED);
    const double unfused_s = compute_cost(&ask, &device, false).time_s;
    ask.kind = COMPUTE_ATTENTION_FORWARD;
    assert_true(compute_cost(&ask, &device, false).time_s < unfused_s / 2.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward_is_two_products_and_four_passes),
        cmocka_unit_test(backward_is_four_products_and_five_passes),
        cmocka_unit_test(fused_is_faster),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
