/* Which published runs stand for a scenario: its device's, else its vendor's, else none. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "assert_close.h"
#include "stepsim/range.h"

static const char SCORES[] =
    "source: a file\n"
    "groups:\n"
    "  - {device: one, models: moe, rows: 12, families: 3, mean_abs_log: 0.125}\n"
    "  - {device: one, models: dense, rows: 4, families: 3, mean_abs_log: 0.5}\n"
    "  - {device: two, models: moe, rows: 50, families: 1, mean_abs_log: 0.75}\n"
    "  - {vendor: ascend, models: dense, rows: 20, families: 9, mean_abs_log: 0.25}\n"
    "  - {vendor: ascend, models: moe, rows: 62, families: 4, mean_abs_log: 0.375}\n";

struct fixture {
    char folder[64];
    struct arena *arena;
    struct scenario *scenario;
};

static void set_up(struct fixture *fixture, const char *text)
{
    snprintf(fixture->folder, sizeof fixture->folder, "/tmp/stepsim-scores-XXXXXX");
    assert_non_null(mkdtemp(fixture->folder));
    fixture->arena = arena_create("test");
    fixture->scenario = ARENA_NEW(fixture->arena, struct scenario);
    fixture->scenario->cluster.device.vendor = "ascend";
    const char *path = arena_printf(fixture->arena, "%s/validation_scores.yaml", fixture->folder);
    FILE *file = text != NULL ? fopen(path, "w") : NULL;
    if (file != NULL) {
        assert_true(fputs(text, file) >= 0);
        assert_int_equal(fclose(file), 0);
    }
}

static void tear_down(struct fixture *fixture)
{
    remove(arena_printf(fixture->arena, "%s/validation_scores.yaml", fixture->folder));
    assert_int_equal(rmdir(fixture->folder), 0);
    arena_destroy(fixture->arena);
}

static bool ask(struct fixture *fixture, const char *device, uint32_t experts,
                struct range_model_error *error)
{
    fixture->scenario->cluster.device.name = device;
    fixture->scenario->model.moe.experts = experts;
    return range_model_error(fixture->scenario, fixture->folder, error, fixture->arena);
}

static void the_device_comes_before_the_vendor(void **state)
{
    (void)state;
    struct fixture fixture;
    struct range_model_error error;
    set_up(&fixture, SCORES);
    assert_true(ask(&fixture, "one", 64, &error));
    assert_close(error.mean_abs_log, 0.125, 0.0);
    assert_int_equal(error.rows, 12);
    assert_int_equal(error.families, 3);
    assert_string_equal(error.group, "MoE models on one");
    assert_string_equal(error.source, "a file");
    /* Four runs are too few, and so is one study. */
    assert_true(ask(&fixture, "one", 0, &error));
    assert_close(error.mean_abs_log, 0.25, 0.0);
    assert_string_equal(error.group, "dense models on ascend");
    assert_true(ask(&fixture, "two", 8, &error));
    assert_close(error.mean_abs_log, 0.375, 0.0);
    fixture.scenario->cluster.device.vendor = "nobody";
    assert_false(ask(&fixture, "two", 8, &error));
    tear_down(&fixture);
}

static void no_file_and_no_list_are_no_figure(void **state)
{
    (void)state;
    struct fixture fixture;
    struct range_model_error error;
    static const char *const texts[] = {NULL, "", "groups: 3\n", "groups: [1, {}]\n", "a: [\n"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        set_up(&fixture, texts[i]);
        assert_false(ask(&fixture, "one", 64, &error));
        tear_down(&fixture);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_device_comes_before_the_vendor),
        cmocka_unit_test(no_file_and_no_list_are_no_figure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
