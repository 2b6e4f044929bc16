/*
 * case_table.h - public cases of tests/data/cases.csv, as the tests use them.
 *
 * Cells hold parallel variants separated by '|'; `variant` counts from 0, and a cell with one
 * entry serves every variant. The `assert` cell is "key=value;key=value", a value possibly a
 * list separated by ','. A missing row, column or key is a mistake of the test and fails it.
 */
#ifndef TEST_CASE_TABLE_H
#define TEST_CASE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stepsim/scenario.h"

struct arena;
struct case_table;

/* Reads the file into the arena; NULL if it is not there or not CSV. */
struct case_table *case_table_read(const char *path, struct arena *arena);

size_t case_table_rows(const struct case_table *table);
const char *case_table_id(const struct case_table *table, size_t row);
/* Row of an id. */
size_t case_row(const struct case_table *table, const char *id);

/* One entry of a cell without blanks around it, "" when empty. */
const char *case_text(const struct case_table *table, size_t row, const char *column,
                      uint32_t variant);
/* The number that begins the entry, `otherwise` when it is empty or "-". */
uint32_t case_number(const struct case_table *table, size_t row, const char *column,
                     uint32_t variant, uint32_t otherwise);

/* The value of a key of the `assert` cell. */
const char *case_expected_text(const struct case_table *table, size_t row, const char *key);
/* The item-th number of that value. */
double case_expected(const struct case_table *table, size_t row, const char *key, uint32_t item);
/* "0.2%" is 0.002; "exact" and "" are 0. */
double case_tolerance(const struct case_table *table, size_t row);

/* The architecture in the columns layers .. attn and mtp. Columns that the row leaves empty are
 * those of builder_scenario(). */
struct model_spec case_model(const struct case_table *table, size_t row);

#endif
