/*
 * template.c - costs the op lists of a block and cuts them into program ops.
 *
 * Consecutive compute ops are fused into one program op until a communication op needs
 * the last of them or the next one needs a communication op. The duration of a fused op is
 * the sum of the whole picoseconds of its parts, so fusing changes no time. Memory deltas sit
 * on the first and the last op of a pass, fused or not, so fusing changes no peak.
 *
 * Host. A pass whose kernels take longer to issue than to run is host-bound. Issue and
 * device time are combined by a smooth maximum (fourth powers), since queues hide short
 * imbalances; the excess over the device time is one op of cause `host` at the end of the
 * pass. Device-to-host synchronisations of MoE layers are added to it.
 *
 * Fused matmul-collectives (MC2, CoC) run tile by tile: the longer part hides the shorter one
 * except for the share that the device file gives (first and last tile).
 */
#include "plan_internal.h"

#include <math.h>
#include <string.h>

struct template_writer {
    struct plan_builder *builder;
    struct template *template;
    const struct op_list *list;
    const struct block_ops *block;
    int16_t position[TEMPLATE_OPS_MAX]; /* op of the list -> op of the template */
    bool open;                          /* the last compute op may grow */
    int16_t rest;   /* of a fused kernel, which the next compute op waits for; -1: none */
    bool recompute; /* ops count as recompute */
    char pass;
    const struct template *like; /* repriced: this template has the same ops */
    double compute_s, comm_s, kernels;
};

static enum time_cause stream_cause(enum stream stream)
{
    switch (stream) {
    case STREAM_TP:
        return CAUSE_TP;
    case STREAM_EP:
        return CAUSE_EP;
    case STREAM_CP:
        return CAUSE_CP;
    case STREAM_DP:
        return CAUSE_DP;
    case STREAM_SEND:
    case STREAM_RECV:
        return CAUSE_PP;
    case STREAM_COPY_OUT:
    case STREAM_COPY_IN:
        return CAUSE_SWAP;
    default:
        return CAUSE_COMPUTE;
    }
}

static struct template_op *append(struct template_writer *writer)
{
    struct template *template = writer->template;
    ASSERT(template->count < TEMPLATE_OPS_MAX);
    return &template->ops[template->count++];
}

static void add_wait(struct template_op *op, int16_t position)
{
    for (int i = 0; i < op->wait_count; i++) {
        if (op->waits[i] == position) {
            return;
        }
    }
    ASSERT(op->wait_count < TEMPLATE_WAITS_MAX);
    op->waits[op->wait_count++] = position;
}

/* Waits on communication that this compute op has, as template positions. */
static bool waits_on_comm(const struct template_writer *writer, const struct op *op)
{
    for (int slot = 0; slot < OP_AFTER_MAX; slot++) {
        if (op->after[slot] == OP_NONE) {
            continue;
        }
        const int16_t position = writer->position[op->after[slot]];
        if (writer->template->ops[position].stream != STREAM_COMPUTE) {
            return true;
        }
    }
    return false;
}

static void add_waits(const struct template_writer *writer, const struct op *op,
                      struct template_op *out)
{
    for (int slot = 0; slot < OP_AFTER_MAX; slot++) {
        if (op->after[slot] != OP_NONE) {
            const int16_t position = writer->position[op->after[slot]];
            if (writer->template->ops[position].stream != out->stream) {
                add_wait(out, position);
            }
        }
    }
}

/* The collective of a fused kernel: what sticks out behind the matmul. */
static void add_fused_rest(struct template_writer *writer, const struct op *collective,
                           double matmul_s)
{
    struct plan_builder *builder = writer->builder;
    const struct device_spec *device = builder->ask->cluster->device;
    const bool coc =
        builder->ask->graph->scenario->overlap.matmul_collective == MATMUL_COLLECTIVE_COC;
    const double share = coc ? device->coc_exposed_ratio : device->mc2_exposed_ratio;
    const struct collective_ask ask = plan_collective_ask(builder, collective);
    const struct collective_cost cost = plan_collective(builder, &ask);
    const double shorter = fmin(matmul_s, cost.time_s);
    const double rest = fmax(0.0, cost.time_s - matmul_s) + share * shorter;
    const int16_t matmul = (int16_t)(writer->template->count - 1);
    struct template_op *op = append(writer);
    *op = (struct template_op){
        .kind = PROGRAM_OP_COLLECTIVE,
        .cause = (uint8_t)stream_cause(collective->stream),
        .stream = (uint8_t)collective->stream,
        .group = (uint8_t)collective->group,
        .pass = writer->pass,
        .duration =
            cost_table_duration(&builder->costs, sim_time_from_seconds(rest), builder->arena),
        .name = collective->name,
    };
    add_wait(op, matmul);
    transfers_note(builder, op->duration, &ask);
    writer->comm_s += rest;
    for (int level = 0; level < LEVELS_MAX; level++) {
        writer->template->sent_bytes[op->cause] += cost.sent_bytes[level];
    }
}

static void write_compute(struct template_writer *writer, uint32_t index)
{
    struct plan_builder *builder = writer->builder;
    const struct op *op = &writer->list->ops[index];
    const double seconds = plan_compute_s(builder, &op->compute);
    const sim_time duration = op->kernels > 0.0 ? sim_time_from_seconds(seconds) : 0;
    struct template_op *last =
        writer->template->count ? &writer->template->ops[writer->template->count - 1] : NULL;
    const bool grow = writer->open && last != NULL && last->stream == STREAM_COMPUTE &&
                      !builder->ask->unfused && !waits_on_comm(writer, op);
    if (grow) {
        builder->costs.durations[last->duration] += duration;
    } else {
        struct template_op *out = append(writer);
        *out = (struct template_op){
            .kind = PROGRAM_OP_COMPUTE,
            .cause = (uint8_t)(writer->recompute ? CAUSE_RECOMPUTE : CAUSE_COMPUTE),
            .flags = PROGRAM_OP_SLOWED,
            .stream = STREAM_COMPUTE,
            .pass = writer->pass,
            .duration = cost_table_duration(&builder->costs, duration, builder->arena),
            .name = op->name,
        };
        add_waits(writer, op, out);
        if (writer->rest >= 0) {
            add_wait(out, writer->rest);
            writer->rest = -1;
        }
        writer->open = true;
    }
    struct template_op *written = &writer->template->ops[writer->template->count - 1];
    if (op->rows_scale) {
        const struct rows_part part = {.factor = builder->compute_scale,
                                       .paired_factor = builder->compute_scale,
                                       .compute = op->compute,
                                       .rows_in_k = op->in_weight_pass};
        rows_part_add(builder, written, &part);
    } else {
        written->fixed += duration;
    }
    writer->position[index] = (int16_t)(writer->template->count - 1);
    writer->compute_s += seconds;
    writer->template->flop += op_flop(op);
    writer->template->recompute_flop += writer->recompute ? op_flop(op) : 0.0;
    writer->template->rows_flop += op->rows_scale ? op_flop(op) : 0.0;
    if (op->fused_collective != OP_NONE) {
        add_fused_rest(writer, &writer->list->ops[op->fused_collective], seconds);
        writer->position[op->fused_collective] = (int16_t)(writer->template->count - 1);
        /* The kernel holds the cores to its end: whatever comes next waits for all of it. */
        writer->rest = (int16_t)(writer->template->count - 1);
        writer->position[index] = writer->rest;
        writer->open = false;
    }
}

/* Is there compute between a communication op and the first op that needs it? */
static bool hides(const struct op_list *list, uint32_t index)
{
    bool compute = false;
    for (uint32_t i = index + 1; i < list->count; i++) {
        const struct op *op = &list->ops[i];
        for (int slot = 0; slot < OP_AFTER_MAX; slot++) {
            if (op->after[slot] == (int16_t)index) {
                return compute && op->stream == STREAM_COMPUTE;
            }
        }
        compute = compute || (op->stream == STREAM_COMPUTE && op->kernels > 0.0);
    }
    return compute;
}

static uint32_t priced(struct plan_builder *builder, double seconds)
{
    return cost_table_duration(&builder->costs, sim_time_from_seconds(seconds), builder->arena);
}

static void write_collective(struct template_writer *writer, uint32_t index)
{
    struct plan_builder *builder = writer->builder;
    const struct op *op = &writer->list->ops[index];
    const struct collective_ask ask = plan_collective_ask(builder, op);
    const struct collective_cost cost = plan_collective(builder, &ask);
    const bool overlapped = hides(writer->list, index);
    const double contended_s = cost.time_s * builder->ask->cluster->device->contention_comm;
    const double seconds = overlapped ? contended_s : cost.time_s;
    if (writer->template->count > 0 && op->stream == STREAM_EP) {
        struct template_op *last = &writer->template->ops[writer->template->count - 1];
        if (last->stream == STREAM_COMPUTE) {
            last->cut_after = true;
        }
    }
    struct template_op *out = append(writer);
    *out = (struct template_op){
        .kind = PROGRAM_OP_COLLECTIVE,
        .cause = (uint8_t)stream_cause(op->stream),
        .flags = overlapped ? PROGRAM_OP_CONTENDS : 0,
        .stream = (uint8_t)op->stream,
        .group = (uint8_t)op->group,
        .pass = writer->pass,
        .duration = priced(builder, seconds),
        .name = op->name,
    };
    transfers_note(builder, out->duration, &ask);
    out->duration_paired = out->duration;
    if (builder->ask->schedule->overlaps && op->stream == STREAM_EP && !overlapped) {
        out->duration_paired = priced(builder, contended_s);
        transfers_like(builder, out->duration_paired, out->duration);
    }
    if (op->group == GROUP_EP && op->stream == STREAM_EP) {
        const double contention = builder->ask->cluster->device->contention_comm;
        const struct rows_part part = {.collective = true,
                                       .factor = overlapped ? contention : 1.0,
                                       .paired_factor = contention,
                                       .exchange = ask};
        rows_part_add(builder, out, &part);
    }
    add_waits(writer, op, out);
    writer->position[index] = (int16_t)(writer->template->count - 1);
    writer->open = false;
    writer->comm_s += overlapped ? 0.0 : seconds;
    for (int level = 0; level < LEVELS_MAX; level++) {
        writer->template->sent_bytes[out->cause] += cost.sent_bytes[level];
    }
}

/* A matmul may be fused with a collective that stands before it in the list: its own
 * producer then is what the fused kernel waits for. */
static void inherit_waits(struct template_writer *writer, uint32_t index)
{
    const struct op *op = &writer->list->ops[index];
    int16_t producer = OP_NONE;
    for (int slot = 0; slot < OP_AFTER_MAX; slot++) {
        if (op->after[slot] != OP_NONE) {
            producer = writer->position[op->after[slot]];
        }
    }
    writer->position[index] = producer == OP_NONE ? 0 : producer;
}

static void write_list(struct template_writer *writer, const struct op_list *list)
{
    writer->list = list;
    for (uint32_t i = 0; i < list->count; i++) {
        const struct op *op = &list->ops[i];
        writer->kernels += op->kernels;
        if (op->op_class == OP_CLASS_COMPUTE) {
            write_compute(writer, i);
        } else if (!op->fused_away) {
            write_collective(writer, i);
        } else if (writer->template->count == 0 || op->after[0] == OP_NONE ||
                   list->ops[op->after[0]].fused_collective != (int16_t)i) {
            inherit_waits(writer, i);
        }
    }
    writer->open = false;
}

/* What issue time adds to the pass. */
static void write_host(struct template_writer *writer)
{
    struct plan_builder *builder = writer->builder;
    const struct device_spec *device = builder->ask->cluster->device;
    const bool graph = builder->ask->graph->scenario->host.dispatch == HOST_GRAPH;
    const double issue = writer->kernels * (graph ? device->host_graph_s : device->host_eager_s);
    const double busy = writer->compute_s + writer->comm_s;
    const double both = pow(pow(busy, 4.0) + pow(issue, 4.0), 0.25);
    double excess = fmax(0.0, both - busy);
    if (writer->pass != 'W') {
        excess += writer->block->host_syncs * device->host_moe_sync_s;
    }
    const sim_time duration = sim_time_from_seconds(excess);
    const bool needed = duration != 0 || writer->template->count == 0 || writer->rest >= 0;
    if (writer->like != NULL ? writer->like->count == writer->template->count : !needed) {
        return;
    }
    struct template_op *out = append(writer);
    *out = (struct template_op){
        .kind = PROGRAM_OP_COMPUTE,
        .cause = CAUSE_HOST,
        .stream = STREAM_COMPUTE,
        .pass = writer->pass,
        .duration = cost_table_duration(&builder->costs, duration, builder->arena),
        .name = "host",
    };
    if (writer->rest >= 0) {
        add_wait(out, writer->rest);
    }
}

struct pass_deltas pass_deltas(const struct op_graph *graph, const struct block_ops *block,
                               bool recompute, enum template_kind which, double rows_ratio)
{
    const struct kept_bytes kept = memory_model_kept(graph, block, recompute, rows_ratio);
    const double more = (rows_ratio - 1.0) * block->workspace_rows_bytes;
    const double forward = block->workspace_forward_bytes + more;
    const double backward = kept.recomputed + block->workspace_backward_bytes + more;
    const double gradient = block->workspace_gradient_bytes;
    switch (which) {
    case TEMPLATE_FORWARD:
        return (struct pass_deltas){.start = kept.until_backward + kept.until_weight + forward,
                                    .end = -forward};
    case TEMPLATE_BACKWARD:
        return (struct pass_deltas){
            .start = backward + gradient,
            .end = -backward - gradient - kept.until_backward - kept.until_weight};
    case TEMPLATE_BACKWARD_INPUT:
        return (struct pass_deltas){.start = backward, .end = -backward - kept.until_backward};
    case TEMPLATE_BACKWARD_WEIGHT:
        return (struct pass_deltas){.start = gradient, .end = -gradient - kept.until_weight};
    case TEMPLATE_KIND_COUNT:
        break;
    }
    ASSERT(!"not a template");
    return (struct pass_deltas){0};
}

static void set_deltas(struct template_writer *writer, struct pass_deltas deltas)
{
    struct plan_builder *builder = writer->builder;
    struct template *template = writer->template;
    struct template_op *first = NULL;
    struct template_op *last = NULL;
    for (uint32_t i = 0; i < template->count; i++) {
        if (template->ops[i].stream == STREAM_COMPUTE) {
            first = first ? first : &template->ops[i];
            last = &template->ops[i];
        }
    }
    ASSERT(first != NULL);
    first->delta_start = cost_table_delta(&builder->costs, deltas.start, builder->arena);
    last->delta_end = cost_table_delta(&builder->costs, deltas.end, builder->arena);
}

static void build_template(struct plan_builder *builder, const struct block_ops *block,
                           bool recompute, enum template_kind which)
{
    static const char passes[TEMPLATE_KIND_COUNT] = {'F', 'B', 'B', 'W'};
    const uint32_t index = (uint32_t)(block - builder->ask->graph->blocks);
    struct template *template = &builder->templates[index][recompute][which];
    template->ops = builder->scratch_ops;
    struct template_writer writer = {
        .builder = builder,
        .template = template,
        .block = block,
        .like = builder->like != NULL ? &builder->like->templates[index][recompute][which] : NULL,
        .rest = -1,
        .pass = passes[which]};
    if (recompute && (which == TEMPLATE_BACKWARD || which == TEMPLATE_BACKWARD_INPUT)) {
        writer.recompute = true;
        write_list(&writer, &block->pass[PASS_RECOMPUTE]);
        writer.recompute = false;
    }
    switch (which) {
    case TEMPLATE_FORWARD:
        write_list(&writer, &block->pass[PASS_FORWARD]);
        break;
    case TEMPLATE_BACKWARD:
        write_list(&writer, &block->backward);
        break;
    case TEMPLATE_BACKWARD_INPUT:
        write_list(&writer, &block->pass[PASS_BACKWARD_INPUT]);
        break;
    case TEMPLATE_BACKWARD_WEIGHT:
        write_list(&writer, &block->pass[PASS_BACKWARD_WEIGHT]);
        break;
    case TEMPLATE_KIND_COUNT:
        break;
    }
    write_host(&writer);
    template->block = block;
    template->recompute = recompute;
    template->which = (uint8_t)which;
    set_deltas(&writer, pass_deltas(builder->ask->graph, block, recompute, which, 1.0));
    /* A list is short beside the longest there may be, and a search makes millions of them. */
    template->ops = ARENA_ARRAY(builder->arena, template->count, struct template_op);
    memcpy(template->ops, builder->scratch_ops, template->count * sizeof *template->ops);
}

void templates_build(struct plan_builder *builder)
{
    const struct op_graph *graph = builder->ask->graph;
    ASSERT(graph->block_count <= PLAN_BLOCKS_MAX);
    const bool split = builder->ask->schedule->splits_backward;
    builder->scratch_ops = ARENA_ARRAY(builder->arena, TEMPLATE_OPS_MAX, struct template_op);
    for (uint32_t i = 0; i < graph->block_count; i++) {
        const struct block_ops *block = &graph->blocks[i];
        const bool layer = block->kind != BLOCK_EMBEDDING && block->kind != BLOCK_HEAD;
        const int variants = layer && graph->scenario->recompute.modules != 0 ? 2 : 1;
        for (int recompute = 0; recompute < variants; recompute++) {
            build_template(builder, block, recompute != 0, TEMPLATE_FORWARD);
            build_template(builder, block, recompute != 0, TEMPLATE_BACKWARD);
            if (split) {
                build_template(builder, block, recompute != 0, TEMPLATE_BACKWARD_INPUT);
                build_template(builder, block, recompute != 0, TEMPLATE_BACKWARD_WEIGHT);
            }
        }
    }
}

struct template *template_of(struct plan_builder *builder, enum block_kind kind, bool windowed,
                             bool recompute, enum template_kind which)
{
    const struct block_ops *block = op_graph_block(builder->ask->graph, kind, windowed);
    const uint32_t index = (uint32_t)(block - builder->ask->graph->blocks);
    struct template *template = &builder->templates[index][recompute][which];
    ASSERT(template->ops != NULL);
    return template;
}
