/*
 * sim_ranks.c - which ranks are simulated, their classes, groups and peers.
 *
 * Folded: ranks of one stage run the same program with the same costs on symmetric links, so
 * one stands for all. Its groups have one simulated member each, except those that join
 * stages (world, ends). All: every rank, every group.
 */
#include "plan_internal.h"

#include <math.h>

static const enum stream SLOT_STREAM[GROUP_SLOT_COUNT] = {
    [GROUP_TP] = STREAM_TP,    [GROUP_CP] = STREAM_CP,    [GROUP_EP] = STREAM_EP,
    [GROUP_ETP] = STREAM_EP,   [GROUP_DP_CP] = STREAM_DP, [GROUP_EDP] = STREAM_DP,
    [GROUP_WORLD] = STREAM_DP, [GROUP_ENDS] = STREAM_DP,
};

static void build_classes(struct plan_builder *builder, const struct stage_memory *memory,
                          struct programs *programs)
{
    const struct layout *layout = builder->ask->graph->layout;
    struct rank_class *classes = ARENA_ARRAY(builder->arena, layout->pp, struct rank_class);
    for (uint32_t stage = 0; stage < layout->pp; stage++) {
        const struct stage_memory *m = &memory[stage];
        classes[stage] = (struct rank_class){
            .program = stage,
            .durations_ps = builder->costs.durations,
            .deltas_bytes = builder->costs.deltas,
            .stage = stage,
            .rank_count = layout->world / layout->pp,
            .static_bytes = (int64_t)llround(m->weights) + (int64_t)llround(m->gradients) +
                            (int64_t)llround(m->optimizer) + (int64_t)llround(m->buffers) +
                            (int64_t)llround(m->reserve),
        };
    }
    programs->classes = classes;
    programs->class_count = layout->pp;
}

/* Simulated members of a folded group that stage `stage` belongs to. */
static uint32_t folded_members(const struct layout *layout, enum group_slot slot, uint32_t stage,
                               uint32_t *members)
{
    if (slot == GROUP_WORLD) {
        for (uint32_t s = 0; s < layout->pp; s++) {
            members[s] = s;
        }
        return layout->pp;
    }
    if (slot == GROUP_ENDS && layout->pp > 1) {
        if (stage != 0 && stage + 1 != layout->pp) {
            return 0;
        }
        members[0] = 0;
        members[1] = layout->pp - 1;
        return 2;
    }
    members[0] = stage;
    return 1;
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

static void build_folded(struct plan_builder *builder, struct programs *programs)
{
    const struct layout *layout = builder->ask->graph->layout;
    struct arena *arena = builder->arena;
    const uint32_t pp = layout->pp;
    struct sim_rank *ranks = ARENA_ARRAY(arena, pp, struct sim_rank);
    struct group_writer writer = {
        .groups = ARENA_ARRAY(arena, (size_t)pp * GROUP_SLOT_COUNT, struct sim_group),
        .members = ARENA_ARRAY(arena, (size_t)pp * (GROUP_SLOT_COUNT + 2), uint32_t)};
    uint32_t *members = ARENA_ARRAY(arena, pp + 2, uint32_t);
    for (uint32_t stage = 0; stage < pp; stage++) {
        ranks[stage] = (struct sim_rank){.rank_class = stage,
                                         .rank = layout_rank(layout, 0, 0, 0, stage),
                                         .peer = {(stage + 1) % pp, (stage + pp - 1) % pp}};
        for (int slot = 0; slot < GROUP_SLOT_COUNT; slot++) {
            const enum group_slot s = (enum group_slot)slot;
            const uint32_t count = folded_members(layout, s, stage, members);
            ranks[stage].group[slot] = NO_INDEX;
            if (layout->spans[slot].size < 2 || count == 0) {
                continue;
            }
            const bool first = members[0] == stage;
            ranks[stage].group[slot] =
                first ? add_group(&writer, s, layout->spans[slot].size, members, count)
                      : ranks[members[0]].group[slot];
        }
    }
    programs->ranks = ranks;
    programs->rank_count = pp;
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
        const struct rank_coordinates at = layout_coordinates(layout, rank);
        const uint32_t next = (at.pp + 1) % layout->pp;
        const uint32_t previous = (at.pp + layout->pp - 1) % layout->pp;
        ranks[rank] =
            (struct sim_rank){.rank_class = at.pp,
                              .rank = rank,
                              .peer = {layout_rank(layout, at.tp, at.cp, at.dp, next),
                                       layout_rank(layout, at.tp, at.cp, at.dp, previous)}};
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
    build_classes(builder, memory, programs);
    if (builder->ask->ranks_all) {
        build_all(builder, programs);
    } else {
        build_folded(builder, programs);
    }
}
