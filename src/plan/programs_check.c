/*
 * programs_check.c - proves the invariants of programs.h, and names its enumerations.
 *
 * Each numbered invariant of the header has its function. Messages are matched with
 * one sender noted for each recv of each rank, groups by counting collectives per slot.
 */
#include "stepsim/programs.h"

#include <stdlib.h>
#include <string.h>

#include "stepsim/error.h"

const char *stream_name(enum stream stream)
{
    static const char *const names[] = {
        [STREAM_COMPUTE] = "compute", [STREAM_TP] = "tp",
        [STREAM_EP] = "ep",           [STREAM_CP] = "cp",
        [STREAM_SEND] = "send",       [STREAM_RECV] = "recv",
        [STREAM_DP] = "dp",           [STREAM_COPY_OUT] = "copy_out",
        [STREAM_COPY_IN] = "copy_in",
    };
    _Static_assert(sizeof names / sizeof *names == STREAM_COUNT, "a stream has no name");
    ASSERT((unsigned)stream < STREAM_COUNT);
    return names[stream];
}

const char *group_slot_name(enum group_slot slot)
{
    static const char *const names[] = {
        [GROUP_TP] = "tp",       [GROUP_CP] = "cp",       [GROUP_EP] = "ep",
        [GROUP_ETP] = "etp",     [GROUP_DP_CP] = "dp_cp", [GROUP_EDP] = "edp",
        [GROUP_WORLD] = "world", [GROUP_ENDS] = "ends",
    };
    _Static_assert(sizeof names / sizeof *names == GROUP_SLOT_COUNT, "a slot has no name");
    ASSERT((unsigned)slot < GROUP_SLOT_COUNT);
    return names[slot];
}

const char *time_cause_name(enum time_cause cause)
{
    static const char *const names[] = {
        [CAUSE_COMPUTE] = "compute", [CAUSE_RECOMPUTE] = "recompute",
        [CAUSE_TP] = "tp",           [CAUSE_EP] = "ep",
        [CAUSE_CP] = "cp",           [CAUSE_PP] = "pp",
        [CAUSE_DP] = "dp",           [CAUSE_SWAP] = "swap",
        [CAUSE_HOST] = "host",       [CAUSE_IMBALANCE] = "imbalance",
        [CAUSE_BUBBLE] = "bubble",   [CAUSE_OPTIMIZER] = "optimizer",
    };
    _Static_assert(sizeof names / sizeof *names == CAUSE_COUNT, "a cause has no name");
    ASSERT((unsigned)cause < CAUSE_COUNT);
    return names[cause];
}

const char *step_phase_name(enum step_phase phase)
{
    static const char *const names[] = {
        [PHASE_WARMUP] = "warmup",
        [PHASE_STEADY] = "steady",
        [PHASE_COOLDOWN] = "cooldown",
        [PHASE_OPTIMIZER] = "optimizer",
    };
    _Static_assert(sizeof names / sizeof *names == PHASE_COUNT, "a phase has no name");
    ASSERT((unsigned)phase < PHASE_COUNT);
    return names[phase];
}

static void check_op(const struct programs *programs, const struct program *program,
                     uint32_t stream, const struct program_op *op)
{
    ASSERT(op->kind <= PROGRAM_OP_MARKER);
    ASSERT(op->cause < CAUSE_COUNT);
    ASSERT(op->duration < programs->duration_count);
    ASSERT(op->delta_start < programs->delta_count);
    ASSERT(op->delta_end < programs->delta_count);
    ASSERT(op->label < programs->label_count);
    ASSERT(op->wait_count <= program->wait_count);
    ASSERT(op->wait_first <= program->wait_count - op->wait_count);
    for (uint32_t w = 0; w < op->wait_count; w++) { /* invariant 2 */
        const struct program_wait wait = program->waits[op->wait_first + w];
        ASSERT(wait.stream < STREAM_COUNT);
        ASSERT(wait.stream != stream);
        ASSERT(wait.index < program->op_count[wait.stream]);
    }
    if (op->kind == PROGRAM_OP_COLLECTIVE) {
        ASSERT(op->peer < GROUP_SLOT_COUNT);
    }
    if (op->kind == PROGRAM_OP_SEND || op->kind == PROGRAM_OP_RECV) {
        ASSERT(op->peer < RANK_PEERS_MAX);
    }
    if ((op->flags & PROGRAM_OP_SLOWED) != 0) {
        ASSERT(op->kind == PROGRAM_OP_COMPUTE);
        ASSERT(stream == STREAM_COMPUTE);
    }
    if ((op->flags & PROGRAM_OP_CONTENDS) != 0) {
        ASSERT(op->kind != PROGRAM_OP_COMPUTE && op->kind != PROGRAM_OP_MARKER);
    }
}

/* Every recv of a program has its own ordinal, and the ordinals are 0 to message_count - 1. */
static void check_ordinals(const struct program *program, uint8_t *seen)
{
    uint32_t recvs = 0;
    memset(seen, 0, program->message_count);
    for (uint32_t stream = 0; stream < STREAM_COUNT; stream++) {
        for (uint32_t i = 0; i < program->op_count[stream]; i++) {
            const struct program_op *op = &program->ops[stream][i];
            if (op->kind == PROGRAM_OP_RECV) {
                ASSERT(op->message < program->message_count);
                ASSERT(seen[op->message] == 0);
                seen[op->message] = 1;
                recvs++;
            }
        }
    }
    ASSERT(recvs == program->message_count);
}

static void check_programs(const struct programs *programs)
{
    for (uint32_t p = 0; p < programs->program_count; p++) {
        const struct program *program = &programs->programs[p];
        for (uint32_t stream = 0; stream < STREAM_COUNT; stream++) {
            for (uint32_t i = 0; i < program->op_count[stream]; i++) {
                check_op(programs, program, stream, &program->ops[stream][i]);
            }
        }
        uint8_t *seen = malloc((size_t)program->message_count + 1);
        ASSERT(seen != NULL);
        check_ordinals(program, seen);
        free(seen);
    }
}

/* Invariant 1: the tables of a class exist and hold possible values. */
static void check_classes(const struct programs *programs)
{
    for (uint32_t c = 0; c < programs->class_count; c++) {
        const struct rank_class *class = &programs->classes[c];
        ASSERT(class->program < programs->program_count);
        ASSERT(class->stage < programs->stage_count);
        ASSERT(class->rank_count >= 1);
        ASSERT(programs->delta_count >= 1);
        ASSERT(class->deltas_bytes[0] == 0);
        for (uint32_t i = 0; i < programs->duration_count; i++) {
            ASSERT(class->durations_ps[i] >= 0);
        }
    }
}

static const struct program *program_of(const struct programs *programs, uint32_t rank)
{
    const uint32_t class = programs->ranks[rank].rank_class;
    return &programs->programs[programs->classes[class].program];
}

/* The sends of one rank: at its receiver every message notes who sends it. */
static void mark_sends(const struct programs *programs, uint32_t sender,
                       const uint64_t *message_first, uint32_t *sent_by)
{
    const struct program *program = program_of(programs, sender);
    for (uint32_t stream = 0; stream < STREAM_COUNT; stream++) {
        for (uint32_t i = 0; i < program->op_count[stream]; i++) {
            const struct program_op *op = &program->ops[stream][i];
            if (op->kind != PROGRAM_OP_SEND) {
                continue;
            }
            const uint32_t receiver = programs->ranks[sender].peer[op->peer];
            ASSERT(receiver < programs->rank_count);
            ASSERT(op->message < program_of(programs, receiver)->message_count);
            uint32_t *mark = &sent_by[message_first[receiver] + op->message];
            ASSERT(*mark == UINT32_MAX);
            *mark = sender;
        }
    }
}

/* The recvs of one rank: each names the peer that sends it. */
static void check_recvs(const struct programs *programs, uint32_t receiver, const uint32_t *sent_by)
{
    const struct program *program = program_of(programs, receiver);
    for (uint32_t stream = 0; stream < STREAM_COUNT; stream++) {
        for (uint32_t i = 0; i < program->op_count[stream]; i++) {
            const struct program_op *op = &program->ops[stream][i];
            if (op->kind == PROGRAM_OP_RECV) {
                ASSERT(sent_by[op->message] != UINT32_MAX);
                ASSERT(sent_by[op->message] == programs->ranks[receiver].peer[op->peer]);
            }
        }
    }
}

/* Invariant 3: every recv of every rank has exactly one send, of the peer it names. */
static void check_messages(const struct programs *programs)
{
    uint64_t *message_first = calloc((size_t)programs->rank_count + 1, sizeof *message_first);
    ASSERT(message_first != NULL);
    for (uint32_t r = 0; r < programs->rank_count; r++) {
        message_first[r + 1] = message_first[r] + program_of(programs, r)->message_count;
    }
    const uint64_t count = message_first[programs->rank_count];
    uint32_t *sent_by = calloc(count + 1, sizeof *sent_by);
    ASSERT(sent_by != NULL);
    memset(sent_by, 0xFF, (count + 1) * sizeof *sent_by);
    for (uint32_t r = 0; r < programs->rank_count; r++) {
        mark_sends(programs, r, message_first, sent_by);
    }
    for (uint32_t r = 0; r < programs->rank_count; r++) {
        check_recvs(programs, r, &sent_by[message_first[r]]);
    }
    free(sent_by);
    free(message_first);
}

/* What one program does on the group of one slot. */
struct slot_use {
    uint32_t collectives;
    uint32_t stream; /* STREAM_COUNT: none */
};

static void count_collectives(const struct program *program, struct slot_use *uses)
{
    for (uint32_t slot = 0; slot < GROUP_SLOT_COUNT; slot++) {
        uses[slot] = (struct slot_use){.stream = STREAM_COUNT};
    }
    for (uint32_t stream = 0; stream < STREAM_COUNT; stream++) {
        for (uint32_t i = 0; i < program->op_count[stream]; i++) {
            const struct program_op *op = &program->ops[stream][i];
            if (op->kind == PROGRAM_OP_COLLECTIVE) {
                struct slot_use *use = &uses[op->peer];
                ASSERT(use->stream == STREAM_COUNT || use->stream == stream);
                use->stream = stream;
                use->collectives++;
            }
        }
    }
}

static void check_members(const struct programs *programs, const struct slot_use *uses,
                          uint32_t group_index)
{
    const struct sim_group *group = &programs->groups[group_index];
    ASSERT(group->slot < GROUP_SLOT_COUNT);
    ASSERT(group->stream < STREAM_COUNT);
    ASSERT(group->member_count >= 1);
    ASSERT(group->size >= group->member_count);
    ASSERT(group->member_first <= programs->member_count);
    ASSERT(group->member_count <= programs->member_count - group->member_first);
    const uint32_t *members = &programs->members[group->member_first];
    uint32_t collectives = 0;
    for (uint32_t i = 0; i < group->member_count; i++) {
        ASSERT(members[i] < programs->rank_count);
        const struct sim_rank *rank = &programs->ranks[members[i]];
        ASSERT(rank->group[group->slot] == group_index);
        const uint32_t program = programs->classes[rank->rank_class].program;
        const struct slot_use *use = &uses[program * GROUP_SLOT_COUNT + group->slot];
        ASSERT(use->stream == STREAM_COUNT || use->stream == group->stream);
        collectives = i == 0 ? use->collectives : collectives;
        ASSERT(use->collectives == collectives);
    }
}

/* Invariant 4: members of a group issue as many collectives, each on the group's stream. */
static void check_groups(const struct programs *programs)
{
    struct slot_use *uses =
        calloc((size_t)programs->program_count * GROUP_SLOT_COUNT + 1, sizeof *uses);
    ASSERT(uses != NULL);
    for (uint32_t p = 0; p < programs->program_count; p++) {
        count_collectives(&programs->programs[p], &uses[p * GROUP_SLOT_COUNT]);
    }
    uint64_t memberships = 0;
    for (uint32_t g = 0; g < programs->group_count; g++) {
        check_members(programs, uses, g);
        memberships += programs->groups[g].member_count;
    }
    /* A rank that names a group is one of its members, and is so once. */
    for (uint32_t r = 0; r < programs->rank_count; r++) {
        const struct sim_rank *rank = &programs->ranks[r];
        const uint32_t program = programs->classes[rank->rank_class].program;
        for (uint32_t slot = 0; slot < GROUP_SLOT_COUNT; slot++) {
            if (rank->group[slot] == UINT32_MAX) {
                ASSERT(uses[program * GROUP_SLOT_COUNT + slot].collectives == 0);
            } else {
                ASSERT(rank->group[slot] < programs->group_count);
                ASSERT(memberships > 0);
                memberships--;
            }
        }
    }
    ASSERT(memberships == 0);
    free(uses);
}

void programs_check(const struct programs *programs)
{
    ASSERT(programs->contention_compute_ppm >= 1000000);
    ASSERT(programs->jitter_ppm >= 0);
    for (uint32_t r = 0; r < programs->rank_count; r++) {
        ASSERT(programs->ranks[r].rank_class < programs->class_count);
        ASSERT(programs->ranks[r].rank < programs->world);
    }
    check_classes(programs);
    check_programs(programs);
    check_messages(programs);
    check_groups(programs);
}
