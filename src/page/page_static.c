/*
 * page_static.c - what shows without scripts: tables, and drawings of our own in SVG.
 */
#include "page_internal.h"
#include "stepsim/text.h"

#define WIDTH  900.0
#define HEIGHT 360.0
#define LEFT   90.0
#define BOTTOM 40.0
#define DOTS   2000u

/* Okabe and Ito's colours, and darker ones that differ from them in lightness. */
const char *const page_cause_colours[CAUSE_COUNT] = {
    [CAUSE_COMPUTE] = "#0072b2",   [CAUSE_RECOMPUTE] = "#56b4e9", [CAUSE_TP] = "#e69f00",
    [CAUSE_EP] = "#d55e00",        [CAUSE_CP] = "#f0e442",        [CAUSE_PP] = "#cc79a7",
    [CAUSE_DP] = "#009e73",        [CAUSE_SWAP] = "#882255",      [CAUSE_HOST] = "#999933",
    [CAUSE_IMBALANCE] = "#661100", [CAUSE_BUBBLE] = "#bbbbbb",    [CAUSE_OPTIMIZER] = "#444444",
};
const char *const page_memory_colours[7] = {"#0072b2", "#56b4e9", "#009e73", "#e69f00",
                                            "#cc79a7", "#999933", "#bbbbbb"};

void page_add_escaped(struct text *out, const char *value)
{
    for (; *value != '\0'; value++) {
        switch (*value) {
        case '&':
            text_add(out, "&amp;");
            break;
        case '<':
            text_add(out, "&lt;");
            break;
        case '>':
            text_add(out, "&gt;");
            break;
        case '"':
            text_add(out, "&quot;");
            break;
        default:
            text_add_bytes(out, value, 1);
        }
    }
}

struct range {
    double low, high;
};

static double place(struct range range, double value)
{
    return range.high > range.low ? (value - range.low) / (range.high - range.low) : 0.5;
}

static void add_axis(struct text *out, struct range x, struct range y)
{
    for (int i = 0; i <= 4; i++) {
        const double share = (double)i / 4.0;
        text_add(out,
                 "<text x=\"%.0f\" y=\"%.0f\" text-anchor=\"middle\">%.4g</text>"
                 "<text x=\"%.0f\" y=\"%.0f\" text-anchor=\"end\">%.4g</text>\n",
                 LEFT + share * (WIDTH - LEFT - 20.0), HEIGHT - 20.0,
                 x.low + share * (x.high - x.low), LEFT - 8.0,
                 HEIGHT - BOTTOM - share * (HEIGHT - BOTTOM - 20.0),
                 y.low + share * (y.high - y.low));
    }
    text_add(
        out,
        "<text x=\"%.0f\" y=\"%.0f\" text-anchor=\"middle\">peak memory, GiB</text>"
        "<text x=\"4\" y=\"12\">tokens/s (squares: no run is both faster and smaller)</text>\n",
        WIDTH / 2.0, HEIGHT - 4.0);
}

static void add_scatter(struct text *out, const struct page_data *data, struct arena *arena)
{
    struct range x = {1e300, -1e300};
    struct range y = {0.0, -1e300};
    for (uint32_t i = 0; i < data->run_count; i++) {
        const struct page_run *run = &data->runs[i];
        x.low = run->peak_gib < x.low ? run->peak_gib : x.low;
        x.high = run->peak_gib > x.high ? run->peak_gib : x.high;
        y.high = run->tokens_per_s > y.high ? run->tokens_per_s : y.high;
    }
    text_add(out,
             "<svg viewBox=\"0 0 %.0f %.0f\" role=\"img\" aria-label=\"speed against memory\">\n",
             WIDTH, HEIGHT);
    add_axis(out, x, y);
    for (uint32_t i = 0; i < data->run_count && i < DOTS; i++) {
        const struct page_run *run = &data->runs[i];
        const double cx = LEFT + place(x, run->peak_gib) * (WIDTH - LEFT - 20.0);
        const double cy = HEIGHT - BOTTOM - place(y, run->tokens_per_s) * (HEIGHT - BOTTOM - 20.0);
        if (run->pareto) {
            text_add(out, "<rect x=\"%.1f\" y=\"%.1f\" width=\"9\" height=\"9\" fill=\"#d55e00\">",
                     cx - 4.5, cy - 4.5);
        } else {
            text_add(out,
                     "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\" fill=\"%s\" fill-opacity=\"0.6\">",
                     cx, cy, run->fits ? "#0072b2" : "#bbbbbb");
        }
        text_add(out, "<title>");
        page_add_escaped(out, page_run_name(run, arena));
        text_add(out, "</title>%s\n", run->pareto ? "</rect>" : "</circle>");
    }
    text_add(out, "</svg>\n");
}

static void add_legend(struct text *out, const char *const *names, const char *const *colours,
                       uint32_t count)
{
    text_add(out, "<p class=\"legend\">");
    for (uint32_t i = 0; i < count; i++) {
        text_add(out, "<span><i style=\"background:%s\"></i>%s</span> ", colours[i], names[i]);
    }
    text_add(out, "</p>\n");
}

static void add_breakdown(struct text *out, const struct page_data *data, struct arena *arena)
{
    const uint32_t rows = data->run_count < PAGE_BEST ? data->run_count : PAGE_BEST;
    double longest = 0.0;
    for (uint32_t i = 0; i < rows; i++) {
        longest = data->runs[i].step_time_s > longest ? data->runs[i].step_time_s : longest;
    }
    const char *names[CAUSE_COUNT];
    for (unsigned c = 0; c < CAUSE_COUNT; c++) {
        names[c] = time_cause_name((enum time_cause)c);
    }
    add_legend(out, names, page_cause_colours, CAUSE_COUNT);
    text_add(out, "<svg viewBox=\"0 0 %.0f %u\" role=\"img\" aria-label=\"where the step goes\">\n",
             WIDTH, rows * 34 + 4);
    for (uint32_t i = 0; i < rows; i++) {
        const struct page_run *run = &data->runs[i];
        double at = 0.0;
        text_add(out, "<text x=\"0\" y=\"%u\">", i * 34 + 12);
        page_add_escaped(out, page_run_name(run, arena));
        text_add(out, ": %.4g s</text>\n", run->step_time_s);
        for (unsigned c = 0; c < CAUSE_COUNT; c++) {
            const double width = run->share[c] * run->step_time_s / longest * WIDTH;
            if (width > 0.0) {
                text_add(
                    out,
                    "<rect x=\"%.2f\" y=\"%u\" width=\"%.2f\" height=\"16\" fill=\"%s\"><title>"
                    "%s %.2f %%</title></rect>\n",
                    at, i * 34 + 16, width, page_cause_colours[c], names[c], run->share[c] * 100.0);
            }
            at += width;
        }
    }
    text_add(out, "</svg>\n");
}

static void add_stages(struct text *out, const struct page_run *run)
{
    double limit = run->peak_gib;
    for (uint32_t s = 0; s < run->stage_count; s++) {
        double sum = 0.0;
        for (unsigned p = 0; p < 7; p++) {
            sum += run->stages[s].parts[p];
        }
        limit = sum > limit ? sum : limit;
    }
    add_legend(out, page_memory_parts, page_memory_colours, 7);
    text_add(out, "<svg viewBox=\"0 0 %.0f %u\" role=\"img\" aria-label=\"memory by stage\">\n",
             WIDTH, run->stage_count * 20 + 4);
    for (uint32_t s = 0; s < run->stage_count; s++) {
        double at = 60.0;
        text_add(out, "<text x=\"0\" y=\"%u\">stage %u</text>", s * 20 + 14, s);
        for (unsigned p = 0; p < 7; p++) {
            const double width = run->stages[s].parts[p] / limit * (WIDTH - 60.0);
            text_add(out,
                     "<rect x=\"%.2f\" y=\"%u\" width=\"%.2f\" height=\"16\" fill=\"%s\"><title>%s "
                     "%.2f GiB</title></rect>\n",
                     at, s * 20 + 2, width, page_memory_colours[p], page_memory_parts[p],
                     run->stages[s].parts[p]);
            at += width;
        }
    }
    text_add(out, "</svg>\n");
}

static void add_table(struct text *out, const struct page_data *data, struct arena *arena)
{
    text_add(out, "<table><thead><tr><th>run</th><th>tokens/s</th><th>step, s</th><th>MFU, %%</th>"
                  "<th>peak, GiB</th><th>headroom, GiB</th><th>fits</th></tr></thead><tbody>\n");
    for (uint32_t i = 0; i < data->run_count && i < 5 * PAGE_BEST; i++) {
        const struct page_run *run = &data->runs[i];
        text_add(out, "<tr><td>");
        page_add_escaped(out, page_run_name(run, arena));
        text_add(out,
                 "</td><td>%.0f</td><td>%.4g</td><td>%.2f</td><td>%.2f</td><td>%.2f</td><td>%s</td>"
                 "</tr>\n",
                 run->tokens_per_s, run->step_time_s, run->mfu * 100.0, run->peak_gib,
                 run->headroom_gib, run->fits ? "yes" : "no");
    }
    text_add(out, "</tbody></table>\n");
}

static void add_rejected(struct text *out, const struct page_data *data)
{
    if (data->rejected_count == 0) {
        return;
    }
    text_add(out,
             "<h2>Points without an answer</h2>\n<table><thead><tr><th>status</th><th>code</th>"
             "<th>points</th><th>example</th></tr></thead><tbody>\n");
    for (uint32_t i = 0; i < data->rejected_count; i++) {
        text_add(out, "<tr><td>");
        page_add_escaped(out, data->rejected[i].status);
        text_add(out, "</td><td>");
        page_add_escaped(out, data->rejected[i].code);
        text_add(out, "</td><td>%lld</td><td>", (long long)data->rejected[i].points);
        page_add_escaped(out, data->rejected[i].example);
        text_add(out, "</td></tr>\n");
    }
    text_add(out, "</tbody></table>\n");
}

void page_add_static(struct text *out, const struct page_data *data, struct arena *arena)
{
    const struct page_run *best = &data->runs[0];
    text_add(out, "<p><b>%u runs</b>", data->run_count);
    if ((int64_t)data->run_count < data->runs_in_file) {
        text_add(out, " of %lld: the Pareto front and the fastest", (long long)data->runs_in_file);
    }
    text_add(out, ". Fastest%s: ", best->fits ? " that fits" : ", though none fits");
    page_add_escaped(out, page_run_name(best, arena));
    text_add(out, ": %.4g tokens/s, MFU %.1f %%, peak %.1f GiB. ", best->tokens_per_s,
             best->mfu * 100.0, best->peak_gib);
    page_add_escaped(out, best->verdict);
    text_add(out, "</p>\n<section id=\"scatter\"><h2>Speed against memory</h2>\n");
    add_scatter(out, data, arena);
    text_add(out, "</section>\n<section id=\"breakdown\"><h2>Where the step goes</h2>\n");
    add_breakdown(out, data, arena);
    text_add(out, "</section>\n<section id=\"memory\"><h2>Memory by stage, ");
    page_add_escaped(out, page_run_name(best, arena));
    text_add(out, "</h2>\n");
    add_stages(out, best);
    text_add(out, "</section>\n<section id=\"parallel\" hidden></section>\n"
                  "<section id=\"heat\" hidden></section>\n<section id=\"top\"><h2>Runs</h2>\n");
    add_table(out, data, arena);
    text_add(out, "</section>\n");
    add_rejected(out, data);
}
