/*
 * gantt_text.c - the drawing for a terminal, in plain characters.
 */
#include <stdio.h>
#include <string.h>

#include "stepsim/error.h"
#include "stepsim/gantt.h"
#include "stepsim/text.h"

#define BLOCK_NONE  UINT32_MAX
#define BLOCK_TURNS (UINT32_MAX - 1)

/* Where column c begins; multiplied before divided, in a width that holds it. */
static sim_time column_start(const struct gantt *gantt, uint32_t c, uint32_t columns)
{
    return (sim_time)((double)gantt->end * (double)c / (double)columns);
}

static sim_time overlap(const struct gantt_block *block, sim_time from, sim_time until)
{
    const sim_time start = block->start > from ? block->start : from;
    const sim_time end = block->end < until ? block->end : until;
    return end > start ? end - start : 0;
}

/* Time of a column by what a stage does in it. */
struct column {
    uint32_t best; /* the block with the longest part */
    sim_time best_time, forward, backward, idle;
};

static void column_add(struct column *column, const struct gantt_row *row, uint32_t b,
                       sim_time time)
{
    const struct gantt_block *block = &row->blocks[b];
    column->idle -= time;
    if (block->halves[1].pass == 0 && block->halves[0].pass == 'F') {
        column->forward += time;
    } else if (block->halves[1].pass == 0 && block->halves[0].pass == 'B') {
        column->backward += time;
    }
    if (time > column->best_time) {
        column->best_time = time;
        column->best = b;
    }
}

/* What a column shows: a block, BLOCK_TURNS if forward and backward each fill a quarter of it, or
 * BLOCK_NONE if more than half is idle. *first is the first block that may reach into the column
 * and only moves forward. */
static uint32_t column_block(const struct gantt_row *row, sim_time from, sim_time until,
                             uint32_t *first)
{
    while (*first < row->block_count && row->blocks[*first].end <= from) {
        (*first)++;
    }
    struct column column = {.best = BLOCK_NONE, .idle = until - from};
    for (uint32_t b = *first; b < row->block_count && row->blocks[b].start < until; b++) {
        column_add(&column, row, b, overlap(&row->blocks[b], from, until));
    }
    const sim_time quarter = (until - from) / 4;
    if (column.forward > quarter && column.backward > quarter) {
        return BLOCK_TURNS;
    }
    return column.idle <= (until - from) / 2 ? column.best : BLOCK_NONE;
}

static char fill_letter(const struct gantt_block *block)
{
    if (block->halves[1].pass != 0) {
        return 'x';
    }
    switch (block->halves[0].pass) {
    case 'F':
        return 'f';
    case 'B':
        return 'b';
    case 'W':
        return 'w';
    default:
        return 'o';
    }
}

/* Columns `from` to `until` of one block; its name in front if it leaves room for one more. */
static void draw_block(char *line, const struct gantt_block *block, uint32_t from, uint32_t until)
{
    memset(line + from, fill_letter(block), until - from);
    if (block->halves[1].pass != 0 || block->halves[0].microbatch < 0) {
        return;
    }
    char name[16];
    const int length =
        snprintf(name, sizeof name, "%c%d", block->halves[0].pass, block->halves[0].microbatch);
    if ((uint32_t)length < until - from) {
        memcpy(line + from, name, (size_t)length);
    }
}

static void draw_row(const struct gantt *gantt, const struct gantt_row *row, uint32_t columns,
                     char *line)
{
    memset(line, '.', columns);
    line[columns] = '\0';
    uint32_t first = 0;
    uint32_t shown = BLOCK_NONE;
    uint32_t shown_from = 0;
    for (uint32_t c = 0; c <= columns; c++) {
        const uint32_t block = c == columns
                                   ? BLOCK_NONE
                                   : column_block(row, column_start(gantt, c, columns),
                                                  column_start(gantt, c + 1, columns), &first);
        if (block == shown) {
            continue;
        }
        if (shown == BLOCK_TURNS) {
            memset(line + shown_from, 'x', c - shown_from);
        } else if (shown != BLOCK_NONE) {
            draw_block(line, &row->blocks[shown], shown_from, c);
        }
        shown = block;
        shown_from = c;
    }
}

char *gantt_text(const struct gantt *gantt, uint32_t columns, struct arena *arena)
{
    ASSERT(columns > 0 && gantt->end > 0);
    struct text out = {0};
    char *line = arena_alloc(arena, (size_t)columns + 1);
    for (uint32_t r = 0; r < gantt->row_count; r++) {
        draw_row(gantt, &gantt->rows[r], columns, line);
        text_add(&out, "%5u  %s\n", gantt->rows[r].stage, line);
    }
    char *copy = arena_strdup(arena, text_string(&out));
    text_free(&out);
    return copy;
}
