/*
 * check_report.c - a check for machines: JSON, and JUnit XML that CI systems show as tests.
 */
#include <cjson/cJSON.h>
#include <math.h>

#include "stepsim/check.h"
#include "stepsim/text.h"

static const char *allowed_text(const struct baseline_metric *metric, struct arena *arena)
{
    return metric->relative ? arena_printf(arena, "%.4g %%", metric->tolerance * 100.0)
                            : text_double(arena, metric->tolerance);
}

/* ---- JSON ---- */

static void add_metrics(cJSON *parent, const struct check_scenario *scenario)
{
    cJSON *list = cJSON_AddArrayToObject(parent, "metrics");
    for (uint32_t i = 0; i < scenario->baseline->metric_count; i++) {
        const struct check_metric *metric = &scenario->metrics[i];
        cJSON *item = cJSON_CreateObject();
        cJSON_AddStringToObject(item, "name", metric->baseline->name);
        if (metric->baseline->has_value) {
            cJSON_AddNumberToObject(item, "value", metric->baseline->value);
            cJSON_AddNumberToObject(item, "change", metric->now - metric->baseline->value);
        }
        cJSON_AddNumberToObject(item, "now", metric->now);
        cJSON_AddNumberToObject(item, metric->baseline->relative ? "rel" : "abs",
                                metric->baseline->tolerance);
        cJSON_AddBoolToObject(item, "within", metric->within);
        cJSON_AddItemToArray(list, item);
    }
}

static void add_terms(cJSON *parent, const struct check_scenario *scenario)
{
    const struct answer_terms *before = &scenario->baseline->terms;
    const struct answer_terms *now = &scenario->terms;
    if (!scenario->baseline->has_terms) {
        return;
    }
    cJSON *time = cJSON_AddObjectToObject(parent, "time_change_s");
    for (unsigned c = 0; c < CAUSE_COUNT; c++) {
        const sim_time change = now->time_ps[c] - before->time_ps[c];
        cJSON_AddNumberToObject(time, time_cause_name((enum time_cause)c), (double)change / 1e12);
    }
    cJSON *memory = cJSON_AddObjectToObject(parent, "memory_change_bytes");
    for (unsigned t = 0; t < MEMORY_TERM_COUNT; t++) {
        cJSON_AddNumberToObject(memory, memory_term_name((enum memory_term)t),
                                now->memory_bytes[t] - before->memory_bytes[t]);
    }
}

struct cJSON *check_json(const struct check *check, struct arena *arena)
{
    cJSON *root = cJSON_CreateObject();
    ASSERT(root != NULL);
    cJSON_AddBoolToObject(root, "passed", check->failed_count == 0);
    cJSON_AddNumberToObject(root, "scenario_count", check->scenario_count);
    cJSON_AddNumberToObject(root, "failed_scenarios", check->failed_count);
    cJSON_AddNumberToObject(root, "metric_count", check->metric_count);
    cJSON_AddNumberToObject(root, "failed_metrics", check->failed_metrics);
    cJSON *list = cJSON_AddArrayToObject(root, "scenarios");
    for (uint32_t i = 0; i < check->scenario_count; i++) {
        const struct check_scenario *scenario = &check->scenarios[i];
        cJSON *item = cJSON_CreateObject();
        cJSON_AddItemToArray(list, item);
        cJSON_AddStringToObject(item, "file", scenario->baseline->file);
        cJSON_AddStringToObject(item, "name", scenario->baseline->name);
        cJSON_AddBoolToObject(item, "within", scenario->within);
        if (scenario->failure != NULL) {
            cJSON_AddStringToObject(item, "failure", scenario->failure);
            continue;
        }
        add_metrics(item, scenario);
        add_terms(item, scenario);
        cJSON_AddStringToObject(item, "moved", check_moved_text(scenario, arena));
    }
    return root;
}

/* ---- JUnit ---- */

/* Text of an attribute; XML 1.0 has no way to write most control characters. */
static void add_escaped(struct text *out, const char *value)
{
    for (; *value != '\0'; value++) {
        switch (*value) {
        case '&':
            text_add(out, "&amp;");
            break;
        case '<':
            text_add(out, "&lt;");
            break;
        case '"':
            text_add(out, "&quot;");
            break;
        default:
            text_add(out, "%c", (unsigned char)*value < 0x20 ? ' ' : *value);
        }
    }
}

static void open_case(struct text *out, const struct check_scenario *scenario, const char *name)
{
    text_add(out, "    <testcase classname=\"");
    add_escaped(out, scenario->baseline->name);
    text_add(out, "\" name=\"");
    add_escaped(out, name);
    text_add(out, "\"");
}

static void add_metric_case(struct text *out, const struct check_scenario *scenario,
                            const struct check_metric *metric, struct arena *arena)
{
    const struct baseline_metric *baseline = metric->baseline;
    open_case(out, scenario, baseline->name);
    if (metric->within) {
        text_add(out, "/>\n");
        return;
    }
    text_add(out, "><failure message=\"was %s, is %s, allowed %s\">",
             text_double(arena, baseline->value), text_double(arena, metric->now),
             allowed_text(baseline, arena));
    add_escaped(out, check_moved_text(scenario, arena));
    text_add(out, "</failure></testcase>\n");
}

static void add_suite(struct text *out, const struct check_scenario *scenario, struct arena *arena)
{
    uint32_t failures = 0;
    const uint32_t count = scenario->baseline->metric_count;
    for (uint32_t m = 0; scenario->failure == NULL && m < count; m++) {
        failures += !scenario->metrics[m].within;
    }
    text_add(out, "  <testsuite name=\"");
    add_escaped(out, scenario->baseline->name);
    if (scenario->failure != NULL) {
        text_add(out, "\" tests=\"1\" failures=\"0\" errors=\"1\">\n");
        open_case(out, scenario, "simulate");
        text_add(out, "><error message=\"");
        add_escaped(out, scenario->failure);
        text_add(out, "\"/></testcase>\n");
    } else {
        text_add(out, "\" tests=\"%u\" failures=\"%u\" errors=\"0\">\n", count, failures);
        for (uint32_t m = 0; m < count; m++) {
            add_metric_case(out, scenario, &scenario->metrics[m], arena);
        }
    }
    text_add(out, "  </testsuite>\n");
}

char *check_junit(const struct check *check, struct arena *arena)
{
    uint32_t tests = 0;
    uint32_t failures = 0;
    uint32_t errors = 0;
    for (uint32_t i = 0; i < check->scenario_count; i++) {
        const struct check_scenario *scenario = &check->scenarios[i];
        const bool failed = scenario->failure != NULL;
        errors += failed;
        tests += failed ? 1 : scenario->baseline->metric_count;
        for (uint32_t m = 0; !failed && m < scenario->baseline->metric_count; m++) {
            failures += !scenario->metrics[m].within;
        }
    }
    struct text out = {0};
    text_add(&out,
             "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"stepsim check\" "
             "tests=\"%u\" failures=\"%u\" errors=\"%u\">\n",
             tests, failures, errors);
    for (uint32_t i = 0; i < check->scenario_count; i++) {
        add_suite(&out, &check->scenarios[i], arena);
    }
    text_add(&out, "</testsuites>\n");
    char *copy = arena_strdup(arena, text_string(&out));
    text_free(&out);
    return copy;
}
