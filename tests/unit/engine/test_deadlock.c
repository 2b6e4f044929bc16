/* test_deadlock.c - a step that cannot end says who waits for what. */
#include "engine_fixture.h"

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

static void assert_says(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) {
        print_error("missing: %s\nin: %s\n", part, text);
        fail();
    }
}

/* Both ranks receive before they send: neither message is ever sent. */
static void two_ranks_receive_before_they_send(void **state)
{
    struct arena *arena = *state;
    struct builder *b = builder_create(arena);
    for (uint32_t rank = 0; rank < 2; rank++) {
        const uint32_t p = builder_program(b), other = rank == 0 ? PEER_NEXT : PEER_PREVIOUS;
        builder_op(b, p, (struct build_op){.duration = 5, .name = "warm"});
        const struct op_ref recv = builder_op(b, p,
                                              (struct build_op){.kind = PROGRAM_OP_RECV,
                                                                .stream = STREAM_RECV,
                                                                .peer = other,
                                                                .name = "take",
                                                                .pass = 'F',
                                                                .microbatch = 3,
                                                                .layer = -1});
        const struct op_ref send = builder_op(b, p,
                                              (struct build_op){.kind = PROGRAM_OP_SEND,
                                                                .stream = STREAM_SEND,
                                                                .peer = other,
                                                                .name = "give",
                                                                .pass = 'B',
                                                                .microbatch = -1,
                                                                .layer = 17});
        builder_wait(b, p, send, recv);
        builder_rank(b, builder_class(b, p, rank, 0));
    }
    builder_link(b, 0, 1);
    const char *text = run_fails(builder_finish(b), 0, arena);
    assert_says(text, "deadlock at 5 ps, 2 ops done; not done:");
    assert_says(text,
                "\n  rank 0 (stage 0): recv op 0 `take` (pass F, microbatch 3, chunk 0) waits "
                "for message 0 from rank 1 (stage 1), whose send op 0 `give` (pass B, layer "
                "17, chunk 0) has not ended");
    assert_says(text,
                "\n  rank 1 (stage 1): send op 0 `give` (pass B, layer 17, chunk 0) waits for "
                "recv op 0 `take` (pass F, microbatch 3, chunk 0)");
    assert_null(strstr(text, "more"));
    /* What waits for other ranks comes first. */
    assert_true(strstr(text, "rank 1 (stage 1): recv") < strstr(text, "rank 0 (stage 0): send"));
}

/* Two groups, each rank begins with another one. */
static void groups_in_different_orders(void **state)
{
    struct arena *arena = *state;
    struct builder *b = builder_create(arena);
    uint32_t ranks[2];
    for (uint32_t rank = 0; rank < 2; rank++) {
        const uint32_t p = builder_program(b);
        const struct op_ref tp = builder_op(b, p,
                                            (struct build_op){.kind = PROGRAM_OP_COLLECTIVE,
                                                              .stream = STREAM_TP,
                                                              .peer = GROUP_TP,
                                                              .name = "reduce"});
        const struct op_ref ep = builder_op(b, p,
                                            (struct build_op){.kind = PROGRAM_OP_COLLECTIVE,
                                                              .stream = STREAM_EP,
                                                              .peer = GROUP_EP,
                                                              .name = "dispatch"});
        builder_wait(b, p, rank == 0 ? tp : ep, rank == 0 ? ep : tp);
        ranks[rank] = builder_rank(b, builder_class(b, p, 4, 0));
    }
    builder_group(b, GROUP_TP, STREAM_TP, ranks, 2);
    builder_group(b, GROUP_EP, STREAM_EP, ranks, 2);
    const char *text = run_fails(builder_finish(b), 0, arena);
    assert_says(text, "rank 0 (stage 4): ep op 0 `dispatch` (microbatch 0, layer 0, chunk 0) waits "
                      "for group 1 (ep): 1 of 2 members have arrived; first missing is rank 1 "
                      "(stage 4), at ep op 0 `dispatch`");
    assert_says(text, "rank 1 (stage 4): tp op 0 `reduce`");
}

/* A member whose stream has already ended never comes; the check would refuse it. */
static void a_member_that_has_ended(void **state)
{
    struct arena *arena = *state;
    struct builder *b = builder_create(arena);
    uint32_t ranks[2];
    for (uint32_t rank = 0; rank < 2; rank++) {
        const uint32_t p = builder_program(b);
        for (uint32_t i = 0; i <= rank; i++) {
            builder_op(b, p,
                       (struct build_op){
                           .kind = PROGRAM_OP_COLLECTIVE, .stream = STREAM_TP, .duration = 1});
        }
        ranks[rank] = builder_rank(b, builder_class(b, p, 0, 0));
    }
    builder_group(b, GROUP_TP, STREAM_TP, ranks, 2);
    const char *text = run_fails(builder_finish_unchecked(b), 0, arena);
    assert_says(text, "1 of 2 members have arrived; first missing is rank 0 (stage 0), whose tp "
                      "stream has ended");
}

/* Two streams of one rank wait for each other: thirteen ranks, ten ops named, 16 counted. */
static void a_cycle_of_streams_names_ten_and_counts_the_rest(void **state)
{
    struct arena *arena = *state;
    struct builder *b = builder_create(arena);
    const uint32_t p = builder_program(b);
    const struct op_ref compute = builder_op(b, p, (struct build_op){.name = "chicken"});
    const struct op_ref copy = builder_op(
        b, p, (struct build_op){.kind = PROGRAM_OP_COPY, .stream = STREAM_COPY_OUT, .name = "egg"});
    builder_wait(b, p, compute, copy);
    builder_wait(b, p, copy, compute);
    const uint32_t class = builder_class(b, p, 0, 0);
    for (int i = 0; i < 13; i++) {
        builder_rank(b, class);
    }
    const char *text = run_fails(builder_finish(b), 0, arena);
    assert_says(text,
                "compute op 0 `chicken` (microbatch 0, layer 0, chunk 0) waits for copy_out op "
                "0 `egg`");
    assert_says(text, "\n  rank 4 (stage 0): copy_out op 0 `egg`");
    assert_null(strstr(text, "rank 5 "));
    assert_says(text, "\n  and 16 more");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(two_ranks_receive_before_they_send, set_up, tear_down),
        cmocka_unit_test_setup_teardown(groups_in_different_orders, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_member_that_has_ended, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_cycle_of_streams_names_ten_and_counts_the_rest, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
