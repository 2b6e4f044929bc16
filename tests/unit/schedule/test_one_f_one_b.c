/* test_one_f_one_b.c - 1F1B: drawn by hand, fewer microbatches than stages, published bubble. */
#include "schedule_case.h"

/* pp 4, 4 microbatches, F = B = W = 1: (4+3)*3 = 21. The last stage starts at 3, works 12
 * slots without a pause, and its last backward is 3*2 slots away from stage 0. */
static void four_stages_by_hand(void **state)
{
    (void)state;
    const struct schedule_ask ask = {.pp = 4, .vpp = 1, .microbatches = 4};
    case_drawn("1f1b", ask, (struct play_times){1, 1, 1, 0},
               "F0 F1 F2 F3 .. .. .. .. .. .. B0 -- .. B1 -- .. B2 -- .. B3 --\n"
               ".. F0 F1 F2 .. .. .. .. B0 -- F3 B1 -- .. B2 -- .. B3 -- .. ..\n"
               ".. .. F0 F1 .. .. B0 -- F2 B1 -- F3 B2 -- .. B3 -- .. .. .. ..\n"
               ".. .. .. F0 B0 -- F1 B1 -- F2 B2 -- F3 B3 -- .. .. .. .. .. ..\n");
    case_alive("1f1b", ask, (const uint32_t[]){4, 3, 2, 1});
    case_phases("1f1b", ask, 0, "WWWWCCCC");
    case_phases("1f1b", ask, 1, "WWWSSCCC");
    case_phases("1f1b", ask, 3, "WSSSSSSC");
}

/* Case L23: pp 4 and 2 microbatches finish in 5 forward and 5 backward slots. */
static void fewer_microbatches_than_stages(void **state)
{
    (void)state;
    const struct schedule_ask ask = {.pp = 4, .vpp = 1, .microbatches = 2};
    case_accepted("1f1b", ask);
    case_drawn("1f1b", ask, (struct play_times){1, 1, 0, 0},
               "F0 F1 .. .. .. .. .. B0 .. B1\n"
               ".. F0 F1 .. .. .. B0 .. B1 ..\n"
               ".. .. F0 F1 .. B0 .. B1 .. ..\n"
               ".. .. .. F0 B0 F1 B1 .. .. ..\n");
    case_alive("1f1b", ask, (const uint32_t[]){2, 2, 2, 1});
}

/* Case T27: as long as GPipe, 78 slots, with 8 microbatches alive instead of 32. */
static void case_t27(void **state)
{
    (void)state;
    const struct schedule_ask ask = {.pp = 8, .vpp = 1, .microbatches = 32};
    assert_close(case_makespan("1f1b", ask, (struct schedule_times){1, 1, 0, 0}), 78.0, 0.0);
    case_alive("1f1b", ask, (const uint32_t[]){8, 7, 6, 5, 4, 3, 2, 1});
}

/* Memory stays flat beyond pp microbatches. */
static void memory_does_not_grow_with_the_batch(void **state)
{
    (void)state;
    const struct schedule_ask ask = {.pp = 3, .vpp = 1, .microbatches = 1000};
    case_alive("1f1b", ask, (const uint32_t[]){3, 2, 1});
}

/* Pangu Ultra 135B (2504.07866): pp 8, 16 microbatches, bubble 7/23 = 30.43 %. */
static void pangu_135b_bubble(void **state)
{
    (void)state;
    const struct schedule_ask ask = {.pp = 8, .vpp = 1, .microbatches = 16};
    const double makespan = case_makespan("1f1b", ask, (struct schedule_times){1, 1, 1, 0});
    assert_close(1.0 - 16.0 * 3.0 / makespan, 7.0 / 23.0, 1e-14);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(four_stages_by_hand),
        cmocka_unit_test(fewer_microbatches_than_stages),
        cmocka_unit_test(case_t27),
        cmocka_unit_test(memory_does_not_grow_with_the_batch),
        cmocka_unit_test(pangu_135b_bubble),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
