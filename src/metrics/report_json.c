/*
 * report_json.c - a report as the one object that `simulate --json` prints.
 *
 * Scalars come from the metric table, whose names are their places in the object; what is
 * not a scalar (scenario, convention, stages, steps, notes) is added by hand. A number that
 * is not finite would turn into null without a word, so it trips an assert instead.
 */
#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

#include "metrics_internal.h"
#include "stepsim/metric.h"
#include "stepsim_version.h"

#define REPORT_SCHEMA 1

static void add_number(cJSON *object, const char *name, double value)
{
    ASSERT(isfinite(value));
    cJSON *item = cJSON_AddNumberToObject(object, name, value);
    ASSERT(item != NULL);
}

static void add_text(cJSON *object, const char *name, const char *value)
{
    cJSON *item = cJSON_AddStringToObject(object, name, value);
    ASSERT(item != NULL);
}

static void add_flag(cJSON *object, const char *name, bool value)
{
    cJSON *item = cJSON_AddBoolToObject(object, name, value);
    ASSERT(item != NULL);
}

/* The object called name inside parent, made when it is not there. */
static cJSON *child_object(cJSON *parent, const char *name)
{
    cJSON *child = cJSON_GetObjectItemCaseSensitive(parent, name);
    if (child == NULL) {
        child = cJSON_AddObjectToObject(parent, name);
    }
    ASSERT(child != NULL);
    return child;
}

static void add_metric(cJSON *root, const struct metric *metric, const struct report *report)
{
    char path[128];
    ASSERT(strlen(metric->name) < sizeof path);
    memcpy(path, metric->name, strlen(metric->name) + 1);
    cJSON *object = root;
    char *name = path;
    for (char *dot = strchr(name, '.'); dot != NULL; dot = strchr(name, '.')) {
        *dot = '\0';
        object = child_object(object, name);
        name = dot + 1;
    }
    const double value = metric->value(report);
    if (metric->kind == METRIC_FLAG) {
        add_flag(object, name, value != 0.0);
    } else {
        ASSERT(metric->kind != METRIC_RATIO || (value >= 0.0 && value <= 1.0));
        add_number(object, name, value);
    }
}

static void add_identity(cJSON *root, const struct report *report)
{
    char digits[2 * sizeof(uint64_t) + 1];
    cJSON *program = child_object(root, "stepsim");
    add_text(program, "version", STEPSIM_VERSION);
    add_text(program, "commit", STEPSIM_COMMIT);
    add_number(program, "schema", REPORT_SCHEMA);
    snprintf(digits, sizeof digits, "%016llx", (unsigned long long)report->digest);
    add_text(program, "digest", digits);
    snprintf(digits, sizeof digits, "%016llx", (unsigned long long)report->event_digest);
    add_text(program, "event_digest", digits);
    add_text(program, "scenario_hash", report->scenario_hash);
}

static void add_stages(cJSON *memory, const struct report *report)
{
    cJSON *stages = cJSON_AddArrayToObject(memory, "stages");
    for (uint32_t i = 0; i < report->stage_count; i++) {
        const struct stage_report *stage = &report->stages[i];
        cJSON *row = cJSON_CreateObject();
        cJSON_AddItemToArray(stages, row);
        add_number(row, "stage", stage->stage);
        add_number(row, "layers", stage->layers);
        add_number(row, "peak_bytes", stage->peak_bytes);
        add_number(row, "weights", stage->weights);
        add_number(row, "gradients", stage->gradients);
        add_number(row, "optimizer", stage->optimizer);
        add_number(row, "activations", stage->activations);
        add_number(row, "logits", stage->logits);
        add_number(row, "buffers", stage->buffers);
        add_number(row, "reserve", stage->reserve);
        add_text(row, "peak_phase", memory_phase_name(stage->peak_phase));
        add_number(row, "compute_busy_s", stage->compute_busy_s);
        add_number(row, "end_s", stage->end_s);
    }
}

static void add_steps(cJSON *root, const struct report *report)
{
    cJSON *steps = cJSON_AddArrayToObject(root, "steps");
    for (uint32_t i = 0; i < report->step_count; i++) {
        const struct step_report *step = &report->steps[i];
        cJSON *row = cJSON_CreateObject();
        cJSON_AddItemToArray(steps, row);
        add_number(row, "step", step->step);
        add_number(row, "step_time_s", step->step_time_s);
        add_number(row, "mfu", step->mfu);
        add_number(row, "tokens_per_s", step->tokens_per_s);
        add_number(row, "peak_bytes", step->peak_bytes);
        cJSON_AddBoolToObject(row, "fits", step->fits);
        add_number(row, "load_max_over_mean", step->load_max_over_mean);
        add_number(row, "load_mean_max_over_mean", step->load_mean_max_over_mean);
        add_number(row, "dropped_ratio", step->dropped_ratio);
        add_number(row, "migrations", step->migrations);
    }
}

/* The dropped share of each layer, where tokens are dropped at all. */
static void add_layer_dropped(cJSON *root, const struct report *report)
{
    if (report->layer_dropped == NULL)
        return;
    cJSON *layers = cJSON_AddArrayToObject(child_object(root, "moe"), "layer_dropped");
    for (uint32_t i = 0; i < report->layer_count; i++)
        cJSON_AddItemToArray(layers, cJSON_CreateNumber(report->layer_dropped[i]));
}

static void add_words(cJSON *root, const struct report *report)
{
    cJSON *convention = child_object(root, "mfu_convention");
    add_text(convention, "attention",
             report->convention.attention == ATTENTION_COUNT_CAUSAL ? "causal" : "full");
    add_flag(convention, "mtp", report->convention.mtp);
    add_flag(convention, "router", report->convention.router);
    add_text(child_object(root, "engine"), "ranks", report->ranks_all ? "all" : "folded");
    add_number(root, "time_share_stage", report->time_share_stage);
    add_text(root, "layers_per_stage", report->layout->split_text);
    add_text(root, "chunks", report->layout->chunk_text);
    add_text(root, "verdict", report->verdict);
    cJSON *notes = cJSON_AddArrayToObject(root, "notes");
    for (uint32_t i = 0; i < report->note_count; i++) {
        cJSON_AddItemToArray(notes, cJSON_CreateString(report->notes[i]));
    }
}

static void add_anchor(cJSON *root, const struct report *report)
{
    ASSERT(report->anchor_ratio > 0.0);
    cJSON *anchor = child_object(root, "anchored");
    add_number(anchor, "ratio", report->anchor_ratio);
    add_number(anchor, "step_time_s", report->step_time_s * report->anchor_ratio);
    add_number(anchor, "tokens_per_s", report->tokens_per_s / report->anchor_ratio);
    add_number(anchor, "mfu", report->mfu / report->anchor_ratio);
}

struct cJSON *report_json(const struct report *report)
{
    cJSON *root = cJSON_CreateObject();
    ASSERT(root != NULL);
    add_identity(root, report);
    cJSON_AddItemToObject(root, "scenario", scenario_json(report->scenario, true));
    const bool days_given = report->scenario->training.tokens > 0.0;
    for (size_t i = 0; i < metric_count; i++) {
        if (days_given || strncmp(metric_table[i].name, "days_for_tokens.", 16) != 0) {
            add_metric(root, &metric_table[i], report);
        }
    }
    if (!days_given) {
        cJSON_AddNullToObject(root, "days_for_tokens");
    }
    add_words(root, report);
    add_stages(child_object(root, "memory"), report);
    add_steps(root, report);
    add_layer_dropped(root, report);
    if (report->anchor_ratio != 0.0) {
        add_anchor(root, report);
    }
    return root;
}
