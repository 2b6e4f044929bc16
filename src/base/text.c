/*
 * text.c - text on the heap that doubles as it grows, spelling distance, and numbers for people.
 *
 * Numbers are printed with four significant digits and no trailing zeros: enough
 * to tell two runs apart, short enough for a table.
 */
#include "stepsim/text.h"

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stepsim/arena.h"
#include "stepsim/error.h"
#include "stepsim/units.h"

/* ---- Growing text ---- */

/* Makes room for length more bytes and the final NUL. */
static void reserve(struct text *text, size_t length)
{
    ASSERT(length < SIZE_MAX / 4 && text->length < SIZE_MAX / 4);
    const size_t needed = text->length + length + 1;
    if (needed <= text->capacity)
        return;
    size_t capacity = text->capacity < 64 ? 64 : text->capacity;
    while (capacity < needed)
        capacity *= 2;
    text->data = realloc(text->data, capacity);
    ASSERT(text->data != NULL);
    text->capacity = capacity;
}

void text_add(struct text *text, const char *format, ...)
{
    ASSERT(text != NULL);
    va_list args;
    va_start(args, format);
    va_list again;
    va_copy(again, args);
    const int length = vsnprintf(NULL, 0, format, args);
    ASSERT(length >= 0);
    reserve(text, (size_t)length);
    vsnprintf(text->data + text->length, (size_t)length + 1, format, again);
    text->length += (size_t)length;
    va_end(again);
    va_end(args);
}

void text_add_bytes(struct text *text, const char *bytes, size_t length)
{
    ASSERT(text != NULL);
    ASSERT(bytes != NULL || length == 0);
    reserve(text, length);
    if (length > 0)
        memcpy(text->data + text->length, bytes, length);
    text->length += length;
    text->data[text->length] = '\0';
}

const char *text_string(const struct text *text)
{
    ASSERT(text != NULL);
    return text->data != NULL ? text->data : "";
}

void text_free(struct text *text)
{
    ASSERT(text != NULL);
    free(text->data);
    *text = (struct text){0};
}

/* ---- Names near a misspelt one ---- */

/* ASCII only and without the locale: keys and names are ASCII. */
static unsigned char lower(char letter)
{
    const unsigned char byte = (unsigned char)letter;
    return byte >= 'A' && byte <= 'Z' ? (unsigned char)(byte - 'A' + 'a') : byte;
}

static unsigned min_of(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

/*
 * Damerau-Levenshtein with unrestricted transpositions, O(a*b) in time and memory.
 * cell(i, j) is the distance of the first i-1 letters of a and the first j-1 of b;
 * row and column 0 are a wall that no minimum chooses. A transposition ends at
 * (i, j) and begins at the last place where the two letters met the other way round.
 */
unsigned text_distance(const char *a, const char *b)
{
    ASSERT(a != NULL);
    ASSERT(b != NULL);
    const size_t rows = strlen(a);
    const size_t columns = strlen(b);
    const size_t width = columns + 2;
    const unsigned wall = (unsigned)(rows + columns);
    unsigned *cell = calloc((rows + 2) * width, sizeof *cell);
    ASSERT(cell != NULL);
    size_t last_row[256] = {0}; /* of each letter in a, 0: not seen */

    for (size_t i = 0; i <= rows; i++) {
        cell[(i + 1) * width] = wall;
        cell[(i + 1) * width + 1] = (unsigned)i;
    }
    for (size_t j = 0; j <= columns; j++) {
        cell[j + 1] = wall;
        cell[width + j + 1] = (unsigned)j;
    }
    cell[0] = wall;
    for (size_t i = 1; i <= rows; i++) {
        size_t last_column = 0; /* of a letter of b equal to a's letter in this row */
        for (size_t j = 1; j <= columns; j++) {
            const size_t met_row = last_row[lower(b[j - 1])];
            const size_t met_column = last_column;
            const bool equal = lower(a[i - 1]) == lower(b[j - 1]);
            if (equal)
                last_column = j;
            const unsigned replace = cell[i * width + j] + (equal ? 0 : 1);
            const unsigned insert = cell[(i + 1) * width + j] + 1;
            const unsigned erase = cell[i * width + j + 1] + 1;
            const unsigned swap =
                cell[met_row * width + met_column] + (unsigned)(i - met_row + j - met_column) - 1;
            cell[(i + 1) * width + j + 1] = min_of(min_of(replace, swap), min_of(insert, erase));
        }
        last_row[lower(a[i - 1])] = i;
    }
    const unsigned distance = cell[(rows + 1) * width + columns + 1];
    free(cell);
    return distance;
}

const char *text_nearest(const char *word, const char *const *names, size_t count)
{
    ASSERT(word != NULL);
    const size_t length = strlen(word);
    const size_t allowed = length / 3;
    const char *nearest = NULL;
    unsigned nearest_distance = 0;
    for (size_t i = 0; i < count; i++) {
        /* Words of very different length are never near; this also bounds hostile input. */
        const size_t other = strlen(names[i]);
        if ((other > length ? other - length : length - other) > allowed)
            continue;
        const unsigned distance = text_distance(word, names[i]);
        if (distance <= allowed && (nearest == NULL || distance < nearest_distance)) {
            nearest = names[i];
            nearest_distance = distance;
        }
    }
    return nearest;
}

/* ---- Numbers ---- */

char *text_si(struct arena *arena, double value, const char *unit)
{
    static const char *const prefixes[] = {"p", "n", "u", "m", "",  "k", "M",
                                           "G", "T", "P", "E", "Z", "Y"};
    enum { NO_PREFIX = 4, PREFIX_COUNT = sizeof prefixes / sizeof prefixes[0] };

    ASSERT(unit != NULL);
    /* A bare count has no thousandths: 0.25 stays 0.25. */
    const int smallest = unit[0] == '\0' ? NO_PREFIX : 0;
    int prefix = NO_PREFIX;
    double scaled = value;
    /* 999.95 prints as 1000 with four digits, so it belongs to the next prefix. */
    while (fabs(scaled) >= 999.95 && prefix + 1 < PREFIX_COUNT && isfinite(scaled)) {
        scaled /= 1000.0;
        prefix++;
    }
    while (fabs(value) < 0.99995 && fabs(scaled) < 0.99995 && value != 0.0 && prefix > smallest) {
        scaled *= 1000.0;
        prefix--;
    }
    const char *space = prefix != NO_PREFIX || unit[0] != '\0' ? " " : "";
    return arena_printf(arena, "%.4g%s%s%s", scaled, space, prefixes[prefix], unit);
}

char *text_gib(struct arena *arena, double bytes)
{
    if (fabs(bytes) >= 0.05 * GIB_BYTES)
        return arena_printf(arena, "%.1f GiB", bytes / GIB_BYTES);
    if (fabs(bytes) >= 0.05 * MIB_BYTES)
        return arena_printf(arena, "%.1f MiB", bytes / MIB_BYTES);
    return arena_printf(arena, "%.0f B", bytes);
}

char *text_duration(struct arena *arena, double seconds)
{
    const double minute_s = 60.0;
    const double hour_s = 60.0 * minute_s;
    const double day_s = 24.0 * hour_s;
    if (fabs(seconds) < 2.0 * minute_s)
        return text_si(arena, seconds, "s");
    if (fabs(seconds) < 2.0 * hour_s)
        return arena_printf(arena, "%.4g min", seconds / minute_s);
    if (fabs(seconds) < 2.0 * day_s)
        return arena_printf(arena, "%.4g h", seconds / hour_s);
    return arena_printf(arena, "%.4g days", seconds / day_s);
}

/*
 * Every decimal of up to 15 digits survives the way through a double, so if one
 * reads back as value it is what 15 digits print; otherwise 16 or 17 do. Numbers
 * below the normal range have fewer bits and start at one digit.
 */
char *text_double(struct arena *arena, double value)
{
    ASSERT(isfinite(value));
    const double integers_exact_below = 9007199254740992.0; /* 2^53 */
    char digits[40];
    if (value == floor(value) && fabs(value) < integers_exact_below) {
        snprintf(digits, sizeof digits, "%.0f", value);
        return arena_strdup(arena, digits);
    }
    int precision = fabs(value) < DBL_MIN ? 1 : 15;
    do {
        snprintf(digits, sizeof digits, "%.*g", precision, value);
    } while (strtod(digits, NULL) != value && ++precision <= DBL_DECIMAL_DIG);

    /* A locale of the calling program may have put another decimal sign, of any length. */
    size_t kept = 0;
    for (size_t i = 0; digits[i] != '\0'; i++) {
        const bool plain = strchr("0123456789e+-", digits[i]) != NULL;
        if (plain)
            digits[kept++] = digits[i];
        else if (kept == 0 || digits[kept - 1] != '.')
            digits[kept++] = '.';
    }
    return arena_strndup(arena, digits, kept);
}
