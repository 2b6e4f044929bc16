/*
 * flash_attention.c - attention that never writes its scores to memory.
 *
 * Forward: S = Q K^T and O = P V. Backward: S again, dP = dO V^T, dV = P^T dO,
 * dQ = dS K, dK = dS^T Q. Per visible pair of query and key that is
 *
 *     forward 2 (qk + v),  backward 2 (3 qk + 2 v) flop
 *
 * so 2.5 times as much backward when both widths are equal. A causal ask says so by
 * `keys`, the mean number of visible keys of a query.
 *
 * Efficiency is measured at head size 128, long sequences and full cores. It falls with
 * - short sequences: sequence / (sequence + seq_half), the fill of the pipeline;
 * - small heads: each pair also costs softmax work on the vector cores, whatever the head
 *   size, so that a pair costs like one with `softmax_dims` more channels;
 * - few blocks: batch * heads * queries / 128 blocks are dealt to the cores in waves.
 */
#include <math.h>

#include "compute_internal.h"

#include "stepsim/error.h"

/* Query rows of one block; Ascend's operator and FlashAttention-2 use the same. */
#define BLOCK_QUERIES 128.0
/* Head size at which device files state the efficiency (scenario.h). */
#define REFERENCE_DIM 128.0
/* Vector work of one score: scale, running maximum, subtract, exponential (4: range
 * reduction and polynomial), sum. */
#define SOFTMAX_FLOP 8.0
/* bf16 and fp16 are the only operand types of the fused kernels. */
#define ELEMENT_BYTES 2.0

struct attention_parts {
    double flop, bytes;
    double ramp, head_ratio, waves, occupancy;
    double efficiency; /* all of it, backward ratio included */
};

/* Channels that cost as much cube time as the softmax of one pair costs vector time. */
static double softmax_dims(const struct device_spec *device)
{
    return SOFTMAX_FLOP / 4.0 * device->peak_flop_per_s / device->vector_flop_per_s;
}

static struct attention_parts measure(const struct compute_ask *ask,
                                      const struct device_spec *device, bool backward)
{
    const double pairs = ask->batch * ask->heads * ask->queries * ask->keys;
    const double query_rows = ask->batch * ask->heads * ask->queries;
    const double key_rows = ask->batch * ask->kv_heads * ask->sequence;
    const double width = ask->qk_dim + ask->v_dim;
    struct attention_parts parts = {
        .flop = 2.0 * pairs * (backward ? 3.0 * ask->qk_dim + 2.0 * ask->v_dim : width),
        /* Q, O, K, V once; backward reads them and dO and writes dQ, dK, dV. */
        .bytes = ELEMENT_BYTES * (query_rows + key_rows) * width * (backward ? 2.0 : 1.0),
        .ramp = 1.0,
        .head_ratio = 1.0,
        .occupancy = 1.0,
    };
    if (pairs <= 0.0)
        return parts;

    const double extra = softmax_dims(device);
    const double dim = width / 2.0;
    parts.ramp = ask->sequence / (ask->sequence + device->attention_seq_half);
    parts.head_ratio = dim / (dim + extra) * (REFERENCE_DIM + extra) / REFERENCE_DIM;
    const double blocks = ask->batch * ask->heads * ceil(ask->queries / BLOCK_QUERIES);
    parts.waves = ceil(blocks / device->cores);
    parts.occupancy = query_rows / (parts.waves * device->cores * BLOCK_QUERIES);
    const double full = device->attention_efficiency * parts.head_ratio *
                        (backward ? device->attention_backward_ratio : 1.0);
    parts.efficiency = fmin(1.0, full) * parts.ramp * parts.occupancy;
    return parts;
}

static void explain_attention(const struct compute_ask *ask, const struct attention_parts *parts,
                              const struct device_spec *device, struct compute_cost *cost)
{
    const bool backward = ask->kind == COMPUTE_ATTENTION_BACKWARD;
    compute_term(cost, "batch", ask->batch, "", NULL);
    compute_term(cost, "heads", ask->heads, "", NULL);
    compute_term(cost, "queries", ask->queries, "", NULL);
    compute_term(cost, "visible keys", ask->keys, "", NULL);
    compute_term(cost, "sequence", ask->sequence, "", NULL);
    compute_term(cost, "qk_dim", ask->qk_dim, "", NULL);
    compute_term(cost, "v_dim", ask->v_dim, "", NULL);
    compute_term(cost, "flop", parts->flop, "FLOP", NULL);
    compute_term(cost, "peak", device->peak_flop_per_s, "FLOP/s", "cluster.device.peak");
    compute_term(cost, "efficiency", device->attention_efficiency, "ratio",
                 "cluster.device.attention_efficiency");
    if (backward)
        compute_term(cost, "backward", device->attention_backward_ratio, "ratio",
                     "cluster.device.attention_backward_ratio");
    compute_term(cost, "seq_half", device->attention_seq_half, "keys",
                 "cluster.device.attention_seq_half");
    compute_term(cost, "ramp", parts->ramp, "ratio", NULL);
    compute_term(cost, "head", parts->head_ratio, "ratio", "cluster.device.vector");
    compute_term(cost, "cores", device->cores, "", "cluster.device.cores");
    compute_term(cost, "waves", parts->waves, "", NULL);
    compute_term(cost, "occupancy", parts->occupancy, "ratio", NULL);
    compute_term(cost, "startup", device->attention_startup_s, "s",
                 "cluster.device.attention_startup");
}

static void cost(const struct compute_ask *ask, const struct device_spec *device, bool explain,
                 struct compute_cost *cost)
{
    const bool backward = ask->kind == COMPUTE_ATTENTION_BACKWARD;
    const struct attention_parts parts = measure(ask, device, backward);
    const double cube_s =
        parts.flop > 0.0 ? parts.flop / (device->peak_flop_per_s * parts.efficiency) : 0.0;
    const double hbm_s = parts.bytes / (device->hbm_bytes_per_s * device->hbm_efficiency);
    const double work_s = fmax(cube_s, hbm_s);
    cost->time_s = work_s + device->attention_startup_s;
    cost->flop = parts.flop;
    cost->bytes = parts.bytes;
    if (work_s < device->attention_startup_s)
        cost->bound = "floor";
    else
        cost->bound = cube_s >= hbm_s ? "cube" : "hbm";
    if (explain)
        explain_attention(ask, &parts, device, cost);
}

const struct compute compute_flash_attention = {
    .name = "flash_attention",
    .title = "Flash attention, forward and backward",
    .formula = "max(flop / (peak * efficiency * backward * ramp * head * occupancy), traffic/hbm) "
               "+ startup",
    .kinds = 1u << COMPUTE_ATTENTION_FORWARD | 1u << COMPUTE_ATTENTION_BACKWARD,
    .cost = cost,
};
