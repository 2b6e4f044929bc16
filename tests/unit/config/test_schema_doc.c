/* test_schema_doc.c - `describe` and the reference page name every key and its state. */
#include <string.h>

#include "config_fixture.h"
#include "stepsim/schema.h"

static void assert_says(const char *text, const char *part)
{
    if (!text || !strstr(text, part)) {
        print_error("\"%s\" is not in:\n%s\n", part, text ? text : "(nothing)");
        fail();
    }
}

static void a_key_is_described(void **state)
{
    struct config_fixture *fixture = *state;
    const char *text = schema_describe("parallel.cp.method", fixture->arena);
    assert_says(text, "parallel.cp.method: one of a few words");
    assert_says(text, "default: ring");
    assert_says(text, "ulysses");
    assert_says(schema_describe("parallel.cp.ulysses_size", fixture->arena),
                "only while parallel.cp.method is hybrid");
    assert_says(schema_describe("model.attention.head_dim", fixture->arena),
                "only while attention.kind is mha or gqa");
    assert_says(schema_describe("model.moe.top_k", fixture->arena),
                "only while moe.experts is above 0");
    assert_says(schema_describe("memory.reserve", fixture->arena), "such as 64 GiB");
    assert_says(schema_describe("cluster.levels.0.latency", fixture->arena), "us");
    assert_says(schema_describe("cluster.levels.latency", fixture->arena), "us");
}

static void a_section_is_described(void **state)
{
    struct config_fixture *fixture = *state;
    const char *text = schema_describe("parallel.cp", fixture->arena);
    assert_says(text, "parallel.cp: a section");
    assert_says(text, "ulysses_size");
    assert_says(text, "plain text in its place is size");
    assert_says(schema_describe("model.attention", fixture->arena), "kv_lora_rank");
    assert_says(schema_describe("cluster.levels", fixture->arena), "oversubscription");
    assert_says(schema_describe("model", fixture->arena), "hidden_size");
    static const char *const missing[] = {"", "nothing", "parallel.tq", "parallel.tp.x", "."};
    for (size_t i = 0; i < sizeof missing / sizeof missing[0]; i++)
        assert_null(schema_describe(missing[i], fixture->arena));
}

struct page {
    const char *text;
    struct arena *arena;
};

static void look_for_key(void *context, const char *key, const struct schema_row *row)
{
    const struct page *page = context;
    (void)key;
    assert_says(page->text, arena_printf(page->arena, "| `%s` |", row->key));
    for (uint32_t i = 0; i < row->choice_count; i++) {
        if (row->choices[i].name)
            assert_says(page->text, arena_printf(page->arena, "- `%s`: %s", row->choices[i].name,
                                                 row->choices[i].meaning));
    }
}

static void the_reference_names_everything(void **state)
{
    struct config_fixture *fixture = *state;
    struct page page = {schema_reference_markdown(fixture->arena), fixture->arena};
    schema_walk(look_for_key, &page);
    for (size_t i = 0; i < schema_refusal_count; i++)
        assert_says(page.text, schema_refusals[i].name);
    assert_says(page.text, "## Units");
    /* Every line of a table has the four bars that its head has, five of the markup. */
    for (const char *line = page.text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, "| `", 3) != 0)
            continue;
        size_t bars = 0;
        for (const char *c = line; *c && *c != '\n'; c++)
            bars += *c == '|' && (c == line || c[-1] != '\\');
        assert_true(bars == 5 || bars == 4);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CONFIG_TEST(a_key_is_described),
        CONFIG_TEST(a_section_is_described),
        CONFIG_TEST(the_reference_names_everything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
