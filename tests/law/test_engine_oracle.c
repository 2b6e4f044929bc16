/*
 * test_engine_oracle.c - the clock agrees with looking back, in every mode.
 *
 * For random programs the times of all ops are known without a clock (random_programs.h).
 * The engine must find them to the picosecond, whatever the queue and whatever the order
 * inside a phase; and memory must peak where a sorted list of changes peaks.
 */
#include "engine/digest.h"

#include "engine_fixture.h"
#include "random_programs.h"

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

static const struct timeline *run_mode(const struct programs *programs,
                                       struct engine_options options, struct arena *arena)
{
    const char *failure;
    const struct timeline *timeline = engine_run(programs, &options, arena, &failure);
    if (timeline == NULL) {
        print_error("%s\n", failure);
    }
    assert_non_null(timeline);
    return timeline;
}

/* Everything except the number of events, which a shuffle must not change either. */
static void assert_same(const struct programs *programs, const struct timeline *a,
                        const struct timeline *b)
{
    assert_time_equal(a->end, b->end);
    assert_true(a->digest == b->digest);
    assert_true(a->event_digest == b->event_digest);
    assert_true(a->events == b->events);
    assert_true(a->ops == b->ops);
    for (uint32_t r = 0; r < programs->rank_count; r++) {
        const struct rank_result *x = &a->ranks[r], *y = &b->ranks[r];
        assert_time_equal(x->end, y->end);
        assert_time_equal(x->compute_busy, y->compute_busy);
        assert_true(x->peak_bytes == y->peak_bytes);
        assert_time_equal(x->peak_time, y->peak_time);
        assert_int_equal(x->peak_label, y->peak_label);
        assert_true(x->busy_hash == y->busy_hash);
    }
}

/* Every rank has its own class and program, of its own number. */
static uint64_t expected_hash(const struct random_programs *random, uint32_t rank)
{
    const struct programs *programs = random->programs;
    const struct program *program = &programs->programs[programs->classes[rank].program];
    uint32_t first[STREAM_COUNT + 1] = {0};
    for (uint32_t s = 0; s < STREAM_COUNT; s++) {
        first[s + 1] = first[s] + program->op_count[s];
    }
    uint64_t hash = 0;
    for (uint32_t i = 0; i < random->op_count; i++) {
        const struct random_op *op = &random->ops[i];
        if (op->rank == rank) {
            hash += digest_completion(op->end, first[op->ref.stream] + op->ref.index);
        }
    }
    return hash;
}

static void check_random(const struct random_shape *shape, struct arena *arena)
{
    const struct random_programs random = random_programs_build(shape, arena);
    const struct timeline *t = run_all(random.programs, arena);
    assert_int_equal(t->ops, random.op_count);
    sim_time end = 0;
    for (uint32_t i = 0; i < random.op_count; i++) {
        const struct random_op *op = &random.ops[i];
        assert_op_times(t, op->rank, op->ref, op->start, op->end);
        end = op->end > end ? op->end : end;
    }
    assert_time_equal(t->end, end);
    for (uint32_t r = 0; r < shape->ranks; r++) {
        assert_true(t->ranks[r].busy_hash == expected_hash(&random, r));
        sim_time time;
        const int64_t peak = random_programs_peak(&random, r, arena, &time);
        assert_true(t->ranks[r].peak_bytes == peak);
        assert_time_equal(t->ranks[r].peak_time, time);
    }
    assert_same(random.programs, t,
                run_mode(random.programs, (struct engine_options){.binary_heap = true}, arena));
    for (uint64_t seed = 1; seed <= 5; seed++) {
        const struct engine_options options = {
            .observe = OBSERVE_NONE, .shuffle_seed = seed, .binary_heap = seed % 2 == 0};
        assert_same(random.programs, t, run_mode(random.programs, options, arena));
    }
    arena_reset(arena);
}

static void times_of_random_programs_are_those_of_the_oracle(void **state)
{
    static const sim_time bounds[] = {1, 2, 3, 10, 1000, INT64_C(1) << 40};
    for (uint64_t seed = 0; seed < 240; seed++) {
        const struct random_shape shape = {.seed = seed,
                                           .ranks = 2 + 2 * (uint32_t)(seed % 6),
                                           .steps = 20 + (uint32_t)seed * 2,
                                           .duration_bound = bounds[seed % 6]};
        check_random(&shape, *state);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(times_of_random_programs_are_those_of_the_oracle, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
