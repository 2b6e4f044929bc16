/*
 * compute_stream.c - time of kernels that are bound by the bytes they move.
 *
 *     time = kernels * startup + bytes * traffic_ratio / rate
 *
 * The rate is the L2's while the bytes of one kernel fit in it, and falls to the HBM's
 * as they grow to twice its size: the part that was pushed out in between has to come
 * from memory again.
 */
#include <math.h>

#include "compute_internal.h"

/* Share of a kernel's bytes that the L2 still holds: all up to its size, none from twice
 * its size on (least recently used data leaves first), a straight line between. */
static double resident_share(double kernel_bytes, double l2_bytes)
{
    if (l2_bytes <= 0.0)
        return 0.0;
    return fmin(1.0, fmax(0.0, 2.0 - kernel_bytes / l2_bytes));
}

void compute_stream_cost(const struct stream_shape *shape, const struct device_spec *device,
                         bool explain, struct compute_cost *cost)
{
    const double kernels = fmax(1.0, shape->kernels);
    const double moved_bytes = shape->bytes * shape->traffic_ratio;
    const double hbm_rate = device->hbm_bytes_per_s * device->hbm_efficiency;
    const double l2_rate = fmax(hbm_rate, device->l2_bytes_per_s);
    const double resident =
        shape->may_fit_l2 ? resident_share(shape->bytes / kernels, device->l2_bytes) : 0.0;
    const double move_s = moved_bytes * (resident / l2_rate + (1.0 - resident) / hbm_rate);
    const double startup_s = kernels * device->vector_startup_s;

    cost->time_s = startup_s + move_s;
    cost->flop = 0.0;
    cost->bytes = moved_bytes * (1.0 - resident);
    if (startup_s > move_s)
        cost->bound = "floor";
    else
        cost->bound = resident > 1.0 / 2.0 ? "l2" : "hbm";
    if (!explain)
        return;
    compute_term(cost, "bytes", shape->bytes, "bytes", NULL);
    compute_term(cost, "traffic_ratio", shape->traffic_ratio, "ratio", shape->traffic_key);
    compute_term(cost, "kernels", kernels, "", NULL);
    if (shape->may_fit_l2) {
        compute_term(cost, "l2_bytes", device->l2_bytes, "bytes", "cluster.device.l2_capacity");
        compute_term(cost, "l2", device->l2_bytes_per_s, "bytes/s", "cluster.device.l2_bandwidth");
        compute_term(cost, "share in l2", resident, "ratio", NULL);
    }
    compute_term(cost, "hbm", device->hbm_bytes_per_s, "bytes/s", "cluster.device.hbm_bandwidth");
    compute_term(cost, "hbm_efficiency", device->hbm_efficiency, "ratio",
                 "cluster.device.hbm_efficiency");
    compute_term(cost, "moving", move_s, "s", NULL);
    compute_term(cost, "startup", device->vector_startup_s, "s", "cluster.device.vector_startup");
}
