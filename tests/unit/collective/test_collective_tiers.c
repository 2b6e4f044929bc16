/* test_collective_tiers.c - which links a group reaches, seen through the time of large messages on
 * clusters without latency. */
#include "stepsim/collective.h"

#include "assert_close.h"
#include "device_builder.h"

#define TINY 1e-12

static double time_s(const struct cluster *cluster, enum collective_kind kind, double bytes,
                     struct group_span span)
{
    const struct collective_ask ask = {
        .kind = kind, .bytes = bytes, .imbalance = 1.0, .span = span, .cluster = cluster};
    return collective_cost(&ask, false).time_s;
}

/* 70 GB/s are seven links of 10. Two ranks share one link, four have three each; all-gather of 8 GB
 * moves 8 (p-1)/p GB. */
static void a_part_of_a_mesh_reaches_its_own_links(void **state)
{
    (void)state;
    struct cluster_builder builder;
    const struct cluster *cluster = cluster_mesh_nodes(&builder, 8);
    const enum collective_kind gather = COLLECTIVE_ALL_GATHER;
    assert_close(time_s(cluster, gather, 8e9, cluster_group_span(cluster, 2, 1)), 4.0 / 10, TINY);
    assert_close(time_s(cluster, gather, 8e9, cluster_group_span(cluster, 4, 2)), 6.0 / 30, TINY);
    assert_close(time_s(cluster, gather, 8e9, cluster_group_span(cluster, 8, 1)), 7.0 / 70, TINY);
}

/* A job on four devices of a node of eight has the links of four. */
static void a_world_smaller_than_the_node_keeps_the_nodes_links(void **state)
{
    (void)state;
    struct cluster_builder builder;
    const struct cluster *cluster = cluster_mesh_nodes(&builder, 4);
    assert_close(time_s(cluster, COLLECTIVE_ALL_GATHER, 8e9, cluster_group_span(cluster, 4, 1)),
                 6.0 / 30, TINY);
}

static void a_message_in_a_mesh_has_one_link(void **state)
{
    (void)state;
    struct cluster_builder builder;
    const struct cluster *cluster = cluster_mesh_nodes(&builder, 16);
    assert_close(time_s(cluster, COLLECTIVE_SEND_RECV, 1e9, cluster_group_span(cluster, 2, 1)),
                 1.0 / 10, TINY);
    /* Behind a switch it has all of the device's bandwidth. */
    builder.spec.levels[0].topology = TOPOLOGY_SWITCH;
    assert_close(time_s(cluster, COLLECTIVE_SEND_RECV, 1e9, cluster_group_span(cluster, 2, 1)),
                 1.0 / 70, TINY);
}

/* Eight ranks in each of two nodes: each sends 1/16 of 16 GB to its partner over its own port. One
 * rank in each: all 16 GB pass one port. */
static void a_group_uses_every_port_that_it_owns(void **state)
{
    (void)state;
    struct cluster_builder builder;
    const struct cluster *cluster = cluster_mesh_nodes(&builder, 16);
    struct collective_ask ask = {.kind = COLLECTIVE_ALL_GATHER,
                                 .bytes = 16e9,
                                 .span = cluster_group_span(cluster, 16, 1),
                                 .cluster = cluster};
    const struct collective_cost wide = collective_cost(&ask, false);
    assert_close(wide.sent_bytes[1], 1e9, TINY);
    ask.span = cluster_group_span(cluster, 2, 8);
    const struct collective_cost narrow = collective_cost(&ask, false);
    assert_close(narrow.sent_bytes[1], 8e9, TINY);
    assert_close(narrow.time_s, 0.8, TINY);
    assert_true(wide.time_s < narrow.time_s / 2.0);
}

/* Four ports for eight devices (trap 3 of the peers: integer division made this 0 or infinite): if
 * all eight send, each has half a port; a group that is alone on its port has a whole one. */
static void fewer_ports_than_devices_are_shared(void **state)
{
    (void)state;
    struct cluster_builder builder;
    const struct cluster *cluster = cluster_mesh_nodes(&builder, 64);
    builder.spec.levels[1].nics = 4;
    struct group_span span = cluster_group_span(cluster, 8, 8);
    assert_int_equal(span.groups_per_node, 8);
    assert_close(time_s(cluster, COLLECTIVE_ALL_GATHER, 8e9, span), 7.0 / 5, TINY);
    span.groups_per_node = 2;
    assert_close(time_s(cluster, COLLECTIVE_ALL_GATHER, 8e9, span), 7.0 / 10, TINY);
    builder.spec.levels[1].nics = 1;
    assert_close(time_s(cluster, COLLECTIVE_ALL_GATHER, 8e9, span), 7.0 / 5, TINY);
    builder.spec.levels[1].nics = 3;
    span.groups_per_node = 8;
    assert_close(time_s(cluster, COLLECTIVE_ALL_GATHER, 8e9, span), 7.0 / 10 * 8 / 3, TINY);
}

static void oversubscription_divides_the_rate(void **state)
{
    (void)state;
    struct cluster_builder builder;
    const struct cluster *cluster = cluster_mesh_nodes(&builder, 64);
    builder.spec.levels[1].oversubscription = 2.0;
    assert_close(time_s(cluster, COLLECTIVE_ALL_GATHER, 8e9, cluster_group_span(cluster, 8, 8)),
                 2.0 * 7.0 / 10, TINY);
}

/* Efficiencies are separate: 0.5 for gathers, 0.25 for exchanges. */
static void exchanges_have_their_own_efficiency(void **state)
{
    (void)state;
    struct cluster_builder builder;
    const struct cluster *cluster = cluster_mesh_nodes(&builder, 8);
    builder.spec.levels[0].efficiency = 0.5;
    builder.spec.levels[0].alltoall_efficiency = 0.25;
    const struct group_span span = cluster_group_span(cluster, 8, 1);
    assert_close(time_s(cluster, COLLECTIVE_ALL_GATHER, 8e9, span), 7.0 / 35, TINY);
    assert_close(time_s(cluster, COLLECTIVE_ALL_TO_ALL, 8e9, span), 7.0 / 17.5, TINY);
}

/* Eight devices on a ring with two links of 10 GB/s: a block to each of the seven others passes
 * 1+2+3+4+3+2+1 = 16 links. 1 GB blocks: 16 GB per rank over 20 GB/s. */
static void an_exchange_on_a_ring_pays_its_hops(void **state)
{
    (void)state;
    struct cluster_builder builder;
    cluster_builder_start(&builder, "nccl", 8);
    cluster_builder_level(&builder, 8, TOPOLOGY_RING, 20e9);
    const struct cluster *cluster = cluster_builder_finish(&builder, 8);
    const struct group_span span = cluster_group_span(cluster, 8, 1);
    assert_close(time_s(cluster, COLLECTIVE_ALL_TO_ALL, 8e9, span), 16.0 / 20, TINY);
    /* A ring algorithm goes one way round: one link. */
    assert_close(time_s(cluster, COLLECTIVE_ALL_GATHER, 8e9, span), 7.0 / 10, TINY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_part_of_a_mesh_reaches_its_own_links),
        cmocka_unit_test(a_world_smaller_than_the_node_keeps_the_nodes_links),
        cmocka_unit_test(a_message_in_a_mesh_has_one_link),
        cmocka_unit_test(a_group_uses_every_port_that_it_owns),
        cmocka_unit_test(fewer_ports_than_devices_are_shared),
        cmocka_unit_test(oversubscription_divides_the_rate),
        cmocka_unit_test(exchanges_have_their_own_efficiency),
        cmocka_unit_test(an_exchange_on_a_ring_pays_its_hops),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
