/*
 * transfers.c - what a network model must know of the programs: which durations are transfers,
 * in what phases, and which ports and shared links every simulated rank has.
 *
 * Kinds of resources (network.h): first the ports, one for all levels with the same link and
 * bandwidth; then the uplinks of each level that has fewer ports than devices or is
 * oversubscribed, which all devices of a domain of the level below share; last the host link of
 * a node, if the copies of its devices together pass what the host has. What can never be full is
 * left out.
 *
 * With fair_share the closed form of a transfer is taken on a cluster without oversubscription and
 * with a port for every device, and links are as fast as their levels say: what is shared
 * or slow is then a resource. With ports these stay in the closed form.
 */
#include <math.h>
#include <string.h>

#include "plan_internal.h"

#include "stepsim/error.h"
#include "stepsim/network.h"

#define SHARE_ONE 4294967296.0 /* of struct network_phase.until */

/* What is shared by the ranks of one domain. */
struct shared_kind {
    uint32_t size;      /* ranks of a domain */
    double capacity[2]; /* in ports */
};

struct transfers {
    const struct network *model;
    uint32_t kind_of_level[LEVELS_MAX];   /* ports */
    uint32_t uplink_of_level[LEVELS_MAX]; /* NO_INDEX: never full */
    uint32_t host_kind;                   /* NO_INDEX: never full */
    uint32_t port_kinds, kinds;
    struct shared_kind shared[NETWORK_KINDS_MAX]; /* [kind - port_kinds] */
    struct network_phase *phases;
    uint32_t phase_count, phase_capacity;
    struct network_transfer *of; /* [number] */
    uint32_t count, capacity;
    uint32_t *number; /* [duration]; NO_INDEX */
    uint32_t number_capacity;
};

static bool shares(const struct transfers *transfers)
{
    return transfers->model == network_find("fair_share");
}

/* ---- Kinds ---- */

static bool same_port(const struct level_spec *a, const struct level_spec *b)
{
    return strcmp(a->link, b->link) == 0 && fabs(a->bytes_per_s - b->bytes_per_s) < 1.0;
}

static uint32_t add_shared(struct transfers *transfers, uint32_t size, double out, double in)
{
    ASSERT(transfers->kinds < NETWORK_KINDS_MAX);
    transfers->shared[transfers->kinds - transfers->port_kinds] =
        (struct shared_kind){.size = size, .capacity = {out, in}};
    return transfers->kinds++;
}

static void find_uplinks(struct transfers *transfers, const struct cluster *cluster)
{
    for (uint32_t level = 1; level < cluster->level_count; level++) {
        const struct level_spec *spec = &cluster->spec->levels[level];
        const uint32_t devices = cluster->level_size[level - 1];
        const double ports = spec->nics > 0 ? fmin(spec->nics, devices) : devices;
        const double capacity = ports / fmax(1.0, spec->oversubscription);
        if (capacity < devices)
            transfers->uplink_of_level[level] = add_shared(transfers, devices, capacity, capacity);
    }
}

static void find_host(struct transfers *transfers, const struct cluster *cluster)
{
    const double host = cluster->spec->host_bytes_per_s;
    const double out = host / cluster->device->host_down_bytes_per_s;
    const double in = host / cluster->device->host_up_bytes_per_s;
    if (fmin(out, in) < cluster->node_size)
        transfers->host_kind = add_shared(transfers, cluster->node_size, out, in);
}

static void find_kinds(struct transfers *transfers, const struct cluster *cluster)
{
    for (uint32_t level = 0; level < LEVELS_MAX; level++)
        transfers->uplink_of_level[level] = NO_INDEX;
    for (uint32_t level = 0; level < cluster->level_count; level++) {
        uint32_t like = 0;
        while (!same_port(&cluster->spec->levels[like], &cluster->spec->levels[level]))
            like++;
        transfers->kind_of_level[level] =
            like < level ? transfers->kind_of_level[like] : transfers->port_kinds++;
    }
    transfers->kinds = transfers->port_kinds;
    transfers->host_kind = NO_INDEX;
    if (shares(transfers)) {
        find_uplinks(transfers, cluster);
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

uint32_t transfers_domains(const struct plan_builder *builder, uint32_t sizes[])
{
    const struct transfers *transfers = builder->transfers;
    uint32_t count = 0;
    for (uint32_t i = 0; transfers != NULL && i < transfers->kinds - transfers->port_kinds; i++)
        sizes[count++] = transfers->shared[i].size;
    return count;
}

/* ---- Durations that are transfers ---- */

static void *grown(void *old, uint32_t count, uint32_t *capacity, size_t size, struct arena *arena)
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
        transfers->number = grown(transfers->number, before, &transfers->number_capacity,
                                  sizeof *transfers->number, builder->arena);
        for (uint32_t i = before; i < transfers->number_capacity; i++)
            transfers->number[i] = NO_INDEX;
    }
    transfers->number[duration] = number;
}

static struct network_phase *add_phase(struct plan_builder *builder)
{
    struct transfers *transfers = builder->transfers;
    transfers->phases = grown(transfers->phases, transfers->phase_count, &transfers->phase_capacity,
                              sizeof *transfers->phases, builder->arena);
    return &transfers->phases[transfers->phase_count++];
}

static void add_transfer(struct plan_builder *builder, uint32_t duration, uint32_t phase_first)
{
    struct transfers *transfers = builder->transfers;
    transfers->of = grown(transfers->of, transfers->count, &transfers->capacity,
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

/* Traffic of a level passes the ports, and the uplinks of all levels below it on the same link. */
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
        for (uint32_t below = 1; below <= level; below++) {
            if (transfers->uplink_of_level[below] != NO_INDEX &&
                same_port(&cluster->spec->levels[below], spec))
                busy[transfers->uplink_of_level[below]] += share;
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

/* ---- Resources of simulated ranks ---- */

struct resources {
    struct network_resource *items;
    uint32_t count, capacity;
};

static uint32_t add_resource(struct resources *resources, double out, double in,
                             struct arena *arena)
{
    resources->items = grown(resources->items, resources->count, &resources->capacity,
                             sizeof *resources->items, arena);
    struct network_resource *resource = &resources->items[resources->count];
    resource->capacity[0] = (int64_t)floor(out * NETWORK_WHOLE);
    resource->capacity[1] = (int64_t)floor(in * NETWORK_WHOLE);
    return resources->count++;
}

/* Factor on the links of the rank behind one kind of ports. */
static double port_factor(const struct plan_builder *builder, uint32_t rank, uint32_t kind)
{
    const struct transfers *transfers = builder->transfers;
    const struct noise_spec *noise = &builder->ask->graph->scenario->noise;
    const struct cluster *cluster = builder->ask->cluster;
    double factor = 1.0;
    if (!shares(transfers))
        return factor;
    for (uint32_t i = 0; i < noise->slow_link_count; i++) {
        const struct slow_link *slow = &noise->slow_links[i];
        for (uint32_t level = 0; slow->rank == rank && level < cluster->level_count; level++) {
            if (transfers->kind_of_level[level] == kind &&
                strcmp(cluster->spec->levels[level].name, slow->level) == 0)
                factor = fmin(factor, slow->factor);
        }
    }
    return factor;
}

/* The domain of a rank as a resource, found by its lowest class (all ranks: by its number), and
 * how many ranks of the domain are like this one. */
static struct network_use shared_use(const struct plan_builder *builder,
                                     const struct shared_kind *shared, uint32_t rank,
                                     uint32_t *resource_of)
{
    const struct layout *layout = builder->ask->graph->layout;
    const uint32_t first = rank / shared->size * shared->size;
    const uint32_t last =
        first + shared->size < layout->world ? first + shared->size : layout->world;
    struct network_use use = {.count = 1, .cap = 1u << NETWORK_SPEED_BITS};
    if (builder->ask->ranks_all) {
        use.resource = resource_of[first];
        return use;
    }
    uint32_t lowest = NO_INDEX;
    const uint32_t own = partition_class(&builder->partition, layout, rank);
    use.count = 0;
    for (uint32_t other = first; other < last; other++) {
        const uint32_t class = partition_class(&builder->partition, layout, other);
        lowest = class < lowest ? class : lowest;
        use.count += class == own;
    }
    use.resource = resource_of[lowest];
    return use;
}

static void add_shared_uses(struct plan_builder *builder, const struct programs *programs,
                            uint32_t kind, struct network_use *uses, struct resources *resources)
{
    const struct transfers *transfers = builder->transfers;
    const struct shared_kind *shared = &transfers->shared[kind - transfers->port_kinds];
    const uint32_t most = builder->ask->ranks_all ? programs->world : builder->partition.count;
    const uint32_t step = builder->ask->ranks_all ? shared->size : 1;
    uint32_t *resource_of = ARENA_ARRAY(builder->arena, most, uint32_t);
    for (uint32_t i = 0; i < most; i += step)
        resource_of[i] =
            add_resource(resources, shared->capacity[0], shared->capacity[1], builder->arena);
    for (uint32_t i = 0; i < programs->rank_count; i++)
        uses[i * transfers->kinds + kind] =
            shared_use(builder, shared, programs->ranks[i].rank, resource_of);
}

const struct network_run *transfers_finish(struct plan_builder *builder,
                                           const struct programs *programs)
{
    struct transfers *transfers = builder->transfers;
    if (transfers == NULL)
        return NULL;
    struct resources resources = {0};
    struct network_use *uses = ARENA_ARRAY(
        builder->arena, (size_t)programs->rank_count * transfers->kinds, struct network_use);
    for (uint32_t i = 0; i < programs->rank_count; i++) {
        for (uint32_t kind = 0; kind < transfers->port_kinds; kind++) {
            const double factor = port_factor(builder, programs->ranks[i].rank, kind);
            uses[i * transfers->kinds + kind] = (struct network_use){
                .resource = add_resource(&resources, factor, factor, builder->arena),
                .count = 1,
                .cap = (uint32_t)fmax(1.0, floor(factor * (1u << NETWORK_SPEED_BITS)))};
        }
    }
    for (uint32_t kind = transfers->port_kinds; kind < transfers->kinds; kind++)
        add_shared_uses(builder, programs, kind, uses, &resources);
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
        .uses = uses,
        .resources = resources.items,
        .resource_count = resources.count,
    };
    return run;
}
