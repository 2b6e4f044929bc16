/*
 * columns.c - the columns of `runs` that are read off the tables of keys and metrics.
 *
 * Keys: every row of the scenario and of its model, the scalars of the cluster, and the names
 * of model, cluster and device. The numbers of devices and levels are facts rather than
 * questions: they are in the resolved scenario, and swept ones in run_keys. Metrics: all but
 * the wall time, which is no property of the point.
 */
#include <string.h>

#include "stepsim/error.h"
#include "store/store_internal.h"

static struct column columns[COLUMNS_MAX];
static uint32_t column_count;
static char names[COLUMNS_MAX][80];
static char sources[COLUMNS_MAX][80];

static const char *key_type(const struct schema_row *row)
{
    switch (row->kind) {
    case SCHEMA_UINT:
    case SCHEMA_UINT64:
    case SCHEMA_BOOL:
        return "integer";
    case SCHEMA_QUANTITY:
    case SCHEMA_FACT:
        return "real";
    case SCHEMA_STRING:
    case SCHEMA_STRING_LIST:
    case SCHEMA_NAME:
    case SCHEMA_WORD:
    case SCHEMA_CHOICE:
    case SCHEMA_SWITCH:
    case SCHEMA_UINT_LIST:
    case SCHEMA_SET:
    case SCHEMA_ITEMS:
    case SCHEMA_LEVELS:
    case SCHEMA_INCLUDE:
        return "text";
    }
    return "text";
}

static struct column *add_column(const char *prefix, const char *key)
{
    ASSERT(column_count < COLUMNS_MAX);
    char *source = sources[column_count];
    char *name = names[column_count];
    const int length = snprintf(source, sizeof sources[0], "%s%s", prefix, key);
    ASSERT(length > 0 && (size_t)length < sizeof sources[0]);
    memcpy(name, source, (size_t)length + 1);
    for (char *letter = name; *letter != '\0'; letter++) {
        *letter = *letter == '.' || *letter == '-' ? '_' : *letter;
    }
    for (uint32_t i = 0; i < column_count; i++) {
        ASSERT(strcmp(columns[i].name, name) != 0);
    }
    struct column *column = &columns[column_count++];
    *column = (struct column){.name = name, .source = source};
    return column;
}

/* The rows of a table and, for an include, its name and the rows of the table behind it. */
static void add_keys(const struct schema_table *table, const char *prefix, size_t base_offset)
{
    for (uint32_t i = 0; i < table->row_count; i++) {
        const struct schema_row *row = &table->rows[i];
        const bool scalar = row->items == NULL && (row->flags & SCHEMA_LABEL) == 0;
        if (!scalar && row->kind != SCHEMA_INCLUDE) {
            continue;
        }
        struct column *column = add_column(prefix, row->key);
        column->kind = COLUMN_KEY;
        column->type = key_type(row);
        column->row = row;
        column->table = table;
        column->base_offset = base_offset;
        if (row->kind == SCHEMA_INCLUDE && row->items != &device_schema) {
            char inner[64];
            snprintf(inner, sizeof inner, "%s%s.", prefix, row->key);
            add_keys(row->items, inner, base_offset + row->offset);
        }
    }
}

static void add_metrics(void)
{
    for (size_t i = 0; i < metric_count; i++) {
        const struct metric *metric = &metric_table[i];
        if (strcmp(metric->name, "engine.wall_s") == 0) {
            continue;
        }
        struct column *column = add_column("", metric->name);
        const bool whole = metric->kind == METRIC_COUNT || metric->kind == METRIC_FLAG;
        column->kind = COLUMN_METRIC;
        column->type = whole ? "integer" : "real";
        column->metric = metric;
    }
}

const struct column *store_columns(uint32_t *count)
{
    if (column_count == 0) {
        add_keys(&scenario_schema, "", 0);
        add_metrics();
    }
    *count = column_count;
    return columns;
}

const char *store_column_of(const char *name, struct arena *arena)
{
    static const char *const fixed[] = {"status", "code",      "point_no",   "sweep_id",
                                        "digest", "layout_no", "git_commit", "model_hash"};
    uint32_t count = 0;
    const struct column *list = store_columns(&count);
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(list[i].name, name) == 0 || strcmp(list[i].source, name) == 0) {
            return arena_strdup(arena, list[i].name);
        }
    }
    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++) {
        if (strcmp(fixed[i], name) == 0) {
            return fixed[i];
        }
    }
    return NULL;
}

const char *store_column_nearest(const char *name, struct arena *arena)
{
    uint32_t count = 0;
    const struct column *list = store_columns(&count);
    const char **all = ARENA_ARRAY(arena, (size_t)count * 2, const char *);
    for (uint32_t i = 0; i < count; i++) {
        all[i] = list[i].source;
        all[count + i] = list[i].name;
    }
    return text_nearest(name, all, (size_t)count * 2);
}
