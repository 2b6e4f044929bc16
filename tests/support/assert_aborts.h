/*
 * assert_aborts.h - tests that a call trips an ASSERT.
 *
 * The call runs in a child process, whose messages are thrown away; the child
 * must end by SIGABRT.
 */
#ifndef TEST_ASSERT_ABORTS_H
#define TEST_ASSERT_ABORTS_H

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "assert_close.h"

static inline bool call_aborts(void (*call)(void))
{
    const pid_t child = fork();
    if (child == 0) {
        const struct rlimit no_core = {0, 0};
        setrlimit(RLIMIT_CORE, &no_core);
        signal(SIGABRT, SIG_DFL);
        dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
        call();
        _exit(0);
    }
    int status = 0;
    return child > 0 && waitpid(child, &status, 0) == child && WIFSIGNALED(status) &&
           WTERMSIG(status) == SIGABRT;
}

#define assert_aborts(call) assert_true(call_aborts(call))

#endif
