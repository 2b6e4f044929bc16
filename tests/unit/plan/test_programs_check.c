/* test_programs_check.c - each invariant, broken on purpose, is refused; names are complete. */
#include "assert_aborts.h"
#include "program_builder.h"

#include <string.h>

#define COLLECTIVE(group_slot, on_stream)                                                          \
    ((struct build_op){.kind = PROGRAM_OP_COLLECTIVE, .stream = (on_stream), .peer = (group_slot)})
#define SEND(to, ordinal)                                                                          \
    ((struct build_op){                                                                            \
        .kind = PROGRAM_OP_SEND, .stream = STREAM_SEND, .peer = (to), .message = (ordinal)})
#define RECV(from, ordinal)                                                                        \
    ((struct build_op){                                                                            \
        .kind = PROGRAM_OP_RECV, .stream = STREAM_RECV, .peer = (from), .message = (ordinal)})

/*
 * Two stages of one rank: stage 0 computes, sends and meets, stage 1 receives and meets.
 * A test adds what breaks them before it calls check().
 */
struct pair {
    struct arena *arena;
    struct builder *b;
    struct op_ref compute;
    uint32_t ranks[2];
};

static struct pair make_pair(void)
{
    struct pair pair = {.arena = arena_create("test")};
    pair.b = builder_create(pair.arena);
    builder_program(pair.b);
    builder_program(pair.b);
    pair.compute = builder_op(pair.b, 0, (struct build_op){.duration = 1});
    builder_wait(pair.b, 0, builder_op(pair.b, 0, SEND(PEER_NEXT, 0)), pair.compute);
    builder_op(pair.b, 1, RECV(PEER_PREVIOUS, 0));
    for (uint32_t p = 0; p < 2; p++) {
        builder_op(pair.b, p, COLLECTIVE(GROUP_WORLD, STREAM_DP));
        pair.ranks[p] = builder_rank(pair.b, builder_class(pair.b, p, p, 0));
    }
    builder_link(pair.b, 0, 1);
    return pair;
}

static void check(struct pair *pair)
{
    builder_group(pair->b, GROUP_WORLD, STREAM_DP, pair->ranks, 2);
    builder_finish(pair->b);
    arena_destroy(pair->arena);
}

static void good_programs_pass(void **state)
{
    (void)state;
    struct pair pair = make_pair();
    check(&pair);
}

/* Invariant 1 */
static void negative_duration(void)
{
    struct pair pair = make_pair();
    builder_class_duration(pair.b, 0, pair.compute, -1);
    check(&pair);
}

static void factor_below_one(void)
{
    struct pair pair = make_pair();
    builder_contention(pair.b, 999999);
    check(&pair);
}

static void class_without_program(void)
{
    struct pair pair = make_pair();
    builder_class(pair.b, 7, 0, 0);
    check(&pair);
}

static void class_without_rank(void)
{
    struct pair pair = make_pair();
    builder_class(pair.b, 0, 0, 0);
    check(&pair);
}

static void slowed_copy(void)
{
    struct pair pair = make_pair();
    builder_op(pair.b, 0,
               (struct build_op){
                   .kind = PROGRAM_OP_COPY, .stream = STREAM_COPY_IN, .flags = PROGRAM_OP_SLOWED});
    check(&pair);
}

static void contending_compute(void)
{
    struct pair pair = make_pair();
    builder_op(pair.b, 0, (struct build_op){.flags = PROGRAM_OP_CONTENDS});
    check(&pair);
}

static void slowed_compute_elsewhere(void)
{
    struct pair pair = make_pair();
    builder_op(pair.b, 0, (struct build_op){.stream = STREAM_TP, .flags = PROGRAM_OP_SLOWED});
    check(&pair);
}

static void slowed_marker(void)
{
    struct pair pair = make_pair();
    builder_op(pair.b, 0, (struct build_op){.kind = PROGRAM_OP_MARKER, .flags = PROGRAM_OP_SLOWED});
    check(&pair);
}

static void negative_jitter(void)
{
    struct pair pair = make_pair();
    builder_jitter(pair.b, -1, 0);
    check(&pair);
}

/* Invariant 2 */
static void wait_on_its_own_stream(void)
{
    struct pair pair = make_pair();
    builder_wait(pair.b, 0, builder_op(pair.b, 0, (struct build_op){0}), pair.compute);
    check(&pair);
}

static void wait_for_an_op_that_is_not_there(void)
{
    struct pair pair = make_pair();
    const struct op_ref beyond = {.stream = STREAM_SEND, .index = 1};
    builder_wait(pair.b, 0, builder_op(pair.b, 0, (struct build_op){0}), beyond);
    check(&pair);
}

static void wait_on_a_stream_that_is_not_there(void)
{
    struct pair pair = make_pair();
    const struct op_ref nowhere = {.stream = STREAM_COUNT, .index = 0};
    builder_wait(pair.b, 0, builder_op(pair.b, 0, (struct build_op){0}), nowhere);
    check(&pair);
}

/* Invariant 3 */
static void recv_without_send(void)
{
    struct pair pair = make_pair();
    builder_op(pair.b, 1, RECV(PEER_PREVIOUS, 1));
    check(&pair);
}

static void send_without_recv(void)
{
    struct pair pair = make_pair();
    builder_op(pair.b, 0, SEND(PEER_NEXT, 1));
    check(&pair);
}

static void message_sent_twice(void)
{
    struct pair pair = make_pair();
    builder_op(pair.b, 0, SEND(PEER_NEXT, 0));
    check(&pair);
}

static void message_received_twice(void)
{
    struct pair pair = make_pair();
    builder_op(pair.b, 0, SEND(PEER_NEXT, 1));
    builder_op(pair.b, 1, RECV(PEER_PREVIOUS, 0));
    check(&pair);
}

static void send_to_nobody(void)
{
    struct pair pair = make_pair();
    builder_op(pair.b, 1, SEND(PEER_NEXT, 0));
    check(&pair);
}

static void recv_from_nobody(void)
{
    struct pair pair = make_pair();
    builder_op(pair.b, 1, RECV(PEER_NEXT, 1));
    check(&pair);
}

static void recv_ordinal_out_of_range(void)
{
    struct pair pair = make_pair();
    builder_op(pair.b, 0, SEND(PEER_NEXT, 1));
    builder_op(pair.b, 1, RECV(PEER_PREVIOUS, 2));
    check(&pair);
}

static void recv_from_the_wrong_peer(void)
{
    struct pair pair = make_pair();
    builder_op(pair.b, 0, SEND(PEER_NEXT, 1));
    builder_op(pair.b, 1, RECV(PEER_NEXT, 1));
    check(&pair);
}

/* Invariant 4 */
static void one_collective_too_many(void)
{
    struct pair pair = make_pair();
    builder_op(pair.b, 1, COLLECTIVE(GROUP_WORLD, STREAM_DP));
    check(&pair);
}

static void slot_on_two_streams(void)
{
    struct pair pair = make_pair();
    builder_op(pair.b, 0, COLLECTIVE(GROUP_WORLD, STREAM_TP));
    builder_op(pair.b, 1, COLLECTIVE(GROUP_WORLD, STREAM_DP));
    check(&pair);
}

static void group_on_another_stream(void)
{
    struct pair pair = make_pair();
    builder_group(pair.b, GROUP_WORLD, STREAM_TP, pair.ranks, 2);
    builder_finish(pair.b);
}

static void collective_without_group(void)
{
    struct pair pair = make_pair();
    builder_op(pair.b, 0, COLLECTIVE(GROUP_TP, STREAM_TP));
    check(&pair);
}

static void member_named_twice(void)
{
    struct pair pair = make_pair();
    const uint32_t twice[3] = {0, 1, 1};
    builder_group(pair.b, GROUP_WORLD, STREAM_DP, twice, 3);
    builder_finish(pair.b);
}

static void rank_in_two_groups_of_a_slot(void)
{
    struct pair pair = make_pair();
    builder_group(pair.b, GROUP_WORLD, STREAM_DP, pair.ranks, 2);
    builder_group(pair.b, GROUP_WORLD, STREAM_DP, pair.ranks, 1);
    builder_finish(pair.b);
}

static void broken_programs_are_refused(void **state)
{
    (void)state;
    static void (*const calls[])(void) = {
        negative_duration,
        factor_below_one,
        class_without_program,
        class_without_rank,
        slowed_copy,
        slowed_compute_elsewhere,
        slowed_marker,
        negative_jitter,
        recv_from_nobody,
        recv_ordinal_out_of_range,

        contending_compute,
        wait_on_its_own_stream,
        wait_for_an_op_that_is_not_there,
        wait_on_a_stream_that_is_not_there,
        recv_without_send,
        send_without_recv,
        message_sent_twice,
        message_received_twice,
        send_to_nobody,
        recv_from_the_wrong_peer,
        one_collective_too_many,
        slot_on_two_streams,
        group_on_another_stream,
        collective_without_group,
        member_named_twice,
        rank_in_two_groups_of_a_slot,
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        if (!call_aborts(calls[i])) {
            print_error("number %zu of the broken programs passes\n", i);
            fail();
        }
    }
}

/*
 * What no builder writes: numbers out of range, in programs that were fine. The structs
 * were allocated writable by the builder, so casting const away is legal.
 */
enum damage {
    DAMAGE_NONE,
    KIND_UNKNOWN,
    CAUSE_UNKNOWN,
    DURATION_OUT_OF_RANGE,
    DELTA_START_OUT_OF_RANGE,
    DELTA_END_OUT_OF_RANGE,
    LABEL_OUT_OF_RANGE,
    MORE_WAITS_THAN_THERE_ARE,
    WAITS_OUT_OF_RANGE,
    SLOT_UNKNOWN,
    PEER_UNKNOWN,
    MESSAGES_MISCOUNTED,
    DAMAGE_OF_OPS_END,
    PROGRAM_OUT_OF_RANGE = DAMAGE_OF_OPS_END,
    STAGE_OUT_OF_RANGE,
    NO_DELTAS,
    FIRST_DELTA_NOT_ZERO,
    DAMAGE_OF_CLASSES_END,
    GROUP_SLOT_UNKNOWN = DAMAGE_OF_CLASSES_END,
    GROUP_STREAM_UNKNOWN,
    GROUP_EMPTY,
    GROUP_SMALLER_THAN_ITS_MEMBERS,
    MEMBERS_START_OUT_OF_RANGE,
    MEMBERS_END_OUT_OF_RANGE,
    MEMBER_OUT_OF_RANGE,
    MEMBER_OF_ANOTHER_GROUP,
    DAMAGE_OF_GROUPS_END,
    RANK_GROUP_OUT_OF_RANGE = DAMAGE_OF_GROUPS_END,
    RANK_CLASS_OUT_OF_RANGE,
    TRUE_RANK_OUT_OF_RANGE,
    DAMAGE_COUNT
};

static void damage_op(struct programs *programs, enum damage damage)
{
    struct program *program = (struct program *)&programs->programs[0];
    struct program_op *compute = (struct program_op *)program->ops[STREAM_COMPUTE];
    struct program_op *send = (struct program_op *)program->ops[STREAM_SEND];
    struct program_op *meet = (struct program_op *)program->ops[STREAM_DP];
    switch (damage) {
    case KIND_UNKNOWN:
        compute->kind = PROGRAM_OP_MARKER + 1;
        break;
    case CAUSE_UNKNOWN:
        compute->cause = CAUSE_COUNT;
        break;
    case DURATION_OUT_OF_RANGE:
        compute->duration = programs->duration_count;
        break;
    case DELTA_START_OUT_OF_RANGE:
        compute->delta_start = programs->delta_count;
        break;
    case DELTA_END_OUT_OF_RANGE:
        compute->delta_end = programs->delta_count;
        break;
    case LABEL_OUT_OF_RANGE:
        compute->label = programs->label_count;
        break;
    case MORE_WAITS_THAN_THERE_ARE:
        send->wait_first = 0;
        send->wait_count = 2;
        break;
    case WAITS_OUT_OF_RANGE:
        send->wait_first = 1;
        break;
    case SLOT_UNKNOWN:
        meet->peer = GROUP_SLOT_COUNT;
        break;
    case PEER_UNKNOWN:
        send->peer = RANK_PEERS_MAX;
        break;
    default:
        ((struct program *)&programs->programs[1])->message_count = 2;
        break;
    }
}

static void damage_class(struct programs *programs, enum damage damage)
{
    struct rank_class *class = (struct rank_class *)&programs->classes[0];
    switch (damage) {
    case PROGRAM_OUT_OF_RANGE:
        class->program = programs->program_count;
        break;
    case STAGE_OUT_OF_RANGE:
        class->stage = programs->stage_count;
        break;
    case NO_DELTAS:
        programs->delta_count = 0;
        break;
    default:
        *(int64_t *)&class->deltas_bytes[0] = 1;
        break;
    }
}

static void damage_group(struct programs *programs, enum damage damage)
{
    struct sim_group *group = (struct sim_group *)&programs->groups[0];
    switch (damage) {
    case GROUP_SLOT_UNKNOWN:
        group->slot = GROUP_SLOT_COUNT;
        break;
    case GROUP_STREAM_UNKNOWN:
        group->stream = STREAM_COUNT;
        break;
    case GROUP_EMPTY:
        group->member_count = 0;
        break;
    case GROUP_SMALLER_THAN_ITS_MEMBERS:
        group->size = 1;
        break;
    case MEMBERS_START_OUT_OF_RANGE:
        group->member_first = programs->member_count + 1;
        break;
    case MEMBERS_END_OUT_OF_RANGE:
        group->member_count = programs->member_count + 1;
        group->size = group->member_count;
        break;
    case MEMBER_OUT_OF_RANGE:
        *(uint32_t *)&programs->members[0] = programs->rank_count;
        break;
    default:
        ((struct sim_rank *)programs->ranks)[0].group[GROUP_WORLD] = 1;
        break;
    }
}

static void damage_rank(struct programs *programs, enum damage damage)
{
    struct sim_rank *rank = (struct sim_rank *)&programs->ranks[1];
    switch (damage) {
    case RANK_GROUP_OUT_OF_RANGE:
        rank->group[GROUP_TP] = programs->group_count;
        break;
    case RANK_CLASS_OUT_OF_RANGE:
        rank->rank_class = programs->class_count;
        break;
    default:
        rank->rank = programs->world;
        break;
    }
}

static enum damage chosen_damage;

static void check_damaged(void)
{
    struct pair pair = make_pair();
    builder_group(pair.b, GROUP_WORLD, STREAM_DP, pair.ranks, 2);
    struct programs programs = *builder_finish_unchecked(pair.b);
    if (chosen_damage == DAMAGE_NONE) {
        programs_check(&programs);
        return;
    }
    if (chosen_damage < DAMAGE_OF_OPS_END) {
        damage_op(&programs, chosen_damage);
    } else if (chosen_damage < DAMAGE_OF_CLASSES_END) {
        damage_class(&programs, chosen_damage);
    } else if (chosen_damage < DAMAGE_OF_GROUPS_END) {
        damage_group(&programs, chosen_damage);
    } else {
        damage_rank(&programs, chosen_damage);
    }
    programs_check(&programs);
}

static void damaged_programs_are_refused(void **state)
{
    (void)state;
    for (int damage = DAMAGE_NONE; damage < DAMAGE_COUNT; damage++) {
        chosen_damage = (enum damage)damage;
        if (call_aborts(check_damaged) != (damage != DAMAGE_NONE)) {
            print_error("damage number %d is not seen\n", damage);
            fail();
        }
    }
}

/* Names are distinct and spelled as in the reference. */
static void every_value_has_a_name(void **state)
{
    (void)state;
    for (int i = 0; i < STREAM_COUNT; i++) {
        for (int j = 0; j < i; j++) {
            assert_string_not_equal(stream_name((enum stream)i), stream_name((enum stream)j));
        }
    }
    for (int i = 0; i < GROUP_SLOT_COUNT; i++) {
        for (int j = 0; j < i; j++) {
            assert_string_not_equal(group_slot_name((enum group_slot)i),
                                    group_slot_name((enum group_slot)j));
        }
    }
    /* The keys of time_share in the JSON output. */
    static const char *const causes[] = {"compute", "recompute", "tp",     "ep",
                                         "cp",      "pp",        "dp",     "swap",
                                         "host",    "imbalance", "bubble", "optimizer"};
    assert_int_equal(CAUSE_COUNT, sizeof causes / sizeof *causes);
    for (int i = 0; i < CAUSE_COUNT; i++) {
        assert_string_equal(time_cause_name((enum time_cause)i), causes[i]);
    }
    assert_string_equal(step_phase_name(PHASE_WARMUP), "warmup");
    assert_string_equal(step_phase_name(PHASE_STEADY), "steady");
    assert_string_equal(step_phase_name(PHASE_COOLDOWN), "cooldown");
    assert_string_equal(step_phase_name(PHASE_OPTIMIZER), "optimizer");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_programs_pass),
        cmocka_unit_test(broken_programs_are_refused),
        cmocka_unit_test(damaged_programs_are_refused),
        cmocka_unit_test(every_value_has_a_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
