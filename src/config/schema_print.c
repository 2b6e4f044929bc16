/*
 * schema_print.c - a stored value back as text, number or JSON.
 */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "config/config_internal.h"
#include "stepsim/text.h"

/* Above this, JSON readers that use doubles lose digits. */
#define EXACT_MAX ((uint64_t)1 << 53)

static const void *stored(const struct schema_row *row, const void *base)
{
    return (const char *)base + row->offset;
}

static uint32_t stored_uint(const struct schema_row *row, const void *base)
{
    uint32_t value = 0;
    memcpy(&value, stored(row, base), sizeof value);
    return value;
}

static uint64_t stored_uint64(const struct schema_row *row, const void *base)
{
    uint64_t value = 0;
    memcpy(&value, stored(row, base), sizeof value);
    return value;
}

static double stored_double(const struct schema_row *row, const void *base)
{
    double value = 0.0;
    memcpy(&value, stored(row, base), sizeof value);
    return value;
}

static const char *stored_text(const struct schema_row *row, const void *base)
{
    const char *value = NULL;
    memcpy(&value, stored(row, base), sizeof value);
    return value;
}

uint32_t schema_item_count(const struct schema_row *row, const void *base)
{
    uint32_t count = 0;
    memcpy(&count, (const char *)base + row->count_offset, sizeof count);
    return count;
}

const char *schema_item(const struct schema_row *row, const void *base, uint32_t index)
{
    const char *items = stored(row, base);
    if (row->kind == SCHEMA_ITEMS)
        memcpy(&items, stored(row, base), sizeof items);
    return items + index * row->items->struct_size;
}

const struct origin *schema_origins(const struct schema_table *table, const void *base)
{
    const struct origin *origins = NULL;
    if (table->origins_offset != SCHEMA_NO_ORIGINS)
        memcpy(&origins, (const char *)base + table->origins_offset, sizeof origins);
    return origins;
}

static const char *choice_name(const struct schema_row *row, const void *base)
{
    return row->choices[schema_value_index(row, base)].name;
}

/* ---- JSON ---- */

static cJSON *uint_list_json(const struct schema_row *row, const void *base)
{
    const uint32_t *values = NULL;
    memcpy(&values, stored(row, base), sizeof values);
    cJSON *array = cJSON_CreateArray();
    for (uint32_t i = 0; i < schema_item_count(row, base); i++)
        cJSON_AddItemToArray(array, cJSON_CreateNumber(values[i]));
    return array;
}

static cJSON *string_list_json(const struct schema_row *row, const void *base)
{
    const char *const *values = NULL;
    memcpy(&values, stored(row, base), sizeof values);
    cJSON *array = cJSON_CreateArray();
    for (uint32_t i = 0; i < schema_item_count(row, base); i++)
        cJSON_AddItemToArray(array, cJSON_CreateString(values[i]));
    return array;
}

static cJSON *set_json(const struct schema_row *row, const void *base)
{
    const uint32_t bits = stored_uint(row, base);
    cJSON *array = cJSON_CreateArray();
    for (uint32_t i = 0; i < row->choice_count; i++) {
        if (bits >> i & 1u)
            cJSON_AddItemToArray(array, cJSON_CreateString(row->choices[i].name));
    }
    return array;
}

static cJSON *uint64_json(uint64_t value)
{
    char text[24];
    if (value <= EXACT_MAX)
        return cJSON_CreateNumber((double)value);
    snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    return cJSON_CreateString(text);
}

cJSON *schema_value_json(const struct schema_row *row, const void *base)
{
    switch (row->kind) {
    case SCHEMA_STRING:
    case SCHEMA_NAME:
    case SCHEMA_WORD:
        return cJSON_CreateString(stored_text(row, base));
    case SCHEMA_CHOICE:
    case SCHEMA_SWITCH:
        return cJSON_CreateString(choice_name(row, base));
    case SCHEMA_BOOL:
        return cJSON_CreateBool(schema_value_index(row, base) != 0);
    case SCHEMA_UINT:
        if (row->zero_word && stored_uint(row, base) == 0)
            return cJSON_CreateString(row->zero_word);
        return cJSON_CreateNumber(stored_uint(row, base));
    case SCHEMA_UINT64:
        return uint64_json(stored_uint64(row, base));
    case SCHEMA_QUANTITY:
    case SCHEMA_FACT:
        return cJSON_CreateNumber(stored_double(row, base));
    case SCHEMA_UINT_LIST:
        return uint_list_json(row, base);
    case SCHEMA_STRING_LIST:
        return string_list_json(row, base);
    case SCHEMA_SET:
        return set_json(row, base);
    case SCHEMA_ITEMS:
    case SCHEMA_LEVELS:
    case SCHEMA_INCLUDE:
        break;
    }
    assert_fail("a row of values", __FILE__, __LINE__);
}

/* ---- Text and numbers ---- */

static char *list_text(const struct schema_row *row, const void *base, struct arena *arena)
{
    cJSON *array = schema_value_json(row, base);
    struct text text = {0};
    const char *comma = "";
    text_add(&text, "[");
    for (const cJSON *item = array->child; item; item = item->next, comma = ", ") {
        if (cJSON_IsString(item))
            text_add(&text, "%s%s", comma, item->valuestring);
        else
            text_add(&text, "%s%.0f", comma, item->valuedouble);
    }
    text_add(&text, "]");
    char *copy = arena_strdup(arena, text_string(&text));
    text_free(&text);
    cJSON_Delete(array);
    return copy;
}

char *schema_value_text(const struct schema_row *row, const void *base, struct arena *arena)
{
    switch (row->kind) {
    case SCHEMA_STRING:
    case SCHEMA_NAME:
    case SCHEMA_WORD:
        return arena_strdup(arena, stored_text(row, base));
    case SCHEMA_CHOICE:
    case SCHEMA_SWITCH:
        return arena_strdup(arena, choice_name(row, base));
    case SCHEMA_BOOL:
        return arena_strdup(arena, schema_value_index(row, base) ? "true" : "false");
    case SCHEMA_UINT:
        if (row->zero_word && stored_uint(row, base) == 0)
            return arena_strdup(arena, row->zero_word);
        return arena_printf(arena, "%u", stored_uint(row, base));
    case SCHEMA_UINT64:
        return arena_printf(arena, "%llu", (unsigned long long)stored_uint64(row, base));
    case SCHEMA_QUANTITY:
    case SCHEMA_FACT:
        return text_double(arena, stored_double(row, base));
    case SCHEMA_UINT_LIST:
    case SCHEMA_STRING_LIST:
    case SCHEMA_SET:
        return list_text(row, base, arena);
    case SCHEMA_ITEMS:
    case SCHEMA_LEVELS:
    case SCHEMA_INCLUDE:
        break;
    }
    assert_fail("a row of values", __FILE__, __LINE__);
}

bool schema_value_number(const struct schema_row *row, const void *base, double *value)
{
    switch (row->kind) {
    case SCHEMA_BOOL:
        *value = schema_value_index(row, base);
        return true;
    case SCHEMA_UINT:
        *value = stored_uint(row, base);
        return true;
    case SCHEMA_UINT64:
        *value = (double)stored_uint64(row, base);
        return true;
    case SCHEMA_QUANTITY:
    case SCHEMA_FACT:
        *value = stored_double(row, base);
        return true;
    default:
        return false;
    }
}
