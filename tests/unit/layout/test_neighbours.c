/* test_neighbours.c - legal values near an illegal one. */
#include "assert_close.h"
#include "layout/layout_internal.h"
#include "stepsim/arena.h"

static void divisors_on_both_sides(void **state)
{
    (void)state;
    struct arena *arena = arena_create("test");
    assert_string_equal(layout_near_divisors(arena, 12, 5), "4 or 6");
    assert_string_equal(layout_near_divisors(arena, 12, 4), "4 or 6"); /* itself is a divisor */
    assert_string_equal(layout_near_divisors(arena, 5, 2), "1 or 5");
    assert_string_equal(layout_near_divisors(arena, 12, 13), "12"); /* none above */
    assert_string_equal(layout_near_divisors(arena, 12, 0), "1");   /* none below */
    arena_destroy(arena);
}

static void multiples_on_both_sides(void **state)
{
    (void)state;
    struct arena *arena = arena_create("test");
    assert_string_equal(layout_near_multiples(arena, 512, 6000), "5632 or 6144");
    assert_string_equal(layout_near_multiples(arena, 8, 4), "8"); /* 0 is no answer */
    arena_destroy(arena);
}

static void even_lists(void **state)
{
    (void)state;
    struct arena *arena = arena_create("test");
    assert_string_equal(layout_even_list(arena, 30, 4, 0), "8,8,7,7");
    assert_string_equal(layout_even_list(arena, 30, 4, 1), "7,8,8,7");
    assert_string_equal(layout_even_list(arena, 8, 4, 0), "2,2,2,2");
    assert_string_equal(layout_even_list(arena, 3, 1, 0), "3");
    arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(divisors_on_both_sides),
        cmocka_unit_test(multiples_on_both_sides),
        cmocka_unit_test(even_lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
