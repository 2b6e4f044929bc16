/*
 * gantt.h - the pipeline of a step as a drawing: one row per stage, one block per pass.
 *
 * A row is the rank of the stage whose compute stream is busiest among the observed ones.
 * A block is what its compute stream does for one pass of one microbatch in one chunk, from
 * the first op to the last, waits between them included; recomputation is part of the backward
 * pass. Two passes that take turns (an overlapping schedule) are one block with two halves.
 * What lies between blocks is idle.
 *
 * Everything lives in the arena.
 */
#ifndef STEPSIM_GANTT_H
#define STEPSIM_GANTT_H

#include "stepsim/arena.h"
#include "stepsim/timeline.h"

/* 'F' forward, 'B' backward (input gradient where schedules split it), 'W' weight gradient,
 * 'O' optimizer; 0: no such half. */
struct gantt_half {
    char pass;
    uint16_t chunk;
    int32_t microbatch; /* -1: none */
};

struct gantt_block {
    sim_time start, end;
    struct gantt_half halves[2]; /* the second has pass 0 unless two passes take turns */
};

struct gantt_row {
    uint32_t stage;
    uint32_t rank; /* true rank */
    const struct gantt_block *blocks;
    uint32_t block_count;
};

struct gantt {
    sim_time end;
    const struct gantt_row *rows; /* by stage */
    uint32_t row_count;
    uint32_t chunk_count;
};

const struct gantt *gantt_build(const struct programs *programs, const struct timeline *timeline,
                                struct arena *arena);

/*
 * Lines of `columns` characters a row behind its stage number. A column shows what fills most
 * of its time: a block starts with its letter and microbatch if there is room ("F12") and goes
 * on with small letters, "x" where forward and backward take turns, "." where the stage is idle.
 */
char *gantt_text(const struct gantt *gantt, uint32_t columns, struct arena *arena);

/* A drawing of its own, without scripts or fonts; a block tells itself under the pointer. */
char *gantt_svg(const struct gantt *gantt, const char *title, struct arena *arena);

#endif
