/* test_zb_h1.c - zero bubble H1: drawn by hand, published bubble, memory of 1F1B. */
#include "schedule_case.h"

/* pp 3, 4 microbatches, F = B = W = 1: 4*3 + 2*max(1, 1, 1+1-1) = 14, a third of the bubble
 * of 1F1B (18). Stage 2 starts at 2, puts off two W and never waits; B3 reaches stage 0 two
 * slots after it left stage 2, just when stage 0 has caught up. */
static void three_stages_by_hand(void **state)
{
    (void)state;
    const struct schedule_ask ask = {.pp = 3, .vpp = 1, .microbatches = 4};
    case_drawn("zb_h1", ask, (struct play_times){1, 1, 1, 0},
               "F0 F1 F2 .. .. B0 W0 F3 B1 W1 B2 W2 B3 W3\n"
               ".. F0 F1 .. B0 F2 B1 W0 F3 B2 W1 B3 W2 W3\n"
               ".. .. F0 B0 F1 B1 F2 B2 W0 F3 B3 W1 W2 W3\n");
    case_alive("zb_h1", ask, (const uint32_t[]){3, 3, 3});
    case_phases("zb_h1", ask, 0, "WWWSSSCCCCCC");
    case_phases("zb_h1", ask, 2, "WSSSSSSSCCCC");
}

/* Qi et al. (2401.10241): bubble (p-1)*(F+B-W), while W is at most F and B. */
static void published_bubble(void **state)
{
    (void)state;
    for (uint32_t pp = 1; pp <= 8; pp++) {
        const struct schedule_ask ask = {.pp = pp, .vpp = 1, .microbatches = 3 * pp};
        const double makespan = case_makespan("zb_h1", ask, (struct schedule_times){7, 9, 5, 0});
        assert_close(makespan - 3.0 * pp * 21.0, (pp - 1.0) * (7.0 + 9.0 - 5.0), 0.0);
    }
}

/* Long weight gradients cannot hide the gradients' way back: each stage adds B (B > F here). */
static void long_weight_gradients_leave_the_longer_pass(void **state)
{
    (void)state;
    const struct schedule_ask ask = {.pp = 4, .vpp = 1, .microbatches = 8};
    const double makespan = case_makespan("zb_h1", ask, (struct schedule_times){2, 3, 50, 0});
    assert_close(makespan, 8.0 * 55.0 + 3.0 * 3.0, 0.0);
}

/* pp 4, 1 microbatch: there and back, 4*(F+B), and the last W. */
static void one_microbatch(void **state)
{
    (void)state;
    const struct schedule_ask ask = {.pp = 4, .vpp = 1, .microbatches = 1};
    case_drawn("zb_h1", ask, (struct play_times){1, 1, 1, 0},
               "F0 .. .. .. .. .. .. B0 W0\n"
               ".. F0 .. .. .. .. B0 W0 ..\n"
               ".. .. F0 .. .. B0 W0 .. ..\n"
               ".. .. .. F0 B0 W0 .. .. ..\n");
    case_alive("zb_h1", ask, (const uint32_t[]){1, 1, 1, 1});
}

/* What stage 0 of 1F1B holds, and no more however large the batch is. */
static void memory_of_1f1b(void **state)
{
    (void)state;
    const struct schedule_ask ask = {.pp = 4, .vpp = 1, .microbatches = 500};
    case_alive("zb_h1", ask, (const uint32_t[]){4, 4, 4, 4});
    assert_int_equal(schedule_find("1f1b")->in_flight_max(&ask, 0), 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(three_stages_by_hand),
        cmocka_unit_test(published_bubble),
        cmocka_unit_test(long_weight_gradients_leave_the_longer_pass),
        cmocka_unit_test(one_microbatch),
        cmocka_unit_test(memory_of_1f1b),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
