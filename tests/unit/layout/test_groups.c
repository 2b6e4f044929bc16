/* test_groups.c - coordinates, groups and spans, on maps written by hand and by recount. */
#include "layout_fixture.h"
#include "stepsim/rng.h"

#define WORLD_MAX 768

static void assert_members(const struct layout *layout, enum group_slot slot, uint32_t group,
                           const uint32_t *expected)
{
    uint32_t members[WORLD_MAX];
    layout_group_members(layout, slot, group, members);
    for (uint32_t i = 0; i < layout->spans[slot].size; i++)
        assert_int_equal(members[i], expected[i]);
}

/* 16 ranks: tp 2, cp 2, dp 2, pp 2 for attention; etp 1, ep 4, edp 2 for experts. */
static void a_small_world_by_hand(void **state)
{
    (void)state;
    struct layout_fixture f = layout_fixture_open();
    f.scenario.devices = 16;
    f.scenario.model.moe = builder_moe((struct moe_shape){8, 2, 256, 0, 0});
    f.scenario.parallel.tp = 2;
    f.scenario.parallel.cp = 2;
    f.scenario.parallel.pp = 2;
    f.scenario.parallel.ep = 4;
    layout_fixture_build(&f);
    assert_accepted(f.errors);

    const struct rank_coordinates at = layout_coordinates(f.layout, 13); /* 1101 */
    assert_int_equal(at.tp, 1);
    assert_int_equal(at.cp, 0);
    assert_int_equal(at.dp, 1);
    assert_int_equal(at.pp, 1);
    assert_int_equal(at.ep, 1); /* 13 % 8 = 5 = ep 1 + 4 * edp 1 */
    assert_int_equal(at.edp, 1);
    assert_int_equal(layout_rank(f.layout, 1, 0, 1, 1), 13);

    assert_members(f.layout, GROUP_TP, 1, (const uint32_t[]){2, 3});
    assert_members(f.layout, GROUP_CP, 1, (const uint32_t[]){1, 3});
    assert_members(f.layout, GROUP_EP, 2, (const uint32_t[]){8, 9, 10, 11});
    assert_members(f.layout, GROUP_EDP, 3, (const uint32_t[]){3, 7});
    assert_members(f.layout, GROUP_DP_CP, 1, (const uint32_t[]){1, 3, 5, 7});
    assert_members(f.layout, GROUP_ENDS, 5, (const uint32_t[]){5, 13});
    assert_int_equal(layout_group_count(f.layout, GROUP_WORLD), 1);
    assert_int_equal(layout_group_count(f.layout, GROUP_ETP), 16);
    layout_fixture_close(&f);
}

/* Order with data ranks inside: tp-dp-cp-ep-pp puts replicas of a tensor group side by side. */
static void another_order(void **state)
{
    (void)state;
    struct layout_fixture f = layout_fixture_open();
    f.scenario.devices = 16;
    f.scenario.parallel.tp = 2;
    f.scenario.parallel.cp = 2;
    f.scenario.parallel.order = "tp-dp-cp-ep-pp";
    layout_fixture_build(&f);
    assert_accepted(f.errors);
    assert_members(f.layout, GROUP_CP, 0, (const uint32_t[]){0, 8});
    assert_members(f.layout, GROUP_DP_CP, 1, (const uint32_t[]){1, 3, 5, 7, 9, 11, 13, 15});
    layout_fixture_close(&f);
}

/* pp inside dp: stages are tp*cp ranks apart for attention and etp ranks for experts. */
static void orders_that_cannot_be(void **state)
{
    (void)state;
    struct layout_fixture f = layout_fixture_open();
    f.scenario.model.moe = builder_moe((struct moe_shape){8, 2, 256, 0, 0});
    f.scenario.parallel.tp = 2;
    f.scenario.parallel.pp = 2;
    f.scenario.parallel.order = "tp-cp-pp-ep-dp";
    layout_fixture_build(&f);
    assert_refused(f.errors, ERROR_conflicting_keys, "2 ranks apart for attention and 1 for");
    f.scenario.parallel.etp = 2; /* both views agree now */
    layout_fixture_build(&f);
    assert_accepted(f.errors);
    assert_members(f.layout, GROUP_ENDS, 0, (const uint32_t[]){0, 2});

    static const char *const wrong[] = {
        "", "tp-cp-ep-dp", "tp-cp-ep-dp-dp", "tp-cp-ep-dp-pp-", "tpcpepdppp", "tp-cp-ep-dp-xx"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        f.scenario.parallel.order = wrong[i];
        layout_fixture_build(&f);
        assert_refused(f.errors, ERROR_bad_value, "not an order of the five words");
    }
    layout_fixture_close(&f);
}

/* Recounts one slot: every rank is in exactly the group it says, groups are numbered by their
 * lowest rank, and the span is that of the worst group. */
static void recount_slot(const struct layout_fixture *f, enum group_slot slot)
{
    const struct layout *layout = f->layout;
    uint32_t members[WORLD_MAX];
    uint32_t seen = 0;
    uint32_t lowest = 0;
    uint32_t outer = 0;
    const uint32_t groups = layout_group_count(layout, slot);
    for (uint32_t group = 0; group < groups; group++) {
        layout_group_members(layout, slot, group, members);
        assert_true(group == 0 || members[0] > lowest);
        lowest = members[0];
        for (uint32_t i = 0; i < layout->spans[slot].size; i++) {
            assert_int_equal(layout_group_of(layout, slot, members[i]), group);
            assert_true(i == 0 || members[i] > members[i - 1]);
            seen++;
        }
        const struct group_span span =
            cluster_members_span(f->cluster, members, layout->spans[slot].size);
        outer = span.outer_level > outer ? span.outer_level : outer;
        if (!layout->spans_differ[slot])
            assert_memory_equal(&span, &layout->spans[slot], sizeof span);
        if (span.outer_level == layout->spans[slot].outer_level && span.outer_level > 0)
            assert_true(span.per_domain[span.outer_level - 1] >=
                        layout->spans[slot].per_domain[span.outer_level - 1]);
    }
    assert_int_equal(outer, layout->spans[slot].outer_level);
    if (slot != GROUP_ENDS)
        assert_int_equal(seen, layout->world);
}

static void recount_neighbours(const struct layout_fixture *f)
{
    const struct layout *layout = f->layout;
    uint32_t outer = 0;
    for (uint32_t rank = 0; rank < layout->world; rank++) {
        const struct rank_coordinates at = layout_coordinates(layout, rank);
        assert_int_equal(layout_rank(layout, at.tp, at.cp, at.dp, at.pp), rank);
        if (at.pp + 1 == layout->pp)
            continue;
        const uint32_t next = layout_rank(layout, at.tp, at.cp, at.dp, at.pp + 1);
        const uint32_t level = cluster_level_of_pair(f->cluster, rank, next);
        outer = level > outer ? level : outer;
    }
    assert_int_equal(layout->pp_next.outer_level, outer);
    assert_int_equal(layout->pp_next.size, layout->pp > 1 ? 2 : 1);
}

static void every_slot_of_random_worlds_recounted(void **state)
{
    (void)state;
    static const uint32_t small[] = {1, 2, 3, 4, 6};
    static const char *const orders[] = {"tp-cp-ep-dp-pp", "tp-dp-ep-cp-pp", "ep-tp-cp-dp-pp"};
    struct layout_fixture f = layout_fixture_open();
    struct rng rng = rng_stream(1, 1);
    f.scenario.model = builder_dense((struct dense_shape){12, 512, 2304, 144, 144, 64, 32000});
    f.scenario.model.moe = builder_moe((struct moe_shape){144, 2, 144, 0, 0});
    f.scenario.training.seq_len = 1440;
    uint32_t built = 0;
    uint32_t uneven = 0;
    for (uint32_t trial = 0; trial < 400; trial++) {
        struct parallel_spec *p = &f.scenario.parallel;
        p->tp = small[rng_below(&rng, 5)];
        p->cp = small[rng_below(&rng, 3)];
        p->pp = small[rng_below(&rng, 5)];
        p->ep = small[rng_below(&rng, 5)] * small[rng_below(&rng, 4)];
        p->etp = small[rng_below(&rng, 3)];
        p->order = orders[rng_below(&rng, 3)];
        f.scenario.devices = 24 * (1 + (uint32_t)rng_below(&rng, 32));
        f.scenario.training.global_batch_size = f.scenario.devices;
        layout_fixture_build(&f);
        if (f.layout == NULL)
            continue;
        built++;
        for (uint32_t slot = 0; slot < GROUP_SLOT_COUNT; slot++) {
            recount_slot(&f, (enum group_slot)slot);
            uneven += f.layout->spans_differ[slot];
        }
        recount_neighbours(&f);
    }
    assert_true(built > 50);
    assert_true(uneven > 10); /* groups of 3 and 6 on nodes of 8 */
    layout_fixture_close(&f);
}

static void only_the_ends_are_in_an_end_group(void **state)
{
    (void)state;
    struct layout_fixture f = layout_fixture_open();
    f.scenario.parallel.pp = 4;
    layout_fixture_build(&f);
    assert_accepted(f.errors);
    assert_int_equal(layout_group_of(f.layout, GROUP_ENDS, 0), 0);
    assert_int_equal(layout_group_of(f.layout, GROUP_ENDS, 2), UINT32_MAX);
    assert_int_equal(layout_group_of(f.layout, GROUP_ENDS, 7), 1);
    assert_int_equal(layout_group_count(f.layout, GROUP_ENDS), 2);
    f.scenario.parallel.pp = 1;
    layout_fixture_build(&f);
    assert_int_equal(f.layout->spans[GROUP_ENDS].size, 1);
    layout_fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_small_world_by_hand),
        cmocka_unit_test(another_order),
        cmocka_unit_test(orders_that_cannot_be),
        cmocka_unit_test(every_slot_of_random_worlds_recounted),
        cmocka_unit_test(only_the_ends_are_in_an_end_group),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
