/*
 * validate_json.c - the object of `stepsim validate --json`.
 *
 * A score without rows has null in place of its numbers; so has a row without a prediction.
 */
#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

#include "stepsim/arena.h"
#include "stepsim/validate.h"

#define GROUPS_MAX 64

static void add_number(cJSON *object, const char *name, double value, bool there)
{
    if (there && isfinite(value))
        cJSON_AddNumberToObject(object, name, value);
    else
        cJSON_AddNullToObject(object, name);
}

static cJSON *score_json(const struct score *score)
{
    static const char *const names[3] = {"10%", "20%", "30%"};
    const bool any = score->n > 0;
    cJSON *object = cJSON_CreateObject();
    cJSON_AddNumberToObject(object, "n", score->n);
    cJSON_AddNumberToObject(object, "eligible", score->eligible);
    add_number(object, "mae_log", score->mae_log, any);
    add_number(object, "median_log", score->median_log, any);
    add_number(object, "anchored_mae_log", score->anchored_mae_log, any);
    add_number(object, "bias_log", score->bias_log, any);
    cJSON *within = cJSON_AddObjectToObject(object, "within");
    for (int i = 0; i < 3; i++)
        add_number(within, names[i], score->within[i], any);
    cJSON_AddNumberToObject(object, "memory_n", score->memory_n);
    add_number(object, "memory_mae_log", score->memory_mae_log, score->memory_n > 0);
    add_number(object, "kendall_tau", score->kendall_tau, any);
    return object;
}

static cJSON *row_json(const struct scored_row *row)
{
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "id", row->row->id);
    cJSON_AddStringToObject(object, "family", row->row->family);
    cJSON_AddStringToObject(object, "vendor", row->row->ascend ? "ascend" : "nvidia");
    cJSON_AddStringToObject(object, "models", row->row->moe ? "moe" : "dense");
    cJSON_AddBoolToObject(object, "eligible", measurement_eligible(row->row));
    if (row->prediction->done)
        cJSON_AddStringToObject(object, "device", row->prediction->device);
    else
        cJSON_AddNullToObject(object, "device");
    add_number(object, "measured_s", row->row->step_s, row->row->step_s > 0.0);
    add_number(object, "predicted_s", row->prediction->step_s, row->prediction->done);
    add_number(object, "log_error", score_log_error(row), true);
    add_number(object, "memory_log_error", score_memory_log_error(row), true);
    if (row->prediction->done)
        cJSON_AddNullToObject(object, "reason");
    else
        cJSON_AddStringToObject(object, "reason", row->prediction->reason);
    return object;
}

static bool is_layer(const struct measurement *row, const void *user)
{
    (void)user;
    return row->kind == MEASUREMENT_LAYER;
}

static bool is_chunk(const struct measurement *row, const void *user)
{
    (void)user;
    return row->kind == MEASUREMENT_CHUNK;
}

cJSON *validate_json(const struct scored_row *rows, uint32_t count)
{
    struct arena *arena = arena_create("validate_json");
    struct score_group groups[GROUPS_MAX];
    const uint32_t group_count = score_groups(rows, count, groups, GROUPS_MAX, arena);
    cJSON *object = cJSON_CreateObject();
    struct score score = score_rows(rows, count, NULL, NULL);
    cJSON_AddItemToObject(object, "overall", score_json(&score));
    cJSON *by_group = cJSON_AddObjectToObject(object, "by_group");
    for (uint32_t i = 0; i < group_count; i++) {
        score = score_rows(rows, count, groups[i].filter, groups[i].user);
        cJSON_AddItemToObject(by_group, groups[i].name, score_json(&score));
    }
    cJSON *apart = cJSON_AddObjectToObject(object, "apart");
    score = score_rows(rows, count, is_layer, NULL);
    cJSON_AddItemToObject(apart, "layer", score_json(&score));
    score = score_rows(rows, count, is_chunk, NULL);
    cJSON_AddItemToObject(apart, "chunk", score_json(&score));
    cJSON *list = cJSON_AddArrayToObject(object, "rows");
    for (uint32_t i = 0; i < count; i++)
        cJSON_AddItemToArray(list, row_json(&rows[i]));
    arena_destroy(arena);
    return object;
}
