/*
 * schedule_play.h - plays a pipeline order with whole-number durations and free links.
 *
 * Each stage runs its list in order, one action at a time; an action starts when the one
 * before it is done and its input is there. Outputs arrive at once and are buffered. A
 * forward needs the forward of the chunk before it in the model; a backward needs the
 * forward of the same chunk and the backward of the chunk behind it; a W needs its input
 * gradient. A pair needs the inputs of both halves at its start and hands on both outputs
 * at its end.
 *
 * The player knows nothing of how orders are made, so it is the referee of the law tests.
 * Everything it returns lives in the arena.
 */
#ifndef TEST_SCHEDULE_PLAY_H
#define TEST_SCHEDULE_PLAY_H

#include <string.h>

#include "stepsim/schedule.h"

struct play_times {
    int64_t forward, backward_input, backward_weight, overlapped;
};

struct play {
    bool finished; /* false: deadlock, or an order that breaks a rule on its own stage */
    int64_t makespan;
    int64_t **start; /* [stage][action] */
    int64_t *busy;   /* [stage] sum of durations */
    int64_t *idle;   /* [stage] makespan - busy */
};

/* Duration of an action; a split pair leaves out the weight gradient. */
static inline int64_t play_duration(const struct order_action *action, struct play_times times)
{
    switch (action->kind) {
    case ORDER_F:
        return times.forward;
    case ORDER_B:
        return times.backward_input + times.backward_weight;
    case ORDER_BI:
        return times.backward_input;
    case ORDER_W:
        return times.backward_weight;
    case ORDER_FB:
        return times.overlapped;
    default:
        return times.overlapped - times.backward_weight;
    }
}

static inline bool play_is_pair(const struct order_action *action)
{
    return action->kind == ORDER_FB || action->kind == ORDER_FBI;
}

static inline bool play_has_forward(const struct order_action *action)
{
    return action->kind == ORDER_F || play_is_pair(action);
}

static inline bool play_has_backward(const struct order_action *action)
{
    return action->kind == ORDER_B || action->kind == ORDER_BI || play_is_pair(action);
}

static inline uint32_t play_back_chunk(const struct order_action *action)
{
    return play_is_pair(action) ? action->back_chunk : action->chunk;
}

static inline uint32_t play_back_microbatch(const struct order_action *action)
{
    return play_is_pair(action) ? action->back_microbatch : action->microbatch;
}

struct play_state {
    const struct pipeline_order *order;
    bool v_shaped;
    struct play_times times;
    /* When each pass of the model was done: [model chunk][microbatch], -1 before. */
    int64_t *forward_end, *backward_end;
    uint32_t *next; /* [stage] first action that has not run */
    int64_t *clock; /* [stage] end of the last action that has */
};

/* Index of (stage, chunk, microbatch) in model order. */
static inline size_t play_index(const struct play_state *state, uint32_t stage, uint32_t chunk,
                                uint32_t microbatch)
{
    const uint32_t pp = state->order->stage_count;
    const uint32_t position =
        state->v_shaped && chunk == 1 ? 2 * pp - 1 - stage : chunk * pp + stage;
    return (size_t)position * state->order->microbatches + microbatch;
}

static inline int64_t play_later(int64_t a, int64_t b)
{
    return a < 0 || b < 0 ? -1 : a > b ? a : b;
}

/* When the inputs of an action are there; -1 when one of them is not yet. */
static inline int64_t play_ready(const struct play_state *state, uint32_t stage,
                                 const struct order_action *action)
{
    const size_t row = state->order->microbatches;
    const size_t passes = row * state->order->stage_count * state->order->chunk_count;
    int64_t ready = 0;
    if (play_has_forward(action)) {
        const size_t at = play_index(state, stage, action->chunk, action->microbatch);
        if (at >= row)
            ready = play_later(ready, state->forward_end[at - row]);
    }
    if (play_has_backward(action)) {
        const size_t at =
            play_index(state, stage, play_back_chunk(action), play_back_microbatch(action));
        ready = play_later(ready, state->forward_end[at]);
        if (at + row < passes)
            ready = play_later(ready, state->backward_end[at + row]);
    }
    if (action->kind == ORDER_W)
        ready = play_later(
            ready,
            state->backward_end[play_index(state, stage, action->chunk, action->microbatch)]);
    return ready;
}

static inline void play_done(const struct play_state *state, uint32_t stage,
                             const struct order_action *action, int64_t end)
{
    if (play_has_forward(action))
        state->forward_end[play_index(state, stage, action->chunk, action->microbatch)] = end;
    if (play_has_backward(action))
        state->backward_end[play_index(state, stage, play_back_chunk(action),
                                       play_back_microbatch(action))] = end;
}

/* Runs a stage as far as its inputs reach. */
static inline bool play_stage(struct play_state *state, struct play *play, uint32_t stage)
{
    uint32_t *next = &state->next[stage];
    int64_t *clock = &state->clock[stage];
    bool moved = false;
    while (*next < state->order->action_count[stage]) {
        const struct order_action *action = &state->order->actions[stage][*next];
        const int64_t ready = play_ready(state, stage, action);
        if (ready < 0)
            break;
        const int64_t duration = play_duration(action, state->times);
        const int64_t start = ready > *clock ? ready : *clock;
        play->start[stage][*next] = start;
        play->busy[stage] += duration;
        *clock = start + duration;
        play_done(state, stage, action, *clock);
        (*next)++;
        moved = true;
    }
    return moved;
}

static inline struct play schedule_play(const struct pipeline_order *order, bool v_shaped,
                                        struct play_times times, struct arena *arena)
{
    const uint32_t pp = order->stage_count;
    const size_t passes = (size_t)pp * order->chunk_count * order->microbatches;
    struct play_state state = {
        .order = order,
        .v_shaped = v_shaped,
        .times = times,
        .forward_end = ARENA_ARRAY(arena, passes, int64_t),
        .backward_end = ARENA_ARRAY(arena, passes, int64_t),
        .next = ARENA_ARRAY(arena, pp, uint32_t),
        .clock = ARENA_ARRAY(arena, pp, int64_t),
    };
    for (size_t i = 0; i < passes; i++)
        state.forward_end[i] = state.backward_end[i] = -1;

    struct play play = {
        .finished = true,
        .start = ARENA_ARRAY(arena, pp, int64_t *),
        .busy = ARENA_ARRAY(arena, pp, int64_t),
        .idle = ARENA_ARRAY(arena, pp, int64_t),
    };
    for (uint32_t s = 0; s < pp; s++)
        play.start[s] = ARENA_ARRAY(arena, order->action_count[s], int64_t);

    for (bool moved = true; moved;) {
        moved = false;
        for (uint32_t s = 0; s < pp; s++)
            moved |= play_stage(&state, &play, s);
    }
    for (uint32_t s = 0; s < pp; s++) {
        play.finished = play.finished && state.next[s] == order->action_count[s];
        if (state.clock[s] > play.makespan)
            play.makespan = state.clock[s];
    }
    for (uint32_t s = 0; s < pp; s++)
        play.idle[s] = play.makespan - play.busy[s];
    return play;
}

/* Most chunk activations alive at once: from the start of a forward to the end of its full
 * backward or its W. The forward of a pair starts before its backward ends. */
static inline uint32_t play_alive_max(const struct pipeline_order *order, uint32_t stage)
{
    uint32_t alive = 0;
    uint32_t most = 0;
    for (uint32_t i = 0; i < order->action_count[stage]; i++) {
        const struct order_action *action = &order->actions[stage][i];
        if (play_has_forward(action))
            alive++;
        if (alive > most)
            most = alive;
        if (action->kind == ORDER_B || action->kind == ORDER_FB || action->kind == ORDER_W)
            alive--;
    }
    return most;
}

/* Two letters of a cell: kind and microbatch; lower case for chunk 1. For up to 10. */
static inline void play_draw_cell(char *row, int64_t at, char kind, uint32_t chunk,
                                  uint32_t microbatch)
{
    row[3 * at] = chunk == 0 ? kind : (char)(kind - 'A' + 'a');
    row[3 * at + 1] = (char)('0' + microbatch % 10);
}

/*
 * One line per stage, three columns per unit of time: "F0 F1 .. B0": forward, backward (full
 * or input gradient) and W with their microbatch, lower case for chunk 1, ".." idle, "--"
 * while an action goes on. A pair shows its forward, then its backward: "F3 b0".
 */
static inline const char *play_draw(const struct pipeline_order *order, const struct play *play,
                                    struct play_times times, struct arena *arena)
{
    static const char letters[] = {'F', 'B', 'B', 'W', 'F', 'F'};
    const char *text = "";
    for (uint32_t s = 0; s < order->stage_count; s++) {
        const size_t width = 3 * (size_t)play->makespan;
        char *row = arena_alloc(arena, width + 1);
        for (size_t i = 0; i < width; i++)
            row[i] = i % 3 == 2 ? ' ' : '.';
        for (uint32_t i = 0; i < order->action_count[s]; i++) {
            const struct order_action *action = &order->actions[s][i];
            const int64_t start = play->start[s][i];
            for (int64_t t = 0; t < play_duration(action, times); t++)
                memcpy(&row[3 * (start + t)], "--", 2);
            play_draw_cell(row, start, letters[action->kind], action->chunk, action->microbatch);
            if (play_is_pair(action))
                play_draw_cell(row, start + 1, 'B', action->back_chunk, action->back_microbatch);
        }
        row[width - 1] = '\n';
        text = arena_printf(arena, "%s%s", text, row);
    }
    return text;
}

#endif
