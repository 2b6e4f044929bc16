/*
 * test_ports.c - ports that serialise, worked by hand. Times in picoseconds.
 */
#include "network_fixture.h"

extern const struct network network_ports;

static const uint32_t ranks[FIXTURE_RANKS] = {0, 1, 2, 3, 4, 5, 6, 7, 8};

static void play(struct fixture *f, struct request *requests, uint32_t count, sim_time *ends)
{
    const struct play all = {
        .fixture = f, .model = &network_ports, .requests = requests, .count = count};
    fixture_play(&all, ends);
}

/* Eight senders, one receiver: its port serves one after the other, 8 x 100. */
static void incast_is_serial(void **state)
{
    (void)state;
    struct fixture *f = fixture_create(9, 0);
    const uint32_t message = fixture_transfer(f, 1, 1.0, 0);
    struct request requests[8];
    sim_time ends[8];
    for (uint32_t i = 0; i < 8; i++)
        requests[i] = fixture_send(message, 100, &ranks[i], 8);
    play(f, requests, 8, ends);
    for (uint32_t i = 0; i < 8; i++)
        assert_time_equal(ends[i], 100 * (i + 1));
    arena_destroy(f->arena);
}

/* A permutation uses every port once in each direction: nothing waits. */
static void a_permutation_does_not_contend(void **state)
{
    (void)state;
    struct fixture *f = fixture_create(8, 0);
    const uint32_t message = fixture_transfer(f, 1, 1.0, 0);
    struct request requests[8];
    sim_time ends[8];
    for (uint32_t i = 0; i < 8; i++)
        requests[i] = fixture_send(message, 100, &ranks[i], (i + 3) % 8);
    play(f, requests, 8, ends);
    for (uint32_t i = 0; i < 8; i++)
        assert_time_equal(ends[i], 100);
    arena_destroy(f->arena);
}

/* A collective of 10 steps of 10 and a message of 35 that comes at 5 over the same port: it runs
 * behind the first step, from 10 to 45, and the other nine steps behind it end at 135. */
static void steps_take_turns_with_messages(void **state)
{
    (void)state;
    struct fixture *f = fixture_create(5, 0);
    const uint32_t ring = fixture_transfer(f, 10, 1.0, 0);
    const uint32_t message = fixture_transfer(f, 1, 1.0, 0);
    struct request requests[2] = {fixture_group(ring, 100, ranks, 4),
                                  fixture_send(message, 35, &ranks[2], 4)};
    requests[1].start = 5;
    sim_time ends[2];
    play(f, requests, 2, ends);
    assert_time_equal(ends[1], 45);
    assert_time_equal(ends[0], 135);
    arena_destroy(f->arena);
}

/* Alone, steps add up to the duration whatever it is: 7 steps of 100 are 14, 14, 14, 15 ... */
static void steps_add_up(void **state)
{
    (void)state;
    struct fixture *f = fixture_create(4, 0);
    const uint32_t ring = fixture_transfer(f, 7, 0.3, 0);
    struct request requests[1] = {fixture_group(ring, 100, ranks, 4)};
    sim_time ends[1];
    play(f, requests, 1, ends);
    assert_time_equal(ends[0], 100);
    requests[0].asked.duration = 3; /* less than a picosecond a step */
    play(f, requests, 1, ends);
    assert_time_equal(ends[0], 3);
    arena_destroy(f->arena);
}

/* Two requests of one instant: the lower order goes first, whatever comes first. */
static void order_decides_ties(void **state)
{
    (void)state;
    struct fixture *f = fixture_create(4, 0);
    const uint32_t message = fixture_transfer(f, 1, 1.0, 0);
    struct request requests[2] = {fixture_send(message, 10, &ranks[0], 1),
                                  fixture_send(message, 100, &ranks[0], 2)};
    requests[0].asked.order = 2;
    requests[1].asked.order = 1;
    sim_time ends[2];
    play(f, requests, 2, ends);
    assert_time_equal(ends[1], 100);
    assert_time_equal(ends[0], 110);
    arena_destroy(f->arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(incast_is_serial),
        cmocka_unit_test(a_permutation_does_not_contend),
        cmocka_unit_test(steps_take_turns_with_messages),
        cmocka_unit_test(steps_add_up),
        cmocka_unit_test(order_decides_ties),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
