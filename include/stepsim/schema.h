/*
 * schema.h - the tables of configuration keys, and everything that is read off them.
 *
 * One table per struct of scenario.h: scenario, model, cluster, level, device and
 * the items of lists. A row is a key with its kind, unit, default, range, choices,
 * struct member and meaning. The loader, `describe`, `schema`, `init`,
 * docs/reference/config.md and the resolved dump walk these rows; to add a key is
 * to add a row and a member.
 *
 * Rules
 * 1. Rows of one section stand together, in the order in which they are printed.
 * 2. `when` and `implies` name a row of the same table that stands earlier
 *    (when) or anywhere (implies).
 * 3. A pending reason, on a row or on a choice, means: known, not simulated yet;
 *    the loader refuses it with not_yet_modelled. To open a value is to delete its
 *    reason. A pending row still accepts its idle value (false, 0, empty, default).
 * 4. Quantities are in SI units of their dimension.
 *
 * The tables are constant. Texts that functions return live in the given arena.
 */
#ifndef STEPSIM_SCHEMA_H
#define STEPSIM_SCHEMA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stepsim/quantity.h"

struct arena;

enum schema_kind {
    SCHEMA_STRING,      /* const char *: free text */
    SCHEMA_STRING_LIST, /* const char *const *, with a count */
    SCHEMA_NAME,        /* const char *: resolved later by its registry; choices only know states */
    SCHEMA_WORD,        /* const char *: one of the choices */
    SCHEMA_CHOICE,      /* enum whose value is the index of the choice */
    SCHEMA_SWITCH,      /* bool whose value is the index of the choice */
    SCHEMA_BOOL,        /* bool: true or false */
    SCHEMA_UINT,        /* uint32_t; zero_word, if any, is the written form of 0 */
    SCHEMA_UINT64,      /* uint64_t */
    SCHEMA_QUANTITY,    /* double, of the row's dimension */
    SCHEMA_FACT,        /* double: {value:, source:, grade:} */
    SCHEMA_UINT_LIST,   /* const uint32_t *, with a count */
    SCHEMA_SET,         /* uint32_t: bit i is choice i; written as a list of names */
    SCHEMA_ITEMS,       /* pointer to structs of the items table, with a count; list of maps */
    SCHEMA_LEVELS,      /* array of such structs inside the struct, maximum entries, with a count */
    SCHEMA_INCLUDE,     /* struct of the items table: name, path or map; its first member is name */
};

enum schema_flag {
    SCHEMA_REQUIRED = 1 << 0,
    SCHEMA_SHORTHAND = 1 << 1, /* plain text in place of the section is this key */
    SCHEMA_KEEPS = 1 << 2, /* with SHORTHAND: an override of the section leaves its other keys */
    SCHEMA_LABEL = 1 << 3, /* text for people: not part of the canonical form */
};

struct schema_choice {
    const char *name; /* NULL: the index is not offered here */
    const char *meaning;
    const char *pending; /* why it is not simulated yet, or NULL */
};

/* Condition on another row: its choice index, bool, or min(number, 31), is a bit of the mask. */
struct schema_when {
    const char *key; /* NULL: always */
    uint32_t mask;
};
#define SCHEMA_WHEN_NONZERO 0xfffffffeu

struct schema_table;

struct schema_row {
    const char *key; /* path inside its table: "parallel.cp.size" */
    enum schema_kind kind;
    enum dimension dimension;
    unsigned flags;       /* schema_flag set */
    const char *fallback; /* text of the default; NULL: none */
    const char *example;  /* text for templates, where there is no default */
    double minimum, maximum;
    const char *zero_word;
    const struct schema_choice *choices;
    uint32_t choice_count;
    size_t offset, count_offset;
    const struct schema_table *items;
    struct schema_when when; /* else the key is refused; required only then */
    struct {
        const char *key;
        uint32_t index;
    } implies; /* giving this row chooses that value of another row */
    const char *pending;
    const char *meaning; /* full sentences */
};

struct schema_section {
    const char *key; /* "parallel", "parallel.cp" */
    const char *meaning;
};

struct schema_table {
    const char *name;   /* "scenario", "model", "cluster", "level", "device", "slow_rank" ... */
    const char *title;  /* heading of the reference */
    const char *folder; /* "models": where SCHEMA_INCLUDE looks for names; else NULL */
    const char *noun;   /* "model" */
    const struct schema_row *rows;
    uint32_t row_count;
    const struct schema_section *sections;
    uint32_t section_count;
    size_t struct_size;
    size_t
        origins_offset; /* of `const struct origin *origins`, SCHEMA_NO_ORIGINS if there is none */
};
#define SCHEMA_NO_ORIGINS SIZE_MAX

extern const struct schema_table scenario_schema;
extern const struct schema_table model_schema;
extern const struct schema_table cluster_schema;
extern const struct schema_table level_schema;
extern const struct schema_table device_schema;

/* Keys of Megatron and MindSpeed, and of designs of ours, that are refused by name. */
struct schema_refusal {
    const char *name; /* last part of a key, with underscores: "tp_2d" */
    enum error_code code;
    const char *reason; /* a full sentence, with the key to use instead if there is one */
};
extern const struct schema_refusal schema_refusals[];
extern const size_t schema_refusal_count;

/* ---- Walking ---- */

/* The tables in the order of the reference; index below schema_table_count(). */
size_t schema_table_count(void);
const struct schema_table *schema_table_at(size_t index);

/* Calls visit for every row of the scenario table and, depth first, of the tables below it. The key
 * is the full path, "N" standing for a list index: "cluster.levels.N.latency". */
typedef void schema_visitor(void *context, const char *key, const struct schema_row *row);
void schema_walk(schema_visitor *visit, void *context);

/* The row of a full key ("parallel.tp", "cluster.levels.0.latency", "model.layers", or a section
 * with a shorthand: "parallel.cp"), NULL if there is none. */
const struct schema_row *schema_find(const char *key);
/* The full key nearest to a misspelt one, in the arena, or NULL. */
const char *schema_nearest(const char *key, struct arena *arena);

/* ---- Words about a row ---- */

const char *schema_kind_noun(const struct schema_row *row); /* "a whole number" */
/* The names of the choices, "a, b, c"; pending ones only if asked for. */
char *schema_choice_names(const struct schema_row *row, bool with_pending, struct arena *arena);
/* "1 to 65536", "at least 1", "" */
char *schema_range(const struct schema_row *row, struct arena *arena);

/* ---- Documents ---- */

/* Everything about one key or section, for a terminal. NULL if there is no such key. */
char *schema_describe(const char *key, struct arena *arena);
/* JSON Schema, draft-07, of a file: "scenario", "model", "cluster" or "device". NULL otherwise. */
char *schema_json(const char *table_name, struct arena *arena);
/* An annotated scenario with every key, its default, and its meaning as a comment. */
char *schema_template(struct arena *arena);
/* docs/reference/config.md. */
char *schema_reference_markdown(struct arena *arena);

#endif
