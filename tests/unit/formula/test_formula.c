/* Expressions see names and values as the user means them, and nothing else. */
#include <math.h>
#include <string.h>

#include "assert_close.h"
#include "assert_refused.h"
#include "stepsim/arena.h"
#include "stepsim/formula.h"

static struct arena *arena;
static struct error_list errors;

static const char *const texts[] = {"5", "2.5", "8 GiB", "true", "interleaved", "null"};
static const char *const names[] = {"five", "half", "size", "yes", "word", "none"};

static int resolve(void *user, const char *name, struct error_list *list)
{
    (void)user;
    for (int i = 0; i < 6; i++) {
        if (strcmp(name, names[i]) == 0) {
            return i;
        }
    }
    error_add(list, ERROR_bad_expression, (struct location){0}, "test", "no \"%s\"", name);
    return -1;
}

static struct formula_value value(void *user, int name)
{
    (void)user;
    return formula_value_of(name == 2 ? "memory.reserve" : "model.layers", texts[name]);
}

static double answer(const char *text)
{
    double result = 0.0;
    const struct formula_ask ask = {
        .texts = &text, .count = 1, .label = "test", .resolve = resolve, .value = value};
    error_list_init(&errors, arena);
    struct formula *formula = formula_create(&ask, NULL, arena, &errors);
    if (formula == NULL) {
        return (double)NAN;
    }
    formula_evaluate(formula, NULL, &result);
    formula_destroy(formula);
    return result;
}

static void values_are_what_they_say(void **state)
{
    (void)state;
    /* Whole numbers divide as integers in SQL, others do not. */
    assert_close(answer("five / 2"), 2.0, 0.0);
    assert_close(answer("half * 2"), 5.0, 0.0);
    assert_close(answer("five / 2.0"), 2.5, 0.0);
    /* 8 GiB are 8 * 2^30 bytes. */
    assert_close(answer("size"), 8589934592.0, 0.0);
    assert_close(answer("yes + 1"), 2.0, 0.0);
    assert_close(answer("word = 'interleaved'"), 1.0, 0.0);
    assert_close(answer("none is null"), 1.0, 0.0);
    assert_true(isnan(answer("none + 1")));
    assert_close(answer("max(five, half) + noop_slots(7, 4) is null"), 0.0, 0.0);
}

static void names_are_keys_or_their_ends(void **state)
{
    (void)state;
    assert_true(formula_name_means("tp", "parallel.tp"));
    assert_true(formula_name_means("parallel_tp", "parallel.tp"));
    assert_false(formula_name_means("p", "parallel.tp"));
    assert_false(formula_name_means("parallel_tp_x", "parallel.tp"));
    size_t same = 0;
    assert_string_equal(formula_key("seq_len", &same, arena), "training.seq_len");
    assert_int_equal(same, 1);
    assert_null(formula_key("nothing_of_this_name", &same, arena));
}

static void only_expressions_pass(void **state)
{
    (void)state;
    static const char *const refused[][2] = {
        {"unknown + 1", "no \"unknown\""},
        {"five five", "syntax error"},
        {"1, 2", "row value misused"},
        {"(select 1 from sqlite_master)", "not authorized"},
        {"load_extension('x')", "not authorized"},
        {"randomblob(10)", "not authorized"},
        {"1) from v; attach 'x' as y; select (1", "must be one expression"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        assert_true(isnan(answer(refused[i][0])));
        assert_refused(&errors, ERROR_bad_expression, refused[i][1]);
    }
}

static int set_up(void **state)
{
    (void)state;
    arena = arena_create("test");
    error_list_init(&errors, arena);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    arena_destroy(arena);
    return 0;
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(values_are_what_they_say),
        TEST(names_are_keys_or_their_ends),
        TEST(only_expressions_pass),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
