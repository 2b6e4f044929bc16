/*
 * test_engine_scenarios.c - real scenarios give one digest in every mode of the engine.
 *
 * The binary heap, shuffles inside the phases, ops that were not fused, and all ranks
 * instead of one for each class: the canonical digest is the same. With the same ranks and
 * ops every completion is the same too.
 */
#include "assert_close.h"

#include "stepsim/run.h"
#include "stepsim/scenario.h"

#define SIMS STEPSIM_SOURCE_DIR "/sims/"

struct outcome {
    uint64_t digest, event_digest;
    sim_time end;
    uint32_t ranks;
};

static struct outcome simulate(const char *path, const char *devices,
                               const struct run_options *options)
{
    struct arena *arena = arena_create("test");
    struct error_list errors;
    error_list_init(&errors, arena);
    /* Fewer data-parallel replicas keep the run of all ranks short. */
    const struct scenario_override overrides[] = {{"devices", devices},
                                                  {"training.global_batch_size", "256"}};
    const struct scenario_source source = {.path = path,
                                           .config_dir = STEPSIM_SOURCE_DIR "/configs",
                                           .overrides = overrides,
                                           .override_count = devices == NULL ? 0 : 2};
    const struct scenario *scenario = scenario_load(&source, arena, &errors);
    struct run run;
    if (scenario == NULL || !run_simulate(&run, scenario, options, arena, &errors)) {
        print_error("%s\n", error_list_text(&errors, arena));
        fail();
    }
    const struct outcome outcome = {.digest = run.timeline->digest,
                                    .event_digest = run.timeline->event_digest,
                                    .end = run.timeline->end,
                                    .ranks = run.programs->rank_count};
    arena_destroy(arena);
    return outcome;
}

static void check_modes(const char *path, const char *devices)
{
    const struct run_options plain = {.steps = 1};
    const struct outcome base = simulate(path, devices, &plain);
    for (uint64_t seed = 0; seed < 4; seed++) {
        const struct run_options options = {
            .steps = 1, .engine = {.binary_heap = seed % 2 == 0, .shuffle_seed = seed}};
        const struct outcome other = simulate(path, devices, &options);
        assert_time_equal(other.end, base.end);
        assert_true(other.digest == base.digest);
        assert_true(other.event_digest == base.event_digest);
    }
    const struct run_options unfused = {.steps = 1, .unfused = true};
    assert_time_equal(simulate(path, devices, &unfused).end, base.end);
    assert_true(simulate(path, devices, &unfused).digest == base.digest);
}

static void the_headline_scenario_has_one_digest(void **state)
{
    (void)state;
    check_modes(SIMS "pangu_ultra_moe_6k/sim.yaml", NULL);
}

static void the_dense_scenario_has_one_digest(void **state)
{
    (void)state;
    check_modes(SIMS "pangu_ultra_135b/sim.yaml", NULL);
}

/* 512 devices: PP 16, TP 8, four replicas. */
static void all_ranks_have_the_digest_of_the_folded_run(void **state)
{
    (void)state;
    const char *path = SIMS "pangu_ultra_moe_6k/sim.yaml";
    const struct run_options folded = {.steps = 1};
    const struct outcome few = simulate(path, "512", &folded);
    for (uint64_t seed = 0; seed < 2; seed++) {
        const struct run_options all = {
            .steps = 1, .ranks_all = true, .engine = {.shuffle_seed = seed}};
        const struct outcome many = simulate(path, "512", &all);
        assert_int_equal(many.ranks, 512);
        assert_true(few.ranks < 512);
        assert_time_equal(many.end, few.end);
        assert_true(many.digest == few.digest);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_headline_scenario_has_one_digest),
        cmocka_unit_test(the_dense_scenario_has_one_digest),
        cmocka_unit_test(all_ranks_have_the_digest_of_the_folded_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
