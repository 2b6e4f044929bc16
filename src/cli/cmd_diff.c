/* cmd_diff.c - two answers, term by term. */
#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

#include "cli_internal.h"
#include "stepsim/compare.h"
#include "stepsim/metric.h"
#include "stepsim/run.h"
#include "stepsim/text.h"

struct diff_values {
    struct option_list set;
    bool json;
};

#define AT(field)   offsetof(struct diff_values, field)
#define BAR_COLUMNS 30

static const struct option_row option_rows[] = {
    {.name = "set",
     .kind = OPTION_LIST,
     .argument = "KEY=VALUE",
     .help = "change a key of B; with one file only, B is that file with these changes; repeatable",
     .offset = AT(set),
     .group = "Scenario"},
    {.name = "json",
     .kind = OPTION_FLAG,
     .help = "one JSON object instead of tables",
     .offset = AT(json),
     .group = "Output"},
    {.name = NULL},
};

static bool simulate_side(struct cli *cli, const char *path, const struct option_list *set,
                          struct answer *answer)
{
    struct scenario_ask ask = {.path = path};
    if (set != NULL) {
        ask.set = *set;
    }
    const struct run_options options = {.steps = 1};
    const struct scenario *scenario = load_scenario(cli, &ask);
    struct run run;
    if (scenario == NULL || !run_simulate(&run, scenario, &options, cli->arena, &cli->errors)) {
        return false;
    }
    *answer = answer_of_report(path, run.report, cli->arena);
    return true;
}

/* ---- For people ---- */

static void print_keys(struct cli *cli, const struct answer *a, const struct answer *b)
{
    const struct key_differences keys = compare_keys(a, b, cli->arena);
    if (keys.count == 0) {
        printf("\nThe scenarios are the same.\n");
        return;
    }
    struct table *table = table_create(cli);
    table_column(table, "KEY", TABLE_LEFT);
    table_column(table, "A", TABLE_LEFT);
    table_column(table, "B", TABLE_LEFT);
    for (uint32_t i = 0; i < keys.count; i++) {
        table_row(table);
        table_cell(table, "%s", keys.items[i].key);
        table_cell(table, "%s", keys.items[i].a != NULL ? keys.items[i].a : "-");
        table_cell(table, "%s", keys.items[i].b != NULL ? keys.items[i].b : "-");
    }
    printf("\n%sKeys that differ%s (quantities in SI units)\n", paint(cli, PAINT_BOLD),
           paint(cli, PAINT_NONE));
    table_print(table, 2);
}

static void print_metrics(struct cli *cli, const struct answer *a, const struct answer *b)
{
    static const char *const shown[] = {"step_time_s", "tokens_per_s", "mfu",
                                        "hfu",         "bubble_ratio", "memory.peak_bytes"};
    struct table *table = table_create(cli);
    table_column(table, "METRIC", TABLE_LEFT);
    table_column(table, "A", TABLE_RIGHT);
    table_column(table, "B", TABLE_RIGHT);
    table_column(table, "CHANGE", TABLE_RIGHT);
    for (size_t i = 0; i < sizeof shown / sizeof shown[0]; i++) {
        const struct metric *metric = metric_find(shown[i]);
        ASSERT(metric != NULL);
        const double before = a->metrics[metric - metric_table];
        const double after = b->metrics[metric - metric_table];
        table_row(table);
        table_cell(table, "%s", metric->name);
        table_cell(table, "%.5g", before);
        table_cell(table, "%.5g", after);
        table_cell(table, "%s",
                   before != 0.0 ? arena_printf(cli->arena, "%+.2f %%",
                                                (after - before) / fabs(before) * 100.0)
                                 : "");
    }
    printf("\n");
    table_print(table, 2);
}

/* A row of a waterfall: what it was, what it is, the change, and the change as a bar. */
struct fall {
    const char *name;
    double a, b;
};

static const char *fall_bar(const struct cli *cli, double change, double largest)
{
    const double share = largest > 0.0 ? fabs(change) / largest : 0.0;
    return change == 0.0 ? ""
                         : arena_printf(cli->arena, "%c%s", change > 0.0 ? '+' : '-',
                                        bar_text(cli, share, BAR_COLUMNS));
}

/* Digits of picoseconds and bytes, so that the column can be added up by hand. */
static void print_fall(struct cli *cli, const struct fall *rows, uint32_t count, double unit)
{
    struct table *table = table_create(cli);
    table_column(table, "TERM", TABLE_LEFT);
    table_column(table, "A", TABLE_RIGHT);
    table_column(table, "B", TABLE_RIGHT);
    table_column(table, "CHANGE", TABLE_RIGHT);
    table_column(table, "", TABLE_LEFT);
    double largest = 0.0;
    struct fall sum = {"sum", 0.0, 0.0};
    for (uint32_t i = 0; i < count; i++) {
        largest = fmax(largest, fabs(rows[i].b - rows[i].a));
        sum.a += rows[i].a;
        sum.b += rows[i].b;
    }
    const int digits = unit > 1e10 ? 12 : 0;
    for (uint32_t i = 0; i <= count; i++) {
        const struct fall *row = i < count ? &rows[i] : &sum;
        if (i < count && row->a == 0.0 && row->b == 0.0) {
            continue;
        }
        table_row(table);
        table_cell(table, "%s", row->name);
        table_cell(table, "%.*f", digits, row->a / unit);
        table_cell(table, "%.*f", digits, row->b / unit);
        table_cell(table, "%+.*f", digits, (row->b - row->a) / unit);
        table_cell(table, "%s", i < count ? fall_bar(cli, row->b - row->a, largest) : "");
    }
    table_print(table, 2);
}

static void print_time(struct cli *cli, const struct answer_terms *a, const struct answer_terms *b)
{
    struct fall rows[CAUSE_COUNT];
    for (unsigned c = 0; c < CAUSE_COUNT; c++) {
        rows[c] = (struct fall){time_cause_name((enum time_cause)c), (double)a->time_ps[c],
                                (double)b->time_ps[c]};
    }
    printf("\n%sWhere the step goes%s, s (the busiest stage: %u in A, %u in B)\n",
           paint(cli, PAINT_BOLD), paint(cli, PAINT_NONE), a->time_stage, b->time_stage);
    print_fall(cli, rows, CAUSE_COUNT, SIM_TIME_PER_S);
}

static void print_memory(struct cli *cli, const struct answer_terms *a,
                         const struct answer_terms *b)
{
    struct fall rows[MEMORY_TERM_COUNT];
    for (unsigned t = 0; t < MEMORY_TERM_COUNT; t++) {
        rows[t] = (struct fall){memory_term_name((enum memory_term)t), a->memory_bytes[t],
                                b->memory_bytes[t]};
    }
    printf("\n%sPeak memory%s, bytes (the fullest stage: %u in A, %u in B)\n",
           paint(cli, PAINT_BOLD), paint(cli, PAINT_NONE), a->memory_stage, b->memory_stage);
    print_fall(cli, rows, MEMORY_TERM_COUNT, 1.0);
}

static int run(struct cli *cli, const void *raw, const struct arguments *arguments)
{
    const struct diff_values *values = raw;
    if (arguments->count == 1 && values->set.count == 0) {
        error_add(&cli->errors, ERROR_usage, (struct location){0}, "diff",
                  "needs a second scenario, or --set KEY=VALUE for what is different in B");
        return report_errors(cli);
    }
    const char *second = arguments->items[arguments->count - 1];
    struct answer a;
    struct answer b;
    const bool has_a = simulate_side(cli, arguments->items[0], NULL, &a);
    const bool has_b = simulate_side(cli, second, &values->set, &b);
    if (has_a && has_b && values->json) {
        print_json(compare_json(&a, &b, cli->arena));
    } else if (has_a && has_b) {
        printf("A  %s\nB  %s%s\n", a.name, b.name,
               values->set.count > 0 ? ", with what is set" : "");
        print_keys(cli, &a, &b);
        print_metrics(cli, &a, &b);
        print_time(cli, &a.terms, &b.terms);
        print_memory(cli, &a.terms, &b.terms);
    }
    if (has_a) {
        answer_free(&a);
    }
    if (has_b) {
        answer_free(&b);
    }
    return has_a && has_b ? EXIT_DONE : report_errors(cli);
}

const struct command command_diff = {
    .name = "diff",
    .group = "Predict",
    .summary = "two scenarios side by side: which keys differ, where time and memory went",
    .usage = "A [B]",
    .about =
        "Simulates two scenarios and prints the keys that differ, the main metrics, and the terms\n"
        "of time and memory as a waterfall: the changes of the terms sum exactly to the change of\n"
        "the whole.",
    .examples = "stepsim diff sims/pangu_ultra_moe_4k_baseline/sim.yaml "
                "sims/pangu_ultra_moe_6k/sim.yaml\n"
                "stepsim diff sims/pangu_ultra_moe_6k/sim.yaml --set moe.exchange=flat",
    .options = option_rows,
    .values_size = sizeof(struct diff_values),
    .arguments_min = 1,
    .arguments_max = 2,
    .run = run,
};
