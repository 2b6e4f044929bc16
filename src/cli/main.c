/*
 * main.c - the table of commands, and the way from a command line to an exit status.
 */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "cli_internal.h"

const struct command *const command_table[] = {
    &command_simulate, &command_search,   &command_whatif,
    &command_sweep,    &command_query,    &command_merge,
    &command_export,   &command_report,   &command_explain,
    &command_diff,     &command_validate, &command_calibrate,
    &command_check,    &command_list,     &command_describe,
    &command_init,     &command_schema,   &command_version,
    &command_help,     &command_docs,     NULL,
};

const struct command *command_find(const char *name)
{
    for (size_t i = 0; command_table[i] != NULL; i++) {
        if (strcmp(command_table[i]->name, name) == 0) {
            return command_table[i];
        }
    }
    return NULL;
}

/* A failed ASSERT has printed its line; the status tells a bug from a mistake of the user. */
static void on_abort(int signal_number)
{
    (void)signal_number;
    _exit(EXIT_BUG);
}

static int run_command(struct cli *cli, const struct command *command, int argc, char **argv)
{
    struct parsed parsed;
    const bool understood = options_parse(cli, command, argc, argv, &parsed);
    cli->colour = cli->colour && !parsed.no_colour;
    cli->config_dir = parsed.config_dir != NULL ? parsed.config_dir : config_dir_default(cli);
    if (parsed.help) {
        help_command(cli, command, stdout);
        return EXIT_DONE;
    }
    return understood ? command->run(cli, parsed.values, &parsed.arguments) : report_errors(cli);
}

static int dispatch(struct cli *cli, int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : NULL;
    if (word == NULL) {
        help_program(cli, stderr);
        return EXIT_USAGE;
    }
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        help_program(cli, stdout);
        return EXIT_DONE;
    }
    const struct command *command = command_find(strcmp(word, "--version") == 0 ? "version" : word);
    if (command == NULL) {
        help_unknown_command(cli, word);
        return report_errors(cli);
    }
    return run_command(cli, command, argc - 2, argv + 2);
}

int main(int argc, char **argv)
{
    signal(SIGABRT, on_abort);
    struct cli cli = {.arena = arena_create("command")};
    error_list_init(&cli.errors, cli.arena);
    output_setup(&cli);
    const int status = output_finish(dispatch(&cli, argc, argv));
    arena_destroy(cli.arena);
    return status;
}
