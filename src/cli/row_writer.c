/*
 * row_writer.c - rows of a query as a table, CSV, JSON or Markdown.
 *
 * CSV follows RFC 4180 with a header and empty fields for null; JSON is an array of objects,
 * written row by row so that a large table needs no memory.
 */
#include "row_writer.h"

#include <math.h>
#include <string.h>

#include "stepsim/text.h"

static const char *number_text(struct arena *arena, const struct store_cell *cell, bool brief)
{
    if (cell->kind == STORE_INTEGER) {
        return arena_printf(arena, "%lld", (long long)cell->integer);
    }
    if (brief && fabs(cell->real) >= 0.001 && fabs(cell->real) < 1e15) {
        char *text = arena_printf(arena, fabs(cell->real) < 1000.0 ? "%.4f" : "%.1f", cell->real);
        size_t length = strlen(text);
        while (text[length - 1] == '0') {
            text[--length] = '\0';
        }
        if (text[length - 1] == '.') {
            text[--length] = '\0';
        }
        return text;
    }
    return brief ? arena_printf(arena, "%.4g", cell->real) : text_double(arena, cell->real);
}

static void csv_text(const char *text)
{
    if (strpbrk(text, ",\"\r\n") == NULL) {
        fputs(text, stdout);
        return;
    }
    putchar('"');
    for (; *text != '\0'; text++) {
        fputs(*text == '"' ? "\"\"" : (char[]){*text, '\0'}, stdout);
    }
    putchar('"');
}

static void json_text(const char *text)
{
    putchar('"');
    for (; *text != '\0'; text++) {
        const unsigned char byte = (unsigned char)*text;
        if (byte == '"' || byte == '\\') {
            printf("\\%c", byte);
        } else if (byte < 0x20) {
            printf("\\u%04x", byte);
        } else {
            putchar(byte);
        }
    }
    putchar('"');
}

static void markdown_text(const char *text)
{
    for (; *text != '\0'; text++) {
        fputs(*text == '|' ? "\\|" : *text == '\n' ? " " : (char[]){*text, '\0'}, stdout);
    }
}

static void write_cell(struct arena *arena, const struct store_cell *cell, enum row_format format)
{
    if (cell->kind == STORE_NULL) {
        fputs(format == ROWS_JSON ? "null" : "", stdout);
    } else if (cell->kind != STORE_TEXT) {
        fputs(number_text(arena, cell, format == ROWS_MARKDOWN), stdout);
    } else if (format == ROWS_CSV) {
        csv_text(cell->text);
    } else if (format == ROWS_JSON) {
        json_text(cell->text);
    } else {
        markdown_text(cell->text);
    }
}

static void write_head(const struct store_query *query, enum row_format format)
{
    const uint32_t columns = store_query_columns(query);
    if (format == ROWS_JSON) {
        fputs("[", stdout);
        return;
    }
    const bool markdown = format == ROWS_MARKDOWN;
    fputs(markdown ? "| " : "", stdout);
    for (uint32_t i = 0; i < columns; i++) {
        fputs(i == 0 ? "" : markdown ? " | " : ",", stdout);
        if (markdown) {
            markdown_text(store_query_heading(query, i));
        } else {
            csv_text(store_query_heading(query, i));
        }
    }
    fputs(markdown ? " |\n|" : "\n", stdout);
    for (uint32_t i = 0; markdown && i < columns; i++) {
        fputs(" --- |", stdout);
    }
    fputs(markdown ? "\n" : "", stdout);
}

static void write_row(struct arena *arena, const struct store_query *query, enum row_format format,
                      bool first)
{
    const uint32_t columns = store_query_columns(query);
    const bool markdown = format == ROWS_MARKDOWN, json = format == ROWS_JSON;
    fputs(json ? (first ? "\n{" : ",\n{") : markdown ? "| " : "", stdout);
    for (uint32_t i = 0; i < columns; i++) {
        fputs(i == 0 ? "" : markdown ? " | " : json ? ", " : ",", stdout);
        if (json) {
            json_text(store_query_heading(query, i));
            fputs(": ", stdout);
        }
        const struct store_cell cell = store_query_cell(query, i);
        write_cell(arena, &cell, format);
    }
    fputs(json ? "}" : markdown ? " |\n" : "\n", stdout);
}

/* All rows are in memory for the widths, so a table is for people and their LIMITs. */
static uint64_t write_table(struct cli *cli, struct store_query *query)
{
    struct table *table = table_create(cli);
    const uint32_t columns = store_query_columns(query);
    uint64_t rows = 0;
    while (store_query_next(query, &cli->errors)) {
        for (uint32_t i = 0; rows == 0 && i < columns; i++) {
            const bool text = store_query_cell(query, i).kind == STORE_TEXT;
            table_column(table, store_query_heading(query, i), text ? TABLE_LEFT : TABLE_RIGHT);
        }
        table_row(table);
        for (uint32_t i = 0; i < columns; i++) {
            const struct store_cell cell = store_query_cell(query, i);
            const char *text = cell.kind == STORE_TEXT   ? cell.text
                               : cell.kind == STORE_NULL ? ""
                                                         : number_text(cli->arena, &cell, true);
            table_cell(table, "%s", text);
        }
        rows++;
    }
    if (rows == 0) { /* a table without rows has no columns either */
        for (uint32_t i = 0; i < columns; i++) {
            table_column(table, store_query_heading(query, i), TABLE_LEFT);
        }
        table_row(table);
    }
    table_print(table, 0);
    return rows;
}

uint64_t rows_write(struct cli *cli, struct store_query *query, enum row_format format)
{
    uint64_t rows = 0;
    if (format == ROWS_TABLE) {
        rows = write_table(cli, query);
    } else {
        struct arena *arena = arena_create("row");
        write_head(query, format);
        while (store_query_next(query, &cli->errors)) {
            arena_reset(arena);
            write_row(arena, query, format, rows == 0);
            rows++;
        }
        fputs(format == ROWS_JSON ? "\n]\n" : "", stdout);
        arena_destroy(arena);
    }
    store_query_close(query);
    return rows;
}
