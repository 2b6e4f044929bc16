/*
 * plan.c - builds all stage programs and the ranks that run them.
 */
#include "stepsim/plan.h"

#include "plan_internal.h"

#include <math.h>
#include <string.h>

double plan_compute_s(const struct plan_builder *builder, const struct compute_ask *ask)
{
    return compute_cost(ask, builder->ask->cluster->device, false).time_s * builder->compute_scale;
}

struct collective_ask plan_collective_whole(const struct plan_builder *builder,
                                            const struct collective_ask *ask)
{
    struct collective_ask whole = *ask;
    const struct collectives_spec *spec = &builder->ask->graph->scenario->collectives;
    whole.cluster = builder->ask->cluster;
    whole.buffer_bytes = spec->buffer_bytes;
    whole.algorithm_intra = spec->intra_algorithm;
    whole.algorithm_inter = spec->inter_algorithm;
    return whole;
}

struct collective_cost plan_collective(const struct plan_builder *builder,
                                       const struct collective_ask *ask)
{
    const struct collective_ask whole = plan_collective_whole(builder, ask);
    return collective_cost(&whole, builder->explain);
}

struct collective_ask plan_collective_ask(const struct plan_builder *builder, const struct op *op)
{
    const struct layout *layout = builder->ask->graph->layout;
    struct collective_ask ask = {
        .kind = op->collective,
        .bytes = op->bytes,
        .token_bytes = op->token_bytes,
        .copies = op->copies,
        .imbalance = 1.0,
        .span = layout->spans[op->group],
    };
    if (op->span_size > 0 && op->span_size != ask.span.size) {
        const uint32_t stride = op->span_stride ? op->span_stride : ask.span.stride;
        ask.span = cluster_group_span(builder->ask->cluster, op->span_size, stride);
    }
    return ask;
}

struct collective_ask plan_group_ask(const struct plan_builder *builder, enum collective_kind kind,
                                     enum group_slot slot, double bytes)
{
    return (struct collective_ask){.kind = kind,
                                   .bytes = bytes,
                                   .imbalance = 1.0,
                                   .span = builder->ask->graph->layout->spans[slot]};
}

struct collective_cost plan_group_collective(const struct plan_builder *builder,
                                             enum collective_kind kind, enum group_slot slot,
                                             double bytes)
{
    const struct collective_ask ask = plan_group_ask(builder, kind, slot, bytes);
    return plan_collective(builder, &ask);
}

double plan_growth(const struct plan_ask *ask)
{
    const double nodes =
        (double)ask->cluster->devices / (double)ask->cluster->spec->devices_per_node;
    const double growth =
        nodes > 1.0 ? 1.0 + ask->cluster->device->growth_per_doubling * log2(nodes) : 1.0;
    return growth / ask->cluster->device->sustained_ratio;
}

void plan_price_send(struct plan_builder *builder)
{
    const struct collective_ask ask = {.kind = COLLECTIVE_SEND_RECV,
                                       .bytes = builder->ask->graph->boundary_bytes,
                                       .imbalance = 1.0,
                                       .span = builder->ask->graph->layout->pp_next};
    const struct collective_cost cost = plan_collective(builder, &ask);
    for (int peer = 0; peer < RANK_PEERS_MAX; peer++) {
        builder->send_duration[peer] = cost_table_duration(
            &builder->costs, sim_time_from_seconds(cost.time_s), builder->arena);
        transfers_note(builder, builder->send_duration[peer], &ask);
    }
    for (int level = 0; level < LEVELS_MAX; level++) {
        builder->send_bytes += cost.sent_bytes[level];
    }
}

static void write_stage(struct plan_builder *builder, uint32_t stage, struct program *program)
{
    const uint32_t vpp = builder->ask->graph->layout->vpp;
    struct program_writer writer = {
        .builder = builder,
        .stage = stage,
        .microbatch = -1,
        .layer = -1,
        .blocked_on = {.stream = STREAM_SEND, .index = NO_INDEX},
        .parameters_ready =
            ARENA_ARRAY(builder->arena, (size_t)vpp * CHUNK_BLOCKS_MAX, uint32_t),
        .reduced = ARENA_ARRAY(builder->arena, vpp, struct param_count),
        .weights_done = ARENA_ARRAY(builder->arena, vpp, uint32_t),
        .gradients_reduced = ARENA_ARRAY(builder->arena, vpp, bool),
    };
    writer.boundary = writer.next_boundary = NO_INDEX;
    if (stage > 0) {
        program_writer_reserve(&writer, program - 1);
    }
    if (stage == 1) { /* stages are about equally long */
        const uint32_t labels = builder->costs.label_count;
        cost_table_reserve_labels(&builder->costs,
                                  (labels + labels / 8) * builder->ask->graph->layout->pp,
                                  builder->arena);
    }
    if (swap_is_on(&writer)) {
        const size_t passes = (size_t)vpp * builder->ask->graph->layout->microbatches;
        writer.swapped_out = ARENA_ARRAY(builder->arena, passes * CHUNK_BLOCKS_MAX, uint32_t);
    }
    stage_start_write(&writer);
    stage_actions_write(&writer);
    stage_end_write(&writer);
    for (int stream = 0; stream < STREAM_COUNT; stream++) {
        program->ops[stream] = writer.ops[stream];
        program->op_count[stream] = writer.count[stream];
    }
    program->waits = writer.waits;
    program->wait_count = writer.wait_count;
    program->message_count = writer.messages;
}

/* Logits of all head passes of one microbatch on a stage. */
static double stage_logits(const struct op_graph *graph, uint32_t stage)
{
    const struct block_ops *head = op_graph_block(graph, BLOCK_HEAD, false);
    const double one = memory_model_kept(graph, head, false, 1.0).logits;
    double passes = 0.0;
    for (uint32_t chunk = 0; chunk < graph->layout->vpp; chunk++) {
        const struct layout_chunk *slots =
            &graph->layout->chunks[stage * graph->layout->vpp + chunk];
        passes += (double)slots->mtp + (slots->head ? 1.0 : 0.0);
    }
    return one * passes;
}

static struct plan_builder *builder_create(const struct plan_ask *ask, struct arena *arena,
                                           const struct plan_builder *like)
{
    const struct layout *layout = ask->graph->layout;
    struct plan_builder *builder = ARENA_NEW(arena, struct plan_builder);
    builder->like = like;
    builder->own_ask = *ask;
    builder->ask = &builder->own_ask;
    builder->arena = arena;
    transfers_start(builder);
    builder->compute_scale = plan_growth(ask);
    builder->sent_bytes = ARENA_ARRAY(arena, (size_t)layout->pp * CAUSE_COUNT, double);
    builder->hardware_flop = ARENA_ARRAY(arena, layout->pp, double);
    builder->forward_flop = ARENA_ARRAY(arena, layout->pp, double);
    builder->rows_flop = ARENA_ARRAY(arena, layout->pp, double);
    builder->recompute_flop = ARENA_ARRAY(arena, layout->pp, double);
    cost_table_delta(&builder->costs, 0.0, arena);
    plan_price_send(builder);
    templates_build(builder);
    messages_number(builder);
    return builder;
}

struct plan_builder *plan_reprice(const struct plan_builder *like, const struct cluster *cluster)
{
    struct plan_ask ask = *like->ask;
    ask.cluster = cluster;
    struct plan_builder *builder = builder_create(&ask, like->arena, like);
    const uint32_t stages = ask.graph->layout->pp;
    struct program *programs = ARENA_ARRAY(like->arena, stages, struct program);
    for (uint32_t stage = 0; stage < stages; stage++) {
        write_stage(builder, stage, &programs[stage]);
    }
    ASSERT(builder->costs.duration_count == like->costs.duration_count);
    ASSERT(builder->rows_duration_count == like->rows_duration_count);
    return builder;
}

const struct plan *programs_build(const struct plan_ask *ask, struct arena *arena)
{
    const struct layout *layout = ask->graph->layout;
    struct plan_builder *builder = builder_create(ask, arena, NULL);
    struct program *stages = ARENA_ARRAY(arena, layout->pp, struct program);
    struct stage_memory *memory = ARENA_ARRAY(arena, layout->pp, struct stage_memory);
    double *logits = ARENA_ARRAY(arena, layout->pp, double);
    for (uint32_t stage = 0; stage < layout->pp; stage++) {
        write_stage(builder, stage, &stages[stage]);
        memory[stage] = memory_model_stage(ask->graph, stage);
        logits[stage] = stage_logits(ask->graph, stage);
    }
    struct programs *programs = ARENA_NEW(arena, struct programs);
    programs->programs = stages;
    programs->program_count = layout->pp;
    programs->labels = builder->costs.labels;
    programs->label_count = builder->costs.label_count;
    programs->duration_count = builder->costs.duration_count;
    programs->delta_count = builder->costs.delta_count;
    programs->stage_count = layout->pp;
    programs->world = layout->world;
    programs->contention_compute_ppm =
        (int64_t)llround(ask->cluster->device->contention_compute * 1e6);
    programs->jitter_ppm = (int64_t)llround(ask->graph->scenario->noise.kernel_jitter * 1e6);
    programs->jitter_seed = ask->graph->scenario->seed;
    sim_ranks_build(builder, memory, programs);
    programs->network = transfers_finish(builder, programs);
    struct plan *plan = ARENA_NEW(arena, struct plan);
    plan->programs = programs;
    plan->sent_bytes = builder->sent_bytes;
    plan->hardware_flop = builder->hardware_flop;
    plan->forward_flop = builder->forward_flop;
    plan->rows_flop = builder->rows_flop;
    plan->balanced_ps = ask->loads != NULL ? rows_balanced(builder) : NULL;
    plan->builder = builder;
    plan->recompute_flop = builder->recompute_flop;
    plan->stage_memory = memory;
    plan->logits_bytes = logits;
    return plan;
}

const struct programs *plan_loads_change(const struct plan *plan, const struct expert_loads *loads,
                                         uint32_t slot)
{
    struct plan_builder *builder = plan->builder;
    const struct expert_loads *before = builder->own_ask.loads;
    ASSERT(before != NULL && loads->layers == before->layers && loads->draws == before->draws);
    ASSERT(loads->positions == before->positions && slot < PLAN_LATER_MAX);
    builder->own_ask.loads = loads;
    struct later_step *later = &builder->later[slot];
    if (later->programs == NULL) {
        later->tables = ARENA_ARRAY(builder->arena, builder->table_count, struct class_table);
        memcpy(later->tables, builder->tables, builder->table_count * sizeof *later->tables);
        builder->tables = later->tables;
        later->programs = ARENA_NEW(builder->arena, struct programs);
        *later->programs = *plan->programs;
        sim_ranks_classes(builder, plan->stage_memory, later->programs);
    } else {
        builder->tables = later->tables;
        class_tables_fill(builder);
    }
    return later->programs;
}
