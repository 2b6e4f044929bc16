/*
 * schema_rows.h - shorthand for writing schema rows; used by the table files alone.
 *
 * A table file defines SCHEMA_STRUCT, the struct that its rows fill.
 */
#ifndef STEPSIM_SCHEMA_ROWS_H
#define STEPSIM_SCHEMA_ROWS_H

#include "stepsim/scenario.h"
#include "stepsim/schema.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* Key, kind and member of a row. */
#define ROW(kind_, key_, field)                                                                    \
    .key = (key_), .kind = (kind_), .offset = offsetof(SCHEMA_STRUCT, field)
#define COUNTED(field)     .count_offset = offsetof(SCHEMA_STRUCT, field)
#define RANGE(low, high)   .minimum = (low), .maximum = (high)
#define CHOICES(array)     .choices = (array), .choice_count = COUNT_OF(array)
#define REQUIRED(example_) .flags = SCHEMA_REQUIRED, .example = (example_)
#define WHEN(key_, bits)   .when = {.key = (key_), .mask = (bits)}
#define IMPLIES(key_, i)   .implies = {.key = (key_), .index = (i)}

/* Widest sensible ranges; they catch slips of unit, not opinions. */
#define RANKS_MAX    1048576
#define ELEMENTS_MAX 1073741824

#endif
