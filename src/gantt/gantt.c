/*
 * gantt.c - from ops on compute streams to blocks.
 *
 * First every run of ops of one pass becomes a block; then a run A B A B.. of two passes
 * becomes one block with two halves. Two passes that merely follow each other never show the
 * pattern A B A, since a pass of one microbatch in one chunk happens once.
 */
#include "stepsim/gantt.h"

#include "stepsim/error.h"

static struct gantt_half half_of(const struct program_label *label)
{
    struct gantt_half half = {label->pass, label->chunk, label->microbatch};
    if (half.pass == 'R') {
        half.pass = 'B';
    } else if (half.pass != 'F' && half.pass != 'B' && half.pass != 'W') {
        half = (struct gantt_half){'O', 0, -1};
    }
    return half;
}

static bool same_half(struct gantt_half a, struct gantt_half b)
{
    return a.pass == b.pass && a.microbatch == b.microbatch && a.chunk == b.chunk;
}

/* Runs of ops of one pass. Between the parts of the optimizer a stage waits for all the others,
 * so there a wait ends the block. */
static uint32_t find_runs(const struct programs *programs, const struct observed_rank *times,
                          struct gantt_block *blocks)
{
    const struct rank_class *class = &programs->classes[programs->ranks[times->rank].rank_class];
    const struct program *program = &programs->programs[class->program];
    uint32_t count = 0;
    for (uint32_t i = 0; i < program->op_count[STREAM_COMPUTE]; i++) {
        const struct program_op *op = &program->ops[STREAM_COMPUTE][i];
        const sim_time start = times->start[STREAM_COMPUTE][i];
        const sim_time end = times->end[STREAM_COMPUTE][i];
        if (op->kind != PROGRAM_OP_COMPUTE || start == end) {
            continue;
        }
        const struct gantt_half half = half_of(&programs->labels[op->label]);
        const bool waited = count > 0 && blocks[count - 1].end < start;
        if (count > 0 && same_half(blocks[count - 1].halves[0], half) &&
            !(half.pass == 'O' && waited)) {
            blocks[count - 1].end = end;
        } else {
            blocks[count++] = (struct gantt_block){.start = start, .end = end, .halves = {half}};
        }
    }
    return count;
}

/* Joins runs that take turns, in place. */
static uint32_t join_turns(struct gantt_block *blocks, uint32_t count)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count;) {
        struct gantt_block block = blocks[i];
        uint32_t next = i + 1;
        if (i + 2 < count && same_half(block.halves[0], blocks[i + 2].halves[0]) &&
            !same_half(block.halves[0], blocks[i + 1].halves[0])) {
            block.halves[1] = blocks[i + 1].halves[0];
            while (next < count && (same_half(block.halves[0], blocks[next].halves[0]) ||
                                    same_half(block.halves[1], blocks[next].halves[0]))) {
                block.end = blocks[next].end;
                next++;
            }
        }
        blocks[kept++] = block;
        i = next;
    }
    return kept;
}

/* The busiest observed rank of a stage, or NULL. */
static const struct observed_rank *row_rank(const struct programs *programs,
                                            const struct timeline *timeline, uint32_t stage)
{
    const struct observed_rank *best = NULL;
    for (uint32_t i = 0; i < timeline->observed_count; i++) {
        const struct observed_rank *times = &timeline->observed[i];
        if (programs->classes[programs->ranks[times->rank].rank_class].stage != stage) {
            continue;
        }
        if (best == NULL ||
            timeline->ranks[times->rank].compute_busy > timeline->ranks[best->rank].compute_busy) {
            best = times;
        }
    }
    return best;
}

static uint32_t chunks_of(const struct gantt_row *row)
{
    uint32_t count = 1;
    for (uint32_t i = 0; i < row->block_count; i++) {
        for (unsigned h = 0; h < 2; h++) {
            const uint32_t chunk = row->blocks[i].halves[h].chunk;
            count = chunk + 1 > count ? chunk + 1 : count;
        }
    }
    return count;
}

const struct gantt *gantt_build(const struct programs *programs, const struct timeline *timeline,
                                struct arena *arena)
{
    struct gantt *gantt = ARENA_NEW(arena, struct gantt);
    struct gantt_row *rows = ARENA_ARRAY(arena, programs->stage_count, struct gantt_row);
    gantt->end = timeline->end;
    gantt->rows = rows;
    gantt->chunk_count = 1;
    for (uint32_t stage = 0; stage < programs->stage_count; stage++) {
        const struct observed_rank *times = row_rank(programs, timeline, stage);
        if (times == NULL) {
            continue;
        }
        const struct sim_rank *rank = &programs->ranks[times->rank];
        const uint32_t program = programs->classes[rank->rank_class].program;
        struct gantt_block *blocks = ARENA_ARRAY(
            arena, programs->programs[program].op_count[STREAM_COMPUTE], struct gantt_block);
        struct gantt_row *row = &rows[gantt->row_count++];
        *row = (struct gantt_row){.stage = stage, .rank = rank->rank, .blocks = blocks};
        row->block_count = join_turns(blocks, find_runs(programs, times, blocks));
        const uint32_t chunks = chunks_of(row);
        gantt->chunk_count = chunks > gantt->chunk_count ? chunks : gantt->chunk_count;
    }
    return gantt;
}
