/* test_places.c - which device a rank has: files of hosts, broken nodes, spare ones. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "assert_refused.h"
#include "scenario_builder.h"
#include "stepsim/cluster.h"

/* 32 devices in nodes of 8, leaves of 16, then everything. */
struct fixture {
    struct arena *arena;
    struct error_list *errors;
    struct scenario scenario;
    struct fault_spec faults[2];
    char path[32];
};

static void open_fixture(struct fixture *f, uint32_t outer)
{
    *f = (struct fixture){.arena = arena_create("test"), .scenario = builder_scenario()};
    f->errors = ARENA_NEW(f->arena, struct error_list);
    f->scenario.devices = 32;
    f->scenario.faults = f->faults;
    struct cluster_spec *spec = &f->scenario.cluster;
    spec->level_count = 3;
    spec->levels[2] = spec->levels[1];
    spec->levels[1].name = "leaf";
    spec->levels[1].size = 16;
    spec->levels[2].size = outer;
}

static const struct cluster *build(struct fixture *f, const char *hosts)
{
    error_list_init(f->errors, f->arena);
    f->scenario.parallel.hosts = NULL;
    if (hosts != NULL) {
        snprintf(f->path, sizeof f->path, "/tmp/stepsim-hosts-XXXXXX");
        FILE *file = fdopen(mkstemp(f->path), "w");
        assert_non_null(file);
        fputs(hosts, file);
        fclose(file);
        f->scenario.parallel.hosts = f->path;
    }
    const struct cluster *cluster = cluster_build(&f->scenario, f->arena, f->errors);
    if (hosts != NULL)
        unlink(f->path);
    assert_true((cluster == NULL) == (f->errors->count > 0));
    return cluster;
}

static void break_part(struct fixture *f, const char *part)
{
    f->faults[f->scenario.fault_count++] = (struct fault_spec){.part = part};
}

/* Nodes 2, 0, 3, 1: neighbours in rank are in different leaves. */
static void hosts_say_the_order(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f, 0);
    const struct cluster *cluster = build(&f, "node2\nnode0\nnode3\nnode1\n");
    assert_int_equal(cluster_device(cluster, 0), 16);
    assert_int_equal(cluster_device(cluster, 9), 1);
    assert_int_equal(cluster_device(cluster, 31), 15);
    assert_int_equal(cluster_level_of_pair(cluster, 0, 7), 0);
    assert_int_equal(cluster_level_of_pair(cluster, 0, 8), 2);
    assert_int_equal(cluster_level_of_pair(cluster, 0, 16), 1);
    const struct group_span span = cluster_group_span(cluster, 16, 1);
    assert_int_equal(span.outer_level, 2);
    assert_int_equal(span.per_domain[0], 8);
    assert_int_equal(span.per_domain[1], 8);
    const struct cluster_domains leaves = cluster_domains(cluster, 16, f.arena);
    assert_int_equal(leaves.count, 2);
    assert_int_equal(leaves.of[8], 0);
    assert_int_equal(leaves.of[0], 1);
    assert_int_equal(leaves.members[leaves.first[1]], 0); /* rank 0 is on device 16 */
    arena_destroy(f.arena);
}

/* In the order of the cables nothing is placed: that is where ranks are anyway. */
static void the_natural_order_is_none(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f, 0);
    assert_null(
        build(&f, "node0 slots=8\nnode1 slots=8\nnode2 slots=8\nnode3 slots=8\n")->device_of);
    arena_destroy(f.arena);
}

/* Four of eight on each of eight nodes: half of the groups' neighbours are one node further. */
static void slots_may_be_fewer(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f, 64);
    const struct cluster *cluster =
        build(&f, "node0 slots=4\nnode1 slots=4\nnode2 slots=4\nnode3 slots=4\n"
                  "node4 slots=4\nnode5 slots=4\nnode6 slots=4\nnode7 slots=4\n");
    assert_int_equal(cluster_device(cluster, 4), 8);
    assert_int_equal(cluster_device(cluster, 31), 59);
    const struct group_span span = cluster_group_span(cluster, 8, 1);
    assert_int_equal(span.outer_level, 1);
    assert_int_equal(span.per_domain[0], 4);
    assert_null(build(&f, "node0 slots=4\nnode1 slots=8\n"));
    assert_refused(f.errors, ERROR_out_of_range, "offer 12 slots");
    assert_null(build(&f, "node0 slots=9\n"));
    assert_refused(f.errors, ERROR_out_of_range, "a node has 8 devices");
    assert_null(build(&f, "node0\nnode1\nnode8\nnode3\n"));
    assert_refused(f.errors, ERROR_unknown_name, "no host node8; its 8 nodes are node0 to node7");
    assert_int_equal(f.errors->items[0].at.line, 3);
    assert_null(build(&f, "node0\nnode01\nworker3\n"));
    assert_int_equal(f.errors->count, 2);
    arena_destroy(f.arena);
}

static void spare_nodes_replace_broken_ones(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f, 48);
    break_part(&f, "node 1");
    const struct cluster *cluster = build(&f, NULL);
    assert_int_equal(cluster_device(cluster, 7), 7);
    assert_int_equal(cluster_device(cluster, 8), 16);
    assert_int_equal(cluster_device(cluster, 31), 39);
    assert_int_equal(cluster->level_count, 3);
    assert_int_equal(cluster->broken_count, 1);
    assert_int_equal(cluster->broken_nodes[0], 1);
    cluster = build(&f, "node1\nnode0\nnode2\nnode3\nnode4\n"); /* skipped in a file as well */
    assert_int_equal(cluster_device(cluster, 0), 0);
    assert_int_equal(cluster_device(cluster, 31), 39);
    assert_null(build(&f, "node1\nnode0\nnode2\nnode3\n"));
    assert_refused(f.errors, ERROR_out_of_range, "8 are on broken nodes");
    break_part(&f, "leaf 2"); /* nodes 4 and 5 */
    assert_null(build(&f, NULL));
    assert_refused(f.errors, ERROR_no_spare_node, "24 of the 32");
    arena_destroy(f.arena);
}

/* tp 8, batch 64 in microbatches of 1: 24 devices are 3 replicas, which 64 does not divide by; 2
 * are. */
static void the_nearest_legal_world_is_named(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f, 0);
    f.scenario.parallel.tp = 8;
    break_part(&f, "node 3");
    assert_null(build(&f, NULL));
    assert_refused(f.errors, ERROR_no_spare_node, "devices: 16 would run");
    assert_refused(f.errors, ERROR_no_spare_node, "cluster.levels.cluster.size: 48");
    arena_destroy(f.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts_say_the_order),
        cmocka_unit_test(the_natural_order_is_none),
        cmocka_unit_test(slots_may_be_fewer),
        cmocka_unit_test(spare_nodes_replace_broken_ones),
        cmocka_unit_test(the_nearest_legal_world_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
