/* test_engine.c - hand-drawn timelines: pipeline, rendezvous, messages, ties, no duration. */
#include "stepsim/engine.h"

#include "engine_fixture.h"

#define COLLECTIVE(group_slot, on_stream, takes)                                                   \
    ((struct build_op){.kind = PROGRAM_OP_COLLECTIVE,                                              \
                       .stream = (on_stream),                                                      \
                       .peer = (group_slot),                                                       \
                       .duration = (takes)})
#define COMPUTE(takes) ((struct build_op){.duration = (takes)})
#define SEND(to, ordinal, takes)                                                                   \
    ((struct build_op){.kind = PROGRAM_OP_SEND,                                                    \
                       .stream = STREAM_SEND,                                                      \
                       .peer = (to),                                                               \
                       .message = (ordinal),                                                       \
                       .duration = (takes)})
#define RECV(from, ordinal)                                                                        \
    ((struct build_op){                                                                            \
        .kind = PROGRAM_OP_RECV, .stream = STREAM_RECV, .peer = (from), .message = (ordinal)})

static int set_up(void **state)
{
    *state = arena_create("test");
    return 0;
}

static int tear_down(void **state)
{
    arena_destroy(*state);
    return 0;
}

/* One pass of one microbatch: receive, compute, send. Message ordinals are microbatches. */
static struct op_ref add_pass(struct builder *b, uint32_t stage, uint32_t microbatch, bool forward)
{
    const bool receives = forward ? stage == 1 : stage == 0;
    const struct op_ref compute = builder_op(b, stage, COMPUTE(forward ? 10 : 20));
    if (receives) {
        const uint32_t from = forward ? PEER_PREVIOUS : PEER_NEXT;
        builder_wait(b, stage, compute, builder_op(b, stage, RECV(from, microbatch)));
    } else {
        const uint32_t to = forward ? PEER_NEXT : PEER_PREVIOUS;
        builder_wait(b, stage, builder_op(b, stage, SEND(to, microbatch, 3)), compute);
    }
    return compute;
}

/*
 * 1F1B on two stages with three microbatches; F 10, B 20, a message 3.
 *
 *        0    10   20 23    43 46      66   76 79   89 96   109 112    132
 * s0     [ F0 ][ F1 ]         [   B0   ][ F2 ][   B1   ]        [   B2   ]
 * s1       13 [ F0 ][  B0  ][ F1 ][  B1  ]  [ F2 ][   B2   ]
 *             13   23     43   53      73   79   89      109
 *
 * Messages: f0 10-13, f1 20-23, f2 76-79; b0 43-46, b1 73-76, b2 109-112. At 76 F2 of
 * stage 0 ends and b1 arrives in the same instant.
 */
static void one_f_one_b_on_two_stages(void **state)
{
    struct arena *arena = *state;
    struct builder *b = builder_create(arena);
    for (uint32_t stage = 0; stage < 2; stage++) {
        assert_int_equal(builder_program(b), stage);
    }
    struct op_ref f[2][3], g[2][3];
    static const struct {
        uint32_t stage, microbatch;
        bool forward;
    } order[] = {
        {0, 0, true}, {0, 1, true},  {0, 0, false}, {0, 2, true},  {0, 1, false}, {0, 2, false},
        {1, 0, true}, {1, 0, false}, {1, 1, true},  {1, 1, false}, {1, 2, true},  {1, 2, false},
    };
    for (uint32_t i = 0; i < 12; i++) {
        struct op_ref op = add_pass(b, order[i].stage, order[i].microbatch, order[i].forward);
        (order[i].forward ? f : g)[order[i].stage][order[i].microbatch] = op;
    }
    for (uint32_t stage = 0; stage < 2; stage++) {
        builder_rank(b, builder_class(b, stage, stage, 0));
    }
    builder_link(b, 0, 1);
    const struct timeline *t = run_all(builder_finish(b), arena);

    assert_op_times(t, 0, f[0][0], 0, 10);
    assert_op_times(t, 0, f[0][1], 10, 20);
    assert_op_times(t, 0, g[0][0], 46, 66);
    assert_op_times(t, 0, f[0][2], 66, 76);
    assert_op_times(t, 0, g[0][1], 76, 96);
    assert_op_times(t, 0, g[0][2], 112, 132);
    assert_op_times(t, 1, f[1][0], 13, 23);
    assert_op_times(t, 1, g[1][0], 23, 43);
    assert_op_times(t, 1, f[1][1], 43, 53);
    assert_op_times(t, 1, g[1][1], 53, 73);
    assert_op_times(t, 1, f[1][2], 79, 89);
    assert_op_times(t, 1, g[1][2], 89, 109);
    assert_time_equal(t->end, 132);
    assert_time_equal(t->ranks[0].end, 132);
    assert_time_equal(t->ranks[1].end, 112); /* its last send */
    assert_time_equal(t->ranks[0].compute_busy, 90);
    assert_time_equal(t->ranks[1].compute_busy, 90);
    /* Per stage 6 computes, 3 sends, 3 recvs. */
    assert_int_equal(t->ops, 24);
    assert_int_equal(t->stale_events, 0);
}

/*
 * Three ranks meet after 5, 9 and 7; their durations are 4, 2 and 3. The collective
 * starts at 9, takes the longest of the durations and ends for all at 13.
 */
static void a_collective_starts_with_the_last_and_takes_the_longest(void **state)
{
    struct arena *arena = *state;
    struct builder *b = builder_create(arena);
    const uint32_t p = builder_program(b);
    const struct op_ref before = builder_op(b, p, COMPUTE(0));
    const struct op_ref meet = builder_op(b, p, COLLECTIVE(GROUP_TP, STREAM_TP, 0));
    const struct op_ref after = builder_op(b, p, COMPUTE(1));
    builder_wait(b, p, meet, before);
    builder_wait(b, p, after, meet);
    static const sim_time arrives[3] = {5, 9, 7}, takes[3] = {4, 2, 3};
    uint32_t ranks[3];
    for (uint32_t i = 0; i < 3; i++) {
        const uint32_t class = builder_class(b, p, 0, 0);
        builder_class_duration(b, class, before, arrives[i]);
        builder_class_duration(b, class, meet, takes[i]);
        ranks[i] = builder_rank(b, class);
    }
    builder_group(b, GROUP_TP, STREAM_TP, ranks, 3);
    const struct timeline *t = run_all(builder_finish(b), arena);
    for (uint32_t i = 0; i < 3; i++) {
        assert_op_times(t, i, before, 0, arrives[i]);
        assert_op_times(t, i, meet, 9, 13);
        assert_op_times(t, i, after, 13, 14);
        assert_time_equal(t->ranks[i].compute_busy, arrives[i] + 1);
    }
    /* Three ends of `before`, one of the group, three of `after`. */
    assert_int_equal(t->events, 7);
    assert_int_equal(t->ops, 9);
}

/* Two collectives of one group in a row: the second one meets anew. */
static void a_group_can_meet_again_at_once(void **state)
{
    struct arena *arena = *state;
    struct builder *b = builder_create(arena);
    const uint32_t p = builder_program(b);
    const struct op_ref first = builder_op(b, p, COLLECTIVE(GROUP_EP, STREAM_EP, 5));
    const struct op_ref second = builder_op(b, p, COLLECTIVE(GROUP_EP, STREAM_EP, 6));
    const uint32_t class = builder_class(b, p, 0, 0);
    const uint32_t ranks[2] = {builder_rank(b, class), builder_rank(b, class)};
    builder_group(b, GROUP_EP, STREAM_EP, ranks, 2);
    const struct timeline *t = run_all(builder_finish(b), arena);
    assert_op_times(t, 1, first, 0, 5);
    assert_op_times(t, 1, second, 5, 11);
}

/*
 * Rank 0 sends two messages, ending at 4 and 8. Rank 1 posts the first recv at once
 * (it ends with the arrival, 4), the second after computing until 20 (it ends at once).
 */
static void a_message_may_come_before_or_after_its_recv_is_posted(void **state)
{
    struct arena *arena = *state;
    struct builder *b = builder_create(arena);
    const uint32_t sender = builder_program(b), receiver = builder_program(b);
    const struct op_ref send_0 = builder_op(b, sender, SEND(PEER_NEXT, 0, 4));
    const struct op_ref send_1 = builder_op(b, sender, SEND(PEER_NEXT, 1, 4));
    const struct op_ref busy = builder_op(b, receiver, COMPUTE(20));
    const struct op_ref recv_0 = builder_op(b, receiver, RECV(PEER_PREVIOUS, 0));
    const struct op_ref recv_1 = builder_op(b, receiver, RECV(PEER_PREVIOUS, 1));
    builder_wait(b, receiver, recv_1, busy);
    builder_rank(b, builder_class(b, sender, 0, 0));
    builder_rank(b, builder_class(b, receiver, 1, 0));
    builder_link(b, 0, 1);
    const struct timeline *t = run_all(builder_finish(b), arena);
    assert_op_times(t, 0, send_0, 0, 4);
    assert_op_times(t, 0, send_1, 4, 8);
    assert_op_times(t, 1, recv_0, 0, 4);
    assert_op_times(t, 1, recv_1, 20, 20);
    assert_time_equal(t->end, 20);
}

/* Messages are matched by ordinal, not by order: the one sent second is received first. */
static void messages_may_overtake(void **state)
{
    struct arena *arena = *state;
    struct builder *b = builder_create(arena);
    const uint32_t sender = builder_program(b), receiver = builder_program(b);
    builder_op(b, sender, SEND(PEER_NEXT, 1, 4));
    builder_op(b, sender, SEND(PEER_NEXT, 0, 4));
    const struct op_ref recv_0 = builder_op(b, receiver, RECV(PEER_PREVIOUS, 0));
    const struct op_ref recv_1 = builder_op(b, receiver, RECV(PEER_PREVIOUS, 1));
    builder_rank(b, builder_class(b, sender, 0, 0));
    builder_rank(b, builder_class(b, receiver, 1, 0));
    builder_link(b, 0, 1);
    const struct timeline *t = run_all(builder_finish(b), arena);
    assert_op_times(t, 1, recv_0, 0, 8);
    assert_op_times(t, 1, recv_1, 8, 8);
}

/*
 * Everything at 10 on purpose: rank 0's compute ends, a message reaches it, and the
 * group of both ranks releases it. The op that waits for all three starts at 10 once.
 */
static void finish_arrival_and_release_tie(void **state)
{
    struct arena *arena = *state;
    struct builder *b = builder_create(arena);
    const uint32_t p = builder_program(b), q = builder_program(b);
    const struct op_ref compute = builder_op(b, p, COMPUTE(10));
    const struct op_ref after = builder_op(b, p, COMPUTE(5));
    const struct op_ref recv = builder_op(b, p, RECV(PEER_NEXT, 0));
    const struct op_ref meet = builder_op(b, p, COLLECTIVE(GROUP_TP, STREAM_TP, 10));
    builder_wait(b, p, after, recv);
    builder_wait(b, p, after, meet);
    builder_op(b, q, SEND(PEER_PREVIOUS, 0, 10));
    builder_op(b, q, COLLECTIVE(GROUP_TP, STREAM_TP, 10));
    const uint32_t ranks[2] = {builder_rank(b, builder_class(b, p, 0, 0)),
                               builder_rank(b, builder_class(b, q, 1, 0))};
    builder_link(b, 0, 1);
    builder_group(b, GROUP_TP, STREAM_TP, ranks, 2);
    const struct timeline *t = run_all(builder_finish(b), arena);
    assert_op_times(t, 0, compute, 0, 10);
    assert_op_times(t, 0, recv, 0, 10);
    assert_op_times(t, 0, meet, 0, 10);
    assert_op_times(t, 0, after, 10, 15);
    assert_time_equal(t->ranks[0].compute_busy, 15);
}

/* Two waits, satisfied at 7 and at 9: not before the second. And one picosecond matters. */
static void an_op_waits_for_all_its_waits(void **state)
{
    struct arena *arena = *state;
    struct builder *b = builder_create(arena);
    const uint32_t p = builder_program(b);
    const struct op_ref out = builder_op(
        b, p, (struct build_op){.kind = PROGRAM_OP_COPY, .stream = STREAM_COPY_OUT, .duration = 7});
    const struct op_ref in = builder_op(
        b, p, (struct build_op){.kind = PROGRAM_OP_COPY, .stream = STREAM_COPY_IN, .duration = 9});
    const struct op_ref after = builder_op(b, p, COMPUTE(1));
    builder_wait(b, p, after, out);
    builder_wait(b, p, after, in);
    builder_rank(b, builder_class(b, p, 0, 0));
    const struct timeline *t = run_all(builder_finish(b), arena);
    assert_op_times(t, 0, after, 9, 10);
}

/*
 * A chain through three streams without any duration, behind 5 of compute: all of it
 * happens at 5, and what follows starts at 5.
 */
static void ops_without_duration_pass_in_one_instant(void **state)
{
    struct arena *arena = *state;
    struct builder *b = builder_create(arena);
    const uint32_t p = builder_program(b);
    const struct op_ref start = builder_op(b, p, COMPUTE(5));
    const struct op_ref meet = builder_op(b, p, COLLECTIVE(GROUP_TP, STREAM_TP, 0));
    const struct op_ref marker =
        builder_op(b, p, (struct build_op){.kind = PROGRAM_OP_MARKER, .stream = STREAM_DP});
    const struct op_ref zero = builder_op(b, p, COMPUTE(0));
    const struct op_ref end = builder_op(b, p, COMPUTE(2));
    builder_wait(b, p, meet, start);
    builder_wait(b, p, marker, meet);
    builder_wait(b, p, zero, marker);
    const uint32_t class = builder_class(b, p, 0, 0);
    const uint32_t ranks[2] = {builder_rank(b, class), builder_rank(b, class)};
    builder_group(b, GROUP_TP, STREAM_TP, ranks, 2);
    const struct timeline *t = run_all(builder_finish(b), arena);
    for (uint32_t i = 0; i < 2; i++) {
        assert_op_times(t, i, meet, 5, 5);
        assert_op_times(t, i, marker, 5, 5);
        assert_op_times(t, i, zero, 5, 5);
        assert_op_times(t, i, end, 5, 7);
    }
    assert_time_equal(t->end, 7);
}

/* Nothing at all to do is a step of no length. */
static void empty_programs_end_at_zero(void **state)
{
    struct arena *arena = *state;
    struct builder *b = builder_create(arena);
    const uint32_t p = builder_program(b);
    builder_op(b, p, COMPUTE(0));
    builder_rank(b, builder_class(b, p, 0, 100));
    const uint32_t empty = builder_program(b);
    builder_rank(b, builder_class(b, empty, 1, 200));
    const struct timeline *t = run_all(builder_finish(b), arena);
    assert_time_equal(t->end, 0);
    assert_int_equal(t->ops, 1);
    assert_int_equal(t->ranks[1].peak_bytes, 200);
    assert_true(t->ranks[1].peak_label == UINT32_MAX);
}

/* One rank of each class is observed, the first; or none. */
static void observes_what_was_asked_for(void **state)
{
    struct arena *arena = *state;
    struct builder *b = builder_create(arena);
    const uint32_t p = builder_program(b);
    const struct op_ref op = builder_op(b, p, COMPUTE(3));
    const uint32_t one = builder_class(b, p, 0, 0), two = builder_class(b, p, 0, 0);
    builder_rank(b, two);
    builder_rank(b, one);
    builder_rank(b, two);
    const struct programs *programs = builder_finish(b);
    const char *failure;
    struct engine_options options = {.observe = OBSERVE_CLASSES};
    const struct timeline *t = engine_run(programs, &options, arena, &failure);
    assert_non_null(t);
    assert_int_equal(t->observed_count, 2);
    assert_int_equal(t->observed[0].rank, 0);
    assert_int_equal(t->observed[1].rank, 1);
    assert_time_equal(t->observed[1].end[op.stream][op.index], 3);
    options.observe = OBSERVE_NONE;
    t = engine_run(programs, &options, arena, &failure);
    assert_non_null(t);
    assert_int_equal(t->observed_count, 0);
}

/* Eleven events are needed: a budget of 11 is enough, one of 10 is not. */
static void the_event_budget_is_kept(void **state)
{
    struct arena *arena = *state;
    struct builder *b = builder_create(arena);
    const uint32_t p = builder_program(b);
    for (int i = 0; i < 11; i++) {
        builder_op(b, p, COMPUTE(1));
    }
    builder_rank(b, builder_class(b, p, 0, 0));
    const struct programs *programs = builder_finish(b);
    const struct engine_options enough = {.event_budget = 11};
    const char *failure;
    assert_non_null(engine_run(programs, &enough, arena, &failure));
    const char *text = run_fails(programs, 10, arena);
    assert_non_null(strstr(text, "event budget of 10 passed at 11 ps, 11 ops done"));
    text = run_fails(programs, 5, arena);
    assert_non_null(strstr(text, "event budget of 5 passed at 6 ps, 6 ops done; not done:"));
    assert_non_null(strstr(text, "rank 0 (stage 0): compute op 6 `op`"));
    assert_non_null(strstr(text, " runs"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(one_f_one_b_on_two_stages, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_collective_starts_with_the_last_and_takes_the_longest,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_group_can_meet_again_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_message_may_come_before_or_after_its_recv_is_posted,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(messages_may_overtake, set_up, tear_down),
        cmocka_unit_test_setup_teardown(finish_arrival_and_release_tie, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_op_waits_for_all_its_waits, set_up, tear_down),
        cmocka_unit_test_setup_teardown(ops_without_duration_pass_in_one_instant, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(empty_programs_end_at_zero, set_up, tear_down),
        cmocka_unit_test_setup_teardown(observes_what_was_asked_for, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_event_budget_is_kept, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
