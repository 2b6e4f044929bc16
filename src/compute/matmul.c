/*
 * matmul.c - one matrix product on the cube or tensor cores; the model is in compute_tiles.c.
 */
#include "compute_internal.h"

static void cost(const struct compute_ask *ask, const struct device_spec *device, bool explain,
                 struct compute_cost *cost)
{
    const struct matmul_shape shape = {
        .groups = 1.0,
        .m = ask->m,
        .n = ask->n,
        .k = ask->k,
        .element_bytes = ask->weight_bytes_per_element,
        .result_bytes = ask->result_bytes,
        .padded_k = true,
    };
    compute_matmul_cost(&shape, device, 1.0, explain, cost);
    if (ask->groups <= 1.0)
        return;
    /* Experts one after the other: as many kernels as groups. */
    cost->time_s *= ask->groups;
    cost->flop *= ask->groups;
    cost->bytes *= ask->groups;
    if (explain)
        compute_term(cost, "kernels", ask->groups, "", NULL);
}

const struct compute compute_matmul = {
    .name = "matmul",
    .title = "Matrix product by tiles and waves",
    .formula = "max(2mnk / (peak * efficiency * k/(k + k_half) * sqrt(occupancy) * spill * align) "
               "+ mn (result - element) / l2, traffic/hbm) + startup",
    .kinds = 1u << COMPUTE_MATMUL,
    .cost = cost,
};
