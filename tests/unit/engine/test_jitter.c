/* test_jitter.c - noise has the stated mean, spread and bounds, and depends on who, not when. */
#include "engine_fixture.h"

enum { OPS = 20000, DURATION = 1000000000 };

static int set_up(void **state)
{
    *state = arena_create("test");
    return 0;
}

static int tear_down(void **state)
{
    arena_destroy(*state);
    return 0;
}

/* A single rank with OPS compute ops in a row. */
static const struct timeline *run_jitter(int64_t ppm, uint64_t seed, sim_time duration,
                                         struct arena *arena)
{
    struct builder *b = builder_create(arena);
    builder_jitter(b, ppm, seed);
    const uint32_t p = builder_program(b);
    for (int i = 0; i < OPS; i++) {
        builder_op(b, p, (struct build_op){.duration = duration});
    }
    builder_rank(b, builder_class(b, p, 0, 0));
    return run_all(builder_finish(b), arena);
}

static sim_time taken(const struct timeline *t, uint32_t index)
{
    return t->observed[0].end[STREAM_COMPUTE][index] - t->observed[0].start[STREAM_COMPUTE][index];
}

/*
 * At 10,000 ppm (1 %) the mean of 20,000 draws has a standard error of 1 % / 141 = 0.007 %,
 * their spread one of 1 / sqrt(2 * 20000) = 0.5 %. Allowed: five and six of them. The sum
 * of four uniform numbers ends at 2 / sqrt(1 / 3) = 3.4641 standard deviations.
 */
static void mean_and_spread_are_as_stated(void **state)
{
    const struct timeline *t = run_jitter(10000, 42, DURATION, *state);
    double sum = 0.0, squares = 0.0, largest = 0.0;
    for (uint32_t i = 0; i < OPS; i++) {
        const double change = (double)taken(t, i) / DURATION - 1.0;
        sum += change;
        squares += change * change;
        largest = fabs(change) > largest ? fabs(change) : largest;
    }
    assert_within(sum / OPS, 0.0, 5 * 0.00007);
    assert_close(sqrt(squares / OPS), 0.01, 0.03);
    assert_true(largest <= 0.034642);
    assert_true(largest > 0.03);
}

static void the_same_seed_gives_the_same_noise(void **state)
{
    const struct timeline *a = run_jitter(50, 1, DURATION, *state);
    assert_true(run_jitter(50, 1, DURATION, *state)->event_digest == a->event_digest);
    assert_true(run_jitter(50, 2, DURATION, *state)->event_digest != a->event_digest);
    assert_true(a->end != (sim_time)OPS * DURATION);
    assert_time_equal(run_jitter(0, 1, DURATION, *state)->end, (sim_time)OPS * DURATION);
}

/* A spread of 100 % would make one op in six negative: they take nothing. */
static void no_op_takes_less_than_nothing(void **state)
{
    const struct timeline *t = run_jitter(1000000, 3, 1000, *state);
    uint32_t nothing = 0;
    for (uint32_t i = 0; i < OPS; i++) {
        assert_true(taken(t, i) >= 0);
        assert_true(taken(t, i) <= 4465);
        nothing += taken(t, i) == 0;
    }
    /*
     * One standard deviation below the mean is x = 2 - 1 / sqrt(3) = 1.42265 for the sum of
     * four uniform numbers, and P(sum < x) = (x^4 - 4 (x - 1)^4) / 24 = 0.16536. Standard
     * error 0.0026; allowed four of them.
     */
    assert_within((double)nothing / OPS, 0.16536, 0.0105);
    assert_time_equal(run_jitter(1000000, 3, 0, *state)->end, 0);
}

/* Long ops do not overflow: 20,000 of 10 s each. */
static void long_ops_stay_in_range(void **state)
{
    const struct timeline *t = run_jitter(1000000, 5, INT64_C(10000000000000), *state);
    for (uint32_t i = 0; i < OPS; i++) {
        assert_true(taken(t, i) >= 0);
        assert_true(taken(t, i) <= INT64_C(44650000000000));
    }
}

/* Two ranks of one class draw differently; only compute is noisy. */
static void ranks_differ_and_communication_is_exact(void **state)
{
    struct arena *arena = *state;
    struct builder *b = builder_create(arena);
    builder_jitter(b, 10000, 9);
    const uint32_t p = builder_program(b);
    const struct op_ref compute = builder_op(b, p, (struct build_op){.duration = DURATION});
    const struct op_ref copy = builder_op(
        b, p,
        (struct build_op){.kind = PROGRAM_OP_COPY, .stream = STREAM_COPY_IN, .duration = DURATION});
    const uint32_t class = builder_class(b, p, 0, 0);
    builder_rank(b, class);
    builder_rank(b, class);
    const struct timeline *t = run_all(builder_finish(b), arena);
    assert_true(taken(t, compute.index) != t->observed[1].end[STREAM_COMPUTE][compute.index]);
    assert_op_times(t, 0, copy, 0, DURATION);
    assert_op_times(t, 1, copy, 0, DURATION);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(mean_and_spread_are_as_stated, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_same_seed_gives_the_same_noise, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_op_takes_less_than_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(long_ops_stay_in_range, set_up, tear_down),
        cmocka_unit_test_setup_teardown(ranks_differ_and_communication_is_exact, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
