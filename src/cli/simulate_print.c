/*
 * simulate_print.c - the answer of `simulate` for people: headline, where the step goes,
 * communication, memory by stage, verdict, and what the numbers rest on.
 *
 * Every table says its unit in the heading. Zero rows of the breakdown are left out.
 */
#include "simulate_print.h"

#include <string.h>

#include "stepsim/advice.h"
#include "stepsim/schema.h"
#include "stepsim/text.h"

#define BAR_COLUMNS 40u
#define GIB(bytes)  ((bytes) / GIB_BYTES)

static void print_heading(const struct cli *cli, const char *text)
{
    printf("\n%s%s%s\n", paint(cli, PAINT_BOLD), text, paint(cli, PAINT_NONE));
}

static void print_headline(struct cli *cli, const struct report *report)
{
    const struct scenario *scenario = report->scenario;
    if (scenario->title != NULL) {
        printf("%s\n", scenario->title);
    }
    printf("%s%s%s on %u x %s (%s)\n", paint(cli, PAINT_BOLD),
           scenario->model.title != NULL ? scenario->model.title : scenario->model.name,
           paint(cli, PAINT_NONE), report->layout->world,
           report->cluster->device->title != NULL ? report->cluster->device->title
                                                  : report->cluster->device->name,
           scenario->cluster.name);
    printf("\n  %sMFU %.1f %%%s   %s tokens/s   %.1f tokens/s per device   %s per step",
           paint(cli, PAINT_BOLD), report->mfu * 100.0, paint(cli, PAINT_NONE),
           count_text(cli, report->tokens_per_s), report->tokens_per_s_per_device,
           text_duration(cli->arena, report->step_time_s));
    if (report->days > 0.0) {
        printf("   %.1f days for %s tokens", report->days,
               count_text(cli, scenario->training.tokens));
    }
    printf("\n");
    if (report->anchor_ratio > 0.0) {
        printf("  anchored to the measured run (x %.3f): MFU %.1f %%   %s tokens/s   %s per step\n",
               report->anchor_ratio, report->mfu / report->anchor_ratio * 100.0,
               count_text(cli, report->tokens_per_s / report->anchor_ratio),
               text_duration(cli->arena, report->step_time_s * report->anchor_ratio));
    }
}

static void print_convention(struct cli *cli, const struct report *report)
{
    const struct model *model = report->model;
    const char *text = arena_printf(
        cli->arena,
        "MFU counts %s per trained token (attention %s, MTP %s, router %s) over a peak of %s per "
        "device. HFU, with recompute, is %.1f %%. %s parameters, %s active per "
        "token, "
        "without input embedding and MTP.",
        text_si(cli->arena, report->model_flop_per_token, "FLOP"),
        report->convention.attention == ATTENTION_COUNT_CAUSAL ? "causal" : "full",
        report->convention.mtp ? "counted with its head" : "not counted",
        report->convention.router ? "counted" : "not counted",
        text_si(cli->arena, report->peak_flop_per_s, "FLOP/s"), report->hfu * 100.0,
        count_text(cli, model->params_total), count_text(cli, model->params_active));
    printf("  ");
    print_wrapped(stdout, (struct wrap){cli->width, 2, 2}, text);
}

static void print_layout(struct cli *cli, const struct run *run)
{
    const struct layout *layout = run->layout;
    printf("  tp %u, pp %u, vpp %u, cp %u, dp %u", layout->tp, layout->pp, layout->vpp, layout->cp,
           layout->dp);
    if (layout->experts_per_rank > 0) {
        printf("; experts: ep %u, etp %u, edp %u, %u per rank", layout->ep, layout->etp,
               layout->edp, layout->experts_per_rank);
    }
    printf("\n  %u microbatches of %u x %u tokens per replica, schedule %s\n", layout->microbatches,
           layout->micro_batch_size, layout->seq_len, run->schedule->name);
    printf("  layers per stage %s\n", layout->split_text);
    printf("  chunks ");
    print_wrapped(stdout, (struct wrap){cli->width, 9, 9}, layout->chunk_text);
}

void simulate_print_time(struct cli *cli, const struct report *report)
{
    print_heading(cli, arena_printf(cli->arena, "Where the step goes (stage %u, the busiest)",
                                    report->time_share_stage));
    sim_time step_ps = 0;
    for (unsigned c = 0; c < CAUSE_COUNT; c++) {
        step_ps += report->time_share_ps[c];
    }
    struct table *table = table_create(cli);
    table_column(table, "CAUSE", TABLE_LEFT);
    table_column(table, "SHARE", TABLE_RIGHT);
    table_column(table, "TIME", TABLE_RIGHT);
    table_column(table, "", TABLE_LEFT);
    for (unsigned c = 0; c < CAUSE_COUNT; c++) {
        if (report->time_share_ps[c] == 0) {
            continue;
        }
        const double share = (double)report->time_share_ps[c] / (double)step_ps;
        table_row(table);
        table_cell(table, "%s", time_cause_name((enum time_cause)c));
        table_cell(table, "%.2f %%", share * 100.0);
        table_cell(table, "%s",
                   text_duration(cli->arena, sim_time_seconds(report->time_share_ps[c])));
        table_cell(table, "%s", bar_text(cli, share, BAR_COLUMNS));
    }
    table_print(table, 2);
    printf("  Compute streams of all ranks idle for %.2f %% of the step.\n",
           report->bubble_ratio * 100.0);
}

static void print_communication(struct cli *cli, const struct report *report)
{
    struct table *table = table_create(cli);
    table_column(table, "COMMUNICATION", TABLE_LEFT);
    table_column(table, "RUNS", TABLE_RIGHT);
    table_column(table, "EXPOSED", TABLE_RIGHT);
    table_column(table, "WARM-UP", TABLE_RIGHT);
    table_column(table, "STEADY", TABLE_RIGHT);
    table_column(table, "COOL-DOWN", TABLE_RIGHT);
    table_column(table, "SENT BY A DEVICE", TABLE_RIGHT);
    unsigned rows = 0;
    for (unsigned c = 0; c < CAUSE_COUNT; c++) {
        const struct comm_report *comm = &report->comm[c];
        if (comm->total_s <= 0.0) {
            continue;
        }
        table_row(table);
        table_cell(table, "%s", time_cause_name((enum time_cause)c));
        table_cell(table, "%s", text_duration(cli->arena, comm->total_s));
        table_cell(table, "%s", text_duration(cli->arena, comm->exposed_s));
        table_cell(table, "%.0f %%", comm->exposed_share[PHASE_WARMUP] * 100.0);
        table_cell(table, "%.0f %%", comm->exposed_share[PHASE_STEADY] * 100.0);
        table_cell(table, "%.0f %%", comm->exposed_share[PHASE_COOLDOWN] * 100.0);
        table_cell(table, "%s", text_gib(cli->arena, comm->bytes_per_device));
        rows++;
    }
    if (rows > 0) {
        print_heading(cli, "Communication, and how much of it is exposed");
        table_print(table, 2);
    }
}

static void print_memory(struct cli *cli, const struct report *report)
{
    static const char *const headings[] = {"STAGE",     "LAYERS",      "WEIGHTS", "GRADIENTS",
                                           "OPTIMIZER", "ACTIVATIONS", "LOGITS",  "BUFFERS",
                                           "RESERVE",   "PEAK",        "HEADROOM"};
    print_heading(cli, arena_printf(cli->arena, "Peak memory of each stage, GiB (limit %.2f)",
                                    GIB(report->limit_bytes)));
    struct table *table = table_create(cli);
    for (size_t i = 0; i < sizeof headings / sizeof headings[0]; i++) {
        table_column(table, headings[i], TABLE_RIGHT);
    }
    table_column(table, "MOMENT", TABLE_LEFT);
    for (uint32_t s = 0; s < report->stage_count; s++) {
        const struct stage_report *stage = &report->stages[s];
        const double headroom = report->limit_bytes - stage->peak_bytes;
        table_row(table);
        table_cell(table, "%u", stage->stage);
        table_cell(table, "%u", stage->layers);
        table_cell(table, "%.2f", GIB(stage->weights));
        table_cell(table, "%.2f", GIB(stage->gradients));
        table_cell(table, "%.2f", GIB(stage->optimizer));
        table_cell(table, "%.2f", GIB(stage->activations));
        table_cell(table, "%.2f", GIB(stage->logits));
        table_cell(table, "%.2f", GIB(stage->buffers));
        table_cell(table, "%.2f", GIB(stage->reserve));
        table_cell(table, "%.2f", GIB(stage->peak_bytes));
        table_cell(table, "%.2f%s", GIB(headroom), headroom < 0.0 ? " !" : "");
        table_cell(table, "%s", memory_phase_name(stage->peak_phase));
    }
    table_print(table, 2);
}

static void print_steps(struct cli *cli, const struct report *report)
{
    if (report->step_count < 2) {
        return;
    }
    print_heading(cli, "Steps");
    struct table *table = table_create(cli);
    table_column(table, "STEP", TABLE_RIGHT);
    table_column(table, "TIME", TABLE_RIGHT);
    table_column(table, "MFU", TABLE_RIGHT);
    table_column(table, "TOKENS/S", TABLE_RIGHT);
    table_column(table, "MAX/MEAN", TABLE_RIGHT);
    table_column(table, "DROPPED", TABLE_RIGHT);
    table_column(table, "MIGRATIONS", TABLE_RIGHT);
    for (uint32_t i = 0; i < report->step_count; i++) {
        table_row(table);
        table_cell(table, "%u", report->steps[i].step);
        table_cell(table, "%s", text_duration(cli->arena, report->steps[i].step_time_s));
        table_cell(table, "%.2f %%", report->steps[i].mfu * 100.0);
        table_cell(table, "%s", count_text(cli, report->steps[i].tokens_per_s));
        table_cell(table, "%.3f", report->steps[i].load_mean_max_over_mean);
        table_cell(table, "%.2f %%", report->steps[i].dropped_ratio * 100.0);
        table_cell(table, "%u", report->steps[i].migrations);
    }
    table_print(table, 2);
    printf("  Mean over the steps: %s, MFU %.2f %%. MAX/MEAN is the load of the heaviest rank, "
           "mean over layers.\n  Largest peak %s in step %u; %u of %u steps do not fit.\n",
           text_duration(cli->arena, report->mean_step_time_s), report->mean_mfu * 100.0,
           text_gib(cli->arena, report->worst_peak_bytes), report->worst_step, report->misfit_steps,
           report->step_count);
}

/* Loads of the first step, where experts are not equal. */
static void print_experts(struct cli *cli, const struct report *report)
{
    if (report->load_max_over_mean <= 1.0 && report->dropped_ratio <= 0.0 &&
        report->padded_ratio <= 0.0)
        return;
    print_heading(cli, "Expert loads");
    printf("  Heaviest rank over the mean: %.3f on average over layers, %.3f in the worst layer.\n"
           "  Perfect balance would take %s per step and %s of memory, not %s.\n",
           report->load_mean_max_over_mean, report->load_max_over_mean,
           text_duration(cli->arena, report->balanced_step_time_s),
           text_gib(cli->arena, report->balanced_peak_bytes),
           text_gib(cli->arena, report->peak_bytes));
    if (report->dropped_ratio > 0.0 || report->padded_ratio > 0.0)
        printf("  Dropped %.2f %% of the routed tokens; %.2f %% of the computed rows are "
               "padding.\n",
               report->dropped_ratio * 100.0, report->padded_ratio * 100.0);
}

/* Keys of the scenario by origin, "key: value, ...". */
struct origin_list {
    struct cli *cli;
    const struct scenario *scenario;
    enum origin_kind kind;
    struct text text;
};

static void add_key(void *context, const char *key, const struct schema_row *row)
{
    struct origin_list *list = context;
    const struct origin *origin = scenario_origin(list->scenario, key);
    if (origin == NULL || origin->kind != list->kind || strncmp(key, "model.", 6) == 0 ||
        strncmp(key, "cluster.", 8) == 0 || strchr(key, 'N') != NULL) {
        return;
    }
    /* A key that can only be idle, or of experts that the model has not, changes nothing. */
    const bool dense = list->scenario->model.moe.experts == 0;
    if (list->kind == ORIGIN_DEFAULT &&
        (row->pending != NULL || (dense && strncmp(key, "moe.", 4) == 0))) {
        return;
    }
    const char *separator = list->text.length > 0 ? ", " : "";
    const char *value = row->fallback;
    if (list->kind != ORIGIN_DEFAULT || value == NULL) {
        value = scenario_value_text(list->scenario, key, list->cli->arena);
    }
    text_add(&list->text, "%s%s: %s", separator, key, value != NULL ? value : "none");
}

static void print_origins(struct cli *cli, const struct scenario *scenario, enum origin_kind kind,
                          const char *heading)
{
    struct origin_list list = {.cli = cli, .scenario = scenario, .kind = kind};
    schema_walk(add_key, &list);
    if (list.text.length > 0) {
        printf("\n%s%s%s\n  ", paint(cli, PAINT_BOLD), heading, paint(cli, PAINT_DIM));
        print_wrapped(stdout, (struct wrap){cli->width, 2, 2}, text_string(&list.text));
        printf("%s", paint(cli, PAINT_NONE));
    }
    text_free(&list.text);
}

/* What the best switch against the largest loss recovers: simulated after the timed part. */
static void print_switch(struct cli *cli, const struct report *report)
{
    const struct switch_gain gain = advice_switch(report->scenario, report, cli->arena);
    if (gain.name == NULL) {
        return;
    }
    const char *text =
        gain.share > 0.0
            ? arena_printf(cli->arena, "Simulated: %s would recover %.1f %% of the step%s.",
                           gain.name, gain.share * 100.0, gain.fits ? "" : ", but does not fit")
            : arena_printf(cli->arena, "Simulated: %s would recover nothing.", gain.name);
    printf("  ");
    print_wrapped(stdout, (struct wrap){cli->width, 2, 2}, text);
}

static void print_verdict(struct cli *cli, const struct report *report)
{
    print_heading(cli, "Verdict");
    printf("  %s", paint(cli, report->fits ? PAINT_NONE : PAINT_RED));
    print_wrapped(stdout, (struct wrap){cli->width, 2, 2}, report->verdict);
    printf("%s", paint(cli, PAINT_NONE));
    print_switch(cli, report);
    print_heading(cli, "Notes");
    for (uint32_t i = 0; i < report->note_count; i++) {
        printf("  - ");
        print_wrapped(stdout, (struct wrap){cli->width, 4, 4}, report->notes[i]);
    }
}

static void print_engine(struct cli *cli, const struct report *report)
{
    printf("\n%sSimulated %u of %u ranks (%s, %u classes), %llu events, in %s. Digest %016llx.%s\n",
           paint(cli, PAINT_DIM), report->simulated_ranks, report->layout->world,
           report->ranks_all ? "all" : "folded", report->classes,
           (unsigned long long)report->events, text_duration(cli->arena, report->wall_s),
           (unsigned long long)report->digest, paint(cli, PAINT_NONE));
}

void simulate_print(struct cli *cli, const struct run *run, const struct range_answer *range)
{
    const struct report *report = run->report;
    print_headline(cli, report);
    range_print_headline(cli, report, range);
    printf("\n");
    print_layout(cli, run);
    print_convention(cli, report);
    simulate_print_time(cli, report);
    print_communication(cli, report);
    print_memory(cli, report);
    print_experts(cli, report);
    print_steps(cli, report);
    range_print_inputs(cli, report, range);
    print_verdict(cli, report);
    print_origins(cli, report->scenario, ORIGIN_SET, "Set on the command line");
    print_origins(cli, report->scenario, ORIGIN_DEFAULT, "Defaults in use (change with --set)");
    print_engine(cli, report);
}
