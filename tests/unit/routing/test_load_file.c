/* Measured loads from CSV and JSON, and what is refused. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../../support/assert_close.h"
#include "routing/routing_internal.h"

static struct arena *arena;

/* Layer 0 is dense, layers 1 and 2 have 4 experts, top 1. */
static bool read_text(const char *text, struct load_table *table, struct error_list *errors)
{
    static const bool moe_layer[] = {false, true, true};
    char path[] = "/tmp/loadsXXXXXX";
    const int handle = mkstemp(path);
    assert_true(handle >= 0);
    FILE *file = fdopen(handle, "wb");
    fputs(text, file);
    fclose(file);
    struct scenario scenario = {.path = "x.yaml"};
    scenario.moe.load_file = path;
    const struct load_table_ask ask = {
        .scenario = &scenario, .moe_layer = moe_layer, .layers = 3, .experts = 4, .top_k = 1};
    error_list_init(errors, arena);
    const bool good = load_table_read(&ask, arena, errors, table);
    unlink(path);
    return good;
}

/* 10 + 20 + 10 + 0 tokens: loads 1, 2, 1, 0. */
static void csv_gives_loads_of_mean_one(void **state)
{
    (void)state;
    struct load_table table;
    struct error_list errors;
    assert_true(read_text("expert,layer,tokens\n0,1,10\n1,1,20\n2,1,10\n0,2,5\n3,2,15\n", &table,
                          &errors));
    assert_int_equal(table.steps, 1);
    const double expected[] = {1, 2, 1, 0, 1, 0, 0, 3};
    for (int i = 0; i < 8; i++)
        assert_close(table.load[4 + i], expected[i], 1e-12);
}

static void csv_of_two_steps(void **state)
{
    (void)state;
    struct load_table table;
    struct error_list errors;
    assert_true(read_text("step,layer,expert,tokens\n0,1,0,4\n0,2,1,4\n1,1,2,4\n1,2,3,4\n", &table,
                          &errors));
    assert_int_equal(table.steps, 2);
    assert_close(table.load[4], 4.0, 1e-12);
    assert_close(table.load[12 + 8 + 3], 4.0, 1e-12);
}

static void json_has_the_moe_layers_in_order(void **state)
{
    (void)state;
    struct load_table table;
    struct error_list errors;
    assert_true(read_text("[[10, 20, 10, 0], [5, 0, 0, 15]]", &table, &errors));
    assert_close(table.load[4 + 1], 2.0, 1e-12);
    assert_close(table.load[8 + 3], 3.0, 1e-12);
    assert_true(read_text("[[[1,1,1,1],[1,1,1,1]],[[4,0,0,0],[1,1,1,1]]]", &table, &errors));
    assert_int_equal(table.steps, 2);
    assert_close(table.load[12 + 4], 4.0, 1e-12);
}

static void wrong_files_are_refused(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "layer,tokens\n1,2\n",                            /* no expert */
        "layer,expert,tokens\n1,0,4\n",                   /* layer 2 has none */
        "layer,expert,tokens\n1,0,4\n2,4,1\n",            /* no expert 4 */
        "layer,expert,tokens\n1,0,4\n3,0,1\n",            /* no layer 3 */
        "layer,expert,tokens\n1,0,-4\n2,0,1\n",           /* negative */
        "layer,expert,tokens\n1,0,many\n2,0,1\n",         /* not a number */
        "layer,expert,tokens\n1,0\n",                     /* short row */
        "[[1,2,3],[1,2,3]]",                              /* three experts */
        "[[1,2,3,4],[1,2,3,4],[1,2,3,4]]",                /* three MoE layers */
        "[1,2]",  "{\"a\": 1}", "[[1,2,3,\"x\"],[1,1,1,1]]", "",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct load_table table;
        struct error_list errors;
        assert_false(read_text(texts[i], &table, &errors));
        assert_int_equal(errors.count, 1);
        assert_int_equal(errors.items[0].code, ERROR_bad_value);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(csv_gives_loads_of_mean_one),
        cmocka_unit_test(csv_of_two_steps),
        cmocka_unit_test(json_has_the_moe_layers_in_order),
        cmocka_unit_test(wrong_files_are_refused),
    };
    arena = arena_create("test");
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    arena_destroy(arena);
    return failed;
}
