/*
 * jitter.c - noise of kernel times, in integers, drawn from who the op is.
 *
 * Four 16-bit uniform numbers out of one hash add up to a bell shape with mean 131070
 * and standard deviation sqrt(4 * (65536^2 - 1) / 12) = 37837.2. Nothing is drawn in
 * the order of events, so the noise of an op is the same in every mode.
 */
#define ENGINE_CLOCK_RUNS
#include "engine/digest.h"
#include "engine/engine_internal.h"
#include "engine/no_malloc.h"

enum { BELL_MEAN = 131070, BELL_DEVIATION = 37837, PPB = 1000000000 };

sim_time jitter_duration(const struct engine *engine, uint32_t rank, uint32_t stream,
                         sim_time duration)
{
    const struct programs *programs = engine->programs;
    const uint32_t index =
        engine->ranks[rank].cursor[stream] - engine_program_of(engine, rank)->first[stream];
    const uint64_t op = (uint64_t)index << 4 | stream;
    const uint64_t who = digest_mix(programs->jitter_seed, programs->ranks[rank].rank);
    const uint64_t hash = digest_mix(who, op);
    const int64_t bell =
        (int64_t)((hash & 0xFFFF) + (hash >> 16 & 0xFFFF) + (hash >> 32 & 0xFFFF) + (hash >> 48)) -
        BELL_MEAN;
    /* Relative change in parts per 10^9. */
    const int64_t change = programs->jitter_ppm * bell * 1000 / BELL_DEVIATION;
    const int64_t longer = duration / PPB * change + duration % PPB * change / PPB;
    return longer < -duration ? 0 : duration + longer;
}
