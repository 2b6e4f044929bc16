/*
 * case_list.h - tests named after the rows of the case table, and the proof that none is missing.
 *
 * CASE_TEST(l01) is the test of row L01. assert_cases_listed() fails for a row whose id begins
 * with one of the letters and has no test.
 */
#ifndef TEST_CASE_LIST_H
#define TEST_CASE_LIST_H

#include <string.h>
#include <strings.h>

#include "assert_close.h"
#include "case_table.h"

#define CASE_TEST(name)                                                                            \
    {                                                                                              \
#name, name, NULL, NULL, NULL                                                              \
    }

static inline void assert_cases_listed(const struct case_table *table, const char *letters,
                                       const struct CMUnitTest *tests, size_t count)
{
    for (size_t row = 0; row < case_table_rows(table); row++) {
        const char *id = case_table_id(table, row);
        size_t i = 0;
        while (i < count && strcasecmp(tests[i].name, id) != 0)
            i++;
        if (strchr(letters, id[0]) != NULL && i == count)
            fail_msg("no test asks case %s", id);
    }
}

#endif
