/*
 * device_builder.h - devices and clusters made by hand, for tests that need no files.
 *
 * The numbers are round or public ones; each test states what it relies on. A cluster keeps
 * its spec beside it, so it must not be moved after cluster_builder_finish().
 */
#ifndef TEST_DEVICE_BUILDER_H
#define TEST_DEVICE_BUILDER_H

#include <string.h>

#include "stepsim/cluster.h"
#include "stepsim/scenario.h"

/* A device on which every rate is a round number: 100 TFLOP/s, 10 cores of tiles 128 x 256, memory
 * of 1 TB/s, L2 of 100 MB at 4 TB/s, no start-up, no loss. Tests set what they look at. */
static inline struct device_spec device_round(void)
{
    return (struct device_spec){
        .name = "round",
        .peak_flop_per_s = 100e12,
        .marketed_flop_per_s = 100e12,
        .vector_flop_per_s = 4e12,
        .cores = 10.0,
        .hbm_bytes = 64e9,
        .usable_bytes = 60e9,
        .hbm_bytes_per_s = 1e12,
        .hbm_efficiency = 1.0,
        .l2_bytes = 100e6,
        .l2_bytes_per_s = 4e12,
        .matmul_efficiency = 1.0,
        .matmul_k_half = 0.0,
        .matmul_tile_m = 128.0,
        .matmul_tile_n = 256.0,
        .matmul_unaligned_ratio = 1.0,
        .matmul_align = 16.0,
        .matmul_spill_ratio = 1.0,
        .grouped_matmul_ratio = 1.0,
        .attention_efficiency = 0.5,
        .attention_backward_ratio = 1.0,
        .vector_traffic_ratio = 1.0,
        .permute_traffic_ratio = 1.0,
    };
}

struct cluster_builder {
    struct cluster_spec spec;
    struct cluster cluster;
};

/* A lossless level without latency; the caller changes what it tests. */
static inline struct level_spec *cluster_builder_level(struct cluster_builder *builder,
                                                       uint32_t size, enum level_topology topology,
                                                       double bytes_per_s)
{
    struct level_spec *level = &builder->spec.levels[builder->spec.level_count++];
    *level = (struct level_spec){
        .name = "level",
        .size = size,
        .topology = topology,
        .bytes_per_s = bytes_per_s,
        .efficiency = 1.0,
        .alltoall_efficiency = 1.0,
        .oversubscription = 1.0,
    };
    return level;
}

static inline void cluster_builder_start(struct cluster_builder *builder, const char *rules,
                                         uint32_t devices_per_node)
{
    memset(builder, 0, sizeof(*builder));
    builder->spec.name = "built";
    builder->spec.collectives = rules;
    builder->spec.devices_per_node = devices_per_node;
}

static inline const struct cluster *cluster_builder_finish(struct cluster_builder *builder,
                                                           uint32_t devices)
{
    struct cluster *cluster = &builder->cluster;
    *cluster = (struct cluster){
        .spec = &builder->spec,
        .device = &builder->spec.device,
        .devices = devices,
        .node_size =
            builder->spec.devices_per_node < devices ? builder->spec.devices_per_node : devices,
    };
    for (uint32_t i = 0; i < builder->spec.level_count; i++) {
        const uint32_t size = builder->spec.levels[i].size;
        const bool all = size == 0 || size >= devices;
        cluster->level_size[i] = all ? devices : size;
        cluster->level_count = i + 1;
        if (all)
            break;
    }
    return cluster;
}

/* Nodes of eight in a full mesh of 7 x 10 GB/s links, 10 GB/s per device between nodes, no
 * latencies. */
static inline const struct cluster *cluster_mesh_nodes(struct cluster_builder *builder,
                                                       uint32_t devices)
{
    cluster_builder_start(builder, "hccl_a2", 8);
    cluster_builder_level(builder, 8, TOPOLOGY_MESH, 70e9);
    cluster_builder_level(builder, 0, TOPOLOGY_SWITCH, 10e9);
    return cluster_builder_finish(builder, devices);
}

#endif
