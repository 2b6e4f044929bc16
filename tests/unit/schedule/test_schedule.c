/* test_schedule.c - schedules are found by their YAML name, not by their file. */
#include "schedule_case.h"

static void names_are_those_of_the_yaml(void **state)
{
    (void)state;
    assert_string_equal(schedule_find("1f1b")->name, "1f1b");
    assert_string_equal(schedule_find("gpipe")->name, "gpipe");
    assert_null(schedule_find("one_f_one_b"));
    assert_null(schedule_find("1F1B"));
    assert_null(schedule_find(""));
}

static void registry_ends_with_null(void **state)
{
    (void)state;
    for (size_t i = 0; i < schedule_count; i++)
        assert_non_null(schedule_registry[i]);
    assert_null(schedule_registry[schedule_count]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_those_of_the_yaml),
        cmocka_unit_test(registry_ends_with_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
