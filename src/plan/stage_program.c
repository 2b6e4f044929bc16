/*
 * stage_program.c - writes the actions of a stage in the order of its pipeline schedule.
 *
 * An action (forward or backward of one microbatch on one chunk) is: a recv that its first
 * compute op waits for, the templates of the chunk's blocks in model order (reversed for
 * backward), and a send that waits for its last op. An overlapped pair alternates the
 * segments of a backward and a forward, so that each exchange of one runs beside a segment of
 * the other (docs/NOTATION.md).
 */
#include "plan_internal.h"

enum direction { FORWARD, BACKWARD };

static uint32_t message_key(const struct layout *layout, uint32_t microbatch, uint32_t model_chunk)
{
    return microbatch * layout->pp * layout->vpp + model_chunk;
}

/* The model chunk that a message comes from (or goes to, from the other end). */
static uint32_t neighbour(const struct layout *layout, uint32_t model_chunk, bool up)
{
    if (up) {
        return model_chunk + 1 < layout->pp * layout->vpp ? model_chunk + 1 : NO_INDEX;
    }
    return model_chunk > 0 ? model_chunk - 1 : NO_INDEX;
}

/* The chunk behind a message over the border of this chunk, NO_INDEX if none crosses it:
 * at the ends of the model, and where a V-shaped placement turns inside a stage. */
static uint32_t other_end(const struct layout *layout, uint32_t stage, uint32_t model_chunk,
                          bool up)
{
    const uint32_t other = neighbour(layout, model_chunk, up);
    return other != NO_INDEX && layout_stage_of(layout, other) == stage ? NO_INDEX : other;
}

static uint32_t peer_of(const struct layout *layout, uint32_t stage, uint32_t other)
{
    if (other == (stage + 1) % layout->pp) {
        return PEER_NEXT;
    }
    ASSERT(other == (stage + layout->pp - 1) % layout->pp);
    return PEER_PREVIOUS;
}

static void at_border(struct program_writer *writer, uint32_t microbatch, uint32_t chunk)
{
    writer->microbatch = (int32_t)microbatch;
    writer->chunk = (uint16_t)chunk;
    writer->layer = -1;
}

static struct program_wait receive(struct program_writer *writer, enum direction direction,
                                   uint32_t microbatch, uint32_t chunk)
{
    const struct layout *layout = writer->builder->ask->graph->layout;
    const uint32_t model_chunk = layout_model_chunk(layout, writer->stage, chunk);
    const uint32_t from = other_end(layout, writer->stage, model_chunk, direction == BACKWARD);
    if (from == NO_INDEX) {
        return (struct program_wait){.stream = STREAM_RECV, .index = NO_INDEX};
    }
    const struct op_draft draft = {
        .stream = STREAM_RECV,
        .op = {.kind = PROGRAM_OP_RECV,
               .cause = CAUSE_PP,
               .peer = peer_of(layout, writer->stage, layout_stage_of(layout, from)),
               .message = writer->messages},
        .name = direction == FORWARD ? "recv_activation" : "recv_gradient",
        .pass = direction == FORWARD ? 'F' : 'B'};
    at_border(writer, microbatch, chunk);
    ASSERT(writer->builder->recv_ordinal[direction][message_key(layout, microbatch, model_chunk)] ==
           writer->messages);
    writer->messages++;
    return (struct program_wait){.stream = STREAM_RECV,
                                 .index = program_writer_add(writer, &draft)};
}

static void transmit(struct program_writer *writer, enum direction direction, uint32_t microbatch,
                     uint32_t chunk)
{
    struct plan_builder *builder = writer->builder;
    const struct layout *layout = builder->ask->graph->layout;
    const uint32_t model_chunk = layout_model_chunk(layout, writer->stage, chunk);
    const uint32_t to = other_end(layout, writer->stage, model_chunk, direction == FORWARD);
    if (to == NO_INDEX) {
        return;
    }
    const uint32_t peer = peer_of(layout, writer->stage, layout_stage_of(layout, to));
    struct op_draft draft = {
        .stream = STREAM_SEND,
        .op = {.kind = PROGRAM_OP_SEND,
               .cause = CAUSE_PP,
               .duration = builder->send_duration[peer],
               .peer = peer,
               .message = builder->recv_ordinal[direction][message_key(layout, microbatch, to)]},
        .name = direction == FORWARD ? "send_activation" : "send_gradient",
        .pass = direction == FORWARD ? 'F' : 'B'};
    draft_wait(&draft, STREAM_COMPUTE, program_writer_last(writer, STREAM_COMPUTE));
    at_border(writer, microbatch, chunk);
    const uint32_t index = program_writer_add(writer, &draft);
    builder->sent_bytes[writer->stage * CAUSE_COUNT + CAUSE_PP] += builder->send_bytes;
    if (!builder->ask->graph->scenario->schedule.p2p_overlapped) {
        writer->blocked_on = (struct program_wait){.stream = STREAM_SEND, .index = index};
    }
}

/* Starts a walk behind its recv, and behind a send that blocks. */
static void enter(struct program_writer *writer, struct walk *walk, uint32_t microbatch,
                  uint32_t chunk, enum template_kind which)
{
    walk_start(writer, walk, microbatch, chunk, which);
    if (which != TEMPLATE_BACKWARD_WEIGHT) {
        walk_wait(walk, receive(writer, which == TEMPLATE_FORWARD ? FORWARD : BACKWARD, microbatch,
                                chunk));
    }
    walk_wait(walk, writer->blocked_on);
    writer->blocked_on.index = NO_INDEX;
}

/* The end of a pass: its message, and the gradients of a finished chunk. */
static void leave(struct program_writer *writer, const struct walk *walk)
{
    const uint32_t microbatch = (uint32_t)walk->cursor.microbatch;
    const uint32_t chunk = walk->cursor.chunk;
    if (walk->which == TEMPLATE_FORWARD) {
        transmit(writer, FORWARD, microbatch, chunk);
        return;
    }
    if (walk->which != TEMPLATE_BACKWARD_WEIGHT) {
        transmit(writer, BACKWARD, microbatch, chunk);
    }
    if (walk->which != TEMPLATE_BACKWARD_INPUT) {
        gradients_of_microbatch_write(writer, chunk);
    }
}

static void run_walk(struct program_writer *writer, struct walk *walk)
{
    while (walk_segment(writer, walk)) {
    }
    leave(writer, walk);
}

/* Alternates segments, the backward first: its first exchange then runs beside the
 * forward's attention. */
static void run_pair(struct program_writer *writer, struct walk *backward, struct walk *forward)
{
    bool more_backward = true;
    bool more_forward = true;
    while (more_backward || more_forward) {
        if (more_backward && !walk_segment(writer, backward)) {
            more_backward = false;
            leave(writer, backward);
        }
        if (more_forward && !walk_segment(writer, forward)) {
            more_forward = false;
            leave(writer, forward);
        }
    }
}

static void write_action(struct program_writer *writer, const struct order_action *action,
                         struct walk walks[2])
{
    writer->phase = action->phase;
    switch ((enum order_kind)action->kind) {
    case ORDER_F:
        enter(writer, &walks[0], action->microbatch, action->chunk, TEMPLATE_FORWARD);
        run_walk(writer, &walks[0]);
        break;
    case ORDER_B:
        enter(writer, &walks[0], action->microbatch, action->chunk, TEMPLATE_BACKWARD);
        run_walk(writer, &walks[0]);
        break;
    case ORDER_BI:
        enter(writer, &walks[0], action->microbatch, action->chunk, TEMPLATE_BACKWARD_INPUT);
        run_walk(writer, &walks[0]);
        break;
    case ORDER_W:
        enter(writer, &walks[0], action->microbatch, action->chunk, TEMPLATE_BACKWARD_WEIGHT);
        run_walk(writer, &walks[0]);
        break;
    case ORDER_FB:
    case ORDER_FBI:
        enter(writer, &walks[0], action->back_microbatch, action->back_chunk,
              action->kind == ORDER_FB ? TEMPLATE_BACKWARD : TEMPLATE_BACKWARD_INPUT);
        enter(writer, &walks[1], action->microbatch, action->chunk, TEMPLATE_FORWARD);
        walks[0].cursor.paired = walks[1].cursor.paired = true;
        run_pair(writer, &walks[0], &walks[1]);
        break;
    }
}

void stage_actions_write(struct program_writer *writer)
{
    const struct pipeline_order *order = writer->builder->ask->order;
    struct walk *walks = ARENA_ARRAY(writer->builder->arena, 2, struct walk);
    for (uint32_t i = 0; i < order->action_count[writer->stage]; i++) {
        write_action(writer, &order->actions[writer->stage][i], walks);
    }
}

/* One pass over the border of a chunk. */
struct crossing {
    enum direction direction;
    uint32_t microbatch, chunk;
};

static void number_message(struct plan_builder *builder, uint32_t stage, struct crossing crossing,
                           uint32_t *next)
{
    const struct layout *layout = builder->ask->graph->layout;
    const uint32_t model_chunk = layout_model_chunk(layout, stage, crossing.chunk);
    const bool up = crossing.direction == BACKWARD;
    if (other_end(layout, stage, model_chunk, up) != NO_INDEX) {
        const uint32_t key = message_key(layout, crossing.microbatch, model_chunk);
        builder->recv_ordinal[crossing.direction][key] = (*next)++;
    }
}

/* Numbers what one action receives, in the order in which it posts its recvs. */
static void number_action(struct plan_builder *builder, uint32_t stage,
                          const struct order_action *action, uint32_t *next)
{
    const enum order_kind kind = (enum order_kind)action->kind;
    const bool pair = kind == ORDER_FB || kind == ORDER_FBI;
    if (pair) {
        const struct crossing back = {BACKWARD, action->back_microbatch, action->back_chunk};
        number_message(builder, stage, back, next);
    }
    if (kind == ORDER_B || kind == ORDER_BI) {
        const struct crossing back = {BACKWARD, action->microbatch, action->chunk};
        number_message(builder, stage, back, next);
    }
    if (kind == ORDER_F || pair) {
        const struct crossing forward = {FORWARD, action->microbatch, action->chunk};
        number_message(builder, stage, forward, next);
    }
}

void messages_number(struct plan_builder *builder)
{
    const struct pipeline_order *order = builder->ask->order;
    const struct layout *layout = builder->ask->graph->layout;
    const size_t keys = (size_t)order->microbatches * layout->pp * layout->vpp;
    builder->recv_ordinal[FORWARD] = ARENA_ARRAY(builder->arena, keys, uint32_t);
    builder->recv_ordinal[BACKWARD] = ARENA_ARRAY(builder->arena, keys, uint32_t);
    for (uint32_t stage = 0; stage < order->stage_count; stage++) {
        uint32_t next = 0;
        for (uint32_t i = 0; i < order->action_count[stage]; i++) {
            number_action(builder, stage, &order->actions[stage][i], &next);
        }
    }
}
