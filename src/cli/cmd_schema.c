/* cmd_schema.c - the JSON Schema of a configuration file, for editors. */
#include "cli_internal.h"
#include "stepsim/schema.h"

static int run(struct cli *cli, const void *raw, const struct arguments *arguments)
{
    (void)raw;
    const char *name = arguments->count > 0 ? arguments->items[0] : "scenario";
    const char *text = schema_json(name, cli->arena);
    if (text == NULL) {
        error_add(&cli->errors, ERROR_usage, (struct location){NULL, 0, 0}, "schema",
                  "there is no file kind \"%s\"; the kinds are scenario, model, cluster, device",
                  name);
        return report_errors(cli);
    }
    puts(text);
    return EXIT_DONE;
}

const struct command command_schema = {
    .name = "schema",
    .group = "Write",
    .summary = "JSON Schema (draft-07) of scenario, model, cluster and device files",
    .usage = "[scenario|model|cluster|device]",
    .about = "Prints the JSON Schema of a file, for editors that complete and check YAML. Put\n"
             "`# yaml-language-server: $schema=FILE` on the first line of the YAML.",
    .examples = "stepsim schema > stepsim.schema.json\nstepsim schema model",
    .options = NULL,
    .values_size = 1,
    .arguments_min = 0,
    .arguments_max = 1,
    .run = run,
};
