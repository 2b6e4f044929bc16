/*
 * cmd_explain.c - where the step goes and why: ops with FLOPs, bytes, time and bound, and
 * for one op the formula with every input, its source and its grade.
 */
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "advice_print.h"
#include "cli_internal.h"
#include "explain_ops.h"
#include "simulate_print.h"
#include "stepsim/text.h"

#define LARGEST_OPS 20

struct explain_values {
    struct option_list set;
    const char *op, *block, *pass;
    bool json, recompute;
};

#define AT(field) offsetof(struct explain_values, field)

static const char *const block_words[] = {"embedding", "dense", "moe", "mtp", "head", NULL};
static const char *const pass_words[] = {"forward", "recompute", "backward", NULL};

static const struct option_row option_rows[] = {
    {.name = "op",
     .kind = OPTION_TEXT,
     .argument = "NAME",
     .help = "one op: its formula, every input with unit, source and grade, and the result",
     .offset = AT(op),
     .group = "What"},
    {.name = "block",
     .kind = OPTION_WORD,
     .argument = "KIND",
     .help = "only this kind of block: embedding, dense, moe, mtp or head",
     .offset = AT(block),
     .words = block_words,
     .group = "What"},
    {.name = "pass",
     .kind = OPTION_WORD,
     .argument = "PASS",
     .help = "only this pass: forward, recompute or backward",
     .offset = AT(pass),
     .words = pass_words,
     .group = "What"},
    {.name = "recompute",
     .kind = OPTION_FLAG,
     .help = "what each recompute module saves of the peak and adds to the step",
     .offset = AT(recompute),
     .group = "What"},
    {.name = "set",
     .kind = OPTION_LIST,
     .argument = "KEY=VALUE",
     .help = "change a key of the scenario, its model or its cluster; repeatable",
     .offset = AT(set),
     .group = "Scenario"},
    {.name = "json",
     .kind = OPTION_FLAG,
     .help = "one JSON object instead of tables",
     .offset = AT(json),
     .group = "Output"},
    {.name = NULL},
};

static const struct location nowhere = {NULL, 0, 0};

/* ---- One op in detail ---- */

static const char *grade_of(const struct origin *origin)
{
    return origin != NULL && origin->grade != GRADE_NONE ? fact_grade_text(origin->grade) : "";
}

static const char *source_of(const struct cost_term *term, const struct origin *origin)
{
    if (origin == NULL) {
        return term->origin_key == NULL ? "follows from model and layout" : "";
    }
    return origin->source != NULL ? origin->source : "";
}

static const struct origin *term_origin(const struct run *run, const struct cost_term *term)
{
    return term->origin_key != NULL ? scenario_origin(run->scenario, term->origin_key) : NULL;
}

static cJSON *op_json(const struct run *run, const struct explain_op *item, bool with_inputs)
{
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "block", item->block_name);
    cJSON_AddStringToObject(json, "pass", explain_pass_name(item->pass));
    cJSON_AddStringToObject(json, "op", item->op->name);
    cJSON_AddStringToObject(json, "stream", stream_name(item->op->stream));
    cJSON_AddNumberToObject(json, "flop", item->cost.flop);
    cJSON_AddNumberToObject(json, "bytes", item->cost.bytes);
    cJSON_AddNumberToObject(json, "time_s", item->cost.time_s);
    cJSON_AddStringToObject(json, "bound", item->cost.bound);
    cJSON_AddNumberToObject(json, "calls", item->calls);
    cJSON_AddBoolToObject(json, "fused", item->op->fused_away);
    if (!with_inputs) {
        return json;
    }
    cJSON_AddStringToObject(json, "model", item->cost.model);
    cJSON_AddStringToObject(json, "formula", item->cost.formula);
    cJSON_AddNumberToObject(json, "scale", item->cost.scale);
    cJSON *inputs = cJSON_AddArrayToObject(json, "inputs");
    for (uint32_t i = 0; i < item->cost.term_count; i++) {
        const struct cost_term *term = &item->cost.terms[i];
        const struct origin *origin = term_origin(run, term);
        cJSON *row = cJSON_CreateObject();
        cJSON_AddItemToArray(inputs, row);
        cJSON_AddStringToObject(row, "name", term->name);
        cJSON_AddNumberToObject(row, "value", term->value);
        cJSON_AddStringToObject(row, "unit", term->unit);
        cJSON_AddStringToObject(row, "key", term->origin_key != NULL ? term->origin_key : "");
        cJSON_AddStringToObject(row, "grade", grade_of(origin));
        if (origin != NULL && origin->bounded) {
            cJSON_AddNumberToObject(row, "low", origin->low);
            cJSON_AddNumberToObject(row, "high", origin->high);
        }
        cJSON_AddStringToObject(row, "source", source_of(term, origin));
    }
    return json;
}

static void print_inputs(struct cli *cli, const struct run *run, const struct op_cost *cost)
{
    struct table *table = table_create(cli);
    table_column(table, "INPUT", TABLE_LEFT);
    table_column(table, "VALUE", TABLE_RIGHT);
    table_column(table, "UNIT", TABLE_LEFT);
    table_column(table, "GRADE", TABLE_LEFT);
    table_column(table, "INTERVAL", TABLE_LEFT);
    table_column(table, "FROM", TABLE_LEFT);
    for (uint32_t i = 0; i < cost->term_count; i++) {
        const struct cost_term *term = &cost->terms[i];
        table_row(table);
        table_cell(table, "%s", term->name);
        table_cell(table, "%.6g", term->value);
        table_cell(table, "%s", term->unit);
        table_cell(table, "%s", grade_of(term_origin(run, term)));
        table_cell(table, "%s", fact_interval_text(cli, term_origin(run, term), term->unit));
        table_cell(table, "%s", term->origin_key != NULL ? term->origin_key : "model and layout");
    }
    table_print(table, 2);
    for (uint32_t i = 0; i < cost->term_count; i++) {
        const struct cost_term *term = &cost->terms[i];
        const struct origin *origin = term_origin(run, term);
        if (origin != NULL && origin->source != NULL) {
            printf("  source of %s: ", term->origin_key);
            print_wrapped(stdout,
                          (struct wrap){cli->width, 14 + (unsigned)strlen(term->origin_key), 4},
                          origin->source);
        }
    }
}

/* The same op in another kind of block costs the same and is told in one go. */
static bool same_cost(const struct explain_op *a, const struct explain_op *b)
{
    return a->pass == b->pass && strcmp(a->op->name, b->op->name) == 0 &&
           a->cost.time_s == b->cost.time_s && a->cost.flop == b->cost.flop &&
           a->cost.bytes == b->cost.bytes && a->op->fused_away == b->op->fused_away;
}

static void print_op(struct cli *cli, const struct run *run, const struct explain_ops *ops,
                     uint32_t index)
{
    const struct explain_op *item = &ops->items[index];
    const struct op_cost *cost = &item->cost;
    const char *blocks = item->block_name;
    uint32_t calls = item->calls;
    for (uint32_t i = index + 1; i < ops->count; i++) {
        if (same_cost(item, &ops->items[i])) {
            blocks = arena_printf(cli->arena, "%s, %s", blocks, ops->items[i].block_name);
            calls += ops->items[i].calls;
        }
    }
    printf("%s%s%s, %s pass of %s, %s stream%s\n", paint(cli, PAINT_BOLD), item->op->name,
           paint(cli, PAINT_NONE), explain_pass_name(item->pass), blocks,
           stream_name(item->op->stream), item->op->fused_away ? ", fused with its matmul" : "");
    printf("  model    %s\n  formula  ", cost->model);
    print_wrapped(stdout, (struct wrap){cli->width, 11, 11}, cost->formula);
    print_inputs(cli, run, cost);
    printf("  result   %s, %s, bound by %s", text_duration(cli->arena, cost->time_s),
           text_si(cli->arena, cost->bytes, "B"), cost->bound);
    if (cost->flop > 0.0) {
        printf(", %s", text_si(cli->arena, cost->flop, "FLOP"));
        if (cost->time_s > 0.0) {
            printf(" at %s", text_si(cli->arena, cost->flop / cost->time_s, "FLOP/s"));
        }
    }
    if (cost->scale > 1.0) {
        printf(", with a factor of %.4f for the size of the cluster", cost->scale);
    }
    printf("\n  runs %u times a step on stage %u\n", calls, run->report->time_share_stage);
}

static void print_detail(struct cli *cli, const struct run *run, const struct explain_ops *ops)
{
    for (uint32_t i = 0; i < ops->count; i++) {
        bool told = false;
        for (uint32_t k = 0; k < i; k++) {
            told = told || same_cost(&ops->items[k], &ops->items[i]);
        }
        if (!told) {
            printf("%s", i > 0 ? "\n" : "");
            print_op(cli, run, ops, i);
        }
    }
}

/* ---- All ops ---- */

static double step_seconds(const struct explain_op *item)
{
    return item->op->fused_away ? 0.0 : item->cost.time_s * (double)item->calls;
}

/* Longest first; ties in the order of the lists, so that the order is the same everywhere. */
static int compare_seconds(const void *a, const void *b)
{
    const struct explain_op *const *left = a;
    const struct explain_op *const *right = b;
    const double left_s = step_seconds(*left);
    const double right_s = step_seconds(*right);
    if (left_s != right_s) {
        return left_s > right_s ? -1 : 1;
    }
    return *left < *right ? -1 : *left > *right;
}

static void print_largest(struct cli *cli, const struct run *run, const struct explain_ops *ops)
{
    const struct explain_op **sorted =
        ARENA_ARRAY(cli->arena, ops->count, const struct explain_op *);
    for (uint32_t i = 0; i < ops->count; i++) {
        sorted[i] = &ops->items[i];
    }
    qsort(sorted, ops->count, sizeof sorted[0], compare_seconds);
    printf("\n%sLongest ops of the step on stage %u%s (communication may be hidden)\n",
           paint(cli, PAINT_BOLD), ops->stage, paint(cli, PAINT_NONE));
    struct table *table = table_create(cli);
    table_column(table, "OP", TABLE_LEFT);
    table_column(table, "BLOCK", TABLE_LEFT);
    table_column(table, "PASS", TABLE_LEFT);
    table_column(table, "CALLS", TABLE_RIGHT);
    table_column(table, "EACH", TABLE_RIGHT);
    table_column(table, "SUM", TABLE_RIGHT);
    table_column(table, "OF STEP", TABLE_RIGHT);
    table_column(table, "BOUND", TABLE_LEFT);
    for (uint32_t i = 0; i < ops->count && i < LARGEST_OPS && step_seconds(sorted[i]) > 0.0; i++) {
        const double seconds = step_seconds(sorted[i]);
        table_row(table);
        table_cell(table, "%s", sorted[i]->op->name);
        table_cell(table, "%s", sorted[i]->block_name);
        table_cell(table, "%s", explain_pass_name(sorted[i]->pass));
        table_cell(table, "%u", sorted[i]->calls);
        table_cell(table, "%s", text_duration(cli->arena, sorted[i]->cost.time_s));
        table_cell(table, "%s", text_duration(cli->arena, seconds));
        table_cell(table, "%.2f %%", seconds / run->report->step_time_s * 100.0);
        table_cell(table, "%s", sorted[i]->cost.bound);
    }
    table_print(table, 2);
}

/* The ops from `first` that belong to the same block and pass; returns the next index. */
static uint32_t print_list(struct cli *cli, const struct explain_ops *ops, uint32_t first)
{
    const struct explain_op *head = &ops->items[first];
    double compute_s = 0.0;
    double comm_s = 0.0;
    printf("\n%s%s, %s%s\n", paint(cli, PAINT_BOLD), head->block_name,
           explain_pass_name(head->pass), paint(cli, PAINT_NONE));
    struct table *table = table_create(cli);
    table_column(table, "OP", TABLE_LEFT);
    table_column(table, "STREAM", TABLE_LEFT);
    table_column(table, "FLOP", TABLE_RIGHT);
    table_column(table, "BYTES", TABLE_RIGHT);
    table_column(table, "TIME", TABLE_RIGHT);
    table_column(table, "BOUND", TABLE_LEFT);
    table_column(table, "MODEL", TABLE_LEFT);
    uint32_t i = first;
    for (; i < ops->count && ops->items[i].block == head->block && ops->items[i].pass == head->pass;
         i++) {
        const struct explain_op *item = &ops->items[i];
        const bool compute = item->op->op_class == OP_CLASS_COMPUTE;
        compute_s += compute ? item->cost.time_s : 0.0;
        comm_s += compute || item->op->fused_away ? 0.0 : item->cost.time_s;
        table_row(table);
        table_cell(table, "%s", item->op->name);
        table_cell(table, "%s", stream_name(item->op->stream));
        table_cell(table, "%s",
                   item->cost.flop > 0.0 ? text_si(cli->arena, item->cost.flop, "") : "");
        table_cell(table, "%s", text_si(cli->arena, item->cost.bytes, "B"));
        table_cell(table, "%s", text_duration(cli->arena, item->cost.time_s));
        table_cell(table, "%s", item->cost.bound);
        table_cell(table, "%s%s", item->cost.model, item->op->fused_away ? " (fused)" : "");
    }
    table_print(table, 2);
    printf("  compute %s, communication %s for one microbatch\n",
           text_duration(cli->arena, compute_s), text_duration(cli->arena, comm_s));
    return i;
}

static int print_all(struct cli *cli, const struct run *run, const struct explain_ops *ops,
                     bool filtered)
{
    if (!filtered) {
        simulate_print_time(cli, run->report);
        print_largest(cli, run, ops);
    }
    for (uint32_t i = 0; i < ops->count;) {
        i = print_list(cli, ops, i);
    }
    return EXIT_DONE;
}

static int print_all_json(const struct run *run, const struct explain_ops *ops, bool with_inputs)
{
    cJSON *json = cJSON_CreateObject();
    cJSON_AddNumberToObject(json, "step_time_s", run->report->step_time_s);
    cJSON_AddNumberToObject(json, "stage", ops->stage);
    cJSON_AddStringToObject(json, "verdict", run->report->verdict);
    cJSON *array = cJSON_AddArrayToObject(json, "ops");
    for (uint32_t i = 0; i < ops->count; i++) {
        cJSON_AddItemToArray(array, op_json(run, &ops->items[i], with_inputs));
    }
    return print_json(json);
}

/* No op passed the filter: names the nearest one. */
static int nothing_found(struct cli *cli, const struct run *run,
                         const struct explain_values *values)
{
    const struct explain_filter everything = {0};
    const struct explain_ops all = explain_ops_build(run, &everything, cli->arena);
    const char **names = ARENA_ARRAY(cli->arena, all.count, const char *);
    for (uint32_t i = 0; i < all.count; i++) {
        names[i] = all.items[i].op->name;
    }
    const char *word = values->op != NULL ? values->op : "";
    const char *nearest = text_nearest(word, names, all.count);
    error_add(&cli->errors, ERROR_unknown_name, nowhere, "--op",
              "no op \"%s\" in the blocks and passes asked for%s%s; without --op all are listed",
              word, nearest != NULL ? ", did you mean " : "", nearest != NULL ? nearest : "");
    return report_errors(cli);
}

static int run(struct cli *cli, const void *raw, const struct arguments *arguments)
{
    const struct explain_values *values = raw;
    const struct scenario_ask ask = {
        .path = arguments->items[0],
        .set = values->set,
    };
    const struct run_options options = {.steps = 1};
    const struct scenario *scenario = load_scenario(cli, &ask);
    struct run result;
    if (scenario == NULL || !run_simulate(&result, scenario, &options, cli->arena, &cli->errors)) {
        return report_errors(cli);
    }
    if (values->recompute) {
        const struct recompute_menu menu = advice_recompute(scenario, cli->arena);
        return advice_print_recompute(cli, &menu, values->json);
    }
    const struct explain_filter filter = {values->op, values->block, values->pass};
    const struct explain_ops ops = explain_ops_build(&result, &filter, cli->arena);
    if (ops.count == 0) {
        return nothing_found(cli, &result, values);
    }
    if (values->json) {
        return print_all_json(&result, &ops, values->op != NULL);
    }
    if (values->op == NULL) {
        return print_all(cli, &result, &ops, values->block != NULL || values->pass != NULL);
    }
    print_detail(cli, &result, &ops);
    return EXIT_DONE;
}

const struct command command_explain = {
    .name = "explain",
    .group = "Predict",
    .summary = "where the step goes: ops with FLOPs, bytes, time and what bounds them",
    .usage = "SIM.yaml",
    .about =
        "Prints what a step is made of: the longest ops of the busiest stage, then the ops of\n"
        "every kind of block with FLOPs, bytes, time and what bounds them. With --op it shows\n"
        "the formula of one op and every number put into it, with source and grade.",
    .examples = "stepsim explain sims/pangu_ultra_moe_6k/sim.yaml\n"
                "stepsim explain sims/pangu_ultra_moe_6k/sim.yaml --block moe --pass forward\n"
                "stepsim explain sims/pangu_ultra_moe_6k/sim.yaml --op dispatch\n"
                "stepsim explain sims/pangu_ultra_moe_6k/sim.yaml --recompute",
    .options = option_rows,
    .values_size = sizeof(struct explain_values),
    .arguments_min = 1,
    .arguments_max = 1,
    .run = run,
};
