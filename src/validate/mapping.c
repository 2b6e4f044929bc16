/*
 * mapping.c - a row becomes keys of a scenario: the tables of names first, then the rules of
 * its format in their order.
 *
 * A table of configs/validate.yaml is a list of entries
 *   when: {column: text, ...}  all columns hold the text, case ignored; "=text" is all of the
 *                              cell, "!text" is not in it, "a|b" is either of two
 *   set: {key: value, ...}     keys of the scenario; "key+" adds to a list
 *   refuse: reason             instead of set
 * In a table with `first: true` only the first entry that applies counts.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "stepsim/arena.h"
#include "stepsim/text.h"
#include "stepsim/yaml_tree.h"
#include "validate_internal.h"

/* ---- Keys ---- */

static struct scenario_override *find_key(struct mapping *mapping, const char *key)
{
    for (uint32_t i = 0; i < mapping->count; i++)
        if (strcmp(mapping->keys[i].key, key) == 0)
            return &mapping->keys[i];
    return NULL;
}

static void put(struct mapping *mapping, const char *key, const char *value)
{
    struct scenario_override *old = find_key(mapping, key);
    if (old != NULL) {
        old->value = value;
        return;
    }
    ASSERT(mapping->count < MAPPING_KEYS_MAX);
    mapping->keys[mapping->count++] =
        (struct scenario_override){arena_strdup(mapping->arena, key), value};
}

void mapping_set(struct mapping *mapping, const char *key, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    put(mapping, key, arena_vprintf(mapping->arena, format, args));
    va_end(args);
}

void mapping_append(struct mapping *mapping, const char *key, const char *item)
{
    const char *old = mapping_value(mapping, key);
    if (old == NULL || strcmp(old, "[]") == 0) {
        mapping_set(mapping, key, "[%s]", item);
    } else {
        const size_t inside = strlen(old) - 1; /* without the closing bracket */
        mapping_set(mapping, key, "%.*s, %s]", (int)inside, old, item);
    }
}

const char *mapping_value(const struct mapping *mapping, const char *key)
{
    for (uint32_t i = 0; i < mapping->count; i++)
        if (strcmp(mapping->keys[i].key, key) == 0)
            return mapping->keys[i].value;
    return NULL;
}

void mapping_refuse(struct mapping *mapping, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (mapping->reason == NULL)
        mapping->reason = arena_vprintf(mapping->arena, format, args);
    va_end(args);
}

unsigned mapping_unstated_vpp(unsigned slots, unsigned pp, unsigned microbatches)
{
    if (pp < 2 || slots % pp != 0 || microbatches % pp != 0)
        return 1;
    unsigned vpp = 8;
    while (slots / pp % vpp != 0)
        vpp--;
    return vpp;
}

void mapping_drop_fusion(struct mapping *mapping)
{
    const char *fused = mapping_value(mapping, "overlap.matmul_collective");
    const char *split = mapping_value(mapping, "parallel.sequence_parallel");
    const bool alone = atol_or(mapping_value(mapping, "parallel.tp"), 1) < 2;
    if (fused != NULL && (alone || (split != NULL && strcmp(split, "false") == 0)))
        mapping_set(mapping, "overlap.matmul_collective", "none");
}

long atol_or(const char *text, long fallback)
{
    char *end = NULL;
    const long value = text != NULL ? strtol(text, &end, 10) : 0;
    return text != NULL && end != text ? value : fallback;
}

/* ---- Tables ---- */

static bool holds_one(const char *cell, const char *text)
{
    if (text[0] == '=')
        return strcasecmp(cell, text + 1) == 0;
    if (text[0] == '!')
        return strcasestr(cell, text + 1) == NULL;
    return strcasestr(cell, text) != NULL;
}

/* One of the alternatives. */
static bool holds(const char *cell, const char *text)
{
    char word[256];
    while (*text != '\0') {
        const size_t length = strcspn(text, "|");
        snprintf(word, sizeof word, "%.*s", (int)length, text);
        if (holds_one(cell, word))
            return true;
        text += text[length] == '|' ? length + 1 : length;
    }
    return false;
}

bool table_applies(const struct measurement *row, const struct yaml_tree *entry)
{
    const struct yaml_tree *when = yaml_tree_get(entry, "when");
    if (when == NULL)
        return true;
    for (uint32_t i = 0; i < when->count; i++)
        if (!holds(measurement_text(row, when->entries[i].key), when->entries[i].value->text))
            return false;
    return true;
}

/* A scalar, or a list in flow style. */
static const char *value_text(const struct mapping *mapping, const struct yaml_tree *value)
{
    if (value->kind == YAML_TREE_SCALAR)
        return value->text;
    struct text list = {0};
    for (uint32_t i = 0; i < value->count; i++)
        text_add(&list, "%s%s", i > 0 ? ", " : "[", value->items[i]->text);
    text_add(&list, "%s]", value->count > 0 ? "" : "[");
    const char *copy = arena_strdup(mapping->arena, text_string(&list));
    text_free(&list);
    return copy;
}

static void apply_entry(struct mapping *mapping, const struct yaml_tree *entry)
{
    const struct yaml_tree *refuse = yaml_tree_get(entry, "refuse");
    const struct yaml_tree *set = yaml_tree_get(entry, "set");
    if (refuse != NULL)
        mapping_refuse(mapping, "%s", refuse->text);
    for (uint32_t i = 0; set != NULL && i < set->count; i++) {
        const char *key = set->entries[i].key;
        const size_t length = strlen(key);
        const char *value = value_text(mapping, set->entries[i].value);
        if (key[length - 1] == '+')
            mapping_append(mapping, arena_strndup(mapping->arena, key, length - 1), value);
        else
            mapping_set(mapping, key, "%s", value);
    }
}

static void apply_table(struct mapping *mapping, const struct yaml_tree *table)
{
    const struct yaml_tree *first = yaml_tree_get(table, "first");
    const struct yaml_tree *entries = yaml_tree_get(table, "entries");
    for (uint32_t i = 0; entries != NULL && i < entries->count; i++) {
        if (!table_applies(mapping->row, entries->items[i]))
            continue;
        apply_entry(mapping, entries->items[i]);
        if (first != NULL && strcmp(first->text, "true") == 0)
            return;
    }
}

const struct yaml_tree *mapping_tables(const char *config_dir, struct arena *arena,
                                       struct error_list *errors)
{
    const char *folder = config_dir != NULL ? config_dir : STEPSIM_CONFIG_DIR;
    return yaml_tree_read(arena_printf(arena, "%s/validate.yaml", folder), arena, errors);
}

struct mapping *measurement_map(const struct measurement *row, const struct yaml_tree *tables,
                                struct arena *arena)
{
    struct mapping *mapping = ARENA_NEW(arena, struct mapping);
    mapping->row = row;
    mapping->tables = tables;
    mapping->arena = arena;
    const bool ascend = row->set->format == FORMAT_ASCEND_RUNS;
    const struct yaml_tree *own = yaml_tree_get(tables, ascend ? "ascend_runs" : "measurements");
    for (uint32_t i = 0; own != NULL && i < own->count; i++)
        apply_table(mapping, own->entries[i].value);
    const struct mapping_rule *rules = ascend ? ascend_rules : measurement_rules;
    for (uint32_t i = 0; rules[i].name != NULL && mapping->reason == NULL; i++)
        rules[i].apply(mapping);
    return mapping;
}

/* ---- As a file ---- */

static int by_key(const void *a, const void *b)
{
    return strcmp(((const struct scenario_override *)a)->key,
                  ((const struct scenario_override *)b)->key);
}

/* Opens the sections of a key that are not open yet, and returns its last word. */
static const char *open_sections(struct text *text, const char *key, const char *before)
{
    const char *word = key;
    size_t common = 0; /* length of the sections that the key before left open */
    for (size_t i = 0; before[i] != '\0' && key[i] == before[i]; i++)
        if (key[i] == '.')
            common = i + 1;
    unsigned depth = 0;
    for (const char *dot = strchr(key, '.'); dot != NULL; dot = strchr(word, '.')) {
        if ((size_t)(dot - key) >= common)
            text_add(text, "%*s%.*s:\n", (int)(2 * depth), "", (int)(dot - word), word);
        word = dot + 1;
        depth++;
    }
    text_add(text, "%*s", (int)(2 * depth), "");
    return word;
}

const char *mapping_yaml(const struct mapping *mapping)
{
    struct mapping sorted = *mapping;
    qsort(sorted.keys, sorted.count, sizeof sorted.keys[0], by_key);
    struct text text = {0};
    const char *before = "";
    text_add(&text, "title: \"%s\"\n", mapping->row->id);
    for (uint32_t i = 0; i < sorted.count; i++) {
        const char *key = sorted.keys[i].key;
        if (strncmp(key, "cluster.", 8) == 0) {
            text_add(&text, "# --set %s=\"%s\"\n", key, sorted.keys[i].value);
            continue;
        }
        const char *word = open_sections(&text, key, before);
        text_add(&text, "%s: %s\n", word, sorted.keys[i].value);
        before = key;
    }
    const char *copy = arena_strdup(mapping->arena, text_string(&text));
    text_free(&text);
    return copy;
}
