/*
 * queue_internal.h - the event queue's inside, so that the loop needs no call for it.
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
#ifndef ENGINE_QUEUE_INTERNAL_H
#define ENGINE_QUEUE_INTERNAL_H

#include "stepsim/error.h"
#include "stepsim/event_queue.h"

enum {
    BLOCK_EVENTS = 32,
    BUCKETS = 64, /* times are non-negative, so they differ in bits 0 to 62 */
    NO_BLOCK = -1
};

struct block {
    struct event events[BLOCK_EVENTS];
};

struct bucket {
    int32_t head;        /* first block, NO_BLOCK when empty */
    int32_t tail;        /* last block */
    uint32_t head_first; /* first event of the head block that is still there */
    uint32_t tail_count; /* events written into the tail block; full when there is none */
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
    int32_t free_block;
    int32_t *next_block;
    struct block *blocks;
    struct binary_node *nodes; /* NULL: radix heap */
    uint64_t sequence;
    struct block popped; /* ties on their way out of the binary heap */
    struct bucket buckets[BUCKETS];
};

/* event_queue.c: the paths that are rare, or the oracle's. */
void queue_grow_bucket(struct event_queue *queue, uint32_t index);
void queue_drop_head(struct event_queue *queue, uint32_t index);
void queue_advance(struct event_queue *queue);
void queue_push_binary(struct event_queue *queue, const struct event *event);
uint32_t queue_take_binary(struct event_queue *queue, uint32_t limit);

/* Adds without counting: for a push, and for events that fall into another bucket. */
static inline void queue_add(struct event_queue *queue, struct event event)
{
    const uint64_t differs = (uint64_t)event.time ^ (uint64_t)queue->last;
    const uint32_t i = differs == 0 ? 0 : 64 - (uint32_t)__builtin_clzll(differs);
    struct bucket *bucket = &queue->buckets[i];
    if (bucket->tail_count == BLOCK_EVENTS) {
        queue_grow_bucket(queue, i);
    }
    queue->blocks[bucket->tail].events[bucket->tail_count++] = event;
    bucket->earliest = event.time < bucket->earliest ? event.time : bucket->earliest;
    bucket->latest = event.time > bucket->latest ? event.time : bucket->latest;
}

static inline void queue_push(struct event_queue *queue, struct event event)
{
    ASSERT(event.time >= queue->last);
    ASSERT(queue->count < queue->capacity);
    queue->count++;
    if (queue->nodes != NULL) {
        queue_push_binary(queue, &event);
    } else {
        queue_add(queue, event);
    }
}

/*
 * Up to limit events of the earliest time, as *taken; they stay readable until the next
 * push or take. The queue must not be empty.
 */
static inline uint32_t queue_take(struct event_queue *queue, uint32_t limit,
                                  const struct event **taken)
{
    if (queue->nodes != NULL) {
        *taken = queue->popped.events;
        return queue_take_binary(queue, limit);
    }
    if ((queue->filled & 1) == 0) {
        queue_advance(queue);
    }
    struct bucket *bucket = &queue->buckets[0];
    const uint32_t end = bucket->head == bucket->tail ? bucket->tail_count : BLOCK_EVENTS;
    const uint32_t there = end - bucket->head_first;
    const uint32_t count = there < limit ? there : limit;
    *taken = &queue->blocks[bucket->head].events[bucket->head_first];
    bucket->head_first += count;
    queue->count -= count;
    if (count == there) {
        queue_drop_head(queue, 0);
    }
    return count;
}

static inline sim_time queue_next_time(const struct event_queue *queue)
{
    return queue->nodes != NULL ? queue->nodes[0].event.time
                                : queue->buckets[__builtin_ctzll(queue->filled)].earliest;
}

#endif
