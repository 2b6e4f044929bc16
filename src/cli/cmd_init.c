/* cmd_init.c - an annotated scenario to start from. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "cli_internal.h"
#include "stepsim/schema.h"

static int cannot_write(struct cli *cli, const char *path, int error_number)
{
    error_add(&cli->errors, ERROR_file_not_writable, (struct location){path, 0, 0}, NULL, "%s",
              error_number == EEXIST ? "exists already; choose another name or remove it first"
                                     : strerror(error_number));
    return report_errors(cli);
}

static int run(struct cli *cli, const void *raw, const struct arguments *arguments)
{
    (void)raw;
    const char *text = schema_template(cli->arena);
    const char *path = arguments->count > 0 ? arguments->items[0] : "-";
    if (strcmp(path, "-") == 0) {
        fputs(text, stdout);
        return EXIT_DONE;
    }
    const int descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor < 0) {
        return cannot_write(cli, path, errno);
    }
    FILE *file = fdopen(descriptor, "w");
    ASSERT(file != NULL);
    const bool written = fputs(text, file) != EOF;
    const int write_error = errno;
    if (fclose(file) != 0 || !written) {
        return cannot_write(cli, path, written ? errno : write_error);
    }
    fprintf(stderr, "wrote %s; `stepsim simulate %s` runs it\n", path, path);
    return EXIT_DONE;
}

const struct command command_init = {
    .name = "init",
    .group = "Write",
    .summary = "an annotated scenario with every key, its default and its meaning",
    .usage = "[FILE.yaml]",
    .about =
        "Writes a scenario with every key, its default and its meaning as a comment, to a new\n"
        "file or to standard output. An existing file is never overwritten.",
    .examples = "stepsim init my.yaml\nstepsim init > my.yaml",
    .options = NULL,
    .values_size = 1,
    .arguments_min = 0,
    .arguments_max = 1,
    .run = run,
};
