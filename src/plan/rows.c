/*
 * rows.c - costs that depend on how many routed rows a rank has in a layer.
 *
 * Programs are shared by all ranks of a stage; what differs between positions of the expert
 * group are durations and memory deltas. With unequal loads every op with a part that depends
 * on rows gets an index of its own per layer, and each rank class fills these entries from
 * its own rows. With balanced loads nothing of this happens.
 */
#include <math.h>
#include <string.h>

#include "plan_internal.h"

enum { COST_DURATION, COST_PAIRED, COST_START, COST_END };

static void *grown(void *old, uint32_t count, uint32_t *capacity, size_t size, struct arena *arena)
{
    if (count < *capacity)
        return old;
    const uint32_t larger = *capacity ? *capacity * 2 : 128;
    void *data = arena_calloc(arena, larger, size);
    if (count > 0)
        memcpy(data, old, count * size);
    *capacity = larger;
    return data;
}

void rows_part_add(struct plan_builder *builder, struct template_op *op,
                   const struct rows_part *part)
{
    builder->parts = grown(builder->parts, builder->part_count, &builder->part_capacity,
                           sizeof *builder->parts, builder->arena);
    if (op->part_count == 0)
        op->part_first = builder->part_count;
    ASSERT(op->part_first + op->part_count == builder->part_count);
    builder->parts[builder->part_count++] = *part;
    op->part_count++;
}

static uint32_t new_duration(struct plan_builder *builder, const struct template_op *op,
                             int32_t layer, bool paired)
{
    builder->rows_durations =
        grown(builder->rows_durations, builder->rows_duration_count,
              &builder->rows_duration_capacity, sizeof *builder->rows_durations, builder->arena);
    const uint32_t index = cost_table_duration(&builder->costs, 0, builder->arena);
    transfers_like(builder, index, op->duration);
    builder->rows_durations[builder->rows_duration_count++] =
        (struct rows_duration){.duration = index,
                               .layer = (uint32_t)layer,
                               .part_first = op->part_first,
                               .part_count = op->part_count,
                               .fixed = op->fixed,
                               .paired = paired};
    return index;
}

static uint32_t new_delta(struct plan_builder *builder, const struct template *template,
                          int32_t layer, bool at_start)
{
    builder->rows_deltas =
        grown(builder->rows_deltas, builder->rows_delta_count, &builder->rows_delta_capacity,
              sizeof *builder->rows_deltas, builder->arena);
    const uint32_t index = cost_table_delta(&builder->costs, 1.0, builder->arena);
    builder->rows_deltas[builder->rows_delta_count++] =
        (struct rows_delta){.delta = index,
                            .layer = (uint32_t)layer,
                            .block = template->block,
                            .recompute = template->recompute,
                            .at_start = at_start,
                            .which = template->which};
    return index;
}

static uint32_t draws_of(const struct expert_loads *loads)
{
    return loads->draws > 1 ? loads->draws : 1;
}

static uint32_t (*layer_slot(struct plan_builder *builder, struct template *template, uint32_t op,
                             int32_t layer))[4]
{
    const struct expert_loads *loads = builder->ask->loads;
    if (template->by_layer == NULL) {
        const size_t count = (size_t)draws_of(loads) * loads->layers * template->count;
        template->by_layer = arena_calloc(builder->arena, count, sizeof *template->by_layer);
        for (size_t i = 0; i < count; i++) {
            for (int c = 0; c < 4; c++)
                template->by_layer[i][c] = NO_INDEX;
        }
    }
    ASSERT((uint32_t)layer < draws_of(loads) * loads->layers);
    return &template->by_layer[(size_t)layer * template->count + op];
}

struct op_costs rows_costs(struct plan_builder *builder, const struct cursor *cursor)
{
    struct template *template = cursor->template;
    const uint32_t op = cursor->next;
    const struct template_op *from = &template->ops[op];
    const bool exchange = cursor->paired && from->stream == STREAM_EP;
    struct op_costs costs = {.duration = exchange ? from->duration_paired : from->duration,
                             .delta_start = from->delta_start,
                             .delta_end = from->delta_end};
    const struct expert_loads *loads = builder->ask->loads;
    if (loads == NULL || cursor->layer < 0 || !template->block->moe)
        return costs;
    /* Layers of every draw follow one another. */
    const int32_t draw = loads->draws > 1 ? cursor->microbatch : 0;
    const int32_t layer = draw * (int32_t)loads->layers + cursor->layer;
    uint32_t(*slot)[4] = layer_slot(builder, template, op, layer);
    if (from->part_count > 0) {
        uint32_t *index = &(*slot)[exchange ? COST_PAIRED : COST_DURATION];
        if (*index == NO_INDEX)
            *index = new_duration(builder, from, layer, exchange);
        costs.duration = *index;
    }
    if (from->delta_start != 0) {
        if ((*slot)[COST_START] == NO_INDEX)
            (*slot)[COST_START] = new_delta(builder, template, layer, true);
        costs.delta_start = (*slot)[COST_START];
    }
    if (from->delta_end != 0) {
        if ((*slot)[COST_END] == NO_INDEX)
            (*slot)[COST_END] = new_delta(builder, template, layer, false);
        costs.delta_end = (*slot)[COST_END];
    }
    return costs;
}

struct position_ratios {
    double rows, receive, send;
};

static struct position_ratios ratios_of(const struct expert_loads *loads, uint32_t layer,
                                        uint32_t position)
{
    const size_t at = (size_t)layer * loads->positions + position;
    return (struct position_ratios){.rows = loads->rows_ratio[at],
                                    .receive = loads->receive_ratio[at],
                                    .send = loads->send_ratio[at]};
}

/* An exchange ends for a rank when its own heavier direction is done; the engine takes the
 * longest over the group. */
static double exchange_s(const struct plan_builder *builder, const struct rows_part *part,
                         const struct position_ratios *ratios)
{
    struct collective_ask ask = part->exchange;
    const double heavier = fmax(ratios->receive, ratios->send);
    ask.imbalance = fmax(1.0, heavier);
    if (ask.kind == COLLECTIVE_ALL_TO_ALL || ask.kind == COLLECTIVE_ALL_TO_ALL_HIERARCHICAL)
        ask.bytes *= fmin(1.0, heavier); /* a gather brings tokens that are dropped, too */
    return plan_collective(builder, &ask).time_s;
}

/* Grouped matmuls and matmuls in a loop over experts have m rows per expert; weight
 * gradients have them as inner dimension; bytes follow the rows. */
static double compute_s(const struct plan_builder *builder, const struct rows_part *part,
                        double ratio)
{
    struct compute_ask ask = part->compute;
    ask.bytes *= ratio;
    if (part->rows_in_k)
        ask.k *= ratio;
    else
        ask.m *= ratio;
    if ((part->rows_in_k ? ask.k : ask.m) <= 0.0 && ask.bytes <= 0.0)
        return 0.0;
    return plan_compute_s(builder, &ask);
}

static sim_time duration_of(const struct plan_builder *builder, const struct rows_duration *entry,
                            const struct position_ratios *ratios)
{
    sim_time sum = entry->fixed;
    for (uint32_t i = 0; i < entry->part_count; i++) {
        const struct rows_part *part = &builder->parts[entry->part_first + i];
        double seconds = 0.0;
        if (part->collective)
            seconds = exchange_s(builder, part, ratios) *
                      (entry->paired ? part->paired_factor : part->factor);
        else
            seconds = compute_s(builder, part, ratios->rows);
        sum += sim_time_from_seconds(seconds);
    }
    return sum;
}

const sim_time *rows_balanced(const struct plan_builder *builder)
{
    const struct cost_table *costs = &builder->costs;
    const double ratio = builder->ask->loads->even_ratio;
    const struct position_ratios even = {ratio, ratio, ratio};
    sim_time *balanced = ARENA_ARRAY(builder->arena, costs->duration_count, sim_time);
    memcpy(balanced, costs->durations, costs->duration_count * sizeof *balanced);
    for (uint32_t i = 0; i < builder->rows_duration_count; i++) {
        const struct rows_duration *entry = &builder->rows_durations[i];
        balanced[entry->duration] = duration_of(builder, entry, &even);
    }
    return balanced;
}

uint32_t rows_move(struct plan_builder *builder, const struct rows_move *move)
{
    builder->moves = grown(builder->moves, builder->move_count, &builder->move_capacity,
                           sizeof *builder->moves, builder->arena);
    struct rows_move *entry = &builder->moves[builder->move_count++];
    *entry = *move;
    entry->duration = cost_table_duration(&builder->costs, 0, builder->arena);
    const struct collective_ask ask = plan_group_ask(builder, move->kind, move->slot, move->bytes);
    transfers_note(builder, entry->duration, &ask);
    return entry->duration;
}

/* Experts of this stage that leave the position, times the bytes of one. */
static sim_time move_of(const struct plan_builder *builder, const struct rows_move *move,
                        uint32_t position)
{
    const struct expert_loads *loads = builder->ask->loads;
    const struct layout *layout = builder->ask->graph->layout;
    const uint32_t model_layers = builder->ask->graph->model->layers;
    double experts = 0.0;
    for (uint32_t c = 0; c < layout->vpp; c++) {
        const struct layout_chunk *chunk = &layout->chunks[move->stage * layout->vpp + c];
        for (uint32_t i = 0; i < chunk->layer_count + chunk->mtp; i++) {
            const uint32_t layer = i < chunk->layer_count ? chunk->first_layer + i
                                                          : model_layers + i - chunk->layer_count;
            experts += loads->moved[(size_t)layer * loads->positions + position];
        }
    }
    if (experts <= 0.0)
        return 0;
    const struct collective_cost cost =
        plan_group_collective(builder, move->kind, move->slot, experts * move->bytes);
    return sim_time_from_seconds(cost.time_s);
}

void rows_fill(const struct plan_builder *builder, uint32_t position, sim_time *durations,
               int64_t *deltas)
{
    const struct expert_loads *loads = builder->ask->loads;
    for (uint32_t i = 0; i < builder->rows_duration_count; i++) {
        const struct rows_duration *entry = &builder->rows_durations[i];
        const struct position_ratios ratios = ratios_of(loads, entry->layer, position);
        durations[entry->duration] = duration_of(builder, entry, &ratios);
    }
    for (uint32_t i = 0; i < builder->move_count; i++)
        durations[builder->moves[i].duration] = move_of(builder, &builder->moves[i], position);
    for (uint32_t i = 0; i < builder->rows_delta_count; i++) {
        const struct rows_delta *entry = &builder->rows_deltas[i];
        const struct position_ratios ratios = ratios_of(loads, entry->layer, position);
        const struct pass_deltas bytes =
            pass_deltas(builder->ask->graph, entry->block, entry->recompute,
                        (enum template_kind)entry->which, ratios.rows);
        deltas[entry->delta] = (int64_t)llround(entry->at_start ? bytes.start : bytes.end);
    }
}
