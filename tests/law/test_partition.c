/*
 * Law of folding: one rank for each class of the equitable partition gives what all ranks
 * give, to the picosecond and byte, for each single rank.
 *
 * Random jobs: every schedule, dispatcher, exchange and recompute mode, any rank order, equal
 * and unequal expert loads (shared by the replicas or not), slow ranks, broken and slow parts of
 * the fabric, ranks placed by a file of hosts. Every rank of the full
 * run must have the end, the busy time, the peak of memory and the sum over all completions of
 * its class in the folded run. The job of a failure is printed with its seed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../support/assert_close.h"
#include "stepsim/rng.h"
#include "stepsim/run.h"
#include "stepsim/text.h"

#define JOBS_WANTED 200
#define OF_EACH     15 /* schedule, at least */
#define SEEDS_MAX   20000
#define RANKS_MOST  96

#define PICK(rng, list) ((list)[rng_below((rng), sizeof(list) / sizeof(list)[0])])

static const char *const schedules[] = {"gpipe", "1f1b",       "interleaved",    "zb_h1",
                                        "zb_v",  "dualpipe_v", "overlapped_1f1b"};
#define SCHEDULE_COUNT (sizeof schedules / sizeof schedules[0])

static const char *const orders[] = {"tp-cp-ep-dp-pp", "tp-cp-ep-dp-pp", "tp-ep-cp-dp-pp",
                                     "cp-tp-ep-dp-pp", "dp-tp-cp-ep-pp", "pp-tp-cp-ep-dp"};
static const char *const modules[] = {"[]",         "[norm]",       "[norm, permute]",
                                      "[layer]",    "[expert_mlp]", "[attention_core, activation]",
                                      "[moe_layer]"};

#define NETWORK_COUNT 3
static const char *const networks[NETWORK_COUNT] = {"closed_form", "ports", "fair_share"};

struct job {
    char text[2048];
    const char *schedule;
    uint32_t network;
    bool crowded; /* nodes share uplinks and a narrow host link */
    bool loads, independent, slow, links;
    bool faults, hosts;
    char host_file[64];
};

static const char *word(struct rng *rng, const char *a, const char *b)
{
    return rng_below(rng, 2) == 0 ? a : b;
}

static void draw_links(struct rng *rng, const char *cluster, uint32_t world, char *text,
                       size_t size)
{
    snprintf(text, size, "[{level: node, rank: %u, factor: 0.4}]", (unsigned)rng_below(rng, world));
    if (world > 16 && strcmp(cluster, "atlas_800t_a2") == 0 && rng_below(rng, 2) == 0)
        snprintf(text, size,
                 "[{level: cluster, rank: %u, factor: 0.1}, {level: cluster, rank: %u, factor: "
                 "0.1}]",
                 (unsigned)rng_below(rng, world / 2),
                 (unsigned)(world / 2 + rng_below(rng, world / 2)));
}

/* One or two broken or slow parts. Both clusters are given 16 nodes and 4 switches outermost. */
static void draw_faults(struct rng *rng, bool a2, char *text, size_t size)
{
    static const char *const a2_parts[] = {"{part: nic 3 of node %u, speed: 0.5}",
                                           "nic 5 of node %u",
                                           "{part: node %u, speed: 0.7}",
                                           "cluster %u",
                                           "node %u",
                                           "{part: uplinks of node %u, speed: 0.6}"};
    static const char *const a3_parts[] = {"{part: node %u, speed: 0.7}",
                                           "supernode %u",
                                           "node %u",
                                           "{part: uplinks of package %u, speed: 0.4}",
                                           "{part: uplinks of node %u, speed: 0.3}",
                                           "{part: package %u, speed: 0.6}"};
    size_t length = 0;
    for (uint64_t left = 1 + rng_below(rng, 2); left > 0; left--) {
        const char *part = a2 ? PICK(rng, a2_parts) : PICK(rng, a3_parts);
        length += (size_t)snprintf(text + length, size - length, "%s", length == 0 ? "[" : ", ");
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        length += (size_t)snprintf(text + length, size - length, part, (unsigned)rng_below(rng, 4));
#pragma GCC diagnostic pop
    }
    snprintf(text + length, size - length, "]");
}

/* The nodes in any order, some with half of their devices. */
static void draw_hosts(struct rng *rng, uint32_t node, char *path, size_t size)
{
    uint32_t nodes[16];
    snprintf(path, size, "/tmp/stepsim-hosts-XXXXXX");
    const int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    FILE *file = fdopen(descriptor, "w");
    assert_non_null(file);
    for (uint32_t i = 0; i < 16; i++) {
        const uint32_t at = (uint32_t)rng_below(rng, i + 1);
        nodes[i] = nodes[at];
        nodes[at] = i;
    }
    for (uint32_t i = 0; i < 16; i++)
        fprintf(file, "node%u slots=%u\n", nodes[i], rng_below(rng, 3) == 0 ? node / 2 : node);
    fclose(file);
}

static struct job draw_job(uint64_t seed)
{
    static const uint32_t powers[] = {1, 1, 2, 4};
    static const uint32_t experts[] = {1, 2, 4, 4, 8, 16};
    struct rng rng = rng_stream(seed, 7);
    struct job job = {.schedule = schedules[seed % SCHEDULE_COUNT]};
    const bool single = strcmp(job.schedule, "gpipe") == 0 || strcmp(job.schedule, "1f1b") == 0 ||
                        strcmp(job.schedule, "zb_h1") == 0;
    const bool pairs =
        strcmp(job.schedule, "dualpipe_v") == 0 || strcmp(job.schedule, "overlapped_1f1b") == 0;
    const char *cluster = word(&rng, "atlas_800t_a2", "cloudmatrix384");
    const bool gathers = !pairs && rng_below(&rng, 3) == 0;
    const uint32_t pp = rng_below(&rng, 3) == 0 ? 4 : 2;
    const uint32_t vpp = single ? 1 : 2;
    const uint32_t tp = PICK(&rng, powers);
    const uint32_t cp = rng_below(&rng, 3) == 0 ? 2 : 1;
    const uint32_t dp = (uint32_t)(1 + rng_below(&rng, 6));
    const uint32_t world = pp * tp * cp * dp;
    char slow[256] = "[]";
    job.slow = rng_below(&rng, 2) == 0;
    if (job.slow) {
        const uint64_t first = rng_below(&rng, world);
        const uint64_t second = (first + 1 + rng_below(&rng, world - 1)) % world;
        snprintf(slow, sizeof slow, "[{rank: %u, factor: 1.37}, {rank: %u, factor: %s}]",
                 (unsigned)first, (unsigned)second, word(&rng, "1.37", "1.0000071"));
    }
    char links[256] = "[]";
    job.links = rng_below(&rng, 3) == 0;
    if (job.links)
        draw_links(&rng, cluster, world, links, sizeof links);
    struct rng more = rng_stream(seed, 9); /* the draws above and below stay what they were */
    const bool a2 = strcmp(cluster, "atlas_800t_a2") == 0;
    char faults[256] = "[]";
    job.faults = rng_below(&more, 3) == 0;
    if (job.faults)
        draw_faults(&more, a2, faults, sizeof faults);
    job.hosts = rng_below(&more, 4) == 0;
    if (job.hosts)
        draw_hosts(&more, a2 ? 8 : 16, job.host_file, sizeof job.host_file);
    job.network = (uint32_t)rng_below(&rng, NETWORK_COUNT);
    job.crowded = rng_below(&rng, 2) == 0;
    job.loads = rng_below(&rng, 2) == 0;
    job.independent = rng_below(&rng, 3) == 0;
    const int length = snprintf(
        job.text, sizeof job.text,
        "model: {base: deepseek_v3, layers: 8, mtp_layers: 0, moe: {experts: 16, "
        "first_dense_layers: 1}}\n"
        "cluster: %s\n"
        "devices: %u\n"
        "parallel: {tp: %u, sequence_parallel: %s, pp: %u, vpp: %u, ep: %u, etp: %u, cp: %u, "
        "zero: %u, order: %s}\n"
        "training: {seq_len: 2048, micro_batch_size: 1, global_batch_size: %u}\n"
        "schedule: {kind: %s, p2p: %s}\n"
        "moe: {dispatcher: %s, exchange: %s, overlap: {shared_expert: %s}}\n"
        "recompute: {modules: %s}\n"
        "swap: {optimizer: %s}\n"
        "overlap: {grad_reduce: %s, param_gather: %s}\n"
        "noise: {slow_ranks: %s, slow_links: %s}\n"
        "faults: %s\n"
        "network: %s\n",
        cluster, world, tp, word(&rng, "true", "false"), pp, vpp, PICK(&rng, experts),
        pairs ? 1 : PICK(&rng, powers), cp, (unsigned)rng_below(&rng, pairs ? 3 : 4),
        PICK(&rng, orders), dp * pp * 2, job.schedule, word(&rng, "overlapped", "blocking"),
        gathers ? "allgather" : "alltoall", gathers ? "flat" : word(&rng, "flat", "hierarchical"),
        word(&rng, "true", "false"), PICK(&rng, modules), word(&rng, "false", "true"),
        word(&rng, "true", "false"), word(&rng, "true", "false"), slow, links, faults,
        networks[job.network]);
    assert_true(length > 0 && (size_t)length < sizeof job.text);
    return job;
}

static struct expert_loads draw_loads(const struct run *run, const struct job *job, uint64_t seed,
                                      struct arena *arena)
{
    const uint32_t layers = run->model->layers + run->model->spec->mtp_layers;
    const uint32_t positions = run->layout->ep * (job->independent ? run->layout->edp : 1);
    struct rng rng = rng_stream(seed, 8);
    double *ratio = ARENA_ARRAY(arena, (size_t)layers * positions, double);
    double *one = ARENA_ARRAY(arena, (size_t)layers * positions, double);
    for (uint32_t i = 0; i < layers * positions; i++) {
        one[i] = 1.0;
        ratio[i] = 0.5 + rng_uniform(&rng);
    }
    return (struct expert_loads){.layers = layers,
                                 .positions = positions,
                                 .rows_ratio = ratio,
                                 .receive_ratio = ratio,
                                 .send_ratio = one};
}

struct played {
    const struct programs *programs;
    const struct timeline *timeline;
};

static struct played play(struct plan_ask ask, bool ranks_all, struct arena *arena)
{
    ask.ranks_all = ranks_all;
    struct played played = {.programs = programs_build(&ask, arena)->programs};
    programs_check(played.programs);
    const struct engine_options engine = {.observe = OBSERVE_NONE};
    const char *failure = NULL;
    played.timeline = engine_run(played.programs, &engine, arena, &failure);
    if (played.timeline == NULL)
        print_error("%s\n", failure);
    return played;
}

static bool same_result(const struct rank_result *a, const struct rank_result *b)
{
    return a->end == b->end && a->compute_busy == b->compute_busy &&
           a->peak_bytes == b->peak_bytes && a->peak_time == b->peak_time &&
           a->peak_label == b->peak_label && a->busy_hash == b->busy_hash;
}

/* Every true rank behaves as the one that stands for its class. */
static bool ranks_agree(const struct played *folded, const struct played *full)
{
    bool agree = folded->timeline->end == full->timeline->end &&
                 folded->timeline->digest == full->timeline->digest;
    for (uint32_t r = 0; r < full->programs->rank_count; r++) {
        const uint32_t class = full->programs->ranks[r].rank_class;
        agree = agree && same_result(&full->timeline->ranks[r], &folded->timeline->ranks[class]);
    }
    return agree;
}

struct tally {
    uint32_t jobs, folding; /* of these, how many had fewer classes than ranks */
    uint32_t of_schedule[SCHEDULE_COUNT];
    uint32_t of_network[NETWORK_COUNT], crowded;
    uint32_t loads, independent, slow, links, faults, hosts, placed;
};

/* A last level of known size has spare nodes, and switches of which one can be lost. */
static uint32_t write_overrides(const struct job *job, struct scenario_override overrides[])
{
    const bool a2 = strstr(job->text, "cluster: atlas_800t_a2") != NULL;
    uint32_t count = 0;
    if (job->crowded) {
        overrides[count++] = (struct scenario_override){"cluster.levels.1.oversubscription", "2.5"};
        overrides[count++] = (struct scenario_override){"cluster.levels.1.nics", "4"};
        overrides[count++] = (struct scenario_override){"cluster.host_bandwidth", "100 GB/s"};
    }
    if (job->faults || job->hosts) {
        overrides[count++] = (struct scenario_override){
            a2 ? "cluster.levels.1.size" : "cluster.levels.3.size", a2 ? "128" : "1536"};
        overrides[count++] = (struct scenario_override){
            a2 ? "cluster.levels.1.switches" : "cluster.levels.2.switches", "4"};
    }
    if (job->hosts)
        overrides[count++] = (struct scenario_override){"parallel.hosts", job->host_file};
    return count;
}

static void check_seed(uint64_t seed, struct scenario_cache *cache, struct tally *tally)
{
    const struct job job = draw_job(seed);
    struct arena *arena = arena_create("test");
    struct error_list errors;
    error_list_init(&errors, arena);
    /* Level 1 is what joins the nodes of an A2 cluster, and the dies of a node of CloudMatrix. */
    struct scenario_override overrides[8];
    const struct scenario_source source = {.text = job.text,
                                           .text_name = "job",
                                           .cache = cache,
                                           .overrides = overrides,
                                           .override_count = write_overrides(&job, overrides)};
    const struct scenario *scenario = scenario_load(&source, arena, &errors);
    struct run run = {0};
    const struct run_options options = {.steps = 1};
    const bool legal = scenario != NULL && scenario->devices <= RANKS_MOST &&
                       run_simulate(&run, scenario, &options, arena, &errors);
    if (job.hosts)
        unlink(job.host_file);
    if (!legal) {
        arena_destroy(arena); /* not every draw is legal */
        return;
    }
    const struct expert_loads loads = draw_loads(&run, &job, seed, arena);
    const struct plan_ask ask = {.graph = run.graph,
                                 .cluster = run.cluster,
                                 .schedule = run.schedule,
                                 .order = run.order,
                                 .loads = job.loads ? &loads : NULL};
    const struct played folded = play(ask, false, arena);
    const struct played full = play(ask, true, arena);
    assert_non_null(folded.timeline);
    assert_non_null(full.timeline);
    assert_int_equal(full.programs->rank_count, scenario->devices);
    if (!ranks_agree(&folded, &full)) {
        print_error("seed %llu: %u classes differ from %u ranks\n%s\n", (unsigned long long)seed,
                    folded.programs->rank_count, full.programs->rank_count, job.text);
        fail();
    }
    tally->jobs++;
    tally->folding += folded.programs->rank_count < full.programs->rank_count;
    tally->of_schedule[seed % SCHEDULE_COUNT]++;
    tally->of_network[job.network]++;
    tally->crowded += job.crowded && strcmp(networks[job.network], "fair_share") == 0;
    tally->loads += job.loads;
    tally->independent += job.loads && job.independent;
    tally->slow += job.slow;
    tally->links += job.links;
    tally->faults += job.faults;
    tally->hosts += job.hosts;
    tally->placed += run.cluster->device_of != NULL;
    arena_destroy(arena);
}

static bool enough(const struct tally *tally)
{
    bool all = tally->jobs >= JOBS_WANTED;
    for (size_t i = 0; i < SCHEDULE_COUNT; i++)
        all = all && tally->of_schedule[i] >= OF_EACH;
    return all;
}

static void folded_equals_full(void **state)
{
    (void)state;
    struct scenario_cache *cache = scenario_cache_create();
    struct tally tally = {0};
    uint64_t seed = 1;
    for (; !enough(&tally) && seed < SEEDS_MAX; seed++)
        check_seed(seed, cache, &tally);
    scenario_cache_destroy(cache);
    print_message("seeds 1 to %llu: %u jobs, %u of them folded; %u with slow ranks, %u with "
                  "slow links, %u with unequal loads (%u of independent replicas)\n",
                  (unsigned long long)(seed - 1), tally.jobs, tally.folding, tally.slow,
                  tally.links, tally.loads, tally.independent);
    assert_true(enough(&tally));
    assert_true(tally.folding >= JOBS_WANTED / 2);
    for (size_t i = 0; i < SCHEDULE_COUNT; i++)
        print_message("%s: %u\n", schedules[i], tally.of_schedule[i]);
    for (size_t i = 0; i < NETWORK_COUNT; i++) {
        print_message("%s: %u\n", networks[i], tally.of_network[i]);
        assert_true(tally.of_network[i] >= JOBS_WANTED / 5);
    }
    print_message("with crowded links: %u\n", tally.crowded);
    print_message("with faults: %u, files of hosts: %u, ranks off their own device: %u\n",
                  tally.faults, tally.hosts, tally.placed);
    assert_true(tally.faults >= JOBS_WANTED / 4 && tally.hosts >= JOBS_WANTED / 8);
    assert_true(tally.placed >= JOBS_WANTED / 8);
    assert_true(tally.crowded >= JOBS_WANTED / 10);
    assert_true(tally.slow >= 50 && tally.loads >= 50 && tally.independent >= 10);
    assert_true(tally.links >= 30);
}

/* ---- Class counts worked by hand ---- */

struct straggling {
    uint32_t classes;
    sim_time busy[64]; /* compute of each simulated rank */
};

static struct straggling straggle(const char *slow_ranks, bool ranks_all)
{
    static const char job[] = "model: {base: deepseek_v3, layers: 8, mtp_layers: 0, moe: {experts: "
                              "16, first_dense_layers: 0}}\n"
                              "cluster: atlas_800t_a2\n"
                              "devices: 64\n"
                              "parallel: {tp: 2, pp: 2, vpp: 1, ep: 8, etp: 1, zero: 1}\n"
                              "training: {seq_len: 2048, micro_batch_size: 1, "
                              "global_batch_size: 64}\n"
                              "schedule: {kind: 1f1b}\n";
    struct arena *arena = arena_create("test");
    struct error_list errors;
    error_list_init(&errors, arena);
    const struct scenario_override overrides[] = {{"noise.slow_ranks", slow_ranks},
                                                  {"cluster.device.contention_compute", "1"}};
    const struct scenario_source source = {
        .text = job, .text_name = "job", .overrides = overrides, .override_count = 2};
    const struct scenario *scenario = scenario_load(&source, arena, &errors);
    struct run run = {0};
    const struct run_options options = {.steps = 1, .ranks_all = ranks_all};
    if (scenario == NULL || !run_simulate(&run, scenario, &options, arena, &errors))
        print_error("%s", error_list_text(&errors, arena));
    assert_non_null(run.report);
    struct straggling answer = {.classes = run.report->classes};
    assert_int_equal(run.report->simulated_ranks, ranks_all ? 64 : answer.classes);
    for (uint32_t r = 0; r < run.report->simulated_ranks; r++)
        answer.busy[r] = run.timeline->ranks[r].compute_busy;
    arena_destroy(arena);
    return answer;
}

static uint32_t classes_of(const char *slow_ranks)
{
    return straggle(slow_ranks, false).classes;
}

/*
 * A stage has 32 ranks: tp pairs (2), 4 blocks of 8 ranks that are its expert groups. Seen from
 * one slow rank: itself; its tp partner; the 3 other ranks of its tp column in its block; their
 * 3 partners; in the other blocks its 3 expert replicas, their 3 partners, the rest of its
 * column, the rest of the other column: 8 classes, and the same 8 in the other stage. All ranks
 * of a stage equally slow: nothing splits.
 */
static void a_straggler_splits_what_it_touches(void **state)
{
    (void)state;
    assert_int_equal(classes_of("[]"), 2);
    assert_int_equal(classes_of("[{rank: 0, factor: 1.2}]"), 16);
    assert_int_equal(classes_of("[{rank: 45, factor: 1.2}]"), 16);
    assert_int_equal(classes_of("[{rank: 45, factor: 1}]"), 2);
}

/* Twice the time of each of its ops; nobody else computes longer, since nothing contends. */
static void a_slow_rank_computes_by_its_factor(void **state)
{
    (void)state;
    const struct straggling even = straggle("[]", true);
    const struct straggling slow = straggle("[{rank: 45, factor: 2}]", true);
    for (uint32_t rank = 0; rank < 64; rank++)
        assert_time_equal(slow.busy[rank], even.busy[rank] * (rank == 45 ? 2 : 1));
}

/* ---- Slow links ---- */

static sim_time end_of(const char *key, const char *value, uint64_t *digest)
{
    static const char job[] = "model: {base: deepseek_v3, layers: 8, mtp_layers: 0, moe: {experts: "
                              "16, first_dense_layers: 0}}\n"
                              "cluster: atlas_800t_a2\n"
                              "devices: 32\n"
                              "parallel: {tp: 2, pp: 2, vpp: 1, ep: 16, etp: 1, zero: 1}\n"
                              "training: {seq_len: 2048, micro_batch_size: 1, "
                              "global_batch_size: 64}\n"
                              "schedule: {kind: 1f1b}\n";
    struct arena *arena = arena_create("test");
    struct error_list errors;
    error_list_init(&errors, arena);
    const struct scenario_override override = {key, value};
    const struct scenario_source source = {
        .text = job, .text_name = "job", .overrides = &override, .override_count = 1};
    const struct scenario *scenario = scenario_load(&source, arena, &errors);
    struct run run = {0};
    const struct run_options options = {.steps = 1};
    if (scenario == NULL || !run_simulate(&run, scenario, &options, arena, &errors))
        print_error("%s", error_list_text(&errors, arena));
    assert_non_null(run.report);
    *digest = run.timeline->digest;
    const sim_time end = run.timeline->end;
    arena_destroy(arena);
    return end;
}

/* When the links of all ranks are slow, the level is slow: bandwidth times the factor. */
static void all_links_slow_is_a_slow_level(void **state)
{
    (void)state;
    char links[2048];
    size_t length = 0;
    for (unsigned rank = 0; rank < 32; rank++)
        length += (size_t)snprintf(links + length, sizeof links - length,
                                   "%s{level: cluster, rank: %u, factor: 0.5}",
                                   rank == 0 ? "[" : ", ", rank);
    snprintf(links + length, sizeof links - length, "]");
    uint64_t even, one, all, level;
    const sim_time even_end = end_of("noise.slow_links", "[]", &even);
    const sim_time one_end =
        end_of("noise.slow_links", "[{level: cluster, rank: 9, factor: 0.5}]", &one);
    const sim_time all_end = end_of("noise.slow_links", links, &all);
    const sim_time level_end = end_of("cluster.levels.cluster.bandwidth", "12.5 GB/s", &level);
    uint64_t same;
    end_of("noise.slow_links", "[{level: cluster, rank: 9, factor: 1}]", &same);
    assert_time_equal(all_end, level_end);
    assert_true(all == level);
    assert_true(same == even);
    assert_true(even_end < one_end && one_end <= all_end);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folded_equals_full),
        cmocka_unit_test(a_straggler_splits_what_it_touches),
        cmocka_unit_test(a_slow_rank_computes_by_its_factor),
        cmocka_unit_test(all_links_slow_is_a_slow_level),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
