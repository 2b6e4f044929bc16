/*
 * model_fixture.h - a scenario through model_build().
 *
 *     struct model_fixture f = model_fixture_open(builder_model("Mixtral-8x7B"));
 *     f.scenario.model.mtp_layers = 1;
 *     const struct model *model = model_fixture_build(&f);    NULL when refused
 *     model_fixture_close(&f);
 */
#ifndef TEST_MODEL_FIXTURE_H
#define TEST_MODEL_FIXTURE_H

#include "assert_refused.h"
#include "scenario_builder.h"
#include "stepsim/model.h"

struct model_fixture {
    struct arena *arena;
    struct error_list *errors;
    struct scenario scenario;
};

static inline struct model_fixture model_fixture_open(struct model_spec spec)
{
    struct model_fixture fixture = {
        .arena = arena_create("test"),
        .scenario = builder_scenario(),
    };
    fixture.scenario.model = spec;
    fixture.errors = ARENA_NEW(fixture.arena, struct error_list);
    error_list_init(fixture.errors, fixture.arena);
    return fixture;
}

/* Forgets earlier errors. */
static inline const struct model *model_fixture_build(struct model_fixture *fixture)
{
    error_list_init(fixture->errors, fixture->arena);
    const struct model *model = model_build(&fixture->scenario, fixture->arena, fixture->errors);
    assert_true((model == NULL) == (fixture->errors->count > 0));
    return model;
}

static inline void model_fixture_close(struct model_fixture *fixture)
{
    arena_destroy(fixture->arena);
}

#endif
