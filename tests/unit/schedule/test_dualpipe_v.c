/* test_dualpipe_v.c - DualPipeV: makespan drawn by hand, published bubbles, refusals. */
#include "schedule_case.h"

/*
 * pp 2, 4 microbatches, F = B = W = 1, a pair takes D = 3 (it saves nothing). Small letters
 * are chunk 1, on the way back; a pair shows its forward, then its backward, then "--".
 *
 * Stage 0 (one stage from the turn):      Stage 1 (the turn):
 *   1  F0 F1                                2  F0 f0 F1 f1
 *   2  F2 f0                                4  F2, b0 apart (not a pair), f2|B0
 *   3  b0 w0 f1                                F3|b1, f3|B1
 *   4  F3|b1, f2|B0                         6  b2, B2 full, b3, B3 split
 *   5  b2, f3|B1                            8  w3 W3
 *   6  b3 full, B2 split
 *   7  W2 B3
 *   8  W3
 *
 * Slot by slot: f0 returns to stage 0 at 3, so b0 reaches stage 1 at 5, when its own F2 still
 * runs until 6. From 6 on stage 1 never waits until it has handed on B2 at 21. f3 leaves it at
 * 17 in a pair, stage 0 needs 3 for the pair and 2 for b3, so b3 starts at 22 on stage 1; B3
 * turns at 23 and stage 0 ends with B3 at 24 and W3 at 25.
 *
 * 26 = (2*4-2-2)*3 + 2*2*1 + 4*1 + 3*1 + max(2, 1) + 1*max(1, 1).
 */
static void two_stages_by_hand(void **state)
{
    (void)state;
    const struct schedule_ask ask = {.pp = 2, .vpp = 2, .microbatches = 4};
    case_drawn("dualpipe_v", ask, (struct play_times){1, 1, 1, 3},
               "F0 F1 F2 f0 b0 w0 f1 F3 b1 -- .. f2 B0 -- b2 -- .. f3 B1 -- b3 -- B2 W2 B3 W3\n"
               ".. F0 f0 F1 f1 F2 b0 -- f2 B0 -- F3 b1 -- f3 B1 -- b2 -- B2 -- .. b3 B3 w3 W3\n");
    case_alive("dualpipe_v", ask, (const uint32_t[]){5, 5});
    case_phases("dualpipe_v", ask, 0, "WWWWSSSSSSSCCCCC");
    case_phases("dualpipe_v", ask, 1, "WWWWWSSSSCCCCCC");
}

/* The same with pairs of 2 slots: each of the 4 pairs on the chain saves one. */
static void pairs_that_overlap(void **state)
{
    (void)state;
    const struct schedule_ask ask = {.pp = 2, .vpp = 2, .microbatches = 4};
    case_drawn("dualpipe_v", ask, (struct play_times){1, 1, 1, 2},
               "F0 F1 F2 f0 b0 w0 f1 F3 b1 .. f2 B0 b2 -- f3 B1 b3 -- B2 W2 B3 W3\n"
               ".. F0 f0 F1 f1 F2 b0 -- f2 B0 F3 b1 f3 B1 b2 -- B2 -- b3 B3 w3 W3\n");
}

static int64_t idle_of_last_stage(struct schedule_ask ask, struct play_times times)
{
    struct arena *arena = arena_create("test");
    const struct pipeline_order *order = schedule_find("dualpipe_v")->build(&ask, arena);
    const int64_t idle = schedule_play(order, true, times, arena).idle[ask.pp - 1];
    arena_destroy(arena);
    return idle;
}

/*
 * DeepSeek publishes (p-1)*(F&B + Bfull - 3W), with p the number of devices and
 * Bfull = B + W. That is the idle time of the last stage when all its pairs overlap; running
 * its first F0 and B1 apart, as the published order does, takes F off where p*F <= (p-1)*B and
 * W <= B. Checked for F 2, B 3, W 2, D 6 (p >= 3) and F 1, B 4, W 3, D 8.
 */
static void published_bubble_less_one_forward(void **state)
{
    (void)state;
    for (uint32_t pp = 3; pp <= 8; pp++) {
        const struct schedule_ask ask = {.pp = pp, .vpp = 2, .microbatches = 2 * pp + 3};
        const int64_t k = (int64_t)pp - 1;
        assert_true(idle_of_last_stage(ask, (struct play_times){2, 3, 2, 6}) ==
                    k * (6 + 5 - 3 * 2) - 2);
        assert_true(idle_of_last_stage(ask, (struct play_times){1, 4, 3, 8}) ==
                    k * (8 + 7 - 3 * 3) - 1);
    }
}

/* Equal passes: the same last stage waits (p-1)*(D-W), where the published bubble says
 * (p-1)*(D + 2 - 3), the same number. */
static void equal_passes(void **state)
{
    (void)state;
    for (uint32_t pp = 1; pp <= 8; pp++) {
        const struct schedule_ask ask = {.pp = pp, .vpp = 2, .microbatches = 2 * pp};
        const int64_t k = (int64_t)pp - 1;
        assert_true(idle_of_last_stage(ask, (struct play_times){1, 1, 1, 3}) == 2 * k);
        assert_true(idle_of_last_stage(ask, (struct play_times){1, 1, 1, 2}) == k);
    }
}

static void pairs_shorter_than_a_half_have_no_closed_form(void **state)
{
    (void)state;
    const struct schedule_ask ask = {.pp = 2, .vpp = 2, .microbatches = 4};
    assert_true(isnan(case_makespan("dualpipe_v", ask, (struct schedule_times){1, 2, 2, 3.99})));
    assert_true(!isnan(case_makespan("dualpipe_v", ask, (struct schedule_times){1, 2, 2, 4})));
    assert_true(isnan(case_makespan("dualpipe_v", ask, (struct schedule_times){5, 2, 2, 4.99})));
    assert_true(!isnan(case_makespan("dualpipe_v", ask, (struct schedule_times){5, 2, 2, 5})));
}

/* 2p+1 half-size activations on every stage, however large the batch. */
static void memory_is_level(void **state)
{
    (void)state;
    const struct schedule_ask ask = {.pp = 4, .vpp = 2, .microbatches = 200};
    case_alive("dualpipe_v", ask, (const uint32_t[]){9, 9, 9, 9});
}

/* Case L17: DeepSeek-V3 has 61 layers; 3 no-op layers make 64 slots, a multiple of 2*4. */
static void case_l17(void **state)
{
    (void)state;
    struct schedule_ask ask = {.pp = 4, .vpp = 2, .microbatches = 120, .layer_slots = 64};
    case_accepted("dualpipe_v", ask);
    ask.layer_slots = 61;
    case_refused("dualpipe_v", ask, ERROR_layers_not_divisible_by_pp,
                 "multiple of 2*pp = 8 layer slots, there are 61: add 3 no-op layers for 64");
    ask.layer_slots = 60;
    case_refused("dualpipe_v", ask, ERROR_layers_not_divisible_by_pp, "add 4 no-op layers");
    /* Nothing is known about the layers. */
    ask.layer_slots = 0;
    case_accepted("dualpipe_v", ask);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_stages_by_hand),
        cmocka_unit_test(pairs_that_overlap),
        cmocka_unit_test(published_bubble_less_one_forward),
        cmocka_unit_test(equal_passes),
        cmocka_unit_test(pairs_shorter_than_a_half_have_no_closed_form),
        cmocka_unit_test(memory_is_level),
        cmocka_unit_test(case_l17),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
