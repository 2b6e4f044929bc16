/*
 * text.h - growing text, names near a misspelt one, and numbers for people.
 */
#ifndef STEPSIM_TEXT_H
#define STEPSIM_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;

/* Text that grows; the buffer belongs to the heap until text_free or text_take. */
struct text {
    char *data; /* always NUL-terminated once something was added; NULL when empty */
    size_t length;
    size_t capacity;
};

void text_add(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_add_bytes(struct text *text, const char *bytes, size_t length);
/* The text as a C string, "" when empty. Valid until the next change. */
const char *text_string(const struct text *text);
void text_free(struct text *text);

/* Damerau-Levenshtein distance, case-insensitive. */
unsigned text_distance(const char *a, const char *b);
/* The nearest of count names to a misspelt word, the first of equally near ones; NULL if none is
 * within a third of the word's length. */
const char *text_nearest(const char *word, const char *const *names, size_t count);

/* Numbers for people, in the arena: "1.46 M", "371.5 GFLOP", "12.3 GiB", "4.56 ms". Four
 * significant digits at most; a value without a unit has no prefix below 1. */
char *text_si(struct arena *arena, double value, const char *unit);
char *text_gib(struct arena *arena, double bytes);
char *text_duration(struct arena *arena, double seconds);
/* Shortest decimal that reads back as the same double; locale-free. */
char *text_double(struct arena *arena, double value);

#endif
