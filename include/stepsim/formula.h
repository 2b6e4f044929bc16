/*
 * formula.h - SQL expressions over named values, evaluated by SQLite in a sandbox.
 *
 * Constraints and objectives of users are expressions such as `tp * pp <= 64 and dp % 2 = 0`.
 * SQLite evaluates them on a database in memory that holds nothing, behind an authorizer: no
 * tables, no files, a list of functions. Nobody parses SQL here: a name that SQLite does not find
 * is asked for, becomes a column of the one row that there is, and the text is prepared again.
 */
#ifndef STEPSIM_FORMULA_H
#define STEPSIM_FORMULA_H

#include "stepsim/error.h"

struct sqlite3;

/* An empty database behind the authorizer; the caller closes it. NULL: SQLite cannot start. */
struct sqlite3 *formula_sandbox_open(void);

/* Does the name stand for the key: the whole of it with underscores for dots, or its end at a
 * dot? */
bool formula_name_means(const char *name, const char *key);
/* The key of the scenario schema that a name stands for, the shortest one of several; *same is how
 * many are as short. NULL: none. */
const char *formula_key(const char *name, size_t *same, struct arena *arena);

/* A text as SQLite shall see it: a number where it is one, in SI units where the key has a
 * dimension, 0 or 1 for true and false, else text. */
struct formula_value {
    /* Whole numbers are integers to SQL, where / and % differ from those of other numbers. */
    enum { FORMULA_NULL, FORMULA_WHOLE, FORMULA_NUMBER, FORMULA_TEXT } kind;
    double number;
    const char *text; /* must live until the statement is stepped */
};
struct formula_value formula_value_of(const char *key, const char *text);
struct sqlite3_stmt;
void formula_bind(struct sqlite3_stmt *statement, int index, const struct formula_value *value);

#define FORMULA_NAMES_MAX 64

struct formula_ask {
    const char *const *texts; /* SQL, one expression each */
    uint32_t count;
    const char *label; /* named in errors, "--where" */
    /* What a name stands for, a number of the caller's; -1 with an error: nothing. */
    int (*resolve)(void *user, const char *name, struct error_list *errors);
    struct formula_value (*value)(void *user, int name); /* asked at each evaluation */
};

struct formula;
/* NULL with errors. Lives in the arena, but needs formula_destroy(). */
struct formula *formula_create(const struct formula_ask *ask, void *user, struct arena *arena,
                               struct error_list *errors);
/* Accepts NULL. */
void formula_destroy(struct formula *formula);
/* Does any of the expressions name it? */
bool formula_uses(const struct formula *formula, int name);
/* The values of the expressions, NAN for one that is no number. */
void formula_evaluate(struct formula *formula, void *user, double *results);

#endif
