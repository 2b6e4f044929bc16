/*
 * scenario_json.c - the resolved scenario as JSON, its canonical text, and its hash.
 *
 * The canonical text is what identifies a question: plain values in SI, keys
 * sorted bytewise, shortest doubles, no labels. Order, units, defaults written
 * out, files and overrides leave no trace in it.
 */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "config/config_internal.h"
#include "stepsim/text.h"

/* ---- Tree ---- */

static const char *const origin_names[] = {
    [ORIGIN_ABSENT] = "absent", [ORIGIN_DEFAULT] = "default", [ORIGIN_FILE] = "file",
    [ORIGIN_SET] = "set",       [ORIGIN_REFUSED] = "refused",
};

static const char *const grade_names[] = {
    [GRADE_MEASURED] = "measured",
    [GRADE_VENDOR] = "vendor",
    [GRADE_FITTED] = "fitted",
    [GRADE_ASSUMED] = "assumed",
};

static cJSON *table_json(const struct schema_table *table, const void *base, bool with_origin);

static cJSON *with_origin_json(const struct schema_row *row, cJSON *value,
                               const struct origin *origin)
{
    cJSON *object = cJSON_CreateObject();
    cJSON_AddItemToObjectCS(object, "value", value);
    const char *unit = quantity_unit(row->dimension);
    if (unit[0])
        cJSON_AddItemToObjectCS(object, "unit", cJSON_CreateString(unit));
    cJSON_AddItemToObjectCS(object, "origin", cJSON_CreateString(origin_names[origin->kind]));
    if (origin->kind == ORIGIN_FILE && origin->at.file) {
        char at[512];
        snprintf(at, sizeof at, "%s:%u:%u", origin->at.file, origin->at.line, origin->at.column);
        cJSON_AddItemToObjectCS(object, "at", cJSON_CreateString(at));
    }
    if (origin->source)
        cJSON_AddItemToObjectCS(object, "source", cJSON_CreateString(origin->source));
    if (origin->grade != GRADE_NONE)
        cJSON_AddItemToObjectCS(object, "grade", cJSON_CreateString(grade_names[origin->grade]));
    if (origin->bounded) {
        cJSON_AddItemToObjectCS(object, "low", cJSON_CreateNumber(origin->low));
        cJSON_AddItemToObjectCS(object, "high", cJSON_CreateNumber(origin->high));
    }
    return object;
}

static cJSON *items_json(const struct schema_row *row, const void *base, bool with_origin)
{
    cJSON *array = cJSON_CreateArray();
    for (uint32_t i = 0; i < schema_item_count(row, base); i++)
        cJSON_AddItemToArray(array, table_json(row->items, schema_item(row, base, i), with_origin));
    return array;
}

static cJSON *row_json(const struct schema_row *row, const void *base, const struct origin *origin)
{
    const bool with_origin = origin != NULL;
    if (row->kind == SCHEMA_INCLUDE)
        return table_json(row->items, (const char *)base + row->offset, with_origin);
    if (row->items)
        return items_json(row, base, with_origin);
    cJSON *value = schema_value_json(row, base);
    return with_origin ? with_origin_json(row, value, origin) : value;
}

/* The object that holds the last component of a key; *name becomes that component. */
static cJSON *open_section(cJSON *root, const char *key, const char **name)
{
    cJSON *object = root;
    for (const char *dot = strchr(key, '.'); dot; key = dot + 1, dot = strchr(key, '.')) {
        char component[64];
        snprintf(component, sizeof component, "%.*s", (int)(dot - key), key);
        cJSON *inner = cJSON_GetObjectItemCaseSensitive(object, component);
        object = inner ? inner : cJSON_AddObjectToObject(object, component);
    }
    *name = key;
    return object;
}

static cJSON *table_json(const struct schema_table *table, const void *base, bool with_origin)
{
    cJSON *root = cJSON_CreateObject();
    const struct origin *origins = schema_origins(table, base);
    const char *label = NULL;
    if (table->folder)
        memcpy(&label, base, sizeof label);
    if (label && with_origin)
        cJSON_AddItemToObjectCS(root, "name", cJSON_CreateString(label));
    for (uint32_t i = 0; i < table->row_count; i++) {
        const struct schema_row *row = &table->rows[i];
        const bool absent = origins && origins[i].kind == ORIGIN_ABSENT;
        const bool label_only = (row->flags & SCHEMA_LABEL) != 0;
        if (absent || (label_only && !with_origin))
            continue;
        const char *name = NULL;
        cJSON *section = open_section(root, row->key, &name);
        const struct origin *origin = with_origin && origins ? &origins[i] : NULL;
        cJSON_AddItemToObjectCS(section, name, row_json(row, base, origin));
    }
    return root;
}

cJSON *scenario_json(const struct scenario *scenario, bool with_origin)
{
    return table_json(&scenario_schema, scenario, with_origin);
}

/* ---- Canonical text ---- */

static void write_string(struct text *out, const char *value)
{
    text_add_bytes(out, "\"", 1);
    for (const char *c = value; *c; c++) {
        const unsigned char byte = (unsigned char)*c;
        if (byte == '"' || byte == '\\')
            text_add(out, "\\%c", byte);
        else if (byte < 0x20)
            text_add(out, "\\u%04x", byte);
        else
            text_add_bytes(out, c, 1);
    }
    text_add_bytes(out, "\"", 1);
}

static int compare_keys(const void *left, const void *right)
{
    const cJSON *a = *(const cJSON *const *)left;
    const cJSON *b = *(const cJSON *const *)right;
    return strcmp(a->string, b->string);
}

static void write_canonical(struct text *out, const cJSON *item, struct arena *arena);

static void write_object(struct text *out, const cJSON *object, struct arena *arena)
{
    const size_t count = (size_t)cJSON_GetArraySize(object);
    const cJSON **members = arena_calloc(arena, count, sizeof(const cJSON *));
    size_t at = 0;
    for (const cJSON *member = object->child; member; member = member->next)
        members[at++] = member;
    qsort(members, count, sizeof *members, compare_keys);
    text_add_bytes(out, "{", 1);
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            text_add_bytes(out, ",", 1);
        write_string(out, members[i]->string);
        text_add_bytes(out, ":", 1);
        write_canonical(out, members[i], arena);
    }
    text_add_bytes(out, "}", 1);
}

static void write_array(struct text *out, const cJSON *array, struct arena *arena)
{
    text_add_bytes(out, "[", 1);
    for (const cJSON *item = array->child; item; item = item->next) {
        if (item != array->child)
            text_add_bytes(out, ",", 1);
        write_canonical(out, item, arena);
    }
    text_add_bytes(out, "]", 1);
}

static void write_canonical(struct text *out, const cJSON *item, struct arena *arena)
{
    if (cJSON_IsObject(item)) {
        write_object(out, item, arena);
    } else if (cJSON_IsArray(item)) {
        write_array(out, item, arena);
    } else if (cJSON_IsString(item)) {
        write_string(out, item->valuestring);
    } else if (cJSON_IsBool(item)) {
        text_add(out, cJSON_IsTrue(item) ? "true" : "false");
    } else {
        const char *number = text_double(arena, item->valuedouble);
        text_add_bytes(out, number, strlen(number));
    }
}

char *scenario_canonical(const struct scenario *scenario, struct arena *arena)
{
    cJSON *root = scenario_json(scenario, false);
    struct text out = {0};
    write_canonical(&out, root, arena);
    char *copy = arena_strdup(arena, text_string(&out));
    text_free(&out);
    cJSON_Delete(root);
    return copy;
}

const char *scenario_hash(const struct scenario *scenario, struct arena *arena)
{
    const char *text = scenario_canonical(scenario, arena);
    const XXH128_hash_t hash = XXH3_128bits(text, strlen(text));
    return arena_printf(arena, "%016llx%016llx", (unsigned long long)hash.high64,
                        (unsigned long long)hash.low64);
}
