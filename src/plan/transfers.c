/*
 * transfers.c - what a network model must know of the programs: which durations are transfers,
 * in what phases, and how busy these keep each kind of resource.
 *
 * Kinds of resources (network.h): first the ports, one for all levels with the same link and
 * bandwidth; then the uplinks of each level that has fewer ports than devices or is
 * oversubscribed, which all devices of a domain of the level below share; the ports of a node where
 * one is broken; last the host link of a node, if the copies of its devices together pass what
 * the host has. What can never be full is left out.
 *
 * With fair_share the closed form of a transfer is taken on a cluster without oversubscription and
 * with a port for every device, and links are as fast as their levels say: what is shared
 * or slow is then a resource. With ports these stay in the closed form.
 */
#include <math.h>
#include <string.h>

#include "transfers.h"

#include "stepsim/error.h"

#define SHARE_ONE 4294967296.0 /* of struct network_phase.until */

static bool shares(const struct transfers *transfers)
{
    return transfers->model == network_find("fair_share");
}

/* ---- Kinds ---- */

static uint32_t add_shared(struct transfers *transfers, const struct shared_kind *kind)
{
    ASSERT(transfers->kinds < NETWORK_KINDS_MAX);
    transfers->shared[transfers->kinds - transfers->port_kinds] = *kind;
    return transfers->kinds++;
}

static bool has_fault(const struct cluster *cluster, enum fault_kind kind, uint32_t level)
{
    bool found = false;
    for (uint32_t i = 0; i < cluster->fault_count; i++)
        found = found || (cluster->faults[i].kind == kind && cluster->faults[i].level == level);
    return found;
}

/* Uplinks that are too narrow for all devices below them, or are so somewhere. */
static void find_uplinks(struct transfers *transfers, const struct cluster *cluster)
{
    for (uint32_t level = 1; level < cluster->level_count; level++) {
        const struct level_spec *spec = &cluster->spec->levels[level];
        const uint32_t devices = cluster->level_size[level - 1];
        const double ports = spec->nics > 0 ? fmin(spec->nics, devices) : devices;
        const double capacity = ports / fmax(1.0, spec->oversubscription);
        if (capacity < devices || has_fault(cluster, FAULT_LINKS, level))
            add_shared(transfers, &(struct shared_kind){.size = devices,
                                                        .level = level,
                                                        .fault = FAULT_LINKS,
                                                        .capacity = {capacity, capacity}});
    }
}

/* The ports of a node, which its devices share where one is broken. */
static void find_node_ports(struct transfers *transfers, const struct cluster *cluster)
{
    const uint32_t level = cluster_nic_level(cluster->spec);
    if (level >= cluster->level_count || !has_fault(cluster, FAULT_NODE_LINKS, level))
        return;
    const double nics = cluster_nics_of_node(cluster->spec);
    add_shared(transfers, &(struct shared_kind){.size = cluster->spec->devices_per_node,
                                                .level = level,
                                                .fault = FAULT_NODE_LINKS,
                                                .capacity = {nics, nics}});
}

static void find_host(struct transfers *transfers, const struct cluster *cluster)
{
    const double host = cluster->spec->host_bytes_per_s;
    const double out = host / cluster->device->host_down_bytes_per_s;
    const double in = host / cluster->device->host_up_bytes_per_s;
    if (fmin(out, in) < cluster->node_size)
        transfers->host_kind = add_shared(
            transfers, &(struct shared_kind){
                           .size = cluster->node_size, .level = NO_LEVEL, .capacity = {out, in}});
}

static void find_kinds(struct transfers *transfers, const struct cluster *cluster)
{
    for (uint32_t level = 0; level < cluster->level_count; level++) {
        uint32_t like = 0;
        while (!link_same_port(&cluster->spec->levels[like], &cluster->spec->levels[level]))
            like++;
        transfers->kind_of_level[level] =
            like < level ? transfers->kind_of_level[like] : transfers->port_kinds++;
    }
    transfers->kinds = transfers->port_kinds;
    transfers->host_kind = NO_INDEX;
    if (shares(transfers)) {
        find_uplinks(transfers, cluster);
        find_node_ports(transfers, cluster);
        find_host(transfers, cluster);
    }
}

static const struct cluster *without_sharing(const struct cluster *cluster, struct arena *arena)
{
    struct cluster *alone = ARENA_NEW(arena, struct cluster);
    struct cluster_spec *spec = ARENA_NEW(arena, struct cluster_spec);
    *alone = *cluster;
    *spec = *cluster->spec;
    for (uint32_t level = 0; level < LEVELS_MAX; level++) {
        spec->levels[level].oversubscription = 1.0;
        spec->levels[level].nics = 0;
    }
    alone->spec = spec;
    return alone;
}

void transfers_start(struct plan_builder *builder)
{
    const struct network *model = network_find(builder->ask->graph->scenario->network);
    ASSERT(model != NULL);
    if (model->create == NULL)
        return;
    struct transfers *transfers = ARENA_NEW(builder->arena, struct transfers);
    transfers->model = model;
    find_kinds(transfers, builder->ask->cluster);
    builder->transfers = transfers;
    if (shares(transfers))
        builder->own_ask.cluster = without_sharing(builder->ask->cluster, builder->arena);
}

bool transfers_share(const struct plan_builder *builder)
{
    return builder->transfers != NULL && shares(builder->transfers);
}

uint32_t transfers_domains(const struct plan_builder *builder, struct cluster_domains domains[])
{
    const struct transfers *transfers = builder->transfers;
    uint32_t count = 0;
    for (uint32_t i = 0; transfers != NULL && i < transfers->kinds - transfers->port_kinds; i++)
        domains[count++] =
            cluster_domains(builder->ask->cluster, transfers->shared[i].size, builder->arena);
    return count;
}

/* ---- Durations that are transfers ---- */

void *transfers_grown(void *old, uint32_t count, uint32_t *capacity, size_t size,
                      struct arena *arena)
{
    if (count < *capacity)
        return old;
    const uint32_t larger = *capacity ? *capacity * 2 : 64;
    void *data = arena_calloc(arena, larger, size);
    if (count > 0)
        memcpy(data, old, count * size);
    *capacity = larger;
    return data;
}

static void set_number(struct plan_builder *builder, uint32_t duration, uint32_t number)
{
    struct transfers *transfers = builder->transfers;
    while (duration >= transfers->number_capacity) {
        const uint32_t before = transfers->number_capacity;
        transfers->number = transfers_grown(transfers->number, before, &transfers->number_capacity,
                                            sizeof *transfers->number, builder->arena);
        for (uint32_t i = before; i < transfers->number_capacity; i++)
            transfers->number[i] = NO_INDEX;
    }
    transfers->number[duration] = number;
}

static struct network_phase *add_phase(struct plan_builder *builder)
{
    struct transfers *transfers = builder->transfers;
    transfers->phases =
        transfers_grown(transfers->phases, transfers->phase_count, &transfers->phase_capacity,
                        sizeof *transfers->phases, builder->arena);
    return &transfers->phases[transfers->phase_count++];
}

static void add_transfer(struct plan_builder *builder, uint32_t duration, uint32_t phase_first)
{
    struct transfers *transfers = builder->transfers;
    transfers->of = transfers_grown(transfers->of, transfers->count, &transfers->capacity,
                                    sizeof *transfers->of, builder->arena);
    transfers->of[transfers->count] = (struct network_transfer){
        .phase_first = phase_first, .phase_count = transfers->phase_count - phase_first};
    set_number(builder, duration, transfers->count++);
}

/* Rounded to the nearest unit, and never so little that it is free. */
static uint32_t demand_of(double busy)
{
    const double units = round(busy * NETWORK_WHOLE);
    return (uint32_t)fmin(fmax(units, 1.0), NETWORK_WHOLE);
}

/* Traffic of a level passes the ports, and what is shared on the same link at all levels up to
 * it. */
static void add_demands(const struct plan_builder *builder, const struct collective_phase *from,
                        struct network_phase *to)
{
    const struct transfers *transfers = builder->transfers;
    const struct cluster *cluster = builder->ask->cluster;
    double busy[NETWORK_KINDS_MAX] = {0};
    for (uint32_t level = 0; level < cluster->level_count; level++) {
        const struct level_spec *spec = &cluster->spec->levels[level];
        const double efficiency = from->exchange ? spec->alltoall_efficiency : spec->efficiency;
        const double share =
            from->sent_bytes[level] / (spec->bytes_per_s * efficiency * from->time_s);
        busy[transfers->kind_of_level[level]] += share;
        for (uint32_t kind = transfers->port_kinds; kind < transfers->kinds; kind++) {
            const uint32_t below = transfers->shared[kind - transfers->port_kinds].level;
            if (below <= level && link_same_port(&cluster->spec->levels[below], spec))
                busy[kind] += share;
        }
    }
    for (uint32_t kind = 0; kind < transfers->kinds; kind++)
        to->demand[kind] = busy[kind] > 0.0 ? demand_of(busy[kind]) : 0;
}

void transfers_note(struct plan_builder *builder, uint32_t duration,
                    const struct collective_ask *ask)
{
    if (builder->transfers == NULL)
        return;
    const struct collective_ask whole = plan_collective_whole(builder, ask);
    struct collective_phase parts[COLLECTIVE_PHASES_MAX];
    const uint32_t count = collective_phases(&whole, parts);
    double total_s = 0.0, until_s = 0.0;
    for (uint32_t i = 0; i < count; i++)
        total_s += parts[i].time_s;
    const uint32_t first = builder->transfers->phase_count;
    for (uint32_t i = 0; i < count; i++) {
        until_s += parts[i].time_s;
        if (parts[i].time_s <= 0.0)
            continue;
        struct network_phase *phase = add_phase(builder);
        phase->until = (uint32_t)fmin(until_s / total_s * SHARE_ONE, SHARE_ONE - 1.0);
        phase->steps = parts[i].steps;
        add_demands(builder, &parts[i], phase);
    }
    if (builder->transfers->phase_count > first)
        add_transfer(builder, duration, first);
}

void transfers_note_copy(struct plan_builder *builder, uint32_t duration)
{
    if (builder->transfers == NULL || builder->transfers->host_kind == NO_INDEX)
        return;
    const uint32_t first = builder->transfers->phase_count;
    struct network_phase *phase = add_phase(builder);
    *phase = (struct network_phase){.until = UINT32_MAX, .steps = 1};
    phase->demand[builder->transfers->host_kind] = NETWORK_WHOLE;
    add_transfer(builder, duration, first);
}

void transfers_like(struct plan_builder *builder, uint32_t duration, uint32_t like)
{
    const struct transfers *transfers = builder->transfers;
    if (transfers != NULL && like < transfers->number_capacity &&
        transfers->number[like] != NO_INDEX)
        set_number(builder, duration, transfers->number[like]);
}

const struct network_run *transfers_finish(struct plan_builder *builder,
                                           const struct programs *programs)
{
    struct transfers *transfers = builder->transfers;
    if (transfers == NULL)
        return NULL;
    if (builder->costs.duration_count > 0)
        set_number(builder, builder->costs.duration_count, NO_INDEX); /* as long as durations */
    struct network_run *run = ARENA_NEW(builder->arena, struct network_run);
    *run = (struct network_run){
        .model = transfers->model,
        .kind_count = transfers->kinds,
        .port_kind_count = transfers->port_kinds,
        .phases = transfers->phases,
        .transfers = transfers->of,
        .transfer_of = transfers->number,
    };
    link_resources_build(builder, programs, run);
    return run;
}
