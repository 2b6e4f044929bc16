/*
 * output.c - what depends on where the output goes: colours, width, block characters, and
 * the check at the end that everything was written.
 *
 * Colours are for terminals only and NO_COLOR (any text but an empty one) or TERM=dumb
 * switches them off. A full disk is an error that nobody may miss; a reader that went away
 * ends the program silently, as usual for SIGPIPE.
 */
#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli_internal.h"
#include "stepsim/text.h"

#define WIDTH_DEFAULT 100u
#define WIDTH_MIN     40u
#define WIDTH_MAX     200u

/* A descriptor that was closed by the caller must not be reused for a file of ours. */
static void occupy_standard_descriptors(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) == -1 && errno == EBADF) {
            /* Not writable on purpose: writing to a closed stdout is an error. */
            const int opened = open("/dev/null", fd == STDERR_FILENO ? O_WRONLY : O_RDONLY);
            (void)opened;
        }
    }
}

static bool wants_colour(void)
{
    const char *no_color = getenv("NO_COLOR");
    const char *term = getenv("TERM");
    return isatty(STDOUT_FILENO) == 1 && (no_color == NULL || no_color[0] == '\0') &&
           (term == NULL || strcmp(term, "dumb") != 0);
}

static unsigned terminal_width(void)
{
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) {
        return WIDTH_DEFAULT;
    }
    const unsigned width = size.ws_col;
    return width < WIDTH_MIN ? WIDTH_MIN : width > WIDTH_MAX ? WIDTH_MAX : width;
}

void output_setup(struct cli *cli)
{
    occupy_standard_descriptors();
    /* Characters only; numbers keep their decimal point everywhere. */
    setlocale(LC_CTYPE, "");
    cli->colour = wants_colour();
    cli->blocks = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    cli->width = terminal_width();
}

const char *paint(const struct cli *cli, enum paint paint)
{
    static const char *const codes[] = {
        [PAINT_NONE] = "\033[0m",  [PAINT_BOLD] = "\033[1m",   [PAINT_DIM] = "\033[2m",
        [PAINT_RED] = "\033[31m",  [PAINT_GREEN] = "\033[32m", [PAINT_YELLOW] = "\033[33m",
        [PAINT_CYAN] = "\033[36m",
    };
    return cli->colour ? codes[paint] : "";
}

void print_wrapped(FILE *out, struct wrap wrap, const char *text)
{
    unsigned column = wrap.column;
    bool first = true;
    while (*text != '\0') {
        const unsigned word = (unsigned)strcspn(text, " ");
        if (!first && column + 1 + word > wrap.width) {
            fprintf(out, "\n%*s", (int)wrap.indent, "");
            column = wrap.indent;
        } else if (!first) {
            fputc(' ', out);
            column++;
        }
        fprintf(out, "%.*s", (int)word, text);
        column += word;
        first = false;
        text += word + (text[word] == ' ' ? 1 : 0);
    }
    fputc('\n', out);
}

const char *bar_text(const struct cli *cli, double share, unsigned columns)
{
    const unsigned filled = (unsigned)(share * (double)columns + 0.5);
    const char *bar = "";
    for (unsigned i = 0; i < filled; i++) {
        bar = arena_printf(cli->arena, "%s%s", bar, cli->blocks ? "\u2588" : "#");
    }
    return bar;
}

const char *count_text(const struct cli *cli, double value)
{
    static const struct {
        double size;
        const char *suffix;
    } scales[] = {{1e12, " T"}, {1e9, " B"}, {1e6, " M"}, {1e3, " k"}};
    for (size_t i = 0; i < sizeof scales / sizeof scales[0]; i++) {
        if (value >= scales[i].size) {
            return arena_printf(cli->arena, "%.4g%s", value / scales[i].size, scales[i].suffix);
        }
    }
    return arena_printf(cli->arena, "%.4g", value);
}

int report_errors(struct cli *cli)
{
    ASSERT(cli->errors.count > 0);
    const size_t kept = cli->errors.count < ERROR_LIST_MAX ? cli->errors.count : ERROR_LIST_MAX;
    int status = EXIT_DONE;
    for (size_t i = 0; i < kept; i++) {
        const int other = error_code_exit_status(cli->errors.items[i].code);
        status = other > status ? other : status;
    }
    fflush(stdout);
    fputs(error_list_text(&cli->errors, cli->arena), stderr);
    return status;
}

int print_json(struct cJSON *json)
{
    ASSERT(json != NULL);
    char *text = cJSON_Print(json);
    ASSERT(text != NULL);
    puts(text);
    cJSON_free(text);
    cJSON_Delete(json);
    return EXIT_DONE;
}

/* Has the reader of a pipe gone away? The failed write may lie far back, so errno is no help. */
static bool reader_is_gone(void)
{
    struct pollfd stdout_state = {.fd = STDOUT_FILENO, .events = POLLOUT};
    return poll(&stdout_state, 1, 0) == 1 && (stdout_state.revents & POLLERR) != 0;
}

int output_finish(int status)
{
    errno = 0;
    const bool failed = ferror(stdout) != 0 || fflush(stdout) != 0;
    if (!failed) {
        return status;
    }
    const int reason = errno;
    if (!reader_is_gone()) {
        fprintf(stderr, "stepsim: error: standard output: %s [%s]\n",
                reason != 0 ? strerror(reason) : "cannot be written",
                error_code_name(ERROR_file_not_writable));
    }
    return EXIT_FILES;
}
