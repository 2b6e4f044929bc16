/*
 * Laws of the switches: what overlaps never lengthens a step when nothing contends, what
 * saves memory saves it, and the published directions of the exchanges hold.
 *
 * Jobs are files of sims/ with overrides; contention is switched off where a law needs it.
 */
#include <stdio.h>
#include <string.h>

#include "../support/assert_close.h"
#include "stepsim/run.h"

#define OPTIMISED STEPSIM_SOURCE_DIR "/sims/pangu_ablation/11_optimised.yaml"
#define BASELINE  STEPSIM_SOURCE_DIR "/sims/pangu_ablation/00_baseline.yaml"
#define MC2_ONLY  STEPSIM_SOURCE_DIR "/sims/pangu_ablation/04_mc2.yaml"

struct outcome {
    double step_s, peak_bytes, mfu, hfu;
    double ep_exposed[PHASE_COUNT];
    double compute_share;
};

static struct outcome outcome_of(const char *path, const struct scenario_override *overrides,
                                 uint32_t count)
{
    struct arena *arena = arena_create("test");
    struct error_list errors;
    error_list_init(&errors, arena);
    const struct scenario_source source = {
        .path = path, .overrides = overrides, .override_count = count};
    const struct scenario *scenario = scenario_load(&source, arena, &errors);
    struct run run = {0};
    const struct run_options options = {.steps = 1};
    if (scenario == NULL || !run_simulate(&run, scenario, &options, arena, &errors))
        print_error("%s", error_list_text(&errors, arena));
    assert_non_null(run.report);
    struct outcome outcome = {.step_s = run.report->step_time_s,
                              .peak_bytes = run.report->peak_bytes,
                              .mfu = run.report->mfu,
                              .hfu = run.report->hfu};
    memcpy(outcome.ep_exposed, run.report->comm[CAUSE_EP].exposed_share, sizeof outcome.ep_exposed);
    arena_destroy(arena);
    return outcome;
}

/* Steps of OPTIMISED with one switch off and on; contention is off in both. */
static void expect_not_longer(const char *key, const char *off, const char *on)
{
    const struct scenario_override with[] = {{"cluster.device.contention_compute", "1"},
                                             {"cluster.device.contention_comm", "1"},
                                             {key, on}};
    const struct scenario_override without[] = {with[0], with[1], {key, off}};
    const struct outcome a = outcome_of(OPTIMISED, with, 3);
    const struct outcome b = outcome_of(OPTIMISED, without, 3);
    print_message("%s: %s %.4f s, %s %.4f s\n", key, off, b.step_s, on, a.step_s);
    assert_true(a.step_s <= b.step_s);
}

static void overlap_only_shortens(void **state)
{
    (void)state;
    expect_not_longer("schedule.p2p", "blocking", "overlapped");
    expect_not_longer("overlap.grad_reduce", "false", "true");
    expect_not_longer("overlap.param_gather", "false", "true");
    expect_not_longer("overlap.matmul_collective", "none", "mc2");
    expect_not_longer("moe.overlap.shared_expert", "false", "true");
    expect_not_longer("schedule.kind", "interleaved", "overlapped_1f1b");
    expect_not_longer("host.dispatch", "eager", "graph");
}

/* Follow-up press on Pangu Ultra MoE: exposed expert communication below 2 % in the steady
 * state; MindSpeed: 100 % hidden there, half in warm-up and cool-down, where a stage has no
 * other microbatch beside it. The stage of MTP and head has no other experts here: its chunks
 * would find too little beside them. */
static void pairs_hide_expert_communication(void **state)
{
    (void)state;
    const struct scenario_override split[] = {{"parallel.stages",
                                               "{layers: [3,2,2,2,2,2,2,2,2,2,2,2,2,2,2,0,"
                                               "2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,0]}"}};
    const struct outcome outcome = outcome_of(OPTIMISED, split, 1);
    assert_true(outcome.ep_exposed[PHASE_STEADY] < 0.02);
    assert_true(outcome.ep_exposed[PHASE_WARMUP] > outcome.ep_exposed[PHASE_STEADY]);
    assert_true(outcome.ep_exposed[PHASE_COOLDOWN] > outcome.ep_exposed[PHASE_STEADY]);
}

/* MindSpeed: pairs of microbatches win about 10 % over slices inside a layer on DeepSeek-V3, less
 * when the expert group stays inside a node. */
static void pairs_win_over_slices_where_the_exchange_is_long(void **state)
{
    (void)state;
    static const char *const files[] = {"intra_layer", "dualpipe_v", "overlapped_vpp"};
    const struct scenario_override small = {"parallel.ep", "8"};
    double step[2][3];
    for (uint32_t i = 0; i < 3; i++) {
        char path[512];
        snprintf(path, sizeof path, STEPSIM_SOURCE_DIR "/sims/deepseek_v3_overlap/%s.yaml",
                 files[i]);
        for (uint32_t group = 0; group < 2; group++)
            step[group][i] = outcome_of(path, &small, group).step_s;
    }
    for (uint32_t i = 1; i < 3; i++) {
        assert_true(fabs(step[0][0] / step[0][i] - 1.10) < 0.05);
        assert_true(step[1][0] / step[1][i] < step[0][0] / step[0][i] - 0.04);
    }
}

/* Pangu Ultra 135B: fused operators move MFU from about 43 to 52 % of the marketed peak. At the
 * published rates both hold within 4 points for kernels as fast as measured alone. */
static void fused_operators_of_a_dense_model(void **state)
{
    (void)state;
    static const struct scenario_override settings[] = {{"mfu.peak", "marketed"},
                                                        {"training.seq_len", "4096"},
                                                        {"cluster.device.sustained_ratio", "1"}};
    const char *const study = STEPSIM_SOURCE_DIR "/sims/pangu_ultra_135b/";
    char path[512];
    snprintf(path, sizeof path, "%sseparate_operators.yaml", study);
    const double before = outcome_of(path, settings, 3).mfu;
    snprintf(path, sizeof path, "%ssim.yaml", study);
    const double after = outcome_of(path, settings, 3).mfu;
    assert_true(fabs(before - 0.43) <= 0.04);
    assert_true(fabs(after - 0.52) <= 0.04);
    assert_true(after > before + 0.03);
}

/* Published: 30.0 and 18.9 % MFU, 1.59 in tokens/s per NPU with whatever loads the experts had. */
static void the_published_pair(void **state)
{
    (void)state;
    const double optimised = outcome_of(OPTIMISED, NULL, 0).mfu;
    const double baseline = outcome_of(BASELINE, NULL, 0).mfu;
    assert_true(fabs(optimised - 0.300) <= 0.03);
    assert_true(fabs(baseline - 0.189) <= 0.04);
    assert_true(fabs(optimised / baseline - 1.59) <= 0.15);
}

/* MindSpeed +4.3 %, TeleChat3 +15 %: 3 to 15 % end to end on A2; a public study on a
 * bandwidth-flat supernode found a loss. */
static void hierarchical_exchange_wins_on_a2_and_loses_on_a_supernode(void **state)
{
    (void)state;
    const struct scenario_override hierarchical[] = {{"moe.exchange", "hierarchical"},
                                                     {"cluster", "cloudmatrix384"}};
    const struct scenario_override balanced[] = {{"parallel.stages", "balanced"},
                                                 {"moe.exchange", "hierarchical"}};
    const double gain =
        outcome_of(MC2_ONLY, balanced, 1).step_s / outcome_of(MC2_ONLY, balanced, 2).step_s;
    assert_true(gain >= 1.03 && gain <= 1.15);
    /* Level stages have the exchange on the critical path everywhere: more than published. */
    const double level =
        outcome_of(MC2_ONLY, NULL, 0).step_s / outcome_of(MC2_ONLY, hierarchical, 1).step_s;
    assert_true(level >= gain && level <= 1.20);
    const double flat_node = outcome_of(MC2_ONLY, &hierarchical[1], 1).step_s;
    const double two_hop_node = outcome_of(MC2_ONLY, hierarchical, 2).step_s;
    assert_true(two_hop_node > flat_node);
}

static void recompute_trades_time_for_memory(void **state)
{
    (void)state;
    const struct scenario_override none[] = {{"recompute.modules", "[]"}};
    const struct scenario_override some[] = {{"recompute.modules", "[mla_kv_up_proj]"}};
    const struct scenario_override layer[] = {{"recompute.modules", "[layer]"}};
    const struct outcome a = outcome_of(OPTIMISED, none, 1);
    const struct outcome b = outcome_of(OPTIMISED, some, 1);
    const struct outcome c = outcome_of(OPTIMISED, layer, 1);
    assert_true(a.step_s < b.step_s && b.step_s < c.step_s);
    assert_true(a.peak_bytes > b.peak_bytes && b.peak_bytes > c.peak_bytes);
    assert_close(a.hfu, a.mfu, 1e-12);
    /* Whole layers: 4/3, less the heads, which are not run again (7 % of the forward). */
    assert_true(c.hfu / c.mfu > 1.29 && c.hfu / c.mfu < 4.0 / 3.0);
}

/* Behind a host link that is as good as infinite, swapping costs nothing but saves memory;
 * behind a slow one it is exposed. */
static void swap_costs_what_the_link_cannot_hide(void **state)
{
    (void)state;
    const struct scenario_override none[] = {{"swap.activations", "[]"}};
    const struct scenario_override fast[] = {{"cluster.device.host_down", "100 TB/s"},
                                             {"cluster.device.host_up", "100 TB/s"},
                                             {"cluster.host_bandwidth", "900 TB/s"}};
    const struct scenario_override slow[] = {{"cluster.device.host_up", "2 GB/s"}};
    const struct outcome without = outcome_of(OPTIMISED, none, 1);
    const struct outcome hidden = outcome_of(OPTIMISED, fast, 3);
    const struct outcome exposed = outcome_of(OPTIMISED, slow, 1);
    assert_close(hidden.step_s, without.step_s, 2e-3);
    assert_true(hidden.peak_bytes < without.peak_bytes);
    assert_true(exposed.step_s > 1.05 * without.step_s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(overlap_only_shortens),
        cmocka_unit_test(pairs_hide_expert_communication),
        cmocka_unit_test(pairs_win_over_slices_where_the_exchange_is_long),
        cmocka_unit_test(fused_operators_of_a_dense_model),
        cmocka_unit_test(the_published_pair),
        cmocka_unit_test(hierarchical_exchange_wins_on_a2_and_loses_on_a_supernode),
        cmocka_unit_test(recompute_trades_time_for_memory),
        cmocka_unit_test(swap_costs_what_the_link_cannot_hide),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
