/* test_layout.c - where model chunks run, and the headline layout as a whole. */
#include "layout_fixture.h"

static void chunks_walk_the_stages_again_and_again(void **state)
{
    (void)state;
    struct layout_fixture f = layout_fixture_open();
    f.scenario.parallel.pp = 4;
    f.scenario.parallel.vpp = 2;
    layout_fixture_build(&f);
    assert_accepted(f.errors);
    assert_int_equal(layout_stage_of(f.layout, 5), 1);
    assert_int_equal(layout_chunk_of(f.layout, 5), 1);
    for (uint32_t k = 0; k < 8; k++)
        assert_int_equal(layout_model_chunk(f.layout, layout_stage_of(f.layout, k),
                                            layout_chunk_of(f.layout, k)),
                         k);
    layout_fixture_close(&f);
}

/* Chunk 1 of stage s is model chunk 2*pp-1-s: both ends of the model are on stage 0. */
static void a_v_comes_back_to_the_first_stage(void **state)
{
    (void)state;
    struct layout_fixture f = layout_fixture_open();
    f.v_shaped = true;
    f.scenario.model.mtp_layers = 1;
    f.scenario.parallel.pp = 4;
    f.scenario.parallel.vpp = 2;
    layout_fixture_build(&f);
    assert_accepted(f.errors);
    for (uint32_t stage = 0; stage < 4; stage++) {
        assert_int_equal(layout_model_chunk(f.layout, stage, 1), 7 - stage);
        assert_int_equal(layout_stage_of(f.layout, 7 - stage), stage);
        assert_int_equal(f.layout->chunks[stage * 2 + 1].first_layer, 7 - stage);
    }
    assert_true(f.layout->chunks[0].embedding);
    assert_true(f.layout->chunks[1].head);
    assert_int_equal(f.layout->chunks[1].mtp, 1);
    layout_fixture_close(&f);
}

/* Pangu Ultra MoE on 6,144 devices: facts/pangu.md 2.1 for the degrees, dp 48 and 12 replicas of
 * the experts; three dense layers in the first chunk, only MTP and head on the last stage. */
static void the_headline_layout(void **state)
{
    (void)state;
    struct layout_fixture f = layout_fixture_open();
    f.scenario.model = builder_model("Pangu-Ultra-MoE-718B");
    f.scenario.model.mtp_layers = 1;
    f.scenario.devices = 6144;
    f.scenario.training = (struct training_spec){8192, 2, 3072, 0.0};
    f.scenario.parallel.tp = 8;
    f.scenario.parallel.pp = 16;
    f.scenario.parallel.vpp = 2;
    f.scenario.parallel.ep = 32;
    f.scenario.parallel.split = SPLIT_BALANCED;
    layout_fixture_build(&f);
    assert_accepted(f.errors);
    assert_int_equal(f.layout->dp, 48);
    assert_int_equal(f.layout->edp, 12);
    assert_int_equal(f.layout->microbatches, 32);
    assert_int_equal(f.layout->experts_per_rank, 8);
    assert_string_equal(f.layout->split_text, "4,4,4,4,4,4,4,4,4,4,4,4,4,4,4,1");
    assert_int_equal(f.layout->chunks[0].layer_count, 2);
    const struct layout_chunk *last = &f.layout->chunks[15 * 2 + 1];
    assert_true(last->head && last->mtp == 1 && last->layer_count == 0);

    /* tp fills a node, an expert group four nodes; data neighbours are in different nodes. */
    assert_int_equal(f.layout->spans[GROUP_TP].outer_level, 0);
    assert_int_equal(f.layout->spans[GROUP_EP].per_domain[0], 8);
    assert_int_equal(f.layout->spans[GROUP_EP].size, 32);
    assert_int_equal(f.layout->spans[GROUP_DP_CP].per_domain[0], 1);
    assert_int_equal(f.layout->spans[GROUP_DP_CP].groups_per_node, 8);
    assert_int_equal(f.layout->pp_next.outer_level, 1);
    assert_int_equal(f.layout->pp_next.stride, 384);
    layout_fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chunks_walk_the_stages_again_and_again),
        cmocka_unit_test(a_v_comes_back_to_the_first_stage),
        cmocka_unit_test(the_headline_layout),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
