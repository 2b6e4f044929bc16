/*
 * sweep_run.c - the parent: deals points to workers, gathers answers, writes batches.
 *
 * Each worker has up to two points: one that runs and one that waits, so that it never idles
 * while the parent writes. A worker that dies loses the first of its points, which becomes a
 * row of status failed; the second is dealt again. A batch is written when it has 256 points
 * or is one second old, so that a kill loses little.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stepsim/run.h"
#include "sweep/sweep_internal.h"

#define BATCH_POINTS  256u
#define BATCH_S       1.0
#define PROGRESS_S    0.25
#define IN_FLIGHT_MAX 2u
#define JOBS_MAX      1024u
#define ROUND_POINTS  64u

struct worker {
    pid_t pid; /* 0: none */
    int fd;
    int stderr_fd; /* what it printed before it died */
    uint64_t points[IN_FLIGHT_MAX];
    uint32_t in_flight;
    double started_s; /* of points[0] */
    bool timed_out;
    struct text input; /* bytes of answers, so far as they have come */
};

struct dispatch {
    const struct sweep *sweep;
    struct store *store;
    const struct sweep_options *options;
    struct sweep_progress *progress;
    struct error_list *errors;
    struct arena *arena, *scratch;
    struct worker *workers;
    uint32_t worker_count;
    uint64_t *pending; /* points to deal, taken from the front */
    uint64_t pending_next, pending_end;
    double *tokens_per_s;           /* [point] of those that are done and ok, else 0 */
    uint64_t round_end, round_left; /* pending points before round_end are dealt; so many of
                                       them are not done */
    double score_cut;               /* for the points of the round */
    uint32_t *place;                /* [point] among ours */
    double *best;                   /* [top] the highest so far, ascending */
    uint64_t *again;                /* points taken back from dead workers */
    uint32_t again_count;
    struct text batch;
    uint32_t batch_points;
    double batch_started_s, started_s, shown_s;
    bool broken;
};

/* ---- Workers ---- */

static bool stopping(const struct dispatch *d)
{
    return d->broken || (d->options->stop != NULL && *d->options->stop != 0);
}

/* In the child: what must not be shared with the parent. */
_Noreturn static void become_worker(const struct dispatch *d, int fd, int stderr_fd, pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        _exit(0); /* the parent died before the line above */
    }
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_DFL);
    signal(SIGPIPE, SIG_IGN);
    for (uint32_t i = 0; i < d->worker_count; i++) {
        if (d->workers[i].pid != 0) {
            close(d->workers[i].fd);
        }
    }
    dup2(stderr_fd, STDERR_FILENO);
    const struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    if (d->options->point_memory_bytes > 0) {
        const struct rlimit memory = {d->options->point_memory_bytes,
                                      d->options->point_memory_bytes};
        setrlimit(RLIMIT_AS, &memory);
    }
    worker_serve(d->sweep, fd);
}

static bool start_worker(struct dispatch *d, struct worker *worker)
{
    int ends[2];
    const int stderr_fd = memfd_create("stepsim-worker", MFD_CLOEXEC);
    if (stderr_fd < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        error_add(d->errors, ERROR_database, (struct location){d->sweep->path, 0, 0}, "--jobs",
                  "cannot start a worker: %s", strerror(errno));
        return false;
    }
    const pid_t parent = getpid();
    const pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        become_worker(d, ends[1], stderr_fd, parent);
    }
    close(ends[1]);
    if (pid < 0) {
        error_add(d->errors, ERROR_database, (struct location){d->sweep->path, 0, 0}, "--jobs",
                  "cannot start a worker: %s", strerror(errno));
        close(ends[0]);
        close(stderr_fd);
        return false;
    }
    *worker =
        (struct worker){.pid = pid, .fd = ends[0], .stderr_fd = stderr_fd, .input = worker->input};
    worker->input.length = 0;
    return true;
}

static bool next_point(struct dispatch *d, uint64_t *point_no)
{
    if (d->again_count > 0) {
        *point_no = d->again[--d->again_count];
        return true;
    }
    const uint64_t end = d->sweep->top > 0 ? d->round_end : d->pending_end;
    if (d->pending_next < end) {
        *point_no = d->pending[d->pending_next++];
        return true;
    }
    return false;
}

/* Keeps the worker busy; a dead one is noticed when its socket is read. */
static void feed(struct dispatch *d, struct worker *worker)
{
    uint64_t point_no = 0;
    while (!stopping(d) && worker->in_flight < IN_FLIGHT_MAX && next_point(d, &point_no)) {
        if (worker->in_flight == 0) {
            worker->started_s = run_clock_s();
        }
        worker->points[worker->in_flight++] = point_no;
        const struct worker_question question = {point_no, d->score_cut};
        if (send(worker->fd, &question, sizeof question, MSG_NOSIGNAL) != sizeof question) {
            return;
        }
    }
}

/* ---- Results ---- */

static bool write_batch(struct dispatch *d)
{
    if (d->batch_points == 0) {
        return true;
    }
    const double before_s = run_clock_s();
    const bool good = store_write(d->store, &d->batch, d->errors);
    d->progress->writing_s += run_clock_s() - before_s;
    if (good) {
        d->progress->done += d->batch_points;
        d->progress->now += d->batch_points;
    } else {
        d->broken = true;
    }
    d->batch.length = 0;
    d->batch_points = 0;
    return good;
}

static void add_to_batch(struct dispatch *d, const char *bytes, size_t length)
{
    if (d->batch_points == 0) {
        d->batch_started_s = run_clock_s();
    }
    text_add_bytes(&d->batch, bytes, length);
    if (++d->batch_points == BATCH_POINTS && !d->broken) {
        write_batch(d);
    }
}

static void count_point(struct dispatch *d, const struct worker_answer *head)
{
    d->progress->statuses[head->status]++;
    d->tokens_per_s[head->point_no] = head->status == RUN_OK ? head->tokens_per_s : 0.0;
    d->round_left -= d->round_left > 0 ? 1 : 0;
    if (head->status == RUN_OK && head->tokens_per_s > d->progress->best_tokens_per_s) {
        d->progress->best_tokens_per_s = head->tokens_per_s;
        d->progress->best_point_no = head->point_no;
    }
}

static void point_finished(struct worker *worker)
{
    ASSERT(worker->in_flight > 0);
    worker->in_flight--;
    memmove(&worker->points[0], &worker->points[1], worker->in_flight * sizeof worker->points[0]);
    worker->started_s = run_clock_s();
}

static void take_answers(struct dispatch *d, struct worker *worker)
{
    size_t at = 0;
    struct worker_answer head;
    while (worker->input.length - at >= sizeof head) {
        memcpy(&head, worker->input.data + at, sizeof head);
        if (worker->input.length - at - sizeof head < head.length) {
            break;
        }
        ASSERT(worker->in_flight > 0 && worker->points[0] == head.point_no);
        add_to_batch(d, worker->input.data + at + sizeof head, head.length);
        count_point(d, &head);
        point_finished(worker);
        at += sizeof head + head.length;
    }
    if (at > 0) {
        worker->input.length -= at;
        memmove(worker->input.data, worker->input.data + at, worker->input.length);
    }
}

/* The last line that the worker printed, "" if there is none. */
static const char *last_words(struct dispatch *d, const struct worker *worker)
{
    char words[1024];
    const off_t size = lseek(worker->stderr_fd, 0, SEEK_END);
    const off_t from = size > (off_t)sizeof words - 1 ? size - ((off_t)sizeof words - 1) : 0;
    const ssize_t length = pread(worker->stderr_fd, words, sizeof words - 1, from);
    if (length <= 0) {
        return "";
    }
    words[length] = '\0';
    for (ssize_t i = length; i > 0 && words[i - 1] == '\n'; i--) {
        words[i - 1] = '\0';
    }
    const char *line = strrchr(words, '\n');
    return arena_strdup(d->scratch, line != NULL ? line + 1 : words);
}

static void describe_death(struct dispatch *d, const struct worker *worker, int status,
                           struct store_point *point)
{
    const char *words = last_words(d, worker);
    enum error_code code = ERROR_point_crashed;
    if (worker->timed_out) {
        code = ERROR_point_timeout;
        point->message = arena_printf(d->scratch,
                                      "took longer than %s, the limit of "
                                      "--point-timeout",
                                      text_duration(d->scratch, d->options->point_timeout_s));
    } else if (strstr(words, "out of memory") != NULL) {
        code = ERROR_point_out_of_memory;
        point->message = words;
    } else if (WIFSIGNALED(status)) {
        const bool killed = WTERMSIG(status) == SIGKILL;
        code = killed ? ERROR_point_out_of_memory : ERROR_point_crashed;
        point->message =
            arena_printf(d->scratch, "its worker was ended by signal %d%s%s%s", WTERMSIG(status),
                         killed ? ", as the kernel does when memory runs out" : "",
                         words[0] != '\0' ? ": " : "", words);
    } else {
        point->message = arena_printf(d->scratch, "its worker ended with status %d: %s",
                                      WIFEXITED(status) ? WEXITSTATUS(status) : -1,
                                      words[0] != '\0' ? words : "no message");
    }
    point->code = error_code_name(code);
}

static void add_failed(struct dispatch *d, const struct worker *worker, int status)
{
    arena_reset(d->scratch);
    struct store_point point = {
        .point_no = worker->points[0],
        .status = RUN_FAILED,
        .error_count = 1,
        .keys = sweep_store_keys(d->sweep, worker->points[0], d->scratch),
        .key_count = d->sweep->key_count,
        .layout_no = -1,
        .base = d->sweep->store_base,
    };
    describe_death(d, worker, status, &point);
    struct text packed = {0};
    store_pack(&packed, &point, d->scratch);
    add_to_batch(d, packed.data, packed.length);
    text_free(&packed);
    count_point(d, &(struct worker_answer){.point_no = point.point_no, .status = RUN_FAILED});
}

/* Ends a worker whose socket closed, and starts another if there is work left. */
static void bury(struct dispatch *d, struct worker *worker)
{
    int status = 0;
    while (waitpid(worker->pid, &status, 0) < 0 && errno == EINTR) {
    }
    close(worker->fd);
    worker->pid = 0;
    if (worker->in_flight > 0 && !d->broken) {
        add_failed(d, worker, status);
        for (uint32_t i = 1; i < worker->in_flight; i++) {
            d->again[d->again_count++] = worker->points[i];
        }
    }
    worker->in_flight = 0;
    close(worker->stderr_fd);
    const bool work_left = d->again_count > 0 || d->pending_next < d->pending_end;
    if (work_left && !stopping(d)) {
        if (start_worker(d, worker)) {
            feed(d, worker);
        } else {
            d->broken = true;
        }
    }
}

static void read_worker(struct dispatch *d, struct worker *worker)
{
    char buffer[65536];
    const ssize_t length = recv(worker->fd, buffer, sizeof buffer, 0);
    if (length > 0) {
        text_add_bytes(&worker->input, buffer, (size_t)length);
        take_answers(d, worker);
        feed(d, worker);
    } else if (length == 0 || errno != EINTR) {
        bury(d, worker);
    }
}

/* ---- Rounds ---- */

/* Keeps the highest K; best[0] is the lowest of them. */
static void keep_best(struct dispatch *d, double tokens_per_s)
{
    const uint32_t top = d->sweep->top;
    if (tokens_per_s <= d->best[0]) {
        return;
    }
    uint32_t at = 0;
    for (; at + 1 < top && d->best[at + 1] < tokens_per_s; at++) {
        d->best[at] = d->best[at + 1];
    }
    d->best[at] = tokens_per_s;
}

/* Opens the next round that has pending points, once the one before it is done. */
static void open_round(struct dispatch *d)
{
    if (d->sweep->top == 0 || d->round_left > 0 || d->pending_next >= d->pending_end) {
        return;
    }
    const uint32_t round = d->place[d->pending[d->pending_next]] / ROUND_POINTS;
    for (uint32_t i = 0; i < d->sweep->top; i++) {
        d->best[i] = 0.0;
    }
    for (uint64_t i = 0; i < d->sweep->point_count; i++) {
        if (d->place[i] != UINT32_MAX && d->place[i] / ROUND_POINTS < round) {
            keep_best(d, d->tokens_per_s[i]);
        }
    }
    /* A score is seconds per token; room for its rounding, so that a tie is looked at. */
    d->score_cut = d->best[0] > 0.0 ? (1.0 + 1e-12) / d->best[0] : 0.0;
    d->round_end = d->pending_next;
    while (d->round_end < d->pending_end &&
           d->place[d->pending[d->round_end]] / ROUND_POINTS == round) {
        d->round_end++;
    }
    d->round_left = d->round_end - d->pending_next;
}

static void feed_all(struct dispatch *d)
{
    open_round(d);
    for (uint32_t i = 0; i < d->worker_count; i++) {
        if (d->workers[i].pid != 0) {
            feed(d, &d->workers[i]);
        }
    }
}

/* ---- The loop ---- */

static void kill_late_workers(struct dispatch *d, double now_s)
{
    for (uint32_t i = 0; i < d->worker_count; i++) {
        struct worker *worker = &d->workers[i];
        const bool late = worker->in_flight > 0 && d->options->point_timeout_s > 0.0 &&
                          now_s - worker->started_s > d->options->point_timeout_s;
        if (worker->pid != 0 && late && !worker->timed_out) {
            worker->timed_out = true;
            kill(worker->pid, SIGKILL);
        }
    }
}

static void show_progress(struct dispatch *d, bool always)
{
    const double now_s = run_clock_s();
    if (d->options->progress != NULL && (always || now_s - d->shown_s >= PROGRESS_S)) {
        struct sweep_progress shown = *d->progress;
        shown.elapsed_s = now_s - d->started_s;
        shown.done += d->batch_points;
        shown.now += d->batch_points;
        d->options->progress(d->options->context, &shown);
        d->shown_s = now_s;
    }
    d->progress->elapsed_s = now_s - d->started_s;
}

static uint32_t busy_workers(const struct dispatch *d)
{
    uint32_t busy = 0;
    for (uint32_t i = 0; i < d->worker_count; i++) {
        busy += d->workers[i].pid != 0 && d->workers[i].in_flight > 0 ? 1 : 0;
    }
    return busy;
}

static void serve(struct dispatch *d)
{
    struct pollfd fds[JOBS_MAX];
    while (busy_workers(d) > 0 && !d->broken) {
        nfds_t count = 0;
        uint32_t of[JOBS_MAX];
        for (uint32_t i = 0; i < d->worker_count; i++) {
            if (d->workers[i].pid != 0) {
                of[count] = i;
                fds[count++] = (struct pollfd){.fd = d->workers[i].fd, .events = POLLIN};
            }
        }
        poll(fds, count, 100);
        for (nfds_t i = 0; i < count; i++) {
            if (fds[i].revents != 0 && !d->broken) {
                read_worker(d, &d->workers[of[i]]);
            }
        }
        if (d->sweep->top > 0) {
            feed_all(d);
        }
        const double now_s = run_clock_s();
        kill_late_workers(d, now_s);
        if (d->batch_points > 0 && now_s - d->batch_started_s >= BATCH_S && !d->broken) {
            write_batch(d);
        }
        show_progress(d, false);
    }
}

static void end_workers(struct dispatch *d)
{
    for (uint32_t i = 0; i < d->worker_count; i++) {
        struct worker *worker = &d->workers[i];
        if (worker->pid != 0) {
            close(worker->fd);
            if (worker->in_flight > 0) {
                kill(worker->pid, SIGKILL);
            }
            while (waitpid(worker->pid, NULL, 0) < 0 && errno == EINTR) {
            }
            close(worker->stderr_fd);
        }
        text_free(&worker->input);
    }
}

/* ---- From the database to the list of points ---- */

static bool check_stale(struct dispatch *d)
{
    uint64_t stale = 0;
    if (!store_stale_points(d->store, &stale, d->errors)) {
        return false;
    }
    if (stale == 0 || d->options->stale == SWEEP_STALE_KEEP) {
        return true;
    }
    if (d->options->stale == SWEEP_STALE_RERUN) {
        return store_forget_stale(d->store, d->errors);
    }
    error_add(d->errors, ERROR_database_stale, (struct location){d->sweep->path, 0, 0}, NULL,
              "%llu points of this sweep are by another build of stepsim; --stale rerun simulates "
              "them again, --stale keep mixes old and new rows",
              (unsigned long long)stale);
    return false;
}

static bool list_pending(struct dispatch *d)
{
    const uint64_t count = d->sweep->point_count;
    bool *done = ARENA_ARRAY(d->arena, count + 1, bool);
    d->tokens_per_s = ARENA_ARRAY(d->arena, count + 1, double);
    d->place = ARENA_ARRAY(d->arena, count + 1, uint32_t);
    d->best = ARENA_ARRAY(d->arena, (size_t)d->sweep->top + 1, double);
    struct store_done points = {.done = done, .tokens_per_s = d->tokens_per_s, .count = count};
    if (!check_stale(d) ||
        (d->options->retry_failed && !store_forget_failed(d->store, d->errors)) ||
        !store_done_points(d->store, &points, d->errors)) {
        return false;
    }
    const bool *ours = sweep_shard_points(d->sweep, d->options->shard, d->arena);
    d->pending = ARENA_ARRAY(d->arena, count + 1, uint64_t);
    for (uint64_t i = 0; i < count; i++) {
        d->place[i] = ours[i] ? (uint32_t)d->progress->total : UINT32_MAX;
        if (ours[i]) {
            d->progress->total++;
            d->progress->done += done[i] ? 1 : 0;
            if (!done[i]) {
                d->pending[d->pending_end++] = i;
            }
        }
    }
    return true;
}

static bool begin(struct dispatch *d)
{
    const struct sweep *sweep = d->sweep;
    const struct store_sweep asked = {
        .kind = "sweep",
        .name = sweep_name(sweep),
        .hash = sweep->hash,
        .definition = sweep->definition,
        .base = sweep->base_json,
        .points_total = sweep->point_count,
    };
    const struct sweep_shard shard = d->options->shard;
    const struct store_invocation invocation = {
        .command_line = d->options->command_line,
        .shard =
            shard.count > 1 ? arena_printf(d->arena, "%u-of-%u", shard.index, shard.count) : NULL,
        .jobs = d->worker_count,
    };
    return store_begin_sweep(d->store, &asked, &invocation, d->errors) && list_pending(d);
}

static void run_workers(struct dispatch *d)
{
    const uint64_t work = d->pending_end;
    for (uint32_t i = 0; i < d->worker_count && i < work && !d->broken; i++) {
        d->broken = !start_worker(d, &d->workers[i]);
    }
    feed_all(d);
    serve(d);
    if (!d->broken) {
        write_batch(d);
    }
    end_workers(d);
}

enum sweep_end sweep_run(const struct sweep *sweep, struct store *store,
                         const struct sweep_options *options, struct sweep_progress *progress,
                         struct error_list *errors)
{
    *progress = (struct sweep_progress){0};
    ASSERT(options->jobs >= 1);
    struct dispatch d = {
        .sweep = sweep,
        .store = store,
        .options = options,
        .progress = progress,
        .errors = errors,
        .arena = arena_create("sweep"),
        .scratch = arena_create("failed point"),
        .worker_count = options->jobs < JOBS_MAX ? options->jobs : JOBS_MAX,
        .started_s = run_clock_s(),
    };
    d.workers = ARENA_ARRAY(d.arena, d.worker_count, struct worker);
    d.again = ARENA_ARRAY(d.arena, (size_t)d.worker_count * IN_FLIGHT_MAX, uint64_t);
    bool good = begin(&d);
    if (good) {
        run_workers(&d);
        good = !d.broken;
    }
    const bool complete = good && progress->done == progress->total;
    if (good) {
        show_progress(&d, true);
        good = store_end_sweep(store, complete, errors);
    }
    text_free(&d.batch);
    arena_destroy(d.scratch);
    arena_destroy(d.arena);
    return !good ? SWEEP_ERROR : complete ? SWEEP_COMPLETE : SWEEP_STOPPED;
}
