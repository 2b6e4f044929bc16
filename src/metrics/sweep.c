/*
 * sweep.c - walks all streams of one observed rank at once.
 *
 * Observed times of a collective begin when its last member has arrived. The time between
 * the arrival of this rank and that moment is found from the waits of the op.
 *
 * Every stream is in order, so its ops are sorted, disjoint intervals and one cursor per
 * stream is enough: a slice reaches to the nearest start or end of any cursor. The cost is
 * linear in the ops of the rank.
 */
#include "metrics_internal.h"

/* Durations of the sends that feed the recvs of this rank, by recv ordinal. */
static const sim_time *transfer_times(const struct programs *programs, uint32_t rank,
                                      struct arena *arena)
{
    const struct sim_rank *self = &programs->ranks[rank];
    const struct program *own = &programs->programs[programs->classes[self->rank_class].program];
    sim_time *transfer_ps = ARENA_ARRAY(arena, own->message_count, sim_time);
    for (unsigned p = 0; p < RANK_PEERS_MAX; p++) {
        if (self->peer[p] == UINT32_MAX) {
            continue;
        }
        const struct sim_rank *peer = &programs->ranks[self->peer[p]];
        const struct rank_class *class = &programs->classes[peer->rank_class];
        const struct program *program = &programs->programs[class->program];
        for (unsigned s = 0; s < STREAM_COUNT; s++) {
            for (uint32_t i = 0; i < program->op_count[s]; i++) {
                const struct program_op *op = &program->ops[s][i];
                if (op->kind == PROGRAM_OP_SEND && peer->peer[op->peer] == rank) {
                    ASSERT(op->message < own->message_count);
                    transfer_ps[op->message] = class->durations_ps[op->duration];
                }
            }
        }
    }
    return transfer_ps;
}

void sweep_init(struct sweep *sweep, const struct programs *programs,
                const struct timeline *timeline, const struct observed_rank *times,
                struct arena *arena)
{
    const struct rank_class *class = &programs->classes[programs->ranks[times->rank].rank_class];
    *sweep = (struct sweep){
        .programs = programs,
        .program = &programs->programs[class->program],
        .durations_ps = class->durations_ps,
        .times = times,
        .transfer_ps = transfer_times(programs, times->rank, arena),
        .end = timeline->end,
    };
}

/* When the op of a cursor visibly starts. */
static sim_time visible_start(const struct sweep *sweep, unsigned stream, uint32_t index)
{
    const struct program_op *op = &sweep->program->ops[stream][index];
    const sim_time start = sweep->times->start[stream][index];
    if (op->kind != PROGRAM_OP_RECV) {
        return start;
    }
    const sim_time wire = sweep->times->end[stream][index] - sweep->transfer_ps[op->message];
    return wire > start ? wire : start;
}

/* When a collective arrived: its stream was free and its waits held. */
static sim_time arrival(const struct sweep *sweep, unsigned stream, uint32_t index)
{
    const struct program_op *op = &sweep->program->ops[stream][index];
    sim_time time = index > 0 ? sweep->times->end[stream][index - 1] : 0;
    for (uint32_t w = 0; w < op->wait_count; w++) {
        const struct program_wait *wait = &sweep->program->waits[op->wait_first + w];
        const sim_time end = sweep->times->end[wait->stream][wait->index];
        time = end > time ? end : time;
    }
    return time;
}

/* Groups inside one stage; the others span stages, so that waiting for them is pipeline. */
static bool group_in_stage(unsigned slot)
{
    return slot != GROUP_WORLD && slot != GROUP_ENDS;
}

/* The cursor of a stream that runs nothing: when that changes, and whether it waits. */
static sim_time idle_border(const struct sweep *sweep, unsigned stream, sim_time start,
                            struct sweep_slice *slice)
{
    const struct program_op *op = &sweep->program->ops[stream][sweep->next[stream]];
    if (op->kind != PROGRAM_OP_COLLECTIVE || !group_in_stage(op->peer)) {
        return start;
    }
    const sim_time arrived = arrival(sweep, stream, sweep->next[stream]);
    if (arrived > sweep->now) {
        return arrived < start ? arrived : start;
    }
    slice->waits_for_group = true;
    return start;
}

bool sweep_next(struct sweep *sweep, struct sweep_slice *slice)
{
    if (sweep->now >= sweep->end) {
        return false;
    }
    sim_time until = sweep->end;
    slice->waits_for_group = false;
    for (unsigned s = 0; s < STREAM_COUNT; s++) {
        slice->running[s] = NULL;
        while (sweep->next[s] < sweep->program->op_count[s] &&
               sweep->times->end[s][sweep->next[s]] <= sweep->now) {
            sweep->next[s]++;
        }
        if (sweep->next[s] == sweep->program->op_count[s]) {
            continue;
        }
        const sim_time start = visible_start(sweep, s, sweep->next[s]);
        sim_time border = sweep->times->end[s][sweep->next[s]];
        if (start <= sweep->now) {
            const struct program_op *op = &sweep->program->ops[s][sweep->next[s]];
            slice->running[s] = op;
            slice->length[s] = op->kind == PROGRAM_OP_COMPUTE
                                   ? sweep->durations_ps[op->duration]
                                   : border - start;
        } else {
            border = idle_border(sweep, s, start, slice);
        }
        ASSERT(border > sweep->now);
        until = border < until ? border : until;
    }
    slice->from = sweep->now;
    slice->until = until;
    sweep->now = until;
    return true;
}

const struct observed_rank *observed_busiest(const struct timeline *timeline)
{
    ASSERT(timeline->observed_count > 0);
    const struct observed_rank *best = &timeline->observed[0];
    for (uint32_t i = 1; i < timeline->observed_count; i++) {
        const struct observed_rank *other = &timeline->observed[i];
        if (timeline->ranks[other->rank].compute_busy > timeline->ranks[best->rank].compute_busy) {
            best = other;
        }
    }
    return best;
}
