/*
 * grouped_matmul.c - the products of all local experts in one kernel.
 *
 * m is the mean number of rows of one expert and need not be whole. Each expert streams
 * its weights once, so few rows mean the speed of the HBM and many rows that of the cube.
 * The inner axes of the operands are hidden sizes in all three products of training (rows
 * are the outer axis of both operands of a weight gradient), so a fractional k costs no
 * alignment.
 */
#include "compute_internal.h"

static void cost(const struct compute_ask *ask, const struct device_spec *device, bool explain,
                 struct compute_cost *cost)
{
    const struct matmul_shape shape = {
        .groups = ask->groups,
        .m = ask->m,
        .n = ask->n,
        .k = ask->k,
        .element_bytes = ask->weight_bytes_per_element,
        .result_bytes = ask->result_bytes,
        .mean_rows = true,
    };
    compute_matmul_cost(&shape, device, device->grouped_matmul_ratio, explain, cost);
    if (explain)
        compute_term(cost, "grouped", device->grouped_matmul_ratio, "ratio",
                     "cluster.device.grouped_matmul_ratio");
}

const struct compute compute_grouped_matmul = {
    .name = "grouped_matmul",
    .title = "Matrix products of all local experts in one kernel",
    .formula = "max(2 groups mnk / (peak * efficiency * k/(k + k_half) * sqrt(occupancy) * spill * "
               "grouped) + groups mn (result - element) / l2, traffic/hbm) + startup",
    .kinds = 1u << COMPUTE_GROUPED_MATMUL,
    .cost = cost,
};
