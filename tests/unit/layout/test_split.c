/* test_split.c - layers per chunk under every rule, and what each rule refuses. */
#include "layout_fixture.h"

/* pp stages of vpp chunks over `layers` layers, on a world that fits. */
static struct layout_fixture pipeline(uint32_t layers, uint32_t pp, uint32_t vpp)
{
    struct layout_fixture f = layout_fixture_open();
    f.scenario.model.layers = layers;
    f.scenario.parallel.pp = pp;
    f.scenario.parallel.vpp = vpp;
    f.scenario.devices = 8 * pp;
    return f;
}

static const struct layout_chunk *chunk_at(const struct layout_fixture *f, uint32_t stage,
                                           uint32_t chunk)
{
    return &f->layout->chunks[stage * f->layout->vpp + chunk];
}

static void even_chunks(void **state)
{
    (void)state;
    struct layout_fixture f = pipeline(16, 4, 2);
    f.scenario.model.mtp_layers = 1;
    layout_fixture_build(&f);
    assert_accepted(f.errors);
    assert_string_equal(f.layout->split_text, "4,4,4,4");
    assert_int_equal(f.layout->layer_slots, 16);
    /* Stage 1 holds model chunks 1 and 5: layers 2, 3 and 10, 11. */
    assert_int_equal(chunk_at(&f, 1, 0)->first_layer, 2);
    assert_int_equal(chunk_at(&f, 1, 1)->first_layer, 10);
    assert_int_equal(chunk_at(&f, 1, 1)->layer_count, 2);
    assert_true(chunk_at(&f, 0, 0)->embedding);
    assert_true(chunk_at(&f, 3, 1)->head);
    assert_int_equal(chunk_at(&f, 3, 1)->mtp, 1);
    assert_false(chunk_at(&f, 3, 0)->head);
    layout_fixture_close(&f);
}

static void uneven_stages_say_what_is_lost_and_what_works(void **state)
{
    (void)state;
    struct layout_fixture f = pipeline(30, 4, 1);
    layout_fixture_build(&f);
    assert_refused(f.errors, ERROR_layers_not_divisible_by_pp, "an even split of 7 would lose 2");
    assert_refused(f.errors, ERROR_layers_not_divisible_by_pp, "[8,8,7,7]} or [7,8,8,7]");
    assert_refused(f.errors, ERROR_layers_not_divisible_by_pp, "pp 3 or 5");

    f.scenario.model.layers = 28;
    f.scenario.parallel.vpp = 2;
    layout_fixture_build(&f); /* 7 per stage */
    assert_refused(f.errors, ERROR_layers_per_stage_not_multiple_of_chunk, "would lose 4 layers");
    assert_refused(f.errors, ERROR_layers_per_stage_not_multiple_of_chunk, "vpp 1 or 7");
    layout_fixture_close(&f);
}

static void noop_slots_hold_nothing(void **state)
{
    (void)state;
    static const uint32_t empty[] = {0, 9};
    struct layout_fixture f = pipeline(8, 2, 1);
    f.scenario.parallel.split = SPLIT_NOOP;
    f.scenario.parallel.noop_layers = empty;
    f.scenario.parallel.noop_count = 2;
    layout_fixture_build(&f);
    assert_accepted(f.errors);
    assert_string_equal(f.layout->split_text, "4,4"); /* slots 1..4 and 5..8 of 10 */
    assert_int_equal(f.layout->layer_slots, 10);
    assert_int_equal(chunk_at(&f, 0, 0)->noop_count, 1);
    assert_int_equal(chunk_at(&f, 1, 0)->first_layer, 4);

    static const uint32_t wrong[] = {3, 10};
    f.scenario.parallel.noop_layers = wrong;
    layout_fixture_build(&f);
    assert_refused(f.errors, ERROR_out_of_range, "slot 10 of 10");
    static const uint32_t twice[] = {3, 3};
    f.scenario.parallel.noop_layers = twice;
    layout_fixture_build(&f);
    assert_refused(f.errors, ERROR_conflicting_keys, "slot 3 is named twice");

    f.scenario.parallel.noop_count = 1; /* 9 slots on 2 stages */
    layout_fixture_build(&f);
    assert_refused(f.errors, ERROR_layers_not_divisible_by_pp, "9 layer slots over 2 stages");
    layout_fixture_close(&f);
}

static void a_list_counts_stages_or_chunks(void **state)
{
    (void)state;
    static const uint32_t stages[] = {2, 6};
    static const uint32_t chunks[] = {1, 2, 3, 2};
    struct layout_fixture f = pipeline(8, 2, 2);
    f.scenario.parallel.split = SPLIT_LAYERS;
    f.scenario.parallel.layers = stages;
    f.scenario.parallel.layers_count = 2;
    layout_fixture_build(&f);
    assert_accepted(f.errors);
    assert_string_equal(f.layout->split_text, "2,6");
    assert_int_equal(chunk_at(&f, 1, 0)->layer_count, 3);

    f.v_shaped = true; /* the same layers per stage, other layers */
    layout_fixture_build(&f);
    assert_string_equal(f.layout->split_text, "2,6");
    assert_int_equal(chunk_at(&f, 0, 1)->first_layer, 7);
    f.v_shaped = false;

    f.scenario.parallel.layers = chunks; /* model order: stages 0 1 0 1 */
    f.scenario.parallel.layers_count = 4;
    layout_fixture_build(&f);
    assert_accepted(f.errors);
    assert_string_equal(f.layout->split_text, "4,4");
    assert_int_equal(chunk_at(&f, 0, 1)->layer_count, 3);
    assert_int_equal(chunk_at(&f, 0, 1)->first_layer, 3);

    f.v_shaped = true; /* model order: stages 0 1 1 0 */
    layout_fixture_build(&f);
    assert_string_equal(f.layout->split_text, "3,5");
    layout_fixture_close(&f);
}

static void wrong_lists(void **state)
{
    (void)state;
    static const uint32_t odd[] = {3, 5};
    static const uint32_t short_of[] = {3, 4};
    struct layout_fixture f = pipeline(8, 2, 2);
    f.scenario.parallel.split = SPLIT_LAYERS;
    f.scenario.parallel.layers = odd;
    f.scenario.parallel.layers_count = 2;
    layout_fixture_build(&f);
    assert_refused(f.errors, ERROR_layers_per_stage_not_multiple_of_chunk,
                   "3 layer slots of stage 0");
    assert_refused(f.errors, ERROR_layers_per_stage_not_multiple_of_chunk,
                   "5 layer slots of stage 1");
    f.scenario.parallel.layers = short_of;
    layout_fixture_build(&f);
    assert_refused(f.errors, ERROR_stage_layers_sum, "adds up to 7, but the model has 8");
    f.scenario.parallel.layers_count = 1;
    layout_fixture_build(&f);
    assert_refused(f.errors, ERROR_stage_list_length, "2 (one per stage) or 4 (one per chunk)");
    layout_fixture_close(&f);
}

static void first_and_last(void **state)
{
    (void)state;
    struct layout_fixture f = pipeline(14, 4, 1);
    f.scenario.parallel.split = SPLIT_FIRST_LAST;
    f.scenario.parallel.first_layers = 3;
    f.scenario.parallel.last_layers = 1;
    layout_fixture_build(&f);
    assert_accepted(f.errors);
    assert_string_equal(f.layout->split_text, "3,5,5,1");

    f.scenario.parallel.last_layers = 2;
    layout_fixture_build(&f);
    assert_refused(f.errors, ERROR_layers_not_divisible_by_pp, "9 layers are left for 2 stages");
    f.scenario.parallel.first_layers = 13;
    layout_fixture_build(&f);
    assert_refused(f.errors, ERROR_stage_layers_sum, "hold more than the 14 layers");

    f.scenario.parallel.pp = 2;
    f.scenario.parallel.first_layers = 5;
    f.scenario.parallel.last_layers = 8;
    layout_fixture_build(&f);
    assert_refused(f.errors, ERROR_stage_layers_sum, "add up to 13");
    f.scenario.parallel.first_layers = 0;
    f.scenario.parallel.last_layers = 0;
    layout_fixture_build(&f);
    assert_refused(f.errors, ERROR_conflicting_keys, "needs `first` or `last`");
    layout_fixture_close(&f);
}

static void keys_of_another_rule_are_refused(void **state)
{
    (void)state;
    static const uint32_t list[] = {4, 4};
    struct layout_fixture f = pipeline(8, 2, 1);
    f.scenario.parallel.layers = list;
    f.scenario.parallel.layers_count = 2;
    layout_fixture_build(&f);
    assert_refused(f.errors, ERROR_conflicting_keys, "names another rule");
    assert_string_equal(f.errors->items[0].key, "parallel.stages.layers");
    f.scenario.parallel.layers_count = 0;
    f.scenario.parallel.noop_layers = list;
    f.scenario.parallel.noop_count = 1;
    layout_fixture_build(&f);
    assert_refused(f.errors, ERROR_conflicting_keys, "names another rule");
    f.scenario.parallel.noop_count = 0;
    f.scenario.parallel.first_layers = 4;
    f.scenario.parallel.last_layers = 4;
    layout_fixture_build(&f);
    assert_int_equal(f.errors->count, 2);
    f.scenario.parallel.first_layers = 0;
    f.scenario.parallel.last_layers = 0;
    f.scenario.parallel.layout = "Et*4|t*4L";
    layout_fixture_build(&f);
    assert_refused(f.errors, ERROR_conflicting_keys, "names another rule");
    layout_fixture_close(&f);
}

static void a_missing_string(void **state)
{
    (void)state;
    struct layout_fixture f = pipeline(8, 2, 1);
    f.scenario.parallel.split = SPLIT_LAYOUT;
    layout_fixture_build(&f);
    assert_refused(f.errors, ERROR_missing_key, "needs the layout string");
    layout_fixture_close(&f);
}

/* The weights are training FLOPs: for this model, in units of 3 * 2 per token, a layer is
 * 4*512*512 + 3*512*2048 + 2*512*512 (512 of 1024 keys) and the head 512*32000. */
static void balanced_weighs_the_head(void **state)
{
    (void)state;
    struct layout_fixture f = pipeline(8, 2, 1);
    f.scenario.parallel.split = SPLIT_BALANCED;
    layout_fixture_build(&f);
    assert_accepted(f.errors);
    const struct layout_weights weights = layout_weights(f.model, 1024, f.arena);
    assert_close(weights.layer[0], 6.0 * (6.0 * 512 * 512 + 3.0 * 512 * 2048), 1e-12);
    assert_close(weights.head, 6.0 * 512 * 32000, 1e-12);
    assert_within(weights.mtp, 0.0, 0.0);
    /* 8 layers of 4.72 M and a head of 16.38 M: 27.1 M per stage; 6 + 2 gives 28.3 and 25.8. */
    assert_string_equal(f.layout->split_text, "6,2");
    layout_fixture_close(&f);
}

static void balanced_has_a_limit(void **state)
{
    (void)state;
    struct layout_fixture f = pipeline(2000, 2, 1);
    f.scenario.parallel.split = SPLIT_BALANCED;
    layout_fixture_build(&f);
    assert_refused(f.errors, ERROR_out_of_range, "at most 1024 layers");
    layout_fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(even_chunks),
        cmocka_unit_test(uneven_stages_say_what_is_lost_and_what_works),
        cmocka_unit_test(noop_slots_hold_nothing),
        cmocka_unit_test(a_list_counts_stages_or_chunks),
        cmocka_unit_test(wrong_lists),
        cmocka_unit_test(first_and_last),
        cmocka_unit_test(keys_of_another_rule_are_refused),
        cmocka_unit_test(a_missing_string),
        cmocka_unit_test(balanced_weighs_the_head),
        cmocka_unit_test(balanced_has_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
