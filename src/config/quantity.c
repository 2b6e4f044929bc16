/*
 * quantity.c - one decimal grammar, one table of units, one rounding.
 *
 * A number is taken apart into digits and a power of ten. The decimal prefix of
 * the unit is added to that power before the digits become a double, so that
 * there is a single rounding; binary prefixes and bits are powers of two and
 * exact. Short numbers (the usual ones) are one exact integer times or over one
 * exact power of ten, which IEEE arithmetic rounds correctly; the rest goes
 * through strtod as an integer with exponent, where no locale has a say.
 */
#include "stepsim/quantity.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/config_internal.h"
#include "stepsim/text.h"

#define DIGITS_MAX 40
/* Above every quantity that a simulation can hold; ranges of single keys are tighter. */
#define VALUE_MAX 1e21

struct unit {
    const char *name;
    enum dimension dimension;
    int exponent10;
    int exponent2; /* -3 for bits */
};

static const struct unit units[] = {
    {"B", DIMENSION_BYTES, 0, 0},
    {"kB", DIMENSION_BYTES, 3, 0},
    {"MB", DIMENSION_BYTES, 6, 0},
    {"GB", DIMENSION_BYTES, 9, 0},
    {"TB", DIMENSION_BYTES, 12, 0},
    {"PB", DIMENSION_BYTES, 15, 0},
    {"KiB", DIMENSION_BYTES, 0, 10},
    {"MiB", DIMENSION_BYTES, 0, 20},
    {"GiB", DIMENSION_BYTES, 0, 30},
    {"TiB", DIMENSION_BYTES, 0, 40},
    {"B/s", DIMENSION_BYTES_PER_S, 0, 0},
    {"kB/s", DIMENSION_BYTES_PER_S, 3, 0},
    {"MB/s", DIMENSION_BYTES_PER_S, 6, 0},
    {"GB/s", DIMENSION_BYTES_PER_S, 9, 0},
    {"TB/s", DIMENSION_BYTES_PER_S, 12, 0},
    {"PB/s", DIMENSION_BYTES_PER_S, 15, 0},
    {"KiB/s", DIMENSION_BYTES_PER_S, 0, 10},
    {"MiB/s", DIMENSION_BYTES_PER_S, 0, 20},
    {"GiB/s", DIMENSION_BYTES_PER_S, 0, 30},
    {"TiB/s", DIMENSION_BYTES_PER_S, 0, 40},
    {"kb/s", DIMENSION_BYTES_PER_S, 3, -3},
    {"Mb/s", DIMENSION_BYTES_PER_S, 6, -3},
    {"Gb/s", DIMENSION_BYTES_PER_S, 9, -3},
    {"Tb/s", DIMENSION_BYTES_PER_S, 12, -3},
    {"Mbit/s", DIMENSION_BYTES_PER_S, 6, -3},
    {"Gbit/s", DIMENSION_BYTES_PER_S, 9, -3},
    {"Tbit/s", DIMENSION_BYTES_PER_S, 12, -3},
    {"Mbps", DIMENSION_BYTES_PER_S, 6, -3},
    {"Gbps", DIMENSION_BYTES_PER_S, 9, -3},
    {"Tbps", DIMENSION_BYTES_PER_S, 12, -3},
    {"FLOP/s", DIMENSION_FLOP_PER_S, 0, 0},
    {"MFLOP/s", DIMENSION_FLOP_PER_S, 6, 0},
    {"GFLOP/s", DIMENSION_FLOP_PER_S, 9, 0},
    {"TFLOP/s", DIMENSION_FLOP_PER_S, 12, 0},
    {"PFLOP/s", DIMENSION_FLOP_PER_S, 15, 0},
    {"EFLOP/s", DIMENSION_FLOP_PER_S, 18, 0},
    {"s", DIMENSION_SECONDS, 0, 0},
    {"ms", DIMENSION_SECONDS, -3, 0},
    {"us", DIMENSION_SECONDS, -6, 0},
    {"\xc2\xb5s", DIMENSION_SECONDS, -6, 0}, /* micro sign */
    {"\xce\xbcs", DIMENSION_SECONDS, -6, 0}, /* Greek mu */
    {"ns", DIMENSION_SECONDS, -9, 0},
    {"ps", DIMENSION_SECONDS, -12, 0},
    {"", DIMENSION_COUNT, 0, 0},
    {"k", DIMENSION_COUNT, 3, 0},
    {"M", DIMENSION_COUNT, 6, 0},
    {"B", DIMENSION_COUNT, 9, 0},
    {"T", DIMENSION_COUNT, 12, 0},
    {"", DIMENSION_RATIO, 0, 0},
    {"%", DIMENSION_RATIO, -2, 0},
    {"", DIMENSION_NUMBER, 0, 0},
};
#define UNIT_COUNT (sizeof units / sizeof units[0])

#define NUMBER_PATTERN "-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][+-]?[0-9]+)?"

struct dimension_text {
    const char *noun;    /* plural: "bytes" */
    const char *unit;    /* SI */
    const char *example; /* well-formed text */
    const char *units;   /* accepted units */
    const char *pattern;
};

static const struct dimension_text dimension_texts[] = {
    [DIMENSION_NONE] = {"", "", "", "", ""},
    [DIMENSION_BYTES] = {"bytes", "byte", "64 GiB",
                         "B, kB, MB, GB, TB, PB (powers of 1000), KiB, MiB, GiB, TiB (of 1024)",
                         "^" NUMBER_PATTERN " ?([kMGTP]?B|[KMGT]iB)$"},
    [DIMENSION_BYTES_PER_S] =
        {"bytes per second", "byte/s", "196 GB/s",
         "B/s, kB/s, MB/s, GB/s, TB/s, PB/s, KiB/s, MiB/s, GiB/s, TiB/s; bits: kb/s, Mb/s, Gb/s, "
         "Tb/s, Mbit/s, Gbit/s, Tbit/s, Mbps, Gbps, Tbps",
         "^" NUMBER_PATTERN " ?([kMGTP]?B/s|[KMGT]iB/s|[kMGT]b/s|[MGT]bit/s|[MGT]bps)$"},
    [DIMENSION_FLOP_PER_S] = {"FLOP per second", "FLOP/s", "313 TFLOP/s",
                              "FLOP/s, MFLOP/s, GFLOP/s, TFLOP/s, PFLOP/s, EFLOP/s",
                              "^" NUMBER_PATTERN " ?[MGTPE]?FLOP/s$"},
    [DIMENSION_SECONDS] = {"seconds", "s", "3 us", "s, ms, us, ns, ps",
                           "^" NUMBER_PATTERN " ?(s|ms|us|\xc2\xb5s|\xce\xbcs|ns|ps)$"},
    [DIMENSION_COUNT] = {"counts", "", "18T", "none, k, M, B (10^9), T (10^12)",
                         "^" NUMBER_PATTERN " ?[kMBT]?$"},
    [DIMENSION_RATIO] = {"ratios", "", "0.35 or 35 %", "none, or %", "^" NUMBER_PATTERN " ?%?$"},
    [DIMENSION_NUMBER] = {"plain numbers", "", "1.15", "none", "^" NUMBER_PATTERN "$"},
};

/* A number taken apart: digits * 10^exponent. */
struct decimal {
    bool negative;
    bool whole; /* written without point and exponent */
    char digits[DIGITS_MAX + 1];
    int digit_count;
    int exponent;
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool fail(struct quantity_problem *problem, enum error_code code, const char *text,
                 const char *why)
{
    char quoted[CONFIG_QUOTE_SIZE];
    problem->code = code;
    snprintf(problem->message, sizeof problem->message, "%s %s", config_quote(quoted, text), why);
    return false;
}

/* Appends digits without leading zeros; false when there are too many to hold. */
static bool take_digits(const char **cursor, struct decimal *out)
{
    for (; is_digit(**cursor); (*cursor)++) {
        if (out->digit_count == 0 && **cursor == '0')
            continue;
        if (out->digit_count == DIGITS_MAX)
            return false;
        out->digits[out->digit_count++] = **cursor;
    }
    return true;
}

static const char *take_exponent(const char *at, struct decimal *out)
{
    if (*at != 'e' && *at != 'E')
        return at;
    const char *digit = at + 1;
    const bool negative = *digit == '-';
    if (*digit == '-' || *digit == '+')
        digit++;
    if (!is_digit(*digit))
        return at; /* not an exponent: part of a unit, refused there */
    int value = 0;
    for (; is_digit(*digit); digit++)
        value = value > 9999 ? value : value * 10 + (*digit - '0');
    out->exponent += negative ? -value : value;
    out->whole = false;
    return digit;
}

/* The rest of the text behind the number, or NULL with a problem. */
static const char *take_decimal(const char *text, struct decimal *out,
                                struct quantity_problem *problem)
{
    memset(out, 0, sizeof *out);
    out->whole = true;
    const char *at = text;
    if (*at == '-' || *at == '+')
        out->negative = *at++ == '-';
    if (!is_digit(*at))
        return fail(problem, ERROR_bad_number, text, "does not start with a decimal number"), NULL;
    if (at[0] == '0' && is_digit(at[1]))
        return fail(problem, ERROR_bad_number, text, "has a leading zero; write it without"), NULL;
    if (at[0] == '0' && (at[1] == 'x' || at[1] == 'X' || at[1] == 'o' || at[1] == 'b'))
        return fail(problem, ERROR_bad_number, text, "is not decimal"), NULL;
    bool fits = take_digits(&at, out);
    if (fits && *at == '.') {
        const char *point = at++;
        if (!is_digit(*at))
            return fail(problem, ERROR_bad_number, text, "has a point without digits behind"), NULL;
        fits = take_digits(&at, out);
        out->exponent = -(int)(at - point - 1);
        out->whole = false;
    }
    if (!fits)
        return fail(problem, ERROR_bad_number, text, "has more digits than any quantity needs"),
               NULL;
    if (*at == '_')
        return fail(problem, ERROR_bad_number, text, "has an underscore; write the digits alone"),
               NULL;
    return take_exponent(at, out);
}

/* digits * 10^exponent, correctly rounded; infinite when it overflows. */
static double decimal_value(const struct decimal *decimal, int exponent)
{
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                    1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                    1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    if (decimal->digit_count == 0)
        return 0.0;
    if (decimal->digit_count <= 15 && exponent >= -22 && exponent <= 22) {
        uint64_t whole = 0;
        for (int i = 0; i < decimal->digit_count; i++)
            whole = whole * 10 + (uint64_t)(decimal->digits[i] - '0');
        return exponent < 0 ? (double)whole / powers[-exponent] : (double)whole * powers[exponent];
    }
    char text[DIGITS_MAX + 16];
    snprintf(text, sizeof text, "%se%d", decimal->digits, exponent);
    return strtod(text, NULL);
}

static const struct unit *find_unit(const char *name, enum dimension dimension)
{
    for (size_t i = 0; i < UNIT_COUNT; i++) {
        if (units[i].dimension == dimension && strcmp(units[i].name, name) == 0)
            return &units[i];
    }
    return NULL;
}

/* Another case or a familiar spelling of a unit: "tflops" for "TFLOP/s". */
static const char *nearest_unit(const char *name, enum dimension dimension)
{
    const char *names[UNIT_COUNT];
    size_t count = 0;
    for (size_t i = 0; i < UNIT_COUNT; i++) {
        if (units[i].dimension == dimension && units[i].name[0] != '\0')
            names[count++] = units[i].name;
    }
    return text_nearest(name, names, count);
}

static bool refuse_unit(const char *text, const char *name, enum dimension dimension,
                        struct quantity_problem *problem)
{
    const struct dimension_text *wanted = &dimension_texts[dimension];
    char quoted[CONFIG_QUOTE_SIZE];
    problem->code = ERROR_bad_unit;
    for (int other = DIMENSION_BYTES; other <= DIMENSION_LAST; other++) {
        if (find_unit(name, (enum dimension)other)) {
            snprintf(problem->message, sizeof problem->message,
                     "%s has a unit of %s, but the key takes %s; write for example \"%s\"",
                     config_quote(quoted, text), dimension_texts[other].noun, wanted->noun,
                     wanted->example);
            return false;
        }
    }
    const char *near = strlen(name) <= 16 ? nearest_unit(name, dimension) : NULL;
    if (near) {
        snprintf(problem->message, sizeof problem->message,
                 "%s is not a unit of %s; did you mean %s?", config_quote(quoted, name),
                 wanted->noun, near);
    } else {
        snprintf(problem->message, sizeof problem->message,
                 "%s is not a unit of %s; write for example \"%s\"", config_quote(quoted, name),
                 wanted->noun, wanted->example);
    }
    return false;
}

bool quantity_parse(const char *text, enum dimension dimension, double *value,
                    struct quantity_problem *problem)
{
    ASSERT(dimension > DIMENSION_NONE && dimension <= DIMENSION_LAST);
    struct decimal decimal;
    const char *name = take_decimal(text, &decimal, problem);
    if (!name)
        return false;
    while (*name == ' ')
        name++;
    const struct unit *unit = find_unit(name, dimension);
    if (!unit && *name == '\0') {
        char why[80];
        snprintf(why, sizeof why, "has no unit; write for example \"%s\"",
                 dimension_texts[dimension].example);
        return fail(problem, ERROR_missing_unit, text, why);
    }
    if (!unit)
        return refuse_unit(text, name, dimension, problem);
    const double magnitude =
        ldexp(decimal_value(&decimal, decimal.exponent + unit->exponent10), unit->exponent2);
    if (!(magnitude <= VALUE_MAX))
        return fail(problem, ERROR_out_of_range, text, "is larger than any quantity can be");
    *value = decimal.negative ? -magnitude : magnitude;
    return true;
}

bool quantity_parse_uint(const char *text, uint64_t maximum, uint64_t *value,
                         struct quantity_problem *problem)
{
    struct decimal decimal;
    const char *rest = take_decimal(text, &decimal, problem);
    if (!rest)
        return false;
    if (*rest != '\0' || !decimal.whole)
        return fail(problem, ERROR_bad_number, text, "is not a whole number; write for example 8");
    uint64_t whole = 0;
    for (int i = 0; i < decimal.digit_count; i++) {
        const uint64_t digit = (uint64_t)(decimal.digits[i] - '0');
        if (digit > maximum || whole > (maximum - digit) / 10)
            return fail(problem, ERROR_out_of_range, text, "is too large");
        whole = whole * 10 + digit;
    }
    if (decimal.negative && whole > 0)
        return fail(problem, ERROR_out_of_range, text, "is negative");
    *value = whole;
    return true;
}

const char *quantity_unit(enum dimension dimension)
{
    return dimension_texts[dimension].unit;
}

const char *quantity_example(enum dimension dimension)
{
    return dimension_texts[dimension].example;
}

const char *quantity_units(enum dimension dimension)
{
    return dimension_texts[dimension].units;
}

const char *quantity_pattern(enum dimension dimension)
{
    return dimension_texts[dimension].pattern;
}
