/*
 * workers.c - spreads independent work over processes.
 *
 * Workers take the next piece from a counter in shared memory. A worker that ends badly has met
 * a bug of ours, which is told and ends the program: a search that skips a candidate in silence
 * would claim what it has not proven.
 */
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "search_internal.h"
#include "stepsim/arena.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct counters {
    _Atomic uint64_t next, done;
};

void *share_alloc(size_t bytes)
{
    void *memory = mmap(NULL, bytes > 0 ? bytes : 1, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT(memory != MAP_FAILED);
    return memory;
}

void share_free(void *memory, size_t bytes)
{
    munmap(memory, bytes > 0 ? bytes : 1);
}

static void work(const struct share *share, struct counters *counters)
{
    struct arena *arena = arena_create("search");
    for (;;) {
        const uint64_t begin = atomic_fetch_add(&counters->next, share->grain);
        if (begin >= share->count) {
            break;
        }
        const uint64_t end =
            begin + share->grain < share->count ? begin + share->grain : share->count;
        for (uint64_t i = begin; i < end; i++) {
            share->work(share->user, i, arena);
            arena_reset(arena);
        }
        atomic_fetch_add(&counters->done, end - begin);
    }
    arena_destroy(arena);
}

static void poll_now(const struct share *share, struct counters *counters)
{
    if (share->poll != NULL) {
        share->poll(share->user, atomic_load(&counters->done));
    }
}

/* Waits for our own workers only. */
static void await(const struct share *share, struct counters *counters, pid_t *workers,
                  uint32_t count)
{
    const struct timespec pause = {.tv_nsec = 2 * 1000 * 1000};
    uint32_t left = count;
    for (uint32_t turn = 0; left > 0; turn++) {
        for (uint32_t i = 0; i < count; i++) {
            int status = 0;
            if (workers[i] <= 0 || waitpid(workers[i], &status, WNOHANG) != workers[i]) {
                continue;
            }
            workers[i] = 0;
            left--;
            if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
                for (uint32_t k = 0; k < count; k++) {
                    if (workers[k] > 0) {
                        kill(workers[k], SIGTERM);
                    }
                }
                assert_fail("a worker of the search ended without an answer", __FILE__, __LINE__);
            }
        }
        if (turn % 25 == 0) {
            poll_now(share, counters);
        }
        if (left > 0) {
            nanosleep(&pause, NULL);
        }
    }
}

void share_work(const struct share *share)
{
    struct counters *counters = share_alloc(sizeof *counters);
    const uint64_t pieces = (share->count + share->grain - 1) / share->grain;
    const uint32_t wanted = pieces < share->jobs ? (uint32_t)pieces : share->jobs;
    pid_t *workers = calloc(wanted + 1, sizeof *workers);
    ASSERT(workers != NULL);
    uint32_t count = 0;
    fflush(NULL);
    while (wanted > 1 && count < wanted) {
        const pid_t process = fork();
        if (process == 0) {
            work(share, counters);
            _exit(0);
        }
        if (process < 0) {
            break;
        }
        workers[count++] = process;
    }
    if (count == 0) {
        work(share, counters);
    }
    await(share, counters, workers, count);
    poll_now(share, counters);
    free(workers);
    share_free(counters, sizeof *counters);
}
