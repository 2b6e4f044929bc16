/*
 * Layouts published as the best of their study rank in the top decile of their spaces. Spaces hold
 * the keys that the study varied; docs/SEARCH.md lists the ranks.
 */
#include <string.h>

#include "assert_close.h"
#include "stepsim/search.h"
#include "stepsim/validate.h"

#define MEASUREMENTS STEPSIM_SOURCE_DIR "/tests/data/measurements.csv"
#define CONFIGS      STEPSIM_SOURCE_DIR "/configs"

static struct arena *arena;
static struct error_list errors;

/* The row's scenario. Device files hold no peaks of 8 bits: such rows compute in 16. */
static const char *scenario_of_row(const char *id)
{
    const struct measurement_set *set = measurements_read(MEASUREMENTS, arena, &errors);
    const struct yaml_tree *tables = mapping_tables(CONFIGS, arena, &errors);
    assert_true(set != NULL && tables != NULL);
    for (uint32_t i = 0; i < set->count; i++) {
        if (strcmp(set->rows[i].id, id) != 0)
            continue;
        struct measurement row = set->rows[i];
        const char **cells = ARENA_ARRAY(arena, set->column_count, const char *);
        for (uint32_t column = 0; column < set->column_count; column++)
            cells[column] =
                strcmp(set->columns[column], "precision") == 0 ? "bf16" : row.cells[column];
        row.cells = cells;
        row.sixteen_bit = true;
        const struct mapping *mapping = measurement_map(&row, tables, arena);
        if (mapping->reason != NULL)
            print_message("%s: %s\n", id, mapping->reason);
        assert_null(mapping->reason);
        return mapping_yaml(mapping);
    }
    assert_true(false);
    return NULL;
}

/* Share of the layouts that fit which are not slower than the row's own. */
static double rank_share(const char *id, const struct search_change *changes, uint32_t count)
{
    struct scenario_cache *cache = scenario_cache_create();
    const struct scenario_source source = {
        .text = scenario_of_row(id), .text_name = id, .config_dir = CONFIGS, .cache = cache};
    struct search_change all[48];
    uint32_t all_count = 0;
    for (size_t k = 0; search_keys[k].key != NULL; k++) {
        all[all_count++] = (struct search_change){search_keys[k].key, NULL};
    }
    for (uint32_t i = 0; i < count; i++) {
        all[all_count++] = changes[i];
    }
    const struct search_ask ask = {
        .source = &source, .changes = all, .change_count = all_count, .top = 100000, .jobs = 2};
    const struct search_answer *answer = search_run(&ask, arena, &errors);
    assert_non_null(answer);
    assert_true(answer->written_legal);
    uint32_t better = 0;
    for (uint32_t i = 0; i < answer->layout_count; i++) {
        better += answer->layouts[i].figures.step_s < answer->written.step_s * (1.0 - 1e-9);
    }
    print_message("%s: rank %u of %u that fit\n", id, better + 1, answer->layout_count);
    assert_true(answer->layout_count >= 20);
    return (double)(better + 1) / (double)answer->layout_count;
}

/* What a study varied, ending with no key. */
#define DENSE                                                                                      \
    {"parallel.tp", "1,2,4,8"}, {"parallel.pp", "1,2,4,8,16"}, {"recompute.modules", "[],[layer]"}
#define MICRO_BATCH {"training.micro_batch_size", "1,2,4,8"}
#define PIPELINES   {"schedule.kind", "1f1b,interleaved"}

static const struct published {
    const char *id;
    struct search_change space[12];
} published[] = {
    /* Hagemann et al. swept tp, pp, micro-batch and activation checkpointing. */
    {"HAG-001", {DENSE, MICRO_BATCH}},
    {"HAG-008", {DENSE, MICRO_BATCH}},
    {"HAG-018", {DENSE, MICRO_BATCH}},
    /* MoE Folding: degrees of both meshes, without recomputation. */
#define FOLDED                                                                                     \
    {"parallel.tp", "1,2,4,8"}, {"parallel.pp", "1,2,4,8,16,32"}, {"parallel.vpp", "1,2,4"},       \
        {"parallel.ep", "1,2,4,8"}, {"parallel.etp", "1,2"}, {"parallel.cp.size", "1,2"},          \
        {"parallel.stages", "balanced"}, PIPELINES, MICRO_BATCH
    {"FOLD-005", {FOLDED}},
    {"FOLD-031", {FOLDED}},
    /* Recipes of NeMo: the interleaving of its own scripts beside smaller ones. */
    {"NEMO-002", {DENSE, MICRO_BATCH, PIPELINES, {"parallel.vpp", "1,2"}}},
    {"NEMO-006", {DENSE, MICRO_BATCH, PIPELINES, {"parallel.vpp", "1,2,5,10"}}},
    {"NEMO-010", {DENSE, MICRO_BATCH, PIPELINES, {"parallel.vpp", "1,2,4,6,12"}}},
    {"NEMO-011",
     {DENSE, MICRO_BATCH, PIPELINES, {"parallel.vpp", "1,2"}, {"parallel.cp.size", "1,2,4"}}},
    /* Recipes of Megatron-Bridge. */
#define LLAMA_405B                                                                                 \
    DENSE, MICRO_BATCH, PIPELINES, {"parallel.vpp", "1,2,4,8"}, {"parallel.cp.size", "1,2,4"},     \
        {"parallel.stages", "balanced"}
    {"BRG-007", {LLAMA_405B}},
    {"BRG-062", {LLAMA_405B}},
    {"BRG-036",
     {{"parallel.tp", "1,2,4,8"},
      {"parallel.pp", "1,2,4"},
      {"parallel.ep", "1,2,4,8,16,32,64"},
      {"recompute.modules", "[],[norm, activation],[layer]"},
      MICRO_BATCH}},
    {"BRG-052",
     {{"parallel.tp", "1,2,4,8"},
      {"parallel.pp", "1,2,4,8,16"},
      {"parallel.vpp", "1,2,4"},
      {"parallel.ep", "8,16,32,64"},
      {"recompute.modules", "[],[mla_kv_up_proj],[layer]"},
      {"training.micro_batch_size", "1,2,4"},
      {"parallel.stages", "balanced"},
      PIPELINES}},
    {"BRG-064",
     {{"parallel.tp", "1,2,4,8"},
      {"parallel.pp", "4,8,16"},
      {"parallel.vpp", "1,2,4"},
      {"parallel.ep", "8,16,32,64"},
      {"recompute.modules", "[],[layer]"},
      {"training.micro_batch_size", "1,2,4"},
      {"parallel.stages", "balanced"},
      {"schedule.kind", "1f1b,interleaved,overlapped_1f1b"}}},
};

static void best_rows_rank_in_the_top_decile(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof published / sizeof published[0]; i++) {
        uint32_t count = 0;
        while (published[i].space[count].key != NULL)
            count++;
        assert_true(rank_share(published[i].id, published[i].space, count) <= 0.1);
    }
}

int main(void)
{
    arena = arena_create("test");
    error_list_init(&errors, arena);
    const struct CMUnitTest tests[] = {cmocka_unit_test(best_rows_rank_in_the_top_decile)};
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    arena_destroy(arena);
    return failed;
}
