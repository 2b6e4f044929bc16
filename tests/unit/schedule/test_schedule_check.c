/* test_schedule_check.c - refusals say what clashes and what would work, at both edges. */
#include "schedule_case.h"

#define ASK(...) ((struct schedule_ask){__VA_ARGS__})

static void vpp_outside_the_range_is_refused(void **state)
{
    (void)state;
    const struct schedule_ask two = ASK(.pp = 4, .vpp = 2, .microbatches = 8);
    const struct schedule_ask one = ASK(.pp = 4, .vpp = 1, .microbatches = 8);
    const struct schedule_ask three = ASK(.pp = 4, .vpp = 3, .microbatches = 8);
    case_refused("gpipe", two, ERROR_schedule_vpp, "parallel.vpp is 2: set vpp to 1");
    case_refused("1f1b", two, ERROR_schedule_vpp, "or use interleaved");
    case_refused("zb_h1", two, ERROR_schedule_vpp, "at most 1 chunk per stage");
    case_refused("interleaved", one, ERROR_schedule_vpp, "set vpp to 2 or more, or use 1f1b");
    case_refused("zb_v", one, ERROR_schedule_vpp, "set vpp to 2, or use 1f1b");
    case_refused("zb_v", three, ERROR_schedule_vpp, "at most 2 chunks per stage");
    case_refused("dualpipe_v", three, ERROR_schedule_vpp, "set vpp to 2");
    case_refused("overlapped_1f1b", one, ERROR_schedule_vpp, "set vpp to 2 or more");
    case_accepted("gpipe", one);
    case_accepted("interleaved", two);
    case_accepted("interleaved", three);
    case_accepted("zb_v", two);
}

static void too_few_microbatches_are_refused(void **state)
{
    (void)state;
    const enum error_code code = ERROR_microbatches_below_minimum;
    case_refused("1f1b", ASK(.pp = 4, .vpp = 1), code, "there is none");
    case_refused("overlapped_1f1b", ASK(.pp = 1, .vpp = 1), code, "there is none");
    case_accepted("1f1b", ASK(.pp = 4, .vpp = 1, .microbatches = 1));
    case_accepted("gpipe", ASK(.pp = 4, .vpp = 1, .microbatches = 1));
    case_accepted("zb_h1", ASK(.pp = 4, .vpp = 1, .microbatches = 1));
    case_accepted("zb_v", ASK(.pp = 4, .vpp = 2, .microbatches = 1));

    case_refused("interleaved", ASK(.pp = 8, .vpp = 2, .microbatches = 7), code,
                 "to 8 * micro_batch_size * dp, lower dp, lower pp to at most 7, or use 1f1b");
    case_accepted("interleaved", ASK(.pp = 8, .vpp = 2, .microbatches = 8));
    case_refused("dualpipe_v", ASK(.pp = 4, .vpp = 2, .microbatches = 7), code,
                 "to 8 * micro_batch_size * dp, lower dp, lower pp to at most 3, or use 1f1b");
    /* No pp has half a microbatch per stage. */
    case_refused("dualpipe_v", ASK(.pp = 4, .vpp = 2, .microbatches = 1), code,
                 "lower dp, or use 1f1b");
    case_accepted("dualpipe_v", ASK(.pp = 4, .vpp = 2, .microbatches = 8));
}

static void ragged_groups_are_refused(void **state)
{
    (void)state;
    const enum error_code code = ERROR_microbatches_not_multiple_of_group;
    case_refused("interleaved", ASK(.pp = 4, .vpp = 2, .microbatches = 10), code,
                 "groups of 4 (schedule.microbatch_group, pp if left out): 8 or 12 microbatches "
                 "work, or the groups 5, 10");
    case_refused("interleaved", ASK(.pp = 4, .vpp = 2, .microbatches = 8, .group = 16), code,
                 "do not fill one group of 16 (schedule.microbatch_group, pp if left out): 16 "
                 "microbatches work, or the groups 4, 8");
    case_refused("overlapped_1f1b", ASK(.pp = 4, .vpp = 2, .microbatches = 9), code,
                 "8 or 12 microbatches work, or the groups 9");
    case_accepted("interleaved", ASK(.pp = 4, .vpp = 2, .microbatches = 10, .group = 5));
    case_accepted("interleaved", ASK(.pp = 4, .vpp = 2, .microbatches = 10, .group = 10));
}

static void groups_below_pp_are_refused(void **state)
{
    (void)state;
    case_refused("interleaved", ASK(.pp = 4, .vpp = 2, .microbatches = 12, .group = 3),
                 ERROR_out_of_range, "microbatch_group 3 is below pp 4");
    case_refused("interleaved", ASK(.pp = 4, .vpp = 2, .microbatches = 12, .group = 3),
                 ERROR_out_of_range, "with 12 microbatches the groups 4, 6, 12 work");
    case_accepted("interleaved", ASK(.pp = 4, .vpp = 2, .microbatches = 12, .group = 4));
}

/* 2^24 passes are accepted, one more is not; sums beyond 32 bits do not wrap round. */
static void absurd_sizes_are_refused(void **state)
{
    (void)state;
    case_accepted("1f1b", ASK(.pp = 4, .vpp = 1, .microbatches = 16777216));
    case_refused("1f1b", ASK(.pp = 4, .vpp = 1, .microbatches = 16777217), ERROR_out_of_range,
                 "lower vpp or training.global_batch_size");
    case_refused("interleaved", ASK(.pp = 4, .vpp = 65536, .microbatches = 65536),
                 ERROR_out_of_range, "16777216 passes");
    case_refused("interleaved", ASK(.pp = 4, .vpp = 65536, .microbatches = 4), ERROR_out_of_range,
                 "parallel.vpp 65536");
}

/* Everything that is wrong is said at once. */
static void errors_add_up(void **state)
{
    (void)state;
    struct arena *arena = arena_create("test");
    struct error_list errors;
    const struct schedule_ask ask = {.pp = 4, .vpp = 3, .microbatches = 7, .layer_slots = 61};
    assert_false(case_check(schedule_find("dualpipe_v"), &ask, arena, &errors));
    assert_int_equal(errors.count, 3);
    assert_int_equal(errors.items[0].code, ERROR_schedule_vpp);
    assert_int_equal(errors.items[1].code, ERROR_microbatches_below_minimum);
    assert_int_equal(errors.items[2].code, ERROR_layers_not_divisible_by_pp);
    arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vpp_outside_the_range_is_refused),
        cmocka_unit_test(too_few_microbatches_are_refused),
        cmocka_unit_test(ragged_groups_are_refused),
        cmocka_unit_test(groups_below_pp_are_refused),
        cmocka_unit_test(absurd_sizes_are_refused),
        cmocka_unit_test(errors_add_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
