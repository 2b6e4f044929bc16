/*
 * cluster.h - devices, link levels, and which levels a group of ranks spans.
 *
 * Ranks are numbered along the devices: rank r is device r. A level joins `size`
 * devices that lie side by side (innermost level first), so a domain of level l holds
 * ranks k*size .. (k+1)*size - 1; the last domain may be smaller (512 devices in
 * supernodes of 384). Nodes are always full. Traffic between two members of a group
 * uses the innermost level whose domain holds both.
 *
 * Level numbers are those of cluster_spec.levels. A small world uses fewer of them: 4
 * devices of an 8-device node have one level, of size 4.
 */
#ifndef STEPSIM_CLUSTER_H
#define STEPSIM_CLUSTER_H

#include "stepsim/arena.h"
#include "stepsim/scenario.h"

struct cluster {
    const struct cluster_spec *spec;
    const struct device_spec *device;
    uint32_t devices;
    uint32_t node_size;              /* devices of one node, at most all devices */
    uint32_t level_count;            /* levels that this many devices really use, at least 1 */
    uint32_t level_size[LEVELS_MAX]; /* devices of one domain; the last used is all devices */
};

/* Errors: levels that do not nest, levels that do not reach all devices, devices that do not
 * fill nodes. The cluster points into the scenario, which must outlive it. */
const struct cluster *cluster_build(const struct scenario *scenario, struct arena *arena,
                                    struct error_list *errors);

/*
 * Where a group sits: the shape that collectives are costed for.
 *
 * Groups may lie unevenly over domains (6 ranks in a row on nodes of 8: some have 4 + 2
 * members). per_domain is the largest number of members in one domain, so it is exact for
 * even groups and for uneven ones the busiest domain.
 */
struct group_span {
    uint32_t size;                   /* members */
    uint32_t stride;                 /* rank distance of the first two members, 1 for one member */
    uint32_t per_domain[LEVELS_MAX]; /* members inside one domain of each level; `size` from
                                        outer_level on */
    uint32_t outer_level;            /* outermost level used; 0 when size is 1 */
    /* Groups of the same kind that have members in one node at the same time and share the node's
     * ports: node size / members per node, rounded up. */
    uint32_t groups_per_node;
};

/* A regular group that starts at rank 0: 0, stride, 2*stride ... (size-1)*stride, all of which
 * must exist. */
struct group_span cluster_group_span(const struct cluster *cluster, uint32_t size, uint32_t stride);

/* Any group: `count` distinct ranks in ascending order. */
struct group_span cluster_members_span(const struct cluster *cluster, const uint32_t *members,
                                       uint32_t count);

/* Innermost level whose domain holds both ranks. */
uint32_t cluster_level_of_pair(const struct cluster *cluster, uint32_t rank_a, uint32_t rank_b);

#endif
