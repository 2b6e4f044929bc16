/*
 * chunk_walk.c - appends the templates of one pass over one chunk, segment by segment.
 *
 * A segment ends where expert communication is issued, so that two walks can alternate on the
 * compute stream (overlapped pairs).
 */
#include "plan_internal.h"

static void append_op(struct program_writer *writer, struct cursor *cursor)
{
    const struct template_op *from = &cursor->template->ops[cursor->next];
    struct op_costs costs = {from->duration, from->delta_start, from->delta_end};
    if (writer->builder->ask->loads != NULL) {
        costs = rows_costs(writer->builder, cursor);
    } else if (cursor->paired && from->stream == STREAM_EP) {
        costs.duration = from->duration_paired;
    }
    struct op_draft draft; /* its waits need no zeros */
    draft.stream = (enum stream)from->stream;
    draft.op = (struct program_op){.kind = from->kind,
                                   .cause = from->cause,
                                   .flags = from->flags,
                                   .duration = costs.duration,
                                   .peer = from->group,
                                   .delta_start = costs.delta_start,
                                   .delta_end = costs.delta_end};
    draft.wait_count = 0;
    draft.name = from->name;
    draft.pass = from->pass;
    if (cursor->paired && from->stream == STREAM_EP) {
        draft.op.flags |= PROGRAM_OP_CONTENDS;
    }
    for (int i = 0; i < from->wait_count; i++) {
        const int16_t position = from->waits[i];
        draft_wait(&draft, (enum stream)cursor->template->ops[position].stream,
                   cursor->index[position]);
    }
    if (draft.stream == STREAM_COMPUTE) {
        for (int i = 0; i < CURSOR_ENTRIES && cursor->entry[i].index != NO_INDEX; i++) {
            draft_wait(&draft, (enum stream)cursor->entry[i].stream, cursor->entry[i].index);
            cursor->entry[i].index = NO_INDEX;
        }
    }
    writer->microbatch = cursor->microbatch;
    writer->layer = cursor->layer;
    writer->chunk = cursor->chunk;
    cursor->index[cursor->next] = program_writer_add(writer, &draft);
    cursor->next++;
}

/* Appends up to the end of the segment; false when the template is done. */
static bool append_segment(struct program_writer *writer, struct cursor *cursor)
{
    const struct template *template = cursor->template;
    while (cursor->next < template->count) {
        const bool cut = template->ops[cursor->next].cut_after;
        append_op(writer, cursor);
        if (cut) {
            /* The exchanges that the segment feeds belong to it. */
            while (cursor->next < template->count &&
                   template->ops[cursor->next].stream != STREAM_COMPUTE) {
                append_op(writer, cursor);
            }
            return true;
        }
    }
    return false;
}

uint32_t chunk_blocks(const struct program_writer *writer, uint32_t chunk,
                      struct chunk_block blocks[])
{
    const struct op_graph *graph = writer->builder->ask->graph;
    const struct model *model = graph->model;
    const struct layout_chunk *slots =
        &graph->layout->chunks[writer->stage * graph->layout->vpp + chunk];
    uint32_t count = 0;
    ASSERT(slots->layer_count + 2 * slots->mtp + 2 <= CHUNK_BLOCKS_MAX);
    if (slots->embedding) {
        blocks[count++] = (struct chunk_block){.kind = BLOCK_EMBEDDING, .layer = -1};
    }
    for (uint32_t i = 0; i < slots->layer_count; i++) {
        const uint32_t layer = slots->first_layer + i;
        blocks[count++] = (struct chunk_block){
            .kind = model->layer_kind[layer],
            .windowed = model->layer_windowed != NULL && model->layer_windowed[layer],
            .recompute = op_graph_recomputes(graph, writer->stage, chunk, i),
            .layer = (int32_t)layer};
    }
    if (slots->head) {
        blocks[count++] = (struct chunk_block){.kind = BLOCK_HEAD, .layer = -1};
    }
    for (uint32_t i = 0; i < slots->mtp; i++) {
        const bool whole = graph->scenario->recompute.method != RECOMPUTE_PER_STAGE;
        blocks[count++] = (struct chunk_block){
            .kind = BLOCK_MTP,
            .recompute = whole && op_graph_recomputes(graph, writer->stage, chunk, 0),
            .layer = (int32_t)(model->layers + i)};
        blocks[count++] = (struct chunk_block){.kind = BLOCK_HEAD, .layer = -1};
    }
    return count;
}

bool block_owns_params(const struct program_writer *writer, const struct chunk_block *blocks,
                       uint32_t block)
{
    const bool tied = writer->builder->ask->graph->model->spec->tied_embedding;
    if (blocks[block].kind != BLOCK_HEAD) {
        return true;
    }
    for (uint32_t i = 0; i < block; i++) {
        if (blocks[i].kind == BLOCK_HEAD || (tied && blocks[i].kind == BLOCK_EMBEDDING)) {
            return false;
        }
    }
    return true;
}

static void start_cursor(const struct program_writer *writer, struct cursor *cursor,
                         const struct chunk_block *block, enum template_kind which)
{
    cursor->template =
        template_of(writer->builder, block->kind, block->windowed, block->recompute, which);
    cursor->next = 0;
    cursor->layer = block->layer;
}

static void account(const struct program_writer *writer, const struct walk *walk)
{
    const uint32_t stage = writer->stage;
    const struct template *template = walk->cursor.template;
    writer->builder->hardware_flop[stage] += template->flop;
    writer->builder->rows_flop[stage] += template->rows_flop;
    writer->builder->recompute_flop[stage] += template->recompute_flop;
    if (walk->which == TEMPLATE_FORWARD) {
        writer->builder->forward_flop[stage] += template->flop;
    }
    for (int cause = 0; cause < CAUSE_COUNT; cause++) {
        writer->builder->sent_bytes[stage * CAUSE_COUNT + (uint32_t)cause] +=
            template->sent_bytes[cause];
    }
}

static uint32_t block_index(const struct walk *walk, uint32_t position)
{
    return walk->reverse ? walk->count - 1 - position : position;
}

static const struct chunk_block *block_at(const struct walk *walk, uint32_t position)
{
    return &walk->blocks[block_index(walk, position)];
}

/* ZeRO 3: gathers one block ahead and reduces the gradients of the block before. */
static void gather_ahead(struct program_writer *writer, struct walk *walk)
{
    const uint32_t at = walk->position;
    if (at == 0) {
        walk->gathered = block_gather_write(writer, block_at(walk, 0)->kind);
    }
    walk_wait(walk, (struct program_wait){.stream = STREAM_DP, .index = walk->gathered});
    if (at + 1 < walk->count) {
        walk->gathered = block_gather_write(writer, block_at(walk, at + 1)->kind);
    }
    if (at > 0 && walk->reverse) {
        block_reduce_write(writer, block_at(walk, at - 1)->kind);
    }
}

/* Reduces the gradients of the block that was just walked. */
static void reduce_behind(struct program_writer *writer, const struct walk *walk)
{
    const uint32_t block = block_index(walk, walk->position - 1);
    writer->chunk = walk->cursor.chunk;
    writer->layer = walk->blocks[block].layer;
    if (block_owns_params(writer, walk->blocks, block)) {
        block_reduce_write(writer, walk->blocks[block].kind);
    }
}

/* The first microbatch waits for the parameters that the last step updated, block by block. */
static void wait_for_parameters(struct program_writer *writer, struct walk *walk)
{
    if (walk->which == TEMPLATE_FORWARD && walk->cursor.microbatch == 0) {
        const uint32_t block = block_index(walk, walk->position);
        walk_wait(walk, (struct program_wait){.stream = STREAM_DP,
                                              .index = block_parameters_ready(
                                                  writer, walk->cursor.chunk, block)});
    }
}

/* Copies out what the block before keeps, copies in what this one needs. */
static void swap_around(struct program_writer *writer, struct walk *walk)
{
    if (walk->which == TEMPLATE_FORWARD) {
        if (walk->position > 0) {
            swap_out_write(writer, walk, block_index(walk, walk->position - 1));
        }
        return;
    }
    if (walk->which != TEMPLATE_BACKWARD_WEIGHT && walk->position < walk->count) {
        const uint32_t index = swap_in_write(writer, walk, block_index(walk, walk->position));
        walk_wait(walk, (struct program_wait){.stream = STREAM_COPY_IN, .index = index});
    }
}

/* A chunk without blocks has no compute op, but what it hands on must have come in before. */
static void pass_through(struct program_writer *writer, const struct walk *walk)
{
    struct op_draft draft = {
        .stream = STREAM_COMPUTE,
        .op = {.kind = PROGRAM_OP_MARKER,
               .cause = CAUSE_COMPUTE,
               .duration = cost_table_duration(&writer->builder->costs, 0, writer->builder->arena)},
        .name = "empty_chunk",
        .pass = walk->which == TEMPLATE_FORWARD ? 'F' : 'B',
    };
    for (int i = 0; i < CURSOR_ENTRIES; i++) {
        draft_wait(&draft, (enum stream)walk->cursor.entry[i].stream, walk->cursor.entry[i].index);
    }
    writer->microbatch = walk->cursor.microbatch;
    writer->layer = -1;
    writer->chunk = walk->cursor.chunk;
    if (draft.wait_count > 0) {
        program_writer_add(writer, &draft);
    }
}

static bool walk_next(struct program_writer *writer, struct walk *walk)
{
    writer->boundary = writer->next_boundary;
    writer->next_boundary = program_writer_last(writer, STREAM_COMPUTE);
    if (swap_is_on(writer)) {
        swap_around(writer, walk);
    }
    if (walk->count == 0) {
        pass_through(writer, walk);
    }
    if (walk->reduces && walk->position > 0) {
        reduce_behind(writer, walk);
    }
    if (walk->position == walk->count) {
        if (walk->gathers && walk->reverse && walk->count > 0) {
            block_reduce_write(writer, block_at(walk, walk->count - 1)->kind);
        }
        return false;
    }
    if (walk->gathers) {
        gather_ahead(writer, walk);
    }
    wait_for_parameters(writer, walk);
    start_cursor(writer, &walk->cursor, block_at(walk, walk->position), walk->which);
    account(writer, walk);
    walk->position++;
    return true;
}

void walk_start(const struct program_writer *writer, struct walk *walk, uint32_t microbatch,
                uint32_t chunk, enum template_kind which)
{
    walk->cursor.template = NULL;
    walk->cursor.paired = false;
    walk->cursor.microbatch = (int32_t)microbatch;
    walk->cursor.chunk = (uint16_t)chunk;
    for (int i = 0; i < CURSOR_ENTRIES; i++) {
        walk->cursor.entry[i] = (struct program_wait){.stream = STREAM_COMPUTE, .index = NO_INDEX};
    }
    walk->count = chunk_blocks(writer, chunk, walk->blocks);
    walk->position = 0;
    walk->reverse = which != TEMPLATE_FORWARD;
    walk->gathers = writer->builder->ask->graph->scenario->parallel.zero == 3;
    walk->which = which;
    walk->reduces = (which == TEMPLATE_BACKWARD || which == TEMPLATE_BACKWARD_WEIGHT) &&
                    gradients_reduce_next(writer, chunk);
}

void walk_wait(struct walk *walk, struct program_wait wait)
{
    for (int i = 0; i < CURSOR_ENTRIES && wait.index != NO_INDEX; i++) {
        if (walk->cursor.entry[i].index == NO_INDEX) {
            walk->cursor.entry[i] = wait;
            return;
        }
    }
    ASSERT(wait.index == NO_INDEX);
}

bool walk_segment(struct program_writer *writer, struct walk *walk)
{
    if (walk->cursor.template == NULL || walk->cursor.next == walk->cursor.template->count) {
        if (!walk_next(writer, walk)) {
            return false;
        }
    }
    append_segment(writer, &walk->cursor);
    return true;
}
