/*
 * places.c - which device every rank has.
 *
 * Ranks fill the nodes in the order of the file of hosts, or in that of the cables, and pass
 * over broken ones. How many nodes there are beyond those that the job needs, the cluster says: by
 * the size of its outermost level, or by its own list of hosts.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster_internal.h"

#include "stepsim/error.h"

#define CLUSTER_KEY  "cluster.hosts"
#define PARALLEL_KEY "parallel.hosts"

/* Nodes in the order in which ranks fill them. */
struct places {
    const struct cluster_input *input;
    struct cluster *cluster;
    uint32_t *device_of;
    uint32_t count; /* ranks placed */
    uint32_t lost;  /* slots on broken nodes */
};

/* `all` is as many nodes as the job needs, or as its file of hosts has. */
static uint32_t devices_of_all(const struct cluster_input *input, const struct cluster *cluster)
{
    const uint32_t node = cluster->spec->devices_per_node;
    const uint32_t nodes = (cluster->devices + node - 1) / node;
    return node * (nodes > input->hosts.count ? nodes : input->hosts.count);
}

bool places_count(struct cluster_input *input, struct cluster *cluster)
{
    const struct cluster_spec *spec = cluster->spec;
    const char *file = input->scenario->parallel.hosts;
    if (file != NULL && !hosts_read(input, PARALLEL_KEY, file, &input->hosts))
        return false;
    const uint32_t outer = spec->levels[spec->level_count - 1].size;
    cluster->capacity = outer != 0 ? outer : devices_of_all(input, cluster);
    if (spec->hosts == NULL)
        return true;
    struct host_list hosts;
    if (!hosts_read(input, CLUSTER_KEY, spec->hosts, &hosts))
        return false;
    const uint64_t listed = (uint64_t)hosts.count * spec->devices_per_node;
    if (listed < cluster->devices || (outer != 0 && listed > outer)) {
        error_add(input->errors, ERROR_out_of_range, scenario_at(input->scenario, CLUSTER_KEY),
                  CLUSTER_KEY, "%s lists %u nodes of %u, %s %u devices", hosts.path, hosts.count,
                  spec->devices_per_node,
                  listed < cluster->devices ? "but the job has"
                                            : "but the "
                                              "outermost level joins",
                  listed < cluster->devices ? cluster->devices : outer);
        return false;
    }
    cluster->capacity = (uint32_t)listed;
    cluster->node_names = hosts.names;
    return true;
}

const char *cluster_node_name(const struct cluster *cluster, uint32_t node, struct arena *arena)
{
    return cluster->node_names != NULL ? cluster->node_names[node]
                                       : arena_printf(arena, "node%u", node);
}

static bool is_broken(const struct cluster *cluster, uint32_t device)
{
    for (uint32_t i = 0; i < cluster->fault_count; i++) {
        const struct cluster_fault *fault = &cluster->faults[i];
        if (fault->kind == FAULT_DEVICES && fault->first <= device && device < fault->last)
            return true;
    }
    return false;
}

/* ---- Order of nodes ---- */

/* The node of a host; the number of nodes if there is none of that name. */
static uint32_t node_named(const struct cluster *cluster, const char *name)
{
    const uint32_t nodes = cluster->capacity / cluster->spec->devices_per_node;
    uint32_t node = 0;
    if (cluster->node_names != NULL) {
        while (node < nodes && strcmp(cluster->node_names[node], name) != 0)
            node++;
        return node;
    }
    const size_t digits = strncmp(name, "node", 4) == 0 ? strspn(name + 4, "0123456789") : 0;
    if (digits == 0 || digits > 9 || name[4 + digits] != '\0' || (name[4] == '0' && digits > 1))
        return nodes;
    node = (uint32_t)strtoul(name + 4, NULL, 10);
    return node < nodes ? node : nodes;
}

static void refuse_host(const struct places *places, uint32_t host)
{
    const struct cluster *cluster = places->cluster;
    struct arena *arena = places->input->arena;
    const uint32_t nodes = cluster->capacity / cluster->spec->devices_per_node;
    const struct location at = {places->input->hosts.path, places->input->hosts.lines[host], 1};
    error_add(places->input->errors, ERROR_unknown_name, at, PARALLEL_KEY,
              "%s has no host %s; its %u nodes are %s to %s%s", cluster->spec->name,
              places->input->hosts.names[host], nodes, cluster_node_name(cluster, 0, arena),
              cluster_node_name(cluster, nodes - 1, arena),
              cluster->node_names != NULL ? "" : ", unless cluster.hosts names a file with others");
}

static void fill_node(struct places *places, uint32_t node, uint32_t slots)
{
    const uint32_t first = node * places->cluster->spec->devices_per_node;
    for (uint32_t i = 0; i < slots; i++) {
        if (is_broken(places->cluster, first + i))
            places->lost++;
        else if (places->count < places->cluster->devices)
            places->device_of[places->count++] = first + i;
    }
}

static void fill_hosts(struct places *places)
{
    const struct cluster *cluster = places->cluster;
    const uint32_t size = cluster->spec->devices_per_node;
    const uint32_t nodes = cluster->capacity / size;
    for (uint32_t i = 0; i < places->input->hosts.count; i++) {
        const uint32_t node = node_named(cluster, places->input->hosts.names[i]);
        const uint32_t slots =
            places->input->hosts.slots[i] > 0 ? places->input->hosts.slots[i] : size;
        if (node == nodes)
            refuse_host(places, i);
        else if (slots > size)
            error_add(
                places->input->errors, ERROR_out_of_range,
                (struct location){places->input->hosts.path, places->input->hosts.lines[i], 1},
                PARALLEL_KEY, "host %s offers %u slots, but a node has %u devices",
                places->input->hosts.names[i], slots, size);
        else
            fill_node(places, node, slots);
    }
}

/* ---- Too few ---- */

static uint64_t lcm(uint64_t a, uint64_t b)
{
    uint64_t x = a, y = b;
    while (y != 0) {
        const uint64_t rest = x % y;
        x = y;
        y = rest;
    }
    return a / x * b;
}

/* The largest world of at most `devices` that the degrees and the batch divide; 0: none. */
static uint64_t legal_world(const struct cluster_input *input, uint64_t devices)
{
    const struct scenario *scenario = input->scenario;
    const struct parallel_spec *parallel = &scenario->parallel;
    const uint64_t replica = (uint64_t)parallel->pp * parallel->tp * parallel->cp;
    const uint64_t etp = parallel->etp > 0 ? parallel->etp : 1;
    const uint64_t experts = (uint64_t)parallel->pp * parallel->ep * etp;
    uint64_t unit = replica > 0 ? replica : 1;
    unit = lcm(unit, experts > 0 ? experts : 1);
    unit = lcm(unit, scenario->cluster.devices_per_node);
    for (uint64_t world = devices / unit * unit; world > 0; world -= unit) {
        const uint64_t samples =
            (uint64_t)scenario->training.micro_batch_size * (replica > 0 ? world / replica : 1);
        if (samples > 0 && scenario->training.global_batch_size % samples == 0)
            return world;
    }
    return 0;
}

static void refuse_too_few(const struct places *places)
{
    const struct cluster_input *input = places->input;
    const struct cluster *cluster = places->cluster;
    struct arena *arena = input->arena;
    const uint64_t world = legal_world(input, places->count);
    const char *fewer =
        world > 0 ? arena_printf(arena, "devices: %llu would run", (unsigned long long)world)
                  : "no smaller world runs with these degrees and this batch";
    if (places->input->hosts.count > 0) {
        error_add(input->errors, ERROR_out_of_range,
                  (struct location){places->input->hosts.path, 0, 0}, PARALLEL_KEY,
                  "%u hosts offer %u slots that work (%u are on broken nodes), but the job has %u "
                  "devices; %s",
                  places->input->hosts.count, places->count, places->lost, cluster->devices, fewer);
        return;
    }
    const uint32_t last = cluster->spec->level_count - 1;
    const uint32_t domain =
        last > 0 ? cluster->spec->levels[last - 1].size : cluster->spec->devices_per_node;
    const uint32_t wanted = cluster->capacity + cluster->devices - places->count;
    error_add(
        input->errors, ERROR_no_spare_node, scenario_at(input->scenario, "faults"), "faults",
        "%u devices of %s are broken, so %u of the %u that the job needs are left; %s, or say "
        "that there are spare nodes: cluster.levels.%s.size: %u",
        places->lost, cluster->spec->name, places->count, cluster->devices, fewer,
        cluster->spec->levels[last].name, (wanted + domain - 1) / domain * domain);
}

/* ---- The whole ---- */

static bool is_identity(const struct places *places)
{
    for (uint32_t i = 0; i < places->count; i++) {
        if (places->device_of[i] != i)
            return false;
    }
    return true;
}

struct placed {
    uint32_t device, rank;
};

static int by_device(const void *a, const void *b)
{
    const struct placed *x = a;
    const struct placed *y = b;
    return x->device < y->device ? -1 : x->device > y->device;
}

static void sort_by_device(struct cluster *cluster, struct arena *arena)
{
    struct placed *placed = ARENA_ARRAY(arena, cluster->devices, struct placed);
    uint32_t *ranks = ARENA_ARRAY(arena, cluster->devices, uint32_t);
    for (uint32_t rank = 0; rank < cluster->devices; rank++)
        placed[rank] = (struct placed){cluster->device_of[rank], rank};
    qsort(placed, cluster->devices, sizeof *placed, by_device);
    for (uint32_t i = 0; i < cluster->devices; i++)
        ranks[i] = placed[i].rank;
    cluster->by_device = ranks;
}

/* Broken nodes that the ranks pass over. */
static void note_broken(struct cluster *cluster, struct arena *arena)
{
    const uint32_t size = cluster->spec->devices_per_node;
    const uint32_t last = cluster->device_of[cluster->by_device[cluster->devices - 1]];
    uint32_t *broken = ARENA_ARRAY(arena, cluster->capacity / size + 1, uint32_t);
    for (uint32_t device = 0; device < last; device += size) {
        if (is_broken(cluster, device))
            broken[cluster->broken_count++] = device / size;
    }
    cluster->broken_nodes = broken;
}

bool places_resolve(const struct cluster_input *input, struct cluster *cluster)
{
    const bool listed = input->hosts.count > 0;
    const size_t before = input->errors->count;
    bool breaks = false;
    for (uint32_t i = 0; i < cluster->fault_count; i++)
        breaks = breaks || cluster->faults[i].kind == FAULT_DEVICES;
    if (!listed && !breaks)
        return true;
    struct places places = {.input = input, .cluster = cluster};
    places.device_of = ARENA_ARRAY(input->arena, cluster->devices, uint32_t);
    if (listed)
        fill_hosts(&places);
    else
        fill_node(&places, 0, cluster->capacity);
    if (input->errors->count > before)
        return false;
    if (places.count < cluster->devices) {
        refuse_too_few(&places);
        return false;
    }
    if (is_identity(&places))
        return true;
    cluster->device_of = places.device_of;
    sort_by_device(cluster, input->arena);
    note_broken(cluster, input->arena);
    return true;
}
