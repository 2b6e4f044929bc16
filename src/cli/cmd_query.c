/* cmd_query.c - questions to a results database, by name or in SQL. */
#include <string.h>

#include "cli_internal.h"
#include "row_writer.h"
#include "stepsim/store.h"
#include "stepsim/text.h"

struct query_values {
    const char *sql, *format;
    struct option_count limit, sweep;
};

static const char *const format_words[] = {"table", "csv", "json", "markdown", NULL};

#define AT(field) offsetof(struct query_values, field)

static const struct option_row option_rows[] = {
    {.name = "sql",
     .kind = OPTION_TEXT,
     .argument = "TEXT",
     .help = "any SELECT over the tables and views of docs/reference/database.md",
     .offset = AT(sql),
     .group = "Query"},
    {.name = "sweep",
     .kind = OPTION_COUNT,
     .argument = "N",
     .help = "only the sweep of that number; all if left out",
     .offset = AT(sweep),
     .minimum = 1,
     .group = "Query"},
    {.name = "limit",
     .kind = OPTION_COUNT,
     .argument = "N",
     .help = "rows of a named query, 20 if left out",
     .offset = AT(limit),
     .minimum = 1,
     .group = "Query"},
    {.name = "format",
     .kind = OPTION_WORD,
     .argument = "table|csv|json|markdown",
     .help = "how to print the rows; table if left out",
     .offset = AT(format),
     .words = format_words,
     .group = "Output"},
    {.name = NULL},
};

static const struct location nowhere = {NULL, 0, 0};

/* ?1: sweep or null, ?2: limit; {key} is a column of `runs`, ?3 a model. */
static const struct named_query {
    const char *name, *arguments, *meaning, *sql;
} named_queries[] = {
    {"best", "", "fastest fitting points, with their swept keys",
     "select r.sweep_id, r.point_no, r.model, s.swept, r.step_time_s, r.tokens_per_s, "
     "100 * r.mfu as mfu_percent, r.memory_peak_bytes / 1073741824.0 as peak_gib from runs r "
     "left join v_swept s using (run_id) where r.status = 'ok' and (?1 is null or r.sweep_id = "
     "?1 + 0) order by r.tokens_per_s desc, r.run_id limit ?2 + 0"},
    {"pareto", "", "points that none beats in both speed and memory",
     "select p.sweep_id, p.point_no, s.swept, p.tokens_per_s, p.step_time_s, 100 * p.mfu as "
     "mfu_percent, p.peak_gib from v_pareto p left join v_swept s using (run_id) where (?1 is null "
     "or p.sweep_id = ?1 + 0) order by p.tokens_per_s desc limit ?2 + 0"},
    {"by", "MODEL KEY", "best and mean speed of a model for each value of a key",
     "select {key} as value, count(*) as points, sum(status = 'ok') as fitting, "
     "max(iif(status = 'ok', tokens_per_s, null)) as best_tokens_per_s, "
     "avg(iif(status = 'ok', tokens_per_s, null)) as mean_tokens_per_s, "
     "100 * max(iif(status = 'ok', mfu, null)) as best_mfu_percent from runs where model = ?3 and "
     "(?1 is null or sweep_id = ?1 + 0) group by {key} order by {key} limit ?2 + 0"},
    {"rejected", "", "why points have no speed, counted by code",
     "select sweep_id, status, code, points, example_point_no, example from v_rejected where (?1 "
     "is null or sweep_id = ?1 + 0) order by points desc limit ?2 + 0"},
    {"memory", "", "points closest to the memory limit, with their fullest stage",
     "select sweep_id, point_no, status, stage, layers, peak_phase, peak_gib, headroom_gib, "
     "weights_gib, gradients_gib, optimizer_gib, activations_gib, logits_gib, buffers_gib from "
     "v_memory where (?1 is null or sweep_id = ?1 + 0) order by abs(headroom_gib), run_id limit ?2 "
     "+ 0"},
    {"slowest", "", "points that took longest to simulate",
     "select r.sweep_id, r.point_no, r.status, c.wall_s, c.cpu_s, c.memory_peak_bytes / 1048576 as "
     "worker_mib, r.engine_events as events from run_costs c join runs r using (run_id) where (?1 "
     "is null or r.sweep_id = ?1 + 0) order by c.wall_s desc limit ?2 + 0"},
    {"sweeps", "", "what the file holds",
     "select sweep_id, kind, name, points_done, points_total, ok, does_not_fit, rejected, failed, "
     "best_tokens_per_s from v_sweeps where (?1 is null or sweep_id = ?1 + 0) limit ?2 + 0"},
};
#define NAMED_COUNT (sizeof named_queries / sizeof named_queries[0])

static const struct named_query *find_named(struct cli *cli, const char *name)
{
    const char *names[NAMED_COUNT];
    for (size_t i = 0; i < NAMED_COUNT; i++) {
        names[i] = named_queries[i].name;
        if (strcmp(name, names[i]) == 0) {
            return &named_queries[i];
        }
    }
    const char *nearest = text_nearest(name, names, NAMED_COUNT);
    error_add(&cli->errors, ERROR_usage, nowhere, "query",
              "there is no query \"%s\"%s%s%s; there are best, pareto, by MODEL KEY, rejected, "
              "memory, slowest, sweeps, and --sql",
              name, nearest != NULL ? ", did you mean \"" : "", nearest != NULL ? nearest : "",
              nearest != NULL ? "\"" : "");
    return NULL;
}

/* The text with a column of `runs` for {key}; NULL with an error. */
static const char *with_key(struct cli *cli, const char *sql, const char *key)
{
    const char *column = store_column_of(key, cli->arena);
    if (column == NULL) {
        const char *nearest = store_column_nearest(key, cli->arena);
        error_add(&cli->errors, ERROR_unknown_key, nowhere, key,
                  "is no column of runs%s%s; `stepsim describe` lists keys, and "
                  "docs/reference/database.md columns",
                  nearest != NULL ? ", nearest is " : "", nearest != NULL ? nearest : "");
        return NULL;
    }
    static const char mark[] = "{key}";
    struct text text = {0};
    const char *at = sql;
    for (const char *next = NULL; (next = strstr(at, mark)) != NULL; at = next + sizeof mark - 1) {
        text_add(&text, "%.*s%s", (int)(next - at), at, column);
    }
    text_add(&text, "%s", at);
    const char *copy = arena_strdup(cli->arena, text_string(&text));
    text_free(&text);
    return copy;
}

/* The SQL that the arguments ask for, with ?3; NULL with an error. */
static const char *choose_sql(struct cli *cli, const struct query_values *values,
                              const struct arguments *arguments, const char **model)
{
    if (values->sql != NULL) {
        if (arguments->count > 1) {
            error_add(&cli->errors, ERROR_usage, nowhere, "--sql",
                      "a query has a name or a text, not both");
            return NULL;
        }
        return values->sql;
    }
    const char *name = arguments->count > 1 ? arguments->items[1] : "sweeps";
    const struct named_query *query = find_named(cli, name);
    if (query == NULL) {
        return NULL;
    }
    const bool by = query->arguments[0] != '\0';
    if (arguments->count > 2 && !by) {
        error_add(&cli->errors, ERROR_usage, nowhere, name, "takes no arguments");
        return NULL;
    }
    if (!by) {
        return query->sql;
    }
    if (arguments->count != 4) {
        error_add(&cli->errors, ERROR_usage, nowhere, name,
                  "needs a model and a key: stepsim query DB by pangu_ultra_moe_718b parallel.tp");
        return NULL;
    }
    *model = arguments->items[2];
    return with_key(cli, query->sql, arguments->items[3]);
}

static enum row_format format_of(const char *word)
{
    for (unsigned i = 0; word != NULL && format_words[i] != NULL; i++) {
        if (strcmp(word, format_words[i]) == 0) {
            return (enum row_format)i;
        }
    }
    return ROWS_TABLE;
}

static int run(struct cli *cli, const void *raw, const struct arguments *arguments)
{
    const struct query_values *values = raw;
    const char *model = NULL;
    const char *sql = choose_sql(cli, values, arguments, &model);
    if (sql == NULL) {
        return report_errors(cli);
    }
    struct store *store = store_open(arguments->items[0], STORE_READ, cli->arena, &cli->errors);
    if (store == NULL) {
        return report_errors(cli);
    }
    const char *sweep = values->sweep.given ? arena_printf(cli->arena, "%llu",
                                                           (unsigned long long)values->sweep.value)
                                            : NULL;
    const unsigned long long limit = values->limit.given ? values->limit.value : 20;
    const char *bound[] = {sweep, arena_printf(cli->arena, "%llu", limit), model};
    const uint32_t bound_count = values->sql != NULL ? 0 : 3;
    struct store_query *query = store_query_open(store, sql, bound, bound_count, &cli->errors);
    if (query != NULL) {
        rows_write(cli, query, format_of(values->format));
    }
    store_close(store, &cli->errors);
    return cli->errors.count > 0 ? report_errors(cli) : EXIT_DONE;
}

const struct command command_query = {
    .name = "query",
    .group = "Explore",
    .summary = "questions to a results database",
    .usage = "DB [NAME]",
    .about = "Prints the rows of a query. By name: best, pareto, by MODEL KEY, rejected, memory,\n"
             "slowest, sweeps (if nothing is asked). With --sql: any SELECT. The file cannot be\n"
             "changed this way.",
    .examples = "stepsim query results.db best --limit 5\n"
                "stepsim query results.db by pangu_ultra_moe_718b model.layers\n"
                "stepsim query results.db --sql \"select * from v_runs\" --format csv",
    .options = option_rows,
    .values_size = sizeof(struct query_values),
    .arguments_min = 1,
    .arguments_max = 4,
    .run = run,
};
