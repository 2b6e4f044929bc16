/*
 * cli_internal.h - what the commands share: rows of commands and options, and output.
 *
 * A command is one file cmd_NAME.c that defines one struct command; main.c lists them. The
 * dispatcher parses the command line by the option rows into the command's own struct of
 * values, prints help, reports mistakes and calls run(). Results go to stdout, everything
 * else to stderr.
 */
#ifndef STEPSIM_CLI_INTERNAL_H
#define STEPSIM_CLI_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "stepsim/arena.h"
#include "stepsim/error.h"
#include "stepsim/scenario.h"

enum exit_status {
    EXIT_DONE = 0,
    EXIT_CHECK_FAILED = 1,
    EXIT_USAGE = 2,
    EXIT_INFEASIBLE = 3,
    EXIT_FILES = 4,
    EXIT_BUG = 70,
    EXIT_INTERRUPTED = 130
};

/* ---- Commands and options ---- */

enum option_kind {
    OPTION_FLAG,  /* bool */
    OPTION_TEXT,  /* const char * */
    OPTION_WORD,  /* const char *: one of the words */
    OPTION_COUNT, /* struct option_count, from minimum to maximum */
    OPTION_LIST,  /* struct option_list: repeatable */
};

struct option_list {
    const char **items;
    uint32_t count;
};

struct option_count {
    uint64_t value;
    bool given;
};

struct option_row {
    const char *name; /* without the dashes */
    char letter;      /* short form, -o; 0: none */
    enum option_kind kind;
    const char *argument; /* as help shows it: "KEY=VALUE"; NULL for flags */
    const char *help;
    size_t offset;             /* into the command's values */
    const char *const *words;  /* OPTION_WORD, NULL-terminated */
    uint64_t minimum, maximum; /* OPTION_COUNT; maximum 0: none */
    const char *group;         /* heading in the help */
};

/* Worker processes: a row of every command that has some. */
#define OPTION_JOBS(offset_, group_)                                                               \
    {                                                                                              \
        .name = "jobs", .kind = OPTION_COUNT, .argument = "N",                                     \
        .help = "worker processes; the number of processors if left out", .offset = (offset_),     \
        .minimum = 1, .maximum = 1024, .group = (group_)                                           \
    }

/* The positional arguments. */
struct arguments {
    const char *const *items;
    uint32_t count;
};

struct cli {
    struct arena *arena; /* lives as long as the command */
    struct error_list errors;
    bool colour;            /* stdout is a terminal that wants it */
    bool blocks;            /* stdout can show block characters */
    unsigned width;         /* columns of stdout */
    const char *config_dir; /* never NULL while a command runs */
};

struct command {
    const char *name;
    const char *group;                /* heading in `stepsim --help` */
    const char *summary;              /* one line */
    const char *usage;                /* positional arguments: "SIM.yaml" */
    const char *about;                /* paragraph of its help */
    const char *examples;             /* one command line per line */
    const struct option_row *options; /* ends with a row without a name; NULL: none of its own */
    size_t values_size;
    uint32_t arguments_min, arguments_max;
    int (*run)(struct cli *cli, const void *values, const struct arguments *arguments);
    bool hidden;
};

extern const struct command command_simulate, command_explain, command_list, command_describe,
    command_init, command_schema, command_version, command_help, command_docs, command_validate,
    command_calibrate, command_search, command_whatif, command_check, command_diff, command_sweep,
    command_query, command_merge, command_export, command_report;

/* In the order of the help; NULL-terminated. */
extern const struct command *const command_table[];
extern const struct option_row options_everywhere[];

const struct command *command_find(const char *name);

/* The result of a command line. */
struct parsed {
    void *values;
    struct arguments arguments;
    bool help;
    bool no_colour;
    const char *config_dir; /* or NULL */
};
/* False, with all mistakes in cli->errors. A call for help wins over mistakes. */
bool options_parse(struct cli *cli, const struct command *command, int argc, char **argv,
                   struct parsed *parsed);

/* The words of the command line with blanks between them, in the arena. */
const char *command_line_text(struct cli *cli);

/* ---- Help (help.c) ---- */

void help_program(struct cli *cli, FILE *out);
void help_command(struct cli *cli, const struct command *command, FILE *out);
/* docs/reference/cli.md */
struct text;
void help_markdown(struct text *page);
/* Adds the error for a word that is no command. */
void help_unknown_command(struct cli *cli, const char *word);

/* ---- Output (output.c) ---- */

enum paint { PAINT_NONE, PAINT_BOLD, PAINT_DIM, PAINT_RED, PAINT_GREEN, PAINT_YELLOW, PAINT_CYAN };

void output_setup(struct cli *cli);
/* Escape sequences, "" without colour. */
const char *paint(const struct cli *cli, enum paint paint);
/* Prints words up to the width, from a column that is already reached; lines after the first
 * are indented. Ends with a newline. */
struct wrap {
    unsigned width, column, indent;
};
void print_wrapped(FILE *out, struct wrap wrap, const char *text);
/* A bar of at most `columns` for a share between 0 and 1. */
const char *bar_text(const struct cli *cli, double share, unsigned columns);
/* A count as people write it: "717.9 B" parameters, "18 T" tokens. */
const char *count_text(const struct cli *cli, double value);
/* Prints the errors of the list and returns the exit status: that of the gravest code. */
int report_errors(struct cli *cli);
/* Prints a cJSON value and frees it. */
struct cJSON;
int print_json(struct cJSON *json);
/* Flushes stdout; a failure is told and turns the status into EXIT_FILES. */
int output_finish(int status);

/* ---- Tables (table.c) ---- */

struct table;
enum table_align { TABLE_LEFT, TABLE_RIGHT };

struct table *table_create(struct cli *cli);
void table_column(struct table *table, const char *heading, enum table_align align);
/* Starts a row; cells are added from the left. Texts are copied. */
void table_row(struct table *table);
void table_cell(struct table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Prints with `indent` blanks in front and releases the table. */
void table_print(struct table *table, unsigned indent);
/* Releases a table that is not printed. */
void table_drop(struct table *table);

/* ---- Scenarios (scenario_source.c, config_dir.c) ---- */

const char *config_dir_default(struct cli *cli);

struct scenario_ask {
    const char *path; /* "-": standard input */
    struct option_list set;
    bool seeded;
    uint64_t seed;
    const char *host_file; /* NULL: none */
};

/* Where a scenario comes from as the options ask; false with errors. */
bool scenario_source_of(struct cli *cli, const struct scenario_ask *ask,
                        struct scenario_source *source);
/* Loads a scenario as the options ask; NULL with errors. */
const struct scenario *load_scenario(struct cli *cli, const struct scenario_ask *ask);

/* ---- What there is (registry.c, describe_*.c) ---- */

struct cJSON;

struct name_list {
    const char *const *items;
    size_t count;
};

/*
 * A family of named things. `describe` builds an object whose members are printed in order:
 * texts and numbers as lines, arrays of objects as tables. NULL with errors when the entry
 * cannot be read.
 */
struct registry {
    const char *kind; /* as `list` calls it: "schedules" */
    const char *title;
    struct name_list (*names)(struct cli *cli);
    /* One line about an entry, "" if there is none. */
    const char *(*title_of)(struct cli *cli, const char *name);
    struct cJSON *(*describe)(struct cli *cli, const char *name);
};

extern const struct registry registry_table[];
extern const size_t registry_count;

const struct registry *registry_find(const char *kind);

/* Builders of the families that are more than a row (describe_facts.c). */
struct name_list model_names(struct cli *cli);
struct name_list device_names(struct cli *cli);
struct name_list cluster_names(struct cli *cli);
const char *model_title(struct cli *cli, const char *name);
const char *device_title(struct cli *cli, const char *name);
const char *cluster_title(struct cli *cli, const char *name);
struct cJSON *describe_model(struct cli *cli, const char *name);
struct cJSON *describe_device(struct cli *cli, const char *name);
struct cJSON *describe_cluster(struct cli *cli, const char *name);

/* "measured", "vendor", ...; "" for what is no fact. */
const char *fact_grade_text(enum fact_grade grade);
/* A value in its SI unit as people write it: "196 GB/s", "0.8". */
const char *fact_text(struct cli *cli, double value, const char *unit);
/* "16 GB/s to 27.2 GB/s"; "" where there is no interval, or no origin. */
const char *fact_interval_text(struct cli *cli, const struct origin *origin, const char *unit);

/* Prints a described entry for people. */
void describe_print(struct cli *cli, const struct cJSON *entry);

#endif
