/*
 * error.c - the table of codes, the list, and the one form in which errors are printed.
 *
 * Messages quote what the user wrote, and that may be anything. Control
 * characters are written as escapes, so that an error stays one line and cannot
 * reach the terminal, and a text of absurd length is cut.
 */
#include "stepsim/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stepsim/arena.h"
#include "stepsim/text.h"

#define PRINTED_BYTES_MAX 1000

static const struct {
    const char *name;
    int exit_status;
    const char *meaning;
} codes[] = {
#define ERROR_ROW(name, status, meaning) {#name, status, meaning},
#include "error_list.def"
#undef ERROR_ROW
};
_Static_assert(sizeof codes / sizeof codes[0] == ERROR_CODE_COUNT, "one row per code");

const char *error_code_name(enum error_code code)
{
    ASSERT(code < ERROR_CODE_COUNT);
    return codes[code].name;
}

const char *error_code_meaning(enum error_code code)
{
    ASSERT(code < ERROR_CODE_COUNT);
    return codes[code].meaning;
}

int error_code_exit_status(enum error_code code)
{
    ASSERT(code < ERROR_CODE_COUNT);
    return codes[code].exit_status;
}

void error_list_init(struct error_list *list, struct arena *arena)
{
    ASSERT(list != NULL);
    ASSERT(arena != NULL);
    *list = (struct error_list){.arena = arena};
}

/* Length of the part that is printed, cut between characters of UTF-8. */
static size_t printed_length(const char *text)
{
    size_t length = strnlen(text, PRINTED_BYTES_MAX + 1);
    if (length <= PRINTED_BYTES_MAX)
        return length;
    length = PRINTED_BYTES_MAX;
    while (length > 0 && ((unsigned char)text[length] & 0xC0u) == 0x80u)
        length--;
    return length;
}

/* A copy in the arena that is safe to print on one line. NULL stays NULL. */
static const char *printable(struct arena *arena, const char *text)
{
    if (text == NULL)
        return NULL;
    struct text safe = {0};
    const size_t length = printed_length(text);
    for (size_t i = 0; i < length; i++) {
        const unsigned char byte = (unsigned char)text[i];
        if (byte == '\n')
            text_add(&safe, "\\n");
        else if (byte == '\t')
            text_add(&safe, "\\t");
        else if (byte < 0x20 || byte == 0x7F)
            text_add(&safe, "\\x%02x", (unsigned)byte);
        else
            text_add_bytes(&safe, &text[i], 1);
    }
    if (text[length] != '\0')
        text_add(&safe, "...");
    const char *copy = arena_strdup(arena, text_string(&safe));
    text_free(&safe);
    return copy;
}

void error_add(struct error_list *list, enum error_code code, struct location at, const char *key,
               const char *format, ...)
{
    ASSERT(list != NULL);
    ASSERT(list->arena != NULL);
    ASSERT(code < ERROR_CODE_COUNT);

    const size_t index = list->count++;
    if (index >= ERROR_LIST_MAX)
        return;
    va_list args;
    va_start(args, format);
    const char *message = arena_vprintf(list->arena, format, args);
    va_end(args);
    list->items[index] = (struct error){
        .code = code,
        .at = {printable(list->arena, at.file), at.line, at.column},
        .key = printable(list->arena, key),
        .message = printable(list->arena, message),
    };
}

/* "FILE:LINE:COL: ", as far as it is known; the program's name where there is no file. */
static void add_location(struct text *text, struct location at)
{
    if (at.file == NULL)
        text_add(text, "stepsim: ");
    else if (at.line == 0)
        text_add(text, "%s: ", at.file);
    else if (at.column == 0)
        text_add(text, "%s:%u: ", at.file, (unsigned)at.line);
    else
        text_add(text, "%s:%u:%u: ", at.file, (unsigned)at.line, (unsigned)at.column);
}

char *error_list_text(const struct error_list *list, struct arena *arena)
{
    ASSERT(list != NULL);
    const size_t kept = list->count < ERROR_LIST_MAX ? list->count : ERROR_LIST_MAX;
    struct text text = {0};
    for (size_t i = 0; i < kept; i++) {
        const struct error *error = &list->items[i];
        add_location(&text, error->at);
        text_add(&text, "error: ");
        if (error->key != NULL)
            text_add(&text, "%s: ", error->key);
        text_add(&text, "%s [%s]\n", error->message, error_code_name(error->code));
    }
    if (list->count > kept)
        text_add(&text, "%zu errors, the first %zu shown\n", list->count, kept);
    else if (list->count > 1)
        text_add(&text, "%zu errors\n", list->count);
    char *copy = arena_strdup(arena, text_string(&text));
    text_free(&text);
    return copy;
}

/* A good place for a breakpoint: every failed ASSERT passes here. */
_Noreturn void assert_fail(const char *expression, const char *file, int line)
{
    fflush(stdout);
    fprintf(stderr, "%s:%d: stepsim has a bug: ASSERT(%s) does not hold\n", file, line, expression);
    abort();
}
