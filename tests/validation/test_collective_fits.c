/*
 * test_collective_fits.c - collectives on the shipped clusters against published curves and points.
 *
 * The rates and latencies of the A2 and A3 levels were fitted to the all-reduce curves below
 * (see the sources in configs/clusters), so those rows guard model and fit together. What the
 * other rows show is said at each.
 */
#include "stepsim/collective.h"

#include <stdio.h>

#include "assert_close.h"
#include "device_builder.h"
#include "stepsim/arena.h"

#define US 1e-6

static struct arena *arena;

static const struct cluster *load(const char *name, uint32_t devices)
{
    struct error_list errors;
    error_list_init(&errors, arena);
    const struct cluster_spec *spec =
        scenario_load_cluster(name, STEPSIM_SOURCE_DIR "/configs", arena, &errors);
    if (!spec)
        fail_msg("%s", error_list_text(&errors, arena));
    struct scenario *scenario = ARENA_NEW(arena, struct scenario);
    scenario->cluster = *spec;
    scenario->devices = devices;
    const struct cluster *cluster = cluster_build(scenario, arena, &errors);
    if (!cluster)
        fail_msg("%s", error_list_text(&errors, arena));
    return cluster;
}

static struct collective_cost cost_of(const struct cluster *cluster, enum collective_kind kind,
                                      double bytes, struct group_span span)
{
    const struct collective_ask ask = {.kind = kind,
                                       .bytes = bytes,
                                       .token_bytes = bytes,
                                       .copies = 1.0,
                                       .imbalance = 1.0,
                                       .span = span,
                                       .cluster = cluster,
                                       .buffer_bytes = 400e6};
    return collective_cost(&ask, false);
}

/* GB is 10^9 bytes; two other simulators read it as 2^30, 7.4 % too fast. */
static void a_gigabyte_is_decimal(void **state)
{
    (void)state;
    const struct cluster *cluster = load("atlas_800t_a2", 16);
    assert_close(cluster->spec->levels[0].bytes_per_s, 196e9, 1e-12);
    const struct collective_cost cost =
        cost_of(cluster, COLLECTIVE_SEND_RECV, 100e9, cluster_group_span(cluster, 2, 8));
    assert_close(cost.time_s, 100.0 / (25.0 * 0.8), 1e-3);
}

/* Huawei's fit of the 8-rank mesh all-reduce of an A2 node (Ascend C best practice and MC2 tiling
 * model, CANN 8.5), x in MiB: 18 us at least, a parabola to 8 MiB, a line above. */
static double a2_curve_s(double mib)
{
    if (mib >= 8.0)
        return (13.58491 * mib + 61.508) * US;
    return fmax(18.0, -0.96982 * mib * mib + 27.06226 * mib + 14.769) * US;
}

static void a2_all_reduce_follows_the_vendors_curve(void **state)
{
    (void)state;
    const struct cluster *cluster = load("atlas_800t_a2", 8);
    for (double mib = 1.0 / 16; mib <= 256.0; mib *= 2.0) {
        const double time_s = cost_of(cluster, COLLECTIVE_ALL_REDUCE, mib * MIB_BYTES,
                                      cluster_group_span(cluster, 8, 1))
                                  .time_s;
        printf("A2 all-reduce, %g MiB: %.1f us, model %.1f us\n", mib, a2_curve_s(mib) / US,
               time_s / US);
        assert_close(time_s, a2_curve_s(mib), mib >= 1.0 ? 0.06 : 0.08);
    }
}

/* Vendor's rule for the halves: all-gather and reduce-scatter take half of the all-reduce. The
 * launch is not halved here, which shows in small tensors only. */
static void a2_gathers_take_about_half(void **state)
{
    (void)state;
    const struct cluster *cluster = load("atlas_800t_a2", 8);
    for (double mib = 8.0; mib <= 256.0; mib *= 2.0)
        assert_close(cost_of(cluster, COLLECTIVE_ALL_GATHER, mib * MIB_BYTES,
                             cluster_group_span(cluster, 8, 1))
                         .time_s,
                     a2_curve_s(mib) / 2.0, 0.10);
}

/* The 64 MiB all-reduce of the article is printed as 1071 us; that is 1.15 times the curve, the
 * factor for concurrent compute, and not this. */

/* The same source for 8 dies of an A3 node, double ring: 11.38155 us per MiB and 248.15 us, at
 * least 250 us. Below 1 MiB HCCL takes another algorithm. */
static void a3_all_reduce_follows_the_vendors_line(void **state)
{
    (void)state;
    const struct cluster *cluster = load("atlas_900_a3_supernode", 16);
    for (double mib = 2.0; mib <= 256.0; mib *= 2.0) {
        const double line_s = fmax(250.0, 11.38155 * mib + 248.15) * US;
        const double time_s = cost_of(cluster, COLLECTIVE_ALL_REDUCE, mib * MIB_BYTES,
                                      cluster_group_span(cluster, 8, 1))
                                  .time_s;
        printf("A3 all-reduce, %g MiB: %.1f us, model %.1f us\n", mib, line_s / US, time_s / US);
        assert_close(time_s, line_s, 0.03);
    }
}

/* Case T11 (vllm-ascend#2316): between A2 nodes a port has about 1/7 of the bandwidth inside, and
 * an inter-node step took about 6 times an intra-node step of the same bytes. */
static void a2_network_is_a_seventh_of_the_mesh(void **state)
{
    (void)state;
    const struct cluster *cluster = load("atlas_800t_a2", 16);
    const double bytes = 32768.0 * 7168 * 2; /* the tokens of the report, a usual hidden size */
    const struct collective_cost inside =
        cost_of(cluster, COLLECTIVE_ALL_GATHER, bytes, cluster_group_span(cluster, 8, 1));
    const struct collective_cost outside =
        cost_of(cluster, COLLECTIVE_SEND_RECV, bytes, cluster_group_span(cluster, 2, 8));
    const double inside_rate = inside.sent_bytes[0] / inside.time_s;
    const double outside_rate = outside.sent_bytes[1] / outside.time_s;
    assert_close(inside_rate / outside_rate, 7.0, 0.25);
    assert_close(outside.time_s * inside.sent_bytes[0] / bytes / inside.time_s, 6.0, 0.25);
}

/* MoE exchanges of sgl-kernel-npu on A3, GB/s per die: EP8 in a node dispatch 102 and combine 152,
 * EP16 over nodes 87 and 121. The model's efficiencies are their means. */
static void a3_exchanges_lie_between_dispatch_and_combine(void **state)
{
    (void)state;
    const struct cluster *cluster = load("atlas_900_a3_supernode", 64);
    const double bytes = 1e9;
    const struct collective_cost node =
        cost_of(cluster, COLLECTIVE_ALL_TO_ALL, bytes, cluster_group_span(cluster, 8, 2));
    const double node_rate = node.sent_bytes[1] / node.time_s;
    assert_true(node_rate > 102e9 && node_rate < 152e9);
    const struct collective_cost nodes =
        cost_of(cluster, COLLECTIVE_ALL_TO_ALL, bytes, cluster_group_span(cluster, 4, 16));
    const double nodes_rate = nodes.sent_bytes[2] / nodes.time_s;
    assert_true(nodes_rate > 87e9 && nodes_rate < 121e9);
}

/* Pangu Ultra MoE: TP8 x EP4 on nodes of 8, one dispatch of 2048 tokens per rank. At the ideal
 * rates of the facts (25 and 196 GB/s) flat takes 7.55 ms outside, hierarchical 3.77 + 1.12; at the
 * shares that HCCL reaches the gain of two hops must remain: 1.4 to 2.0 times. */
static void two_hops_pay_on_a2(void **state)
{
    (void)state;
    const struct cluster *cluster = load("atlas_800t_a2", 6144);
    const double token_bytes = 2048.0 * 7680 * 2;
    struct collective_ask ask = {.kind = COLLECTIVE_ALL_TO_ALL,
                                 .bytes = 8 * token_bytes,
                                 .token_bytes = token_bytes,
                                 .copies = 8.0,
                                 .imbalance = 1.0,
                                 .span = cluster_group_span(cluster, 32, 1),
                                 .cluster = cluster,
                                 .buffer_bytes = 400e6};
    const struct collective_cost flat = collective_cost(&ask, false);
    ask.kind = COLLECTIVE_ALL_TO_ALL_HIERARCHICAL;
    const struct collective_cost two_hops = collective_cost(&ask, false);
    printf("Pangu dispatch: flat %.2f ms, hierarchical %.2f ms\n", flat.time_s * 1e3,
           two_hops.time_s * 1e3);
    assert_close(flat.sent_bytes[1], 188.7e6, 1e-3);
    assert_close(two_hops.sent_bytes[1], 94.4e6, 1e-3);
    assert_close(two_hops.sent_bytes[0], 220.2e6, 1e-3);
    assert_true(flat.time_s > 1.4 * two_hops.time_s && flat.time_s < 2.0 * two_hops.time_s);
}

/* On a flat supernode two hops were 12 to 22 % slower at large sizes (public study quoted in the
 * facts on Pangu): they must not win there. */
static void two_hops_do_not_pay_in_a_supernode(void **state)
{
    (void)state;
    const struct cluster *cluster = load("atlas_900_a3_supernode", 768);
    struct collective_ask ask = {.kind = COLLECTIVE_ALL_TO_ALL,
                                 .bytes = 8 * 58720256.0,
                                 .token_bytes = 58720256.0,
                                 .copies = 8.0,
                                 .imbalance = 1.0,
                                 .span = cluster_group_span(cluster, 64, 1),
                                 .cluster = cluster,
                                 .buffer_bytes = 400e6};
    const double flat_s = collective_cost(&ask, false).time_s;
    ask.kind = COLLECTIVE_ALL_TO_ALL_HIERARCHICAL;
    assert_true(collective_cost(&ask, false).time_s > flat_s);
}

/* Small all-reduce over 16 nodes of 8 H100: 62 us (NVIDIA/nccl#1469); bus bandwidth of a large one
 * in a node 365 to 370 GB/s (NVIDIA/nccl#1455). */
static void nccl_on_h100(void **state)
{
    (void)state;
    const struct cluster *cluster = load("h100_dgx", 128);
    assert_close(
        cost_of(cluster, COLLECTIVE_ALL_REDUCE, 8.0, cluster_group_span(cluster, 128, 1)).time_s,
        62 * US, 0.10);
    const double bytes = 4e9;
    const double bus =
        2.0 * bytes * 7 / 8 /
        cost_of(cluster, COLLECTIVE_ALL_REDUCE, bytes, cluster_group_span(cluster, 8, 1)).time_s;
    assert_close(bus, 367e9, 0.02);
}

static int start(void **state)
{
    (void)state;
    arena = arena_create("clusters");
    return 0;
}

static int stop(void **state)
{
    (void)state;
    arena_destroy(arena);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gigabyte_is_decimal),
        cmocka_unit_test(a2_all_reduce_follows_the_vendors_curve),
        cmocka_unit_test(a2_gathers_take_about_half),
        cmocka_unit_test(a3_all_reduce_follows_the_vendors_line),
        cmocka_unit_test(a2_network_is_a_seventh_of_the_mesh),
        cmocka_unit_test(a3_exchanges_lie_between_dispatch_and_combine),
        cmocka_unit_test(two_hops_pay_on_a2),
        cmocka_unit_test(two_hops_do_not_pay_in_a_supernode),
        cmocka_unit_test(nccl_on_h100),
    };
    return cmocka_run_group_tests(tests, start, stop);
}
