/*
 * moe_ops.c - the expert half of a layer: norm, router, permute, dispatch, experts,
 * combine, unpermute, shared experts, residual.
 *
 * Rows. A rank enters with `entry` tokens: its sequence shard, or with etp = tp and no
 * sequence parallelism all tokens of the tensor group. Balanced routing gives each rank
 * entry * top_k * etp rows: the number does not depend on ep. Loads that differ, drops and
 * padding are ratios to that (routing.h), which the plan applies. The experts hold their
 * weights sharded over etp; the rows are then gathered over the etp group.
 *
 * all-to-all dispatcher: every rank sends top_k copies of its tokens over the expert group.
 * all-gather dispatcher: every rank gets all tokens of the group and picks its own; the
 * results are reduce-scattered.
 * Hierarchical exchange: all-gather between nodes, all-to-all inside (volumes in
 * collective.h).
 *
 * Overlap. With overlap_shared_expert the shared experts stand between dispatch and its
 * consumer; with decoupled weight gradients those of the experts stand between the
 * dispatch of gradients and its consumer. Both are list order, nothing else: what hides
 * comes out of times.
 */
#include "ffn_ops.h"

struct moe_sizes {
    double entry; /* tokens with which a rank enters */
    double top_k;
    double rows;         /* expert rows of a rank */
    double local;        /* experts of a rank */
    double expert_width; /* per expert and etp rank */
    double copy_bytes;   /* entry * top_k * hidden */
    double token_bytes;  /* entry * hidden */
    double row_bytes;    /* rows * hidden */
    bool replicated;     /* tokens are whole on each tensor rank (no sequence parallelism) */
};

static struct moe_sizes moe_sizes(const struct op_sizes *sizes)
{
    const struct moe_spec *spec = &sizes->model->spec->moe;
    struct moe_sizes size = {.top_k = (double)spec->top_k};
    size.replicated = sizes->tp > 1.0 && !sizes->sequence_parallel;
    size.entry = size.replicated ? sizes->tokens : sizes->tokens / sizes->tp;
    size.rows = size.entry * size.top_k * (size.replicated ? 1.0 : sizes->etp);
    size.local = (double)spec->experts / sizes->ep;
    size.expert_width = (double)spec->intermediate_size / sizes->etp;
    size.token_bytes = size.entry * sizes->hidden * ELEMENT_BYTES;
    size.copy_bytes = size.token_bytes * size.top_k;
    size.row_bytes = size.rows * sizes->hidden * ELEMENT_BYTES;
    return size;
}

/* One exchange of tokens over the expert group, then over etp. `gather` is the direction
 * towards the experts (dispatch forward, combine backward). */
static int16_t exchange(struct op_writer *writer, const char *const names[2], bool gather,
                        int16_t after)
{
    const struct op_sizes *sizes = writer->sizes;
    const struct moe_sizes size = moe_sizes(sizes);
    const struct moe_run_spec *run = &sizes->scenario->moe;
    struct op_collective ep = {.name = names[0],
                               .group = GROUP_EP,
                               .stream = STREAM_EP,
                               .bytes = size.copy_bytes,
                               .token_bytes = size.token_bytes,
                               .copies = size.copy_bytes / size.token_bytes};
    if (run->dispatcher == DISPATCHER_ALLGATHER) {
        ep.kind = gather ? COLLECTIVE_ALL_GATHER : COLLECTIVE_REDUCE_SCATTER;
        ep.bytes = size.token_bytes * sizes->ep;
    } else {
        static const enum collective_kind kinds[] = {
            [EXCHANGE_FLAT] = COLLECTIVE_ALL_TO_ALL,
            [EXCHANGE_HIERARCHICAL] = COLLECTIVE_ALL_TO_ALL_HIERARCHICAL,
            [EXCHANGE_DEDUPLICATED] = COLLECTIVE_ALL_TO_ALL_DEDUPLICATED,
        };
        ep.kind = kinds[run->exchange];
    }
    const struct op_collective etp = {.name = names[1],
                                      .kind = gather ? COLLECTIVE_ALL_GATHER
                                                     : COLLECTIVE_REDUCE_SCATTER,
                                      .group = GROUP_ETP,
                                      .stream = STREAM_EP,
                                      .bytes = size.row_bytes};
    const bool over_ep = sizes->ep > 1.0;
    const bool over_etp = sizes->etp > 1.0 && !size.replicated;
    int16_t ready = after;
    if (!gather && over_etp) {
        ready = op_collective(writer, &etp, ready);
    }
    if (over_ep) {
        ready = op_collective(writer, &ep, ready);
        writer->ops[ready].kernels = run->dispatcher == DISPATCHER_ALLTOALL ? 6.0 : 1.0;
    }
    if (gather && over_etp) {
        ready = op_collective(writer, &etp, ready);
    }
    return ready;
}

static int16_t grouped(struct op_writer *writer, const char *name, double m, double n, double k)
{
    const struct op_sizes *sizes = writer->sizes;
    const double local = moe_sizes(sizes).local;
    const int16_t index = op_matmul(writer, name, m, n, k);
    struct op *op = &writer->ops[index];
    op->compute.groups = local;
    if (sizes->scenario->moe.grouped_matmul) {
        op->compute.kind = COMPUTE_GROUPED_MATMUL;
        op->kernels = 1.0;
    } else {
        op->kernels = 3.0 * local; /* a slice, a matmul and a copy per expert */
    }
    return index;
}

static double permute_kernels(const struct op_sizes *sizes, double unfused)
{
    return sizes->scenario->moe.fused_permute ? 2.0 : unfused;
}

/* Sorts received rows by local expert. */
static void sort_rows(struct op_writer *writer, const char *name, int16_t after)
{
    const struct op_sizes *sizes = writer->sizes;
    const struct moe_sizes size = moe_sizes(sizes);
    if (size.local <= 1.0 || sizes->ep <= 1.0) {
        const int16_t join = op_vector(writer, name, 0.0, 1.0);
        op_wait(writer, join, after);
        return;
    }
    writer->rows_scale = true;
    const int16_t index =
        op_permute(writer, name, 2.0 * size.row_bytes, permute_kernels(sizes, 4.0));
    writer->rows_scale = false;
    op_wait(writer, index, after);
}

static void router_forward(struct op_writer *writer)
{
    const struct op_sizes *sizes = writer->sizes;
    const struct moe_sizes size = moe_sizes(sizes);
    const double experts = (double)sizes->model->spec->moe.experts;
    op_matmul(writer, "router", size.entry, experts, sizes->hidden);
    op_vector(writer, "router_top_k", size.entry * experts * 4.0 * 6.0, 12.0);
}

static void router_backward(struct op_writer *writer)
{
    const struct op_sizes *sizes = writer->sizes;
    const struct moe_sizes size = moe_sizes(sizes);
    const double experts = (double)sizes->model->spec->moe.experts;
    op_vector(writer, "router_top_k.grad", size.entry * experts * 4.0 * 6.0, 10.0);
    op_matmul(writer, "router.dgrad", size.entry, sizes->hidden, experts);
    writer->weight = true;
    const int16_t gradient =
        op_matmul(writer, "router.wgrad", sizes->hidden, experts, size.entry);
    writer->weight = false;
    op_accumulate(writer, "router.grad_add", gradient, 1.0);
}

static void experts_forward(struct op_writer *writer)
{
    const struct op_sizes *sizes = writer->sizes;
    const struct moe_sizes size = moe_sizes(sizes);
    const double m = size.rows / size.local;
    const uint32_t module = writer->module;
    writer->rows_scale = true;
    writer->module = module | MODULE_EXPERT_MLP;
    grouped(writer, "expert_up", m, ffn_gates(sizes) * size.expert_width, sizes->hidden);
    writer->module = module | MODULE_EXPERT_MLP | MODULE_ACTIVATION;
    op_vector(writer, "expert_activation",
              activation_bytes(sizes, size.rows * size.expert_width, false),
              activation_kernels(sizes));
    writer->module = module;
    grouped(writer, "expert_down", m, sizes->hidden, size.expert_width);
    writer->rows_scale = false;
}

static void expert_weight_gradients(struct op_writer *writer, bool down)
{
    const struct op_sizes *sizes = writer->sizes;
    const struct moe_sizes size = moe_sizes(sizes);
    const double m = size.rows / size.local;
    writer->weight = true;
    writer->rows_scale = true;
    const int16_t gradient =
        down ? grouped(writer, "expert_down.wgrad", size.expert_width, sizes->hidden, m)
             : grouped(writer, "expert_up.wgrad", sizes->hidden,
                       ffn_gates(sizes) * size.expert_width, m);
    writer->rows_scale = false;
    writer->weight = false;
    /* Grouped experts of a rank are one parameter. */
    op_accumulate(writer, down ? "expert_down.grad_add" : "expert_up.grad_add", gradient,
                  sizes->scenario->moe.grouped_matmul ? 1.0 : size.local);
}

static void experts_backward(struct op_writer *writer)
{
    const struct op_sizes *sizes = writer->sizes;
    const struct moe_sizes size = moe_sizes(sizes);
    const double m = size.rows / size.local;
    writer->rows_scale = true;
    grouped(writer, "expert_down.dgrad", m, size.expert_width, sizes->hidden);
    writer->rows_scale = false;
    if (!sizes->decouple_weight) {
        expert_weight_gradients(writer, true);
    }
    writer->rows_scale = true;
    op_vector(writer, "expert_activation.grad",
              activation_bytes(sizes, size.rows * size.expert_width, true),
              activation_kernels(sizes));
    grouped(writer, "expert_up.dgrad", m, sizes->hidden, ffn_gates(sizes) * size.expert_width);
    writer->rows_scale = false;
    if (!sizes->decouple_weight) {
        expert_weight_gradients(writer, false);
    }
}

static bool has_shared(const struct op_sizes *sizes)
{
    return sizes->model->spec->moe.shared_intermediate_size > 0;
}

static const char *const DISPATCH[2] = {"dispatch", "dispatch.etp"};
static const char *const COMBINE[2] = {"combine", "combine.etp"};
static const char *const COMBINE_GRAD[2] = {"combine.grad", "combine.etp.grad"};
static const char *const DISPATCH_GRAD[2] = {"dispatch.grad", "dispatch.etp.grad"};

/* Tokens replicated over tp: partial results of the etp shards are summed. */
static int16_t sum_replicas(struct op_writer *writer, const char *name, int16_t after)
{
    const struct moe_sizes size = moe_sizes(writer->sizes);
    if (!size.replicated) {
        return after;
    }
    const struct op_collective reduce = {.name = name,
                                         .kind = COLLECTIVE_ALL_REDUCE,
                                         .group = GROUP_TP,
                                         .stream = STREAM_TP,
                                         .bytes = size.token_bytes};
    return op_collective(writer, &reduce, after);
}

int16_t moe_forward(struct op_writer *writer, int16_t after)
{
    const struct op_sizes *sizes = writer->sizes;
    const struct moe_sizes size = moe_sizes(sizes);
    const bool overlap =
        sizes->scenario->moe.overlap_shared_expert || sizes->scenario->moe.overlap_intra_layer;
    norm_forward(writer, "ffn_norm", sizes->hidden, after);
    writer->module = MODULE_MOE_LAYER;
    router_forward(writer);
    writer->module = MODULE_MOE_LAYER | MODULE_PERMUTE;
    op_permute(writer, "permute", 2.0 * size.copy_bytes, permute_kernels(sizes, 10.0));
    const int16_t arrived = exchange(writer, DISPATCH, true, OP_NONE);
    int16_t shared = OP_NONE;
    if (has_shared(sizes) && overlap) {
        writer->module = MODULE_MOE_LAYER;
        shared = ffn_forward(writer, true, OP_NONE);
        writer->module = MODULE_MOE_LAYER | MODULE_PERMUTE;
    }
    sort_rows(writer, "sort_rows", arrived);
    writer->module = MODULE_MOE_LAYER;
    experts_forward(writer);
    sort_rows(writer, "unsort_rows", OP_NONE);
    int16_t ready = exchange(writer, COMBINE, false, OP_NONE);
    if (has_shared(sizes) && !overlap) {
        shared = ffn_forward(writer, true, ready);
        ready = OP_NONE;
    }
    const int16_t unpermute = op_permute(writer, "unpermute", size.copy_bytes + size.token_bytes,
                                         permute_kernels(sizes, 6.0));
    op_wait(writer, unpermute, ready);
    op_wait(writer, unpermute, shared);
    writer->module = 0;
    ready = sum_replicas(writer, "moe.all_reduce", OP_NONE);
    if (sizes->model->spec->norms_per_layer == 4) {
        ready = norm_forward(writer, "ffn_post_norm", sizes->hidden, ready);
    }
    ffn_residual(writer, "ffn_residual", ready);
    return OP_NONE;
}

int16_t moe_backward(struct op_writer *writer, int16_t after)
{
    const struct op_sizes *sizes = writer->sizes;
    const struct moe_sizes size = moe_sizes(sizes);
    const bool overlap =
        sizes->scenario->moe.overlap_shared_expert || sizes->scenario->moe.overlap_intra_layer;
    if (sizes->model->spec->norms_per_layer == 4) {
        after = norm_backward(writer, "ffn_post_norm.grad", sizes->hidden, after);
    }
    const int16_t unpermute = op_permute(
        writer, "unpermute.grad", size.copy_bytes + size.token_bytes, permute_kernels(sizes, 6.0));
    op_wait(writer, unpermute, after);
    const int16_t arrived = exchange(writer, COMBINE_GRAD, true, OP_NONE);
    int16_t shared = OP_NONE;
    if (has_shared(sizes) && overlap) {
        shared = ffn_backward(writer, true, OP_NONE);
    }
    sort_rows(writer, "unsort_rows.grad", arrived);
    experts_backward(writer);
    sort_rows(writer, "sort_rows.grad", OP_NONE);
    int16_t ready = exchange(writer, DISPATCH_GRAD, false, OP_NONE);
    if (sizes->decouple_weight) {
        expert_weight_gradients(writer, true);
        expert_weight_gradients(writer, false);
    }
    if (has_shared(sizes) && !overlap) {
        shared = ffn_backward(writer, true, sizes->decouple_weight ? OP_NONE : ready);
    }
    const int16_t permute = op_permute(writer, "permute.grad", size.copy_bytes + size.token_bytes,
                                       permute_kernels(sizes, 8.0));
    op_wait(writer, permute, ready);
    op_wait(writer, permute, shared);
    router_backward(writer);
    ready = sum_replicas(writer, "moe.grad_all_reduce", OP_NONE);
    norm_backward(writer, "ffn_norm.grad", sizes->hidden, ready);
    ffn_residual(writer, "ffn_residual.grad", OP_NONE);
    return OP_NONE;
}

void moe_saved(const struct op_sizes *sizes, struct block_ops *block)
{
    const struct moe_sizes size = moe_sizes(sizes);
    const double experts = (double)sizes->model->spec->moe.experts;
    ffn_entry_saved(sizes, block);
    op_saved(block, &(struct saved_tensor){.name = "router_probabilities",
                                           .bytes = 2.0 * size.entry * experts * 4.0,
                                           .module = MODULE_MOE_LAYER});
    op_saved(block, &(struct saved_tensor){.name = "expert_input",
                                           .bytes = size.row_bytes,
                                           .module = MODULE_PERMUTE | MODULE_MOE_LAYER |
                                                     MODULE_PERMUTE_PROBS,
                                           .for_weight = true,
                                           .rows_scale = true});
    const double row = size.rows * size.expert_width * ELEMENT_BYTES;
    op_saved(block, &(struct saved_tensor){.name = "expert_up",
                                           .bytes = row * ffn_gates(sizes),
                                           .module = MODULE_EXPERT_MLP | MODULE_MOE_LAYER,
                                           .rows_scale = true});
    const uint32_t activation = MODULE_ACTIVATION | MODULE_EXPERT_MLP | MODULE_MOE_LAYER;
    op_saved(block, &(struct saved_tensor){.name = "expert_activation",
                                           .bytes = row,
                                           .module = activation,
                                           .for_weight = true,
                                           .rows_scale = true});
    if (!sizes->scenario->fusion.swiglu && ffn_gates(sizes) > 1.0) {
        op_saved(block, &(struct saved_tensor){.name = "expert_silu",
                                               .bytes = row,
                                               .module = activation,
                                               .rows_scale = true});
    }
    if (!sizes->scenario->moe.fused_permute) {
        /* Probabilities are applied after the combine: their gradient needs its result. */
        op_saved(block, &(struct saved_tensor){.name = "combined",
                                               .bytes = size.copy_bytes,
                                               .module = MODULE_MOE_LAYER | MODULE_PERMUTE_PROBS});
    }
    if (has_shared(sizes)) {
        ffn_saved(sizes, true, block);
    }
}
