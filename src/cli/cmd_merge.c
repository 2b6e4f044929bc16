/* cmd_merge.c - shards into one database. */
#include "cli_internal.h"
#include "stepsim/store.h"

struct merge_values {
    const char *output;
};

static const struct option_row option_rows[] = {
    {.name = "output",
     .kind = OPTION_TEXT,
     .letter = 'o',
     .argument = "DB",
     .help = "database that takes all points, created if it is not there",
     .offset = offsetof(struct merge_values, output),
     .group = "Output"},
    {.name = NULL},
};

static int run(struct cli *cli, const void *raw, const struct arguments *arguments)
{
    const struct merge_values *values = raw;
    if (values->output == NULL) {
        error_add(&cli->errors, ERROR_usage, (struct location){NULL, 0, 0}, "--output",
                  "where do the points go? stepsim merge A.db B.db -o ALL.db");
        return report_errors(cli);
    }
    struct store *store = store_open(values->output, STORE_WRITE, cli->arena, &cli->errors);
    struct store_merge_counts counts = {0};
    bool good = store != NULL;
    for (uint32_t i = 0; good && i < arguments->count; i++) {
        good = store_merge(store, arguments->items[i], &counts, &cli->errors);
    }
    good = store_close(store, &cli->errors) && good;
    printf("%llu points added to %s, %llu were there\n", (unsigned long long)counts.points_added,
           values->output, (unsigned long long)counts.points_there);
    return good ? EXIT_DONE : report_errors(cli);
}

const struct command command_merge = {
    .name = "merge",
    .group = "Explore",
    .summary = "join results databases, without duplicates",
    .usage = "DB...",
    .about =
        "Copies the points of each database that the output does not hold yet. Merging a file\n"
        "twice changes nothing.",
    .examples = "stepsim merge results-*.db -o results.db",
    .options = option_rows,
    .values_size = sizeof(struct merge_values),
    .arguments_min = 1,
    .arguments_max = 65536,
    .run = run,
};
