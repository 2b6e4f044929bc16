/* test_scenario_lookup.c - origin, place, text and number of a key. */
#include <string.h>

#include "config_fixture.h"
#include "stepsim/scenario.h"
#include "stepsim/schema.h"

static void assert_place(struct location at, const char *file, uint32_t line, uint32_t column)
{
    assert_non_null(at.file);
    const char *slash = strrchr(at.file, '/');
    assert_string_equal(slash ? slash + 1 : at.file, file);
    assert_int_equal(at.line, line);
    assert_int_equal(at.column, column);
}

static void origins_tell_who_wrote_a_value(void **state)
{
    const struct scenario *s =
        config_accept(*state, TOY_SCENARIO, CONFIG_SETS("parallel.pp=4", "parallel.cp=2"));
    assert_int_equal(scenario_origin(s, "parallel.tp")->kind, ORIGIN_FILE);
    assert_int_equal(scenario_origin(s, "parallel.pp")->kind, ORIGIN_SET);
    assert_int_equal(scenario_origin(s, "parallel.vpp")->kind, ORIGIN_DEFAULT);
    assert_int_equal(scenario_origin(s, "training.tokens")->kind, ORIGIN_ABSENT);
    assert_int_equal(scenario_origin(s, "model.layers")->kind, ORIGIN_FILE);
    assert_int_equal(scenario_origin(s, "model")->kind, ORIGIN_FILE);
    const struct origin *latency = scenario_origin(s, "cluster.levels.0.latency");
    assert_int_equal(latency->grade, GRADE_ASSUMED);
    assert_string_equal(latency->source, "made up for tests");
    assert_ptr_equal(latency, scenario_origin(s, "cluster.levels.node.latency"));
    assert_int_equal(scenario_origin(s, "cluster.levels.0.efficiency")->grade, GRADE_MEASURED);
    assert_int_equal(scenario_origin(s, "cluster.levels.0.bandwidth")->grade, GRADE_VENDOR);
    assert_int_equal(scenario_origin(s, "cluster.levels.0.alltoall_efficiency")->grade,
                     GRADE_FITTED);
    assert_int_equal(scenario_origin(s, "parallel.tp")->grade, GRADE_NONE);
    /* A section is its shorthand. */
    assert_ptr_equal(scenario_origin(s, "parallel.cp"), scenario_origin(s, "parallel.cp.size"));
}

static void no_origin_without_a_key(void **state)
{
    const struct scenario *s = config_accept(*state, TOY_SCENARIO, NULL);
    static const char *const keys[] = {
        "",
        "parallel",
        "parallel.tq",
        "parallel.tp.x",
        "cluster.levels.2.latency",
        "cluster.levels.0",
        "cluster.levels.nowhere.latency",
        "cluster.device.cores.value",
        "modell.layers",
        "parallel..tp",
        "cluster.levels.99999999999999999999.latency",
    };
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        assert_null(scenario_origin(s, keys[i]));
}

static void places_are_those_of_the_values(void **state)
{
    const struct scenario *s = config_accept(*state, TOY_SCENARIO, CONFIG_SETS("parallel.pp=4"));
    assert_place(scenario_at(s, "devices"), "toy.yaml", 3, 10);
    assert_place(scenario_at(s, "parallel.tp"), "toy.yaml", 4, 16);
    assert_place(scenario_at(s, "model.hidden_size"), "toy_moe.yaml", 4, 14);
    assert_place(scenario_at(s, "cluster.levels.1.size"), "toy.yaml", 18, 11);
    /* Nobody wrote these in a file. */
    assert_place(scenario_at(s, "parallel.pp"), "toy.yaml", 0, 0);
    assert_place(scenario_at(s, "parallel.vpp"), "toy.yaml", 0, 0);
    assert_place(scenario_at(s, "no.such.key"), "toy.yaml", 0, 0);
}

static void assert_text(const struct scenario *s, struct arena *arena, const char *key,
                        const char *expected)
{
    const char *text = scenario_value_text(s, key, arena);
    assert_non_null(text);
    assert_string_equal(text, expected);
}

static void values_as_text_and_number(void **state)
{
    struct config_fixture *fixture = *state;
    struct arena *arena = fixture->arena;
    const struct scenario *s = config_accept(
        fixture, TOY_SCENARIO,
        CONFIG_SETS("recompute.modules=[layer, norm]", "parallel.stages.layers=[5, 3]"));
    assert_text(s, arena, "parallel.tp", "2");
    assert_text(s, arena, "parallel.dp", "derived");
    assert_text(s, arena, "parallel.stages.split", "layers");
    assert_text(s, arena, "parallel.stages.layers", "[5, 3]");
    assert_text(s, arena, "recompute.modules", "[norm, layer]"); /* in the order of the bits */
    assert_text(s, arena, "parallel.sequence_parallel", "true");
    assert_text(s, arena, "schedule.p2p", "overlapped");
    assert_text(s, arena, "schedule.kind", "1f1b");
    assert_text(s, arena, "cluster.levels.1.size", "all");
    assert_text(s, arena, "cluster.levels.0.latency", "4e-05");
    assert_text(s, arena, "model.title", "Toy MoE");
    assert_null(scenario_value_text(s, "training.tokens", arena));
    assert_null(scenario_value_text(s, "cluster.levels", arena));
    double value = 0.0;
    assert_true(scenario_number(s, "cluster.device.hbm_bandwidth", &value));
    assert_close(value, 1.6e12, 0.0);
    assert_true(scenario_number(s, "parallel.sequence_parallel", &value));
    assert_close(value, 1.0, 0.0);
    assert_true(scenario_number(s, "model.moe.experts", &value));
    assert_close(value, 16.0, 0.0);
    assert_false(scenario_number(s, "schedule.kind", &value));
    assert_false(scenario_number(s, "training.tokens", &value));
    assert_false(scenario_number(s, "no.such.key", &value));
}

struct walk {
    const struct scenario *scenario;
    struct arena *arena;
    size_t rows;
};

/* Every key that the tables know can be looked up. */
static void look_up(void *context, const char *key, const struct schema_row *row)
{
    struct walk *walk = context;
    (void)row;
    const bool list = strncmp(key, "noise.slow_", 11) == 0 || strncmp(key, "faults.", 7) == 0;
    if (list && strstr(key, ".N."))
        return; /* an empty list */
    char *path = arena_strdup(walk->arena, key);
    char *index = strstr(path, ".N.");
    if (index)
        index[1] = '1';
    assert_non_null(scenario_origin(walk->scenario, path));
    walk->rows++;
}

static void every_key_has_an_origin(void **state)
{
    struct config_fixture *fixture = *state;
    struct walk walk = {.scenario = config_accept(fixture, TOY_SCENARIO, NULL),
                        .arena = fixture->arena};
    schema_walk(look_up, &walk);
    assert_true(walk.rows > 150);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CONFIG_TEST(origins_tell_who_wrote_a_value), CONFIG_TEST(no_origin_without_a_key),
        CONFIG_TEST(places_are_those_of_the_values), CONFIG_TEST(values_as_text_and_number),
        CONFIG_TEST(every_key_has_an_origin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
