/*
 * schedule_draft.c - writes one list of actions per stage and gives each action its phase.
 *
 * Every schedule runs the microbatches of a chunk in rising order, so one counter per chunk
 * and direction replaces the bookkeeping that each schedule would otherwise repeat. Weight
 * gradients leave in the order of their input gradients: all of them take equally long when
 * chunks are equal, and the oldest activations are freed first. Finding the oldest is a
 * pointer that only moves forward, so the whole order is built in linear time.
 */
#include "schedule/schedule_internal.h"

static bool has_forward(const struct order_action *action)
{
    return action->kind == ORDER_F || action->kind == ORDER_FB || action->kind == ORDER_FBI;
}

static bool has_backward(const struct order_action *action)
{
    return action->kind != ORDER_F && action->kind != ORDER_W;
}

struct schedule_draft schedule_draft_begin(const struct schedule_ask *ask, uint32_t capacity,
                                           struct arena *arena)
{
    ASSERT(ask->pp >= 1);
    ASSERT(ask->vpp >= 1);
    ASSERT(ask->vpp <= UINT16_MAX);
    ASSERT(ask->microbatches >= 1);

    struct schedule_draft draft = {
        .order = ARENA_NEW(arena, struct pipeline_order),
        .lists = ARENA_ARRAY(arena, ask->pp, struct order_action *),
        .counts = ARENA_ARRAY(arena, ask->pp, uint32_t),
        .forwards = ARENA_ARRAY(arena, ask->vpp, uint32_t),
        .backwards = ARENA_ARRAY(arena, ask->vpp, uint32_t),
        .capacity = capacity,
    };
    const struct order_action **actions = ARENA_ARRAY(arena, ask->pp, const struct order_action *);
    for (uint32_t s = 0; s < ask->pp; s++) {
        draft.lists[s] = ARENA_ARRAY(arena, capacity, struct order_action);
        actions[s] = draft.lists[s];
    }
    *draft.order = (struct pipeline_order){
        .stage_count = ask->pp,
        .chunk_count = ask->vpp,
        .microbatches = ask->microbatches,
        .actions = actions,
        .action_count = draft.counts,
    };
    return draft;
}

void schedule_draft_stage(struct schedule_draft *draft, uint32_t stage)
{
    ASSERT(stage < draft->order->stage_count);
    draft->stage = stage;
    draft->weight_scan = 0;
    for (uint32_t c = 0; c < draft->order->chunk_count; c++) {
        draft->forwards[c] = 0;
        draft->backwards[c] = 0;
    }
}

static struct order_action *append(struct schedule_draft *draft, enum order_kind kind)
{
    uint32_t *count = &draft->counts[draft->stage];
    ASSERT(*count < draft->capacity);
    struct order_action *action = &draft->lists[draft->stage][*count];
    (*count)++;
    action->kind = (uint8_t)kind;
    return action;
}

/* The next microbatch of a counter; false past the last one. */
static bool take(const struct schedule_draft *draft, uint32_t *counter, uint32_t *microbatch)
{
    if (*counter == draft->order->microbatches)
        return false;
    *microbatch = (*counter)++;
    return true;
}

static void append_single(struct schedule_draft *draft, enum order_kind kind, uint32_t chunk)
{
    ASSERT(chunk < draft->order->chunk_count);
    uint32_t *counters = kind == ORDER_F ? draft->forwards : draft->backwards;
    uint32_t microbatch;
    if (!take(draft, &counters[chunk], &microbatch))
        return;
    struct order_action *action = append(draft, kind);
    action->chunk = (uint16_t)chunk;
    action->microbatch = microbatch;
}

void schedule_draft_forward(struct schedule_draft *draft, uint32_t chunk)
{
    append_single(draft, ORDER_F, chunk);
}

void schedule_draft_backward(struct schedule_draft *draft, uint32_t chunk)
{
    append_single(draft, ORDER_B, chunk);
}

void schedule_draft_input_gradient(struct schedule_draft *draft, uint32_t chunk)
{
    append_single(draft, ORDER_BI, chunk);
}

bool schedule_draft_weight_gradient(struct schedule_draft *draft)
{
    const struct order_action *list = draft->lists[draft->stage];
    const uint32_t count = draft->counts[draft->stage];
    while (draft->weight_scan < count && list[draft->weight_scan].kind != ORDER_BI)
        draft->weight_scan++;
    if (draft->weight_scan == count)
        return false;
    const struct order_action *gradient = &list[draft->weight_scan];
    draft->weight_scan++;
    struct order_action *action = append(draft, ORDER_W);
    action->chunk = gradient->chunk;
    action->microbatch = gradient->microbatch;
    return true;
}

void schedule_draft_pair(struct schedule_draft *draft, uint32_t chunk, uint32_t back_chunk)
{
    ASSERT(chunk < draft->order->chunk_count);
    ASSERT(back_chunk < draft->order->chunk_count);
    uint32_t microbatch;
    uint32_t back_microbatch;
    const bool forward = take(draft, &draft->forwards[chunk], &microbatch);
    const bool backward = take(draft, &draft->backwards[back_chunk], &back_microbatch);
    ASSERT(forward);
    ASSERT(backward);
    ASSERT(microbatch != back_microbatch);
    struct order_action *action = append(draft, ORDER_FB);
    action->chunk = (uint16_t)chunk;
    action->microbatch = microbatch;
    action->back_chunk = (uint16_t)back_chunk;
    action->back_microbatch = back_microbatch;
}

/* Warm-up before the first backward, cool-down after the last forward. */
static void write_phases(struct order_action *list, uint32_t count)
{
    uint32_t first_backward = 0;
    uint32_t last_forward = 0;
    for (uint32_t i = count; i-- > 0;)
        if (has_backward(&list[i]))
            first_backward = i;
    for (uint32_t i = 0; i < count; i++)
        if (has_forward(&list[i]))
            last_forward = i;
    for (uint32_t i = 0; i < count; i++)
        list[i].phase = i > last_forward     ? PHASE_COOLDOWN
                        : i < first_backward ? PHASE_WARMUP
                                             : PHASE_STEADY;
}

const struct pipeline_order *schedule_draft_finish(struct schedule_draft *draft)
{
    const struct pipeline_order *order = draft->order;
    const uint64_t passes = (uint64_t)order->microbatches * order->chunk_count;
    for (uint32_t s = 0; s < order->stage_count; s++) {
        uint64_t forwards = 0, backwards = 0, gradients = 0, weights = 0;
        for (uint32_t i = 0; i < draft->counts[s]; i++) {
            const struct order_action *action = &draft->lists[s][i];
            forwards += has_forward(action);
            backwards += has_backward(action);
            gradients += action->kind == ORDER_BI || action->kind == ORDER_FBI;
            weights += action->kind == ORDER_W;
        }
        ASSERT(forwards == passes);
        ASSERT(backwards == passes);
        ASSERT(gradients == weights);
        write_phases(draft->lists[s], draft->counts[s]);
    }
    return order;
}
