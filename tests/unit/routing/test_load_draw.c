/* Shapes of expert loads against their definitions. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../support/assert_close.h"
#include "routing/routing_internal.h"

static struct arena *arena;

static struct load_shape shape_of(struct moe_run_spec *spec)
{
    return (struct load_shape){
        .spec = spec, .kind = load_kind_of(spec), .experts = 64, .positions = 16, .top_k = 2};
}

static double sum_of(const double *load, uint32_t first, uint32_t count)
{
    double sum = 0.0;
    for (uint32_t e = first; e < first + count; e++)
        sum += load[e];
    return sum;
}

static int falling(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x < y) - (x > y);
}

static void zipf_falls_by_the_law_in_some_order(void **state)
{
    (void)state;
    struct moe_run_spec spec = {.load = "zipf", .zipf_s = 0.8, .routing_seed = 1};
    const struct load_shape shape = shape_of(&spec);
    double load[64], other[64];
    load_draw(&shape, (struct draw_ids){.layer = 3}, load, arena);
    load_draw(&shape, (struct draw_ids){.layer = 4}, other, arena);
    assert_true(memcmp(load, other, sizeof load) != 0);
    assert_close(sum_of(load, 0, 64), 64.0, 1e-12);
    qsort(load, 64, sizeof load[0], falling);
    for (int i = 0; i < 64; i++)
        assert_close(load[i] / load[0], pow(i + 1.0, -0.8), 1e-8);
}

static void zipf_zero_is_balance_to_the_last_bit(void **state)
{
    (void)state;
    struct moe_run_spec spec = {.load = "zipf", .zipf_s = 0.0, .routing_seed = 1};
    const struct load_shape shape = shape_of(&spec);
    double load[64];
    load_draw(&shape, (struct draw_ids){.layer = 3}, load, arena);
    for (int e = 0; e < 64; e++)
        assert_true(load[e] == 1.0);
}

/* The variance of a load under Dirichlet(alpha) over n experts, mean 1, is
 * (n - 1) / (n alpha + 1). */
static void dirichlet_has_its_variance(void **state)
{
    (void)state;
    struct moe_run_spec spec = {.load = "dirichlet", .dirichlet_alpha = 4.0, .routing_seed = 5};
    struct load_shape shape = shape_of(&spec);
    double squares = 0.0;
    for (uint32_t layer = 0; layer < 2000; layer++) {
        double load[64];
        load_draw(&shape, (struct draw_ids){.layer = layer}, load, arena);
        for (int e = 0; e < 64; e++)
            squares += (load[e] - 1.0) * (load[e] - 1.0) / (64.0 * 2000.0);
    }
    assert_close(squares, 63.0 / (64.0 * 4.0 + 1.0), 0.02);
}

static void hot_experts_and_their_ranks(void **state)
{
    (void)state;
    struct moe_run_spec spec = {
        .load = "spread_heat", .load_max_over_mean = 4.0, .routing_hot = 5, .routing_seed = 2};
    const struct load_shape shape = shape_of(&spec);
    double load[64];
    load_draw(&shape, (struct draw_ids){.layer = 1}, load, arena);
    uint32_t hot = 0;
    for (uint32_t p = 0; p < 16; p++) {
        uint32_t here = 0;
        for (uint32_t e = 4 * p; e < 4 * p + 4; e++)
            here += load[e] == 4.0;
        assert_true(here <= 1);
        hot += here;
    }
    assert_int_equal(hot, 5);
    assert_close(sum_of(load, 0, 64), 64.0, 1e-12);
}

/* The rank's four experts sum to 4 * max_over_mean; all others share what is left. */
static uint32_t hot_rank_of(const double *load, double ratio)
{
    uint32_t hot = UINT32_MAX;
    for (uint32_t p = 0; p < 16; p++) {
        if (fabs(sum_of(load, 4 * p, 4) - 4.0 * ratio) < 1e-9)
            hot = p;
        else
            assert_close(sum_of(load, 4 * p, 4), 4.0 * (16.0 - ratio) / 15.0, 1e-12);
    }
    return hot;
}

static void scenarios_of_one_rank(void **state)
{
    (void)state;
    struct moe_run_spec spec = {
        .load = "hot_rank", .load_max_over_mean = 3.0, .routing_period = 10, .routing_seed = 2};
    struct load_shape shape = shape_of(&spec);
    double load[64];
    load_draw(&shape, (struct draw_ids){.layer = 1}, load, arena);
    const uint32_t hot = hot_rank_of(load, 3.0);
    assert_true(hot < 16);
    load_draw(&shape, (struct draw_ids){.layer = 7, .step = 4}, load, arena);
    assert_int_equal(hot_rank_of(load, 3.0), hot);

    spec.load = "empty_rank";
    shape = shape_of(&spec);
    load_draw(&shape, (struct draw_ids){.layer = 1}, load, arena);
    assert_true(hot_rank_of(load, 0.0) < 16);

    spec.load = "rotating_hotspot";
    shape = shape_of(&spec);
    load_draw(&shape, (struct draw_ids){.step = 9}, load, arena);
    assert_int_equal(hot_rank_of(load, 3.0), hot);
    load_draw(&shape, (struct draw_ids){.step = 10}, load, arena);
    assert_int_equal(hot_rank_of(load, 3.0), (hot + 1) % 16);

    spec.load = "burst";
    shape = shape_of(&spec);
    load_draw(&shape, (struct draw_ids){.step = 8}, load, arena);
    assert_true(load[0] == 1.0 && load[63] == 1.0);
    load_draw(&shape, (struct draw_ids){.step = 9}, load, arena);
    assert_int_equal(hot_rank_of(load, 3.0), hot);
}

/* A token chooses an expert once: 64 experts, top 2, so no load is above 32. What is cut goes
 * to the others in proportion: 40, 6, 18 x 1/62 each. */
static void no_expert_gets_more_than_every_token(void **state)
{
    (void)state;
    double load[64];
    load[0] = 40.0;
    load[1] = 12.0;
    for (int e = 2; e < 64; e++)
        load[e] = 12.0 / 62.0;
    load_cap(load, 64, 2);
    assert_close(load[0], 32.0, 1e-12);
    assert_close(load[1], 16.0, 1e-12);
    assert_close(load[2], 16.0 / 62.0, 1e-12);
}

static void impossible_heat_is_refused(void **state)
{
    (void)state;
    struct scenario scenario = {.path = "test"};
    scenario.moe = (struct moe_run_spec){.load = "hot_rank", .load_max_over_mean = 17.0};
    struct load_shape shape = shape_of(&scenario.moe);
    struct error_list errors;
    error_list_init(&errors, arena);
    assert_false(load_shape_check(&shape, &scenario, &errors));
    assert_int_equal(errors.items[0].code, ERROR_out_of_range);
    scenario.moe.load_max_over_mean = 16.0;
    assert_true(load_shape_check(&shape, &scenario, &errors));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zipf_falls_by_the_law_in_some_order),
        cmocka_unit_test(zipf_zero_is_balance_to_the_last_bit),
        cmocka_unit_test(dirichlet_has_its_variance),
        cmocka_unit_test(hot_experts_and_their_ranks),
        cmocka_unit_test(scenarios_of_one_rank),
        cmocka_unit_test(no_expert_gets_more_than_every_token),
        cmocka_unit_test(impossible_heat_is_refused),
    };
    arena = arena_create("test");
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    arena_destroy(arena);
    return failed;
}
