/*
 * no_malloc.h - the C library's allocator does not compile in src/engine.
 *
 * Included last by every source of this folder. Memory comes from the arena, before
 * the clock starts. A file whose functions run while the clock runs defines
 * ENGINE_CLOCK_RUNS first, and then may not call the arena either.
 */
#ifndef ENGINE_NO_MALLOC_H
#define ENGINE_NO_MALLOC_H

#pragma GCC poison malloc calloc realloc reallocarray aligned_alloc posix_memalign free strdup
#ifdef ENGINE_CLOCK_RUNS
#pragma GCC poison arena_alloc arena_calloc arena_strdup arena_strndup arena_printf arena_vprintf
#endif

#endif
