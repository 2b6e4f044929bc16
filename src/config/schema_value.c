/*
 * schema_value.c - one YAML value against one row: kind, unit, range, choice, status.
 *
 * Each reader reports what is wrong with the value and returns false, or stores
 * it in the row's member. Defaults take the same way as text of the user.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "config/config_internal.h"
#include "stepsim/text.h"

static void *member(const struct schema_row *row, void *base)
{
    return (char *)base + row->offset;
}

static const void *const_member(const struct schema_row *row, const void *base)
{
    return (const char *)base + row->offset;
}

void schema_fill_error(const struct schema_fill *fill, const struct schema_row *row,
                       enum error_code code, struct location at, const char *format, ...)
{
    char key[256];
    if (config_errors_full(fill->errors)) {
        error_add(fill->errors, code, at, NULL, "%s", "");
        return;
    }
    snprintf(key, sizeof key, "%s%s", fill->prefix, row->key);
    va_list args;
    va_start(args, format);
    const char *message = arena_vprintf(fill->errors->arena, format, args);
    va_end(args);
    error_add(fill->errors, code, at, key, "%s", message);
}

/* The text of a scalar, or NULL with an error. */
static const char *scalar_text(const struct schema_fill *fill, const struct schema_row *row,
                               const struct yaml_tree *node)
{
    if (node->kind == YAML_TREE_SCALAR && !yaml_tree_is_null(node))
        return node->text;
    for (uint32_t i = 0; node->kind == YAML_TREE_MAP && i < node->count; i++) {
        const struct schema_refusal *refusal = schema_find_refusal(node->entries[i].key);
        if (refusal) {
            schema_fill_error(fill, row, refusal->code, node->entries[i].at, "%s: %s",
                              node->entries[i].key, refusal->reason);
            return NULL;
        }
    }
    schema_fill_error(fill, row, ERROR_wrong_type, node->at, "takes %s, but holds %s",
                      schema_kind_noun(row), yaml_tree_kind_noun(node));
    return NULL;
}

static bool in_range(const struct schema_fill *fill, const struct schema_row *row,
                     const struct yaml_tree *node, double value)
{
    if (value >= row->minimum && value <= row->maximum)
        return true;
    char quoted[CONFIG_QUOTE_SIZE];
    schema_fill_error(fill, row, ERROR_out_of_range, node->at, "%s is out of range; it must be %s",
                      config_quote(quoted, node->text), schema_range(row, fill->errors->arena));
    return false;
}

static bool is_pending(const struct schema_fill *fill, const struct schema_row *row,
                       struct location at, const char *what, const char *reason)
{
    if (!reason)
        return false;
    char quoted[CONFIG_QUOTE_SIZE];
    const char *open = schema_choice_names(row, false, fill->errors->arena);
    schema_fill_error(fill, row, ERROR_not_yet_modelled, at, "%s is not modelled yet: %s%s%s",
                      config_quote(quoted, what), reason, row->pending || !*open ? "" : "; use ",
                      row->pending ? "" : open);
    return true;
}

/* ---- Scalars ---- */

static bool read_uint(const struct schema_fill *fill, const struct schema_row *row,
                      const struct yaml_tree *node, uint32_t *out)
{
    const char *text = scalar_text(fill, row, node);
    struct quantity_problem problem;
    uint64_t value = 0;
    if (!text)
        return false;
    if (row->zero_word && strcmp(text, row->zero_word) == 0) {
        *out = 0;
        return true;
    }
    if (!quantity_parse_uint(text, UINT32_MAX, &value, &problem)) {
        const char *range = schema_range(row, fill->errors->arena);
        const bool outside = problem.code == ERROR_out_of_range;
        schema_fill_error(fill, row, problem.code, node->at, "%s%s%s", problem.message,
                          outside ? "; it must be " : "", outside ? range : "");
        return false;
    }
    if (!in_range(fill, row, node, (double)value))
        return false;
    *out = (uint32_t)value;
    return !(row->pending && value != 0 && is_pending(fill, row, node->at, text, row->pending));
}

static bool read_uint64(const struct schema_fill *fill, const struct schema_row *row,
                        const struct yaml_tree *node, uint64_t *out)
{
    const char *text = scalar_text(fill, row, node);
    struct quantity_problem problem;
    if (!text)
        return false;
    if (quantity_parse_uint(text, UINT64_MAX, out, &problem))
        return true;
    schema_fill_error(fill, row, problem.code, node->at, "%s", problem.message);
    return false;
}

static bool read_bool(const struct schema_fill *fill, const struct schema_row *row,
                      const struct yaml_tree *node, bool *out)
{
    const char *text = scalar_text(fill, row, node);
    char quoted[CONFIG_QUOTE_SIZE];
    if (!text)
        return false;
    *out = strcmp(text, "true") == 0;
    if (!*out && strcmp(text, "false") != 0) {
        schema_fill_error(fill, row, ERROR_bad_value, node->at, "%s is not true or false",
                          config_quote(quoted, text));
        return false;
    }
    return !(*out && is_pending(fill, row, node->at, text, row->pending));
}

bool schema_read_quantity(const struct schema_fill *fill, const struct schema_row *row,
                          const struct yaml_tree *node, double *out)
{
    const char *text = scalar_text(fill, row, node);
    struct quantity_problem problem;
    if (!text)
        return false;
    if (!quantity_parse(text, row->dimension, out, &problem)) {
        schema_fill_error(fill, row, problem.code, node->at, "%s", problem.message);
        return false;
    }
    if (!in_range(fill, row, node, *out))
        return false;
    const bool idle = *out >= 0.0 && *out <= 0.0;
    return !(row->pending && !idle && is_pending(fill, row, node->at, text, row->pending));
}

/* ---- Names ---- */

static bool find_choice(const struct schema_row *row, const char *name, uint32_t *index)
{
    for (uint32_t i = 0; i < row->choice_count; i++) {
        if (row->choices[i].name && strcmp(row->choices[i].name, name) == 0) {
            *index = i;
            return true;
        }
    }
    return false;
}

static const char *nearest_choice(const struct schema_row *row, const char *name)
{
    const char *names[32];
    size_t count = 0;
    for (uint32_t i = 0; i < row->choice_count && count < 32; i++) {
        if (row->choices[i].name)
            names[count++] = row->choices[i].name;
    }
    return text_nearest(name, names, count);
}

/* The index of one of the row's choices that is open today. */
static bool read_choice(const struct schema_fill *fill, const struct schema_row *row,
                        const struct yaml_tree *node, uint32_t *index)
{
    const char *text = scalar_text(fill, row, node);
    if (!text)
        return false;
    if (find_choice(row, text, index))
        return !is_pending(fill, row, node->at, text, row->choices[*index].pending);
    char quoted[CONFIG_QUOTE_SIZE];
    const char *near = nearest_choice(row, text);
    schema_fill_error(fill, row, ERROR_bad_value, node->at, "%s is not one of %s%s%s%s",
                      config_quote(quoted, text),
                      schema_choice_names(row, true, fill->errors->arena),
                      near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
    return false;
}

/* A plug-in's name: its registry resolves it later; here only a pending one is refused. */
static bool read_name(const struct schema_fill *fill, const struct schema_row *row,
                      const struct yaml_tree *node, const char **out)
{
    const char *text = scalar_text(fill, row, node);
    uint32_t index = 0;
    if (!text)
        return false;
    *out = text;
    return !(find_choice(row, text, &index) &&
             is_pending(fill, row, node->at, text, row->choices[index].pending));
}

static bool read_string(const struct schema_fill *fill, const struct schema_row *row,
                        const struct yaml_tree *node, const char **out)
{
    *out = scalar_text(fill, row, node);
    return *out != NULL;
}

/* ---- Lists ---- */

static bool is_list(const struct schema_fill *fill, const struct schema_row *row,
                    const struct yaml_tree *node)
{
    if (node->kind == YAML_TREE_LIST)
        return true;
    const char *example = row->example ? row->example : row->kind == SCHEMA_SET ? "[norm]" : "[]";
    schema_fill_error(fill, row, ERROR_wrong_type, node->at,
                      "takes %s, but holds %s; write for example %s", schema_kind_noun(row),
                      yaml_tree_kind_noun(node), example);
    return false;
}

static bool read_set(const struct schema_fill *fill, const struct schema_row *row,
                     const struct yaml_tree *node, uint32_t *out)
{
    if (!is_list(fill, row, node))
        return false;
    bool good = true;
    for (uint32_t i = 0; i < node->count; i++) {
        uint32_t index = 0;
        if (!read_choice(fill, row, node->items[i], &index))
            good = false;
        else
            *out |= 1u << index;
    }
    return good && !(*out && is_pending(fill, row, node->at, node->items[0]->text, row->pending));
}

static void store_count(const struct schema_row *row, void *base, uint32_t count)
{
    memcpy((char *)base + row->count_offset, &count, sizeof count);
}

static bool read_uint_list(const struct schema_fill *fill, const struct schema_row *row, void *base,
                           const struct yaml_tree *node)
{
    if (!is_list(fill, row, node))
        return false;
    if (node->count > 65536) {
        schema_fill_error(fill, row, ERROR_out_of_range, node->at, "has more than 65536 entries");
        return false;
    }
    uint32_t *values = ARENA_ARRAY(fill->arena, node->count, uint32_t);
    bool good = true;
    for (uint32_t i = 0; i < node->count; i++)
        good = read_uint(fill, row, node->items[i], &values[i]) && good;
    memcpy(member(row, base), &values, sizeof values);
    store_count(row, base, node->count);
    return good;
}

static bool read_string_list(const struct schema_fill *fill, const struct schema_row *row,
                             void *base, const struct yaml_tree *node)
{
    if (!is_list(fill, row, node))
        return false;
    const char **values = arena_calloc(fill->arena, node->count, sizeof(const char *));
    bool good = true;
    for (uint32_t i = 0; i < node->count; i++)
        good = read_string(fill, row, node->items[i], &values[i]) && good;
    memcpy(member(row, base), &values, sizeof values);
    store_count(row, base, node->count);
    return good;
}

/* ---- One row ---- */

static bool read_choice_kind(const struct schema_fill *fill, const struct schema_row *row,
                             void *base, const struct yaml_tree *node)
{
    uint32_t index = 0;
    if (!read_choice(fill, row, node, &index))
        return false;
    const bool on = index != 0;
    switch (row->kind) {
    case SCHEMA_CHOICE:
        memcpy(member(row, base), &index, sizeof index);
        break;
    case SCHEMA_SWITCH:
        memcpy(member(row, base), &on, sizeof on);
        break;
    default:
        memcpy(member(row, base), &row->choices[index].name, sizeof(const char *));
        break;
    }
    return true;
}
_Static_assert(sizeof(enum cp_method) == sizeof(uint32_t), "an enum member holds a choice index");

bool schema_value_read(const struct schema_fill *fill, const struct schema_row *row, void *base,
                       const struct yaml_tree *node, struct origin *origin)
{
    origin->at = node->at;
    switch (row->kind) {
    case SCHEMA_STRING:
        return read_string(fill, row, node, member(row, base));
    case SCHEMA_NAME:
        return read_name(fill, row, node, member(row, base));
    case SCHEMA_WORD:
    case SCHEMA_CHOICE:
    case SCHEMA_SWITCH:
        return read_choice_kind(fill, row, base, node);
    case SCHEMA_BOOL:
        return read_bool(fill, row, node, member(row, base));
    case SCHEMA_UINT:
        return read_uint(fill, row, node, member(row, base));
    case SCHEMA_UINT64:
        return read_uint64(fill, row, node, member(row, base));
    case SCHEMA_QUANTITY:
        return schema_read_quantity(fill, row, node, member(row, base));
    case SCHEMA_FACT:
        return schema_read_fact(fill, row, member(row, base), node, origin);
    case SCHEMA_SET:
        return read_set(fill, row, node, member(row, base));
    case SCHEMA_UINT_LIST:
        return read_uint_list(fill, row, base, node);
    case SCHEMA_STRING_LIST:
        return read_string_list(fill, row, base, node);
    case SCHEMA_ITEMS:
    case SCHEMA_LEVELS:
    case SCHEMA_INCLUDE:
        break;
    }
    assert_fail("tables are filled by schema_fill_table", __FILE__, __LINE__);
}

uint32_t schema_value_index(const struct schema_row *row, const void *base)
{
    const void *stored = const_member(row, base);
    uint32_t number = 0;
    bool on = false;
    const char *word = NULL;
    switch (row->kind) {
    case SCHEMA_CHOICE:
    case SCHEMA_UINT:
        memcpy(&number, stored, sizeof number);
        return number < 31 ? number : 31;
    case SCHEMA_SWITCH:
    case SCHEMA_BOOL:
        memcpy(&on, stored, sizeof on);
        return on;
    case SCHEMA_WORD:
        memcpy(&word, stored, sizeof word);
        if (word)
            (void)find_choice(row, word, &number);
        return number;
    default:
        assert_fail("only choices, switches and whole numbers steer rows", __FILE__, __LINE__);
    }
}
