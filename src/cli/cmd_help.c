/* cmd_help.c - `stepsim help COMMAND` is `stepsim COMMAND --help`. */
#include "cli_internal.h"

static int run(struct cli *cli, const void *raw, const struct arguments *arguments)
{
    (void)raw;
    if (arguments->count == 0) {
        help_program(cli, stdout);
        return EXIT_DONE;
    }
    const struct command *command = command_find(arguments->items[0]);
    if (command == NULL) {
        help_unknown_command(cli, arguments->items[0]);
        return report_errors(cli);
    }
    help_command(cli, command, stdout);
    return EXIT_DONE;
}

const struct command command_help = {
    .name = "help",
    .group = "Look up",
    .summary = "help of the program or of a command",
    .usage = "[COMMAND]",
    .about = "Prints the help of a command; without one, that of the program.",
    .examples = "stepsim help simulate",
    .options = NULL,
    .values_size = 1,
    .arguments_min = 0,
    .arguments_max = 1,
    .run = run,
};
