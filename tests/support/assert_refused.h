/*
 * assert_refused.h - tests that a mistake was reported, with its code and its advice.
 *
 * assert_refused(errors, code, fragment): some error has this code, and its message
 * contains the fragment. assert_accepted(errors): there is none. Both print what was
 * reported otherwise.
 */
#ifndef TEST_ASSERT_REFUSED_H
#define TEST_ASSERT_REFUSED_H

#include <string.h>

#include "assert_close.h"
#include "stepsim/arena.h"
#include "stepsim/error.h"

static inline bool was_refused(const struct error_list *errors, enum error_code code,
                               const char *fragment)
{
    for (size_t i = 0; i < errors->count && i < ERROR_LIST_MAX; i++)
        if (errors->items[i].code == code && strstr(errors->items[i].message, fragment) != NULL)
            return true;
    return false;
}

static inline void check_refused(const struct error_list *errors, enum error_code code,
                                 const char *fragment, const char *file, int line)
{
    if (was_refused(errors, code, fragment))
        return;
    print_error("no error %s with \"%s\"; %zu reported:\n%s", error_code_name(code), fragment,
                errors->count, error_list_text(errors, errors->arena));
    _fail(file, line);
}

static inline void check_accepted(const struct error_list *errors, const char *file, int line)
{
    if (errors->count == 0)
        return;
    print_error("refused: %s", error_list_text(errors, errors->arena));
    _fail(file, line);
}

#define assert_refused(errors, code, fragment)                                                     \
    check_refused((errors), (code), (fragment), __FILE__, __LINE__)
#define assert_accepted(errors) check_accepted((errors), __FILE__, __LINE__)

#endif
