/*
 * test_engine_traps.c - mistakes other simulators made, one test for each.
 *
 * Work is counted in events and ops, which no machine changes, never in wall time.
 */
#include "engine_fixture.h"
#include "step_programs.h"

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

/*
 * A clock that is raised by a fixed step makes a long simulation slow. The same programs
 * with durations of picoseconds and of hours handle the same events.
 */
static void run_time_does_not_depend_on_simulated_time(void **state)
{
    struct arena *arena = *state;
    uint64_t events[2];
    const sim_time scales[2] = {1, INT64_C(1000000000000)};
    for (int i = 0; i < 2; i++) {
        struct builder *b = builder_create(arena);
        const uint32_t p = builder_program(b);
        for (sim_time op = 1; op <= 500; op++) {
            builder_op(b, p, (struct build_op){.duration = op * scales[i]});
        }
        builder_rank(b, builder_class(b, p, 0, 0));
        const struct timeline *t = run_all(builder_finish(b), arena);
        assert_time_equal(t->end, 125250 * scales[i]); /* 500 * 501 / 2: 125,250 s, 35 hours */
        events[i] = t->events;
    }
    assert_int_equal(events[0], 500);
    assert_int_equal(events[1], 500);
}

/*
 * A busy port that is asked again and again makes work quadratic in waiting messages. Here
 * all sends are posted at once behind one stream: one event a message, no more.
 */
static void events_are_linear_in_messages(void **state)
{
    for (uint32_t messages = 100; messages <= 6400; messages *= 2) {
        struct arena *arena = *state;
        struct builder *b = builder_create(arena);
        const uint32_t p = builder_program(b), q = builder_program(b);
        for (uint32_t m = 0; m < messages; m++) {
            builder_op(b, p,
                       (struct build_op){.kind = PROGRAM_OP_SEND,
                                         .stream = STREAM_SEND,
                                         .peer = PEER_NEXT,
                                         .message = m,
                                         .duration = 1});
            builder_op(b, q,
                       (struct build_op){.kind = PROGRAM_OP_RECV,
                                         .stream = STREAM_RECV,
                                         .peer = PEER_PREVIOUS,
                                         .message = m});
        }
        builder_rank(b, builder_class(b, p, 0, 0));
        builder_rank(b, builder_class(b, q, 1, 0));
        builder_link(b, 0, 1);
        const struct timeline *t = run_all(builder_finish(b), arena);
        assert_time_equal(t->end, messages);
        assert_int_equal(t->events, messages);
        assert_int_equal(t->ops, 2 * messages);
        arena_reset(arena);
    }
}

/* A collective is one event, however many members it has. */
static void a_group_is_one_event(void **state)
{
    for (uint32_t tp = 2; tp <= 64; tp *= 2) {
        const struct step_shape shape = {
            .pp = 1, .dp = 1, .tp = tp, .ep = tp, .microbatches = 3, .layers = 1};
        const struct timeline *t = run_all(step_programs_build(&shape, *state), *state);
        /* 3 microbatches, forward and backward: 2 computes a rank, 3 collectives a group. */
        assert_int_equal(t->events, 6 * (2 * tp + 3));
        assert_int_equal(t->ops, 6 * 5 * tp);
    }
}

/* Slow-down re-times at most twice for each contending op: events stay linear in ops. */
static void retiming_is_linear_in_windows(void **state)
{
    struct arena *arena = *state;
    struct builder *b = builder_create(arena);
    builder_contention(b, 1150000);
    const uint32_t p = builder_program(b);
    enum { WINDOWS = 5000 };
    for (int i = 0; i < WINDOWS; i++) {
        builder_op(
            b, p,
            (struct build_op){.kind = PROGRAM_OP_COPY, .stream = STREAM_COPY_IN, .duration = 20});
        builder_op(b, p,
                   (struct build_op){.kind = PROGRAM_OP_COPY,
                                     .stream = STREAM_COPY_IN,
                                     .duration = 23,
                                     .flags = PROGRAM_OP_CONTENDS});
    }
    const struct op_ref compute =
        builder_op(b, p, (struct build_op){.duration = 40 * WINDOWS, .flags = PROGRAM_OP_SLOWED});
    builder_rank(b, builder_class(b, p, 0, 0));
    const struct timeline *t = run_all(builder_finish(b), arena);
    assert_op_times(t, 0, compute, 0, 43 * WINDOWS);
    assert_true(t->stale_events <= 2 * WINDOWS);
}

/* A step that hangs is an error that names rank, op and what it waits for. */
static void a_deadlock_is_an_error_with_names(void **state)
{
    struct arena *arena = *state;
    struct builder *b = builder_create(arena);
    const uint32_t p = builder_program(b);
    builder_op(b, p,
               (struct build_op){.kind = PROGRAM_OP_RECV,
                                 .stream = STREAM_RECV,
                                 .peer = PEER_NEXT,
                                 .name = "activation"});
    builder_rank(b, builder_class(b, p, 0, 0));
    const char *text = run_fails(builder_finish_unchecked(b), 0, arena);
    assert_non_null(strstr(text, "deadlock at 0 ps"));
    assert_non_null(strstr(text, "rank 0 (stage 0): recv op 0 `activation`"));
    assert_non_null(strstr(text, "waits for message 0 from nobody: no peer sends it"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(run_time_does_not_depend_on_simulated_time, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(events_are_linear_in_messages, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_group_is_one_event, set_up, tear_down),
        cmocka_unit_test_setup_teardown(retiming_is_linear_in_windows, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_deadlock_is_an_error_with_names, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
