/*
 * Laws of unequal experts from the scenario to the step: balance is balance, skew costs, dropped
 * shares against a direct calculation, placements, narrowing, and steps.
 */
#include <math.h>
#include <string.h>

#include "../../support/assert_close.h"
#include "stepsim/routing.h"
#include "stepsim/run.h"

static const char JOB[] =
    "model: {base: deepseek_v3, layers: 7}\n"
    "cluster: atlas_800t_a2\n"
    "devices: 64\n"
    "parallel: {tp: 2, sequence_parallel: true, pp: 2, vpp: 1, ep: 16, etp: 1, zero: 1}\n"
    "training: {seq_len: 2048, micro_batch_size: 1, global_batch_size: 64}\n"
    "schedule: {kind: 1f1b}\n";

#define OVERRIDES_MAX 6
#define STEPS_MAX     40
struct outcome {
    uint64_t digest;
    double step_s[STEPS_MAX];
    uint32_t migrations[STEPS_MAX];
    struct report report;
    double share_imbalance, weights;
};

static struct outcome simulate(uint32_t steps, const char *const *overrides)
{
    struct arena *arena = arena_create("test");
    struct error_list errors;
    error_list_init(&errors, arena);
    struct scenario_override list[OVERRIDES_MAX];
    struct scenario_source source = {.text = JOB, .text_name = "test", .overrides = list};
    for (; *overrides != NULL; overrides += 2)
        list[source.override_count++] = (struct scenario_override){overrides[0], overrides[1]};
    const struct scenario *scenario = scenario_load(&source, arena, &errors);
    struct run run = {0};
    const struct run_options options = {.steps = steps};
    if (scenario == NULL || !run_simulate(&run, scenario, &options, arena, &errors))
        print_error("%s", error_list_text(&errors, arena));
    assert_non_null(run.report);
    struct outcome outcome = {.digest = run.report->digest, .report = *run.report};
    for (uint32_t i = 0; i < steps; i++) {
        outcome.step_s[i] = run.report->steps[i].step_time_s;
        outcome.migrations[i] = run.report->steps[i].migrations;
    }
    outcome.weights = run.report->stages[0].weights;
    outcome.share_imbalance = sim_time_seconds(run.report->time_share_ps[CAUSE_IMBALANCE]);
    arena_destroy(arena);
    return outcome;
}

#define SIMULATE(steps, ...) simulate((steps), (const char *const[]){__VA_ARGS__, NULL})
#define LOAD(text)           "moe.routing", "{load: " text "}"

static void perfect_balance_has_the_balanced_digest(void **state)
{
    (void)state;
    const struct outcome plain = SIMULATE(1, "seed", "1");
    assert_true(SIMULATE(1, LOAD("zipf, s: 0")).digest == plain.digest);
    assert_true(SIMULATE(1, LOAD("hot_rank, max_over_mean: 1")).digest == plain.digest);
    assert_true(SIMULATE(1, LOAD("zipf, s: 0"), "moe.placement", "random").digest == plain.digest);
    assert_true(SIMULATE(1, "moe.policy", "drop", "moe.capacity_factor", "1").digest ==
                plain.digest);
    assert_close(plain.report.load_max_over_mean, 1.0, 1e-15);
}

/* Without expert parallelism every rank holds all experts and their rows add up to the mean. */
static void one_rank_has_all_rows(void **state)
{
    (void)state;
    const char *const ep = "parallel.ep";
    const struct outcome plain = SIMULATE(1, ep, "1");
    const struct outcome skewed = SIMULATE(1, ep, "1", LOAD("zipf, s: 0.7"));
    assert_close(skewed.step_s[0], plain.step_s[0], 1e-12);
    assert_close(skewed.report.load_max_over_mean, 1.0, 1e-15);
}

static void more_skew_is_never_faster(void **state)
{
    (void)state;
    static const char *const zipf[] = {"{load: zipf, s: 0}",   "{load: zipf, s: 0.1}",
                                       "{load: zipf, s: 0.3}", "{load: zipf, s: 0.6}",
                                       "{load: zipf, s: 0.9}", "{load: zipf, s: 1.2}"};
    double before = 0.0;
    for (size_t i = 0; i < sizeof zipf / sizeof zipf[0]; i++) {
        const struct outcome after = SIMULATE(1, "moe.routing", zipf[i]);
        assert_true(after.step_s[0] >= before);
        before = after.step_s[0];
    }
}

/* What balance takes off the step is the imbalance, in time_share and by running it. */
static void imbalance_is_what_balance_removes(void **state)
{
    (void)state;
    const struct outcome plain = SIMULATE(1, "seed", "1");
    const struct outcome hot = SIMULATE(1, LOAD("hot_rank, max_over_mean: 2"));
    assert_close(hot.report.load_max_over_mean, 2.0, 1e-12);
    assert_close(hot.report.balanced_step_time_s, plain.step_s[0], 1e-12);
    assert_close(hot.share_imbalance, hot.step_s[0] - plain.step_s[0], 1e-6);
    assert_true(hot.share_imbalance > 0.0);
}

/* Zipf(0.8) over 256 experts, capacity 1.25: kept by hand. */
static double zipf_dropped(double s, double capacity)
{
    double sum = 0.0, dropped = 0.0;
    for (int i = 1; i <= 256; i++)
        sum += pow(i, -s);
    for (int i = 1; i <= 256; i++)
        dropped += fmax(0.0, pow(i, -s) * 256.0 / sum - capacity) / 256.0;
    return dropped;
}

static void dropped_share_is_the_direct_one(void **state)
{
    (void)state;
    const struct outcome drop = SIMULATE(1, LOAD("zipf, s: 0.8"), "moe.policy", "drop",
                                         "moe.capacity_factor", "1.25");
    assert_close(drop.report.dropped_ratio, zipf_dropped(0.8, 1.25), 0.01);
    assert_true(drop.report.padded_ratio == 0.0);
    assert_true(drop.report.hfu < drop.report.mfu * 1.2);
    const struct outcome pad = SIMULATE(1, LOAD("zipf, s: 0.8"), "moe.policy", "drop_and_pad",
                                        "moe.capacity_factor", "1.25");
    assert_close(pad.report.dropped_ratio, zipf_dropped(0.8, 1.25), 0.01);
    /* Every expert computes 1.25 rows of which 1 - dropped are tokens. */
    assert_close(pad.report.padded_ratio, 1.0 - (1.0 - zipf_dropped(0.8, 1.25)) / 1.25, 0.01);
}

/* Padding is work that HFU sees and MFU does not: with equal step time their ratio tells. */
static void padding_counts_in_hfu_only(void **state)
{
    (void)state;
    const struct outcome plain = SIMULATE(1, "seed", "1");
    const struct outcome pad =
        SIMULATE(1, "moe.policy", "drop_and_pad", "moe.capacity_factor", "1.5");
    assert_true(pad.step_s[0] > plain.step_s[0]);
    assert_close(pad.report.mfu * pad.step_s[0], plain.report.mfu * plain.step_s[0], 1e-12);
    assert_true(pad.report.hfu / pad.report.mfu > 1.05 * plain.report.hfu / plain.report.mfu);
    assert_true(pad.report.peak_bytes > plain.report.peak_bytes);
    assert_close(pad.report.padded_ratio, 1.0 / 3.0, 1e-12);
}

static void greedy_beats_static(void **state)
{
    (void)state;
    const struct outcome none = SIMULATE(1, LOAD("zipf, s: 0.6"));
    const struct outcome greedy = SIMULATE(1, LOAD("zipf, s: 0.6"), "moe.placement", "greedy");
    const struct outcome hot = SIMULATE(1, LOAD("zipf, s: 0.6"), "moe.placement",
                                        "{kind: replicate_hot, hot: 4}");
    assert_true(greedy.report.load_mean_max_over_mean < none.report.load_mean_max_over_mean);
    assert_true(greedy.step_s[0] < none.step_s[0]);
    assert_true(hot.report.load_mean_max_over_mean < none.report.load_mean_max_over_mean);
    assert_true(hot.weights > none.weights);
}

/* Plans after every 5 steps: migration makes the fifth step longer, the sixth shorter. */
static void dynamic_placement_pays_back(void **state)
{
    (void)state;
    const struct outcome none = SIMULATE(20, LOAD("zipf, s: 0.6, drift: 0.001"));
    const struct outcome dynamic = SIMULATE(20, LOAD("zipf, s: 0.6, drift: 0.001"),
                                            "moe.placement", "{kind: dynamic, every: 5}");
    for (int i = 0; i < 4; i++) {
        assert_int_equal(dynamic.migrations[i], 0);
        assert_close(dynamic.step_s[i], none.step_s[i], 1e-12);
    }
    assert_true(dynamic.migrations[4] > 0);
    assert_true(dynamic.step_s[4] > none.step_s[4]);
    assert_true(dynamic.step_s[5] < none.step_s[5]);
    assert_true(dynamic.report.mean_step_time_s < none.report.mean_step_time_s);
    const struct outcome window =
        SIMULATE(20, LOAD("zipf, s: 0.6, drift: 0.001"), "moe.placement",
                 "{kind: dynamic, every: 5, predict: window, window: 3}");
    assert_true(window.report.mean_step_time_s < none.report.mean_step_time_s);
}

/* Strength 3 leaves a quarter of the excess: heaviest 1 + (2 - 1) / 4; with a time constant of
 * 10 steps it is 1 + 1/4 + 3/4 exp(-t/10) after t. */
static void auxiliary_loss_narrows(void **state)
{
    (void)state;
    const struct outcome at_once = SIMULATE(1, LOAD("hot_rank, max_over_mean: 2, aux_loss: 3"));
    assert_close(at_once.report.load_max_over_mean, 1.25, 1e-12);
    struct arena *arena = arena_create("test");
    struct error_list errors;
    error_list_init(&errors, arena);
    const struct scenario_override slow = {
        "moe.routing", "{load: hot_rank, max_over_mean: 2, aux_loss: 3, aux_loss_steps: 10}"};
    const struct scenario_source source = {
        .text = JOB, .text_name = "test", .overrides = &slow, .override_count = 1};
    const struct scenario *scenario = scenario_load(&source, arena, &errors);
    struct run run = {0};
    assert_true(scenario != NULL && run_prepare(&run, scenario, arena, &errors));
    const struct routing_ask ask = {.scenario = scenario,
                                    .model = run.model,
                                    .cluster = run.cluster,
                                    .layout = run.layout,
                                    .scratch = arena_create("scratch")};
    struct routing *routing = NULL;
    assert_true(routing_build(&ask, arena, &errors, &routing));
    for (uint32_t t = 0; t < 30; t++)
        assert_close(routing_step(routing, t)->max_over_mean, 1.25 + 0.75 * exp(-(double)t / 10.0),
                     1e-9);
    arena_destroy(ask.scratch);
    arena_destroy(arena);
}

static void draws_of_microbatches_and_replicas_differ(void **state)
{
    (void)state;
    const struct outcome shared = SIMULATE(1, LOAD("dirichlet, alpha: 4"));
    const struct outcome each =
        SIMULATE(1, LOAD("dirichlet, alpha: 4, granularity: microbatch"));
    const struct outcome own = SIMULATE(1, LOAD("dirichlet, alpha: 4, replicas: independent"));
    assert_int_equal(own.report.simulated_ranks, 64);
    assert_true(each.report.load_max_over_mean > shared.report.load_max_over_mean);
    assert_true(each.digest != shared.digest && own.digest != shared.digest);
    const struct outcome even = SIMULATE(1, "seed", "1");
    assert_true(SIMULATE(1, LOAD("zipf, s: 0, granularity: microbatch")).digest == even.digest);
    assert_true(SIMULATE(1, LOAD("zipf, s: 0, replicas: independent")).digest == even.digest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(perfect_balance_has_the_balanced_digest),
        cmocka_unit_test(one_rank_has_all_rows),
        cmocka_unit_test(more_skew_is_never_faster),
        cmocka_unit_test(imbalance_is_what_balance_removes),
        cmocka_unit_test(dropped_share_is_the_direct_one),
        cmocka_unit_test(padding_counts_in_hfu_only),
        cmocka_unit_test(greedy_beats_static),
        cmocka_unit_test(dynamic_placement_pays_back),
        cmocka_unit_test(auxiliary_loss_narrows),
        cmocka_unit_test(draws_of_microbatches_and_replicas_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
