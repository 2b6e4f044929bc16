/* cmd_simulate.c - one scenario from file to answer. */
#include <cjson/cJSON.h>
#include <string.h>
#include <unistd.h>

#include "advice_print.h"
#include "cli_internal.h"
#include "range_print.h"
#include "simulate_files.h"
#include "simulate_print.h"
#include "simulate_store.h"
#include "stepsim/quantity.h"
#include "stepsim/run.h"
#include "stepsim/search.h"
#include "stepsim/text.h"

struct simulate_values {
    struct option_list set;
    const char *ranks, *anchor;
    const char *db, *emit, *host_file;
    struct simulate_files files;
    struct option_count steps, jobs, seed;
    bool json, require_fit, gantt, range, no_range;
};

static const char *const ranks_words[] = {"folded", "all", NULL};

static const char *const emit_words[] = {"megatron", "mindspeed", NULL};

#define AT(field) offsetof(struct simulate_values, field)

static const struct option_row option_rows[] = {
    {.name = "set",
     .kind = OPTION_LIST,
     .argument = "KEY=VALUE",
     .help = "change a key of the scenario, its model or its cluster; repeatable",
     .offset = AT(set),
     .group = "Scenario"},
    {.name = "seed",
     .kind = OPTION_COUNT,
     .argument = "N",
     .help = "seed of every random stream that has none of its own",
     .offset = AT(seed),
     .group = "Scenario"},
    {.name = "hostfile",
     .kind = OPTION_TEXT,
     .argument = "FILE",
     .help = "hosts in the order of ranks, one per line as `host slots=8` or `host`: the key "
             "parallel.hosts",
     .offset = AT(host_file),
     .group = "Scenario"},
    {.name = "steps",
     .kind = OPTION_COUNT,
     .argument = "N",
     .help = "simulate N training steps; the first is described, all are listed",
     .offset = AT(steps),
     .minimum = 1,
     .maximum = 1000000,
     .group = "Scenario"},
    {.name = "ranks",
     .kind = OPTION_WORD,
     .argument = "folded|all",
     .help = "simulate one rank of each class of alike ranks (folded, the default), or all; the "
             "answers agree to the picosecond",
     .offset = AT(ranks),
     .words = ranks_words,
     .group = "Simulation"},
    {.name = "jobs",
     .kind = OPTION_COUNT,
     .argument = "N",
     .help = "steps that are simulated at the same time; as many as processors if left out. The "
             "answer is the same",
     .offset = AT(jobs),
     .minimum = 1,
     .maximum = 1024,
     .group = "Simulation"},
    {.name = "anchor",
     .kind = OPTION_TEXT,
     .argument = "TIME",
     .help =
         "measured step time of the file as it is written, say \"12.3 s\": predictions are also "
         "shown scaled by measured over predicted, so that --set tells what a change does to "
         "the measured run",
     .offset = AT(anchor),
     .group = "Simulation"},
    {.name = "require-fit",
     .kind = OPTION_FLAG,
     .help = "exit status 3 if the memory of a stage passes the limit",
     .offset = AT(require_fit),
     .group = "Simulation"},
    {.name = "range",
     .kind = OPTION_FLAG,
     .help = "the range of the answer if assumed inputs are off: each is simulated at both ends of "
             "its interval; tables have it unasked where that is quick, --json only with this",
     .offset = AT(range),
     .group = "Output"},
    {.name = "no-range",
     .kind = OPTION_FLAG,
     .help = "tables without the range",
     .offset = AT(no_range),
     .group = "Output"},
    {.name = "json",
     .kind = OPTION_FLAG,
     .help = "one JSON object instead of tables",
     .offset = AT(json),
     .group = "Output"},
    {.name = "db",
     .kind = OPTION_TEXT,
     .argument = "FILE",
     .help = "add the result to a database; the same scenario, options and program are one row",
     .offset = AT(db),
     .group = "Output"},
    {.name = "trace",
     .kind = OPTION_TEXT,
     .argument = "FILE",
     .help = "write the timeline for Perfetto, chrome://tracing or MindStudio Insight; compressed "
             "if the name ends in .gz; of one rank of each class, of every rank with --ranks all",
     .offset = AT(files.trace),
     .group = "Output"},
    {.name = "gantt",
     .kind = OPTION_FLAG,
     .help = "draw the pipeline in characters below the tables",
     .offset = AT(gantt),
     .group = "Output"},
    {.name = "gantt-file",
     .kind = OPTION_TEXT,
     .argument = "FILE.svg",
     .help = "draw the pipeline as a picture",
     .offset = AT(files.gantt_svg),
     .group = "Output"},
    {.name = "emit",
     .kind = OPTION_WORD,
     .argument = "megatron|mindspeed",
     .help = "print launch arguments of the layout instead of tables",
     .offset = AT(emit),
     .words = emit_words,
     .group = "Output"},
    {.name = NULL},
};

static const struct location nowhere = {NULL, 0, 0};

/* Measured over predicted of the file without its overrides; 0 with an error. */
static double anchor_ratio(struct cli *cli, const struct simulate_values *values, const char *path,
                           const struct run_options *options)
{
    struct quantity_problem problem;
    double measured_s = 0.0;
    if (!quantity_parse(values->anchor, DIMENSION_SECONDS, &measured_s, &problem)) {
        error_add(&cli->errors, problem.code, nowhere, "--anchor", "%s", problem.message);
        return 0.0;
    }
    if (!(measured_s > 0.0)) {
        error_add(&cli->errors, ERROR_out_of_range, nowhere, "--anchor",
                  "%s is not above 0; give the measured time of one step", values->anchor);
        return 0.0;
    }
    const struct scenario_ask ask = {.path = path};
    const struct scenario *scenario = load_scenario(cli, &ask);
    struct run run;
    if (scenario == NULL || !run_simulate(&run, scenario, options, cli->arena, &cli->errors)) {
        return 0.0;
    }
    return measured_s / run.report->step_time_s;
}

/* The anchored numbers must be possible, too. */
static void add_anchor(struct cli *cli, struct report *report, double ratio)
{
    if (report->mfu / ratio > 1.0) {
        error_add(&cli->errors, ERROR_mfu_above_one, nowhere, "--anchor",
                  "a step of %.4g s would be an MFU of %.2f; no device does more than its peak",
                  report->step_time_s * ratio, report->mfu / ratio);
        return;
    }
    report->anchor_ratio = ratio;
}

static uint32_t job_count(const struct option_count *jobs)
{
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    if (jobs->given) {
        return (uint32_t)jobs->value;
    }
    return processors > 0 ? (uint32_t)processors : 1;
}

static enum range_wish range_wish(const struct simulate_values *values)
{
    if (values->range) {
        return RANGE_ALWAYS;
    }
    return values->no_range || values->json ? RANGE_NEVER : RANGE_IF_CHEAP;
}

/* The report; and when it does not fit, what would. */
static void print_answer(struct cli *cli, const struct simulate_values *values,
                         const struct run *result)
{
    struct fit_changes changes = {0};
    if (values->emit != NULL) {
        const bool mindspeed = strcmp(values->emit, "mindspeed") == 0;
        printf("%s", launch_arguments(result->scenario, result->layout,
                                      mindspeed ? LAUNCH_MINDSPEED : LAUNCH_MEGATRON, cli->arena));
        return;
    }
    if (!result->report->fits) {
        changes = advice_fit(result->scenario, cli->arena);
    }
    const struct range_answer range =
        range_find(cli, result->report, range_wish(values), job_count(&values->jobs));
    if (values->json) {
        cJSON *json = report_json(result->report);
        if (range.range != NULL) {
            cJSON_AddItemToObject(json, "range", range_answer_json(&range));
        }
        cJSON_AddItemToObject(json, "fit_advice", advice_fit_json(&changes));
        print_json(json);
        return;
    }
    simulate_print(cli, result, &range);
    if (!result->report->fits) {
        advice_print_fit(cli, &changes);
    }
    if (values->gantt) {
        simulate_gantt_print(cli, result);
    }
}

static int run(struct cli *cli, const void *raw, const struct arguments *arguments)
{
    const struct simulate_values *values = raw;
    const char *path = arguments->items[0];
    simulate_files_check(cli, &values->files);
    if (values->gantt && values->json) {
        error_add(&cli->errors, ERROR_usage, nowhere, "--gantt",
                  "draws below the tables, which --json replaces; --gantt-file writes a picture");
    }
    if (values->range && values->no_range) {
        error_add(&cli->errors, ERROR_usage, nowhere, "--range", "contradicts --no-range");
    }
    if (values->anchor != NULL && strcmp(path, "-") == 0) {
        error_add(&cli->errors, ERROR_usage, nowhere, "--anchor",
                  "needs a file, which is read twice; standard input is gone after the first time");
    }
    if (cli->errors.count > 0) {
        return report_errors(cli);
    }
    struct run_options options = {
        .ranks_all = values->ranks != NULL && strcmp(values->ranks, "all") == 0,
        .steps = values->steps.given ? (uint32_t)values->steps.value : 1,
        .jobs = job_count(&values->jobs),
    };
    options.observe_all = options.ranks_all && values->files.trace != NULL;
    const double ratio = values->anchor != NULL ? anchor_ratio(cli, values, path, &options) : 0.0;
    const struct scenario_ask ask = {
        .path = path,
        .set = values->set,
        .seeded = values->seed.given,
        .seed = values->seed.value,
        .host_file = values->host_file,
    };
    options.started_s = run_clock_s();
    const struct scenario *scenario = cli->errors.count == 0 ? load_scenario(cli, &ask) : NULL;
    struct run result;
    if (scenario == NULL || !run_simulate(&result, scenario, &options, cli->arena, &cli->errors)) {
        return report_errors(cli);
    }
    if (values->anchor != NULL) {
        add_anchor(cli, result.report, ratio);
        if (cli->errors.count > 0) {
            return report_errors(cli);
        }
    }
    if (values->db != NULL && !simulate_store(cli, values->db, &result)) {
        return report_errors(cli);
    }
    print_answer(cli, values, &result);
    if (!simulate_files_write(cli, &result, &values->files)) {
        return report_errors(cli);
    }
    if (values->require_fit && !result.report->fits) {
        error_add(&cli->errors, ERROR_does_not_fit, (struct location){path, 0, 0}, "memory",
                  "stage %u needs %s and may use %s", result.report->peak_stage,
                  text_gib(cli->arena, result.report->peak_bytes),
                  text_gib(cli->arena, result.report->limit_bytes));
        return report_errors(cli);
    }
    return EXIT_DONE;
}

const struct command command_simulate = {
    .name = "simulate",
    .group = "Predict",
    .summary = "step time, tokens/s, MFU, memory and breakdown of one scenario",
    .usage = "SIM.yaml",
    .about = "Simulates one training step of a scenario and prints how fast it is, where the time\n"
             "goes and what fills the memory of each pipeline stage. `-` reads standard input. A\n"
             "layout that does not fit in memory is an answer too: the verdict says so.",
    .examples = "stepsim simulate sims/pangu_ultra_moe_6k/sim.yaml\n"
                "stepsim simulate sims/pangu_ultra_moe_6k/sim.yaml --set parallel.vpp=1 --set "
                "schedule.kind=1f1b\n"
                "stepsim simulate sims/pangu_ultra_moe_6k/sim.yaml --json | python3 -m json.tool\n"
                "stepsim simulate my.yaml --gantt --trace step.json.gz\n"
                "stepsim simulate my.yaml --anchor \"12.3 s\" --set overlap.matmul_collective=mc2",
    .options = option_rows,
    .values_size = sizeof(struct simulate_values),
    .arguments_min = 1,
    .arguments_max = 1,
    .run = run,
};
