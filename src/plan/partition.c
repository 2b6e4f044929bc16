/*
 * partition.c - the coarsest equitable partition of the ranks that refines given colours.
 *
 * Ranks of one class then have, in every kind of group and at both ends of the pipeline, the
 * same number of neighbours of each class, so by induction over instants they behave alike
 * and one stands for all. Colour refinement: a rank's next colour is its colour with the
 * multisets of colours of its groups and the colours of its peers, until no class splits.
 *
 * Multisets are compared by 64-bit sums. They only propose the classes; whether these are
 * equitable is then counted exactly and asserted, so a collision cannot fold what differs.
 */
#include <stdlib.h>

#include "partition.h"

#include "stepsim/error.h"
#include "stepsim/rng.h"

struct signature {
    uint64_t hash;
    uint32_t rank;
};

/* Groups of the layout, then domains of devices. */
enum { DOMAINS_MAX = 16, GROUP_KINDS_MAX = GROUP_SLOT_COUNT + DOMAINS_MAX };

struct refinement {
    const struct layout *layout;
    const struct cluster_domains *domains;
    uint32_t kind_count;                       /* of groups */
    uint32_t *colour;                          /* [world], dense */
    const uint32_t *group_of[GROUP_KINDS_MAX]; /* [world]; NULL: groups of one */
    uint64_t *sums;                            /* [groups of a slot] */
    struct signature *signatures;              /* [world] */
    uint32_t *number;                          /* [world]: of the run at its lowest rank */
    uint32_t *members;                         /* [world] */
};

static uint32_t rank_beside(const struct layout *layout, uint32_t rank, uint32_t steps)
{
    const struct rank_coordinates at = layout_coordinates(layout, rank);
    return layout_rank(layout, at.tp, at.cp, at.dp, (at.pp + steps) % layout->pp);
}

uint32_t partition_peer(const struct layout *layout, uint32_t rank, int peer)
{
    return rank_beside(layout, rank, peer == PEER_NEXT ? 1 : layout->pp - 1);
}

static uint32_t group_count(const struct refinement *state, uint32_t kind)
{
    if (kind < GROUP_SLOT_COUNT)
        return layout_group_count(state->layout, (enum group_slot)kind);
    return state->domains[kind - GROUP_SLOT_COUNT].count;
}

/* Writes the members, and returns how many. */
static uint32_t find_group(const struct refinement *state, uint32_t kind, uint32_t group,
                           uint32_t *members)
{
    if (kind < GROUP_SLOT_COUNT) {
        layout_group_members(state->layout, (enum group_slot)kind, group, members);
        return state->layout->spans[kind].size;
    }
    const struct cluster_domains *domains = &state->domains[kind - GROUP_SLOT_COUNT];
    uint32_t count = 0;
    for (uint32_t i = domains->first[group]; i < domains->first[group + 1]; i++)
        members[count++] = domains->members[i];
    return count;
}

static void find_groups(struct refinement *state, struct arena *arena)
{
    const struct layout *layout = state->layout;
    uint32_t most = 1;
    for (int s = 0; s < GROUP_SLOT_COUNT; s++) {
        const enum group_slot slot = (enum group_slot)s;
        /* All ranks are in the world group: it tells nothing apart. */
        if (layout->spans[slot].size < 2 || slot == GROUP_WORLD)
            continue;
        const uint32_t count = layout_group_count(layout, slot);
        most = count > most ? count : most;
        uint32_t *group_of = ARENA_ARRAY(arena, layout->world, uint32_t);
        for (uint32_t rank = 0; rank < layout->world; rank++)
            group_of[rank] = layout_group_of(layout, slot, rank);
        state->group_of[s] = group_of;
    }
    for (uint32_t kind = GROUP_SLOT_COUNT; kind < state->kind_count; kind++) {
        const uint32_t count = group_count(state, kind);
        most = count > most ? count : most;
        state->group_of[kind] = state->domains[kind - GROUP_SLOT_COUNT].of;
    }
    state->sums = ARENA_ARRAY(arena, most, uint64_t);
}

/* What the rank sees of one kind of group goes into its signature. */
static void add_groups(struct refinement *state, uint32_t slot)
{
    const uint32_t *group_of = state->group_of[slot];
    const uint32_t count = group_count(state, slot);
    for (uint32_t g = 0; g < count; g++)
        state->sums[g] = 0;
    for (uint32_t rank = 0; rank < state->layout->world; rank++) {
        if (group_of[rank] != UINT32_MAX)
            state->sums[group_of[rank]] += rng_mix(state->colour[rank], 1);
    }
    for (uint32_t rank = 0; rank < state->layout->world; rank++) {
        if (group_of[rank] != UINT32_MAX)
            state->signatures[rank].hash =
                rng_mix(state->signatures[rank].hash, state->sums[group_of[rank]]);
    }
}

static int by_signature(const void *a, const void *b)
{
    const struct signature *x = a;
    const struct signature *y = b;
    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* Equal signatures become one colour; colours are numbered by their lowest rank. */
static uint32_t number_colours(struct refinement *state)
{
    const uint32_t world = state->layout->world;
    struct signature *sorted = state->signatures;
    qsort(sorted, world, sizeof *sorted, by_signature);
    for (uint32_t i = 0; i < world; i++) {
        const bool same = i > 0 && sorted[i].hash == sorted[i - 1].hash;
        state->members[sorted[i].rank] = same ? state->members[sorted[i - 1].rank] : sorted[i].rank;
    }
    uint32_t count = 0;
    for (uint32_t rank = 0; rank < world; rank++) {
        const uint32_t lowest = state->members[rank];
        if (lowest == rank)
            state->number[rank] = count++;
        state->colour[rank] = state->number[lowest];
    }
    return count;
}

static uint32_t refine_once(struct refinement *state)
{
    const struct layout *layout = state->layout;
    for (uint32_t rank = 0; rank < layout->world; rank++)
        state->signatures[rank] = (struct signature){rng_mix(state->colour[rank], 2), rank};
    for (uint32_t slot = 0; slot < state->kind_count; slot++) {
        if (state->group_of[slot] != NULL)
            add_groups(state, slot);
    }
    for (uint32_t rank = 0; layout->pp > 1 && rank < layout->world; rank++) {
        uint64_t *hash = &state->signatures[rank].hash;
        *hash = rng_mix(*hash, state->colour[partition_peer(layout, rank, PEER_NEXT)]);
        *hash = rng_mix(*hash, state->colour[partition_peer(layout, rank, PEER_PREVIOUS)]);
    }
    return number_colours(state);
}

/* ---- The exact check ---- */

static void count_members(const struct refinement *state, uint32_t kind, uint32_t group,
                          int32_t *counts, int32_t by)
{
    const uint32_t size = find_group(state, kind, group, state->members);
    for (uint32_t i = 0; i < size; i++)
        counts[state->colour[state->members[i]]] += by;
}

/* Every group has the members, by class, of the group of its first member's representative. */
static void check_groups(const struct refinement *state, const struct partition *partition,
                         uint32_t kind, int32_t *counts)
{
    const uint32_t *group_of = state->group_of[kind];
    for (uint32_t g = 0; g < group_count(state, kind); g++) {
        find_group(state, kind, g, state->members);
        const uint32_t first = partition->class_of[state->members[0]];
        const uint32_t like = group_of[partition->representative[first]];
        if (like == g)
            continue;
        count_members(state, kind, like, counts, -1);
        count_members(state, kind, g, counts, 1);
        const uint32_t size = find_group(state, kind, g, state->members);
        for (uint32_t i = 0; i < size; i++)
            ASSERT(counts[partition->class_of[state->members[i]]] == 0);
    }
}

static void check_equitable(const struct refinement *state, const struct partition *partition,
                            struct arena *arena)
{
    int32_t *counts = ARENA_ARRAY(arena, partition->count, int32_t);
    for (uint32_t kind = 0; kind < state->kind_count; kind++) {
        if (state->group_of[kind] != NULL)
            check_groups(state, partition, kind, counts);
    }
    const struct layout *layout = state->layout;
    for (uint32_t rank = 0; rank < layout->world; rank++) {
        const uint32_t like = partition->representative[partition->class_of[rank]];
        for (int peer = 0; peer < RANK_PEERS_MAX; peer++) {
            ASSERT(partition->class_of[partition_peer(layout, rank, peer)] ==
                   partition->class_of[partition_peer(layout, like, peer)]);
        }
    }
}

/* ---- The whole ---- */

/* Representatives and sizes, from the classes. */
static void find_members(struct partition *partition, uint32_t world, struct arena *arena)
{
    partition->representative = ARENA_ARRAY(arena, partition->count, uint32_t);
    partition->rank_count = ARENA_ARRAY(arena, partition->count, uint32_t);
    for (uint32_t rank = 0; rank < world; rank++) {
        const uint32_t class = partition->class_of[rank];
        if (partition->rank_count[class]++ == 0)
            partition->representative[class] = rank;
    }
}

void partition_build(const struct partition_ask *ask, struct arena *arena,
                     struct partition *partition)
{
    const struct layout *layout = ask->layout;
    uint32_t *colours = ask->colours;
    ASSERT(ask->domain_count <= DOMAINS_MAX);
    struct refinement state = {.layout = layout,
                               .colour = colours,
                               .domains = ask->domains,
                               .kind_count = GROUP_SLOT_COUNT + ask->domain_count};
    state.signatures = ARENA_ARRAY(arena, layout->world, struct signature);
    state.number = ARENA_ARRAY(arena, layout->world, uint32_t);
    state.members = ARENA_ARRAY(arena, layout->world, uint32_t);
    find_groups(&state, arena);
    for (uint32_t rank = 0; rank < layout->world; rank++)
        state.signatures[rank] = (struct signature){colours[rank], rank};
    uint32_t before = 0;
    uint32_t count = number_colours(&state);
    while (count != before) {
        before = count;
        count = refine_once(&state);
        ASSERT(count >= before);
    }
    *partition = (struct partition){.class_of = colours, .count = count};
    find_members(partition, layout->world, arena);
    check_equitable(&state, partition, arena);
}

/* Only groups of the ends and of the world join stages, and each has all of them alike. */
void partition_by_stage(const struct layout *layout, struct arena *arena,
                        struct partition *partition)
{
    *partition = (struct partition){.count = layout->pp};
    partition->representative = ARENA_ARRAY(arena, layout->pp, uint32_t);
    partition->rank_count = ARENA_ARRAY(arena, layout->pp, uint32_t);
    for (uint32_t stage = 0; stage < layout->pp; stage++) {
        partition->representative[stage] = layout_rank(layout, 0, 0, 0, stage);
        partition->rank_count[stage] = layout->world / layout->pp;
    }
}

uint32_t partition_class(const struct partition *partition, const struct layout *layout,
                         uint32_t rank)
{
    return partition->class_of != NULL ? partition->class_of[rank]
                                       : layout_coordinates(layout, rank).pp;
}
