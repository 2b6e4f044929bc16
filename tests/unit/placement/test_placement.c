/* Placements of experts: shapes worked by hand, and what every plan must keep. */
#include "../../support/assert_close.h"
#include "stepsim/placement.h"

static struct arena *arena;

static int make_arena(void **state)
{
    (void)state;
    arena = arena_create("test");
    return 0;
}

static int free_arena(void **state)
{
    (void)state;
    arena_destroy(arena);
    return 0;
}

static void assert_full(const struct placement *placement)
{
    uint32_t held[16] = {0};
    for (uint32_t e = 0; e < placement->experts; e++) {
        assert_true(placement->position_of[e] < placement->positions);
        held[placement->position_of[e]]++;
    }
    for (uint32_t p = 0; p < placement->positions; p++)
        assert_int_equal(held[p], placement->experts / placement->positions);
}

static void contiguous_is_by_number(void **state)
{
    (void)state;
    const struct placement placement = placement_create(6, 3, arena);
    const uint32_t expected[] = {0, 0, 1, 1, 2, 2};
    for (int e = 0; e < 6; e++)
        assert_int_equal(placement.position_of[e], expected[e]);
}

static void random_keeps_every_slot_filled(void **state)
{
    (void)state;
    struct placement placement = placement_create(64, 16, arena);
    struct rng rng = rng_stream(7, 1);
    placement_random(&placement, &rng);
    assert_full(&placement);
    uint32_t moved = 0;
    for (uint32_t e = 0; e < 64; e++)
        moved += placement.position_of[e] != e / 4;
    assert_true(moved > 32);
}

/* Loads 8 7 | 6 5 | 4 3 | 2 1 on two ranks of four experts; longest first gives the ranks
 * 8 5 4 1 and 7 6 3 2, 18 each of 36. */
static void greedy_deals_from_the_heaviest(void **state)
{
    (void)state;
    const double load[] = {8, 7, 6, 5, 4, 3, 2, 1};
    struct placement placement = placement_create(8, 2, arena);
    assert_close(placement_heaviest(&placement, load, arena), 26.0 / 18.0, 1e-12);
    placement_greedy(&placement, load, arena);
    assert_full(&placement);
    const uint32_t expected[] = {0, 1, 1, 0, 0, 1, 1, 0};
    for (int e = 0; e < 8; e++)
        assert_int_equal(placement.position_of[e], expected[e]);
    assert_close(placement_heaviest(&placement, load, arena), 1.0, 1e-12);
}

/* 5 5 | 1 1: one swap makes both ranks 6, and only two experts move. */
static void improve_moves_few(void **state)
{
    (void)state;
    const double load[] = {5, 5, 1, 1};
    struct placement placement = placement_create(4, 2, arena);
    placement_improve(&placement, load, arena);
    assert_full(&placement);
    assert_close(placement_heaviest(&placement, load, arena), 1.0, 1e-12);
    uint32_t moved = 0;
    for (uint32_t e = 0; e < 4; e++)
        moved += placement.position_of[e] != e / 2;
    assert_int_equal(moved, 2);
}

static void equal_loads_move_nothing(void **state)
{
    (void)state;
    const double load[] = {1, 1, 1, 1, 1, 1};
    struct placement placement = placement_create(6, 3, arena);
    placement_improve(&placement, load, arena);
    for (uint32_t e = 0; e < 6; e++)
        assert_int_equal(placement.position_of[e], e / 2);
}

static void improve_never_makes_it_heavier(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed < 50; seed++) {
        double load[64];
        struct rng rng = rng_stream(seed, 3);
        for (int e = 0; e < 64; e++)
            load[e] = rng_gamma(&rng, 0.5);
        struct placement placement = placement_create(64, 8, arena);
        const double before = placement_heaviest(&placement, load, arena);
        placement_improve(&placement, load, arena);
        assert_full(&placement);
        const double after = placement_heaviest(&placement, load, arena);
        assert_true(after <= before);
        /* Never below the mean, nor below the heaviest expert alone. */
        assert_true(after >= 1.0 - 1e-12);
    }
}

int main(void)
{
#define PLACEMENT_TEST(name) cmocka_unit_test_setup_teardown(name, make_arena, free_arena)
    const struct CMUnitTest tests[] = {
        PLACEMENT_TEST(contiguous_is_by_number),
        PLACEMENT_TEST(random_keeps_every_slot_filled),
        PLACEMENT_TEST(greedy_deals_from_the_heaviest),
        PLACEMENT_TEST(improve_moves_few),
        PLACEMENT_TEST(equal_loads_move_nothing),
        PLACEMENT_TEST(improve_never_makes_it_heavier),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
