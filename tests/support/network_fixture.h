/*
 * network_fixture.h - transfers and resources by hand, and a clock that drives a model.
 *
 * Every rank has one port (kind 0) and may share the resource of kind 1. A transfer is a list of
 * phases; requests are played in the order of their start.
 */
#ifndef TESTS_NETWORK_FIXTURE_H
#define TESTS_NETWORK_FIXTURE_H

#include "assert_close.h"

#include "stepsim/network.h"

#define FIXTURE_RANKS     64
#define FIXTURE_TRANSFERS 256

struct fixture {
    struct arena *arena;
    struct network_run run;
    struct network_phase phases[FIXTURE_TRANSFERS];
    struct network_transfer transfers[FIXTURE_TRANSFERS];
    uint32_t phase_count, transfer_count;
    struct network_use uses[FIXTURE_RANKS * 2];
    struct network_resource resources[FIXTURE_RANKS + 1];
};

/* `ranks` ports; all ranks share the last resource, of `shared` ports (0: it is never full). */
static inline struct fixture *fixture_create(uint32_t ranks, double shared)
{
    struct arena *arena = arena_create("test");
    struct fixture *f = ARENA_NEW(arena, struct fixture);
    f->arena = arena;
    for (uint32_t r = 0; r < ranks; r++) {
        f->uses[r * 2] = (struct network_use){r, 1, 1u << NETWORK_SPEED_BITS};
        f->uses[r * 2 + 1] =
            (struct network_use){shared > 0 ? ranks : NETWORK_NONE, 1, 1u << NETWORK_SPEED_BITS};
        f->resources[r] = (struct network_resource){{NETWORK_WHOLE, NETWORK_WHOLE}};
    }
    const int64_t capacity = (int64_t)(shared * NETWORK_WHOLE);
    f->resources[ranks] = (struct network_resource){{capacity, capacity}};
    f->run = (struct network_run){.kind_count = 2,
                                  .port_kind_count = 1,
                                  .phases = f->phases,
                                  .transfers = f->transfers,
                                  .uses = f->uses,
                                  .resources = f->resources,
                                  .resource_count = ranks + 1};
    return f;
}

/* A transfer of one phase. */
static inline uint32_t fixture_transfer(struct fixture *f, uint32_t steps, double port,
                                        double shared)
{
    f->phases[f->phase_count] = (struct network_phase){
        .until = UINT32_MAX,
        .steps = steps,
        .demand = {(uint32_t)(port * NETWORK_WHOLE), (uint32_t)(shared * NETWORK_WHOLE)}};
    f->transfers[f->transfer_count] = (struct network_transfer){f->phase_count++, 1};
    return f->transfer_count++;
}

struct request {
    sim_time start;
    struct network_request asked;
};

static inline struct request fixture_send(uint32_t transfer, sim_time duration,
                                          const uint32_t *sender, uint32_t receiver)
{
    return (struct request){.asked = {.transfer = transfer,
                                      .duration = duration,
                                      .members = sender,
                                      .member_count = 1,
                                      .receiver = receiver}};
}

static inline struct request fixture_group(uint32_t transfer, sim_time duration,
                                           const uint32_t *members, uint32_t count)
{
    return (struct request){.asked = {.transfer = transfer,
                                      .duration = duration,
                                      .members = members,
                                      .member_count = count,
                                      .collective = true,
                                      .receiver = NETWORK_NONE}};
}

struct play;
/* Called after every instant; the first `begun` requests have begun. */
typedef void (*play_watch)(const struct play *play, const struct network_live *live, uint32_t begun,
                           sim_time now);

/* Requests sorted by start; slot i is request i. */
struct play {
    struct fixture *fixture;
    const struct network *model;
    struct request *requests;
    uint32_t count;
    play_watch watch; /* NULL: nothing */
    void *context;
};

/* Plays them, and writes when each one ended. */
static inline void fixture_play(const struct play *play, sim_time *ends)
{
    struct fixture *f = play->fixture;
    const struct network *model = play->model;
    uint32_t *most = ARENA_ARRAY(f->arena, play->count, uint32_t);
    uint32_t *done = ARENA_ARRAY(f->arena, play->count, uint32_t);
    for (uint32_t i = 0; i < play->count; i++) {
        most[i] = play->requests[i].asked.member_count;
        play->requests[i].asked.slot = i;
        ends[i] = -1;
    }
    struct network_live *live = model->create(&f->run, most, play->count, f->arena);
    uint32_t begun = 0, ended = 0;
    uint64_t events = 0;
    while (ended < play->count) {
        sim_time now = model->next(live);
        if (begun < play->count && play->requests[begun].start < now)
            now = play->requests[begun].start;
        assert_true(now < INT64_MAX);
        if (model->next(live) == now) {
            const uint32_t more = model->advance(live, now, done, &events);
            for (uint32_t i = 0; i < more; i++)
                ends[done[i]] = now;
            ended += more;
        }
        for (; begun < play->count && play->requests[begun].start == now; begun++)
            model->begin(live, now, &play->requests[begun].asked);
        model->settle(live, now);
        if (play->watch != NULL)
            play->watch(play, live, begun, now);
    }
    assert_true(model->next(live) == INT64_MAX);
}

#endif
