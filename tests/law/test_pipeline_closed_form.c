/*
 * The event-driven result equals the closed form when nothing contends.
 *
 * Pangu Ultra 135B (arXiv:2504.07866): 8 stages, 16 microbatches; the report states a bubble of
 * (p-1)/(p-1+m) = 7/23 = 30.43 % for 1F1B and 7/103 = 6.80 % with 6 virtual stages. Chunks
 * are equal when the vocabulary is so small that embedding and head vanish (8 words: one
 * column per tensor rank, 6e-6 of a stage) and 96 layers fill 48 chunks.
 */
#include <stdio.h>
#include <string.h>

#include "../support/assert_close.h"
#include "../support/ideal_device.h"
#include "stepsim/run.h"

static const char BASE[] =
    "model: {base: pangu_ultra_135b, layers: 96, vocab_size: 8}\n"
    "cluster: atlas_800t_a2\n"
    "devices: 512\n"
    "parallel: {tp: 8, sequence_parallel: true, pp: 8, zero: 1, stages: {split: even}}\n"
    "training: {seq_len: 4096, micro_batch_size: 1, global_batch_size: 128}\n"
    "schedule: {kind: 1f1b, p2p: overlapped}\n"
    "recompute: {modules: []}\n"
    "host: {dispatch: graph}\n";

/* Runs BASE on ideal hardware with extra overrides; the report lives in the arena. */
static const struct report *ideal_run(struct arena *arena, const struct scenario_override *extra,
                                      size_t extra_count, bool ranks_all)
{
    struct scenario_override overrides[IDEAL_DEVICE_COUNT + 16];
    memcpy(overrides, IDEAL_DEVICE, sizeof(IDEAL_DEVICE));
    for (size_t i = 0; i < extra_count; i++) {
        overrides[IDEAL_DEVICE_COUNT + i] = extra[i];
    }
    struct error_list errors;
    error_list_init(&errors, arena);
    const struct scenario_source source = {
        .text = BASE,
        .text_name = "test",
        .overrides = overrides,
        .override_count = (uint32_t)(IDEAL_DEVICE_COUNT + extra_count)};
    const struct scenario *scenario = scenario_load(&source, arena, &errors);
    struct run run;
    const struct run_options options = {.steps = 1, .ranks_all = ranks_all};
    const bool done =
        scenario != NULL && run_simulate(&run, scenario, &options, arena, &errors);
    if (!done) {
        print_error("%s", error_list_text(&errors, arena));
    }
    assert_true(done);
    return run.report;
}

static void test_pangu_135b_one_f_one_b(void **state)
{
    (void)state;
    struct arena *arena = arena_create("test");
    const struct report *report = ideal_run(arena, NULL, 0, false);
    assert_close(report->bubble_ratio, 7.0 / 23.0, 1e-4);
    arena_destroy(arena);
}

static void test_pangu_135b_interleaved(void **state)
{
    (void)state;
    struct arena *arena = arena_create("test");
    const struct scenario_override extra[] = {{"schedule.kind", "interleaved"},
                                              {"parallel.vpp", "6"}};
    const struct report *report = ideal_run(arena, extra, 2, false);
    assert_close(report->bubble_ratio, 7.0 / 103.0, 1e-4);
    arena_destroy(arena);
}

/* Twice the microbatches: (p-1)/(p-1+32) = 7/39. */
static void test_more_microbatches(void **state)
{
    (void)state;
    struct arena *arena = arena_create("test");
    const struct scenario_override extra[] = {{"training.global_batch_size", "256"}};
    const struct report *report = ideal_run(arena, extra, 1, false);
    assert_close(report->bubble_ratio, 7.0 / 39.0, 1e-4);
    arena_destroy(arena);
}

static void test_folded_equals_all(void **state)
{
    (void)state;
    struct arena *arena = arena_create("test");
    const struct scenario_override extra[] = {{"schedule.kind", "interleaved"},
                                              {"parallel.vpp", "6"}};
    const struct report *folded = ideal_run(arena, extra, 2, false);
    const struct report *all = ideal_run(arena, extra, 2, true);
    assert_int_equal(folded->simulated_ranks, 8);
    assert_int_equal(all->simulated_ranks, 512);
    assert_true(folded->digest == all->digest);
    arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pangu_135b_one_f_one_b),
        cmocka_unit_test(test_pangu_135b_interleaved),
        cmocka_unit_test(test_more_microbatches),
        cmocka_unit_test(test_folded_equals_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
