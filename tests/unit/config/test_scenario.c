/* test_scenario.c - whole scenarios: every value in its member, defaults, sharing, shipped files.
 */
#include "stepsim/scenario.h"

#include <stdio.h>
#include <string.h>

#include "config_fixture.h"

static void toy_scenario_has_the_written_values(void **state)
{
    const struct scenario *s = config_accept(*state, TOY_SCENARIO, NULL);
    assert_string_equal(s->path, "toy.yaml");
    assert_string_equal(s->model.name, "toy_moe");
    assert_string_equal(s->cluster.name, "toy");
    assert_string_equal(s->cluster.device.name, "toy_die");
    assert_int_equal(s->devices, 64);
    assert_int_equal(s->parallel.tp, 2);
    assert_int_equal(s->parallel.ep, 4);
    assert_int_equal(s->training.seq_len, 4096);
    assert_int_equal(s->model.moe.experts, 16);
    assert_int_equal(s->model.moe.first_dense_layers, 1);
    assert_int_equal(s->model.attention.kind, ATTENTION_GQA);
    assert_int_equal(s->model.attention.kv_heads, 4);
    assert_int_equal(s->cluster.level_count, 2);
    assert_int_equal(s->cluster.levels[0].size, 8);
    assert_int_equal(s->cluster.levels[0].topology, TOPOLOGY_MESH);
    assert_int_equal(s->cluster.levels[1].size, 0);            /* all */
    assert_close(s->cluster.levels[1].bytes_per_s, 25e9, 0.0); /* 200 Gb/s */
    assert_close(s->cluster.levels[0].alltoall_efficiency, 0.65, 0.0);
    assert_close(s->cluster.device.hbm_bytes, 68719476736.0, 0.0);
    assert_close(s->cluster.device.matmul_startup_s, 5e-6, 0.0);
    assert_close(s->cluster.device.growth_per_doubling, 0.01, 0.0);
    assert_int_equal(s->cluster.device.alias_count, 2);
    assert_string_equal(s->cluster.device.aliases[1], "toy one");
}

/* Nothing that changes the answer is left to memory that happens to be zero. */
static void defaults_are_those_of_the_tables(void **state)
{
    const struct scenario *s = config_accept(*state, TOY_SCENARIO, NULL);
    assert_true(s->parallel.sequence_parallel);
    assert_int_equal(s->parallel.vpp, 1);
    assert_int_equal(s->parallel.cp, 1);
    assert_int_equal(s->parallel.dp, 0);
    assert_int_equal(s->parallel.zero, 1);
    assert_string_equal(s->parallel.order, "tp-cp-ep-dp-pp");
    assert_int_equal(s->parallel.split, SPLIT_BALANCED);
    assert_int_equal(s->precision.compute, PRECISION_BF16);
    assert_int_equal(s->precision.gradients, PRECISION_FP32);
    assert_string_equal(s->schedule.kind, "1f1b");
    assert_int_equal(s->schedule.microbatch_group, 0);
    assert_true(s->schedule.p2p_overlapped);
    assert_string_equal(s->moe.load, "balanced");
    assert_string_equal(s->moe.placement, "static");
    assert_true(s->moe.grouped_matmul);
    assert_int_equal(s->recompute.modules, 0);
    assert_int_equal(s->recompute.method, RECOMPUTE_ALL);
    assert_false(s->overlap.grad_reduce);
    assert_true(s->overlap.cp_comm);
    assert_true(s->fusion.flash_attention);
    assert_false(s->fusion.cross_entropy);
    assert_close(s->collectives.buffer_bytes, 200e6, 0.0);
    assert_string_equal(s->collectives.expansion, "host");
    assert_false(s->mfu.attention_causal);
    assert_true(s->mfu.mtp);
    assert_string_equal(s->network, "closed_form");
    assert_close(s->memory.reserve_bytes, 1073741824.0, 0.0);
    assert_int_equal(s->memory.logits_chunks, 1);
    assert_int_equal(s->seed, 1);
    assert_int_equal(s->model.norms_per_layer, 2);
    assert_close(s->training.tokens, 0.0, 0.0);
}

static void unions_are_read_both_ways(void **state)
{
    const struct scenario *s =
        config_accept(*state, TOY_SCENARIO, CONFIG_SETS("parallel.cp=4", "parallel.stages=even"));
    assert_int_equal(s->parallel.cp, 4);
    assert_int_equal(s->parallel.cp_method, CP_RING);
    assert_int_equal(s->parallel.split, SPLIT_EVEN);
    s = config_accept(*state, TOY_SCENARIO,
                      CONFIG_SETS("parallel.cp={size: 4, method: hybrid, ulysses_size: 2}",
                                  "moe.routing=balanced", "moe.placement=static"));
    assert_int_equal(s->parallel.cp, 4);
    assert_int_equal(s->parallel.cp_method, CP_HYBRID);
    assert_int_equal(s->parallel.ulysses_size, 2);
}

static void stage_keys_choose_their_split(void **state)
{
    const struct scenario *s =
        config_accept(*state, TOY_SCENARIO, CONFIG_SETS("parallel.stages={layers: [5, 3]}"));
    assert_int_equal(s->parallel.split, SPLIT_LAYERS);
    assert_int_equal(s->parallel.layers_count, 2);
    assert_int_equal(s->parallel.layers[0], 5);
    s = config_accept(*state, TOY_SCENARIO, CONFIG_SETS("parallel.stages.last=3"));
    assert_int_equal(s->parallel.split, SPLIT_FIRST_LAST);
    assert_int_equal(s->parallel.first_layers, 0);
    assert_int_equal(s->parallel.last_layers, 3);
    s = config_accept(*state, TOY_SCENARIO, CONFIG_SETS("parallel.stages.noop_layers=[0, 9]"));
    assert_int_equal(s->parallel.split, SPLIT_NOOP);
    assert_int_equal(s->parallel.noop_count, 2);
    assert_int_equal(s->parallel.noop_layers[1], 9);
    s = config_accept(*state, TOY_SCENARIO, CONFIG_SETS("parallel.stages.layout=\"Ett|ttL\""));
    assert_int_equal(s->parallel.split, SPLIT_LAYOUT);
    assert_string_equal(s->parallel.layout, "Ett|ttL");
}

static void recompute_layers_have_four_forms(void **state)
{
    const char *modules = "recompute.modules=[norm, layer]";
    const struct scenario *s =
        config_accept(*state, TOY_SCENARIO, CONFIG_SETS(modules, "recompute.layers=all"));
    assert_int_equal(s->recompute.modules, MODULE_NORM | MODULE_LAYER);
    assert_int_equal(s->recompute.method, RECOMPUTE_ALL);
    s = config_accept(*state, TOY_SCENARIO, CONFIG_SETS(modules, "recompute.layers={uniform: 2}"));
    assert_int_equal(s->recompute.method, RECOMPUTE_UNIFORM);
    assert_int_equal(s->recompute.layers, 2);
    s = config_accept(*state, TOY_SCENARIO, CONFIG_SETS(modules, "recompute.layers={block: 3}"));
    assert_int_equal(s->recompute.method, RECOMPUTE_BLOCK);
    assert_int_equal(s->recompute.layers, 3);
    s = config_accept(*state, TOY_SCENARIO,
                      CONFIG_SETS(modules, "recompute.layers={per_stage: [2, 1]}"));
    assert_int_equal(s->recompute.method, RECOMPUTE_PER_STAGE);
    assert_int_equal(s->recompute.stage_layers_count, 2);
    assert_int_equal(s->recompute.stage_layers[0], 2);
}

static void multi_head_attention_has_all_its_key_heads(void **state)
{
    const struct scenario *s =
        config_accept(*state, TOY_SCENARIO, CONFIG_SETS("model=toy_dense", "parallel.ep=1"));
    assert_int_equal(s->model.attention.kv_heads, 16);
    assert_int_equal(s->model.moe.experts, 0);
    assert_int_equal(s->model.norm_kind, NORM_LAYER);
}

/* Anchors under x- keys and merge keys serve whole sections. */
static void merge_keys_supply_sections(void **state)
{
    const struct scenario *s =
        config_accept(*state,
                      "x-layout: &small {tp: 2, pp: 2, ep: 4, etp: 1}\n"
                      "model: toy_moe\n"
                      "cluster: toy\n"
                      "devices: 64\n"
                      "parallel:\n"
                      "  <<: *small\n"
                      "  pp: 4\n"
                      "training: {seq_len: 4096, micro_batch_size: 1, global_batch_size: 64}\n",
                      NULL);
    assert_int_equal(s->parallel.tp, 2);
    assert_int_equal(s->parallel.pp, 4);
}

static void errors_come_in_the_order_of_the_file(void **state)
{
    struct config_fixture *fixture = *state;
    assert_null(config_load(fixture,
                            "model: nobody\n"
                            "cluster: toy\n"
                            "devices: x\n"
                            "parallel: {tp: 0, pq: 2}\n"
                            "training: {seq_len: 1, micro_batch_size: 1, global_batch_size: y}\n",
                            CONFIG_SETS("mfu.peek=cube")));
    /* nobody, x, 0, pq, y, and the override, which has no place and stands last. */
    assert_int_equal(fixture->errors.count, 6);
    static const uint32_t lines[] = {1, 3, 4, 4, 5, 0};
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(fixture->errors.items[i].at.line, lines[i]);
    assert_int_equal(fixture->errors.items[2].at.column, 16);
    assert_string_equal(fixture->errors.items[3].key, "parallel.pq");
    assert_string_equal(fixture->errors.items[5].key, "mfu.peek");
}

/* A hundred thousand mistakes are counted and cost no more than reading them. */
static void many_errors_are_counted(void **state)
{
    struct config_fixture *fixture = *state;
    char *text = arena_alloc(fixture->arena, 40000 * 16 + 32);
    size_t length = 0;
    for (int i = 0; i < 40000; i++)
        length += (size_t)snprintf(text + length, 32, "key%06d: 1\n", i);
    assert_null(config_load(fixture, text, NULL));
    assert_int_equal(fixture->errors.count, 40000 + 6); /* and six keys are missing */
}

static void a_cache_changes_nothing(void **state)
{
    struct config_fixture *fixture = *state;
    const struct scenario *plain = config_accept(fixture, TOY_SCENARIO, NULL);
    fixture->cache = scenario_cache_create();
    for (int round = 0; round < 3; round++) {
        const struct scenario *cached = config_accept(fixture, TOY_SCENARIO, NULL);
        assert_string_equal(scenario_hash(cached, fixture->arena),
                            scenario_hash(plain, fixture->arena));
        /* Overrides of one load do not reach the next. */
        const struct scenario *other = config_accept(
            fixture, TOY_SCENARIO,
            CONFIG_SETS("model.layers=12", "cluster.device.cores=24", "cluster.levels.0.size=4"));
        assert_int_equal(other->model.layers, 12);
        assert_int_equal(cached->model.layers, 8);
        assert_close(cached->cluster.device.cores, 20.0, 0.0);
        assert_int_equal(cached->cluster.levels[0].size, 8);
    }
}

static void a_cache_keeps_no_broken_text(void **state)
{
    struct config_fixture *fixture = *state;
    fixture->cache = scenario_cache_create();
    for (int round = 0; round < 2; round++) {
        assert_null(config_load(fixture, "a: 1\na: 2\n", NULL));
        assert_refused(&fixture->errors, ERROR_yaml_duplicate_key, "already given");
        error_list_init(&fixture->errors, fixture->arena);
    }
}

/* ---- Shipped files ---- */

static void every_shipped_model_device_and_cluster_loads(void **state)
{
    struct config_fixture *fixture = *state;
    const char *folder = STEPSIM_SOURCE_DIR "/configs";
    size_t count = 0;
    const char *const *names = scenario_config_names(folder, "models", fixture->arena, &count);
    assert_true(count >= 20);
    for (size_t i = 0; i < count; i++)
        (void)scenario_load_model(names[i], folder, fixture->arena, &fixture->errors);
    names = scenario_config_names(folder, "devices", fixture->arena, &count);
    assert_true(count >= 10);
    for (size_t i = 0; i < count; i++)
        (void)scenario_load_device(names[i], folder, fixture->arena, &fixture->errors);
    names = scenario_config_names(folder, "clusters", fixture->arena, &count);
    assert_true(count >= 8);
    for (size_t i = 0; i < count; i++)
        (void)scenario_load_cluster(names[i], folder, fixture->arena, &fixture->errors);
    assert_accepted(&fixture->errors);
}

static void a_device_is_found_by_its_alias(void **state)
{
    struct config_fixture *fixture = *state;
    const struct device_spec *device =
        scenario_load_device("TOY-1", TOY_CONFIGS, fixture->arena, &fixture->errors);
    assert_accepted(&fixture->errors);
    assert_string_equal(device->name, "toy_die");
    /* Exact names only: a part of one is nobody. */
    assert_null(scenario_load_device("TOY", TOY_CONFIGS, fixture->arena, &fixture->errors));
    assert_refused(&fixture->errors, ERROR_unknown_name, "no device \"TOY\"");
}

/* A model in the file itself, and one that starts from another. */
static void models_may_be_inline(void **state)
{
    const char *rest = "cluster: toy\ndevices: 8\n"
                       "training: {seq_len: 4096, micro_batch_size: 1, global_batch_size: 64}\n";
    struct config_fixture *fixture = *state;
    const struct scenario *s = config_accept(
        fixture,
        arena_printf(fixture->arena,
                     "model:\n  layers: 2\n  hidden_size: 64\n  vocab_size: 1000\n"
                     "  ffn: {intermediate_size: 128}\n"
                     "  attention: {kind: mla, heads: 4, kv_lora_rank: 32, qk_nope_head_dim: 16,\n"
                     "              qk_rope_head_dim: 8, v_head_dim: 16}\n%s",
                     rest),
        NULL);
    assert_string_equal(s->model.name, "inline");
    assert_int_equal(s->model.attention.q_lora_rank, 0);
    s = config_accept(fixture,
                      arena_printf(fixture->arena,
                                   "model: {base: toy_moe, layers: 4, moe: {experts: 32}}\n%s",
                                   rest),
                      NULL);
    assert_string_equal(s->model.name, "toy_moe");
    assert_int_equal(s->model.layers, 4);
    assert_int_equal(s->model.moe.experts, 32);
    assert_int_equal(s->model.moe.top_k, 2); /* from the base */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CONFIG_TEST(toy_scenario_has_the_written_values),
        CONFIG_TEST(defaults_are_those_of_the_tables),
        CONFIG_TEST(unions_are_read_both_ways),
        CONFIG_TEST(stage_keys_choose_their_split),
        CONFIG_TEST(recompute_layers_have_four_forms),
        CONFIG_TEST(multi_head_attention_has_all_its_key_heads),
        CONFIG_TEST(merge_keys_supply_sections),
        CONFIG_TEST(errors_come_in_the_order_of_the_file),
        CONFIG_TEST(many_errors_are_counted),
        CONFIG_TEST(a_cache_changes_nothing),
        CONFIG_TEST(a_cache_keeps_no_broken_text),
        CONFIG_TEST(every_shipped_model_device_and_cluster_loads),
        CONFIG_TEST(a_device_is_found_by_its_alias),
        CONFIG_TEST(models_may_be_inline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
