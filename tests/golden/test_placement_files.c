/*
 * The study sims/expert_placement: four files that differ in moe.routing and moe.placement only,
 * and three of them in the placement only.
 */
#include <cjson/cJSON.h>

#include "../support/assert_close.h"
#include "stepsim/arena.h"
#include "stepsim/scenario.h"

#define STUDY STEPSIM_SOURCE_DIR "/sims/expert_placement/"

static struct arena *arena;

/* The resolved scenario without its title and what the file is about. */
static struct cJSON *rest_of(const char *name, bool without_routing)
{
    struct error_list errors;
    error_list_init(&errors, arena);
    const struct scenario_source source = {.path = arena_printf(arena, STUDY "%s", name)};
    const struct scenario *scenario = scenario_load(&source, arena, &errors);
    if (scenario == NULL)
        print_error("%s", error_list_text(&errors, arena));
    assert_non_null(scenario);
    struct cJSON *json = scenario_json(scenario, false);
    struct cJSON *moe = cJSON_GetObjectItemCaseSensitive(json, "moe");
    assert_non_null(cJSON_GetObjectItemCaseSensitive(moe, "placement"));
    cJSON_DeleteItemFromObjectCaseSensitive(json, "title");
    cJSON_DeleteItemFromObjectCaseSensitive(moe, "placement");
    if (without_routing)
        cJSON_DeleteItemFromObjectCaseSensitive(moe, "routing");
    return json;
}

static void expect_alike(const char *first, const char *second, bool without_routing)
{
    struct cJSON *a = rest_of(first, without_routing);
    struct cJSON *b = rest_of(second, without_routing);
    assert_true(cJSON_Compare(a, b, true));
    cJSON_Delete(a);
    cJSON_Delete(b);
}

static void files_differ_in_load_and_placement_only(void **state)
{
    (void)state;
    arena = arena_create("test");
    expect_alike("none.yaml", "greedy.yaml", false);
    expect_alike("none.yaml", "dynamic.yaml", false);
    expect_alike("none.yaml", "balanced.yaml", true);
    struct cJSON *none = rest_of("none.yaml", false);
    struct cJSON *balanced = rest_of("balanced.yaml", false);
    assert_false(cJSON_Compare(none, balanced, true));
    cJSON_Delete(none);
    cJSON_Delete(balanced);
    arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(files_differ_in_load_and_placement_only)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
