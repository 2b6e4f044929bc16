/*
 * ffn_ops.c - a feed-forward network over the tensor group: the FFN of a dense layer and
 * the shared experts of a MoE layer.
 */
#include "ffn_ops.h"

double ffn_gates(const struct op_sizes *sizes)
{
    return sizes->model->spec->ffn_kind == FFN_GATED ? 2.0 : 1.0;
}

double activation_bytes(const struct op_sizes *sizes, double elements, bool backward)
{
    const double gates = ffn_gates(sizes);
    const bool fused = sizes->scenario->fusion.swiglu;
    const double forward = gates + 1.0 + (fused ? 0.0 : 2.0);
    return elements * ELEMENT_BYTES * (backward ? forward + gates : forward);
}

double activation_kernels(const struct op_sizes *sizes)
{
    return fused_kernels(sizes->scenario->fusion.swiglu, 4.0);
}

static double width(const struct op_sizes *sizes, bool shared)
{
    const struct model_spec *spec = sizes->model->spec;
    const double whole =
        shared ? (double)spec->moe.shared_intermediate_size : (double)spec->ffn_intermediate_size;
    return whole / sizes->tp;
}

static struct linear up_linear(const struct op_sizes *sizes, bool shared)
{
    return (struct linear){
        .name = shared ? "shared_up" : "ffn_up",
        .input_grad = shared ? "shared_up.dgrad" : "ffn_up.dgrad",
        .weight_grad = shared ? "shared_up.wgrad" : "ffn_up.wgrad",
        .grad_add = shared ? "shared_up.grad_add" : "ffn_up.grad_add",
        .gather = shared ? "shared.all_gather" : "ffn.all_gather",
        .gather_back = shared ? "shared.grad_reduce_scatter" : "ffn.grad_reduce_scatter",
        .regather = shared ? "shared.regather" : "ffn.regather",
        .tokens = sizes->tokens,
        .in = sizes->hidden,
        .out = ffn_gates(sizes) * width(sizes, shared),
        .comm_bytes = sizes->tokens * sizes->hidden * ELEMENT_BYTES,
    };
}

static struct linear down_linear(const struct op_sizes *sizes, bool shared)
{
    return (struct linear){
        .name = shared ? "shared_down" : "ffn_down",
        .input_grad = shared ? "shared_down.dgrad" : "ffn_down.dgrad",
        .weight_grad = shared ? "shared_down.wgrad" : "ffn_down.wgrad",
        .grad_add = shared ? "shared_down.grad_add" : "ffn_down.grad_add",
        .gather = shared ? "shared.reduce_scatter" : "ffn.reduce_scatter",
        .gather_back = shared ? "shared.grad_all_gather" : "ffn.grad_all_gather",
        .tokens = sizes->tokens,
        .in = width(sizes, shared),
        .out = sizes->hidden,
        .comm_bytes = sizes->tokens * sizes->hidden * ELEMENT_BYTES,
    };
}

int16_t ffn_forward(struct op_writer *writer, bool shared, int16_t after)
{
    const struct op_sizes *sizes = writer->sizes;
    const uint32_t module = writer->module;
    writer->module = module | MODULE_MLP;
    const struct linear up = up_linear(sizes, shared);
    op_column_forward(writer, &up, after);
    writer->module = module | MODULE_MLP | MODULE_ACTIVATION;
    op_vector(writer, shared ? "shared_activation" : "ffn_activation",
              activation_bytes(sizes, sizes->tokens * width(sizes, shared), false),
              activation_kernels(sizes));
    writer->module = module | MODULE_MLP;
    const struct linear down = down_linear(sizes, shared);
    const int16_t ready = op_row_forward(writer, &down, OP_NONE);
    writer->module = module;
    return ready;
}

int16_t ffn_backward(struct op_writer *writer, bool shared, int16_t after)
{
    const struct op_sizes *sizes = writer->sizes;
    const struct linear down = down_linear(sizes, shared);
    op_row_backward(writer, &down, after);
    op_vector(writer, shared ? "shared_activation.grad" : "ffn_activation.grad",
              activation_bytes(sizes, sizes->tokens * width(sizes, shared), true),
              activation_kernels(sizes));
    const struct linear up = up_linear(sizes, shared);
    return op_column_backward(writer, &up, OP_NONE);
}

void ffn_saved(const struct op_sizes *sizes, bool shared, struct block_ops *block)
{
    const double row = sizes->tokens * width(sizes, shared) * ELEMENT_BYTES;
    op_saved(block, &(struct saved_tensor){.name = shared ? "shared_up" : "ffn_up",
                                           .bytes = row * ffn_gates(sizes),
                                           .module = MODULE_MLP | MODULE_MOE_LAYER});
    const uint32_t activation = MODULE_ACTIVATION | MODULE_MLP | MODULE_MOE_LAYER;
    op_saved(block, &(struct saved_tensor){.name = shared ? "shared_activation" : "ffn_activation",
                                           .bytes = row,
                                           .module = activation,
                                           .for_weight = true});
    if (!sizes->scenario->fusion.swiglu && ffn_gates(sizes) > 1.0) {
        op_saved(block, &(struct saved_tensor){.name = shared ? "shared_silu" : "ffn_silu",
                                               .bytes = row,
                                               .module = activation});
    }
}

void ffn_residual(struct op_writer *writer, const char *name, int16_t after)
{
    const struct op_sizes *sizes = writer->sizes;
    const int16_t index =
        op_vector(writer, name, 3.0 * sizes->tokens_norm * sizes->hidden * ELEMENT_BYTES, 2.0);
    op_wait(writer, index, after);
}

int16_t dense_forward(struct op_writer *writer, int16_t after)
{
    const struct op_sizes *sizes = writer->sizes;
    norm_forward(writer, "ffn_norm", sizes->hidden, after);
    int16_t ready = ffn_forward(writer, false, OP_NONE);
    if (sizes->model->spec->norms_per_layer == 4) {
        ready = norm_forward(writer, "ffn_post_norm", sizes->hidden, ready);
    }
    ffn_residual(writer, "ffn_residual", ready);
    return OP_NONE;
}

int16_t dense_backward(struct op_writer *writer, int16_t after)
{
    const struct op_sizes *sizes = writer->sizes;
    if (sizes->model->spec->norms_per_layer == 4) {
        after = norm_backward(writer, "ffn_post_norm.grad", sizes->hidden, after);
    }
    const int16_t ready = ffn_backward(writer, false, after);
    norm_backward(writer, "ffn_norm.grad", sizes->hidden, ready);
    ffn_residual(writer, "ffn_residual.grad", OP_NONE);
    return OP_NONE;
}

void ffn_entry_saved(const struct op_sizes *sizes, struct block_ops *block)
{
    const double shard = sizes->tokens_norm * sizes->hidden * ELEMENT_BYTES;
    op_saved(block, &(struct saved_tensor){.name = "ffn_input", .bytes = shard});
    op_saved(block,
             &(struct saved_tensor){
                 .name = "ffn_norm", .bytes = shard, .module = MODULE_NORM, .for_weight = true});
    if (sizes->model->spec->norms_per_layer == 4) {
        op_saved(block, &(struct saved_tensor){.name = "ffn_post_norm_input", .bytes = shard});
    }
}

void dense_saved(const struct op_sizes *sizes, struct block_ops *block)
{
    ffn_entry_saved(sizes, block);
    ffn_saved(sizes, false, block);
}
