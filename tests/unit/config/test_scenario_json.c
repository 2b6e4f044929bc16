/* test_scenario_json.c - one question, one canonical text; and the dump with origins. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "config_fixture.h"
#include "stepsim/scenario.h"

static const char *hash(struct config_fixture *fixture, const char *text, const char *const *sets)
{
    return scenario_hash(config_accept(fixture, text, sets), fixture->arena);
}

/* Order, units, notation, defaults written out, anchors and overrides leave no trace. */
static void the_way_of_writing_does_not_matter(void **state)
{
    struct config_fixture *fixture = *state;
    const char *expected = hash(fixture, TOY_SCENARIO, NULL);
    assert_int_equal(strlen(expected), 32);
    const char *other = "x-b: &b {global_batch_size: 64, seq_len: 4096, micro_batch_size: 1}\n"
                        "memory: {reserve: 1024 MiB, logits_chunks: 1}\n"
                        "training: *b\n"
                        "title: The same question\n"
                        "parallel:\n"
                        "  etp: 1\n"
                        "  ep: 4\n"
                        "  cp: {size: 1, method: ring}\n"
                        "  pp: 2\n"
                        "  tp: 2\n"
                        "collectives: {buffer: 0.2 GB}\n"
                        "devices: 64\n"
                        "cluster: toy\n"
                        "model: {base: toy_moe, title: Another name}\n";
    assert_string_equal(hash(fixture, other, NULL), expected);
    assert_string_equal(hash(fixture, TOY_SCENARIO, CONFIG_SETS("parallel.tp=2", "devices=64")),
                        expected);
    assert_string_equal(
        hash(fixture, TOY_SCENARIO, CONFIG_SETS("cluster.levels.0.latency=0.04 ms")), expected);
}

static void every_answer_matters(void **state)
{
    struct config_fixture *fixture = *state;
    const char *expected = hash(fixture, TOY_SCENARIO, NULL);
    static const char *const changes[] = {
        "parallel.tp=4",
        "model.layers=9",
        "cluster.device.cores=21",
        "cluster.levels.1.latency=61 us",
        "seed=2",
        "memory.reserve=1 GB",
        "parallel.stages=even",
        "schedule.p2p=blocking",
        "recompute.modules=[norm]",
        "cluster.collectives=nccl",
        "parallel.dp=16",
        "training.tokens=1T",
    };
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++)
        assert_string_not_equal(hash(fixture, TOY_SCENARIO, CONFIG_SETS(changes[i])), expected);
}

static void canonical_text_is_sorted_and_short(void **state)
{
    struct config_fixture *fixture = *state;
    const struct scenario *s =
        config_accept(fixture, TOY_SCENARIO,
                      CONFIG_SETS("seed=18446744073709551615", "parallel.order=\"a\\\"b\\\\c\"",
                                  "cluster.device.hbm_efficiency=0.1"));
    const char *text = scenario_canonical(s, fixture->arena);
    assert_int_equal(strncmp(text, "{\"cluster\":{\"collectives\":\"hccl_a2\",\"device\":{", 46),
                     0);
    assert_non_null(
        strstr(text, "\"parallel\":{\"cp\":{\"method\":\"ring\",\"size\":1},\"dp\":\"derived\""));
    assert_non_null(strstr(text, "\"hbm_efficiency\":0.1,")); /* not 0.10000000000000001 */
    assert_non_null(strstr(text, "\"hbm_bandwidth\":1600000000000,"));
    assert_non_null(strstr(text, "\"seed\":\"18446744073709551615\"")); /* a double would round */
    assert_non_null(strstr(text, "\"order\":\"a\\\"b\\\\c\""));
    assert_non_null(strstr(text, "\"size\":\"all\""));
    assert_null(strchr(text, '\n'));
    assert_null(strstr(text, "Toy")); /* no labels */
    assert_null(strstr(text, "made up"));
    /* It is JSON. */
    cJSON *parsed = cJSON_Parse(text);
    assert_non_null(parsed);
    cJSON_Delete(parsed);
}

static void the_hash_is_xxh3_of_the_text(void **state)
{
    struct config_fixture *fixture = *state;
    const struct scenario *s = config_accept(fixture, TOY_SCENARIO, NULL);
    const char *text = scenario_canonical(s, fixture->arena);
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits(text, strlen(text)));
    char expected[33];
    for (size_t i = 0; i < 16; i++)
        snprintf(expected + 2 * i, 3, "%02x", canonical.digest[i]);
    assert_string_equal(scenario_hash(s, fixture->arena), expected);
}

static const cJSON *get(const cJSON *object, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    if (!item)
        print_error("no %s\n", key);
    assert_non_null(item);
    return item;
}

static void the_dump_tells_origins(void **state)
{
    const struct scenario *s = config_accept(
        *state, TOY_SCENARIO, CONFIG_SETS("parallel.pp=4", "cluster.device.cores=24"));
    cJSON *root = scenario_json(s, true);
    const cJSON *parallel = get(root, "parallel");
    const cJSON *tp = get(parallel, "tp");
    assert_int_equal(get(tp, "value")->valueint, 2);
    assert_string_equal(get(tp, "origin")->valuestring, "file");
    assert_string_equal(get(tp, "at")->valuestring, "toy.yaml:4:16");
    assert_string_equal(get(get(parallel, "pp"), "origin")->valuestring, "set");
    assert_string_equal(get(get(parallel, "vpp"), "origin")->valuestring, "default");
    assert_string_equal(get(get(root, "model"), "name")->valuestring, "toy_moe");
    const cJSON *device = get(get(root, "cluster"), "device");
    const cJSON *peak = get(device, "peak");
    assert_close(get(peak, "value")->valuedouble, 300e12, 0.0);
    assert_string_equal(get(peak, "unit")->valuestring, "FLOP/s");
    assert_string_equal(get(peak, "source")->valuestring, "made up for tests");
    assert_string_equal(get(peak, "grade")->valuestring, "assumed");
    assert_string_equal(get(get(device, "cores"), "source")->valuestring, "--set");
    const cJSON *level = cJSON_GetArrayItem(get(get(root, "cluster"), "levels"), 1);
    assert_string_equal(get(get(level, "name"), "value")->valuestring, "cluster");
    assert_null(cJSON_GetObjectItemCaseSensitive(get(root, "training"), "tokens"));
    cJSON_Delete(root);
}

/* Every plain value of the dump is the value of the canonical form. */
static void plain_values_have_no_origins(void **state)
{
    const struct scenario *s = config_accept(*state, TOY_SCENARIO, NULL);
    cJSON *root = scenario_json(s, false);
    assert_int_equal(get(get(root, "parallel"), "tp")->valueint, 2);
    assert_close(get(get(get(root, "cluster"), "device"), "peak")->valuedouble, 300e12, 0.0);
    assert_null(cJSON_GetObjectItemCaseSensitive(get(root, "model"), "title"));
    assert_null(cJSON_GetObjectItemCaseSensitive(get(root, "model"), "published"));
    cJSON_Delete(root);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CONFIG_TEST(the_way_of_writing_does_not_matter),
        CONFIG_TEST(every_answer_matters),
        CONFIG_TEST(canonical_text_is_sorted_and_short),
        CONFIG_TEST(the_hash_is_xxh3_of_the_text),
        CONFIG_TEST(the_dump_tells_origins),
        CONFIG_TEST(plain_values_have_no_origins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
