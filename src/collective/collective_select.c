/*
 * collective_select.c - which algorithm a library picks, as its sources and documents say.
 *
 * hccl_a2, hccl_a3: cann-hccl, coll_alg_operator.cc and the operator selectors; HCCL guide.
 * nccl: the tuning model of NCCL, which takes the faster of ring and tree.
 *
 * Thresholds belong to the rules, not to the hardware, so they stand here; what a choice
 * costs is computed from the cluster file like everything else. A forced algorithm (HCCL_ALGO)
 * that cannot do the kind in question is passed over, as the library does.
 */
#include <string.h>

#include "collective_internal.h"

#include "stepsim/error.h"
#include "stepsim/units.h"

/* Latency and bandwidth that HCCL compares ring, NHR and halving-doubling with. */
#define HCCL_CHOICE_LATENCY_S   60e-6
#define HCCL_CHOICE_BYTES_PER_S 20e9
/* A2, all-reduce: one shot up to here. */
#define HCCL_A2_ONE_SHOT_BYTES (256.0 * 1024.0)
/* A2, several servers: pipeline from these slices per rank on. */
#define HCCL_A2_PIPELINE_SLICE_BYTES        (32.0 * 1024.0)
#define HCCL_A2_PIPELINE_REDUCE_SLICE_BYTES MIB_BYTES
/* A3, one server: mesh up to here; all-reduce by tensor, the others by slice per rank. */
#define HCCL_A3_MESH_REDUCE_BYTES MIB_BYTES
#define HCCL_A3_MESH_SLICE_BYTES  (2.0 * MIB_BYTES)
/* A3, all-reduce over several servers: NHR over all ranks up to here. */
#define HCCL_A3_NHR_BYTES (256.0 * 1024.0)
/* Between supernodes: ring below this many, unless a power of two. */
#define HCCL_RING_SUPERNODES 8u

const char *const collective_rules_names[] = {"hccl_a2", "hccl_a3", "nccl", NULL};

const struct collective *collective_forced(const struct collective_ask *ask, bool inner)
{
    const char *name = inner ? ask->algorithm_intra : ask->algorithm_inter;
    if (!name || strcmp(name, "auto") == 0)
        return NULL;
    const struct collective *algorithm = collective_find(name);
    ASSERT(algorithm);
    return algorithm->kinds & KIND_BIT(ask->kind) ? algorithm : NULL;
}

static const struct collective *faster(const struct collective *first,
                                       const struct collective *second,
                                       const struct collective_level_ask *ask)
{
    return second->cost(ask).time_s < first->cost(ask).time_s ? second : first;
}

/* HCCL's own comparison; a tie goes to the earlier of ring, NHR, halving-doubling. */
static const struct collective *hccl_cheapest(enum collective_kind kind, uint32_t ranks,
                                              double bytes)
{
    const struct collective_level_ask ask = {
        .kind = kind,
        .bytes = bytes,
        .ranks = ranks,
        .alpha_s = HCCL_CHOICE_LATENCY_S,
        .bytes_per_s = HCCL_CHOICE_BYTES_PER_S,
    };
    const struct collective *best = faster(&collective_ring, &collective_nhr, &ask);
    return faster(best, &collective_halving_doubling, &ask);
}

/* ---- Atlas A2: a mesh in the server, several choices between servers ---- */

static const struct collective *a2_gather(const struct collective_ask *ask,
                                          const struct tiers *tiers, uint32_t index, double bytes)
{
    const struct tier *tier = &tiers->items[index];
    if (!tier->in_node)
        return hccl_cheapest(ask->kind, tier->ranks, bytes);
    if (ask->kind != COLLECTIVE_ALL_REDUCE || tiers->count > 1 || bytes > HCCL_A2_ONE_SHOT_BYTES)
        return &collective_mesh;
    /* The vendor takes one shot for all these; the fit of measured times below 256 KiB runs
     * faster than one shot can at full rate, so its limit is taken as an upper one. */
    struct collective_level_ask level_ask = {.kind = ask->kind, .bytes = bytes};
    collective_fill_tier(ask, tier, &collective_mesh, false, &level_ask);
    return faster(&collective_mesh, &collective_mesh_one_shot, &level_ask);
}

static const struct collective *a2_two_level(const struct collective_ask *ask,
                                             const struct tiers *tiers)
{
    const struct tier *inner = &tiers->items[0];
    if (!inner->in_node || ask->cluster->spec->levels[inner->last].topology != TOPOLOGY_MESH)
        return NULL;
    const double slice_bytes = ask->bytes / ask->span.size;
    const double limit_bytes = ask->kind == COLLECTIVE_ALL_REDUCE
                                   ? HCCL_A2_PIPELINE_REDUCE_SLICE_BYTES
                                   : HCCL_A2_PIPELINE_SLICE_BYTES;
    return slice_bytes >= limit_bytes ? &collective_pipeline : NULL;
}

static const struct collective *a2_all_to_all(const struct collective_ask *ask,
                                              const struct tiers *tiers)
{
    (void)ask;
    if (tiers->items[0].in_node)
        return tiers->count == 1 ? &collective_mesh : &collective_staged;
    return &collective_pairwise; /* one rank per server */
}

/* ---- Atlas A3: rings in the node, NHR in the supernode, ring or halving-doubling outside ---- */

/* Is there a level between the node and this tier? */
static bool crosses_supernodes(const struct cluster *cluster, const struct tier *tier)
{
    return tier->first > 0 && !collective_in_node(cluster, tier->first - 1);
}

static const struct collective *a3_gather(const struct collective_ask *ask,
                                          const struct tiers *tiers, uint32_t index, double bytes)
{
    const struct tier *tier = &tiers->items[index];
    if (tier->in_node && collective_is_mesh(ask->cluster, tier->last))
        return &collective_mesh; /* a board of the 950: a ring would use two of its links */
    if (tier->in_node) {
        if (tiers->count > 1)
            return &collective_double_ring;
        const bool small = ask->kind == COLLECTIVE_ALL_REDUCE
                               ? bytes <= HCCL_A3_MESH_REDUCE_BYTES
                               : bytes <= HCCL_A3_MESH_SLICE_BYTES * tier->ranks;
        return small ? &collective_mesh : &collective_double_ring;
    }
    if (!crosses_supernodes(ask->cluster, tier))
        return &collective_nhr;
    const bool power = (tier->ranks & (tier->ranks - 1)) == 0;
    return tier->ranks < HCCL_RING_SUPERNODES && !power ? &collective_ring
                                                        : &collective_halving_doubling;
}

static const struct collective *a3_all_to_all(const struct collective_ask *ask,
                                              const struct tiers *tiers)
{
    const struct tier *outer = &tiers->items[tiers->count - 1];
    return crosses_supernodes(ask->cluster, outer) ? &collective_staged : &collective_mesh;
}

/* ---- NCCL: one ring or tree over everything ---- */

static const struct collective *nccl_gather(const struct collective_ask *ask,
                                            const struct tiers *tiers, uint32_t index, double bytes)
{
    (void)ask, (void)tiers, (void)index, (void)bytes;
    return &collective_ring; /* the tree is compared where both halves are known */
}

static const struct collective *nccl_all_to_all(const struct collective_ask *ask,
                                                const struct tiers *tiers)
{
    (void)ask, (void)tiers;
    return &collective_mesh;
}

static const struct rules rules_table[] = {
    {
        .name = "hccl_a2",
        .merge_outer = true,
        .loops = true,
        .whole_blocks = true,
        .gather = a2_gather,
        .gather_two_level = a2_two_level,
        .all_to_all = a2_all_to_all,
    },
    {
        .name = "hccl_a3",
        .loops = true,
        .small_flat_bytes = HCCL_A3_NHR_BYTES,
        .gather = a3_gather,
        .all_to_all = a3_all_to_all,
    },
    {
        .name = "nccl",
        .flat = true,
        .gather = nccl_gather,
        .all_to_all = nccl_all_to_all,
    },
};

const struct rules *collective_rules(const char *name)
{
    const struct rules *found = NULL;
    for (size_t i = 0; i < sizeof(rules_table) / sizeof(rules_table[0]) && !found; i++)
        if (strcmp(rules_table[i].name, name) == 0)
            found = &rules_table[i];
    ASSERT(found);
    return found;
}
