/*
 * Laws of unequal expert loads in the programs: ratios of 1 change nothing although ranks
 * split into (stage x position) classes; folded equals full; a hotter position never makes
 * the step faster, and raises the peak of its stage.
 */
#include <string.h>

#include "../support/assert_close.h"
#include "stepsim/run.h"

static const char JOB[] =
    "model: {base: deepseek_v3, layers: 13}\n"
    "cluster: atlas_800t_a2\n"
    "devices: 64\n"
    "parallel: {tp: 2, sequence_parallel: true, pp: 2, vpp: 2, ep: 16, etp: 1, zero: 1}\n"
    "training: {seq_len: 2048, micro_batch_size: 1, global_batch_size: 64}\n"
    "schedule: {kind: overlapped_1f1b, p2p: overlapped}\n"
    "recompute: {modules: [norm, permute]}\n"
    "overlap: {grad_reduce: true, param_gather: true}\n";

struct outcome {
    uint64_t digest;
    sim_time end;
    int64_t peak_bytes;
    uint32_t simulated;
};

static struct expert_loads loads_of(const struct run *run, double hot, struct arena *arena)
{
    const uint32_t layers = run->model->layers + run->model->spec->mtp_layers;
    const uint32_t positions = run->layout->ep;
    double *ratio = ARENA_ARRAY(arena, (size_t)layers * positions, double);
    double *one = ARENA_ARRAY(arena, (size_t)layers * positions, double);
    for (uint32_t i = 0; i < layers * positions; i++) {
        one[i] = 1.0;
        /* Position 3 is hot, the others share what is left: the mean stays 1. */
        ratio[i] = i % positions == 3 ? hot : (positions - hot) / (positions - 1.0);
    }
    return (struct expert_loads){.layers = layers,
                                 .positions = positions,
                                 .rows_ratio = ratio,
                                 .receive_ratio = ratio,
                                 .send_ratio = one};
}

static struct outcome simulate(double hot, bool loads_given, bool ranks_all)
{
    struct arena *arena = arena_create("test");
    struct error_list errors;
    error_list_init(&errors, arena);
    const struct scenario_source source = {.text = JOB, .text_name = "test"};
    const struct scenario *scenario = scenario_load(&source, arena, &errors);
    struct run run = {0};
    const struct run_options options = {.steps = 1};
    if (scenario == NULL || !run_simulate(&run, scenario, &options, arena, &errors))
        print_error("%s", error_list_text(&errors, arena));
    assert_non_null(run.plan);
    const struct expert_loads loads = loads_of(&run, hot, arena);
    const struct plan_ask ask = {.graph = run.graph,
                                 .cluster = run.cluster,
                                 .schedule = run.schedule,
                                 .order = run.order,
                                 .loads = loads_given ? &loads : NULL,
                                 .ranks_all = ranks_all};
    const struct plan *plan = programs_build(&ask, arena);
    programs_check(plan->programs);
    const struct engine_options engine = {.observe = OBSERVE_NONE};
    const char *failure = NULL;
    const struct timeline *timeline = engine_run(plan->programs, &engine, arena, &failure);
    assert_non_null(timeline);
    struct outcome outcome = {.digest = timeline->digest,
                              .end = timeline->end,
                              .simulated = plan->programs->rank_count};
    for (uint32_t r = 0; r < plan->programs->rank_count; r++) {
        if (timeline->ranks[r].peak_bytes > outcome.peak_bytes)
            outcome.peak_bytes = timeline->ranks[r].peak_bytes;
    }
    arena_destroy(arena);
    return outcome;
}

static void balanced_ratios_change_nothing(void **state)
{
    (void)state;
    const struct outcome plain = simulate(1.0, false, false);
    const struct outcome split = simulate(1.0, true, false);
    assert_int_equal(plain.simulated, 2);
    assert_int_equal(split.simulated, 2 * 16);
    assert_time_equal(split.end, plain.end);
    assert_true(split.digest == plain.digest);
}

static void folded_equals_full(void **state)
{
    (void)state;
    const struct outcome folded = simulate(2.5, true, false);
    const struct outcome full = simulate(2.5, true, true);
    assert_int_equal(full.simulated, 64);
    assert_time_equal(folded.end, full.end);
    assert_true(folded.digest == full.digest);
}

static void more_skew_is_never_faster(void **state)
{
    (void)state;
    const double hot[] = {1.0, 1.1, 1.5, 2.0, 4.0, 8.0, 16.0};
    struct outcome before = simulate(hot[0], true, false);
    for (size_t i = 1; i < sizeof hot / sizeof hot[0]; i++) {
        const struct outcome after = simulate(hot[i], true, false);
        assert_true(after.end >= before.end);
        assert_true(after.peak_bytes > before.peak_bytes);
        before = after;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(balanced_ratios_change_nothing),
        cmocka_unit_test(folded_equals_full),
        cmocka_unit_test(more_skew_is_never_faster),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
