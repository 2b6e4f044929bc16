/* test_schedule_turn.c - turns of an interleaved pipeline: chunks, groups and warm-up. */
#include "schedule/schedule_internal.h"

#include "assert_aborts.h"
#include "assert_close.h"

/* pp 2, vpp 3, 4 microbatches, group 2: turns go 2 by 2 through chunks 0 1 2 0 1 2. */
static void groups_take_turns(void **state)
{
    (void)state;
    const struct schedule_ask ask = {.pp = 2, .vpp = 3, .microbatches = 4};
    static const uint32_t forward[] = {0, 0, 1, 1, 2, 2, 0, 0, 1, 1, 2, 2};
    for (uint32_t t = 0; t < 12; t++) {
        assert_int_equal(schedule_turn_forward_chunk(&ask, t), forward[t]);
        assert_int_equal(schedule_turn_backward_chunk(&ask, t), 2 - forward[t]);
    }
    assert_int_equal(schedule_turn_group(&ask), 2);
}

static void a_larger_group_stays_longer(void **state)
{
    (void)state;
    const struct schedule_ask ask = {.pp = 2, .vpp = 2, .microbatches = 6, .group = 3};
    static const uint32_t forward[] = {0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1};
    for (uint32_t t = 0; t < 12; t++)
        assert_int_equal(schedule_turn_forward_chunk(&ask, t), forward[t]);
    assert_int_equal(schedule_turn_group(&ask), 3);
}

/* pp 16, vpp 2, the layout of Pangu Ultra MoE: 16 + 2*15 forwards before the first backward
 * of stage 0, hence 47 activations alive. Two fewer per stage; with group 24, 8 more. */
static void warm_up_counts_the_way_there_and_back(void **state)
{
    (void)state;
    struct schedule_ask ask = {.pp = 16, .vpp = 2, .microbatches = 48};
    assert_int_equal(schedule_turn_warmup(&ask, 0, 0), 46);
    assert_int_equal(schedule_turn_warmup(&ask, 1, 0), 44);
    assert_int_equal(schedule_turn_warmup(&ask, 15, 0), 16);
    assert_int_equal(schedule_turn_warmup(&ask, 15, 1), 17);
    ask.group = 24;
    assert_int_equal(schedule_turn_warmup(&ask, 0, 0), 54);
    /* There are only 2*16 forwards. */
    ask = (struct schedule_ask){.pp = 16, .vpp = 2, .microbatches = 16};
    assert_int_equal(schedule_turn_warmup(&ask, 0, 0), 32);
    assert_int_equal(schedule_turn_warmup(&ask, 7, 0), 32);
    assert_int_equal(schedule_turn_warmup(&ask, 8, 0), 30);
}

static void ask_for_a_stage_that_is_not_there(void)
{
    const struct schedule_ask ask = {.pp = 2, .vpp = 2, .microbatches = 2};
    schedule_turn_warmup(&ask, 2, 0);
}

static void stages_beyond_the_pipeline_trip(void **state)
{
    (void)state;
    assert_aborts(ask_for_a_stage_that_is_not_there);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_take_turns),
        cmocka_unit_test(a_larger_group_stays_longer),
        cmocka_unit_test(warm_up_counts_the_way_there_and_back),
        cmocka_unit_test(stages_beyond_the_pipeline_trip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
