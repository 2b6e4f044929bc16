/*
 * digest.c - fingerprints of a run: maxima per stage, and all completions.
 *
 * A stage's latest end, busiest compute stream and highest memory mark are maxima
 * over its ranks. Ranks of one class behave alike, so one member of each class gives
 * the same maxima as all ranks.
 */
#include "engine/digest.h"

#include "stepsim/error.h"

#include "engine/no_malloc.h"

struct stage_maxima {
    sim_time end;
    sim_time compute_busy;
    int64_t peak_bytes;
};

static void raise_to(int64_t *maximum, int64_t value)
{
    if (*maximum < value) {
        *maximum = value;
    }
}

static uint64_t canonical(const struct timeline *timeline, const struct programs *programs,
                          struct stage_maxima *stages)
{
    for (uint32_t i = 0; i < programs->stage_count; i++) {
        stages[i].peak_bytes = INT64_MIN;
    }
    for (uint32_t i = 0; i < programs->rank_count; i++) {
        const struct rank_result *rank = &timeline->ranks[i];
        const uint32_t stage = programs->classes[programs->ranks[i].rank_class].stage;
        ASSERT(stage < programs->stage_count);
        raise_to(&stages[stage].end, rank->end);
        raise_to(&stages[stage].compute_busy, rank->compute_busy);
        raise_to(&stages[stage].peak_bytes, rank->peak_bytes);
    }
    uint64_t digest = digest_mix((uint64_t)timeline->end, programs->stage_count);
    for (uint32_t i = 0; i < programs->stage_count; i++) {
        digest = digest_mix(digest, (uint64_t)stages[i].end);
        digest = digest_mix(digest, (uint64_t)stages[i].compute_busy);
        digest = digest_mix(digest, (uint64_t)stages[i].peak_bytes);
    }
    return digest;
}

void digest_timeline(struct timeline *timeline, const struct programs *programs,
                     struct arena *arena)
{
    struct stage_maxima *stages = ARENA_ARRAY(arena, programs->stage_count, struct stage_maxima);
    timeline->digest = canonical(timeline, programs, stages);
    timeline->event_digest = 0;
    for (uint32_t i = 0; i < programs->rank_count; i++) {
        timeline->event_digest += digest_mix(timeline->ranks[i].busy_hash, programs->ranks[i].rank);
    }
}
