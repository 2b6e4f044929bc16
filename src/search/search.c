/*
 * search.c - bounds every legal candidate, then simulates in the order of the bounds.
 *
 * Best first: once the next bound is above the score of the K-th best layout found, no
 * candidate that is left can be among the best K, since a bound is never above what the
 * simulation answers. A candidate whose bound equals that score is simulated, because it might
 * win the tie. The threshold moves between batches of fixed size only, so that the same
 * candidates are simulated whatever the number of workers.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "search_internal.h"
#include "stepsim/text.h"

#define BATCH             64
#define GRAIN             128
#define CANDIDATES_MAX    ((uint64_t)20 * 1000 * 1000)
#define MORE_MEMORY_BYTES GIB_BYTES

enum { SLOT_REFUSED, SLOT_LEGAL };

/* Of every combination, in memory shared with the workers. */
struct slot {
    float peak_bytes; /* rounded down */
    uint8_t state;
    double score; /* bound of it */
};

struct candidate {
    uint64_t number;
    double bound, memory_bound;
    bool done;
    double score; /* simulated */
    struct search_figures figures;
};

/* What a worker keeps of the candidate before: neighbours share degrees, and those that differ
 * in vpp and stages alone share their ops and costs. */
struct kept {
    struct arena *arena; /* NULL: nothing is kept yet */
    uint64_t key;
    bool filled;
    struct run run;
};

struct hunt {
    const struct search_ask *ask;
    struct space space;
    struct arena *arena;
    double limit_bytes;
    struct slot *slots;
    uint64_t slot_count;
    struct candidate *candidates; /* by bound; shared memory */
    uint64_t candidate_count;
    uint64_t batch_first, batch_count; /* being simulated */
    uint64_t *batch;                   /* indices into candidates */
    struct search_progress progress;
    struct kept degrees, ops; /* each worker has its own */
};

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

/* ---- Bounds ---- */

static const struct scenario *candidate_scenario(const struct hunt *hunt, uint64_t number,
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

static void bound_one(void *user, uint64_t number, struct arena *scratch)
{
    struct hunt *hunt = user;
    struct slot *slot = &hunt->slots[number];
    const struct space *space = &hunt->space;
    const uint64_t alike = (uint64_t)space->axes[space->axis_count - 2].count *
                           space->axes[space->axis_count - 1].count;
    const bool same_ops = recall(&hunt->ops, number / alike);
    const bool same_degrees = recall(&hunt->degrees, number / space->inner_size);
    struct kept *keep = !same_degrees ? &hunt->degrees : !same_ops ? &hunt->ops : NULL;
    struct arena *arena = keep != NULL ? keep->arena : scratch;
    const struct scenario *scenario = candidate_scenario(hunt, number, arena);
    if (scenario == NULL) {
        return;
    }
    struct error_list errors;
    error_list_init(&errors, scratch);
    struct run run;
    struct plan_bound bound;
    const struct run_bound_ask ask = {
        .scenario = scenario,
        .memory_cut_bytes = hunt->limit_bytes + MORE_MEMORY_BYTES,
        .like = same_ops       ? &hunt->ops.run
                : same_degrees ? &hunt->degrees.run
                               : NULL,
        .same_ops = same_ops,
    };
    if (!run_bound(&run, &ask, &bound, arena, &errors)) {
        return;
    }
    if (keep != NULL) {
        keep->run = run;
        keep->filled = true;
    }
    slot->state = SLOT_LEGAL;
    slot->peak_bytes = nextafterf((float)bound.peak_bytes, 0.0f);
    slot->score = search_score(hunt->ask->objective, scenario, bound.step_s, bound.peak_bytes);
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
        hunt->progress.counts.legal += slot->state == SLOT_LEGAL;
        count += slot->state == SLOT_LEGAL && (exhaustive || (double)slot->peak_bytes <= cut);
    }
    hunt->candidates = share_alloc((size_t)count * sizeof *hunt->candidates);
    for (uint64_t i = 0; i < hunt->slot_count; i++) {
        const struct slot *slot = &hunt->slots[i];
        if (slot->state == SLOT_LEGAL && (exhaustive || (double)slot->peak_bytes <= cut)) {
            hunt->candidates[hunt->candidate_count++] = (struct candidate){
                .number = i, .bound = slot->score, .memory_bound = (double)slot->peak_bytes};
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
    candidate->score = search_score(hunt->ask->objective, scenario, candidate->figures.step_s,
                                    candidate->figures.peak_bytes);
    candidate->done = true;
}

static void poll_simulations(void *user, uint64_t done)
{
    struct hunt *hunt = user;
    tell(hunt, hunt->batch_first + done);
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

/* The best so far within a limit of memory, best first; at most `top` of them. */
struct ranking {
    const struct candidate **best;
    uint64_t count;
};

static void rank(struct ranking *ranking, const struct candidate *candidate, uint32_t top)
{
    ranking->best[ranking->count++] = candidate;
    qsort(ranking->best, ranking->count, sizeof *ranking->best, by_score);
    ranking->count = ranking->count > top ? top : ranking->count;
}

static bool fits(const struct candidate *candidate, double limit_bytes)
{
    return candidate->figures.peak_bytes <= limit_bytes;
}

static void run_batch(struct hunt *hunt)
{
    const struct share share = {.count = hunt->batch_count,
                                .grain = 1,
                                .jobs = hunt->ask->jobs,
                                .work = simulate_one,
                                .poll = poll_simulations,
                                .user = hunt};
    share_work(&share);
    hunt->batch_first += hunt->batch_count;
}

static void note_best(struct hunt *hunt, const struct ranking *ranking)
{
    if (ranking->count > 0) {
        hunt->progress.best_step_s = ranking->best[0]->figures.step_s;
        hunt->progress.best_mfu = ranking->best[0]->figures.mfu;
    }
}

/* The best `top` within a limit; candidates simulated before are not simulated again. */
static struct ranking best_within(struct hunt *hunt, double limit_bytes, uint32_t top)
{
    struct ranking ranking = {.best = ARENA_ARRAY(hunt->arena, top + 1, const struct candidate *)};
    uint64_t next = 0;
    bool open = true;
    while (open && next < hunt->candidate_count) {
        const uint64_t first = next;
        const double threshold = !hunt->ask->exhaustive && ranking.count == top
                                     ? ranking.best[top - 1]->score
                                     : (double)INFINITY;
        hunt->batch_count = 0;
        for (; next < hunt->candidate_count && hunt->batch_count < BATCH; next++) {
            const struct candidate *candidate = &hunt->candidates[next];
            if (candidate->bound > threshold) {
                open = false;
                break;
            }
            if (!candidate->done &&
                (hunt->ask->exhaustive || candidate->memory_bound <= limit_bytes)) {
                hunt->batch[hunt->batch_count++] = next;
            }
        }
        run_batch(hunt);
        for (uint64_t i = first; i < next; i++) {
            if (hunt->candidates[i].done && fits(&hunt->candidates[i], limit_bytes)) {
                rank(&ranking, &hunt->candidates[i], top);
            }
        }
        note_best(hunt, &ranking);
    }
    return ranking;
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

/* ---- The answer ---- */

static void list_choices(const struct hunt *hunt, struct search_layout *layout)
{
    const struct space *space = &hunt->space;
    const char **choices = ARENA_ARRAY(hunt->arena, space->axis_count, const char *);
    for (uint32_t a = 0; a < space->axis_count; a++) {
        const struct search_value *value =
            space_value(space, a, space->outers[layout->candidate / space->inner_size],
                        layout->candidate % space->inner_size);
        const char *text = value->text;
        if (strcmp(space->axes[a].key, "parallel.stages") == 0) {
            if (strcmp(text, "file") == 0) {
                continue;
            }
            if (strcmp(text, "tail") == 0) {
                struct text list = {0};
                for (uint32_t k = 0; k < layout->scenario->parallel.layers_count; k++) {
                    text_add(&list, "%s%u", k > 0 ? "," : "", layout->scenario->parallel.layers[k]);
                }
                text = arena_printf(hunt->arena, "{layers: [%s]}", text_string(&list));
                text_free(&list);
            }
        }
        choices[layout->choice_count++] =
            arena_printf(hunt->arena, "%s=%s", space->axes[a].key, text);
    }
    layout->choices = choices;
}

static struct search_layout layout_of(const struct hunt *hunt, const struct candidate *candidate)
{
    struct error_list errors;
    error_list_init(&errors, hunt->arena);
    struct search_layout layout = {
        .candidate = candidate->number,
        .scenario = candidate_scenario(hunt, candidate->number, hunt->arena),
        .figures = candidate->figures,
        .score = candidate->score,
    };
    struct run run;
    const bool prepared = run_prepare(&run, layout.scenario, hunt->arena, &errors);
    ASSERT(prepared);
    layout.layout = run.layout;
    layout.schedule = run.schedule->name;
    list_choices(hunt, &layout);
    return layout;
}

static void list_layouts(const struct hunt *hunt, const struct ranking *ranking,
                         struct search_answer *answer)
{
    struct search_layout *layouts = ARENA_ARRAY(hunt->arena, ranking->count, struct search_layout);
    for (uint64_t i = 0; i < ranking->count; i++) {
        layouts[i] = layout_of(hunt, ranking->best[i]);
    }
    for (uint64_t i = 1; i < ranking->count; i++) {
        layouts[i].why_lost = why_lost(&layouts[i], &layouts[0], hunt->arena);
    }
    layouts[0].why_lost =
        why_won(&layouts[0], ranking->count > 1 ? &layouts[1] : NULL, hunt->arena);
    answer->layouts = layouts;
    answer->layout_count = (uint32_t)ranking->count;
}

/* The best layout again on fewer whole nodes, with the same degrees and fewer replicas. */
static const char *one_node_less(const struct hunt *hunt, const struct search_layout *best)
{
    struct arena *scratch = arena_create("fewer");
    struct scenario fewer = *best->scenario;
    struct search_figures figures;
    const char *sentence = "No smaller number of nodes takes this layout with the same batch.";
    while (fewer.devices > fewer.cluster.devices_per_node) {
        fewer.devices -= fewer.cluster.devices_per_node;
        struct error_list errors;
        error_list_init(&errors, scratch);
        struct run run;
        if (run_prepare(&run, &fewer, scratch, &errors) && figures_of(&fewer, &figures, scratch)) {
            const uint32_t nodes =
                (best->scenario->devices - fewer.devices) / fewer.cluster.devices_per_node;
            sentence = arena_printf(
                hunt->arena,
                "The next smaller cluster that this layout and batch divide has %u devices (%u "
                "%s less): %.4g s per step (%+.1f %%), %s tokens/s per device%s.",
                fewer.devices, nodes, nodes == 1 ? "node" : "nodes", figures.step_s,
                (figures.step_s / best->figures.step_s - 1.0) * 100.0,
                text_si(hunt->arena, figures.tokens_per_s / fewer.devices, ""),
                figures.fits ? "" : ", but it does not fit in memory");
            break;
        }
        arena_reset(scratch);
    }
    arena_destroy(scratch);
    return sentence;
}

static const char *one_more_gib(struct hunt *hunt, const struct search_layout *best)
{
    const struct ranking more = best_within(hunt, hunt->limit_bytes + MORE_MEMORY_BYTES, 1);
    if (more.count == 0 || more.best[0]->score >= best->score) {
        return "One more GiB of memory on each device would change nothing.";
    }
    const struct search_layout other = layout_of(hunt, more.best[0]);
    struct text text = {0};
    for (uint32_t i = 0; i < other.choice_count; i++) {
        const char *mine = i < best->choice_count ? best->choices[i] : "";
        if (strcmp(other.choices[i], mine) != 0) {
            text_add(&text, "%s%s", text.length > 0 ? ", " : "", other.choices[i]);
        }
    }
    const char *sentence =
        arena_printf(hunt->arena,
                     "One more GiB of memory on each device would allow %s: %.4g s per step "
                     "(%+.1f %%).",
                     text_string(&text), other.figures.step_s,
                     (other.figures.step_s / best->figures.step_s - 1.0) * 100.0);
    text_free(&text);
    return sentence;
}

static void look_at_written(const struct hunt *hunt, struct search_answer *answer)
{
    struct arena *scratch = arena_create("written");
    answer->written_legal = figures_of(hunt->space.base, &answer->written, scratch);
    arena_destroy(scratch);
}

static double limit_of(const struct scenario *scenario)
{
    const struct device_spec *device = &scenario->cluster.device;
    return fmin(device->usable_bytes, device->hbm_bytes) - scenario->memory.require_headroom_bytes;
}

static void refuse_nothing_fits(const struct hunt *hunt, struct error_list *errors)
{
    double least = INFINITY;
    for (uint64_t i = 0; i < hunt->candidate_count; i++) {
        const struct candidate *candidate = &hunt->candidates[i];
        least =
            fmin(least, candidate->done ? candidate->figures.peak_bytes : candidate->memory_bound);
    }
    if (hunt->progress.counts.legal == 0) {
        error_add(errors, ERROR_does_not_fit, scenario_at(hunt->space.base, "devices"), "search",
                  "none of %llu combinations is legal; check devices and "
                  "training.global_batch_size, or vary more keys",
                  (unsigned long long)hunt->progress.counts.candidates);
    } else if (isinf(least)) {
        error_add(errors, ERROR_does_not_fit, scenario_at(hunt->space.base, "devices"), "search",
                  "none of %llu legal layouts comes within a GiB of the limit of %s; take more "
                  "devices, or vary more keys",
                  (unsigned long long)hunt->progress.counts.legal,
                  text_gib(hunt->arena, hunt->limit_bytes));
    } else {
        error_add(errors, ERROR_does_not_fit, scenario_at(hunt->space.base, "devices"), "search",
                  "none of %llu legal layouts fits; the smallest needs %s and may use %s",
                  (unsigned long long)hunt->progress.counts.legal, text_gib(hunt->arena, least),
                  text_gib(hunt->arena, hunt->limit_bytes));
    }
}

const struct search_answer *search_run(const struct search_ask *ask, struct arena *arena,
                                       struct error_list *errors)
{
    const double started_s = run_clock_s();
    struct hunt *hunt = ARENA_NEW(arena, struct hunt);
    hunt->ask = ask;
    hunt->arena = arena;
    hunt->batch = ARENA_ARRAY(arena, BATCH, uint64_t);
    if (!space_build(&hunt->space, ask, arena, errors)) {
        return NULL;
    }
    hunt->limit_bytes = limit_of(hunt->space.base);
    if (!bound_all(hunt, errors)) {
        return NULL;
    }
    hunt->progress.phase = "simulating";
    hunt->progress.total = hunt->candidate_count;
    const struct ranking ranking = best_within(hunt, hunt->limit_bytes, ask->top);
    struct search_answer *answer = ARENA_NEW(arena, struct search_answer);
    answer->scenario = hunt->space.base;
    answer->axes = hunt->space.axes;
    answer->axis_count = hunt->space.axis_count;
    count(hunt);
    answer->counts = hunt->progress.counts;
    if (ranking.count == 0) {
        refuse_nothing_fits(hunt, errors);
        answer = NULL;
    } else {
        list_layouts(hunt, &ranking, answer);
        look_at_written(hunt, answer);
        if (ask->advise) {
            answer->one_more_gib = one_more_gib(hunt, &answer->layouts[0]);
            answer->one_node_less = one_node_less(hunt, &answer->layouts[0]);
        }
        answer->wall_s = run_clock_s() - started_s;
    }
    share_free(hunt->candidates, (size_t)hunt->candidate_count * sizeof *hunt->candidates);
    return answer;
}
