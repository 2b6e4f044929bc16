/*
 * gantt_svg.c - the drawing for a page.
 *
 * Colours are told apart by colour-blind readers (Okabe and Ito's palette) and later chunks are
 * darker; wide blocks also carry their microbatch, so a print in black and white is readable.
 * A block narrower than a fifth of a pixel is drawn at that width: nobody sees the difference,
 * and nothing vanishes.
 */
#include <string.h>

#include "stepsim/error.h"
#include "stepsim/gantt.h"
#include "stepsim/text.h"

#define LEFT       70.0
#define WIDTH      1500.0
#define ROW_HEIGHT 26.0
#define TOP        64.0
#define BOTTOM     40.0
#define LABEL_MIN  14.0 /* pixels that a microbatch number needs */
#define TICKS      10

static const struct {
    char pass;
    const char *colour;
    const char *word;
} passes[] = {
    {'F', "#56b4e9", "forward"},
    {'B', "#e69f00", "backward"},
    {'W', "#009e73", "weight gradient"},
    {'O', "#cc79a7", "optimizer"},
};
#define PASS_KINDS (sizeof passes / sizeof passes[0])

static size_t pass_index(char pass)
{
    size_t i = 0;
    while (i + 1 < PASS_KINDS && passes[i].pass != pass) {
        i++;
    }
    return i;
}

static void add_escaped(struct text *out, const char *text)
{
    for (; *text != '\0'; text++) {
        switch (*text) {
        case '<':
            text_add(out, "&lt;");
            break;
        case '&':
            text_add(out, "&amp;");
            break;
        default:
            text_add_bytes(out, text, 1);
        }
    }
}

static double x_of(const struct gantt *gantt, sim_time time)
{
    return LEFT + WIDTH * (double)time / (double)gantt->end;
}

static void add_half_words(struct text *out, const struct gantt_half *half, bool chunks)
{
    text_add(out, "%s", passes[pass_index(half->pass)].word);
    if (half->microbatch >= 0) {
        text_add(out, " of microbatch %d", half->microbatch);
    }
    if (chunks && half->pass != 'O') {
        text_add(out, ", chunk %u", half->chunk);
    }
}

/* One half of a block: the whole height, or the upper or lower part. */
static void add_half(struct text *out, const struct gantt *gantt, const struct gantt_block *block,
                     unsigned h, double y)
{
    const struct gantt_half *half = &block->halves[h];
    const bool pair = block->halves[1].pass != 0;
    const double height = (ROW_HEIGHT - 4.0) / (pair ? 2.0 : 1.0);
    const double top = y + 2.0 + (h == 1 ? height : 0.0);
    const double x = x_of(gantt, block->start);
    double width = x_of(gantt, block->end) - x;
    width = width < 0.2 ? 0.2 : width;
    const double opacity = 0.65 + 0.35 * (double)(half->chunk + 1) / (double)gantt->chunk_count;
    text_add(out,
             "<rect x=\"%.2f\" y=\"%.1f\" width=\"%.2f\" height=\"%.1f\" fill=\"%s\" "
             "fill-opacity=\"%.2f\"/>",
             x, top, width, height, passes[pass_index(half->pass)].colour,
             opacity > 1.0 ? 1.0 : opacity);
    if (half->microbatch >= 0 && width >= LABEL_MIN) {
        text_add(out, "<text x=\"%.2f\" y=\"%.1f\" font-size=\"%d\">%d</text>", x + width / 2.0,
                 top + height / 2.0 + 3.5, pair ? 9 : 10, half->microbatch);
    }
}

static void add_row(struct text *out, const struct gantt *gantt, uint32_t r)
{
    const struct gantt_row *row = &gantt->rows[r];
    const double y = TOP + ROW_HEIGHT * (double)r;
    text_add(out,
             "<text class=\"l\" x=\"%.0f\" y=\"%.1f\">stage %u</text>\n"
             "<rect x=\"%.0f\" y=\"%.1f\" width=\"%.0f\" height=\"%.1f\" fill=\"#eeeeee\"/>\n",
             LEFT - 8.0, y + ROW_HEIGHT / 2.0 + 4.0, row->stage, LEFT, y + 2.0, WIDTH,
             ROW_HEIGHT - 4.0);
    for (uint32_t b = 0; b < row->block_count; b++) {
        const struct gantt_block *block = &row->blocks[b];
        text_add(out, "<g><title>stage %u: ", row->stage);
        add_half_words(out, &block->halves[0], gantt->chunk_count > 1);
        if (block->halves[1].pass != 0) {
            text_add(out, " and ");
            add_half_words(out, &block->halves[1], gantt->chunk_count > 1);
        }
        text_add(out, ", %.6g to %.6g s</title>", sim_time_seconds(block->start),
                 sim_time_seconds(block->end));
        add_half(out, gantt, block, 0, y);
        if (block->halves[1].pass != 0) {
            add_half(out, gantt, block, 1, y);
        }
        text_add(out, "</g>\n");
    }
}

static void add_legend(struct text *out)
{
    double x = LEFT;
    for (size_t i = 0; i < PASS_KINDS; i++) {
        text_add(out,
                 "<rect x=\"%.0f\" y=\"34\" width=\"14\" height=\"14\" fill=\"%s\"/>"
                 "<text class=\"k\" x=\"%.0f\" y=\"46\">%s</text>\n",
                 x, passes[i].colour, x + 20.0, passes[i].word);
        x += 40.0 + 8.0 * (double)strlen(passes[i].word);
    }
    text_add(out,
             "<rect x=\"%.0f\" y=\"34\" width=\"14\" height=\"14\" fill=\"#eeeeee\"/>"
             "<text class=\"k\" x=\"%.0f\" y=\"46\">idle; numbers are microbatches, later chunks "
             "are darker</text>\n",
             x, x + 20.0);
}

static void add_axis(struct text *out, const struct gantt *gantt, double y)
{
    for (int i = 0; i <= TICKS; i++) {
        const double share = (double)i / TICKS;
        text_add(out,
                 "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#888888\"/>"
                 "<text x=\"%.1f\" y=\"%.1f\">%.4g s</text>\n",
                 LEFT + WIDTH * share, LEFT + WIDTH * share, y, y + 5.0, LEFT + WIDTH * share,
                 y + 18.0, sim_time_seconds(gantt->end) * share);
    }
}

char *gantt_svg(const struct gantt *gantt, const char *title, struct arena *arena)
{
    ASSERT(gantt->end > 0);
    struct text out = {0};
    const double bottom = TOP + ROW_HEIGHT * (double)gantt->row_count;
    text_add(&out,
             "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" role=\"img\" "
             "font-family=\"sans-serif\" font-size=\"11\" text-anchor=\"middle\">\n"
             "<style>.l{text-anchor:end}.k{text-anchor:start}</style>\n"
             "<rect width=\"100%%\" height=\"100%%\" fill=\"#ffffff\"/>\n"
             "<text class=\"k\" x=\"%.0f\" y=\"20\" font-size=\"15\">",
             LEFT + WIDTH + 40.0, bottom + BOTTOM, LEFT);
    add_escaped(&out, title);
    text_add(&out, "</text>\n");
    add_legend(&out);
    for (uint32_t r = 0; r < gantt->row_count; r++) {
        add_row(&out, gantt, r);
    }
    add_axis(&out, gantt, bottom);
    text_add(&out, "</svg>\n");
    char *copy = arena_strdup(arena, text_string(&out));
    text_free(&out);
    return copy;
}
