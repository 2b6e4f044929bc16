/*
 * balance.c - layers to chunks so that the heaviest stage is as light as possible.
 *
 * Weights become integers (the whole model is 2^30 units), so sums are exact and equal layers
 * stay equal. The order of splits is: heaviest stage, heaviest chunk, sum of squared chunk
 * weights, counts read as a word. Three methods:
 *
 *  One chunk per stage: exact for any weights. The lightest limit is found by bisection with a
 *  greedy fill, the most even split under it by dynamic programming. O(chunks * layers * layers
 *  per chunk).
 *
 *  Several chunks, layers equal behind a short prefix (dense layers before MoE layers): all
 *  placements of the prefix on the first pp chunks are tried. What follows is n equal layers,
 *  where only their number per chunk matters: a limit holds if the room under it is at least n,
 *  and the most even split gives one layer after the other to the lightest chunk that has room
 *  (optimal, because limits per chunk nested in limits per stage are a polymatroid and squares
 *  are convex). Exact for the heaviest stage; ties are broken among the placements tried. With
 *  more than PLACEMENTS_MAX of them, only those without empty chunks between parts of the
 *  prefix are tried.
 *
 *  Several chunks, any other pattern (windows on every other layer): the exact split of equal
 *  layers of mean weight, then moves of one layer from chunk to chunk while one of them makes
 *  the split better. A local optimum; test_balance.c compares it with all splits.
 */
#include <math.h>
#include <string.h>

#include "layout_internal.h"

#define TOTAL_UNITS     1073741824.0
#define PLACEMENTS_MAX  6000
#define PREFIX_MAX      10
#define EVALUATIONS_MAX 20000

struct balance {
    uint32_t layers, pp, count;
    const int64_t *layer;  /* [layers] */
    const int64_t *extra;  /* [count] embedding, or MTP and head */
    const uint32_t *stage; /* [count] the stage that runs a chunk */
};

/* How good a split is: smaller is better, first member first. */
struct score {
    int64_t stage, chunk, squares;
};

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

static bool word_is_smaller(const uint32_t *a, const uint32_t *b, uint32_t count)
{
    uint32_t i = 0;
    while (i < count && a[i] == b[i])
        i++;
    return i < count && a[i] < b[i];
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t total_weight(const struct balance *balance)
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
    int64_t high = total_weight(balance);
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

/* ---- Equal layers behind a prefix ---- */

enum pass { PASS_STAGE, PASS_CHUNK, PASS_SQUARES };

/* Placements are walked once per pass; each pass fixes one member of the score. */
struct placement {
    const struct balance *balance;
    uint32_t prefix; /* layers before the equal ones */
    uint32_t tail;   /* number of equal layers */
    int64_t weight;  /* of an equal layer */
    bool gaps;       /* may a chunk between parts of the prefix be empty? */
    enum pass pass;
    struct score score;
    uint32_t open;       /* first chunk that may hold equal layers */
    int64_t *chunk_load; /* [count] extras and placed layers */
    int64_t *stage_load; /* [pp] */
    int64_t *room;       /* [pp] scratch: layers that still fit a stage */
    uint32_t *counts;    /* [count] of the placement at hand */
    uint32_t *best;      /* [count] */
    /* What fill_tail() changes, put back after it. */
    int64_t *saved_chunk_load, *saved_stage_load;
    uint32_t *saved_counts;
};

/* Layers of the tail that fit; negative if the placement itself passes a limit. */
static int64_t tail_room(const struct placement *p, int64_t stage_limit, int64_t chunk_limit)
{
    const struct balance *balance = p->balance;
    memset(p->room, 0, balance->pp * sizeof *p->room);
    for (uint32_t k = 0; k < balance->count; k++) {
        if (p->chunk_load[k] > chunk_limit)
            return -1;
        if (k >= p->open)
            p->room[balance->stage[k]] += (chunk_limit - p->chunk_load[k]) / p->weight;
    }
    int64_t sum = 0;
    for (uint32_t s = 0; s < balance->pp; s++) {
        if (p->stage_load[s] > stage_limit)
            return -1;
        const int64_t room = (stage_limit - p->stage_load[s]) / p->weight;
        sum += room < p->room[s] ? room : p->room[s];
    }
    return sum;
}

/* Does the tail fit when the pass's own member of the score is `limit`? */
static bool tail_fits(const struct placement *p, int64_t limit)
{
    const int64_t stage_limit = p->pass == PASS_STAGE ? limit : p->score.stage;
    return tail_room(p, stage_limit, limit) >= p->tail;
}

/* The lightest limit under which the tail fits, if it is below `high`; else `high`. */
static int64_t lighter_limit(const struct placement *p, int64_t high)
{
    if (!tail_fits(p, high - 1))
        return high;
    int64_t low = 0;
    high--;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (tail_fits(p, middle))
            high = middle;
        else
            low = middle + 1;
    }
    return high;
}

/* One layer after the other to the lightest chunk with room; of equals, to the last. */
static int64_t fill_tail(struct placement *p)
{
    const struct balance *balance = p->balance;
    for (uint32_t i = 0; i < p->tail; i++) {
        uint32_t to = UINT32_MAX;
        for (uint32_t k = p->open; k < balance->count; k++) {
            const bool fits = p->chunk_load[k] + p->weight <= p->score.chunk &&
                              p->stage_load[balance->stage[k]] + p->weight <= p->score.stage;
            if (fits && (to == UINT32_MAX || p->chunk_load[k] <= p->chunk_load[to]))
                to = k;
        }
        ASSERT(to != UINT32_MAX);
        p->counts[to]++;
        p->chunk_load[to] += p->weight;
        p->stage_load[balance->stage[to]] += p->weight;
    }
    int64_t squares = 0;
    for (uint32_t k = 0; k < balance->count; k++)
        squares += p->chunk_load[k] * p->chunk_load[k];
    return squares;
}

/* No split of this placement has a smaller sum: the open chunks cannot be more even than equal. */
static int64_t squares_bound(const struct placement *p)
{
    int64_t fixed = 0;
    int64_t rest = p->tail * p->weight;
    for (uint32_t k = 0; k < p->balance->count; k++) {
        if (k < p->open)
            fixed += p->chunk_load[k] * p->chunk_load[k];
        else
            rest += p->chunk_load[k];
    }
    return fixed + rest * (rest / (int64_t)(p->balance->count - p->open));
}

/* The counts of a whole placement: the prefix is placed, the tail is not. */
static void finish_placement(struct placement *p)
{
    const struct balance *balance = p->balance;
    if (!tail_fits(p, p->score.chunk) || squares_bound(p) > p->score.squares)
        return;
    const size_t counts_size = balance->count * sizeof *p->counts;
    uint32_t *counts = p->saved_counts;
    memcpy(counts, p->counts, counts_size);
    memcpy(p->saved_chunk_load, p->chunk_load, balance->count * sizeof *p->chunk_load);
    memcpy(p->saved_stage_load, p->stage_load, balance->pp * sizeof *p->stage_load);
    const int64_t squares = fill_tail(p);
    if (squares < p->score.squares ||
        (squares == p->score.squares && word_is_smaller(p->counts, p->best, balance->count))) {
        p->score.squares = squares;
        memcpy(p->best, p->counts, counts_size);
    }
    memcpy(p->counts, counts, counts_size);
    memcpy(p->chunk_load, p->saved_chunk_load, balance->count * sizeof *p->chunk_load);
    memcpy(p->stage_load, p->saved_stage_load, balance->pp * sizeof *p->stage_load);
}

static void use_placement(struct placement *p)
{
    switch (p->pass) {
    case PASS_STAGE:
        p->score.stage = lighter_limit(p, p->score.stage);
        break;
    case PASS_CHUNK:
        p->score.chunk = lighter_limit(p, p->score.chunk);
        break;
    case PASS_SQUARES:
        finish_placement(p);
        break;
    }
}

/* Puts the layers of the prefix from `placed` on into chunks k, k+1 ...: many first, because
 * good splits come early and prune the rest. */
static void place_prefix(struct placement *p, uint32_t k, uint32_t placed)
{
    const struct balance *balance = p->balance;
    const uint32_t rest = p->prefix - placed;
    int64_t load = 0;
    for (uint32_t i = placed; i < p->prefix; i++)
        load += balance->layer[i];
    for (uint32_t take = rest;; take--) {
        p->counts[k] = take;
        p->chunk_load[k] += load;
        p->stage_load[balance->stage[k]] += load;
        p->open = k;
        if (take == rest)
            use_placement(p);
        else if (k + 1 < balance->pp && (p->gaps || take > 0 || placed == 0))
            place_prefix(p, k + 1, placed + take);
        p->chunk_load[k] -= load;
        p->stage_load[balance->stage[k]] -= load;
        p->counts[k] = 0;
        if (take == 0)
            return;
        load -= balance->layer[placed + take - 1];
    }
}

/* Ways to place a prefix on pp chunks, PLACEMENTS_MAX + 1 if there are more. */
static uint32_t placement_count(uint32_t prefix, uint32_t pp)
{
    uint64_t ways = 1;
    for (uint32_t i = 1; i <= prefix && ways <= PLACEMENTS_MAX; i++)
        ways = ways * (pp - 1 + i) / i;
    return ways > PLACEMENTS_MAX ? PLACEMENTS_MAX + 1 : (uint32_t)ways;
}

static void balance_prefix(const struct balance *balance, uint32_t prefix, struct arena *arena,
                           uint32_t *counts)
{
    const uint32_t count = balance->count;
    const int64_t worst = total_weight(balance) + 1;
    struct placement p = {
        .balance = balance,
        .prefix = prefix,
        .tail = balance->layers - prefix,
        .weight = balance->layer[balance->layers - 1],
        .gaps = placement_count(prefix, balance->pp) <= PLACEMENTS_MAX,
        .score = {worst, worst, INT64_MAX},
        .chunk_load = ARENA_ARRAY(arena, count, int64_t),
        .stage_load = ARENA_ARRAY(arena, balance->pp, int64_t),
        .saved_chunk_load = ARENA_ARRAY(arena, count, int64_t),
        .saved_stage_load = ARENA_ARRAY(arena, balance->pp, int64_t),
        .room = ARENA_ARRAY(arena, balance->pp, int64_t),
        .counts = ARENA_ARRAY(arena, count, uint32_t),
        .saved_counts = ARENA_ARRAY(arena, count, uint32_t),
        .best = counts,
    };
    for (uint32_t k = 0; k < count; k++) {
        p.chunk_load[k] = balance->extra[k];
        p.stage_load[balance->stage[k]] += balance->extra[k];
    }
    for (p.pass = PASS_STAGE; p.pass <= PASS_SQUARES; p.pass++)
        place_prefix(&p, 0, 0);
}

/* ---- Any pattern ---- */

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
                    uint32_t *evaluations)
{
    const struct score now = score_of(balance, counts, scratch);
    struct score best = now;
    uint32_t from = 0;
    uint32_t to = 0;
    for (uint32_t a = 0; a < balance->count; a++) {
        for (uint32_t b = 0; b < balance->count && counts[a] > 0; b++) {
            if (a == b || *evaluations == EVALUATIONS_MAX)
                continue;
            ++*evaluations;
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

static void balance_pattern(const struct balance *balance, struct arena *arena, uint32_t *counts)
{
    int64_t *mean = ARENA_ARRAY(arena, balance->layers, int64_t);
    int64_t sum = 0;
    for (uint32_t i = 0; i < balance->layers; i++)
        sum += balance->layer[i];
    for (uint32_t i = 0; i < balance->layers; i++)
        mean[i] = sum / balance->layers;
    struct balance smooth = *balance;
    smooth.layer = mean;
    balance_prefix(&smooth, 0, arena, counts);

    int64_t *scratch = ARENA_ARRAY(arena, balance->pp, int64_t);
    uint32_t evaluations = 0;
    while (improve(balance, counts, scratch, &evaluations))
        ;
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

    const struct balance balance = {ask->layers, ask->pp, count, layer, extra, stage};
    uint32_t prefix = ask->layers - 1;
    while (prefix > 0 && layer[prefix - 1] == layer[ask->layers - 1])
        prefix--;
    if (ask->vpp == 1)
        balance_chain(&balance, arena, counts);
    else if (prefix <= PREFIX_MAX)
        balance_prefix(&balance, prefix, arena, counts);
    else
        balance_pattern(&balance, arena, counts);
}
