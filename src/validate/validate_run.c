/*
 * validate_run.c - mapped rows through the simulator, on worker processes.
 *
 * Workers take the next row from a counter in shared memory and write their predictions beside
 * it, so a crash costs one row: the parent replaces the worker and the row keeps the reason
 * that was written before it began.
 *
 * A layer row is the growth of a step with layers and microbatches:
 * (T(2 layers, 3 mb) - T(2, 1) - T(1, 3) + T(1, 1)) / 2, so that embedding, head, optimizer and
 * the step's fixed parts cancel.
 */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stepsim/arena.h"
#include "stepsim/run.h"
#include "validate_internal.h"

#define KEYS_MAX (MAPPING_KEYS_MAX + 64)

struct board {
    atomic_uint next, done;
    struct prediction predictions[];
};

struct worker {
    const struct validate_ask *ask;
    struct board *board;
    struct scenario_cache *cache;
};

static void explain(struct prediction *prediction, const char *reason)
{
    snprintf(prediction->reason, sizeof prediction->reason, "%s", reason);
}

/* The reason of the first error, in one line. */
static void explain_errors(struct prediction *prediction, const struct error_list *errors)
{
    const struct error *first = &errors->items[0];
    snprintf(prediction->reason, sizeof prediction->reason, "%s: %s [%s]",
             first->key != NULL ? first->key : "scenario", first->message,
             error_code_name(first->code));
}

struct trial {
    const struct worker *worker;
    const struct mapping *mapping;
    const struct validate_extra *extra;
    struct arena *arena;
};

/* Share of the optimizer states that are moments of Adam. */
static double moment_share(const struct scenario *scenario)
{
    const struct precision_spec *precision = &scenario->precision;
    const double moment = precision->moments == PRECISION_FP32 ? 4.0 : 2.0;
    double master = precision->master == PRECISION_FP32 ? 4.0 : 2.0;
    if (precision->reuse_fp32_param)
        master -= 2.0;
    return 2.0 * moment / (master + 2.0 * moment);
}

/*
 * What an allocator of a framework sees: tensors, without communication buffers. Logs that print
 * memory once do so after the first step: its passes ran before the optimizer had moments, which
 * the update then allocated.
 */
static double allocated_peak(const struct report *report, bool first_step)
{
    double peak = 0.0;
    for (uint32_t i = 0; i < report->stage_count; i++) {
        const struct stage_report *stage = &report->stages[i];
        double bytes = stage->peak_bytes - stage->buffers - stage->reserve;
        if (first_step) {
            const double standing = stage->weights + stage->gradients + stage->optimizer;
            bytes = fmax(standing, bytes - moment_share(report->scenario) * stage->optimizer);
        }
        peak = fmax(peak, bytes);
    }
    return peak;
}

static bool simulate(const struct trial *trial, struct prediction *prediction)
{
    struct scenario_override keys[KEYS_MAX];
    uint32_t count = trial->mapping->count;
    memcpy(keys, trial->mapping->keys, count * sizeof keys[0]);
    for (uint32_t i = 0; trial->extra != NULL && i < trial->extra->count; i++) {
        ASSERT(count < KEYS_MAX);
        keys[count++] = trial->extra->overrides[i];
    }
    struct error_list errors;
    error_list_init(&errors, trial->arena);
    const struct scenario_source source = {
        .text = arena_printf(trial->arena, "title: \"%s\"\n", trial->mapping->row->id),
        .text_name = trial->mapping->row->id,
        .config_dir = trial->worker->ask->config_dir,
        .overrides = keys,
        .override_count = count,
        .cache = trial->worker->cache,
    };
    const struct run_options options = {.steps = 1};
    const struct scenario *scenario = scenario_load(&source, trial->arena, &errors);
    struct run run;
    if (scenario == NULL || !run_simulate(&run, scenario, &options, trial->arena, &errors)) {
        explain_errors(prediction, &errors);
        return false;
    }
    prediction->step_s = run.report->step_time_s;
    prediction->memory_bytes = allocated_peak(run.report, trial->mapping->row->first_step_memory);
    prediction->fits = run.report->fits;
    snprintf(prediction->device, sizeof prediction->device, "%s", scenario->cluster.device.name);
    return true;
}

/* One of the four steps that a layer row is made of. */
static bool simulate_layers(const struct trial *trial, unsigned layers, unsigned microbatches,
                            struct prediction *part)
{
    struct mapping changed = *trial->mapping;
    struct trial other = *trial;
    const long batch = atol_or(mapping_value(&changed, "training.micro_batch_size"), 1);
    mapping_set(&changed, "model.layers", "%u", layers);
    mapping_set(&changed, "training.global_batch_size", "%ld", batch * (long)microbatches);
    mapping_set(&changed, "devices", "%s", mapping_value(&changed, "parallel.tp"));
    other.mapping = &changed;
    return simulate(&other, part);
}

static bool simulate_layer(const struct trial *trial, struct prediction *prediction)
{
    double step_s[2][2];
    for (unsigned layers = 1; layers <= 2; layers++)
        for (unsigned i = 0; i < 2; i++) {
            if (!simulate_layers(trial, layers, 1 + 2 * i, prediction))
                return false;
            step_s[layers - 1][i] = prediction->step_s;
        }
    prediction->step_s = (step_s[1][1] - step_s[1][0] - step_s[0][1] + step_s[0][0]) / 2.0;
    return prediction->step_s > 0.0;
}

static void predict(const struct worker *worker, uint32_t index)
{
    struct prediction *prediction = &worker->board->predictions[index];
    const struct measurement *row = worker->ask->rows[index];
    explain(prediction, "the simulation crashed");
    struct arena *arena = arena_create("validate");
    struct mapping *mapping = measurement_map(row, worker->ask->tables, arena);
    const struct trial trial = {
        .worker = worker,
        .mapping = mapping,
        .extra = worker->ask->extras != NULL ? &worker->ask->extras[index] : NULL,
        .arena = arena,
    };
    if (mapping->reason != NULL) {
        explain(prediction, mapping->reason);
    } else if (row->kind == MEASUREMENT_LAYER) {
        prediction->done = simulate_layer(&trial, prediction);
    } else {
        prediction->done = simulate(&trial, prediction);
        if (prediction->done && !prediction->fits && mapping->recompute_unknown) {
            mapping_set(mapping, "recompute.modules", "[layer]");
            prediction->done = simulate(&trial, prediction);
        }
    }
    if (prediction->done)
        prediction->reason[0] = '\0';
    arena_destroy(arena);
    atomic_fetch_add(&worker->board->done, 1);
}

static void work(const struct validate_ask *ask, struct board *board)
{
    struct worker worker = {.ask = ask, .board = board, .cache = scenario_cache_create()};
    for (uint32_t i = atomic_fetch_add(&board->next, 1); i < ask->count;
         i = atomic_fetch_add(&board->next, 1))
        predict(&worker, i);
    scenario_cache_destroy(worker.cache);
}

/* -1 if no process can be made; then the caller works alone. */
static pid_t start_worker(const struct validate_ask *ask, struct board *board)
{
    fflush(NULL);
    const pid_t process = fork();
    if (process == 0) {
        work(ask, board);
        _exit(0);
    }
    return process;
}

static void report_progress(const struct validate_ask *ask, struct board *board)
{
    if (ask->progress != NULL)
        ask->progress(ask->user, atomic_load(&board->done), ask->count);
}

/* Waits until all workers are gone; a crashed one is replaced while rows are left. */
static void supervise(const struct validate_ask *ask, struct board *board, uint32_t running)
{
    const struct timespec pause = {.tv_nsec = 20 * 1000 * 1000};
    while (running > 0) {
        int status = 0;
        const pid_t gone = waitpid(-1, &status, WNOHANG);
        report_progress(ask, board);
        if (gone == 0) {
            nanosleep(&pause, NULL);
            continue;
        }
        if (gone < 0 && errno != EINTR)
            return;
        const bool crashed = gone > 0 && (!WIFEXITED(status) || WEXITSTATUS(status) != 0);
        if (crashed)
            atomic_fetch_add(&board->done, 1);
        if (gone > 0 &&
            !(crashed && atomic_load(&board->next) < ask->count && start_worker(ask, board) > 0))
            running--;
    }
}

const struct prediction *validate_run(const struct validate_ask *ask, struct arena *arena)
{
    const size_t bytes = sizeof(struct board) + (size_t)ask->count * sizeof(struct prediction);
    struct board *board =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT(board != MAP_FAILED);
    uint32_t running = 0;
    while (running < ask->jobs && running < ask->count && start_worker(ask, board) > 0)
        running++;
    if (running == 0)
        work(ask, board);
    supervise(ask, board, running);
    struct prediction *predictions = ARENA_ARRAY(arena, ask->count, struct prediction);
    if (ask->count > 0)
        memcpy(predictions, board->predictions, (size_t)ask->count * sizeof *predictions);
    munmap(board, bytes);
    return predictions;
}
