/*
 * stages.c - which chunk should hold how many layers.
 *
 * Balancing work alone is not enough: interleaved chunks run in lockstep with those of other
 * stages, the first and last chunk carry embedding, head and MTP, and memory differs by stage.
 * So splits are judged by simulation. A move takes one layer from a chunk to another; the lower
 * bound throws out most moves before they are simulated, which is exact for the step that is
 * being tried.
 */
#include <math.h>
#include <string.h>

#include "search_internal.h"

#define ROUNDS_MAX 12

/* One move, in memory shared with the workers. */
struct move {
    uint32_t from, to;
    bool simulated;
    bool legal;
    double score;
};

struct descent {
    const struct stages_ask *ask;
    const struct scenario *scenario;
    struct arena *arena;
    uint32_t chunks;
    const uint32_t *layers; /* where the descent stands */
    double score;
    struct move *moves;
    uint32_t move_count;
    uint32_t simulated;
};

static struct scenario *with_split(const struct scenario *base, const uint32_t *layers,
                                   struct arena *arena)
{
    struct scenario *scenario = ARENA_NEW(arena, struct scenario);
    struct parallel_spec *p = &scenario->parallel;
    *scenario = *base;
    p->split = SPLIT_LAYERS;
    p->layers = layers;
    p->layers_count = p->pp * p->vpp;
    p->first_layers = p->last_layers = p->noop_count = 0;
    p->noop_layers = NULL;
    p->layout = NULL;
    return scenario;
}

/* A split that does not fit is worse than any that does. */
static double score_of(const struct descent *descent, const struct search_figures *figures)
{
    const double score = search_score(descent->ask->objective, descent->scenario, figures->step_s,
                                      figures->peak_bytes);
    return figures->fits || descent->ask->objective == SEARCH_MEMORY ? score : score * 1e6;
}

static void try_move(void *user, uint64_t index, struct arena *arena)
{
    struct descent *descent = user;
    struct move *move = &descent->moves[index];
    uint32_t *layers = ARENA_ARRAY(arena, descent->chunks, uint32_t);
    memcpy(layers, descent->layers, descent->chunks * sizeof *layers);
    layers[move->from]--;
    layers[move->to]++;
    const struct scenario *scenario = with_split(descent->scenario, layers, arena);
    struct error_list errors;
    error_list_init(&errors, arena);
    struct run run;
    struct plan_bound bound;
    const struct run_bound_ask ask = {.scenario = scenario, .memory_cut_bytes = (double)INFINITY};
    if (!run_bound(&run, &ask, &bound, arena, &errors) ||
        search_score(descent->ask->objective, scenario, bound.step_s, bound.peak_bytes) >=
            descent->score) {
        return;
    }
    struct search_figures figures;
    move->simulated = true;
    move->legal = figures_of(scenario, &figures, arena);
    move->score = move->legal ? score_of(descent, &figures) : 0.0;
}

/* All single moves; the best one is made if it is an improvement. Ties go to the first. */
static bool improve(struct descent *descent)
{
    descent->move_count = 0;
    for (uint32_t from = 0; from < descent->chunks; from++) {
        for (uint32_t to = 0; to < descent->chunks; to++) {
            if (from != to && descent->layers[from] > 0) {
                descent->moves[descent->move_count++] = (struct move){.from = from, .to = to};
            }
        }
    }
    const struct share share = {.count = descent->move_count,
                                .grain = 4,
                                .jobs = descent->ask->jobs,
                                .work = try_move,
                                .user = descent};
    share_work(&share);
    const struct move *best = NULL;
    for (uint32_t i = 0; i < descent->move_count; i++) {
        const struct move *move = &descent->moves[i];
        descent->simulated += move->simulated;
        if (move->legal && move->score < (best != NULL ? best->score : descent->score)) {
            best = move;
        }
    }
    if (best == NULL) {
        return false;
    }
    uint32_t *layers = ARENA_ARRAY(descent->arena, descent->chunks, uint32_t);
    memcpy(layers, descent->layers, descent->chunks * sizeof *layers);
    layers[best->from]--;
    layers[best->to]++;
    descent->layers = layers;
    descent->score = best->score;
    return true;
}

/* Fills layers, figures and the slowest stage; false if the split is refused. */
static bool simulate_split(const struct scenario *scenario, struct stage_split_trial *trial,
                           struct arena *arena, struct error_list *errors)
{
    struct arena *scratch = arena_create("split");
    struct run run;
    const struct run_options options = {.steps = 1};
    const bool done = run_simulate(&run, scenario, &options, scratch, errors);
    if (done) {
        const struct layout *layout = run.layout;
        const struct report *report = run.report;
        const uint32_t chunks = layout->pp * layout->vpp;
        uint32_t *layers = ARENA_ARRAY(arena, chunks, uint32_t);
        for (uint32_t k = 0; k < chunks; k++) {
            layers[k] =
                layout
                    ->chunks[layout_stage_of(layout, k) * layout->vpp + layout_chunk_of(layout, k)]
                    .layer_count;
        }
        trial->layers = layers;
        trial->figures = (struct search_figures){.step_s = report->step_time_s,
                                                 .tokens_per_s = report->tokens_per_s,
                                                 .mfu = report->mfu,
                                                 .peak_bytes = report->peak_bytes,
                                                 .fits = report->fits};
        trial->slowest_s = 0.0;
        for (uint32_t s = 0; s < report->stage_count; s++) {
            if (report->stages[s].compute_busy_s > trial->slowest_s) {
                trial->slowest_s = report->stages[s].compute_busy_s;
                trial->slowest_stage = s;
            }
        }
    }
    arena_destroy(scratch);
    return done;
}

/* Splits that have a rule: as written, balanced work, and equal chunks until none are left. */
static uint32_t try_rules(const struct descent *descent, struct stage_split_trial *trials,
                          struct error_list *errors)
{
    struct scenario *balanced = with_split(descent->scenario, NULL, descent->arena);
    balanced->parallel.split = SPLIT_BALANCED;
    balanced->parallel.layers_count = 0;
    uint32_t *tail = ARENA_ARRAY(descent->arena, descent->chunks, uint32_t);
    const uint32_t all = descent->scenario->model.layers;
    const uint32_t most = (all + descent->chunks - 1) / descent->chunks;
    for (uint32_t k = 0, left = all; k < descent->chunks; k++) {
        tail[k] = left < most ? left : most;
        left -= tail[k];
    }
    const struct scenario *const scenarios[] = {
        descent->scenario, balanced, with_split(descent->scenario, tail, descent->arena)};
    static const char *const names[] = {"as written", "balanced", "tail"};
    uint32_t count = 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        trials[count].name = names[i];
        if (simulate_split(scenarios[i], &trials[count], descent->arena, errors)) {
            count++;
        } else if (i == 0) {
            return 0;
        }
    }
    return count;
}

const struct stages_answer *search_stages(const struct stages_ask *ask, struct arena *arena,
                                          struct error_list *errors)
{
    const struct scenario *scenario = scenario_load(ask->source, arena, errors);
    if (scenario == NULL) {
        return NULL;
    }
    struct descent descent = {.ask = ask,
                              .scenario = scenario,
                              .arena = arena,
                              .chunks = scenario->parallel.pp * scenario->parallel.vpp};
    struct stage_split_trial *trials = ARENA_ARRAY(arena, 4, struct stage_split_trial);
    struct error_list refused;
    error_list_init(&refused, arena);
    uint32_t count = try_rules(&descent, trials, &refused);
    if (count == 0) {
        *errors = refused;
        return NULL;
    }
    descent.score = (double)INFINITY;
    for (uint32_t i = 0; i < count; i++) {
        const double score = score_of(&descent, &trials[i].figures);
        if (score < descent.score) {
            descent.score = score;
            descent.layers = trials[i].layers;
        }
    }
    const size_t bytes = (size_t)descent.chunks * descent.chunks * sizeof *descent.moves;
    descent.moves = share_alloc(bytes);
    for (uint32_t round = 0; round < ROUNDS_MAX && improve(&descent); round++) {
    }
    share_free(descent.moves, bytes);
    trials[count].name = "found";
    const bool done =
        simulate_split(with_split(scenario, descent.layers, arena), &trials[count], arena, errors);
    ASSERT(done);
    struct stages_answer *answer = ARENA_NEW(arena, struct stages_answer);
    *answer = (struct stages_answer){.scenario = scenario,
                                     .chunk_count = descent.chunks,
                                     .trials = trials,
                                     .count = count + 1,
                                     .simulated = descent.simulated + count};
    return answer;
}
