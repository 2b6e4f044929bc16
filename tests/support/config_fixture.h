/*
 * config_fixture.h - loading scenarios of the toy configuration in tests/bad/configs.
 *
 * config_load() takes a text and overrides "KEY=VALUE", at most eight, ended by NULL.
 * The toy scenario below is legal: 64 devices of a toy cluster, a toy MoE model.
 */
#ifndef TEST_CONFIG_FIXTURE_H
#define TEST_CONFIG_FIXTURE_H

#include <stdlib.h>
#include <string.h>

#include "assert_refused.h"
#include "stepsim/scenario.h"

#define TOY_CONFIGS STEPSIM_SOURCE_DIR "/tests/bad/configs"
#define TOY_SCENARIO                                                                               \
    "model: toy_moe\n"                                                                             \
    "cluster: toy\n"                                                                               \
    "devices: 64\n"                                                                                \
    "parallel: {tp: 2, pp: 2, ep: 4, etp: 1}\n"                                                    \
    "training: {seq_len: 4096, micro_batch_size: 1, global_batch_size: 64}\n"

struct config_fixture {
    struct arena *arena;
    struct error_list errors;
    struct scenario_cache *cache; /* NULL unless a test makes one */
};

static inline int config_set_up(void **state)
{
    struct config_fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    fixture->arena = arena_create("test");
    error_list_init(&fixture->errors, fixture->arena);
    *state = fixture;
    return 0;
}

static inline int config_tear_down(void **state)
{
    struct config_fixture *fixture = *state;
    scenario_cache_destroy(fixture->cache);
    arena_destroy(fixture->arena);
    free(fixture);
    return 0;
}

/* NULL with errors in the fixture if it is refused. */
static inline const struct scenario *config_load(struct config_fixture *fixture, const char *text,
                                                 const char *const *sets)
{
    struct scenario_override overrides[8];
    uint32_t count = 0;
    for (; sets && sets[count]; count++) {
        assert_true(count < 8);
        const char *equals = strchr(sets[count], '=');
        assert_non_null(equals);
        overrides[count] = (struct scenario_override){
            .key = arena_strndup(fixture->arena, sets[count], (size_t)(equals - sets[count])),
            .value = equals + 1};
    }
    const struct scenario_source source = {.text = text,
                                           .text_name = "toy.yaml",
                                           .config_dir = TOY_CONFIGS,
                                           .overrides = overrides,
                                           .override_count = count,
                                           .cache = fixture->cache};
    return scenario_load(&source, fixture->arena, &fixture->errors);
}

#define CONFIG_SETS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* The same, and it must be accepted. */
static inline const struct scenario *config_accept(struct config_fixture *fixture, const char *text,
                                                   const char *const *sets)
{
    const struct scenario *scenario = config_load(fixture, text, sets);
    assert_accepted(&fixture->errors);
    assert_non_null(scenario);
    return scenario;
}

#define CONFIG_TEST(name) cmocka_unit_test_setup_teardown(name, config_set_up, config_tear_down)

#endif
