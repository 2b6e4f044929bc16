/*
 * engine_internal.h - the engine's state while a step runs.
 *
 * Programs are copied once into a form that the loop reads with few cache lines: 16
 * bytes an op, all streams of a program in one array, with the streams to wake at an op's
 * end worked out in advance. A wait names one op, so only that op's completion can
 * satisfy it, and nothing is ever polled. What most ops do not have (messages, memory,
 * more than one wait) is a row of a side table.
 *
 * A rank is 64 bytes: one cursor per stream, bit masks, totals. Tables for memory, slowed
 * compute and observed times exist only where programs use them.
 */
#ifndef ENGINE_INTERNAL_H
#define ENGINE_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "stepsim/arena.h"
#include "stepsim/engine.h"
#include "stepsim/network.h"

#include "engine/queue_internal.h"

#define ENGINE_NONE UINT32_MAX

/* What an op does beside running; without any of these bits its end is a few adds. */
enum engine_op_flag {
    ENGINE_OP_DELTA_START = 1 << 0,
    ENGINE_OP_DELTA_END = 1 << 1,
    ENGINE_OP_CONTENDS = 1 << 2,
    ENGINE_OP_SLOWED = 1 << 3,
    ENGINE_OP_LAST = 1 << 4, /* of its stream */
    ENGINE_OP_SENDS = 1 << 5,
    ENGINE_OP_COMPUTE_STREAM = 1 << 6, /* counts as busy compute */
    ENGINE_OP_MORE_WAITS = 1 << 7,
};

/* Work at the start, and at the end, that most ops do not have. */
#define ENGINE_OP_START_EXTRAS (ENGINE_OP_DELTA_START | ENGINE_OP_CONTENDS)
#define ENGINE_OP_END_EXTRAS                                                                       \
    (ENGINE_OP_DELTA_END | ENGINE_OP_CONTENDS | ENGINE_OP_SENDS | ENGINE_OP_LAST)

/*
 * The first wait is `need`: 4 bits of stream above 28 bits of cursor; it holds when that
 * cursor of the rank is at least as far. Without a wait it is 0, which always holds.
 */
enum { NEED_STREAM_SHIFT = 28, NEED_CURSOR_MASK = (1 << NEED_STREAM_SHIFT) - 1 };

struct engine_op {
    uint8_t kind : 4; /* enum program_op_kind */
    uint8_t peer : 4; /* collective: group slot; send, recv: index of the peer */
    uint8_t flags;    /* engine_op_flag */
    uint16_t wakes;   /* streams whose next op may have waited for this one only */
    uint32_t need;
    uint32_t duration;
    uint32_t side; /* into engine_program.sides, if the op has any of what is there */
};

struct engine_side {
    uint32_t message;
    uint32_t delta_start;
    uint32_t delta_end;
    uint32_t wait_first; /* waits behind the first */
    uint32_t wait_count;
};

/* The loop reads a program through its class; here is what it reads seldom. */
struct engine_program {
    const struct engine_op *ops;
    const struct engine_side *sides;
    const uint32_t *needs;         /* waits behind the first, in the form of engine_op.need */
    const uint8_t *message_stream; /* stream of the recv of each message */
    uint32_t message_count;
    uint32_t first[STREAM_COUNT + 1]; /* ops of each stream, and the end */
};

struct engine_class {
    const struct engine_op *ops;
    const sim_time *durations_ps;
    const int64_t *deltas_bytes;
    const struct engine_program *program;
};

/* Streams are bits of 16-bit masks, and 4 bits of events and needs. */
_Static_assert(STREAM_COUNT <= 16, "more streams than the engine's masks hold");
_Static_assert(GROUP_SLOT_COUNT <= 16, "more group slots than an op can name");

struct engine_rank {
    uint32_t cursor[STREAM_COUNT]; /* next op of each stream, as index into the program's ops */
    uint32_t engine_class;
    uint16_t running;    /* streams whose next op is running, or waits for others */
    uint16_t ready;      /* streams to look at in the start phase; not 0: in the dirty list */
    uint16_t contending; /* ops that slow compute now */
    uint16_t observed;   /* 1: start and end of its ops are kept */
    uint64_t hash;
    sim_time compute_busy; /* while an op of the compute stream runs: less its start */
};

struct engine_group {
    sim_time duration; /* longest of the members that have arrived */
    uint32_t arrived;
    uint32_t member_count;
    const uint32_t *members;
    uint16_t stream;
    uint16_t starts; /* some member has work to do at the start */
    uint32_t priced; /* index of that duration, with a network model */
};

/* Memory of one rank. The level of an instant is known when the next change comes. */
struct memory_level {
    int64_t level;
    int64_t peak_bytes;
    sim_time changed; /* latest change */
    sim_time peak_time;
    int64_t taken;     /* most bytes taken by one op in that instant */
    uint32_t taken_op; /* that op, lowest first */
    uint32_t peak_op;  /* ENGINE_NONE: the static memory was never exceeded */
};

/* A slowed compute op; remaining work is whole + part / ppm picoseconds at full speed. */
struct slowed_compute {
    int64_t whole;
    int64_t part;
    int64_t credit;      /* work done beyond the op before it, in parts */
    sim_time since;      /* work is accounted up to here; also the instant of the credit */
    sim_time wake;       /* time of its live event */
    uint32_t generation; /* of its live event */
    uint8_t stale;       /* overtaken events that are still queued */
    bool active;
    bool contended; /* speed since `since` */
    bool listed;    /* looked at when the instant ends */
    bool unscheduled;
};

/* Where the times of one observed rank are written; the timeline shows the same arrays. */
struct observed_times {
    sim_time *start; /* by cursor */
    sim_time *end;
};

/* Overtaken events of one rank that may be queued; they bound the queue's capacity. */
enum { STALE_EVENTS_MAX = 2 };

struct engine {
    const struct programs *programs;
    const struct engine_options *options;
    const struct engine_class *classes;
    const struct sim_rank *sim_ranks;
    struct event_queue *queue;
    struct engine_rank *ranks;
    struct engine_group *groups;
    struct rank_result *results;
    struct memory_level *memory;   /* NULL: no op changes memory */
    struct slowed_compute *slowed; /* NULL: nothing slows compute */
    uint64_t *arrived;             /* bit: message has come and is not read */
    const uint64_t *message_first; /* of each rank, into arrived */
    struct observed_rank *observed;
    struct observed_times *observed_times;
    const uint32_t *observed_index; /* of each rank, into both */
    uint32_t observed_count;
    struct timeline *timeline;
    const struct network *network; /* NULL: durations are final */
    struct network_live *live;
    uint32_t *transfers_done; /* slots, in the instant in which they end */

    sim_time now;
    uint64_t events, stale_events, network_events;
    uint64_t unread;       /* messages */
    uint32_t streams_left; /* rank streams with ops left */
    int64_t jitter_ppm;

    /* Lists of the current instant. */
    uint32_t *dirty; /* ranks with ready streams */
    uint32_t dirty_count;
    uint32_t *met; /* groups whose last member has arrived */
    uint32_t met_count;
    uint32_t *received; /* rank << 4 | stream: a posted recv whose message has come */
    uint32_t received_count;
    uint32_t *unsettled; /* ranks whose slowed compute must be timed again */
    uint32_t unsettled_count;
    struct event *shuffled; /* all events of an instant; NULL without a shuffle */
    uint64_t shuffle_draws;
};

/* Event detail: bits 0-3 stream, bit 4 group, bits 5-31 generation. */
enum { EVENT_GROUP = 1 << 4, EVENT_GENERATION_SHIFT = 5, GENERATION_MAX = (1 << 27) - 1 };

static inline const struct engine_op *engine_op_at(const struct engine *engine, uint32_t rank,
                                                   uint32_t cursor)
{
    return &engine->classes[engine->ranks[rank].engine_class].ops[cursor];
}

static inline const struct engine_op *engine_next_op(const struct engine *engine, uint32_t rank,
                                                     uint32_t stream)
{
    return engine_op_at(engine, rank, engine->ranks[rank].cursor[stream]);
}

static inline const struct engine_program *engine_program_of(const struct engine *engine,
                                                             uint32_t rank)
{
    return engine->classes[engine->ranks[rank].engine_class].program;
}

static inline const struct engine_side *engine_side_of(const struct engine *engine, uint32_t rank,
                                                       const struct engine_op *op)
{
    return &engine_program_of(engine, rank)->sides[op->side];
}

static inline void engine_push(struct engine *engine, sim_time duration, uint32_t target,
                               uint32_t detail)
{
    struct event event = {.target = target, .detail = detail};
    if (__builtin_add_overflow(engine->now, duration, &event.time)) {
        event.time = -1; /* refused by the queue */
    }
    queue_push(engine->queue, event);
}

/* prepare.c: everything that is allocated. */
struct engine *engine_prepare(const struct programs *programs, const struct engine_options *options,
                              struct arena *arena);

/* transfers.c: rule 9 of engine.h. The first two are false for what takes no time or is no
 * transfer. */
enum { TRANSFERS_OF_RANK = 3 };
bool transfers_begin_group(struct engine *engine, uint32_t group);
bool transfers_begin_own(struct engine *engine, uint32_t rank, uint32_t stream,
                         const struct engine_op *op, sim_time duration);
/* Those that end now, as slots in transfers_done. */
uint32_t transfers_advance(struct engine *engine);
struct transfer_end {
    bool group;
    uint32_t target; /* group or rank */
    uint32_t stream; /* of a rank's op */
};
struct transfer_end transfers_end(const struct engine *engine, uint32_t slot);

/* instant.c: all that happens at engine->now. */
void engine_run_instant(struct engine *engine);

/* memory_level.c: an op, given by its cursor, changes the level. */
void memory_level_change(struct engine *engine, uint32_t rank, uint32_t cursor, int64_t bytes);
/* Writes the peak of every rank into its result. */
void memory_level_finish(struct engine *engine);

/* slowed_compute.c: rule 5 of engine.h. */
void slowed_compute_start(struct engine *engine, uint32_t rank, int64_t duration);
/* Its event came. True: the op is done. */
bool slowed_compute_wake(struct engine *engine, uint32_t rank, uint32_t generation);
/* An op that contends began (+1) or ended (-1). */
void slowed_compute_contend(struct engine *engine, uint32_t rank, int change);
/* End of an instant: gives every changed op its event. */
void slowed_compute_settle(struct engine *engine);

/* jitter.c: rule 8 of engine.h. */
sim_time jitter_duration(const struct engine *engine, uint32_t rank, uint32_t stream,
                         sim_time duration);

/* deadlock.c: who waits for what, as text in the arena. */
const char *deadlock_text(const struct engine *engine, struct arena *arena);

#endif
