/*
 * cluster.c - nested domains of devices, and the shape of groups in them.
 *
 * Domains of a level are runs of `size` devices, so a level of two ranks is one division
 * each, and the members of a domain are consecutive in a group sorted by device: its shape
 * is a count of runs, O(members * levels).
 */
#include "cluster_internal.h"

#include <stdlib.h>
#include <string.h>

static const char *level_key(const struct error_list *errors, uint32_t level, const char *leaf)
{
    return arena_printf(errors->arena, "cluster.levels.%u.%s", level, leaf);
}

/* The innermost levels come first and each is a whole number of the one before; only the last
 * may be "all". */
static void check_nesting(const struct scenario *scenario, struct error_list *errors)
{
    const struct cluster_spec *spec = &scenario->cluster;
    for (uint32_t i = 0; i < spec->level_count; i++) {
        const uint32_t size = spec->levels[i].size;
        const uint32_t inner = i > 0 ? spec->levels[i - 1].size : 0;
        const char *key = level_key(errors, i, "size");
        if (size == 0 && i + 1 < spec->level_count)
            error_add(errors, ERROR_conflicting_keys, scenario_at(scenario, key), key,
                      "level %s is the whole cluster, so no level can lie outside it",
                      spec->levels[i].name);
        else if (size != 0 && inner != 0 && (size % inner != 0 || size == inner))
            error_add(errors, ERROR_conflicting_keys, scenario_at(scenario, key), key,
                      "level %s of %u devices is no larger multiple of the level inside it (%u)",
                      spec->levels[i].name, size, inner);
    }
}

static void check_devices(const struct scenario *scenario, struct error_list *errors)
{
    const struct cluster_spec *spec = &scenario->cluster;
    const uint32_t devices = scenario->devices;
    const uint32_t node = spec->devices_per_node;
    const uint32_t outer = spec->levels[spec->level_count - 1].size;

    if (devices > node && devices % node != 0 && scenario->parallel.hosts == NULL)
        error_add(errors, ERROR_devices_not_multiple_of_node, scenario_at(scenario, "devices"),
                  "devices", "%u devices do not fill nodes of %u; %u or %u would", devices, node,
                  devices / node * node, (devices / node + 1) * node);
    if (outer != 0 && devices > outer)
        error_add(errors, ERROR_out_of_range, scenario_at(scenario, "devices"), "devices",
                  "%u devices, but the outermost level %s joins %u", devices,
                  spec->levels[spec->level_count - 1].name, outer);
}

/* A node is one of the levels' domains or nests between them. */
static void check_node(const struct scenario *scenario, struct error_list *errors)
{
    const struct cluster_spec *spec = &scenario->cluster;
    const char *key = "cluster.devices_per_node";
    for (uint32_t i = 0; i < spec->level_count; i++) {
        const uint32_t size = spec->levels[i].size;
        const uint32_t node = spec->devices_per_node;
        if (size != 0 && size % node != 0 && node % size != 0)
            error_add(errors, ERROR_conflicting_keys, scenario_at(scenario, key), key,
                      "a node of %u devices does not nest with level %s of %u", node,
                      spec->levels[i].name, size);
    }
}

/* Slow ranks exist, each once. */
static void check_slow_ranks(const struct scenario *scenario, struct error_list *errors)
{
    const char *key = "noise.slow_ranks";
    const struct noise_spec *noise = &scenario->noise;
    for (uint32_t i = 0; i < noise->slow_rank_count; i++) {
        const uint32_t rank = noise->slow_ranks[i].rank;
        if (rank >= scenario->devices)
            error_add(errors, ERROR_out_of_range, scenario_at(scenario, key), key,
                      "there is no rank %u: %u devices have the ranks 0 to %u", rank,
                      scenario->devices, scenario->devices - 1);
        for (uint32_t j = 0; j < i; j++) {
            if (noise->slow_ranks[j].rank == rank)
                error_add(errors, ERROR_conflicting_keys, scenario_at(scenario, key), key,
                          "rank %u is listed twice, with the factors %g and %g", rank,
                          noise->slow_ranks[j].factor, noise->slow_ranks[i].factor);
        }
    }
}

static bool level_is_used(const struct scenario *scenario, const char *name)
{
    const struct cluster_spec *spec = &scenario->cluster;
    for (uint32_t i = 0; i < spec->level_count; i++) {
        if (strcmp(spec->levels[i].name, name) == 0)
            return true;
        if (spec->levels[i].size == 0 || spec->levels[i].size >= scenario->devices)
            break;
    }
    return false;
}

/* Slow links hang on ranks and levels that exist, each once. */
static void check_slow_links(const struct scenario *scenario, struct error_list *errors)
{
    const char *key = "noise.slow_links";
    const struct noise_spec *noise = &scenario->noise;
    const struct location at = scenario_at(scenario, key);
    for (uint32_t i = 0; i < noise->slow_link_count; i++) {
        const struct slow_link *slow = &noise->slow_links[i];
        if (slow->rank >= scenario->devices)
            error_add(errors, ERROR_out_of_range, at, key,
                      "there is no rank %u: %u devices have the ranks 0 to %u", slow->rank,
                      scenario->devices, scenario->devices - 1);
        if (!level_is_used(scenario, slow->level))
            error_add(errors, ERROR_unknown_name, at, key,
                      "%u devices of %s use no level \"%s\"; the innermost is \"%s\"",
                      scenario->devices, scenario->cluster.name, slow->level,
                      scenario->cluster.levels[0].name);
        for (uint32_t j = 0; j < i; j++) {
            if (noise->slow_links[j].rank == slow->rank &&
                strcmp(noise->slow_links[j].level, slow->level) == 0)
                error_add(errors, ERROR_conflicting_keys, at, key,
                          "the link of rank %u to level %s is listed twice", slow->rank,
                          slow->level);
        }
    }
}

uint32_t cluster_domain_size(const struct cluster *cluster, uint32_t level)
{
    const uint32_t size = cluster->spec->levels[level].size;
    return size != 0 && size < cluster->capacity ? size : cluster->capacity;
}

static uint32_t last_device(const struct cluster *cluster)
{
    return cluster->by_device != NULL ? cluster->device_of[cluster->by_device[cluster->devices - 1]]
                                      : cluster->devices - 1;
}

/* Levels up to the first one with a domain that holds all devices of the job. */
static void count_levels(struct cluster *cluster)
{
    const struct cluster_spec *spec = cluster->spec;
    const uint32_t first =
        cluster->by_device != NULL ? cluster->device_of[cluster->by_device[0]] : 0;
    const uint32_t last = last_device(cluster);
    for (uint32_t i = 0; i < spec->level_count; i++) {
        const uint32_t size = spec->levels[i].size;
        const bool all = size == 0 || first / size == last / size;
        cluster->level_count = i + 1;
        /* Of the last level no more than is used, unless places leave gaps. */
        cluster->level_size[i] = !all || (first > 0 && size != 0) ? size : last + 1;
        if (all)
            break;
    }
}

const struct cluster *cluster_build(const struct scenario *scenario, struct arena *arena,
                                    struct error_list *errors)
{
    const struct cluster_spec *spec = &scenario->cluster;
    const size_t before = errors->count;
    if (scenario->devices == 0 || spec->devices_per_node == 0 || spec->level_count == 0) {
        error_add(errors, ERROR_missing_key, scenario_at(scenario, "cluster"), "cluster",
                  "a cluster needs devices (%u), devices per node (%u) and link levels (%u)",
                  scenario->devices, spec->devices_per_node, spec->level_count);
        return NULL;
    }
    ASSERT(spec->level_count <= LEVELS_MAX);
    check_nesting(scenario, errors);
    check_devices(scenario, errors);
    check_node(scenario, errors);
    check_slow_ranks(scenario, errors);
    check_slow_links(scenario, errors);
    if (errors->count > before)
        return NULL;

    struct cluster *cluster = ARENA_NEW(arena, struct cluster);
    *cluster = (struct cluster){
        .spec = spec,
        .device = &spec->device,
        .devices = scenario->devices,
        .node_size =
            spec->devices_per_node < scenario->devices ? spec->devices_per_node : scenario->devices,
    };
    struct cluster_input input = {.scenario = scenario, .arena = arena, .errors = errors};
    if (!places_count(&input, cluster) || !faults_resolve(&input, cluster) ||
        !places_resolve(&input, cluster))
        return NULL;
    if (cluster->device_of != NULL)
        cluster->node_size = spec->devices_per_node;
    if (cluster->device_of != NULL)
        cluster->scratch = ARENA_ARRAY(arena, (size_t)cluster->devices * 2, uint32_t);
    count_levels(cluster);
    return cluster;
}

/* ---- Ports of nodes ---- */

uint32_t cluster_nic_level(const struct cluster_spec *spec)
{
    uint32_t inside = 0;
    while (inside < spec->level_count && spec->levels[inside].size != 0 &&
           spec->levels[inside].size <= spec->devices_per_node)
        inside++;
    if (inside == spec->level_count)
        return LEVELS_MAX;
    /* A scale-up fabric may go on beyond the node; the ports are where another link begins. */
    for (uint32_t level = inside; inside > 0 && level < spec->level_count; level++) {
        if (strcmp(spec->levels[level].link, spec->levels[inside - 1].link) != 0)
            return level;
    }
    return inside;
}

uint32_t cluster_nics_of_node(const struct cluster_spec *spec)
{
    const uint32_t level = cluster_nic_level(spec);
    ASSERT(level < LEVELS_MAX);
    const uint32_t nics = spec->levels[level].nics;
    if (nics == 0 || level == 0)
        return spec->devices_per_node;
    const uint32_t below = spec->levels[level - 1].size;
    const uint32_t nodes = below > spec->devices_per_node ? below / spec->devices_per_node : 1;
    return nics > nodes ? nics / nodes : 1;
}

/* ---- Domains and groups ---- */

struct cluster_domains cluster_domains(const struct cluster *cluster, uint32_t size,
                                       struct arena *arena)
{
    uint32_t *of = ARENA_ARRAY(arena, cluster->devices, uint32_t);
    uint32_t *first = ARENA_ARRAY(arena, cluster->devices + 1, uint32_t);
    uint32_t *members = ARENA_ARRAY(arena, cluster->devices, uint32_t);
    struct cluster_domains domains = {.of = of, .first = first, .members = members};
    for (uint32_t i = 0; i < cluster->devices; i++) {
        members[i] = cluster->by_device != NULL ? cluster->by_device[i] : i;
        const uint32_t domain = cluster_device(cluster, members[i]) / size;
        if (i == 0 || domain != cluster_device(cluster, members[i - 1]) / size)
            first[domains.count++] = i;
        of[members[i]] = domains.count - 1;
    }
    first[domains.count] = cluster->devices;
    return domains;
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static uint32_t divide_up(uint32_t a, uint32_t b)
{
    return a / b + (a % b != 0);
}

/* The largest number of members in one run of `domain` ranks. */
static uint32_t busiest_domain(const uint32_t *members, uint32_t count, uint32_t domain)
{
    uint32_t best = 0;
    uint32_t first = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (members[i] / domain != members[first] / domain)
            first = i;
        best = i - first + 1 > best ? i - first + 1 : best;
    }
    return best;
}

static uint32_t level_of_devices(const struct cluster *cluster, uint32_t a, uint32_t b)
{
    uint32_t level = 0;
    while (a / cluster->level_size[level] != b / cluster->level_size[level])
        level++;
    ASSERT(level < cluster->level_count);
    return level;
}

/* The span of devices in ascending order. */
static struct group_span devices_span(const struct cluster *cluster, const uint32_t *devices,
                                      uint32_t count)
{
    struct group_span span = {.size = count, .stride = count > 1 ? devices[1] - devices[0] : 1};
    span.outer_level = level_of_devices(cluster, devices[0], devices[count - 1]);
    for (uint32_t level = 0; level < LEVELS_MAX; level++)
        span.per_domain[level] = level < span.outer_level
                                     ? busiest_domain(devices, count, cluster->level_size[level])
                                     : count;
    const uint32_t in_node = busiest_domain(devices, count, cluster->node_size);
    span.groups_per_node = divide_up(cluster->node_size, in_node);
    return span;
}

static int by_number(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a;
    const uint32_t y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

struct group_span cluster_members_span(const struct cluster *cluster, const uint32_t *members,
                                       uint32_t count)
{
    ASSERT(count >= 1);
    ASSERT(members[count - 1] < cluster->devices);
    if (cluster->device_of == NULL)
        return devices_span(cluster, members, count);
    uint32_t *devices = cluster->scratch;
    for (uint32_t i = 0; i < count; i++)
        devices[i] = cluster_device(cluster, members[i]);
    qsort(devices, count, sizeof *devices, by_number);
    struct group_span span = devices_span(cluster, devices, count);
    span.stride = count > 1 ? members[1] - members[0] : 1;
    return span;
}

/* A regular group, as any other. */
static struct group_span placed_span(const struct cluster *cluster, uint32_t size, uint32_t stride)
{
    uint32_t *members = cluster->scratch + cluster->devices;
    for (uint32_t i = 0; i < size; i++)
        members[i] = i * stride;
    return cluster_members_span(cluster, members, size);
}

struct group_span cluster_group_span(const struct cluster *cluster, uint32_t size, uint32_t stride)
{
    ASSERT(size >= 1);
    ASSERT(stride >= 1);
    ASSERT((uint64_t)(size - 1) * stride < cluster->devices);

    if (cluster->device_of != NULL && size > 1)
        return placed_span(cluster, size, stride);
    struct group_span span = {.size = size, .stride = size > 1 ? stride : 1};
    for (uint32_t level = 0; level < LEVELS_MAX; level++) {
        const bool used = level < cluster->level_count;
        const uint32_t reach = used ? divide_up(cluster->level_size[level], stride) : size;
        span.per_domain[level] = smaller(size, reach);
        if (span.per_domain[level] < size)
            span.outer_level = level + 1;
    }
    const uint32_t in_node = smaller(size, divide_up(cluster->node_size, stride));
    span.groups_per_node = divide_up(cluster->node_size, in_node);
    return span;
}

uint32_t cluster_level_of_pair(const struct cluster *cluster, uint32_t rank_a, uint32_t rank_b)
{
    ASSERT(rank_a < cluster->devices);
    ASSERT(rank_b < cluster->devices);
    return level_of_devices(cluster, cluster_device(cluster, rank_a),
                            cluster_device(cluster, rank_b));
}
