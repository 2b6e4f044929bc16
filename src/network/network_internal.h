/*
 * network_internal.h - what the models share: phases in picoseconds, and slots by time.
 */
#ifndef NETWORK_INTERNAL_H
#define NETWORK_INTERNAL_H

#include "stepsim/error.h"
#include "stepsim/network.h"

/* Work in units of 2^-NETWORK_SPEED_BITS picoseconds needs more than 64 bits. */
__extension__ typedef unsigned __int128 network_wide;

/* ---- Phases ---- */

/* End of phase `phase` after the start of a transfer that takes `duration` alone. */
sim_time network_phase_end(const struct network_run *run, uint32_t transfer, uint32_t phase,
                           sim_time duration);
/* Length of the phase. */
sim_time network_phase_length(const struct network_run *run, uint32_t transfer, uint32_t phase,
                              sim_time duration);

/* ---- Slots by time: a binary heap that knows where each slot is ---- */

struct network_heap {
    sim_time *time;     /* [slot] */
    uint32_t *slots;    /* heap order: (time, slot) */
    uint32_t *position; /* [slot]; NETWORK_NONE: not in the heap */
    uint32_t count;
};

void network_heap_init(struct network_heap *heap, uint32_t slot_count, struct arena *arena);
/* Adds the slot, or moves it. */
void network_heap_put(struct network_heap *heap, uint32_t slot, sim_time time);
/* The earliest slot leaves. */
uint32_t network_heap_take(struct network_heap *heap);

static inline sim_time network_heap_next(const struct network_heap *heap)
{
    return heap->count > 0 ? heap->time[heap->slots[0]] : INT64_MAX;
}

#endif
