/*
 * arena.h - memory with a named lifetime.
 *
 * A run owns one arena; everything that the pipeline builds lives in it and is
 * released at once. Allocation failure aborts with a message, so callers never
 * test. Memory is zeroed. With STEPSIM_ARENA_FORWARD every request becomes a
 * malloc of its own, so that sanitizers see each block.
 */
#ifndef STEPSIM_ARENA_H
#define STEPSIM_ARENA_H

#include <stdarg.h>
#include <stddef.h>

struct arena;

struct arena *arena_create(const char *name);
/* Accepts NULL. */
void arena_destroy(struct arena *arena);
/* Releases all blocks, keeps the arena (and its largest chunk) for reuse. */
void arena_reset(struct arena *arena);
/* Bytes handed out since creation or reset. */
size_t arena_used_bytes(const struct arena *arena);

/* Zeroed, 16-byte aligned. size 0 returns a valid pointer that must not be read. */
void *arena_alloc(struct arena *arena, size_t size);
/* count * size with an overflow check. */
void *arena_calloc(struct arena *arena, size_t count, size_t size);
char *arena_strdup(struct arena *arena, const char *text);
char *arena_strndup(struct arena *arena, const char *text, size_t length);
char *arena_printf(struct arena *arena, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
char *arena_vprintf(struct arena *arena, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

#define ARENA_NEW(arena, type) ((type *)arena_alloc((arena), sizeof(type)))
#define ARENA_ARRAY(arena, count, type) ((type *)arena_calloc((arena), (count), sizeof(type)))

#endif
