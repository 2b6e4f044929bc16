/*
 * test_balance_prefix.c - equal layers behind a prefix, with answers worked by hand.
 * test_balance.c compares the same code with all splits of small models.
 */
#include "assert_close.h"
#include "layout/layout_internal.h"

#define COUNT_MAX 32

struct setting {
    uint32_t layers, prefix, pp, vpp;
    int64_t prefix_weight, weight, last_extra, first_extra;
};

static void split(struct arena *arena, struct setting setting, uint32_t *counts)
{
    int64_t *layer = ARENA_ARRAY(arena, setting.layers, int64_t);
    int64_t *extra = ARENA_ARRAY(arena, COUNT_MAX, int64_t);
    uint32_t *stage = ARENA_ARRAY(arena, COUNT_MAX, uint32_t);
    for (uint32_t i = 0; i < setting.layers; i++)
        layer[i] = i < setting.prefix ? setting.prefix_weight : setting.weight;
    const uint32_t count = setting.pp * setting.vpp;
    for (uint32_t k = 0; k < count; k++)
        stage[k] = k % setting.pp;
    extra[0] = setting.first_extra;
    extra[count - 1] = setting.last_extra;
    const struct balance balance = {setting.layers, setting.pp, count,        layer,
                                    extra,          stage,      INT64_MAX / 2};
    assert_true(balance_prefix_split(&balance, setting.prefix, arena, counts));
}

static void assert_counts(struct setting setting, const uint32_t *expected)
{
    uint32_t counts[COUNT_MAX] = {0};
    struct arena *arena = arena_create("test");
    split(arena, setting, counts);
    arena_destroy(arena);
    for (uint32_t k = 0; k < setting.pp * setting.vpp; k++)
        assert_int_equal(counts[k], expected[k]);
}

/* 5 layers on 2 stages of 2 chunks: 3 + 2 layers, no chunk above 2, the second layer of a chunk
 * as late as possible. */
static void the_spare_layer_goes_to_the_last_chunk(void **state)
{
    (void)state;
    const uint32_t expected[] = {1, 1, 1, 2};
    assert_counts((struct setting){5, 0, 2, 2, 0, 10, 0, 0}, expected);
}

/*
 * 5 layers of 10 and a head of 20 are 70 units, so one stage has 40: 3 layers beside 2 and the
 * head, or 4 beside 1 and the head. No chunk passes the head's 20. Squares in units of 100:
 * 1 + 2*2 + 2*2 + 2*2 = 13 with three layers, 2*2 + 2*2 + 1 + 2*2 = 13 with four. Of the words
 * 1 2 2 0, 2 2 1 0 and 2 1 2 0 the first is the smallest.
 */
static void ties_go_to_the_smaller_word(void **state)
{
    (void)state;
    const uint32_t expected[] = {1, 2, 2, 0};
    assert_counts((struct setting){5, 0, 2, 2, 0, 10, 20, 0}, expected);
}

/*
 * Two layers of 1, then four of 2, are 10 units, and 5 per stage is possible only as 1 + 2 + 2
 * on each, so the light ones part. Stage 0 takes its two heavy ones in chunk 2. Stage 1 has one
 * beside the light one and one in chunk 3: squares 9 + 4, against 1 + 16 for both in chunk 3.
 */
static void the_prefix_parts_when_that_is_lighter(void **state)
{
    (void)state;
    const uint32_t expected[] = {1, 2, 2, 1};
    assert_counts((struct setting){6, 2, 2, 2, 1, 2, 0, 0}, expected);
}

/*
 * Ends of 3, two light layers of 1, four of 4: 24 units on 3 stages, and 8 each only as 3 + 1 + 4,
 * 4 + 4 and 1 + 4 + 3. So the light layers lie on the outer stages, chunk 1 between them is
 * empty, and stage 1 takes its two later, in chunk 4. On stage 2 squares want 1 + 4 beside 3.
 */
static void a_gap_in_the_prefix_can_be_lightest(void **state)
{
    (void)state;
    const uint32_t expected[] = {1, 0, 2, 1, 2, 0};
    assert_counts((struct setting){6, 2, 3, 2, 1, 4, 3, 3}, expected);
}

/* 10 layers of a prefix on 8 stages can lie in 19448 ways; without gaps they are few. Nothing is
 * lost, and the heaviest stage is within a layer of the mean (10 * 3 + 30 * 4) / 8. */
static void long_prefixes_are_placed_without_gaps(void **state)
{
    (void)state;
    const struct setting setting = {40, 10, 8, 2, 3, 4, 0, 0};
    uint32_t counts[COUNT_MAX] = {0};
    struct arena *arena = arena_create("test");
    split(arena, setting, counts);
    arena_destroy(arena);
    int64_t load[8] = {0};
    uint32_t next = 0;
    for (uint32_t k = 0; k < 16; k++)
        for (uint32_t i = 0; i < counts[k]; i++, next++)
            load[k % 8] += next < setting.prefix ? setting.prefix_weight : setting.weight;
    assert_int_equal(next, setting.layers);
    for (uint32_t s = 0; s < 8; s++)
        assert_true(load[s] <= 19 + 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_spare_layer_goes_to_the_last_chunk),
        cmocka_unit_test(ties_go_to_the_smaller_word),
        cmocka_unit_test(the_prefix_parts_when_that_is_lighter),
        cmocka_unit_test(a_gap_in_the_prefix_can_be_lightest),
        cmocka_unit_test(long_prefixes_are_placed_without_gaps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
