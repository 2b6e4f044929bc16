/*
 * cluster.h - devices, link levels, and which levels a group of ranks spans.
 *
 * Devices are numbered as they are cabled. A level joins `size` devices that lie side by side
 * (innermost level first), so a domain of level l holds devices k*size .. (k+1)*size - 1; the
 * last domain may be smaller (512 devices in supernodes of 384). Rank r is device r, unless a
 * file of hosts or a broken node places it elsewhere: cluster_device(). Without a file of hosts
 * nodes are always full. Traffic between two members of a group uses the innermost level whose
 * domain holds both.
 *
 * Level numbers are those of cluster_spec.levels. A small world uses fewer of them: 4
 * devices of an 8-device node have one level, of size 4.
 */
#ifndef STEPSIM_CLUSTER_H
#define STEPSIM_CLUSTER_H

#include "stepsim/arena.h"
#include "stepsim/scenario.h"

/* What a fault takes away. */
enum fault_kind {
    FAULT_DEVICES,    /* devices: nothing runs on them */
    FAULT_COMPUTE,    /* compute speed of devices */
    FAULT_OWN_LINKS,  /* bandwidth of each device on a level */
    FAULT_NODE_LINKS, /* ... of the ports of a node, which its devices share */
    FAULT_LINKS,      /* ... of the domains below a level, which their devices share */
    FAULT_KIND_COUNT
};

struct cluster_fault {
    enum fault_kind kind;
    uint32_t level;
    uint32_t first, last; /* devices first .. last - 1 */
    double lost;          /* share; losses of one kind and place add up */
};

struct cluster {
    const struct cluster_spec *spec;
    const struct device_spec *device;
    uint32_t devices;
    uint32_t node_size;              /* devices of one node, at most all devices */
    uint32_t level_count;            /* levels that this many devices really use, at least 1 */
    uint32_t level_size[LEVELS_MAX]; /* devices of one domain; the last used holds all devices */
    uint32_t capacity;               /* devices of the cluster, spare ones included */
    const uint32_t *device_of;       /* [devices] of each rank; NULL: rank r is device r */
    const uint32_t *by_device;       /* [devices] ranks in the order of their devices; or NULL */
    const struct cluster_fault *faults;
    uint32_t fault_count;
    const char *const *node_names; /* [capacity / devices_per_node] as the cluster lists them; NULL:
                                      node0, node1 .. */
    const uint32_t *broken_nodes;  /* ascending, those that ranks would otherwise be on */
    uint32_t broken_count;
    uint32_t *scratch; /* with device_of: of this module's functions */
};

/* Where the rank runs. */
static inline uint32_t cluster_device(const struct cluster *cluster, uint32_t rank)
{
    return cluster->device_of != NULL ? cluster->device_of[rank] : rank;
}

/* Ranks by the domain of `size` devices that they run in. Domains without ranks have no number; the
 * others are numbered as they are cabled. */
struct cluster_domains {
    uint32_t count;
    const uint32_t *of;      /* [devices] domain of a rank */
    const uint32_t *first;   /* [count + 1] where the ranks of a domain begin in */
    const uint32_t *members; /* [devices] */
};
struct cluster_domains cluster_domains(const struct cluster *cluster, uint32_t size,
                                       struct arena *arena);

/* Share of the bandwidth of a level that faults of one kind leave to the device of a rank; of
 * the compute speed with FAULT_COMPUTE, whose level is 0. 1: all of it. */
double cluster_speed(const struct cluster *cluster, enum fault_kind kind, uint32_t level,
                     uint32_t rank);
/* The innermost level on the ports of nodes (nics); LEVELS_MAX if there is none. */
uint32_t cluster_nic_level(const struct cluster_spec *spec);
/* Those of one node. */
uint32_t cluster_nics_of_node(const struct cluster_spec *spec);
/* Name of a node, in the arena if it is made up. */
const char *cluster_node_name(const struct cluster *cluster, uint32_t node, struct arena *arena);

/* Errors: levels that do not nest, levels that do not reach all devices, devices that do not
 * fill nodes, faults of what there is not, and hosts that are not there or too few. The cluster
 * points into the scenario, which must outlive it. */
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
