/* cmd_describe.c - everything about one name: a registry entry or a configuration key. */
#include <cjson/cJSON.h>
#include <string.h>

#include "cli_internal.h"
#include "stepsim/schema.h"
#include "stepsim/text.h"

struct describe_values {
    bool json;
};

static const struct option_row option_rows[] = {
    {.name = "json",
     .kind = OPTION_FLAG,
     .help = "an array with an object for each meaning of the name",
     .offset = offsetof(struct describe_values, json),
     .group = "Output"},
    {.name = NULL},
};

static bool holds(struct name_list names, const char *name)
{
    for (size_t i = 0; i < names.count; i++) {
        if (strcmp(names.items[i], name) == 0) {
            return true;
        }
    }
    return false;
}

/* The nearest name of all families and keys. */
static const char *nearest_name(struct cli *cli, const char *word)
{
    const char *best = schema_nearest(word, cli->arena);
    for (size_t i = 0; i < registry_count; i++) {
        const struct name_list names = registry_table[i].names(cli);
        const char *candidate = text_nearest(word, names.items, names.count);
        if (candidate != NULL &&
            (best == NULL || text_distance(word, candidate) < text_distance(word, best))) {
            best = candidate;
        }
    }
    return best;
}

/* Every meaning of the name, as an array. */
static cJSON *meanings(struct cli *cli, const char *name)
{
    cJSON *array = cJSON_CreateArray();
    for (size_t i = 0; i < registry_count; i++) {
        if (holds(registry_table[i].names(cli), name)) {
            cJSON *entry = registry_table[i].describe(cli, name);
            if (entry != NULL) {
                cJSON_AddItemToArray(array, entry);
            }
        }
    }
    const char *key_text = schema_describe(name, cli->arena);
    if (key_text != NULL) {
        cJSON *entry = cJSON_CreateObject();
        cJSON_AddStringToObject(entry, "kind", "key");
        cJSON_AddStringToObject(entry, "name", name);
        cJSON_AddStringToObject(entry, "text", key_text);
        cJSON_AddItemToArray(array, entry);
    }
    return array;
}

static void print_meaning(struct cli *cli, const cJSON *entry)
{
    const cJSON *text = cJSON_GetObjectItemCaseSensitive(entry, "text");
    if (text != NULL) {
        fputs(text->valuestring, stdout);
        const size_t length = strlen(text->valuestring);
        if (length == 0 || text->valuestring[length - 1] != '\n') {
            putchar('\n');
        }
    } else {
        describe_print(cli, entry);
    }
}

static int run(struct cli *cli, const void *raw, const struct arguments *arguments)
{
    const struct describe_values *values = raw;
    const char *name = arguments->items[0];
    cJSON *array = meanings(cli, name);
    if (cli->errors.count == 0 && cJSON_GetArraySize(array) == 0) {
        const char *nearest = nearest_name(cli, name);
        error_add(&cli->errors, ERROR_unknown_name, (struct location){NULL, 0, 0}, "describe",
                  "nothing is called \"%s\"%s%s; `stepsim list` tells what there is", name,
                  nearest != NULL ? ", did you mean " : "", nearest != NULL ? nearest : "");
    }
    if (cli->errors.count > 0) {
        cJSON_Delete(array);
        return report_errors(cli);
    }
    if (values->json) {
        return print_json(array);
    }
    const cJSON *entry = NULL;
    cJSON_ArrayForEach(entry, array)
    {
        if (entry->prev != NULL && entry != array->child) {
            putchar('\n');
        }
        print_meaning(cli, entry);
    }
    cJSON_Delete(array);
    return EXIT_DONE;
}

const struct command command_describe = {
    .name = "describe",
    .group = "Look up",
    .summary = "everything about a model, device, cluster, schedule, metric, error or key",
    .usage = "NAME",
    .about = "Tells everything about one name: parameters and FLOPs of a model, every number of a\n"
             "device or cluster with its source and grade, formulas of schedules, collectives and\n"
             "compute models, meaning of metrics and error codes, and any key of the\n"
             "configuration with its unit, range and default.",
    .examples = "stepsim describe pangu_ultra_moe_718b\n"
                "stepsim describe ascend_910b3\n"
                "stepsim describe parallel.ep",
    .options = option_rows,
    .values_size = sizeof(struct describe_values),
    .arguments_min = 1,
    .arguments_max = 1,
    .run = run,
};
