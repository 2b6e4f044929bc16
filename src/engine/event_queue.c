/*
 * event_queue.c - a radix heap on whole picoseconds, and a binary heap as its oracle.
 *
 * Radix heap. `last` is the time of the latest pop. Bucket 0 holds events at exactly
 * that time; bucket i holds events whose time differs from `last` in bit i - 1 and in
 * no higher one. When bucket 0 is empty, the lowest bucket that is not becomes the
 * source: `last` moves to its earliest time and its events fall into lower buckets.
 * An event can fall at most once per bit of its delay, and all copies are sequential.
 *
 * Ties need no sequence number: the bucket is a function of the time and of `last`, so
 * equal times always share a bucket, and every move keeps the order of pushing.
 *
 * Buckets are chains of blocks from one pool. Every bucket has at most one block that
 * is not full, and bucket 0 one more that is partly consumed; hence the pool's size.
 */
#include "stepsim/event_queue.h"

#include <string.h>

#include "stepsim/error.h"

#include "engine/no_malloc.h"

enum {
    BLOCK_EVENTS = 32,
    BUCKETS = 64, /* times are non-negative, so they differ in bits 0 to 62 */
    NO_BLOCK = UINT32_MAX
};

struct block {
    struct event events[BLOCK_EVENTS];
};

struct bucket {
    uint32_t head;       /* first block, NO_BLOCK when empty */
    uint32_t tail;       /* last block */
    uint32_t head_first; /* first event of the head block that is still there */
    uint32_t tail_count; /* events written into the tail block */
    sim_time earliest;
    sim_time latest;
};

struct binary_node {
    struct event event;
    uint64_t sequence;
};

struct event_queue {
    sim_time last;
    uint64_t filled; /* bit i: bucket i is not empty */
    uint32_t count;
    uint32_t capacity;
    uint32_t free_block;
    uint32_t *next_block;
    struct block *blocks;
    struct binary_node *nodes; /* NULL: radix heap */
    uint64_t sequence;
    struct bucket buckets[BUCKETS];
};

struct event_queue *event_queue_create(struct arena *arena, uint32_t capacity, bool binary_heap)
{
    struct event_queue *queue = ARENA_NEW(arena, struct event_queue);
    queue->capacity = capacity;
    if (binary_heap) {
        queue->nodes = ARENA_ARRAY(arena, (size_t)capacity + 1, struct binary_node);
        return queue;
    }
    const uint32_t block_count = capacity / BLOCK_EVENTS + BUCKETS + 2;
    queue->blocks = ARENA_ARRAY(arena, block_count, struct block);
    queue->next_block = ARENA_ARRAY(arena, block_count, uint32_t);
    for (uint32_t i = 0; i < block_count; i++) {
        queue->next_block[i] = i + 1 < block_count ? i + 1 : NO_BLOCK;
    }
    for (uint32_t i = 0; i < BUCKETS; i++) {
        queue->buckets[i].head = NO_BLOCK;
    }
    return queue;
}

/* A bucket without room: chain a fresh block. */
static void bucket_grow(struct event_queue *queue, struct bucket *bucket)
{
    const uint32_t fresh = queue->free_block;
    ASSERT(fresh != NO_BLOCK);
    queue->free_block = queue->next_block[fresh];
    queue->next_block[fresh] = NO_BLOCK;
    if (bucket->head == NO_BLOCK) {
        bucket->head = fresh;
        bucket->head_first = 0;
        bucket->earliest = INT64_MAX;
        bucket->latest = 0;
    } else {
        queue->next_block[bucket->tail] = fresh;
    }
    bucket->tail = fresh;
    bucket->tail_count = 0;
}

static inline void radix_add(struct event_queue *queue, const struct event *event)
{
    const uint64_t differs = (uint64_t)event->time ^ (uint64_t)queue->last;
    const uint32_t i = differs == 0 ? 0 : 64 - (uint32_t)__builtin_clzll(differs);
    struct bucket *bucket = &queue->buckets[i];
    if (bucket->head == NO_BLOCK || bucket->tail_count == BLOCK_EVENTS) {
        bucket_grow(queue, bucket);
        queue->filled |= UINT64_C(1) << i;
    }
    queue->blocks[bucket->tail].events[bucket->tail_count++] = *event;
    bucket->earliest = event->time < bucket->earliest ? event->time : bucket->earliest;
    bucket->latest = event->time > bucket->latest ? event->time : bucket->latest;
}

/* Gives the head block back to the pool; the bucket must have one. */
static void bucket_drop_head(struct event_queue *queue, struct bucket *bucket)
{
    const uint32_t dropped = bucket->head;
    bucket->head = dropped == bucket->tail ? NO_BLOCK : queue->next_block[dropped];
    bucket->head_first = 0;
    queue->next_block[dropped] = queue->free_block;
    queue->free_block = dropped;
}

static uint32_t head_count(const struct bucket *bucket)
{
    return bucket->head == bucket->tail ? bucket->tail_count : BLOCK_EVENTS;
}

/* Moves the earliest events into the empty bucket 0. */
static void radix_advance(struct event_queue *queue)
{
    const uint32_t i = (uint32_t)__builtin_ctzll(queue->filled);
    struct bucket source = queue->buckets[i];
    queue->buckets[i].head = NO_BLOCK;
    queue->filled &= ~(UINT64_C(1) << i);
    queue->last = source.earliest;
    if (source.earliest == source.latest) { /* ties only: the chain moves as it is */
        queue->buckets[0] = source;
        queue->filled |= 1;
        return;
    }
    while (source.head != NO_BLOCK) {
        const struct block *block = &queue->blocks[source.head];
        const uint32_t count = head_count(&source);
        for (uint32_t k = 0; k < count; k++) {
            radix_add(queue, &block->events[k]);
        }
        bucket_drop_head(queue, &source);
    }
}

static uint32_t radix_pop_ties(struct event_queue *queue, struct event *out, uint32_t limit)
{
    if ((queue->filled & 1) == 0) {
        radix_advance(queue);
    }
    struct bucket *bucket = &queue->buckets[0];
    uint32_t taken = 0;
    while (taken < limit && bucket->head != NO_BLOCK) {
        const uint32_t first = bucket->head_first;
        const uint32_t there = head_count(bucket) - first;
        const uint32_t count = there < limit - taken ? there : limit - taken;
        memcpy(out + taken, &queue->blocks[bucket->head].events[first],
               count * sizeof(struct event));
        taken += count;
        bucket->head_first += count;
        if (count == there) {
            bucket_drop_head(queue, bucket);
        }
    }
    if (bucket->head == NO_BLOCK) {
        queue->filled &= ~UINT64_C(1);
    }
    queue->count -= taken;
    return taken;
}

static bool binary_before(const struct binary_node *a, const struct binary_node *b)
{
    if (a->event.time != b->event.time) {
        return a->event.time < b->event.time;
    }
    return a->sequence < b->sequence;
}

static void binary_push(struct event_queue *queue, const struct event *event)
{
    struct binary_node *nodes = queue->nodes;
    const struct binary_node node = {.event = *event, .sequence = queue->sequence++};
    uint32_t hole = queue->count - 1;
    while (hole > 0) {
        const uint32_t parent = (hole - 1) / 2;
        if (!binary_before(&node, &nodes[parent])) {
            break;
        }
        nodes[hole] = nodes[parent];
        hole = parent;
    }
    nodes[hole] = node;
}

static struct event binary_pop(struct event_queue *queue)
{
    struct binary_node *nodes = queue->nodes;
    const struct event top = nodes[0].event;
    const struct binary_node moved = nodes[--queue->count];
    uint32_t hole = 0;
    for (uint32_t child = 1; child < queue->count; child = 2 * hole + 1) {
        if (child + 1 < queue->count && binary_before(&nodes[child + 1], &nodes[child])) {
            child++;
        }
        if (!binary_before(&nodes[child], &moved)) {
            break;
        }
        nodes[hole] = nodes[child];
        hole = child;
    }
    nodes[hole] = moved;
    queue->last = top.time;
    return top;
}

static uint32_t binary_pop_ties(struct event_queue *queue, struct event *out, uint32_t limit)
{
    const sim_time time = queue->nodes[0].event.time;
    uint32_t taken = 0;
    while (taken < limit && queue->count > 0 && queue->nodes[0].event.time == time) {
        out[taken++] = binary_pop(queue);
    }
    return taken;
}

void event_queue_push(struct event_queue *queue, const struct event *event)
{
    ASSERT(event->time >= queue->last);
    ASSERT(queue->count < queue->capacity);
    queue->count++;
    if (queue->nodes != NULL) {
        binary_push(queue, event);
    } else {
        radix_add(queue, event);
    }
}

struct event event_queue_pop(struct event_queue *queue)
{
    struct event event;
    event_queue_pop_ties(queue, &event, 1);
    return event;
}

uint32_t event_queue_pop_ties(struct event_queue *queue, struct event *out, uint32_t limit)
{
    ASSERT(queue->count > 0);
    ASSERT(limit > 0);
    return queue->nodes != NULL ? binary_pop_ties(queue, out, limit)
                                : radix_pop_ties(queue, out, limit);
}

sim_time event_queue_next_time(const struct event_queue *queue)
{
    ASSERT(queue->count > 0);
    if (queue->nodes != NULL) {
        return queue->nodes[0].event.time;
    }
    return queue->buckets[__builtin_ctzll(queue->filled)].earliest;
}

uint32_t event_queue_count(const struct event_queue *queue)
{
    return queue->count;
}
