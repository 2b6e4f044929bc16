/* test_error.c - the printed form of errors, and what hostile input can do to it: nothing. */
#include "stepsim/error.h"

#include <ctype.h>
#include <string.h>

#include "assert_aborts.h"
#include "assert_close.h"
#include "stepsim/arena.h"

struct fixture {
    struct arena *arena;
    struct error_list list;
};

static int set_up(void **state)
{
    static struct fixture fixture;
    fixture.arena = arena_create("test");
    error_list_init(&fixture.list, fixture.arena);
    *state = &fixture;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *fixture = *state;
    arena_destroy(fixture->arena);
    return 0;
}

static void one_error_is_one_line(void **state)
{
    struct fixture *f = *state;
    error_add(&f->list, ERROR_experts_not_divisible_by_ep,
              (struct location){"sims/x/sim.yaml", 14, 7}, "parallel.ep",
              "%d experts do not divide among %d ranks; 32 or 64 would", 256, 48);
    assert_int_equal(f->list.count, 1);
    assert_string_equal(error_list_text(&f->list, f->arena),
                        "sims/x/sim.yaml:14:7: error: parallel.ep: 256 experts do not divide among "
                        "48 ranks; 32 or 64 would [experts_not_divisible_by_ep]\n");
}

static void unknown_parts_of_a_position_are_left_out(void **state)
{
    struct fixture *f = *state;
    error_add(&f->list, ERROR_yaml_syntax, (struct location){"a.yaml", 3, 0}, NULL, "no");
    error_add(&f->list, ERROR_file_not_found, (struct location){"b.yaml", 0, 0}, NULL, "not there");
    error_add(&f->list, ERROR_usage, (struct location){0}, "--steps", "not a number");
    assert_string_equal(error_list_text(&f->list, f->arena),
                        "a.yaml:3: error: no [yaml_syntax]\n"
                        "b.yaml: error: not there [file_not_found]\n"
                        "stepsim: error: --steps: not a number [usage]\n"
                        "3 errors\n");
}

static void no_error_is_no_text(void **state)
{
    struct fixture *f = *state;
    assert_string_equal(error_list_text(&f->list, f->arena), "");
}

/* The list keeps its own copies, so a caller may format into one buffer again and again. */
static void texts_are_copied(void **state)
{
    struct fixture *f = *state;
    char file[] = "one.yaml";
    char key[] = "model.layers";
    error_add(&f->list, ERROR_out_of_range, (struct location){file, 1, 1}, key, "0 is too small");
    memset(file, 'x', sizeof file - 1);
    memset(key, 'x', sizeof key - 1);
    assert_string_equal(f->list.items[0].at.file, "one.yaml");
    assert_string_equal(f->list.items[0].key, "model.layers");
}

static void errors_past_the_limit_are_counted(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < ERROR_LIST_MAX + 6; i++)
        error_add(&f->list, ERROR_unknown_key, (struct location){"a.yaml", 1, 1}, "k", "%d", i);
    assert_int_equal(f->list.count, ERROR_LIST_MAX + 6);
    const char *text = error_list_text(&f->list, f->arena);
    assert_non_null(strstr(text, ": 63 ["));
    assert_null(strstr(text, ": 64 ["));
    assert_non_null(strstr(text, "\n70 errors, the first 64 shown\n"));
}

static void control_characters_are_escaped(void **state)
{
    struct fixture *f = *state;
    error_add(&f->list, ERROR_bad_value, (struct location){"a\n.yaml", 1, 2}, "k\tk",
              "\x1b[31mred\r\x7f, \xc3\xa4 stays");
    assert_string_equal(error_list_text(&f->list, f->arena),
                        "a\\n.yaml:1:2: error: k\\tk: \\x1b[31mred\\x0d\\x7f, \xc3\xa4 stays "
                        "[bad_value]\n");
}

/* 999 letters and a character of two bytes: byte 1000 is inside it, so it goes as a whole. */
static void absurd_lengths_are_cut_between_characters(void **state)
{
    struct fixture *f = *state;
    char message[5000];
    memset(message, 'a', 999);
    for (size_t i = 999; i + 2 < sizeof message; i += 2)
        memcpy(message + i, "\xc3\xa4", 3);
    error_add(&f->list, ERROR_bad_value, (struct location){0}, NULL, "%s", message);
    const char *kept = f->list.items[0].message;
    assert_int_equal(strlen(kept), 999 + 3);
    assert_string_equal(kept + 998, "a...");
}

/* A message of exactly the limit is not cut. */
static void the_limit_itself_fits(void **state)
{
    struct fixture *f = *state;
    char message[1001] = {0};
    memset(message, 'a', 1000);
    error_add(&f->list, ERROR_bad_value, (struct location){0}, NULL, "%s", message);
    assert_string_equal(f->list.items[0].message, message);
}

/* What every row promises: a unique snake_case name, a status of design.md 5, a sentence. */
static void every_code_is_complete(void **state)
{
    (void)state;
    for (int code = 0; code < ERROR_CODE_COUNT; code++) {
        const char *name = error_code_name((enum error_code)code);
        assert_true(strlen(name) > 0);
        for (size_t i = 0; name[i] != '\0'; i++)
            assert_true(islower((unsigned char)name[i]) || name[i] == '_');
        for (int other = 0; other < code; other++)
            assert_string_not_equal(name, error_code_name((enum error_code)other));
        const int status = error_code_exit_status((enum error_code)code);
        assert_true(status == 2 || status == 3 || status == 4);
        const char *meaning = error_code_meaning((enum error_code)code);
        assert_true(isupper((unsigned char)meaning[0]));
        assert_int_equal(meaning[strlen(meaning) - 1], '.');
    }
    assert_int_equal(error_code_exit_status(ERROR_usage), 2);
    assert_int_equal(error_code_exit_status(ERROR_nothing_feasible), 3);
    assert_int_equal(error_code_exit_status(ERROR_database), 4);
}

static void assert_a_lie(void)
{
    ASSERT(1 + 1 == 3);
}

static void assert_a_truth(void)
{
    ASSERT(1 + 1 == 2);
}

static void ask_for_a_code_past_the_end(void)
{
    (void)error_code_name(ERROR_CODE_COUNT);
}

/* Also in release builds: this test is built without NDEBUG meaning anything to ASSERT. */
static void assert_stays_on(void **state)
{
    (void)state;
    assert_aborts(assert_a_lie);
    assert_false(call_aborts(assert_a_truth));
    assert_aborts(ask_for_a_code_past_the_end);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_error_is_one_line, set_up, tear_down),
        cmocka_unit_test_setup_teardown(unknown_parts_of_a_position_are_left_out, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(no_error_is_no_text, set_up, tear_down),
        cmocka_unit_test_setup_teardown(texts_are_copied, set_up, tear_down),
        cmocka_unit_test_setup_teardown(errors_past_the_limit_are_counted, set_up, tear_down),
        cmocka_unit_test_setup_teardown(control_characters_are_escaped, set_up, tear_down),
        cmocka_unit_test_setup_teardown(absurd_lengths_are_cut_between_characters, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(the_limit_itself_fits, set_up, tear_down),
        cmocka_unit_test(every_code_is_complete),
        cmocka_unit_test(assert_stays_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
