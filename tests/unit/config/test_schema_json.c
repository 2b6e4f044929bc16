/* test_schema_json.c - the JSON Schema holds every key, in the shape that draft-07 wants. */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

#include "config_fixture.h"
#include "stepsim/schema.h"

static cJSON *schema_of(struct config_fixture *fixture, const char *name)
{
    const char *text = schema_json(name, fixture->arena);
    assert_non_null(text);
    cJSON *schema = cJSON_Parse(text);
    assert_non_null(schema);
    return schema;
}

static const cJSON *get(const cJSON *object, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
    if (!item)
        print_error("no %s\n", key);
    assert_non_null(item);
    return item;
}

/* The object schema behind a property: itself, or the second of text-or-map. */
static const cJSON *object_of(const cJSON *property)
{
    const cJSON *either = cJSON_GetObjectItemCaseSensitive(property, "anyOf");
    return either ? cJSON_GetArrayItem(either, 1) : property;
}

/* Every row of a table is a property, path by path, with its meaning. */
static void check_table(const cJSON *schema, const struct schema_table *table)
{
    for (uint32_t i = 0; i < table->row_count; i++) {
        const cJSON *at = schema;
        char key[128];
        snprintf(key, sizeof key, "%s", table->rows[i].key);
        for (char *part = key; part;) {
            char *dot = strchr(part, '.');
            if (dot)
                *dot++ = '\0';
            at = object_of(at);
            assert_true(cJSON_IsFalse(get(at, "additionalProperties")));
            at = get(get(at, "properties"), part);
            part = dot;
        }
        assert_non_null(strstr(get(at, "description")->valuestring, table->rows[i].meaning));
    }
}

static void every_row_is_a_property(void **state)
{
    cJSON *schema = schema_of(*state, "scenario");
    check_table(schema, &scenario_schema);
    const cJSON *definitions = get(schema, "definitions");
    check_table(get(definitions, "model"), &model_schema);
    check_table(get(definitions, "cluster"), &cluster_schema);
    check_table(get(definitions, "device"), &device_schema);
    check_table(get(definitions, "level"), &level_schema);
    cJSON_Delete(schema);
}

static bool holds(const cJSON *array, const char *text)
{
    for (const cJSON *item = array->child; item; item = item->next) {
        if (strcmp(item->valuestring, text) == 0)
            return true;
    }
    return false;
}

static void the_frame_is_draft_07(void **state)
{
    cJSON *schema = schema_of(*state, "scenario");
    assert_string_equal(get(schema, "$schema")->valuestring,
                        "http://json-schema.org/draft-07/schema#");
    assert_non_null(get(get(schema, "patternProperties"), "^x-"));
    const cJSON *required = get(schema, "required");
    assert_int_equal(cJSON_GetArraySize(required), 4);
    assert_true(holds(required, "model") && holds(required, "cluster"));
    assert_true(holds(required, "devices") && holds(required, "training"));
    const cJSON *cp = get(get(get(get(schema, "properties"), "parallel"), "properties"), "cp");
    const cJSON *either = get(cp, "anyOf");
    assert_string_equal(get(cJSON_GetArrayItem(either, 0), "type")->valuestring, "integer");
    cJSON_Delete(schema);
}

static void files_of_facts_have_schemas_too(void **state)
{
    static const char *const names[] = {"model", "cluster", "device"};
    for (size_t i = 0; i < 3; i++) {
        cJSON *schema = schema_of(*state, names[i]);
        assert_non_null(get(get(schema, "properties"), "base"));
        assert_null(cJSON_GetObjectItemCaseSensitive(schema, "required"));
        cJSON_Delete(schema);
    }
    struct config_fixture *fixture = *state;
    assert_null(schema_json("level", fixture->arena)); /* not a file */
    assert_null(schema_json("nothing", fixture->arena));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CONFIG_TEST(every_row_is_a_property),
        CONFIG_TEST(the_frame_is_draft_07),
        CONFIG_TEST(files_of_facts_have_schemas_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
