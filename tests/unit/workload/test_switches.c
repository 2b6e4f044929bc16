/*
 * Preconditions of switches: each is refused with its code at its key, and accepted as soon
 * as the condition holds.
 */
#include "../../support/assert_close.h"
#include "stepsim/run.h"

static const char EXPERTS[] =
    "model: {base: deepseek_v3, layers: 16}\n"
    "cluster: atlas_800t_a2\n"
    "devices: 64\n"
    "parallel: {tp: 2, sequence_parallel: true, pp: 2, vpp: 2, ep: 16, etp: 1, zero: 1}\n"
    "training: {seq_len: 2048, micro_batch_size: 1, global_batch_size: 64}\n"
    "schedule: {kind: overlapped_1f1b, p2p: overlapped}\n";

static const char DENSE[] =
    "model: llama2_7b\n"
    "cluster: atlas_800t_a2\n"
    "devices: 8\n"
    "parallel: {tp: 2, sequence_parallel: true, pp: 2, zero: 1}\n"
    "training: {seq_len: 2048, micro_batch_size: 1, global_batch_size: 16}\n"
    "schedule: {kind: 1f1b, p2p: overlapped}\n";

struct expectation {
    const char *text;
    struct scenario_override overrides[4]; /* key NULL: end */
    enum error_code code;                  /* ERROR_CODE_COUNT: accepted */
    const char *key;
};

static const struct expectation expectations[] = {
    {EXPERTS, {{NULL, NULL}}, ERROR_CODE_COUNT, NULL},
    {EXPERTS, {{"moe.dispatcher", "allgather"}}, ERROR_overlap_precondition, "moe.dispatcher"},
    {EXPERTS, {{"moe.grouped_matmul", "false"}}, ERROR_overlap_precondition, "moe.grouped_matmul"},
    {EXPERTS,
     {{"parallel.etp", "2"}, {"parallel.ep", "8"}},
     ERROR_overlap_precondition,
     "parallel.etp"},
    {EXPERTS,
     {{"parallel.etp", "2"}, {"parallel.ep", "8"}, {"schedule.kind", "interleaved"}},
     ERROR_CODE_COUNT,
     NULL},
    {EXPERTS, {{"parallel.zero", "3"}}, ERROR_overlap_precondition, "parallel.zero"},
    {EXPERTS,
     {{"moe.dispatcher", "allgather"},
      {"moe.exchange", "hierarchical"},
      {"schedule.kind", "interleaved"}},
     ERROR_overlap_precondition,
     "moe.exchange"},
    {EXPERTS, {{"moe.overlap.shared_expert", "true"}}, ERROR_CODE_COUNT, NULL},
    {EXPERTS,
     {{"moe.overlap.shared_expert", "true"}, {"model.moe.shared_intermediate_size", "0"}},
     ERROR_overlap_precondition,
     "moe.overlap.shared_expert"},
    {EXPERTS,
     {{"recompute.layers", "{per_stage: [1, 2, 3]}"}, {"recompute.modules", "[norm]"}},
     ERROR_recompute_precondition,
     "recompute.layers"},
    {DENSE,
     {{"recompute.modules", "[mla_kv_up_proj]"}},
     ERROR_recompute_precondition,
     "recompute.modules"},
    {DENSE,
     {{"recompute.modules", "[permute]"}},
     ERROR_recompute_precondition,
     "recompute.modules"},
    {DENSE, {{"recompute.modules", "[qkv, mlp]"}}, ERROR_CODE_COUNT, NULL},
    {DENSE,
     {{"swap.activations", "[moe_permute_probs]"}},
     ERROR_swap_precondition,
     "swap.activations"},
    {DENSE, {{"swap.activations", "[attention]"}}, ERROR_CODE_COUNT, NULL},
    {DENSE,
     {{"overlap.matmul_collective", "mc2"}, {"parallel.sequence_parallel", "false"}},
     ERROR_overlap_precondition,
     "overlap.matmul_collective"},
};

static void check(const struct expectation *expectation)
{
    struct arena *arena = arena_create("test");
    struct error_list errors;
    error_list_init(&errors, arena);
    uint32_t count = 0;
    while (count < 4 && expectation->overrides[count].key != NULL)
        count++;
    const struct scenario_source source = {.text = expectation->text,
                                           .text_name = "test",
                                           .overrides = expectation->overrides,
                                           .override_count = count};
    const struct scenario *scenario = scenario_load(&source, arena, &errors);
    struct run run = {0};
    const bool accepted = scenario != NULL && run_prepare(&run, scenario, arena, &errors);
    if (accepted != (expectation->code == ERROR_CODE_COUNT))
        print_error("%s", error_list_text(&errors, arena));
    assert_int_equal(accepted, expectation->code == ERROR_CODE_COUNT);
    if (!accepted) {
        assert_int_equal(errors.items[0].code, expectation->code);
        assert_string_equal(errors.items[0].key, expectation->key);
    }
    arena_destroy(arena);
}

static void switches_are_refused_with_their_reason(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof expectations / sizeof expectations[0]; i++) {
        print_message("%zu\n", i);
        check(&expectations[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(switches_are_refused_with_their_reason)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
