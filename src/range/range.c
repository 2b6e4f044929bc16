/*
 * range.c - each uncertain input to both ends of its interval, and what comes of it together.
 *
 * A trial is a copy of the scenario with one double changed. Trials are numbered, threads take
 * the next number, and results stand at their number, so the order of threads shows nowhere.
 */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "stepsim/range.h"
#include "stepsim/schema.h"

/* ---- Inputs ---- */

struct input_list {
    const struct scenario_fact *facts; /* with an interval that is more than a point */
    const char **held;
    uint32_t count, held_count;
};

static struct input_list list_inputs(const struct scenario *scenario, struct arena *arena)
{
    uint32_t all = 0;
    const struct scenario_fact *facts = scenario_facts(scenario, arena, &all);
    struct scenario_fact *kept = ARENA_ARRAY(arena, all + 1, struct scenario_fact);
    struct input_list list = {.facts = kept, .held = ARENA_ARRAY(arena, all + 1, const char *)};
    for (uint32_t i = 0; i < all; i++) {
        const struct origin *origin = facts[i].origin;
        if (origin->bounded && origin->low < origin->high)
            kept[list.count++] = facts[i];
        else if (!origin->bounded && origin->grade == GRADE_ASSUMED)
            list.held[list.held_count++] = facts[i].key;
    }
    return list;
}

/* Ends that are the value itself need no run. */
static uint32_t ends_apart(const struct scenario_fact *fact)
{
    return (uint32_t)(fact->origin->low < fact->value) +
           (uint32_t)(fact->origin->high > fact->value);
}

uint32_t range_runs(const struct scenario *scenario, struct arena *arena)
{
    const struct input_list list = list_inputs(scenario, arena);
    uint32_t runs = 0;
    for (uint32_t i = 0; i < list.count; i++)
        runs += ends_apart(&list.facts[i]);
    return runs;
}

/* ---- Trials ---- */

#define REASON_SIZE 200

/* One end of one input; before it ran, the answer of the point. */
struct trial {
    const struct scenario_fact *fact;
    double value;
    double step_time_s, mfu, peak_bytes;
    bool fits, refused;
    char reason[REASON_SIZE];
};

struct crew {
    const struct scenario *scenario;
    struct trial *trials;
    uint32_t count;
    atomic_uint next;
};

static void run_trial(const struct crew *crew, struct trial *trial, struct arena *arena)
{
    struct scenario *changed = ARENA_NEW(arena, struct scenario);
    *changed = *crew->scenario;
    memcpy((char *)changed + trial->fact->offset, &trial->value, sizeof trial->value);
    struct error_list errors;
    error_list_init(&errors, arena);
    const struct run_options options = {.steps = 1};
    struct run run;
    trial->refused = !run_simulate(&run, changed, &options, arena, &errors);
    if (trial->refused) {
        const char *reason = errors.count > 0 ? errors.items[0].message : "refused";
        snprintf(trial->reason, sizeof trial->reason, "%s", reason);
        return;
    }
    trial->step_time_s = run.report->step_time_s;
    trial->mfu = run.report->mfu;
    trial->peak_bytes = run.report->peak_bytes;
    trial->fits = run.report->fits;
}

static void *work(void *raw)
{
    struct crew *crew = raw;
    struct arena *arena = arena_create("range");
    for (uint32_t i = atomic_fetch_add(&crew->next, 1); i < crew->count;
         i = atomic_fetch_add(&crew->next, 1)) {
        struct trial *trial = &crew->trials[i];
        const bool apart = trial->value < trial->fact->value || trial->value > trial->fact->value;
        if (apart)
            run_trial(crew, trial, arena);
        arena_reset(arena);
    }
    arena_destroy(arena);
    return NULL;
}

#define THREADS_MAX 64

/* A thread that cannot be had is done without. */
static void run_crew(struct crew *crew, uint32_t jobs)
{
    pthread_t threads[THREADS_MAX];
    uint32_t count = 0;
    const uint32_t wanted = jobs < THREADS_MAX ? jobs : THREADS_MAX;
    while (count + 1 < wanted && count + 1 < crew->count &&
           pthread_create(&threads[count], NULL, work, crew) == 0)
        count++;
    work(crew);
    for (uint32_t i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

/* Low and high end of input i are trials 2i and 2i + 1. */
static struct trial *make_trials(const struct input_list *list, const struct report *point,
                                 struct arena *arena)
{
    struct trial *trials = ARENA_ARRAY(arena, 2 * list->count + 1, struct trial);
    for (uint32_t i = 0; i < 2 * list->count; i++) {
        const struct scenario_fact *fact = &list->facts[i / 2];
        trials[i].fact = fact;
        trials[i].value = i % 2 == 0 ? fact->origin->low : fact->origin->high;
        trials[i].step_time_s = point->step_time_s;
        trials[i].mfu = point->mfu;
        trials[i].peak_bytes = point->peak_bytes;
        trials[i].fits = point->fits;
    }
    return trials;
}

/* ---- Together ---- */

/* Sums of the squared deviations below and above the point. */
struct spread {
    double below, above;
};

static void add_spread(struct spread *spread, struct range_span ends, double point)
{
    const double low = log(fmin(ends.low, ends.high) / point);
    const double high = log(fmax(ends.low, ends.high) / point);
    spread->below += low < 0.0 ? low * low : 0.0;
    spread->above += high > 0.0 ? high * high : 0.0;
}

static struct range_span span_of(const struct spread *spread, double point)
{
    return (struct range_span){point * exp(-sqrt(spread->below)), point * exp(sqrt(spread->above))};
}

static double largest_move(struct range_span ends, double point)
{
    return fmax(fabs(log(ends.low / point)), fabs(log(ends.high / point)));
}

static struct range_input input_of(const struct scenario_fact *fact, const struct trial *ends,
                                   struct arena *arena)
{
    struct range_input input = {
        .key = fact->key,
        .grade = fact->origin->grade,
        .unit = quantity_unit(fact->row->dimension),
        .value = fact->value,
        .low = fact->origin->low,
        .high = fact->origin->high,
        .step_time_s = {ends[0].step_time_s, ends[1].step_time_s},
        .mfu = {ends[0].mfu, ends[1].mfu},
        .peak_bytes = {ends[0].peak_bytes, ends[1].peak_bytes},
        .fits_low = ends[0].fits,
        .fits_high = ends[1].fits,
    };
    for (int i = 0; i < 2; i++) {
        if (ends[i].refused)
            input.refused = arena_strdup(arena, ends[i].reason);
    }
    return input;
}

static bool matters(const struct range_input *input, const struct report *point)
{
    return largest_move(input->step_time_s, point->step_time_s) > RANGE_MATTERS ||
           largest_move(input->peak_bytes, point->peak_bytes) > RANGE_MATTERS ||
           input->fits_low != point->fits || input->fits_high != point->fits ||
           input->refused != NULL;
}

/* Puts an input behind those that move the step as much or more. */
static void insert(struct range_input *inputs, uint32_t count, const struct range_input *input,
                   double point_s)
{
    const double move = largest_move(input->step_time_s, point_s);
    uint32_t at = count;
    for (; at > 0 && largest_move(inputs[at - 1].step_time_s, point_s) < move; at--)
        inputs[at] = inputs[at - 1];
    inputs[at] = *input;
}

const struct range *range_run(const struct range_ask *ask, struct arena *arena)
{
    ASSERT(ask->jobs >= 1);
    const struct report *point = ask->point;
    const struct input_list list = list_inputs(point->scenario, arena);
    struct crew crew = {.scenario = point->scenario,
                        .trials = make_trials(&list, point, arena),
                        .count = 2 * list.count};
    run_crew(&crew, ask->jobs);
    struct range *range = ARENA_NEW(arena, struct range);
    struct range_input *inputs = ARENA_ARRAY(arena, list.count + 1, struct range_input);
    struct spread step = {0};
    struct spread mfu = {0};
    struct spread peak = {0};
    for (uint32_t i = 0; i < list.count; i++) {
        const struct range_input input = input_of(&list.facts[i], &crew.trials[2 * i], arena);
        add_spread(&step, input.step_time_s, point->step_time_s);
        add_spread(&mfu, input.mfu, point->mfu);
        add_spread(&peak, input.peak_bytes, point->peak_bytes);
        if (matters(&input, point))
            insert(inputs, range->input_count++, &input, point->step_time_s);
    }
    const double tokens = point->tokens_per_s * point->step_time_s;
    range->step_time_s = span_of(&step, point->step_time_s);
    range->tokens_per_s =
        (struct range_span){tokens / range->step_time_s.high, tokens / range->step_time_s.low};
    range->mfu = span_of(&mfu, point->mfu);
    range->peak_bytes = span_of(&peak, point->peak_bytes);
    range->inputs = inputs;
    range->tried = list.count;
    range->held = list.held;
    range->held_count = list.held_count;
    return range;
}
