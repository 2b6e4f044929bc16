/*
 * link_speeds.c - what faults and slow links leave of the links of a rank.
 *
 * Each share is kept by itself, since a network model that knows links has some as ports of the
 * rank and others as pools of a node or leaf. Without such a model a transfer is as slow as the
 * slowest of what lies on its way: a way over a level also passes all levels below it on the same
 * ports.
 */
#include <math.h>
#include <string.h>

#include "plan_internal.h"

bool link_same_port(const struct level_spec *a, const struct level_spec *b)
{
    return strcmp(a->link, b->link) == 0 && fabs(a->bytes_per_s - b->bytes_per_s) < 1.0;
}

struct link_speeds link_speeds_whole(void)
{
    struct link_speeds speeds;
    for (uint32_t level = 0; level < LEVELS_MAX; level++) {
        speeds.slow[level] = 1.0;
        for (int kind = 0; kind < FAULT_KIND_COUNT; kind++)
            speeds.left[kind][level] = 1.0;
    }
    return speeds;
}

struct link_speeds link_speeds_of(const struct plan_builder *builder, uint32_t rank)
{
    const struct noise_spec *noise = &builder->ask->graph->scenario->noise;
    const struct cluster *cluster = builder->ask->cluster;
    struct link_speeds speeds = link_speeds_whole();
    for (uint32_t i = 0; i < noise->slow_link_count; i++) {
        const struct slow_link *slow = &noise->slow_links[i];
        for (uint32_t level = 0; slow->rank == rank && level < cluster->level_count; level++) {
            if (strcmp(cluster->spec->levels[level].name, slow->level) == 0)
                speeds.slow[level] = slow->factor;
        }
    }
    static const enum fault_kind kinds[] = {FAULT_OWN_LINKS, FAULT_NODE_LINKS, FAULT_LINKS};
    for (uint32_t level = 0; cluster->fault_count > 0 && level < cluster->level_count; level++) {
        for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
            speeds.left[kinds[k]][level] = cluster_speed(cluster, kinds[k], level, rank);
    }
    return speeds;
}

static bool equal(double a, double b)
{
    return !(a < b) && !(a > b);
}

bool link_speeds_equal(const struct link_speeds *a, const struct link_speeds *b)
{
    bool same = true;
    for (uint32_t level = 0; level < LEVELS_MAX; level++) {
        same = same && equal(a->slow[level], b->slow[level]);
        for (int kind = 0; kind < FAULT_KIND_COUNT; kind++)
            same = same && equal(a->left[kind][level], b->left[kind][level]);
    }
    return same;
}

double link_speeds_alone(const struct cluster *cluster, const struct link_speeds *speeds,
                         uint32_t level)
{
    double speed = speeds->slow[level];
    for (uint32_t below = 0; below <= level; below++) {
        if (!link_same_port(&cluster->spec->levels[below], &cluster->spec->levels[level]))
            continue;
        for (int kind = 0; kind < FAULT_KIND_COUNT; kind++)
            speed = fmin(speed, speeds->left[kind][below]);
    }
    return speed;
}
