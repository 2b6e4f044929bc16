/*
 * balance.c - layers to chunks so that no stage waits for another longer than it must.
 *
 * Weights become integers (the whole model is 2^30 units), so sums are exact and equal layers
 * stay equal.
 *
 * With several chunks per stage a light stage alone is not enough: all stages run their first
 * chunks at the same time, then their second ones, so that each round lasts as long as its
 * heaviest chunk. Splits are therefore made under a cap on the layers of a chunk (the lightest
 * possible, one and two layers more, none), and the one with the least sum over rounds wins. Under
 * a cap the order is: heaviest stage, heaviest chunk, sum of squared chunk weights, counts read
 * as a word. Three methods:
 *
 *  One chunk per stage: exact for any weights. The lightest limit is found by bisection with a
 *  greedy fill, the most even split under it by dynamic programming. O(layers * layers) when the
 *  stages are about equal.
 *
 *  Several chunks, layers equal behind a short prefix (dense layers before MoE layers): exact
 *  for the heaviest stage, balance_prefix.c.
 *
 *  Several chunks, any other pattern (windows on every other layer): the exact split of equal
 *  layers of mean weight, then moves of one layer from chunk to chunk while one of them makes
 *  the split better. A local optimum: test_balance.c holds it against all splits of small models.
 */
#include <math.h>
#include <string.h>

#include "layout_internal.h"

#define TOTAL_UNITS    1073741824.0
#define PREFIX_MAX     10
#define MOVES_WORK_MAX 3000000 /* chunks and layers looked at */

static int compare_scores(const struct score *a, const struct score *b)
{
    if (a->stage != b->stage)
        return a->stage < b->stage ? -1 : 1;
    if (a->chunk != b->chunk)
        return a->chunk < b->chunk ? -1 : 1;
    if (a->squares != b->squares)
        return a->squares < b->squares ? -1 : 1;
    return 0;
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

int64_t balance_total(const struct balance *balance)
{
    int64_t total = 0;
    for (uint32_t i = 0; i < balance->layers; i++)
        total += balance->layer[i];
    for (uint32_t k = 0; k < balance->count; k++)
        total += balance->extra[k];
    return total;
}

/* ---- One chunk per stage ---- */

/* Do all layers fit when no chunk passes the limit? Filling greedily never does worse. */
static bool chain_fits(const struct balance *balance, int64_t limit)
{
    uint32_t next = 0;
    for (uint32_t k = 0; k < balance->count; k++) {
        int64_t load = balance->extra[k];
        if (load > limit)
            return false;
        while (next < balance->layers && load + balance->layer[next] <= limit)
            load += balance->layer[next++];
    }
    return next == balance->layers;
}

static int64_t chain_limit(const struct balance *balance)
{
    int64_t low = 0;
    int64_t high = balance_total(balance);
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (chain_fits(balance, middle))
            high = middle;
        else
            low = middle + 1;
    }
    return high;
}

/* Least sum of squares of chunks k.. that hold layers i.., row k of `least`; INT64_MAX: none. */
static void chain_row(const struct balance *balance, uint32_t k, int64_t limit, int64_t *least)
{
    const uint32_t width = balance->layers + 1;
    for (uint32_t i = 0; i < width; i++) {
        int64_t best = INT64_MAX;
        int64_t load = balance->extra[k];
        for (uint32_t end = i; load <= limit; end++) {
            const int64_t rest = least[(k + 1) * width + end];
            if (rest != INT64_MAX && load * load + rest < best)
                best = load * load + rest;
            if (end == balance->layers)
                break;
            load += balance->layer[end];
        }
        least[k * width + i] = best;
    }
}

static void balance_chain(const struct balance *balance, struct arena *arena, uint32_t *counts)
{
    const int64_t limit = chain_limit(balance);
    const uint32_t width = balance->layers + 1;
    int64_t *least = ARENA_ARRAY(arena, (size_t)(balance->count + 1) * width, int64_t);
    for (uint32_t i = 0; i < balance->layers; i++)
        least[balance->count * width + i] = INT64_MAX;
    for (uint32_t k = balance->count; k > 0; k--)
        chain_row(balance, k - 1, limit, least);

    uint32_t next = 0;
    for (uint32_t k = 0; k < balance->count; k++) {
        int64_t load = balance->extra[k];
        uint32_t end = next;
        while (least[(k + 1) * width + end] == INT64_MAX ||
               load * load + least[(k + 1) * width + end] != least[k * width + next]) {
            ASSERT(end < balance->layers);
            load += balance->layer[end++];
        }
        counts[k] = end - next;
        next = end;
    }
}

/* ---- Any pattern ---- */

/* Layers above the cap count as an infinitely heavy stage. */
static struct score score_of(const struct balance *balance, const uint32_t *counts,
                             int64_t *stage_load)
{
    struct score score = {0};
    uint32_t next = 0;
    memset(stage_load, 0, balance->pp * sizeof *stage_load);
    for (uint32_t k = 0; k < balance->count; k++) {
        int64_t load = balance->extra[k];
        for (uint32_t i = 0; i < counts[k]; i++)
            load += balance->layer[next++];
        if (load - balance->extra[k] > balance->cap)
            score.stage = INT64_MAX;
        stage_load[balance->stage[k]] += load;
        score.chunk = larger(score.chunk, load);
        score.squares += load * load;
    }
    for (uint32_t s = 0; s < balance->pp; s++)
        score.stage = larger(score.stage, stage_load[s]);
    return score;
}

/* Takes the best move of one layer between two chunks, if it helps; false: none does. */
static bool improve(const struct balance *balance, uint32_t *counts, int64_t *scratch,
                    uint64_t *work)
{
    const struct score now = score_of(balance, counts, scratch);
    struct score best = now;
    uint32_t from = 0;
    uint32_t to = 0;
    for (uint32_t a = 0; a < balance->count; a++) {
        for (uint32_t b = 0; b < balance->count && counts[a] > 0; b++) {
            if (a == b || *work > MOVES_WORK_MAX)
                continue;
            *work += balance->count + balance->layers;
            counts[a]--;
            counts[b]++;
            const struct score score = score_of(balance, counts, scratch);
            counts[a]++;
            counts[b]--;
            if (compare_scores(&score, &best) < 0) {
                best = score;
                from = a;
                to = b;
            }
        }
    }
    if (from == to)
        return false;
    counts[from]--;
    counts[to]++;
    return true;
}

static bool balance_pattern(const struct balance *balance, struct arena *arena, uint32_t *counts)
{
    int64_t *mean = ARENA_ARRAY(arena, balance->layers, int64_t);
    int64_t sum = 0;
    for (uint32_t i = 0; i < balance->layers; i++)
        sum += balance->layer[i];
    for (uint32_t i = 0; i < balance->layers; i++)
        mean[i] = sum / balance->layers;
    struct balance smooth = *balance;
    smooth.layer = mean;
    if (!balance_prefix_split(&smooth, 0, arena, counts))
        return false;

    int64_t *scratch = ARENA_ARRAY(arena, balance->pp, int64_t);
    uint64_t work = 0;
    while (improve(balance, counts, scratch, &work))
        ;
    return score_of(balance, counts, scratch).stage != INT64_MAX;
}

/* ---- Rounds ---- */

/* The heaviest chunk of each round, summed. */
static int64_t rounds_of(const struct balance *balance, const uint32_t *counts)
{
    int64_t sum = 0;
    uint32_t next = 0;
    for (uint32_t first = 0; first < balance->count; first += balance->pp) {
        int64_t heaviest = 0;
        for (uint32_t k = first; k < first + balance->pp; k++) {
            int64_t load = balance->extra[k];
            for (uint32_t i = 0; i < counts[k]; i++)
                load += balance->layer[next++];
            heaviest = larger(heaviest, load);
        }
        sum += heaviest;
    }
    return sum;
}

/* The lightest cap under which the layers fit the chunks in order. */
static int64_t lightest_cap(const struct balance *balance, struct arena *arena)
{
    struct balance bare = *balance;
    bare.extra = ARENA_ARRAY(arena, balance->count, int64_t);
    return chain_limit(&bare);
}

static void balance_rounds(struct balance *balance, uint32_t prefix, struct arena *arena,
                           uint32_t *counts)
{
    const int64_t layer = balance->layer[balance->layers - 1];
    const int64_t lightest = lightest_cap(balance, arena);
    const int64_t caps[] = {lightest, lightest + layer, lightest + 2 * layer,
                            balance_total(balance)};
    uint32_t *tried = ARENA_ARRAY(arena, balance->count, uint32_t);
    int64_t *scratch = ARENA_ARRAY(arena, balance->pp, int64_t);
    int64_t least = INT64_MAX;
    struct score best = {0};
    for (size_t i = 0; i < sizeof caps / sizeof caps[0]; i++) {
        balance->cap = caps[i];
        if (!(prefix <= PREFIX_MAX ? balance_prefix_split(balance, prefix, arena, tried)
                                   : balance_pattern(balance, arena, tried)))
            continue;
        const int64_t rounds = rounds_of(balance, tried);
        const struct score score = score_of(balance, tried, scratch);
        if (rounds < least || (rounds == least && compare_scores(&score, &best) < 0)) {
            least = rounds;
            best = score;
            memcpy(counts, tried, balance->count * sizeof *counts);
        }
    }
    ASSERT(least != INT64_MAX);
}

/* ---- Entry ---- */

/* Whole units; a layer weighs at least one, so that layers can be counted. */
static int64_t units(double weight, double total)
{
    ASSERT(weight >= 0.0);
    ASSERT(isfinite(weight));
    return total > 0.0 ? llround(weight / total * TOTAL_UNITS) : 0;
}

static double weight_sum(const struct layout_balance_ask *ask)
{
    double total = ask->weights.embedding + ask->weights.mtp + ask->weights.head;
    for (uint32_t i = 0; i < ask->layers; i++)
        total += ask->weights.layer[i];
    return total;
}

void layout_balance(const struct layout_balance_ask *ask, struct arena *arena, uint32_t *counts)
{
    ASSERT(ask->layers >= 1);
    ASSERT(ask->pp >= 1);
    ASSERT(ask->vpp >= 1);
    const uint32_t count = ask->pp * ask->vpp;
    const double total = weight_sum(ask);
    int64_t *layer = ARENA_ARRAY(arena, ask->layers, int64_t);
    int64_t *extra = ARENA_ARRAY(arena, count, int64_t);
    uint32_t *stage = ARENA_ARRAY(arena, count, uint32_t);
    for (uint32_t i = 0; i < ask->layers; i++)
        layer[i] = larger(1, units(ask->weights.layer[i], total));
    extra[0] = units(ask->weights.embedding, total);
    extra[count - 1] += units(ask->weights.mtp + ask->weights.head, total);
    for (uint32_t k = 0; k < count; k++) {
        const bool backwards = ask->v_shaped && k / ask->pp % 2 == 1;
        stage[k] = backwards ? ask->pp - 1 - k % ask->pp : k % ask->pp;
    }

    struct balance balance = {ask->layers, ask->pp, count, layer, extra, stage, INT64_MAX / 2};
    uint32_t prefix = ask->layers - 1;
    while (prefix > 0 && layer[prefix - 1] == layer[ask->layers - 1])
        prefix--;
    if (ask->vpp == 1)
        balance_chain(&balance, arena, counts);
    else
        balance_rounds(&balance, prefix, arena, counts);
}
