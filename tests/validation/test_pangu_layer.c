/*
 * test_pangu_layer.c - one MoE layer of Pangu Ultra MoE on one NPU, forward, worked by hand.
 *
 * The table of docs/models/compute.md: shapes from the architecture under TP8, EP32, micro-batch 2
 * of 8192 tokens (16384 tokens per TP group, 2048 per NPU with sequence parallelism, 8 local
 * experts of 2048 mean rows); FLOPs, bytes and times calculated outside this program from the
 * formulas on that page and the facts below, which are those of the Atlas 800T A2 at the time of
 * writing and are frozen here, so that a refit does not move the oracle.
 */
#include "stepsim/collective.h"

#include "assert_close.h"
#include "device_builder.h"

#define MS 1e-3
#define MB 1e6
/* The table has three to four digits. */
#define DIGITS 2e-3

static struct device_spec npu(void)
{
    struct device_spec device = device_round();
    device.peak_flop_per_s = 294.9e12;
    device.vector_flop_per_s = 9e12;
    device.cores = 20;
    device.hbm_bytes_per_s = 1.6e12;
    device.hbm_efficiency = 0.95;
    device.l2_bytes = 192 * MIB_BYTES;
    device.l2_bytes_per_s = 3.96e12;
    device.matmul_efficiency = 0.84;
    device.matmul_unaligned_ratio = 0.98;
    device.matmul_align = 128;
    device.matmul_spill_ratio = 0.97;
    device.matmul_startup_s = 12e-6;
    device.grouped_matmul_ratio = 0.95;
    device.attention_efficiency = 0.45;
    device.attention_seq_half = 400;
    device.attention_backward_ratio = 0.85;
    device.attention_startup_s = 8e-6;
    device.vector_traffic_ratio = 2.43;
    device.vector_startup_s = 3.5e-6;
    device.permute_traffic_ratio = 2.61;
    return device;
}

struct row {
    const char *op;
    struct compute_ask ask;
    double tflop, mb, ms;
    const char *bound;
};

#define MATMUL(rows, columns, inner)                                                               \
    {                                                                                              \
        .kind = COMPUTE_MATMUL, .m = (rows), .n = (columns), .k = (inner),                         \
        .weight_bytes_per_element = 2                                                              \
    }
#define EXPERTS(columns, inner)                                                                    \
    {                                                                                              \
        .kind = COMPUTE_GROUPED_MATMUL, .groups = 8, .m = 2048, .n = (columns), .k = (inner),      \
        .weight_bytes_per_element = 2                                                              \
    }
/* Two sequences, 16 of 128 heads, half of the keys visible on average. */
#define MLA(direction)                                                                             \
    {                                                                                              \
        .kind = (direction), .queries = 8192, .keys = 4096, .sequence = 8192, .batch = 2,          \
        .heads = 16, .kv_heads = 16, .qk_dim = 192, .v_dim = 128                                   \
    }
#define STREAM(what, moved)                                                                        \
    {                                                                                              \
        .kind = (what), .bytes = (moved), .kernels = 1                                             \
    }

/* B: 2048 tokens of 7680 bf16. */
#define TOKENS_BYTES (2048.0 * 7680 * 2)

static const struct row rows[] = {
    {"q, kv down", MATMUL(2048, 2112, 7680), 0.06644, 72.5, 0.2882, "cube"},
    {"q up", MATMUL(16384, 3072, 1536), 0.1546, 160.4, 0.6370, "cube"},
    {"kv up", MATMUL(16384, 4096, 512), 0.06872, 155.2, 0.2902, "cube"},
    {"attention", MLA(COMPUTE_ATTENTION_FORWARD), 0.6872, 335.5, 5.101, "cube"},
    {"attention, backward", MLA(COMPUTE_ATTENTION_BACKWARD), 1.787, 671.1, 15.59, "cube"},
    {"output", MATMUL(16384, 7680, 2048), 0.5154, 350.2, 2.093, "cube"},
    {"router", MATMUL(2048, 256, 7680), 0.008053, 36.4, 0.0483, "cube"},
    {"shared gate and up", MATMUL(16384, 512, 7680), 0.1288, 276.3, 0.5362, "cube"},
    {"shared down", MATMUL(16384, 7680, 256), 0.06442, 264.0, 0.2721, "cube"},
    {"experts gate and up", EXPERTS(4096, 7680), 1.031, 889.2, 4.411, "cube"},
    {"experts down", EXPERTS(7680, 2048), 0.5154, 570.4, 2.209, "cube"},
    {"norm", STREAM(COMPUTE_VECTOR, 2 * TOKENS_BYTES), 0, 0, 0.0421, "l2"},
    /* 16384 rows of 4096 in and 2048 out: just within the L2. */
    {"experts SwiGLU", STREAM(COMPUTE_VECTOR, 16384.0 * 6144 * 2), 0, 0, 0.1270, "l2"},
    /* 8 copies read and written, twice 252 MB; the way back reads 8 and writes 1. */
    {"permute", STREAM(COMPUTE_PERMUTE, 16 * TOKENS_BYTES), 0, 503.3 * 2.61, 0.8677, "hbm"},
    {"unpermute", STREAM(COMPUTE_PERMUTE, 9 * TOKENS_BYTES), 0, 283.1 * 2.61 * 0.406, 0.3118, "l2"},
};

static void each_op_as_worked_by_hand(void **state)
{
    (void)state;
    const struct device_spec device = npu();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct row *row = &rows[i];
        const struct compute_cost cost = compute_cost(&row->ask, &device, false);
        assert_close(cost.flop, row->tflop * 1e12, DIGITS);
        assert_close(cost.bytes, row->mb * MB, DIGITS);
        assert_close(cost.time_s, row->ms * MS, DIGITS);
        assert_string_equal(cost.bound, row->bound);
    }
}

/* Published arithmetic on the same layer: MLA with causal attention 1.49 TFLOP, routed experts
 * 1.55, shared expert 0.19. */
static void the_parts_add_up_to_the_published_flop(void **state)
{
    (void)state;
    const struct device_spec device = npu();
    double attention = 0.0, experts = 0.0, shared = 0.0;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const double flop = compute_cost(&rows[i].ask, &device, false).flop;
        if (i < 6 && rows[i].ask.kind != COMPUTE_ATTENTION_BACKWARD)
            attention += flop;
        else if (i == 7 || i == 8)
            shared += flop;
        else if (rows[i].ask.kind == COMPUTE_GROUPED_MATMUL)
            experts += flop;
    }
    assert_close(attention, 1.49e12, 0.005);
    assert_close(experts, 1.55e12, 0.005);
    assert_close(shared, 0.19e12, 0.02);
}

static const struct cluster *nodes(struct cluster_builder *builder)
{
    cluster_builder_start(builder, "hccl_a2", 8);
    struct level_spec *node = cluster_builder_level(builder, 8, TOPOLOGY_MESH, 196e9);
    node->efficiency = 0.69;
    node->alltoall_efficiency = 0.65;
    node->latency_s = 40e-6;
    node->launch_s = 15e-6;
    struct level_spec *network = cluster_builder_level(builder, 0, TOPOLOGY_SWITCH, 25e9);
    network->efficiency = network->alltoall_efficiency = 0.8;
    network->latency_s = 60e-6;
    network->launch_s = 7e-6;
    return cluster_builder_finish(builder, 6144);
}

/*
 * All-gather of the latents, 16384 x 2112, and reduce-scatter of the hidden states, 16384 x 7680,
 * over TP8: 7/8 of it at 135.24 GB/s, 15 us, and a ramp of 40 us. Dispatch: 94.4 MB at 20 GB/s and
 * two steps of 60 us outside, 220.2 MB at 127.4 GB/s and the ramp inside, two launches.
 */
static void communication_as_worked_by_hand(void **state)
{
    (void)state;
    struct cluster_builder builder;
    const struct cluster *cluster = nodes(&builder);
    struct collective_ask ask = {.kind = COLLECTIVE_ALL_GATHER,
                                 .bytes = 16384.0 * 2112 * 2,
                                 .imbalance = 1.0,
                                 .buffer_bytes = 400e6,
                                 .span = cluster_group_span(cluster, 8, 1),
                                 .cluster = cluster};
    struct collective_cost cost = collective_cost(&ask, false);
    assert_close(cost.time_s, 0.4995 * MS, DIGITS);
    assert_close(cost.sent_bytes[0], 60.6 * MB, DIGITS);

    ask.kind = COLLECTIVE_REDUCE_SCATTER;
    ask.bytes = 16384.0 * 7680 * 2;
    cost = collective_cost(&ask, false);
    assert_close(cost.time_s, 1.682 * MS, DIGITS);
    assert_close(cost.sent_bytes[0], 220.2 * MB, DIGITS);

    ask.kind = COLLECTIVE_ALL_TO_ALL_HIERARCHICAL;
    ask.bytes = 8 * TOKENS_BYTES;
    ask.token_bytes = TOKENS_BYTES;
    ask.copies = 8.0;
    ask.span = cluster_group_span(cluster, 32, 1);
    cost = collective_cost(&ask, false);
    assert_close(cost.time_s, 6.628 * MS, DIGITS);
    assert_close(cost.sent_bytes[1], 94.4 * MB, DIGITS);
    assert_close(cost.sent_bytes[0], 220.2 * MB, DIGITS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_op_as_worked_by_hand),
        cmocka_unit_test(the_parts_add_up_to_the_published_flop),
        cmocka_unit_test(communication_as_worked_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
