/* cmd_validate.c - published measurements against predictions. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli_internal.h"
#include "stepsim/run.h"
#include "stepsim/validate.h"

struct validate_values {
    const char *show;
    struct option_list set;
    struct option_count jobs;
    bool json, rules;
};

#define AT(field) offsetof(struct validate_values, field)

static const struct option_row option_rows[] = {
    OPTION_JOBS(AT(jobs), "Simulation"),
    {.name = "set",
     .kind = OPTION_LIST,
     .argument = "KEY=VALUE",
     .help = "change a key of every mapped scenario; repeatable",
     .offset = AT(set),
     .group = "Simulation"},
    {.name = "show",
     .kind = OPTION_TEXT,
     .argument = "ID",
     .help = "print the scenario that a row is mapped to, and stop",
     .offset = AT(show),
     .group = "Output"},
    {.name = "rules",
     .kind = OPTION_FLAG,
     .help = "print the rules by which rows of this format become scenarios, and stop",
     .offset = AT(rules),
     .group = "Output"},
    {.name = "json",
     .kind = OPTION_FLAG,
     .help = "one JSON object instead of tables",
     .offset = AT(json),
     .group = "Output"},
    {.name = NULL},
};

static const struct location nowhere = {NULL, 0, 0};

static void progress(void *user, uint32_t done, uint32_t count)
{
    (void)user;
    fprintf(stderr, "\r%u of %u rows%s", done, count, done == count ? "\n" : "");
    fflush(stderr);
}

static uint32_t job_count(const struct validate_values *values)
{
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    if (values->jobs.given)
        return (uint32_t)values->jobs.value;
    return processors > 0 ? (uint32_t)processors : 1;
}

/* ---- For people ---- */

/* "-" for what is not there. */
static void number_cell(struct table *table, double value, bool is_signed)
{
    if (isnan(value))
        table_cell(table, "-");
    else if (is_signed)
        table_cell(table, "%+.3f", value);
    else
        table_cell(table, "%.4g", value);
}

static void share_cell(struct table *table, double value)
{
    if (isnan(value))
        table_cell(table, "-");
    else
        table_cell(table, "%.3f", value);
}

static void print_rows(struct cli *cli, const struct scored_row *rows, uint32_t count)
{
    struct table *table = table_create(cli);
    table_column(table, "row", TABLE_LEFT);
    table_column(table, "measured s", TABLE_RIGHT);
    table_column(table, "predicted s", TABLE_RIGHT);
    table_column(table, "ln error", TABLE_RIGHT);
    table_column(table, "memory ln", TABLE_RIGHT);
    for (uint32_t i = 0; i < count; i++) {
        if (!rows[i].prediction->done)
            continue;
        table_row(table);
        table_cell(table, "%s", rows[i].row->id);
        number_cell(table, rows[i].row->step_s > 0.0 ? rows[i].row->step_s : (double)NAN, false);
        number_cell(table, rows[i].prediction->step_s, false);
        number_cell(table, score_log_error(&rows[i]), true);
        number_cell(table, score_memory_log_error(&rows[i]), true);
    }
    table_print(table, 0);
}

static void print_unmapped(const struct scored_row *rows, uint32_t count)
{
    uint32_t unmapped = 0;
    for (uint32_t i = 0; i < count; i++)
        unmapped += !rows[i].prediction->done;
    printf("\n%u of %u rows have no prediction\n", unmapped, count);
    for (uint32_t i = 0; i < count; i++)
        if (!rows[i].prediction->done)
            printf("  %s%s: %s\n", rows[i].row->id,
                   measurement_eligible(rows[i].row) ? "" : " (not eligible)",
                   rows[i].prediction->reason);
}

static void score_line(struct table *table, const char *name, const struct score *score)
{
    table_row(table);
    table_cell(table, "%s", name);
    table_cell(table, "%u/%u", score->n, score->eligible);
    if (score->n == 0)
        return;
    table_cell(table, "%.3f", score->mae_log);
    table_cell(table, "%.3f", score->median_log);
    share_cell(table, score->anchored_mae_log);
    table_cell(table, "%+.3f", score->bias_log);
    for (int i = 0; i < 3; i++)
        table_cell(table, "%.0f %%", 100.0 * score->within[i]);
    share_cell(table, score->kendall_tau);
    if (score->memory_n > 0)
        table_cell(table, "%.3f (%u)", score->memory_mae_log, score->memory_n);
}

static void print_scores(struct cli *cli, const struct scored_row *rows, uint32_t count)
{
    struct score_group groups[64];
    const uint32_t group_count = score_groups(rows, count, groups, 64, cli->arena);
    static const char *const headings[] = {"rows", "mae ln", "median", "anchored", "bias",
                                           "10 %", "20 %",   "30 %",   "tau",      "memory ln"};
    struct table *table = table_create(cli);
    table_column(table, "group", TABLE_LEFT);
    for (size_t i = 0; i < sizeof headings / sizeof headings[0]; i++)
        table_column(table, headings[i], TABLE_RIGHT);
    struct score score = score_rows(rows, count, NULL, NULL);
    score_line(table, "overall", &score);
    for (uint32_t i = 0; i < group_count; i++) {
        score = score_rows(rows, count, groups[i].filter, groups[i].user);
        score_line(table, groups[i].name, &score);
    }
    printf("\n");
    table_print(table, 0);
}

/* ---- The command ---- */

static bool add_set(struct cli *cli, const struct option_list *set, struct validate_extra *extra)
{
    struct scenario_override *overrides =
        ARENA_ARRAY(cli->arena, set->count + 1, struct scenario_override);
    for (uint32_t i = 0; i < set->count; i++) {
        const char *equals = strchr(set->items[i], '=');
        if (equals == NULL || equals == set->items[i]) {
            error_add(&cli->errors, ERROR_usage, nowhere, "--set",
                      "\"%s\" is not KEY=VALUE, as in --set host.dispatch=graph", set->items[i]);
            return false;
        }
        overrides[i] = (struct scenario_override){
            arena_strndup(cli->arena, set->items[i], (size_t)(equals - set->items[i])), equals + 1};
    }
    *extra = (struct validate_extra){overrides, set->count};
    return true;
}

static int show(struct cli *cli, const struct measurement_set *set, const struct yaml_tree *tables,
                const char *id)
{
    for (uint32_t i = 0; i < set->count; i++) {
        if (strcmp(set->rows[i].id, id) != 0)
            continue;
        const struct mapping *mapping = measurement_map(&set->rows[i], tables, cli->arena);
        if (mapping->reason != NULL)
            printf("# not mapped: %s\n", mapping->reason);
        printf("%s", mapping_yaml(mapping));
        return EXIT_DONE;
    }
    error_add(&cli->errors, ERROR_unknown_name, nowhere, "--show", "there is no row \"%s\" in %s",
              id, set->path);
    return report_errors(cli);
}

static int print_rules(const struct measurement_set *set)
{
    const struct mapping_rule *rules =
        set->format == FORMAT_ASCEND_RUNS ? ascend_rules : measurement_rules;
    for (; rules->name != NULL; rules++)
        printf("- `%s`: %s\n", rules->name, rules->sentence);
    return EXIT_DONE;
}

static int run(struct cli *cli, const void *raw, const struct arguments *arguments)
{
    const struct validate_values *values = raw;
    const struct measurement_set *set =
        measurements_read(arguments->items[0], cli->arena, &cli->errors);
    const struct yaml_tree *tables = mapping_tables(cli->config_dir, cli->arena, &cli->errors);
    struct validate_extra extra;
    if (set == NULL || tables == NULL || !add_set(cli, &values->set, &extra))
        return report_errors(cli);
    if (values->rules)
        return print_rules(set);
    if (values->show != NULL)
        return show(cli, set, tables, values->show);
    const struct measurement **rows =
        ARENA_ARRAY(cli->arena, set->count + 1, const struct measurement *);
    struct validate_extra *extras = ARENA_ARRAY(cli->arena, set->count + 1, struct validate_extra);
    for (uint32_t i = 0; i < set->count; i++) {
        rows[i] = &set->rows[i];
        extras[i] = extra;
    }
    const struct validate_ask ask = {
        .rows = rows,
        .count = set->count,
        .tables = tables,
        .config_dir = cli->config_dir,
        .extras = extras,
        .jobs = job_count(values),
        .progress = isatty(STDERR_FILENO) ? progress : NULL,
    };
    const struct prediction *predictions = validate_run(&ask, cli->arena);
    struct scored_row *scored = ARENA_ARRAY(cli->arena, set->count + 1, struct scored_row);
    for (uint32_t i = 0; i < set->count; i++)
        scored[i] = (struct scored_row){&set->rows[i], &predictions[i]};
    if (values->json)
        return print_json(validate_json(scored, set->count));
    print_rows(cli, scored, set->count);
    print_unmapped(scored, set->count);
    print_scores(cli, scored, set->count);
    return EXIT_DONE;
}

const struct command command_validate = {
    .name = "validate",
    .group = "Trust",
    .summary = "predictions against published measurements",
    .usage = "FILE.csv",
    .about =
        "Maps every row of a file of published runs to a scenario by fixed rules, simulates it\n"
        "and scores the prediction: mean |ln(predicted / measured)| over families of rows, bias,\n"
        "order inside sweeps, peak memory. Rows that cannot be mapped are named with the reason.\n"
        "Rules, formats and results: docs/VALIDATION.md.",
    .examples = "stepsim validate tests/data/measurements.csv\n"
                "stepsim validate tests/data/ascend-runs.csv --json\n"
                "stepsim validate tests/data/measurements.csv --show SC21-007",
    .options = option_rows,
    .values_size = sizeof(struct validate_values),
    .arguments_min = 1,
    .arguments_max = 1,
    .run = run,
};
