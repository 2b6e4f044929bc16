/* Launch arguments say what the published scripts say. */
#include <string.h>

#include "assert_close.h"
#include "stepsim/search.h"

static struct arena *arena;

static const char *arguments_of(const char *path, enum launch_dialect dialect)
{
    const struct scenario_source source = {
        .path = arena_printf(arena, "%s/%s", STEPSIM_SOURCE_DIR, path)};
    struct error_list errors;
    error_list_init(&errors, arena);
    struct run run;
    const struct scenario *scenario = scenario_load(&source, arena, &errors);
    assert_non_null(scenario);
    assert_true(run_prepare(&run, scenario, arena, &errors));
    return launch_arguments(scenario, run.layout, dialect, arena);
}

static void assert_has(const char *text, const char *line)
{
    if (strstr(text, line) == NULL) {
        print_error("no \"%s\" in\n%s", line, text);
        assert_true(false);
    }
}

/* Published: TP 8, PP 16, VPP 2, EP 4 with tp-extend-ep (arXiv:2505.04519). */
static void pangu_is_launched_as_published(void **state)
{
    (void)state;
    const char *text = arguments_of("sims/pangu_ultra_moe_6k/sim.yaml", LAUNCH_MINDSPEED);
    assert_has(text, "--tensor-model-parallel-size 8\n");
    assert_has(text, "--pipeline-model-parallel-size 16\n");
    assert_has(text, "--expert-model-parallel-size 4\n");
    assert_has(text, "--moe-tp-extend-ep\n");
    assert_has(text, "--micro-batch-size 2\n");
    assert_has(text, "--moe-fb-overlap\n");
    assert_has(text, "--use-ascend-mc2\n");
}

/* Megatron-LM counts the whole expert group, and has a notation for uneven stages. */
static void megatron_counts_the_whole_group(void **state)
{
    (void)state;
    const char *text = arguments_of("sims/pangu_ultra_moe_6k/sim.yaml", LAUNCH_MEGATRON);
    assert_has(text, "--expert-model-parallel-size 32\n");
    assert_has(text, "--expert-tensor-parallel-size 1\n");
    assert_has(text, "--pipeline-model-parallel-layout \"E");
    assert_has(text, "# the swap of these activations has no argument\n");
}

static int set_up(void **state)
{
    (void)state;
    arena = arena_create("test");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    arena_destroy(arena);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(pangu_is_launched_as_published, set_up, tear_down),
        cmocka_unit_test_setup_teardown(megatron_counts_the_whole_group, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
