/*
 * points.c - the list of points: combinations of the axes that pass the constraints, all of
 * them, a random part, or a Latin hypercube.
 *
 * A combination is a number whose digits are the positions on the axes, the first axis being
 * the most significant digit; points are numbered in the order of these numbers.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "stepsim/rng.h"
#include "sweep/sweep_internal.h"

#define COMBINATIONS_MAX 2e7
#define POINTS_MAX       0xffffffffu

/* Combinations that were chosen, in ascending order in the end. */
struct chosen {
    uint64_t *items;
    uint64_t count, capacity;
};

static void choose(struct chosen *chosen, uint64_t combination)
{
    if (chosen->count == chosen->capacity) {
        chosen->capacity = chosen->capacity > 0 ? 2 * chosen->capacity : 1024;
        chosen->items = realloc(chosen->items, chosen->capacity * sizeof *chosen->items);
        ASSERT(chosen->items != NULL);
    }
    chosen->items[chosen->count++] = combination;
}

static int compare_combinations(const void *a, const void *b)
{
    uint64_t x = 0, y = 0;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return x < y ? -1 : x > y;
}

/* Texts of the axis keys of a combination. */
static void axis_texts(const struct sweep *sweep, uint64_t combination, const char **texts)
{
    uint32_t end = sweep->key_count - sweep->derived_count;
    for (uint32_t i = sweep->axis_count; i-- > 0;) {
        const struct sweep_axis *axis = &sweep->axes[i];
        const uint64_t position = combination % axis->value_count;
        combination /= axis->value_count;
        end -= axis->key_count;
        for (uint32_t j = 0; j < axis->key_count; j++) {
            texts[end + j] = axis->texts[position * axis->key_count + j];
        }
    }
    ASSERT(end == 0);
}

struct trial {
    struct sweep *sweep;
    struct expressions *expressions;
    const char **texts;
    const char **derived;
    struct arena *scratch;
    struct error_list *errors;
    bool failed;
};

static bool passes(struct trial *trial, uint64_t combination, struct arena *arena)
{
    axis_texts(trial->sweep, combination, trial->texts);
    struct expression_point point = {.axis_texts = trial->texts, .derived = trial->derived};
    const bool holds = expressions_hold(trial->expressions, &point, arena, trial->errors);
    trial->failed = trial->failed || point.failed;
    return holds;
}

static void choose_all(struct trial *trial, struct chosen *chosen)
{
    const uint64_t combinations = (uint64_t)trial->sweep->combinations;
    for (uint64_t i = 0; i < combinations && !trial->failed; i++) {
        arena_reset(trial->scratch);
        if (passes(trial, i, trial->scratch)) {
            choose(chosen, i);
        }
    }
}

/* Leaves a random part of what was chosen: the head of a shuffle. */
static void keep_random(const struct sweep *sweep, struct chosen *chosen)
{
    struct rng rng = rng_stream(sweep->seed, 0x73616d706c65u);
    const uint64_t keep =
        sweep->sample_points < chosen->count ? sweep->sample_points : chosen->count;
    for (uint64_t i = 0; i < keep; i++) {
        const uint64_t other = i + rng_below(&rng, chosen->count - i);
        const uint64_t moved = chosen->items[i];
        chosen->items[i] = chosen->items[other];
        chosen->items[other] = moved;
    }
    chosen->count = keep;
}

/* On every axis each of N equal strata is met once; strata map to positions. */
static void choose_hypercube(struct trial *trial, struct chosen *chosen)
{
    const struct sweep *sweep = trial->sweep;
    const uint64_t points = sweep->sample_points;
    uint64_t *combinations = calloc(points, sizeof *combinations);
    uint64_t *strata = calloc(points, sizeof *strata);
    ASSERT(combinations != NULL && strata != NULL);
    for (uint32_t i = 0; i < sweep->axis_count; i++) {
        struct rng rng = rng_stream(sweep->seed, rng_mix(0x637562u, i));
        for (uint64_t j = 0; j < points; j++) {
            const uint64_t other = rng_below(&rng, j + 1);
            strata[j] = strata[other];
            strata[other] = j;
        }
        for (uint64_t j = 0; j < points; j++) {
            const uint64_t position = strata[j] * sweep->axes[i].value_count / points;
            combinations[j] = combinations[j] * sweep->axes[i].value_count + position;
        }
    }
    qsort(combinations, points, sizeof *combinations, compare_combinations);
    for (uint64_t j = 0; j < points && !trial->failed; j++) {
        arena_reset(trial->scratch);
        const bool repeated = j > 0 && combinations[j] == combinations[j - 1];
        if (!repeated && passes(trial, combinations[j], trial->scratch)) {
            choose(chosen, combinations[j]);
        }
    }
    free(combinations);
    free(strata);
}

/* Computes the texts of the chosen points for good. */
static void keep_texts(struct trial *trial, const struct chosen *chosen)
{
    struct sweep *sweep = trial->sweep;
    const uint32_t keys = sweep->key_count;
    const uint32_t axis_keys = keys - sweep->derived_count;
    const char **texts = ARENA_ARRAY(sweep->arena, chosen->count * keys + 1, const char *);
    for (uint64_t i = 0; i < chosen->count && !trial->failed; i++) {
        const char **point = texts + i * keys;
        trial->derived = point + axis_keys;
        const bool holds = passes(trial, chosen->items[i], sweep->arena);
        ASSERT(holds || trial->failed);
        for (uint32_t j = 0; j < axis_keys; j++) {
            point[j] = trial->texts[j];
        }
    }
    sweep->texts = texts;
    sweep->point_count = chosen->count;
}

static void list_keys(struct sweep *sweep)
{
    uint32_t count = sweep->derived_count;
    for (uint32_t i = 0; i < sweep->axis_count; i++) {
        count += sweep->axes[i].key_count;
    }
    const char **names = ARENA_ARRAY(sweep->arena, count + 1, const char *);
    bool *overrides = ARENA_ARRAY(sweep->arena, count + 1, bool);
    uint32_t at = 0;
    for (uint32_t i = 0; i < sweep->axis_count; i++) {
        for (uint32_t j = 0; j < sweep->axes[i].key_count; j++) {
            overrides[at] = true;
            names[at++] = sweep->axes[i].keys[j];
        }
    }
    for (uint32_t i = 0; i < sweep->derived_count; i++) {
        overrides[at] = sweep->derived[i].is_key;
        names[at++] = sweep->derived[i].name;
    }
    sweep->key_names = names;
    sweep->key_is_override = overrides;
    sweep->key_count = count;
}

static bool check_keys(const struct sweep *sweep, struct error_list *errors)
{
    bool good = true;
    for (uint32_t i = 0; i < sweep->key_count; i++) {
        for (uint32_t j = 0; j < i; j++) {
            if (strcmp(sweep->key_names[i], sweep->key_names[j]) == 0) {
                error_add(errors, ERROR_conflicting_keys, (struct location){sweep->path, 0, 0},
                          sweep->key_names[i], "is swept twice; a key has one axis");
                good = false;
            }
        }
    }
    return good;
}

bool points_build(struct sweep *sweep, struct error_list *errors)
{
    list_keys(sweep);
    sweep->combinations = 1.0;
    for (uint32_t i = 0; i < sweep->axis_count; i++) {
        sweep->combinations *= sweep->axes[i].value_count;
    }
    if (sweep->sampling != SAMPLE_LATIN_HYPERCUBE && sweep->combinations > COMBINATIONS_MAX) {
        error_add(errors, ERROR_out_of_range, (struct location){sweep->path, 0, 0}, "axes",
                  "%.3g combinations are more than the %.0g that are enumerated; take fewer "
                  "values, or sample: {kind: latin_hypercube, points: 10000, seed: 1}",
                  sweep->combinations, COMBINATIONS_MAX);
        return false;
    }
    struct trial trial = {.sweep = sweep, .errors = errors};
    if (!check_keys(sweep, errors) ||
        (trial.expressions = expressions_create(sweep, errors)) == NULL) {
        return false;
    }
    trial.texts = ARENA_ARRAY(sweep->arena, sweep->key_count + 1, const char *);
    trial.derived = ARENA_ARRAY(sweep->arena, sweep->derived_count + 1, const char *);
    trial.scratch = arena_create("points");
    struct chosen chosen = {0};
    if (sweep->sampling == SAMPLE_LATIN_HYPERCUBE) {
        choose_hypercube(&trial, &chosen);
    } else {
        choose_all(&trial, &chosen);
    }
    if (sweep->sampling == SAMPLE_RANDOM && chosen.count > 0) {
        keep_random(sweep, &chosen);
        qsort(chosen.items, chosen.count, sizeof *chosen.items, compare_combinations);
    }
    if (!trial.failed) {
        keep_texts(&trial, &chosen);
    }
    if (!trial.failed && chosen.count == 0) {
        error_add(errors, ERROR_no_points, (struct location){sweep->path, 0, 0}, "where",
                  "none of the %.0f combinations of the axes holds", sweep->combinations);
        trial.failed = true;
    }
    free(chosen.items);
    arena_destroy(trial.scratch);
    expressions_destroy(trial.expressions);
    return !trial.failed;
}
