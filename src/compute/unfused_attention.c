/*
 * unfused_attention.c - attention as separate kernels that write their scores to memory.
 *
 * What runs before flash attention were: two batched products and a softmax between
 * them, forward; four products and the softmax's gradient, backward. The mask hides
 * nothing from the products, so the full square is computed whatever `keys` says, and
 * every pass over the scores goes through the memory like any other vector kernel.
 */
#include "compute_internal.h"

/* Scores are kept in the type of the operands, bf16 or fp16. */
#define ELEMENT_BYTES 2.0
/* Passes over the scores besides the products' own: a fused scale, mask and softmax reads
 * and writes them once, dropout reads and writes them once. */
#define FORWARD_PASSES 4.0
/* Dropout's gradient reads and writes, softmax's reads the probabilities and the incoming
 * gradient and writes the outgoing one. */
#define BACKWARD_PASSES  5.0
#define FORWARD_KERNELS  2.0
#define BACKWARD_KERNELS 2.0

/* One batched product [m, k] x [k, n] per sequence and head. */
struct product {
    const char *name;
    double m, n, k;
};

static void add(struct compute_cost *total, const struct compute_cost *part)
{
    total->time_s += part->time_s;
    total->flop += part->flop;
    total->bytes += part->bytes;
}

/* Adds the products of the direction, and lists the time of each. */
static void add_products(const struct compute_ask *ask, const struct device_spec *device,
                         bool explain, struct compute_cost *total)
{
    const double queries = ask->queries;
    const double keys = ask->sequence;
    const struct product forward[] = {
        {"S = Q K^T", queries, keys, ask->qk_dim},
        {"O = P V", queries, ask->v_dim, keys},
    };
    const struct product backward[] = {
        {"dP = dO V^T", queries, keys, ask->v_dim},
        {"dV = P^T dO", keys, ask->v_dim, queries},
        {"dQ = dS K", queries, ask->qk_dim, keys},
        {"dK = dS^T Q", keys, ask->qk_dim, queries},
    };
    const bool is_backward = ask->kind == COMPUTE_ATTENTION_UNFUSED_BACKWARD;
    const struct product *products = is_backward ? backward : forward;
    const size_t count =
        is_backward ? sizeof(backward) / sizeof(backward[0]) : sizeof(forward) / sizeof(forward[0]);
    for (size_t i = 0; i < count; i++) {
        const struct matmul_shape shape = {
            .groups = ask->batch * ask->heads,
            .m = products[i].m,
            .n = products[i].n,
            .k = products[i].k,
            .element_bytes = ELEMENT_BYTES,
        };
        struct compute_cost part;
        part.term_count = 0;
        compute_matmul_cost(&shape, device, 1.0, false, &part);
        add(total, &part);
        if (explain)
            compute_term(total, products[i].name, part.time_s, "s", NULL);
    }
}

static void cost(const struct compute_ask *ask, const struct device_spec *device, bool explain,
                 struct compute_cost *cost)
{
    const bool backward = ask->kind == COMPUTE_ATTENTION_UNFUSED_BACKWARD;
    const double scores = ask->batch * ask->heads * ask->queries * ask->sequence;
    cost->time_s = cost->flop = cost->bytes = 0.0;
    add_products(ask, device, explain, cost);
    const double products_s = cost->time_s;
    const struct stream_shape softmax = {
        .bytes = scores * ELEMENT_BYTES * (backward ? BACKWARD_PASSES : FORWARD_PASSES),
        .kernels = backward ? BACKWARD_KERNELS : FORWARD_KERNELS,
        .traffic_ratio = device->vector_traffic_ratio,
        .traffic_key = "cluster.device.vector_traffic_ratio",
        .may_fit_l2 = true,
    };
    struct compute_cost part;
    part.term_count = 0;
    compute_stream_cost(&softmax, device, false, &part);
    add(cost, &part);
    cost->bound = products_s >= part.time_s ? "cube" : part.bound;
    if (!explain)
        return;
    compute_term(cost, "softmax", part.time_s, "s", NULL);
    compute_term(cost, "score bytes", softmax.bytes, "bytes", NULL);
    compute_term(cost, "efficiency", device->matmul_efficiency, "ratio",
                 "cluster.device.matmul_efficiency");
    compute_term(cost, "traffic_ratio", device->vector_traffic_ratio, "ratio",
                 "cluster.device.vector_traffic_ratio");
}

const struct compute compute_unfused_attention = {
    .name = "unfused_attention",
    .title = "Attention that writes its scores to memory",
    .formula = "batched matmuls over the full square + passes * batch * heads * queries * sequence "
               "* 2 bytes / memory",
    .kinds = 1u << COMPUTE_ATTENTION_UNFUSED | 1u << COMPUTE_ATTENTION_UNFUSED_BACKWARD,
    .cost = cost,
};
