/*
 * transfers.h - what transfers.c and link_resources.c know together: kinds of resources, and
 * the durations that are transfers.
 */
#ifndef STEPSIM_PLAN_TRANSFERS_H
#define STEPSIM_PLAN_TRANSFERS_H

#include "stepsim/network.h"

#include "plan_internal.h"

#define NO_LEVEL UINT32_MAX

/* What is shared by the ranks of one domain. */
struct shared_kind {
    uint32_t size;         /* devices of a domain */
    uint32_t level;        /* traffic of it, and of levels above it on the same ports, passes here;
                              NO_LEVEL: the host link of a node */
    enum fault_kind fault; /* that takes from it */
    double capacity[2];    /* in ports */
};

struct transfers {
    const struct network *model;
    uint32_t kind_of_level[LEVELS_MAX]; /* ports */
    uint32_t host_kind;                 /* NO_INDEX: never full */
    uint32_t port_kinds, kinds;
    struct shared_kind shared[NETWORK_KINDS_MAX]; /* [kind - port_kinds] */
    struct network_phase *phases;
    uint32_t phase_count, phase_capacity;
    struct network_transfer *of; /* [number] */
    uint32_t count, capacity;
    uint32_t *number; /* [duration]; NO_INDEX */
    uint32_t number_capacity;
};

/* The uses of all simulated ranks and the resources, for the run. */
void link_resources_build(struct plan_builder *builder, const struct programs *programs,
                          struct network_run *run);

/* Room for one item more behind `count` of them. */
void *transfers_grown(void *old, uint32_t count, uint32_t *capacity, size_t size,
                      struct arena *arena);

#endif
