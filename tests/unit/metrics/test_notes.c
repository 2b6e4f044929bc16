/* Notes appear when they are true and only then. */
#include "assert_close.h"

#include "report_fixture.h"

static struct report_fixture fixture;

static bool noted(const struct report *report, const char *words)
{
    for (uint32_t i = 0; i < report->note_count; i++) {
        if (strstr(report->notes[i], words) != NULL) {
            return true;
        }
    }
    return false;
}

static void notes_follow_the_scenario(void **state)
{
    (void)state;
    fixture_init(&fixture, 1000000000);
    const struct report *report = fixture_report(&fixture);
    assert_true(noted(report, "Links are not shared"));
    assert_true(noted(report, "days_for_tokens"));
    assert_false(noted(report, "Experts are balanced"));
    assert_false(noted(report, "all steps are alike"));
    fixture.scenario->training.tokens = 0.0;
    fixture.parts.step_count = 2;
    report = fixture_report(&fixture);
    assert_false(noted(report, "days_for_tokens"));
    assert_true(noted(report, "all steps are alike"));
    fixture_free(&fixture);
}

/* The fixture's device has two facts of its own, both assumed. */
static void guesses_are_counted(void **state)
{
    (void)state;
    fixture_init(&fixture, 1000000000);
    assert_true(noted(fixture_report(&fixture), "are assumed"));
    fixture_free(&fixture);
}

/* 1 GB of 60 GB is 1.7 %: small; 10 GB are not. */
static void small_headroom_is_noted(void **state)
{
    (void)state;
    fixture_init(&fixture, 1000000000);
    fixture.hand.results[0].peak_bytes = 59000000000;
    fixture.hand.results[0].peak_label = PHASE_STEADY;
    assert_true(noted(fixture_report(&fixture), "below 3 %"));
    fixture.hand.results[0].peak_bytes = 50000000000;
    assert_false(noted(fixture_report(&fixture), "below 3 %"));
    fixture_free(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(notes_follow_the_scenario),
        cmocka_unit_test(guesses_are_counted),
        cmocka_unit_test(small_headroom_is_noted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
