/*
 * op_writer.c - the units that blocks are made of.
 *
 * Sequence parallelism (Korthikanti et al. 2022): a column-parallel layer gathers its
 * input over the tensor group, a row-parallel layer reduce-scatters its output. In the
 * backward pass the row layer gathers the output gradient (exposed); the column layer
 * gathers its input again for the weight gradient while the input gradient is computed,
 * and reduce-scatters the input gradient while the weight gradient is computed. Without
 * sequence parallelism both directions have one all-reduce instead.
 */
#include "op_writer.h"

#include <string.h>

void op_writer_start(struct op_writer *writer, const struct op_sizes *sizes, struct op *ops)
{
    *writer = (struct op_writer){.sizes = sizes, .ops = ops};
}

struct op_list op_writer_finish(const struct op_writer *writer, struct arena *arena)
{
    struct op *ops = ARENA_ARRAY(arena, writer->count > 0 ? writer->count : 1, struct op);
    memcpy(ops, writer->ops, writer->count * sizeof *ops);
    return (struct op_list){.ops = ops, .count = writer->count};
}

int16_t op_last_compute(const struct op_writer *writer)
{
    for (uint32_t i = writer->count; i > 0; i--) {
        if (writer->ops[i - 1].stream == STREAM_COMPUTE) {
            return (int16_t)(i - 1);
        }
    }
    return OP_NONE;
}

void op_wait(struct op_writer *writer, int16_t index, int16_t dependency)
{
    if (dependency == OP_NONE || dependency == index) {
        return;
    }
    struct op *op = &writer->ops[index];
    for (int slot = 0; slot < OP_AFTER_MAX; slot++) {
        if (op->after[slot] == dependency) {
            return;
        }
        if (op->after[slot] == OP_NONE) {
            op->after[slot] = dependency;
            return;
        }
    }
    ASSERT(!"an op waits for more than OP_AFTER_MAX others");
}

static int16_t add(struct op_writer *writer, const char *name, enum stream stream)
{
    ASSERT(writer->count < OPS_PER_LIST_MAX);
    struct op *op = &writer->ops[writer->count];
    *op = (struct op){
        .name = name,
        .stream = stream,
        .op_class = stream == STREAM_COMPUTE ? OP_CLASS_COMPUTE : OP_CLASS_COLLECTIVE,
        .module = writer->module | MODULE_LAYER,
        .after = {OP_NONE, OP_NONE, OP_NONE},
        .rows_scale = writer->rows_scale,
        .in_weight_pass = writer->weight,
        .fused_collective = OP_NONE,
        .kernels = 1.0,
    };
    return (int16_t)writer->count++;
}

int16_t op_vector(struct op_writer *writer, const char *name, double bytes, double kernels)
{
    const int16_t index = add(writer, name, STREAM_COMPUTE);
    struct op *op = &writer->ops[index];
    op->kernels = kernels;
    op->compute = (struct compute_ask){.kind = COMPUTE_VECTOR, .bytes = bytes, .kernels = kernels};
    return index;
}

int16_t op_permute(struct op_writer *writer, const char *name, double bytes, double kernels)
{
    const int16_t index = op_vector(writer, name, bytes, kernels);
    writer->ops[index].compute.kind = COMPUTE_PERMUTE;
    return index;
}

int16_t op_matmul(struct op_writer *writer, const char *name, double m, double n, double k)
{
    const int16_t index = add(writer, name, STREAM_COMPUTE);
    writer->ops[index].compute = (struct compute_ask){
        .kind = COMPUTE_MATMUL,
        .m = m,
        .n = n,
        .k = k,
        .groups = 1.0,
        .weight_bytes_per_element = ELEMENT_BYTES,
    };
    return index;
}

/*
 * Every microbatch adds its gradients to a buffer of precision.gradients (main_grad of Megatron).
 * Unfused, the matmul writes a tensor of 16 bits and the addition reads both and writes the
 * buffer; fused, the matmul reads and writes the buffer where it would write its result.
 */
static double buffer_bytes(const struct op_writer *writer)
{
    return writer->sizes->scenario->precision.gradients == PRECISION_FP32 ? 4.0 : 2.0;
}

void op_gradient_add(struct op_writer *writer, const char *name, double weights, double parts)
{
    const bool before = writer->weight;
    writer->weight = true;
    const int16_t index =
        op_vector(writer, name, weights * (ELEMENT_BYTES + 2.0 * buffer_bytes(writer)), parts);
    writer->ops[index].compute.kind = COMPUTE_OPTIMIZER; /* a buffer too large for the L2 */
    writer->weight = before;
}

void op_accumulate(struct op_writer *writer, const char *name, int16_t matmul, double parts)
{
    struct compute_ask *ask = &writer->ops[matmul].compute;
    if (writer->sizes->scenario->fusion.grad_accumulation)
        ask->result_bytes = 2.0 * buffer_bytes(writer);
    else
        op_gradient_add(writer, name, ask->groups * ask->m * ask->n, parts);
}

int16_t op_collective(struct op_writer *writer, const struct op_collective *collective,
                      int16_t after)
{
    const int16_t producer = op_last_compute(writer);
    const int16_t index = add(writer, collective->name, collective->stream);
    struct op *op = &writer->ops[index];
    op->collective = collective->kind;
    op->group = collective->group;
    op->bytes = collective->bytes;
    op->token_bytes = collective->token_bytes;
    op->copies = collective->copies;
    op_wait(writer, index, producer);
    op_wait(writer, index, after);
    return index;
}

static int16_t tp_collective(struct op_writer *writer, const char *name, enum collective_kind kind,
                             double bytes, int16_t after)
{
    const struct op_collective collective = {
        .name = name, .kind = kind, .group = GROUP_TP, .stream = STREAM_TP, .bytes = bytes};
    return op_collective(writer, &collective, after);
}

/* Binds a matmul and its collective into one fused kernel (MC2, CoC). */
static void fuse(struct op_writer *writer, int16_t matmul, int16_t collective)
{
    if (!writer->sizes->fuse_collective) {
        return;
    }
    writer->ops[matmul].fused_collective = collective;
    writer->ops[collective].fused_away = true;
}

static bool has_comm(const struct op_writer *writer, const struct linear *linear)
{
    return writer->sizes->tp > 1.0 && linear->comm_bytes > 0.0;
}

int16_t op_column_forward(struct op_writer *writer, const struct linear *linear, int16_t after)
{
    int16_t gather = OP_NONE;
    if (has_comm(writer, linear) && writer->sizes->sequence_parallel && !linear->shares_gather) {
        gather =
            tp_collective(writer, linear->gather, COLLECTIVE_ALL_GATHER, linear->comm_bytes, after);
        after = gather;
    }
    const int16_t matmul = op_matmul(writer, linear->name, linear->tokens, linear->out, linear->in);
    op_wait(writer, matmul, after);
    if (gather != OP_NONE) {
        fuse(writer, matmul, gather);
    }
    return OP_NONE;
}

static void weight_gradient(struct op_writer *writer, const struct linear *linear, int16_t after)
{
    writer->weight = true;
    const int16_t index =
        op_matmul(writer, linear->weight_grad, linear->in, linear->out, linear->tokens);
    writer->weight = false;
    op_wait(writer, index, after);
    op_accumulate(writer, linear->grad_add, index, 1.0);
}

int16_t op_column_backward(struct op_writer *writer, const struct linear *linear, int16_t after)
{
    int16_t regather = OP_NONE;
    const bool comm = has_comm(writer, linear);
    if (comm && writer->sizes->sequence_parallel && !linear->shares_gather) {
        writer->weight = true;
        regather = tp_collective(writer, linear->regather, COLLECTIVE_ALL_GATHER,
                                 linear->comm_bytes, OP_NONE);
        writer->weight = false;
    }
    const int16_t input =
        op_matmul(writer, linear->input_grad, linear->tokens, linear->in, linear->out);
    op_wait(writer, input, after);
    int16_t reduced = OP_NONE;
    if (comm && !linear->shares_gather) {
        const enum collective_kind kind =
            writer->sizes->sequence_parallel ? COLLECTIVE_REDUCE_SCATTER : COLLECTIVE_ALL_REDUCE;
        reduced = tp_collective(writer, linear->gather_back, kind, linear->comm_bytes, OP_NONE);
        if (writer->sizes->sequence_parallel) {
            fuse(writer, input, reduced);
        }
    }
    const bool beside = writer->sizes->scenario->overlap.tp_backward;
    weight_gradient(writer, linear, regather);
    if (!beside) {
        op_wait(writer, op_last_compute(writer), reduced);
    }
    return reduced;
}

int16_t op_row_forward(struct op_writer *writer, const struct linear *linear, int16_t after)
{
    const int16_t matmul = op_matmul(writer, linear->name, linear->tokens, linear->out, linear->in);
    op_wait(writer, matmul, after);
    if (!has_comm(writer, linear)) {
        return OP_NONE;
    }
    const enum collective_kind kind =
        writer->sizes->sequence_parallel ? COLLECTIVE_REDUCE_SCATTER : COLLECTIVE_ALL_REDUCE;
    const int16_t reduced =
        tp_collective(writer, linear->gather, kind, linear->comm_bytes, OP_NONE);
    if (writer->sizes->sequence_parallel) {
        fuse(writer, matmul, reduced);
    }
    return reduced;
}

int16_t op_row_backward(struct op_writer *writer, const struct linear *linear, int16_t after)
{
    int16_t gather = OP_NONE;
    if (has_comm(writer, linear) && writer->sizes->sequence_parallel) {
        gather = tp_collective(writer, linear->gather_back, COLLECTIVE_ALL_GATHER,
                               linear->comm_bytes, after);
        after = gather;
    }
    const int16_t input =
        op_matmul(writer, linear->input_grad, linear->tokens, linear->in, linear->out);
    op_wait(writer, input, after);
    if (gather != OP_NONE) {
        fuse(writer, input, gather);
    }
    weight_gradient(writer, linear, after);
    return OP_NONE;
}

double fused_kernels(bool fused, double unfused_kernels)
{
    return fused ? 1.0 : unfused_kernels;
}

/* An unfused norm reads and writes its input about three times (square, mean, scale). */
#define NORM_UNFUSED_KERNELS 5.0

int16_t norm_forward(struct op_writer *writer, const char *name, double width, int16_t after)
{
    const bool fused = writer->sizes->scenario->fusion.norm;
    const uint32_t module = writer->module;
    writer->module |= MODULE_NORM;
    const double tensor = writer->sizes->tokens_norm * width * ELEMENT_BYTES;
    const int16_t index = op_vector(writer, name, tensor * (fused ? 2.0 : 6.0),
                                    fused_kernels(fused, NORM_UNFUSED_KERNELS));
    op_wait(writer, index, after);
    writer->module = module;
    return OP_NONE;
}

int16_t norm_backward(struct op_writer *writer, const char *name, double width, int16_t after)
{
    const bool fused = writer->sizes->scenario->fusion.norm;
    const double tensor = writer->sizes->tokens_norm * width * ELEMENT_BYTES;
    const int16_t index = op_vector(writer, name, tensor * (fused ? 3.0 : 8.0),
                                    fused_kernels(fused, NORM_UNFUSED_KERNELS));
    op_wait(writer, index, after);
    return OP_NONE;
}

void op_saved(struct block_ops *block, const struct saved_tensor *tensor)
{
    if (tensor->bytes <= 0.0) {
        return;
    }
    ASSERT(block->saved_count < SAVED_TENSORS_MAX);
    block->saved[block->saved_count] = *tensor;
    block->saved[block->saved_count].module |= MODULE_LAYER;
    block->saved_count++;
}
