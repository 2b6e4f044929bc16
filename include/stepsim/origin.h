/*
 * origin.h - where a configured value came from.
 *
 * Every row of a schema table has one origin in the struct it fills, in row
 * order: position for error messages, and for facts (hardware numbers, published
 * counts) the source and grade that `explain` prints, and the interval in which the
 * true value plausibly lies.
 */
#ifndef STEPSIM_ORIGIN_H
#define STEPSIM_ORIGIN_H

#include <stdbool.h>

#include "stepsim/error.h"

enum origin_kind {
    ORIGIN_ABSENT,  /* optional and not given */
    ORIGIN_DEFAULT, /* the default of the schema row */
    ORIGIN_FILE,    /* written in a YAML file */
    ORIGIN_SET,     /* --set key=value, or an override of a sweep */
    ORIGIN_REFUSED, /* an error was reported; exists only while loading */
};

/* How good a number is. */
enum fact_grade {
    GRADE_NONE, /* not a fact: the user's choice */
    GRADE_MEASURED,
    GRADE_VENDOR,
    GRADE_FITTED, /* by the committed calibration command */
    GRADE_ASSUMED,
};

struct origin {
    enum origin_kind kind;
    enum fact_grade grade;
    struct location at;
    const char *source; /* facts only, else NULL */
    bool bounded;       /* facts only: the plausible interval was given, from low to high */
    double low, high;   /* SI; low <= value <= high */
};

#endif
