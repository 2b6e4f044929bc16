/* test_gpipe.c - all forwards, then all backwards: drawn by hand, and case T27. */
#include "schedule_case.h"

/* pp 2, 3 microbatches, F = B = W = 1. Stage 1 sees the last forward at 3 and turns round at
 * once; its backwards of 2 slots reach stage 0 from 6 on. 4 passes of 3 slots: 12. */
static void two_stages_by_hand(void **state)
{
    (void)state;
    const struct schedule_ask ask = {.pp = 2, .vpp = 1, .microbatches = 3};
    case_drawn("gpipe", ask, (struct play_times){1, 1, 1, 0},
               "F0 F1 F2 .. .. .. B0 -- B1 -- B2 --\n"
               ".. F0 F1 F2 B0 -- B1 -- B2 -- .. ..\n");
    case_alive("gpipe", ask, (const uint32_t[]){3, 3});
    case_phases("gpipe", ask, 0, "WWWCCC");
}

/* Case T27: pp 8, 32 microbatches, one slot forward and one backward: 2*(32+7) = 78 slots and
 * 32 microbatches alive. */
static void case_t27(void **state)
{
    (void)state;
    const struct schedule_ask ask = {.pp = 8, .vpp = 1, .microbatches = 32};
    assert_close(case_makespan("gpipe", ask, (struct schedule_times){1, 1, 0, 0}), 78.0, 0.0);
    case_alive("gpipe", ask, (const uint32_t[]){32, 32, 32, 32, 32, 32, 32, 32});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_stages_by_hand),
        cmocka_unit_test(case_t27),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
