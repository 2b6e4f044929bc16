/* The whole way from a file to a report: closed forms, folding, refusals. */
#include <string.h>

#include "assert_close.h"
#include "stepsim/run.h"

#define FREE_LINKS STEPSIM_SOURCE_DIR "/sims/pangu_ultra_135b/free_links.yaml"

static struct arena *arena;
static struct error_list errors;

/* A run of a file with up to four overrides "key", "value", ...; false with errors. */
static bool simulate(struct run *run, const char *path, const struct run_options *options,
                     const char *const *overrides)
{
    struct scenario_override list[4];
    struct scenario_source source = {.path = path, .overrides = list};
    for (; overrides != NULL && *overrides != NULL; overrides += 2) {
        assert_true(source.override_count < 4);
        list[source.override_count++] = (struct scenario_override){overrides[0], overrides[1]};
    }
    error_list_init(&errors, arena);
    const struct scenario *scenario = scenario_load(&source, arena, &errors);
    return scenario != NULL && run_simulate(run, scenario, options, arena, &errors);
}

static double idle_share(const char *const *overrides)
{
    struct run run;
    const struct run_options options = {.steps = 1};
    if (!simulate(&run, FREE_LINKS, &options, overrides)) {
        print_error("%s", error_list_text(&errors, arena));
        assert_true(false);
    }
    return run.report->bubble_ratio;
}

/* p = 8 stages, m = 16 microbatches, v chunks: (p-1)/(v*m+p-1); published for Pangu Ultra 135B. */
static void bubble_of_equal_chunks_is_the_closed_form(void **state)
{
    (void)state;
    assert_close(idle_share(NULL), 7.0 / 103.0, 1e-4);
    static const char *const plain[] = {"parallel.vpp", "1", "schedule.kind", "1f1b", NULL};
    assert_close(idle_share(plain), 7.0 / 23.0, 1e-4);
    static const char *const gpipe[] = {"parallel.vpp", "1", "schedule.kind", "gpipe", NULL};
    assert_close(idle_share(gpipe), 7.0 / 23.0, 1e-4);
    static const char *const more[] = {"training.global_batch_size", "64", NULL};
    assert_close(idle_share(more), 7.0 / (6.0 * 64.0 + 7.0), 1e-3);
}

/* 512 ranks, all dimensions above one: folded, all ranks and unfused give one digest. */
static const char symmetric[] =
    "model: {base: pangu_ultra_moe_718b, layers: 8, mtp_layers: 0,\n"
    "        moe: {experts: 32, first_dense_layers: 0}}\n"
    "cluster: atlas_800t_a2\n"
    "devices: 512\n"
    "parallel: {tp: 4, pp: 4, vpp: 2, ep: 16, etp: 1, cp: 2, zero: 1}\n"
    "training: {seq_len: 4096, micro_batch_size: 1, global_batch_size: 128}\n"
    "schedule: {kind: interleaved}\n"
    "overlap: {grad_reduce: true, param_gather: true}\n";

static void folding_and_fusing_change_nothing(void **state)
{
    (void)state;
    const struct scenario_source source = {.text = symmetric, .text_name = "symmetric"};
    const struct run_options modes[] = {
        {.steps = 1}, {.steps = 1, .ranks_all = true}, {.steps = 1, .unfused = true}};
    struct run runs[3];
    error_list_init(&errors, arena);
    const struct scenario *scenario = scenario_load(&source, arena, &errors);
    for (size_t i = 0; i < 3; i++) {
        if (scenario == NULL || !run_simulate(&runs[i], scenario, &modes[i], arena, &errors)) {
            print_error("%s", error_list_text(&errors, arena));
            assert_true(false);
        }
    }
    assert_int_equal(runs[0].report->simulated_ranks, 4);
    assert_int_equal(runs[1].report->simulated_ranks, 512);
    assert_true(runs[0].report->digest == runs[1].report->digest);
    assert_true(runs[0].report->digest == runs[2].report->digest);
    assert_time_equal(runs[1].timeline->end, runs[0].timeline->end);
    for (unsigned c = 0; c < CAUSE_COUNT; c++) {
        assert_time_equal(runs[1].report->time_share_ps[c], runs[0].report->time_share_ps[c]);
    }
}

static void steps_without_noise_are_alike(void **state)
{
    (void)state;
    struct run run;
    const struct run_options options = {.steps = 3};
    assert_true(simulate(&run, FREE_LINKS, &options, NULL));
    assert_int_equal(run.report->step_count, 3);
    assert_close(run.report->steps[2].step_time_s, run.report->step_time_s, 1e-15);
}

/* Mistakes of independent parts are told together. */
static void all_mistakes_are_told_at_once(void **state)
{
    (void)state;
    struct run run;
    const struct run_options options = {.steps = 1};
    static const char *const wrong[] = {"schedule.kind", "interleave", "devices", "12", NULL};
    assert_false(simulate(&run, FREE_LINKS, &options, wrong));
    assert_int_equal(errors.count, 2);
    assert_int_equal(errors.items[0].code, ERROR_unknown_name);
    assert_non_null(strstr(errors.items[0].message, "\"interleaved\""));
    assert_int_equal(errors.items[1].code, ERROR_devices_not_multiple_of_node);
    assert_null(run.report);
}

static void preparing_stops_before_the_clock(void **state)
{
    (void)state;
    struct run run;
    const struct scenario_source source = {.path = FREE_LINKS};
    error_list_init(&errors, arena);
    const struct scenario *scenario = scenario_load(&source, arena, &errors);
    assert_non_null(scenario);
    assert_true(run_prepare(&run, scenario, arena, &errors));
    assert_non_null(run.graph);
    assert_null(run.programs);
    assert_int_equal(run.layout->microbatches, 16);
}

static int open_arena(void **state)
{
    (void)state;
    arena = arena_create("test");
    return 0;
}

static int close_arena(void **state)
{
    (void)state;
    arena_destroy(arena);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(bubble_of_equal_chunks_is_the_closed_form, open_arena,
                                        close_arena),
        cmocka_unit_test_setup_teardown(folding_and_fusing_change_nothing, open_arena, close_arena),
        cmocka_unit_test_setup_teardown(steps_without_noise_are_alike, open_arena, close_arena),
        cmocka_unit_test_setup_teardown(all_mistakes_are_told_at_once, open_arena, close_arena),
        cmocka_unit_test_setup_teardown(preparing_stops_before_the_clock, open_arena, close_arena),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
