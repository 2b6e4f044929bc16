/*
 * queue_internal.h - the event queue's inside, so that the loop needs no call for it.
 *
 * Radix heap. `base` is a time that nothing pending is below. Bucket 0 holds events at
 * exactly that time; bucket i holds events whose time differs from `base` in bit i - 1 and
 * in no higher one. So the lowest bucket that is not empty holds the earliest event. When
 * nothing is at hand to pop, that bucket is opened:
 *   - all of one time: its chain becomes bucket 0, as it is;
 *   - a few events: they are sorted into the run, and popped from there;
 *   - many: `base` moves to the earliest of them and all fall into lower buckets.
 * An event can fall at most once per bit of its delay, and all copies are sequential.
 *
 * The run stands for the bucket that it came from: what is pushed into that bucket or a
 * lower one is sorted into the run instead, and when there is no room, the run goes back
 * into the buckets.
 *
 * Ties need no sequence number: the bucket is a function of the time and of `base`, so
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
    NO_BLOCK = -1,
    RUN_EVENTS = 64,  /* room of the run */
    RUN_FILL_MAX = 24 /* events that are sorted at once, in n * n / 4 steps */
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
    sim_time last; /* time of the latest pop */
    sim_time base;
    uint64_t filled; /* bit i: bucket i is not empty */
    uint32_t count;
    uint32_t capacity;
    int32_t free_block;
    int32_t *next_block;
    struct block *blocks;
    struct binary_node *nodes; /* NULL: radix heap */
    uint64_t sequence;
    struct block popped; /* ties on their way out of the binary heap */
    uint32_t run_first, run_end;
    int32_t run_bucket; /* -1: the run is empty */
    struct event run[RUN_EVENTS];
    struct bucket buckets[BUCKETS];
};

/* event_queue.c: the paths that are rare, or the oracle's. */
void queue_grow_bucket(struct event_queue *queue, uint32_t index);
void queue_drop_head(struct event_queue *queue, uint32_t index);
void queue_advance(struct event_queue *queue);
void queue_insert(struct event_queue *queue, struct event event);
void queue_push_binary(struct event_queue *queue, const struct event *event);
uint32_t queue_take_binary(struct event_queue *queue, uint32_t limit);

static inline uint32_t queue_bucket_of(const struct event_queue *queue, sim_time time)
{
    const uint64_t differs = (uint64_t)time ^ (uint64_t)queue->base;
    return differs == 0 ? 0 : 64 - (uint32_t)__builtin_clzll(differs);
}

/* Appends to a bucket. */
static inline void queue_add(struct event_queue *queue, uint32_t index, struct event event)
{
    struct bucket *bucket = &queue->buckets[index];
    if (bucket->tail_count == BLOCK_EVENTS) {
        queue_grow_bucket(queue, index);
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
        return;
    }
    const uint32_t index = queue_bucket_of(queue, event.time);
    if ((int32_t)index <= queue->run_bucket) {
        queue_insert(queue, event);
    } else {
        queue_add(queue, index, event);
    }
}

/* The ties at the front of the run. */
static inline uint32_t queue_take_run(struct event_queue *queue, uint32_t limit)
{
    const uint32_t first = queue->run_first;
    uint32_t next = first + 1;
    queue->last = queue->run[first].time;
    while (next < queue->run_end && next - first < limit && queue->run[next].time == queue->last) {
        next++;
    }
    queue->run_first = next;
    queue->run_bucket = next == queue->run_end ? -1 : queue->run_bucket;
    queue->count -= next - first;
    return next - first;
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
    if (queue->run_bucket < 0 && (queue->filled & 1) == 0) {
        queue_advance(queue);
    }
    if (queue->run_bucket >= 0) {
        *taken = &queue->run[queue->run_first];
        return queue_take_run(queue, limit);
    }
    struct bucket *bucket = &queue->buckets[0];
    queue->last = queue->base;
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
    if (queue->nodes != NULL) {
        return queue->nodes[0].event.time;
    }
    return queue->run_bucket >= 0 ? queue->run[queue->run_first].time
                                  : queue->buckets[__builtin_ctzll(queue->filled)].earliest;
}

#endif
