/* test_degrees.c - what must divide, what is derived, and what a refusal advises. */
#include "layout_fixture.h"

static struct layout_fixture moe_fixture(uint32_t experts)
{
    struct layout_fixture f = layout_fixture_open();
    f.scenario.model.moe = builder_moe((struct moe_shape){experts, 1, 256, 0, 0});
    return f;
}

static void dp_edp_and_microbatches_are_derived(void **state)
{
    (void)state;
    struct layout_fixture f = moe_fixture(16);
    f.scenario.devices = 64;
    f.scenario.parallel.tp = 2;
    f.scenario.parallel.pp = 2;
    f.scenario.parallel.cp = 2;
    f.scenario.parallel.ep = 4;
    f.scenario.training.micro_batch_size = 2;
    layout_fixture_build(&f);
    assert_accepted(f.errors);
    /* dp = 64/(2*2*2), edp = 64/(2*4*1), microbatches = 64/(2*8), 16/4 experts */
    assert_int_equal(f.layout->dp, 8);
    assert_int_equal(f.layout->edp, 8);
    assert_int_equal(f.layout->microbatches, 4);
    assert_int_equal(f.layout->experts_per_rank, 4);
    layout_fixture_close(&f);
}

static void dense_models_have_no_expert_dimension(void **state)
{
    (void)state;
    struct layout_fixture f = layout_fixture_open();
    f.scenario.parallel.tp = 2;
    layout_fixture_build(&f);
    assert_accepted(f.errors);
    assert_int_equal(f.layout->experts_per_rank, 0);
    assert_int_equal(f.layout->ep, 1);
    assert_int_equal(f.layout->edp, 8);

    f.scenario.parallel.ep = 2;
    layout_fixture_build(&f);
    assert_refused(f.errors, ERROR_ep_without_experts, "both must be 1");
    layout_fixture_close(&f);
}

static void the_world_is_a_multiple_of_both_views(void **state)
{
    (void)state;
    struct layout_fixture f = moe_fixture(64);
    f.scenario.devices = 24;
    f.scenario.parallel.tp = 3;
    f.scenario.model.attention.heads = 6;
    f.scenario.model.attention.kv_heads = 6;
    f.scenario.model.moe.intermediate_size = 255;
    f.scenario.parallel.ep = 8;
    f.scenario.training.seq_len = 1536;
    layout_fixture_build(&f); /* 24 = lcm(3, 8) */
    assert_accepted(f.errors);
    assert_int_equal(f.layout->edp, 3);

    f.scenario.devices = 32; /* a multiple of 8, not of 3 */
    layout_fixture_build(&f);
    assert_refused(f.errors, ERROR_world_not_multiple, "32 devices are no multiple of 24");
    assert_refused(f.errors, ERROR_world_not_multiple, "devices 24 or 48");

    f.scenario.devices = 48; /* lcm(3, 32) = 96, but lcm(3, 16) = 48 */
    f.scenario.parallel.ep = 32;
    layout_fixture_build(&f);
    assert_refused(f.errors, ERROR_world_not_multiple, "the smallest world; devices 96, or ep 16");
    layout_fixture_close(&f);
}

static void a_written_dp_is_checked(void **state)
{
    (void)state;
    struct layout_fixture f = layout_fixture_open();
    f.scenario.parallel.tp = 2;
    f.scenario.parallel.dp = 4;
    layout_fixture_build(&f);
    assert_accepted(f.errors);
    f.scenario.parallel.dp = 8;
    layout_fixture_build(&f);
    assert_refused(f.errors, ERROR_conflicting_keys, "take 16 devices");
    layout_fixture_close(&f);
}

static void the_batch_fills_all_replicas(void **state)
{
    (void)state;
    struct layout_fixture f = layout_fixture_open();
    f.scenario.training.micro_batch_size = 3;
    f.scenario.training.global_batch_size = 64; /* units of 3 * 8 */
    layout_fixture_build(&f);
    assert_refused(f.errors, ERROR_batch_not_divisible, "48 or 72 would work");
    f.scenario.training.global_batch_size = 72;
    layout_fixture_build(&f);
    assert_accepted(f.errors);
    assert_int_equal(f.layout->microbatches, 3);
    layout_fixture_close(&f);
}

static void heads_and_widths_divide_by_tp(void **state)
{
    (void)state;
    struct layout_fixture f = layout_fixture_open();
    f.scenario.devices = 48;
    f.scenario.parallel.tp = 6;
    f.scenario.training.seq_len = 1536;
    f.scenario.training.global_batch_size = 64;
    layout_fixture_build(&f); /* 8 heads, FFN 2048 */
    assert_refused(f.errors, ERROR_heads_not_divisible_by_tp, "tp 4 or 8 would work");
    assert_refused(f.errors, ERROR_width_not_divisible_by_tp, "4 or 8 would work");
    layout_fixture_close(&f);
}

static void expert_widths_divide_by_etp_not_tp(void **state)
{
    (void)state;
    struct layout_fixture f = moe_fixture(8);
    f.scenario.model.moe.intermediate_size = 250;
    f.scenario.parallel.tp = 4;
    layout_fixture_build(&f);
    assert_accepted(f.errors);
    f.scenario.parallel.etp = 4;
    layout_fixture_build(&f);
    assert_refused(f.errors, ERROR_width_not_divisible_by_tp, "250 does not divide among 4");
    layout_fixture_close(&f);
}

static void key_heads_are_split_or_replicated(void **state)
{
    (void)state;
    struct layout_fixture f = layout_fixture_open();
    f.scenario.model.attention.kind = ATTENTION_GQA;
    f.scenario.model.attention.kv_heads = 2;
    f.scenario.parallel.tp = 8; /* 8 query heads on 8 ranks, each key head on 4 */
    layout_fixture_build(&f);
    assert_accepted(f.errors);
    assert_int_equal(f.layout->heads_per_rank, 1);
    assert_int_equal(f.layout->kv_heads_per_rank, 1);
    assert_int_equal(f.layout->kv_replication, 4);

    f.scenario.parallel.tp = 2;
    layout_fixture_build(&f);
    assert_int_equal(f.layout->heads_per_rank, 4);
    assert_int_equal(f.layout->kv_heads_per_rank, 1);
    assert_int_equal(f.layout->kv_replication, 1);
    layout_fixture_close(&f);
}

static void ulysses_divides_what_tp_left(void **state)
{
    (void)state;
    struct layout_fixture f = layout_fixture_open();
    f.scenario.parallel.tp = 4;
    f.scenario.parallel.cp = 2;
    f.scenario.parallel.cp_method = CP_ULYSSES; /* 8 heads / 4 / 2 */
    layout_fixture_build(&f);
    assert_accepted(f.errors);
    assert_int_equal(f.layout->heads_per_rank, 1);
    assert_int_equal(f.layout->ulysses, 2);
    assert_int_equal(f.layout->ring, 1);

    f.scenario.parallel.tp = 2;
    f.scenario.devices = 16;
    f.scenario.parallel.cp = 8; /* 4 heads are left for 8 ranks */
    layout_fixture_build(&f);
    assert_refused(f.errors, ERROR_heads_not_divisible_by_ulysses, "a degree of 4 would work");
    layout_fixture_close(&f);
}

static void a_hybrid_is_ulysses_times_ring(void **state)
{
    (void)state;
    struct layout_fixture f = layout_fixture_open();
    f.scenario.parallel.cp = 8;
    f.scenario.parallel.cp_method = CP_HYBRID;
    f.scenario.parallel.ulysses_size = 2;
    layout_fixture_build(&f);
    assert_accepted(f.errors);
    assert_int_equal(f.layout->ulysses, 2);
    assert_int_equal(f.layout->ring, 4);
    f.scenario.parallel.ulysses_size = 3;
    layout_fixture_build(&f);
    assert_refused(f.errors, ERROR_conflicting_keys, "2 or 4 would work");
    f.scenario.parallel.cp_method = CP_RING;
    layout_fixture_build(&f);
    assert_refused(f.errors, ERROR_conflicting_keys, "only method hybrid reads it");
    layout_fixture_close(&f);
}

/* Ring: two pieces per rank. Sequence parallel: each rank's piece divides by tp. */
static void the_sequence_divides(void **state)
{
    (void)state;
    struct layout_fixture f = layout_fixture_open();
    f.scenario.parallel.cp = 4;
    f.scenario.training.seq_len = 1020; /* a multiple of 4, not of 8 */
    layout_fixture_build(&f);
    assert_refused(f.errors, ERROR_seq_not_divisible, "1016 or 1024 would work");
    f.scenario.parallel.cp_method = CP_ULYSSES;
    layout_fixture_build(&f);
    assert_accepted(f.errors);
    assert_false(f.layout->sequence_parallel); /* nothing to split over at tp 1 */
    f.scenario.parallel.tp = 2;                /* now a multiple of 4 * 2 with sequence parallel */
    layout_fixture_build(&f);
    assert_refused(f.errors, ERROR_seq_not_divisible, "sequence parallel over tp 2");
    f.scenario.parallel.sequence_parallel = false;
    layout_fixture_build(&f);
    assert_accepted(f.errors);
    assert_false(f.layout->sequence_parallel);
    layout_fixture_close(&f);
}

static void experts_divide_by_ep(void **state)
{
    (void)state;
    struct layout_fixture f = moe_fixture(12);
    f.scenario.parallel.ep = 8;
    layout_fixture_build(&f);
    assert_refused(f.errors, ERROR_experts_not_divisible_by_ep, "ep 6 or 12 would work");
    layout_fixture_close(&f);
}

static void experts_on_tensor_ranks_need_sequence_parallel(void **state)
{
    (void)state;
    struct layout_fixture f = moe_fixture(8);
    f.scenario.parallel.tp = 2;
    f.scenario.parallel.sequence_parallel = false;
    layout_fixture_build(&f);
    assert_refused(f.errors, ERROR_conflicting_keys, "set it true, or tp 1");
    f.scenario.parallel.tp = 1;
    layout_fixture_build(&f);
    assert_accepted(f.errors);
    layout_fixture_close(&f);
}

static void virtual_stages_need_a_pipeline(void **state)
{
    (void)state;
    struct layout_fixture f = layout_fixture_open();
    f.scenario.parallel.vpp = 2;
    layout_fixture_build(&f);
    assert_refused(f.errors, ERROR_vpp_needs_pp, "take vpp 1");
    layout_fixture_close(&f);
}

/* Degrees that no cluster has are an answer, not an overflow or a long wait. */
static void absurd_degrees_are_refused(void **state)
{
    (void)state;
    struct layout_fixture f = moe_fixture(64);
    f.scenario.parallel.tp = UINT32_MAX;
    f.scenario.parallel.pp = UINT32_MAX;
    f.scenario.parallel.vpp = UINT32_MAX;
    f.scenario.parallel.cp = UINT32_MAX;
    f.scenario.parallel.ep = UINT32_MAX - 1;
    f.scenario.parallel.etp = UINT32_MAX;
    f.scenario.training.micro_batch_size = UINT32_MAX;
    layout_fixture_build(&f);
    assert_refused(f.errors, ERROR_world_not_multiple, "8 devices");
    assert_refused(f.errors, ERROR_out_of_range, "would be mostly empty");

    f.scenario.parallel.tp = 0;
    layout_fixture_build(&f);
    assert_refused(f.errors, ERROR_out_of_range, "at least 1");
    layout_fixture_close(&f);
}

/* Mistakes of degrees and of stages come in one report. */
static void all_mistakes_are_reported_at_once(void **state)
{
    (void)state;
    struct layout_fixture f = layout_fixture_open();
    f.scenario.parallel.pp = 3;
    f.scenario.training.seq_len = 1023;
    f.scenario.parallel.tp = 2;
    layout_fixture_build(&f);
    assert_refused(f.errors, ERROR_world_not_multiple, "6");
    assert_refused(f.errors, ERROR_seq_not_divisible, "1022 or 1024");
    assert_refused(f.errors, ERROR_layers_not_divisible_by_pp, "8 layer slots over 3 stages");
    layout_fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dp_edp_and_microbatches_are_derived),
        cmocka_unit_test(dense_models_have_no_expert_dimension),
        cmocka_unit_test(the_world_is_a_multiple_of_both_views),
        cmocka_unit_test(a_written_dp_is_checked),
        cmocka_unit_test(the_batch_fills_all_replicas),
        cmocka_unit_test(heads_and_widths_divide_by_tp),
        cmocka_unit_test(expert_widths_divide_by_etp_not_tp),
        cmocka_unit_test(key_heads_are_split_or_replicated),
        cmocka_unit_test(ulysses_divides_what_tp_left),
        cmocka_unit_test(a_hybrid_is_ulysses_times_ring),
        cmocka_unit_test(the_sequence_divides),
        cmocka_unit_test(experts_divide_by_ep),
        cmocka_unit_test(experts_on_tensor_ranks_need_sequence_parallel),
        cmocka_unit_test(virtual_stages_need_a_pipeline),
        cmocka_unit_test(absurd_degrees_are_refused),
        cmocka_unit_test(all_mistakes_are_reported_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
