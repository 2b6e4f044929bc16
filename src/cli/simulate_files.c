/*
 * simulate_files.c - the timeline of a run as a trace, and as a drawing of the pipeline.
 */
#include "simulate_files.h"

#include <errno.h>
#include <string.h>

#include "stepsim/gantt.h"
#include "stepsim/text.h"
#include "stepsim/trace.h"

static const struct location nowhere = {NULL, 0, 0};

void simulate_files_check(struct cli *cli, const struct simulate_files *files)
{
    const char *ending = files->gantt_svg != NULL ? strrchr(files->gantt_svg, '.') : NULL;
    if (files->gantt_svg != NULL && (ending == NULL || strcmp(ending, ".svg") != 0)) {
        error_add(&cli->errors, ERROR_bad_value, nowhere, "--gantt-file",
                  "\"%s\" does not end in .svg, the one format that is drawn; rsvg-convert makes "
                  "a PNG of it",
                  files->gantt_svg);
    }
}

static bool write_text(struct cli *cli, const char *path, const char *text)
{
    errno = 0;
    FILE *file = fopen(path, "w");
    bool written = file != NULL && fputs(text, file) != EOF;
    if (file != NULL && fclose(file) != 0) {
        written = false;
    }
    if (!written) {
        error_add(&cli->errors, ERROR_file_not_writable, (struct location){path, 0, 0}, NULL, "%s",
                  strerror(errno));
    }
    return written;
}

static const char *title_of(const struct scenario *scenario)
{
    return scenario->title != NULL ? scenario->title : "Pipeline of one training step";
}

bool simulate_files_write(struct cli *cli, const struct run *run,
                          const struct simulate_files *files)
{
    if (files->gantt_svg != NULL) {
        const struct gantt *gantt = gantt_build(run->programs, run->timeline, cli->arena);
        if (!write_text(cli, files->gantt_svg,
                        gantt_svg(gantt, title_of(run->scenario), cli->arena))) {
            return false;
        }
    }
    if (files->trace == NULL) {
        return true;
    }
    const struct trace_ask ask = {
        .path = files->trace,
        .title = run->scenario->title,
        .scenario_hash = run->report->scenario_hash,
        .plan = run->plan,
        .timeline = run->timeline,
    };
    const uint64_t events = trace_write(&ask, &cli->errors);
    if (events > 0) {
        fprintf(stderr, "stepsim: %llu events of %u ranks in %s\n", (unsigned long long)events,
                run->timeline->observed_count, files->trace);
    }
    return events > 0;
}

void simulate_gantt_print(struct cli *cli, const struct run *run)
{
    const struct gantt *gantt = gantt_build(run->programs, run->timeline, cli->arena);
    const uint32_t columns = cli->width > 20 ? cli->width - 8 : 12;
    printf("\n%sPipeline%s, a column is %s\n", paint(cli, PAINT_BOLD), paint(cli, PAINT_NONE),
           text_duration(cli->arena, sim_time_seconds(gantt->end) / (double)columns));
    printf("%sSTAGE  f forward, b backward, w weight gradient, o optimizer, x forward and backward "
           "in turns, . idle%s\n",
           paint(cli, PAINT_DIM), paint(cli, PAINT_NONE));
    printf("%s", gantt_text(gantt, columns, cli->arena));
}
