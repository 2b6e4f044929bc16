/*
 * test_engine_fold.c - one rank for each stage gives what all ranks give, exactly.
 *
 * The step is symmetric inside a stage, so its ranks are one class. With free links its end
 * is also known in closed form.
 */
#include "engine_fixture.h"
#include "step_programs.h"

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

static const struct timeline *run_step(struct step_shape shape, bool folded, uint64_t shuffle,
                                       struct arena *arena)
{
    shape.folded = folded;
    const struct programs *programs = step_programs_build(&shape, arena);
    programs_check(programs);
    const struct engine_options options = {.shuffle_seed = shuffle};
    const char *failure;
    const struct timeline *timeline = engine_run(programs, &options, arena, &failure);
    assert_non_null(timeline);
    return timeline;
}

static void assert_folds(struct step_shape shape, struct arena *arena)
{
    const struct timeline *all = run_step(shape, false, 0, arena);
    const struct timeline *folded = run_step(shape, true, 0, arena);
    const struct timeline *shuffled = run_step(shape, false, 99, arena);
    assert_time_equal(folded->end, all->end);
    assert_true(folded->digest == all->digest);
    assert_true(shuffled->digest == all->digest);
    assert_true(shuffled->event_digest == all->event_digest);
    assert_true(folded->event_digest != all->event_digest || shape.dp * shape.tp == 1);
    const uint32_t width = shape.dp * shape.tp;
    for (uint32_t r = 0; r < shape.pp * width; r++) {
        assert_true(all->ranks[r].busy_hash == folded->ranks[r / width].busy_hash);
        assert_true(all->ranks[r].peak_bytes == folded->ranks[r / width].peak_bytes);
        assert_time_equal(all->ranks[r].peak_time, folded->ranks[r / width].peak_time);
        assert_int_equal(all->ranks[r].peak_label, folded->ranks[r / width].peak_label);
    }
    assert_int_equal(all->ops, folded->ops * width);
    arena_reset(arena);
}

static void folded_equals_full(void **state)
{
    for (uint32_t i = 0; i < 24; i++) {
        const struct step_shape shape = {
            .pp = 1 + i % 4,
            .dp = 1 + i % 3,
            .tp = 1 + i / 4 % 4,
            .ep = i % 2 == 0 ? 1 + i / 4 % 4 : 1,
            .microbatches = 1 + i % 7,
            .layers = 1 + i % 2,
            .memory = i % 3 != 0,
            .contention_ppm = i % 2 == 0 ? 1150000 : 0,
        };
        assert_folds(shape, *state);
    }
}

/*
 * With free links 1F1B on p equal stages takes (m + p - 1) (F + B), whatever m >= p.
 * F = 2 layers of (300 + 90 + 140 + 400 + 140) us = 2140 us, B = 2 of
 * (600 + 90 + 140 + 800 + 140) us = 3540 us; the DP collective of 5000 us follows. The
 * compute stream is busy for 2 m (700 + 1400) us.
 */
static void with_free_links_the_bubble_is_the_closed_form(void **state)
{
    for (uint32_t p = 1; p <= 6; p++) {
        for (uint32_t m = p; m <= 13; m += 3) {
            const struct step_shape shape = {.pp = p,
                                             .dp = 2,
                                             .tp = 2,
                                             .ep = 4,
                                             .microbatches = m,
                                             .layers = 2,
                                             .free_links = true};
            const struct timeline *t = run_step(shape, false, 0, *state);
            assert_time_equal(t->end, (sim_time)((m + p - 1) * 5680 + 5000) * 1000000);
            for (uint32_t r = 0; r < 4 * p; r++) {
                assert_time_equal(t->ranks[r].compute_busy, (sim_time)m * 4200 * 1000000);
            }
        }
    }
}

/* The size and the end of the step that the benchmark runs on 6,144 ranks, folded. */
static void the_step_of_the_benchmark_is_the_known_one(void **state)
{
    const struct step_shape shape = {
        .pp = 16, .dp = 48, .tp = 8, .ep = 32, .microbatches = 64, .layers = 4};
    const struct timeline *t = run_step(shape, true, 0, *state);
    /* An independent simulation of the same step on all ranks ended at 911.320 ms. */
    assert_time_equal(t->end, INT64_C(911320000000));
    /* 64 * 2 * 4 * 5 ops of layers and 1 DP collective a stage, 2 * 15 * 64 * 2 messages' ends. */
    assert_int_equal(t->ops, 16 * (64 * 2 * 4 * 5 + 1) + 2 * 15 * 64 * 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(folded_equals_full, set_up, tear_down),
        cmocka_unit_test_setup_teardown(with_free_links_the_bubble_is_the_closed_form, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(the_step_of_the_benchmark_is_the_known_one, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
