/*
 * error.h - the user's mistakes, collected with position, code and advice.
 *
 * Two species: a mistake of the user is added to a struct error_list and the
 * function returns false or NULL; a mistake of ours trips ASSERT. Every stage
 * reports all the errors that it can find. Only src/cli prints them, as
 * FILE:LINE:COL: error: KEY: message [code].
 *
 * The codes are rows of src/base/error_list.def; docs/reference/errors.md is
 * generated from it.
 */
#ifndef STEPSIM_ERROR_H
#define STEPSIM_ERROR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;

enum error_code {
#define ERROR_ROW(name, status, meaning) ERROR_##name,
#include "../../src/base/error_list.def"
#undef ERROR_ROW
    ERROR_CODE_COUNT
};

/* The stable name of a code, as printed and stored: "layers_not_divisible_by_pp". */
const char *error_code_name(enum error_code code);
/* What the code means, one sentence. */
const char *error_code_meaning(enum error_code code);
/* Exit status of a program that ends with it: 2, 3 or 4. */
int error_code_exit_status(enum error_code code);

struct location {
    const char *file; /* NULL when the value came from --set or a default */
    uint32_t line;    /* 1-based, 0 when unknown */
    uint32_t column;  /* 1-based, 0 when unknown */
};

struct error {
    enum error_code code;
    struct location at;
    const char *key;     /* key path "parallel.tp", or NULL */
    const char *message; /* reason, the values that clash, and what would work */
};

/* Items and strings live in the arena. More than ERROR_LIST_MAX are counted, not kept. */
#define ERROR_LIST_MAX 64
struct error_list {
    struct arena *arena;
    struct error items[ERROR_LIST_MAX];
    size_t count; /* all errors reported; min(count, ERROR_LIST_MAX) are kept */
};

/* Texts are copied; control characters in them are escaped, and 1000 bytes of each are kept. */
void error_list_init(struct error_list *list, struct arena *arena);
void error_add(struct error_list *list, enum error_code code, struct location at, const char *key,
               const char *format, ...) __attribute__((format(printf, 5, 6)));
/* One line per error: "FILE:LINE:COL: error: KEY: message [code]", then a count if several. */
char *error_list_text(const struct error_list *list, struct arena *arena);

/* Our mistakes. ASSERT stays on in release builds. */
_Noreturn void assert_fail(const char *expression, const char *file, int line);
#define ASSERT(expression)                                                                         \
    ((expression) ? (void)0 : assert_fail(#expression, __FILE__, __LINE__))
#ifdef NDEBUG
#define ASSERT_SLOW(expression) ((void)0)
#else
#define ASSERT_SLOW(expression) ASSERT(expression)
#endif

#endif
