/*
 * digest.h - the one place where the engine mixes numbers into a fingerprint.
 *
 * Mixing is fixed integer arithmetic, so fingerprints are equal on every machine.
 */
#ifndef ENGINE_DIGEST_H
#define ENGINE_DIGEST_H

#include <stdint.h>

#include "stepsim/arena.h"
#include "stepsim/timeline.h"

/* 2^64 divided by the golden ratio, odd: consecutive keys land far apart. */
#define DIGEST_GOLDEN UINT64_C(0x9E3779B97F4A7C15)
/* An odd multiplier with irregular bits. */
#define DIGEST_MULTIPLIER UINT64_C(0xD6E8FEB86659FD93)

/* Hash of two words; not symmetric. */
static inline uint64_t digest_mix(uint64_t a, uint64_t b)
{
    uint64_t x = a ^ (b + 1) * DIGEST_GOLDEN;
    x = (x ^ x >> 32) * DIGEST_MULTIPLIER;
    return x ^ x >> 29;
}

/*
 * One completion on one rank; completions are added up, so their order is free. `op` is the
 * number of the op in its program, the streams one after the other, so that it stands for
 * stream and index.
 */
static inline uint64_t digest_completion(sim_time time, uint32_t op)
{
    return digest_mix((uint64_t)time, op);
}

/*
 * Fills timeline.digest and timeline.event_digest from its ranks and its end. The
 * first is over maxima per stage, so it does not know how many ranks were simulated,
 * in how many events, or how ops were cut; the second covers every completion.
 */
void digest_timeline(struct timeline *timeline, const struct programs *programs,
                     struct arena *arena);

#endif
