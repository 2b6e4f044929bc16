/*
 * attention_ops.c - the attention half of a layer: norm, projections, context-parallel
 * exchange, scores and values, output projection, residual.
 *
 * Ring context parallelism keeps the queries and passes keys and values round the group
 * while it computes; its steps are written as parts of the attention op, each waiting for
 * the transfer before it, so that what stays exposed comes out of times. At most
 * RING_PARTS_MAX parts are written; larger rings put several steps into one part.
 * Ulysses exchanges heads for sequence by all-to-all around the attention; hybrid does so
 * inside `ulysses_size` ranks and rings across.
 */
#include "op_writer.h"

#define RING_PARTS_MAX 8

struct attention_sizes {
    double heads;    /* per tensor rank */
    double kv_heads; /* per tensor rank; replicated when fewer than ranks */
    double qk_dim, v_dim;
    double ulysses; /* ranks of the head exchange, 1: none */
    double ring;    /* ranks of the ring, 1: none */
    double q_bytes, k_bytes, v_bytes, out_bytes;
};

static double at_least_one(double value)
{
    return value < 1.0 ? 1.0 : value;
}

static struct attention_sizes attention_sizes(const struct op_sizes *sizes)
{
    const struct attention_spec *spec = &sizes->model->spec->attention;
    struct attention_sizes size = {.ulysses = 1.0, .ring = 1.0};
    size.heads = (double)spec->heads / sizes->tp;
    if (spec->kind == ATTENTION_MLA) {
        size.kv_heads = size.heads;
        size.qk_dim = (double)(spec->qk_nope_head_dim + spec->qk_rope_head_dim);
        size.v_dim = (double)spec->v_head_dim;
    } else {
        const uint32_t kv = spec->kind == ATTENTION_GQA ? spec->kv_heads : spec->heads;
        size.kv_heads = at_least_one((double)kv / sizes->tp);
        size.qk_dim = size.v_dim = (double)spec->head_dim;
    }
    const struct parallel_spec *parallel = &sizes->scenario->parallel;
    if (sizes->cp > 1.0) {
        if (parallel->cp_method == CP_ULYSSES) {
            size.ulysses = sizes->cp;
        } else if (parallel->cp_method == CP_HYBRID) {
            size.ulysses = (double)parallel->ulysses_size;
        }
        size.ring = sizes->cp / size.ulysses;
    }
    if (size.ulysses > 1.0 && size.kv_heads < size.ulysses) {
        size.kv_heads = size.ulysses; /* key and value heads are replicated */
    }
    const double row = sizes->tokens * ELEMENT_BYTES;
    size.q_bytes = row * size.heads * size.qk_dim;
    size.k_bytes = row * size.kv_heads * size.qk_dim;
    size.v_bytes = row * size.kv_heads * size.v_dim;
    size.out_bytes = row * size.heads * size.v_dim;
    return size;
}

/* ---- Projections ---- */

static void mla_linears(const struct op_sizes *sizes, struct linear linears[3])
{
    const struct attention_spec *spec = &sizes->model->spec->attention;
    const struct attention_sizes size = attention_sizes(sizes);
    const bool direct = spec->q_lora_rank == 0;
    const double latent = (double)(spec->q_lora_rank + spec->kv_lora_rank + spec->qk_rope_head_dim);
    const double gathered = sizes->tokens * ELEMENT_BYTES;
    /* Down-projections are whole on every tensor rank and work on the sequence shard. */
    linears[0] = (struct linear){.name = "qkv_down",
                                 .input_grad = "qkv_down.dgrad",
                                 .weight_grad = "qkv_down.wgrad",
                                 .grad_add = "qkv_down.grad_add",
                                 .tokens = sizes->tokens_norm,
                                 .in = sizes->hidden,
                                 .out = latent};
    linears[1] = (struct linear){
        .name = "q_up",
        .input_grad = "q_up.dgrad",
        .weight_grad = "q_up.wgrad",
        .grad_add = "q_up.grad_add",
        .gather = "qkv.all_gather",
        .gather_back = "qkv.reduce_scatter",
        .regather = "qkv.regather",
        .tokens = sizes->tokens,
        .in = direct ? sizes->hidden : (double)spec->q_lora_rank,
        .out = size.heads * size.qk_dim,
        .comm_bytes = gathered * (direct ? latent + sizes->hidden : latent),
    };
    linears[2] = (struct linear){
        .name = "kv_up",
        .input_grad = "kv_up.dgrad",
        .weight_grad = "kv_up.wgrad",
        .grad_add = "kv_up.grad_add",
        .tokens = sizes->tokens,
        .in = (double)spec->kv_lora_rank,
        .out = size.heads * (double)(spec->qk_nope_head_dim + spec->v_head_dim),
        .comm_bytes = gathered,
        .shares_gather = true,
    };
}

static struct linear qkv_linear(const struct op_sizes *sizes)
{
    const struct attention_sizes size = attention_sizes(sizes);
    const struct attention_spec *spec = &sizes->model->spec->attention;
    const uint32_t kv = spec->kind == ATTENTION_GQA ? spec->kv_heads : spec->heads;
    const double kv_heads = at_least_one((double)kv / sizes->tp);
    return (struct linear){
        .name = "qkv",
        .input_grad = "qkv.dgrad",
        .weight_grad = "qkv.wgrad",
        .grad_add = "qkv.grad_add",
        .gather = "qkv.all_gather",
        .gather_back = "qkv.reduce_scatter",
        .regather = "qkv.regather",
        .tokens = sizes->tokens,
        .in = sizes->hidden,
        .out = (size.heads + 2.0 * kv_heads) * size.qk_dim,
        .comm_bytes = sizes->tokens * sizes->hidden * ELEMENT_BYTES,
    };
}

static struct linear out_linear(const struct op_sizes *sizes)
{
    const struct attention_sizes size = attention_sizes(sizes);
    return (struct linear){
        .name = "attention_out",
        .input_grad = "attention_out.dgrad",
        .weight_grad = "attention_out.wgrad",
        .grad_add = "attention_out.grad_add",
        .gather = "attention_out.reduce_scatter",
        .gather_back = "attention_out.all_gather",
        .tokens = sizes->tokens,
        .in = size.heads * size.v_dim,
        .out = sizes->hidden,
        .comm_bytes = sizes->tokens * sizes->hidden * ELEMENT_BYTES,
    };
}

/* Rotary embedding reads and writes queries and keys; MLA also joins the shared rotary part
 * to every head and splits values off. */
static void position_op(struct op_writer *writer, const char *name, double factor)
{
    const struct op_sizes *sizes = writer->sizes;
    const struct attention_sizes size = attention_sizes(sizes);
    const bool mla = sizes->model->spec->attention.kind == ATTENTION_MLA;
    const bool rope = sizes->model->spec->position == POSITION_ROPE;
    double bytes = 0.0;
    double kernels = 0.0;
    if (rope) {
        bytes += 2.0 * (size.q_bytes + size.k_bytes);
        kernels += sizes->scenario->fusion.rope ? 2.0 : 8.0;
    }
    if (mla) {
        bytes += 2.0 * size.v_bytes;
        kernels += 8.0; /* splits, broadcasts, concatenations, transposes */
    } else {
        kernels += 4.0; /* split and transposes of q, k, v */
    }
    if (sizes->model->spec->attention.qk_norm) {
        bytes += 2.0 * (size.q_bytes + size.k_bytes);
        kernels += fused_kernels(sizes->scenario->fusion.norm, 5.0) * 2.0;
    }
    op_vector(writer, name, bytes * factor, kernels);
}

static void projections_forward(struct op_writer *writer, int16_t after)
{
    const struct op_sizes *sizes = writer->sizes;
    const struct attention_spec *spec = &sizes->model->spec->attention;
    const uint32_t module = writer->module;
    writer->module = module | MODULE_QKV;
    if (spec->kind == ATTENTION_MLA) {
        struct linear linears[3];
        mla_linears(sizes, linears);
        op_column_forward(writer, &linears[0], after);
        norm_forward(writer, "latent_norm", (double)(spec->q_lora_rank + spec->kv_lora_rank),
                     OP_NONE);
        op_column_forward(writer, &linears[1], OP_NONE);
        writer->module = module | MODULE_QKV | MODULE_MLA_KV_UP_PROJ;
        op_column_forward(writer, &linears[2], OP_NONE);
    } else {
        const struct linear qkv = qkv_linear(sizes);
        op_column_forward(writer, &qkv, after);
    }
    position_op(writer, "position", 1.0);
    writer->module = module;
}

static int16_t projections_backward(struct op_writer *writer)
{
    const struct op_sizes *sizes = writer->sizes;
    const struct attention_spec *spec = &sizes->model->spec->attention;
    position_op(writer, "position.grad", 1.0);
    if (spec->kind != ATTENTION_MLA) {
        const struct linear qkv = qkv_linear(sizes);
        return op_column_backward(writer, &qkv, OP_NONE);
    }
    struct linear linears[3];
    mla_linears(sizes, linears);
    op_column_backward(writer, &linears[2], OP_NONE);
    const int16_t reduced = op_column_backward(writer, &linears[1], OP_NONE);
    norm_backward(writer, "latent_norm.grad", (double)(spec->q_lora_rank + spec->kv_lora_rank),
                  reduced);
    return op_column_backward(writer, &linears[0], OP_NONE);
}

/* ---- Scores and values ---- */

static struct compute_ask core_ask(const struct op_sizes *sizes, bool windowed, bool backward)
{
    const struct attention_sizes size = attention_sizes(sizes);
    const bool flash = sizes->scenario->fusion.flash_attention;
    enum compute_kind kind = COMPUTE_ATTENTION_FORWARD;
    if (flash) {
        kind = backward ? COMPUTE_ATTENTION_BACKWARD : COMPUTE_ATTENTION_FORWARD;
    } else {
        kind = backward ? COMPUTE_ATTENTION_UNFUSED_BACKWARD : COMPUTE_ATTENTION_UNFUSED;
    }
    return (struct compute_ask){
        .kind = kind,
        .queries = sizes->seq_len / size.ring,
        .keys = model_visible_keys(sizes->model, windowed, sizes->seq_len, ATTENTION_COUNT_CAUSAL),
        .sequence = sizes->seq_len / size.ring,
        .batch = sizes->batch,
        .heads = size.heads / size.ulysses,
        .kv_heads = size.kv_heads / size.ulysses,
        .qk_dim = size.qk_dim,
        .v_dim = size.v_dim,
        .kernels = 1.0,
    };
}

static int16_t attention_part(struct op_writer *writer, const char *name,
                              const struct compute_ask *ask, int16_t after)
{
    const int16_t index = op_vector(writer, name, 0.0, 2.0);
    writer->ops[index].compute = *ask;
    op_wait(writer, index, after);
    return index;
}

static int16_t head_exchange(struct op_writer *writer, const char *name, double bytes, double ranks)
{
    const struct op_collective collective = {.name = name,
                                             .kind = COLLECTIVE_ALL_TO_ALL,
                                             .group = GROUP_CP,
                                             .stream = STREAM_CP,
                                             .bytes = bytes,
                                             .token_bytes = bytes,
                                             .copies = 1.0};
    const int16_t index = op_collective(writer, &collective, OP_NONE);
    writer->ops[index].span_size = (uint32_t)ranks;
    return index;
}

static const char *const RING_NAMES[RING_PARTS_MAX] = {"ring.0", "ring.1", "ring.2", "ring.3",
                                                       "ring.4", "ring.5", "ring.6", "ring.7"};
static const char *const CORE_NAMES[RING_PARTS_MAX] = {"attention",   "attention.1", "attention.2",
                                                       "attention.3", "attention.4", "attention.5",
                                                       "attention.6", "attention.7"};
static const char *const CORE_GRAD_NAMES[RING_PARTS_MAX] = {
    "attention.grad",   "attention.grad.1", "attention.grad.2", "attention.grad.3",
    "attention.grad.4", "attention.grad.5", "attention.grad.6", "attention.grad.7"};

/* The ring: part i computes on the block that transfer i-1 brought. */
static void core_ring(struct op_writer *writer, const struct compute_ask *whole, bool backward,
                      int16_t after)
{
    const struct attention_sizes size = attention_sizes(writer->sizes);
    const uint32_t ring = (uint32_t)size.ring;
    const uint32_t parts = ring < RING_PARTS_MAX ? ring : RING_PARTS_MAX;
    const double block_bytes =
        (size.k_bytes + size.v_bytes) / size.ulysses * (backward ? 2.0 : 1.0);
    const double step_bytes = block_bytes * (size.ring - 1.0) / (double)(parts - 1 ? parts - 1 : 1);
    const bool overlap = writer->sizes->scenario->overlap.cp_comm;
    struct compute_ask part = *whole;
    part.keys = whole->keys / (double)parts;
    int16_t transfers[RING_PARTS_MAX];
    int16_t previous = after;
    for (uint32_t i = 0; i + 1 < parts; i++) {
        const struct op_collective step = {.name = RING_NAMES[i],
                                           .kind = COLLECTIVE_SEND_RECV,
                                           .group = GROUP_CP,
                                           .stream = STREAM_CP,
                                           .bytes = step_bytes};
        transfers[i] = op_collective(writer, &step, previous);
        previous = transfers[i];
    }
    for (uint32_t i = 0; i < parts; i++) {
        const char *name = backward ? CORE_GRAD_NAMES[i] : CORE_NAMES[i];
        int16_t wait = i == 0 ? after : transfers[i - 1];
        if (!overlap && parts > 1) {
            wait = transfers[parts - 2];
        }
        attention_part(writer, name, &part, wait);
    }
}

/* Returns what the consumer of the attention output waits for. */
static int16_t core(struct op_writer *writer, bool windowed, bool backward)
{
    const struct op_sizes *sizes = writer->sizes;
    const struct attention_sizes size = attention_sizes(sizes);
    const struct compute_ask ask = core_ask(sizes, windowed, backward);
    const uint32_t module = writer->module;
    writer->module = module | MODULE_ATTENTION_CORE;
    const double qkv = size.q_bytes + size.k_bytes + size.v_bytes;
    int16_t ready = OP_NONE;
    if (size.ulysses > 1.0) {
        ready = head_exchange(writer, backward ? "heads_out.grad" : "heads_in",
                              backward ? size.out_bytes : qkv, size.ulysses);
    }
    if (size.ring > 1.0) {
        core_ring(writer, &ask, backward, ready);
    } else {
        attention_part(writer, backward ? CORE_GRAD_NAMES[0] : CORE_NAMES[0], &ask, ready);
    }
    int16_t out = OP_NONE;
    if (size.ulysses > 1.0) {
        out = head_exchange(writer, backward ? "heads_in.grad" : "heads_out",
                            backward ? qkv : size.out_bytes, size.ulysses);
    }
    writer->module = module;
    return out;
}

static void residual(struct op_writer *writer, const char *name, int16_t after)
{
    const struct op_sizes *sizes = writer->sizes;
    const int16_t index =
        op_vector(writer, name, 3.0 * sizes->tokens_norm * sizes->hidden * ELEMENT_BYTES, 2.0);
    op_wait(writer, index, after);
}

int16_t attention_forward(struct op_writer *writer, bool windowed, int16_t after)
{
    const struct op_sizes *sizes = writer->sizes;
    norm_forward(writer, "attention_norm", sizes->hidden, after);
    projections_forward(writer, OP_NONE);
    const int16_t values = core(writer, windowed, false);
    const struct linear out = out_linear(sizes);
    int16_t ready = op_row_forward(writer, &out, values);
    if (sizes->model->spec->norms_per_layer == 4) {
        ready = norm_forward(writer, "attention_post_norm", sizes->hidden, ready);
    }
    residual(writer, "attention_residual", ready);
    return OP_NONE;
}

int16_t attention_backward(struct op_writer *writer, bool windowed, int16_t after)
{
    const struct op_sizes *sizes = writer->sizes;
    if (sizes->model->spec->norms_per_layer == 4) {
        after = norm_backward(writer, "attention_post_norm.grad", sizes->hidden, after);
    }
    const struct linear out = out_linear(sizes);
    op_row_backward(writer, &out, after);
    const int16_t grads = core(writer, windowed, true);
    if (grads != OP_NONE) {
        const int16_t join = op_vector(writer, "heads_in.join", 0.0, 1.0);
        op_wait(writer, join, grads);
    }
    const int16_t reduced = projections_backward(writer);
    norm_backward(writer, "attention_norm.grad", sizes->hidden, reduced);
    residual(writer, "attention_residual.grad", OP_NONE);
    return OP_NONE;
}

void attention_saved(const struct op_sizes *sizes, bool windowed, struct block_ops *block)
{
    (void)windowed;
    const struct attention_spec *spec = &sizes->model->spec->attention;
    const struct attention_sizes size = attention_sizes(sizes);
    const double shard = sizes->tokens_norm * sizes->hidden * ELEMENT_BYTES;
    /* The layer's input: the checkpoint, kept in every mode (LAYER does not drop it: see
     * memory_model_kept, which treats the name "input" apart). */
    op_saved(block, &(struct saved_tensor){.name = "input", .bytes = shard});
    op_saved(block, &(struct saved_tensor){.name = "attention_norm",
                                           .bytes = shard,
                                           .module = MODULE_NORM,
                                           .for_weight = true});
    if (spec->kind == ATTENTION_MLA) {
        const double latent =
            sizes->tokens_norm * ELEMENT_BYTES * (double)(spec->q_lora_rank + spec->kv_lora_rank);
        op_saved(block,
                 &(struct saved_tensor){.name = "latent", .bytes = latent, .module = MODULE_QKV});
        op_saved(block, &(struct saved_tensor){.name = "latent_norm",
                                               .bytes = latent,
                                               .module = MODULE_QKV | MODULE_NORM,
                                               .for_weight = true});
    }
    op_saved(block, &(struct saved_tensor){.name = "q",
                                           .bytes = size.q_bytes,
                                           .module = MODULE_QKV | MODULE_ATTENTION});
    const uint32_t kv = MODULE_QKV | MODULE_ATTENTION |
                        (spec->kind == ATTENTION_MLA ? (uint32_t)MODULE_MLA_KV_UP_PROJ : 0u);
    op_saved(block, &(struct saved_tensor){.name = "k", .bytes = size.k_bytes, .module = kv});
    op_saved(block, &(struct saved_tensor){.name = "v", .bytes = size.v_bytes, .module = kv});
    if (!sizes->scenario->fusion.flash_attention) {
        const double scores = sizes->batch * size.heads / size.ulysses * sizes->seq_len *
                              (sizes->seq_len / size.ring) * ELEMENT_BYTES;
        op_saved(block, &(struct saved_tensor){
                            .name = "scores", .bytes = scores, .module = MODULE_ATTENTION_CORE});
        op_saved(block, &(struct saved_tensor){.name = "probabilities",
                                               .bytes = scores,
                                               .module = MODULE_ATTENTION_CORE});
    } else {
        op_saved(block, &(struct saved_tensor){.name = "softmax_sum",
                                               .bytes = sizes->tokens * size.heads * 4.0,
                                               .module = MODULE_ATTENTION});
    }
    op_saved(block, &(struct saved_tensor){.name = "attention_out",
                                           .bytes = size.out_bytes,
                                           .module = MODULE_ATTENTION,
                                           .for_weight = true});
    if (sizes->model->spec->norms_per_layer == 4) {
        op_saved(block, &(struct saved_tensor){
                            .name = "attention_post_norm_input", .bytes = shard, .module = 0});
    }
}
