/* range_json.c - a range as the object `range` of `simulate --json`. */
#include <cjson/cJSON.h>
#include <math.h>

#include "stepsim/range.h"

static void add_number(cJSON *object, const char *name, double value)
{
    ASSERT(isfinite(value));
    cJSON_AddNumberToObject(object, name, value);
}

static void add_span(cJSON *object, const char *name, struct range_span span)
{
    cJSON *item = cJSON_AddObjectToObject(object, name);
    add_number(item, "low", span.low);
    add_number(item, "high", span.high);
}

static const char *grade_name(enum fact_grade grade)
{
    static const char *const names[] = {
        [GRADE_NONE] = "",         [GRADE_MEASURED] = "measured", [GRADE_VENDOR] = "vendor",
        [GRADE_FITTED] = "fitted", [GRADE_ASSUMED] = "assumed",
    };
    return names[grade];
}

static cJSON *input_json(const struct range_input *input)
{
    cJSON *object = cJSON_CreateObject();
    cJSON_AddStringToObject(object, "key", input->key);
    cJSON_AddStringToObject(object, "grade", grade_name(input->grade));
    cJSON_AddStringToObject(object, "unit", input->unit);
    add_number(object, "value", input->value);
    add_number(object, "low", input->low);
    add_number(object, "high", input->high);
    add_number(object, "step_time_low_s", input->step_time_s.low);
    add_number(object, "step_time_high_s", input->step_time_s.high);
    add_number(object, "peak_bytes_low", input->peak_bytes.low);
    add_number(object, "peak_bytes_high", input->peak_bytes.high);
    cJSON_AddBoolToObject(object, "fits_low", input->fits_low);
    cJSON_AddBoolToObject(object, "fits_high", input->fits_high);
    if (input->refused != NULL)
        cJSON_AddStringToObject(object, "refused", input->refused);
    return object;
}

struct cJSON *range_json(const struct range *range)
{
    cJSON *object = cJSON_CreateObject();
    ASSERT(object != NULL);
    add_span(object, "step_time_s", range->step_time_s);
    add_span(object, "tokens_per_s", range->tokens_per_s);
    add_span(object, "mfu", range->mfu);
    add_span(object, "peak_bytes", range->peak_bytes);
    add_number(object, "tried", range->tried);
    cJSON *inputs = cJSON_AddArrayToObject(object, "inputs");
    for (uint32_t i = 0; i < range->input_count; i++)
        cJSON_AddItemToArray(inputs, input_json(&range->inputs[i]));
    cJSON *held = cJSON_AddArrayToObject(object, "held");
    for (uint32_t i = 0; i < range->held_count; i++)
        cJSON_AddItemToArray(held, cJSON_CreateString(range->held[i]));
    return object;
}
