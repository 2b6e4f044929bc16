/* search_stages.c - prints what `search --stages` found. */
#include <cjson/cJSON.h>

#include "cli_internal.h"
#include "search_stages.h"
#include "stepsim/text.h"

static const char *list_text(struct cli *cli, const uint32_t *layers, uint32_t count)
{
    struct text text = {0};
    for (uint32_t k = 0; k < count; k++) {
        text_add(&text, "%s%u", k > 0 ? "," : "", layers[k]);
    }
    const char *copy = arena_strdup(cli->arena, text_string(&text));
    text_free(&text);
    return copy;
}

static void print_json_answer(struct cli *cli, const struct stages_answer *answer)
{
    cJSON *root = cJSON_CreateObject();
    cJSON *list = cJSON_AddArrayToObject(root, "splits");
    for (uint32_t i = 0; i < answer->count; i++) {
        const struct stage_split_trial *trial = &answer->trials[i];
        cJSON *item = cJSON_CreateObject();
        cJSON_AddStringToObject(item, "name", trial->name);
        cJSON_AddStringToObject(item, "layers", list_text(cli, trial->layers, answer->chunk_count));
        cJSON_AddNumberToObject(item, "step_time_s", trial->figures.step_s);
        cJSON_AddNumberToObject(item, "mfu", trial->figures.mfu);
        cJSON_AddNumberToObject(item, "peak_bytes", trial->figures.peak_bytes);
        cJSON_AddBoolToObject(item, "fits", trial->figures.fits);
        cJSON_AddNumberToObject(item, "slowest_stage", trial->slowest_stage);
        cJSON_AddNumberToObject(item, "slowest_stage_busy_s", trial->slowest_s);
        cJSON_AddItemToArray(list, item);
    }
    cJSON_AddNumberToObject(root, "simulated", answer->simulated);
    print_json(root);
}

void stages_print(struct cli *cli, const struct stages_answer *answer, bool json)
{
    if (json) {
        print_json_answer(cli, answer);
        return;
    }
    struct table *table = table_create(cli);
    table_column(table, "SPLIT", TABLE_LEFT);
    table_column(table, "STEP", TABLE_RIGHT);
    table_column(table, "MFU", TABLE_RIGHT);
    table_column(table, "PEAK", TABLE_RIGHT);
    table_column(table, "SLOWEST STAGE", TABLE_RIGHT);
    table_column(table, "BUSY", TABLE_RIGHT);
    for (uint32_t i = 0; i < answer->count; i++) {
        const struct stage_split_trial *trial = &answer->trials[i];
        table_row(table);
        table_cell(table, "%s", trial->name);
        table_cell(table, "%s", text_duration(cli->arena, trial->figures.step_s));
        table_cell(table, "%.2f %%", trial->figures.mfu * 100.0);
        table_cell(table, "%s%s", text_gib(cli->arena, trial->figures.peak_bytes),
                   trial->figures.fits ? "" : " !");
        table_cell(table, "%u", trial->slowest_stage);
        table_cell(table, "%s", text_duration(cli->arena, trial->slowest_s));
    }
    table_print(table, 2);
    printf("\n");
    for (uint32_t i = 0; i < answer->count; i++) {
        printf("  %-10s ", answer->trials[i].name);
        print_wrapped(stdout, (struct wrap){cli->width, 13, 13},
                      list_text(cli, answer->trials[i].layers, answer->chunk_count));
    }
    printf("\nLayers of each chunk in model order, as parallel.stages.layers takes them. %u splits "
           "were simulated.\n",
           answer->simulated);
}
