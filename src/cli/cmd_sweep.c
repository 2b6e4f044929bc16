/* cmd_sweep.c - many variants of a scenario into a database. */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "cli_internal.h"
#include "stepsim/quantity.h"
#include "stepsim/run.h"
#include "stepsim/sweep.h"
#include "stepsim/text.h"

struct sweep_values {
    const char *db, *shard, *stale, *point_timeout, *point_memory;
    struct option_count jobs;
    bool dry_run, retry_failed, quiet;
};

static const char *const stale_words[] = {"refuse", "keep", "rerun", NULL};

#define AT(field) offsetof(struct sweep_values, field)

static const struct option_row option_rows[] = {
    {.name = "db",
     .kind = OPTION_TEXT,
     .argument = "FILE",
     .help = "database of the results, created if it is not there; {shard} in the name becomes "
             "I-of-N",
     .offset = AT(db),
     .group = "Output"},
    {.name = "dry-run",
     .kind = OPTION_FLAG,
     .help = "count the points and show examples; simulate nothing",
     .offset = AT(dry_run),
     .group = "Output"},
    {.name = "quiet",
     .kind = OPTION_FLAG,
     .help = "no progress, only the summary at the end",
     .offset = AT(quiet),
     .group = "Output"},
    {.name = "jobs",
     .kind = OPTION_COUNT,
     .argument = "N",
     .help = "worker processes; all processors if left out",
     .offset = AT(jobs),
     .minimum = 1,
     .maximum = 1024,
     .group = "Parallel"},
    {.name = "shard",
     .kind = OPTION_TEXT,
     .argument = "I/N|auto",
     .help = "only part I of N, I from 1 to N; auto takes both from Slurm, Open MPI or PMI",
     .offset = AT(shard),
     .group = "Parallel"},
    {.name = "point-timeout",
     .kind = OPTION_TEXT,
     .argument = "TIME",
     .help = "a point that takes longer becomes a failed row, say \"60 s\"",
     .offset = AT(point_timeout),
     .group = "Failures"},
    {.name = "point-memory",
     .kind = OPTION_TEXT,
     .argument = "SIZE",
     .help = "address space of a worker; a point that needs more becomes a failed row, say \"4 "
             "GiB\"",
     .offset = AT(point_memory),
     .group = "Failures"},
    {.name = "retry-failed",
     .kind = OPTION_FLAG,
     .help = "simulate failed points again",
     .offset = AT(retry_failed),
     .group = "Failures"},
    {.name = "stale",
     .kind = OPTION_WORD,
     .argument = "refuse|keep|rerun",
     .help = "what to do with points by another build of the program: stop (refuse, the default), "
             "leave them, or simulate them again",
     .offset = AT(stale),
     .words = stale_words,
     .group = "Failures"},
    {.name = NULL},
};

static const struct location nowhere = {NULL, 0, 0};

static volatile sig_atomic_t stop_requested;

static void on_stop(int signal_number)
{
    (void)signal_number;
    stop_requested = 1;
}

static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_stop};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
}

/* ---- Progress ---- */

struct display {
    struct cli *cli;
    bool terminal;
    double next_line_s, interval_s;
};

static const char *eta_text(char *out, size_t size, double seconds)
{
    const unsigned long total = (unsigned long)(seconds + 0.5);
    if (total >= 3600) {
        snprintf(out, size, "%lu:%02lu:%02lu", total / 3600, total / 60 % 60, total % 60);
    } else {
        snprintf(out, size, "%lu:%02lu", total / 60, total % 60);
    }
    return out;
}

static void draw_bar(char *out, unsigned columns, double share)
{
    const unsigned filled = (unsigned)(share * columns);
    for (unsigned i = 0; i < columns; i++) {
        out[i] = i < filled ? '#' : '.';
    }
    out[columns] = '\0';
}

static void show_progress(void *context, const struct sweep_progress *progress)
{
    struct display *display = context;
    const double rate =
        progress->elapsed_s > 0.0 ? (double)progress->now / progress->elapsed_s : 0.0;
    const bool last = progress->done == progress->total;
    if (!display->terminal && !last && progress->elapsed_s < display->next_line_s) {
        return;
    }
    char eta[32] = "?", best[96] = "", bar[32];
    if (rate > 0.0) {
        eta_text(eta, sizeof eta, (double)(progress->total - progress->done) / rate);
    }
    if (progress->best_tokens_per_s > 0.0) {
        snprintf(best, sizeof best, ", best %.4g tokens/s at point %llu",
                 progress->best_tokens_per_s, (unsigned long long)progress->best_point_no);
    }
    const double share =
        progress->total > 0 ? (double)progress->done / (double)progress->total : 1.0;
    draw_bar(bar, 24, share);
    fprintf(stderr, "%s%s%s%llu/%llu (%.0f %%), %.0f points/s, ETA %s%s%s",
            display->terminal ? "\r\033[K[" : "", display->terminal ? bar : "",
            display->terminal ? "] " : "", (unsigned long long)progress->done,
            (unsigned long long)progress->total, 100.0 * share, rate, eta, best,
            display->terminal ? "" : "\n");
    if (display->terminal && last) {
        fputc('\n', stderr);
    }
    fflush(stderr);
    display->next_line_s = progress->elapsed_s + display->interval_s;
    display->interval_s = display->interval_s < 60.0 ? display->interval_s * 2.0 : 60.0;
}

/* ---- The answer ---- */

static void print_example(const struct sweep *sweep, uint64_t point_no)
{
    printf("  %llu:", (unsigned long long)point_no);
    for (uint32_t i = 0; i < sweep_key_count(sweep); i++) {
        bool is_key = false;
        const char *name = sweep_key_name(sweep, i, &is_key);
        printf(" %s=%s", name, sweep_key_text(sweep, point_no, i));
    }
    printf("\n");
}

static int dry_run(const struct sweep *sweep, struct sweep_shard shard, struct arena *arena)
{
    const uint64_t count = sweep_point_count(sweep);
    uint64_t ours = 0;
    const bool *part = sweep_shard_points(sweep, shard, arena);
    for (uint64_t i = 0; i < count; i++) {
        ours += part[i] ? 1 : 0;
    }
    printf("%s\n%llu points of %.0f combinations\n", sweep_name(sweep), (unsigned long long)count,
           sweep_combinations(sweep));
    if (shard.count > 1) {
        printf("%llu of them in part %u of %u\n", (unsigned long long)ours, shard.index,
               shard.count);
    }
    for (uint64_t i = 0; i < 5 && i < count; i++) {
        print_example(sweep, count <= 5 ? i : i * (count - 1) / 4);
    }
    return EXIT_DONE;
}

static void print_summary(const struct sweep *sweep, const char *db,
                          const struct sweep_progress *progress)
{
    printf("%s: %llu of %llu points in %s\n", sweep_name(sweep), (unsigned long long)progress->done,
           (unsigned long long)progress->total, db);
    printf("now: %llu points in %.1f s, %.1f %% of it writing;", (unsigned long long)progress->now,
           progress->elapsed_s,
           progress->elapsed_s > 0.0 ? 100.0 * progress->writing_s / progress->elapsed_s : 0.0);
    for (unsigned i = 0; i < RUN_STATUS_COUNT; i++) {
        printf("%s %llu %s", i > 0 ? "," : "", (unsigned long long)progress->statuses[i],
               run_status_name((enum run_status)i));
    }
    printf("\n");
}

/* ---- Options to values ---- */

static bool quantity_option(struct cli *cli, const char *name, const char *text,
                            enum dimension dimension, double *value)
{
    struct quantity_problem problem;
    if (text == NULL) {
        return true;
    }
    if (quantity_parse(text, dimension, value, &problem) && *value > 0.0) {
        return true;
    }
    error_add(&cli->errors, ERROR_usage, nowhere, name,
              "\"%s\" is not above 0 with a unit, as in "
              "\"%s\"",
              text, quantity_example(dimension));
    return false;
}

/* results-{shard}.db becomes results-2-of-8.db. */
static const char *database_path(struct cli *cli, const char *path, struct sweep_shard shard)
{
    static const char mark[] = "{shard}";
    const char *at = strstr(path, mark);
    if (at == NULL) {
        if (shard.count > 1 && store_on_network(path)) {
            error_add(&cli->errors, ERROR_usage, nowhere, "--db",
                      "parts of a sweep cannot write one file on a network file system; give each "
                      "its own, --db results-{shard}.db, and join them with `stepsim merge`");
        }
        return path;
    }
    return arena_printf(cli->arena, "%.*s%u-of-%u%s", (int)(at - path), path, shard.index,
                        shard.count, at + sizeof mark - 1);
}

static int run_into(struct cli *cli, const struct sweep *sweep, const char *db,
                    struct sweep_options *options)
{
    struct store *store = store_open(db, STORE_WRITE, cli->arena, &cli->errors);
    if (store == NULL) {
        return report_errors(cli);
    }
    struct sweep_progress progress;
    const enum sweep_end end = sweep_run(sweep, store, options, &progress, &cli->errors);
    const bool closed = store_close(store, &cli->errors);
    print_summary(sweep, db, &progress);
    if (end == SWEEP_ERROR || !closed) {
        return report_errors(cli);
    }
    if (end == SWEEP_STOPPED) {
        fflush(stdout);
        fprintf(stderr, "stopped; to resume, run the same command again: %s\n",
                options->command_line);
        return EXIT_INTERRUPTED;
    }
    return EXIT_DONE;
}

static int run(struct cli *cli, const void *raw, const struct arguments *arguments)
{
    const struct sweep_values *values = raw;
    struct sweep_options options = {.shard = {1, 1}, .stop = &stop_requested};
    double memory = 0.0;
    if (values->shard != NULL) {
        sweep_shard_parse(values->shard, &options.shard, &cli->errors);
    }
    quantity_option(cli, "--point-timeout", values->point_timeout, DIMENSION_SECONDS,
                    &options.point_timeout_s);
    quantity_option(cli, "--point-memory", values->point_memory, DIMENSION_BYTES, &memory);
    options.point_memory_bytes = (uint64_t)memory;
    if (values->db == NULL && !values->dry_run) {
        error_add(&cli->errors, ERROR_usage, nowhere, "--db",
                  "where do the results go? --db results.db, or --dry-run to see the points");
    }
    const char *db = values->db != NULL ? database_path(cli, values->db, options.shard) : NULL;
    if (cli->errors.count > 0) {
        return report_errors(cli);
    }
    catch_signals();
    const struct sweep_source source = {arguments->items[0], cli->config_dir};
    struct sweep *sweep = sweep_load(&source, cli->arena, &cli->errors);
    if (sweep == NULL) {
        return report_errors(cli);
    }
    struct display display = {
        .cli = cli, .terminal = isatty(STDERR_FILENO) == 1, .interval_s = 5.0};
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    options.jobs = values->jobs.given ? (uint32_t)values->jobs.value
                   : processors > 0   ? (uint32_t)processors
                                      : 1;
    options.command_line = command_line_text(cli);
    options.retry_failed = values->retry_failed;
    options.progress = values->quiet ? NULL : show_progress;
    options.context = &display;
    if (values->stale != NULL) {
        options.stale = strcmp(values->stale, "keep") == 0    ? SWEEP_STALE_KEEP
                        : strcmp(values->stale, "rerun") == 0 ? SWEEP_STALE_RERUN
                                                              : SWEEP_STALE_REFUSE;
    }
    const int status = values->dry_run ? dry_run(sweep, options.shard, cli->arena)
                                       : run_into(cli, sweep, db, &options);
    sweep_release(sweep);
    return status;
}

const struct command command_sweep = {
    .name = "sweep",
    .group = "Explore",
    .summary = "many variants of a scenario into a database",
    .usage = "SWEEP.yaml",
    .about =
        "Simulates every point of a sweep file: a base scenario, axes, derived keys and\n"
        "constraints. What the database holds already is left alone, so that a sweep that was\n"
        "stopped or killed goes on with the same command. Ctrl-C lets the running points\n"
        "finish. docs/sweeps.md describes the file and how to use several machines.",
    .examples = "stepsim sweep sims/architecture_sweep/sweep.yaml --dry-run\n"
                "stepsim sweep sims/architecture_sweep/sweep.yaml --db results.db\n"
                "srun -n 8 stepsim sweep my.yaml --db results-{shard}.db --shard auto --jobs 1",
    .options = option_rows,
    .values_size = sizeof(struct sweep_values),
    .arguments_min = 1,
    .arguments_max = 1,
    .run = run,
};
