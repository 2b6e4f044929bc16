/*
 * step_end.c - what data parallelism and the optimizer add around the microbatches.
 *
 * ZeRO 0 all-reduces gradients; 1 reduce-scatters them and gathers the updated parameters; 2
 * does so for every microbatch; 3 also gathers the parameters of every block before each pass
 * (one block ahead) and reduce-scatters its gradients behind each backward. Dense gradients go
 * over dp*cp, those of routed experts over edp.
 *
 * With overlap.grad_reduce the gradients of a block are reduced when the last microbatch has
 * passed it, beside the backward of the blocks before it (the buckets of the frameworks are about
 * as large); else all reductions start when the stage is done. With overlap.param_gather the
 * parameters updated by the last step are gathered while the first microbatch runs, each block
 * waiting for its own.
 */
#include "plan_internal.h"

#include <math.h>

static const struct scenario *scenario_of(const struct program_writer *writer)
{
    return writer->builder->ask->graph->scenario;
}

static double gradient_bytes(const struct program_writer *writer)
{
    return scenario_of(writer)->precision.gradients == PRECISION_FP32 ? 4.0 : 2.0;
}

/* A collective of a whole tensor on the dp stream. */
struct reduction {
    const char *name;
    enum collective_kind kind;
    enum group_slot slot;
    double bytes;
    bool overlapped; /* beside compute */
};

/* Appends it behind the newest compute op; NO_INDEX if there is nothing to send. */
static uint32_t add_collective(struct program_writer *writer, const struct reduction *reduction)
{
    struct plan_builder *builder = writer->builder;
    if (reduction->bytes <= 0.0 || builder->ask->graph->layout->spans[reduction->slot].size < 2) {
        return NO_INDEX;
    }
    const struct collective_ask ask =
        plan_group_ask(builder, reduction->kind, reduction->slot, reduction->bytes);
    const struct collective_cost cost = plan_collective(builder, &ask);
    const double factor =
        reduction->overlapped ? builder->ask->cluster->device->contention_comm : 1.0;
    const bool experts = reduction->slot == GROUP_EP; /* whose collectives have a stream */
    struct op_draft draft = {
        .stream = experts ? STREAM_EP : STREAM_DP,
        .op = {.kind = PROGRAM_OP_COLLECTIVE,
               .cause = CAUSE_DP,
               .flags = reduction->overlapped ? PROGRAM_OP_CONTENDS : 0,
               .peer = reduction->slot,
               .duration = cost_table_duration(
                   &builder->costs, sim_time_from_seconds(cost.time_s * factor), builder->arena)},
        .name = reduction->name,
        .pass = 'O'};
    transfers_note(builder, draft.op.duration, &ask);
    draft_wait(&draft, STREAM_COMPUTE, program_writer_last(writer, STREAM_COMPUTE));
    for (int level = 0; level < LEVELS_MAX; level++) {
        builder->sent_bytes[writer->stage * CAUSE_COUNT + CAUSE_DP] += cost.sent_bytes[level];
    }
    return program_writer_add(writer, &draft);
}

struct shard_names {
    const char *dense, *expert;
};

/* Dense part over dp*cp and expert part over edp; the index of the last op added. */
static uint32_t add_both(struct program_writer *writer, const struct shard_names *names,
                         enum collective_kind kind, const struct param_count *params,
                         double bytes_per_param)
{
    const bool overlapped = writer->phase != PHASE_OPTIMIZER;
    const double dense = params->tp_sharded + params->tp_replicated;
    const struct reduction first = {.name = names->dense,
                                    .kind = kind,
                                    .slot = GROUP_DP_CP,
                                    .bytes = dense * bytes_per_param,
                                    .overlapped = overlapped};
    const struct reduction second = {.name = names->expert,
                                     .kind = kind,
                                     .slot = GROUP_EDP,
                                     .bytes = params->expert * bytes_per_param,
                                     .overlapped = overlapped};
    const uint32_t a = add_collective(writer, &first);
    const uint32_t b = add_collective(writer, &second);
    return b != NO_INDEX ? b : a;
}

/* How gradients become equal: whole on every rank, or each rank its shard. */
static enum collective_kind reduction(const struct program_writer *writer)
{
    return scenario_of(writer)->parallel.zero >= 1 ? COLLECTIVE_REDUCE_SCATTER
                                                   : COLLECTIVE_ALL_REDUCE;
}

static const struct shard_names REDUCE = {"grad_reduce.dense", "grad_reduce.experts"};
static const struct shard_names GATHER = {"param_gather.dense", "param_gather.experts"};

/* The reduction of what is left of a chunk: all of it, or what no block holds (the embedding of
 * an MTP module). */
static void reduce_chunk(struct program_writer *writer, uint32_t chunk)
{
    struct param_count params =
        memory_model_params(writer->builder->ask->graph, writer->stage, chunk);
    const struct param_count *done = &writer->reduced[chunk];
    params.tp_sharded = fmax(0.0, params.tp_sharded - done->tp_sharded);
    params.tp_replicated = fmax(0.0, params.tp_replicated - done->tp_replicated);
    params.expert = fmax(0.0, params.expert - done->expert);
    writer->reduced[chunk] = (struct param_count){0};
    add_both(writer, &REDUCE, reduction(writer), &params, gradient_bytes(writer));
}

bool gradients_reduce_next(const struct program_writer *writer, uint32_t chunk)
{
    const struct scenario *scenario = scenario_of(writer);
    const bool last = writer->weights_done[chunk] + 1 ==
                      writer->builder->ask->graph->layout->microbatches;
    return scenario->parallel.zero == 2 ||
           (scenario->parallel.zero < 2 && last && scenario->overlap.grad_reduce);
}

void gradients_of_microbatch_write(struct program_writer *writer, uint32_t chunk)
{
    const bool reduces = gradients_reduce_next(writer, chunk);
    writer->weights_done[chunk]++;
    writer->layer = -1;
    writer->chunk = (uint16_t)chunk;
    if (reduces) {
        reduce_chunk(writer, chunk);
        writer->gradients_reduced[chunk] =
            writer->weights_done[chunk] == writer->builder->ask->graph->layout->microbatches;
    }
}

static void gather_chunk(struct program_writer *writer, uint32_t chunk)
{
    const struct param_count params =
        memory_model_params(writer->builder->ask->graph, writer->stage, chunk);
    add_both(writer, &GATHER, COLLECTIVE_ALL_GATHER, &params, 2.0);
}

static bool gathers_at_start(const struct scenario *scenario)
{
    return scenario->overlap.param_gather &&
           (scenario->parallel.zero == 1 || scenario->parallel.zero == 2);
}

/* Gathers the parameters of a chunk block by block, in the order in which they are needed. */
static void gather_blocks(struct program_writer *writer, uint32_t chunk, uint32_t *ready)
{
    struct chunk_block blocks[CHUNK_BLOCKS_MAX];
    const uint32_t count = chunk_blocks(writer, chunk, blocks);
    for (uint32_t i = 0; i < count; i++) {
        if (block_owns_params(writer, blocks, i)) {
            ready[i] = block_gather_write(writer, blocks[i].kind);
        }
    }
}

void stage_start_write(struct program_writer *writer)
{
    const uint32_t vpp = writer->builder->ask->graph->layout->vpp;
    writer->phase = PHASE_WARMUP;
    writer->microbatch = -1;
    writer->layer = -1;
    for (uint32_t i = 0; i < vpp * CHUNK_BLOCKS_MAX; i++) {
        writer->parameters_ready[i] = NO_INDEX;
    }
    for (uint32_t chunk = 0; chunk < vpp && gathers_at_start(scenario_of(writer)); chunk++) {
        writer->chunk = (uint16_t)chunk;
        gather_blocks(writer, chunk, &writer->parameters_ready[chunk * CHUNK_BLOCKS_MAX]);
    }
}

uint32_t block_parameters_ready(const struct program_writer *writer, uint32_t chunk,
                                uint32_t block)
{
    return writer->parameters_ready[chunk * CHUNK_BLOCKS_MAX + block];
}

static void add_compute(struct program_writer *writer, const char *name, enum time_cause cause,
                        double seconds, double workspace)
{
    struct plan_builder *builder = writer->builder;
    struct op_draft draft = {
        .stream = STREAM_COMPUTE,
        .op = {.kind = PROGRAM_OP_COMPUTE,
               .cause = (uint8_t)cause,
               .duration = cost_table_duration(&builder->costs, sim_time_from_seconds(seconds),
                                               builder->arena),
               .delta_start = cost_table_delta(&builder->costs, workspace, builder->arena),
               .delta_end = cost_table_delta(&builder->costs, -workspace, builder->arena)},
        .name = name,
        .pass = 'O'};
    draft_wait(&draft, STREAM_DP, program_writer_last(writer, STREAM_DP));
    if (writer->builder->ask->loads != NULL && writer->builder->ask->loads->replicated > 0)
        draft_wait(&draft, STREAM_EP, program_writer_last(writer, STREAM_EP));
    draft_wait(&draft, STREAM_SEND, program_writer_last(writer, STREAM_SEND));
    draft_wait(&draft, STREAM_COPY_OUT, program_writer_last(writer, STREAM_COPY_OUT));
    program_writer_add(writer, &draft);
}

/* Parameters whose states this rank updates. */
static double updated_params(const struct program_writer *writer, const struct param_count *params)
{
    const struct layout *layout = writer->builder->ask->graph->layout;
    const bool sharded = scenario_of(writer)->parallel.zero >= 1;
    const double dense = params->tp_sharded + params->tp_replicated;
    return dense / (sharded ? (double)layout->spans[GROUP_DP_CP].size : 1.0) +
           params->expert / (sharded ? (double)layout->spans[GROUP_EDP].size : 1.0);
}

static double element(enum precision precision)
{
    return precision == PRECISION_FP32 ? 4.0 : precision == PRECISION_FP8 ? 1.0 : 2.0;
}

static void add_optimizer(struct program_writer *writer)
{
    struct plan_builder *builder = writer->builder;
    const struct scenario *scenario = scenario_of(writer);
    const struct stage_memory memory = memory_model_stage(builder->ask->graph, writer->stage);
    const double params = updated_params(writer, &memory.params);
    const double gradients = gradient_bytes(writer);
    const struct compute_ask norm = {
        .kind = COMPUTE_OPTIMIZER, .bytes = params * gradients, .kernels = 1.0};
    add_compute(writer, "gradient_norm", CAUSE_OPTIMIZER, plan_compute_s(builder, &norm), 0.0);
    const struct reduction norms = {.name = "gradient_norm.all_reduce",
                                    .kind = COLLECTIVE_ALL_REDUCE,
                                    .slot = GROUP_WORLD,
                                    .bytes = 8.0};
    add_collective(writer, &norms);
    /* Master and both moments are read and written, gradients read, weights written. */
    const double states =
        2.0 * (element(scenario->precision.master) + 2.0 * element(scenario->precision.moments));
    const struct compute_ask update = {.kind = COMPUTE_OPTIMIZER,
                                       .bytes = params * (states + gradients + 2.0) +
                                                param_count_sum(&memory.params) *
                                                    gradients, /* gradients set to zero */
                                       .kernels = 2.0};
    const double update_s = plan_compute_s(builder, &update);
    if (scenario->swap.optimizer) {
        swap_optimizer_write(writer, params * states / 2.0, update_s);
        return;
    }
    add_compute(writer, "optimizer", CAUSE_OPTIMIZER, update_s, memory.optimizer_workspace);
}

/* First and last stage hold copies of a tied embedding and sum their gradients. */
static void add_tied_embedding(struct program_writer *writer)
{
    const struct op_graph *graph = writer->builder->ask->graph;
    const struct layout *layout = graph->layout;
    const bool end = writer->stage == 0 || writer->stage + 1 == layout->pp;
    if (!graph->model->spec->tied_embedding || layout->pp < 2 || layout->v_shaped || !end) {
        return;
    }
    const double elements = (double)graph->model->spec->vocab_size *
                            (double)graph->model->spec->hidden_size / (double)layout->tp;
    const struct reduction tied = {.name = "tied_embedding.all_reduce",
                                   .kind = COLLECTIVE_ALL_REDUCE,
                                   .slot = GROUP_ENDS,
                                   .bytes = elements * gradient_bytes(writer)};
    add_collective(writer, &tied);
}

/* ---- Placement of experts ---- */

struct move_draft {
    const char *name;
    enum collective_kind kind;
    enum group_slot slot;
    double bytes; /* of one expert */
};

static void add_move(struct program_writer *writer, const struct move_draft *move)
{
    struct plan_builder *builder = writer->builder;
    if (builder->ask->graph->layout->spans[move->slot].size < 2)
        return;
    const enum stream stream = move->slot == GROUP_EP ? STREAM_EP : STREAM_DP;
    const struct rows_move entry = {.stage = writer->stage,
                                    .kind = move->kind,
                                    .slot = move->slot,
                                    .bytes = move->bytes};
    struct op_draft draft = {.stream = stream,
                             .op = {.kind = PROGRAM_OP_COLLECTIVE,
                                    .cause = CAUSE_EP,
                                    .peer = move->slot,
                                    .duration = rows_move(builder, &entry)},
                             .name = move->name,
                             .pass = 'O'};
    draft_wait(&draft, STREAM_COMPUTE, program_writer_last(writer, STREAM_COMPUTE));
    if (stream == STREAM_EP)
        draft_wait(&draft, STREAM_DP, program_writer_last(writer, STREAM_DP));
    program_writer_add(writer, &draft);
}

/* Experts that change their rank take weights and states along. Shards of the states lie on
 * the ranks of edp: they are gathered, and the new owner keeps its part. */
static void add_migration(struct program_writer *writer)
{
    const struct op_graph *graph = writer->builder->ask->graph;
    const struct scenario *scenario = scenario_of(writer);
    const struct expert_loads *loads = writer->builder->ask->loads;
    if (loads == NULL || loads->moved == NULL)
        return;
    const double params = graph->model->block_params[BLOCK_MOE].expert /
                          ((double)graph->layout->experts_per_rank *
                           (double)graph->layout->ep * (double)graph->layout->etp);
    const double states =
        element(scenario->precision.master) + 2.0 * element(scenario->precision.moments);
    const struct move_draft gather = {"migrate.gather_states", COLLECTIVE_ALL_GATHER, GROUP_EDP,
                                      params * states};
    const struct move_draft exchange[] = {
        {"migrate.states", COLLECTIVE_ALL_TO_ALL, GROUP_EP, params * states},
        {"migrate.weights", COLLECTIVE_ALL_TO_ALL, GROUP_EP, params * 2.0}};
    if (scenario->parallel.zero >= 1)
        add_move(writer, &gather);
    add_move(writer, &exchange[0]);
    add_move(writer, &exchange[1]);
}

/* Replicated experts are on every rank of the expert group, which sums their gradients. */
static void add_replicas(struct program_writer *writer)
{
    const struct op_graph *graph = writer->builder->ask->graph;
    const struct expert_loads *loads = writer->builder->ask->loads;
    if (loads == NULL || loads->replicated == 0)
        return;
    double experts = 0.0;
    for (uint32_t chunk = 0; chunk < graph->layout->vpp; chunk++)
        experts += memory_model_replicas(graph, writer->stage, chunk);
    const struct reduction replicas = {.name = "grad_reduce.replicas",
                                       .kind = COLLECTIVE_ALL_REDUCE,
                                       .slot = GROUP_EP,
                                       .bytes = experts * gradient_bytes(writer)};
    add_collective(writer, &replicas);
}

void stage_end_write(struct program_writer *writer)
{
    const struct scenario *scenario = scenario_of(writer);
    const uint32_t vpp = writer->builder->ask->graph->layout->vpp;
    writer->phase = PHASE_OPTIMIZER;
    writer->microbatch = -1;
    writer->layer = -1;
    for (uint32_t chunk = 0; chunk < vpp; chunk++) {
        if (!writer->gradients_reduced[chunk] && scenario->parallel.zero < 3) {
            writer->chunk = (uint16_t)chunk;
            reduce_chunk(writer, chunk);
        }
    }
    add_tied_embedding(writer);
    add_replicas(writer);
    add_optimizer(writer);
    const bool gathered =
        scenario->parallel.zero == 0 || scenario->parallel.zero == 3 || gathers_at_start(scenario);
    for (uint32_t chunk = 0; chunk < vpp && !gathered; chunk++) {
        writer->chunk = (uint16_t)chunk;
        gather_chunk(writer, chunk);
    }
    add_migration(writer);
    add_compute(writer, "step_overhead", CAUSE_HOST,
                writer->builder->ask->cluster->device->step_overhead_s, 0.0);
}

/* ---- ZeRO 3, block by block ---- */

static struct param_count block_params(const struct program_writer *writer, enum block_kind kind)
{
    const struct op_graph *graph = writer->builder->ask->graph;
    const struct param_count *block = &graph->model->block_params[kind];
    const struct layout *layout = graph->layout;
    return (struct param_count){
        .tp_sharded = block->tp_sharded / (double)layout->tp,
        .tp_replicated = block->tp_replicated,
        .expert = block->expert / (double)(layout->ep * layout->etp),
    };
}

uint32_t block_gather_write(struct program_writer *writer, enum block_kind kind)
{
    const struct param_count params = block_params(writer, kind);
    return add_both(writer, &GATHER, COLLECTIVE_ALL_GATHER, &params, 2.0);
}

void block_reduce_write(struct program_writer *writer, enum block_kind kind)
{
    const struct param_count params = block_params(writer, kind);
    struct param_count *done = &writer->reduced[writer->chunk];
    add_both(writer, &REDUCE, reduction(writer), &params, gradient_bytes(writer));
    done->tp_sharded += params.tp_sharded;
    done->tp_replicated += params.tp_replicated;
    done->expert += params.expert;
}
