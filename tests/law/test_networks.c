/*
 * test_networks.c - the three network models agree to the picosecond when nothing contends, and
 * what contends never makes a transfer shorter.
 *
 * Nothing contends in jobs of one stage and without overlap (ZeRO 0 and 1: higher ones reduce
 * gradients beside the next microbatch), whose transfers follow one another,
 * and in a pipeline that blocks: forwards travel one way, then backwards the other, over links that
 * no group uses. The jobs are random; the seeds are printed.
 */
#include <stdio.h>
#include <string.h>

#include "assert_close.h"

#include "stepsim/rng.h"
#include "stepsim/run.h"

#define JOBS_WANTED 60
#define SEEDS_MAX   2000

#define PICK(rng, list) ((list)[rng_below((rng), sizeof(list) / sizeof(list)[0])])

static const char *const networks[] = {"closed_form", "ports", "fair_share"};

struct answer {
    sim_time end;
    uint64_t digest;
    bool legal;
};

static struct answer simulate(const char *text, const char *network, struct scenario_cache *cache)
{
    struct arena *arena = arena_create("test");
    struct error_list errors;
    error_list_init(&errors, arena);
    const struct scenario_override overrides[] = {{"network", network}};
    const struct scenario_source source = {.text = text,
                                           .text_name = "job",
                                           .cache = cache,
                                           .overrides = overrides,
                                           .override_count = 1};
    const struct scenario *scenario = scenario_load(&source, arena, &errors);
    struct run run = {0};
    const struct run_options options = {.steps = 1};
    struct answer answer = {0};
    if (scenario != NULL && run_simulate(&run, scenario, &options, arena, &errors))
        answer = (struct answer){run.timeline->end, run.timeline->digest, true};
    arena_destroy(arena);
    return answer;
}

/* `pipeline`: two stages on two nodes, all groups inside a node. */
static void draw_job(uint64_t seed, bool pipeline, bool overlaps, char *text, size_t size)
{
    static const uint32_t powers[] = {1, 2, 4, 8};
    static const uint32_t worlds[] = {8, 16, 32};
    static const char *const models[] = {"deepseek_v2_lite", "qwen3_30b_a3b"};
    static const char *const clusters[] = {"atlas_800t_a2", "cloudmatrix384", "h100_dgx"};
    struct rng rng = rng_stream(seed, 3);
    const uint32_t devices = pipeline ? 16 : PICK(&rng, worlds);
    const char *cluster = pipeline ? "atlas_800t_a2" : PICK(&rng, clusters);
    const int length =
        snprintf(text, size,
                 "model: {base: %s, layers: 4, mtp_layers: 0}\ncluster: %s\ndevices: %u\n"
                 "parallel: {tp: %u, pp: %u, ep: %u, etp: 1, zero: %u, stages: balanced}\n"
                 "training: {seq_len: 4096, micro_batch_size: 1, global_batch_size: 64}\n"
                 "schedule: {kind: %s, p2p: blocking}\n"
                 "moe: {dispatcher: alltoall, exchange: %s, overlap: {shared_expert: %s}}\n"
                 "overlap: {grad_reduce: %s, param_gather: %s}\n",
                 PICK(&rng, models), cluster, devices, PICK(&rng, powers), pipeline ? 2 : 1,
                 PICK(&rng, powers), (unsigned)rng_below(&rng, 2), pipeline ? "gpipe" : "1f1b",
                 rng_below(&rng, 2) ? "flat" : "hierarchical", overlaps ? "true" : "false",
                 overlaps ? "true" : "false", overlaps ? "true" : "false");
    assert_true(length > 0 && (size_t)length < size);
}

static void check_jobs(bool pipeline)
{
    struct scenario_cache *cache = scenario_cache_create();
    uint32_t jobs = 0;
    uint64_t seed = 1;
    for (; jobs < JOBS_WANTED && seed < SEEDS_MAX; seed++) {
        char text[1024];
        draw_job(seed, pipeline, false, text, sizeof text);
        const struct answer alone = simulate(text, networks[0], cache);
        if (!alone.legal)
            continue;
        jobs++;
        for (int i = 1; i < 3; i++) {
            const struct answer other = simulate(text, networks[i], cache);
            if (other.digest != alone.digest)
                print_error("seed %llu, %s:\n%s", (unsigned long long)seed, networks[i], text);
            assert_time_equal(other.end, alone.end);
            assert_true(other.digest == alone.digest);
        }
    }
    print_message("seeds 1 to %llu: %u jobs\n", (unsigned long long)(seed - 1), jobs);
    assert_true(jobs >= JOBS_WANTED);
    scenario_cache_destroy(cache);
}

static void one_stage_agrees(void **state)
{
    (void)state;
    check_jobs(false);
}

static void a_pipeline_agrees(void **state)
{
    (void)state;
    check_jobs(true);
}

/* With overlap, transfers meet: the models that see it answer no less than the one that does not,
 * and some answer more. */
static void contention_lengthens(void **state)
{
    (void)state;
    struct scenario_cache *cache = scenario_cache_create();
    uint32_t jobs = 0, longer[3] = {0};
    for (uint64_t seed = 1; jobs < JOBS_WANTED && seed < SEEDS_MAX; seed++) {
        char text[1024];
        draw_job(seed, false, true, text, sizeof text);
        const struct answer alone = simulate(text, networks[0], cache);
        if (!alone.legal)
            continue;
        jobs++;
        for (int i = 1; i < 3; i++) {
            const struct answer other = simulate(text, networks[i], cache);
            assert_true(other.end >= alone.end);
            longer[i] += other.end > alone.end;
        }
    }
    print_message("of %u jobs ports lengthen %u, fair_share %u\n", jobs, longer[1], longer[2]);
    assert_true(longer[1] > 0 && longer[2] > 0);
    scenario_cache_destroy(cache);
}

/* Four to one: an expert exchange over all nodes loads every uplink fully, so that fair_share finds
 * what the closed form assumes, but for latencies, which leave the uplink to others. */
static void a_full_uplink_is_the_closed_form(void **state)
{
    (void)state;
    static const char text[] =
        "model: {base: qwen3_30b_a3b, layers: 4}\ndevices: 64\n"
        "cluster: atlas_800t_a2\n"
        "parallel: {tp: 1, pp: 1, ep: 64, etp: 1, zero: 1}\n"
        "training: {seq_len: 8192, micro_batch_size: 2, global_batch_size: 128}\n"
        "schedule: {kind: 1f1b}\nmoe: {exchange: flat}\n"
        "overlap: {grad_reduce: false, param_gather: false}\n";
    sim_time ends[2][2];
    for (int crowded = 0; crowded < 2; crowded++) {
        for (int i = 0; i < 2; i++) {
            struct arena *arena = arena_create("test");
            struct error_list errors;
            error_list_init(&errors, arena);
            const struct scenario_override overrides[] = {
                {"network", networks[i * 2]},
                {"cluster.levels.1.oversubscription", crowded ? "4" : "1"}};
            const struct scenario_source source = {.text = text,
                                                   .text_name = "job",
                                                   .overrides = overrides,
                                                   .override_count = 2,
                                                   .config_dir = STEPSIM_SOURCE_DIR "/configs"};
            const struct scenario *scenario = scenario_load(&source, arena, &errors);
            struct run run = {0};
            const struct run_options options = {.steps = 1};
            if (scenario == NULL || !run_simulate(&run, scenario, &options, arena, &errors)) {
                print_error("%s\n", error_list_text(&errors, arena));
                fail();
            }
            ends[crowded][i] = run.timeline->end;
            arena_destroy(arena);
        }
    }
    assert_time_equal(ends[0][1], ends[0][0]);
    assert_true(ends[1][0] > ends[0][0] && ends[1][1] > ends[0][1]);
    assert_close((double)ends[1][1], (double)ends[1][0], 0.03);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_stage_agrees),
        cmocka_unit_test(a_pipeline_agrees),
        cmocka_unit_test(contention_lengthens),
        cmocka_unit_test(a_full_uplink_is_the_closed_form),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
