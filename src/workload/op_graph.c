/*
 * op_graph.c - assembles blocks from their halves and derives the passes: the recompute
 * pass is the forward list cut down to the recomputed modules, the split backward passes
 * are the merged backward list divided by `in_weight_pass`.
 */
#include "stepsim/op_graph.h"

#include <math.h>

#include "op_writer.h"

/* Two passes over layers with and without a window, and the three other kinds. */
#define BLOCKS_MAX 8

static struct op_sizes sizes_of(const struct op_graph_ask *ask)
{
    const struct layout *layout = ask->layout;
    struct op_sizes sizes = {
        .scenario = ask->scenario,
        .model = ask->model,
        .layout = layout,
        .batch = (double)layout->micro_batch_size,
        .seq_len = (double)layout->seq_len,
        .hidden = (double)ask->model->spec->hidden_size,
        .tp = (double)layout->tp,
        .cp = (double)layout->cp,
        .ep = (double)layout->ep,
        .etp = (double)layout->etp,
        .sequence_parallel = layout->sequence_parallel && layout->tp > 1,
        .decouple_weight = ask->decouple_weight || ask->scenario->moe.overlap_intra_layer,
        .fuse_collective =
            ask->scenario->overlap.matmul_collective != MATMUL_COLLECTIVE_NONE && layout->tp > 1,
    };
    sizes.tokens = sizes.batch * sizes.seq_len / sizes.cp;
    sizes.tokens_norm = sizes.sequence_parallel ? sizes.tokens / sizes.tp : sizes.tokens;
    return sizes;
}

static int16_t layer_forward(struct op_writer *writer, bool moe, bool windowed, int16_t after)
{
    after = attention_forward(writer, windowed, after);
    return moe ? moe_forward(writer, after) : dense_forward(writer, after);
}

static int16_t layer_backward(struct op_writer *writer, bool moe, bool windowed, int16_t after)
{
    after = moe ? moe_backward(writer, after) : dense_backward(writer, after);
    return attention_backward(writer, windowed, after);
}

/* The consumer of a block's last communication is the next block; a closing op carries the
 * wait, so that blocks can be joined in any order. */
static void close_list(struct op_writer *writer, int16_t ready)
{
    if (ready != OP_NONE) {
        const int16_t index = op_vector(writer, "join", 0.0, 0.0);
        op_wait(writer, index, ready);
    }
}

static void write_forward(struct op_writer *writer, const struct model *model,
                          const struct block_ops *block)
{
    int16_t ready = OP_NONE;
    switch (block->kind) {
    case BLOCK_EMBEDDING:
        ready = embedding_forward(writer, ready);
        break;
    case BLOCK_DENSE:
    case BLOCK_MOE:
        ready = layer_forward(writer, block->moe, block->windowed, ready);
        break;
    case BLOCK_MTP:
        ready = mtp_entry_forward(writer, ready);
        ready = layer_forward(writer, model->mtp_layer_kind == BLOCK_MOE, block->windowed, ready);
        break;
    case BLOCK_HEAD:
        ready = head_forward(writer, ready);
        break;
    case BLOCK_KIND_COUNT:
        ASSERT(!"not a block");
        break;
    }
    close_list(writer, ready);
}

static void write_backward(struct op_writer *writer, const struct model *model,
                           const struct block_ops *block)
{
    int16_t ready = OP_NONE;
    switch (block->kind) {
    case BLOCK_EMBEDDING:
        ready = embedding_backward(writer, ready);
        break;
    case BLOCK_DENSE:
    case BLOCK_MOE:
        ready = layer_backward(writer, block->moe, block->windowed, ready);
        break;
    case BLOCK_MTP:
        ready = layer_backward(writer, model->mtp_layer_kind == BLOCK_MOE, block->windowed, ready);
        ready = mtp_entry_backward(writer, ready);
        break;
    case BLOCK_HEAD:
        ready = head_backward(writer, ready);
        break;
    case BLOCK_KIND_COUNT:
        ASSERT(!"not a block");
        break;
    }
    close_list(writer, ready);
}

static void write_saved(const struct op_sizes *sizes, struct block_ops *block)
{
    const bool layer =
        block->kind == BLOCK_DENSE || block->kind == BLOCK_MOE || block->kind == BLOCK_MTP;
    if (block->kind == BLOCK_MTP) {
        mtp_entry_saved(sizes, block);
    }
    if (layer) {
        attention_saved(sizes, block->windowed, block);
        if (block->moe) {
            moe_saved(sizes, block);
        } else {
            dense_saved(sizes, block);
        }
    }
    if (block->kind == BLOCK_HEAD) {
        head_saved(sizes, block);
    }
}

/* Does a filtered list hold this op? */
typedef bool (*op_filter)(const struct op *op, uint32_t argument);

static bool in_modules(const struct op *op, uint32_t modules)
{
    return (op->module & modules) != 0;
}

static bool of_weight(const struct op *op, uint32_t wanted)
{
    return op->in_weight_pass == (wanted != 0);
}

/* The ops that pass the filter, with dependencies on dropped ops removed: what they
 * produced is there already. A matmul loses a fused collective that was dropped. */
static struct op_list filtered(const struct op_list *list, op_filter filter, uint32_t argument,
                               struct arena *arena)
{
    int16_t renumbered[OPS_PER_LIST_MAX];
    struct op *ops = ARENA_ARRAY(arena, list->count ? list->count : 1, struct op);
    uint32_t count = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        renumbered[i] = OP_NONE;
        if (filter(&list->ops[i], argument)) {
            ops[count] = list->ops[i];
            renumbered[i] = (int16_t)count++;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        for (int slot = 0; slot < OP_AFTER_MAX; slot++) {
            if (ops[i].after[slot] != OP_NONE) {
                ops[i].after[slot] = renumbered[ops[i].after[slot]];
            }
        }
        if (ops[i].fused_collective != OP_NONE) {
            ops[i].fused_collective = renumbered[ops[i].fused_collective];
        }
    }
    return (struct op_list){.ops = ops, .count = count};
}

/* The largest weight gradient that exists as a tensor of its own before it is added: all unless
 * the matmul adds, and always that of the embedding table. */
static double largest_gradient(const struct op_sizes *sizes, const struct block_ops *block)
{
    if (block->kind == BLOCK_EMBEDDING)
        return (double)sizes->model->spec->vocab_size / sizes->tp * sizes->hidden * ELEMENT_BYTES;
    double largest = 0.0;
    for (uint32_t i = 0; i < block->backward.count; i++) {
        const struct compute_ask *ask = &block->backward.ops[i].compute;
        const bool grouped = ask->kind == COMPUTE_GROUPED_MATMUL;
        if (!block->backward.ops[i].in_weight_pass || !(grouped || ask->kind == COMPUTE_MATMUL))
            continue;
        largest = fmax(largest, (grouped ? ask->groups : 1.0) * ask->m * ask->n * ELEMENT_BYTES);
    }
    return sizes->scenario->fusion.grad_accumulation ? 0.0 : largest;
}

/* Alive only while a pass runs: gathered inputs, exchange buffers, gradients of outputs and
 * weights. */
static void workspaces(const struct op_sizes *sizes, struct block_ops *block)
{
    const double whole = sizes->tokens * sizes->hidden * ELEMENT_BYTES;
    double largest = 0.0;
    for (uint32_t i = 0; i < block->saved_count; i++) {
        if (block->saved[i].bytes > largest) {
            largest = block->saved[i].bytes;
        }
    }
    block->workspace_forward_bytes = whole;
    block->workspace_backward_bytes = 2.0 * whole + largest;
    if (block->moe) {
        const struct moe_spec *spec = &sizes->model->spec->moe;
        const double copies =
            sizes->tokens / sizes->tp * (double)spec->top_k * sizes->hidden * ELEMENT_BYTES;
        block->workspace_rows_bytes = 2.0 * copies * sizes->etp;
        block->workspace_forward_bytes += block->workspace_rows_bytes;
        block->workspace_backward_bytes += block->workspace_rows_bytes;
    }
    if (block->kind == BLOCK_HEAD) {
        block->workspace_backward_bytes = 2.0 * whole;
    }
    block->workspace_gradient_bytes = largest_gradient(sizes, block);
}

static void build_block(struct block_ops *block, const struct op_sizes *sizes, struct arena *arena)
{
    struct op_writer writer;
    struct op ops[OPS_PER_LIST_MAX];
    op_writer_start(&writer, sizes, ops);
    write_forward(&writer, sizes->model, block);
    block->pass[PASS_FORWARD] = op_writer_finish(&writer, arena);
    op_writer_start(&writer, sizes, ops);
    write_backward(&writer, sizes->model, block);
    block->backward = op_writer_finish(&writer, arena);
    block->pass[PASS_RECOMPUTE] =
        filtered(&block->pass[PASS_FORWARD], in_modules, sizes->scenario->recompute.modules, arena);
    block->pass[PASS_BACKWARD_INPUT] = filtered(&block->backward, of_weight, 0, arena);
    block->pass[PASS_BACKWARD_WEIGHT] = filtered(&block->backward, of_weight, 1, arena);
    write_saved(sizes, block);
    workspaces(sizes, block);
    const bool eager = sizes->scenario->host.dispatch == HOST_EAGER;
    block->host_syncs = block->moe && eager && sizes->ep > 1.0 ? 1.0 : 0.0;
}

static bool layer_windowed(const struct model *model, uint32_t layer)
{
    return model->layer_windowed != NULL && model->layer_windowed[layer];
}

static void build_blocks(struct op_graph *graph, const struct op_sizes *sizes, struct arena *arena)
{
    struct block_ops *blocks = ARENA_ARRAY(arena, BLOCKS_MAX, struct block_ops);
    const struct model *model = graph->model;
    bool present[BLOCK_KIND_COUNT][2] = {{false}};
    present[BLOCK_EMBEDDING][0] = present[BLOCK_HEAD][0] = true;
    present[BLOCK_MTP][0] = model->spec->mtp_layers > 0;
    for (uint32_t layer = 0; layer < model->layers; layer++) {
        present[model->layer_kind[layer]][layer_windowed(model, layer)] = true;
    }
    for (int kind = 0; kind < BLOCK_KIND_COUNT; kind++) {
        for (int windowed = 0; windowed < 2; windowed++) {
            if (!present[kind][windowed]) {
                continue;
            }
            struct block_ops *block = &blocks[graph->block_count++];
            block->kind = (enum block_kind)kind;
            block->windowed = windowed != 0;
            block->moe =
                kind == BLOCK_MOE || (kind == BLOCK_MTP && model->mtp_layer_kind == BLOCK_MOE);
            build_block(block, sizes, arena);
        }
    }
    graph->blocks = blocks;
}

bool op_graph_check(const struct op_graph_ask *ask, struct error_list *errors)
{
    return switches_check(ask, errors);
}

const struct op_graph *op_graph_build(const struct op_graph_ask *ask, struct arena *arena,
                                      struct error_list *errors)
{
    if (!switches_check(ask, errors)) {
        return NULL;
    }
    const struct op_sizes sizes = sizes_of(ask);
    struct op_graph *graph = ARENA_NEW(arena, struct op_graph);
    graph->scenario = ask->scenario;
    graph->model = ask->model;
    graph->layout = ask->layout;
    graph->tokens = sizes.tokens;
    graph->boundary_bytes = sizes.tokens_norm * sizes.hidden * ELEMENT_BYTES;
    build_blocks(graph, &sizes, arena);
    return graph;
}

const struct block_ops *op_graph_block(const struct op_graph *graph, enum block_kind kind,
                                       bool windowed)
{
    for (uint32_t i = 0; i < graph->block_count; i++) {
        const struct block_ops *block = &graph->blocks[i];
        if (block->kind == kind && block->windowed == windowed) {
            return block;
        }
    }
    ASSERT(!"a block that the model does not have");
    return NULL;
}

bool op_graph_recomputes(const struct op_graph *graph, uint32_t stage, uint32_t chunk,
                         uint32_t index)
{
    const struct recompute_spec *spec = &graph->scenario->recompute;
    if (spec->modules == 0) {
        return false;
    }
    switch (spec->method) {
    case RECOMPUTE_ALL:
    case RECOMPUTE_UNIFORM:
        return true;
    case RECOMPUTE_BLOCK:
        return index < spec->layers;
    case RECOMPUTE_PER_STAGE: {
        uint32_t before = 0; /* layers of earlier chunks of this stage */
        for (uint32_t c = 0; c < chunk; c++) {
            before += graph->layout->chunks[stage * graph->layout->vpp + c].layer_count;
        }
        return before + index < spec->stage_layers[stage];
    }
    }
    return false;
}

double op_flop(const struct op *op)
{
    const struct compute_ask *ask = &op->compute;
    if (op->op_class != OP_CLASS_COMPUTE) {
        return 0.0;
    }
    const double attention =
        2.0 * ask->batch * ask->heads * ask->queries * ask->keys * (ask->qk_dim + ask->v_dim);
    switch (ask->kind) {
    case COMPUTE_MATMUL:
    case COMPUTE_GROUPED_MATMUL:
        return 2.0 * ask->groups * ask->m * ask->n * ask->k;
    case COMPUTE_ATTENTION_FORWARD:
    case COMPUTE_ATTENTION_UNFUSED:
        return attention;
    case COMPUTE_ATTENTION_BACKWARD:
        return 2.5 * attention; /* scores are computed again */
    case COMPUTE_ATTENTION_UNFUSED_BACKWARD:
        return 2.0 * attention;
    default:
        return 0.0;
    }
}
