/*
 * send_recv.c - one message to one peer.
 */
#include "collective_internal.h"

static struct collective_level_cost cost(const struct collective_level_ask *ask)
{
    struct collective_level_ask whole = *ask;
    whole.buffer_bytes = 0.0; /* a message streams through the buffer */
    return collective_steps(&whole, 1, ask->bytes);
}

const struct collective collective_send_recv = {
    .name = "send_recv",
    .title = "Point to point",
    .formula = "alpha + n beta",
    .kinds = KIND_BIT(COLLECTIVE_SEND_RECV),
    .peers = 1,
    .cost = cost,
};
