/* test_faults.c - names of broken and slow parts, and what they take away. */
#include "assert_refused.h"
#include "scenario_builder.h"
#include "stepsim/cluster.h"

/* 64 devices in nodes of 8, leaves of 32 with 2 planes, 4 spines, one link outside the node. */
struct fixture {
    struct arena *arena;
    struct error_list *errors;
    struct scenario scenario;
    struct fault_spec faults[4];
};

static void open_fixture(struct fixture *f)
{
    *f = (struct fixture){.arena = arena_create("test"), .scenario = builder_scenario()};
    f->errors = ARENA_NEW(f->arena, struct error_list);
    f->scenario.devices = 64;
    f->scenario.faults = f->faults;
    struct cluster_spec *spec = &f->scenario.cluster;
    spec->level_count = 3;
    spec->levels[2] = spec->levels[1];
    spec->levels[1].name = "leaf";
    spec->levels[1].size = 32;
    spec->levels[1].switches = 2;
    spec->levels[2].name = "spine";
    spec->levels[2].size = 0;
    spec->levels[2].switches = 4;
}

static const struct cluster *build(struct fixture *f)
{
    error_list_init(f->errors, f->arena);
    const struct cluster *cluster = cluster_build(&f->scenario, f->arena, f->errors);
    assert_true((cluster == NULL) == (f->errors->count > 0));
    return cluster;
}

static const struct cluster *with_fault(struct fixture *f, const char *part, double speed)
{
    f->faults[0] = (struct fault_spec){.part = part, .speed = speed};
    f->scenario.fault_count = 1;
    return build(f);
}

static void assert_left(const struct cluster *cluster, enum fault_kind kind, uint32_t level,
                        const double left[8])
{
    for (uint32_t node = 0; node < 8; node++)
        assert_close(cluster_speed(cluster, kind, level, node * 8 + 5), left[node], 1e-12);
}

static void parts_take_their_share(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f);
    const struct cluster *cluster = with_fault(&f, "spine 2", 0.0);
    assert_left(cluster, FAULT_LINKS, 2, (double[]){.75, .75, .75, .75, .75, .75, .75, .75});
    assert_left(cluster, FAULT_LINKS, 1, (double[]){1, 1, 1, 1, 1, 1, 1, 1});
    /* Leaf switches 0 and 1 are of the first leaf, 2 and 3 of the second. */
    cluster = with_fault(&f, "leaf 2", 0.5);
    assert_left(cluster, FAULT_LINKS, 1, (double[]){1, 1, 1, 1, .75, .75, .75, .75});
    cluster = with_fault(&f, "uplinks of leaf 1", 0.25);
    assert_left(cluster, FAULT_LINKS, 2, (double[]){1, 1, 1, 1, .25, .25, .25, .25});
    cluster = with_fault(&f, "nic 5 of node 3", 0.0);
    assert_left(cluster, FAULT_NODE_LINKS, 1, (double[]){1, 1, 1, .875, 1, 1, 1, 1});
    cluster = with_fault(&f, "uplinks of node 3", 0.5);
    assert_left(cluster, FAULT_NODE_LINKS, 1, (double[]){1, 1, 1, .5, 1, 1, 1, 1});
    cluster = with_fault(&f, "nic 5 of node 3", 0.5);
    assert_left(cluster, FAULT_NODE_LINKS, 1, (double[]){1, 1, 1, 1, 1, 1, 1, 1});
    assert_left(cluster, FAULT_OWN_LINKS, 1, (double[]){1, 1, 1, .5, 1, 1, 1, 1});
    assert_close(cluster_speed(cluster, FAULT_OWN_LINKS, 1, 3 * 8 + 4), 1.0, 1e-12);
    cluster = with_fault(&f, "node 7", 0.8);
    assert_left(cluster, FAULT_COMPUTE, 0, (double[]){1, 1, 1, 1, 1, 1, 1, .8});
    arena_destroy(f.arena);
}

/* Four ports for eight devices: one of them is a quarter of what the node has, slow or not. */
static void shared_ports_are_larger_shares(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f);
    f.scenario.cluster.levels[1].nics = 4;
    const struct cluster *cluster = with_fault(&f, "nic 3 of node 1", 0.0);
    assert_left(cluster, FAULT_NODE_LINKS, 1, (double[]){1, .75, 1, 1, 1, 1, 1, 1});
    cluster = with_fault(&f, "nic 3 of node 1", 0.5);
    assert_left(cluster, FAULT_NODE_LINKS, 1, (double[]){1, .875, 1, 1, 1, 1, 1, 1});
    assert_null(with_fault(&f, "nic 4 of node 1", 0.5));
    assert_refused(f.errors, ERROR_out_of_range, "nic 0 to 3");
    arena_destroy(f.arena);
}

static void what_is_not_there_is_refused(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f);
    static const struct {
        const char *part;
        enum error_code code;
        const char *message;
    } cases[] = {
        {"node 8", ERROR_out_of_range, "node 0 to 7"},
        {"leaf 4", ERROR_out_of_range, "leaf 0 to 3"},
        {"spine 4", ERROR_out_of_range, "spine 0 to 3"},
        {"nic 8 of node 0", ERROR_out_of_range, "nic 0 to 7"},
        {"uplinks of leaf 2", ERROR_out_of_range, "leaf 0 to 1"},
        {"uplinks of spine 0", ERROR_unknown_name, "outermost"},
        {"rack 1", ERROR_unknown_name, "leaf N, spine N"},
        {"node", ERROR_unknown_name, "parts are: node N"},
        {"node -1", ERROR_unknown_name, "parts are"},
        {"node 1234567890", ERROR_unknown_name, "parts are"},
        {"nic 5 of node 3 at night", ERROR_unknown_name, "parts are"},
        {"", ERROR_unknown_name, "parts are"},
        {"uplinks of node 3", ERROR_conflicting_keys, "`node 3`"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_null(with_fault(&f, cases[i].part, 0.0));
        assert_refused(f.errors, cases[i].code, cases[i].message);
        assert_int_equal(f.errors->count, 1);
    }
    f.scenario.cluster.levels[2].switches = 1;
    assert_null(with_fault(&f, "spine 0", 0.0));
    assert_refused(f.errors, ERROR_conflicting_keys, "cluster.levels.spine.switches");
    arena_destroy(f.arena);
}

static void a_part_is_listed_once(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f);
    f.faults[0] = f.faults[1] = (struct fault_spec){.part = "spine 2"};
    f.scenario.fault_count = 2;
    assert_null(build(&f));
    assert_refused(f.errors, ERROR_conflicting_keys, "listed twice");
    for (uint32_t i = 0; i < 4; i++)
        f.faults[i] = (struct fault_spec){.part = arena_printf(f.arena, "spine %u", i)};
    f.scenario.fault_count = 4;
    assert_null(build(&f));
    assert_refused(f.errors, ERROR_conflicting_keys, "nothing is left of level spine");
    arena_destroy(f.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_take_their_share),
        cmocka_unit_test(shared_ports_are_larger_shares),
        cmocka_unit_test(what_is_not_there_is_refused),
        cmocka_unit_test(a_part_is_listed_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
