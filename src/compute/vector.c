/*
 * vector.c - element-wise kernels and norms: bytes moved, and a start-up per kernel.
 */
#include "compute_internal.h"

static void cost(const struct compute_ask *ask, const struct device_spec *device, bool explain,
                 struct compute_cost *cost)
{
    const struct stream_shape shape = {
        .bytes = ask->bytes,
        .kernels = ask->kernels,
        .traffic_ratio = device->vector_traffic_ratio,
        .traffic_key = "cluster.device.vector_traffic_ratio",
        .may_fit_l2 = true,
    };
    compute_stream_cost(&shape, device, explain, cost);
}

const struct compute compute_vector = {
    .name = "vector",
    .title = "Element-wise kernels and norms",
    .formula = "kernels * startup + bytes * traffic_ratio * (in_l2/l2 + (1 - in_l2)/hbm)",
    .kinds = 1u << COMPUTE_VECTOR,
    .cost = cost,
};
