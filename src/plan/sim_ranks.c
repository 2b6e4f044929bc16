/*
 * sim_ranks.c - which ranks are simulated, their classes, groups and peers.
 *
 * Folded: of every class of the equitable partition (partition.h) the representative is
 * simulated. A group is simulated once for each set of classes that its members belong to:
 * since ranks of one class sit in groups of equal composition, the representative's group
 * tells the set. All: every rank, every group; classes then only say which tables and
 * programs ranks share, and one of each class is observed.
 */
#include "plan_internal.h"

#include "stepsim/network.h"

#include <math.h>
#include <stdlib.h>

static const enum stream SLOT_STREAM[GROUP_SLOT_COUNT] = {
    [GROUP_TP] = STREAM_TP,    [GROUP_CP] = STREAM_CP,    [GROUP_EP] = STREAM_EP,
    [GROUP_ETP] = STREAM_EP,   [GROUP_DP_CP] = STREAM_DP, [GROUP_EDP] = STREAM_DP,
    [GROUP_WORLD] = STREAM_DP, [GROUP_ENDS] = STREAM_DP,
};

static int64_t static_bytes(const struct stage_memory *memory)
{
    return (int64_t)llround(memory->weights) + (int64_t)llround(memory->gradients) +
           (int64_t)llround(memory->optimizer) + (int64_t)llround(memory->buffers) +
           (int64_t)llround(memory->reserve);
}

static uint32_t class_of(const struct plan_builder *builder, uint32_t rank)
{
    return partition_class(&builder->partition, builder->ask->graph->layout, rank);
}

/* Classes of ranks; ranks of one stage differ where their tables of costs do. */
static void find_classes(struct plan_builder *builder)
{
    const struct layout *layout = builder->ask->graph->layout;
    const bool tables = class_tables_differ(builder);
    struct cluster_domains domains[NETWORK_KINDS_MAX];
    const uint32_t domain_count = transfers_domains(builder, domains);
    if (!tables && domain_count == 0) {
        partition_by_stage(layout, builder->arena, &builder->partition);
        builder->table_of = NULL;
        return;
    }
    builder->table_of = tables ? class_tables_assign(builder) : NULL;
    uint32_t *colours = ARENA_ARRAY(builder->arena, layout->world, uint32_t);
    for (uint32_t rank = 0; rank < layout->world; rank++) {
        const uint32_t stage = layout_coordinates(layout, rank).pp;
        colours[rank] = tables ? stage * builder->table_count + builder->table_of[rank] : stage;
    }
    const struct partition_ask ask = {
        .layout = layout, .colours = colours, .domains = domains, .domain_count = domain_count};
    partition_build(&ask, builder->arena, &builder->partition);
}

void sim_ranks_classes(struct plan_builder *builder, const struct stage_memory *memory,
                       struct programs *programs)
{
    const struct layout *layout = builder->ask->graph->layout;
    const struct partition *partition = &builder->partition;
    if (builder->table_of != NULL)
        class_tables_build(builder, programs);
    struct rank_class *classes = ARENA_ARRAY(builder->arena, partition->count, struct rank_class);
    for (uint32_t c = 0; c < partition->count; c++) {
        const uint32_t rank = partition->representative[c];
        const uint32_t stage = layout_coordinates(layout, rank).pp;
        classes[c] = (struct rank_class){
            .program = stage,
            .durations_ps = builder->costs.durations,
            .deltas_bytes = builder->costs.deltas,
            .stage = stage,
            .rank_count = partition->rank_count[c],
            .static_bytes = static_bytes(&memory[stage]),
        };
        if (builder->table_of != NULL) {
            classes[c].durations_ps = builder->tables[builder->table_of[rank]].durations;
            classes[c].deltas_bytes = builder->tables[builder->table_of[rank]].deltas;
        }
    }
    programs->classes = classes;
    programs->class_count = partition->count;
}

struct group_writer {
    struct sim_group *groups;
    uint32_t *members;
    uint32_t group_count, member_count;
};

static uint32_t add_group(struct group_writer *writer, enum group_slot slot, uint32_t size,
                          const uint32_t *members, uint32_t count)
{
    writer->groups[writer->group_count] = (struct sim_group){
        .member_first = writer->member_count,
        .member_count = count,
        .size = size,
        .slot = (uint8_t)slot,
        .stream = (uint8_t)SLOT_STREAM[slot],
    };
    for (uint32_t i = 0; i < count; i++) {
        writer->members[writer->member_count++] = members[i];
    }
    return writer->group_count++;
}

static int by_number(const void *a, const void *b)
{
    const uint32_t x = *(const uint32_t *)a;
    const uint32_t y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* Classes of the members of one rank's group, ascending, each once. */
static uint32_t classes_of_group(const struct plan_builder *builder, enum group_slot slot,
                                 uint32_t rank, uint32_t *classes)
{
    const struct layout *layout = builder->ask->graph->layout;
    const uint32_t size = layout->spans[slot].size;
    if (slot == GROUP_WORLD) {
        for (uint32_t c = 0; c < builder->partition.count; c++)
            classes[c] = c;
        return builder->partition.count;
    }
    layout_group_members(layout, slot, layout_group_of(layout, slot, rank), classes);
    for (uint32_t i = 0; i < size; i++)
        classes[i] = class_of(builder, classes[i]);
    qsort(classes, size, sizeof *classes, by_number);
    uint32_t count = 0;
    for (uint32_t i = 0; i < size; i++) {
        if (count == 0 || classes[count - 1] != classes[i])
            classes[count++] = classes[i];
    }
    return count;
}

/* First and last stage alone share a tied embedding. */
static bool in_group(const struct layout *layout, enum group_slot slot, uint32_t stage)
{
    const bool end = stage == 0 || stage + 1 == layout->pp;
    return layout->spans[slot].size > 1 && (slot != GROUP_ENDS || end);
}

static void build_folded(struct plan_builder *builder, struct programs *programs)
{
    const struct layout *layout = builder->ask->graph->layout;
    const struct partition *partition = &builder->partition;
    struct arena *arena = builder->arena;
    const uint32_t count = partition->count;
    struct sim_rank *ranks = ARENA_ARRAY(arena, count, struct sim_rank);
    struct group_writer writer = {
        .groups = ARENA_ARRAY(arena, (size_t)count * GROUP_SLOT_COUNT, struct sim_group),
        .members = ARENA_ARRAY(arena, (size_t)count * GROUP_SLOT_COUNT, uint32_t)};
    uint32_t *members = ARENA_ARRAY(arena, layout->world, uint32_t);
    for (uint32_t c = 0; c < count; c++) {
        const uint32_t rank = partition->representative[c];
        const uint32_t stage = layout_coordinates(layout, rank).pp;
        ranks[c] = (struct sim_rank){.rank_class = c, .rank = rank};
        for (int peer = 0; peer < RANK_PEERS_MAX; peer++)
            ranks[c].peer[peer] = class_of(builder, partition_peer(layout, rank, peer));
        for (int slot = 0; slot < GROUP_SLOT_COUNT; slot++) {
            const enum group_slot s = (enum group_slot)slot;
            ranks[c].group[slot] = NO_INDEX;
            if (!in_group(layout, s, stage))
                continue;
            if (s == GROUP_WORLD && c > 0) {
                ranks[c].group[slot] = ranks[0].group[slot];
                continue;
            }
            const uint32_t n = classes_of_group(builder, s, rank, members);
            const bool first = members[0] == c;
            ranks[c].group[slot] = first
                                       ? add_group(&writer, s, layout->spans[slot].size, members, n)
                                       : ranks[members[0]].group[slot];
        }
    }
    programs->ranks = ranks;
    programs->rank_count = count;
    programs->groups = writer.groups;
    programs->group_count = writer.group_count;
    programs->members = writer.members;
    programs->member_count = writer.member_count;
}

static void build_all(struct plan_builder *builder, struct programs *programs)
{
    const struct layout *layout = builder->ask->graph->layout;
    struct arena *arena = builder->arena;
    struct sim_rank *ranks = ARENA_ARRAY(arena, layout->world, struct sim_rank);
    uint32_t groups = 0;
    for (int slot = 0; slot < GROUP_SLOT_COUNT; slot++) {
        groups += layout_group_count(layout, (enum group_slot)slot);
    }
    struct group_writer writer = {
        .groups = ARENA_ARRAY(arena, groups, struct sim_group),
        .members = ARENA_ARRAY(arena, (size_t)layout->world * GROUP_SLOT_COUNT, uint32_t)};
    for (uint32_t rank = 0; rank < layout->world; rank++) {
        ranks[rank] = (struct sim_rank){.rank_class = class_of(builder, rank),
                                        .rank = rank,
                                        .peer = {partition_peer(layout, rank, PEER_NEXT),
                                                 partition_peer(layout, rank, PEER_PREVIOUS)}};
        for (int slot = 0; slot < GROUP_SLOT_COUNT; slot++) {
            ranks[rank].group[slot] = NO_INDEX;
        }
    }
    uint32_t *members = ARENA_ARRAY(arena, layout->world, uint32_t);
    for (int slot = 0; slot < GROUP_SLOT_COUNT; slot++) {
        const enum group_slot s = (enum group_slot)slot;
        const uint32_t size = layout->spans[slot].size;
        for (uint32_t g = 0; size > 1 && g < layout_group_count(layout, s); g++) {
            layout_group_members(layout, s, g, members);
            const uint32_t index = add_group(&writer, s, size, members, size);
            for (uint32_t i = 0; i < size; i++) {
                ranks[members[i]].group[slot] = index;
            }
        }
    }
    programs->ranks = ranks;
    programs->rank_count = layout->world;
    programs->groups = writer.groups;
    programs->group_count = writer.group_count;
    programs->members = writer.members;
    programs->member_count = writer.member_count;
}

void sim_ranks_build(struct plan_builder *builder, const struct stage_memory *memory,
                     struct programs *programs)
{
    find_classes(builder);
    sim_ranks_classes(builder, memory, programs);
    if (builder->ask->ranks_all) {
        build_all(builder, programs);
    } else {
        build_folded(builder, programs);
    }
}
