/*
 * The lower bound of plan.h is never above the simulation: over random legal layouts of random
 * small models, and over the published layouts. The seed is printed; STEPSIM_SEED sets it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "assert_close.h"
#include "stepsim/rng.h"
#include "stepsim/run.h"

#define LEGAL_LAYOUTS 2000
#define TRIES_MAX     200000

static uint64_t state;

static uint64_t below(uint64_t count)
{
    state = rng_mix(state, 1);
    return state % count;
}

static const char *one_of(const char *const *words, size_t count)
{
    return words[below(count)];
}
#define ONE_OF(...)                                                                                \
    one_of((const char *const[]){__VA_ARGS__},                                                     \
           sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))

/* A scenario of a small model; most are refused. */
static const char *random_scenario(struct arena *arena)
{
    const char *kind = ONE_OF("gpipe", "1f1b", "interleaved", "zb_h1", "zb_v", "dualpipe_v",
                              "overlapped_1f1b", "overlapped_1f1b");
    const char *modules = ONE_OF("[]", "[]", "[norm, activation]", "[qkv, norm, activation]",
                                 "[layer]", "[moe_expert_mlp]");
    const char *swap = ONE_OF("[]", "[]", "[moe_permute_probs]", "[attention]");
    const bool single = strcmp(kind, "interleaved") != 0 && strcmp(kind, "overlapped_1f1b") != 0;
    const char *vpp =
        single ? (strcmp(kind, "zb_v") == 0 || strcmp(kind, "dualpipe_v") == 0 ? "2" : "1")
               : ONE_OF("1", "2", "2", "3");
    return arena_printf(
        arena,
        "model: {base: %s, layers: %s, mtp_layers: %s}\n"
        "cluster: %s\ndevices: %s\n"
        "parallel: {tp: %s, pp: %s, vpp: %s, ep: %s, etp: 1, cp: %s, zero: %s, stages: balanced}\n"
        "training: {seq_len: 4096, micro_batch_size: %s, global_batch_size: %s}\n"
        "schedule: {kind: %s, p2p: %s}\n"
        "moe: {dispatcher: %s, exchange: %s, overlap: {shared_expert: %s}}\n"
        "recompute: {modules: %s}\n"
        "swap: {activations: %s, optimizer: %s}\n"
        "overlap: {grad_reduce: %s, param_gather: %s, matmul_collective: %s}\n"
        "host: {dispatch: %s}\n",
        ONE_OF("pangu_ultra_moe_718b", "deepseek_v2_lite", "qwen3_30b_a3b"),
        ONE_OF("5", "8", "12", "13"), ONE_OF("0", "1"), ONE_OF("atlas_800t_a2", "h100_dgx"),
        ONE_OF("64", "128", "256"), ONE_OF("1", "2", "4", "8"), ONE_OF("1", "2", "4", "4", "8"),
        vpp, ONE_OF("1", "4", "8", "16", "32"), ONE_OF("1", "1", "2"),
        ONE_OF("0", "1", "1", "2", "3"), ONE_OF("1", "2"), ONE_OF("64", "128", "256"), kind,
        ONE_OF("overlapped", "blocking"), ONE_OF("alltoall", "alltoall", "allgather"),
        ONE_OF("flat", "hierarchical"), ONE_OF("true", "false"), modules, swap,
        ONE_OF("false", "false", "true"), ONE_OF("true", "false"), ONE_OF("true", "false"),
        ONE_OF("none", "mc2", "coc"), ONE_OF("eager", "graph"));
}

struct tightness {
    uint32_t legal;
    double sum, least;
    double quick; /* sum of quick over full bounds */
};

static bool check_one(const struct scenario_source *source, struct arena *arena,
                      struct tightness *tightness)
{
    struct error_list errors;
    error_list_init(&errors, arena);
    struct run run;
    struct plan_bound bound;
    const struct run_options options = {.steps = 1};
    const struct scenario *scenario = scenario_load(source, arena, &errors);
    const struct run_bound_ask ask = {.scenario = scenario, .memory_cut_bytes = (double)INFINITY};
    if (scenario == NULL || !run_bound(&run, &ask, &bound, arena, &errors)) {
        if (getenv("STEPSIM_SHOW") != NULL) {
            fputs(error_list_text(&errors, arena), stderr);
        }
        return false;
    }
    /* The quick bound is one too, and never above the other. */
    struct run_bound_ask quick_ask = ask;
    struct plan_bound quick;
    quick_ask.quick = true;
    assert_true(run_bound(&run, &quick_ask, &quick, arena, &errors));
    if (quick.step_s > bound.step_s || quick.peak_bytes > bound.peak_bytes) {
        print_error("quick %.12g s, %.0f bytes; full %.12g s, %.0f bytes:\n%s\n", quick.step_s,
                    quick.peak_bytes, bound.step_s, bound.peak_bytes,
                    source->text != NULL ? source->text : source->path);
        assert_true(false);
    }
    tightness->quick += bound.step_s > 0.0 ? quick.step_s / bound.step_s : 1.0;
    if (!run_simulate(&run, scenario, &options, arena, &errors)) {
        print_error("%s\n%s", error_list_text(&errors, arena), source->text);
        assert_true(false);
    }
    if (bound.step_s > run.report->step_time_s || bound.peak_bytes > run.report->peak_bytes) {
        print_error("bound %.12g s, %.0f bytes; simulated %.12g s, %.0f bytes:\n%s\n", bound.step_s,
                    bound.peak_bytes, run.report->step_time_s, run.report->peak_bytes,
                    source->text != NULL ? source->text : source->path);
        assert_true(false);
    }
    const double ratio = bound.step_s / run.report->step_time_s;
    tightness->legal++;
    tightness->sum += ratio;
    tightness->least = ratio < tightness->least ? ratio : tightness->least;
    return true;
}

static void random_layouts_are_not_faster_than_their_bound(void **unused)
{
    (void)unused;
    const char *seed = getenv("STEPSIM_SEED");
    state = seed != NULL ? strtoull(seed, NULL, 10) : 8;
    print_message("seed %llu\n", (unsigned long long)state);
    struct arena *arena = arena_create("test");
    struct arena *texts = arena_create("texts");
    struct scenario_cache *cache = scenario_cache_create();
    struct tightness tightness = {.least = 1.0};
    for (uint32_t i = 0; i < TRIES_MAX && tightness.legal < LEGAL_LAYOUTS; i++) {
        const struct scenario_source source = {
            .text = random_scenario(texts), .text_name = "random", .cache = cache};
        check_one(&source, arena, &tightness);
        arena_reset(arena);
        if (i % 1000 == 999) { /* the cache may point into texts it has parsed */
            scenario_cache_destroy(cache);
            cache = scenario_cache_create();
            arena_reset(texts);
        }
    }
    print_message("%u layouts; bound over simulated: mean %.3f, least %.3f; quick over it: %.3f\n",
                  tightness.legal, tightness.sum / tightness.legal, tightness.least,
                  tightness.quick / tightness.legal);
    assert_true(tightness.quick / tightness.legal > 0.5);
    assert_int_equal(tightness.legal, LEGAL_LAYOUTS);
    /* A bound that is loose prunes nothing: half of the step is far below what it reaches. */
    assert_true(tightness.sum / tightness.legal > 0.5);
    scenario_cache_destroy(cache);
    arena_destroy(texts);
    arena_destroy(arena);
}

static void published_layouts_are_not_faster_than_their_bound(void **unused)
{
    (void)unused;
    static const char *const files[] = {"pangu_ultra_moe_6k/sim.yaml",
                                        "pangu_ultra_moe_4k_baseline/sim.yaml",
                                        "pangu_ultra_135b/sim.yaml",
                                        "pangu_ultra_135b/free_links.yaml",
                                        "pangu_ablation/00_baseline.yaml",
                                        "pangu_ablation/11_optimised.yaml",
                                        "pangu_ablation/08_fine_grained_recompute.yaml"};
    struct arena *arena = arena_create("test");
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        struct tightness tightness = {.least = 1.0};
        const struct scenario_source source = {
            .path = arena_printf(arena, "%s/sims/%s", STEPSIM_SOURCE_DIR, files[i])};
        const double begin_s = run_clock_s();
        assert_true(check_one(&source, arena, &tightness));
        print_message("%s: bound over simulated %.4f (%.1f ms)\n", files[i], tightness.least,
                      (run_clock_s() - begin_s) * 1e3);
        /* The pipeline is played in full, so most of a step is always counted. */
        assert_true(tightness.least > 0.8);
    }
    arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_layouts_are_not_faster_than_their_bound),
        cmocka_unit_test(published_layouts_are_not_faster_than_their_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
