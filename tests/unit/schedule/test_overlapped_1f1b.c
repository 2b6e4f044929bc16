/* test_overlapped_1f1b.c - FB pairs on virtual stages: drawn by hand, region, case L19. */
#include "schedule_case.h"

/* pp 2, vpp 2, 4 microbatches, F = B = W = 1, a pair takes 2: (2+2)*3 + (8-2-1)*2 = 22 against
 * 27 of plain interleaving. Stage 1: 3 forwards of warm-up from slot 1 (one more than plain),
 * 5 pairs without a pause, 3 backwards, one hop back to stage 0. */
static void two_stages_by_hand(void **state)
{
    (void)state;
    const struct schedule_ask ask = {.pp = 2, .vpp = 2, .microbatches = 4};
    case_drawn("overlapped_1f1b", ask, (struct play_times){1, 1, 1, 2},
               "F0 F1 f0 f1 F2 .. F3 b0 f2 b1 f3 B0 B1 -- b2 -- b3 -- B2 -- B3 --\n"
               ".. F0 F1 f0 f1 b0 F2 b1 F3 B0 f2 B1 f3 b2 b3 -- B2 -- B3 -- .. ..\n");
    case_alive("overlapped_1f1b", ask, (const uint32_t[]){6, 4});
    case_phases("overlapped_1f1b", ask, 0, "WWWWWSSSCCCCC");
    case_phases("overlapped_1f1b", ask, 1, "WWWSSSSSCCC");
}

/* One stage: the first forward, then pairs, then the last backward. */
static void one_stage_pairs_neighbours(void **state)
{
    (void)state;
    const struct schedule_ask ask = {.pp = 1, .vpp = 1, .microbatches = 3};
    case_accepted("overlapped_1f1b", ask);
    case_drawn("overlapped_1f1b", ask, (struct play_times){1, 1, 1, 2}, "F0 F1 B0 F2 B1 B2 --\n");
    case_alive("overlapped_1f1b", ask, (const uint32_t[]){2});
}

/* When a pair saves nothing (D = F+B+W) the schedule is as long as interleaved. */
static void without_overlap_it_equals_interleaved(void **state)
{
    (void)state;
    for (uint32_t pp = 2; pp <= 8; pp++) {
        const struct schedule_ask ask = {.pp = pp, .vpp = 3, .microbatches = 4 * pp};
        const struct schedule_times times = {2, 3, 4, 9};
        assert_close(case_makespan("overlapped_1f1b", ask, times),
                     case_makespan("interleaved", ask, times), 0.0);
    }
}

/* The extra warm-up forward costs one chunk activation: 48 on Pangu Ultra MoE's stage 0. */
static void one_more_activation_than_interleaved(void **state)
{
    (void)state;
    const struct schedule_ask ask = {.pp = 16, .vpp = 2, .microbatches = 96};
    assert_int_equal(schedule_find("overlapped_1f1b")->in_flight_max(&ask, 0), 48);
    assert_int_equal(schedule_find("overlapped_1f1b")->in_flight_max(&ask, 15), 18);
}

/* A pair shorter than one of its halves has no closed form; one that is as long has. */
static void pairs_shorter_than_a_half_have_no_closed_form(void **state)
{
    (void)state;
    const struct schedule_ask ask = {.pp = 2, .vpp = 2, .microbatches = 4};
    const char *name = "overlapped_1f1b";
    assert_true(isnan(case_makespan(name, ask, (struct schedule_times){1, 2, 2, 3.99})));
    assert_close(case_makespan(name, ask, (struct schedule_times){1, 2, 2, 4}), 40.0, 0.0);
    assert_true(isnan(case_makespan(name, ask, (struct schedule_times){5, 2, 2, 4.99})));
    assert_close(case_makespan(name, ask, (struct schedule_times){5, 2, 2, 5}), 61.0, 0.0);
}

/* Case L19: pp 4, vpp 2, dp 8, micro-batch 1 and global batch 32 are 4 microbatches. */
static void case_l19(void **state)
{
    (void)state;
    const enum error_code code = ERROR_fb_overlap_gbs_not_above_dp_pp_mbs;
    case_refused("overlapped_1f1b", (struct schedule_ask){.pp = 4, .vpp = 2, .microbatches = 4},
                 code, "more than 4 microbatches per replica, there are 4: raise it to 8 *");
    case_refused("overlapped_1f1b", (struct schedule_ask){.pp = 4, .vpp = 2, .microbatches = 3},
                 code, "there are 3");
    case_refused("overlapped_1f1b",
                 (struct schedule_ask){.pp = 4, .vpp = 2, .microbatches = 4, .group = 6}, code,
                 "raise it to 6 *");
    case_accepted("overlapped_1f1b", (struct schedule_ask){.pp = 4, .vpp = 2, .microbatches = 8});
    case_accepted("overlapped_1f1b",
                  (struct schedule_ask){.pp = 4, .vpp = 2, .microbatches = 5, .group = 5});
    /* Plain interleaving runs what it refuses. */
    case_accepted("interleaved", (struct schedule_ask){.pp = 4, .vpp = 2, .microbatches = 4});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_stages_by_hand),
        cmocka_unit_test(one_stage_pairs_neighbours),
        cmocka_unit_test(without_overlap_it_equals_interleaved),
        cmocka_unit_test(one_more_activation_than_interleaved),
        cmocka_unit_test(pairs_shorter_than_a_half_have_no_closed_form),
        cmocka_unit_test(case_l19),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
