/*
 * link_resources.c - which ports and shared links every simulated rank has, and what they carry.
 *
 * A port belongs to one rank. What the ranks of a domain share is one resource per domain; folded,
 * domains whose ranks are of the same classes behave alike and are one, found by its lowest class.
 */
#include <math.h>

#include "transfers.h"

#include "stepsim/error.h"

struct resources {
    struct plan_builder *builder;
    const struct programs *programs;
    struct network_use *uses; /* [simulated rank * kinds + kind] */
    struct network_resource *items;
    uint32_t count, capacity;
};

static uint32_t add_resource(struct resources *resources, double out, double in)
{
    resources->items = transfers_grown(resources->items, resources->count, &resources->capacity,
                                       sizeof *resources->items, resources->builder->arena);
    struct network_resource *resource = &resources->items[resources->count];
    resource->capacity[0] = (int64_t)floor(out * NETWORK_WHOLE);
    resource->capacity[1] = (int64_t)floor(in * NETWORK_WHOLE);
    return resources->count++;
}

/* ---- Ports ---- */

/* Share of one kind of ports that the rank has left. */
static double port_left(const struct plan_builder *builder, uint32_t rank, uint32_t kind)
{
    const struct transfers *transfers = builder->transfers;
    double left = 1.0;
    if (!transfers_share(builder))
        return left;
    const struct link_speeds speeds = link_speeds_of(builder, rank);
    for (uint32_t level = 0; level < builder->ask->cluster->level_count; level++) {
        if (transfers->kind_of_level[level] == kind)
            left = fmin(left, fmin(speeds.slow[level], speeds.left[FAULT_OWN_LINKS][level]));
    }
    return left;
}

static void add_ports(struct resources *resources, uint32_t index)
{
    const struct transfers *transfers = resources->builder->transfers;
    for (uint32_t kind = 0; kind < transfers->port_kinds; kind++) {
        const double left =
            port_left(resources->builder, resources->programs->ranks[index].rank, kind);
        resources->uses[index * transfers->kinds + kind] = (struct network_use){
            .resource = add_resource(resources, left, left),
            .count = 1,
            .cap = (uint32_t)fmax(1.0, floor(left * (1u << NETWORK_SPEED_BITS)))};
    }
}

/* ---- What ranks share ---- */

/* Of the domain in which the rank is. */
static uint32_t add_pool(struct resources *resources, const struct shared_kind *shared,
                         uint32_t rank)
{
    const struct cluster *cluster = resources->builder->ask->cluster;
    const double left = shared->level == NO_LEVEL
                            ? 1.0
                            : cluster_speed(cluster, shared->fault, shared->level, rank);
    return add_resource(resources, shared->capacity[0] * left, shared->capacity[1] * left);
}

/* Ranks of the domain that are like this one, and the lowest class in it. */
static struct network_use folded_use(const struct plan_builder *builder,
                                     const struct cluster_domains *domains, uint32_t rank,
                                     const uint32_t *resource_of)
{
    const struct layout *layout = builder->ask->graph->layout;
    const uint32_t own = partition_class(&builder->partition, layout, rank);
    const uint32_t domain = domains->of[rank];
    uint32_t lowest = NO_INDEX, count = 0;
    for (uint32_t i = domains->first[domain]; i < domains->first[domain + 1]; i++) {
        const uint32_t class = partition_class(&builder->partition, layout, domains->members[i]);
        lowest = class < lowest ? class : lowest;
        count += class == own;
    }
    return (struct network_use){.resource = resource_of[lowest], .count = count};
}

static void add_pools(struct resources *resources, uint32_t kind)
{
    struct plan_builder *builder = resources->builder;
    const struct transfers *transfers = builder->transfers;
    const struct programs *programs = resources->programs;
    const struct shared_kind *shared = &transfers->shared[kind - transfers->port_kinds];
    const bool all = builder->ask->ranks_all;
    const struct cluster_domains domains =
        cluster_domains(builder->ask->cluster, shared->size, builder->arena);
    const uint32_t count = all ? domains.count : builder->partition.count;
    uint32_t *resource_of = ARENA_ARRAY(builder->arena, count, uint32_t);
    for (uint32_t i = 0; i < count; i++)
        resource_of[i] = add_pool(resources, shared,
                                  all ? domains.members[domains.first[i]]
                                      : builder->partition.representative[i]);
    for (uint32_t i = 0; i < programs->rank_count; i++) {
        const uint32_t rank = programs->ranks[i].rank;
        struct network_use *use = &resources->uses[i * transfers->kinds + kind];
        *use = all ? (struct network_use){.resource = resource_of[domains.of[rank]], .count = 1}
                   : folded_use(builder, &domains, rank, resource_of);
        use->cap = 1u << NETWORK_SPEED_BITS;
    }
}

void link_resources_build(struct plan_builder *builder, const struct programs *programs,
                          struct network_run *run)
{
    const struct transfers *transfers = builder->transfers;
    struct resources resources = {.builder = builder, .programs = programs};
    resources.uses = ARENA_ARRAY(builder->arena, (size_t)programs->rank_count * transfers->kinds,
                                 struct network_use);
    for (uint32_t i = 0; i < programs->rank_count; i++)
        add_ports(&resources, i);
    for (uint32_t kind = transfers->port_kinds; kind < transfers->kinds; kind++)
        add_pools(&resources, kind);
    run->uses = resources.uses;
    run->resources = resources.items;
    run->resource_count = resources.count;
}
