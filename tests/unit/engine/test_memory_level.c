/* test_memory_level.c - high-water marks drawn by hand: value, instant and label. */
#include "engine_fixture.h"

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

static const char *peak_name(const struct programs *programs, const struct timeline *t)
{
    return programs->labels[t->ranks[0].peak_label].name;
}

/*
 * static 100; A 0-10 takes 50 and returns it, B 10-20 takes 60 and returns it. At 10 A has
 * ended before B starts: 160, never 210.
 */
static void ends_count_before_starts(void **state)
{
    struct arena *arena = *state;
    struct builder *b = builder_create(arena);
    const uint32_t p = builder_program(b);
    builder_op(b, p,
               (struct build_op){.duration = 10, .delta_start = 50, .delta_end = -50, .name = "A"});
    builder_op(b, p,
               (struct build_op){.duration = 10, .delta_start = 60, .delta_end = -60, .name = "B"});
    builder_rank(b, builder_class(b, p, 0, 100));
    const struct programs *programs = builder_finish(b);
    const struct timeline *t = run_all(programs, arena);
    assert_int_equal(t->ranks[0].peak_bytes, 160);
    assert_time_equal(t->ranks[0].peak_time, 10);
    assert_string_equal(peak_name(programs, t), "B");
}

/*
 * A takes 50 at 0 and keeps it. At 10, in the first round of the instant, C takes 40; what
 * A took is given back two rounds later, by a marker behind another marker. The level goes
 * from 50 to 40, and never through 90.
 */
static void ends_count_before_starts_across_rounds(void **state)
{
    struct arena *arena = *state;
    struct builder *b = builder_create(arena);
    const uint32_t p = builder_program(b);
    const struct op_ref a =
        builder_op(b, p, (struct build_op){.duration = 10, .delta_start = 50, .name = "A"});
    builder_op(b, p, (struct build_op){.duration = 5, .delta_start = 40, .name = "C"});
    const struct op_ref zero = builder_op(
        b, p, (struct build_op){.kind = PROGRAM_OP_MARKER, .stream = STREAM_DP, .name = "zero"});
    builder_wait(b, p, zero, a);
    builder_op(
        b, p,
        (struct build_op){
            .kind = PROGRAM_OP_MARKER, .stream = STREAM_DP, .delta_end = -50, .name = "free"});
    builder_rank(b, builder_class(b, p, 0, 0));
    const struct programs *programs = builder_finish(b);
    const struct timeline *t = run_all(programs, arena);
    assert_int_equal(t->ranks[0].peak_bytes, 50);
    assert_time_equal(t->ranks[0].peak_time, 0);
    assert_string_equal(peak_name(programs, t), "A");
}

/* Taken and returned in one instant: no peak. */
static void an_op_without_duration_leaves_no_peak(void **state)
{
    struct arena *arena = *state;
    struct builder *b = builder_create(arena);
    const uint32_t p = builder_program(b);
    builder_op(b, p, (struct build_op){.duration = 3, .delta_start = 5, .name = "small"});
    builder_op(b, p, (struct build_op){.delta_start = 1000, .delta_end = -1000, .name = "flash"});
    builder_op(b, p, (struct build_op){.duration = 3});
    builder_rank(b, builder_class(b, p, 0, 10));
    const struct programs *programs = builder_finish(b);
    const struct timeline *t = run_all(programs, arena);
    assert_int_equal(t->ranks[0].peak_bytes, 15);
    assert_string_equal(peak_name(programs, t), "small");
}

/* The same height again later does not move the peak; one byte more does. */
static void the_first_instant_of_the_peak_is_kept(void **state)
{
    for (int64_t more = 0; more < 2; more++) {
        struct arena *arena = *state;
        struct builder *b = builder_create(arena);
        const uint32_t p = builder_program(b);
        builder_op(
            b, p,
            (struct build_op){.duration = 4, .delta_start = 7, .delta_end = -7, .name = "first"});
        builder_op(b, p, (struct build_op){.duration = 4});
        builder_op(
            b, p,
            (struct build_op){
                .duration = 4, .delta_start = 7 + more, .delta_end = -7 - more, .name = "second"});
        builder_rank(b, builder_class(b, p, 0, 0));
        const struct programs *programs = builder_finish(b);
        const struct timeline *t = run_all(programs, arena);
        assert_int_equal(t->ranks[0].peak_bytes, 7 + more);
        assert_time_equal(t->ranks[0].peak_time, more == 0 ? 0 : 8);
        assert_string_equal(peak_name(programs, t), more == 0 ? "first" : "second");
    }
}

/* Two ops raise the level in one instant: the larger names it, or the lower stream. */
static void the_largest_of_an_instant_names_the_peak(void **state)
{
    for (int64_t copy_bytes = 29; copy_bytes <= 31; copy_bytes++) {
        struct arena *arena = *state;
        struct builder *b = builder_create(arena);
        const uint32_t p = builder_program(b);
        builder_op(b, p,
                   (struct build_op){.kind = PROGRAM_OP_COPY,
                                     .stream = STREAM_COPY_IN,
                                     .duration = 5,
                                     .delta_start = copy_bytes,
                                     .name = "copy"});
        builder_op(b, p, (struct build_op){.duration = 5, .delta_start = 30, .name = "compute"});
        builder_rank(b, builder_class(b, p, 0, 0));
        const struct programs *programs = builder_finish(b);
        const struct timeline *t = run_all(programs, arena);
        assert_int_equal(t->ranks[0].peak_bytes, 30 + copy_bytes);
        assert_string_equal(peak_name(programs, t), copy_bytes == 31 ? "copy" : "compute");
    }
}

/* What an op leaves behind at its end counts, and so does a level that stays to the end. */
static void a_level_that_never_falls_peaks_at_the_end(void **state)
{
    struct arena *arena = *state;
    struct builder *b = builder_create(arena);
    const uint32_t p = builder_program(b);
    builder_op(b, p, (struct build_op){.duration = 10, .delta_end = 64, .name = "grow"});
    builder_rank(b, builder_class(b, p, 0, 1));
    const struct programs *programs = builder_finish(b);
    const struct timeline *t = run_all(programs, arena);
    assert_int_equal(t->ranks[0].peak_bytes, 65);
    assert_time_equal(t->ranks[0].peak_time, 10);
    assert_string_equal(peak_name(programs, t), "grow");
}

/* A collective takes its buffer when it starts, at 8, not when the rank arrives, at 0. */
static void a_collective_takes_memory_when_it_starts(void **state)
{
    struct arena *arena = *state;
    struct builder *b = builder_create(arena);
    const uint32_t p = builder_program(b), q = builder_program(b);
    struct build_op meet = {.kind = PROGRAM_OP_COLLECTIVE,
                            .stream = STREAM_EP,
                            .peer = GROUP_EP,
                            .duration = 2,
                            .delta_start = 9,
                            .name = "meet"};
    builder_op(b, p, meet);
    const struct op_ref late = builder_op(b, q, (struct build_op){.duration = 8});
    builder_wait(b, q, builder_op(b, q, meet), late);
    const uint32_t ranks[2] = {builder_rank(b, builder_class(b, p, 0, 0)),
                               builder_rank(b, builder_class(b, q, 0, 0))};
    builder_group(b, GROUP_EP, STREAM_EP, ranks, 2);
    const struct timeline *t = run_all(builder_finish(b), arena);
    assert_int_equal(t->ranks[0].peak_bytes, 9);
    assert_time_equal(t->ranks[0].peak_time, 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(ends_count_before_starts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(ends_count_before_starts_across_rounds, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_op_without_duration_leaves_no_peak, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_first_instant_of_the_peak_is_kept, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_largest_of_an_instant_names_the_peak, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_level_that_never_falls_peaks_at_the_end, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_collective_takes_memory_when_it_starts, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
