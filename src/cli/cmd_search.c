/* cmd_search.c - the best layouts of one model on one cluster. */
#include <string.h>
#include <unistd.h>

#include "cli_internal.h"
#include "search_stages.h"
#include "stepsim/search.h"
#include "stepsim/text.h"

struct search_values {
    struct option_list set, vary, keep, where;
    const char *objective, *minimise, *emit;
    struct option_count top, jobs;
    bool exhaustive, json, stages;
};

static const char *const objective_words[] = {"tokens", "mfu", "cost", "memory", NULL};
static const char *const emit_words[] = {"megatron", "mindspeed", NULL};

#define AT(field) offsetof(struct search_values, field)

static const struct option_row option_rows[] = {
    {.name = "set",
     .kind = OPTION_LIST,
     .argument = "KEY=VALUE",
     .help = "change a key of the scenario, its model or its cluster; repeatable",
     .offset = AT(set),
     .group = "Scenario"},
    {.name = "vary",
     .kind = OPTION_LIST,
     .argument = "KEY=A,B",
     .help = "values that a key of the space takes, say parallel.tp=4,8 or "
             "\"recompute.modules=[],[layer]\"; repeatable",
     .offset = AT(vary),
     .group = "Space"},
    {.name = "keep",
     .kind = OPTION_LIST,
     .argument = "KEY",
     .help = "leave a key of the space as it is in the file; \"all\" keeps every key that no "
             "--vary names; repeatable",
     .offset = AT(keep),
     .group = "Space"},
    {.name = "where",
     .kind = OPTION_LIST,
     .argument = "EXPR",
     .help = "a condition that layouts must meet, in SQL: \"tp * cp <= 8\", \"headroom_bytes > "
             "4e9\"; names are keys by their last part, dp, microbatches, step_time_s, "
             "tokens_per_s, tokens_per_s_per_device, mfu, peak_bytes, headroom_bytes; repeatable",
     .offset = AT(where),
     .group = "Space"},
    {.name = "objective",
     .kind = OPTION_WORD,
     .argument = "tokens|mfu|cost|memory",
     .help = "what is best: most tokens/s (the default), MFU, fewest device-seconds per token, "
             "lowest peak memory",
     .offset = AT(objective),
     .words = objective_words,
     .group = "Search"},
    {.name = "minimise",
     .kind = OPTION_TEXT,
     .argument = "EXPR",
     .help = "an objective of your own in SQL, with the names of --where: \"step_time_s * (1 + "
             "0.02 * pp)\"; it must not fall as step or memory grow, unless --exhaustive",
     .offset = AT(minimise),
     .group = "Search"},
    {.name = "top",
     .kind = OPTION_COUNT,
     .argument = "K",
     .help = "how many layouts to return; 10 if left out",
     .offset = AT(top),
     .minimum = 1,
     .maximum = 100000,
     .group = "Search"},
    {.name = "exhaustive",
     .kind = OPTION_FLAG,
     .help = "simulate every legal layout; the answer is the same, later",
     .offset = AT(exhaustive),
     .group = "Search"},
    {.name = "stages",
     .kind = OPTION_FLAG,
     .help = "instead of layouts, find the best split of layers over the chunks of the file's own "
             "layout (--objective memory: the one with the lowest peak)",
     .offset = AT(stages),
     .group = "Search"},
    OPTION_JOBS(AT(jobs), "Search"),
    {.name = "json",
     .kind = OPTION_FLAG,
     .help = "one JSON object instead of tables",
     .offset = AT(json),
     .group = "Output"},
    {.name = "emit",
     .kind = OPTION_WORD,
     .argument = "megatron|mindspeed",
     .help = "print launch arguments of the best layout instead of tables",
     .offset = AT(emit),
     .words = emit_words,
     .group = "Output"},
    {.name = NULL},
};

static const struct location nowhere = {NULL, 0, 0};

/* ---- The question ---- */

static void add_changes(struct cli *cli, const struct search_values *values, struct search_ask *ask)
{
    size_t keys = 0;
    while (search_keys[keys].key != NULL) {
        keys++;
    }
    struct search_change *changes = ARENA_ARRAY(
        cli->arena, values->vary.count + values->keep.count + keys, struct search_change);
    for (uint32_t i = 0; i < values->keep.count; i++) {
        if (strcmp(values->keep.items[i], "all") != 0) {
            changes[ask->change_count++].key = values->keep.items[i];
            continue;
        }
        for (size_t k = 0; k < keys; k++) {
            changes[ask->change_count++].key = search_keys[k].key;
        }
    }
    for (uint32_t i = 0; i < values->vary.count; i++) {
        const char *text = values->vary.items[i];
        const char *equals = strchr(text, '=');
        if (equals == NULL || equals == text || equals[1] == '\0') {
            error_add(&cli->errors, ERROR_usage, nowhere, "--vary",
                      "\"%s\" is not KEY=A,B, as in --vary parallel.tp=4,8", text);
            continue;
        }
        changes[ask->change_count++] = (struct search_change){
            .key = arena_strndup(cli->arena, text, (size_t)(equals - text)), .values = equals + 1};
    }
    ask->changes = changes;
}

static enum search_objective objective_of(const char *word)
{
    for (unsigned i = 0; word != NULL && objective_words[i] != NULL; i++) {
        if (strcmp(word, objective_words[i]) == 0) {
            return (enum search_objective)i;
        }
    }
    return SEARCH_TOKENS_PER_S;
}

static uint32_t job_count(const struct option_count *jobs)
{
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    if (jobs->given) {
        return (uint32_t)jobs->value;
    }
    return processors > 0 ? (uint32_t)processors : 1;
}

static void show_progress(void *user, const struct search_progress *progress)
{
    (void)user;
    fprintf(stderr, "\r\033[K%s %llu of %llu", progress->phase, (unsigned long long)progress->done,
            (unsigned long long)progress->total);
    if (progress->counts.legal > 0) {
        fprintf(stderr, ", %llu legal", (unsigned long long)progress->counts.legal);
    }
    if (progress->best_step_s > 0.0) {
        fprintf(stderr, ", best so far %.4g s, MFU %.2f %%", progress->best_step_s,
                progress->best_mfu * 100.0);
    }
    fflush(stderr);
}

/* ---- For people ---- */

static void print_table(struct cli *cli, const struct search_answer *answer)
{
    static const char *const headings[] = {"STEP", "TOKENS/S", "MFU", "PEAK GiB", "tp",  "pp",
                                           "vpp",  "cp",       "dp",  "ep",       "etp", "mbs"};
    struct table *table = table_create(cli);
    table_column(table, "#", TABLE_RIGHT);
    for (size_t i = 0; i < sizeof headings / sizeof headings[0]; i++) {
        table_column(table, headings[i], TABLE_RIGHT);
    }
    table_column(table, "SCHEDULE", TABLE_LEFT);
    for (uint32_t i = 0; i < answer->layout_count; i++) {
        const struct search_layout *found = &answer->layouts[i];
        const struct layout *layout = found->layout;
        table_row(table);
        table_cell(table, "%u", i + 1);
        table_cell(table, "%.4g s", found->figures.step_s);
        table_cell(table, "%s", count_text(cli, found->figures.tokens_per_s));
        table_cell(table, "%.2f %%", found->figures.mfu * 100.0);
        table_cell(table, "%.1f", found->figures.peak_bytes / GIB_BYTES);
        const uint32_t degrees[] = {layout->tp, layout->pp, layout->vpp, layout->cp,
                                    layout->dp, layout->ep, layout->etp, layout->micro_batch_size};
        for (size_t d = 0; d < sizeof degrees / sizeof degrees[0]; d++) {
            table_cell(table, "%u", degrees[d]);
        }
        table_cell(table, "%s", found->schedule);
    }
    table_print(table, 2);
}

/* Keys of the space that took more than one value and are no column of the table. */
static const char *other_choices(struct cli *cli, const struct search_answer *answer,
                                 const struct search_layout *found)
{
    struct text text = {0};
    for (uint32_t i = 0; i < found->choice_count; i++) {
        const char *key = answer->axes[i].key;
        const bool shown =
            (strncmp(key, "parallel.", 9) == 0 && strcmp(key, "parallel.zero") != 0 &&
             strcmp(key, "parallel.stages") != 0) ||
            strcmp(key, "training.micro_batch_size") == 0 || strcmp(key, "schedule.kind") == 0;
        if (!shown && answer->axes[i].count > 1) {
            text_add(&text, "%s%s", text.length > 0 ? ", " : "", found->choices[i]);
        }
    }
    const char *copy = arena_strdup(cli->arena, text_string(&text));
    text_free(&text);
    return copy;
}

static void print_reasons(struct cli *cli, const struct search_answer *answer)
{
    printf("\n");
    for (uint32_t i = 0; i < answer->layout_count; i++) {
        printf("  %u. ", i + 1);
        const struct wrap wrap = {cli->width, 5, 5};
        print_wrapped(stdout, wrap,
                      arena_printf(cli->arena, "%s [%s]", answer->layouts[i].why_lost,
                                   other_choices(cli, answer, &answer->layouts[i])));
    }
}

static void print_written(struct cli *cli, const struct search_answer *answer)
{
    const struct search_figures *best = &answer->layouts[0].figures;
    if (!answer->written_legal) {
        return;
    }
    const char *text = arena_printf(
        cli->arena, "The layout in the file takes %.4g s (MFU %.2f %%)%s: the best is %.2f %% %s.",
        answer->written.step_s, answer->written.mfu * 100.0,
        answer->written.fits ? "" : " and does not fit in memory",
        best->step_s <= answer->written.step_s
            ? (answer->written.step_s / best->step_s - 1.0) * 100.0
            : (best->step_s / answer->written.step_s - 1.0) * 100.0,
        best->step_s <= answer->written.step_s ? "faster" : "slower");
    print_wrapped(stdout, (struct wrap){cli->width, 0, 0}, text);
}

static void print_answer(struct cli *cli, const struct search_answer *answer)
{
    const struct search_counts *counts = &answer->counts;
    printf("%s%s%s on %u devices of %s\n\n", paint(cli, PAINT_BOLD), answer->scenario->model.name,
           paint(cli, PAINT_NONE), answer->scenario->devices, answer->scenario->cluster.name);
    print_table(cli, answer);
    print_reasons(cli, answer);
    printf("\n");
    print_written(cli, answer);
    if (answer->one_more_gib != NULL) {
        print_wrapped(stdout, (struct wrap){cli->width, 0, 0}, answer->one_more_gib);
        print_wrapped(stdout, (struct wrap){cli->width, 0, 0}, answer->one_node_less);
    }
    printf("\n%s%llu combinations, %llu legal, %llu that may fit: %llu bounded away, %llu "
           "simulated, in %s.%s\n",
           paint(cli, PAINT_DIM), (unsigned long long)counts->candidates,
           (unsigned long long)counts->legal, (unsigned long long)counts->fits,
           (unsigned long long)counts->bounded, (unsigned long long)counts->simulated,
           text_duration(cli->arena, answer->wall_s), paint(cli, PAINT_NONE));
}

static int run_stages(struct cli *cli, const struct search_values *values,
                      const struct scenario_source *source)
{
    const struct stages_ask ask = {.source = source,
                                   .objective = objective_of(values->objective),
                                   .jobs = job_count(&values->jobs)};
    const struct stages_answer *answer = search_stages(&ask, cli->arena, &cli->errors);
    if (answer == NULL) {
        return report_errors(cli);
    }
    stages_print(cli, answer, values->json);
    return EXIT_DONE;
}

static int run(struct cli *cli, const void *raw, const struct arguments *arguments)
{
    const struct search_values *values = raw;
    struct scenario_cache *cache = scenario_cache_create();
    struct scenario_source source;
    const struct scenario_ask scenario_ask = {.path = arguments->items[0], .set = values->set};
    struct search_ask ask = {
        .source = &source,
        .objective = objective_of(values->objective),
        .objective_text = values->minimise,
        .wheres = values->where.items,
        .where_count = values->where.count,
        .top = values->top.given ? (uint32_t)values->top.value : 10,
        .exhaustive = values->exhaustive,
        .advise = values->emit == NULL,
        .jobs = job_count(&values->jobs),
        .progress = isatty(STDERR_FILENO) == 1 ? show_progress : NULL,
    };
    add_changes(cli, values, &ask);
    const bool understood = scenario_source_of(cli, &scenario_ask, &source);
    source.cache = cache;
    if (values->stages && understood && cli->errors.count == 0) {
        const int stages_status = run_stages(cli, values, &source);
        scenario_cache_destroy(cache);
        return stages_status;
    }
    const struct search_answer *answer =
        understood && cli->errors.count == 0 ? search_run(&ask, cli->arena, &cli->errors) : NULL;
    if (ask.progress != NULL) {
        fprintf(stderr, "\r\033[K");
    }
    int status = EXIT_DONE;
    if (answer == NULL) {
        status = report_errors(cli);
    } else if (values->emit != NULL) {
        const bool mindspeed = strcmp(values->emit, "mindspeed") == 0;
        printf("%s", launch_arguments(answer->layouts[0].scenario, answer->layouts[0].layout,
                                      mindspeed ? LAUNCH_MINDSPEED : LAUNCH_MEGATRON, cli->arena));
    } else if (values->json) {
        print_json(search_json(answer));
    } else {
        print_answer(cli, answer);
    }
    scenario_cache_destroy(cache);
    return status;
}

const struct command command_search = {
    .name = "search",
    .group = "Predict",
    .summary = "best layouts for one model and cluster",
    .usage = "SIM.yaml",
    .about =
        "Goes through degrees of parallelism, micro-batch, schedule, recompute, swap, ZeRO,\n"
        "expert dispatcher and stage splits around a scenario, keeps what is legal and fits in\n"
        "memory, and ranks it. A lower bound of the step time skips most simulations and changes\n"
        "nothing: --exhaustive returns the same layouts. Which keys are varied over which\n"
        "values: docs/SEARCH.md; --vary and --keep change that. Exit status 3 if nothing fits.",
    .examples = "stepsim search sims/pangu_ultra_moe_6k/sim.yaml\n"
                "stepsim search sim.yaml --vary parallel.tp=4,8 --keep schedule.kind --top 3\n"
                "stepsim search sim.yaml --keep all --vary training.micro_batch_size=1,2,4 --json\n"
                "stepsim search sim.yaml --stages\n"
                "stepsim search sim.yaml --emit mindspeed",
    .options = option_rows,
    .values_size = sizeof(struct search_values),
    .arguments_min = 1,
    .arguments_max = 1,
    .run = run,
};
