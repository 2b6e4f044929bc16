/*
 * schedule_internal.h - what the schedules share: an order under construction, the wording
 * of refusals, and the turns of interleaved pipelines.
 */
#ifndef STEPSIM_SCHEDULE_INTERNAL_H
#define STEPSIM_SCHEDULE_INTERNAL_H

#include "stepsim/schedule.h"

/*
 * An order that grows stage by stage, action by action.
 *
 * The n-th forward of a chunk is the forward of microbatch n, and so for backwards, so a
 * schedule names chunks only. A forward or backward past the last microbatch adds nothing;
 * an order written for more microbatches than there are thus shortens itself.
 */
struct schedule_draft {
    struct pipeline_order *order;
    struct order_action **lists; /* [stage_count], same memory as order->actions */
    uint32_t *counts;            /* [stage_count], same memory as order->action_count */
    uint32_t *forwards;          /* [chunk_count], of the stage being written */
    uint32_t *backwards;         /* [chunk_count], of the stage being written */
    uint32_t capacity;           /* actions per stage, checked on every addition */
    uint32_t stage;              /* being written */
    uint32_t weight_scan;        /* no input gradient before this action waits for its W */
};

/* capacity: an upper limit of the actions of one stage. */
struct schedule_draft schedule_draft_begin(const struct schedule_ask *ask, uint32_t capacity,
                                           struct arena *arena);
void schedule_draft_stage(struct schedule_draft *draft, uint32_t stage);
void schedule_draft_forward(struct schedule_draft *draft, uint32_t chunk);
void schedule_draft_backward(struct schedule_draft *draft, uint32_t chunk);
void schedule_draft_input_gradient(struct schedule_draft *draft, uint32_t chunk);
/* W of the oldest input gradient that still waits for one; false if none does. */
bool schedule_draft_weight_gradient(struct schedule_draft *draft);
/* Forward of one chunk overlapped with the full backward of another (or the same) chunk. */
void schedule_draft_pair(struct schedule_draft *draft, uint32_t chunk, uint32_t back_chunk);
/* Asserts that nothing is missing and writes the phases. */
const struct pipeline_order *schedule_draft_finish(struct schedule_draft *draft);

/* Adds schedule_vpp unless vpp lies in the range that the schedule states, out_of_range if
 * an order would be larger than anyone can hold. */
bool schedule_check_chunks(const struct schedule *schedule, const struct schedule_ask *ask,
                           struct location at, struct error_list *errors);
/* Adds microbatches_below_minimum unless there are per_stage*pp microbatches, at least 1. */
bool schedule_check_microbatches(const struct schedule *schedule, const struct schedule_ask *ask,
                                 uint32_t per_stage, struct location at, struct error_list *errors);
/* Microbatches fill whole groups of at least pp. Call it with at least pp microbatches. */
bool schedule_check_group(const struct schedule_ask *ask, struct location at,
                          struct error_list *errors);

/*
 * Turns of an interleaved pipeline: group microbatches through chunk 0, the same through
 * chunk 1, ... up to the last chunk, then the next group; backwards take the chunks in
 * reverse. Turns count from 0 to vpp*microbatches - 1.
 */
uint32_t schedule_turn_group(const struct schedule_ask *ask);
uint32_t schedule_turn_forward_chunk(const struct schedule_ask *ask, uint32_t turn);
uint32_t schedule_turn_backward_chunk(const struct schedule_ask *ask, uint32_t turn);
/* Forwards before the first backward: (vpp-1)*group + 2*(pp-1-stage) + extra, at most all. */
uint32_t schedule_turn_warmup(const struct schedule_ask *ask, uint32_t stage, uint32_t extra);

#endif
