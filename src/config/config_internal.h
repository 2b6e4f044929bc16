/*
 * config_internal.h - what the files of src/config share and nobody else needs.
 */
#ifndef STEPSIM_CONFIG_INTERNAL_H
#define STEPSIM_CONFIG_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "stepsim/arena.h"
#include "stepsim/error.h"
#include "stepsim/origin.h"
#include "stepsim/scenario.h"
#include "stepsim/schema.h"
#include "stepsim/yaml_tree.h"

/* ---- Text of the user inside our messages (quote.c) ---- */

#define CONFIG_QUOTE_SIZE 56
/* The text in double quotes, cut to fit, control characters replaced. Returns out. */
const char *config_quote(char out[CONFIG_QUOTE_SIZE], const char *text);

/* Enough errors are kept already: advice that costs time is not worth computing. */
static inline bool config_errors_full(const struct error_list *errors)
{
    return errors->count >= ERROR_LIST_MAX;
}

/* ---- Reading (yaml_text.c) ---- */

#define CONFIG_TEXT_MAX ((size_t)16 * 1024 * 1024)

/* A whole file in the heap (free it), or NULL with an error. */
char *config_read_file(const char *path, size_t *length, struct error_list *errors);
/* Refuses what is not text: sizes above the limit, NUL and control characters, broken UTF-8. */
bool config_check_text(const char *text, size_t length, const char *name,
                       struct error_list *errors);
/* Line and column (in characters) of a byte. */
struct location config_locate(const char *text, size_t length, size_t offset, const char *name);

/* ---- Entries of a map (yaml_merge.c) ---- */

#define CONFIG_NODES_MAX 1000000u

/* Children of a map as the parser saw them: key, value, key, value. */
struct yaml_children {
    const struct yaml_tree *const *nodes;
    size_t count;
    size_t *merge_budget; /* entries that merge keys of this text may still copy */
};
/* Fills entries, count and expanded of a map: merge keys resolved, duplicates reported. False when
 * the map grows past CONFIG_NODES_MAX or the budget is spent. */
bool yaml_merge_entries(struct yaml_tree *map, struct yaml_children children, struct arena *arena,
                        struct error_list *errors);

/* ---- Places in a schema (schema_scope.c) ---- */

/* The rows of a table below one path; rows of a section stand together. */
struct schema_scope {
    const struct schema_table *table;
    uint32_t first, end; /* rows; empty when the schema does not know the path */
    uint32_t skip;       /* length of the path and its dot in the keys of these rows */
};

struct schema_scope schema_scope_of_table(const struct schema_table *table);
/* One component further, not over the border of an included table. */
struct schema_scope schema_scope_enter(struct schema_scope scope, const char *component,
                                       size_t length);
bool schema_scope_is_empty(struct schema_scope scope);
/* The row that the path names exactly, or NULL for a section. */
const struct schema_row *schema_scope_row(struct schema_scope scope);
/* The row that stands for the whole section when it is written as plain text, or NULL. */
const struct schema_row *schema_scope_shorthand(struct schema_scope scope);
/* Index of a row by its full key inside the table; asserts that it is there. */
uint32_t schema_row_index(const struct schema_table *table, const char *key);
/* The component of a row's key that follows the scope's path. */
size_t schema_scope_component(struct schema_scope scope, const struct schema_row *row,
                              const char **component);

/* ---- Reading one value (schema_value.c) ---- */

struct compose;

/* What filling a table needs; nested tables get a copy with a longer prefix. */
struct schema_fill {
    struct arena *arena;
    struct error_list *errors;
    struct compose *compose;
    const char *prefix; /* "", "model.", "cluster.levels.0." */
};

/* Reports an error at a row. */
void schema_fill_error(const struct schema_fill *fill, const struct schema_row *row,
                       enum error_code code, struct location at, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
/* Checks a node against a row and stores it. Not for INCLUDE, ITEMS and LEVELS. */
bool schema_value_read(const struct schema_fill *fill, const struct schema_row *row, void *base,
                       const struct yaml_tree *node, struct origin *origin);
/* Their readers for the two kinds of doubles. */
bool schema_read_quantity(const struct schema_fill *fill, const struct schema_row *row,
                          const struct yaml_tree *node, double *out);
bool schema_read_fact(const struct schema_fill *fill, const struct schema_row *row, double *out,
                      const struct yaml_tree *node, struct origin *origin);
/* Choice index, bool or min(number, 31) of a stored row: what `when` looks at. */
uint32_t schema_value_index(const struct schema_row *row, const void *base);

/* ---- Writing one value (schema_print.c) ---- */

/* As it would be written in YAML, quantities in SI without unit. */
char *schema_value_text(const struct schema_row *row, const void *base, struct arena *arena);
/* Numbers, and bools as 0 and 1; false for other kinds. */
bool schema_value_number(const struct schema_row *row, const void *base, double *value);
struct cJSON;
/* As JSON; not for rows with an items table. */
struct cJSON *schema_value_json(const struct schema_row *row, const void *base);
/* The struct of item i of ITEMS or LEVELS, how many there are, and the origins in a struct. */
const char *schema_item(const struct schema_row *row, const void *base, uint32_t index);
uint32_t schema_item_count(const struct schema_row *row, const void *base);
const struct origin *schema_origins(const struct schema_table *table, const void *base);

/* ---- Filling a table (schema_fill.c, schema_unknown.c) ---- */

#define SCHEMA_ROWS_MAX 192

/* State of one row while its table is filled. */
struct schema_slot {
    const struct yaml_tree *node; /* what was written, or NULL */
    struct location section_at;   /* where a missing key would belong */
    bool refused;                 /* an error stands for it already */
    const struct schema_row *implied_by;
};

/* Fills a struct from a map; errors are added for everything that is wrong. */
void schema_fill_table(const struct schema_fill *fill, const struct schema_table *table, void *base,
                       const struct yaml_tree *map);
/* Reports a key that the scope does not know; marks the rows that were probably meant. */
void schema_report_unknown(const struct schema_fill *fill, struct schema_scope scope,
                           const struct yaml_tree_entry *entry, struct schema_slot *slots);
/* A refusal by name (Megatron, MindSpeed, planned keys), or NULL. */
const struct schema_refusal *schema_find_refusal(const char *key);

/* ---- Composition (compose.c) ---- */

struct scenario_cache;

struct compose {
    struct arena *arena;
    struct error_list *errors;
    struct scenario_cache *cache; /* or NULL */
    const char *config_dir;
    unsigned depth;  /* of `base:` chains */
    bool merge_maps; /* maps of the newer tree are merged, not put in place of the old ones */
};

/* The complete map behind an include: name, path, or map with `base:`. NULL with errors. */
const struct yaml_tree *compose_include(struct compose *compose, const struct schema_table *table,
                                        const char *key, const struct yaml_tree *node);
/* The map of a named or given file; the node is plain text. */
const struct yaml_tree *compose_named(struct compose *compose, const struct schema_table *table,
                                      const char *key, const struct yaml_tree *node);
/* The tree with one override applied. Shares what did not change. */
const struct yaml_tree *compose_override(struct compose *compose, const struct yaml_tree *root,
                                         const struct scenario_override *override);
/* The tree of a file, from the cache if there is one; top-level x- keys are left out. */
const struct yaml_tree *compose_file(struct compose *compose, const char *path);
/* The same for a text. */
const struct yaml_tree *compose_text(struct compose *compose, const char *text, const char *name);

/* ---- Checks between keys (config_check.c) ---- */

/* Rules that join keys of one file, so far as the keys are sound; may complete a value that
 * follows from another. The prefix is "model." and so on. */
void config_check_model(struct model_spec *model, const char *prefix, struct error_list *errors);
void config_check_device(const struct device_spec *device, const char *prefix,
                         struct error_list *errors);
void config_check_scenario(const struct scenario *scenario, struct error_list *errors);

#endif
