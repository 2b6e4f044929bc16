/*
 * transfers.c - collectives, messages and copies whose time a network model decides.
 *
 * Every group has a slot of the model, and every rank one for each stream that transfers on
 * its own: a stream runs one op at a time, so a slot is free when it is needed.
 */
#include "stepsim/network.h"

#define ENGINE_CLOCK_RUNS
#include "engine/engine_internal.h"
#include "engine/no_malloc.h"

enum { OWN_SEND, OWN_COPY_OUT, OWN_COPY_IN };
_Static_assert(TRANSFERS_OF_RANK == OWN_COPY_IN + 1, "a slot for each stream");

static const uint8_t own_streams[TRANSFERS_OF_RANK] = {STREAM_SEND, STREAM_COPY_OUT,
                                                       STREAM_COPY_IN};

/* Requests of one instant for one port are ordered by stream, messages by the peer they go to. */
static uint32_t order_of(uint32_t stream, uint32_t peer)
{
    return stream * RANK_PEERS_MAX + peer;
}

bool transfers_begin_group(struct engine *engine, uint32_t group)
{
    const struct engine_group *state = &engine->groups[group];
    const uint32_t transfer = engine->programs->network->transfer_of[state->priced];
    if (transfer == NETWORK_NONE || state->duration == 0)
        return false;
    const struct network_request request = {
        .slot = group,
        .transfer = transfer,
        .duration = state->duration,
        .members = state->members,
        .member_count = state->member_count,
        .collective = true,
        .receiver = NETWORK_NONE,
        .order = order_of(state->stream, 0),
    };
    engine->network->begin(engine->live, engine->now, &request);
    return true;
}

bool transfers_begin_own(struct engine *engine, uint32_t rank, uint32_t stream,
                         const struct engine_op *op, sim_time duration)
{
    const uint32_t transfer = engine->programs->network->transfer_of[op->duration];
    if (transfer == NETWORK_NONE || duration == 0)
        return false;
    const uint32_t own = stream == STREAM_SEND       ? OWN_SEND
                         : stream == STREAM_COPY_OUT ? OWN_COPY_OUT
                                                     : OWN_COPY_IN;
    ASSERT(own_streams[own] == stream);
    uint32_t receiver = NETWORK_NONE;
    if (own == OWN_SEND)
        receiver = engine->sim_ranks[rank].peer[op->peer];
    else if (own == OWN_COPY_IN)
        receiver = rank;
    const struct network_request request = {
        .slot = engine->programs->group_count + rank * TRANSFERS_OF_RANK + own,
        .transfer = transfer,
        .duration = duration,
        .members = &rank,
        .member_count = own == OWN_COPY_IN ? 0 : 1,
        .receiver = receiver,
        .order = order_of(stream, own == OWN_SEND ? op->peer : 0),
    };
    engine->network->begin(engine->live, engine->now, &request);
    return true;
}

uint32_t transfers_advance(struct engine *engine)
{
    if (engine->network->next(engine->live) != engine->now)
        return 0;
    return engine->network->advance(engine->live, engine->now, engine->transfers_done,
                                    &engine->network_events);
}

struct transfer_end transfers_end(const struct engine *engine, uint32_t slot)
{
    const uint32_t groups = engine->programs->group_count;
    if (slot < groups)
        return (struct transfer_end){.group = true, .target = slot};
    return (struct transfer_end){.target = (slot - groups) / TRANSFERS_OF_RANK,
                                 .stream = own_streams[(slot - groups) % TRANSFERS_OF_RANK]};
}
