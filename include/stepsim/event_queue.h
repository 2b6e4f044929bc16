/*
 * event_queue.h - pending events by (time, order of pushing).
 *
 * Two implementations behind one interface: a monotone radix heap on integer time,
 * which the engine uses, and a binary heap, which is its oracle in tests. Both give
 * the same order: the earliest time first, and among equal times first pushed, first
 * out.
 *
 * Rules:
 *  1. Time never goes back: pushing below the last popped time is a bug.
 *  2. Capacity is fixed at creation (events pending at one time); passing it is a bug.
 *  3. All memory is taken from the arena at creation, none later.
 *
 * Cost: radix heap O(1) for a push and amortised O(bits of the time differences) for
 * a pop, in practice a few sequential copies of 16 bytes; binary heap O(log n).
 */
#ifndef STEPSIM_EVENT_QUEUE_H
#define STEPSIM_EVENT_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "stepsim/arena.h"
#include "stepsim/units.h"

/* The queue reads the time only; the rest belongs to whoever pushes. */
struct event {
    sim_time time;   /* at least 0 */
    uint32_t target; /* rank or group */
    uint32_t detail; /* kind, stream and generation, as the engine packs them */
};

struct event_queue;

struct event_queue *event_queue_create(struct arena *arena, uint32_t capacity, bool binary_heap);
void event_queue_push(struct event_queue *queue, const struct event *event);
/* The earliest event; the queue must not be empty. */
struct event event_queue_pop(struct event_queue *queue);
/*
 * Pops up to limit events of the earliest time into out and returns how many. Events
 * pushed at that same time afterwards are found by the next call. The queue must not
 * be empty.
 */
uint32_t event_queue_pop_ties(struct event_queue *queue, struct event *out, uint32_t limit);
/* Time of the earliest event; the queue must not be empty. Changes nothing. */
sim_time event_queue_next_time(const struct event_queue *queue);
uint32_t event_queue_count(const struct event_queue *queue);

#endif
