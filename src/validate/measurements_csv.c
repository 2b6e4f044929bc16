/*
 * measurements_csv.c - reads the two formats of published runs with libcsv.
 *
 * Cells stay texts; only what every reader of a row needs is turned into fields.
 */
#include <csv.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "stepsim/arena.h"
#include "stepsim/text.h"
#include "stepsim/validate.h"

#define COLUMNS_MAX 128
#define ROWS_MAX    100000

struct reader {
    struct arena *arena;
    const char *cells[COLUMNS_MAX]; /* of the row being read */
    uint32_t filled, line;
    struct measurement_set *set;
    struct measurement *rows;
    uint32_t capacity;
    bool too_wide;
};

static void on_cell(void *cell, size_t length, void *user)
{
    struct reader *reader = user;
    if (reader->filled < COLUMNS_MAX)
        reader->cells[reader->filled++] = arena_strndup(reader->arena, cell ? cell : "", length);
    else
        reader->too_wide = true;
}

static void add_row(struct reader *reader)
{
    struct measurement_set *set = reader->set;
    if (set->count == reader->capacity) {
        const uint32_t capacity = reader->capacity ? reader->capacity * 2 : 256;
        struct measurement *rows = ARENA_ARRAY(reader->arena, capacity, struct measurement);
        if (set->count > 0)
            memcpy(rows, reader->rows, set->count * sizeof *rows);
        reader->rows = rows;
        reader->capacity = capacity;
        set->rows = rows;
    }
    const char **cells = ARENA_ARRAY(reader->arena, set->column_count, const char *);
    for (uint32_t i = 0; i < set->column_count; i++)
        cells[i] = i < reader->filled ? reader->cells[i] : "";
    reader->rows[set->count++] =
        (struct measurement){.set = set, .cells = cells, .line = reader->line};
}

static void on_row(int terminator, void *user)
{
    (void)terminator;
    struct reader *reader = user;
    reader->line++;
    if (reader->set->column_count == 0) {
        const char **columns = ARENA_ARRAY(reader->arena, reader->filled + 1, const char *);
        memcpy(columns, reader->cells, reader->filled * sizeof *columns);
        reader->set->columns = columns;
        reader->set->column_count = reader->filled;
    } else if (reader->filled > 0 && reader->set->count < ROWS_MAX) {
        add_row(reader);
    }
    reader->filled = 0;
}

static bool parse(const char *path, struct reader *reader, struct error_list *errors)
{
    const struct location at = {path, 0, 0};
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        error_add(errors, ERROR_file_not_found, at, NULL, "%s", strerror(errno));
        return false;
    }
    struct csv_parser parser;
    bool good = csv_init(&parser, CSV_STRICT | CSV_STRICT_FINI) == 0;
    char buffer[65536];
    size_t length = 0;
    while (good && (length = fread(buffer, 1, sizeof buffer, file)) > 0)
        good = csv_parse(&parser, buffer, length, on_cell, on_row, reader) == length;
    good = good && ferror(file) == 0 && csv_fini(&parser, on_cell, on_row, reader) == 0;
    if (!good || reader->too_wide)
        error_add(errors, ERROR_bad_value, (struct location){path, reader->line + 1, 0}, NULL, "%s",
                  reader->too_wide ? "more columns than any known format" : "not CSV");
    csv_free(&parser);
    fclose(file);
    return good && !reader->too_wide;
}

const char *measurement_text(const struct measurement *row, const char *column)
{
    for (uint32_t i = 0; i < row->set->column_count; i++)
        if (strcmp(row->set->columns[i], column) == 0)
            return row->cells[i];
    return "";
}

double measurement_number(const struct measurement *row, const char *column, double fallback)
{
    const char *text = measurement_text(row, column);
    char *end = NULL;
    const double value = strtod(text, &end);
    return end != text && isfinite(value) ? value : fallback;
}

bool measurement_eligible(const struct measurement *row)
{
    const bool graded = strcmp(row->grade, "A") == 0 || strcmp(row->grade, "B") == 0;
    return graded && row->kind == MEASUREMENT_STEP && row->sixteen_bit;
}

/* ---- Fields ---- */

static void fill_measurement(struct measurement *row)
{
    const char *kind = measurement_text(row, "kind");
    row->family = measurement_text(row, "family");
    row->grade = measurement_text(row, "grade");
    row->device = measurement_text(row, "device");
    row->kind = strcmp(kind, "layer") == 0   ? MEASUREMENT_LAYER
                : strcmp(kind, "chunk") == 0 ? MEASUREMENT_CHUNK
                                             : MEASUREMENT_STEP;
    row->moe = measurement_number(row, "experts", 0.0) > 0.0;
    row->ascend = strncasecmp(row->device, "ascend", 6) == 0;
    row->reported = strcmp(measurement_text(row, "iter_time_kind"), "reported") == 0;
    const char *precision = measurement_text(row, "precision");
    row->sixteen_bit = strncmp(precision, "bf16", 4) == 0 || strncmp(precision, "fp16", 4) == 0;
    row->step_s = measurement_number(row, "iter_time_s", 0.0);
    if (row->kind == MEASUREMENT_LAYER)
        row->step_s =
            (measurement_number(row, "fwd_ms", 0.0) + measurement_number(row, "bwd_ms", 0.0)) *
            1e-3;
    row->first_step_memory = strstr(measurement_text(row, "mem_kind"), "logged ranks") != NULL;
    row->memory_bytes = measurement_number(row, "mem_gib", 0.0) * 1024.0 * 1024.0 * 1024.0;
}

/* The model's name up to what names one variant of it: "(MFU table)", "_tp8", "pretrain". */
static const char *ascend_family(const struct measurement *row, struct arena *arena)
{
    static const char *const ends[] = {" (", "_tp", " pretrain", " finetune", " full ", "_mcore"};
    const char *model = measurement_text(row, "model");
    size_t length = strlen(model);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        const char *end = strstr(model, ends[i]);
        if (end != NULL && end > model && (size_t)(end - model) < length)
            length = (size_t)(end - model);
    }
    return arena_printf(arena, "%s:%.*s", measurement_text(row, "group"), (int)length, model);
}

static void fill_ascend(struct measurement *row, struct arena *arena)
{
    const char *confidence = measurement_text(row, "confidence");
    const char *flags = measurement_text(row, "flags");
    /* Samples of variable length, and settings that were inferred, are a trend at best. */
    const bool trend = strstr(confidence, "inference") || strstr(confidence, "second-hand") ||
                       strstr(flags, "stage=") || strstr(flags, "instruction-dataset") ||
                       strstr(flags, "FSDP2") || strstr(flags, "lora");
    row->family = ascend_family(row, arena);
    row->grade = trend ? "C" : "B";
    row->device = measurement_text(row, "hardware");
    row->kind = MEASUREMENT_STEP;
    row->moe = measurement_number(row, "is_moe", 0.0) > 0.0;
    row->ascend = true;
    row->reported = strstr(measurement_text(row, "metric"), "step ms") != NULL;
    row->sixteen_bit = true;
    row->step_s = measurement_number(row, "step_ms", 0.0) * 1e-3;
    row->first_step_memory = true;
    row->memory_bytes = measurement_number(row, "peak_mem_mb", 0.0) * 1024.0 * 1024.0;
}

static bool has_column(const struct measurement_set *set, const char *column)
{
    for (uint32_t i = 0; i < set->column_count; i++)
        if (strcmp(set->columns[i], column) == 0)
            return true;
    return false;
}

static bool find_format(struct measurement_set *set, struct error_list *errors)
{
    if (has_column(set, "iter_time_s") && has_column(set, "family")) {
        set->format = FORMAT_MEASUREMENTS;
        return true;
    }
    if (has_column(set, "step_ms") && has_column(set, "flags")) {
        set->format = FORMAT_ASCEND_RUNS;
        return true;
    }
    error_add(errors, ERROR_bad_value, (struct location){set->path, 1, 0}, NULL,
              "the header names neither format: columns iter_time_s and family, or step_ms and "
              "flags, are needed");
    return false;
}

const struct measurement_set *measurements_read(const char *path, struct arena *arena,
                                                struct error_list *errors)
{
    struct measurement_set *set = ARENA_NEW(arena, struct measurement_set);
    set->path = arena_strdup(arena, path);
    struct reader reader = {.arena = arena, .set = set};
    if (!parse(path, &reader, errors) || !find_format(set, errors))
        return NULL;
    for (uint32_t i = 0; i < set->count; i++) {
        reader.rows[i].id = measurement_text(&reader.rows[i], "id");
        if (set->format == FORMAT_MEASUREMENTS)
            fill_measurement(&reader.rows[i]);
        else
            fill_ascend(&reader.rows[i], arena);
    }
    return set;
}
