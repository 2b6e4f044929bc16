/*
 * Advice is found by running: every change it names does fit when it is made, and the
 * menu's figures are differences of two runs.
 */
#include <string.h>

#include "run_text.h"
#include "stepsim/advice.h"

static const char TOO_LARGE[] =
    "model: {base: deepseek_v3, layers: 29}\n"
    "cluster: atlas_800t_a2\n"
    "devices: 128\n"
    "parallel: {tp: 4, sequence_parallel: true, pp: 4, ep: 16, etp: 1, zero: 1}\n"
    "training: {seq_len: 4096, micro_batch_size: 1, global_batch_size: 128}\n"
    "schedule: {kind: 1f1b, p2p: overlapped}\n";

static void changes_fit_when_made(void **state)
{
    (void)state;
    struct arena *arena = arena_create("test");
    const struct run run = run_text(arena, TOO_LARGE, NULL, NULL);
    assert_false(run.report->fits);
    const struct fit_changes changes = advice_fit(run.scenario, arena);
    assert_true(changes.count > 0 && changes.tried >= changes.count);
    for (uint32_t i = 0; i < changes.count; i++) {
        const struct fit_change *change = &changes.items[i];
        assert_true(i == 0 || change->tokens_per_s <= changes.items[i - 1].tokens_per_s);
        if (strncmp(change->value, "also ", 5) == 0)
            continue; /* the sets are empty in this job: the word alone is the new set */
        const struct run made = run_text(arena, TOO_LARGE, change->key, change->value);
        assert_true(made.report->fits);
        assert_close(made.report->step_time_s, change->step_time_s, 1e-12);
    }
    arena_destroy(arena);
}

static void menu_is_a_difference(void **state)
{
    (void)state;
    struct arena *arena = arena_create("test");
    const struct run base = run_text(arena, TOO_LARGE, NULL, NULL);
    const struct recompute_menu menu = advice_recompute(base.scenario, arena);
    assert_int_equal(menu.count, 10);
    for (uint32_t i = 0; i < menu.count; i++) {
        const char *set = arena_printf(arena, "[%s]", menu.items[i].module);
        const struct run made = run_text(arena, TOO_LARGE, "recompute.modules", set);
        assert_false(menu.items[i].on);
        assert_close(menu.items[i].saved_bytes, base.report->peak_bytes - made.report->peak_bytes,
                     1e-9);
        assert_close(menu.items[i].added_s, made.report->step_time_s - base.report->step_time_s,
                     1e-9);
        /* Flash attention keeps nothing that its core could give back (M29, M31). */
        if (strcmp(menu.items[i].module, "attention_core") == 0) {
            assert_true(menu.items[i].saved_bytes <= 0.0);
            assert_true(menu.items[i].added_s > 0.0);
        }
    }
    arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changes_fit_when_made),
        cmocka_unit_test(menu_is_a_difference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
