/* Shares of a step whose timeline is drawn by hand: each picosecond has one owner. */
#include "assert_close.h"
#include "hand_timeline.h"
#include "metrics/metrics_internal.h"

/* With the durations of perfect balance and the end of the step under it, or NULL and 0. */
static void measure_against(struct hand_timeline *hand, const sim_time *balanced_ps,
                            sim_time balanced_end, sim_time *share)
{
    struct arena *arena = arena_create("test");
    struct sweep sweep;
    struct sweep_slice slice;
    struct time_share sum = {.balanced_ps = balanced_ps};
    sweep_init(&sweep, &hand->programs, &hand->timeline, &hand->observed, arena);
    while (sweep_next(&sweep, &slice)) {
        time_share_add(&sum, &slice);
    }
    time_share_finish(&sum, hand->timeline.end, balanced_end, share);
    arena_destroy(arena);
}

static void measure(struct hand_timeline *hand, sim_time *share)
{
    measure_against(hand, NULL, 0, share);
}

/*
 * compute  |##10##|            20 rc 25 host 30            50 ## 60
 * tp               10..14
 * ep                 12..18
 * dp                                            40..47
 * recv                                  30 posted ..  wire 45..50
 *
 * idle 10-14 tp (before ep), 14-18 ep, 18-20 bubble, 30-40 bubble, 40-47 dp (before pp),
 * 47-50 pp.
 */
static void every_picosecond_is_counted_once(void **state)
{
    (void)state;
    struct hand_timeline hand;
    sim_time share[CAUSE_COUNT];
    hand_init(&hand, 60);
    hand_op(&hand, STREAM_COMPUTE, CAUSE_COMPUTE, 0, 10);
    hand_op(&hand, STREAM_COMPUTE, CAUSE_RECOMPUTE, 20, 25);
    hand_op(&hand, STREAM_COMPUTE, CAUSE_HOST, 25, 30);
    hand_op(&hand, STREAM_COMPUTE, CAUSE_OPTIMIZER, 50, 60);
    hand_op(&hand, STREAM_TP, CAUSE_TP, 10, 14);
    hand_op(&hand, STREAM_EP, CAUSE_EP, 12, 18);
    hand_op(&hand, STREAM_DP, CAUSE_DP, 40, 47)->peer = GROUP_WORLD;
    hand_recv(&hand, 30, 50, 5);
    measure(&hand, share);
    const sim_time expected[CAUSE_COUNT] = {
        [CAUSE_COMPUTE] = 10, [CAUSE_RECOMPUTE] = 5, [CAUSE_TP] = 4,
        [CAUSE_EP] = 4,       [CAUSE_PP] = 3,        [CAUSE_DP] = 7,
        [CAUSE_HOST] = 5,     [CAUSE_BUBBLE] = 12,   [CAUSE_OPTIMIZER] = 10};
    for (unsigned c = 0; c < CAUSE_COUNT; c++) {
        assert_time_equal(share[c], expected[c]);
    }
}

/* A message that came before it was asked for is not waited for at all; one that is posted
 * while it is on the wire is waited for from then on. */
static void a_recv_counts_only_on_the_wire(void **state)
{
    (void)state;
    struct hand_timeline hand;
    sim_time share[CAUSE_COUNT];
    hand_init(&hand, 40);
    hand_op(&hand, STREAM_COMPUTE, CAUSE_COMPUTE, 0, 10);
    hand_op(&hand, STREAM_COMPUTE, CAUSE_COMPUTE, 10, 20);
    hand_recv(&hand, 10, 10, 8);
    hand_recv(&hand, 20, 26, 9);
    hand_recv(&hand, 26, 40, 4);
    measure(&hand, share);
    assert_time_equal(share[CAUSE_COMPUTE], 20);
    assert_time_equal(share[CAUSE_PP], 6 + 4);
    assert_time_equal(share[CAUSE_BUBBLE], 10);
}

/* Arrived at 10, begun at 16: six for slower ranks of the stage. A group that spans stages
 * waits for the pipeline instead. */
static void waiting_for_own_stage_is_imbalance(void **state)
{
    (void)state;
    struct hand_timeline hand;
    sim_time share[CAUSE_COUNT];
    hand_init(&hand, 30);
    hand_op(&hand, STREAM_COMPUTE, CAUSE_COMPUTE, 0, 10);
    struct program_op *ep = hand_op(&hand, STREAM_EP, CAUSE_EP, 16, 20);
    ep->peer = GROUP_EP;
    hand_wait(&hand, ep, STREAM_COMPUTE, 0);
    struct program_op *norm = hand_op(&hand, STREAM_DP, CAUSE_DP, 25, 30);
    norm->peer = GROUP_WORLD;
    hand_wait(&hand, norm, STREAM_EP, 0);
    measure(&hand, share);
    assert_time_equal(share[CAUSE_COMPUTE], 10);
    assert_time_equal(share[CAUSE_IMBALANCE], 6);
    assert_time_equal(share[CAUSE_EP], 4);
    assert_time_equal(share[CAUSE_BUBBLE], 5);
    assert_time_equal(share[CAUSE_DP], 5);
}

/* Communication beside a busy compute stream, and markers, take nothing. */
static void hidden_work_takes_nothing(void **state)
{
    (void)state;
    struct hand_timeline hand;
    sim_time share[CAUSE_COUNT];
    hand_init(&hand, 20);
    hand_op(&hand, STREAM_COMPUTE, CAUSE_COMPUTE, 0, 20);
    hand_op(&hand, STREAM_COMPUTE, CAUSE_OPTIMIZER, 20, 20)->kind = PROGRAM_OP_MARKER;
    hand_op(&hand, STREAM_EP, CAUSE_EP, 3, 17);
    hand_op(&hand, STREAM_COPY_OUT, CAUSE_SWAP, 0, 20);
    measure(&hand, share);
    assert_time_equal(share[CAUSE_COMPUTE], 20);
    assert_time_equal(share[CAUSE_EP] + share[CAUSE_SWAP] + share[CAUSE_BUBBLE], 0);
}

/*
 * A heavy rank: its experts run 30 instead of 20, its exchange 16 instead of 10, and it waits 4
 * for heavier ones; 10 of bubble. What can be seen of imbalance is 10 + 6 + 4 = 20.
 */
static void draw_heavy_rank(struct hand_timeline *hand)
{
    hand_init(hand, 60);
    hand->durations[0][0] = 30;
    hand->durations[0][1] = 16;
    hand_op(hand, STREAM_COMPUTE, CAUSE_COMPUTE, 0, 30);
    struct program_op *ep = hand_op(hand, STREAM_EP, CAUSE_EP, 34, 50);
    ep->peer = GROUP_EP;
    ep->duration = 1;
    hand_wait(hand, ep, STREAM_COMPUTE, 0);
}

/* Balance takes 10 off this step: half of what can be seen; the other half would come back
 * elsewhere, the waits as bubble. */
static void balance_takes_less_than_is_seen(void **state)
{
    (void)state;
    struct hand_timeline hand;
    sim_time share[CAUSE_COUNT];
    const sim_time balanced[] = {20, 10};
    draw_heavy_rank(&hand);
    measure_against(&hand, balanced, 60 - 10, share);
    assert_time_equal(share[CAUSE_IMBALANCE], 10);
    assert_time_equal(share[CAUSE_COMPUTE], 30 - 5);
    assert_time_equal(share[CAUSE_EP], 16 - 3);
    assert_time_equal(share[CAUSE_BUBBLE], 10 + 2);
}

/* It takes 25 off: all that is seen, and 5 of the bubble, for which other stages wait. */
static void balance_takes_from_the_bubble(void **state)
{
    (void)state;
    struct hand_timeline hand;
    sim_time share[CAUSE_COUNT];
    const sim_time balanced[] = {20, 10};
    draw_heavy_rank(&hand);
    measure_against(&hand, balanced, 60 - 25, share);
    assert_time_equal(share[CAUSE_IMBALANCE], 25);
    assert_time_equal(share[CAUSE_COMPUTE], 20);
    assert_time_equal(share[CAUSE_EP], 10);
    assert_time_equal(share[CAUSE_BUBBLE], 5);
}

/* 1F1B with p = 2, m = 3, F = 1, B = 2: both stages are busy for 9 of 12, a quarter idles:
 * (p - 1) / (m + p - 1) = 1/4. */
static void bubble_is_the_idle_share_over_stages(void **state)
{
    (void)state;
    struct hand_timeline hand;
    struct arena *arena = arena_create("test");
    hand_init(&hand, 12);
    hand.results[0].compute_busy = 9;
    hand.results[1].compute_busy = 9;
    assert_close(bubble_measure(&hand.programs, &hand.timeline, arena), 0.25, 1e-15);
    /* A class that stands for three ranks weighs three times as much: (3*9 + 5) / (4*12). */
    hand.classes[0].rank_count = 3;
    hand.results[1].compute_busy = 5;
    assert_close(bubble_measure(&hand.programs, &hand.timeline, arena), 1.0 - 32.0 / 48.0, 1e-15);
    arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_picosecond_is_counted_once),
        cmocka_unit_test(a_recv_counts_only_on_the_wire),
        cmocka_unit_test(waiting_for_own_stage_is_imbalance),
        cmocka_unit_test(hidden_work_takes_nothing),
        cmocka_unit_test(balance_takes_less_than_is_seen),
        cmocka_unit_test(balance_takes_from_the_bubble),
        cmocka_unit_test(bubble_is_the_idle_share_over_stages),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
