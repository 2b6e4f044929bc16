/*
 * unfused_attention.c - attention as separate kernels that write their scores to memory.
 *
 * What runs before flash attention were: two batched products and a softmax between
 * them, forward; four products and the softmax's gradient, backward. The mask hides
 * nothing from the products, so the full square is computed whatever `keys` says, and
 * every pass over the scores goes through the memory like any other vector kernel.
 */
#include "compute_internal.h"

#include "stepsim/error.h"

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

static void add(struct compute_cost *total, const struct compute_cost *part)
{
    total->time_s += part->time_s;
    total->flop += part->flop;
    total->bytes += part->bytes;
}

/* One batched product [m, k] x [k, n], its time listed under `name`. */
static void add_product(const struct compute_ask *ask, double m, double n, double k,
                        const char *name, const struct device_spec *device, bool explain,
                        struct compute_cost *total)
{
    const struct matmul_shape shape = {
        .groups = ask->batch * ask->heads,
        .m = m,
        .n = n,
        .k = k,
        .element_bytes = ELEMENT_BYTES,
    };
    struct compute_cost part;
    part.term_count = 0;
    compute_matmul_cost(&shape, device, 1.0, false, &part);
    add(total, &part);
    if (explain)
        compute_term(total, name, part.time_s, "s", NULL);
}

static void cost(const struct compute_ask *ask, const struct device_spec *device, bool explain,
                 struct compute_cost *cost)
{
    const bool backward = ask->kind == COMPUTE_ATTENTION_UNFUSED_BACKWARD;
    const double queries = ask->queries;
    const double keys = ask->sequence;
    const double scores = ask->batch * ask->heads * queries * keys;
    cost->time_s = cost->flop = cost->bytes = 0.0;
    if (backward) {
        add_product(ask, queries, keys, ask->v_dim, "dP = dO V^T", device, explain, cost);
        add_product(ask, keys, ask->v_dim, queries, "dV = P^T dO", device, explain, cost);
        add_product(ask, queries, ask->qk_dim, keys, "dQ = dS K", device, explain, cost);
        add_product(ask, keys, ask->qk_dim, queries, "dK = dS^T Q", device, explain, cost);
    } else {
        add_product(ask, queries, keys, ask->qk_dim, "S = Q K^T", device, explain, cost);
        add_product(ask, queries, ask->v_dim, keys, "O = P V", device, explain, cost);
    }
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
    if (explain) {
        compute_term(cost, "softmax", part.time_s, "s", NULL);
        compute_term(cost, "score bytes", softmax.bytes, "bytes", NULL);
        compute_term(cost, "efficiency", device->matmul_efficiency, "ratio",
                     "cluster.device.matmul_efficiency");
        compute_term(cost, "traffic_ratio", device->vector_traffic_ratio, "ratio",
                     "cluster.device.vector_traffic_ratio");
    }
}

const struct compute compute_unfused_attention = {
    .name = "unfused_attention",
    .title = "Attention that writes its scores to memory",
    .formula = "batched matmuls over the full square + passes * batch * heads * queries * sequence "
               "* 2 bytes / memory",
    .kinds = 1u << COMPUTE_ATTENTION_UNFUSED | 1u << COMPUTE_ATTENTION_UNFUSED_BACKWARD,
    .cost = cost,
};
