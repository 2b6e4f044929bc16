/*
 * table.c - tables for people, laid out by libsmartcols.
 *
 * Cells are text that is ready to print. The library knows the width of characters, so
 * names in any script line up.
 */
#include <libsmartcols/libsmartcols.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli_internal.h"

struct table {
    struct cli *cli;
    struct libscols_table *scols;
    struct libscols_line *line;
    size_t next_cell;
};

struct table *table_create(struct cli *cli)
{
    struct table *table = ARENA_NEW(cli->arena, struct table);
    table->cli = cli;
    table->scols = scols_new_table();
    ASSERT(table->scols != NULL);
    /* Never cut: a terminal wraps long lines, a file keeps them. */
    scols_table_set_termforce(table->scols, SCOLS_TERMFORCE_NEVER);
    scols_table_set_column_separator(table->scols, "  ");
    return table;
}

void table_column(struct table *table, const char *heading, enum table_align align)
{
    struct libscols_column *column = scols_table_new_column(
        table->scols, heading, 0.0, align == TABLE_RIGHT ? SCOLS_FL_RIGHT : 0);
    ASSERT(column != NULL);
    if (table->cli->colour) {
        scols_cell_set_color(scols_column_get_header(column), "\033[2m");
    }
}

void table_row(struct table *table)
{
    table->line = scols_table_new_line(table->scols, NULL);
    ASSERT(table->line != NULL);
    table->next_cell = 0;
}

void table_cell(struct table *table, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const char *text = arena_vprintf(table->cli->arena, format, args);
    va_end(args);
    ASSERT(table->line != NULL);
    const int failed = scols_line_set_data(table->line, table->next_cell++, text);
    ASSERT(failed == 0);
}

/* One printed line with the indent in front and no blanks at its end. */
static void print_line(const char *line, size_t length, unsigned indent)
{
    while (length > 0 && line[length - 1] == ' ') {
        length--;
    }
    printf("%*s%.*s\n", length > 0 ? (int)indent : 0, "", (int)length, line);
}

void table_print(struct table *table, unsigned indent)
{
    char *text = NULL;
    const int failed = scols_print_table_to_string(table->scols, &text);
    ASSERT(failed == 0);
    for (const char *line = text; line != NULL && *line != '\0';) {
        const size_t length = strcspn(line, "\n");
        print_line(line, length, indent);
        line += length + (line[length] == '\n' ? 1 : 0);
    }
    free(text);
    scols_unref_table(table->scols);
}

void table_drop(struct table *table)
{
    scols_unref_table(table->scols);
}
