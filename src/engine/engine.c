/*
 * engine.c - the clock: from instant to instant, and the proof of the end state.
 */
#include "stepsim/engine.h"

#include "stepsim/error.h"

#include "engine/digest.h"
#include "engine/engine_internal.h"
#define ENGINE_CLOCK_RUNS
#include "engine/no_malloc.h"

/* INT64_MAX: nothing is left. */
static sim_time next_time(const struct engine *engine)
{
    const sim_time queued = engine->queue->count > 0 ? queue_next_time(engine->queue) : INT64_MAX;
    if (engine->live == NULL) {
        return queued;
    }
    const sim_time transfer = engine->network->next(engine->live);
    return transfer < queued ? transfer : queued;
}

static bool over_budget(const struct engine *engine)
{
    const uint64_t budget = engine->options->event_budget;
    return budget != 0 && engine->events + engine->network_events > budget;
}

/* False when the event budget ran out. */
static bool run_clock(struct engine *engine)
{
    engine_run_instant(engine); /* everything that may start at 0 */
    for (sim_time next = next_time(engine); next != INT64_MAX; next = next_time(engine)) {
        if (over_budget(engine)) {
            return false;
        }
        ASSERT(next > engine->now);
        engine->now = next;
        engine_run_instant(engine);
    }
    return !over_budget(engine);
}

/* With every op done nothing may be left over. */
static void prove_end(const struct engine *engine)
{
    const struct programs *programs = engine->programs;
    ASSERT(engine->unread == 0);
    for (uint32_t i = 0; i < programs->group_count; i++) {
        ASSERT(engine->groups[i].arrived == 0);
    }
    for (uint32_t i = 0; i < programs->rank_count; i++) {
        const struct engine_rank *rank = &engine->ranks[i];
        ASSERT(rank->running == 0 && rank->contending == 0);
        const uint32_t *first = engine_program_of(engine, i)->first;
        for (uint32_t stream = 0; stream < STREAM_COUNT; stream++) {
            ASSERT(rank->cursor[stream] == first[stream + 1]);
        }
    }
}

static const struct timeline *finish(struct engine *engine, struct arena *arena)
{
    struct timeline *timeline = engine->timeline;
    memory_level_finish(engine);
    for (uint32_t i = 0; i < engine->programs->rank_count; i++) {
        struct rank_result *result = &engine->results[i];
        result->compute_busy = engine->ranks[i].compute_busy;
        result->busy_hash = engine->ranks[i].hash;
        timeline->ops += engine_program_of(engine, i)->first[STREAM_COUNT]; /* all are done */
        timeline->end = result->end > timeline->end ? result->end : timeline->end;
    }
    timeline->ranks = engine->results;
    timeline->observed = engine->observed;
    timeline->observed_count = engine->observed_count;
    timeline->events = engine->events + engine->network_events;
    timeline->stale_events = engine->stale_events;
    digest_timeline(timeline, engine->programs, arena);
    return timeline;
}

const struct timeline *engine_run(const struct programs *programs,
                                  const struct engine_options *options, struct arena *arena,
                                  const char **failure)
{
    ASSERT(programs->contention_compute_ppm == 0 || programs->contention_compute_ppm >= 1000000);
    ASSERT(programs->jitter_ppm >= 0 && programs->jitter_ppm <= 1000000);
    struct engine *engine = engine_prepare(programs, options, arena);
    *failure = NULL;
    if (!run_clock(engine) || engine->streams_left > 0) {
        *failure = deadlock_text(engine, arena);
        return NULL;
    }
    prove_end(engine);
    return finish(engine, arena);
}
