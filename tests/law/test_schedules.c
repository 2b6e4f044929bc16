/*
 * test_schedules.c - laws of every registered schedule, over pp 1..8, vpp 1..6, 1..40
 * microbatches, several groups and several ratios of F, B, W and D.
 *
 * Durations are whole numbers, so closed form and played makespan must be equal, not close.
 * The player (schedule_play.h) is independent of the schedules.
 */
#include <stdio.h>
#include <time.h>

#include "schedule_case.h"

#define PP_MAX           8
#define VPP_MAX          6
#define MICROBATCHES_MAX 40

struct law_case {
    const struct schedule *schedule;
    struct schedule_ask ask;
    const struct pipeline_order *order;
    struct arena *arena;
};

/* F, B, W and D. A pair takes from the longer half alone to more than both in turn. */
static const struct play_times ratios[] = {
    {1, 1, 1, 3},    {1, 1, 1, 2}, {1, 1, 1, 5}, {2, 3, 2, 6},  {3, 2, 2, 5}, {4, 1, 1, 5},
    {1, 4, 1, 5},    {1, 1, 4, 6}, {2, 5, 1, 8}, {5, 1, 4, 10}, {6, 5, 2, 9}, {15, 14, 3, 17},
    {10, 11, 9, 25}, {1, 1, 0, 2}, {2, 0, 1, 3}, {9, 2, 1, 12},
};
#define RATIO_COUNT (sizeof(ratios) / sizeof(ratios[0]))

static void broken(const struct law_case *law, const char *what)
{
    fail_msg("%s pp %u vpp %u microbatches %u group %u: %s", law->schedule->name, law->ask.pp,
             law->ask.vpp, law->ask.microbatches, law->ask.group, what);
}

#define LAW(law, condition)                                                                        \
    do {                                                                                           \
        if (!(condition))                                                                          \
            broken(law, #condition);                                                               \
    } while (0)

typedef void law_function(const struct law_case *law);

/* One case: sizes that the schedule accepts are built and judged. Returns whether it did. */
static bool judge(const struct schedule *schedule, struct schedule_ask ask, struct arena *arena,
                  law_function *function)
{
    arena_reset(arena);
    struct error_list errors;
    struct law_case law = {.schedule = schedule, .ask = ask, .arena = arena};
    const bool accepted = case_check(schedule, &ask, arena, &errors);
    LAW(&law, accepted == (errors.count == 0));
    if (!accepted)
        return false;
    law.order = schedule->build(&ask, arena);
    function(&law);
    return true;
}

static uint32_t judge_groups(const struct schedule *schedule, struct schedule_ask ask,
                             struct arena *arena, law_function *function)
{
    const uint32_t groups[] = {0, ask.pp + 1, 2 * ask.pp, ask.microbatches};
    /* Schedules of one or two chunks know no group. */
    const size_t count = schedule->vpp_max == 0 ? sizeof(groups) / sizeof(groups[0]) : 1;
    uint32_t judged = 0;
    for (size_t i = 0; i < count; i++) {
        ask.group = groups[i];
        judged += judge(schedule, ask, arena, function);
    }
    return judged;
}

static void for_every_case(law_function *function)
{
    struct arena *arena = arena_create("law_schedules");
    for (size_t i = 0; i < schedule_count; i++) {
        uint32_t judged = 0;
        for (uint32_t pp = 1; pp <= PP_MAX; pp++)
            for (uint32_t vpp = 1; vpp <= VPP_MAX; vpp++)
                for (uint32_t m = 1; m <= MICROBATCHES_MAX; m++)
                    judged +=
                        judge_groups(schedule_registry[i],
                                     (struct schedule_ask){.pp = pp, .vpp = vpp, .microbatches = m},
                                     arena, function);
        /* A schedule that refuses nearly everything would pass every law. */
        assert_true(judged > 100);
    }
    arena_destroy(arena);
}

/* Law 1. */
static void passes_once(const struct law_case *law)
{
    const size_t passes = (size_t)law->ask.vpp * law->ask.microbatches;
    for (uint32_t s = 0; s < law->ask.pp; s++) {
        uint32_t *forwards = ARENA_ARRAY(law->arena, passes, uint32_t);
        uint32_t *backwards = ARENA_ARRAY(law->arena, passes, uint32_t);
        uint32_t *weights = ARENA_ARRAY(law->arena, passes, uint32_t);
        for (uint32_t i = 0; i < law->order->action_count[s]; i++) {
            const struct order_action *a = &law->order->actions[s][i];
            const size_t at = (size_t)a->chunk * law->ask.microbatches + a->microbatch;
            const size_t back =
                (size_t)play_back_chunk(a) * law->ask.microbatches + play_back_microbatch(a);
            LAW(law, at < passes);
            LAW(law, back < passes);
            forwards[at] += play_has_forward(a);
            backwards[back] += play_has_backward(a);
            weights[back] += a->kind == ORDER_B || a->kind == ORDER_FB || a->kind == ORDER_W;
            LAW(law, !play_is_pair(a) || law->schedule->overlaps);
            LAW(law, a->kind != ORDER_W || law->schedule->splits_backward);
            LAW(law, !play_is_pair(a) || a->microbatch != a->back_microbatch);
        }
        for (size_t i = 0; i < passes; i++) {
            LAW(law, forwards[i] == 1);
            LAW(law, backwards[i] == 1);
            LAW(law, weights[i] == 1);
        }
    }
}

static void every_pass_runs_once(void **state)
{
    (void)state;
    for_every_case(passes_once);
}

/* Law 2: the player refuses an action whose input is not there, and notices a deadlock. */
static void plays_to_the_end(const struct law_case *law)
{
    const struct play play =
        schedule_play(law->order, law->schedule->v_shaped, ratios[0], law->arena);
    LAW(law, play.finished);
    LAW(law, law->order->stage_count == law->ask.pp);
    LAW(law, law->order->chunk_count == law->ask.vpp);
    LAW(law, law->order->microbatches == law->ask.microbatches);
}

static void no_order_deadlocks(void **state)
{
    (void)state;
    for_every_case(plays_to_the_end);
}

/* Law 3. */
static void holds_what_it_says(const struct law_case *law)
{
    for (uint32_t s = 0; s < law->ask.pp; s++)
        LAW(law, play_alive_max(law->order, s) == law->schedule->in_flight_max(&law->ask, s));
}

static void in_flight_is_exact(void **state)
{
    (void)state;
    for_every_case(holds_what_it_says);
}

/* Law 4. No closed form is legal; tests/unit/schedule says where each schedule has none. */
static void takes_what_it_says(const struct law_case *law)
{
    for (size_t i = 0; i < RATIO_COUNT; i++) {
        const struct schedule_times seconds = case_seconds(ratios[i]);
        const double stated = law->schedule->makespan(&law->ask, &seconds);
        const struct play play =
            schedule_play(law->order, law->schedule->v_shaped, ratios[i], law->arena);
        LAW(law, isnan(stated) || stated == (double)play.makespan);
        for (uint32_t s = 0; s < law->ask.pp; s++)
            LAW(law, play.idle[s] >= 0);
    }
}

static void makespan_is_exact(void **state)
{
    (void)state;
    for_every_case(takes_what_it_says);
}

/* Warm-up before the first backward, cool-down after the last forward, steady between. */
static void phases_split_the_list(const struct law_case *law)
{
    for (uint32_t s = 0; s < law->ask.pp; s++) {
        const uint32_t count = law->order->action_count[s];
        uint32_t backwards = 0;
        uint32_t forwards = 0;
        for (uint32_t i = 0; i < count; i++) {
            const struct order_action *a = &law->order->actions[s][i];
            const bool over = forwards == law->ask.vpp * law->ask.microbatches;
            backwards += play_has_backward(a);
            forwards += play_has_forward(a);
            LAW(law, (a->phase == PHASE_COOLDOWN) == over);
            LAW(law, (a->phase == PHASE_WARMUP) == (backwards == 0));
            LAW(law, a->phase <= PHASE_COOLDOWN);
        }
    }
}

static void every_action_has_its_phase(void **state)
{
    (void)state;
    for_every_case(phases_split_the_list);
}

/* Law 5. */
static void microbatches_rise(const struct law_case *law)
{
    for (uint32_t s = 0; s < law->ask.pp; s++) {
        uint32_t forwards[VPP_MAX] = {0};
        uint32_t backwards[VPP_MAX] = {0};
        uint32_t oldest = 0; /* action whose W is the next one */
        for (uint32_t i = 0; i < law->order->action_count[s]; i++) {
            const struct order_action *list = law->order->actions[s];
            const struct order_action *a = &list[i];
            if (play_has_forward(a))
                LAW(law, a->microbatch == forwards[a->chunk]++);
            if (play_has_backward(a))
                LAW(law, play_back_microbatch(a) == backwards[play_back_chunk(a)]++);
            if (a->kind != ORDER_W)
                continue;
            while (oldest < i && list[oldest].kind != ORDER_BI)
                oldest++;
            LAW(law, a->chunk == list[oldest].chunk);
            LAW(law, a->microbatch == list[oldest].microbatch);
            oldest++;
        }
    }
}

static void microbatches_run_in_order(void **state)
{
    (void)state;
    for_every_case(microbatches_rise);
}

static void registry_is_complete(void **state)
{
    (void)state;
    static const char *const names[] = {"gpipe", "1f1b",       "interleaved",    "zb_h1",
                                        "zb_v",  "dualpipe_v", "overlapped_1f1b"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        assert_non_null(schedule_find(names[i]));
    for (size_t i = 0; i < schedule_count; i++) {
        const struct schedule *schedule = schedule_registry[i];
        assert_ptr_equal(schedule_find(schedule->name), schedule);
        assert_true(schedule->title[0] != '\0');
        assert_true(schedule->bubble_formula[0] != '\0');
        assert_true(schedule->in_flight_formula[0] != '\0');
        assert_true(schedule->region[0] != '\0');
    }
}

/* The comparison in docs/NOTATION.md, section 3: pp 8, 32 microbatches, a whole stage takes
 * 2 + 2 + 2. Worked there from the closed forms; activations are counted in chunks here. */
static void table_of_the_notation(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint32_t vpp;
        int64_t makespan;
        uint32_t alive;
    } rows[] = {
        {"gpipe", 1, 234, 32},           {"1f1b", 1, 234, 8},  {"interleaved", 2, 213, 23},
        {"overlapped_1f1b", 2, 213, 24}, {"zb_h1", 1, 206, 8}, {"zb_v", 2, 199, 16},
        {"dualpipe_v", 2, 206, 17},
    };
    struct arena *arena = arena_create("law_schedules");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct schedule *schedule = case_schedule(rows[i].name);
        const struct schedule_ask ask = {.pp = 8, .vpp = rows[i].vpp, .microbatches = 32};
        const int64_t pass = rows[i].vpp == 1 ? 2 : 1;
        const struct play_times times = {pass, pass, pass, 3 * pass};
        const struct pipeline_order *order = schedule->build(&ask, arena);
        const struct play play = schedule_play(order, schedule->v_shaped, times, arena);
        assert_int_equal(play.makespan, rows[i].makespan);
        assert_int_equal(play_alive_max(order, 0), rows[i].alive);
    }
    arena_destroy(arena);
}

/* Order of the headline case: pp 16, vpp 2, 96 microbatches, 6,144 passes. The best of many
 * runs, so that a busy machine does not fail it. */
static double build_seconds(const struct schedule *schedule, struct schedule_ask ask)
{
    struct arena *arena = arena_create("law_schedules");
    double best = 1.0;
    for (uint32_t i = 0; i < 30; i++) {
        struct timespec begin;
        struct timespec end;
        arena_reset(arena);
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
        schedule->build(&ask, arena);
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
        const double elapsed =
            (double)(end.tv_sec - begin.tv_sec) + 1e-9 * (double)(end.tv_nsec - begin.tv_nsec);
        best = elapsed < best ? elapsed : best;
    }
    arena_destroy(arena);
    return best;
}

static void building_is_quick(void **state)
{
    (void)state;
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__)
    const double limit_s = 1e-3;
#else
    const double limit_s = 20e-3;
#endif
    for (size_t i = 0; i < schedule_count; i++) {
        const struct schedule *schedule = schedule_registry[i];
        const uint32_t vpp = schedule->vpp_max == 1 ? 1 : 2;
        const double seconds = build_seconds(
            schedule, (struct schedule_ask){.pp = 16, .vpp = vpp, .microbatches = 96});
        print_message("%-16s %7.1f us\n", schedule->name, 1e6 * seconds);
        assert_true(seconds < limit_s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(registry_is_complete),      cmocka_unit_test(every_pass_runs_once),
        cmocka_unit_test(no_order_deadlocks),        cmocka_unit_test(in_flight_is_exact),
        cmocka_unit_test(makespan_is_exact),         cmocka_unit_test(every_action_has_its_phase),
        cmocka_unit_test(microbatches_run_in_order), cmocka_unit_test(table_of_the_notation),
        cmocka_unit_test(building_is_quick),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
