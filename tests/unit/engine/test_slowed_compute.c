/* test_slowed_compute.c - compute under contention, re-timed by hand and by an oracle. */
#include "engine_fixture.h"

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

#define SLOWED(takes) ((struct build_op){.duration = (takes), .flags = PROGRAM_OP_SLOWED})

/* One rank; compute ops in a row, and on one copy stream gaps and contending windows in turn. */
struct scene {
    struct builder *builder;
    uint32_t program;
    struct op_ref ops[16];
    uint32_t op_count;
};

static struct scene scene_create(struct arena *arena, int64_t ppm)
{
    struct scene scene = {.builder = builder_create(arena)};
    builder_contention(scene.builder, ppm);
    scene.program = builder_program(scene.builder);
    builder_rank(scene.builder, builder_class(scene.builder, scene.program, 0, 0));
    return scene;
}

static void add_compute(struct scene *scene, struct build_op op)
{
    scene->ops[scene->op_count++] = builder_op(scene->builder, scene->program, op);
}

/* Nothing for `gap`, then contention for `window`. */
static void add_window(struct scene *scene, enum stream stream, sim_time gap, sim_time window)
{
    struct build_op op = {.kind = PROGRAM_OP_COPY, .stream = stream, .duration = gap};
    if (gap > 0) {
        builder_op(scene->builder, scene->program, op);
    }
    op.duration = window;
    op.flags = PROGRAM_OP_CONTENDS;
    builder_op(scene->builder, scene->program, op);
}

static const struct timeline *scene_run(struct scene *scene, struct arena *arena)
{
    return run_all(builder_finish(scene->builder), arena);
}

/*
 * Factor 1.15, 1000 of work, contention from 200 to 430. 200 are done before; the window
 * of 230 does 230 / 1.15 = 200; the last 600 run free: 430 + 600 = 1030.
 */
static void a_window_costs_its_share(void **state)
{
    struct scene scene = scene_create(*state, 1150000);
    add_compute(&scene, SLOWED(1000));
    add_window(&scene, STREAM_COPY_OUT, 200, 230);
    const struct timeline *t = scene_run(&scene, *state);
    assert_op_times(t, 0, scene.ops[0], 0, 1030);
    assert_time_equal(t->ranks[0].compute_busy, 1030);
    assert_int_equal(t->stale_events, 1); /* the event placed at 1000 found it unfinished */
}

/* The same with a window of 100: 86.96 done in it, 713.04 left, 1013.04, so 1014. */
static void an_end_between_picoseconds_is_rounded_up(void **state)
{
    struct scene scene = scene_create(*state, 1150000);
    add_compute(&scene, SLOWED(1000));
    add_window(&scene, STREAM_COPY_OUT, 200, 100);
    assert_op_times(scene_run(&scene, *state), 0, scene.ops[0], 0, 1014);
}

/*
 * Under contention throughout, 10 takes 11.5. Ends at 11.5, 23, 34.5 and 46 are seen at
 * 12, 23, 35 and 46: what was rounded up is not lost, nor through an op of no length. A
 * pause ends the account: after it, 7 takes 8.05 from the new start, so 9.
 */
static void rounding_does_not_add_up(void **state)
{
    struct scene scene = scene_create(*state, 1150000);
    for (int i = 0; i < 3; i++) {
        add_compute(&scene, SLOWED(10));
    }
    add_compute(&scene, SLOWED(0));
    add_compute(&scene, SLOWED(10));
    add_compute(&scene, SLOWED(5)); /* 51.75 */
    add_compute(&scene, (struct build_op){.duration = 8});
    add_compute(&scene, SLOWED(7));
    add_window(&scene, STREAM_COPY_OUT, 0, 1000);
    const struct timeline *t = scene_run(&scene, *state);
    assert_op_times(t, 0, scene.ops[0], 0, 12);
    assert_op_times(t, 0, scene.ops[1], 12, 23);
    assert_op_times(t, 0, scene.ops[2], 23, 35);
    assert_op_times(t, 0, scene.ops[3], 35, 35);
    assert_op_times(t, 0, scene.ops[4], 35, 46);
    assert_op_times(t, 0, scene.ops[5], 46, 52);
    assert_op_times(t, 0, scene.ops[6], 52, 60); /* takes no part in the slow-down */
    assert_op_times(t, 0, scene.ops[7], 60, 69);
}

/* Begun under contention (event at 1150), free from 115 on: 100 done, 900 left, 1015. */
static void the_end_of_contention_brings_the_end_forward(void **state)
{
    struct scene scene = scene_create(*state, 1150000);
    add_compute(&scene, SLOWED(1000));
    add_window(&scene, STREAM_COPY_OUT, 0, 115);
    const struct timeline *t = scene_run(&scene, *state);
    assert_op_times(t, 0, scene.ops[0], 0, 1015);
    assert_time_equal(t->end, 1015);
    assert_int_equal(t->stale_events, 1); /* the one at 1150, after the end */
}

/*
 * Two streams contend from 100 to 560 and from 330 to 790: together one window of 690,
 * which does 600. 1000 of work end at 790 + 300.
 */
static void overlapping_windows_count_once(void **state)
{
    struct scene scene = scene_create(*state, 1150000);
    add_compute(&scene, SLOWED(1000));
    add_window(&scene, STREAM_COPY_OUT, 100, 460);
    add_window(&scene, STREAM_COPY_IN, 330, 460);
    assert_op_times(scene_run(&scene, *state), 0, scene.ops[0], 0, 1090);
}

/* Windows that follow each other at once are one: the event at 1150 is never overtaken. */
static void windows_that_touch_do_not_retime(void **state)
{
    struct scene scene = scene_create(*state, 1150000);
    add_compute(&scene, SLOWED(1000));
    for (int i = 0; i < 5; i++) {
        add_window(&scene, STREAM_COPY_OUT, 0, 230);
    }
    const struct timeline *t = scene_run(&scene, *state);
    assert_op_times(t, 0, scene.ops[0], 0, 1150);
    assert_int_equal(t->stale_events, 0);
}

/* Twenty of work each: 23 under contention, then 20 free, fifty times over. */
static void many_windows_stay_exact_and_bounded(void **state)
{
    struct scene scene = scene_create(*state, 1150000);
    add_compute(&scene, SLOWED(2000));
    add_compute(&scene, SLOWED(7));
    for (int i = 0; i < 50; i++) {
        add_window(&scene, STREAM_COPY_OUT, i == 0 ? 0 : 20, 23);
    }
    const struct timeline *t = scene_run(&scene, *state);
    assert_op_times(t, 0, scene.ops[0], 0, 2150);
    assert_op_times(t, 0, scene.ops[1], 2150, 2157);
}

/* A factor of one, or an op without the flag, is not slowed. */
static void without_a_factor_nothing_happens(void **state)
{
    for (int64_t ppm = 1000000; ppm <= 1500000; ppm += 500000) {
        struct scene scene = scene_create(*state, ppm);
        struct build_op op = SLOWED(1000);
        op.flags = ppm == 1000000 ? PROGRAM_OP_SLOWED : 0;
        add_compute(&scene, op);
        add_window(&scene, STREAM_COPY_OUT, 10, 500);
        const struct timeline *t = scene_run(&scene, *state);
        assert_op_times(t, 0, scene.ops[0], 0, 1000);
        assert_int_equal(t->stale_events, 0);
    }
}

/*
 * A collective contends from its start, not from the arrival: rank 0 arrives at 0, rank 1
 * at 300, it lasts 300. Rank 0's compute of 1000 at factor 2 loses 150: 1150.
 */
static void a_collective_contends_while_it_runs(void **state)
{
    struct arena *arena = *state;
    struct builder *b = builder_create(arena);
    builder_contention(b, 2000000);
    const uint32_t p = builder_program(b), q = builder_program(b);
    struct build_op meet = {.kind = PROGRAM_OP_COLLECTIVE,
                            .stream = STREAM_EP,
                            .peer = GROUP_EP,
                            .duration = 300,
                            .flags = PROGRAM_OP_CONTENDS};
    const struct op_ref compute = builder_op(b, p, SLOWED(1000));
    builder_op(b, p, meet);
    const struct op_ref late = builder_op(b, q, (struct build_op){.duration = 300});
    builder_wait(b, q, builder_op(b, q, meet), late);
    const uint32_t ranks[2] = {builder_rank(b, builder_class(b, p, 0, 0)),
                               builder_rank(b, builder_class(b, q, 0, 0))};
    builder_group(b, GROUP_EP, STREAM_EP, ranks, 2);
    assert_op_times(run_all(builder_finish(b), arena), 0, compute, 0, 1150);
}

/* A recv that is posted at 0 waits until 600 for a message that flows from 500 to 600. */
static void a_recv_does_not_contend(void **state)
{
    struct arena *arena = *state;
    struct builder *b = builder_create(arena);
    builder_contention(b, 2000000);
    const uint32_t p = builder_program(b), q = builder_program(b);
    struct build_op message = {.kind = PROGRAM_OP_RECV,
                               .stream = STREAM_RECV,
                               .peer = PEER_NEXT,
                               .flags = PROGRAM_OP_CONTENDS};
    const struct op_ref compute = builder_op(b, p, SLOWED(1000));
    const struct op_ref recv = builder_op(b, p, message);
    const struct op_ref busy = builder_op(b, q, (struct build_op){.duration = 500});
    const struct op_ref slowed = builder_op(b, q, SLOWED(1000));
    message = (struct build_op){.kind = PROGRAM_OP_SEND,
                                .stream = STREAM_SEND,
                                .peer = PEER_PREVIOUS,
                                .duration = 100,
                                .flags = PROGRAM_OP_CONTENDS};
    builder_wait(b, q, builder_op(b, q, message), busy);
    builder_rank(b, builder_class(b, p, 0, 0));
    builder_rank(b, builder_class(b, q, 1, 0));
    builder_link(b, 0, 1);
    const struct timeline *t = run_all(builder_finish(b), arena);
    assert_op_times(t, 0, recv, 0, 600);
    assert_op_times(t, 0, compute, 0, 1000);
    assert_op_times(t, 1, slowed, 500, 1550); /* 100 at half speed */
}

/*
 * The oracle walks picosecond by picosecond and adds 10^6 or ppm parts of work to each.
 * An op of `takes` is done when takes * ppm parts have been done since the first op.
 */
static sim_time oracle_end(int64_t work, int64_t ppm, const bool *contended)
{
    int64_t parts = 0;
    sim_time time = 0;
    while (parts < work * ppm) {
        parts += contended[time++] ? 1000000 : ppm;
    }
    return time;
}

static void random_windows_agree_with_the_oracle(void **state)
{
    enum { HORIZON = 20000 };
    for (uint64_t seed = 0; seed < 300; seed++) {
        struct arena *arena = *state;
        struct rng rng = rng_stream(seed, 7);
        const int64_t ppm = 1000001 + (int64_t)rng_below(&rng, seed % 3 == 0 ? 3000000 : 300000);
        bool contended[HORIZON] = {false};
        struct scene scene = scene_create(arena, ppm);
        int64_t work[16], sum = 0;
        for (int i = 0; i < 16; i++) {
            work[i] = (int64_t)rng_below(&rng, i % 4 == 0 ? 1000 : 20);
            add_compute(&scene, SLOWED(work[i]));
        }
        sim_time at = 0;
        for (int i = 0; i < 30; i++) {
            const sim_time gap = (sim_time)rng_below(&rng, 100);
            const sim_time window = 1 + (sim_time)rng_below(&rng, i % 5 == 0 ? 300 : 30);
            add_window(&scene, STREAM_COPY_OUT, gap, window);
            memset(&contended[at + gap], 1, (size_t)window);
            at += gap + window;
        }
        const struct timeline *t = scene_run(&scene, arena);
        for (int i = 0; i < 16; i++) {
            const sim_time start = oracle_end(sum, ppm, contended);
            sum += work[i];
            assert_op_times(t, 0, scene.ops[i], start, oracle_end(sum, ppm, contended));
        }
        arena_reset(arena);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_window_costs_its_share, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_end_between_picoseconds_is_rounded_up, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(rounding_does_not_add_up, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_end_of_contention_brings_the_end_forward, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(overlapping_windows_count_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(windows_that_touch_do_not_retime, set_up, tear_down),
        cmocka_unit_test_setup_teardown(many_windows_stay_exact_and_bounded, set_up, tear_down),
        cmocka_unit_test_setup_teardown(without_a_factor_nothing_happens, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_collective_contends_while_it_runs, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_recv_does_not_contend, set_up, tear_down),
        cmocka_unit_test_setup_teardown(random_windows_agree_with_the_oracle, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
