/* The object of `simulate --json`: names as they are promised, values as in the report. */
#include <cjson/cJSON.h>

#include "assert_aborts.h"
#include "report_fixture.h"

static struct report_fixture fixture;

/* The member at a path "a.b.c", NULL if there is none. */
static const cJSON *at(const cJSON *root, const char *path)
{
    char copy[128];
    assert_true(strlen(path) < sizeof copy);
    memcpy(copy, path, strlen(path) + 1);
    char *name = copy;
    for (char *dot = strchr(name, '.'); dot != NULL; dot = strchr(name, '.')) {
        *dot = '\0';
        root = cJSON_GetObjectItemCaseSensitive(root, name);
        name = dot + 1;
    }
    return cJSON_GetObjectItemCaseSensitive(root, name);
}

/* clang-format off */
static const char *const promised[] = {
    "stepsim.version", "stepsim.commit", "stepsim.schema", "stepsim.digest",
    "stepsim.event_digest", "scenario.parallel.pp.value", "params.total", "params.active",
    "params.embedding", "params.mtp", "world.devices", "world.tp", "world.pp", "world.vpp",
    "world.cp", "world.dp", "world.ep", "world.etp", "world.edp", "world.microbatches",
    "step_time_s", "tokens_per_s", "tokens_per_s_per_device", "days_for_tokens.tokens",
    "days_for_tokens.days", "mfu", "hfu", "mfu_convention.attention", "mfu_convention.mtp",
    "mfu_convention.router", "peak_flop_per_s_per_device", "model_flop_per_token",
    "model_flop_per_s_per_device", "time_share.compute", "time_share.recompute", "time_share.tp",
    "time_share.ep", "time_share.cp", "time_share.pp", "time_share.dp", "time_share.swap",
    "time_share.host", "time_share.imbalance", "time_share.bubble", "time_share.optimizer",
    "comm.ep.total_s", "comm.ep.exposed_s", "comm.ep.bytes_per_device",
    "comm.ep.exposed_share.warmup", "comm.ep.exposed_share.steady",
    "comm.ep.exposed_share.cooldown", "memory.peak_bytes", "memory.limit_bytes", "memory.fits",
    "memory.stages", "moe.load_max_over_mean", "moe.dropped_ratio", "moe.migrations",
    "engine.ranks", "engine.simulated_ranks", "engine.classes", "engine.events", "engine.wall_s",
    "steps", "notes", "verdict",
};
/* clang-format on */

static void promised_names_are_there(void **state)
{
    (void)state;
    fixture_init(&fixture, 1000000000);
    cJSON *json = report_json(fixture_report(&fixture));
    for (size_t i = 0; i < sizeof promised / sizeof promised[0]; i++) {
        if (at(json, promised[i]) == NULL) {
            print_error("no %s\n", promised[i]);
        }
        assert_non_null(at(json, promised[i]));
    }
    cJSON_Delete(json);
    fixture_free(&fixture);
}

static void values_are_those_of_the_report(void **state)
{
    (void)state;
    fixture_init(&fixture, 1000000000);
    struct report *report = fixture_report(&fixture);
    report->digest = 0x0123456789abcdef;
    cJSON *json = report_json(report);
    assert_close(at(json, "step_time_s")->valuedouble, 1e-3, 1e-15);
    assert_close(at(json, "mfu")->valuedouble, 0.422313984, 1e-9);
    assert_true(cJSON_IsTrue(at(json, "memory.fits")));
    assert_string_equal(at(json, "stepsim.digest")->valuestring, "0123456789abcdef");
    assert_string_equal(at(json, "engine.ranks")->valuestring, "folded");
    assert_string_equal(at(json, "mfu_convention.attention")->valuestring, "full");
    assert_int_equal(cJSON_GetArraySize(at(json, "memory.stages")), 2);
    assert_int_equal(cJSON_GetArraySize(at(json, "steps")), 1);
    assert_null(at(json, "anchored"));
    cJSON_Delete(json);
    fixture_free(&fixture);
}

/* A measured step of 1.5 ms against 1 ms: everything a third slower. */
static void an_anchor_scales_predictions(void **state)
{
    (void)state;
    fixture_init(&fixture, 1000000000);
    struct report *report = fixture_report(&fixture);
    report->anchor_ratio = 1.5;
    cJSON *json = report_json(report);
    assert_close(at(json, "anchored.step_time_s")->valuedouble, 1.5e-3, 1e-14);
    assert_close(at(json, "anchored.tokens_per_s")->valuedouble, 1.024e6 / 1.5, 1e-14);
    assert_close(at(json, "anchored.mfu")->valuedouble, 0.422313984 / 1.5, 1e-9);
    cJSON_Delete(json);
    fixture_free(&fixture);
}

static void no_tokens_no_days(void **state)
{
    (void)state;
    fixture_init(&fixture, 1000000000);
    fixture.scenario->training.tokens = 0.0;
    cJSON *json = report_json(fixture_report(&fixture));
    assert_true(cJSON_IsNull(at(json, "days_for_tokens")));
    cJSON_Delete(json);
    fixture_free(&fixture);
}

static struct report *broken;

static void print_broken(void)
{
    cJSON_Delete(report_json(broken));
}

static void what_is_not_a_number_is_a_bug(void **state)
{
    (void)state;
    fixture_init(&fixture, 1000000000);
    broken = fixture_report(&fixture);
    broken->wall_s = (double)NAN;
    assert_aborts(print_broken);
    broken->wall_s = (double)INFINITY;
    assert_aborts(print_broken);
    broken->wall_s = 0.0;
    broken->bubble_ratio = 1.5;
    assert_aborts(print_broken);
    fixture_free(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(promised_names_are_there),
        cmocka_unit_test(values_are_those_of_the_report),
        cmocka_unit_test(an_anchor_scales_predictions),
        cmocka_unit_test(no_tokens_no_days),
        cmocka_unit_test(what_is_not_a_number_is_a_bug),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
