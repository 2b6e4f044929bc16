/*
 * optimizer.c - the update of weights and states, one pass over all of them.
 *
 * The states are far larger than the L2 and are touched once per step, so every byte
 * moves through the HBM, and a fused update moves none twice.
 */
#include "compute_internal.h"

static void cost(const struct compute_ask *ask, const struct device_spec *device, bool explain,
                 struct compute_cost *cost)
{
    const struct stream_shape shape = {
        .bytes = ask->bytes,
        .kernels = ask->kernels,
        .traffic_ratio = 1.0,
    };
    compute_stream_cost(&shape, device, explain, cost);
}

const struct compute compute_optimizer = {
    .name = "optimizer",
    .title = "Optimizer update",
    .formula = "kernels * startup + bytes/hbm",
    .kinds = 1u << COMPUTE_OPTIMIZER,
    .cost = cost,
};
