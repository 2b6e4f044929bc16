/* cmd_list.c - the names of one kind of thing. */
#include <cjson/cJSON.h>
#include <string.h>

#include "cli_internal.h"
#include "stepsim/text.h"

struct list_values {
    bool json;
};

static const struct option_row option_rows[] = {
    {.name = "json",
     .kind = OPTION_FLAG,
     .help = "an array of {name, title}",
     .offset = offsetof(struct list_values, json),
     .group = "Output"},
    {.name = NULL},
};

static void print_kinds(struct cli *cli)
{
    struct table *table = table_create(cli);
    table_column(table, "KIND", TABLE_LEFT);
    table_column(table, "ENTRIES", TABLE_RIGHT);
    table_column(table, "WHAT", TABLE_LEFT);
    for (size_t i = 0; i < registry_count; i++) {
        table_row(table);
        table_cell(table, "%s", registry_table[i].kind);
        table_cell(table, "%zu", registry_table[i].names(cli).count);
        table_cell(table, "%s", registry_table[i].title);
    }
    table_print(table, 0);
}

static int unknown_kind(struct cli *cli, const char *word)
{
    const char **names = ARENA_ARRAY(cli->arena, registry_count, const char *);
    const char *all = "";
    for (size_t i = 0; i < registry_count; i++) {
        names[i] = registry_table[i].kind;
        all = arena_printf(cli->arena, "%s%s%s", all, i > 0 ? ", " : "", names[i]);
    }
    const char *nearest = text_nearest(word, names, registry_count);
    error_add(&cli->errors, ERROR_usage, (struct location){NULL, 0, 0}, "list",
              "there is no kind \"%s\"%s%s; the kinds are %s", word,
              nearest != NULL ? ", did you mean " : "", nearest != NULL ? nearest : "", all);
    return report_errors(cli);
}

static cJSON *list_json(struct cli *cli, const struct registry *registry)
{
    const struct name_list names = registry->names(cli);
    cJSON *array = cJSON_CreateArray();
    for (size_t i = 0; i < names.count; i++) {
        cJSON *row = cJSON_CreateObject();
        cJSON_AddStringToObject(row, "name", names.items[i]);
        cJSON_AddStringToObject(row, "title", registry->title_of(cli, names.items[i]));
        cJSON_AddItemToArray(array, row);
    }
    return array;
}

static int run(struct cli *cli, const void *raw, const struct arguments *arguments)
{
    const struct list_values *values = raw;
    if (arguments->count == 0) {
        print_kinds(cli);
        return EXIT_DONE;
    }
    const struct registry *registry = registry_find(arguments->items[0]);
    if (registry == NULL) {
        return unknown_kind(cli, arguments->items[0]);
    }
    if (values->json) {
        return print_json(list_json(cli, registry));
    }
    const struct name_list names = registry->names(cli);
    struct table *table = table_create(cli);
    table_column(table, "NAME", TABLE_LEFT);
    table_column(table, "TITLE", TABLE_LEFT);
    for (size_t i = 0; i < names.count; i++) {
        table_row(table);
        table_cell(table, "%s", names.items[i]);
        table_cell(table, "%s", registry->title_of(cli, names.items[i]));
    }
    table_print(table, 0);
    return EXIT_DONE;
}

const struct command command_list = {
    .name = "list",
    .group = "Look up",
    .summary = "models, devices, clusters, schedules, collectives, compute, networks, errors, "
               "metrics",
    .usage = "[KIND]",
    .about =
        "Lists the names of one kind; without a kind, the kinds. `stepsim describe NAME` tells\n"
        "everything about one of them.",
    .examples = "stepsim list models\nstepsim list schedules --json",
    .options = option_rows,
    .values_size = sizeof(struct list_values),
    .arguments_min = 0,
    .arguments_max = 1,
    .run = run,
};
