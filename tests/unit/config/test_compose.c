/* test_compose.c - overrides and bases: what changes, what stays, and that nothing stale is left.
 */
#include "config/config_internal.h"
#include "config_fixture.h"

static void overrides_reach_every_file(void **state)
{
    const struct scenario *s = config_accept(
        *state, TOY_SCENARIO,
        CONFIG_SETS("devices=128", "model.layers=12", "model.moe.top_k=4",
                    "cluster.devices_per_node=4", "cluster.levels.1.latency=9 us",
                    "cluster.levels.node.size=4", "cluster.device.hbm_usable=59 GiB"));
    assert_int_equal(s->devices, 128);
    assert_int_equal(s->model.layers, 12);
    assert_int_equal(s->model.moe.top_k, 4);
    assert_int_equal(s->model.moe.experts, 16);
    assert_int_equal(s->cluster.devices_per_node, 4);
    assert_close(s->cluster.levels[1].latency_s, 9e-6, 0.0);
    assert_int_equal(s->cluster.levels[0].size, 4);
    assert_close(s->cluster.device.usable_bytes, 59.0 * 1073741824.0, 0.0);
    assert_string_equal(s->model.name, "toy_moe");
    assert_string_equal(s->cluster.device.name, "toy_die");
}

static void the_last_of_two_overrides_wins(void **state)
{
    const struct scenario *s =
        config_accept(*state, TOY_SCENARIO, CONFIG_SETS("parallel.tp=4", "parallel.tp=8"));
    assert_int_equal(s->parallel.tp, 8);
}

static void a_bare_fact_says_that_it_is_assumed(void **state)
{
    const struct scenario *s = config_accept(
        *state, TOY_SCENARIO,
        CONFIG_SETS("cluster.device.cores=24", "cluster.device.peak.value=400 TFLOP/s",
                    "cluster.host_bandwidth={value: 1 GB/s, source: my test, grade: measured}"));
    const struct origin *cores = scenario_origin(s, "cluster.device.cores");
    assert_int_equal(cores->kind, ORIGIN_SET);
    assert_int_equal(cores->grade, GRADE_ASSUMED);
    assert_string_equal(cores->source, "--set");
    /* The source of the old value does not vouch for the new one. */
    const struct origin *peak = scenario_origin(s, "cluster.device.peak");
    assert_close(s->cluster.device.peak_flop_per_s, 400e12, 0.0);
    assert_int_equal(peak->grade, GRADE_ASSUMED);
    assert_string_equal(peak->source, "--set");
    const struct origin *host = scenario_origin(s, "cluster.host_bandwidth");
    assert_int_equal(host->grade, GRADE_MEASURED);
    assert_string_equal(host->source, "my test");
}

/* model=NAME takes all that was written about the model with it, before and after. */
static void a_name_replaces_the_whole(void **state)
{
    const struct scenario *s = config_accept(
        *state, TOY_SCENARIO, CONFIG_SETS("model.moe.top_k=4", "model=toy_dense", "parallel.ep=1"));
    assert_string_equal(s->model.name, "toy_dense");
    assert_int_equal(s->model.moe.experts, 0);
    assert_int_equal(s->model.moe.top_k, 0);
    s = config_accept(*state, TOY_SCENARIO,
                      CONFIG_SETS("model=toy_dense", "model.layers=6", "parallel.ep=1"));
    assert_string_equal(s->model.name, "toy_dense");
    assert_int_equal(s->model.layers, 6);
    /* Naming another base is the same as naming another model. */
    s = config_accept(*state, TOY_SCENARIO,
                      CONFIG_SETS("model.layers=6", "model.base=toy_dense", "parallel.ep=1"));
    assert_string_equal(s->model.name, "toy_dense");
    assert_int_equal(s->model.layers, 8);
}

#define WITH_MAPS                                                                                  \
    "model: {base: toy_moe, layers: 6}\n"                                                          \
    "cluster: toy\n"                                                                               \
    "devices: 64\n"                                                                                \
    "parallel:\n"                                                                                  \
    "  tp: 2\n  pp: 2\n  ep: 4\n  etp: 1\n"                                                        \
    "  cp: {size: 2, method: ulysses}\n"                                                           \
    "  stages: {layers: [3, 3]}\n"                                                                 \
    "training: {seq_len: 4096, micro_batch_size: 1, global_batch_size: 64}\n"

static void a_word_for_a_section_leaves_nothing_stale(void **state)
{
    const struct scenario *s =
        config_accept(*state, WITH_MAPS, CONFIG_SETS("parallel.stages=even"));
    assert_int_equal(s->parallel.split, SPLIT_EVEN);
    assert_null(s->parallel.layers);
    assert_int_equal(s->parallel.layers_count, 0);
    /* So does a map. */
    s = config_accept(*state, WITH_MAPS, CONFIG_SETS("parallel.stages={first: 2}"));
    assert_int_equal(s->parallel.split, SPLIT_FIRST_LAST);
    assert_int_equal(s->parallel.layers_count, 0);
}

/* The size of cp says nothing about its method. */
static void a_number_for_cp_keeps_the_method(void **state)
{
    const struct scenario *s = config_accept(*state, WITH_MAPS, CONFIG_SETS("parallel.cp=4"));
    assert_int_equal(s->parallel.cp, 4);
    assert_int_equal(s->parallel.cp_method, CP_ULYSSES);
}

static void a_key_below_plain_text_keeps_the_text(void **state)
{
    const struct scenario *s = config_accept(
        *state, TOY_SCENARIO, CONFIG_SETS("parallel.cp=4", "parallel.cp.method=ulysses"));
    assert_int_equal(s->parallel.cp, 4);
    assert_int_equal(s->parallel.cp_method, CP_ULYSSES);
}

static void null_takes_a_key_away(void **state)
{
    const struct scenario *s = config_accept(
        *state, WITH_MAPS,
        CONFIG_SETS("parallel.stages.layers=null", "parallel.zero=~", "model.layers=", "seed="));
    assert_int_equal(s->parallel.split, SPLIT_BALANCED);
    assert_int_equal(s->parallel.zero, 1);
    assert_int_equal(s->model.layers, 8); /* that of the base */
    assert_int_equal(scenario_origin(s, "parallel.stages.split")->kind, ORIGIN_DEFAULT);
}

static void a_stale_split_is_a_clash(void **state)
{
    struct config_fixture *fixture = *state;
    assert_null(config_load(fixture, WITH_MAPS, CONFIG_SETS("parallel.stages.split=even")));
    assert_int_equal(fixture->errors.count, 1);
    assert_refused(&fixture->errors, ERROR_conflicting_keys, "even (--set)");
}

static void a_device_may_be_changed_inside_a_cluster(void **state)
{
    const struct scenario *s =
        config_accept(*state,
                      "model: toy_moe\n"
                      "cluster:\n"
                      "  base: toy\n"
                      "  device:\n"
                      "    cores: {value: 24, source: a test, grade: measured}\n"
                      "  levels:\n"
                      "    cluster: {nics: 8}\n"
                      "devices: 64\n"
                      "training: {seq_len: 4096, micro_batch_size: 1, global_batch_size: 64}\n",
                      NULL);
    assert_close(s->cluster.device.cores, 24.0, 0.0);
    assert_close(s->cluster.device.hbm_efficiency, 0.9, 0.0); /* from toy_die */
    assert_string_equal(s->cluster.device.name, "toy_die");
    assert_int_equal(s->cluster.levels[1].nics, 8);
    assert_int_equal(s->cluster.levels[0].nics, 0);
    assert_int_equal(s->cluster.level_count, 2);
}

static void a_fact_beside_a_base_is_replaced_whole(void **state)
{
    struct config_fixture *fixture = *state;
    assert_null(
        config_load(fixture,
                    "model: toy_moe\n"
                    "cluster: {base: toy, host_bandwidth: {value: 1 GB/s}}\n"
                    "devices: 64\n"
                    "training: {seq_len: 4096, micro_batch_size: 1, global_batch_size: 64}\n",
                    NULL));
    assert_int_equal(fixture->errors.count, 1);
    assert_refused(&fixture->errors, ERROR_missing_source, "has no source");
}

static void lists_of_maps_take_overrides_by_index(void **state)
{
    struct config_fixture *fixture = *state;
    assert_null(config_load(fixture, TOY_SCENARIO, CONFIG_SETS("cluster.levels.2.size=4")));
    assert_refused(&fixture->errors, ERROR_unknown_key, "no entry \"2\"");
    error_list_init(&fixture->errors, fixture->arena);
    assert_null(config_load(fixture, TOY_SCENARIO, CONFIG_SETS("cluster.levels.leaf.size=4")));
    assert_refused(&fixture->errors, ERROR_unknown_key, "no entry \"leaf\"");
}

static void the_tree_before_stays_as_it_was(void **state)
{
    struct config_fixture *fixture = *state;
    struct compose compose = {.arena = fixture->arena, .errors = &fixture->errors};
    const struct yaml_tree *root = compose_text(&compose, WITH_MAPS, "t.yaml");
    const struct scenario_override override = {"parallel.tp", "16"};
    const struct yaml_tree *changed = compose_override(&compose, root, &override);
    assert_string_equal(yaml_tree_get(yaml_tree_get(root, "parallel"), "tp")->text, "2");
    assert_string_equal(yaml_tree_get(yaml_tree_get(changed, "parallel"), "tp")->text, "16");
    /* What did not change is shared. */
    assert_ptr_equal(yaml_tree_get(root, "model"), yaml_tree_get(changed, "model"));
    assert_ptr_equal(yaml_tree_get(yaml_tree_get(root, "parallel"), "stages"),
                     yaml_tree_get(yaml_tree_get(changed, "parallel"), "stages"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CONFIG_TEST(overrides_reach_every_file),
        CONFIG_TEST(the_last_of_two_overrides_wins),
        CONFIG_TEST(a_bare_fact_says_that_it_is_assumed),
        CONFIG_TEST(a_name_replaces_the_whole),
        CONFIG_TEST(a_word_for_a_section_leaves_nothing_stale),
        CONFIG_TEST(a_number_for_cp_keeps_the_method),
        CONFIG_TEST(a_key_below_plain_text_keeps_the_text),
        CONFIG_TEST(null_takes_a_key_away),
        CONFIG_TEST(a_stale_split_is_a_clash),
        CONFIG_TEST(a_device_may_be_changed_inside_a_cluster),
        CONFIG_TEST(a_fact_beside_a_base_is_replaced_whole),
        CONFIG_TEST(lists_of_maps_take_overrides_by_index),
        CONFIG_TEST(the_tree_before_stays_as_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
