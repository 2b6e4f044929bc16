/*
 * schedule_turn.c - the turns of an interleaved pipeline (Narayanan et al., SC21), with a
 * group of microbatches that may be larger than pp.
 *
 * With group g, turn t belongs to chunk (t / g) mod vpp. Stage s runs (vpp-1)*g forwards so
 * that the first group reaches its last chunk, and two more for every stage behind it: one
 * for the way there and one for the way back.
 */
#include "schedule/schedule_internal.h"

uint32_t schedule_turn_group(const struct schedule_ask *ask)
{
    return ask->group == 0 ? ask->pp : ask->group;
}

uint32_t schedule_turn_forward_chunk(const struct schedule_ask *ask, uint32_t turn)
{
    return turn / schedule_turn_group(ask) % ask->vpp;
}

uint32_t schedule_turn_backward_chunk(const struct schedule_ask *ask, uint32_t turn)
{
    return ask->vpp - 1 - schedule_turn_forward_chunk(ask, turn);
}

uint32_t schedule_turn_warmup(const struct schedule_ask *ask, uint32_t stage, uint32_t extra)
{
    ASSERT(stage < ask->pp);
    const uint64_t turns = (uint64_t)ask->vpp * ask->microbatches;
    const uint64_t whole = (uint64_t)(ask->vpp - 1) * schedule_turn_group(ask);
    const uint64_t warmup = whole + 2 * (uint64_t)(ask->pp - 1 - stage) + extra;
    ASSERT(turns <= UINT32_MAX);
    return (uint32_t)(warmup < turns ? warmup : turns);
}
