/*
 * test_fair_share.c - max-min shares: cases worked by hand, and at every instant of random traffic
 * the certificate of max-min fairness, conservation, and a naive solver that knows no increments.
 */
#include <math.h>

#include "network_fixture.h"

#include "stepsim/rng.h"

extern const struct network network_fair_share;

#define ONE ((double)(1u << NETWORK_SPEED_BITS))
/* Speeds are rounded down to 2^-30, and what one leaves may be four times that for a smaller one.
 */
#define SPEED_TOLERANCE 1e-7
#define FULL_TOLERANCE  1e-7 /* each of its users may be a unit too slow */

static const uint32_t ranks[FIXTURE_RANKS] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

/* ---- By hand ---- */

static void play(struct fixture *f, struct request *requests, uint32_t count, sim_time *ends)
{
    const struct play all = {
        .fixture = f, .model = &network_fair_share, .requests = requests, .count = count};
    fixture_play(&all, ends);
}

/* Eight senders share the receiver's port: each has an eighth, all end at 8 x 1000. */
static void incast_shares_the_receiver(void **state)
{
    (void)state;
    struct fixture *f = fixture_create(9, 0);
    const uint32_t message = fixture_transfer(f, 1, 1.0, 0);
    struct request requests[8];
    sim_time ends[8];
    for (uint32_t i = 0; i < 8; i++)
        requests[i] = fixture_send(message, 1000, &ranks[i], 8);
    play(f, requests, 8, ends);
    for (uint32_t i = 0; i < 8; i++)
        assert_time_equal(ends[i], 8000);
    arena_destroy(f->arena);
}

/* A sends 1000 to B from 0 on, and 300 to C from 200 on. From 200 both have half: the second ends
 * at 200 + 600 = 800, when the first has done 200 + 300 and goes on alone: 800 + 500 = 1300. */
static void a_late_message_takes_half(void **state)
{
    (void)state;
    struct fixture *f = fixture_create(3, 0);
    const uint32_t message = fixture_transfer(f, 1, 1.0, 0);
    struct request requests[2] = {fixture_send(message, 1000, &ranks[0], 1),
                                  fixture_send(message, 300, &ranks[0], 2)};
    requests[1].start = 200;
    sim_time ends[2];
    play(f, requests, 2, ends);
    assert_time_equal(ends[1], 800);
    assert_time_equal(ends[0], 1300);
    arena_destroy(f->arena);
}

/* Textbook: 0->2 and 1->2 share the port of 2, 1->3 has what 1->2 leaves, 4->3 what 1->3 leaves.
 * All four have 1/2; a fifth 0->5 has the other half of port 0. With 1000 each: all end at 2000. */
static void a_chain_of_halves(void **state)
{
    (void)state;
    struct fixture *f = fixture_create(6, 0);
    const uint32_t message = fixture_transfer(f, 1, 1.0, 0);
    const uint32_t pairs[5][2] = {{0, 2}, {1, 2}, {1, 3}, {4, 3}, {0, 5}};
    struct request requests[5];
    sim_time ends[5];
    for (int i = 0; i < 5; i++)
        requests[i] = fixture_send(message, 1000, &ranks[pairs[i][0]], pairs[i][1]);
    play(f, requests, 5, ends);
    for (int i = 0; i < 5; i++)
        assert_time_equal(ends[i], 2000);
    arena_destroy(f->arena);
}

/* Three to one port have a third; a fourth from one of these senders has the other two thirds:
 * 1000 / (2/3) = 1500. A third is rounded down in the 30th bit and ends are rounded up, so the
 * three end at 3001. */
static void what_is_left_is_used(void **state)
{
    (void)state;
    struct fixture *f = fixture_create(5, 0);
    const uint32_t message = fixture_transfer(f, 1, 1.0, 0);
    struct request requests[4] = {
        fixture_send(message, 1000, &ranks[0], 3), fixture_send(message, 1000, &ranks[1], 3),
        fixture_send(message, 1000, &ranks[2], 3), fixture_send(message, 1000, &ranks[2], 4)};
    sim_time ends[4];
    play(f, requests, 4, ends);
    assert_time_equal(ends[3], 1500);
    assert_time_equal(ends[0], 3001);
    arena_destroy(f->arena);
}

/* Eight ranks behind an uplink of two ports (4:1): a collective of all of them has a quarter. A
 * collective of two of them fills it just and is not slowed. */
static void an_uplink_is_shared(void **state)
{
    (void)state;
    struct fixture *f = fixture_create(8, 2.0);
    const uint32_t ring = fixture_transfer(f, 14, 1.0, 1.0);
    struct request all[1] = {fixture_group(ring, 1000, ranks, 8)};
    struct request two[1] = {fixture_group(ring, 1000, ranks, 2)};
    sim_time ends[1];
    play(f, all, 1, ends);
    assert_time_equal(ends[0], 4000);
    play(f, two, 1, ends);
    assert_time_equal(ends[0], 1000);
    arena_destroy(f->arena);
}

/* The port of rank 2 receives at half of what it sends. A message to it has half the speed, one
 * from it the whole, and a collective, which uses both directions, half. */
static void each_direction_has_its_capacity(void **state)
{
    (void)state;
    struct fixture *f = fixture_create(4, 0);
    f->resources[f->uses[2 * 2].resource].capacity[1] = NETWORK_WHOLE / 2;
    const uint32_t message = fixture_transfer(f, 1, 1.0, 0);
    struct request requests[2] = {fixture_send(message, 1000, &ranks[0], 2),
                                  fixture_send(message, 1000, &ranks[2], 1)};
    struct request group[1] = {fixture_group(message, 1000, ranks, 4)};
    sim_time ends[2];
    play(f, requests, 2, ends);
    assert_time_equal(ends[0], 2000);
    assert_time_equal(ends[1], 1000);
    play(f, group, 1, ends);
    assert_time_equal(ends[0], 2000);
    arena_destroy(f->arena);
}

/* A slow port of rank 1 caps its transfers at half, though no link is full: 1000 take 2000, and
 * what another sends at the same time is not slowed. */
static void a_cap_is_kept(void **state)
{
    (void)state;
    struct fixture *f = fixture_create(4, 0);
    f->uses[1 * 2].cap = 1u << (NETWORK_SPEED_BITS - 1);
    const uint32_t message = fixture_transfer(f, 1, 1.0, 0);
    struct request requests[2] = {fixture_send(message, 1000, &ranks[1], 2),
                                  fixture_send(message, 1000, &ranks[0], 3)};
    sim_time ends[2];
    play(f, requests, 2, ends);
    assert_time_equal(ends[0], 2000);
    assert_time_equal(ends[1], 1000);
    arena_destroy(f->arena);
}

/* ---- Random traffic ---- */

struct link_use {
    double capacity, used, fastest;
};

/* Adds what a request uses to [resource * 2 + direction] of the links. */
typedef void (*visit)(uint32_t link, double demand, void *context);

struct visitor {
    visit call;
    void *context;
};

static void visit_rank(const struct fixture *f, const struct network_phase *phase, uint32_t rank,
                       uint32_t direction, const struct visitor *visitor)
{
    for (uint32_t kind = 0; kind < 2; kind++) {
        const uint32_t resource = f->uses[rank * 2 + kind].resource;
        if (resource != NETWORK_NONE && phase->demand[kind] > 0)
            visitor->call(resource * 2 + direction, phase->demand[kind], visitor->context);
    }
}

static void visit_links(const struct fixture *f, const struct network_request *asked, visit call,
                        void *context)
{
    const struct network_phase *phase = &f->phases[f->transfers[asked->transfer].phase_first];
    const struct visitor visitor = {call, context};
    for (uint32_t i = 0; i < asked->member_count; i++) {
        visit_rank(f, phase, asked->members[i], 0, &visitor);
        if (asked->collective)
            visit_rank(f, phase, asked->members[i], 1, &visitor);
    }
    if (asked->receiver != NETWORK_NONE)
        visit_rank(f, phase, asked->receiver, 1, &visitor);
}

struct weighing {
    double *weight; /* [link] */
    double *room;   /* [link] */
    double speed;   /* that is given */
    double least;   /* speed that a link gives */
};

static void add_weight(uint32_t link, double demand, void *context)
{
    ((struct weighing *)context)->weight[link] += demand;
}

static void take(uint32_t link, double demand, void *context)
{
    struct weighing *weighing = context;
    weighing->room[link] -= demand * weighing->speed;
    weighing->weight[link] -= demand;
}

static void least_of(uint32_t link, double demand, void *context)
{
    struct weighing *weighing = context;
    (void)demand;
    const double level = weighing->room[link] / weighing->weight[link];
    weighing->least = level < weighing->least ? level : weighing->least;
}

/* Progressive filling of everything, one transfer at a time, in floating point. */
static void solve_naively(const struct fixture *f, const struct request *requests, const bool *runs,
                          uint32_t count, double *speeds)
{
    double weight[2 * (FIXTURE_RANKS + 1)] = {0}, room[2 * (FIXTURE_RANKS + 1)];
    struct weighing weighing = {.weight = weight, .room = room};
    bool solved[FIXTURE_TRANSFERS] = {false};
    for (uint32_t i = 0; i < 2 * f->run.resource_count; i++)
        room[i] = (double)f->resources[i / 2].capacity[i % 2];
    for (uint32_t i = 0; i < count; i++) {
        if (runs[i])
            visit_links(f, &requests[i].asked, add_weight, &weighing);
    }
    for (;;) {
        uint32_t slowest = NETWORK_NONE;
        double least = INFINITY;
        for (uint32_t i = 0; i < count; i++) {
            weighing.least = 1.0;
            if (!runs[i] || solved[i])
                continue;
            visit_links(f, &requests[i].asked, least_of, &weighing);
            if (weighing.least < least) {
                least = weighing.least;
                slowest = i;
            }
        }
        if (slowest == NETWORK_NONE)
            return;
        solved[slowest] = true;
        speeds[slowest] = weighing.speed = least;
        visit_links(f, &requests[slowest].asked, take, &weighing);
    }
}

struct watched {
    double done[FIXTURE_TRANSFERS]; /* work, by integrating speeds */
    double speeds[FIXTURE_TRANSFERS];
    sim_time before;
    struct link_use links[2 * (FIXTURE_RANKS + 1)];
    double speed;    /* of the transfer that is looked at */
    bool bottleneck; /* it has one */
    uint32_t instants, contended;
};

static void use_link(uint32_t link, double demand, void *context)
{
    struct watched *watched = context;
    watched->links[link].used += demand * watched->speed;
    watched->links[link].fastest = fmax(watched->links[link].fastest, watched->speed);
}

static void look_for_bottleneck(uint32_t link, double demand, void *context)
{
    struct watched *watched = context;
    const struct link_use *use = &watched->links[link];
    (void)demand;
    if (use->used >= use->capacity * (1.0 - FULL_TOLERANCE) &&
        watched->speed >= use->fastest - SPEED_TOLERANCE)
        watched->bottleneck = true;
}

static void watch(const struct play *play, const struct network_live *live, uint32_t count,
                  sim_time now)
{
    const struct fixture *f = play->fixture;
    const struct request *requests = play->requests;
    struct watched *watched = play->context;
    bool runs[FIXTURE_TRANSFERS];
    double naive[FIXTURE_TRANSFERS];
    for (uint32_t i = 0; i < FIXTURE_TRANSFERS; i++)
        watched->done[i] += watched->speeds[i] * (double)(now - watched->before);
    watched->before = now;
    watched->instants++;
    for (uint32_t l = 0; l < 2 * f->run.resource_count; l++)
        watched->links[l] = (struct link_use){(double)f->resources[l / 2].capacity[l % 2], 0, 0};
    for (uint32_t i = 0; i < count; i++) {
        watched->speeds[i] = watched->speed = network_fair_share.speed(live, i) / ONE;
        runs[i] = watched->speed > 0.0;
        if (runs[i])
            visit_links(f, &requests[i].asked, use_link, watched);
    }
    for (uint32_t l = 0; l < 2 * f->run.resource_count; l++)
        assert_true(watched->links[l].used <= watched->links[l].capacity * (1.0 + 1e-12));
    solve_naively(f, requests, runs, count, naive);
    for (uint32_t i = 0; i < count; i++) {
        if (!runs[i])
            continue;
        assert_within(watched->speeds[i], naive[i], SPEED_TOLERANCE);
        watched->speed = watched->speeds[i];
        watched->bottleneck = watched->speed >= 1.0;
        visit_links(f, &requests[i].asked, look_for_bottleneck, watched);
        assert_true(watched->bottleneck);
        watched->contended += watched->speed < 1.0;
    }
}

static void random_traffic(void **state)
{
    (void)state;
    uint32_t contended = 0, instants = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct rng rng = rng_stream(seed, 1);
        struct fixture *f = fixture_create(16, 1.0 + (double)rng_below(&rng, 12));
        struct request requests[120];
        sim_time ends[120], start = 0;
        for (uint32_t i = 0; i < 120; i++) {
            const double port = (1.0 + (double)rng_below(&rng, 4)) / 4.0;
            const uint32_t transfer = fixture_transfer(f, 1, port, rng_below(&rng, 2) ? port : 0);
            const sim_time duration = 1000000 + (sim_time)rng_below(&rng, 5000000);
            const uint32_t first = (uint32_t)rng_below(&rng, 12);
            requests[i] = rng_below(&rng, 3) == 0 ? fixture_group(transfer, duration, &ranks[first],
                                                                  2 + (uint32_t)rng_below(&rng, 3))
                                                  : fixture_send(transfer, duration, &ranks[first],
                                                                 12 + (uint32_t)rng_below(&rng, 4));
            requests[i].start = start;
            start += (sim_time)rng_below(&rng, 3) * 300000;
        }
        struct watched watched = {0};
        const struct play all = {.fixture = f,
                                 .model = &network_fair_share,
                                 .requests = requests,
                                 .count = 120,
                                 .watch = watch,
                                 .context = &watched};
        fixture_play(&all, ends);
        /* Conservation: what moved is what was asked for, to the picosecond of rounding up. */
        for (uint32_t i = 0; i < 120; i++) {
            const double asked = (double)requests[i].asked.duration;
            assert_true(watched.done[i] >= asked - 1e-3 && watched.done[i] <= asked + 1.0);
        }
        contended += watched.contended;
        instants += watched.instants;
        arena_destroy(f->arena);
    }
    print_message("seeds 1 to 40: %u instants, %u speeds below 1\n", instants, contended);
    assert_true(contended > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(incast_shares_the_receiver),
        cmocka_unit_test(a_late_message_takes_half),
        cmocka_unit_test(a_chain_of_halves),
        cmocka_unit_test(what_is_left_is_used),
        cmocka_unit_test(an_uplink_is_shared),
        cmocka_unit_test(each_direction_has_its_capacity),
        cmocka_unit_test(a_cap_is_kept),
        cmocka_unit_test(random_traffic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
