/*
 * quantity.h - numbers with units, as they are written in YAML and on the command line.
 *
 * A quantity is a decimal number and the unit of its dimension: "64 GiB",
 * "200 Gb/s", "3 us", "313 TFLOP/s", "18T", "35 %". The space may be left out.
 *
 * Rules
 * 1. Numbers are decimal: 12, -3, 0.5, 1.5e3. Leading zeros, underscores, a
 *    leading or trailing point, hexadecimal, inf and nan are refused, because
 *    readers of YAML disagree about them.
 * 2. Where a dimension has a unit, the unit is mandatory. Counts, ratios and
 *    plain numbers may be bare.
 * 3. kB, MB, GB are powers of 1000; KiB, MiB, GiB powers of 1024; b is a bit, so
 *    Gb/s and Gbps are an eighth of GB/s.
 * 4. The answer is the double nearest to the written value: decimal prefixes
 *    move the exponent before the one rounding, binary prefixes are exact.
 *    "200 us" and "0.2 ms" are therefore the same double.
 *
 * Pure functions; nothing depends on the locale.
 */
#ifndef STEPSIM_QUANTITY_H
#define STEPSIM_QUANTITY_H

#include <stdbool.h>
#include <stdint.h>

#include "stepsim/error.h"

enum dimension {
    DIMENSION_NONE,        /* not a quantity */
    DIMENSION_BYTES,       /* byte */
    DIMENSION_BYTES_PER_S, /* byte/s; bits per second are converted */
    DIMENSION_FLOP_PER_S,  /* FLOP/s */
    DIMENSION_SECONDS,     /* s */
    DIMENSION_COUNT,       /* plain, or with k, M, B, T */
    DIMENSION_RATIO,       /* plain, or in % */
    DIMENSION_NUMBER,      /* plain */
};
#define DIMENSION_LAST DIMENSION_NUMBER

/* What is wrong with a text; the message is a clause that follows a key. */
struct quantity_problem {
    enum error_code code; /* bad_number, missing_unit, bad_unit or out_of_range */
    char message[240];
};

/* The SI value of a text. False with a problem when the text is not one, or passes 1e21. */
bool quantity_parse(const char *text, enum dimension dimension, double *value,
                    struct quantity_problem *problem);

/* A whole number without sign, point or exponent, at most the maximum. */
bool quantity_parse_uint(const char *text, uint64_t maximum, uint64_t *value,
                         struct quantity_problem *problem);

/* The SI unit of a dimension: "byte/s"; "" where there is none. */
const char *quantity_unit(enum dimension dimension);
/* A well-formed text of the dimension: "64 GiB". */
const char *quantity_example(enum dimension dimension);
/* The units that a dimension accepts, for messages and reference: "B, kB, MB, ...". */
const char *quantity_units(enum dimension dimension);
/* A regular expression (ECMA 262) that accepts the dimension's texts, for the JSON Schema. */
const char *quantity_pattern(enum dimension dimension);

#endif
