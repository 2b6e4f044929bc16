/*
 * slowed_compute.c - compute that communication of the same rank slows, re-timed exactly.
 *
 * With f = contention_compute_ppm, a picosecond does 1 picosecond of work, or 10^6 / f
 * while an op contends. Remaining work is kept as whole + part / f, so nothing is ever
 * rounded except the time of the event, up.
 *
 * Within an instant only a note is made; the speed that counts is the one after
 * everything that happens in it, and the events are pushed when it ends. If the end
 * moves later, the event stays where it is, finds the op unfinished and is pushed again;
 * if it moves earlier, a new event is pushed and the old one becomes stale, which its
 * generation tells. A stale event is only ever made by an event placed at the contended
 * end; with STALE_EVENTS_MAX of them queued, events are placed at the uncontended end
 * instead, which nothing can undercut. So the queue stays bounded.
 */
#define ENGINE_CLOCK_RUNS
#include "engine/engine_internal.h"
#include "engine/no_malloc.h"

enum { PPM = 1000000 };

static int64_t slowdown_ppm(const struct engine *engine)
{
    return engine->programs->contention_compute_ppm;
}

/* Picoseconds that the remaining work takes at one speed, rounded up. */
static sim_time time_left(const struct slowed_compute *slowed, int64_t ppm, bool contended)
{
    if (!contended) {
        return slowed->whole + (slowed->part > 0);
    }
    /* (whole * ppm + part) / 10^6 without leaving 64 bits */
    const int64_t rest = slowed->whole % PPM * ppm + slowed->part;
    int64_t time;
    bool overflow = __builtin_mul_overflow(slowed->whole / PPM, ppm, &time);
    overflow |= __builtin_add_overflow(time, (rest + PPM - 1) / PPM, &time);
    ASSERT(!overflow);
    return time;
}

/* Accounts the work done since the last look. */
static void advance(struct engine *engine, struct slowed_compute *slowed)
{
    const int64_t ppm = slowdown_ppm(engine);
    const int64_t passed = engine->now - slowed->since;
    if (passed == 0) { /* begun or looked at in this instant */
        return;
    }
    int64_t whole = passed;
    int64_t part = 0;
    if (slowed->contended) { /* passed * 10^6 / ppm */
        const int64_t rest = passed % ppm * PPM;
        whole = passed / ppm * PPM + rest / ppm;
        part = rest % ppm;
    }
    slowed->since = engine->now;
    slowed->whole -= whole;
    slowed->part -= part;
    if (slowed->part < 0) {
        slowed->part += ppm;
        slowed->whole--;
    }
}

static void unsettle(struct engine *engine, uint32_t rank)
{
    struct slowed_compute *slowed = &engine->slowed[rank];
    if (!slowed->listed) {
        slowed->listed = true;
        engine->unsettled[engine->unsettled_count++] = rank;
    }
}

void slowed_compute_start(struct engine *engine, uint32_t rank, int64_t duration)
{
    struct slowed_compute *slowed = &engine->slowed[rank];
    ASSERT(!slowed->active);
    const bool at_once = slowed->since == engine->now;
    if (duration == 0) { /* leaves the credit to the next op */
        slowed->credit = at_once ? slowed->credit : 0;
        slowed->whole = 0;
        slowed->part = 0;
    } else if (at_once && slowed->credit > 0) {
        slowed->whole = duration - 1;
        slowed->part = slowdown_ppm(engine) - slowed->credit;
        slowed->credit = 0;
    } else {
        slowed->whole = duration;
        slowed->part = 0;
        slowed->credit = 0;
    }
    slowed->since = engine->now;
    slowed->active = true;
    slowed->unscheduled = true;
    if (duration > 0) {
        unsettle(engine, rank);
        return;
    }
    /* Its end belongs to this instant. */
    slowed->unscheduled = false;
    slowed->wake = engine->now;
    engine_push(engine, 0, rank, slowed->generation << EVENT_GENERATION_SHIFT);
}

bool slowed_compute_wake(struct engine *engine, uint32_t rank, uint32_t generation)
{
    struct slowed_compute *slowed = &engine->slowed[rank];
    if (generation != slowed->generation) {
        slowed->stale--;
        engine->stale_events++;
        return false;
    }
    ASSERT(slowed->active && slowed->wake == engine->now);
    advance(engine, slowed);
    if (slowed->whole > 0 || (slowed->whole == 0 && slowed->part > 0)) {
        engine->stale_events++;
        slowed->unscheduled = true;
        unsettle(engine, rank);
        return false;
    }
    /* Done; less than a picosecond of work may be left over. */
    ASSERT(slowed->whole == 0 || slowed->whole == -1);
    slowed->credit += slowed->whole == 0 ? 0 : slowdown_ppm(engine) - slowed->part;
    slowed->active = false;
    return true;
}

void slowed_compute_contend(struct engine *engine, uint32_t rank, int change)
{
    struct engine_rank *state = &engine->ranks[rank];
    state->contending = (uint16_t)(state->contending + change);
    if (state->contending == (change > 0 ? 1 : 0) && engine->slowed[rank].active) {
        unsettle(engine, rank);
    }
}

/* Places the event of an op whose work and speed are up to date. */
static void schedule(struct engine *engine, uint32_t rank, struct slowed_compute *slowed)
{
    const bool optimistic = slowed->stale == STALE_EVENTS_MAX;
    const sim_time left = time_left(slowed, slowdown_ppm(engine), slowed->contended && !optimistic);
    slowed->unscheduled = false;
    slowed->wake = engine->now + left;
    engine_push(engine, left, rank, slowed->generation << EVENT_GENERATION_SHIFT);
}

static void settle(struct engine *engine, uint32_t rank)
{
    struct slowed_compute *slowed = &engine->slowed[rank];
    slowed->listed = false;
    if (!slowed->active) { /* contention changed in the instant in which it ended */
        return;
    }
    advance(engine, slowed);
    slowed->contended = engine->ranks[rank].contending > 0;
    if (slowed->unscheduled) {
        schedule(engine, rank, slowed);
    } else if (engine->now + time_left(slowed, slowdown_ppm(engine), slowed->contended) <
               slowed->wake) {
        slowed->stale++;
        ASSERT(slowed->stale <= STALE_EVENTS_MAX);
        ASSERT(slowed->generation < GENERATION_MAX);
        slowed->generation++;
        schedule(engine, rank, slowed);
    }
}

void slowed_compute_settle(struct engine *engine)
{
    for (uint32_t i = 0; i < engine->unsettled_count; i++) {
        settle(engine, engine->unsettled[i]);
    }
    engine->unsettled_count = 0;
}
