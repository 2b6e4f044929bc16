/*
 * test_event_queue.c - both queues give (time, order of pushing), and refuse misuse.
 *
 * Every event carries the number of its push as target, so the expected order is known
 * without a second queue: sorted by time, then by target.
 */
#include "stepsim/event_queue.h"

#include "assert_aborts.h"
#include "assert_close.h"

#include "stepsim/rng.h"

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

static void push(struct event_queue *queue, sim_time time, uint32_t target)
{
    const struct event event = {.time = time, .target = target, .detail = ~target};
    event_queue_push(queue, &event);
}

static void events_leave_by_time_then_by_push(void **state)
{
    static const sim_time times[] = {30, 10, 20, 10, 30, 10, 0, 20};
    static const uint32_t expected[] = {6, 1, 3, 5, 2, 7, 0, 4};
    for (int binary = 0; binary < 2; binary++) {
        struct event_queue *queue = event_queue_create(*state, 8, binary != 0);
        for (uint32_t i = 0; i < 8; i++) {
            push(queue, times[i], i);
        }
        for (uint32_t i = 0; i < 8; i++) {
            assert_int_equal(event_queue_count(queue), 8 - i);
            assert_time_equal(event_queue_next_time(queue), times[expected[i]]);
            const struct event event = event_queue_pop(queue);
            assert_int_equal(event.target, expected[i]);
            assert_time_equal(event.time, times[expected[i]]);
            assert_int_equal(event.detail, ~expected[i]);
        }
    }
}

/* Pushed at the time that is being popped: behind those that are still there. */
static void ties_pushed_while_popping_come_last(void **state)
{
    for (int binary = 0; binary < 2; binary++) {
        struct event_queue *queue = event_queue_create(*state, 8, binary != 0);
        push(queue, 7, 0);
        push(queue, 7, 1);
        push(queue, 8, 2);
        assert_int_equal(event_queue_pop(queue).target, 0);
        push(queue, 7, 3);
        push(queue, 8, 4);
        for (uint32_t expected = 1; expected < 5; expected++) {
            static const uint32_t order[] = {0, 1, 3, 2, 4};
            assert_int_equal(event_queue_pop(queue).target, order[expected]);
        }
    }
}

/* Ties come in bites of the asked size, never mixed with the next time. */
static void ties_are_popped_together(void **state)
{
    enum { TIES = 100 };
    for (int binary = 0; binary < 2; binary++) {
        struct event_queue *queue = event_queue_create(*state, TIES + 1, binary != 0);
        struct event out[TIES + 1];
        push(queue, 51, TIES);
        for (uint32_t i = 0; i < TIES; i++) {
            push(queue, 50, i);
        }
        assert_int_equal(event_queue_pop_ties(queue, out, 33), 33);
        assert_int_equal(out[32].target, 32);
        assert_int_equal(event_queue_pop_ties(queue, out, TIES + 1), TIES - 33);
        assert_int_equal(out[0].target, 33);
        assert_int_equal(out[TIES - 34].target, TIES - 1);
        assert_int_equal(event_queue_pop_ties(queue, out, TIES + 1), 1);
        assert_int_equal(out[0].target, TIES);
        assert_int_equal(event_queue_count(queue), 0);
    }
}

/* Looking must not move the clock: a push before the time that was seen stays legal. */
static void looking_changes_nothing(void **state)
{
    for (int binary = 0; binary < 2; binary++) {
        struct event_queue *queue = event_queue_create(*state, 4, binary != 0);
        push(queue, 1000, 0);
        assert_time_equal(event_queue_next_time(queue), 1000);
        push(queue, 3, 1);
        assert_time_equal(event_queue_next_time(queue), 3);
        assert_int_equal(event_queue_pop(queue).target, 1);
        assert_int_equal(event_queue_pop(queue).target, 0);
    }
}

/* The whole range of time: powers of two and their neighbours, pushed from the far end. */
static void the_whole_range_of_time_is_ordered(void **state)
{
    for (int binary = 0; binary < 2; binary++) {
        struct event_queue *queue = event_queue_create(*state, 200, binary != 0);
        push(queue, INT64_MAX, 1000);
        for (uint32_t bit = 62; bit >= 2; bit--) {
            push(queue, (INT64_C(1) << bit) + 1, 3 * bit + 2);
            push(queue, INT64_C(1) << bit, 3 * bit + 1);
            push(queue, (INT64_C(1) << bit) - 1, 3 * bit);
        }
        sim_time last = 0;
        for (uint32_t i = 0; i < 61 * 3; i++) {
            const struct event event = event_queue_pop(queue);
            assert_true(event.time >= last);
            assert_int_equal(event.target, i + 6);
            last = event.time;
        }
        assert_int_equal(event_queue_pop(queue).target, 1000);
    }
}

/* The hold model: pop one, push one later. Delays are drawn so that many times tie. */
static void hold(struct arena *arena, uint64_t delay_bound, uint32_t pending)
{
    struct event_queue *radix = event_queue_create(arena, pending, false);
    struct event_queue *binary = event_queue_create(arena, pending, true);
    struct rng rng = rng_stream(delay_bound, pending);
    uint32_t pushed = 0;
    for (; pushed < pending; pushed++) {
        const sim_time time = (sim_time)rng_below(&rng, delay_bound);
        push(radix, time, pushed);
        push(binary, time, pushed);
    }
    struct event last = {0};
    for (uint32_t i = 0; i < 20000; i++) {
        const struct event a = event_queue_pop(radix), b = event_queue_pop(binary);
        assert_time_equal(a.time, b.time);
        assert_int_equal(a.target, b.target);
        assert_true(a.time > last.time ||
                    (a.time == last.time && (i == 0 || a.target > last.target)));
        last = a;
        if (rng_below(&rng, 100) < (i < 10000 ? 99 : 90) || event_queue_count(radix) == 0) {
            const sim_time time = a.time + (sim_time)rng_below(&rng, delay_bound);
            push(radix, time, pushed);
            push(binary, time, pushed++);
        }
    }
    while (event_queue_count(binary) > 0) {
        assert_int_equal(event_queue_pop(radix).target, event_queue_pop(binary).target);
    }
    assert_int_equal(event_queue_count(radix), 0);
}

static void radix_equals_binary_on_random_and_tied_delays(void **state)
{
    static const uint64_t bounds[] = {1, 2, 5, 64, 1000, 1000000, UINT64_C(1) << 45};
    static const uint32_t pendings[] = {1, 2, 31, 32, 33, 500, 5000};
    for (unsigned b = 0; b < sizeof bounds / sizeof *bounds; b++) {
        for (unsigned p = 0; p < sizeof pendings / sizeof *pendings; p++) {
            hold(*state, bounds[b], pendings[p]);
        }
    }
}

/*
 * Pushes among the few events that are about to leave: `burst` of them after every tenth
 * pop, at times between the present and just beyond. They take their places by time, and
 * behind those of their time.
 */
static void bursts(struct arena *arena, uint32_t burst, uint64_t spread)
{
    enum { FIRST = 20, POPS = 3000, CAPACITY = FIRST + POPS * 20 };
    for (int binary = 0; binary < 2; binary++) {
        struct event_queue *queue = event_queue_create(arena, CAPACITY, binary != 0);
        struct rng rng = rng_stream(burst, spread);
        struct event last = {0};
        uint32_t pushed = 0;
        for (; pushed < FIRST; pushed++) {
            push(queue, (sim_time)rng_below(&rng, 2 * spread), pushed);
        }
        for (uint32_t pops = 0; event_queue_count(queue) > 0; pops++) {
            const struct event event = event_queue_pop(queue);
            assert_true(event.time >= last.time);
            /* A push at the present comes after all that were pushed before it. */
            assert_true(event.time > last.time || pops == 0 || event.target > last.target);
            last = event;
            for (uint32_t i = 0; pops % 10 == 0 && pops < POPS && i < burst; i++) {
                push(queue, event.time + (sim_time)rng_below(&rng, spread), pushed++);
            }
        }
    }
}

static void bursts_take_their_places(void **state)
{
    for (uint32_t burst = 8; burst <= 200; burst = burst * 3 / 2) {
        for (uint64_t spread = 2; spread < 1000000; spread *= 7) {
            bursts(*state, burst, spread);
        }
    }
}

/*
 * Three events far apart in one bucket are sorted; then a hundred come between them, more
 * than fit beside them, half of them at few times.
 */
static void a_crowd_comes_between_few(void **state)
{
    enum { CROWD = 100, START = 1 << 20 };
    for (int binary = 0; binary < 2; binary++) {
        struct event_queue *queue = event_queue_create(*state, CROWD + 3, binary != 0);
        struct rng rng = rng_stream(4, 4);
        push(queue, START, 0);
        push(queue, START + 900000, 1);
        push(queue, START + 500000, 2);
        assert_int_equal(event_queue_pop(queue).target, 0);
        for (uint32_t i = 0; i < CROWD; i++) {
            push(queue, START + (sim_time)rng_below(&rng, i % 2 == 0 ? 4 : 1000000), 3 + i);
        }
        struct event last = {0};
        for (uint32_t i = 0; i < CROWD + 2; i++) {
            const struct event event = event_queue_pop(queue);
            assert_true(event.time > last.time ||
                        (event.time == last.time && event.target > last.target));
            last = event;
        }
        assert_int_equal(event_queue_count(queue), 0);
    }
}

/*
 * The pool holds the stated capacity in the worst case: a handful of events in every
 * bucket, so that no block is full, and the rest in one.
 */
static void the_stated_capacity_always_fits(void **state)
{
    for (uint32_t capacity = 64; capacity < 4000; capacity += 97) {
        struct event_queue *queue = event_queue_create(*state, capacity, false);
        for (uint32_t i = 0; i < capacity; i++) {
            push(queue, i < 63 ? INT64_C(1) << i : (INT64_C(1) << 40) + i % 7, i);
        }
        sim_time last = 0;
        for (uint32_t i = 0; i < capacity; i++) {
            const struct event event = event_queue_pop(queue);
            assert_true(event.time >= last);
            last = event.time;
            if (event_queue_count(queue) + 1 < capacity && i % 3 == 0 && i < 1000) {
                push(queue, last + (INT64_C(1) << i % 30), i);
                last = event_queue_pop(queue).time;
            }
        }
    }
}

static bool use_binary;

static void push_into_the_past(void)
{
    struct event_queue *queue = event_queue_create(arena_create("test"), 4, use_binary);
    push(queue, 10, 0);
    event_queue_pop(queue);
    push(queue, 9, 1);
}

static void push_too_many(void)
{
    struct event_queue *queue = event_queue_create(arena_create("test"), 2, use_binary);
    push(queue, 1, 0);
    push(queue, 1, 1);
    push(queue, 1, 2);
}

static void pop_from_nothing(void)
{
    event_queue_pop(event_queue_create(arena_create("test"), 2, use_binary));
}

static void misuse_aborts(void **state)
{
    (void)state;
    for (int binary = 0; binary < 2; binary++) {
        use_binary = binary != 0;
        assert_aborts(push_into_the_past);
        assert_aborts(push_too_many);
        assert_aborts(pop_from_nothing);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(events_leave_by_time_then_by_push, set_up, tear_down),
        cmocka_unit_test_setup_teardown(ties_pushed_while_popping_come_last, set_up, tear_down),
        cmocka_unit_test_setup_teardown(ties_are_popped_together, set_up, tear_down),
        cmocka_unit_test_setup_teardown(looking_changes_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_whole_range_of_time_is_ordered, set_up, tear_down),
        cmocka_unit_test_setup_teardown(radix_equals_binary_on_random_and_tied_delays, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(bursts_take_their_places, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_crowd_comes_between_few, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_stated_capacity_always_fits, set_up, tear_down),
        cmocka_unit_test(misuse_aborts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
