/* test_schema_template.c - the template names every key, and loads. */
#include <string.h>

#include "config_fixture.h"
#include "stepsim/schema.h"

static void the_template_loads(void **state)
{
    struct config_fixture *fixture = *state;
    const struct scenario_source source = {.text = schema_template(fixture->arena),
                                           .text_name = "template.yaml",
                                           .config_dir = STEPSIM_SOURCE_DIR "/configs"};
    const struct scenario *scenario = scenario_load(&source, fixture->arena, &fixture->errors);
    assert_accepted(&fixture->errors);
    assert_non_null(scenario);
    assert_int_equal(scenario->parallel.tp, 8);
    /* Every default is written out, so nothing else is left to one. */
    assert_int_equal(scenario_origin(scenario, "memory.reserve")->kind, ORIGIN_FILE);
    assert_int_equal(scenario_origin(scenario, "moe.routing.seed")->kind, ORIGIN_FILE);
}

/* A line "key:" or "# key:" at the depth of each row. */
static void every_key_stands_in_it(void **state)
{
    struct config_fixture *fixture = *state;
    const char *text = schema_template(fixture->arena);
    for (uint32_t i = 0; i < scenario_schema.row_count; i++) {
        const char *key = scenario_schema.rows[i].key;
        const char *dot = strrchr(key, '.');
        const char *name = dot ? dot + 1 : key;
        assert_true(strstr(text, arena_printf(fixture->arena, "\n%s: ", name)) ||
                    strstr(text, arena_printf(fixture->arena, " %s: ", name)));
    }
}

static void lines_fit_a_page(void **state)
{
    struct config_fixture *fixture = *state;
    for (const char *line = schema_template(fixture->arena); *line;) {
        const size_t length = strcspn(line, "\n");
        assert_true(length <= 100);
        line += length + (line[length] == '\n');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CONFIG_TEST(the_template_loads),
        CONFIG_TEST(every_key_stands_in_it),
        CONFIG_TEST(lines_fit_a_page),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
