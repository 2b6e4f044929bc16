/*
 * search.c - bounds every legal candidate, then simulates in the order of the bounds.
 *
 * Best first, in three steps of growing price: a quick bound for every candidate, the full bound
 * where the quick one leaves it in the running, the simulation where the full one does. Once the
 * lowest bound that is left is above the score of the K-th best layout found, no other candidate
 * can be among the best K, since a bound is never above what the simulation answers. A candidate
 * whose bound equals that score is simulated, because it might win the tie. The threshold moves
 * between batches of fixed size only, so that the same candidates are simulated whatever the
 * number of workers.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "search_internal.h"
#include "stepsim/text.h"

#define BATCH          64
#define REFINED        4096 /* candidates that get a full bound at a time */
#define REFINED_GRAIN  32
#define GRAIN          128
#define CANDIDATES_MAX ((uint64_t)40 * 1000 * 1000)

double search_score(enum search_objective objective, const struct scenario *scenario, double step_s,
                    double peak_bytes)
{
    const double tokens =
        (double)scenario->training.global_batch_size * (double)scenario->training.seq_len;
    switch (objective) {
    case SEARCH_TOKENS_PER_S:
        return step_s / tokens;
    case SEARCH_MFU:
    case SEARCH_COST:
        return step_s * (double)scenario->devices / tokens;
    case SEARCH_MEMORY:
        return peak_bytes;
    }
    ASSERT(!"not an objective");
    return 0.0;
}

static double hunt_score(const struct hunt *hunt, const struct wish_point *point, double step_s,
                         double peak_bytes)
{
    return hunt->wishes.objective != NULL
               ? wishes_score(&hunt->wishes, point, step_s, peak_bytes)
               : search_score(hunt->ask->objective, point->scenario, step_s, peak_bytes);
}

/* ---- Bounds ---- */

const struct scenario *candidate_scenario(const struct hunt *hunt, uint64_t number,
                                          struct arena *arena)
{
    const uint64_t inner = hunt->space.inner_size;
    return space_scenario(&hunt->space, hunt->space.outers[number / inner], number % inner, arena);
}

/* Empties what is kept under another key; true if what is there can be used. */
static bool recall(struct kept *kept, uint64_t key)
{
    if (kept->arena == NULL) {
        kept->arena = arena_create("kept");
        kept->filled = false;
    } else if (kept->key != key) {
        arena_reset(kept->arena);
        kept->filled = false;
    }
    kept->key = key;
    return kept->filled;
}

/* False if the candidate is refused or not wanted. */
static bool bound_candidate(struct hunt *hunt, uint64_t number, bool quick, struct candidate *out,
                            struct arena *scratch)
{
    const struct space *space = &hunt->space;
    const bool same_ops = recall(&hunt->ops, number / space->alike);
    struct arena *arena = same_ops ? scratch : hunt->ops.arena;
    const struct scenario *scenario = candidate_scenario(hunt, number, arena);
    const struct wish_point point = {.scenario = scenario, .number = number};
    if (scenario == NULL || (quick && !wishes_hold(&hunt->wishes, &point, false))) {
        return false;
    }
    struct error_list errors;
    error_list_init(&errors, scratch);
    struct run run;
    struct plan_bound bound;
    const struct run_bound_ask ask = {
        .scenario = scenario,
        .memory_cut_bytes = hunt->limit_bytes + MORE_MEMORY_BYTES,
        .like = same_ops ? &hunt->ops.run : &space->likes[number / space->inner_size],
        .same_ops = same_ops,
        .quick = quick,
    };
    if (!run_bound(&run, &ask, &bound, arena, &errors)) {
        return false;
    }
    if (!same_ops) {
        hunt->ops.run = run;
        hunt->ops.filled = true;
    }
    out->memory_bound = bound.peak_bytes;
    out->bound = hunt_score(hunt, &point, bound.step_s, bound.peak_bytes);
    return true;
}

/* Of every combination, in memory shared with the workers. */
struct slot {
    float peak_bytes; /* rounded down */
    bool legal;
    double score; /* bound of it */
};

static void bound_one(void *user, uint64_t number, struct arena *scratch)
{
    struct hunt *hunt = user;
    struct candidate candidate = {0};
    if (bound_candidate(hunt, number, true, &candidate, scratch)) {
        hunt->slots[number] = (struct slot){
            .legal = true,
            .peak_bytes = nextafterf((float)candidate.memory_bound, 0.0f),
            .score = candidate.bound,
        };
    }
}

static void tell(struct hunt *hunt, uint64_t done)
{
    hunt->progress.done = done;
    if (hunt->ask->progress != NULL) {
        hunt->ask->progress(hunt->ask->user, &hunt->progress);
    }
}

static void poll_bounds(void *user, uint64_t done)
{
    tell(user, done);
}

static int by_bound(const void *a, const void *b)
{
    const struct candidate *x = a;
    const struct candidate *y = b;
    if (x->bound != y->bound) {
        return x->bound < y->bound ? -1 : 1;
    }
    return x->number < y->number ? -1 : x->number > y->number;
}

/* Legal candidates that may fit with one GiB more than there is. */
static void collect(struct hunt *hunt)
{
    const bool exhaustive = hunt->ask->exhaustive;
    const double cut = hunt->limit_bytes + MORE_MEMORY_BYTES;
    uint64_t count = 0;
    for (uint64_t i = 0; i < hunt->slot_count; i++) {
        const struct slot *slot = &hunt->slots[i];
        hunt->progress.counts.legal += slot->legal;
        count += slot->legal && (exhaustive || (double)slot->peak_bytes <= cut);
    }
    hunt->candidates = share_alloc((size_t)count * sizeof *hunt->candidates);
    for (uint64_t i = 0; i < hunt->slot_count; i++) {
        const struct slot *slot = &hunt->slots[i];
        if (slot->legal && (exhaustive || (double)slot->peak_bytes <= cut)) {
            hunt->candidates[hunt->candidate_count++] =
                (struct candidate){.number = i,
                                   .bound = slot->score,
                                   .quick_bound = slot->score,
                                   .memory_bound = (double)slot->peak_bytes};
        }
    }
    qsort(hunt->candidates, count, sizeof *hunt->candidates, by_bound);
}

static bool bound_all(struct hunt *hunt, struct error_list *errors)
{
    hunt->slot_count = hunt->space.outer_size * hunt->space.inner_size;
    hunt->progress.counts.candidates = hunt->space.outer_total * hunt->space.inner_size;
    if (hunt->slot_count > CANDIDATES_MAX) {
        error_add(errors, ERROR_out_of_range, (struct location){0}, "search",
                  "%llu combinations are more than a search goes through (%llu); keep some keys "
                  "or give shorter lists",
                  (unsigned long long)hunt->slot_count, (unsigned long long)CANDIDATES_MAX);
        return false;
    }
    hunt->slots = share_alloc((size_t)hunt->slot_count * sizeof *hunt->slots);
    hunt->progress.phase = "bounding";
    hunt->progress.total = hunt->slot_count;
    const struct share share = {.count = hunt->slot_count,
                                .grain = GRAIN,
                                .jobs = hunt->ask->jobs,
                                .work = bound_one,
                                .poll = poll_bounds,
                                .user = hunt};
    share_work(&share);
    collect(hunt);
    share_free(hunt->slots, (size_t)hunt->slot_count * sizeof *hunt->slots);
    return true;
}

/* ---- Simulations ---- */

bool figures_of(const struct scenario *scenario, struct search_figures *figures,
                struct arena *arena)
{
    struct error_list errors;
    error_list_init(&errors, arena);
    struct run run;
    const struct run_options options = {.steps = 1};
    if (!run_simulate(&run, scenario, &options, arena, &errors)) {
        return false;
    }
    const struct report *report = run.report;
    *figures = (struct search_figures){.step_s = report->step_time_s,
                                       .tokens_per_s = report->tokens_per_s,
                                       .mfu = report->mfu,
                                       .peak_bytes = report->peak_bytes,
                                       .fits = report->fits};
    memcpy(figures->time_share_ps, report->time_share_ps, sizeof figures->time_share_ps);
    return true;
}

static void simulate_one(void *user, uint64_t index, struct arena *arena)
{
    struct hunt *hunt = user;
    struct candidate *candidate = &hunt->candidates[hunt->batch[index]];
    const struct scenario *scenario = candidate_scenario(hunt, candidate->number, arena);
    const bool simulated = figures_of(scenario, &candidate->figures, arena);
    ASSERT(simulated); /* its bound was accepted */
    const struct wish_point point = {
        .scenario = scenario, .number = candidate->number, .figures = &candidate->figures};
    candidate->score =
        hunt_score(hunt, &point, candidate->figures.step_s, candidate->figures.peak_bytes);
    candidate->holds = wishes_hold(&hunt->wishes, &point, true);
    candidate->done = true;
}

static void poll_batch(void *user, uint64_t done)
{
    struct hunt *hunt = user;
    tell(hunt, *hunt->phase_done + done);
}

static void refine_one(void *user, uint64_t index, struct arena *arena)
{
    struct hunt *hunt = user;
    struct candidate *candidate = &hunt->candidates[hunt->batch[index]];
    struct candidate full = {0};
    const bool bounded = bound_candidate(hunt, candidate->number, false, &full, arena);
    ASSERT(bounded); /* its quick bound was accepted */
    /* Rounding must not bring the order of two bounds of one candidate about. */
    candidate->bound = fmax(candidate->bound, full.bound);
    candidate->memory_bound = fmax(candidate->memory_bound, full.memory_bound);
    candidate->refined = true;
}

static int by_score(const void *a, const void *b)
{
    const struct candidate *x = *(const struct candidate *const *)a;
    const struct candidate *y = *(const struct candidate *const *)b;
    if (x->score != y->score) {
        return x->score < y->score ? -1 : 1;
    }
    return x->number < y->number ? -1 : x->number > y->number;
}

static void rank(struct ranking *ranking, const struct candidate *candidate, uint32_t top)
{
    ranking->best[ranking->count++] = candidate;
    qsort(ranking->best, ranking->count, sizeof *ranking->best, by_score);
    ranking->count = ranking->count > top ? top : ranking->count;
}

/* ---- Candidates with a full bound, the lowest on top ---- */

static bool is_before(const struct hunt *hunt, uint64_t a, uint64_t b)
{
    return by_bound(&hunt->candidates[a], &hunt->candidates[b]) < 0;
}

static void push(struct hunt *hunt, uint64_t index)
{
    uint64_t *heap = hunt->heap;
    uint64_t at = hunt->heap_count++;
    for (; at > 0 && is_before(hunt, index, heap[(at - 1) / 2]); at = (at - 1) / 2) {
        heap[at] = heap[(at - 1) / 2];
    }
    heap[at] = index;
}

static uint64_t pop(struct hunt *hunt)
{
    uint64_t *heap = hunt->heap;
    const uint64_t lowest = heap[0];
    const uint64_t moved = heap[--hunt->heap_count];
    uint64_t at = 0;
    for (;;) {
        uint64_t child = 2 * at + 1;
        if (child >= hunt->heap_count) {
            break;
        }
        if (child + 1 < hunt->heap_count && is_before(hunt, heap[child + 1], heap[child])) {
            child++;
        }
        if (!is_before(hunt, heap[child], moved)) {
            break;
        }
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = moved;
    return lowest;
}

/* ---- Best first ---- */

static void run_batch(struct hunt *hunt, uint32_t grain,
                      void (*work)(void *, uint64_t, struct arena *))
{
    const struct share share = {.count = hunt->batch_count,
                                .grain = grain,
                                .jobs = hunt->ask->jobs,
                                .work = work,
                                .poll = poll_batch,
                                .user = hunt};
    share_work(&share);
    *hunt->phase_done += hunt->batch_count;
}

static int by_candidate(const void *a, const void *b)
{
    const struct numbered *x = a;
    const struct numbered *y = b;
    return x->number < y->number ? -1 : x->number > y->number;
}

/* One round of a search within a limit of memory. */
struct round {
    double limit_bytes, threshold;
    double cut;    /* what scores above it is not wanted */
    uint64_t next; /* the first candidate that is not in the heap */
};

static double quick_bound(const struct hunt *hunt, uint64_t index)
{
    return index < hunt->candidate_count ? hunt->candidates[index].quick_bound : (double)INFINITY;
}

/* Full bounds for the next candidates whose quick bounds allow it; those that may fit are pushed.
 * Neighbours in number share operations, so each batch is dealt in that order. */
static void refine(struct hunt *hunt, struct round *round)
{
    const uint64_t first = round->next;
    hunt->batch_count = 0;
    while (round->next < hunt->candidate_count && hunt->batch_count < REFINED &&
           quick_bound(hunt, round->next) <= round->threshold) {
        const struct candidate *candidate = &hunt->candidates[round->next];
        if (!candidate->refined && !candidate->done && !hunt->ask->exhaustive) {
            hunt->pairs[hunt->batch_count++] = (struct numbered){candidate->number, round->next};
        }
        round->next++;
    }
    qsort(hunt->pairs, hunt->batch_count, sizeof *hunt->pairs, by_candidate);
    for (uint64_t i = 0; i < hunt->batch_count; i++) {
        hunt->batch[i] = hunt->pairs[i].index;
    }
    hunt->progress.phase = "bounding closely";
    hunt->progress.total = hunt->candidate_count;
    hunt->phase_done = &hunt->refined;
    run_batch(hunt, REFINED_GRAIN, refine_one);
    for (uint64_t i = first; i < round->next; i++) {
        const struct candidate *candidate = &hunt->candidates[i];
        if (candidate->done || hunt->ask->exhaustive ||
            candidate->memory_bound <= round->limit_bytes) {
            push(hunt, i);
        }
    }
}

static void note_best(struct hunt *hunt, const struct ranking *ranking)
{
    if (ranking->count > 0) {
        hunt->progress.best_step_s = ranking->best[0]->figures.step_s;
        hunt->progress.best_mfu = ranking->best[0]->figures.mfu;
    }
}

/* Simulates the candidates with the lowest full bounds, as long as no quick bound is lower. */
static void simulate(struct hunt *hunt, const struct round *round, struct ranking *ranking,
                     uint32_t top)
{
    uint64_t taken[BATCH];
    uint32_t taken_count = 0;
    hunt->batch_count = 0;
    while (hunt->heap_count > 0 && taken_count < BATCH) {
        const double bound = hunt->candidates[hunt->heap[0]].bound;
        if (bound > round->threshold || bound > quick_bound(hunt, round->next)) {
            break;
        }
        const uint64_t index = pop(hunt);
        taken[taken_count++] = index;
        if (!hunt->candidates[index].done) {
            hunt->batch[hunt->batch_count++] = index;
        }
    }
    hunt->progress.phase = "simulating";
    hunt->progress.total = hunt->simulated + hunt->batch_count + hunt->heap_count;
    hunt->phase_done = &hunt->simulated;
    run_batch(hunt, 1, simulate_one);
    for (uint32_t i = 0; i < taken_count; i++) {
        const struct candidate *candidate = &hunt->candidates[taken[i]];
        if (candidate->holds && candidate->score <= round->cut &&
            candidate->figures.peak_bytes <= round->limit_bytes) {
            rank(ranking, candidate, top);
        }
    }
    note_best(hunt, ranking);
}

struct ranking hunt_best_within(struct hunt *hunt, double limit_bytes, uint32_t top)
{
    struct ranking ranking = {.best = ARENA_ARRAY(hunt->arena, top + 1, const struct candidate *)};
    const bool prune = !hunt->ask->exhaustive;
    const double cut = hunt->ask->score_cut > 0.0 ? hunt->ask->score_cut : (double)INFINITY;
    struct round round = {.limit_bytes = limit_bytes, .cut = cut};
    hunt->heap_count = 0;
    for (;;) {
        const double worst = ranking.count == top ? ranking.best[top - 1]->score : cut;
        round.threshold = prune ? fmin(cut, worst) : (double)INFINITY;
        const double quick = quick_bound(hunt, round.next);
        const double full =
            hunt->heap_count > 0 ? hunt->candidates[hunt->heap[0]].bound : (double)INFINITY;
        if (round.next < hunt->candidate_count && quick <= full && quick <= round.threshold) {
            refine(hunt, &round);
        } else if (hunt->heap_count > 0 && full <= round.threshold) {
            simulate(hunt, &round, &ranking, top);
        } else {
            return ranking;
        }
    }
}

static void count(struct hunt *hunt)
{
    struct search_counts *counts = &hunt->progress.counts;
    for (uint64_t i = 0; i < hunt->candidate_count; i++) {
        const struct candidate *candidate = &hunt->candidates[i];
        const bool may_fit = candidate->done ? candidate->figures.fits
                                             : candidate->memory_bound <= hunt->limit_bytes;
        counts->fits += may_fit;
        counts->simulated += candidate->done;
        counts->bounded += may_fit && !candidate->done;
    }
}

static double limit_of(const struct scenario *scenario)
{
    const struct device_spec *device = &scenario->cluster.device;
    return fmin(device->usable_bytes, device->hbm_bytes) - scenario->memory.require_headroom_bytes;
}

const struct search_answer *search_run(const struct search_ask *ask, struct arena *arena,
                                       struct error_list *errors)
{
    const double started_s = run_clock_s();
    struct hunt *hunt = ARENA_NEW(arena, struct hunt);
    hunt->ask = ask;
    hunt->arena = arena;
    hunt->batch = ARENA_ARRAY(arena, REFINED, uint64_t);
    hunt->pairs = ARENA_ARRAY(arena, REFINED, struct numbered);
    if (!space_build(&hunt->space, ask, arena, errors) ||
        !wishes_build(&hunt->wishes, &hunt->space, ask, arena, errors)) {
        return NULL;
    }
    hunt->limit_bytes = limit_of(hunt->space.base);
    if (!bound_all(hunt, errors)) {
        wishes_release(&hunt->wishes);
        return NULL;
    }
    hunt->heap = ARENA_ARRAY(arena, hunt->candidate_count + 1, uint64_t);
    const struct ranking ranking = hunt_best_within(hunt, hunt->limit_bytes, ask->top);
    struct search_answer *answer = ARENA_NEW(arena, struct search_answer);
    answer->scenario = hunt->space.base;
    answer->axes = hunt->space.axes;
    answer->axis_count = hunt->space.axis_count;
    count(hunt);
    answer->counts = hunt->progress.counts;
    if (ranking.count == 0) {
        answer_refuse(hunt, errors);
        answer = NULL;
    } else {
        answer_list(hunt, &ranking, answer);
        answer_written(hunt, answer);
        if (ask->advise) {
            answer->one_more_gib = answer_one_more_gib(hunt, &answer->layouts[0]);
            answer->one_node_less = answer_one_node_less(hunt, &answer->layouts[0]);
        }
        answer->wall_s = run_clock_s() - started_s;
    }
    wishes_release(&hunt->wishes);
    if (hunt->ops.arena != NULL) { /* without worker processes it is ours */
        arena_destroy(hunt->ops.arena);
    }
    share_free(hunt->candidates, (size_t)hunt->candidate_count * sizeof *hunt->candidates);
    return answer;
}
