/*
 * help.c - help texts from the rows of commands and options, for a terminal and for
 * docs/reference/cli.md. Examples come first, because they are what people read.
 */
#include <string.h>

#include "cli_internal.h"
#include "stepsim/text.h"

static const struct location nowhere = {NULL, 0, 0};

/* Commands of the plan that this version does not have yet. */
static const char *const later_commands[] = {"sweep",  "search", "whatif",    "query",
                                             "report", "import", "merge",     "calibrate",
                                             "export"};
static const size_t later_count = sizeof later_commands / sizeof later_commands[0];

#define NAMES_MAX  64
#define HELP_WIDTH 100

void help_unknown_command(struct cli *cli, const char *word)
{
    for (size_t i = 0; i < later_count; i++) {
        if (strcmp(word, later_commands[i]) == 0) {
            error_add(&cli->errors, ERROR_not_yet_modelled, nowhere, word,
                      "this command is planned and not there yet");
            return;
        }
    }
    const char *names[NAMES_MAX];
    size_t count = 0;
    for (size_t i = 0; command_table[i] != NULL; i++) {
        if (!command_table[i]->hidden) {
            ASSERT(count < NAMES_MAX);
            names[count++] = command_table[i]->name;
        }
    }
    const char *nearest = text_nearest(word, names, count);
    if (nearest != NULL) {
        error_add(&cli->errors, ERROR_usage, nowhere, word, "unknown command, did you mean %s?",
                  nearest);
    } else {
        error_add(&cli->errors, ERROR_usage, nowhere, word,
                  "unknown command; `stepsim --help` lists them");
    }
}

void help_program(struct cli *cli, FILE *out)
{
    (void)cli;
    fprintf(out,
            "Usage: stepsim COMMAND [ARGUMENTS]\n\n"
            "Predicts how fast a mixture-of-experts language model trains on a cluster: step "
            "time,\ntokens/s, MFU, memory of every pipeline stage, and where the time goes.\n\n"
            "Examples:\n"
            "  stepsim simulate sims/pangu_ultra_moe_6k/sim.yaml\n"
            "  stepsim explain sims/pangu_ultra_moe_6k/sim.yaml --op attention\n");
    const char *group = "";
    for (size_t i = 0; command_table[i] != NULL; i++) {
        const struct command *command = command_table[i];
        if (command->hidden) {
            continue;
        }
        if (strcmp(group, command->group) != 0) {
            group = command->group;
            fprintf(out, "\n%s:\n", group);
        }
        fprintf(out, "  %-10s %s\n", command->name, command->summary);
    }
    fprintf(out, "\n`stepsim COMMAND --help` explains a command. Results go to standard output, "
                 "messages to\nstandard error.\n\n"
                 "Exit status: 0 done; 1 a check failed; 2 usage or configuration; 3 no feasible "
                 "answer;\n4 files or database; 70 a bug; 130 interrupted.\n");
}

static void print_examples(const char *examples, FILE *out)
{
    for (const char *line = examples; *line != '\0';) {
        const size_t length = strcspn(line, "\n");
        fprintf(out, "  %.*s\n", (int)length, line);
        line += length + (line[length] == '\n' ? 1 : 0);
    }
}

static const char *option_text(struct arena *arena, const struct option_row *row)
{
    return row->kind == OPTION_FLAG ? arena_printf(arena, "--%s", row->name)
                                    : arena_printf(arena, "--%s %s", row->name, row->argument);
}

static unsigned option_width(struct arena *arena, const struct option_row *rows, unsigned width)
{
    for (; rows != NULL && rows->name != NULL; rows++) {
        const unsigned length = (unsigned)strlen(option_text(arena, rows));
        width = length > width ? length : width;
    }
    return width;
}

/* The help of one option, wrapped behind its column. */
static void print_option(struct cli *cli, const struct option_row *row, unsigned width, FILE *out)
{
    const unsigned indent = width + 6;
    fprintf(out, "  %-*s    ", (int)width, option_text(cli->arena, row));
    print_wrapped(out, (struct wrap){HELP_WIDTH, indent, indent}, row->help);
}

static void print_options(struct cli *cli, const struct option_row *rows, unsigned width, FILE *out)
{
    const char *group = NULL;
    for (; rows != NULL && rows->name != NULL; rows++) {
        const char *heading = rows->group != NULL ? rows->group : "Everywhere";
        if (group == NULL || strcmp(group, heading) != 0) {
            group = heading;
            fprintf(out, "\n%s:\n", group);
        }
        print_option(cli, rows, width, out);
    }
}

void help_command(struct cli *cli, const struct command *command, FILE *out)
{
    fprintf(out, "Usage: stepsim %s%s%s%s\n\n%s\n\nExamples:\n", command->name,
            command->options != NULL ? " [OPTIONS]" : "", command->usage[0] != '\0' ? " " : "",
            command->usage, command->about);
    print_examples(command->examples, out);
    const unsigned width =
        option_width(cli->arena, options_everywhere, option_width(cli->arena, command->options, 0));
    print_options(cli, command->options, width, out);
    print_options(cli, options_everywhere, width, out);
}

/* A cell of a Markdown table: a bar would end it. */
static void add_cell(struct text *page, const char *text)
{
    for (; *text != '\0'; text++) {
        text_add(page, "%s%c", *text == '|' ? "\\" : "", *text);
    }
}

static void add_option(struct text *page, const struct option_row *row)
{
    text_add(page, "| `--%s", row->name);
    if (row->argument != NULL) {
        text_add(page, " ");
        add_cell(page, row->argument);
    }
    text_add(page, "` | ");
    add_cell(page, row->help);
    text_add(page, " |\n");
}

void help_markdown(struct text *page)
{
    text_add(page, "# Command line\n\nGenerated by tools/docs from the tables of the program; do "
                   "not edit.\n");
    for (size_t i = 0; command_table[i] != NULL; i++) {
        const struct command *command = command_table[i];
        if (command->hidden) {
            continue;
        }
        text_add(page, "\n## stepsim %s%s%s\n\n%s\n\n```\n%s\n```\n", command->name,
                 command->usage[0] != '\0' ? " " : "", command->usage, command->about,
                 command->examples);
        if (command->options != NULL) {
            text_add(page, "\n| option | meaning |\n| --- | --- |\n");
        }
        for (const struct option_row *row = command->options; row != NULL && row->name != NULL;
             row++) {
            add_option(page, row);
        }
    }
    text_add(page, "\n## Options of every command\n\n| option | meaning |\n| --- | --- |\n");
    for (const struct option_row *row = options_everywhere; row->name != NULL; row++) {
        add_option(page, row);
    }
    text_add(page, "\n## Exit status\n\n"
                   "| status | meaning |\n| --- | --- |\n"
                   "| 0 | done |\n| 1 | a check failed |\n| 2 | usage or configuration |\n"
                   "| 3 | no feasible answer: nothing fits, or `--require-fit` and it does not |\n"
                   "| 4 | files or database |\n| 70 | a bug |\n| 130 | interrupted |\n");
}
