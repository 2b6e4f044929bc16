/*
 * range_print.c - the range of a prediction for people.
 *
 * A range costs two simulations per uncertain input. It is found unasked only where these
 * are few events: a count, not a clock, so that what is printed does not depend on the machine.
 */
#include "range_print.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

#include "stepsim/text.h"

/* About a second and a half of one processor. */
#define EVENTS_UNASKED 12e6

#define NAMED_INPUTS 3

struct range_answer range_find(struct cli *cli, const struct report *report, enum range_wish wish,
                               uint32_t jobs)
{
    struct range_answer answer = {0};
    const uint32_t runs = wish == RANGE_NEVER ? 0 : range_runs(report->scenario, cli->arena);
    if (runs == 0 && wish != RANGE_ALWAYS)
        return answer;
    if (wish == RANGE_IF_CHEAP && (double)report->events * runs > EVENTS_UNASKED) {
        answer.runs_too_many = runs;
        return answer;
    }
    const struct range_ask ask = {.point = report, .jobs = jobs};
    answer.range = range_run(&ask, cli->arena);
    answer.scored = range_model_error(report->scenario, cli->config_dir, &answer.error, cli->arena);
    return answer;
}

/* "host_eager", "alltoall_efficiency of level cluster". */
static const char *short_name(struct cli *cli, const char *key)
{
    static const char device[] = "cluster.device.";
    static const char levels[] = "cluster.levels.";
    if (strncmp(key, device, sizeof device - 1) == 0)
        return key + sizeof device - 1;
    if (strncmp(key, levels, sizeof levels - 1) != 0)
        return strchr(key, '.') + 1;
    const char *level = key + sizeof levels - 1;
    const char *name = strrchr(level, '.');
    return arena_printf(cli->arena, "%s of level %.*s", name + 1, (int)(name - level), level);
}

/* "+3.1 %", "0 %" */
static const char *change_text(struct cli *cli, double value, double point)
{
    const double change = 100.0 * (value / point - 1.0);
    return fabs(change) < 0.05 ? "0 %" : arena_printf(cli->arena, "%+.1f %%", change);
}

/* The inputs that move the step most, in words. */
static const char *largest_inputs(struct cli *cli, const struct report *report,
                                  const struct range *range)
{
    struct text text = {0};
    for (uint32_t i = 0; i < range->input_count && i < NAMED_INPUTS; i++) {
        const struct range_input *input = &range->inputs[i];
        text_add(&text, "%s%s %s to %s (%s, %s)", i > 0 ? ", " : "", short_name(cli, input->key),
                 fact_text(cli, input->low, input->unit), fact_text(cli, input->high, input->unit),
                 change_text(cli, input->step_time_s.low, report->step_time_s),
                 change_text(cli, input->step_time_s.high, report->step_time_s));
    }
    if (range->input_count > NAMED_INPUTS)
        text_add(&text, " and %u more below", range->input_count - NAMED_INPUTS);
    const char *words = arena_strdup(cli->arena, text_string(&text));
    text_free(&text);
    return words;
}

static const char *range_words(struct cli *cli, const struct report *report,
                               const struct range *range)
{
    if (range->input_count == 0)
        return arena_printf(cli->arena,
                            "None of the %u assumed inputs moves the step by more than %.1f %%.",
                            range->tried, 100.0 * RANGE_MATTERS);
    return arena_printf(
        cli->arena, "Range %s to %s per step, MFU %.1f to %.1f %%, %s to %s tokens/s, if %s: %s.",
        text_duration(cli->arena, range->step_time_s.low),
        text_duration(cli->arena, range->step_time_s.high), range->mfu.low * 100.0,
        range->mfu.high * 100.0, count_text(cli, range->tokens_per_s.low),
        count_text(cli, range->tokens_per_s.high), "assumed inputs are off",
        largest_inputs(cli, report, range));
}

static void print_line(struct cli *cli, const char *text)
{
    printf("  ");
    print_wrapped(stdout, (struct wrap){cli->width, 2, 2}, text);
}

void range_print_headline(struct cli *cli, const struct report *report,
                          const struct range_answer *answer)
{
    if (answer->runs_too_many > 0)
        print_line(cli, arena_printf(cli->arena,
                                     "The range if assumed inputs are off takes %u simulations "
                                     "more: --range.",
                                     answer->runs_too_many));
    if (answer->range == NULL || answer->range->tried == 0)
        return;
    print_line(cli, range_words(cli, report, answer->range));
    if (answer->scored)
        print_line(cli, arena_printf(cli->arena,
                                     "Apart from that, predictions for %s were off by %.0f %% on "
                                     "published runs (mean of %u runs in %u studies).",
                                     answer->error.group, 100.0 * expm1(answer->error.mean_abs_log),
                                     answer->error.rows, answer->error.families));
}

static const char *fit_change(const struct report *report, const struct range_input *input)
{
    if (input->fits_low == report->fits && input->fits_high == report->fits)
        return "";
    if (input->fits_low != report->fits && input->fits_high != report->fits)
        return report->fits ? "fits at neither end" : "fits at both ends";
    return input->fits_low ? "fits at low" : "fits at high";
}

void range_print_inputs(struct cli *cli, const struct report *report,
                        const struct range_answer *answer)
{
    const struct range *range = answer->range;
    if (range == NULL || range->input_count == 0)
        return;
    printf("\n%sAssumed inputs that move the answer by more than %.1f %%%s\n",
           paint(cli, PAINT_BOLD), 100.0 * RANGE_MATTERS, paint(cli, PAINT_NONE));
    struct table *table = table_create(cli);
    table_column(table, "INPUT", TABLE_LEFT);
    table_column(table, "VALUE", TABLE_RIGHT);
    table_column(table, "LOW", TABLE_RIGHT);
    table_column(table, "HIGH", TABLE_RIGHT);
    table_column(table, "STEP AT LOW", TABLE_RIGHT);
    table_column(table, "STEP AT HIGH", TABLE_RIGHT);
    table_column(table, "", TABLE_LEFT);
    for (uint32_t i = 0; i < range->input_count; i++) {
        const struct range_input *input = &range->inputs[i];
        table_row(table);
        table_cell(table, "%s", input->key);
        table_cell(table, "%s", fact_text(cli, input->value, input->unit));
        table_cell(table, "%s", fact_text(cli, input->low, input->unit));
        table_cell(table, "%s", fact_text(cli, input->high, input->unit));
        table_cell(table, "%s", change_text(cli, input->step_time_s.low, report->step_time_s));
        table_cell(table, "%s", change_text(cli, input->step_time_s.high, report->step_time_s));
        table_cell(table, "%s%s", input->refused != NULL ? "one end refused: " : "",
                   input->refused != NULL ? input->refused : fit_change(report, input));
    }
    table_print(table, 2);
    print_line(cli, arena_printf(cli->arena,
                                 "Each input alone, all others held; together as independent "
                                 "ones. Peak memory %s to %s, limit %s.",
                                 text_gib(cli->arena, range->peak_bytes.low),
                                 text_gib(cli->arena, range->peak_bytes.high),
                                 text_gib(cli->arena, report->limit_bytes)));
}

struct cJSON *range_answer_json(const struct range_answer *answer)
{
    cJSON *object = range_json(answer->range);
    if (!answer->scored) {
        cJSON_AddNullToObject(object, "model_error");
        return object;
    }
    cJSON *error = cJSON_AddObjectToObject(object, "model_error");
    cJSON_AddStringToObject(error, "group", answer->error.group);
    cJSON_AddNumberToObject(error, "mean_abs_log", answer->error.mean_abs_log);
    cJSON_AddNumberToObject(error, "runs", answer->error.rows);
    cJSON_AddNumberToObject(error, "studies", answer->error.families);
    cJSON_AddStringToObject(error, "source", answer->error.source);
    return object;
}
