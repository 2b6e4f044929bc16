/*
 * engine.c - the clock: from instant to instant, and the proof of the end state.
 */
#include "stepsim/engine.h"

#include "stepsim/error.h"

#include "engine/digest.h"
#include "engine/engine_internal.h"
#define ENGINE_CLOCK_RUNS
#include "engine/no_malloc.h"

/* False when the event budget ran out. */
static bool run_clock(struct engine *engine)
{
    const uint64_t budget = engine->options->event_budget;
    engine_run_instant(engine); /* everything that may start at 0 */
    while (engine->queue->count > 0) {
        if (budget != 0 && engine->events > budget) {
            return false;
        }
        const sim_time next = queue_next_time(engine->queue);
        ASSERT(next > engine->now);
        engine->now = next;
        engine_run_instant(engine);
    }
    return budget == 0 || engine->events <= budget;
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
    timeline->events = engine->events;
    timeline->stale_events = engine->stale_events;
    digest_timeline(timeline, engine->programs, arena);
    return timeline;
}

const struct timeline *engine_run(const struct programs *programs,
                                  const struct engine_options *options, struct arena *arena,
                                  const char **failure)
{
    ASSERT(programs->network == NULL);
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
