/* cmd_report.c - a results database as a page for people. */
#include <errno.h>
#include <string.h>

#include "cli_internal.h"
#include "stepsim/page.h"

struct report_values {
    const char *output, *title;
    struct option_count sweep;
};

#define AT(field) offsetof(struct report_values, field)

static const struct option_row option_rows[] = {
    {.name = "output",
     .kind = OPTION_TEXT,
     .argument = "FILE.html",
     .help = "where the page goes; the name of the database with .html behind it if left out "
             "(also -o)",
     .offset = AT(output),
     .group = "Output"},
    {.name = "title",
     .kind = OPTION_TEXT,
     .argument = "TEXT",
     .help = "heading of the page; the name of the database if left out",
     .offset = AT(title),
     .group = "Output"},
    {.name = "sweep",
     .kind = OPTION_COUNT,
     .argument = "N",
     .help = "only the sweep of that number; all if left out",
     .offset = AT(sweep),
     .minimum = 1,
     .group = "What"},
    {.name = NULL},
};

static bool write_page(struct cli *cli, const char *path, const struct text *page)
{
    errno = 0;
    FILE *file = fopen(path, "wb");
    bool written = file != NULL && fwrite(page->data, 1, page->length, file) == page->length;
    if (file != NULL && fclose(file) != 0) {
        written = false;
    }
    if (!written) {
        error_add(&cli->errors, ERROR_file_not_writable, (struct location){path, 0, 0}, NULL, "%s",
                  strerror(errno));
    }
    return written;
}

static int run(struct cli *cli, const void *raw, const struct arguments *arguments)
{
    const struct report_values *values = raw;
    const char *db = arguments->items[0];
    const char *path =
        values->output != NULL ? values->output : arena_printf(cli->arena, "%s.html", db);
    struct store *store = store_open(db, STORE_READ, cli->arena, &cli->errors);
    if (store == NULL) {
        return report_errors(cli);
    }
    const struct page_ask ask = {
        .store = store,
        .title = values->title != NULL ? values->title : db,
        .sweep = values->sweep.given
                     ? arena_printf(cli->arena, "%llu", (unsigned long long)values->sweep.value)
                     : NULL,
    };
    struct text page = {0};
    if (page_build(&ask, &page, &cli->errors) && write_page(cli, path, &page)) {
        fprintf(stderr, "stepsim: %s, %.1f MB%s\n", path, (double)page.length / 1e6,
                page_has_charts() ? ""
                                  : "; drawings without interaction, since the program was built "
                                    "without STEPSIM_REPORT_CHARTS");
    }
    text_free(&page);
    store_close(store, &cli->errors);
    return cli->errors.count > 0 ? report_errors(cli) : EXIT_DONE;
}

const struct command command_report = {
    .name = "report",
    .group = "Explore",
    .summary = "a results database as one HTML page with charts",
    .usage = "DB",
    .about =
        "Writes one page that needs no network and no other file: speed against memory with\n"
        "the Pareto front, parallel coordinates, a heat map of two keys, where the step goes,\n"
        "memory by stage, and a table to sort and filter. It is readable without scripts, in\n"
        "print, and for colour-blind people.",
    .examples =
        "stepsim report results.db\n"
        "stepsim report results.db --sweep 2 --output page.html --title \"Layouts of 718B\"",
    .options = option_rows,
    .values_size = sizeof(struct report_values),
    .arguments_min = 1,
    .arguments_max = 1,
    .run = run,
};
