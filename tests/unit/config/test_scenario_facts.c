/*
 * The numbers of hardware: all are listed, their intervals survive loading, an override takes
 * none from the file, and no assumed number is shipped without one.
 */
#include "config_fixture.h"
#include "stepsim/schema.h"

#define SHIPPED STEPSIM_SOURCE_DIR "/configs"

static uint32_t facts_of(const struct schema_table *table)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < table->row_count; i++)
        count += table->rows[i].kind == SCHEMA_FACT;
    return count;
}

/* The toy cluster has two levels. */
static void every_fact_is_listed_with_its_place(void **state)
{
    struct config_fixture *fixture = *state;
    const struct scenario *scenario = config_accept(fixture, TOY_SCENARIO, NULL);
    uint32_t count = 0;
    const struct scenario_fact *facts = scenario_facts(scenario, fixture->arena, &count);
    assert_int_equal(count, facts_of(&cluster_schema) + facts_of(&device_schema) +
                                2 * facts_of(&level_schema));
    for (uint32_t i = 0; i < count; i++) {
        double value = 0.0;
        assert_true(scenario_number(scenario, facts[i].key, &value));
        assert_close(facts[i].value, value, 0.0);
        memcpy(&value, (const char *)scenario + facts[i].offset, sizeof value);
        assert_close(facts[i].value, value, 0.0);
        assert_ptr_equal(facts[i].origin, scenario_origin(scenario, facts[i].key));
        assert_false(facts[i].origin->bounded);
    }
}

#define LATENCY "cluster.levels.cluster.latency"

static void intervals_are_in_si(void **state)
{
    struct config_fixture *fixture = *state;
    const struct scenario *scenario =
        config_accept(fixture, TOY_SCENARIO,
                      CONFIG_SETS(LATENCY "={value: 60 us, low: 0.03 ms, high: 70 us, source: a "
                                          "paper, grade: vendor}"));
    const struct origin *origin = scenario_origin(scenario, LATENCY);
    assert_true(origin->bounded);
    assert_close(origin->low, 30e-6, 0.0);
    assert_close(origin->high, 70e-6, 0.0);
    assert_int_equal(origin->grade, GRADE_VENDOR);
}

/* Both ends may be the value: nothing is left to assume. */
static void an_interval_may_be_a_point(void **state)
{
    struct config_fixture *fixture = *state;
    const struct scenario *scenario = config_accept(
        fixture, TOY_SCENARIO,
        CONFIG_SETS(LATENCY
                    "={value: 60 us, low: 60 us, high: 0.06 ms, source: x, grade: assumed}"));
    assert_true(scenario_origin(scenario, LATENCY)->bounded);
}

/* A number of the user is not inside an interval that the file gave to another. */
static void an_override_takes_no_interval_from_the_file(void **state)
{
    struct config_fixture *fixture = *state;
    static const char text[] =
        "model: toy_moe\n"
        "cluster:\n"
        "  base: toy\n"
        "  host_bandwidth: {value: 400 GB/s, low: 300 GB/s, high: 500 GB/s, source: x, grade: "
        "assumed}\n"
        "devices: 64\n"
        "parallel: {tp: 2, pp: 2, ep: 4, etp: 1}\n"
        "training: {seq_len: 4096, micro_batch_size: 1, global_batch_size: 64}\n";
    assert_true(
        scenario_origin(config_accept(fixture, text, NULL), "cluster.host_bandwidth")->bounded);
    static const char *const sets[] = {"cluster.host_bandwidth=900 GB/s",
                                       "cluster.host_bandwidth.value=900 GB/s"};
    for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++) {
        const struct scenario *scenario = config_accept(fixture, text, CONFIG_SETS(sets[i]));
        const struct origin *origin = scenario_origin(scenario, "cluster.host_bandwidth");
        assert_false(origin->bounded);
        assert_int_equal(origin->grade, GRADE_ASSUMED);
    }
    const struct scenario *scenario = config_accept(
        fixture, text,
        CONFIG_SETS("cluster.host_bandwidth={value: 900 GB/s, low: 800 GB/s, high: 1 TB/s}"));
    const struct origin *origin = scenario_origin(scenario, "cluster.host_bandwidth");
    assert_true(origin->bounded);
    assert_close(origin->high, 1e12, 0.0);
    assert_string_equal(origin->source, "--set");
}

/* The value of a fact and its source text say it all: an assumed one says how far it may be off. */
static void check_table(const struct schema_table *table, const struct origin *origins,
                        const char *file)
{
    for (uint32_t i = 0; i < table->row_count; i++) {
        if (table->rows[i].kind != SCHEMA_FACT || origins[i].grade != GRADE_ASSUMED)
            continue;
        if (!origins[i].bounded)
            print_error("%s: %s is assumed and has no low and high\n", file, table->rows[i].key);
        assert_true(origins[i].bounded);
    }
}

static void no_assumed_fact_is_shipped_without_interval(void **state)
{
    struct config_fixture *fixture = *state;
    struct arena *arena = fixture->arena;
    size_t count = 0;
    const char *const *names = scenario_config_names(SHIPPED, "devices", arena, &count);
    assert_true(count > 10);
    for (size_t i = 0; i < count; i++) {
        const struct device_spec *device =
            scenario_load_device(names[i], SHIPPED, arena, &fixture->errors);
        assert_non_null(device);
        check_table(&device_schema, device->origins, names[i]);
    }
    names = scenario_config_names(SHIPPED, "clusters", arena, &count);
    assert_true(count > 10);
    for (size_t i = 0; i < count; i++) {
        const struct cluster_spec *cluster =
            scenario_load_cluster(names[i], SHIPPED, arena, &fixture->errors);
        assert_non_null(cluster);
        check_table(&cluster_schema, cluster->origins, names[i]);
        for (uint32_t l = 0; l < cluster->level_count; l++)
            check_table(&level_schema, cluster->levels[l].origins, names[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CONFIG_TEST(every_fact_is_listed_with_its_place),
        CONFIG_TEST(intervals_are_in_si),
        CONFIG_TEST(an_interval_may_be_a_point),
        CONFIG_TEST(an_override_takes_no_interval_from_the_file),
        CONFIG_TEST(no_assumed_fact_is_shipped_without_interval),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
