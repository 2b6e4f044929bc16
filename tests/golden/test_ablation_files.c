/*
 * The study sims/pangu_ablation: consecutive files differ in exactly one switch, and each
 * leave-one-out file differs from the optimised one in exactly one.
 */
#include <cjson/cJSON.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../support/assert_close.h"
#include "stepsim/arena.h"
#include "stepsim/scenario.h"

#define STUDY     STEPSIM_SOURCE_DIR "/sims/pangu_ablation/"
#define FILES_MAX 40

static struct arena *arena;

static struct cJSON *resolved(const char *name)
{
    struct error_list errors;
    error_list_init(&errors, arena);
    const struct scenario_source source = {.path = arena_printf(arena, STUDY "%s", name)};
    const struct scenario *scenario = scenario_load(&source, arena, &errors);
    if (scenario == NULL)
        print_error("%s", error_list_text(&errors, arena));
    assert_non_null(scenario);
    return scenario_json(scenario, false);
}

/* Leaves that differ; names of the first are printed when the count is not 1. */
static unsigned differences(const struct cJSON *a, const struct cJSON *b, const char *path)
{
    if (cJSON_IsObject(a) && cJSON_IsObject(b)) {
        unsigned count = 0;
        const struct cJSON *child = NULL;
        cJSON_ArrayForEach(child, a)
        {
            const struct cJSON *other = cJSON_GetObjectItemCaseSensitive(b, child->string);
            const bool title = strcmp(path, "") == 0 && strcmp(child->string, "title") == 0;
            if (!title)
                count +=
                    differences(child, other, arena_printf(arena, "%s.%s", path, child->string));
        }
        return count;
    }
    if (b != NULL && cJSON_Compare(a, b, true))
        return 0;
    print_message("  differs: %s\n", path);
    return 1;
}

static void expect_one_switch(const char *first, const char *second)
{
    print_message("%s -> %s\n", first, second);
    struct cJSON *a = resolved(first);
    struct cJSON *b = resolved(second);
    assert_int_equal(differences(a, b, ""), 1);
    cJSON_Delete(a);
    cJSON_Delete(b);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static unsigned list(const char *prefix_class, char *names[FILES_MAX])
{
    DIR *folder = opendir(STUDY);
    assert_non_null(folder);
    unsigned count = 0;
    for (const struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
        const char *dot = strrchr(entry->d_name, '.');
        const bool yaml = dot != NULL && strcmp(dot, ".yaml") == 0;
        if (yaml && strchr(prefix_class, entry->d_name[0]) != NULL) {
            assert_true(count < FILES_MAX);
            names[count++] = arena_strdup(arena, entry->d_name);
        }
    }
    closedir(folder);
    qsort(names, count, sizeof names[0], by_name);
    return count;
}

static void consecutive_files_differ_in_one_switch(void **state)
{
    (void)state;
    char *names[FILES_MAX];
    const unsigned count = list("0123456789", names);
    assert_true(count >= 10);
    for (unsigned i = 1; i < count; i++)
        expect_one_switch(names[i - 1], names[i]);
}

static void leave_one_out_differs_in_one_switch(void **state)
{
    (void)state;
    char *names[FILES_MAX];
    char *steps[FILES_MAX];
    const unsigned count = list("w", names);
    const unsigned last = list("0123456789", steps);
    assert_true(count >= 8);
    for (unsigned i = 0; i < count; i++)
        expect_one_switch(steps[last - 1], names[i]);
}

static int start(void **state)
{
    (void)state;
    arena = arena_create("test");
    return 0;
}

static int stop(void **state)
{
    (void)state;
    arena_destroy(arena);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(consecutive_files_differ_in_one_switch),
        cmocka_unit_test(leave_one_out_differs_in_one_switch),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
