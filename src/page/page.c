/*
 * page.c - the parts of the page in their order, and its data as JSON.
 */
#include "stepsim/page.h"

#include <cjson/cJSON.h>
#include <string.h>

#include "page_internal.h"
#include "stepsim_embedded.h"
#include "stepsim_version.h"

bool page_has_charts(void)
{
    return page_charts_length > 0;
}

static cJSON *run_json(const struct page_run *run, struct arena *arena)
{
    cJSON *item = cJSON_CreateObject();
    cJSON_AddNumberToObject(item, "id", (double)run->run_id);
    cJSON_AddStringToObject(item, "name", page_run_name(run, arena));
    cJSON_AddStringToObject(item, "model", run->model);
    cJSON_AddBoolToObject(item, "fits", run->fits);
    cJSON_AddBoolToObject(item, "pareto", run->pareto);
    cJSON_AddNumberToObject(item, "step_s", run->step_time_s);
    cJSON_AddNumberToObject(item, "tokens_per_s", run->tokens_per_s);
    cJSON_AddNumberToObject(item, "mfu", run->mfu);
    cJSON_AddNumberToObject(item, "peak_gib", run->peak_gib);
    cJSON_AddNumberToObject(item, "headroom_gib", run->headroom_gib);
    cJSON_AddItemToObject(item, "share", cJSON_CreateDoubleArray(run->share, CAUSE_COUNT));
    cJSON *keys = cJSON_AddObjectToObject(item, "keys");
    for (uint32_t i = 0; i < run->key_count; i++) {
        cJSON_AddStringToObject(keys, run->keys[i].key, run->keys[i].text);
    }
    if (run->stage_count > 0) {
        cJSON *stages = cJSON_AddArrayToObject(item, "stages");
        for (uint32_t s = 0; s < run->stage_count; s++) {
            cJSON_AddItemToArray(stages, cJSON_CreateDoubleArray(run->stages[s].parts, 7));
        }
    }
    return item;
}

static cJSON *names_json(const char *const *names, const char *const *colours, int count)
{
    cJSON *list = cJSON_CreateArray();
    for (int i = 0; i < count; i++) {
        cJSON *item = cJSON_CreateObject();
        cJSON_AddStringToObject(item, "name", names[i]);
        cJSON_AddStringToObject(item, "colour", colours[i]);
        cJSON_AddItemToArray(list, item);
    }
    return list;
}

/* "<" never stands in it, so no text of a file can end the script element. */
void page_add_json(struct text *out, const struct page_data *data, struct arena *arena)
{
    cJSON *root = cJSON_CreateObject();
    ASSERT(root != NULL);
    const char *causes[CAUSE_COUNT];
    for (unsigned c = 0; c < CAUSE_COUNT; c++) {
        causes[c] = time_cause_name((enum time_cause)c);
    }
    cJSON_AddItemToObject(root, "causes", names_json(causes, page_cause_colours, CAUSE_COUNT));
    cJSON_AddItemToObject(root, "parts", names_json(page_memory_parts, page_memory_colours, 7));
    cJSON *runs = cJSON_AddArrayToObject(root, "runs");
    for (uint32_t i = 0; i < data->run_count; i++) {
        cJSON_AddItemToArray(runs, run_json(&data->runs[i], arena));
    }
    char *text = cJSON_PrintUnformatted(root);
    ASSERT(text != NULL);
    for (const char *at = text; *at != '\0';) {
        const size_t plain = strcspn(at, "<");
        text_add_bytes(out, at, plain);
        at += plain;
        if (*at == '<') {
            text_add(out, "\\u003c");
            at++;
        }
    }
    cJSON_free(text);
    cJSON_Delete(root);
}

static void add_page(struct text *out, const struct page_data *data, struct arena *arena)
{
    text_add(out, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n<meta name="
                  "\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>");
    page_add_escaped(out, data->title);
    text_add(out, "</title>\n<style>\n");
    text_add_bytes(out, page_page_css, page_page_css_length);
    text_add(out, "</style></head><body>\n<h1>");
    page_add_escaped(out, data->title);
    text_add(out, "</h1>\n");
    page_add_static(out, data, arena);
    text_add(out, "<footer>stepsim " STEPSIM_VERSION " " STEPSIM_COMMIT "</footer>\n"
                  "<script type=\"application/json\" id=\"data\">");
    page_add_json(out, data, arena);
    text_add(out, "</script>\n<script>\n");
    text_add_bytes(out, page_charts, page_charts_length);
    text_add(out, "</script>\n<script>\n");
    text_add_bytes(out, page_page_js, page_page_js_length);
    text_add(out, "</script>\n</body></html>\n");
}

bool page_build(const struct page_ask *ask, struct text *out, struct error_list *errors)
{
    struct arena *arena = arena_create("page");
    struct page_data data;
    const bool read = page_read(ask, &data, arena, errors);
    if (read && data.run_count == 0) {
        error_add(errors, ERROR_nothing_feasible, (struct location){0}, NULL,
                  "the database holds no run with a result");
    } else if (read) {
        add_page(out, &data, arena);
    }
    arena_destroy(arena);
    return read && data.run_count > 0;
}
