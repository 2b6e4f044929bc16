/*
 * worker.c - the process that simulates: a question in, a packed point out.
 *
 * It has the sweep from its parent by fork, keeps one arena for all its points, ends when the
 * socket ends and is ended by the kernel when the parent dies. The terminal's Ctrl-C is for
 * the parent, which lets the points in flight finish.
 */
#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "stepsim/run.h"
#include "stepsim/search.h"
#include "sweep/sweep_internal.h"

/* What one try of a point gave. */
struct outcome {
    enum run_status status;
    const struct scenario *scenario;
    const struct report *report;
    struct error_list errors;
    int32_t layout_no;
    double started_s, started_cpu_s; /* of the point, all its layouts together */
};

static double cpu_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* The scenario with its fastest layout; NULL with errors when none is legal, fits and scores below
 * the cut. */
static const struct scenario *search_layout(const struct sweep *sweep,
                                            const struct scenario_source *source, double score_cut,
                                            struct arena *arena, struct error_list *errors)
{
    const struct search_ask ask = {.source = source,
                                   .changes = sweep->changes,
                                   .change_count = sweep->change_count,
                                   .score_cut = score_cut,
                                   .top = 1,
                                   .jobs = 1};
    const struct search_answer *answer = search_run(&ask, arena, errors);
    return answer != NULL && answer->layout_count > 0 ? answer->layouts[0].scenario : NULL;
}

static void simulate(const struct sweep *sweep, const struct worker_question *question,
                     int32_t layout_no, struct arena *arena, struct outcome *outcome)
{
    const uint64_t point_no = question->point_no;
    const uint32_t extra = layout_no >= 0 ? sweep->layout_sizes[layout_no] : 0;
    struct scenario_override *overrides = ARENA_ARRAY(
        arena, sweep->set_count + extra + sweep->key_count + 1, struct scenario_override);
    uint32_t count = 0;
    for (uint32_t i = 0; i < sweep->set_count; i++) {
        overrides[count++] = sweep->sets[i];
    }
    for (uint32_t i = 0; i < extra; i++) {
        overrides[count++] = sweep->layouts[layout_no][i];
    }
    for (uint32_t i = 0; i < sweep->key_count; i++) {
        if (sweep->key_is_override[i]) {
            overrides[count++] =
                (struct scenario_override){sweep->key_names[i], sweep_key_text(sweep, point_no, i)};
        }
    }
    const struct scenario_source source = {
        .path = sweep->base_path,
        .config_dir = sweep->config_dir,
        .overrides = overrides,
        .override_count = count,
        .cache = sweep->cache,
    };
    *outcome = (struct outcome){.status = RUN_REJECTED, .layout_no = layout_no};
    error_list_init(&outcome->errors, arena);
    outcome->scenario = sweep->layout_search ? search_layout(sweep, &source, question->score_cut,
                                                             arena, &outcome->errors)
                                             : scenario_load(&source, arena, &outcome->errors);
    const struct run_options options = {.steps = 1};
    struct run run;
    if (outcome->scenario != NULL &&
        run_simulate(&run, outcome->scenario, &options, arena, &outcome->errors)) {
        outcome->report = run.report;
        outcome->status = run.report->fits ? RUN_OK : RUN_DOES_NOT_FIT;
    }
}

/* ok before does_not_fit before rejected, then by speed; the first of equals stays. */
static bool is_better(const struct outcome *a, const struct outcome *b)
{
    if (a->status != b->status || a->report == NULL || b->report == NULL) {
        return a->status < b->status;
    }
    return a->report->tokens_per_s > b->report->tokens_per_s;
}

static void simulate_best(const struct sweep *sweep, const struct worker_question *question,
                          struct arena *arena, struct outcome *best)
{
    if (sweep->layout_count == 0) {
        simulate(sweep, question, -1, arena, best);
        return;
    }
    simulate(sweep, question, 0, arena, best);
    for (uint32_t i = 1; i < sweep->layout_count; i++) {
        struct outcome other;
        simulate(sweep, question, (int32_t)i, arena, &other);
        if (is_better(&other, best)) {
            *best = other;
        }
    }
}

static void pack(const struct sweep *sweep, uint64_t point_no, const struct outcome *outcome,
                 struct text *out, struct arena *arena)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    struct store_point point = {
        .point_no = point_no,
        .status = outcome->status,
        .error_count = (uint32_t)outcome->errors.count,
        .scenario = outcome->scenario,
        .report = outcome->report,
        .keys = sweep_store_keys(sweep, point_no, arena),
        .key_count = sweep->key_count,
        .layout_no = outcome->layout_no,
        .base = sweep->store_base,
        .wall_s = run_clock_s() - outcome->started_s,
        .cpu_s = cpu_s() - outcome->started_cpu_s,
        .memory_peak_bytes = (uint64_t)usage.ru_maxrss * 1024,
    };
    if (outcome->errors.count > 0) {
        const struct error *error = &outcome->errors.items[0];
        point.code = error_code_name(error->code);
        point.message = error->key != NULL
                            ? arena_printf(arena, "%s: %s", error->key, error->message)
                            : error->message;
    } else if (outcome->status == RUN_DOES_NOT_FIT) {
        const struct report *report = outcome->report;
        point.code = error_code_name(ERROR_does_not_fit);
        point.message =
            arena_printf(arena, "stage %u needs %s and may use %s", report->peak_stage,
                         text_gib(arena, report->peak_bytes), text_gib(arena, report->limit_bytes));
    }
    store_pack(out, &point, arena);
}

static bool transfer(int fd, void *bytes, size_t length, bool writes)
{
    for (char *at = bytes; length > 0;) {
        const ssize_t moved = writes ? write(fd, at, length) : read(fd, at, length);
        if (moved < 0 && errno == EINTR) {
            continue;
        }
        if (moved <= 0) {
            return false;
        }
        at += moved;
        length -= (size_t)moved;
    }
    return true;
}

_Noreturn void worker_serve(const struct sweep *sweep, int socket_fd)
{
    struct arena *arena = arena_create("point");
    struct text answer = {0};
    struct worker_question question;
    while (transfer(socket_fd, &question, sizeof question, false)) {
        const uint64_t point_no = question.point_no;
        arena_reset(arena);
        const double started_s = run_clock_s(), started_cpu_s = cpu_s();
        struct outcome outcome;
        simulate_best(sweep, &question, arena, &outcome);
        outcome.started_s = started_s;
        outcome.started_cpu_s = started_cpu_s;
        struct worker_answer head = {.point_no = point_no, .status = outcome.status};
        head.tokens_per_s = outcome.report != NULL ? outcome.report->tokens_per_s : 0.0;
        answer.length = 0;
        text_add_bytes(&answer, (const char *)&head, sizeof head);
        pack(sweep, point_no, &outcome, &answer, arena);
        head.length = answer.length - sizeof head;
        memcpy(answer.data, &head, sizeof head);
        if (!transfer(socket_fd, answer.data, answer.length, true)) {
            break;
        }
    }
    _exit(0);
}
