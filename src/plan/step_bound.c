/*
 * step_bound.c - a lower bound of the step time and of the peak memory, without programs.
 *
 * The pipeline is played action by action instead of op by op. What an action takes at least
 * follows from its templates: compute ops are in order on one stream, so the actions of a stage
 * follow one another, and inside a template the way from its first to its last compute op over
 * its own waits cannot be shortened. An overlapped pair takes at least the pieces of both lists
 * one after another, a piece being what stands between two exchanges, since what happens inside
 * a piece cannot hide behind the other list. Contention, full streams, copies and everything
 * else that is left out only lengthens a step. Durations are those of the programs, in whole
 * picoseconds, so the bound needs no tolerance.
 *
 * Where a cost could come out shorter than its template says (noise, unequal rows of experts, a
 * network that prices transfers itself) the part in question counts as zero. Memory takes the
 * mean rows: the fullest of several positions is not below their mean.
 */
#include "plan_internal.h"

#include <math.h>
#include <string.h>

/* Nothing is known yet. */
#define UNKNOWN (-1)

/* Floating-point sums of the engine and of this file may differ by that. */
#define MEMORY_SLACK_BYTES 65536.0

struct pass_bound {
    sim_time whole;  /* alone on the stream */
    sim_time pieces; /* what it adds to a pair */
};

/* Memory of one pass over one chunk, relative to its beginning. */
struct pass_memory {
    double peak, first_peak, net;
};

struct chunk_bound {
    struct pass_bound time[TEMPLATE_KIND_COUNT];
    struct pass_memory memory[TEMPLATE_KIND_COUNT];
};

/* One block of layers, whichever chunk has it. */
struct block_bound {
    bool known;
    struct pass_bound time;
    double top;  /* bytes while it runs */
    double left; /* and behind it */
};

struct bound {
    struct plan_builder *builder;
    struct block_bound blocks[PLAN_BLOCKS_MAX][2][TEMPLATE_KIND_COUNT];
    bool communication;         /* durations of communication are final */
    struct walk *walk;          /* scratch */
    struct chunk_bound *chunks; /* [stage * vpp + chunk] */
    sim_time *parameters;       /* same index: when they are there */
    sim_time *ready[2];         /* [forward, backward][microbatch * model chunks + model chunk] */
    sim_time *stage_free;       /* [stage] when the next action can begin */
    sim_time *stage_done;       /* [stage] end of its newest action */
    double *alive, *peak;       /* [stage] bytes above the static ones */
};

static sim_time send_ps(const struct bound *bound)
{
    return bound->builder->costs.durations[bound->builder->send_duration[PEER_NEXT]];
}

/* ---- One template ---- */

static sim_time duration_of(const struct bound *bound, const struct template_op *op)
{
    const bool counts = op->kind == PROGRAM_OP_COMPUTE || bound->communication;
    const sim_time whole = bound->builder->costs.durations[op->duration];
    const bool rows = op->part_count > 0 && bound->builder->ask->loads != NULL;
    return !counts ? 0 : rows ? op->fixed : whole;
}

/* From the first to the last compute op of [begin, end) on its shortest way. Communication
 * that nothing in the range holds back may be over before. */
static sim_time range_span(const struct bound *bound, const struct template *template,
                           uint32_t begin, uint32_t end)
{
    sim_time ends[TEMPLATE_OPS_MAX];
    sim_time stream_end[STREAM_COUNT];
    for (int s = 0; s < STREAM_COUNT; s++) {
        stream_end[s] = UNKNOWN;
    }
    for (uint32_t i = begin; i < end; i++) {
        const struct template_op *op = &template->ops[i];
        sim_time start = stream_end[op->stream];
        if (op->stream == STREAM_COMPUTE && start == UNKNOWN) {
            start = 0;
        }
        for (int w = 0; w < op->wait_count; w++) {
            const int16_t wait = op->waits[w];
            if (wait >= (int16_t)begin && ends[wait] > start) {
                start = ends[wait];
            }
        }
        ends[i] = start == UNKNOWN ? UNKNOWN : start + duration_of(bound, op);
        stream_end[op->stream] = ends[i];
    }
    return stream_end[STREAM_COMPUTE] > 0 ? stream_end[STREAM_COMPUTE] : 0;
}

/* Cut where chunk_walk.c cuts: behind the exchanges that a piece feeds. */
static struct pass_bound template_bound(const struct bound *bound, const struct template *template)
{
    struct pass_bound sum = {.whole = range_span(bound, template, 0, template->count)};
    uint32_t begin = 0;
    while (begin < template->count) {
        uint32_t end = begin;
        while (end < template->count && !template->ops[end].cut_after) {
            end++;
        }
        end += end < template->count ? 1 : 0;
        while (end < template->count && template->ops[end].stream != STREAM_COMPUTE) {
            end++;
        }
        sum.pieces += range_span(bound, template, begin, end);
        begin = end;
    }
    return sum;
}

/* ---- One pass over one chunk ---- */

/* Bytes of a pass above what is alive when it begins, and what it leaves. Copies to the host are
 * taken to be over at once, and back only when they are needed. */
static void bound_block_memory(const struct bound *bound, const struct chunk_block *block,
                               enum template_kind which, struct block_bound *out)
{
    const struct op_graph *graph = bound->builder->ask->graph;
    const struct block_ops *ops = op_graph_block(graph, block->kind, block->windowed);
    const double rows = graph->scenario->moe.policy == POLICY_DROPLESS ? 1.0 : 0.0;
    const double ratio = bound->builder->ask->loads != NULL ? rows : 1.0;
    const struct pass_deltas pass = pass_deltas(graph, ops, block->recompute, which, ratio);
    const bool ends = block->kind == BLOCK_EMBEDDING || block->kind == BLOCK_HEAD;
    const bool swaps = !ends && graph->scenario->swap.activations != 0;
    const double swapped = swaps ? memory_model_swapped(graph, ops, block->recompute) : 0.0;
    const bool back = which == TEMPLATE_BACKWARD || which == TEMPLATE_BACKWARD_INPUT;
    out->top = pass.start + (back ? swapped : 0.0);
    out->left = pass.start + pass.end;
    out->left += back ? swapped : which == TEMPLATE_FORWARD ? -swapped : 0.0;
}

/* The bound of a block, worked out once for all chunks that have one like it. */
static const struct block_bound *block_bound(struct bound *bound, const struct chunk_block *block,
                                             enum template_kind which)
{
    const struct template *template =
        template_of(bound->builder, block->kind, block->windowed, block->recompute, which);
    const size_t index = (size_t)(template->block - bound->builder->ask->graph->blocks);
    ASSERT(index < PLAN_BLOCKS_MAX);
    struct block_bound *known = &bound->blocks[index][block->recompute][which];
    if (!known->known) {
        known->known = true;
        known->time = template_bound(bound, template);
        bound_block_memory(bound, block, which, known);
    }
    return known;
}

static void add_block_memory(const struct block_bound *block, struct pass_memory *memory)
{
    memory->peak = fmax(memory->peak, memory->net + block->top);
    memory->first_peak = memory->first_peak > 0.0 ? memory->first_peak : block->top;
    memory->net += block->left;
}

static void bound_chunk(struct bound *bound, const struct program_writer *writer, uint32_t chunk)
{
    struct plan_builder *builder = bound->builder;
    const bool split = builder->ask->schedule->splits_backward;
    struct chunk_bound *out =
        &bound->chunks[writer->stage * builder->ask->graph->layout->vpp + chunk];
    for (int kind = 0; kind < TEMPLATE_KIND_COUNT; kind++) {
        const enum template_kind which = (enum template_kind)kind;
        if (!split && (which == TEMPLATE_BACKWARD_INPUT || which == TEMPLATE_BACKWARD_WEIGHT)) {
            continue;
        }
        struct walk *walk = bound->walk;
        walk_start(writer, walk, 0, chunk, which);
        for (uint32_t i = 0; i < walk->count; i++) {
            const struct chunk_block *block =
                &walk->blocks[walk->reverse ? walk->count - 1 - i : i];
            const struct block_bound *known = block_bound(bound, block, which);
            out->time[which].whole += known->time.whole;
            out->time[which].pieces += known->time.pieces;
            add_block_memory(known, &out->memory[which]);
        }
    }
}

/* A writer into which the beginning or the end of a stage is written, and nothing else. */
static struct program_writer bare_writer(struct plan_builder *builder, uint32_t stage)
{
    const uint32_t vpp = builder->ask->graph->layout->vpp;
    struct program_writer writer = {
        .builder = builder,
        .stage = stage,
        .microbatch = -1,
        .layer = -1,
        .blocked_on = {.stream = STREAM_SEND, .index = NO_INDEX},
        .parameters_ready = ARENA_ARRAY(builder->arena, (size_t)vpp * CHUNK_BLOCKS_MAX, uint32_t),
        .reduced = ARENA_ARRAY(builder->arena, vpp, struct param_count),
        .weights_done = ARENA_ARRAY(builder->arena, vpp, uint32_t),
        .gradients_reduced = ARENA_ARRAY(builder->arena, vpp, bool),
    };
    writer.boundary = writer.next_boundary = NO_INDEX;
    return writer;
}

static void bound_stage(struct bound *bound, uint32_t stage, bool quick)
{
    struct plan_builder *builder = bound->builder;
    const uint32_t vpp = builder->ask->graph->layout->vpp;
    struct program_writer writer = bare_writer(builder, stage);
    if (!quick) {
        stage_start_write(&writer);
    }
    for (uint32_t chunk = 0; chunk < vpp; chunk++) {
        sim_time there = 0;
        /* The first forward waits for its first block; later ones may still be on their way. */
        const uint32_t last = quick ? NO_INDEX : block_parameters_ready(&writer, chunk, 0);
        for (uint32_t i = 0; bound->communication && last != NO_INDEX && i <= last; i++) {
            there += builder->costs.durations[writer.ops[STREAM_DP][i].duration];
        }
        bound->parameters[stage * vpp + chunk] = there;
        bound_chunk(bound, &writer, chunk);
    }
}

/* ---- The pipeline ---- */

enum { FORWARD, BACKWARD };

struct crossing {
    uint32_t stage, chunk, microbatch;
    int direction;
};

static size_t message_of(const struct layout *layout, const struct crossing *at)
{
    return (size_t)at->microbatch * layout->pp * layout->vpp +
           layout_model_chunk(layout, at->stage, at->chunk);
}

static sim_time arrival(const struct bound *bound, const struct crossing *at)
{
    return bound->ready[at->direction][message_of(bound->builder->ask->graph->layout, at)];
}

/* Sends the result of a pass on; true if it crosses to another stage. */
static bool depart(struct bound *bound, const struct crossing *at, sim_time end)
{
    const struct layout *layout = bound->builder->ask->graph->layout;
    const uint32_t chunks = layout->pp * layout->vpp;
    const uint32_t k = layout_model_chunk(layout, at->stage, at->chunk);
    sim_time *ready = &bound->ready[at->direction][(size_t)at->microbatch * chunks];
    if (at->direction == FORWARD && k + 1 == chunks) {
        bound->ready[BACKWARD][(size_t)at->microbatch * chunks + k] = end;
        return false;
    }
    if (at->direction == BACKWARD && k == 0) {
        return false;
    }
    const uint32_t to = at->direction == FORWARD ? k + 1 : k - 1;
    const bool crosses = layout_stage_of(layout, to) != at->stage;
    const sim_time send = bound->communication && crosses ? send_ps(bound) : 0;
    ready[to] = end + send;
    return crosses;
}

static sim_time later(sim_time a, sim_time b)
{
    return a > b ? a : b;
}

static void raise_peak(struct bound *bound, uint32_t stage, double bytes)
{
    bound->peak[stage] = fmax(bound->peak[stage], bytes);
}

/* One pass alone on its stream; false if its input is not known yet. */
static bool play_alone(struct bound *bound, const struct crossing *at, enum template_kind which)
{
    const struct layout *layout = bound->builder->ask->graph->layout;
    const struct chunk_bound *chunk = &bound->chunks[at->stage * layout->vpp + at->chunk];
    sim_time start = bound->stage_free[at->stage];
    if (which != TEMPLATE_BACKWARD_WEIGHT) {
        const sim_time input = arrival(bound, at);
        if (input == UNKNOWN) {
            return false;
        }
        start = later(start, input);
    }
    if (which == TEMPLATE_FORWARD && at->microbatch == 0) {
        start = later(start, bound->parameters[at->stage * layout->vpp + at->chunk]);
    }
    const sim_time end = start + chunk->time[which].whole;
    bool sent = false;
    if (which != TEMPLATE_BACKWARD_WEIGHT) {
        sent = depart(bound, at, end);
    }
    const bool blocks = sent && !bound->builder->ask->graph->scenario->schedule.p2p_overlapped;
    bound->stage_done[at->stage] = end;
    bound->stage_free[at->stage] = end + (blocks && bound->communication ? send_ps(bound) : 0);
    raise_peak(bound, at->stage, bound->alive[at->stage] + chunk->memory[which].peak);
    bound->alive[at->stage] += chunk->memory[which].net;
    return true;
}

/* A backward that begins first, and a forward that alternates with it. */
static bool play_pair(struct bound *bound, const struct crossing *back,
                      const struct crossing *forth, enum template_kind which)
{
    const struct layout *layout = bound->builder->ask->graph->layout;
    const uint32_t stage = back->stage;
    const struct chunk_bound *b = &bound->chunks[stage * layout->vpp + back->chunk];
    const struct chunk_bound *f = &bound->chunks[stage * layout->vpp + forth->chunk];
    const sim_time gradient = arrival(bound, back);
    const sim_time activation = arrival(bound, forth);
    if (gradient == UNKNOWN || activation == UNKNOWN) {
        return false;
    }
    const sim_time start = later(bound->stage_free[stage], gradient);
    const sim_time forth_start = later(start, activation);
    const sim_time back_end = start + b->time[which].whole;
    const sim_time forth_end = forth_start + f->time[TEMPLATE_FORWARD].whole;
    const sim_time both = start + b->time[which].pieces + f->time[TEMPLATE_FORWARD].pieces;
    depart(bound, back, back_end);
    depart(bound, forth, forth_end);
    bound->stage_free[stage] = later(both, later(back_end, forth_end));
    bound->stage_done[stage] = bound->stage_free[stage];
    const double alive = bound->alive[stage];
    const struct pass_memory *bm = &b->memory[which];
    const struct pass_memory *fm = &f->memory[TEMPLATE_FORWARD];
    raise_peak(bound, stage, alive + bm->first_peak);
    raise_peak(bound, stage, alive + bm->net + fm->peak);
    bound->alive[stage] += bm->net + fm->net;
    return true;
}

static bool play_action(struct bound *bound, uint32_t stage, const struct order_action *action)
{
    const enum order_kind kind = (enum order_kind)action->kind;
    struct crossing at = {stage, action->chunk, action->microbatch, FORWARD};
    const struct crossing back = {stage, action->back_chunk, action->back_microbatch, BACKWARD};
    switch (kind) {
    case ORDER_F:
        return play_alone(bound, &at, TEMPLATE_FORWARD);
    case ORDER_FB:
        return play_pair(bound, &back, &at, TEMPLATE_BACKWARD);
    case ORDER_FBI:
        return play_pair(bound, &back, &at, TEMPLATE_BACKWARD_INPUT);
    default:
        break;
    }
    at.direction = BACKWARD;
    return play_alone(bound, &at,
                      kind == ORDER_B    ? TEMPLATE_BACKWARD
                      : kind == ORDER_BI ? TEMPLATE_BACKWARD_INPUT
                                         : TEMPLATE_BACKWARD_WEIGHT);
}

static void play_pipeline(struct bound *bound)
{
    const struct pipeline_order *order = bound->builder->ask->order;
    uint32_t *next = ARENA_ARRAY(bound->builder->arena, order->stage_count, uint32_t);
    bool moved = true;
    while (moved) {
        moved = false;
        for (uint32_t stage = 0; stage < order->stage_count; stage++) {
            while (next[stage] < order->action_count[stage] &&
                   play_action(bound, stage, &order->actions[stage][next[stage]])) {
                next[stage]++;
                moved = true;
            }
        }
    }
    for (uint32_t stage = 0; stage < order->stage_count; stage++) {
        ASSERT(next[stage] == order->action_count[stage]);
    }
}

/* ---- The end of the step ---- */

/* Plays the few ops of a stage's end. The norm of all gradients joins the stages: with `joined`
 * UNKNOWN the answer is when this stage arrives at it, else when the stage is done. */
static sim_time play_end(const struct bound *bound, const struct program_writer *writer,
                         sim_time begin, sim_time joined)
{
    const sim_time *durations = bound->builder->costs.durations;
    sim_time *ends[STREAM_COUNT];
    uint32_t next[STREAM_COUNT] = {0};
    sim_time last = begin;
    for (int s = 0; s < STREAM_COUNT; s++) {
        ends[s] = ARENA_ARRAY(bound->builder->arena, (size_t)writer->count[s] + 1, sim_time);
    }
    for (bool moved = true; moved;) {
        moved = false;
        for (int s = 0; s < STREAM_COUNT; s++) {
            if (next[s] == writer->count[s]) {
                continue;
            }
            const struct program_op *op = &writer->ops[s][next[s]];
            sim_time start = next[s] > 0 ? ends[s][next[s] - 1] : begin;
            bool known = true;
            for (uint32_t w = 0; w < op->wait_count; w++) {
                const struct program_wait *wait = &writer->waits[op->wait_first + w];
                known = known && wait->index < next[wait->stream];
                start = known ? later(start, ends[wait->stream][wait->index]) : start;
            }
            if (!known) {
                continue;
            }
            if (op->kind == PROGRAM_OP_COLLECTIVE && op->peer == GROUP_WORLD) {
                if (joined == UNKNOWN) {
                    return start;
                }
                start = later(start, joined);
            }
            const bool counts = op->kind != PROGRAM_OP_COLLECTIVE || bound->communication;
            ends[s][next[s]] = start + (counts ? durations[op->duration] : 0);
            last = later(last, ends[s][next[s]++]);
            moved = true;
        }
    }
    return last;
}

static sim_time play_ends(struct bound *bound)
{
    struct plan_builder *builder = bound->builder;
    const struct scenario *scenario = builder->ask->graph->scenario;
    const struct layout *layout = builder->ask->graph->layout;
    struct program_writer *writers = ARENA_ARRAY(builder->arena, layout->pp, struct program_writer);
    sim_time joined = 0;
    sim_time last = 0;
    for (uint32_t stage = 0; stage < layout->pp; stage++) {
        writers[stage] = bare_writer(builder, stage);
        for (uint32_t chunk = 0; chunk < layout->vpp; chunk++) {
            writers[stage].gradients_reduced[chunk] =
                scenario->overlap.grad_reduce || scenario->parallel.zero >= 2;
        }
        stage_end_write(&writers[stage]);
        joined = later(joined, play_end(bound, &writers[stage], bound->stage_done[stage], UNKNOWN));
    }
    for (uint32_t stage = 0; stage < layout->pp; stage++) {
        last = later(last, play_end(bound, &writers[stage], bound->stage_done[stage],
                                    layout->world > 1 ? joined : 0));
    }
    return last;
}

/* ---- All of it ---- */

struct plan_costs {
    struct plan_builder builder;
};

static struct plan_builder *bound_builder(const struct plan_bound_ask *bound_ask,
                                          struct arena *arena)
{
    const struct plan_ask *ask = bound_ask->plan;
    struct plan_builder *builder = &ARENA_NEW(arena, struct plan_costs)->builder;
    const uint32_t pp = ask->graph->layout->pp;
    if (bound_ask->costs != NULL) {
        *builder = bound_ask->costs->builder;
    }
    builder->ask = ask;
    builder->arena = arena;
    if (bound_ask->costs != NULL) {
        return builder; /* what is appended to its tables is not looked at by others */
    }
    builder->compute_scale = plan_growth(ask);
    builder->sent_bytes = ARENA_ARRAY(arena, (size_t)pp * CAUSE_COUNT, double);
    cost_table_delta(&builder->costs, 0.0, arena);
    plan_price_send(builder);
    templates_build(builder);
    return builder;
}

static void start_messages(struct bound *bound)
{
    const struct layout *layout = bound->builder->ask->graph->layout;
    const size_t chunks = (size_t)layout->pp * layout->vpp;
    const size_t messages = chunks * layout->microbatches;
    for (int direction = FORWARD; direction <= BACKWARD; direction++) {
        bound->ready[direction] = ARENA_ARRAY(bound->builder->arena, messages, sim_time);
        for (size_t i = 0; i < messages; i++) {
            bound->ready[direction][i] = UNKNOWN;
        }
    }
    for (uint32_t m = 0; m < layout->microbatches; m++) {
        bound->ready[FORWARD][m * chunks] = 0;
    }
}

/* Without `moving` what the stages need beside activations. */
static double peak_bound(const struct op_graph *graph, const double *moving_bytes)
{
    double most = 0.0;
    for (uint32_t stage = 0; stage < graph->layout->pp; stage++) {
        const struct stage_memory fixed = memory_model_stage(graph, stage);
        const double moving = fmax(moving_bytes != NULL ? moving_bytes[stage] : 0.0,
                                   fmax(fixed.load_workspace, fixed.optimizer_workspace));
        most = fmax(most, fixed.weights + fixed.gradients + fixed.optimizer + fixed.buffers +
                              fixed.reserve + moving);
    }
    return fmax(0.0, most - MEMORY_SLACK_BYTES);
}

/* ---- Without an order ---- */

static sim_time least(struct pass_bound pass)
{
    return pass.whole < pass.pieces ? pass.whole : pass.pieces;
}

/* What one microbatch needs at least on a chunk, forward and backward. */
static sim_time chunk_work(const struct bound *bound, uint32_t stage, uint32_t chunk)
{
    const struct plan_ask *ask = bound->builder->ask;
    const struct chunk_bound *of = &bound->chunks[stage * ask->graph->layout->vpp + chunk];
    const sim_time forward = least(of->time[TEMPLATE_FORWARD]);
    if (ask->schedule->splits_backward) {
        /* A schedule may take the two halves as one pass. */
        const sim_time halves =
            least(of->time[TEMPLATE_BACKWARD_INPUT]) + least(of->time[TEMPLATE_BACKWARD_WEIGHT]);
        const sim_time one = least(of->time[TEMPLATE_BACKWARD]);
        return forward + (halves < one ? halves : one);
    }
    return forward + least(of->time[TEMPLATE_BACKWARD]);
}

/*
 * A stage begins when the first microbatch has passed the stages before it, runs all its passes
 * one after another, and, where backward is one pass, ends with a backward of its first chunk,
 * behind which those stages still have to go back.
 */
static sim_time work_bound(const struct bound *bound)
{
    const struct plan_ask *ask = bound->builder->ask;
    const struct layout *layout = ask->graph->layout;
    sim_time before = 0;
    sim_time most = 0;
    for (uint32_t stage = 0; stage < layout->pp; stage++) {
        sim_time work = 0;
        for (uint32_t chunk = 0; chunk < layout->vpp; chunk++) {
            work += chunk_work(bound, stage, chunk);
        }
        most = later(most, before + work * (sim_time)layout->microbatches);
        const struct chunk_bound *first = &bound->chunks[stage * layout->vpp];
        before += least(first->time[TEMPLATE_FORWARD]);
        before += ask->schedule->splits_backward ? 0 : least(first->time[TEMPLATE_BACKWARD]);
    }
    return most;
}

struct plan_bound plan_lower_bound(const struct plan_bound_ask *ask,
                                   const struct plan_costs **costs, struct arena *arena)
{
    const struct op_graph *graph = ask->plan->graph;
    const struct layout *layout = graph->layout;
    const struct scenario *scenario = graph->scenario;
    const size_t chunks = (size_t)layout->pp * layout->vpp;
    const double fixed = peak_bound(graph, NULL);
    *costs = NULL;
    if (fixed > ask->memory_cut_bytes) {
        return (struct plan_bound){.peak_bytes = fixed};
    }
    struct bound bound = {
        .builder = bound_builder(ask, arena),
        .communication = strcmp(scenario->network, "closed_form") == 0,
        .walk = ARENA_NEW(arena, struct walk),
        .chunks = ARENA_ARRAY(arena, chunks, struct chunk_bound),
        .parameters = ARENA_ARRAY(arena, chunks, sim_time),
        .stage_free = ARENA_ARRAY(arena, layout->pp, sim_time),
        .stage_done = ARENA_ARRAY(arena, layout->pp, sim_time),
        .alive = ARENA_ARRAY(arena, layout->pp, double),
        .peak = ARENA_ARRAY(arena, layout->pp, double),
    };
    *costs = (const struct plan_costs *)(const void *)bound.builder;
    for (uint32_t stage = 0; stage < layout->pp; stage++) {
        bound_stage(&bound, stage, ask->quick);
    }
    const bool noise = scenario->noise.kernel_jitter > 0.0;
    if (ask->quick) {
        return (struct plan_bound){.step_s = noise ? 0.0 : sim_time_seconds(work_bound(&bound)),
                                   .peak_bytes = fixed};
    }
    start_messages(&bound);
    play_pipeline(&bound);
    const double step_s = noise ? 0.0 : sim_time_seconds(play_ends(&bound));
    return (struct plan_bound){.step_s = step_s, .peak_bytes = peak_bound(graph, bound.peak)};
}
