/* test_interleaved.c - interleaved 1F1B: drawn by hand, in-flight, published bubble. */
#include "schedule_case.h"

/* pp 2, vpp 2, 4 microbatches, F = B = W = 1: (2*4+1)*3 = 27. Small letters are chunk 1.
 * Stage 1 runs from slot 1 to 25 without a pause: F0 F1 f0, then a forward and a backward in
 * turn; its last backward is one hop of 2 slots away from stage 0. */
static void two_stages_by_hand(void **state)
{
    (void)state;
    const struct schedule_ask ask = {.pp = 2, .vpp = 2, .microbatches = 4};
    static const char drawing[] =
        "F0 F1 f0 f1 F2 .. b0 -- F3 b1 -- f2 B0 -- f3 B1 -- .. b2 -- .. b3 -- B2 -- B3 --\n"
        ".. F0 F1 f0 b0 -- f1 b1 -- F2 B0 -- F3 B1 -- f2 b2 -- f3 b3 -- B2 -- B3 -- .. ..\n";
    case_drawn("interleaved", ask, (struct play_times){1, 1, 1, 0}, drawing);
    case_alive("interleaved", ask, (const uint32_t[]){5, 3});
    case_phases("interleaved", ask, 0, "WWWWWSSSSSSCCCCC");
}

/* One group of 4 at once: chunk 0 of all four first. 7 activations on stage 0, 5 on stage 1. */
static void a_larger_group_holds_more(void **state)
{
    (void)state;
    const struct schedule_ask ask = {.pp = 2, .vpp = 2, .microbatches = 4, .group = 4};
    static const char drawing[] =
        "F0 F1 F2 F3 f0 f1 f2 .. b0 -- f3 b1 -- .. b2 -- .. b3 -- B0 -- B1 -- B2 -- B3 --\n"
        ".. F0 F1 F2 F3 f0 b0 -- f1 b1 -- f2 b2 -- f3 b3 -- B0 -- B1 -- B2 -- B3 -- .. ..\n";
    case_drawn("interleaved", ask, (struct play_times){1, 1, 1, 0}, drawing);
    case_alive("interleaved", ask, (const uint32_t[]){7, 5});
}

/* Pangu Ultra MoE: pp 16, vpp 2 hold (2-1)*16 + 2*15 + 1 = 47 chunk activations on stage 0. */
static void pangu_ultra_moe_in_flight(void **state)
{
    (void)state;
    const struct schedule_ask ask = {.pp = 16, .vpp = 2, .microbatches = 96};
    assert_int_equal(schedule_find("interleaved")->in_flight_max(&ask, 0), 47);
    assert_int_equal(schedule_find("interleaved")->in_flight_max(&ask, 15), 17);
}

/* Pangu Ultra 135B (2504.07866): pp 8, vpp 6, 16 microbatches, bubble 7/103 = 6.80 %. */
static void pangu_135b_bubble(void **state)
{
    (void)state;
    const struct schedule_ask ask = {.pp = 8, .vpp = 6, .microbatches = 16};
    const double makespan = case_makespan("interleaved", ask, (struct schedule_times){1, 1, 1, 0});
    assert_close(1.0 - 6.0 * 16.0 * 3.0 / makespan, 7.0 / 103.0, 1e-14);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_stages_by_hand),
        cmocka_unit_test(a_larger_group_holds_more),
        cmocka_unit_test(pangu_ultra_moe_in_flight),
        cmocka_unit_test(pangu_135b_bubble),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
