/* Elasticities of scenarios whose answer is known. */
#include <string.h>

#include "assert_close.h"
#include "stepsim/search.h"

static const char text[] = "model: {base: llama2_7b, layers: 4}\n"
                           "cluster: atlas_800t_a2\n"
                           "devices: 16\n"
                           "parallel: {tp: 1, pp: 2, vpp: 1, zero: 1}\n"
                           "training: {seq_len: 4096, micro_batch_size: 1, global_batch_size: 64}\n"
                           "schedule: {kind: 1f1b}\n";

static const struct whatif_row *row_of(const struct whatif_answer *answer, const char *name)
{
    for (uint32_t i = 0; i < answer->count; i++) {
        if (strcmp(answer->rows[i].name, name) == 0) {
            return &answer->rows[i];
        }
    }
    print_error("no row %s\n", name);
    assert_true(false);
    return NULL;
}

/* Time is at most inversely proportional to one resource, and all together to the whole: twice
 * everything is twice as fast, so no elasticity is below -1 and their sum is not either. */
static void elasticities_are_between_minus_one_and_zero(void **state)
{
    (void)state;
    struct arena *arena = arena_create("test");
    struct error_list errors;
    error_list_init(&errors, arena);
    const struct scenario_source source = {
        .text = text, .text_name = "test", .config_dir = STEPSIM_SOURCE_DIR "/configs"};
    const struct whatif_ask ask = {.source = &source, .percent = 1.0};
    const struct whatif_answer *answer = whatif_run(&ask, arena, &errors);
    assert_non_null(answer);
    double sum = 0.0;
    for (uint32_t i = 0; i < answer->count; i++) {
        const struct whatif_row *row = &answer->rows[i];
        if (!row->upgrade) {
            assert_true(row->done);
            assert_true(row->elasticity <= 1e-6);
            assert_true(row->elasticity > -1.0);
            sum += row->elasticity;
        }
    }
    assert_true(sum > -1.0);
    /* Dense layers of width 4096: the matrix cores are most of the step. */
    assert_true(row_of(answer, "cube")->elasticity < -0.3);
    assert_true(row_of(answer, "cube")->elasticity < row_of(answer, "latency")->elasticity);
    /* Nothing is copied to the host. */
    assert_true(row_of(answer, "host link")->elasticity == 0.0);
    assert_true(row_of(answer, "double NIC")->done);
    assert_true(row_of(answer, "double NIC")->change <= 0.0);
    assert_true(row_of(answer, "next device")->done);
    assert_true(row_of(answer, "supernode")->done);
    arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elasticities_are_between_minus_one_and_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
