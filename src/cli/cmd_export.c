/* cmd_export.c - a table of a results database for programs that cannot read it. */
#include <string.h>

#include "cli_internal.h"
#include "row_writer.h"
#include "stepsim/store.h"

struct export_values {
    bool csv, json;
    const char *table;
};

static const char *const table_words[] = {"runs",      "run_keys", "stages",      "steps",
                                          "run_costs", "sweeps",   "invocations", "time_share",
                                          "comm",      "v_runs",   "v_scenarios", NULL};

static const struct option_row option_rows[] = {
    {.name = "csv",
     .kind = OPTION_FLAG,
     .help = "comma-separated values with a header (RFC 4180)",
     .offset = offsetof(struct export_values, csv),
     .group = "Output"},
    {.name = "json",
     .kind = OPTION_FLAG,
     .help = "an array with one object for each row",
     .offset = offsetof(struct export_values, json),
     .group = "Output"},
    {.name = "table",
     .kind = OPTION_WORD,
     .argument = "NAME",
     .help = "table or view: runs (if left out, with the swept keys), run_keys, stages, steps, "
             "run_costs, sweeps, invocations, time_share, comm, v_runs, v_scenarios",
     .offset = offsetof(struct export_values, table),
     .words = table_words,
     .group = "Output"},
    {.name = NULL},
};

static int run(struct cli *cli, const void *raw, const struct arguments *arguments)
{
    const struct export_values *values = raw;
    if (values->csv == values->json) {
        error_add(&cli->errors, ERROR_usage, (struct location){NULL, 0, 0}, "export",
                  "one of --csv and --json says which form");
        return report_errors(cli);
    }
    struct store *store = store_open(arguments->items[0], STORE_READ, cli->arena, &cli->errors);
    if (store == NULL) {
        return report_errors(cli);
    }
    const char *sql = "select r.*, s.swept from runs r left join v_swept s using (run_id) "
                      "order by run_id";
    if (values->table != NULL && strcmp(values->table, "runs") != 0) {
        sql = arena_printf(cli->arena, "select * from %s", values->table);
    }
    struct store_query *query = store_query_open(store, sql, NULL, 0, &cli->errors);
    if (query != NULL) {
        rows_write(cli, query, values->csv ? ROWS_CSV : ROWS_JSON);
    }
    store_close(store, &cli->errors);
    return cli->errors.count > 0 ? report_errors(cli) : EXIT_DONE;
}

const struct command command_export = {
    .name = "export",
    .group = "Explore",
    .summary = "a results database as CSV or JSON",
    .usage = "DB",
    .about =
        "Prints a table of the database. For readers whose SQLite is older than 3.37 and does\n"
        "not know STRICT tables, and for spreadsheets.",
    .examples = "stepsim export results.db --csv > results.csv\n"
                "stepsim export results.db --json --table stages",
    .options = option_rows,
    .values_size = sizeof(struct export_values),
    .arguments_min = 1,
    .arguments_max = 1,
    .run = run,
};
