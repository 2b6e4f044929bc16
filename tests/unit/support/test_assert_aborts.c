/* test_assert_aborts.c - only our own abort counts as one. */
#include "assert_aborts.h"

#include <stdlib.h>

#include "stepsim/error.h"

static void fail_an_assert(void)
{
    ASSERT(1 + 1 == 3);
}

static void abort_silently(void)
{
    abort();
}

static void crash(void)
{
    fputs("stepsim\n", stderr);
    raise(SIGSEGV);
}

static void return_quietly(void)
{
    fputs("stepsim\n", stderr);
}

static void exit_as_a_shell_reports_aborts(void)
{
    fputs("stepsim\n", stderr);
    _exit(128 + SIGABRT);
}

static void only_a_failed_assert_counts(void **state)
{
    (void)state;
    assert_true(call_aborts(fail_an_assert));
    assert_false(call_aborts(abort_silently));
    assert_false(call_aborts(crash));
    assert_false(call_aborts(return_quietly));
    assert_false(call_aborts(exit_as_a_shell_reports_aborts));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_a_failed_assert_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
