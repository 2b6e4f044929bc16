/*
 * balance_prefix.c - the lightest heaviest stage when layers are equal behind a prefix, and the
 * layers of a chunk under a cap.
 *
 * All ways to place the prefix on the first pp chunks are tried (several chunks per stage let
 * every stage take its part of the equal layers later, so no other place makes the heaviest
 * stage lighter). What follows is n equal layers, where only their number per chunk matters:
 *
 *  - a limit holds if the room under it is at least n, so the lightest one is found by bisection;
 *  - under the limits, the most even split gives one layer after the other to the lightest chunk
 *    that has room, the last of equals. This is optimal and yields the smallest word: limits of
 *    chunks nested in limits of stages are a polymatroid, and squares are convex.
 *
 * Exact for the heaviest stage; ties are broken among the placements tried. With more than
 * PLACEMENTS_MAX of them, only those without empty chunks between parts of the prefix are tried.
 * One pass over the placements fixes each member of the score. 61 layers, 3 of them a prefix, on
 * pp 16 * vpp 2 have 816 placements and take 0.13 ms.
 */
#include <string.h>

#include "layout_internal.h"

#define PLACEMENTS_MAX 6000

static bool word_is_smaller(const uint32_t *a, const uint32_t *b, uint32_t count)
{
    uint32_t i = 0;
    while (i < count && a[i] == b[i])
        i++;
    return i < count && a[i] < b[i];
}

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
    uint32_t *heap;      /* [count] scratch: chunks with room, the next to fill on top */
    uint32_t *counts;    /* [count] of the placement at hand */
    uint32_t *best;      /* [count] */
    /* What fill_tail() changes, put back after it. */
    int64_t *saved_chunk_load, *saved_stage_load;
    uint32_t *saved_counts;
};

/* Layers of the tail that fit a load under a limit. Neighbours mostly weigh the same, so the
 * last division is kept. */
struct room {
    int64_t limit, weight;
    int64_t load, layers; /* the last answer */
};

static int64_t room_of(struct room *room, int64_t load)
{
    if (load != room->load) {
        room->load = load;
        room->layers = (room->limit - load) / room->weight;
    }
    return room->layers;
}

/* What chunk k may weigh under a limit of all chunks. */
static int64_t limit_of(const struct balance *balance, uint32_t k, int64_t chunk_limit)
{
    const int64_t capped = balance->cap + balance->extra[k];
    return capped < chunk_limit ? capped : chunk_limit;
}

/* Layers of the tail that fit; negative if the placement itself passes a limit. */
static int64_t tail_room(const struct placement *p, int64_t stage_limit, int64_t chunk_limit)
{
    const struct balance *balance = p->balance;
    struct room chunk = {chunk_limit, p->weight, -1, 0};
    struct room stage = {stage_limit, p->weight, -1, 0};
    memset(p->room, 0, balance->pp * sizeof *p->room);
    for (uint32_t k = 0; k < balance->count; k++) {
        const int64_t limit = limit_of(balance, k, chunk_limit);
        if (p->chunk_load[k] > limit)
            return -1;
        if (limit != chunk.limit)
            chunk = (struct room){limit, p->weight, -1, 0};
        if (k >= p->open)
            p->room[balance->stage[k]] += room_of(&chunk, p->chunk_load[k]);
    }
    int64_t sum = 0;
    for (uint32_t s = 0; s < balance->pp; s++) {
        if (p->stage_load[s] > stage_limit)
            return -1;
        const int64_t room = room_of(&stage, p->stage_load[s]);
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

/* ---- The most even split of the tail ---- */

/* Is chunk a to be filled before chunk b: lighter, or the later of equals? */
static bool fills_before(const struct placement *p, uint32_t a, uint32_t b)
{
    return p->chunk_load[a] < p->chunk_load[b] || (p->chunk_load[a] == p->chunk_load[b] && a > b);
}

/* Restores a heap whose entry at `place` may have to go down. */
static void sift_down(const struct placement *p, uint32_t place, uint32_t size)
{
    uint32_t *heap = p->heap;
    for (;;) {
        uint32_t first = place;
        for (uint32_t child = 2 * place + 1; child <= 2 * place + 2 && child < size; child++)
            if (fills_before(p, heap[child], heap[first]))
                first = child;
        if (first == place)
            return;
        const uint32_t chunk = heap[place];
        heap[place] = heap[first];
        heap[first] = chunk;
        place = first;
    }
}

/* One layer after the other to the chunk that comes first. Room only shrinks, so a chunk without
 * room leaves the heap for good. Returns the sum of squares. */
static int64_t fill_tail(struct placement *p)
{
    const struct balance *balance = p->balance;
    uint32_t size = balance->count - p->open;
    for (uint32_t i = 0; i < size; i++)
        p->heap[i] = p->open + i;
    for (uint32_t i = size; i > 0; i--)
        sift_down(p, i - 1, size);
    for (uint32_t placed = 0; placed < p->tail;) {
        ASSERT(size > 0);
        const uint32_t to = p->heap[0];
        int64_t *stage_load = &p->stage_load[balance->stage[to]];
        if (p->chunk_load[to] + p->weight <= limit_of(balance, to, p->score.chunk) &&
            *stage_load + p->weight <= p->score.stage) {
            p->counts[to]++;
            p->chunk_load[to] += p->weight;
            *stage_load += p->weight;
            placed++;
        } else {
            p->heap[0] = p->heap[--size];
        }
        sift_down(p, 0, size);
    }
    int64_t squares = 0;
    for (uint32_t k = 0; k < balance->count; k++)
        squares += p->chunk_load[k] * p->chunk_load[k];
    return squares;
}

/* No split of this placement has a smaller sum: at best the open chunks fill up to one level, and
 * a chunk above the mean of the others stays as it is. */
static int64_t squares_bound(const struct placement *p)
{
    const struct balance *balance = p->balance;
    int64_t fixed = 0;
    int64_t rest = p->tail * p->weight;
    for (uint32_t k = 0; k < balance->count; k++) {
        if (k < p->open)
            fixed += p->chunk_load[k] * p->chunk_load[k];
        else
            rest += p->chunk_load[k];
    }
    int64_t chunks = balance->count - p->open;
    int64_t mean = rest / chunks;
    for (uint32_t k = p->open; k < balance->count && chunks > 1; k++) {
        if (p->chunk_load[k] <= mean)
            continue;
        fixed += p->chunk_load[k] * p->chunk_load[k];
        rest -= p->chunk_load[k];
        chunks--;
    }
    return fixed + rest * (rest / chunks);
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

bool balance_prefix_split(const struct balance *balance, uint32_t prefix, struct arena *arena,
                          uint32_t *counts)
{
    const uint32_t count = balance->count;
    const int64_t worst = balance_total(balance) + 1;
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
        .heap = ARENA_ARRAY(arena, count, uint32_t),
        .counts = ARENA_ARRAY(arena, count, uint32_t),
        .saved_counts = ARENA_ARRAY(arena, count, uint32_t),
        .best = counts,
    };
    for (uint32_t k = 0; k < count; k++) {
        p.chunk_load[k] = balance->extra[k];
        p.stage_load[balance->stage[k]] += balance->extra[k];
    }
    place_prefix(&p, 0, 0);
    if (p.score.stage == worst)
        return false;
    for (p.pass = PASS_CHUNK; p.pass <= PASS_SQUARES; p.pass++)
        place_prefix(&p, 0, 0);
    return true;
}
