/*
 * schema_template.c - an annotated scenario, written off the table.
 *
 * Each key stands with its example or default and its meaning. What needs another
 * setting first, has no value, or is not modelled yet stands as a comment, so the
 * file loads as it is.
 */
#include <stdio.h>
#include <string.h>

#include "config/config_internal.h"
#include "stepsim/text.h"

#define WIDTH 96

static void indent(struct text *out, uint32_t depth)
{
    for (uint32_t i = 0; i < depth; i++)
        text_add(out, "  ");
}

/* A comment, broken into lines between words. */
static void add_comment(struct text *out, const char *words, uint32_t depth)
{
    const size_t room = WIDTH - 2 * (size_t)depth;
    while (*words) {
        size_t length = strlen(words);
        if (length > room) {
            length = room;
            while (length > 1 && words[length] != ' ')
                length--;
        }
        indent(out, depth);
        text_add(out, "# %.*s\n", (int)length, words);
        words += length;
        words += strspn(words, " ");
    }
}

static uint32_t depth_of(const char *key)
{
    uint32_t depth = 0;
    for (const char *c = key; *c; c++)
        depth += *c == '.';
    return depth;
}

/* Headings of the sections that begin at this row. */
static void open_sections(struct text *out, const struct schema_table *table,
                          const struct schema_row *row, const char *before)
{
    uint32_t depth = 0;
    for (const char *dot = strchr(row->key, '.'); dot; dot = strchr(dot + 1, '.'), depth++) {
        const size_t length = (size_t)(dot - row->key);
        if (strncmp(row->key, before, length + 1) == 0)
            continue;
        if (depth == 0)
            text_add(out, "\n");
        for (uint32_t i = 0; i < table->section_count; i++) {
            const struct schema_section *section = &table->sections[i];
            if (strlen(section->key) == length && strncmp(section->key, row->key, length) == 0)
                add_comment(out, section->meaning, depth);
        }
        const char *name = row->key + length;
        while (name > row->key && name[-1] != '.')
            name--;
        indent(out, depth);
        text_add(out, "%.*s:\n", (int)(row->key + length - name), name);
    }
}

static void add_row(struct text *out, const struct schema_row *row, struct arena *scratch)
{
    const char *dot = strrchr(row->key, '.');
    const char *name = dot ? dot + 1 : row->key;
    const uint32_t depth = depth_of(row->key);
    const char *value = row->example ? row->example : row->fallback;
    const bool open = row->fallback || (row->flags & SCHEMA_REQUIRED);
    const bool idle = !open || row->when.key;
    struct text words = {0};
    text_add(&words, "%s", row->meaning);
    if (row->choice_count > 0 && row->kind != SCHEMA_SET)
        text_add(&words, " One of: %s.", schema_choice_names(row, false, scratch));
    if (row->fallback && strcmp(row->fallback, value) != 0)
        text_add(&words, " Default: %s.", row->fallback);
    if (row->pending)
        text_add(&words, " Not modelled yet.");
    add_comment(out, text_string(&words), depth);
    indent(out, depth);
    const bool quoted = row->kind == SCHEMA_STRING && row->example;
    text_add(out, quoted ? "%s%s: \"%s\"\n" : "%s%s: %s\n", idle ? "# " : "", name, value);
    text_free(&words);
}

char *schema_template(struct arena *arena)
{
    struct arena *scratch = arena_create("template");
    const struct schema_table *table = &scenario_schema;
    const char *before = "";
    struct text out = {0};
    text_add(&out, "# A scenario with every key. `stepsim describe KEY` explains one, "
                   "`stepsim simulate FILE` runs it.\n\n");
    for (uint32_t i = 0; i < table->row_count; i++) {
        const struct schema_row *row = &table->rows[i];
        open_sections(&out, table, row, before);
        if (!strchr(row->key, '.') && strchr(before, '.'))
            text_add(&out, "\n");
        add_row(&out, row, scratch);
        before = row->key;
    }
    char *copy = arena_strdup(arena, text_string(&out));
    text_free(&out);
    arena_destroy(scratch);
    return copy;
}
