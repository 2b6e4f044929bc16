/*
 * sim_ranks.c - which ranks are simulated, their classes, groups and peers.
 *
 * Folded: ranks of one stage run the same program; with balanced loads they also have the
 * same costs, so one stands for all. Unequal loads split a stage into the positions of its
 * expert group. Of every class one member is simulated. A group is simulated once for each
 * set of classes that its members belong to: since ranks of one class sit in groups of equal
 * composition, the representative's group tells the set (equitable partition, engine.h).
 * All: every rank, every group.
 */
#include "plan_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const enum stream SLOT_STREAM[GROUP_SLOT_COUNT] = {
    [GROUP_TP] = STREAM_TP,    [GROUP_CP] = STREAM_CP,    [GROUP_EP] = STREAM_EP,
    [GROUP_ETP] = STREAM_EP,   [GROUP_DP_CP] = STREAM_DP, [GROUP_EDP] = STREAM_DP,
    [GROUP_WORLD] = STREAM_DP, [GROUP_ENDS] = STREAM_DP,
};

static uint32_t class_count(const struct plan_builder *builder)
{
    const struct layout *layout = builder->ask->graph->layout;
    return builder->ask->loads != NULL ? layout->pp * layout->ep : layout->pp;
}

/* Class of a true rank: its stage, and its position where loads differ. */
static uint32_t class_of(const struct plan_builder *builder, uint32_t rank)
{
    const struct layout *layout = builder->ask->graph->layout;
    const struct rank_coordinates at = layout_coordinates(layout, rank);
    return builder->ask->loads != NULL ? at.pp * layout->ep + at.ep : at.pp;
}

static int64_t static_bytes(const struct stage_memory *memory)
{
    return (int64_t)llround(memory->weights) + (int64_t)llround(memory->gradients) +
           (int64_t)llround(memory->optimizer) + (int64_t)llround(memory->buffers) +
           (int64_t)llround(memory->reserve);
}

struct class_tables {
    const sim_time *durations;
    const int64_t *deltas;
};

/* The balanced tables, with the entries of this position's rows filled in. */
static struct class_tables tables_of(const struct plan_builder *builder, uint32_t position)
{
    const struct cost_table *costs = &builder->costs;
    if (builder->ask->loads == NULL)
        return (struct class_tables){costs->durations, costs->deltas};
    sim_time *durations = ARENA_ARRAY(builder->arena, costs->duration_count, sim_time);
    int64_t *deltas = ARENA_ARRAY(builder->arena, costs->delta_count, int64_t);
    memcpy(durations, costs->durations, costs->duration_count * sizeof *durations);
    memcpy(deltas, costs->deltas, costs->delta_count * sizeof *deltas);
    rows_fill(builder, position, durations, deltas);
    return (struct class_tables){durations, deltas};
}

static void build_classes(struct plan_builder *builder, const struct stage_memory *memory,
                          struct programs *programs)
{
    const struct layout *layout = builder->ask->graph->layout;
    const uint32_t count = class_count(builder);
    const uint32_t positions = count / layout->pp;
    struct rank_class *classes = ARENA_ARRAY(builder->arena, count, struct rank_class);
    for (uint32_t position = 0; position < positions; position++) {
        const struct class_tables tables = tables_of(builder, position);
        for (uint32_t stage = 0; stage < layout->pp; stage++) {
            classes[stage * positions + position] = (struct rank_class){
                .program = stage,
                .durations_ps = tables.durations,
                .deltas_bytes = tables.deltas,
                .stage = stage,
                .rank_count = layout->world / count,
                .static_bytes = static_bytes(&memory[stage]),
            };
        }
    }
    programs->classes = classes;
    programs->class_count = count;
}

/* The first rank of a class: tensor ranks innermost, so position p begins at p * etp. */
static uint32_t representative(const struct plan_builder *builder, uint32_t rank_class)
{
    const struct layout *layout = builder->ask->graph->layout;
    if (builder->ask->loads == NULL)
        return layout_rank(layout, 0, 0, 0, rank_class);
    const uint32_t inside = rank_class % layout->ep * layout->etp;
    const uint32_t rank = layout_rank(layout, inside % layout->tp, inside / layout->tp % layout->cp,
                                      inside / layout->tp / layout->cp, rank_class / layout->ep);
    ASSERT(class_of(builder, rank) == rank_class);
    return rank;
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
        for (uint32_t c = 0; c < class_count(builder); c++)
            classes[c] = c;
        return class_count(builder);
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
    struct arena *arena = builder->arena;
    const uint32_t count = class_count(builder);
    const uint32_t positions = count / layout->pp;
    struct sim_rank *ranks = ARENA_ARRAY(arena, count, struct sim_rank);
    struct group_writer writer = {
        .groups = ARENA_ARRAY(arena, (size_t)count * GROUP_SLOT_COUNT, struct sim_group),
        .members = ARENA_ARRAY(arena, (size_t)count * (GROUP_SLOT_COUNT + 2), uint32_t)};
    uint32_t *members = ARENA_ARRAY(arena, layout->world, uint32_t);
    for (uint32_t c = 0; c < count; c++) {
        const uint32_t stage = c / positions;
        const uint32_t next = (stage + 1) % layout->pp;
        const uint32_t previous = (stage + layout->pp - 1) % layout->pp;
        ranks[c] = (struct sim_rank){
            .rank_class = c,
            .rank = representative(builder, c),
            .peer = {next * positions + c % positions, previous * positions + c % positions}};
        for (int slot = 0; slot < GROUP_SLOT_COUNT; slot++) {
            const enum group_slot s = (enum group_slot)slot;
            ranks[c].group[slot] = NO_INDEX;
            if (!in_group(layout, s, stage))
                continue;
            const uint32_t n = classes_of_group(builder, s, ranks[c].rank, members);
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
        const struct rank_coordinates at = layout_coordinates(layout, rank);
        const uint32_t next = (at.pp + 1) % layout->pp;
        const uint32_t previous = (at.pp + layout->pp - 1) % layout->pp;
        ranks[rank] =
            (struct sim_rank){.rank_class = class_of(builder, rank),
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
