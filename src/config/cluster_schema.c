/*
 * cluster_schema.c - the keys of clusters, their levels, and devices.
 *
 * Every number of hardware is a fact: a value with its source and its grade.
 */
#include "config/schema_rows.h"

/* ---- Device: configs/devices/NAME.yaml ---- */

#define SCHEMA_STRUCT struct device_spec

#define FACT(key, field, dimension_) ROW(SCHEMA_FACT, key, field), .dimension = (dimension_)
#define FACT_REQUIRED                .flags = SCHEMA_REQUIRED

/* A share, speed ratio or efficiency: above 0, at most 1. */
#define SHARE RANGE(1e-6, 1)

static const struct schema_row device_rows[] = {
    {ROW(SCHEMA_STRING, "title", title), .flags = SCHEMA_LABEL, .example = "Ascend 910B3",
     .meaning = "Name for people."},
    {ROW(SCHEMA_STRING, "vendor", vendor), REQUIRED("ascend"), .meaning = "ascend or nvidia."},
    {ROW(SCHEMA_STRING, "unit", unit), REQUIRED("die"), .meaning = "What one rank is: die or gpu."},
    {ROW(SCHEMA_STRING_LIST, "aliases", aliases), COUNTED(alias_count), .flags = SCHEMA_LABEL,
     .fallback = "[]", .meaning = "Other exact names under which `device:` finds the file."},
    {FACT("peak", peak_flop_per_s, DIMENSION_FLOP_PER_S), RANGE(1e9, 1e18), FACT_REQUIRED,
     .meaning = "Peak of the cube or tensor cores, dense bf16."},
    {FACT("marketed", marketed_flop_per_s, DIMENSION_FLOP_PER_S), RANGE(1e9, 1e18), FACT_REQUIRED,
     .meaning = "Peak as advertised, dense bf16."},
    {FACT("vector", vector_flop_per_s, DIMENSION_FLOP_PER_S), RANGE(1e6, 1e18), FACT_REQUIRED,
     .meaning = "Peak of the vector cores, fp32."},
    {FACT("cores", cores, DIMENSION_NUMBER), RANGE(1, 100000), FACT_REQUIRED,
     .meaning = "Cube cores or streaming multiprocessors that a kernel can use."},
    {FACT("hbm_capacity", hbm_bytes, DIMENSION_BYTES), RANGE(1e6, 1e15), FACT_REQUIRED,
     .meaning = "Nominal memory."},
    {FACT("hbm_usable", usable_bytes, DIMENSION_BYTES), RANGE(1e6, 1e15), FACT_REQUIRED,
     .meaning = "Memory that a training process can allocate."},
    {FACT("hbm_bandwidth", hbm_bytes_per_s, DIMENSION_BYTES_PER_S), RANGE(1e6, 1e18), FACT_REQUIRED,
     .meaning = "Nominal memory bandwidth."},
    {FACT("hbm_efficiency", hbm_efficiency, DIMENSION_RATIO), SHARE, FACT_REQUIRED,
     .meaning = "Reachable share of the memory bandwidth."},
    {FACT("l2_capacity", l2_bytes, DIMENSION_BYTES), RANGE(0, 1e12), FACT_REQUIRED,
     .meaning = "Second-level cache."},
    {FACT("l2_bandwidth", l2_bytes_per_s, DIMENSION_BYTES_PER_S), RANGE(1e6, 1e18), FACT_REQUIRED,
     .meaning = "Bandwidth of the second-level cache."},
    {FACT("host_down", host_down_bytes_per_s, DIMENSION_BYTES_PER_S), RANGE(1e6, 1e15),
     FACT_REQUIRED, .meaning = "Device to host, per device."},
    {FACT("host_up", host_up_bytes_per_s, DIMENSION_BYTES_PER_S), RANGE(1e6, 1e15), FACT_REQUIRED,
     .meaning = "Host to device, per device."},
    {FACT("matmul_efficiency", matmul_efficiency, DIMENSION_RATIO), SHARE, FACT_REQUIRED,
     .meaning = "Share of the peak that large, aligned matmuls reach."},
    {FACT("matmul_k_half", matmul_k_half, DIMENSION_NUMBER), RANGE(0, 1e6), FACT_REQUIRED,
     .meaning = "Inner dimension, in elements, at which matmul efficiency halves."},
    {FACT("matmul_tile_m", matmul_tile_m, DIMENSION_NUMBER), RANGE(1, 65536), FACT_REQUIRED,
     .meaning = "Rows of an output tile."},
    {FACT("matmul_tile_n", matmul_tile_n, DIMENSION_NUMBER), RANGE(1, 65536), FACT_REQUIRED,
     .meaning = "Columns of an output tile."},
    {FACT("matmul_unaligned_ratio", matmul_unaligned_ratio, DIMENSION_RATIO), SHARE, FACT_REQUIRED,
     .meaning = "Speed where the inner dimension is not a multiple of matmul_align."},
    {FACT("matmul_align", matmul_align, DIMENSION_NUMBER), RANGE(1, 65536), FACT_REQUIRED,
     .meaning = "Alignment of the inner dimension, in elements."},
    {FACT("matmul_spill_ratio", matmul_spill_ratio, DIMENSION_RATIO), SHARE, FACT_REQUIRED,
     .meaning = "Speed where the working set passes the second-level cache."},
    {FACT("matmul_startup", matmul_startup_s, DIMENSION_SECONDS), RANGE(0, 1), FACT_REQUIRED,
     .meaning = "Fixed time of one matmul kernel."},
    {FACT("grouped_matmul_ratio", grouped_matmul_ratio, DIMENSION_RATIO), SHARE, FACT_REQUIRED,
     .meaning = "Speed of a grouped matmul over one matmul of equal tiles."},
    {FACT("attention_efficiency", attention_efficiency, DIMENSION_RATIO), SHARE, FACT_REQUIRED,
     .meaning = "Share of the peak in flash attention forward, long sequence, head size 128."},
    {FACT("attention_seq_half", attention_seq_half, DIMENSION_NUMBER), RANGE(0, 1e9), FACT_REQUIRED,
     .meaning = "Number of keys at which attention efficiency halves."},
    {FACT("attention_backward_ratio", attention_backward_ratio, DIMENSION_RATIO), RANGE(1e-6, 4),
     FACT_REQUIRED, .meaning = "Efficiency of the backward pass over that of the forward pass."},
    {FACT("attention_startup", attention_startup_s, DIMENSION_SECONDS), RANGE(0, 1), FACT_REQUIRED,
     .meaning = "Fixed time of one attention kernel."},
    {FACT("vector_traffic_ratio", vector_traffic_ratio, DIMENSION_RATIO), RANGE(0.01, 100),
     FACT_REQUIRED, .meaning = "Bytes that vector kernels really move over bytes counted."},
    {FACT("vector_startup", vector_startup_s, DIMENSION_SECONDS), RANGE(0, 1), FACT_REQUIRED,
     .meaning = "Least time of one vector kernel."},
    {FACT("permute_traffic_ratio", permute_traffic_ratio, DIMENSION_RATIO), RANGE(0.01, 100),
     FACT_REQUIRED, .meaning = "The same for permute and unpermute of tokens."},
    {FACT("host_eager", host_eager_s, DIMENSION_SECONDS), RANGE(0, 10), FACT_REQUIRED,
     .meaning = "Time the host needs to issue one kernel, eager mode."},
    {FACT("host_graph", host_graph_s, DIMENSION_SECONDS), RANGE(0, 10), FACT_REQUIRED,
     .meaning = "The same with captured graphs."},
    {FACT("host_moe_sync", host_moe_sync_s, DIMENSION_SECONDS), RANGE(0, 10), FACT_REQUIRED,
     .meaning = "Device-to-host synchronisation of one MoE layer, eager mode."},
    {FACT("step_overhead", step_overhead_s, DIMENSION_SECONDS), RANGE(0, 1000), FACT_REQUIRED,
     .meaning = "Data loading, gradient clipping and logging of one step."},
    {FACT("growth_per_doubling", growth_per_doubling, DIMENSION_RATIO), RANGE(0, 1), FACT_REQUIRED,
     .meaning = "Slow-down per doubling of devices beyond one node."},
    {FACT("sustained_ratio", sustained_ratio, DIMENSION_RATIO), SHARE, FACT_REQUIRED,
     .meaning = "Speed of compute kernels inside a training run over their speed alone."},
    {FACT("contention_compute", contention_compute, DIMENSION_RATIO), RANGE(1, 10), FACT_REQUIRED,
     .meaning = "Factor on compute time while communication runs beside it."},
    {FACT("contention_comm", contention_comm, DIMENSION_RATIO), RANGE(1, 10), FACT_REQUIRED,
     .meaning = "Factor on communication time while compute runs beside it."},
    {FACT("mc2_exposed_ratio", mc2_exposed_ratio, DIMENSION_RATIO), RANGE(0, 1), FACT_REQUIRED,
     .meaning = "Share of a collective fused with its matmul (MC2) that stays exposed."},
    {FACT("coc_exposed_ratio", coc_exposed_ratio, DIMENSION_RATIO), RANGE(0, 1), FACT_REQUIRED,
     .meaning = "The same for collectives pipelined with the matmul in slices (CoC)."},
};

const struct schema_table device_schema = {
    .name = "device",
    .title = "Device",
    .folder = "devices",
    .noun = "device",
    .rows = device_rows,
    .row_count = COUNT_OF(device_rows),
    .struct_size = sizeof(struct device_spec),
    .origins_offset = offsetof(struct device_spec, origins),
};

/* ---- Level of a cluster ---- */

#undef SCHEMA_STRUCT
#define SCHEMA_STRUCT struct level_spec

static const struct schema_choice topologies[] = {
    [TOPOLOGY_MESH] = {"mesh", "Every device has a link to every other one.", NULL},
    [TOPOLOGY_SWITCH] = {"switch", "All devices hang on switches.", NULL},
    [TOPOLOGY_RING] = {"ring", "Each device has links to two neighbours.", NULL},
};

static const struct schema_row level_rows[] = {
    {ROW(SCHEMA_STRING, "name", name), REQUIRED("node"),
     .meaning = "Name of the level: package, node, supernode, cluster."},
    {ROW(SCHEMA_UINT, "size", size), RANGE(1, RANKS_MAX), .zero_word = "all", REQUIRED("8"),
     .meaning = "Devices in one domain of the level; `all` for the whole cluster."},
    {ROW(SCHEMA_CHOICE, "topology", topology), CHOICES(topologies), REQUIRED("mesh"),
     .meaning = "How the links connect the domain."},
    {ROW(SCHEMA_STRING, "link", link), REQUIRED("hccs"),
     .meaning = "Kind of link: hccs, roce, nvlink."},
    {FACT("bandwidth", bytes_per_s, DIMENSION_BYTES_PER_S), RANGE(1e3, 1e18), FACT_REQUIRED,
     .meaning = "Per device and direction, all its links of the level together."},
    {FACT("efficiency", efficiency, DIMENSION_RATIO), SHARE, FACT_REQUIRED,
     .meaning = "Reachable share for reduce-scatter, all-gather, all-reduce, and send-receive."},
    {FACT("alltoall_efficiency", alltoall_efficiency, DIMENSION_RATIO), SHARE, FACT_REQUIRED,
     .meaning = "Reachable share for all-to-all."},
    {FACT("latency", latency_s, DIMENSION_SECONDS), RANGE(0, 1), FACT_REQUIRED,
     .meaning = "One step of a collective (alpha)."},
    {FACT("launch", launch_s, DIMENSION_SECONDS), RANGE(0, 1), FACT_REQUIRED,
     .meaning = "Fixed cost of one collective on the level."},
    {FACT("oversubscription", oversubscription, DIMENSION_RATIO), RANGE(1, 1000), FACT_REQUIRED,
     .meaning = "Bandwidth below over bandwidth above the switches; 1 is non-blocking."},
    {ROW(SCHEMA_UINT, "nics", nics), RANGE(0, RANKS_MAX), .fallback = "0",
     .meaning = "Ports of the level in one domain of the level below; 0 for one per device."},
    {ROW(SCHEMA_UINT, "switches", switches), RANGE(1, 65536), .fallback = "1",
     .meaning = "Switches that share the traffic of one domain of the level: spines, planes, "
                "rails. A broken one takes its share with it."},
};

const struct schema_table level_schema = {
    .name = "level",
    .title = "Level of a cluster",
    .noun = "level",
    .rows = level_rows,
    .row_count = COUNT_OF(level_rows),
    .struct_size = sizeof(struct level_spec),
    .origins_offset = offsetof(struct level_spec, origins),
};

/* ---- Cluster: configs/clusters/NAME.yaml ---- */

#undef SCHEMA_STRUCT
#define SCHEMA_STRUCT struct cluster_spec

static const struct schema_row cluster_rows[] = {
    {ROW(SCHEMA_STRING, "title", title), .flags = SCHEMA_LABEL, .example = "Atlas 800T A2",
     .meaning = "Name for people."},
    {ROW(SCHEMA_INCLUDE, "device", device), .items = &device_schema, REQUIRED("ascend_910b3"),
     .meaning = "What one rank is: a name in configs/devices, a path, or a map."},
    {ROW(SCHEMA_NAME, "collectives", collectives), REQUIRED("hccl_a2"),
     .meaning = "Rules by which collective algorithms are selected: hccl_a2, hccl_a3, nccl."},
    {ROW(SCHEMA_UINT, "devices_per_node", devices_per_node), RANGE(1, 65536), REQUIRED("8"),
     .meaning = "Devices that share a host."},
    {ROW(SCHEMA_STRING, "hosts", hosts), .example = "hosts.txt",
     .meaning = "File with the name of every node, one per line, in the order in which they are "
                "cabled; without it they are node0, node1 and so on."},
    {FACT("host_bandwidth", host_bytes_per_s, DIMENSION_BYTES_PER_S), RANGE(1e6, 1e15),
     FACT_REQUIRED,
     .meaning = "Host memory bandwidth for copies of all devices of a node, one direction."},
    {ROW(SCHEMA_LEVELS, "levels", levels), COUNTED(level_count), .items = &level_schema,
     RANGE(1, LEVELS_MAX), .flags = SCHEMA_REQUIRED,
     .meaning = "Levels of the fabric, innermost first; each joins whole domains of the one "
                "before, the last reaches all devices."},
};

const struct schema_table cluster_schema = {
    .name = "cluster",
    .title = "Cluster",
    .folder = "clusters",
    .noun = "cluster",
    .rows = cluster_rows,
    .row_count = COUNT_OF(cluster_rows),
    .struct_size = sizeof(struct cluster_spec),
    .origins_offset = offsetof(struct cluster_spec, origins),
};
