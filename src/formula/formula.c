/* formula.c - names become columns of one row, expressions become columns of its result. */
#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "stepsim/arena.h"
#include "stepsim/formula.h"
#include "stepsim/quantity.h"
#include "stepsim/schema.h"
#include "stepsim/text.h"

struct formula {
    const struct formula_ask *ask;
    void *user;
    sqlite3 *handle;
    sqlite3_stmt *statement;
    const char *names[FORMULA_NAMES_MAX];
    int meanings[FORMULA_NAMES_MAX];
    uint32_t name_count;
    struct arena *arena;
};

/* ---- Names and values ---- */

bool formula_name_means(const char *name, const char *key)
{
    const size_t name_length = strlen(name), key_length = strlen(key);
    if (name_length > key_length) {
        return false;
    }
    const char *end = key + key_length - name_length;
    if (end != key && end[-1] != '.') {
        return false;
    }
    for (size_t i = 0; i < name_length; i++) {
        const char letter = end[i] == '.' ? '_' : end[i];
        if (letter != (name[i] == '.' ? '_' : name[i])) {
            return false;
        }
    }
    return true;
}

struct lookup {
    const char *name, *found;
    size_t depth, same;
    struct arena *arena;
};

static size_t dots(const char *key)
{
    size_t count = 0;
    for (; *key != '\0'; key++) {
        count += *key == '.' ? 1 : 0;
    }
    return count;
}

/* Keeps the key with the fewest parts, and counts its equals. */
static void visit_key(void *context, const char *key, const struct schema_row *row)
{
    struct lookup *lookup = context;
    if (row->items != NULL || strstr(key, ".N.") != NULL ||
        !formula_name_means(lookup->name, key)) {
        return;
    }
    const size_t depth = dots(key);
    if (lookup->found == NULL || depth < lookup->depth) {
        lookup->found = arena_strdup(lookup->arena, key);
        lookup->depth = depth;
        lookup->same = 1;
    } else if (depth == lookup->depth) {
        lookup->same++;
    }
}

const char *formula_key(const char *name, size_t *same, struct arena *arena)
{
    struct lookup lookup = {.name = name, .arena = arena};
    schema_walk(visit_key, &lookup);
    *same = lookup.same;
    return lookup.found;
}

struct formula_value formula_value_of(const char *key, const char *text)
{
    struct formula_value value = {.kind = FORMULA_NUMBER};
    if (text == NULL || strcmp(text, "null") == 0) {
        value.kind = FORMULA_NULL;
        return value;
    }
    char *end = NULL;
    value.number = (double)strtoll(text, &end, 10);
    if (text[0] != '\0' && *end == '\0') {
        value.kind = FORMULA_WHOLE;
        return value;
    }
    value.number = strtod(text, &end);
    if (text[0] != '\0' && *end == '\0') {
        return value;
    }
    const struct schema_row *row = schema_find(key);
    const bool dimensioned =
        row != NULL && (row->kind == SCHEMA_QUANTITY || row->kind == SCHEMA_FACT);
    struct quantity_problem problem;
    if (dimensioned && quantity_parse(text, row->dimension, &value.number, &problem)) {
        return value;
    }
    if (strcmp(text, "true") == 0 || strcmp(text, "false") == 0) {
        value.kind = FORMULA_WHOLE;
        value.number = text[0] == 't' ? 1.0 : 0.0;
        return value;
    }
    return (struct formula_value){.kind = FORMULA_TEXT, .text = text};
}

/* ---- Preparing ---- */

/* "with v as (select ?1 as "tp") select (first), (second) from v" */
static sqlite3_stmt *prepare(const struct formula *formula, uint32_t first, uint32_t last,
                             const char **tail)
{
    struct text sql = {0};
    text_add(&sql, "with v as (select 0 as \"\"");
    for (uint32_t i = 0; i < formula->name_count; i++) {
        char *quoted = sqlite3_mprintf("\"%w\"", formula->names[i]);
        text_add(&sql, ", ?%u as %s", i + 1, quoted);
        sqlite3_free(quoted);
    }
    text_add(&sql, ") select 0");
    for (uint32_t i = first; i < last; i++) {
        text_add(&sql, ", (%s\n)", formula->ask->texts[i]);
    }
    text_add(&sql, " from v");
    sqlite3_stmt *statement = NULL;
    const char *rest = "";
    sqlite3_prepare_v2(formula->handle, text_string(&sql), -1, &statement, &rest);
    *tail = *rest != '\0' ? "?" : "";
    text_free(&sql);
    return statement;
}

static bool add_name(struct formula *formula, const char *name, struct error_list *errors)
{
    const int meaning = formula->ask->resolve(formula->user, name, errors);
    if (meaning < 0) {
        return false;
    }
    formula->names[formula->name_count] = name;
    formula->meanings[formula->name_count++] = meaning;
    return true;
}

/* Prepares one expression alone, resolving names until SQLite knows them all. */
static bool check(struct formula *formula, uint32_t index, struct error_list *errors)
{
    static const char unknown[] = "no such column: ";
    const struct location nowhere = {0};
    while (formula->name_count < FORMULA_NAMES_MAX) {
        const char *tail = "";
        sqlite3_stmt *statement = prepare(formula, index, index + 1, &tail);
        const int columns = statement != NULL ? sqlite3_column_count(statement) : 0;
        sqlite3_finalize(statement);
        if (columns == 2 && *tail == '\0') {
            return true;
        }
        const char *message =
            statement != NULL ? "must be one expression" : sqlite3_errmsg(formula->handle);
        if (statement != NULL || strncmp(message, unknown, sizeof unknown - 1) != 0) {
            error_add(errors, ERROR_bad_expression, nowhere, formula->ask->label, "%s, in: %s",
                      message, formula->ask->texts[index]);
            return false;
        }
        const char *name = arena_strdup(formula->arena, message + sizeof unknown - 1);
        if (!add_name(formula, name, errors)) {
            return false;
        }
    }
    error_add(errors, ERROR_bad_expression, nowhere, formula->ask->label,
              "the expressions have more than %d names", FORMULA_NAMES_MAX);
    return false;
}

struct formula *formula_create(const struct formula_ask *ask, void *user, struct arena *arena,
                               struct error_list *errors)
{
    struct formula *formula = ARENA_NEW(arena, struct formula);
    *formula = (struct formula){
        .ask = ask, .user = user, .arena = arena, .handle = formula_sandbox_open()};
    bool good = formula->handle != NULL;
    if (!good) {
        error_add(errors, ERROR_database, (struct location){0}, ask->label, "SQLite cannot start");
    }
    for (uint32_t i = 0; good && i < ask->count; i++) {
        good = check(formula, i, errors);
    }
    const char *tail = "";
    if (good) {
        formula->statement = prepare(formula, 0, ask->count, &tail);
        ASSERT(formula->statement != NULL); /* each was prepared before */
        return formula;
    }
    formula_destroy(formula);
    return NULL;
}

void formula_destroy(struct formula *formula)
{
    if (formula != NULL) {
        sqlite3_finalize(formula->statement);
        sqlite3_close(formula->handle);
    }
}

bool formula_uses(const struct formula *formula, int name)
{
    for (uint32_t i = 0; i < formula->name_count; i++) {
        if (formula->meanings[i] == name) {
            return true;
        }
    }
    return false;
}

/* ---- Evaluating ---- */

void formula_bind(sqlite3_stmt *statement, int index, const struct formula_value *value)
{
    switch (value->kind) {
    case FORMULA_NULL:
        sqlite3_bind_null(statement, index);
        break;
    case FORMULA_WHOLE:
        sqlite3_bind_int64(statement, index, (sqlite3_int64)value->number);
        break;
    case FORMULA_NUMBER:
        sqlite3_bind_double(statement, index, value->number);
        break;
    case FORMULA_TEXT:
        sqlite3_bind_text(statement, index, value->text, -1, SQLITE_STATIC);
        break;
    }
}

void formula_evaluate(struct formula *formula, void *user, double *results)
{
    for (uint32_t i = 0; i < formula->name_count; i++) {
        const struct formula_value value = formula->ask->value(user, formula->meanings[i]);
        formula_bind(formula->statement, (int)i + 1, &value);
    }
    const bool row = sqlite3_step(formula->statement) == SQLITE_ROW;
    for (uint32_t i = 0; i < formula->ask->count; i++) {
        const int column = (int)i + 1;
        const int type = row ? sqlite3_column_type(formula->statement, column) : SQLITE_NULL;
        results[i] = type == SQLITE_INTEGER || type == SQLITE_FLOAT
                         ? sqlite3_column_double(formula->statement, column)
                         : (double)NAN;
    }
    sqlite3_reset(formula->statement);
}
