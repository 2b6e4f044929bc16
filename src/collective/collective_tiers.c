/*
 * collective_tiers.c - the links of a cluster as one group of ranks reaches them.
 */
#include <math.h>

#include "collective_internal.h"

#include "stepsim/error.h"

uint32_t collective_within(const struct group_span *span, uint32_t level)
{
    if (level >= span->outer_level)
        return span->size;
    return span->per_domain[level] > 0 ? span->per_domain[level] : 1;
}

uint32_t collective_below(const struct group_span *span, uint32_t level)
{
    return level == 0 ? 1 : collective_within(span, level - 1);
}

bool collective_uses(const struct group_span *span, uint32_t level)
{
    return collective_within(span, level) > collective_below(span, level);
}

/* Domains of the level below that one full domain of `level` holds. What is built counts, not
 * what the job uses: four devices of a mesh of eight reach three of seven links. */
static double children(const struct cluster *cluster, uint32_t level)
{
    const uint32_t built = cluster->spec->levels[level].size;
    const double below = level == 0 ? 1.0 : cluster->level_size[level - 1];
    return (built > 0 ? built : cluster->level_size[level]) / below;
}

/* Domains of the level below that the group has inside one domain of `level`; a group that does
 * not fill its last domain counts it. */
static uint32_t joined(const struct group_span *span, uint32_t level)
{
    const uint32_t below = collective_below(span, level);
    return (collective_within(span, level) + below - 1) / below;
}

bool collective_in_node(const struct cluster *cluster, uint32_t level)
{
    return cluster->level_size[level] <= cluster->spec->devices_per_node;
}

struct tier collective_tier(const struct collective_ask *ask, uint32_t first, uint32_t last)
{
    const uint32_t below = collective_below(&ask->span, first);
    const uint32_t within = collective_within(&ask->span, last);
    return (struct tier){
        .first = first,
        .last = last,
        .below = below,
        .ranks = (within + below - 1) / below,
        .in_node = collective_in_node(ask->cluster, last),
    };
}

struct tiers collective_tiers(const struct collective_ask *ask, bool merge_outer)
{
    const uint32_t outer = ask->span.outer_level;
    struct tiers tiers = {0};
    uint32_t first = 0;
    while (first <= outer) {
        const bool in_node = collective_in_node(ask->cluster, first);
        uint32_t last = first;
        while (last < outer && (in_node || merge_outer) &&
               collective_in_node(ask->cluster, last + 1) == in_node)
            last++;
        const struct tier tier = collective_tier(ask, first, last);
        if (tier.ranks > 1)
            tiers.items[tiers.count++] = tier;
        first = last + 1;
    }
    return tiers;
}

/* Share of a rank's links of the level that the algorithm keeps busy. */
static double link_share(const struct collective_ask *ask, uint32_t level,
                         enum collective_kind kind, const struct collective *algorithm)
{
    const double domains = children(ask->cluster, level);
    const double others = (double)joined(&ask->span, level) - 1.0;
    const double served = algorithm->peers == 0 ? others : fmin((double)algorithm->peers, others);
    switch (ask->cluster->spec->levels[level].topology) {
    case TOPOLOGY_MESH:
        return fmin(1.0, served / fmax(1.0, domains - 1.0));
    case TOPOLOGY_RING:
        if (kind == COLLECTIVE_ALL_TO_ALL || algorithm->peers == 0) {
            /* Each byte passes a quarter of the ring on average and occupies every link there. */
            const double hops = fmod(domains, 2.0) == 0.0 ? domains * domains / 4.0
                                                          : (domains * domains - 1.0) / 4.0;
            return fmin(1.0, fmax(1.0, domains - 1.0) / hops);
        }
        return fmin(1.0, served / 2.0);
    case TOPOLOGY_SWITCH:
        break;
    }
    return 1.0;
}

/* Where a domain below has fewer ports than devices, those that communicate share them. */
static double port_share(const struct collective_ask *ask, uint32_t level)
{
    const struct level_spec *spec = &ask->cluster->spec->levels[level];
    if (level == 0 || spec->nics == 0)
        return 1.0;
    const double devices = ask->cluster->level_size[level - 1];
    const double members = collective_below(&ask->span, level);
    const double groups = ask->span.groups_per_node > 0 ? ask->span.groups_per_node : 1;
    const double active = fmin(devices, members * groups);
    return fmin(1.0, spec->nics / active);
}

double collective_level_rate(const struct collective_ask *ask, uint32_t level,
                             enum collective_kind kind, const struct collective *algorithm)
{
    const struct level_spec *spec = &ask->cluster->spec->levels[level];
    const double efficiency =
        kind == COLLECTIVE_ALL_TO_ALL ? spec->alltoall_efficiency : spec->efficiency;
    return spec->bytes_per_s * efficiency / fmax(1.0, spec->oversubscription) *
           link_share(ask, level, kind, algorithm) * port_share(ask, level);
}

bool collective_is_mesh(const struct cluster *cluster, uint32_t level)
{
    return cluster->spec->levels[level].topology == TOPOLOGY_MESH && children(cluster, level) > 2.0;
}

void collective_level_latency(const struct collective_ask *ask, uint32_t level, double *alpha_s,
                              double *ramp_s)
{
    const struct level_spec *spec = &ask->cluster->spec->levels[level];
    const bool ramp = collective_is_mesh(ask->cluster, level);
    *alpha_s = ramp ? 0.0 : spec->latency_s;
    *ramp_s = ramp ? spec->latency_s : 0.0;
}

/*
 * Steps of a ring through the tier that cross `level` and no outer one, out of ranks - 1. A
 * chunk passes them all once, so their mean is the latency of a step.
 */
static double edges(const struct collective_ask *ask, const struct tier *tier, uint32_t level)
{
    const double within = collective_within(&ask->span, tier->last);
    const double outer =
        level == tier->last ? 1.0 : ceil(within / collective_within(&ask->span, level));
    return ceil(within / collective_below(&ask->span, level)) - outer;
}

uint32_t collective_fill_tier(const struct collective_ask *ask, const struct tier *tier,
                              const struct collective *algorithm, bool rails,
                              struct collective_level_ask *level_ask)
{
    double total_edges = 0.0, alpha_sum = 0.0, ramp_sum = 0.0;
    uint32_t slowest = tier->last;
    level_ask->bytes_per_s = (double)INFINITY;
    for (uint32_t level = tier->first; level <= tier->last; level++) {
        if (!collective_uses(&ask->span, level))
            continue;
        double alpha_s, ramp_s;
        collective_level_latency(ask, level, &alpha_s, &ramp_s);
        const double count = edges(ask, tier, level);
        total_edges += count;
        alpha_sum += count * alpha_s;
        ramp_sum += count * ramp_s;
        const bool many_ports = rails && !collective_in_node(ask->cluster, level);
        const double ports = many_ports ? collective_below(&ask->span, level) : 1.0;
        const double rate = ports * collective_level_rate(ask, level, level_ask->kind, algorithm);
        if (rate <= level_ask->bytes_per_s) {
            level_ask->bytes_per_s = rate;
            slowest = level;
        }
    }
    ASSERT(total_edges > 0.0);
    level_ask->ranks = tier->ranks;
    level_ask->alpha_s = alpha_sum / total_edges;
    level_ask->ramp_s = ramp_sum / total_edges;
    return slowest;
}

uint32_t collective_fill_inner(const struct collective_ask *ask, const struct tier *tier,
                               struct collective_level_ask *level_ask)
{
    if (tier->ranks <= 1)
        return tier->last;
    struct collective_level_ask inner = {.kind = level_ask->kind};
    if (inner.kind == COLLECTIVE_ALL_TO_ALL_HIERARCHICAL ||
        inner.kind == COLLECTIVE_ALL_TO_ALL_DEDUPLICATED)
        inner.kind = COLLECTIVE_ALL_TO_ALL;
    const uint32_t slowest = collective_fill_tier(ask, tier, &collective_mesh, false, &inner);
    level_ask->inner.ranks = inner.ranks;
    level_ask->inner.alpha_s = inner.alpha_s;
    level_ask->inner.ramp_s = inner.ramp_s;
    level_ask->inner.bytes_per_s = inner.bytes_per_s;
    return slowest;
}

#define LEVEL_KEYS(level)                                                                          \
    {                                                                                              \
        [LEVEL_EFFICIENCY] = "cluster.levels." #level ".efficiency",                               \
        [LEVEL_ALLTOALL] = "cluster.levels." #level ".alltoall_efficiency",                        \
        [LEVEL_BANDWIDTH] = "cluster.levels." #level ".bandwidth",                                 \
        [LEVEL_LATENCY] = "cluster.levels." #level ".latency",                                     \
        [LEVEL_LAUNCH] = "cluster.levels." #level ".launch",                                       \
    }

const char *collective_level_key(uint32_t level, enum level_field field)
{
    static const char *const keys[][LEVEL_FIELD_COUNT] = {
        LEVEL_KEYS(0), LEVEL_KEYS(1), LEVEL_KEYS(2), LEVEL_KEYS(3), LEVEL_KEYS(4), LEVEL_KEYS(5),
    };
    _Static_assert(sizeof(keys) / sizeof(keys[0]) == LEVELS_MAX, "keys per level");
    ASSERT(level < LEVELS_MAX);
    return keys[level][field];
}
