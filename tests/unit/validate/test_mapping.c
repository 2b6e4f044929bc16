/*
 * test_mapping.c - rows of the measurement files and the keys that they become.
 *
 * Expected keys are read off the rows of tests/data by hand.
 */
#include <string.h>

#include "assert_close.h"
#include "stepsim/arena.h"
#include "stepsim/validate.h"

struct files {
    struct arena *arena;
    const struct measurement_set *runs, *ascend;
    const struct yaml_tree *tables;
};

static int set_up(void **state)
{
    struct arena *arena = arena_create("test");
    struct files *files = ARENA_NEW(arena, struct files);
    struct error_list errors;
    error_list_init(&errors, arena);
    files->arena = arena;
    files->runs =
        measurements_read(STEPSIM_SOURCE_DIR "/tests/data/measurements.csv", arena, &errors);
    files->ascend =
        measurements_read(STEPSIM_SOURCE_DIR "/tests/data/ascend-runs.csv", arena, &errors);
    files->tables = mapping_tables(STEPSIM_SOURCE_DIR "/configs", arena, &errors);
    *state = files;
    return files->runs == NULL || files->ascend == NULL || files->tables == NULL;
}

static int tear_down(void **state)
{
    arena_destroy(((struct files *)*state)->arena);
    return 0;
}

static const struct mapping *mapped(const struct files *files, const char *id)
{
    const struct measurement_set *sets[] = {files->runs, files->ascend};
    for (int s = 0; s < 2; s++)
        for (uint32_t i = 0; i < sets[s]->count; i++)
            if (strcmp(sets[s]->rows[i].id, id) == 0)
                return measurement_map(&sets[s]->rows[i], files->tables, files->arena);
    fail_msg("no row %s", id);
    return NULL;
}

static void assert_key(const struct mapping *mapping, const char *key, const char *value)
{
    const char *found = mapping_value(mapping, key);
    if (found == NULL || strcmp(found, value) != 0)
        fail_msg("%s: %s is %s, not %s", mapping->row->id, key, found ? found : "not set", value);
}

static void the_files_have_their_rows(void **state)
{
    const struct files *files = *state;
    assert_int_equal(files->runs->count, 275);
    assert_int_equal(files->ascend->count, 137);
}

/* GPT of 2021: unfused attention, interleave 3 on 35 stages, full recompute. */
static void gpt_of_2021(void **state)
{
    const struct mapping *mapping = mapped(*state, "SC21-009");
    assert_null(mapping->reason);
    assert_key(mapping, "cluster", "a100_selene");
    assert_key(mapping, "model.position", "learned");
    assert_key(mapping, "fusion.flash_attention", "false");
    assert_key(mapping, "overlap.tp_backward", "false");
    assert_key(mapping, "recompute.modules", "[layer]");
    assert_key(mapping, "schedule.kind", "interleaved");
    assert_key(mapping, "parallel.vpp", "3");
    assert_key(mapping, "devices", "2520");
}

/* 94 layers and two slots for embedding and loss over 32 chunks of 3: 2 3 .. 3 2. */
static void slots_of_embedding_and_loss(void **state)
{
    const struct mapping *mapping = mapped(*state, "ZOO-001");
    const char *layers = mapping_value(mapping, "parallel.stages.layers");
    assert_non_null(layers);
    assert_int_equal(strlen(layers), 32 * 3); /* "[2, 3, ... 3, 2]" */
    assert_memory_equal(layers, "[2, 3, 3", 8);
    assert_string_equal(layers + strlen(layers) - 5, "3, 2]");
    assert_key(mapping, "moe.exchange", "deduplicated");
    assert_key(mapping, "recompute.modules", "[norm, activation]");
}

/* Two layers in four slots; the last two are empty. */
static void empty_slots(void **state)
{
    const struct mapping *mapping = mapped(*state, "ASB-001");
    assert_key(mapping, "parallel.stages.noop_layers", "[2,3]");
    assert_key(mapping, "precision.reuse_fp32_param", "true");
    assert_key(mapping, "moe.overlap.shared_expert", "true");
}

/* 56 layers on 8 stages: 7 each, and 32 microbatches fill groups of 8, so 7 chunks. */
static void an_unstated_interleave(void **state)
{
    assert_key(mapped(*state, "FOLD-005"), "parallel.vpp", "7");
    assert_key(mapped(*state, "FOLD-005"), "parallel.etp", "1");
    assert_key(mapped(*state, "FOLD-004"), "parallel.etp", "2");
}

static void refusals_have_reasons(void **state)
{
    static const char *const ids[] = {"FOLD-006", "MSC-009", "DSP-001", "ZB-001",
                                      "PGU-003",  "Mp016",   "Dc134",   "Dc128"};
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++)
        assert_non_null(mapped(*state, ids[i])->reason);
}

/* Slots of the script include the empty ones: 8 - 2 layers. */
static void script_flags(void **state)
{
    const struct mapping *mapping = mapped(*state, "Dc141");
    assert_key(mapping, "model.layers", "6");
    assert_key(mapping, "parallel.stages.noop_layers", "[0,7]");
    assert_key(mapping, "recompute.modules", "[norm]");
    assert_key(mapping, "parallel.zero", "0");
    assert_key(mapped(*state, "Dp082"), "overlap.matmul_collective", "mc2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_files_have_their_rows),
        cmocka_unit_test(gpt_of_2021),
        cmocka_unit_test(slots_of_embedding_and_loss),
        cmocka_unit_test(empty_slots),
        cmocka_unit_test(an_unstated_interleave),
        cmocka_unit_test(refusals_have_reasons),
        cmocka_unit_test(script_flags),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
