/*
 * ends_ops.c - what stands at the ends of the model: input embedding, head with loss, and
 * the entry of an MTP module.
 *
 * The embedding and the head are vocabulary-parallel over tp. The loss keeps logits in the
 * compute precision and a 32-bit copy until its backward pass; a fused cross-entropy keeps
 * one 16-bit copy. `memory.logits_chunks` computes the loss chunk by chunk of the sequence.
 */
#include "op_writer.h"

int16_t embedding_forward(struct op_writer *writer, int16_t after)
{
    const struct op_sizes *sizes = writer->sizes;
    const double tensor = sizes->tokens * sizes->hidden * ELEMENT_BYTES;
    const int16_t lookup = op_vector(writer, "embedding", 2.0 * tensor, 4.0);
    op_wait(writer, lookup, after);
    if (sizes->tp <= 1.0) {
        return OP_NONE;
    }
    const struct op_collective reduce = {
        .name = "embedding.reduce",
        .kind = sizes->sequence_parallel ? COLLECTIVE_REDUCE_SCATTER : COLLECTIVE_ALL_REDUCE,
        .group = GROUP_TP,
        .stream = STREAM_TP,
        .bytes = tensor};
    return op_collective(writer, &reduce, OP_NONE);
}

int16_t embedding_backward(struct op_writer *writer, int16_t after)
{
    const struct op_sizes *sizes = writer->sizes;
    const double tensor = sizes->tokens * sizes->hidden * ELEMENT_BYTES;
    int16_t gather = after;
    if (sizes->tp > 1.0 && sizes->sequence_parallel) {
        const struct op_collective collective = {.name = "embedding.all_gather",
                                                 .kind = COLLECTIVE_ALL_GATHER,
                                                 .group = GROUP_TP,
                                                 .stream = STREAM_TP,
                                                 .bytes = tensor};
        gather = op_collective(writer, &collective, after);
    }
    /* The table of gradients is set to zero, gets the rows of the tokens, and is added as a whole:
     * no matmul makes it that could add. */
    const double weights =
        (double)sizes->model->spec->vocab_size / sizes->tp * sizes->hidden;
    const int16_t scatter =
        op_vector(writer, "embedding.grad", 4.0 * tensor + weights * ELEMENT_BYTES, 3.0);
    op_wait(writer, scatter, gather);
    op_gradient_add(writer, "embedding.grad_add", weights, 1.0);
    return OP_NONE;
}

static struct linear head_linear(const struct op_sizes *sizes)
{
    return (struct linear){
        .name = "head",
        .input_grad = "head.dgrad",
        .weight_grad = "head.wgrad",
        .grad_add = "head.grad_add",
        .gather = "head.all_gather",
        .gather_back = "head.reduce_scatter",
        .regather = "head.regather",
        .tokens = sizes->tokens,
        .in = sizes->hidden,
        .out = (double)sizes->model->spec->vocab_size / sizes->tp,
        .comm_bytes = sizes->tokens * sizes->hidden * ELEMENT_BYTES,
    };
}

/* Bytes that the loss moves per logit and pass: conversion to 32 bits, maximum, exponential
 * and sum when unfused; one read and one write of 16 bits when fused. */
static double loss_bytes(const struct op_sizes *sizes)
{
    const double logits = sizes->tokens * (double)sizes->model->spec->vocab_size / sizes->tp;
    return logits * (sizes->scenario->fusion.cross_entropy ? 4.0 : 16.0);
}

int16_t head_forward(struct op_writer *writer, int16_t after)
{
    const struct op_sizes *sizes = writer->sizes;
    norm_forward(writer, "final_norm", sizes->hidden, after);
    const struct linear head = head_linear(sizes);
    op_column_forward(writer, &head, OP_NONE);
    op_vector(writer, "loss", loss_bytes(sizes),
              fused_kernels(sizes->scenario->fusion.cross_entropy, 10.0));
    if (sizes->tp <= 1.0) {
        return OP_NONE;
    }
    const struct op_collective reduce = {.name = "loss.all_reduce",
                                         .kind = COLLECTIVE_ALL_REDUCE,
                                         .group = GROUP_TP,
                                         .stream = STREAM_TP,
                                         .bytes = 3.0 * sizes->tokens * 4.0};
    return op_collective(writer, &reduce, OP_NONE);
}

int16_t head_backward(struct op_writer *writer, int16_t after)
{
    const struct op_sizes *sizes = writer->sizes;
    const int16_t loss = op_vector(writer, "loss.grad", loss_bytes(sizes),
                                   fused_kernels(sizes->scenario->fusion.cross_entropy, 6.0));
    op_wait(writer, loss, after);
    const struct linear head = head_linear(sizes);
    const int16_t reduced = op_column_backward(writer, &head, OP_NONE);
    norm_backward(writer, "final_norm.grad", sizes->hidden, reduced);
    return OP_NONE;
}

void head_saved(const struct op_sizes *sizes, struct block_ops *block)
{
    const double shard = sizes->tokens_norm * sizes->hidden * ELEMENT_BYTES;
    op_saved(block, &(struct saved_tensor){.name = "input", .bytes = shard});
    op_saved(block,
             &(struct saved_tensor){
                 .name = "final_norm", .bytes = shard, .module = MODULE_NORM, .for_weight = true});
    const double chunks = (double)sizes->scenario->memory.logits_chunks;
    const double logits = sizes->tokens * (double)sizes->model->spec->vocab_size / sizes->tp;
    const double per_logit = ELEMENT_BYTES + (sizes->scenario->fusion.cross_entropy ? 0.0 : 4.0);
    op_saved(block, &(struct saved_tensor){.name = "logits", .bytes = logits * per_logit / chunks});
}

static struct linear mtp_linear(const struct op_sizes *sizes)
{
    return (struct linear){
        .name = "mtp_projection",
        .input_grad = "mtp_projection.dgrad",
        .weight_grad = "mtp_projection.wgrad",
        .grad_add = "mtp_projection.grad_add",
        .gather = "mtp.all_gather",
        .gather_back = "mtp.reduce_scatter",
        .regather = "mtp.regather",
        .tokens = sizes->tokens,
        .in = 2.0 * sizes->hidden,
        .out = sizes->hidden / sizes->tp,
        .comm_bytes = 2.0 * sizes->tokens * sizes->hidden * ELEMENT_BYTES,
    };
}

/* The projected features of the tensor ranks are exchanged for sequence shards. */
static int16_t mtp_transpose(struct op_writer *writer, const char *name)
{
    const struct op_sizes *sizes = writer->sizes;
    if (sizes->tp <= 1.0) {
        return OP_NONE;
    }
    const struct op_collective gather = {.name = name,
                                         .kind = COLLECTIVE_ALL_GATHER,
                                         .group = GROUP_TP,
                                         .stream = STREAM_TP,
                                         .bytes = sizes->tokens * sizes->hidden * ELEMENT_BYTES};
    return op_collective(writer, &gather, OP_NONE);
}

int16_t mtp_entry_forward(struct op_writer *writer, int16_t after)
{
    const struct op_sizes *sizes = writer->sizes;
    const int16_t ready = embedding_forward(writer, after);
    norm_forward(writer, "mtp_embedding_norm", sizes->hidden, ready);
    norm_forward(writer, "mtp_hidden_norm", sizes->hidden, OP_NONE);
    op_vector(writer, "mtp_join", 4.0 * sizes->tokens_norm * sizes->hidden * ELEMENT_BYTES, 1.0);
    const struct linear projection = mtp_linear(sizes);
    op_column_forward(writer, &projection, OP_NONE);
    return mtp_transpose(writer, "mtp.gather_output");
}

int16_t mtp_entry_backward(struct op_writer *writer, int16_t after)
{
    const struct op_sizes *sizes = writer->sizes;
    const int16_t split = op_vector(writer, "mtp_split.grad", 0.0, 1.0);
    op_wait(writer, split, after);
    const int16_t spread = mtp_transpose(writer, "mtp.gather_grad");
    const struct linear projection = mtp_linear(sizes);
    if (spread != OP_NONE) {
        op_wait(writer, op_vector(writer, "mtp_slice.grad", 0.0, 1.0), spread);
    }
    const int16_t reduced = op_column_backward(writer, &projection, OP_NONE);
    norm_backward(writer, "mtp_hidden_norm.grad", sizes->hidden, reduced);
    norm_backward(writer, "mtp_embedding_norm.grad", sizes->hidden, OP_NONE);
    return embedding_backward(writer, OP_NONE);
}

void mtp_entry_saved(const struct op_sizes *sizes, struct block_ops *block)
{
    const double shard = sizes->tokens_norm * sizes->hidden * ELEMENT_BYTES;
    op_saved(block, &(struct saved_tensor){.name = "mtp_input", .bytes = 2.0 * shard});
    op_saved(block, &(struct saved_tensor){.name = "mtp_norms",
                                           .bytes = 2.0 * shard,
                                           .module = MODULE_NORM,
                                           .for_weight = true});
}
