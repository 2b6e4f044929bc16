/*
 * pack.c - a point as bytes: rows of typed values, ready to be bound by the writer.
 *
 * A row is a table number (1 byte), a count of values (2 bytes) and the values: a kind
 * (1 byte), then 8 bytes of a number or a length (4 bytes) and the text. A point begins with
 * its row of `runs`. What only the writer knows (run_id, sweep_id, invocation_id) is left out.
 * The bytes never leave the machine, so their order is that of the machine.
 */
#include <cjson/cJSON.h>
#include <string.h>
#include <xxhash.h>

#include "stepsim_version.h"
#include "store/store_internal.h"

/* A row under construction; its count is written when it is complete. */
struct row {
    struct text *out;
    size_t start;
    uint16_t values;
};

static struct row start_row(struct text *out, enum store_table table)
{
    const unsigned char head[3] = {(unsigned char)table, 0, 0};
    struct row row = {.out = out, .start = out->length};
    text_add_bytes(out, (const char *)head, sizeof head);
    return row;
}

static void end_row(struct row *row)
{
    memcpy(row->out->data + row->start + 1, &row->values, sizeof row->values);
}

static void add_value(struct row *row, enum store_cell_kind kind, const void *bytes, size_t length)
{
    const char tag = (char)kind;
    text_add_bytes(row->out, &tag, 1);
    if (length > 0) {
        text_add_bytes(row->out, bytes, length);
    }
    row->values++;
}

static void add_null(struct row *row)
{
    add_value(row, STORE_NULL, "", 0);
}

static void add_integer(struct row *row, int64_t value)
{
    add_value(row, STORE_INTEGER, &value, sizeof value);
}

static void add_real(struct row *row, double value)
{
    add_value(row, STORE_REAL, &value, sizeof value);
}

static void add_string(struct row *row, const char *text)
{
    if (text == NULL) {
        add_null(row);
        return;
    }
    const uint32_t length = (uint32_t)strlen(text);
    add_value(row, STORE_TEXT, &length, sizeof length);
    text_add_bytes(row->out, text, length);
}

static void add_hex(struct row *row, uint64_t value)
{
    char digits[20];
    snprintf(digits, sizeof digits, "%016llx", (unsigned long long)value);
    add_string(row, digits);
}

/* ---- Resolved scenarios as patches ---- */

static char *json_hash(const cJSON *object, struct arena *arena)
{
    char *text = cJSON_PrintUnformatted(object);
    ASSERT(text != NULL);
    const uint64_t hash = XXH3_64bits(text, strlen(text));
    cJSON_free(text);
    return arena_printf(arena, "%016llx", (unsigned long long)hash);
}

struct store_base *store_base_create(const struct scenario *scenario, struct arena *arena)
{
    struct store_base *base = ARENA_NEW(arena, struct store_base);
    cJSON *json = scenario_json(scenario, false);
    base->json = json;
    base->model_hash = json_hash(cJSON_GetObjectItemCaseSensitive(json, "model"), arena);
    base->calibration_id = json_hash(cJSON_GetObjectItemCaseSensitive(json, "cluster"), arena);
    return base;
}

void store_base_destroy(struct store_base *base)
{
    cJSON_Delete((cJSON *)base->json);
}

/* JSON merge patch (RFC 7396) from one object to another; NULL when they are equal. */
static cJSON *merge_patch(const cJSON *from, const cJSON *to)
{
    cJSON *patch = NULL;
    const cJSON *item = NULL;
    cJSON_ArrayForEach(item, to)
    {
        const cJSON *before = cJSON_GetObjectItemCaseSensitive(from, item->string);
        cJSON *change = NULL;
        if (cJSON_IsObject(item) && cJSON_IsObject(before)) {
            change = merge_patch(before, item);
        } else if (before == NULL || !cJSON_Compare(before, item, true)) {
            change = cJSON_Duplicate(item, true);
        }
        if (change != NULL) {
            patch = patch != NULL ? patch : cJSON_CreateObject();
            cJSON_AddItemToObject(patch, item->string, change);
        }
    }
    cJSON_ArrayForEach(item, from)
    {
        if (cJSON_GetObjectItemCaseSensitive(to, item->string) == NULL) {
            patch = patch != NULL ? patch : cJSON_CreateObject();
            cJSON_AddNullToObject(patch, item->string);
        }
    }
    return patch;
}

/* scenario_patch, model_hash, calibration_id. */
static void add_scenario(struct row *row, const struct store_point *point, struct arena *scratch)
{
    if (point->scenario == NULL) {
        add_null(row);
        add_null(row);
        add_null(row);
        return;
    }
    cJSON *json = scenario_json(point->scenario, false);
    cJSON *patch = point->base != NULL ? merge_patch(point->base->json, json) : json;
    const char *text = "{}";
    char *printed = NULL;
    if (patch != NULL) {
        printed = cJSON_PrintUnformatted(patch);
        text = printed;
    }
    add_string(row, text);
    static const char *const parts[] = {"model", "cluster"};
    for (size_t i = 0; i < 2; i++) {
        const bool same =
            point->base != NULL && cJSON_GetObjectItemCaseSensitive(patch, parts[i]) == NULL;
        const char *known = point->base == NULL ? NULL
                            : i == 0            ? point->base->model_hash
                                                : point->base->calibration_id;
        add_string(row, same
                            ? known
                            : json_hash(cJSON_GetObjectItemCaseSensitive(json, parts[i]), scratch));
    }
    cJSON_free(printed);
    if (patch != json) {
        cJSON_Delete(patch);
    }
    cJSON_Delete(json);
}

/* ---- Columns of keys and metrics ---- */

static void add_key(struct row *row, const struct column *column, const struct scenario *scenario,
                    struct arena *scratch)
{
    const struct schema_row *key = column->row;
    const char *base = (const char *)scenario + column->base_offset;
    const void *at = base + key->offset;
    const struct origin *origins = NULL;
    memcpy(&origins, base + column->table->origins_offset, sizeof origins);
    if (origins[key - column->table->rows].kind == ORIGIN_ABSENT) {
        add_null(row);
        return;
    }
    uint32_t small = 0;
    uint64_t large = 0;
    double real = 0.0;
    bool flag = false;
    const char *text = NULL;
    switch (key->kind) {
    case SCHEMA_UINT:
        memcpy(&small, at, sizeof small);
        add_integer(row, small);
        break;
    case SCHEMA_UINT64:
        memcpy(&large, at, sizeof large);
        add_integer(row, (int64_t)large);
        break;
    case SCHEMA_BOOL:
        memcpy(&flag, at, sizeof flag);
        add_integer(row, flag);
        break;
    case SCHEMA_QUANTITY:
    case SCHEMA_FACT:
        memcpy(&real, at, sizeof real);
        add_real(row, real);
        break;
    case SCHEMA_STRING:
    case SCHEMA_NAME:
    case SCHEMA_WORD:
    case SCHEMA_INCLUDE: /* the first member of the struct is the name */
        memcpy(&text, at, sizeof text);
        add_string(row, text);
        break;
    case SCHEMA_CHOICE:
        memcpy(&small, at, sizeof small);
        add_string(row, key->choices[small].name);
        break;
    case SCHEMA_SWITCH:
        memcpy(&flag, at, sizeof flag);
        add_string(row, key->choices[flag].name);
        break;
    case SCHEMA_STRING_LIST:
    case SCHEMA_UINT_LIST:
    case SCHEMA_SET:
    case SCHEMA_ITEMS:
    case SCHEMA_LEVELS:
        add_string(row, scenario_value_text(scenario, column->source, scratch));
        break;
    }
}

static void add_columns(struct row *row, const struct store_point *point, struct arena *scratch)
{
    uint32_t count = 0;
    const struct column *columns = store_columns(&count);
    for (uint32_t i = 0; i < count; i++) {
        const struct column *column = &columns[i];
        if (column->kind == COLUMN_KEY && point->scenario != NULL) {
            add_key(row, column, point->scenario, scratch);
        } else if (column->kind == COLUMN_METRIC && point->report != NULL) {
            const double value = column->metric->value(point->report);
            if (column->type[0] == 'i') {
                add_integer(row, (int64_t)value);
            } else {
                add_real(row, value);
            }
        } else {
            add_null(row);
        }
    }
}

static void add_flop_convention(struct row *row, const struct report *report)
{
    char text[96];
    snprintf(text, sizeof text, "attention %s, mtp %s, router %s",
             report->convention.attention == ATTENTION_COUNT_CAUSAL ? "causal" : "full",
             report->convention.mtp ? "counted" : "not counted",
             report->convention.router ? "counted" : "not counted");
    add_string(row, text);
}

static void pack_run(struct text *out, const struct store_point *point, struct arena *scratch)
{
    const struct report *report = point->report;
    struct row row = start_row(out, TABLE_RUNS);
    add_integer(&row, (int64_t)point->point_no);
    add_string(&row, run_status_name(point->status));
    add_string(&row, point->code);
    add_string(&row, point->message);
    add_integer(&row, point->error_count);
    if (point->layout_no >= 0) {
        add_integer(&row, point->layout_no);
    } else {
        add_null(&row);
    }
    const char *hash = report != NULL            ? report->scenario_hash
                       : point->scenario != NULL ? scenario_hash(point->scenario, scratch)
                                                 : NULL;
    add_string(&row, hash);
    add_scenario(&row, point, scratch);
    if (report != NULL) {
        add_flop_convention(&row, report);
    } else {
        add_null(&row);
    }
    add_string(&row, STEPSIM_VERSION);
    add_string(&row, STEPSIM_COMMIT);
    if (report != NULL) {
        add_hex(&row, report->digest);
        add_hex(&row, report->event_digest);
        add_string(&row, report->ranks_all ? "all" : "folded");
        add_string(&row, report->verdict);
    } else {
        for (unsigned i = 0; i < 4; i++) {
            add_null(&row);
        }
    }
    add_columns(&row, point, scratch);
    end_row(&row);
}

/* ---- Child rows ---- */

/* A number where the text is one, in SI units where the key has a dimension. */
static void add_swept_value(struct row *row, const struct store_key *key)
{
    const struct schema_row *schema = schema_find(key->key);
    const bool dimensioned =
        schema != NULL && (schema->kind == SCHEMA_QUANTITY || schema->kind == SCHEMA_FACT);
    struct quantity_problem problem;
    double quantity = 0.0;
    if (dimensioned && quantity_parse(key->text, schema->dimension, &quantity, &problem)) {
        add_real(row, quantity);
        return;
    }
    char *end = NULL;
    const long long whole = strtoll(key->text, &end, 10);
    if (key->text[0] != '\0' && *end == '\0') {
        add_integer(row, whole);
        return;
    }
    const double real = strtod(key->text, &end);
    if (key->text[0] != '\0' && *end == '\0') {
        add_real(row, real);
    } else {
        add_string(row, key->text);
    }
}

static void pack_keys(struct text *out, const struct store_point *point)
{
    for (uint32_t i = 0; i < point->key_count; i++) {
        struct row row = start_row(out, TABLE_RUN_KEYS);
        add_string(&row, point->keys[i].key);
        add_swept_value(&row, &point->keys[i]);
        add_string(&row, point->keys[i].text);
        end_row(&row);
    }
}

static void pack_stages(struct text *out, const struct report *report)
{
    for (uint32_t i = 0; i < report->stage_count; i++) {
        const struct stage_report *stage = &report->stages[i];
        const double parts[] = {stage->peak_bytes, stage->weights,     stage->gradients,
                                stage->optimizer,  stage->activations, stage->logits,
                                stage->buffers,    stage->reserve};
        struct row row = start_row(out, TABLE_STAGES);
        add_integer(&row, stage->stage);
        add_integer(&row, stage->layers);
        for (size_t j = 0; j < sizeof parts / sizeof parts[0]; j++) {
            add_real(&row, parts[j]);
        }
        add_string(&row, memory_phase_name(stage->peak_phase));
        add_real(&row, stage->compute_busy_s);
        add_real(&row, stage->end_s);
        end_row(&row);
    }
}

static void pack_steps(struct text *out, const struct report *report)
{
    for (uint32_t i = 0; i < report->step_count; i++) {
        const struct step_report *step = &report->steps[i];
        struct row row = start_row(out, TABLE_STEPS);
        add_integer(&row, step->step);
        add_real(&row, step->step_time_s);
        add_real(&row, step->mfu);
        add_real(&row, step->tokens_per_s);
        add_real(&row, step->load_max_over_mean);
        add_real(&row, step->dropped_ratio);
        add_integer(&row, step->migrations);
        end_row(&row);
    }
}

void store_pack(struct text *out, const struct store_point *point, struct arena *scratch)
{
    pack_run(out, point, scratch);
    pack_keys(out, point);
    if (point->report != NULL) {
        pack_stages(out, point->report);
        pack_steps(out, point->report);
    }
    struct row row = start_row(out, TABLE_RUN_COSTS);
    add_real(&row, point->wall_s);
    add_real(&row, point->cpu_s);
    add_integer(&row, (int64_t)point->memory_peak_bytes);
    end_row(&row);
}
