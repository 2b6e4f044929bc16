/* test_layout_string.c - Megatron's notation: read, checked against the model, written. */
#include "layout_fixture.h"

struct string_case {
    const char *text;
    uint32_t layers, pp, vpp, mtp;
};

static void build(struct layout_fixture *f, struct string_case c)
{
    f->scenario.model.layers = c.layers;
    f->scenario.model.mtp_layers = c.mtp;
    f->scenario.parallel.pp = c.pp;
    f->scenario.parallel.vpp = c.vpp;
    f->scenario.devices = 8 * c.pp;
    f->scenario.parallel.split = SPLIT_LAYOUT;
    f->scenario.parallel.layout = c.text;
    layout_fixture_build(f);
}

static void notation_is_understood(void **state)
{
    (void)state;
    static const struct {
        struct string_case in;
        const char *stages, *written;
    } rows[] = {
        {{"Ett|tt|tt|ttL", 8, 4, 1, 0}, "2,2,2,2", "Ett|tt|tt|ttL"},
        {{"Et*3|t*4|t*4|t*3mL", 14, 4, 1, 1}, "3,4,4,3", "Ettt|tttt|tttt|tttmL"},
        {{"Et|(tt|)*30,L", 61, 16, 2, 0}, "3,4,4,4,4,4,4,4,4,4,4,4,4,4,4,2", "Et|(tt|)*30,L"},
        /* repeats inside a repeat, blanks, the repeated bar of an empty chunk */
        {{" E, t | ((t*2|)*2 t|)*2 |*2 L ", 11, 10, 1, 0},
         "1,2,2,1,2,2,1,0,0,0",
         "Et|tt|tt|t|tt|tt|t|||L"},
        /* MTP in a chunk before the loss, and an empty chunk */
        {{"E|(t|)*3,m|m||L", 3, 8, 1, 2}, "0,1,1,1,0,0,0,0", "E|(t|)*3,m|m||L"},
        {{"Et*9L", 9, 1, 1, 0}, "9", "Et*9L"},
    };
    struct layout_fixture f = layout_fixture_open();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        build(&f, rows[i].in);
        assert_accepted(f.errors);
        assert_string_equal(f.layout->split_text, rows[i].stages);
        assert_string_equal(f.layout->chunk_text, rows[i].written);
        /* What is written reads back as the same layout. */
        struct string_case again = rows[i].in;
        again.text = f.layout->chunk_text;
        build(&f, again);
        assert_accepted(f.errors);
        assert_string_equal(f.layout->chunk_text, rows[i].written);
    }
    layout_fixture_close(&f);
}

static void mtp_stands_where_the_string_says(void **state)
{
    (void)state;
    struct layout_fixture f = layout_fixture_open();
    build(&f, (struct string_case){"Et|t|m|L", 2, 2, 2, 1});
    assert_accepted(f.errors);
    assert_int_equal(f.layout->chunks[0 * 2 + 1].mtp, 1); /* model chunk 2: stage 0 */
    assert_true(f.layout->chunks[1 * 2 + 1].head);
    assert_int_equal(f.layout->chunks[1 * 2 + 1].mtp, 0);
    layout_fixture_close(&f);
}

static void mistakes_in_the_text(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } rows[] = {
        {"Ett|tx|tt|ttL", "expected one of E, t, m, L, |, ( and ), at character 6: \"x|tt|ttL\""},
        {"Et*|t", "a repeat needs a number from 1 up behind '*'"},
        {"Et*0|t", "a repeat needs a number from 1 up behind '*'"},
        {"Et*99999999999|t", "a repeat needs a number from 1 up"},
        {"E(t|)*3)t", "')' without '('"},
        {"E(t|*3", "'(' without ')'"},
        {"*3E", "expected one of"},
        {"((((((((((t))))))))))", "nested too deeply"},
        {"((((((t*999)*999)*999)*999)*999)*999)*999", "too long"},
        {"Et|tE|tt|tttL", "E belongs once"},
        {"tE|tt|tt|tttL", "model order"},
        {"Ett|tt|Ltt|tt", "L belongs once, at the end"},
        {"Ett|tt|tt|Ltt", "model order"},
        {"Ett|mtt|tt|ttL", "model order"},
    };
    struct layout_fixture f = layout_fixture_open();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        build(&f, (struct string_case){rows[i].text, 8, 4, 1, 0});
        assert_refused(f.errors, ERROR_bad_layout_string, rows[i].message);
    }
    layout_fixture_close(&f);
}

static void strings_that_do_not_fit_the_model(void **state)
{
    (void)state;
    struct layout_fixture f = layout_fixture_open();
    build(&f, (struct string_case){"Ett|tt|tt|tL", 8, 4, 1, 0});
    assert_refused(f.errors, ERROR_stage_layers_sum, "7 layers t, but the model has 8");
    build(&f, (struct string_case){"Ett|tt|tt|ttL", 8, 4, 1, 1});
    assert_refused(f.errors, ERROR_stage_layers_sum, "0 MTP modules m, but the model has 1");
    build(&f, (struct string_case){"Ett|tt|tt|ttL", 8, 2, 1, 0});
    assert_refused(f.errors, ERROR_stage_list_length,
                   "4 chunks, but pp 2 * vpp 1 = 2; vpp 2 would");
    build(&f, (struct string_case){"", 8, 2, 1, 0});
    assert_refused(f.errors, ERROR_stage_list_length, "1 chunks");
    layout_fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(notation_is_understood),
        cmocka_unit_test(mtp_stands_where_the_string_says),
        cmocka_unit_test(mistakes_in_the_text),
        cmocka_unit_test(strings_that_do_not_fit_the_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
