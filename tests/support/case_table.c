/* case_table.c - cells by row and column name; the CSV itself is libcsv's business. */
#include "case_table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <csv.h>

#include "assert_close.h"
#include "scenario_builder.h"
#include "stepsim/arena.h"

#define ROWS_MAX    200
#define COLUMNS_MAX 64

struct case_table {
    struct arena *arena;
    const char *cells[ROWS_MAX][COLUMNS_MAX]; /* row 0 is the header */
    size_t rows, columns;
    size_t column; /* of the cell that is being read */
};

static void take_cell(void *cell, size_t length, void *context)
{
    struct case_table *table = context;
    ASSERT(table->rows < ROWS_MAX);
    ASSERT(table->column < COLUMNS_MAX);
    table->cells[table->rows][table->column++] = arena_strndup(table->arena, cell, length);
}

static void take_row(int end, void *context)
{
    (void)end;
    struct case_table *table = context;
    if (table->rows == 0)
        table->columns = table->column;
    ASSERT(table->column == table->columns);
    table->column = 0;
    table->rows++;
}

struct case_table *case_table_read(const char *path, struct arena *arena)
{
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return NULL;
    struct case_table *table = ARENA_NEW(arena, struct case_table);
    table->arena = arena;
    struct csv_parser parser;
    bool good = csv_init(&parser, CSV_STRICT | CSV_STRICT_FINI) == 0;
    char buffer[4096];
    for (size_t length; good && (length = fread(buffer, 1, sizeof buffer, file)) > 0;)
        good = csv_parse(&parser, buffer, length, take_cell, take_row, table) == length;
    good = good && csv_fini(&parser, take_cell, take_row, table) == 0;
    csv_free(&parser);
    fclose(file);
    return good ? table : NULL;
}

size_t case_table_rows(const struct case_table *table)
{
    return table->rows - 1;
}

const char *case_table_id(const struct case_table *table, size_t row)
{
    return table->cells[row + 1][0];
}

size_t case_row(const struct case_table *table, const char *id)
{
    for (size_t row = 0; row < case_table_rows(table); row++)
        if (strcmp(case_table_id(table, row), id) == 0)
            return row;
    fail_msg("no case %s", id);
    return 0;
}

static const char *cell_of(const struct case_table *table, size_t row, const char *column)
{
    for (size_t i = 0; i < table->columns; i++)
        if (strcmp(table->cells[0][i], column) == 0)
            return table->cells[row + 1][i];
    fail_msg("no column %s", column);
    return "";
}

/* The part between the variant-th and the next separator, without blanks around it. */
static const char *entry_of(const struct case_table *table, const char *cell, char separator,
                            uint32_t variant)
{
    if (strchr(cell, separator) == NULL)
        variant = 0;
    for (uint32_t i = 0; i < variant; i++) {
        cell = strchr(cell, separator);
        if (cell == NULL)
            fail_msg("no variant %u", variant);
        cell++;
    }
    const char separators[2] = {separator, '\0'};
    size_t length = strcspn(cell, separators);
    while (length > 0 && *cell == ' ') {
        cell++;
        length--;
    }
    while (length > 0 && cell[length - 1] == ' ')
        length--;
    return arena_strndup(table->arena, cell, length);
}

const char *case_text(const struct case_table *table, size_t row, const char *column,
                      uint32_t variant)
{
    return entry_of(table, cell_of(table, row, column), '|', variant);
}

uint32_t case_number(const struct case_table *table, size_t row, const char *column,
                     uint32_t variant, uint32_t otherwise)
{
    const char *text = case_text(table, row, column, variant);
    if (*text < '0' || *text > '9')
        return otherwise;
    return (uint32_t)strtoul(text, NULL, 10);
}

const char *case_expected_text(const struct case_table *table, size_t row, const char *key)
{
    const size_t length = strlen(key);
    const char *at = cell_of(table, row, "assert");
    while (at != NULL && (strncmp(at, key, length) != 0 || at[length] != '=')) {
        at = strchr(at, ';');
        at = at != NULL ? at + 1 : NULL;
    }
    if (at == NULL) {
        fail_msg("no expectation %s in %s", key, case_table_id(table, row));
        return "";
    }
    return entry_of(table, at + length + 1, ';', 0);
}

double case_expected(const struct case_table *table, size_t row, const char *key, uint32_t item)
{
    const char *text = entry_of(table, case_expected_text(table, row, key), ',', item);
    char *end = NULL;
    const double value = strtod(text, &end);
    if (end == text)
        fail_msg("%s of %s is no number: \"%s\"", key, case_table_id(table, row), text);
    return value;
}

double case_tolerance(const struct case_table *table, size_t row)
{
    const char *text = cell_of(table, row, "tolerance");
    return strchr(text, '%') != NULL ? strtod(text, NULL) / 100.0 : 0.0;
}

/* "MLA q1536 kv512 rope64" with "qk192/v128": the part of a key without rotation is 192 - 64. */
static struct attention_spec mla_of(const struct case_table *table, size_t row, uint32_t heads)
{
    struct attention_spec attention = {.kind = ATTENTION_MLA, .heads = heads, .window_every = 1};
    uint32_t qk = 0;
    const int dims =
        sscanf(cell_of(table, row, "head_dim"), "qk%u/v%u", &qk, &attention.v_head_dim);
    const int ranks =
        sscanf(cell_of(table, row, "attn"), "MLA q%u kv%u rope%u", &attention.q_lora_rank,
               &attention.kv_lora_rank, &attention.qk_rope_head_dim);
    assert_int_equal(dims, 2);
    assert_int_equal(ranks, 3);
    attention.qk_nope_head_dim = qk - attention.qk_rope_head_dim;
    return attention;
}

struct model_spec case_model(const struct case_table *table, size_t row)
{
    const struct model_spec plain = builder_scenario().model;
    const uint32_t heads = case_number(table, row, "heads", 0, plain.attention.heads);
    const char *attention = case_text(table, row, "attn", 0);
    struct model_spec spec = builder_dense((struct dense_shape){
        .layers = case_number(table, row, "layers", 0, plain.layers),
        .hidden = case_number(table, row, "hidden", 0, plain.hidden_size),
        .ffn = case_number(table, row, "ffn", 0, plain.ffn_intermediate_size),
        .heads = heads,
        .kv_heads = case_number(table, row, "kv_heads", 0, heads),
        .head_dim = case_number(table, row, "head_dim", 0, plain.attention.head_dim),
        .vocab = case_number(table, row, "vocab", 0, plain.vocab_size),
    });
    if (strncmp(attention, "MLA", 3) == 0)
        spec.attention = mla_of(table, row, heads);
    if (strstr(attention, "window 128 on every other layer") != NULL) {
        spec.attention.window = 128;
        spec.attention.window_every = 2;
    }
    spec.mtp_layers = case_number(table, row, "mtp", 0, 0);
    const uint32_t experts = case_number(table, row, "experts", 0, 0);
    if (experts > 0)
        spec.moe = builder_moe((struct moe_shape){
            .experts = experts,
            .top_k = case_number(table, row, "topk", 0, 1),
            .intermediate = case_number(table, row, "moe_ffn", 0, 256),
            .shared = case_number(table, row, "shared_ffn", 0, 0),
            .first_dense_layers = case_number(table, row, "dense_first", 0, 0),
        });
    return spec;
}
