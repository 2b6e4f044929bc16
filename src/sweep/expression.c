/*
 * expression.c - constraints and derived keys, evaluated by SQLite behind an authorizer.
 *
 * A point is one row. The first common table expression p0 binds the values that expressions
 * name; each derived value adds a column on top of the one before it:
 *
 *     with p0 as (select ?1 as "layers", ?2 as "hidden_size"),
 *          p1 as (select *, (hidden_size * 4) as "width" from p0)
 *     select width, (layers > 60) from p1
 *
 * Nobody parses SQL here: a name that SQLite does not find is looked up among axes, derived
 * values, parameter counts and keys of the base, becomes a column, and the text is prepared
 * again. Expressions that name a parameter count are late: they are computed only for points
 * that pass all others, since the model has to be built for them.
 */
#include <math.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "stepsim/formula.h"
#include "stepsim/metric.h"
#include "stepsim/model.h"
#include "stepsim/schema.h"
#include "sweep/sweep_internal.h"

#define NAMES_MAX 128

enum value_source { FROM_AXIS, FROM_BASE, FROM_MODEL };

/* A column of p0. */
struct name {
    const char *name;
    enum value_source source;
    uint32_t axis_key;
    const char *text;            /* FROM_BASE */
    const struct metric *metric; /* FROM_MODEL */
    const char *key;
};

/* A second name of a derived value. */
struct alias {
    const char *name;
    uint32_t derived;
};

struct expressions {
    struct sweep *sweep;
    sqlite3 *handle;
    struct name names[NAMES_MAX];
    uint32_t name_count;
    struct alias aliases[NAMES_MAX];
    uint32_t alias_count;
    sqlite3_stmt *early, *full;
    bool any_late;
    uint32_t axis_keys;
};

/* ---- Names ---- */

static bool add_name(struct expressions *e, struct name name)
{
    ASSERT(e->name_count < NAMES_MAX);
    e->names[e->name_count++] = name;
    return true;
}

static bool base_name(struct expressions *e, const char *name,
                      const struct sweep_expression *expression, struct error_list *errors)
{
    struct sweep *sweep = e->sweep;
    size_t same = 0;
    const char *key = formula_key(name, &same, sweep->arena);
    if (key == NULL) {
        const char *nearest = schema_nearest(name, sweep->arena);
        error_add(errors, ERROR_bad_expression, expression->at, expression->name,
                  "there is no \"%s\": names are swept keys, derived ones, params_total, "
                  "params_active, params_embedding, params_mtp, and keys of the scenario by their "
                  "last part or with underscores for dots%s%s",
                  name, nearest != NULL ? "; nearest is " : "", nearest != NULL ? nearest : "");
        return false;
    }
    if (same > 1) {
        error_add(errors, ERROR_bad_expression, expression->at, expression->name,
                  "\"%s\" is the end of %zu keys, %s among them; write more of it, with "
                  "underscores for dots",
                  name, same, key);
        return false;
    }
    const char *text = scenario_value_text(sweep->base, key, sweep->arena);
    return add_name(e, (struct name){.name = name, .source = FROM_BASE, .text = text, .key = key});
}

/* Makes a name known; false with an error when it means nothing. */
static bool resolve(struct expressions *e, const char *name, uint32_t derived_before,
                    struct sweep_expression *expression, struct error_list *errors)
{
    const struct sweep *sweep = e->sweep;
    for (uint32_t i = 0; i < derived_before; i++) {
        if (formula_name_means(name, sweep->derived[i].name)) {
            ASSERT(e->alias_count < NAMES_MAX);
            e->aliases[e->alias_count++] = (struct alias){name, i};
            return true;
        }
    }
    for (uint32_t i = 0; i < e->axis_keys; i++) {
        if (formula_name_means(name, sweep->key_names[i])) {
            return add_name(e, (struct name){.name = name,
                                             .source = FROM_AXIS,
                                             .axis_key = i,
                                             .key = sweep->key_names[i]});
        }
    }
    for (size_t i = 0; i < metric_count; i++) {
        if (strncmp(metric_table[i].name, "params.", 7) == 0 &&
            formula_name_means(name, metric_table[i].name) && strncmp(name, "params_", 7) == 0) {
            e->any_late = true;
            return add_name(
                e, (struct name){
                       .name = name, .source = FROM_MODEL, .metric = &metric_table[i], .key = ""});
        }
    }
    return base_name(e, name, expression, errors);
}

/* ---- Texts ---- */

static void add_quoted(struct text *sql, const char *name)
{
    char *quoted = sqlite3_mprintf("\"%w\"", name);
    text_add(sql, "%s", quoted);
    sqlite3_free(quoted);
}

/* The common table expressions p0 .. p<derived>. */
static void add_tables(const struct expressions *e, struct text *sql, uint32_t derived)
{
    text_add(sql, "with p0 as (select 0 as \"\"");
    for (uint32_t i = 0; i < e->name_count; i++) {
        text_add(sql, ", ?%u as ", i + 1);
        add_quoted(sql, e->names[i].name);
    }
    text_add(sql, ")");
    for (uint32_t i = 0; i < derived; i++) {
        text_add(sql, ", p%u as (select *", i + 1);
        for (uint32_t j = 0; j < e->alias_count; j++) {
            if (e->aliases[j].derived == i) {
                text_add(sql, ", (%s\n) as ", e->sweep->derived[i].text);
                add_quoted(sql, e->aliases[j].name);
            }
        }
        text_add(sql, " from p%u)", i);
    }
}

/* Prepares one expression by itself, resolving names until SQLite knows them all. */
static bool check_expression(struct expressions *e, struct sweep_expression *expression,
                             uint32_t derived, struct error_list *errors)
{
    static const char unknown[] = "no such column: ";
    for (unsigned attempt = 0; attempt < NAMES_MAX / 2; attempt++) {
        struct text sql = {0};
        add_tables(e, &sql, derived);
        text_add(&sql, " select %s\n from p%u", expression->text, derived);
        sqlite3_stmt *statement = NULL;
        const char *tail = "";
        const int code = sqlite3_prepare_v2(e->handle, text_string(&sql), -1, &statement, &tail);
        const bool whole = code == SQLITE_OK && statement != NULL && *tail == '\0' &&
                           sqlite3_column_count(statement) == 1;
        sqlite3_finalize(statement);
        text_free(&sql);
        if (whole) {
            return true;
        }
        const char *message =
            code == SQLITE_OK ? "must be one expression" : sqlite3_errmsg(e->handle);
        if (code == SQLITE_OK || strncmp(message, unknown, sizeof unknown - 1) != 0) {
            error_add(errors, ERROR_bad_expression, expression->at, expression->name, "%s, in: %s",
                      message, expression->text);
            return false;
        }
        const char *name = arena_strdup(e->sweep->arena, message + sizeof unknown - 1);
        if (strchr(name, '.') != NULL) {
            char *better = arena_strdup(e->sweep->arena, name);
            for (char *letter = better; *letter != '\0'; letter++) {
                *letter = *letter == '.' ? '_' : *letter;
            }
            error_add(errors, ERROR_bad_expression, expression->at, expression->name,
                      "\"%s\" is not SQL for a key: write %s", name, better);
            return false;
        }
        if (!resolve(e, name, derived, expression, errors)) {
            return false;
        }
    }
    error_add(errors, ERROR_bad_expression, expression->at, expression->name, "too many names");
    return false;
}

/* An expression is late when it cannot be prepared without the parameter counts. */
static void mark_late(struct expressions *e, struct sweep_expression *expression, uint32_t derived)
{
    struct expressions early = *e;
    early.name_count = 0;
    early.alias_count = 0;
    for (uint32_t i = 0; i < e->name_count; i++) {
        if (e->names[i].source != FROM_MODEL) {
            early.names[early.name_count++] = e->names[i];
        }
    }
    for (uint32_t i = 0; i < e->alias_count; i++) {
        const uint32_t of = e->aliases[i].derived;
        if (of < derived && !e->sweep->derived[of].late) {
            early.aliases[early.alias_count++] = e->aliases[i];
        }
    }
    struct text sql = {0};
    add_tables(&early, &sql, derived);
    text_add(&sql, " select %s\n from p%u", expression->text, derived);
    sqlite3_stmt *statement = NULL;
    expression->late =
        sqlite3_prepare_v2(e->handle, text_string(&sql), -1, &statement, NULL) != SQLITE_OK;
    sqlite3_finalize(statement);
    text_free(&sql);
}

/* One row: the derived values, then the constraints; late ones as null unless asked for. */
static sqlite3_stmt *prepare_all(struct expressions *e, bool late)
{
    const struct sweep *sweep = e->sweep;
    struct text sql = {0};
    add_tables(e, &sql, sweep->derived_count);
    text_add(&sql, " select 0");
    for (uint32_t i = 0; i < sweep->derived_count; i++) {
        const bool skip = sweep->derived[i].late && !late;
        text_add(&sql, skip ? ", null" : ", (%s\n)", sweep->derived[i].text);
    }
    for (uint32_t i = 0; i < sweep->where_count; i++) {
        const bool skip = sweep->wheres[i].late && !late;
        text_add(&sql, skip ? ", 1" : ", (%s\n)", sweep->wheres[i].text);
    }
    text_add(&sql, " from p%u", sweep->derived_count);
    sqlite3_stmt *statement = NULL;
    sqlite3_prepare_v2(e->handle, text_string(&sql), -1, &statement, NULL);
    text_free(&sql);
    return statement;
}

struct expressions *expressions_create(struct sweep *sweep, struct error_list *errors)
{
    struct expressions *e = ARENA_NEW(sweep->arena, struct expressions);
    e->sweep = sweep;
    e->axis_keys = sweep->key_count - sweep->derived_count;
    e->handle = formula_sandbox_open();
    if (e->handle == NULL) {
        error_add(errors, ERROR_database, (struct location){sweep->path, 0, 0}, NULL,
                  "SQLite cannot start");
        return NULL;
    }
    bool good = true;
    for (uint32_t i = 0; i < sweep->derived_count; i++) {
        good = check_expression(e, &sweep->derived[i], i, errors) && good;
    }
    for (uint32_t i = 0; i < sweep->where_count; i++) {
        good = check_expression(e, &sweep->wheres[i], sweep->derived_count, errors) && good;
    }
    for (uint32_t i = 0; good && i < sweep->derived_count; i++) {
        mark_late(e, &sweep->derived[i], i);
    }
    for (uint32_t i = 0; good && i < sweep->where_count; i++) {
        mark_late(e, &sweep->wheres[i], sweep->derived_count);
    }
    if (good) {
        e->early = prepare_all(e, false);
        e->full = prepare_all(e, true);
        if (e->early == NULL || e->full == NULL) {
            error_add(errors, ERROR_bad_expression, (struct location){sweep->path, 0, 0}, "derived",
                      "%s", sqlite3_errmsg(e->handle));
            good = false;
        }
    }
    if (!good) {
        expressions_destroy(e);
        return NULL;
    }
    return e;
}

void expressions_destroy(struct expressions *e)
{
    if (e != NULL) {
        sqlite3_finalize(e->early);
        sqlite3_finalize(e->full);
        sqlite3_close(e->handle);
    }
}

/* ---- One point ---- */

static void bind_text(sqlite3_stmt *statement, int index, const char *key, const char *text)
{
    const struct formula_value value = formula_value_of(key, text);
    formula_bind(statement, index, &value);
}

static void bind_names(const struct expressions *e, sqlite3_stmt *statement,
                       const struct expression_point *point, const struct model *model)
{
    for (uint32_t i = 0; i < e->name_count; i++) {
        const struct name *name = &e->names[i];
        const int index = (int)i + 1;
        if (name->source == FROM_AXIS) {
            bind_text(statement, index, name->key, point->axis_texts[name->axis_key]);
        } else if (name->source == FROM_BASE) {
            bind_text(statement, index, name->key, name->text);
        } else if (model != NULL) {
            const struct report report = {.model = model};
            sqlite3_bind_double(statement, index, name->metric->value(&report));
        } else {
            sqlite3_bind_null(statement, index);
        }
    }
}

/* Steps the statement; do all constraints hold? Fills the derived texts that it computes. */
static bool evaluate(struct expressions *e, sqlite3_stmt *statement, struct expression_point *point,
                     struct arena *arena, struct error_list *errors)
{
    const struct sweep *sweep = e->sweep;
    if (sqlite3_step(statement) != SQLITE_ROW) {
        error_add(errors, ERROR_bad_expression, (struct location){sweep->path, 0, 0}, "where", "%s",
                  sqlite3_errmsg(e->handle));
        point->failed = true;
        sqlite3_reset(statement);
        return false;
    }
    bool holds = true;
    for (uint32_t i = 0; i < sweep->where_count; i++) {
        const int column = (int)(1 + sweep->derived_count + i);
        holds = holds && sqlite3_column_double(statement, column) != 0.0;
    }
    for (uint32_t i = 0; holds && i < sweep->derived_count; i++) {
        const char *text = (const char *)sqlite3_column_text(statement, (int)i + 1);
        point->derived[i] = arena_strdup(arena, text != NULL ? text : "null");
    }
    sqlite3_reset(statement);
    return holds;
}

/* The model of a point. Whole numbers of the model are put straight into a copy of the base;
 * anything else goes through the loader. NULL when it is not legal. */
static const struct model *model_of(const struct expressions *e,
                                    const struct expression_point *point, struct arena *arena)
{
    const struct sweep *sweep = e->sweep;
    struct error_list errors;
    error_list_init(&errors, arena);
    struct scenario *copy = ARENA_NEW(arena, struct scenario);
    *copy = *sweep->base;
    bool direct = true;
    struct scenario_override *overrides =
        ARENA_ARRAY(arena, sweep->set_count + sweep->key_count + 1, struct scenario_override);
    uint32_t count = 0;
    for (uint32_t i = 0; i < sweep->set_count; i++) {
        overrides[count++] = sweep->sets[i];
    }
    for (uint32_t i = 0; i < sweep->key_count; i++) {
        const char *key = sweep->key_names[i];
        const char *text =
            i < e->axis_keys ? point->axis_texts[i] : point->derived[i - e->axis_keys];
        const bool of_model = strncmp(key, "model", 5) == 0;
        if (!of_model || !sweep->key_is_override[i]) {
            continue;
        }
        overrides[count++] = (struct scenario_override){key, text};
        const struct schema_row *row = schema_find(key);
        struct quantity_problem problem;
        uint64_t value = 0;
        const bool whole = row != NULL && row->kind == SCHEMA_UINT && row->zero_word == NULL &&
                           strcmp(key, "model.attention.heads") != 0 &&
                           quantity_parse_uint(text, UINT32_MAX, &value, &problem);
        direct = direct && whole;
        if (whole) {
            const uint32_t small = (uint32_t)value;
            memcpy((char *)&copy->model + row->offset, &small, sizeof small);
        }
    }
    if (direct) {
        return model_build(copy, arena, &errors);
    }
    const struct scenario_source source = {.path = sweep->base_path,
                                           .config_dir = sweep->config_dir,
                                           .overrides = overrides,
                                           .override_count = count,
                                           .cache = sweep->cache};
    const struct scenario *scenario = scenario_load(&source, arena, &errors);
    return scenario != NULL ? model_build(scenario, arena, &errors) : NULL;
}

bool expressions_hold(struct expressions *e, struct expression_point *point, struct arena *arena,
                      struct error_list *errors)
{
    bind_names(e, e->early, point, NULL);
    if (!evaluate(e, e->early, point, arena, errors)) {
        return false;
    }
    if (!e->any_late) {
        return true;
    }
    struct arena *scratch = arena;
    const struct model *model = model_of(e, point, scratch);
    if (model == NULL) {
        return false;
    }
    bind_names(e, e->full, point, model);
    return evaluate(e, e->full, point, arena, errors);
}
