/*
 * network_heap.c - running transfers by the time of their next change.
 *
 * Times change whenever speeds do, so a slot can move both ways; the queue of the engine
 * cannot do that. Ties leave by slot number.
 */
#include "network_internal.h"

void network_heap_init(struct network_heap *heap, uint32_t slot_count, struct arena *arena)
{
    heap->time = ARENA_ARRAY(arena, slot_count, sim_time);
    heap->slots = ARENA_ARRAY(arena, slot_count, uint32_t);
    heap->position = ARENA_ARRAY(arena, slot_count, uint32_t);
    heap->count = 0;
    for (uint32_t i = 0; i < slot_count; i++)
        heap->position[i] = NETWORK_NONE;
}

static bool earlier(const struct network_heap *heap, uint32_t a, uint32_t b)
{
    return heap->time[a] != heap->time[b] ? heap->time[a] < heap->time[b] : a < b;
}

static void place(struct network_heap *heap, uint32_t at, uint32_t slot)
{
    heap->slots[at] = slot;
    heap->position[slot] = at;
}

static void rise(struct network_heap *heap, uint32_t at, uint32_t slot)
{
    while (at > 0 && earlier(heap, slot, heap->slots[(at - 1) / 2])) {
        place(heap, at, heap->slots[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    place(heap, at, slot);
}

static void sink(struct network_heap *heap, uint32_t at, uint32_t slot)
{
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= heap->count)
            break;
        if (child + 1 < heap->count && earlier(heap, heap->slots[child + 1], heap->slots[child]))
            child++;
        if (!earlier(heap, heap->slots[child], slot))
            break;
        place(heap, at, heap->slots[child]);
        at = child;
    }
    place(heap, at, slot);
}

void network_heap_put(struct network_heap *heap, uint32_t slot, sim_time time)
{
    const uint32_t at = heap->position[slot];
    const bool later = at != NETWORK_NONE && time > heap->time[slot];
    heap->time[slot] = time;
    if (at == NETWORK_NONE)
        rise(heap, heap->count++, slot);
    else if (later)
        sink(heap, at, slot);
    else
        rise(heap, at, slot);
}

uint32_t network_heap_take(struct network_heap *heap)
{
    ASSERT(heap->count > 0);
    const uint32_t slot = heap->slots[0];
    const uint32_t last = heap->slots[--heap->count];
    heap->position[slot] = NETWORK_NONE;
    if (heap->count > 0)
        sink(heap, 0, last);
    return slot;
}
