/*
 * explain_ops.c - walks the op lists of every kind of block, prices each op the way the
 * programs do, and counts how often it runs on the described stage.
 */
#include "explain_ops.h"

#include <string.h>

const char *explain_pass_name(enum explain_pass pass)
{
    static const char *const names[EXPLAIN_PASS_COUNT] = {"forward", "recompute", "backward"};
    ASSERT(pass < EXPLAIN_PASS_COUNT);
    return names[pass];
}

static const struct op_list *list_of(const struct block_ops *block, enum explain_pass pass)
{
    switch (pass) {
    case EXPLAIN_FORWARD:
        return &block->pass[PASS_FORWARD];
    case EXPLAIN_RECOMPUTE:
        return &block->pass[PASS_RECOMPUTE];
    default:
        return &block->backward;
    }
}

/* Blocks of this kind in the chunks of a stage; only those that recompute, if asked for. */
static uint32_t blocks_on_stage(const struct op_graph *graph, const struct block_ops *block,
                                uint32_t stage, bool recompute)
{
    const struct layout *layout = graph->layout;
    const struct model *model = graph->model;
    uint32_t count = 0;
    for (uint32_t c = 0; c < layout->vpp; c++) {
        const struct layout_chunk *slots = &layout->chunks[stage * layout->vpp + c];
        for (uint32_t i = 0; i < slots->layer_count; i++) {
            const uint32_t layer = slots->first_layer + i;
            const bool windowed = model->layer_windowed != NULL && model->layer_windowed[layer];
            const bool same = op_graph_block(graph, model->layer_kind[layer], windowed) == block;
            count += same && (!recompute || op_graph_recomputes(graph, stage, c, i)) ? 1 : 0;
        }
        if (block->kind == BLOCK_EMBEDDING && !recompute) {
            count += slots->embedding ? 1 : 0;
        }
        if (block->kind == BLOCK_HEAD && !recompute) {
            count += (slots->head ? 1 : 0) + slots->mtp;
        }
        if (block->kind == BLOCK_MTP) {
            const bool whole = graph->scenario->recompute.method != RECOMPUTE_PER_STAGE;
            count +=
                !recompute || (whole && op_graph_recomputes(graph, stage, c, 0)) ? slots->mtp : 0;
        }
    }
    return count;
}

static bool passes(const char *wanted, const char *actual)
{
    return wanted == NULL || strcmp(wanted, actual) == 0;
}

static uint32_t ops_of_graph(const struct op_graph *graph)
{
    uint32_t count = 0;
    for (uint32_t b = 0; b < graph->block_count; b++) {
        for (unsigned p = 0; p < EXPLAIN_PASS_COUNT; p++) {
            count += list_of(&graph->blocks[b], (enum explain_pass)p)->count;
        }
    }
    return count;
}

/* What collecting needs. */
struct collector {
    const struct run *run;
    const struct explain_filter *filter;
    struct explain_ops ops;
    struct arena *arena;
};

static void add_list(struct collector *collector, const struct block_ops *block,
                     enum explain_pass pass)
{
    const struct run *run = collector->run;
    struct explain_ops *ops = &collector->ops;
    struct arena *arena = collector->arena;
    const struct plan_ask ask = {.graph = run->graph, .cluster = run->cluster};
    const struct op_list *list = list_of(block, pass);
    const uint32_t blocks =
        blocks_on_stage(run->graph, block, ops->stage, pass == EXPLAIN_RECOMPUTE);
    for (uint32_t i = 0; i < list->count; i++) {
        const struct op *op = &list->ops[i];
        if (!passes(collector->filter->op, op->name)) {
            continue;
        }
        struct explain_op *item = &ops->items[ops->count++];
        item->block = block;
        item->block_name = block->windowed
                               ? arena_printf(arena, "%s windowed", block_kind_name(block->kind))
                               : block_kind_name(block->kind);
        item->pass = pass;
        item->op = op;
        item->calls = blocks * run->layout->microbatches;
        plan_op_cost(&ask, op, arena, &item->cost);
    }
}

struct explain_ops explain_ops_build(const struct run *run, const struct explain_filter *filter,
                                     struct arena *arena)
{
    struct collector collector = {
        .run = run,
        .filter = filter,
        .arena = arena,
        .ops = {.items = ARENA_ARRAY(arena, ops_of_graph(run->graph), struct explain_op),
                .stage = run->report->time_share_stage},
    };
    for (uint32_t b = 0; b < run->graph->block_count; b++) {
        const struct block_ops *block = &run->graph->blocks[b];
        for (unsigned p = 0; p < EXPLAIN_PASS_COUNT; p++) {
            const enum explain_pass pass = (enum explain_pass)p;
            if (passes(filter->block, block_kind_name(block->kind)) &&
                passes(filter->pass, explain_pass_name(pass))) {
                add_list(&collector, block, pass);
            }
        }
    }
    return collector.ops;
}
