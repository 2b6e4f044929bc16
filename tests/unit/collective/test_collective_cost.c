/* test_collective_cost.c - volumes per level, sums over levels, terms and guards. */
#include "stepsim/collective.h"

#include <string.h>

#include "assert_close.h"
#include "device_builder.h"

#define TINY 1e-12

static void a_group_of_one_costs_nothing(void **state)
{
    (void)state;
    struct cluster_builder builder;
    const struct cluster *cluster = cluster_mesh_nodes(&builder, 64);
    builder.spec.levels[0].launch_s = builder.spec.levels[0].latency_s = 1.0;
    for (int kind = 0; kind < COLLECTIVE_KIND_COUNT; kind++) {
        const struct collective_ask ask = {.kind = (enum collective_kind)kind,
                                           .bytes = 1e9,
                                           .token_bytes = 1e9,
                                           .copies = 1.0,
                                           .imbalance = 1.0,
                                           .span = cluster_group_span(cluster, 1, 1),
                                           .cluster = cluster};
        const struct collective_cost cost = collective_cost(&ask, true);
        assert_close(cost.time_s, 0.0, 0.0);
        assert_close(cost.sent_bytes[0] + cost.sent_bytes[1], 0.0, 0.0);
        assert_string_equal(cost.algorithm, "none");
    }
}

/*
 * One dispatch of Pangu Ultra MoE on an A2 cluster, by hand: 2048 tokens of 7680 bf16 per rank,
 * B = 31,457,280 bytes, 8 copies, 32 ranks in 4 nodes.
 *   flat          outside 8 B 24/32 = 188.7 MB, inside 8 B 7/32 = 55.1 MB
 *   hierarchical  outside 3 B = 94.4 MB,        inside 8 B 7/8 = 220.2 MB
 */
static void pangu_dispatch_volumes(void **state)
{
    (void)state;
    struct cluster_builder builder;
    const struct cluster *cluster = cluster_mesh_nodes(&builder, 64);
    const double token_bytes = 2048.0 * 7680 * 2;
    struct collective_ask ask = {.kind = COLLECTIVE_ALL_TO_ALL,
                                 .bytes = 8 * token_bytes,
                                 .token_bytes = token_bytes,
                                 .copies = 8.0,
                                 .imbalance = 1.0,
                                 .span = cluster_group_span(cluster, 32, 1),
                                 .cluster = cluster,
                                 .algorithm_inter = "pairwise"};
    struct collective_cost cost = collective_cost(&ask, false);
    assert_close(cost.sent_bytes[1], 188743680.0, TINY);
    assert_close(cost.sent_bytes[0], 55050240.0, TINY);
    /* At once instead of pairwise: the same volumes, and 18.9 ms at 10 GB/s hide the inside. */
    ask.algorithm_inter = "mesh";
    cost = collective_cost(&ask, false);
    assert_close(cost.sent_bytes[1], 188743680.0, TINY);
    assert_close(cost.sent_bytes[0], 55050240.0, TINY);
    assert_close(cost.time_s, 188743680.0 / 10e9, TINY);

    ask.algorithm_inter = "auto";
    ask.kind = COLLECTIVE_ALL_TO_ALL_HIERARCHICAL;
    cost = collective_cost(&ask, false);
    assert_close(cost.sent_bytes[1], 94371840.0, TINY);
    assert_close(cost.sent_bytes[0], 220200960.0, TINY);
    assert_close(cost.time_s, 94371840.0 / 10e9 + 220200960.0 / 70e9, TINY);
}

/* The two hops pay where the network is much slower than the mesh, not on equal links: with links
 * of 70 GB/s outside the flat exchange wins. */
static void two_hops_pay_only_on_slow_networks(void **state)
{
    (void)state;
    struct cluster_builder builder;
    const struct cluster *cluster = cluster_mesh_nodes(&builder, 64);
    struct collective_ask ask = {.bytes = 8e8,
                                 .token_bytes = 1e8,
                                 .copies = 8.0,
                                 .imbalance = 1.0,
                                 .span = cluster_group_span(cluster, 32, 1),
                                 .cluster = cluster,
                                 .algorithm_inter = "mesh"};
    for (int fast = 0; fast < 2; fast++) {
        builder.spec.levels[1].bytes_per_s = fast ? 70e9 : 10e9;
        ask.kind = COLLECTIVE_ALL_TO_ALL;
        const double flat_s = collective_cost(&ask, false).time_s;
        ask.kind = COLLECTIVE_ALL_TO_ALL_HIERARCHICAL;
        const double two_hop_s = collective_cost(&ask, false).time_s;
        assert_true(fast ? two_hop_s > flat_s : two_hop_s < flat_s);
    }
}

/* Public case T07: 48 layers, top 4, hidden 6144, bf16: dispatch and combine of one token send
 * 2 * 48 * 4 * 6144 * 2 (EP-1)/EP bytes, 3.94 MiB at EP8 and 4.22 at EP16, of which 2.25 MiB
 * cross the border of two nodes. */
static void expert_traffic_per_token(void **state)
{
    (void)state;
    struct cluster_builder builder;
    const struct cluster *cluster = cluster_mesh_nodes(&builder, 16);
    struct collective_ask ask = {.kind = COLLECTIVE_ALL_TO_ALL,
                                 .bytes = 2.0 * 48 * 4 * 6144 * 2,
                                 .imbalance = 1.0,
                                 .span = cluster_group_span(cluster, 8, 1),
                                 .cluster = cluster,
                                 .algorithm_inter = "pairwise"};
    struct collective_cost cost = collective_cost(&ask, false);
    assert_close(cost.sent_bytes[0] / MIB_BYTES, 3.94, 0.005);
    ask.span = cluster_group_span(cluster, 16, 1);
    cost = collective_cost(&ask, false);
    assert_close((cost.sent_bytes[0] + cost.sent_bytes[1]) / MIB_BYTES, 4.22, 0.005);
    assert_close(cost.sent_bytes[1] / MIB_BYTES, 2.25, TINY);
}

/* The hottest rank has 1.5 times the mean: 1.5 times the time, the same mean bytes. */
static void the_hottest_rank_sets_the_time_of_an_exchange(void **state)
{
    (void)state;
    struct cluster_builder builder;
    const struct cluster *cluster = cluster_mesh_nodes(&builder, 64);
    struct collective_ask ask = {.kind = COLLECTIVE_ALL_TO_ALL,
                                 .bytes = 1e9,
                                 .token_bytes = 1e9 / 8,
                                 .copies = 8.0,
                                 .imbalance = 1.0,
                                 .span = cluster_group_span(cluster, 32, 1),
                                 .cluster = cluster};
    const char *const algorithms[] = {"auto", "mesh", "pairwise", "pipeline"};
    for (size_t i = 0; i < sizeof(algorithms) / sizeof(algorithms[0]); i++) {
        ask.algorithm_inter = algorithms[i];
        ask.imbalance = 1.0;
        const struct collective_cost even = collective_cost(&ask, false);
        ask.imbalance = 1.5;
        const struct collective_cost uneven = collective_cost(&ask, false);
        assert_close(uneven.time_s, 1.5 * even.time_s, TINY);
        assert_close(uneven.sent_bytes[0], even.sent_bytes[0], TINY);
        assert_close(uneven.sent_bytes[1], even.sent_bytes[1], TINY);
    }
}

/*
 * All-reduce of n over 4 servers of 8 tier by tier: reduce-scatter n 7/8 and all-gather n 7/8 on
 * the mesh, all-reduce of n/8 outside. 1 GB: 0.875/70 twice, 2 * 0.125 * 3/4 / 10.
 */
static void an_all_reduce_goes_in_across_and_out(void **state)
{
    (void)state;
    struct cluster_builder builder;
    const struct cluster *cluster = cluster_mesh_nodes(&builder, 32);
    const struct collective_ask ask = {.kind = COLLECTIVE_ALL_REDUCE,
                                       .bytes = 1e9,
                                       .span = cluster_group_span(cluster, 32, 1),
                                       .cluster = cluster,
                                       .algorithm_inter = "ring"};
    const struct collective_cost cost = collective_cost(&ask, false);
    assert_close(cost.sent_bytes[0], 1.75e9, TINY);
    assert_close(cost.sent_bytes[1], 0.1875e9, TINY);
    assert_close(cost.time_s, 1.75 / 70 + 0.1875 / 10, TINY);
}

/* HCCL on A2 gathers inside first, so whole server blocks cross the network: n 3/4 of an
 * all-gather over four servers; on A3 it gathers outside first, and shards cross: n/8 3/4. */
static void a2_moves_whole_blocks_and_a3_shards(void **state)
{
    (void)state;
    struct cluster_builder builder;
    const struct cluster *cluster = cluster_mesh_nodes(&builder, 32);
    struct collective_ask ask = {.kind = COLLECTIVE_ALL_GATHER,
                                 .bytes = 1e9,
                                 .span = cluster_group_span(cluster, 32, 1),
                                 .cluster = cluster,
                                 .algorithm_inter = "ring"};
    struct collective_cost cost = collective_cost(&ask, false);
    assert_close(cost.sent_bytes[1], 0.75e9, TINY);
    assert_close(cost.sent_bytes[0], 0.25e9 * 7 / 8, TINY);
    builder.spec.collectives = "hccl_a3";
    cost = collective_cost(&ask, false);
    assert_close(cost.sent_bytes[1], 0.125e9 * 3 / 4, TINY);
    assert_close(cost.sent_bytes[0], 1e9 * 7 / 8, TINY);
}

/* 16 GPUs in two nodes: the ring passes n 15/16; a node has eight ports of 10 GB/s, 80 GB/s for a
 * ring over rails, more than the 70 inside. With two ports it has 20. */
static void a_nccl_ring_runs_over_rails(void **state)
{
    (void)state;
    struct cluster_builder builder;
    const struct cluster *cluster = cluster_mesh_nodes(&builder, 16);
    builder.spec.collectives = "nccl";
    builder.spec.levels[0].topology = TOPOLOGY_SWITCH;
    const struct collective_ask ask = {.kind = COLLECTIVE_ALL_GATHER,
                                       .bytes = 16e9,
                                       .span = cluster_group_span(cluster, 16, 1),
                                       .cluster = cluster};
    assert_close(collective_cost(&ask, false).time_s, 15.0 / 70, TINY);
    builder.spec.levels[1].nics = 2;
    const struct collective_cost cost = collective_cost(&ask, false);
    assert_close(cost.time_s, 15.0 / 20, TINY);
    assert_close(cost.sent_bytes[0], 14e9, TINY);
    assert_close(cost.sent_bytes[1], 1e9, TINY);
}

/* Launches: once per collective, the longest of its levels; twice for the two operations of the
 * hierarchical exchange. */
static void launches_are_paid_per_operation(void **state)
{
    (void)state;
    struct cluster_builder builder;
    const struct cluster *cluster = cluster_mesh_nodes(&builder, 32);
    builder.spec.levels[0].launch_s = 15e-6;
    builder.spec.levels[1].launch_s = 7e-6;
    struct collective_ask ask = {.kind = COLLECTIVE_ALL_REDUCE,
                                 .imbalance = 1.0,
                                 .span = cluster_group_span(cluster, 32, 1),
                                 .cluster = cluster};
    assert_close(collective_cost(&ask, false).time_s, 15e-6, TINY);
    ask.kind = COLLECTIVE_ALL_TO_ALL_HIERARCHICAL;
    assert_close(collective_cost(&ask, false).time_s, 22e-6, TINY);
    ask.span = cluster_group_span(cluster, 4, 8);
    assert_close(collective_cost(&ask, false).time_s, 7e-6, TINY);
}

/* A buffer of 200 MB: 1 GB goes round five times on the mesh of A2, once with NCCL, which streams.
 */
static void hccl_chops_and_nccl_streams(void **state)
{
    (void)state;
    struct cluster_builder builder;
    cluster_builder_start(&builder, "hccl_a3", 8);
    cluster_builder_level(&builder, 8, TOPOLOGY_SWITCH, 100e9)->latency_s = 10e-6;
    const struct cluster *cluster = cluster_builder_finish(&builder, 8);
    const struct collective_ask ask = {.kind = COLLECTIVE_ALL_GATHER,
                                       .bytes = 1e9,
                                       .buffer_bytes = 200e6,
                                       .span = cluster_group_span(cluster, 8, 1),
                                       .cluster = cluster};
    assert_close(collective_cost(&ask, false).time_s, 5 * 7 * 10e-6 + 0.875 / 100, TINY);
    builder.spec.collectives = "nccl";
    assert_close(collective_cost(&ask, false).time_s, 7 * 10e-6 + 0.875 / 100, TINY);
}

/* Group sizes outside a table of powers of two, and payloads of a few bytes, once cost another
 * simulator 0 us: each collective takes at least its launch and one step of the network. */
static void no_group_size_is_free(void **state)
{
    (void)state;
    struct cluster_builder builder;
    const struct cluster *cluster = cluster_mesh_nodes(&builder, 480);
    builder.spec.levels[0].launch_s = 15e-6;
    builder.spec.levels[1].latency_s = 60e-6;
    const uint32_t groups[] = {12, 48, 96, 480};
    for (size_t i = 0; i < sizeof(groups) / sizeof(groups[0]); i++)
        for (int kind = 0; kind < COLLECTIVE_SEND_RECV; kind++)
            for (double bytes = 0; bytes < 2e6; bytes = bytes * 100 + 1) {
                const struct collective_ask ask = {.kind = (enum collective_kind)kind,
                                                   .bytes = bytes,
                                                   .token_bytes = bytes,
                                                   .copies = 1.0,
                                                   .imbalance = 1.0,
                                                   .span =
                                                       cluster_group_span(cluster, groups[i], 1),
                                                   .cluster = cluster};
                const double time_s = collective_cost(&ask, false).time_s;
                assert_true(time_s >= 75e-6 * (1.0 - TINY));
                assert_true(isfinite(time_s) && time_s < 0.1);
            }
}

/* A message takes its latency and bytes / bandwidth, whatever else is configured. */
static void a_message_takes_its_bytes(void **state)
{
    (void)state;
    struct cluster_builder builder;
    const struct cluster *cluster = cluster_mesh_nodes(&builder, 64);
    builder.spec.levels[1].latency_s = 60e-6;
    builder.spec.levels[1].launch_s = 7e-6;
    builder.spec.levels[1].efficiency = 0.8;
    const struct collective_ask ask = {.kind = COLLECTIVE_SEND_RECV,
                                       .bytes = 64e6,
                                       .buffer_bytes = 1e6,
                                       .span = cluster_group_span(cluster, 2, 32),
                                       .cluster = cluster};
    const struct collective_cost cost = collective_cost(&ask, false);
    assert_close(cost.time_s, 67e-6 + 64e6 / 8e9, TINY);
    assert_close(cost.latency_s, 67e-6, TINY);
    assert_close(cost.sent_bytes[1], 64e6, TINY);
}

static const struct cost_term *term(const struct collective_cost *cost, const char *name)
{
    for (uint32_t i = 0; i < cost->term_count; i++)
        if (strcmp(cost->terms[i].name, name) == 0)
            return &cost->terms[i];
    return NULL;
}

static void terms_name_the_facts_of_their_level(void **state)
{
    (void)state;
    struct cluster_builder builder;
    const struct cluster *cluster = cluster_mesh_nodes(&builder, 32);
    builder.spec.levels[0].launch_s = 15e-6;
    struct collective_ask ask = {.kind = COLLECTIVE_ALL_GATHER,
                                 .bytes = 1e9,
                                 .span = cluster_group_span(cluster, 4, 8),
                                 .cluster = cluster};
    struct collective_cost cost = collective_cost(&ask, true);
    assert_string_equal(term(&cost, "bandwidth")->origin_key, "cluster.levels.1.bandwidth");
    assert_string_equal(term(&cost, "efficiency")->origin_key, "cluster.levels.1.efficiency");
    assert_close(term(&cost, "rate")->value, 10e9, TINY);
    assert_close(term(&cost, "p")->value, 4.0, TINY);
    ask.span = cluster_group_span(cluster, 8, 1);
    cost = collective_cost(&ask, true);
    assert_string_equal(term(&cost, "launch")->origin_key, "cluster.levels.0.launch");
    assert_true(collective_cost(&ask, false).term_count == 0);
    assert_close(collective_cost(&ask, false).time_s, cost.time_s, 0.0);
}

static void names(void **state)
{
    (void)state;
    assert_string_equal(collective_kind_name(COLLECTIVE_ALL_REDUCE), "all_reduce");
    assert_string_equal(collective_kind_name(COLLECTIVE_SEND_RECV), "send_recv");
    char text[4];
    const struct collective_cost cost = {.algorithm = "none"};
    collective_algorithm_text(&cost, text, sizeof(text));
    assert_string_equal(text, "non"); /* cut, with its NUL */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_group_of_one_costs_nothing),
        cmocka_unit_test(pangu_dispatch_volumes),
        cmocka_unit_test(two_hops_pay_only_on_slow_networks),
        cmocka_unit_test(expert_traffic_per_token),
        cmocka_unit_test(the_hottest_rank_sets_the_time_of_an_exchange),
        cmocka_unit_test(an_all_reduce_goes_in_across_and_out),
        cmocka_unit_test(a2_moves_whole_blocks_and_a3_shards),
        cmocka_unit_test(a_nccl_ring_runs_over_rails),
        cmocka_unit_test(launches_are_paid_per_operation),
        cmocka_unit_test(hccl_chops_and_nccl_streams),
        cmocka_unit_test(no_group_size_is_free),
        cmocka_unit_test(a_message_takes_its_bytes),
        cmocka_unit_test(terms_name_the_facts_of_their_level),
        cmocka_unit_test(names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
