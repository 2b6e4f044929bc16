/*
 * assert_aborts.h - tests that a call trips an ASSERT, or runs out of arena memory.
 *
 * The call runs in a child process, which must end by SIGABRT after a message of
 * the program: an abort by the C library or a sanitizer does not count.
 */
#ifndef TEST_ASSERT_ABORTS_H
#define TEST_ASSERT_ABORTS_H

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "assert_close.h"

static inline _Noreturn void call_in_child(void (*call)(void), int messages)
{
    /* cmocka catches the crashes of a test; in the child they are just crashes. */
    const int signals[] = {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV};
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++)
        signal(signals[i], SIG_DFL);
    const struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    dup2(messages, STDERR_FILENO);
    call();
    _exit(0);
}

static inline bool call_aborts(void (*call)(void))
{
    int ends[2];
    if (pipe(ends) != 0)
        return false;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0)
        call_in_child(call, ends[1]);
    close(ends[1]);
    char messages[4096] = {0};
    size_t length = 0;
    ssize_t got;
    while ((got = read(ends[0], messages + length, sizeof messages - 1 - length)) > 0)
        length += (size_t)got;
    close(ends[0]);
    int status = 0;
    return child > 0 && waitpid(child, &status, 0) == child && WIFSIGNALED(status) &&
           WTERMSIG(status) == SIGABRT && strstr(messages, "stepsim") != NULL;
}

#define assert_aborts(call) assert_true(call_aborts(call))

#endif
