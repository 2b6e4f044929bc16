/*
 * arena.c - a list of chunks, filled from the front of the newest one.
 *
 * A chunk that is too small for a request is left as it is and a bigger one is
 * put before it; sizes double, so the number of chunks stays logarithmic and at
 * most about half of the memory is unused. When requests are forwarded
 * (STEPSIM_ARENA_FORWARD) every request gets a chunk of exactly its size, so a
 * sanitizer sees its end and a reset really frees it.
 *
 * Chunks are whole, aligned huge pages where the system offers them: a first touch of a small
 * page costs up to 13 us on virtual machines, and a run touches some 5,000 of them, which was
 * three quarters of its wall time.
 */
#include "stepsim/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "stepsim/error.h"

#define ALIGNMENT       16u
#define CHUNK_BYTES_MIN ((size_t)2 * 1024 * 1024) /* header included; one huge page */

#ifdef STEPSIM_ARENA_FORWARD
#define FORWARD 1
#else
#define FORWARD 0
#endif

struct chunk {
    struct chunk *next;
    size_t capacity;
    size_t used;  /* a multiple of ALIGNMENT, unless the chunk is full */
    size_t dirty; /* bytes from the front that were handed out before the last reset */
    alignas(ALIGNMENT) unsigned char data[];
};

struct arena {
    const char *name;
    struct chunk *newest; /* the largest one too, since sizes grow; NULL before the first request */
    size_t used_bytes;
};

static _Noreturn void out_of_memory(const char *name, size_t size)
{
    fprintf(stderr, "stepsim: out of memory: the %s arena asked for %zu bytes\n", name, size);
    abort();
}

struct arena *arena_create(const char *name)
{
    ASSERT(name != NULL);
    struct arena *arena = calloc(1, sizeof *arena);
    if (arena == NULL)
        out_of_memory(name, sizeof *arena);
    arena->name = name;
    return arena;
}

static size_t whole_pages(size_t bytes)
{
    return (bytes + CHUNK_BYTES_MIN - 1) / CHUNK_BYTES_MIN * CHUNK_BYTES_MIN;
}

/* Zeroed memory for a chunk, in whole aligned huge pages; the chunk may become larger than
 * asked for. The system hands out zeroed pages, which are not cleared again. */
static struct chunk *allocate_chunk(size_t *capacity)
{
    if (FORWARD)
        return calloc(1, sizeof(struct chunk) + *capacity);
    const size_t bytes = whole_pages(sizeof(struct chunk) + *capacity);
    unsigned char *mapped = mmap(NULL, bytes + CHUNK_BYTES_MIN, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED)
        return NULL;
    const size_t before = (CHUNK_BYTES_MIN - (uintptr_t)mapped % CHUNK_BYTES_MIN) % CHUNK_BYTES_MIN;
    unsigned char *aligned = mapped + before;
    if (before > 0)
        (void)munmap(mapped, before);
    (void)munmap(aligned + bytes, CHUNK_BYTES_MIN - before);
    /* Only a hint: without huge pages the memory is the same, just slower to touch. */
    (void)madvise(aligned, bytes, MADV_HUGEPAGE);
    *capacity = bytes - sizeof(struct chunk);
    return (struct chunk *)(void *)aligned;
}

static void free_chunk(struct chunk *chunk)
{
    if (FORWARD)
        free(chunk);
    else
        (void)munmap(chunk, whole_pages(sizeof(struct chunk) + chunk->capacity));
}

static void free_chunks(struct chunk *chunk)
{
    while (chunk != NULL) {
        struct chunk *next = chunk->next;
        free_chunk(chunk);
        chunk = next;
    }
}

void arena_destroy(struct arena *arena)
{
    if (arena == NULL)
        return;
    free_chunks(arena->newest);
    free(arena);
}

void arena_reset(struct arena *arena)
{
    ASSERT(arena != NULL);
    arena->used_bytes = 0;
    if (arena->newest == NULL)
        return;
    if (FORWARD) {
        free_chunks(arena->newest);
        arena->newest = NULL;
        return;
    }
    free_chunks(arena->newest->next);
    arena->newest->next = NULL;
    if (arena->newest->used > arena->newest->dirty)
        arena->newest->dirty = arena->newest->used;
    arena->newest->used = 0;
}

size_t arena_used_bytes(const struct arena *arena)
{
    ASSERT(arena != NULL);
    return arena->used_bytes;
}

/* Puts a chunk with room for size bytes in front. */
static void add_chunk(struct arena *arena, size_t size)
{
    size_t capacity = size;
    if (!FORWARD) {
        const struct chunk *newest = arena->newest;
        size_t wanted = CHUNK_BYTES_MIN - sizeof(struct chunk);
        if (newest != NULL)
            wanted = newest->capacity <= SIZE_MAX / 4 ? newest->capacity * 2 : newest->capacity;
        capacity = wanted > size ? wanted : size;
    }
    if (capacity > SIZE_MAX - sizeof(struct chunk) - 2 * CHUNK_BYTES_MIN)
        out_of_memory(arena->name, size);
    struct chunk *chunk = allocate_chunk(&capacity);
    if (chunk == NULL)
        out_of_memory(arena->name, size);
    chunk->next = arena->newest;
    chunk->capacity = capacity;
    arena->newest = chunk;
}

void *arena_alloc(struct arena *arena, size_t size)
{
    ASSERT(arena != NULL);
    const struct chunk *newest = arena->newest;
    if (FORWARD || newest == NULL || size > newest->capacity - newest->used)
        add_chunk(arena, size);

    struct chunk *chunk = arena->newest;
    unsigned char *memory = chunk->data + chunk->used;
    const size_t left = chunk->capacity - chunk->used;
    const size_t padding = (ALIGNMENT - size % ALIGNMENT) % ALIGNMENT;
    chunk->used += left - size < padding ? left : size + padding;
    arena->used_bytes += size;
    const size_t at = (size_t)(memory - chunk->data);
    if (at < chunk->dirty)
        memset(memory, 0, size < chunk->dirty - at ? size : chunk->dirty - at);
    return memory;
}

void *arena_calloc(struct arena *arena, size_t count, size_t size)
{
    ASSERT(arena != NULL);
    if (size != 0 && count > SIZE_MAX / size)
        out_of_memory(arena->name, SIZE_MAX);
    return arena_alloc(arena, count * size);
}

char *arena_strndup(struct arena *arena, const char *text, size_t length)
{
    ASSERT(text != NULL);
    const size_t kept = strnlen(text, length);
    char *copy = arena_alloc(arena, kept + 1);
    memcpy(copy, text, kept);
    return copy;
}

char *arena_strdup(struct arena *arena, const char *text)
{
    ASSERT(text != NULL);
    return arena_strndup(arena, text, strlen(text));
}

char *arena_vprintf(struct arena *arena, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    const int length = vsnprintf(NULL, 0, format, args);
    ASSERT(length >= 0);
    char *text = arena_alloc(arena, (size_t)length + 1);
    vsnprintf(text, (size_t)length + 1, format, again);
    va_end(again);
    return text;
}

char *arena_printf(struct arena *arena, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *text = arena_vprintf(arena, format, args);
    va_end(args);
    return text;
}
