/*
 * schema_json.c - the tables as JSON Schema, draft-07: the newest that the YAML
 * language server reads. It checks while one types; the loader stays the judge.
 *
 * Included tables are definitions without required keys, since a map may begin
 * with `base:` and a merge key may supply them.
 */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "config/config_internal.h"
#include "stepsim/text.h"

static void set_text(cJSON *object, const char *name, const char *value)
{
    cJSON_AddItemToObject(object, name, cJSON_CreateString(value));
}

static cJSON *typed(const char *type)
{
    cJSON *schema = cJSON_CreateObject();
    set_text(schema, "type", type);
    return schema;
}

static cJSON *any_of(cJSON *first, cJSON *second)
{
    cJSON *schema = cJSON_CreateObject();
    cJSON *list = cJSON_AddArrayToObject(schema, "anyOf");
    cJSON_AddItemToArray(list, first);
    cJSON_AddItemToArray(list, second);
    return schema;
}

static cJSON *array_of(cJSON *items)
{
    cJSON *schema = typed("array");
    cJSON_AddItemToObject(schema, "items", items);
    return schema;
}

static cJSON *reference(const char *name)
{
    char path[80];
    snprintf(path, sizeof path, "#/definitions/%s", name);
    cJSON *schema = cJSON_CreateObject();
    set_text(schema, "$ref", path);
    return schema;
}

/* ---- Values ---- */

static cJSON *enum_schema(const struct schema_row *row)
{
    cJSON *schema = cJSON_CreateObject();
    cJSON *names = cJSON_AddArrayToObject(schema, "enum");
    for (uint32_t i = 0; i < row->choice_count; i++) {
        if (row->choices[i].name)
            cJSON_AddItemToArray(names, cJSON_CreateString(row->choices[i].name));
    }
    return schema;
}

static cJSON *uint_schema(const struct schema_row *row)
{
    cJSON *schema = typed("integer");
    cJSON_AddNumberToObject(schema, "minimum", row->minimum);
    if (row->maximum > row->minimum)
        cJSON_AddNumberToObject(schema, "maximum", row->maximum);
    if (!row->zero_word)
        return schema;
    cJSON *word = cJSON_CreateObject();
    set_text(word, "const", row->zero_word);
    return any_of(schema, word);
}

static cJSON *quantity_schema(enum dimension dimension)
{
    cJSON *schema = typed("string");
    set_text(schema, "pattern", quantity_pattern(dimension));
    return quantity_unit(dimension)[0] ? schema : any_of(typed("number"), schema);
}

static cJSON *fact_schema(enum dimension dimension)
{
    static const char *const grades[] = {"measured", "vendor", "fitted", "assumed"};
    static const char *const needed[] = {"value", "source", "grade"};
    cJSON *schema = typed("object");
    cJSON *properties = cJSON_AddObjectToObject(schema, "properties");
    cJSON_AddItemToObject(properties, "value", quantity_schema(dimension));
    cJSON_AddItemToObject(properties, "low", quantity_schema(dimension));
    cJSON_AddItemToObject(properties, "high", quantity_schema(dimension));
    cJSON_AddItemToObject(properties, "source", typed("string"));
    cJSON *grade = cJSON_AddObjectToObject(properties, "grade");
    cJSON_AddItemToObject(grade, "enum", cJSON_CreateStringArray(grades, 4));
    cJSON_AddItemToObject(properties, "note", typed("string"));
    cJSON_AddItemToObject(schema, "required", cJSON_CreateStringArray(needed, 3));
    cJSON_AddBoolToObject(schema, "additionalProperties", false);
    return schema;
}

static cJSON *value_schema(const struct schema_row *row)
{
    switch (row->kind) {
    case SCHEMA_STRING:
    case SCHEMA_NAME:
        return any_of(typed("string"), typed("number"));
    case SCHEMA_STRING_LIST:
        return array_of(any_of(typed("string"), typed("number")));
    case SCHEMA_WORD:
    case SCHEMA_CHOICE:
    case SCHEMA_SWITCH:
        return enum_schema(row);
    case SCHEMA_BOOL:
        return typed("boolean");
    case SCHEMA_UINT:
    case SCHEMA_UINT64:
        return uint_schema(row);
    case SCHEMA_QUANTITY:
        return quantity_schema(row->dimension);
    case SCHEMA_FACT:
        return fact_schema(row->dimension);
    case SCHEMA_UINT_LIST:
        return array_of(uint_schema(row));
    case SCHEMA_SET:
        return array_of(enum_schema(row));
    case SCHEMA_ITEMS:
    case SCHEMA_LEVELS:
        return array_of(reference(row->items->name));
    case SCHEMA_INCLUDE:
        return any_of(typed("string"), reference(row->items->name));
    }
    assert_fail("a kind of row", __FILE__, __LINE__);
}

static cJSON *row_schema(const struct schema_row *row)
{
    cJSON *schema = value_schema(row);
    struct text words = {0};
    text_add(&words, "%s", row->meaning);
    if (row->fallback)
        text_add(&words, " Default: %s.", row->fallback);
    if (row->pending)
        text_add(&words, " Not modelled yet: %s.", row->pending);
    for (uint32_t i = 0; i < row->choice_count; i++) {
        if (row->choices[i].name)
            text_add(&words, "\n%s: %s%s", row->choices[i].name, row->choices[i].meaning,
                     row->choices[i].pending ? " Not modelled yet." : "");
    }
    set_text(schema, "description", text_string(&words));
    text_free(&words);
    return schema;
}

/* ---- Maps ---- */

static cJSON *scope_schema(struct schema_scope scope, bool required);

static const char *section_meaning(struct schema_scope scope)
{
    const uint32_t length = scope.skip - 1;
    const char *path = scope.table->rows[scope.first].key;
    for (uint32_t i = 0; i < scope.table->section_count; i++) {
        const struct schema_section *section = &scope.table->sections[i];
        if (strlen(section->key) == length && strncmp(section->key, path, length) == 0)
            return section->meaning;
    }
    return "";
}

static cJSON *section_schema(struct schema_scope scope, bool required)
{
    const struct schema_row *shorthand = schema_scope_shorthand(scope);
    cJSON *schema = scope_schema(scope, required);
    if (shorthand)
        schema = any_of(value_schema(shorthand), schema);
    set_text(schema, "description", section_meaning(scope));
    return schema;
}

/* A section is needed when one of its keys is. */
static bool is_needed(struct schema_scope scope)
{
    for (uint32_t i = scope.first; i < scope.end; i++) {
        const struct schema_row *row = &scope.table->rows[i];
        if ((row->flags & SCHEMA_REQUIRED) && !row->when.key)
            return true;
    }
    return false;
}

static cJSON *scope_schema(struct schema_scope scope, bool required)
{
    cJSON *schema = typed("object");
    cJSON *properties = cJSON_AddObjectToObject(schema, "properties");
    cJSON *needed = cJSON_CreateArray();
    for (uint32_t i = scope.first; i < scope.end;) {
        const char *component = NULL;
        const size_t length = schema_scope_component(scope, &scope.table->rows[i], &component);
        const struct schema_scope inner = schema_scope_enter(scope, component, length);
        const struct schema_row *row = schema_scope_row(inner);
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)length, component);
        cJSON_AddItemToObject(properties, name,
                              row ? row_schema(row) : section_schema(inner, required));
        if (required && is_needed(inner))
            cJSON_AddItemToArray(needed, cJSON_CreateString(name));
        i = inner.end;
    }
    if (cJSON_GetArraySize(needed) > 0)
        cJSON_AddItemToObject(schema, "required", needed);
    else
        cJSON_Delete(needed);
    cJSON_AddBoolToObject(schema, "additionalProperties", false);
    return schema;
}

static void add_base(cJSON *schema, const struct schema_table *table)
{
    char words[120];
    snprintf(words, sizeof words, "Name or path of a %s to start from; other keys change it.",
             table->noun);
    cJSON *base = typed("string");
    set_text(base, "description", words);
    cJSON_AddItemToObject(cJSON_GetObjectItemCaseSensitive(schema, "properties"), "base", base);
}

static void add_definitions(cJSON *definitions, const struct schema_table *table)
{
    for (uint32_t i = 0; i < table->row_count; i++) {
        const struct schema_table *items = table->rows[i].items;
        if (!items || cJSON_HasObjectItem(definitions, items->name))
            continue;
        const bool list = table->rows[i].kind != SCHEMA_INCLUDE;
        cJSON *schema = scope_schema(schema_scope_of_table(items), list);
        if (!list)
            add_base(schema, items);
        cJSON_AddItemToObject(definitions, items->name, schema);
        add_definitions(definitions, items);
    }
}

char *schema_json(const char *table_name, struct arena *arena)
{
    const struct schema_table *table = NULL;
    for (size_t i = 0; i < schema_table_count(); i++) {
        const struct schema_table *candidate = schema_table_at(i);
        const bool file = candidate->folder || candidate == &scenario_schema;
        if (file && strcmp(candidate->name, table_name) == 0)
            table = candidate;
    }
    if (!table)
        return NULL;
    cJSON *schema = scope_schema(schema_scope_of_table(table), table == &scenario_schema);
    if (table->folder)
        add_base(schema, table);
    set_text(schema, "$schema", "http://json-schema.org/draft-07/schema#");
    set_text(schema, "title", table->title);
    cJSON *free_keys = cJSON_AddObjectToObject(schema, "patternProperties");
    cJSON_AddItemToObject(free_keys, "^x-", cJSON_CreateObject());
    cJSON *definitions = cJSON_AddObjectToObject(schema, "definitions");
    add_definitions(definitions, table);
    char *printed = cJSON_Print(schema);
    char *copy = arena_strdup(arena, printed);
    cJSON_free(printed);
    cJSON_Delete(schema);
    return copy;
}
