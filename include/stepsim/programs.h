/*
 * programs.h - stream programs: what every rank executes, with durations.
 *
 * A rank runs a few in-order streams. Each stream is a list of ops; an op starts
 * when the op before it on its stream is done and all its waits hold, a wait being
 * (stream, index) on the same rank. Cross-rank order comes only from collectives
 * (rendezvous of a group) and messages (send to recv).
 *
 * Invariants, checked by programs_check():
 *  1. Ranks of one class share one program, one table of durations and one table of
 *     memory deltas. Programs are read-only; durations are whole picoseconds.
 *  2. A wait names an op of another stream of the same program that exists.
 *  3. Every recv of a rank has exactly one send of a peer, and the reverse.
 *  4. Members of a group issue the same collectives, in the same order, each group
 *     slot on one stream.
 *
 * Folding: `ranks` are the simulated ranks, one per class or all of them; `groups`
 * likewise hold only simulated members. The engine cannot tell the difference.
 *
 * Units: picoseconds and bytes. Everything lives in the arena of programs_build().
 */
#ifndef STEPSIM_PROGRAMS_H
#define STEPSIM_PROGRAMS_H

#include <stdbool.h>
#include <stdint.h>

#include "stepsim/units.h"

enum stream {
    STREAM_COMPUTE,
    STREAM_TP,
    STREAM_EP,
    STREAM_CP,
    STREAM_SEND,
    STREAM_RECV,
    STREAM_DP,
    STREAM_COPY_OUT, /* device to host */
    STREAM_COPY_IN,  /* host to device */
    STREAM_COUNT
};

/* "compute", "tp", ... as printed in traces and reports. */
const char *stream_name(enum stream stream);

enum program_op_kind {
    PROGRAM_OP_COMPUTE,
    PROGRAM_OP_COLLECTIVE,
    PROGRAM_OP_SEND,
    PROGRAM_OP_RECV,
    PROGRAM_OP_COPY,
    PROGRAM_OP_MARKER, /* takes no time; joins streams or applies a memory delta */
};

/* Groups a rank belongs to. */
enum group_slot {
    GROUP_TP,
    GROUP_CP,
    GROUP_EP,
    GROUP_ETP,
    GROUP_DP_CP, /* dense gradients and optimizer shards: dp*cp ranks */
    GROUP_EDP,   /* expert gradients and optimizer shards */
    GROUP_WORLD, /* gradient norm */
    GROUP_ENDS,  /* first and last stage, for a tied embedding */
    GROUP_SLOT_COUNT
};

const char *group_slot_name(enum group_slot slot);

/* What a picosecond of the step is counted as (time_share). */
enum time_cause {
    CAUSE_COMPUTE,
    CAUSE_RECOMPUTE,
    CAUSE_TP,
    CAUSE_EP,
    CAUSE_CP,
    CAUSE_PP,
    CAUSE_DP,
    CAUSE_SWAP,
    CAUSE_HOST,
    CAUSE_IMBALANCE,
    CAUSE_BUBBLE,
    CAUSE_OPTIMIZER,
    CAUSE_COUNT
};

const char *time_cause_name(enum time_cause cause);

/* Flags of an op. */
enum program_op_flag {
    /* A communication op that slows compute of its rank while it runs. */
    PROGRAM_OP_CONTENDS = 1 << 0,
    /* A compute op that takes part in the slow-down. */
    PROGRAM_OP_SLOWED = 1 << 1,
};

/* Phase of the schedule, for exposed shares per phase. */
enum step_phase { PHASE_WARMUP, PHASE_STEADY, PHASE_COOLDOWN, PHASE_OPTIMIZER, PHASE_COUNT };
const char *step_phase_name(enum step_phase phase);

struct program_wait {
    uint32_t index;  /* op of that stream which must be done */
    uint32_t stream; /* enum stream */
};

struct program_op {
    uint8_t kind;        /* enum program_op_kind */
    uint8_t cause;       /* enum time_cause: what it is when it is the busy or blocking op */
    uint8_t flags;       /* program_op_flag */
    uint8_t wait_count;
    uint32_t wait_first; /* first of wait_count entries in program.waits */
    uint32_t duration;   /* index into rank_class.durations_ps */
    uint32_t peer;       /* collective: enum group_slot; send, recv: index into rank.peers */
    uint32_t message;    /* send: recv ordinal at the receiver; recv: its own ordinal */
    uint32_t delta_start; /* index into rank_class.deltas_bytes, applied when it starts */
    uint32_t delta_end;   /* same, applied when it ends; 0 is always "no change" */
    uint32_t label;      /* index into programs.labels */
};

/* Who an op is, for traces, explain and deadlock reports. */
struct program_label {
    const char *name;    /* "attention", "dispatch", "grad_reduce.experts" */
    uint16_t phase;      /* enum step_phase */
    uint16_t chunk;      /* chunk of the stage */
    int32_t microbatch;  /* -1: none */
    int32_t layer;       /* -1: none */
    char pass;           /* 'F', 'B' (input gradient or full), 'W', 'R' recompute, 'O' optimizer */
};

struct program {
    const struct program_op *ops[STREAM_COUNT];
    uint32_t op_count[STREAM_COUNT];
    const struct program_wait *waits;
    uint32_t wait_count;
    uint32_t message_count; /* recvs of this program */
};

struct rank_class {
    uint32_t program;               /* index into programs.programs */
    const sim_time *durations_ps;   /* duration_count entries */
    const int64_t *deltas_bytes;    /* delta_count entries, [0] = 0 */
    uint32_t stage;
    uint32_t rank_count;            /* true ranks of this class */
    int64_t static_bytes;           /* memory level before the first op */
};

#define RANK_PEERS_MAX 2 /* PEER_NEXT and PEER_PREVIOUS stage */
enum { PEER_NEXT, PEER_PREVIOUS };

struct sim_rank {
    uint32_t rank_class;
    uint32_t rank;                       /* true rank number (of the representative) */
    uint32_t group[GROUP_SLOT_COUNT];    /* index into groups; UINT32_MAX: none */
    uint32_t peer[RANK_PEERS_MAX];       /* index into ranks; UINT32_MAX: none */
};

struct sim_group {
    uint32_t member_first; /* first of member_count entries in programs.members */
    uint32_t member_count; /* simulated members */
    uint32_t size;         /* true size */
    uint8_t slot;          /* enum group_slot */
    uint8_t stream;        /* the stream on which every member issues it */
};

struct network_run; /* see network.h; NULL: durations are final (closed_form) */

struct programs {
    const struct program *programs;
    uint32_t program_count;
    const struct rank_class *classes;
    uint32_t class_count;
    uint32_t duration_count, delta_count;
    const struct sim_rank *ranks;
    uint32_t rank_count; /* simulated */
    const struct sim_group *groups;
    uint32_t group_count;
    const uint32_t *members; /* rank indices */
    uint32_t member_count;
    const struct program_label *labels;
    uint32_t label_count;
    uint32_t stage_count;
    uint32_t world; /* true ranks */
    /* Compute with PROGRAM_OP_SLOWED takes this many millionths of its time while a
     * PROGRAM_OP_CONTENDS op of the same rank runs; at least 1000000. */
    int64_t contention_compute_ppm;
    /* Relative standard deviation of compute durations in millionths; 0: none. */
    int64_t jitter_ppm;
    uint64_t jitter_seed;
    const struct network_run *network;
};

/* Asserts the invariants above. Linear in the size of the programs. */
void programs_check(const struct programs *programs);

#endif
