/*
 * schedule_case.h - one line per expectation of a schedule: what it draws, holds and refuses.
 */
#ifndef TEST_SCHEDULE_CASE_H
#define TEST_SCHEDULE_CASE_H

#include "assert_close.h"
#include "schedule_play.h"

static inline const struct schedule *case_schedule(const char *name)
{
    const struct schedule *schedule = schedule_find(name);
    if (schedule == NULL)
        fail_msg("no schedule is called %s", name);
    return schedule;
}

static inline struct schedule_times case_seconds(struct play_times times)
{
    return (struct schedule_times){
        .forward = (double)times.forward,
        .backward_input = (double)times.backward_input,
        .backward_weight = (double)times.backward_weight,
        .overlapped = (double)times.overlapped,
    };
}

/* True when check() accepts; the errors live in the arena. */
static inline bool case_check(const struct schedule *schedule, const struct schedule_ask *ask,
                              struct arena *arena, struct error_list *errors)
{
    const struct location at = {.file = "sim.yaml", .line = 14, .column = 9};
    error_list_init(errors, arena);
    return schedule->check(ask, at, errors);
}

static inline void case_accepted(const char *name, struct schedule_ask ask)
{
    struct arena *arena = arena_create("schedule_case");
    struct error_list errors;
    if (!case_check(case_schedule(name), &ask, arena, &errors) || errors.count != 0)
        fail_msg("refused: %s", error_list_text(&errors, arena));
    arena_destroy(arena);
}

/* Refused with this one error, at the position given, and `advice` is part of its message. */
static inline void case_refused(const char *name, struct schedule_ask ask, enum error_code code,
                                const char *advice)
{
    struct arena *arena = arena_create("schedule_case");
    struct error_list errors;
    assert_false(case_check(case_schedule(name), &ask, arena, &errors));
    const char *text = error_list_text(&errors, arena);
    if (errors.count != 1 || errors.items[0].code != code ||
        strstr(errors.items[0].message, advice) == NULL)
        fail_msg("expected one %s that says \"%s\", got: %s", error_code_name(code), advice, text);
    assert_string_equal(errors.items[0].key, "schedule.kind");
    assert_int_equal(errors.items[0].at.line, 14);
    arena_destroy(arena);
}

/* The timeline is the drawing, and makespan() is the width of the drawing. */
static inline void case_drawn(const char *name, struct schedule_ask ask, struct play_times times,
                              const char *drawing)
{
    struct arena *arena = arena_create("schedule_case");
    const struct schedule *schedule = case_schedule(name);
    const struct pipeline_order *order = schedule->build(&ask, arena);
    const struct play play = schedule_play(order, schedule->v_shaped, times, arena);
    assert_true(play.finished);
    const char *drawn = play_draw(order, &play, times, arena);
    if (strcmp(drawn, drawing) != 0)
        fail_msg("%s runs\n%sexpected\n%s", name, drawn, drawing);
    const struct schedule_times seconds = case_seconds(times);
    const double width = (double)(strcspn(drawing, "\n") + 1) / 3.0;
    assert_close(schedule->makespan(&ask, &seconds), width, 0.0);
    arena_destroy(arena);
}

/* Activations alive, stage by stage, played and stated. */
static inline void case_alive(const char *name, struct schedule_ask ask, const uint32_t *expected)
{
    struct arena *arena = arena_create("schedule_case");
    const struct schedule *schedule = case_schedule(name);
    const struct pipeline_order *order = schedule->build(&ask, arena);
    for (uint32_t s = 0; s < ask.pp; s++) {
        assert_int_equal(play_alive_max(order, s), expected[s]);
        assert_int_equal(schedule->in_flight_max(&ask, s), expected[s]);
    }
    arena_destroy(arena);
}

static inline double case_makespan(const char *name, struct schedule_ask ask,
                                   struct schedule_times times)
{
    return case_schedule(name)->makespan(&ask, &times);
}

/* "WWSSCC": the phase of every action of a stage. */
static inline void case_phases(const char *name, struct schedule_ask ask, uint32_t stage,
                               const char *expected)
{
    struct arena *arena = arena_create("schedule_case");
    const struct pipeline_order *order = case_schedule(name)->build(&ask, arena);
    char *text = arena_alloc(arena, order->action_count[stage] + 1);
    for (uint32_t i = 0; i < order->action_count[stage]; i++)
        text[i] = "WSC"[order->actions[stage][i].phase];
    assert_string_equal(text, expected);
    arena_destroy(arena);
}

#endif
