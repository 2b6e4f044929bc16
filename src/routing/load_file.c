/*
 * load_file.c - measured loads: tokens per layer and expert, of one step or of several.
 *
 * CSV with the columns layer, expert, tokens and, if wished, step, in any order; layers and
 * steps are counted from 0, layers as in the model (MTP modules behind the last layer). JSON is
 * an array of steps of layers of tokens, or of layers of tokens; its layers are the MoE layers
 * in order. Every MoE layer must have tokens in every step; an expert without a row has none.
 */
#include <cjson/cJSON.h>
#include <csv.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "routing_internal.h"

#define FILE_BYTES_MAX (1u << 28)
#define STEPS_MAX      100000u
#define KEY            "moe.routing.file"

enum column { COLUMN_STEP, COLUMN_LAYER, COLUMN_EXPERT, COLUMN_TOKENS, COLUMN_COUNT };
static const char *const column_names[COLUMN_COUNT] = {"step", "layer", "expert", "tokens"};

#define CELLS_MAX 16

struct reader {
    const struct load_table_ask *ask;
    struct arena *arena;
    struct error_list *errors;
    const char *path;
    uint32_t line, steps, capacity;
    double *load;
    int place[COLUMN_COUNT]; /* of a column in the file, -1: not there */
    double cells[CELLS_MAX];
    char words[CELLS_MAX][16];
    int filled;
    bool failed;
};

static void refuse(struct reader *reader, const char *reason)
{
    if (!reader->failed)
        error_add(reader->errors, ERROR_bad_value, (struct location){reader->path, reader->line, 0},
                  KEY, "%s", reason);
    reader->failed = true;
}

/* Where the tokens of a layer of a step go; grows with the steps. */
static double *loads_at(struct reader *reader, uint32_t step, uint32_t layer)
{
    const size_t row = (size_t)reader->ask->layers * reader->ask->experts;
    if (step >= reader->capacity) {
        const uint32_t capacity = step < 8 ? 8 : 2 * step;
        double *load = ARENA_ARRAY(reader->arena, row * capacity, double);
        if (reader->steps > 0)
            memcpy(load, reader->load, row * reader->steps * sizeof *load);
        reader->load = load;
        reader->capacity = capacity;
    }
    reader->steps = step + 1 > reader->steps ? step + 1 : reader->steps;
    return reader->load + step * row + (size_t)layer * reader->ask->experts;
}

/* ---- CSV ---- */

static void on_cell(void *cell, size_t length, void *user)
{
    struct reader *reader = user;
    if (reader->filled == CELLS_MAX) {
        refuse(reader, "more than 16 columns");
        return;
    }
    char *word = reader->words[reader->filled];
    const size_t kept = length < 15 ? length : 15;
    if (kept > 0)
        memcpy(word, cell, kept);
    word[kept] = '\0';
    char *end = word;
    reader->cells[reader->filled] = strtod(word, &end);
    if (reader->line > 1 && (end == word || *end != '\0'))
        reader->cells[reader->filled] = NAN;
    reader->filled++;
}

static void read_header(struct reader *reader)
{
    for (int c = 0; c < COLUMN_COUNT; c++) {
        reader->place[c] = -1;
        for (int i = 0; i < reader->filled; i++) {
            if (strcmp(reader->words[i], column_names[c]) == 0)
                reader->place[c] = i;
        }
        if (reader->place[c] < 0 && c != COLUMN_STEP)
            refuse(reader, "the header needs the columns layer, expert and tokens");
    }
}

/* The value of a column as a count below `bound`; false, refused, if it is none. */
static bool count_of(struct reader *reader, enum column column, uint32_t bound, uint32_t *count)
{
    const double value = reader->cells[reader->place[column]];
    if (!(value >= 0.0 && value < (double)bound && floor(value) == value)) {
        refuse(reader, column == COLUMN_LAYER    ? "the model has no such layer"
                       : column == COLUMN_EXPERT ? "the model has no such expert"
                                                 : "not a step number");
        return false;
    }
    *count = (uint32_t)value;
    return true;
}

static void on_row(int terminator, void *user)
{
    (void)terminator;
    struct reader *reader = user;
    const int filled = reader->filled;
    if (reader->line == 1)
        read_header(reader);
    reader->filled = 0;
    reader->line++;
    if (reader->line == 2 || filled == 0 || reader->failed)
        return;
    uint32_t step = 0, layer = 0, expert = 0;
    for (int c = 0; c < COLUMN_COUNT; c++) {
        if (reader->place[c] >= filled) {
            refuse(reader, "a row is shorter than the header");
            return;
        }
    }
    const double tokens = reader->cells[reader->place[COLUMN_TOKENS]];
    if (!(tokens >= 0.0 && tokens < 1e18)) {
        refuse(reader, "tokens must be a number of at least 0");
        return;
    }
    if ((reader->place[COLUMN_STEP] < 0 || count_of(reader, COLUMN_STEP, STEPS_MAX, &step)) &&
        count_of(reader, COLUMN_LAYER, reader->ask->layers, &layer) &&
        count_of(reader, COLUMN_EXPERT, reader->ask->experts, &expert))
        loads_at(reader, step, layer)[expert] += tokens;
}

static void read_csv(struct reader *reader, char *text, size_t length)
{
    struct csv_parser parser;
    reader->line = 1;
    bool good = csv_init(&parser, CSV_STRICT | CSV_STRICT_FINI) == 0;
    good = good && csv_parse(&parser, text, length, on_cell, on_row, reader) == length;
    good = good && csv_fini(&parser, on_cell, on_row, reader) == 0;
    if (!good)
        refuse(reader, "not CSV");
    csv_free(&parser);
}

/* ---- JSON ---- */

static void read_json_layers(struct reader *reader, const cJSON *layers, uint32_t step)
{
    uint32_t layer = 0;
    for (const cJSON *row = layers->child; row != NULL && !reader->failed; row = row->next) {
        while (layer < reader->ask->layers && !reader->ask->moe_layer[layer])
            layer++;
        if (layer == reader->ask->layers || !cJSON_IsArray(row) ||
            cJSON_GetArraySize(row) != (int)reader->ask->experts) {
            refuse(reader, "every MoE layer needs one array with the tokens of each expert");
            return;
        }
        double *load = loads_at(reader, step, layer++);
        for (const cJSON *cell = row->child; cell != NULL; cell = cell->next) {
            if (!cJSON_IsNumber(cell) || !(cell->valuedouble >= 0.0 && cell->valuedouble < 1e18))
                refuse(reader, "tokens must be numbers of at least 0");
            else
                *load = cell->valuedouble;
            load++;
        }
    }
}

static void read_json(struct reader *reader, const char *text)
{
    cJSON *root = cJSON_Parse(text);
    const cJSON *first = cJSON_IsArray(root) ? root->child : NULL;
    if (first == NULL || !cJSON_IsArray(first)) {
        refuse(reader, "not a JSON array of layers, or of steps of layers, of tokens");
    } else if (cJSON_IsArray(first->child)) {
        uint32_t step = 0;
        for (const cJSON *row = first; row != NULL && !reader->failed; row = row->next)
            read_json_layers(reader, row, step++);
    } else {
        read_json_layers(reader, root, 0);
    }
    cJSON_Delete(root);
}

/* ---- Both ---- */

/* Relative paths start from the folder of the scenario. */
static const char *path_of(const struct scenario *scenario, struct arena *arena)
{
    const char *file = scenario->moe.load_file;
    const char *slash = scenario->path != NULL ? strrchr(scenario->path, '/') : NULL;
    if (file[0] == '/' || slash == NULL)
        return file;
    return arena_printf(arena, "%.*s/%s", (int)(slash - scenario->path), scenario->path, file);
}

static char *text_of(struct reader *reader, size_t *length)
{
    FILE *file = fopen(reader->path, "rb");
    if (file == NULL) {
        error_add(reader->errors, ERROR_file_not_found,
                  scenario_at(reader->ask->scenario, KEY), KEY, "%s: %s", reader->path,
                  strerror(errno));
        reader->failed = true;
        return NULL;
    }
    size_t size = 0;
    char *text = NULL;
    if (fseek(file, 0, SEEK_END) == 0) {
        const long end = ftell(file);
        size = end > 0 ? (size_t)end : 0;
        rewind(file);
    }
    if (size > 0 && size < FILE_BYTES_MAX) {
        text = arena_alloc(reader->arena, size + 1);
        *length = fread(text, 1, size, file);
        text[*length] = '\0';
    } else {
        refuse(reader, "an empty or huge file");
    }
    fclose(file);
    return text;
}

/* Tokens become loads of mean 1. */
static void finish(struct reader *reader)
{
    const struct load_table_ask *ask = reader->ask;
    for (uint32_t step = 0; step < reader->steps && !reader->failed; step++) {
        for (uint32_t layer = 0; layer < ask->layers && !reader->failed; layer++) {
            double *load = loads_at(reader, step, layer);
            double sum = 0.0;
            for (uint32_t e = 0; e < ask->experts; e++)
                sum += load[e];
            if (ask->moe_layer[layer] && !(sum > 0.0))
                refuse(reader, "a MoE layer has no tokens in some step");
            for (uint32_t e = 0; e < ask->experts && sum > 0.0; e++)
                load[e] = load[e] * (double)ask->experts / sum;
            load_cap(load, ask->experts, ask->top_k);
        }
    }
    if (reader->steps == 0)
        refuse(reader, "no tokens");
}

bool load_table_read(const struct load_table_ask *ask, struct arena *arena,
                     struct error_list *errors, struct load_table *table)
{
    struct reader reader = {.ask = ask,
                            .arena = arena,
                            .errors = errors,
                            .path = path_of(ask->scenario, arena)};
    size_t length = 0;
    char *text = text_of(&reader, &length);
    if (text == NULL)
        return false;
    const size_t blanks = strspn(text, " \t\r\n");
    if (text[blanks] == '[' || text[blanks] == '{')
        read_json(&reader, text);
    else
        read_csv(&reader, text, length);
    reader.line = 0;
    if (!reader.failed)
        finish(&reader);
    *table = (struct load_table){.steps = reader.steps, .load = reader.load};
    return !reader.failed;
}
