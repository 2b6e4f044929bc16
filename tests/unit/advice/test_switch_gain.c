/* The share that a switch recovers is the difference of two runs, made by hand. */
#include <string.h>

#include "run_text.h"
#include "stepsim/advice.h"

static const char EXCHANGING[] =
    "model: {base: deepseek_v3, layers: 29}\n"
    "cluster: atlas_800t_a2\n"
    "devices: 128\n"
    "parallel: {tp: 1, pp: 4, ep: 32, etp: 1, zero: 1}\n"
    "training: {seq_len: 4096, micro_batch_size: 1, global_batch_size: 1024}\n"
    "schedule: {kind: 1f1b, p2p: overlapped}\n";

static void share_is_a_difference(void **state)
{
    (void)state;
    struct arena *arena = arena_create("test");
    const struct run base = run_text(arena, EXCHANGING, NULL, NULL);
    assert_non_null(strstr(base.report->verdict, "exposed expert communication"));
    const struct run made = run_text(arena, EXCHANGING, "moe.exchange", "hierarchical");
    const struct run shared = run_text(arena, EXCHANGING, "moe.overlap.shared_expert", "true");
    const bool first = made.report->step_time_s <= shared.report->step_time_s;
    const struct report *best = first ? made.report : shared.report;
    const struct switch_gain gain = advice_switch(base.scenario, base.report, arena);
    assert_non_null(gain.name);
    assert_string_equal(gain.name,
                        first ? "moe.exchange: hierarchical" : "moe.overlap.shared_expert: true");
    assert_close(gain.share, 1.0 - best->step_time_s / base.report->step_time_s, 1e-12);
    assert_true(gain.share > 0.0);
    arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(share_is_a_difference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
