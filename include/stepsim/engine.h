/*
 * engine.h - runs stream programs and proves that they ended.
 *
 * The engine knows ops, streams, groups, messages and time. It has never heard of
 * a transformer. Rules:
 *  1. Order is (time, phase, sequence). Phases of one instant: 0 completions, 1
 *     resolution (a group whose last member arrived, a recv whose message came),
 *     2 starts. An op without duration completes in a further round of the same
 *     instant. Handlers of one phase commute; `shuffle_seed` shuffles inside a phase
 *     and must not change any result.
 *  2. A collective starts when all members have arrived and ends for all together,
 *     after the longest of the members' durations.
 *  3. A send occupies its stream for its duration; the message arrives at its end.
 *     A recv is done when posted and arrived; its own duration is not read.
 *  4. Memory: ends of an instant are applied before starts (timeline.h).
 *  5. Compute slowed by communication (PROGRAM_OP_SLOWED, on the compute stream) is
 *     re-timed exactly, in integers, whenever the number of contending ops of its rank
 *     leaves or reaches 0. It ends at the first whole picosecond at which its work is
 *     done; what that picosecond did beyond it counts for the next slowed op if that
 *     starts at once, so fused and single ops end alike. Of the two ends of a message
 *     only the send contends: a recv waits longer than data flows.
 *  6. No allocation, no hashing and no locks while the clock runs.
 *  7. End state: every op done once, no group half-arrived, no message unread. An
 *     empty queue with work left is a deadlock, reported by what waits for what.
 *  8. Jitter multiplies the duration of a compute op by 1 + jitter_ppm * z / 10^6, z
 *     being a bell-shaped number of mean 0 and variance 1 (the sum of four uniform
 *     ones, so within 3.5) drawn from (seed, true rank, stream, index); never below 0.
 *  9. With a network model (programs.network, network.h) collectives, sends and copies last
 *     as long as the model says, which may change while they run; transfers end before
 *     anything else of their instant, and the model settles when the instant is over.
 */
#ifndef STEPSIM_ENGINE_H
#define STEPSIM_ENGINE_H

#include "stepsim/arena.h"
#include "stepsim/timeline.h"

enum engine_observe { OBSERVE_CLASSES, OBSERVE_NONE, OBSERVE_ALL };

struct engine_options {
    enum engine_observe observe;
    bool binary_heap;      /* the oracle queue instead of the radix heap */
    uint64_t shuffle_seed; /* 0: no shuffle */
    uint64_t event_budget; /* 0: none; a run that passes it fails */
};

/*
 * The timeline lives in the arena. NULL on deadlock or exhausted budget: *failure
 * then names the waiting ops (in the arena). Both are bugs of whoever built the
 * programs, never of the user.
 */
const struct timeline *engine_run(const struct programs *programs,
                                  const struct engine_options *options, struct arena *arena,
                                  const char **failure);

#endif
