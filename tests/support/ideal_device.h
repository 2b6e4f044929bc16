/*
 * ideal_device.h - overrides that turn a cluster into textbook hardware, for closed forms:
 * free links, no start-up costs, no host, memory that is infinitely fast, and matmuls whose
 * time is proportional to their FLOPs.
 */
#ifndef TEST_IDEAL_DEVICE_H
#define TEST_IDEAL_DEVICE_H

#include "stepsim/scenario.h"

static const struct scenario_override IDEAL_DEVICE[] = {
    {"cluster.device.matmul_startup", "0 s"},
    {"cluster.device.matmul_k_half", "0"},
    {"cluster.device.matmul_tile_m", "1"},
    {"cluster.device.matmul_tile_n", "1"},
    {"cluster.device.matmul_efficiency", "1"},
    {"cluster.device.matmul_unaligned_ratio", "1"},
    {"cluster.device.matmul_spill_ratio", "1"},
    {"cluster.device.cores", "1"},
    {"cluster.device.hbm_bandwidth", "1000000 TB/s"},
    {"cluster.device.l2_bandwidth", "1000000 TB/s"},
    {"cluster.device.vector_startup", "0 s"},
    {"cluster.device.attention_startup", "0 s"},
    {"cluster.device.host_eager", "0 s"},
    {"cluster.device.host_graph", "0 s"},
    {"cluster.device.host_moe_sync", "0 s"},
    {"cluster.device.step_overhead", "0 s"},
    {"cluster.device.growth_per_doubling", "0"},
    {"cluster.device.sustained_ratio", "1"},
    {"cluster.device.contention_compute", "1"},
    {"cluster.device.contention_comm", "1"},
    {"cluster.levels.0.bandwidth", "1000000 TB/s"},
    {"cluster.levels.0.latency", "0 s"},
    {"cluster.levels.0.launch", "0 s"},
    {"cluster.levels.1.bandwidth", "1000000 TB/s"},
    {"cluster.levels.1.latency", "0 s"},
    {"cluster.levels.1.launch", "0 s"},
};
#define IDEAL_DEVICE_COUNT (sizeof(IDEAL_DEVICE) / sizeof(IDEAL_DEVICE[0]))

#endif
