/*
 * event_queue.c - a radix heap on whole picoseconds, and a binary heap as its oracle.
 *
 * The radix heap is described in queue_internal.h, where its frequent paths are. The
 * binary heap orders by (time, sequence of pushing) and is written for clarity.
 */
#include <string.h>

#include "engine/no_malloc.h"
#include "engine/queue_internal.h"

struct event_queue *event_queue_create(struct arena *arena, uint32_t capacity, bool binary_heap)
{
    struct event_queue *queue = ARENA_NEW(arena, struct event_queue);
    queue->capacity = capacity;
    queue->run_bucket = -1;
    if (binary_heap) {
        queue->nodes = ARENA_ARRAY(arena, (size_t)capacity + 1, struct binary_node);
        return queue;
    }
    ASSERT(capacity < UINT32_C(1) << 31);
    const int32_t block_count = (int32_t)(capacity / BLOCK_EVENTS) + BUCKETS + 2;
    queue->blocks = ARENA_ARRAY(arena, (size_t)block_count, struct block);
    queue->next_block = ARENA_ARRAY(arena, (size_t)block_count, int32_t);
    for (int32_t i = 0; i < block_count; i++) {
        queue->next_block[i] = i + 1 < block_count ? i + 1 : NO_BLOCK;
    }
    for (uint32_t i = 0; i < BUCKETS; i++) {
        queue->buckets[i] = (struct bucket){.head = NO_BLOCK, .tail_count = BLOCK_EVENTS};
    }
    return queue;
}

/* Chains a fresh block to a bucket without room. */
void queue_grow_bucket(struct event_queue *queue, uint32_t index)
{
    struct bucket *bucket = &queue->buckets[index];
    const int32_t fresh = queue->free_block;
    ASSERT(fresh != NO_BLOCK);
    queue->free_block = queue->next_block[fresh];
    queue->next_block[fresh] = NO_BLOCK;
    if (bucket->head == NO_BLOCK) {
        bucket->head = fresh;
        bucket->head_first = 0;
        bucket->earliest = INT64_MAX;
        bucket->latest = 0;
        queue->filled |= UINT64_C(1) << index;
    } else {
        queue->next_block[bucket->tail] = fresh;
    }
    bucket->tail = fresh;
    bucket->tail_count = 0;
}

static void free_block(struct event_queue *queue, int32_t block)
{
    queue->next_block[block] = queue->free_block;
    queue->free_block = block;
}

/* The head block of a bucket is consumed. */
void queue_drop_head(struct event_queue *queue, uint32_t index)
{
    struct bucket *bucket = &queue->buckets[index];
    const int32_t dropped = bucket->head;
    bucket->head_first = 0;
    bucket->head = queue->next_block[dropped];
    if (bucket->head == NO_BLOCK) {
        bucket->tail_count = BLOCK_EVENTS;
        queue->filled &= ~(UINT64_C(1) << index);
    }
    free_block(queue, dropped);
}

/* Sorts an event into the run, behind those of its time. Room is made on the side that it is
 * nearer to, by its place in the order: most delays are short. */
static void insert_into_run(struct event_queue *queue, struct event event)
{
    struct event *run = queue->run;
    const uint32_t middle = (queue->run_first + queue->run_end) / 2;
    if (queue->run_first > 0 && queue->run_first < queue->run_end &&
        event.time < run[middle].time) {
        uint32_t hole = --queue->run_first;
        while (run[hole + 1].time <= event.time) {
            run[hole] = run[hole + 1];
            hole++;
        }
        run[hole] = event;
        return;
    }
    uint32_t hole = queue->run_end++;
    while (hole > queue->run_first && run[hole - 1].time > event.time) {
        run[hole] = run[hole - 1];
        hole--;
    }
    run[hole] = event;
}

/* Empties the run into the buckets, none higher than the one it came from. */
static void spill_run(struct event_queue *queue)
{
    queue->run_bucket = -1;
    for (uint32_t i = queue->run_first; i < queue->run_end; i++) {
        queue_add(queue, queue_bucket_of(queue, queue->run[i].time), queue->run[i]);
    }
}

/* A push into the bucket of the run, or a lower one. */
void queue_insert(struct event_queue *queue, struct event event)
{
    if (queue->run_end == RUN_EVENTS && queue->run_first > 0) {
        const uint32_t count = queue->run_end - queue->run_first;
        memmove(queue->run, &queue->run[queue->run_first], count * sizeof(struct event));
        queue->run_first = 0;
        queue->run_end = count;
    }
    if (queue->run_end == RUN_EVENTS) {
        spill_run(queue);
        queue_add(queue, queue_bucket_of(queue, event.time), event);
    } else {
        insert_into_run(queue, event);
    }
}

/* A bucket's events fall into lower ones. */
static void scatter(struct event_queue *queue, const struct bucket *source)
{
    for (int32_t block = source->head, next; block != NO_BLOCK; block = next) {
        const uint32_t count = block == source->tail ? source->tail_count : BLOCK_EVENTS;
        for (uint32_t k = 0; k < count; k++) {
            const struct event event = queue->blocks[block].events[k];
            queue_add(queue, queue_bucket_of(queue, event.time), event);
        }
        next = queue->next_block[block];
        free_block(queue, block);
    }
}

/* Opens the lowest bucket that is not empty; the run and bucket 0 are. */
void queue_advance(struct event_queue *queue)
{
    ASSERT(queue->filled != 0);
    const uint32_t i = (uint32_t)__builtin_ctzll(queue->filled);
    const struct bucket source = queue->buckets[i];
    queue->buckets[i].head = NO_BLOCK;
    queue->buckets[i].tail_count = BLOCK_EVENTS;
    queue->filled &= ~(UINT64_C(1) << i);
    if (source.earliest == source.latest) {
        queue->base = source.earliest;
        queue->buckets[0] = source;
        queue->filled |= 1;
    } else if (source.head == source.tail && source.tail_count <= RUN_FILL_MAX) {
        queue->run_first = 0;
        queue->run_end = 0;
        for (uint32_t k = 0; k < source.tail_count; k++) {
            insert_into_run(queue, queue->blocks[source.head].events[k]);
        }
        queue->run_bucket = (int32_t)i;
        free_block(queue, source.head);
    } else {
        queue->base = source.earliest;
        scatter(queue, &source);
    }
}

static bool binary_before(const struct binary_node *a, const struct binary_node *b)
{
    if (a->event.time != b->event.time) {
        return a->event.time < b->event.time;
    }
    return a->sequence < b->sequence;
}

/* The new event is already counted: its place is the last one. */
void queue_push_binary(struct event_queue *queue, const struct event *event)
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

uint32_t queue_take_binary(struct event_queue *queue, uint32_t limit)
{
    const sim_time time = queue->nodes[0].event.time;
    uint32_t taken = 0;
    limit = limit < BLOCK_EVENTS ? limit : BLOCK_EVENTS;
    while (taken < limit && queue->count > 0 && queue->nodes[0].event.time == time) {
        queue->popped.events[taken++] = binary_pop(queue);
    }
    return taken;
}

void event_queue_push(struct event_queue *queue, const struct event *event)
{
    queue_push(queue, *event);
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
    const sim_time time = queue_next_time(queue);
    uint32_t count = 0;
    while (count < limit && queue->count > 0 && queue_next_time(queue) == time) {
        const struct event *taken;
        const uint32_t more = queue_take(queue, limit - count, &taken);
        memcpy(out + count, taken, more * sizeof(struct event));
        count += more;
    }
    return count;
}

sim_time event_queue_next_time(const struct event_queue *queue)
{
    ASSERT(queue->count > 0);
    return queue_next_time(queue);
}

uint32_t event_queue_count(const struct event_queue *queue)
{
    return queue->count;
}
