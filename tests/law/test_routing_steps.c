/*
 * Laws of unequal experts, from the scenario to its steps.
 *
 * Balance is balance under every schedule and skew costs; one layer takes what its heaviest
 * rank takes; folded steps are those of all ranks, and so are steps side by side; dynamic
 * placement wins back most of what balance would; bounds of a search hold under any load.
 */
#include <math.h>
#include <string.h>

#include "../support/assert_close.h"
#include "../support/ideal_device.h"
#include "stepsim/rng.h"
#include "stepsim/run.h"

static const char JOB[] =
    "model: {base: deepseek_v3, layers: 7, mtp_layers: 0}\n"
    "cluster: atlas_800t_a2\n"
    "devices: 32\n"
    "parallel: {tp: 2, sequence_parallel: true, pp: 2, vpp: 1, ep: 8, etp: 1, zero: 1}\n"
    "training: {seq_len: 2048, micro_batch_size: 1, global_batch_size: 64}\n"
    "schedule: {kind: 1f1b}\n";

#define OVERRIDES_MAX 40
#define STEPS_MAX     40

struct ask {
    const char *text;
    struct scenario_override overrides[OVERRIDES_MAX];
    uint32_t count;
    struct run_options options;
};

struct answer {
    uint64_t digest;
    double step_s[STEPS_MAX];
    struct report report;
    struct plan_bound bound;
};

static struct ask ask_of(uint32_t steps)
{
    return (struct ask){.text = JOB, .options = {.steps = steps}};
}

static void set(struct ask *ask, const char *key, const char *value)
{
    assert_true(ask->count < OVERRIDES_MAX);
    ask->overrides[ask->count++] = (struct scenario_override){key, value};
}

static struct answer answer_of(const struct ask *ask)
{
    struct arena *arena = arena_create("test");
    struct error_list errors;
    error_list_init(&errors, arena);
    const struct scenario_source source = {.text = ask->text,
                                           .text_name = "test",
                                           .overrides = ask->overrides,
                                           .override_count = ask->count};
    const struct scenario *scenario = scenario_load(&source, arena, &errors);
    struct run run = {0};
    if (scenario == NULL || !run_simulate(&run, scenario, &ask->options, arena, &errors))
        print_error("%s", error_list_text(&errors, arena));
    assert_non_null(run.report);
    struct answer answer = {.digest = run.report->digest, .report = *run.report};
    for (uint32_t i = 0; i < ask->options.steps; i++)
        answer.step_s[i] = run.report->steps[i].step_time_s;
    const struct run_bound_ask bound = {.scenario = scenario, .memory_cut_bytes = INFINITY};
    assert_true(run_bound(&run, &bound, &answer.bound, arena, &errors));
    arena_destroy(arena);
    return answer;
}

/*
 * One MoE layer on textbook hardware: a rank has 2048 tokens x 8 choices = 16384 rows, and an
 * expert row costs 2 x 3 x 7168 x 2048 FLOPs forward and twice that backward. A rank m times
 * as heavy as the mean takes m times as long, the others wait for it, and nothing else changes.
 */
static void one_layer_takes_what_its_heaviest_rank_takes(void **state)
{
    (void)state;
    struct ask ask = ask_of(1);
    for (size_t i = 0; i < IDEAL_DEVICE_COUNT; i++)
        set(&ask, IDEAL_DEVICE[i].key, IDEAL_DEVICE[i].value);
    set(&ask, "cluster.device.grouped_matmul_ratio", "1");
    set(&ask, "model.layers", "4"); /* the first three are dense */
    set(&ask, "parallel", "{tp: 1, pp: 1, ep: 8, etp: 1, zero: 1}");
    set(&ask, "devices", "8");
    set(&ask, "training.global_batch_size", "24"); /* three microbatches */
    const struct answer even = answer_of(&ask);
    const double rows = 2048.0 * 8.0;
    const double layer_s = 3.0 * 2.0 * 3.0 * 7168.0 * 2048.0 * rows / even.report.peak_flop_per_s;
    static const char *const loads[] = {"{load: hot_rank, max_over_mean: 1.25}",
                                        "{load: hot_rank, max_over_mean: 2}",
                                        "{load: hot_rank, max_over_mean: 7}"};
    const double heaviest[] = {1.25, 2.0, 7.0};
    for (int i = 0; i < 3; i++) {
        struct ask hot = ask;
        set(&hot, "moe.routing", loads[i]);
        const struct answer answer = answer_of(&hot);
        assert_close(answer.report.load_max_over_mean, heaviest[i], 1e-12);
        assert_close(answer.step_s[0] - even.step_s[0], 3.0 * (heaviest[i] - 1.0) * layer_s, 1e-4);
    }
}

/* Any legal degrees for a schedule of the registry. */
static struct ask scheduled(const struct schedule *schedule)
{
    struct ask ask = ask_of(1);
    const bool chunks =
        strcmp(schedule->name, "interleaved") == 0 || schedule->v_shaped || schedule->overlaps;
    set(&ask, "schedule.kind", schedule->name);
    set(&ask, "model.layers", "8");
    if (chunks)
        set(&ask, "parallel.vpp", "2");
    return ask;
}

static void every_schedule_keeps_balance_and_pays_for_skew(void **state)
{
    (void)state;
    static const char *const loads[] = {
        "{load: hot_rank, max_over_mean: 1}", "{load: hot_rank, max_over_mean: 1.2}",
        "{load: hot_rank, max_over_mean: 2}", "{load: hot_rank, max_over_mean: 5}"};
    for (size_t s = 0; s < schedule_count; s++) {
        const struct ask even = scheduled(schedule_registry[s]);
        const struct answer plain = answer_of(&even);
        double before = plain.step_s[0];
        for (int i = 0; i < 4; i++) {
            struct ask hot = even;
            set(&hot, "moe.routing", loads[i]);
            const struct answer answer = answer_of(&hot);
            if (i == 0)
                assert_true(answer.digest == plain.digest);
            assert_true(answer.step_s[0] >= before);
            assert_close(answer.report.balanced_step_time_s, plain.step_s[0], 1e-15);
            before = answer.step_s[0];
        }
    }
}

static const char *const any_load[] = {
    "{load: zipf, s: 0.7, drift: 5 %}",
    "{load: dirichlet, alpha: 1, drift: 2 %}",
    "{load: hot_experts, hot: 9, max_over_mean: 6, drift: 10 %}",
    "{load: spread_heat, hot: 5, max_over_mean: 9}",
    "{load: ragged_source, max_over_mean: 3}",
    "{load: empty_rank}",
    "{load: rotating_hotspot, max_over_mean: 3, period: 1}",
    "{load: burst, max_over_mean: 4, period: 2}",
    "{load: zipf, s: 0.5, granularity: microbatch}",
    "{load: dirichlet, alpha: 3, replicas: independent}",
    "{load: zipf, s: 1, aux_loss: 2, aux_loss_steps: 2, replicas: independent}",
};
static const char *const any_policy[] = {"dropless", "drop", "drop_and_pad"};
static const char *const any_placement[] = {"static",
                                            "random",
                                            "greedy",
                                            "{kind: dynamic, every: 1, min_gain: 0}",
                                            "{kind: dynamic, every: 2, predict: window, window: 2}",
                                            "{kind: replicate_hot, hot: 3}"};

/* Loads, policies, placements, slow ranks and links, networks as they come. */
static struct ask random_ask(uint64_t seed)
{
    struct rng rng = rng_stream(seed, 0);
    struct ask ask = ask_of(4);
    set(&ask, "moe.routing", any_load[rng_below(&rng, sizeof any_load / sizeof any_load[0])]);
    const uint64_t policy = rng_below(&rng, 3);
    set(&ask, "moe.policy", any_policy[policy]);
    if (policy > 0)
        set(&ask, "moe.capacity_factor", rng_below(&rng, 2) == 0 ? "1.3" : "0.9");
    set(&ask, "moe.placement", any_placement[rng_below(&rng, 6)]);
    if (rng_below(&rng, 3) == 0)
        set(&ask, "noise.slow_ranks", "[{rank: 5, factor: 1.3}]");
    if (rng_below(&rng, 3) == 0)
        set(&ask, "noise.slow_links", "[{level: cluster, rank: 9, factor: 0.5}]");
    static const char *const networks[] = {"closed_form", "ports", "fair_share"};
    set(&ask, "network", networks[rng_below(&rng, 3)]);
    if (rng_below(&rng, 2) == 0) {
        set(&ask, "schedule.kind", "overlapped_1f1b");
        set(&ask, "parallel.vpp", "2");
        set(&ask, "model.layers", "8");
    }
    return ask;
}

static void folded_and_side_by_side_equal_all_in_a_row(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 24; seed++) {
        struct ask ask = random_ask(seed);
        ask.options.jobs = 3;
        const struct answer folded = answer_of(&ask);
        ask.options.jobs = 1;
        ask.options.ranks_all = true;
        const struct answer full = answer_of(&ask);
        if (folded.digest != full.digest)
            print_error("seed %d\n", (int)seed);
        assert_true(folded.digest == full.digest);
        for (uint32_t i = 0; i < 4; i++)
            assert_close(folded.step_s[i], full.step_s[i], 0.0);
        assert_true(folded.report.worst_peak_bytes == full.report.worst_peak_bytes);
    }
}

static void bounds_hold_under_any_load(void **state)
{
    (void)state;
    for (uint64_t seed = 101; seed <= 130; seed++) {
        const struct ask ask = random_ask(seed);
        const struct answer answer = answer_of(&ask);
        assert_true(answer.bound.step_s <= answer.step_s[0]);
        assert_true(answer.bound.peak_bytes <= answer.report.peak_bytes);
    }
}

/* Loads that drift slowly: from the first plan on, more than half of the loss is won back. */
static void dynamic_placement_wins_most_back(void **state)
{
    (void)state;
    static const char *const loads[] = {
        "{load: zipf, s: 0.5, drift: 0.2 %}", "{load: dirichlet, alpha: 2, drift: 0.2 %}",
        "{load: hot_experts, hot: 12, max_over_mean: 4}", "{load: hot_rank, max_over_mean: 2.5}"};
    for (int i = 0; i < 4; i++) {
        struct ask ask = ask_of(20);
        set(&ask, "moe.routing", loads[i]);
        const struct answer none = answer_of(&ask);
        set(&ask, "moe.placement", "{kind: dynamic, every: 5}");
        const struct answer dynamic = answer_of(&ask);
        const double even_s = none.report.balanced_step_time_s;
        for (int t = 5; t < 20; t++) {
            if (t % 5 == 4)
                continue; /* steps that migrate */
            const double loss = none.step_s[t] - even_s;
            assert_true(dynamic.step_s[t] - even_s < 0.5 * loss);
        }
        assert_true(dynamic.report.migrations > 0);
        assert_true(dynamic.report.mean_step_time_s < none.report.mean_step_time_s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_layer_takes_what_its_heaviest_rank_takes),
        cmocka_unit_test(every_schedule_keeps_balance_and_pays_for_skew),
        cmocka_unit_test(folded_and_side_by_side_equal_all_in_a_row),
        cmocka_unit_test(bounds_hold_under_any_load),
        cmocka_unit_test(dynamic_placement_wins_most_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
