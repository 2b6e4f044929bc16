/*
 * permute.c - gathering tokens by expert and scattering them back.
 *
 * Rows are read and written at addresses that the routing decides, so the traffic ratio
 * is the device's own for this kind. The same L2 rule as for vector kernels holds.
 */
#include "compute_internal.h"

static void cost(const struct compute_ask *ask, const struct device_spec *device, bool explain,
                 struct compute_cost *cost)
{
    const struct stream_shape shape = {
        .bytes = ask->bytes,
        .kernels = ask->kernels,
        .traffic_ratio = device->permute_traffic_ratio,
        .traffic_key = "cluster.device.permute_traffic_ratio",
        .may_fit_l2 = true,
    };
    compute_stream_cost(&shape, device, explain, cost);
}

const struct compute compute_permute = {
    .name = "permute",
    .title = "Gather and scatter of tokens",
    .formula = "kernels * startup + bytes * traffic_ratio * (in_l2/l2 + (1 - in_l2)/hbm)",
    .kinds = 1u << COMPUTE_PERMUTE,
    .cost = cost,
};
