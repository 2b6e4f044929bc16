/*
 * layout_fixture.h - a scenario through model, cluster and layout.
 *
 *     struct layout_fixture f = layout_fixture_open();
 *     f.scenario.parallel.tp = 4;
 *     layout_fixture_build(&f);       f.layout is NULL when refused, f.errors says why
 *     layout_fixture_close(&f);
 *
 * The scenario starts as builder_scenario().
 */
#ifndef TEST_LAYOUT_FIXTURE_H
#define TEST_LAYOUT_FIXTURE_H

#include "assert_refused.h"
#include "scenario_builder.h"
#include "stepsim/layout.h"

struct layout_fixture {
    struct arena *arena;
    struct error_list *errors;
    struct scenario scenario;
    bool v_shaped;
    const struct model *model;
    const struct cluster *cluster;
    const struct layout *layout;
};

static inline struct layout_fixture layout_fixture_open(void)
{
    struct layout_fixture fixture = {
        .arena = arena_create("test"),
        .scenario = builder_scenario(),
    };
    fixture.errors = ARENA_NEW(fixture.arena, struct error_list);
    error_list_init(fixture.errors, fixture.arena);
    return fixture;
}

/* Forgets earlier errors, so that one fixture serves several questions. */
static inline void layout_fixture_build(struct layout_fixture *fixture)
{
    const struct scenario *scenario = &fixture->scenario;
    error_list_init(fixture->errors, fixture->arena);
    fixture->layout = NULL;
    fixture->model = model_build(scenario, fixture->arena, fixture->errors);
    fixture->cluster = cluster_build(scenario, fixture->arena, fixture->errors);
    if (fixture->model == NULL || fixture->cluster == NULL)
        return;
    const struct layout_ask ask = {.scenario = scenario,
                                   .model = fixture->model,
                                   .cluster = fixture->cluster,
                                   .v_shaped = fixture->v_shaped};
    fixture->layout = layout_build(&ask, fixture->arena, fixture->errors);
    assert_true((fixture->layout == NULL) == (fixture->errors->count > 0));
}

static inline void layout_fixture_close(struct layout_fixture *fixture)
{
    arena_destroy(fixture->arena);
}

#endif
