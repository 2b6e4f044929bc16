/*
 * swap.c - tensors that leave the device: activations between forward and backward, and
 * optimizer states between steps.
 *
 * Activations of a block are copied out behind its forward and copied in one block pass
 * before its backward, on their own streams; what the copies cannot hide stays exposed
 * because the backward waits. The host link of a node is shared by its devices, all of which
 * copy at the same time: a device gets the smaller of its own link and its share.
 *
 * Optimizer states come and go in OPTIMIZER_PIECES pieces, so that the copies of one piece run
 * beside the update of another (MindSpeed's swap-optimizer works in 16 turns).
 */
#include "plan_internal.h"

#include <math.h>

#define OPTIMIZER_PIECES 16

static double link_bytes_per_s(const struct plan_builder *builder, enum stream direction)
{
    const struct cluster_spec *spec = builder->ask->cluster->spec;
    const struct device_spec *device = builder->ask->cluster->device;
    const double own =
        direction == STREAM_COPY_OUT ? device->host_down_bytes_per_s : device->host_up_bytes_per_s;
    if (transfers_share(builder)) {
        return own;
    }
    return fmin(own, spec->host_bytes_per_s / (double)spec->devices_per_node);
}

struct copy {
    enum stream direction;
    const char *name;
    double bytes;
    struct program_wait waits[2]; /* index NO_INDEX: none */
};

/* Memory comes with a copy in at its start and leaves with a copy out at its end. */
static uint32_t add_copy(struct program_writer *writer, const struct copy *copy)
{
    struct plan_builder *builder = writer->builder;
    const bool out = copy->direction == STREAM_COPY_OUT;
    const double seconds = copy->bytes / link_bytes_per_s(builder, copy->direction);
    struct op_draft draft = {
        .stream = copy->direction,
        .op = {.kind = PROGRAM_OP_COPY,
               .cause = CAUSE_SWAP,
               .duration = cost_table_duration(&builder->costs, sim_time_from_seconds(seconds),
                                               builder->arena)},
        .name = copy->name,
        .pass = out ? 'F' : 'B'};
    transfers_note_copy(builder, draft.op.duration);
    const uint32_t delta =
        cost_table_delta(&builder->costs, out ? -copy->bytes : copy->bytes, builder->arena);
    draft.op.delta_start = out ? 0 : delta;
    draft.op.delta_end = out ? delta : 0;
    for (int i = 0; i < 2; i++) {
        draft_wait(&draft, (enum stream)copy->waits[i].stream, copy->waits[i].index);
    }
    builder->sent_bytes[writer->stage * CAUSE_COUNT + CAUSE_SWAP] += copy->bytes;
    return program_writer_add(writer, &draft);
}

static double swapped_bytes(const struct program_writer *writer, const struct chunk_block *block)
{
    const struct op_graph *graph = writer->builder->ask->graph;
    if (block->kind == BLOCK_EMBEDDING || block->kind == BLOCK_HEAD) {
        return 0.0;
    }
    return memory_model_swapped(graph, op_graph_block(graph, block->kind, block->windowed),
                                block->recompute);
}

static uint32_t *slot_of(const struct program_writer *writer, const struct walk *walk,
                         uint32_t block)
{
    const struct layout *layout = writer->builder->ask->graph->layout;
    const size_t pass =
        (size_t)walk->cursor.chunk * layout->microbatches + (size_t)walk->cursor.microbatch;
    return &writer->swapped_out[pass * CHUNK_BLOCKS_MAX + block];
}

bool swap_is_on(const struct program_writer *writer)
{
    return writer->builder->ask->graph->scenario->swap.activations != 0;
}

void swap_out_write(struct program_writer *writer, const struct walk *walk, uint32_t block)
{
    const double bytes = swapped_bytes(writer, &walk->blocks[block]);
    if (bytes <= 0.0) {
        return;
    }
    const struct copy copy = {
        .direction = STREAM_COPY_OUT,
        .name = "swap_out",
        .bytes = bytes,
        .waits = {{.stream = STREAM_COMPUTE, .index = program_writer_last(writer, STREAM_COMPUTE)},
                  {.stream = STREAM_COMPUTE, .index = NO_INDEX}}};
    writer->layer = walk->blocks[block].layer;
    *slot_of(writer, walk, block) = add_copy(writer, &copy);
}

uint32_t swap_in_write(struct program_writer *writer, const struct walk *walk, uint32_t block)
{
    const double bytes = swapped_bytes(writer, &walk->blocks[block]);
    if (bytes <= 0.0) {
        return NO_INDEX;
    }
    const struct copy copy = {
        .direction = STREAM_COPY_IN,
        .name = "swap_in",
        .bytes = bytes,
        .waits = {{.stream = STREAM_COPY_OUT, .index = *slot_of(writer, walk, block)},
                  {.stream = STREAM_COMPUTE, .index = writer->boundary}}};
    writer->layer = walk->blocks[block].layer;
    return add_copy(writer, &copy);
}

void swap_optimizer_write(struct program_writer *writer, double state_bytes, double update_s)
{
    struct plan_builder *builder = writer->builder;
    const double piece = state_bytes / OPTIMIZER_PIECES;
    const uint32_t begin = program_writer_last(writer, STREAM_COMPUTE);
    uint32_t out[OPTIMIZER_PIECES];
    for (uint32_t i = 0; i < OPTIMIZER_PIECES; i++) {
        /* Two pieces are on the device at a time. */
        const struct copy copy_in = {
            .direction = STREAM_COPY_IN,
            .name = "swap_in.optimizer",
            .bytes = piece,
            .waits = {{.stream = STREAM_COPY_OUT, .index = i >= 2 ? out[i - 2] : NO_INDEX},
                      {.stream = STREAM_COMPUTE, .index = i == 0 ? begin : NO_INDEX}}};
        const uint32_t in = add_copy(writer, &copy_in);
        struct op_draft update = {
            .stream = STREAM_COMPUTE,
            .op = {.kind = PROGRAM_OP_COMPUTE,
                   .cause = CAUSE_OPTIMIZER,
                   .duration = cost_table_duration(
                       &builder->costs, sim_time_from_seconds(update_s / OPTIMIZER_PIECES),
                       builder->arena)},
            .name = "optimizer",
            .pass = 'O'};
        draft_wait(&update, STREAM_COPY_IN, in);
        draft_wait(&update, STREAM_DP, program_writer_last(writer, STREAM_DP));
        const struct copy copy_out = {
            .direction = STREAM_COPY_OUT,
            .name = "swap_out.optimizer",
            .bytes = piece,
            .waits = {{.stream = STREAM_COMPUTE, .index = program_writer_add(writer, &update)},
                      {.stream = STREAM_COMPUTE, .index = NO_INDEX}}};
        out[i] = add_copy(writer, &copy_out);
    }
}
