/*
 * test_bad.c - inputs that must be refused, each with the errors that it says itself.
 *
 * Every tests/bad/NAME.yaml begins with comments:
 *     # expect: CODE LINE:COL            an error in the file itself
 *     # expect: CODE FILE:LINE:COL       in a file that it includes
 *     # expect: CODE -                   of an override, which has no position
 *     # set: KEY=VALUE                   an override
 * The errors must be exactly these, in this order: none missing, none that only
 * follows from another. Each answer must come within a second or so.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "assert_close.h"
#include "stepsim/arena.h"
#include "stepsim/scenario.h"

#define FOLDER         STEPSIM_SOURCE_DIR "/tests/bad"
#define EXPECTED_MAX   16
#define SECONDS_MAX    5.0
#define CASES_AT_LEAST 40

struct expectation {
    char code[64];
    char place[128];
};

struct bad_case {
    struct expectation expected[EXPECTED_MAX];
    size_t expected_count;
    struct scenario_override overrides[EXPECTED_MAX];
    uint32_t override_count;
};

static void read_comment(struct bad_case *bad, char *line, struct arena *arena)
{
    struct expectation expectation;
    line[strcspn(line, "\n")] = '\0';
    if (sscanf(line, "# expect: %63s %127s", expectation.code, expectation.place) == 2) {
        assert_true(bad->expected_count < EXPECTED_MAX);
        bad->expected[bad->expected_count++] = expectation;
    } else if (strncmp(line, "# set: ", 7) == 0) {
        char *equals = strchr(line, '=');
        assert_non_null(equals);
        assert_true(bad->override_count < EXPECTED_MAX);
        bad->overrides[bad->override_count++] = (struct scenario_override){
            .key = arena_strndup(arena, line + 7, (size_t)(equals - line - 7)),
            .value = arena_strdup(arena, equals + 1)};
    }
}

static struct bad_case read_case(const char *path, struct arena *arena)
{
    struct bad_case bad = {0};
    char line[512];
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) && line[0] == '#')
        read_comment(&bad, line, arena);
    fclose(file);
    return bad;
}

/* "LINE:COL", with the file in front if it is not the case itself, or "-". */
static const char *place_of(const struct error *error, const char *path, struct arena *arena)
{
    if (!error->at.file)
        return "-";
    const char *slash = strrchr(error->at.file, '/');
    const char *name = slash ? slash + 1 : error->at.file;
    if (strcmp(error->at.file, path) == 0)
        return arena_printf(arena, "%u:%u", error->at.line, error->at.column);
    return arena_printf(arena, "%s:%u:%u", name, error->at.line, error->at.column);
}

static bool matches(const struct error_list *errors, const struct bad_case *bad, const char *path)
{
    bool good = errors->count == bad->expected_count;
    for (size_t i = 0; good && i < errors->count; i++) {
        const struct error *error = &errors->items[i];
        good = strcmp(error_code_name(error->code), bad->expected[i].code) == 0 &&
               strcmp(place_of(error, path, errors->arena), bad->expected[i].place) == 0;
    }
    return good;
}

static void check_case(const char *name)
{
    struct arena *arena = arena_create("bad case");
    const char *path = arena_printf(arena, "%s/%s", FOLDER, name);
    const struct bad_case bad = read_case(path, arena);
    struct error_list errors;
    error_list_init(&errors, arena);
    const struct scenario_source source = {.path = path,
                                           .config_dir = FOLDER "/configs",
                                           .overrides = bad.overrides,
                                           .override_count = bad.override_count};
    const clock_t start = clock();
    const struct scenario *scenario = scenario_load(&source, arena, &errors);
    const double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    if (scenario || bad.expected_count == 0 || !matches(&errors, &bad, path)) {
        print_error("%s: reported was\n%s", name, error_list_text(&errors, arena));
        for (size_t i = 0; i < bad.expected_count; i++)
            print_error("expected %s at %s\n", bad.expected[i].code, bad.expected[i].place);
        fail();
    }
    assert_true(seconds < SECONDS_MAX);
    arena_destroy(arena);
}

static int is_case(const struct dirent *entry)
{
    const size_t length = strlen(entry->d_name);
    return length > 5 && strcmp(entry->d_name + length - 5, ".yaml") == 0;
}

static void run_case(void **state)
{
    check_case(*state);
}

/* The toy files themselves are sound, so each refusal is of what the case says. */
static void toys_are_accepted(void **state)
{
    (void)state;
    struct arena *arena = arena_create("toys");
    struct error_list errors;
    error_list_init(&errors, arena);
    assert_non_null(scenario_load_model("toy_moe", FOLDER "/configs", arena, &errors));
    assert_non_null(scenario_load_model("toy_dense", FOLDER "/configs", arena, &errors));
    assert_non_null(scenario_load_cluster("toy", FOLDER "/configs", arena, &errors));
    arena_destroy(arena);
}

int main(void)
{
    struct dirent **files = NULL;
    const int count = scandir(FOLDER, &files, is_case, alphasort);
    if (count < CASES_AT_LEAST)
        return fprintf(stderr, "%d cases in %s\n", count, FOLDER), 1;
    struct CMUnitTest *tests = calloc((size_t)count + 1, sizeof *tests);
    if (!tests)
        return 1;
    for (int i = 0; i < count; i++)
        tests[i] = (struct CMUnitTest){
            .name = files[i]->d_name, .test_func = run_case, .initial_state = files[i]->d_name};
    tests[count] = (struct CMUnitTest)cmocka_unit_test(toys_are_accepted);
    const int failed = _cmocka_run_group_tests("bad", tests, (size_t)count + 1, NULL, NULL);
    for (int i = 0; i < count; i++)
        free(files[i]);
    free(files);
    free(tests);
    return failed;
}
