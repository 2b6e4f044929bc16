/* Total and exposed communication of a timeline drawn by hand. */
#include "assert_close.h"
#include "hand_timeline.h"
#include "metrics/metrics_internal.h"

static void measure(struct hand_timeline *hand, struct comm_report *comm)
{
    struct arena *arena = arena_create("test");
    struct sweep sweep;
    struct sweep_slice slice;
    struct overlap overlap = {0};
    sweep_init(&sweep, &hand->programs, &hand->timeline, &hand->observed, arena);
    while (sweep_next(&sweep, &slice)) {
        overlap_add(&overlap, hand->labels, &slice);
    }
    overlap_finish(&overlap, comm);
    arena_destroy(arena);
}

/*
 * compute 0..10, 20..40. ep in the warm-up 5..15 (half hidden), in the steady phase 22..30
 * (hidden), in the cool-down 40..50 (exposed): total 28, exposed 5 + 0 + 10.
 */
static void exposed_share_by_phase(void **state)
{
    (void)state;
    struct hand_timeline hand;
    struct comm_report comm[CAUSE_COUNT] = {0};
    hand_init(&hand, 50);
    hand_op(&hand, STREAM_COMPUTE, CAUSE_COMPUTE, 0, 10);
    hand_op(&hand, STREAM_COMPUTE, CAUSE_COMPUTE, 20, 40);
    hand_op(&hand, STREAM_EP, CAUSE_EP, 5, 15)->label = PHASE_WARMUP;
    hand_op(&hand, STREAM_EP, CAUSE_EP, 22, 30)->label = PHASE_STEADY;
    hand_op(&hand, STREAM_EP, CAUSE_EP, 40, 50)->label = PHASE_COOLDOWN;
    measure(&hand, comm);
    assert_close(comm[CAUSE_EP].total_s, 28e-12, 1e-12);
    assert_close(comm[CAUSE_EP].exposed_s, 15e-12, 1e-12);
    assert_close(comm[CAUSE_EP].exposed_share[PHASE_WARMUP], 0.5, 1e-15);
    assert_within(comm[CAUSE_EP].exposed_share[PHASE_STEADY], 0.0, 0.0);
    assert_close(comm[CAUSE_EP].exposed_share[PHASE_COOLDOWN], 1.0, 1e-15);
    assert_within(comm[CAUSE_EP].exposed_share[PHASE_OPTIMIZER], 0.0, 0.0);
    assert_within(comm[CAUSE_TP].total_s, 0.0, 0.0);
}

/* A send 0..10 and a message on the wire 6..14 are 14 of pipeline traffic, not 18. */
static void two_messages_at_once_count_once(void **state)
{
    (void)state;
    struct hand_timeline hand;
    struct comm_report comm[CAUSE_COUNT] = {0};
    hand_init(&hand, 20);
    hand_op(&hand, STREAM_COMPUTE, CAUSE_COMPUTE, 0, 12);
    hand_op(&hand, STREAM_SEND, CAUSE_PP, 0, 10)->kind = PROGRAM_OP_COPY;
    hand_recv(&hand, 2, 14, 8);
    measure(&hand, comm);
    assert_close(comm[CAUSE_PP].total_s, 14e-12, 1e-12);
    assert_close(comm[CAUSE_PP].exposed_s, 2e-12, 1e-12);
}

/* Communication that blocks the compute stream by sitting on it is exposed in full. */
static void communication_on_the_compute_stream_is_exposed(void **state)
{
    (void)state;
    struct hand_timeline hand;
    struct comm_report comm[CAUSE_COUNT] = {0};
    hand_init(&hand, 20);
    hand_op(&hand, STREAM_COMPUTE, CAUSE_COMPUTE, 0, 15);
    hand_op(&hand, STREAM_COMPUTE, CAUSE_TP, 15, 20);
    measure(&hand, comm);
    assert_close(comm[CAUSE_TP].total_s, 5e-12, 1e-12);
    assert_close(comm[CAUSE_TP].exposed_s, 5e-12, 1e-12);
}

/* tp 10..20 and ep 12..26 while nothing computes: tp claims 10..20, ep what is left, 20..26, so
 * that exposed times are those of time_share. */
static void exposed_time_belongs_to_one_cause(void **state)
{
    (void)state;
    struct hand_timeline hand;
    struct comm_report comm[CAUSE_COUNT] = {0};
    hand_init(&hand, 30);
    hand_op(&hand, STREAM_COMPUTE, CAUSE_COMPUTE, 0, 10);
    hand_op(&hand, STREAM_TP, CAUSE_TP, 10, 20);
    hand_op(&hand, STREAM_EP, CAUSE_EP, 12, 26);
    measure(&hand, comm);
    assert_close(comm[CAUSE_TP].exposed_s, 10e-12, 1e-12);
    assert_close(comm[CAUSE_EP].total_s, 14e-12, 1e-12);
    assert_close(comm[CAUSE_EP].exposed_s, 6e-12, 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exposed_share_by_phase),
        cmocka_unit_test(two_messages_at_once_count_once),
        cmocka_unit_test(exposed_time_belongs_to_one_cause),
        cmocka_unit_test(communication_on_the_compute_stream_is_exposed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
