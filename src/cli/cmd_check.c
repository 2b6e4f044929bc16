/* cmd_check.c - has a prediction moved since it was last accepted? */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "cli_internal.h"
#include "stepsim/check.h"
#include "stepsim/metric.h"
#include "stepsim/text.h"

struct check_values {
    const char *junit;
    bool update, json;
};

#define AT(field) offsetof(struct check_values, field)

static const struct option_row option_rows[] = {
    {.name = "update",
     .kind = OPTION_FLAG,
     .help = "take the values of now over into the file, after showing what moved; an entry "
             "without metrics gets step_time_s, tokens_per_s, mfu and memory.peak_bytes",
     .offset = AT(update),
     .group = "Baseline"},
    {.name = "junit",
     .kind = OPTION_TEXT,
     .argument = "FILE",
     .help = "also write JUnit XML: a test suite per scenario, a test case per metric",
     .offset = AT(junit),
     .group = "Output"},
    {.name = "json",
     .kind = OPTION_FLAG,
     .help = "one JSON object instead of a table",
     .offset = AT(json),
     .group = "Output"},
    {.name = NULL},
};

static const char *change_text(struct cli *cli, const struct check_metric *metric)
{
    const double change = metric->now - metric->baseline->value;
    if (metric->baseline->value == 0.0) {
        return arena_printf(cli->arena, "%+.4g", change);
    }
    return arena_printf(cli->arena, "%+.4g %%", change / fabs(metric->baseline->value) * 100.0);
}

static void add_row(struct cli *cli, struct table *table, const struct check_scenario *scenario,
                    const struct check_metric *metric)
{
    const struct baseline_metric *baseline = metric->baseline;
    table_row(table);
    table_cell(table, "%s", scenario->baseline->name);
    table_cell(table, "%s", baseline->name);
    table_cell(table, "%s",
               baseline->has_value ? arena_printf(cli->arena, "%.6g", baseline->value) : "-");
    table_cell(table, "%.6g", metric->now);
    table_cell(table, "%s", baseline->has_value ? change_text(cli, metric) : "new");
    table_cell(table, baseline->relative ? "%.4g %%" : "%.4g",
               baseline->relative ? baseline->tolerance * 100.0 : baseline->tolerance);
    if (baseline->has_value) {
        table_cell(table, "%s%s%s", paint(cli, metric->within ? PAINT_GREEN : PAINT_RED),
                   metric->within ? "within" : "MOVED", paint(cli, PAINT_NONE));
    }
}

/* Rows of the metrics that are not what they were, to the last digit. */
static uint32_t print_moved(struct cli *cli, const struct check *check)
{
    static const char *const headings[] = {"BASELINE", "NOW", "CHANGE", "ALLOWED"};
    struct table *table = table_create(cli);
    uint32_t rows = 0;
    table_column(table, "SCENARIO", TABLE_LEFT);
    table_column(table, "METRIC", TABLE_LEFT);
    for (size_t i = 0; i < sizeof headings / sizeof headings[0]; i++) {
        table_column(table, headings[i], TABLE_RIGHT);
    }
    table_column(table, "", TABLE_LEFT);
    for (uint32_t i = 0; i < check->scenario_count; i++) {
        const struct check_scenario *scenario = &check->scenarios[i];
        for (uint32_t m = 0; scenario->failure == NULL && m < scenario->baseline->metric_count;
             m++) {
            const struct check_metric *metric = &scenario->metrics[m];
            if (!metric->baseline->has_value || metric->now != metric->baseline->value) {
                add_row(cli, table, scenario, metric);
                rows++;
            }
        }
    }
    if (rows > 0) {
        table_print(table, 0);
    }
    return rows;
}

static void print_check(struct cli *cli, const struct check *check)
{
    const uint32_t moved = print_moved(cli, check);
    for (uint32_t i = 0; i < check->scenario_count; i++) {
        const struct check_scenario *scenario = &check->scenarios[i];
        if (scenario->failure != NULL) {
            printf("%s%s%s: %s\n", paint(cli, PAINT_RED), scenario->baseline->name,
                   paint(cli, PAINT_NONE), scenario->failure);
            continue;
        }
        const char *terms = check_moved_text(scenario, cli->arena);
        if (terms[0] != '\0') {
            printf("%s: ", scenario->baseline->name);
            print_wrapped(stdout, (struct wrap){cli->width, 0, 4}, terms);
        }
    }
    printf("%s%u metrics of %u scenarios: %u moved, %u out of tolerance\n", moved > 0 ? "\n" : "",
           check->metric_count, check->scenario_count, moved, check->failed_metrics);
}

static void write_junit(struct cli *cli, const char *path, const struct check *check)
{
    errno = 0;
    FILE *file = fopen(path, "w");
    bool written = file != NULL && fputs(check_junit(check, cli->arena), file) != EOF;
    if (file != NULL && fclose(file) != 0) {
        written = false;
    }
    if (!written) {
        error_add(&cli->errors, ERROR_file_not_writable, (struct location){path, 0, 0}, NULL, "%s",
                  strerror(errno));
    }
}

static int run(struct cli *cli, const void *raw, const struct arguments *arguments)
{
    const struct check_values *values = raw;
    struct baseline *baseline =
        baseline_read(arguments->items[0], values->update, cli->arena, &cli->errors);
    if (baseline == NULL) {
        return report_errors(cli);
    }
    const struct check check = check_run(baseline, cli->config_dir, cli->arena);
    if (values->json) {
        print_json(check_json(&check, cli->arena));
    } else {
        print_check(cli, &check);
    }
    if (values->junit != NULL) {
        write_junit(cli, values->junit, &check);
    }
    bool failed = check.failed_count > 0;
    if (values->update) {
        failed = false;
        for (uint32_t i = 0; i < check.scenario_count; i++) {
            failed = failed || check.scenarios[i].failure != NULL;
        }
        check_update(baseline, &check);
        baseline_write(baseline, &cli->errors);
    }
    if (cli->errors.count > 0) {
        return report_errors(cli);
    }
    return failed ? EXIT_CHECK_FAILED : EXIT_DONE;
}

const struct command command_check = {
    .name = "check",
    .group = "Trust",
    .summary = "fail when a prediction has moved since it was accepted",
    .usage = "BASELINE.json",
    .about =
        "Runs the scenarios of a baseline again, prints the metrics that moved and the terms that\n"
        "moved them, and ends with 1 if one is out of tolerance. A baseline begins as\n"
        "{\"scenarios\": [{\"file\": \"sim.yaml\"}]}, files relative to its folder; --update fills "
        "it.\nFormat, and examples for CI systems: docs/ci.md.",
    .examples = "stepsim check sims/baseline.json\n"
                "stepsim check sims/baseline.json --junit check.xml\n"
                "stepsim check sims/baseline.json --update",
    .options = option_rows,
    .values_size = sizeof(struct check_values),
    .arguments_min = 1,
    .arguments_max = 1,
    .run = run,
};
