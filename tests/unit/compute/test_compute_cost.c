/* test_compute_cost.c - finding models, and the terms that explain prints. */
#include "stepsim/compute_cost.h"

#include <string.h>

#include "assert_aborts.h"
#include "assert_close.h"
#include "device_builder.h"

static void every_kind_has_one_model(void **state)
{
    (void)state;
    for (int kind = 0; kind < COMPUTE_KIND_COUNT; kind++) {
        const struct compute *model = compute_for((enum compute_kind)kind);
        assert_non_null(model);
        assert_true(model->kinds & 1u << kind);
        assert_true(strlen(compute_kind_name((enum compute_kind)kind)) > 0);
    }
}

static void the_registry_is_sorted_and_complete(void **state)
{
    (void)state;
    for (size_t i = 0; i < compute_count; i++) {
        assert_non_null(compute_registry[i]);
        assert_true(strlen(compute_registry[i]->formula) > 0);
        if (i > 0)
            assert_true(strcmp(compute_registry[i - 1]->name, compute_registry[i]->name) < 0);
    }
    assert_null(compute_registry[compute_count]);
}

static const struct cost_term *term(const struct compute_cost *cost, const char *name)
{
    for (uint32_t i = 0; i < cost->term_count; i++)
        if (strcmp(cost->terms[i].name, name) == 0)
            return &cost->terms[i];
    return NULL;
}

/* The printed factors give the printed time when put into the printed formula. */
static void the_terms_of_a_matmul_multiply_to_its_time(void **state)
{
    (void)state;
    struct device_spec device = device_round();
    device.matmul_efficiency = 0.8;
    device.matmul_k_half = 256.0;
    device.matmul_startup_s = 4e-6;
    const struct compute_ask ask = {
        .kind = COMPUTE_MATMUL, .m = 3000, .n = 5000, .k = 2048, .weight_bytes_per_element = 2.0};
    const struct compute_cost cost = compute_cost(&ask, &device, true);
    const double flop = 2.0 * 3000 * 5000 * 2048;
    const double speed = term(&cost, "peak")->value * term(&cost, "efficiency")->value *
                         term(&cost, "k/(k + k_half)")->value *
                         sqrt(term(&cost, "occupancy")->value) * term(&cost, "spill")->value *
                         term(&cost, "align")->value;
    assert_close(cost.time_s, flop / speed + term(&cost, "startup")->value, 1e-12);
    assert_string_equal(term(&cost, "efficiency")->origin_key, "cluster.device.matmul_efficiency");
    assert_null(term(&cost, "occupancy")->origin_key);
}

static void terms_cost_nothing_unless_asked_for(void **state)
{
    (void)state;
    const struct device_spec device = device_round();
    for (int kind = 0; kind < COMPUTE_KIND_COUNT; kind++) {
        const struct compute_ask ask = {.kind = (enum compute_kind)kind,
                                        .m = 256,
                                        .n = 256,
                                        .k = 256,
                                        .groups = 2,
                                        .weight_bytes_per_element = 2,
                                        .queries = 256,
                                        .keys = 256,
                                        .sequence = 256,
                                        .batch = 1,
                                        .heads = 2,
                                        .kv_heads = 2,
                                        .qk_dim = 64,
                                        .v_dim = 64,
                                        .bytes = 1e6,
                                        .kernels = 1};
        const struct compute_cost plain = compute_cost(&ask, &device, false);
        const struct compute_cost explained = compute_cost(&ask, &device, true);
        assert_true(plain.term_count == 0);
        assert_true(explained.term_count > 0 && explained.term_count <= COST_TERMS_MAX);
        assert_close(explained.time_s, plain.time_s, 0.0);
    }
}

/* Memory without any speed. */
static void ask_for_an_infinite_time(void)
{
    struct device_spec device = device_round();
    device.hbm_efficiency = 0.0;
    device.l2_bytes = 0.0;
    device.l2_bytes_per_s = 0.0;
    const struct compute_ask ask = {.kind = COMPUTE_VECTOR, .bytes = 1e9, .kernels = 1};
    compute_cost(&ask, &device, false);
}

static void an_infinite_time_is_our_mistake(void **state)
{
    (void)state;
    assert_aborts(ask_for_an_infinite_time);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_has_one_model),
        cmocka_unit_test(the_registry_is_sorted_and_complete),
        cmocka_unit_test(the_terms_of_a_matmul_multiply_to_its_time),
        cmocka_unit_test(terms_cost_nothing_unless_asked_for),
        cmocka_unit_test(an_infinite_time_is_our_mistake),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
