/*
 * collective_internal.h - what the algorithms, the rules and the sum over levels share; private
 * to src/collective.
 *
 * A *tier* is a run of consecutive levels that one algorithm treats as one flat group: HCCL
 * sees the node, the supernode and the cluster, whatever links a node is made of, and a NCCL
 * ring runs through everything.
 */
#ifndef STEPSIM_COLLECTIVE_INTERNAL_H
#define STEPSIM_COLLECTIVE_INTERNAL_H

#include "stepsim/collective.h"

/* ---- For the algorithms (collective_steps.c) ---- */

#define KIND_BIT(kind) (1u << (kind))
#define KINDS_REDUCE                                                                               \
    (KIND_BIT(COLLECTIVE_ALL_REDUCE) | KIND_BIT(COLLECTIVE_ALL_GATHER) |                           \
     KIND_BIT(COLLECTIVE_REDUCE_SCATTER))

/* A collective larger than the buffer is run in this many loops, at least 1. */
double collective_loops(const struct collective_level_ask *ask);
/* An all-reduce is a reduce-scatter and an all-gather: 2, else 1. */
uint32_t collective_passes(enum collective_kind kind);
/* Smallest s with 2^s >= ranks. */
uint32_t collective_log2_ceil(uint32_t ranks);
/* Launch, and `steps` equal steps in each loop that move `bytes` over the level in all loops;
 * nothing at all in a group of one. */
struct collective_level_cost collective_steps(const struct collective_level_ask *ask,
                                              uint32_t steps, double bytes);
/* Adds the mesh exchange inside the domains of a two-level algorithm; kind and bytes are its own.
 */
void collective_add_inner_mesh(const struct collective_level_ask *ask, enum collective_kind kind,
                               double bytes, struct collective_level_cost *cost);

/* Algorithms that others build on or that rules name. */
extern const struct collective collective_double_ring, collective_halving_doubling,
    collective_hierarchical, collective_deduplicated, collective_mesh, collective_mesh_one_shot,
    collective_nhr, collective_pairwise, collective_pipeline, collective_ring, collective_send_recv,
    collective_staged, collective_tree;

/* ---- Levels and tiers as a group sees them (collective_tiers.c) ---- */

struct tier {
    uint32_t first, last; /* levels */
    uint32_t below;       /* ranks inside one domain of the level below `first` */
    uint32_t ranks;       /* such domains that the tier joins; 1: unused */
    bool in_node;
};

struct tiers {
    uint32_t count; /* used ones only */
    struct tier items[LEVELS_MAX];
};

/* Members of the group inside one domain of the level below `level`. */
uint32_t collective_below(const struct group_span *span, uint32_t level);
/* Members of the group inside one domain of `level`. */
uint32_t collective_within(const struct group_span *span, uint32_t level);
/* Does the group have members in different domains of the level below? */
bool collective_uses(const struct group_span *span, uint32_t level);
/* Is a domain of the level inside one node? */
bool collective_in_node(const struct cluster *cluster, uint32_t level);
/* Is the level a full mesh? Two devices with one link are none. */
bool collective_is_mesh(const struct cluster *cluster, uint32_t level);
/* Levels `first` to `last` as one tier. */
struct tier collective_tier(const struct collective_ask *ask, uint32_t first, uint32_t last);
/* The tiers that the group uses: levels inside a node are one; the outer ones too if merged. */
struct tiers collective_tiers(const struct collective_ask *ask, bool merge_outer);
/* What a rank reaches on one level with this algorithm, bytes/s. */
double collective_level_rate(const struct collective_ask *ask, uint32_t level,
                             enum collective_kind kind, const struct collective *algorithm);
/* Latency of one step on a level: hard, or on a full mesh a ramp (collective_step_s). The copies
 * of a mesh are issued without a handshake: the measured all-reduce of an A2 node starts at half
 * its final rate and has no fixed latency of its own. */
void collective_level_latency(const struct collective_ask *ask, uint32_t level, double *alpha_s,
                              double *ramp_s);
/* Ranks, latencies and rate of a tier for an algorithm; level_ask->kind is set already. With rails,
 * levels outside the node are as fast as all ports that the group owns in a node. Returns the
 * level that sets the rate. */
uint32_t collective_fill_tier(const struct collective_ask *ask, const struct tier *tier,
                              const struct collective *algorithm, bool rails,
                              struct collective_level_ask *level_ask);
/* The same for the inner half of a two-level algorithm, which is a mesh. */
uint32_t collective_fill_inner(const struct collective_ask *ask, const struct tier *tier,
                               struct collective_level_ask *level_ask);

/* ---- Rules (collective_select.c) ---- */

struct rules {
    const char *name;
    bool merge_outer;        /* everything outside the node is one tier */
    bool flat;               /* the group is one ring or tree over all tiers, on rails */
    bool loops;              /* collectives are chopped into buffer-sized loops */
    double small_flat_bytes; /* all-reduce over several nodes: NHR over all ranks up to here */
    /* Outer tiers carry whole blocks, not shards: reduce outside first, gather inside first. */
    bool whole_blocks;
    /* Algorithm of one tier of all-gather, reduce-scatter, all-reduce; bytes: of that tier. */
    const struct collective *(*gather)(const struct collective_ask *ask, const struct tiers *tiers,
                                       uint32_t index, double bytes);
    /* A two-level algorithm over two tiers, or NULL. */
    const struct collective *(*gather_two_level)(const struct collective_ask *ask,
                                                 const struct tiers *tiers);
    /* Mesh or pairwise (flat), or a two-level algorithm. */
    const struct collective *(*all_to_all)(const struct collective_ask *ask,
                                           const struct tiers *tiers);
};

/* Asserts that there is one: the loader checks the name. */
const struct rules *collective_rules(const char *name);
/* The forced algorithm of inner (index 0 of several, or in the node) or outer tiers, if it can do
 * the kind; NULL for "auto" and for algorithms of other kinds. */
const struct collective *collective_forced(const struct collective_ask *ask, bool inner);

/* ---- The sum over levels (collective_compose.c) ---- */

/* The sum so far; parts are added in the order in which they run. */
struct sum {
    const struct collective_ask *ask;
    const struct rules *rules;
    struct collective_cost *cost;
    double longest_s; /* of the parts, for cost->algorithm */
    bool explain;
    struct collective_phase *phases; /* NULL: not asked for */
    uint32_t phase_count;
};

void collective_sum_gather(struct sum *sum); /* all-gather, reduce-scatter, all-reduce */
void collective_sum_all_to_all(struct sum *sum);
void collective_sum_hierarchical(struct sum *sum);
void collective_sum_send_recv(struct sum *sum);

enum level_field {
    LEVEL_BANDWIDTH,
    LEVEL_EFFICIENCY,
    LEVEL_ALLTOALL,
    LEVEL_LATENCY,
    LEVEL_LAUNCH,
    LEVEL_FIELD_COUNT
};
/* "cluster.levels.1.latency" */
const char *collective_level_key(uint32_t level, enum level_field field);

#endif
