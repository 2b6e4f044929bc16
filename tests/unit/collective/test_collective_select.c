/* test_collective_select.c - the choices that the libraries' sources and guides document. */
#include "stepsim/collective.h"

#include <string.h>

#include "assert_close.h"
#include "device_builder.h"

#define KIB 1024.0

static const char *choice(const struct cluster *cluster, enum collective_kind kind, double bytes,
                          struct group_span span)
{
    static char text[64];
    const struct collective_ask ask = {.kind = kind,
                                       .bytes = bytes,
                                       .token_bytes = bytes,
                                       .copies = 1.0,
                                       .imbalance = 1.0,
                                       .span = span,
                                       .cluster = cluster};
    const struct collective_cost cost = collective_cost(&ask, false);
    collective_algorithm_text(&cost, text, sizeof(text));
    return text;
}

/* An A2 cluster with latencies: one shot pays where a second step costs more than its bytes. */
static const struct cluster *a2(struct cluster_builder *builder)
{
    const struct cluster *cluster = cluster_mesh_nodes(builder, 512);
    builder->spec.levels[1].latency_s = 60e-6;
    return cluster;
}

static void a2_takes_the_mesh_in_a_server(void **state)
{
    (void)state;
    struct cluster_builder builder;
    const struct cluster *cluster = a2(&builder);
    const struct group_span server = cluster_group_span(cluster, 8, 1);
    assert_string_equal(choice(cluster, COLLECTIVE_ALL_GATHER, 64 * MIB_BYTES, server), "mesh");
    assert_string_equal(choice(cluster, COLLECTIVE_ALL_REDUCE, 64 * MIB_BYTES, server), "mesh");
    assert_string_equal(choice(cluster, COLLECTIVE_ALL_TO_ALL, 64 * MIB_BYTES, server), "mesh");
}

/* RS and AG: 32 KiB per rank; AR: 1 MiB per rank; 16 ranks in two servers. */
static void a2_pipelines_large_slices_over_servers(void **state)
{
    (void)state;
    struct cluster_builder builder;
    const struct cluster *cluster = a2(&builder);
    const struct group_span two = cluster_group_span(cluster, 16, 1);
    assert_string_equal(choice(cluster, COLLECTIVE_ALL_GATHER, 16 * 32 * KIB, two), "pipeline");
    assert_string_equal(choice(cluster, COLLECTIVE_ALL_GATHER, 16 * 32 * KIB - 1, two),
                        "mesh+ring");
    assert_string_equal(choice(cluster, COLLECTIVE_REDUCE_SCATTER, 16 * 32 * KIB, two), "pipeline");
    assert_string_equal(choice(cluster, COLLECTIVE_ALL_REDUCE, 16 * MIB_BYTES, two), "pipeline");
    assert_string_equal(choice(cluster, COLLECTIVE_ALL_REDUCE, 16 * MIB_BYTES - 1, two),
                        "mesh+ring");
}

/*
 * One rank per server. Ring (p-1) 60 us, NHR ceil(log2 p) 60 us, halving-doubling log2 p 60 us at
 * the same volume when p is a power of two and more bytes when not; ties prefer ring, then NHR.
 */
static void a2_takes_the_cheapest_over_servers(void **state)
{
    (void)state;
    struct cluster_builder builder;
    const struct cluster *cluster = a2(&builder);
    const enum collective_kind gather = COLLECTIVE_ALL_GATHER;
    assert_string_equal(choice(cluster, gather, 1e9, cluster_group_span(cluster, 2, 8)), "ring");
    assert_string_equal(choice(cluster, gather, 1e9, cluster_group_span(cluster, 3, 8)), "ring");
    assert_string_equal(choice(cluster, gather, 1e9, cluster_group_span(cluster, 4, 8)), "nhr");
    assert_string_equal(choice(cluster, gather, 1e3, cluster_group_span(cluster, 6, 8)), "nhr");
    assert_string_equal(choice(cluster, gather, 1e9, cluster_group_span(cluster, 64, 8)), "nhr");
}

static void a2_stages_exchanges_over_servers(void **state)
{
    (void)state;
    struct cluster_builder builder;
    const struct cluster *cluster = a2(&builder);
    const enum collective_kind exchange = COLLECTIVE_ALL_TO_ALL;
    assert_string_equal(choice(cluster, exchange, 1e8, cluster_group_span(cluster, 32, 1)),
                        "staged");
    assert_string_equal(choice(cluster, exchange, 1e8, cluster_group_span(cluster, 4, 8)),
                        "pairwise");
    assert_string_equal(choice(cluster, COLLECTIVE_ALL_TO_ALL_HIERARCHICAL, 1e8,
                               cluster_group_span(cluster, 32, 1)),
                        "hierarchical");
    assert_string_equal(
        choice(cluster, COLLECTIVE_ALL_TO_ALL_HIERARCHICAL, 1e8, cluster_group_span(cluster, 8, 1)),
        "mesh");
}

/* Packages of 2, nodes of 16, supernodes of 768 dies. */
static const struct cluster *a3(struct cluster_builder *builder, uint32_t devices)
{
    cluster_builder_start(builder, "hccl_a3", 16);
    cluster_builder_level(builder, 2, TOPOLOGY_MESH, 200e9);
    cluster_builder_level(builder, 16, TOPOLOGY_SWITCH, 160e9);
    cluster_builder_level(builder, 768, TOPOLOGY_SWITCH, 160e9);
    cluster_builder_level(builder, 0, TOPOLOGY_SWITCH, 20e9);
    return cluster_builder_finish(builder, devices);
}

static void a3_rings_in_the_node_and_nhr_in_the_supernode(void **state)
{
    (void)state;
    struct cluster_builder builder;
    const struct cluster *cluster = a3(&builder, 7680);
    const struct group_span node = cluster_group_span(cluster, 8, 1);
    assert_string_equal(choice(cluster, COLLECTIVE_ALL_REDUCE, MIB_BYTES, node), "mesh");
    assert_string_equal(choice(cluster, COLLECTIVE_ALL_REDUCE, MIB_BYTES + 1, node), "double_ring");
    assert_string_equal(choice(cluster, COLLECTIVE_ALL_GATHER, 8 * 2 * MIB_BYTES, node), "mesh");
    assert_string_equal(choice(cluster, COLLECTIVE_ALL_GATHER, 8 * 2 * MIB_BYTES + 1, node),
                        "double_ring");
    const struct group_span nodes = cluster_group_span(cluster, 64, 1);
    assert_string_equal(choice(cluster, COLLECTIVE_ALL_REDUCE, 256 * KIB, nodes), "nhr");
    assert_string_equal(choice(cluster, COLLECTIVE_ALL_REDUCE, 256 * KIB + 1, nodes),
                        "double_ring+nhr");
    assert_string_equal(choice(cluster, COLLECTIVE_ALL_GATHER, 1e9, nodes), "double_ring+nhr");
    assert_string_equal(choice(cluster, COLLECTIVE_ALL_TO_ALL, 1e9, nodes), "mesh");
}

/* Ring below eight supernodes unless a power of two, else halving-doubling. */
static void a3_between_supernodes(void **state)
{
    (void)state;
    struct cluster_builder builder;
    const struct cluster *cluster = a3(&builder, 7680);
    const enum collective_kind gather = COLLECTIVE_ALL_GATHER;
    assert_string_equal(choice(cluster, gather, 1e9, cluster_group_span(cluster, 3, 768)), "ring");
    assert_string_equal(choice(cluster, gather, 1e9, cluster_group_span(cluster, 4, 768)),
                        "halving_doubling");
    assert_string_equal(choice(cluster, gather, 1e9, cluster_group_span(cluster, 10, 768)),
                        "halving_doubling");
    assert_string_equal(
        choice(cluster, COLLECTIVE_ALL_TO_ALL, 1e9, cluster_group_span(cluster, 3, 768)), "staged");
}

static void nccl_takes_the_tree_for_small_and_the_ring_for_large(void **state)
{
    (void)state;
    struct cluster_builder builder;
    cluster_builder_start(&builder, "nccl", 8);
    cluster_builder_level(&builder, 8, TOPOLOGY_SWITCH, 400e9)->latency_s = 1e-6;
    cluster_builder_level(&builder, 0, TOPOLOGY_SWITCH, 50e9)->latency_s = 5e-6;
    const struct cluster *cluster = cluster_builder_finish(&builder, 128);
    const struct group_span all = cluster_group_span(cluster, 128, 1);
    assert_string_equal(choice(cluster, COLLECTIVE_ALL_REDUCE, 64 * KIB, all), "tree");
    assert_string_equal(choice(cluster, COLLECTIVE_ALL_REDUCE, 1e9, all), "ring");
    assert_string_equal(choice(cluster, COLLECTIVE_ALL_GATHER, 64 * KIB, all), "ring");
    assert_string_equal(choice(cluster, COLLECTIVE_ALL_TO_ALL, 64 * KIB, all), "mesh");
}

static void forced_algorithms_are_taken_where_they_can(void **state)
{
    (void)state;
    struct cluster_builder builder;
    const struct cluster *cluster = a2(&builder);
    struct collective_ask ask = {.kind = COLLECTIVE_ALL_REDUCE,
                                 .bytes = 1e9,
                                 .imbalance = 1.0,
                                 .span = cluster_group_span(cluster, 64, 1),
                                 .cluster = cluster,
                                 .algorithm_intra = "ring",
                                 .algorithm_inter = "halving_doubling"};
    char text[64];
    struct collective_cost cost = collective_cost(&ask, false);
    collective_algorithm_text(&cost, text, sizeof(text));
    assert_string_equal(text, "ring+halving_doubling");
    /* Neither can exchange: the rules decide. */
    ask.kind = COLLECTIVE_ALL_TO_ALL;
    cost = collective_cost(&ask, false);
    collective_algorithm_text(&cost, text, sizeof(text));
    assert_string_equal(text, "staged");
    ask.algorithm_inter = "pairwise";
    cost = collective_cost(&ask, false);
    collective_algorithm_text(&cost, text, sizeof(text));
    assert_string_equal(text, "pairwise");
    assert_null(collective_find("no_such_algorithm"));
    assert_null(collective_find("auto"));
}

static void rule_sets_are_listed(void **state)
{
    (void)state;
    size_t count = 0;
    while (collective_rules_names[count])
        count++;
    assert_true(count >= 3);
    for (size_t i = 1; i < count; i++)
        assert_true(strcmp(collective_rules_names[i - 1], collective_rules_names[i]) < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a2_takes_the_mesh_in_a_server),
        cmocka_unit_test(a2_pipelines_large_slices_over_servers),
        cmocka_unit_test(a2_takes_the_cheapest_over_servers),
        cmocka_unit_test(a2_stages_exchanges_over_servers),
        cmocka_unit_test(a3_rings_in_the_node_and_nhr_in_the_supernode),
        cmocka_unit_test(a3_between_supernodes),
        cmocka_unit_test(nccl_takes_the_tree_for_small_and_the_ring_for_large),
        cmocka_unit_test(forced_algorithms_are_taken_where_they_can),
        cmocka_unit_test(rule_sets_are_listed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
