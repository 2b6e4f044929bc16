/* Drift keeps the shape and moves the stated share. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../../support/assert_close.h"
#include "routing/routing_internal.h"

static int rising(const void *a, const void *b)
{
    const double x = *(const double *)a;
    const double y = *(const double *)b;
    return (x > y) - (x < y);
}

static void only_who_is_hot_changes(void **state)
{
    (void)state;
    double load[32], before[32];
    for (int e = 0; e < 32; e++)
        before[e] = load[e] = 2.0 * (e + 1.0) / 33.0;
    double budget = 0.3;
    struct rng rng = rng_stream(1, 1);
    load_drift(load, 32, &budget, &rng);
    assert_true(memcmp(load, before, sizeof load) != 0);
    qsort(load, 32, sizeof load[0], rising);
    for (int e = 0; e < 32; e++)
        assert_close(load[e], before[e], 1e-15);
}

/* Exchanging a and b takes |a - b| of load from one expert to another; half of the sum of all
 * changes. Over many steps the mean is the drift. */
static void the_stated_share_moves(void **state)
{
    (void)state;
    double load[32];
    for (int e = 0; e < 32; e++)
        load[e] = 2.0 * (e + 1.0) / 33.0;
    double budget = 0.0, moved = 0.0;
    const int steps = 4000;
    for (int step = 0; step < steps; step++) {
        double before[32];
        memcpy(before, load, sizeof load);
        budget += 0.004;
        struct rng rng = rng_stream(9, (uint64_t)step);
        load_drift(load, 32, &budget, &rng);
        for (int e = 0; e < 32; e++)
            moved += fabs(load[e] - before[e]) / 2.0 / 32.0;
    }
    assert_close(moved / steps, 0.004, 0.02);
}

static void no_budget_moves_nothing(void **state)
{
    (void)state;
    double load[4] = {1, 2, 0.5, 0.5};
    double budget = 0.0;
    struct rng rng = rng_stream(1, 1);
    load_drift(load, 4, &budget, &rng);
    assert_true(load[0] == 1.0 && load[1] == 2.0 && load[2] == 0.5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_who_is_hot_changes),
        cmocka_unit_test(the_stated_share_moves),
        cmocka_unit_test(no_budget_moves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
