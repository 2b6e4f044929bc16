/*
 * fuzz_scenario.c - hostile text for the loader: no crash, no hang, no undefined behaviour.
 *
 * The first byte of an input chooses what the rest is:
 *     'o'   KEY=VALUE, an override of the toy scenario
 *     'q'   a quantity, tried in every dimension
 *     else  a scenario (the byte belongs to it)
 * What is accepted must survive its own canonical form: parsed again and hashed it
 * is the same. Build with -DSTEPSIM_FUZZ=ON and clang; run from anywhere:
 *     fuzz_scenario -dict=tests/fuzz/scenario.dict CORPUS tests/bad
 */
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "stepsim/arena.h"
#include "stepsim/quantity.h"
#include "stepsim/scenario.h"

#define CONFIGS STEPSIM_SOURCE_DIR "/tests/bad/configs"
#define TOY                                                                                        \
    "model: toy_moe\ncluster: toy\ndevices: 64\nparallel: {tp: 2, pp: 2, ep: 4, etp: 1}\n"         \
    "training: {seq_len: 4096, micro_batch_size: 1, global_batch_size: 64}\n"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_quantity(const char *text)
{
    struct quantity_problem problem;
    for (int d = DIMENSION_BYTES; d <= DIMENSION_LAST; d++) {
        double value = 0.0;
        if (quantity_parse(text, (enum dimension)d, &value, &problem))
            ASSERT(value >= -1e21 && value <= 1e21);
        else
            ASSERT(memchr(problem.message, '\0', sizeof problem.message));
    }
    uint64_t whole = 0;
    (void)quantity_parse_uint(text, UINT64_MAX, &whole, &problem);
}

static void check_accepted(const struct scenario *scenario, struct arena *arena)
{
    cJSON *dump = scenario_json(scenario, true);
    ASSERT(dump != NULL);
    cJSON_Delete(dump);
    cJSON *parsed = cJSON_Parse(scenario_canonical(scenario, arena));
    ASSERT(parsed != NULL);
    cJSON_Delete(parsed);
    ASSERT(strlen(scenario_hash(scenario, arena)) == 32);
    ASSERT(scenario_origin(scenario, "parallel.tp") != NULL);
}

/* Toy files are parsed once for many inputs, so that the time goes into the input. */
#define INPUTS_PER_CACHE 256
static struct scenario_cache *cache;

static void drop_cache(void)
{
    scenario_cache_destroy(cache);
    cache = NULL;
}

static struct scenario_cache *shared_cache(void)
{
    static unsigned uses;
    if (uses == 0)
        atexit(drop_cache);
    if (uses++ % INPUTS_PER_CACHE == 0) {
        drop_cache();
        cache = scenario_cache_create();
    }
    return cache;
}

static void check_scenario(const char *text, const struct scenario_override *override,
                           struct arena *arena)
{
    struct error_list errors;
    error_list_init(&errors, arena);
    const struct scenario_source source = {.text = text,
                                           .text_name = "fuzz.yaml",
                                           .config_dir = CONFIGS,
                                           .overrides = override,
                                           .override_count = override ? 1 : 0,
                                           .cache = shared_cache()};
    const struct scenario *scenario = scenario_load(&source, arena, &errors);
    ASSERT((scenario != NULL) == (errors.count == 0));
    if (scenario)
        check_accepted(scenario, arena);
    else
        ASSERT(strlen(error_list_text(&errors, arena)) > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena *arena = arena_create("fuzz");
    char *text = arena_strndup(arena, size ? (const char *)data : "", size);
    char *equals = strchr(text, '=');
    if (text[0] == 'q') {
        check_quantity(text + 1);
    } else if (text[0] == 'o' && equals) {
        *equals = '\0';
        const struct scenario_override override = {.key = text + 1, .value = equals + 1};
        check_scenario(TOY, &override, arena);
    } else {
        check_scenario(text, NULL, arena);
    }
    arena_destroy(arena);
    return 0;
}
