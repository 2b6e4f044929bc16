/* test_schema.c - the tables keep their own rules, and keys are found in them. */
#include "stepsim/schema.h"

#include <stdio.h>
#include <string.h>

#include "config_fixture.h"

/* Applies a check to every row of every table, those of list items included. */
typedef void row_check(const struct schema_table *table, uint32_t index);

static void check_table(const struct schema_table *table, row_check *check)
{
    for (uint32_t i = 0; i < table->row_count; i++) {
        check(table, i);
        if (table->rows[i].kind == SCHEMA_ITEMS)
            check_table(table->rows[i].items, check);
    }
}

static void check_all(row_check *check)
{
    for (size_t i = 0; i < schema_table_count(); i++)
        check_table(schema_table_at(i), check);
}

static const struct schema_row *find_row(const struct schema_table *table, const char *key)
{
    for (uint32_t i = 0; i < table->row_count; i++) {
        if (strcmp(table->rows[i].key, key) == 0)
            return &table->rows[i];
    }
    return NULL;
}

static void check_key(const struct schema_table *table, uint32_t index)
{
    const struct schema_row *row = &table->rows[index];
    assert_ptr_equal(find_row(table, row->key), row); /* no key twice */
    for (const char *c = row->key; *c; c++)
        assert_non_null(strchr("abcdefghijklmnopqrstuvwxyz0123456789_.", *c));
    assert_true(row->offset < table->struct_size);
    const size_t length = strlen(row->meaning);
    assert_true(length > 5 && row->meaning[length - 1] == '.');
}

/* Rule 1: rows of one section stand together. */
static void check_section(const struct schema_table *table, uint32_t index)
{
    const char *key = table->rows[index].key;
    for (const char *dot = strchr(key, '.'); dot; dot = strchr(dot + 1, '.')) {
        const size_t length = (size_t)(dot - key) + 1;
        bool left = false;
        for (uint32_t i = index + 1; i < table->row_count; i++) {
            const bool inside = strncmp(table->rows[i].key, key, length) == 0;
            assert_false(left && inside);
            left = left || !inside;
        }
    }
}

/* Rule 2: what steers a row is a row of the table, and read before it. */
static void check_links(const struct schema_table *table, uint32_t index)
{
    const struct schema_row *row = &table->rows[index];
    if (row->when.key) {
        const struct schema_row *steering = find_row(table, row->when.key);
        assert_non_null(steering);
        assert_true(steering < row);
        assert_true(row->when.mask != 0);
    }
    if (row->implies.key) {
        const struct schema_row *target = find_row(table, row->implies.key);
        assert_non_null(target);
        assert_true(row->implies.index < target->choice_count);
        /* The row applies while the value is the implied one. */
        assert_string_equal(row->when.key, row->implies.key);
        assert_int_equal(row->when.mask, 1u << row->implies.index);
    }
}

static void check_kind(const struct schema_table *table, uint32_t index)
{
    const struct schema_row *row = &table->rows[index];
    const bool quantity = row->kind == SCHEMA_QUANTITY || row->kind == SCHEMA_FACT;
    const bool chosen =
        row->kind == SCHEMA_WORD || row->kind == SCHEMA_CHOICE || row->kind == SCHEMA_SWITCH;
    const bool counted = row->kind == SCHEMA_UINT_LIST || row->kind == SCHEMA_STRING_LIST ||
                         row->kind == SCHEMA_ITEMS || row->kind == SCHEMA_LEVELS;
    assert_int_equal(quantity, row->dimension != DIMENSION_NONE);
    assert_true(!chosen || row->choice_count > 0);
    assert_true(row->kind != SCHEMA_SWITCH || row->choice_count == 2);
    assert_int_equal(counted, row->count_offset != 0);
    assert_true(!(quantity || row->kind == SCHEMA_UINT) || row->minimum < row->maximum);
    assert_true(row->kind != SCHEMA_UINT || row->maximum <= UINT32_MAX);
    assert_true(row->choice_count <= 32);
    for (uint32_t i = 0; i < row->choice_count; i++) {
        if (row->choices[i].name)
            assert_true(strlen(row->choices[i].meaning) > 3);
    }
}

/* A default is never a value that is refused; required rows have none. */
static void check_default(const struct schema_table *table, uint32_t index)
{
    const struct schema_row *row = &table->rows[index];
    const bool required = (row->flags & SCHEMA_REQUIRED) != 0;
    assert_false(required && row->fallback);
    assert_true(!required || row->example || row->kind == SCHEMA_FACT ||
                row->kind == SCHEMA_LEVELS);
    assert_true(row->fallback || row->example || required || row->kind == SCHEMA_FACT);
    for (uint32_t i = 0; row->fallback && i < row->choice_count; i++) {
        if (row->choices[i].name && strcmp(row->choices[i].name, row->fallback) == 0)
            assert_null(row->choices[i].pending);
    }
    assert_true(!row->pending || row->fallback);
}

static void tables_keep_their_rules(void **state)
{
    (void)state;
    check_all(check_key);
    check_all(check_section);
    check_all(check_links);
    check_all(check_kind);
    check_all(check_default);
}

static void sections_have_rows(void **state)
{
    (void)state;
    for (size_t t = 0; t < schema_table_count(); t++) {
        const struct schema_table *table = schema_table_at(t);
        for (uint32_t i = 0; i < table->section_count; i++) {
            const char *key = table->sections[i].key;
            const size_t length = strlen(key);
            bool found = false;
            for (uint32_t r = 0; r < table->row_count; r++)
                found = found || (strncmp(table->rows[r].key, key, length) == 0 &&
                                  table->rows[r].key[length] == '.');
            assert_true(found);
        }
    }
}

/* A name that is refused must not be a key. */
static void refusals_are_no_keys(void **state)
{
    struct config_fixture *fixture = *state;
    for (size_t i = 0; i < schema_refusal_count; i++) {
        const struct schema_refusal *refusal = &schema_refusals[i];
        assert_true(refusal->code == ERROR_not_supported ||
                    refusal->code == ERROR_not_yet_modelled || refusal->code == ERROR_unknown_key);
        assert_null(schema_find(refusal->name));
        for (size_t k = i + 1; k < schema_refusal_count; k++)
            assert_string_not_equal(refusal->name, schema_refusals[k].name);
        const char *set = arena_printf(fixture->arena, "parallel.%s=1", refusal->name);
        error_list_init(&fixture->errors, fixture->arena);
        assert_null(config_load(fixture, TOY_SCENARIO, CONFIG_SETS(set)));
        assert_int_equal(fixture->errors.count, 1);
        /* reuse_fp32_param and the like are keys of other sections. */
        assert_int_equal(fixture->errors.items[0].code, refusal->code);
    }
}

/* Every pending choice and switch is refused with its reason, and nothing else about it. */
static void refuse_pending(void *context, const char *key, const struct schema_row *row)
{
    struct config_fixture *fixture = context;
    for (uint32_t i = 0; i < row->choice_count; i++) {
        const struct schema_choice *choice = &row->choices[i];
        if (!choice->name || !choice->pending || row->kind == SCHEMA_SET)
            continue;
        const char *set = arena_printf(fixture->arena, "%s=%s", key, choice->name);
        error_list_init(&fixture->errors, fixture->arena);
        assert_null(config_load(fixture, TOY_SCENARIO, CONFIG_SETS(set)));
        assert_int_equal(fixture->errors.count, 1);
        assert_refused(&fixture->errors, ERROR_not_yet_modelled, choice->pending);
        assert_string_equal(fixture->errors.items[0].key, key);
    }
    if (!row->pending)
        return;
    const char *value = row->kind == SCHEMA_BOOL    ? "true"
                        : row->kind == SCHEMA_SET   ? "[norm]"
                        : row->kind == SCHEMA_ITEMS ? "[{rank: 1, factor: 1.5}]"
                                                    : "0.5";
    const char *set = arena_printf(fixture->arena, "%s=%s", key, value);
    error_list_init(&fixture->errors, fixture->arena);
    assert_null(config_load(fixture, TOY_SCENARIO, CONFIG_SETS(set)));
    assert_int_equal(fixture->errors.count, 1);
    assert_refused(&fixture->errors, ERROR_not_yet_modelled, row->pending);
    /* Its idle value is accepted. */
    error_list_init(&fixture->errors, fixture->arena);
    const char *idle = arena_printf(fixture->arena, "%s=%s", key, row->fallback);
    (void)config_accept(fixture, TOY_SCENARIO, CONFIG_SETS(idle));
}

static void pending_values_are_refused_by_name(void **state)
{
    schema_walk(refuse_pending, *state);
}

static void keys_are_found(void **state)
{
    (void)state;
    static const char *const there[] = {
        "parallel.tp",
        "parallel.cp",
        "parallel.cp.size",
        "model",
        "model.layers",
        "cluster.levels",
        "cluster.device",
        "cluster.device.cores",
        "cluster.levels.0.nics",
        "cluster.levels.N.latency",
        "cluster.levels.node.latency",
        "noise.slow_ranks.3.factor",
        "moe.routing",
        "network",
    };
    for (size_t i = 0; i < sizeof there / sizeof there[0]; i++)
        assert_non_null(schema_find(there[i]));
    assert_string_equal(schema_find("parallel.cp")->key, "parallel.cp.size");
    assert_string_equal(schema_find("cluster.levels.0.latency")->key, "latency");
    static const char *const missing[] = {
        "",  "parallel",  "parallel.tq", "parallel.tp.x", "tp", "model.layers.x", "level.latency",
        ".", "parallel.",
    };
    for (size_t i = 0; i < sizeof missing / sizeof missing[0]; i++)
        assert_null(schema_find(missing[i]));
}

static void slips_are_understood(void **state)
{
    struct config_fixture *fixture = *state;
    struct arena *arena = fixture->arena;
    assert_string_equal(schema_nearest("paralell.tp", arena), "parallel.tp");
    assert_string_equal(schema_nearest("global_bacth_size", arena), "training.global_batch_size");
    assert_string_equal(schema_nearest("kv_lora_rnak", arena), "model.attention.kv_lora_rank");
    assert_null(schema_nearest("zzzzzzzz", arena));
    char *longer = arena_alloc(arena, 100001);
    memset(longer, 'a', 100000);
    assert_null(schema_nearest(longer, arena));
}

static void count_row(void *context, const char *key, const struct schema_row *row)
{
    size_t *count = context;
    assert_true(strlen(key) > 0 && row->key);
    (*count)++;
}

static void the_walk_visits_every_row(void **state)
{
    (void)state;
    size_t count = 0;
    size_t expected = 7; /* rank and factor; level, rank and factor; part and speed */
    schema_walk(count_row, &count);
    for (size_t i = 0; i < schema_table_count(); i++)
        expected += schema_table_at(i)->row_count;
    assert_int_equal(count, expected);
}

static void words_about_rows(void **state)
{
    struct config_fixture *fixture = *state;
    struct arena *arena = fixture->arena;
    assert_string_equal(schema_range(schema_find("parallel.zero"), arena), "0 to 3");
    assert_string_equal(schema_range(schema_find("cluster.levels.0.size"), arena),
                        "1 to 1048576, or all");
    assert_string_equal(schema_range(schema_find("network"), arena), "");
    assert_string_equal(schema_choice_names(schema_find("parallel.cp.method"), true, arena),
                        "ring, ulysses, hybrid");
    assert_string_equal(schema_kind_noun(schema_find("devices")), "a whole number");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CONFIG_TEST(tables_keep_their_rules),
        CONFIG_TEST(sections_have_rows),
        CONFIG_TEST(refusals_are_no_keys),
        CONFIG_TEST(pending_values_are_refused_by_name),
        CONFIG_TEST(keys_are_found),
        CONFIG_TEST(slips_are_understood),
        CONFIG_TEST(the_walk_visits_every_row),
        CONFIG_TEST(words_about_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
