/*
 * advice_print.c - what would make a layout fit, and what each recompute module is worth.
 */
#include <cjson/cJSON.h>

#include "advice_print.h"
#include "stepsim/text.h"
#include "stepsim/units.h"

#define CHANGES_SHOWN 5

void advice_print_fit(struct cli *cli, const struct fit_changes *changes)
{
    printf("\nSingle changes that would make it fit (%u tried, %u fit)\n", changes->tried,
           changes->count);
    if (changes->count == 0) {
        printf("  none of them; combine several, or use more devices\n");
        return;
    }
    struct table *table = table_create(cli);
    table_column(table, "KEY", TABLE_LEFT);
    table_column(table, "CHANGE", TABLE_LEFT);
    table_column(table, "STEP", TABLE_RIGHT);
    table_column(table, "TOKENS/S", TABLE_RIGHT);
    table_column(table, "PEAK GiB", TABLE_RIGHT);
    for (uint32_t i = 0; i < changes->count && i < CHANGES_SHOWN; i++) {
        const struct fit_change *change = &changes->items[i];
        table_row(table);
        table_cell(table, "%s", change->key);
        table_cell(table, "%s", change->value);
        table_cell(table, "%s", text_duration(cli->arena, change->step_time_s));
        table_cell(table, "%s", text_si(cli->arena, change->tokens_per_s, ""));
        table_cell(table, "%.2f", change->peak_bytes / GIB_BYTES);
    }
    table_print(table, 2);
}

cJSON *advice_fit_json(const struct fit_changes *changes)
{
    cJSON *json = cJSON_CreateArray();
    for (uint32_t i = 0; i < changes->count; i++) {
        const struct fit_change *change = &changes->items[i];
        cJSON *row = cJSON_CreateObject();
        cJSON_AddItemToArray(json, row);
        cJSON_AddStringToObject(row, "key", change->key);
        cJSON_AddStringToObject(row, "change", change->value);
        cJSON_AddNumberToObject(row, "step_time_s", change->step_time_s);
        cJSON_AddNumberToObject(row, "tokens_per_s", change->tokens_per_s);
        cJSON_AddNumberToObject(row, "peak_bytes", change->peak_bytes);
    }
    return json;
}

static int recompute_json(const struct recompute_menu *menu)
{
    cJSON *json = cJSON_CreateObject();
    cJSON *modules = cJSON_AddArrayToObject(json, "modules");
    for (uint32_t i = 0; i < menu->count; i++) {
        cJSON *row = cJSON_CreateObject();
        cJSON_AddItemToArray(modules, row);
        cJSON_AddStringToObject(row, "module", menu->items[i].module);
        cJSON_AddBoolToObject(row, "on", menu->items[i].on);
        cJSON_AddNumberToObject(row, "saved_bytes", menu->items[i].saved_bytes);
        cJSON_AddNumberToObject(row, "added_s", menu->items[i].added_s);
    }
    return print_json(json);
}

int advice_print_recompute(struct cli *cli, const struct recompute_menu *menu, bool json)
{
    if (json) {
        return recompute_json(menu);
    }
    printf(
        "Each recompute module toggled against the scenario as it is: what it saves of the peak\n"
        "of the fullest stage, and what it adds to the step\n");
    struct table *table = table_create(cli);
    table_column(table, "MODULE", TABLE_LEFT);
    table_column(table, "NOW", TABLE_LEFT);
    table_column(table, "SAVES GiB", TABLE_RIGHT);
    table_column(table, "ADDS ms", TABLE_RIGHT);
    table_column(table, "ms per GiB", TABLE_RIGHT);
    for (uint32_t i = 0; i < menu->count; i++) {
        const struct recompute_item *item = &menu->items[i];
        const double saved_gib = item->saved_bytes / GIB_BYTES;
        table_row(table);
        table_cell(table, "%s", item->module);
        table_cell(table, "%s", item->on ? "on" : "off");
        table_cell(table, "%.2f", saved_gib);
        table_cell(table, "%.1f", item->added_s * 1e3);
        if (saved_gib > 0.005) {
            table_cell(table, "%.1f", item->added_s * 1e3 / saved_gib);
        } else {
            table_cell(table, "%s", "");
        }
    }
    table_print(table, 2);
    return EXIT_DONE;
}
