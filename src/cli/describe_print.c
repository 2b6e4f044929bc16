/*
 * describe_print.c - one described entry for people: members as lines, arrays of objects
 * as tables. A member "text" beside "value" and "unit" is the same number for reading.
 */
#include <cjson/cJSON.h>
#include <string.h>

#include "cli_internal.h"
#include "stepsim/text.h"

#define LABEL_COLUMNS 22

static const char *scalar_text(struct cli *cli, const cJSON *item)
{
    if (cJSON_IsString(item)) {
        return item->valuestring;
    }
    if (cJSON_IsBool(item)) {
        return cJSON_IsTrue(item) ? "yes" : "no";
    }
    return cJSON_IsNumber(item) ? text_double(cli->arena, item->valuedouble) : "";
}

/* Members that a reader does not need beside "text". */
static bool hidden_member(const cJSON *row, const cJSON *member)
{
    return cJSON_GetObjectItemCaseSensitive(row, "text") != NULL &&
           (strcmp(member->string, "value") == 0 || strcmp(member->string, "unit") == 0);
}

static const char *heading_text(struct cli *cli, const char *name)
{
    char *text = arena_strdup(cli->arena, strcmp(name, "text") == 0 ? "value" : name);
    for (char *letter = text; *letter != '\0'; letter++) {
        if (*letter == '_') {
            *letter = ' ';
        }
    }
    return text;
}

static void print_rows(struct cli *cli, const cJSON *array)
{
    printf("\n%s%s%s\n", paint(cli, PAINT_BOLD), heading_text(cli, array->string),
           paint(cli, PAINT_NONE));
    struct table *table = table_create(cli);
    const cJSON *member = NULL;
    cJSON_ArrayForEach(member, array->child)
    {
        if (!hidden_member(array->child, member)) {
            const bool number = cJSON_IsNumber(member) || strcmp(member->string, "text") == 0;
            table_column(table, heading_text(cli, member->string),
                         number ? TABLE_RIGHT : TABLE_LEFT);
        }
    }
    const cJSON *row = NULL;
    cJSON_ArrayForEach(row, array)
    {
        table_row(table);
        cJSON_ArrayForEach(member, row)
        {
            if (!hidden_member(row, member)) {
                table_cell(table, "%s", scalar_text(cli, member));
            }
        }
    }
    table_print(table, 2);
}

static const char *joined_text(struct cli *cli, const cJSON *array)
{
    const char *text = "";
    const cJSON *item = NULL;
    cJSON_ArrayForEach(item, array)
    {
        text = arena_printf(cli->arena, "%s%s%s", text, item == array->child ? "" : ", ",
                            scalar_text(cli, item));
    }
    return text;
}

static void print_member(struct cli *cli, const cJSON *member)
{
    if (cJSON_IsArray(member) && cJSON_IsObject(member->child)) {
        print_rows(cli, member);
        return;
    }
    const char *text = cJSON_IsArray(member) ? joined_text(cli, member) : scalar_text(cli, member);
    printf("  %-*s ", LABEL_COLUMNS, heading_text(cli, member->string));
    print_wrapped(stdout, (struct wrap){cli->width, LABEL_COLUMNS + 3, LABEL_COLUMNS + 3}, text);
}

void describe_print(struct cli *cli, const struct cJSON *entry)
{
    const cJSON *kind = cJSON_GetObjectItemCaseSensitive(entry, "kind");
    const cJSON *name = cJSON_GetObjectItemCaseSensitive(entry, "name");
    const cJSON *title = cJSON_GetObjectItemCaseSensitive(entry, "title");
    printf("%s%s%s (%s): ", paint(cli, PAINT_BOLD), name->valuestring, paint(cli, PAINT_NONE),
           kind->valuestring);
    print_wrapped(stdout, (struct wrap){cli->width, 4, 4}, title->valuestring);
    const cJSON *member = NULL;
    cJSON_ArrayForEach(member, entry)
    {
        if (member != kind && member != name && member != title) {
            print_member(cli, member);
        }
    }
}
