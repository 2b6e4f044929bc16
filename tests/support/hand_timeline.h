/*
 * hand_timeline.h - programs and a timeline written down by hand, for tests of the metrics.
 *
 * A test adds ops with their start and end to one observed rank; the peer rank only sends.
 * Rank 0 is observed, rank 1 is its neighbour on the next stage. Times are picoseconds.
 */
#ifndef TEST_HAND_TIMELINE_H
#define TEST_HAND_TIMELINE_H

#include <string.h>

#include "stepsim/timeline.h"

#define HAND_OPS_MAX 16

struct hand_timeline {
    struct program_op ops[2][STREAM_COUNT][HAND_OPS_MAX];
    struct program_wait waits[HAND_OPS_MAX];
    uint32_t wait_count;
    sim_time start[STREAM_COUNT][HAND_OPS_MAX], end[STREAM_COUNT][HAND_OPS_MAX];
    sim_time durations[2][HAND_OPS_MAX];
    int64_t deltas[1];
    uint32_t duration_count;
    struct program programs_of[2];
    struct rank_class classes[2];
    struct sim_rank ranks[2];
    struct program_label labels[PHASE_COUNT];
    struct rank_result results[2];
    struct observed_rank observed;
    struct programs programs;
    struct timeline timeline;
};

/* Labels are the phases: label i has phase i. */
static inline void hand_init(struct hand_timeline *hand, sim_time end)
{
    memset(hand, 0, sizeof *hand);
    for (uint16_t i = 0; i < PHASE_COUNT; i++) {
        hand->labels[i] = (struct program_label){.name = "op", .phase = i};
    }
    for (uint32_t r = 0; r < 2; r++) {
        hand->classes[r] = (struct rank_class){.program = r,
                                               .durations_ps = hand->durations[r],
                                               .deltas_bytes = hand->deltas,
                                               .stage = r,
                                               .rank_count = 1};
        hand->ranks[r] = (struct sim_rank){.rank_class = r, .rank = r, .peer = {1 - r, UINT32_MAX}};
        for (uint32_t s = 0; s < STREAM_COUNT; s++) {
            hand->programs_of[r].ops[s] = hand->ops[r][s];
        }
        hand->programs_of[r].waits = hand->waits;
    }
    hand->observed = (struct observed_rank){.rank = 0};
    for (uint32_t s = 0; s < STREAM_COUNT; s++) {
        hand->observed.start[s] = hand->start[s];
        hand->observed.end[s] = hand->end[s];
    }
    hand->programs = (struct programs){.programs = hand->programs_of,
                                       .program_count = 2,
                                       .classes = hand->classes,
                                       .class_count = 2,
                                       .ranks = hand->ranks,
                                       .rank_count = 2,
                                       .labels = hand->labels,
                                       .label_count = PHASE_COUNT,
                                       .stage_count = 2,
                                       .world = 2};
    hand->timeline = (struct timeline){
        .end = end, .ranks = hand->results, .observed = &hand->observed, .observed_count = 1};
}

/* The next op of a stream of rank 0. */
static inline struct program_op *hand_op(struct hand_timeline *hand, enum stream stream,
                                         enum time_cause cause, sim_time start, sim_time end)
{
    struct program *program = &hand->programs_of[0];
    const uint32_t index = program->op_count[stream]++;
    hand->start[stream][index] = start;
    hand->end[stream][index] = end;
    hand->ops[0][stream][index] = (struct program_op){
        .kind = stream == STREAM_COMPUTE ? PROGRAM_OP_COMPUTE : PROGRAM_OP_COLLECTIVE,
        .cause = (uint8_t)cause,
        .label = PHASE_STEADY};
    if (stream == STREAM_COMPUTE) {
        hand->results[0].compute_busy += end - start;
    }
    return &hand->ops[0][stream][index];
}

/* The next op of rank 0 waits for an op of another of its streams. */
static inline void hand_wait(struct hand_timeline *hand, struct program_op *op, enum stream stream,
                             uint32_t index)
{
    op->wait_first = hand->wait_count;
    op->wait_count = 1;
    hand->waits[hand->wait_count++] = (struct program_wait){.stream = stream, .index = index};
}

/* A message from rank 1: posted, arrived, and its time on the wire. */
static inline void hand_recv(struct hand_timeline *hand, sim_time posted, sim_time arrived,
                             sim_time wire)
{
    struct program_op *recv = hand_op(hand, STREAM_RECV, CAUSE_PP, posted, arrived);
    const uint32_t message = hand->programs_of[0].message_count++;
    recv->kind = PROGRAM_OP_RECV;
    recv->message = message;
    const uint32_t index = hand->programs_of[1].op_count[STREAM_SEND]++;
    hand->durations[1][hand->duration_count] = wire;
    hand->ops[1][STREAM_SEND][index] = (struct program_op){.kind = PROGRAM_OP_SEND,
                                                           .cause = CAUSE_PP,
                                                           .duration = hand->duration_count++,
                                                           .message = message,
                                                           .label = PHASE_STEADY};
}

#endif
