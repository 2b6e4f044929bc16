/* test_yaml_tree.c - nodes with positions, aliases, merge keys, and every limit from both sides. */
#include "stepsim/yaml_tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "assert_refused.h"
#include "stepsim/text.h"

struct bench {
    struct arena *arena;
    struct error_list errors;
};

static int set_up(void **state)
{
    struct bench *bench = calloc(1, sizeof *bench);
    assert_non_null(bench);
    bench->arena = arena_create("test");
    error_list_init(&bench->errors, bench->arena);
    *state = bench;
    return 0;
}

static int tear_down(void **state)
{
    struct bench *bench = *state;
    arena_destroy(bench->arena);
    free(bench);
    return 0;
}

static const struct yaml_tree *parse(struct bench *bench, const char *text)
{
    return yaml_tree_parse(text, strlen(text), "t.yaml", bench->arena, &bench->errors);
}

static const struct yaml_tree *at(const struct yaml_tree *map, const char *key)
{
    const struct yaml_tree *value = yaml_tree_get(map, key);
    assert_non_null(value);
    return value;
}

static void assert_place(const struct location at, uint32_t line, uint32_t column)
{
    assert_string_equal(at.file, "t.yaml");
    assert_int_equal(at.line, line);
    assert_int_equal(at.column, column);
}

static void nodes_know_where_they_stand(void **state)
{
    const struct yaml_tree *root = parse(*state, "a: 1\n"
                                                 "b:\n"
                                                 "  - x y\n"
                                                 "  - {c: \"2\", d: ~}\n"
                                                 "\xc3\xa9\xc3\xa9: z\n");
    assert_non_null(root);
    assert_int_equal(root->kind, YAML_TREE_MAP);
    assert_int_equal(root->count, 3);
    assert_place(root->entries[1].at, 2, 1);
    assert_place(at(root, "a")->at, 1, 4);
    const struct yaml_tree *list = at(root, "b");
    assert_int_equal(list->kind, YAML_TREE_LIST);
    assert_place(list->at, 3, 3);
    assert_string_equal(list->items[0]->text, "x y");
    assert_true(list->items[0]->plain);
    const struct yaml_tree *map = list->items[1];
    assert_place(map->at, 4, 5);
    assert_false(at(map, "c")->plain);
    assert_place(at(map, "c")->at, 4, 9);
    assert_true(yaml_tree_is_null(at(map, "d")));
    /* Columns count characters, not bytes. */
    assert_place(at(root, "\xc3\xa9\xc3\xa9")->at, 5, 5);
    assert_null(yaml_tree_get(root, "z"));
}

static void scalars_keep_their_text(void **state)
{
    const struct yaml_tree *root = parse(*state, "[017, no, 1_000, 12:30, .nan, '', null]");
    static const char *const texts[] = {"017", "no", "1_000", "12:30", ".nan", "", "null"};
    for (size_t i = 0; i < 7; i++)
        assert_string_equal(root->items[i]->text, texts[i]);
    assert_false(yaml_tree_is_null(root->items[5])); /* quoted */
    assert_true(yaml_tree_is_null(root->items[6]));
}

/* No child was ever pushed: the stack of children does not exist yet. */
static void roots_may_be_empty(void **state)
{
    const struct yaml_tree *root = parse(*state, "{}");
    assert_int_equal(root->kind, YAML_TREE_MAP);
    assert_int_equal(root->count, 0);
    root = parse(*state, "[]");
    assert_int_equal(root->kind, YAML_TREE_LIST);
    assert_int_equal(root->count, 0);
    assert_int_equal(parse(*state, "- {}\n- []\n")->count, 2);
}

static void aliases_share_their_target(void **state)
{
    const struct yaml_tree *root = parse(*state, "a: &x {k: 1}\nb: *x\nc: &x 2\nd: *x\n");
    assert_ptr_equal(at(root, "a"), at(root, "b"));
    assert_string_equal(at(root, "d")->text, "2"); /* the latest anchor of a name */
}

/* Own keys win, then the earlier map of a list; merged ones follow in their order. */
static void merge_keys_are_resolved(void **state)
{
    struct bench *bench = *state;
    const struct yaml_tree *root = parse(bench, "x: &x {a: 1, b: 1}\n"
                                                "y: &y {b: 2, c: 2}\n"
                                                "one: {<<: *x, b: 0}\n"
                                                "two: {<<: [*y, *x], d: 0}\n"
                                                "text: {\"<<\": 5}\n");
    assert_accepted(&bench->errors);
    const struct yaml_tree *one = at(root, "one");
    assert_int_equal(one->count, 2);
    assert_string_equal(at(one, "a")->text, "1");
    assert_string_equal(at(one, "b")->text, "0");
    const struct yaml_tree *two = at(root, "two");
    assert_int_equal(two->count, 4);
    assert_string_equal(two->entries[0].key, "d");
    assert_string_equal(at(two, "a")->text, "1");
    assert_string_equal(at(two, "b")->text, "2");
    assert_string_equal(at(two, "c")->text, "2");
    assert_string_equal(at(at(root, "text"), "<<")->text, "5"); /* quoted: an ordinary key */
}

static void duplicates_are_errors_and_parsing_goes_on(void **state)
{
    struct bench *bench = *state;
    const struct yaml_tree *root = parse(bench, "a: 1\nb: {c: 1, c: 2}\na: 3\n");
    assert_non_null(root);
    assert_int_equal(bench->errors.count, 2);
    assert_int_equal(bench->errors.items[0].code, ERROR_yaml_duplicate_key);
    assert_place(bench->errors.items[0].at, 2, 11);
    assert_place(bench->errors.items[1].at, 3, 1);
    assert_string_equal(at(root, "a")->text, "1");
}

/* Text of `count` copies of a part. */
static char *repeat(struct bench *bench, const char *part, size_t count)
{
    const size_t length = strlen(part);
    char *text = arena_alloc(bench->arena, length * count + 1);
    for (size_t i = 0; i < count; i++)
        memcpy(text + i * length, part, length);
    return text;
}

static void sixty_four_levels_and_no_more(void **state)
{
    struct bench *bench = *state;
    const char *open = repeat(bench, "[", 64);
    const char *close = repeat(bench, "]", 64);
    assert_non_null(parse(bench, arena_printf(bench->arena, "%s%s", open, close)));
    assert_null(parse(bench, arena_printf(bench->arena, "[%s%s]", open, close)));
    assert_refused(&bench->errors, ERROR_yaml_limit, "64 levels");
    /* A file of 200,000 levels costs no more than the first 64. */
    const clock_t start = clock();
    assert_null(parse(bench, repeat(bench, "[", 200000)));
    assert_null(parse(bench, repeat(bench, "{a: ", 200000)));
    assert_null(parse(bench, repeat(bench, "- ", 200000)));
    assert_true(clock() - start < 2 * CLOCKS_PER_SEC);
}

static void sixteen_mebibytes_and_no_more(void **state)
{
    struct bench *bench = *state;
    const size_t most = (size_t)16 * 1024 * 1024;
    char *text = repeat(bench, " ", most + 1);
    text[0] = 'a';
    assert_non_null(yaml_tree_parse(text, most, "t.yaml", bench->arena, &bench->errors));
    assert_null(yaml_tree_parse(text, most + 1, "t.yaml", bench->arena, &bench->errors));
    assert_refused(&bench->errors, ERROR_yaml_limit, "16 MiB");
}

static void more_than_a_million_events_are_refused(void **state)
{
    struct bench *bench = *state;
    assert_null(parse(bench, arena_printf(bench->arena, "[%s]", repeat(bench, "a,", 1000000))));
    assert_refused(&bench->errors, ERROR_yaml_limit, "events");
}

static void ten_thousand_aliases_and_no_more(void **state)
{
    struct bench *bench = *state;
    assert_non_null(
        parse(bench, arena_printf(bench->arena, "- &a b\n%s", repeat(bench, "- *a\n", 10000))));
    assert_null(
        parse(bench, arena_printf(bench->arena, "- &a b\n%s", repeat(bench, "- *a\n", 10001))));
    assert_refused(&bench->errors, ERROR_yaml_limit, "aliases");
    assert_null(parse(bench, repeat(bench, "- &a b\n", 10001)));
    assert_refused(&bench->errors, ERROR_yaml_limit, "anchors");
}

/* Nine levels of nine aliases are 4e8 nodes; they are refused before anybody walks them. */
static void alias_bombs_are_refused(void **state)
{
    struct bench *bench = *state;
    struct text text = {0};
    text_add(&text, "a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
    for (int i = 1; i < 10; i++) {
        text_add(&text, "a%d: &a%d [", i, i);
        for (int k = 0; k < 9; k++)
            text_add(&text, "*a%d, ", i - 1);
        text_add(&text, "]\n");
    }
    const clock_t start = clock();
    assert_null(parse(bench, text_string(&text)));
    assert_refused(&bench->errors, ERROR_yaml_limit, "nodes");
    assert_true(clock() - start < CLOCKS_PER_SEC);
    text_free(&text);
}

/* 9,000 maps that each merge a map of 1,000 keys would copy 9 million entries. */
static void merge_bombs_are_refused(void **state)
{
    struct bench *bench = *state;
    struct text text = {0};
    text_add(&text, "x: &x {");
    for (int i = 0; i < 1000; i++)
        text_add(&text, "k%d: v, ", i);
    text_add(&text, "}\ny:\n");
    for (int i = 0; i < 9000; i++)
        text_add(&text, "  - {<<: *x}\n");
    const clock_t start = clock();
    assert_null(parse(bench, text_string(&text)));
    assert_refused(&bench->errors, ERROR_yaml_limit, "merge keys");
    assert_true(clock() - start < 2 * CLOCKS_PER_SEC);
    text_free(&text);
}

/* Duplicates among many keys are found in n log n. */
static void large_maps_are_cheap(void **state)
{
    struct bench *bench = *state;
    struct text text = {0};
    for (int i = 0; i < 50000; i++)
        text_add(&text, "k%d: v\n", i);
    text_add(&text, "k77: v\n");
    const clock_t start = clock();
    const struct yaml_tree *root = parse(bench, text_string(&text));
    assert_true(clock() - start < 10 * CLOCKS_PER_SEC);
    assert_int_equal(root->count, 50000);
    assert_string_equal(root->entries[49999].key, "k49999"); /* order kept */
    assert_int_equal(bench->errors.count, 1);
    assert_place(bench->errors.items[0].at, 50001, 1);
    text_free(&text);
}

static void overrides_have_no_place(void **state)
{
    struct bench *bench = *state;
    const struct yaml_tree *node =
        yaml_tree_parse_override("[1, {a: b}]", "k", bench->arena, &bench->errors);
    assert_int_equal(node->kind, YAML_TREE_LIST);
    assert_int_equal(node->items[1]->writer, YAML_TREE_OVERRIDE);
    assert_null(node->at.file);
    assert_int_equal(node->at.line, 0);
    node = yaml_tree_parse_override("196 GB/s", "k", bench->arena, &bench->errors);
    assert_string_equal(node->text, "196 GB/s");
    static const char *const nulls[] = {"", "~", "null"};
    for (size_t i = 0; i < 3; i++)
        assert_true(yaml_tree_is_null(
            yaml_tree_parse_override(nulls[i], "k", bench->arena, &bench->errors)));
    assert_accepted(&bench->errors);
    assert_null(yaml_tree_parse_override("[1", "k", bench->arena, &bench->errors));
    assert_string_equal(bench->errors.items[0].key, "k");
}

/* The short way for plain values gives what the parser gives. */
static void simple_overrides_equal_parsed_ones(void **state)
{
    struct bench *bench = *state;
    static const char *const texts[] = {"8",    "tp-cp-ep-dp-pp", "1.5e3", "35 %",  "a b",
                                        "true", "3 us",           "a/b.c", "x - y", "0x10"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const struct yaml_tree *simple =
            yaml_tree_parse_override(texts[i], "k", bench->arena, &bench->errors);
        const struct yaml_tree *parsed = parse(bench, texts[i]);
        assert_int_equal(simple->kind, parsed->kind);
        assert_string_equal(simple->text, parsed->text);
        assert_int_equal(simple->plain, parsed->plain);
    }
}

static void files_that_cannot_be_read(void **state)
{
    struct bench *bench = *state;
    assert_null(yaml_tree_read("/no/such/file.yaml", bench->arena, &bench->errors));
    assert_refused(&bench->errors, ERROR_file_not_found, "No such file");
    assert_null(yaml_tree_read("/", bench->arena, &bench->errors));
    assert_refused(&bench->errors, ERROR_file_not_found, "not a file");
    assert_null(yaml_tree_read("/dev/zero", bench->arena, &bench->errors));
    assert_int_equal(bench->errors.count, 3);
}

static void files_are_read_whole(void **state)
{
    struct bench *bench = *state;
    char path[] = "/tmp/stepsim_yaml_XXXXXX";
    const int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    FILE *file = fdopen(descriptor, "wb");
    assert_non_null(file);
    for (int i = 0; i < 30000; i++)
        fprintf(file, "key_%d: value\n", i); /* more than any read buffer */
    fclose(file);
    const struct yaml_tree *root = yaml_tree_read(path, bench->arena, &bench->errors);
    unlink(path);
    assert_non_null(root);
    assert_int_equal(root->count, 30000);
    assert_string_equal(at(root, "key_29999")->at.file, path);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(nodes_know_where_they_stand),
        TEST(scalars_keep_their_text),
        TEST(roots_may_be_empty),
        TEST(aliases_share_their_target),
        TEST(merge_keys_are_resolved),
        TEST(duplicates_are_errors_and_parsing_goes_on),
        TEST(sixty_four_levels_and_no_more),
        TEST(sixteen_mebibytes_and_no_more),
        TEST(more_than_a_million_events_are_refused),
        TEST(ten_thousand_aliases_and_no_more),
        TEST(alias_bombs_are_refused),
        TEST(merge_bombs_are_refused),
        TEST(large_maps_are_cheap),
        TEST(overrides_have_no_place),
        TEST(simple_overrides_equal_parsed_ones),
        TEST(files_that_cannot_be_read),
        TEST(files_are_read_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
