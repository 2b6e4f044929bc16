/*
 * schema_doc.c - the tables as prose: `describe KEY` and docs/reference/config.md.
 */
#include <string.h>

#include "config/config_internal.h"
#include "stepsim/text.h"

static char *take(struct text *text, struct arena *arena)
{
    char *copy = arena_strdup(arena, text_string(text));
    text_free(text);
    return copy;
}

/* "moe.routing.load is zipf", "attention.kind is mha or gqa", "moe.experts is above 0" */
static char *condition(const struct schema_table *table, const struct schema_row *row,
                       struct arena *arena)
{
    const struct schema_row *steering = &table->rows[schema_row_index(table, row->when.key)];
    struct text text = {0};
    if (row->when.mask == SCHEMA_WHEN_NONZERO && !steering->choices)
        text_add(&text, "%s is above 0", steering->key);
    else if (row->when.mask == SCHEMA_WHEN_NONZERO)
        text_add(&text, "%s is not %s", steering->key, steering->choices[0].name);
    else
        text_add(&text, "%s is", steering->key);
    const char *word = " ";
    for (uint32_t i = 0; row->when.mask != SCHEMA_WHEN_NONZERO && i < steering->choice_count; i++) {
        if (row->when.mask >> i & 1u) {
            text_add(&text, "%s%s", word, steering->choices[i].name);
            word = " or ";
        }
    }
    return take(&text, arena);
}

/* "a whole number, 1 to 8", "a quantity with unit (byte/s), such as 196 GB/s" */
static char *kind_words(const struct schema_row *row, struct arena *arena)
{
    const char *unit = quantity_unit(row->dimension);
    const char *range = row->items ? "" : schema_range(row, arena);
    struct text text = {0};
    text_add(&text, "%s", schema_kind_noun(row));
    if (unit[0])
        text_add(&text, " (%s, such as %s)", unit, quantity_example(row->dimension));
    if (range[0])
        text_add(&text, ", %s", range);
    return take(&text, arena);
}

static const char *default_words(const struct schema_row *row)
{
    if (row->fallback)
        return row->fallback;
    return row->flags & SCHEMA_REQUIRED ? "required" : "none";
}

/* ---- describe ---- */

static void describe_choices(struct text *out, const struct schema_row *row)
{
    for (uint32_t i = 0; i < row->choice_count; i++) {
        const struct schema_choice *choice = &row->choices[i];
        if (!choice->name)
            continue;
        text_add(out, "    %-18s %s", choice->name, choice->meaning);
        if (choice->pending)
            text_add(out, " Not modelled yet: %s.", choice->pending);
        text_add(out, "\n");
    }
}

static void describe_row(struct text *out, const struct schema_table *table,
                         const struct schema_row *row, const char *key)
{
    struct arena *scratch = arena_create("describe");
    text_add(out, "%s: %s\n  %s\n", key, kind_words(row, scratch), row->meaning);
    text_add(out, "  default: %s\n", default_words(row));
    if (row->flags & SCHEMA_SHORTHAND)
        text_add(out, "  may be written as plain text in place of its section\n");
    if (row->when.key)
        text_add(out, "  only while %s\n", condition(table, row, scratch));
    if (row->dimension != DIMENSION_NONE)
        text_add(out, "  units: %s\n", quantity_units(row->dimension));
    if (row->pending)
        text_add(out, "  not modelled yet: %s\n", row->pending);
    if (row->choice_count > 0)
        text_add(out, "  values:\n");
    describe_choices(out, row);
    if (row->items)
        text_add(out, "  its keys:\n");
    for (uint32_t i = 0; row->items && i < row->items->row_count; i++)
        text_add(out, "    %-32s %s\n", row->items->rows[i].key, row->items->rows[i].meaning);
    arena_destroy(scratch);
}

static void describe_section(struct text *out, struct schema_scope scope, const char *key)
{
    const char *meaning = "";
    const uint32_t length = scope.skip - 1;
    const char *path = scope.table->rows[scope.first].key;
    for (uint32_t i = 0; i < scope.table->section_count; i++) {
        const struct schema_section *section = &scope.table->sections[i];
        if (strlen(section->key) == length && strncmp(section->key, path, length) == 0)
            meaning = section->meaning;
    }
    text_add(out, "%s: a section\n  %s\n  its keys:\n", key, meaning);
    for (uint32_t i = scope.first; i < scope.end; i++) {
        const struct schema_row *row = &scope.table->rows[i];
        text_add(out, "    %-32s %s\n", row->key + scope.skip, row->meaning);
    }
}

/* Follows a key into the table that it ends in; an index of a list may be written or left out. */
static struct schema_scope resolve(const char *key)
{
    struct schema_scope scope = schema_scope_of_table(&scenario_schema);
    for (const char *at = key; *at;) {
        const size_t length = strcspn(at, ".");
        const struct schema_row *row = schema_scope_row(scope);
        if (row && row->items) {
            struct schema_scope inner =
                schema_scope_enter(schema_scope_of_table(row->items), at, length);
            const bool index = schema_scope_is_empty(inner) && row->kind != SCHEMA_INCLUDE;
            scope = index ? scope : inner;
        } else {
            scope = schema_scope_enter(scope, at, length);
        }
        if (schema_scope_is_empty(scope))
            return scope;
        at += length + (at[length] == '.');
    }
    return scope;
}

char *schema_describe(const char *key, struct arena *arena)
{
    const struct schema_scope scope = resolve(key);
    struct text out = {0};
    if (schema_scope_is_empty(scope) || scope.skip == 0)
        return NULL;
    const struct schema_row *row = schema_scope_row(scope);
    const struct schema_row *shorthand = schema_scope_shorthand(scope);
    if (row) {
        describe_row(&out, scope.table, row, key);
    } else {
        describe_section(&out, scope, key);
        if (shorthand)
            text_add(&out, "  plain text in its place is %s\n", shorthand->key + scope.skip);
    }
    return take(&out, arena);
}

/* ---- Reference page ---- */

/* Cells of a table: no bars, no line ends. */
static void add_cell(struct text *out, const char *words)
{
    text_add(out, " ");
    for (const char *c = words; *c; c++) {
        if (*c == '|')
            text_add_bytes(out, "\\", 1);
        text_add_bytes(out, c, 1);
    }
    text_add(out, " |");
}

static void reference_row(struct text *out, const struct schema_table *table,
                          const struct schema_row *row, struct arena *scratch)
{
    const char *fallback = default_words(row);
    const bool code = row->fallback != NULL;
    struct text meaning = {0};
    text_add(out, "| `%s` |", row->key);
    add_cell(out, kind_words(row, scratch));
    add_cell(out, code ? arena_printf(scratch, "`%s`", fallback) : fallback);
    text_add(&meaning, "%s", row->meaning);
    if (row->when.key)
        text_add(&meaning, " Only while %s.", condition(table, row, scratch));
    if (row->pending)
        text_add(&meaning, " Not modelled yet: %s.", row->pending);
    add_cell(out, text_string(&meaning));
    text_free(&meaning);
    text_add(out, "\n");
}

static void reference_choices(struct text *out, const struct schema_table *table)
{
    for (uint32_t i = 0; i < table->row_count; i++) {
        const struct schema_row *row = &table->rows[i];
        if (row->choice_count == 0)
            continue;
        text_add(out, "\nValues of `%s`:\n\n", row->key);
        for (uint32_t c = 0; c < row->choice_count; c++) {
            const struct schema_choice *choice = &row->choices[c];
            if (!choice->name)
                continue;
            text_add(out, "- `%s`: %s", choice->name, choice->meaning);
            if (choice->pending)
                text_add(out, " Not modelled yet: %s.", choice->pending);
            text_add(out, "\n");
        }
    }
}

static void reference_table(struct text *out, const struct schema_table *table)
{
    struct arena *scratch = arena_create("reference");
    text_add(out, "\n## %s\n\n", table->title);
    for (uint32_t i = 0; i < table->section_count; i++)
        text_add(out, "- `%s`: %s\n", table->sections[i].key, table->sections[i].meaning);
    if (table->section_count > 0)
        text_add(out, "\n");
    text_add(out, "| key | takes | default | meaning |\n| --- | --- | --- | --- |\n");
    for (uint32_t i = 0; i < table->row_count; i++)
        reference_row(out, table, &table->rows[i], scratch);
    reference_choices(out, table);
    arena_destroy(scratch);
    for (uint32_t i = 0; i < table->row_count; i++) {
        if (table->rows[i].kind == SCHEMA_ITEMS)
            reference_table(out, table->rows[i].items);
    }
}

static void reference_units(struct text *out)
{
    text_add(out, "\n## Units\n\n| dimension | units |\n| --- | --- |\n");
    for (int d = DIMENSION_BYTES; d <= DIMENSION_LAST; d++) {
        const char *unit = quantity_unit((enum dimension)d);
        const char *name = unit[0]                ? unit
                           : d == DIMENSION_COUNT ? "count"
                           : d == DIMENSION_RATIO ? "ratio"
                                                  : "number";
        text_add(out, "| %s | %s |\n", name, quantity_units((enum dimension)d));
    }
}

static void reference_refusals(struct text *out)
{
    text_add(out, "\n## Keys that are refused by name\n\n"
                  "Settings of Megatron and MindSpeed, and planned ones, get a sentence of their "
                  "own.\n\n| name | code | reason |\n| --- | --- | --- |\n");
    for (size_t i = 0; i < schema_refusal_count; i++)
        text_add(out, "| `%s` | %s | %s |\n", schema_refusals[i].name,
                 error_code_name(schema_refusals[i].code), schema_refusals[i].reason);
}

char *schema_reference_markdown(struct arena *arena)
{
    struct text out = {0};
    text_add(&out,
             "# Configuration\n\nGenerated from the schema tables; do not edit.\n\n"
             "Every key of a scenario and of the files it names. A quantity carries its unit. "
             "A fact is `{value:, source:, grade:}`, the grade being measured, vendor, fitted or "
             "assumed; `low:` and `high:` may give the interval in which the true value plausibly "
             "lies (docs/RANGE.md). Unknown keys are errors; top-level keys that begin with `x-` "
             "are free. "
             "`--set KEY=VALUE` takes the full path: `parallel.tp`, `model.layers`, "
             "`cluster.device.hbm_usable`, `cluster.levels.0.latency` or "
             "`cluster.levels.node.latency`; the value `null` takes a key away.\n");
    for (size_t i = 0; i < schema_table_count(); i++)
        reference_table(&out, schema_table_at(i));
    reference_units(&out);
    reference_refusals(&out);
    return take(&out, arena);
}
