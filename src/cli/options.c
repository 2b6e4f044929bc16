/*
 * options.c - option rows to values: exact long names, suggestions, all mistakes at once.
 *
 * Accepted forms are --name, --name=VALUE and --name VALUE; -h is the only short option.
 * Names are never abbreviated, so that a script keeps its meaning when options are added.
 * What follows "--" is positional.
 */
#include <stdlib.h>
#include <string.h>

#include "cli_internal.h"
#include "stepsim/quantity.h"
#include "stepsim/text.h"

#define NAMES_MAX 64

/* Options of every command; their offsets are into struct parsed. */
const struct option_row options_everywhere[] = {
    {.name = "config-dir",
     .kind = OPTION_TEXT,
     .argument = "DIR",
     .help = "folder with models/, devices/ and clusters/; the variable STEPSIM_CONFIG_DIR does "
             "the same",
     .offset = offsetof(struct parsed, config_dir)},
    {.name = "help",
     .kind = OPTION_FLAG,
     .help = "print this help (also -h)",
     .offset = offsetof(struct parsed, help)},
    {.name = "no-color",
     .kind = OPTION_FLAG,
     .help = "no colours; the variable NO_COLOR does the same",
     .offset = offsetof(struct parsed, no_colour)},
    {.name = NULL},
};

/* State of one command line. */
struct scan {
    struct cli *cli;
    const struct command *command;
    struct parsed *parsed;
    int argc;
    char **argv;
    int next;
    bool seen[NAMES_MAX];
    const char **positional;
};

static const struct location nowhere = {NULL, 0, 0};

static const struct option_row *find_row(const struct option_row *rows, const char *name,
                                         size_t length)
{
    for (; rows != NULL && rows->name != NULL; rows++) {
        if (strlen(rows->name) == length && strncmp(rows->name, name, length) == 0) {
            return rows;
        }
    }
    return NULL;
}

static void unknown_option(struct scan *scan, const char *name)
{
    const char *names[2 * NAMES_MAX];
    size_t count = 0;
    for (const struct option_row *row = options_everywhere; row->name != NULL; row++) {
        names[count++] = row->name;
    }
    for (const struct option_row *row = scan->command->options; row != NULL && row->name != NULL;
         row++) {
        ASSERT(count < 2 * NAMES_MAX);
        names[count++] = row->name;
    }
    const char *nearest = text_nearest(name, names, count);
    struct arena *arena = scan->cli->arena;
    if (nearest != NULL) {
        error_add(&scan->cli->errors, ERROR_usage, nowhere, arena_printf(arena, "--%s", name),
                  "unknown option, did you mean --%s?", nearest);
    } else {
        error_add(&scan->cli->errors, ERROR_usage, nowhere, arena_printf(arena, "--%s", name),
                  "unknown option; `stepsim %s --help` lists them", scan->command->name);
    }
}

static bool one_of_words(const struct option_row *row, const char *value)
{
    for (size_t i = 0; row->words[i] != NULL; i++) {
        if (strcmp(row->words[i], value) == 0) {
            return true;
        }
    }
    return false;
}

static const char *words_text(struct arena *arena, const struct option_row *row)
{
    const char *text = row->words[0];
    for (size_t i = 1; row->words[i] != NULL; i++) {
        text = arena_printf(arena, "%s, %s", text, row->words[i]);
    }
    return text;
}

static void store_count(struct scan *scan, const struct option_row *row, const char *value,
                        void *field)
{
    struct quantity_problem problem;
    const char *key = arena_printf(scan->cli->arena, "--%s", row->name);
    const uint64_t maximum = row->maximum != 0 ? row->maximum : UINT64_MAX;
    uint64_t number = 0;
    if (!quantity_parse_uint(value, maximum, &number, &problem)) {
        error_add(&scan->cli->errors, ERROR_usage, nowhere, key, "%s", problem.message);
    } else if (number < row->minimum) {
        error_add(&scan->cli->errors, ERROR_usage, nowhere, key, "%s is below the minimum of %llu",
                  value, (unsigned long long)row->minimum);
    } else {
        *(struct option_count *)field = (struct option_count){number, true};
    }
}

static void store_value(struct scan *scan, const struct option_row *row, const char *value,
                        void *base)
{
    void *field = (char *)base + row->offset;
    switch (row->kind) {
    case OPTION_FLAG:
        *(bool *)field = true;
        break;
    case OPTION_WORD:
        if (!one_of_words(row, value)) {
            error_add(&scan->cli->errors, ERROR_usage, nowhere,
                      arena_printf(scan->cli->arena, "--%s", row->name), "\"%s\" is not one of: %s",
                      value, words_text(scan->cli->arena, row));
        }
        *(const char **)field = value;
        break;
    case OPTION_TEXT:
        *(const char **)field = value;
        break;
    case OPTION_COUNT:
        store_count(scan, row, value, field);
        break;
    case OPTION_LIST: {
        struct option_list *list = field;
        if (list->items == NULL) {
            list->items = ARENA_ARRAY(scan->cli->arena, (size_t)scan->argc, const char *);
        }
        list->items[list->count++] = value;
        break;
    }
    }
}

static void refuse_second(struct scan *scan, const struct option_row *row)
{
    const size_t index = (size_t)(row - scan->command->options);
    ASSERT(index < NAMES_MAX);
    if (scan->seen[index] && row->kind != OPTION_LIST && row->kind != OPTION_FLAG) {
        error_add(&scan->cli->errors, ERROR_usage, nowhere,
                  arena_printf(scan->cli->arena, "--%s", row->name), "given twice");
    }
    scan->seen[index] = true;
}

/* The long name of a short option of the command, "-o"; NULL if there is none. */
static const char *long_name(const struct command *command, const char *word)
{
    for (const struct option_row *row = command->options; row != NULL && row->name != NULL; row++) {
        if (row->letter != 0 && word[1] == row->letter && word[2] == '\0') {
            return row->name;
        }
    }
    return NULL;
}

/* The option at argv[next]; moves next past it and its value. */
static void take_option(struct scan *scan)
{
    const char *name = scan->argv[scan->next++] + 2;
    const char *equals = strchr(name, '=');
    const size_t length = equals != NULL ? (size_t)(equals - name) : strlen(name);
    const struct option_row *row = find_row(options_everywhere, name, length);
    const bool everywhere = row != NULL;
    if (row == NULL) {
        row = find_row(scan->command->options, name, length);
    }
    if (row == NULL) {
        unknown_option(scan, arena_strndup(scan->cli->arena, name, length));
        return;
    }
    const char *key = arena_printf(scan->cli->arena, "--%s", row->name);
    if (row->kind == OPTION_FLAG && equals != NULL) {
        error_add(&scan->cli->errors, ERROR_usage, nowhere, key, "takes no value");
        return;
    }
    if (!everywhere) {
        refuse_second(scan, row);
    }
    const char *value = equals != NULL ? equals + 1 : NULL;
    if (row->kind != OPTION_FLAG && value == NULL) {
        if (scan->next == scan->argc) {
            error_add(&scan->cli->errors, ERROR_usage, nowhere, key, "needs a value: --%s %s",
                      row->name, row->argument);
            return;
        }
        value = scan->argv[scan->next++];
    }
    store_value(scan, row, value, everywhere ? (void *)scan->parsed : scan->parsed->values);
}

static void check_positional(struct scan *scan)
{
    const struct command *command = scan->command;
    const struct arguments *arguments = &scan->parsed->arguments;
    if (arguments->count < command->arguments_min) {
        error_add(&scan->cli->errors, ERROR_usage, nowhere, command->name,
                  "something is missing: stepsim %s %s", command->name, command->usage);
    } else if (arguments->count > command->arguments_max) {
        error_add(&scan->cli->errors, ERROR_usage, nowhere, command->name,
                  "\"%s\" is one argument too many: stepsim %s %s",
                  arguments->items[command->arguments_max], command->name, command->usage);
    }
}

bool options_parse(struct cli *cli, const struct command *command, int argc, char **argv,
                   struct parsed *parsed)
{
    struct scan scan = {
        .cli = cli,
        .command = command,
        .parsed = parsed,
        .argc = argc,
        .argv = argv,
        .positional = ARENA_ARRAY(cli->arena, (size_t)argc + 1, const char *),
    };
    *parsed = (struct parsed){.values = arena_alloc(cli->arena, command->values_size)};
    parsed->arguments.items = scan.positional;
    bool options_end = false;
    while (scan.next < argc) {
        const char *word = argv[scan.next];
        if (!options_end && strcmp(word, "--") == 0) {
            options_end = true;
            scan.next++;
        } else if (!options_end && strcmp(word, "-h") == 0) {
            parsed->help = true;
            scan.next++;
        } else if (!options_end && strncmp(word, "--", 2) == 0) {
            take_option(&scan);
        } else if (!options_end && word[0] == '-' && long_name(command, word) != NULL) {
            argv[scan.next] =
                arena_printf(cli->arena, "--%s", long_name(command, word));
            take_option(&scan);
        } else if (!options_end && word[0] == '-' && word[1] != '\0') {
            error_add(
                &cli->errors, ERROR_usage, nowhere, word,
                "is no short option here; `stepsim %s --help` lists the long ones",
                command->name);
            scan.next++;
        } else {
            scan.positional[parsed->arguments.count++] = word;
            scan.next++;
        }
    }
    check_positional(&scan);
    return cli->errors.count == 0;
}
