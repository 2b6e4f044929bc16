/*
 * Laws of faults: a part that is lost or slow everywhere is a fabric without it, and one that is
 * slow in one place is the slow link or rank that it stands for. Digests are equal, so every
 * time in every stage is.
 */
#include <stdio.h>
#include <string.h>

#include "../support/assert_close.h"
#include "stepsim/run.h"

/* 32 NPUs in 4 nodes of 8, whose expert groups of 16 cross nodes. */
static const char job[] = "model: {base: deepseek_v3, layers: 8, mtp_layers: 0, moe: {experts: "
                          "16, first_dense_layers: 0}}\n"
                          "cluster: atlas_800t_a2\n"
                          "devices: 32\n"
                          "parallel: {tp: 2, pp: 2, vpp: 1, ep: 16, etp: 1, zero: 1}\n"
                          "training: {seq_len: 2048, micro_batch_size: 1, "
                          "global_batch_size: 64}\n"
                          "schedule: {kind: 1f1b}\n";

static const char *const networks[] = {"closed_form", "ports", "fair_share"};
#define NETWORK_COUNT (sizeof networks / sizeof networks[0])

struct answer {
    sim_time end;
    uint64_t digest;
};

#define CHANGES_MAX 3
struct changes {
    struct scenario_override list[CHANGES_MAX];
};

static struct answer answer_of(const char *network, const struct changes *changes)
{
    struct arena *arena = arena_create("test");
    struct error_list errors;
    error_list_init(&errors, arena);
    struct scenario_override overrides[CHANGES_MAX + 1] = {{"network", network}};
    uint32_t count = 1;
    for (int i = 0; i < CHANGES_MAX && changes->list[i].key != NULL; i++)
        overrides[count++] = changes->list[i];
    const struct scenario_source source = {
        .text = job, .text_name = "job", .overrides = overrides, .override_count = count};
    const struct scenario *scenario = scenario_load(&source, arena, &errors);
    struct run run = {0};
    const struct run_options options = {.steps = 1};
    if (scenario == NULL || !run_simulate(&run, scenario, &options, arena, &errors))
        print_error("%s", error_list_text(&errors, arena));
    assert_non_null(run.report);
    const struct answer answer = {run.timeline->end, run.timeline->digest};
    arena_destroy(arena);
    return answer;
}

static void assert_same(const char *network, const struct changes *a, const struct changes *b)
{
    const struct answer first = answer_of(network, a);
    const struct answer second = answer_of(network, b);
    assert_time_equal(first.end, second.end);
    assert_true(first.digest == second.digest);
}

static void assert_longer(const char *network, const struct changes *a)
{
    const struct changes none = {0};
    assert_true(answer_of(network, a).end > answer_of(network, &none).end);
}

/* One of four switches: three quarters of the bandwidth of whoever passes them. With `ports` the
 * shares of the phases of a transfer stay those of the whole bandwidth, so only its length is the
 * same. */
static void a_lost_switch_is_its_share_of_bandwidth(void **state)
{
    (void)state;
    const struct changes lost = {
        {{"faults", "[cluster 2]"}, {"cluster.levels.cluster.switches", "4"}}};
    const struct changes narrow = {{{"cluster.levels.cluster.bandwidth", "18.75 GB/s"}}};
    assert_same("closed_form", &lost, &narrow);
    const double ports = (double)answer_of("ports", &narrow).end;
    assert_close((double)answer_of("ports", &lost).end, ports, 1e-4);
    for (size_t i = 0; i < NETWORK_COUNT; i++)
        assert_longer(networks[i], &lost);
}

/* One of two switches: the uplinks of every node carry what four ports of its eight would. */
static void a_lost_switch_is_a_narrower_uplink(void **state)
{
    (void)state;
    const struct changes lost = {
        {{"faults", "[cluster 0]"}, {"cluster.levels.cluster.switches", "2"}}};
    const struct changes narrow = {{{"cluster.levels.cluster.oversubscription", "2"}}};
    assert_same("fair_share", &lost, &narrow);
}

/* Seven ports for eight devices, in every node. */
static void a_lost_port_leaves_the_others(void **state)
{
    (void)state;
    const struct changes lost = {{{"faults", "[nic 5 of node 0, nic 0 of node 1, nic 7 of node 2, "
                                             "nic 3 of node 3]"}}};
    const struct changes seven = {{{"cluster.levels.cluster.nics", "7"}}};
    assert_same("fair_share", &lost, &seven);
    const struct changes narrow = {{{"cluster.levels.cluster.bandwidth", "21.875 GB/s"}}};
    assert_same("closed_form", &lost, &narrow);
    assert_longer("ports", &lost);
}

/* Two lost ports of a node are a quarter of its eight, not a quarter of seven. */
static void losses_add_up(void **state)
{
    (void)state;
    const struct changes two = {{{"faults", "[nic 5 of node 1, nic 0 of node 1]"}}};
    const struct changes uplinks = {{{"faults", "[{part: uplinks of node 1, speed: 0.75}]"}}};
    for (size_t i = 0; i < NETWORK_COUNT; i++)
        assert_same(networks[i], &two, &uplinks);
}

static void a_slow_port_is_a_slow_link(void **state)
{
    (void)state;
    const struct changes port = {{{"faults", "[{part: nic 5 of node 1, speed: 0.5}]"}}};
    const struct changes link = {
        {{"noise.slow_links", "[{level: cluster, rank: 13, factor: 0.5}]"}}};
    for (size_t i = 0; i < NETWORK_COUNT; i++) {
        assert_same(networks[i], &port, &link);
        assert_longer(networks[i], &port);
    }
}

static void a_slow_node_is_slow_ranks(void **state)
{
    (void)state;
    const struct changes node = {{{"faults", "[{part: node 2, speed: 0.5}]"}}};
    char ranks[512];
    size_t length = 0;
    for (unsigned rank = 16; rank < 24; rank++)
        length += (size_t)snprintf(ranks + length, sizeof ranks - length, "%s{rank: %u, factor: 2}",
                                   rank == 16 ? "[" : ", ", rank);
    snprintf(ranks + length, sizeof ranks - length, "]");
    const struct changes slow = {{{"noise.slow_ranks", ranks}}};
    for (size_t i = 0; i < NETWORK_COUNT; i++)
        assert_same(networks[i], &node, &slow);
    assert_longer("closed_form", &node);
}

/* All nodes are alike, so a spare one takes the place of a broken one without a trace. */
static void a_spare_node_takes_over(void **state)
{
    (void)state;
    const struct changes none = {0};
    const struct changes broken = {
        {{"faults", "[node 0, node 2]"}, {"cluster.levels.cluster.size", "48"}}};
    for (size_t i = 0; i < NETWORK_COUNT; i++)
        assert_same(networks[i], &broken, &none);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lost_switch_is_its_share_of_bandwidth),
        cmocka_unit_test(a_lost_switch_is_a_narrower_uplink),
        cmocka_unit_test(a_lost_port_leaves_the_others),
        cmocka_unit_test(losses_add_up),
        cmocka_unit_test(a_slow_port_is_a_slow_link),
        cmocka_unit_test(a_slow_node_is_slow_ranks),
        cmocka_unit_test(a_spare_node_takes_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
