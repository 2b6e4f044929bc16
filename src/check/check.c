/*
 * check.c - runs the scenarios of a baseline and compares.
 */
#include "stepsim/check.h"

#include <math.h>
#include <string.h>

#include "stepsim/arena.h"
#include "stepsim/metric.h"
#include "stepsim/run.h"
#include "stepsim/scenario.h"

/* A path inside the folder of the baseline; an absolute one stays. */
static const char *beside(const struct baseline *baseline, const char *file, struct arena *arena)
{
    const char *slash = strrchr(baseline->path, '/');
    if (file[0] == '/' || slash == NULL) {
        return file;
    }
    return arena_printf(arena, "%.*s/%s", (int)(slash - baseline->path), baseline->path, file);
}

static bool within(const struct baseline_metric *metric, double now)
{
    const double allowed =
        metric->relative ? metric->tolerance * fabs(metric->value) : metric->tolerance;
    return fabs(now - metric->value) <= allowed;
}

/* The first error, as it would be printed. */
static const char *failure_text(struct error_list *errors, struct arena *scratch,
                                struct arena *arena)
{
    const char *text = error_list_text(errors, scratch);
    return arena_strndup(arena, text, strcspn(text, "\n"));
}

static void compare_metrics(struct check_scenario *result, const struct report *report,
                            struct arena *arena)
{
    const struct baseline_scenario *baseline = result->baseline;
    struct check_metric *metrics =
        ARENA_ARRAY(arena, baseline->metric_count + 1, struct check_metric);
    result->within = true;
    for (uint32_t i = 0; i < baseline->metric_count; i++) {
        const struct baseline_metric *metric = &baseline->metrics[i];
        metrics[i] = (struct check_metric){.baseline = metric,
                                           .now = metric_table[metric->index].value(report)};
        metrics[i].within = metric->has_value && within(metric, metrics[i].now);
        result->within = result->within && metrics[i].within;
    }
    result->metrics = metrics;
    result->terms = answer_terms_of(report);
}

static void check_one(struct check_scenario *result, const struct scenario_source *source,
                      struct arena *arena)
{
    struct arena *scratch = arena_create("one checked scenario");
    struct error_list errors;
    error_list_init(&errors, scratch);
    const struct scenario *scenario = scenario_load(source, scratch, &errors);
    const struct run_options options = {.steps = 1};
    struct run run;
    if (scenario != NULL && run_simulate(&run, scenario, &options, scratch, &errors)) {
        compare_metrics(result, run.report, arena);
    } else {
        result->failure = failure_text(&errors, scratch, arena);
    }
    arena_destroy(scratch);
}

struct check check_run(const struct baseline *baseline, const char *config_dir, struct arena *arena)
{
    struct check check = {.scenario_count = baseline->scenario_count};
    struct check_scenario *results =
        ARENA_ARRAY(arena, baseline->scenario_count, struct check_scenario);
    for (uint32_t i = 0; i < baseline->scenario_count; i++) {
        const struct baseline_scenario *entry = &baseline->scenarios[i];
        const struct scenario_source source = {
            .path = beside(baseline, entry->file, arena),
            .config_dir = config_dir,
            .overrides = entry->overrides,
            .override_count = entry->override_count,
        };
        results[i] = (struct check_scenario){.baseline = entry};
        check_one(&results[i], &source, arena);
        check.failed_count += !results[i].within;
        check.metric_count += entry->metric_count;
        for (uint32_t m = 0; m < entry->metric_count; m++) {
            check.failed_metrics += results[i].failure != NULL || !results[i].metrics[m].within;
        }
    }
    check.scenarios = results;
    return check;
}

void check_update(struct baseline *baseline, const struct check *check)
{
    for (uint32_t i = 0; i < baseline->scenario_count; i++) {
        struct baseline_scenario *scenario = &baseline->scenarios[i];
        const struct check_scenario *result = &check->scenarios[i];
        if (result->failure != NULL) {
            continue;
        }
        for (uint32_t m = 0; m < scenario->metric_count; m++) {
            scenario->metrics[m].value = result->metrics[m].now;
            scenario->metrics[m].has_value = true;
        }
        scenario->terms = result->terms;
        scenario->has_terms = true;
    }
}

const char *check_moved_text(const struct check_scenario *scenario, struct arena *arena)
{
    if (scenario->failure != NULL || !scenario->baseline->has_terms) {
        return "";
    }
    const char *time = compare_time_text(&scenario->baseline->terms, &scenario->terms, arena);
    const char *memory = compare_memory_text(&scenario->baseline->terms, &scenario->terms, arena);
    return arena_printf(arena, "%s%s%s%s%s", time[0] != '\0' ? "time: " : "", time,
                        time[0] != '\0' && memory[0] != '\0' ? "; " : "",
                        memory[0] != '\0' ? "memory: " : "", memory);
}
