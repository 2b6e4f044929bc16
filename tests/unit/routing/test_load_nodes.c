/* Node-limited loads, worked by hand. */
#include "../../support/assert_close.h"
#include "routing/routing_internal.h"

static struct arena *arena;

/* Eight experts on four nodes. A token reaches two nodes, so none has more than 4 / 2 times the
 * mean: 2 * 2 = 4 of the 8. Node 0 has 6; the 2 above go to the others in proportion, which
 * have 2: these double. */
static void what_is_above_goes_to_the_others(void **state)
{
    (void)state;
    static const uint32_t node_of[8] = {0, 0, 1, 1, 2, 2, 3, 3};
    const struct node_limit nodes = {.nodes = 4, .limit = 2, .node_of = node_of};
    double load[8] = {4.5, 1.5, 0.5, 0.5, 0.25, 0.25, 0.5, 0.0};
    const double expected[8] = {3.0, 1.0, 1.0, 1.0, 0.5, 0.5, 1.0, 0.0};
    load_limit_nodes(&nodes, load, 8, arena);
    for (int e = 0; e < 8; e++)
        assert_close(load[e], expected[e], 1e-12);
}

/* What one node gives up may push the next one above the limit: 6, 1.8, 0.2, 0. Node 0 keeps 4,
 * the others double: 3.6 and 0.4, both below 4. With a limit of 3 nodes (8/3 each) node 0 gives
 * 10/3, the others grow by 8/3 to 4.8 and 0.53; node 1 then gives its excess to node 2. */
static void limits_hold_in_the_end(void **state)
{
    (void)state;
    static const uint32_t node_of[8] = {0, 0, 1, 1, 2, 2, 3, 3};
    const struct node_limit nodes = {.nodes = 4, .limit = 3, .node_of = node_of};
    double load[8] = {3.0, 3.0, 0.9, 0.9, 0.1, 0.1, 0.0, 0.0};
    load_limit_nodes(&nodes, load, 8, arena);
    const double most = 8.0 / 3.0;
    assert_close(load[0] + load[1], most, 1e-9);
    assert_close(load[2] + load[3], most, 1e-9);
    assert_close(load[4] + load[5], most, 1e-9);
}

static void every_node_in_reach_changes_nothing(void **state)
{
    (void)state;
    static const uint32_t node_of[4] = {0, 0, 1, 1};
    double load[4] = {4.0, 0.0, 0.0, 0.0};
    for (uint32_t limit = 0; limit <= 2; limit += 2) {
        const struct node_limit nodes = {.nodes = 2, .limit = limit, .node_of = node_of};
        load_limit_nodes(&nodes, load, 4, arena);
        assert_true(load[0] == 4.0);
    }
}

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_above_goes_to_the_others),
        cmocka_unit_test(limits_hold_in_the_end),
        cmocka_unit_test(every_node_in_reach_changes_nothing),
    };
    return cmocka_run_group_tests(tests, make_arena, free_arena);
}
