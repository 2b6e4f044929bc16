/*
 * compute_internal.h - pieces that several compute models share; private to src/compute.
 */
#ifndef STEPSIM_COMPUTE_INTERNAL_H
#define STEPSIM_COMPUTE_INTERNAL_H

#include "stepsim/compute_cost.h"

/* Appends one line for `explain`; origin_key NULL means derived. */
void compute_term(struct compute_cost *cost, const char *name, double value, const char *unit,
                  const char *origin_key);

/* ---- Matrix products (compute_tiles.c) ---- */

/* `groups` products [m, k] x [k, n] in one kernel. */
struct matmul_shape {
    double groups, m, n, k;
    double element_bytes;
    double result_bytes; /* moved per element of the result; 0: one element is written */
    bool mean_rows; /* m is the mean over groups whose rows differ: tiles are expected values */
    bool padded_k;  /* a k that is no multiple of the alignment costs speed */
};

struct matmul_time {
    double cube_s, hbm_s; /* without start-up; the kernel takes the longer one */
    double result_s;      /* what a wide result adds to cube_s, at the end of each tile */
    double flop, bytes;
    double tiles, waves;
    double occupancy; /* useful share of the slots tiles x waves, 0..1 */
    double k_ratio;   /* k / (k + k_half) */
    double working_set_bytes;
    double spill_speed, align_speed;
};

struct matmul_time compute_matmul_time(const struct matmul_shape *shape,
                                       const struct device_spec *device);
/* Fills a cost from one matrix kernel, start-up added; speed 1 unless the kernel is slower. */
void compute_matmul_cost(const struct matmul_shape *shape, const struct device_spec *device,
                         double speed, bool explain, struct compute_cost *cost);

/* ---- Kernels that only move bytes (compute_stream.c) ---- */

struct stream_shape {
    double bytes; /* counted once each */
    double kernels;
    double traffic_ratio; /* bytes really moved over bytes counted */
    const char *traffic_key;
    bool may_fit_l2; /* what the kernel before wrote may still be there */
};

void compute_stream_cost(const struct stream_shape *shape, const struct device_spec *device,
                         bool explain, struct compute_cost *cost);

#endif
