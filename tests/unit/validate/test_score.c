/*
 * test_score.c - scores of four small families, worked by hand.
 */
#include <string.h>

#include "assert_close.h"
#include "stepsim/validate.h"

static struct measurement row(const char *family, double step_s)
{
    return (struct measurement){
        .family = family, .grade = "A", .sixteen_bit = true, .step_s = step_s, .device = "X"};
}

static struct prediction predicted(double step_s)
{
    return (struct prediction){.done = true, .step_s = step_s};
}

/* Family a: ln 2 and ln 2, family b: ln 1. Families count alike: (ln 2 + 0) / 2. */
static void families_count_alike(void **state)
{
    (void)state;
    const struct measurement rows[] = {row("a", 1), row("a", 2), row("b", 3)};
    const struct prediction predictions[] = {predicted(2), predicted(4), predicted(3)};
    struct scored_row scored[3];
    for (int i = 0; i < 3; i++)
        scored[i] = (struct scored_row){&rows[i], &predictions[i]};
    const struct score score = score_rows(scored, 3, NULL, NULL);
    assert_int_equal(score.n, 3);
    assert_close(score.mae_log, log(2.0) / 2.0, 1e-12);
    assert_close(score.bias_log, log(2.0) / 2.0, 1e-12);
    assert_close(score.median_log, log(2.0), 1e-12);
    assert_close(score.within[0], 1.0 / 3.0, 1e-12);
    /* One factor from the first row explains the second. */
    assert_within(score.anchored_mae_log, 0.0, 1e-12);
    assert_true(isnan(score.kendall_tau));
}

/* Measured 1 2 3 4, predicted 1 2 4 3: of six pairs five agree and one does not, tau 4/6. */
static void order_inside_a_family(void **state)
{
    (void)state;
    const struct measurement rows[] = {row("a", 1), row("a", 2), row("a", 3), row("a", 4)};
    const struct prediction predictions[] = {predicted(1), predicted(2), predicted(4),
                                             predicted(3)};
    struct scored_row scored[4];
    for (int i = 0; i < 4; i++)
        scored[i] = (struct scored_row){&rows[i], &predictions[i]};
    assert_close(score_rows(scored, 4, NULL, NULL).kendall_tau, 4.0 / 6.0, 1e-12);
}

/* A row without a prediction is eligible and not scored; grade C, fp8 and layers are neither. */
static void what_counts(void **state)
{
    (void)state;
    struct measurement rows[] = {row("a", 1), row("a", 1), row("a", 1), row("a", 1), row("a", 1)};
    const struct prediction done = predicted(1);
    const struct prediction none = {.done = false};
    rows[2].grade = "C";
    rows[3].sixteen_bit = false;
    rows[4].kind = MEASUREMENT_LAYER;
    struct scored_row scored[5];
    for (int i = 0; i < 5; i++)
        scored[i] = (struct scored_row){&rows[i], i == 1 ? &none : &done};
    const struct score score = score_rows(scored, 5, NULL, NULL);
    assert_int_equal(score.n, 1);
    assert_int_equal(score.eligible, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(families_count_alike),
        cmocka_unit_test(order_inside_a_family),
        cmocka_unit_test(what_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
