/* cmd_version.c - which program this is, and what it was built with. */
#include <cjson/cJSON.h>
#include <libsmartcols/libsmartcols.h>

#include "cli_internal.h"
#include "stepsim_version.h"

struct version_values {
    bool json;
};

static const struct option_row option_rows[] = {
    {.name = "json",
     .kind = OPTION_FLAG,
     .help = "one JSON object",
     .offset = offsetof(struct version_values, json),
     .group = "Output"},
    {.name = NULL},
};

static int run(struct cli *cli, const void *raw, const struct arguments *arguments)
{
    (void)cli;
    (void)arguments;
    const struct version_values *values = raw;
    const char *smartcols = NULL;
    scols_get_library_version(&smartcols);
    if (!values->json) {
        printf("stepsim %s (%s)\n", STEPSIM_VERSION, STEPSIM_COMMIT);
        return EXIT_DONE;
    }
    cJSON *json = cJSON_CreateObject();
    cJSON_AddStringToObject(json, "version", STEPSIM_VERSION);
    cJSON_AddStringToObject(json, "commit", STEPSIM_COMMIT);
    cJSON_AddStringToObject(json, "compiler", __VERSION__);
    cJSON_AddStringToObject(json, "cjson", cJSON_Version());
    cJSON_AddStringToObject(json, "libsmartcols", smartcols);
    return print_json(json);
}

const struct command command_version = {
    .name = "version",
    .group = "Look up",
    .summary = "version and commit of the program",
    .usage = "",
    .about = "Prints the version and the commit; with --json also compiler and libraries.",
    .examples = "stepsim version\nstepsim version --json",
    .options = option_rows,
    .values_size = sizeof(struct version_values),
    .arguments_min = 0,
    .arguments_max = 0,
    .run = run,
};
