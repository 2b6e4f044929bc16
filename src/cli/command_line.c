/* command_line.c - the command line as it was typed, for provenance. */
#include "cli_internal.h"
#include "stepsim/text.h"

const char *command_line_text(struct cli *cli)
{
    struct text line = {0};
    FILE *file = fopen("/proc/self/cmdline", "r");
    for (int c = file != NULL ? fgetc(file) : EOF; c != EOF; c = fgetc(file)) {
        const char letter = c == '\0' ? ' ' : (char)c;
        text_add_bytes(&line, &letter, 1);
    }
    if (file != NULL) {
        fclose(file);
    }
    while (line.length > 0 && line.data[line.length - 1] == ' ') {
        line.data[--line.length] = '\0';
    }
    const char *copy = arena_strdup(cli->arena, text_string(&line));
    text_free(&line);
    return copy;
}
