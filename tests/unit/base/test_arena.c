/* test_arena.c - alignment, zeroing, separation, reset and overflow of arena memory. */
#include "stepsim/arena.h"

#include <string.h>

#include "assert_aborts.h"
#include "assert_close.h"

static void memory_is_zeroed_and_aligned(void **state)
{
    (void)state;
    struct arena *arena = arena_create("test");
    for (size_t size = 0; size < 300; size++) {
        unsigned char *memory = arena_alloc(arena, size);
        assert_non_null(memory);
        assert_int_equal((uintptr_t)memory % 16, 0);
        for (size_t i = 0; i < size; i++)
            assert_int_equal(memory[i], 0);
        memset(memory, 0xA5, size);
    }
    arena_destroy(arena);
}

/* Blocks of all sizes, across many chunks, each full of its own byte: none touches another. */
static void blocks_do_not_overlap(void **state)
{
    (void)state;
    enum { COUNT = 400 };
    struct arena *arena = arena_create("test");
    unsigned char *blocks[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        blocks[i] = arena_alloc(arena, i * 37);
        memset(blocks[i], (int)(i % 251), i * 37);
    }
    for (size_t i = 0; i < COUNT; i++)
        for (size_t j = 0; j < i * 37; j++)
            assert_int_equal(blocks[i][j], i % 251);
    /* 37 * (0 + 1 + ... + 399) = 37 * 79800 */
    assert_int_equal(arena_used_bytes(arena), 2952600);
    arena_destroy(arena);
}

/* Two requests that together end a few bytes before, at and behind the end of the first chunk,
 * which has 64 KiB; a sanitizer sees a block that reaches over it. */
static void blocks_stay_inside_their_chunk(void **state)
{
    (void)state;
    for (size_t missing = 0; missing <= 40; missing++) {
        for (size_t size = 0; size <= 40; size++) {
            struct arena *arena = arena_create("test");
            unsigned char *first = arena_alloc(arena, 65536 - missing);
            memset(first, 0xFF, 65536 - missing);
            unsigned char *second = arena_alloc(arena, size);
            memset(second, 0xEE, size);
            assert_int_equal(first[65535 - missing], 0xFF);
            arena_destroy(arena);
        }
    }
}

static void a_request_larger_than_a_chunk_is_served(void **state)
{
    (void)state;
    struct arena *arena = arena_create("test");
    const size_t size = 5 * 1024 * 1024 + 3;
    unsigned char *small = arena_alloc(arena, 10);
    unsigned char *large = arena_alloc(arena, size);
    large[0] = 1;
    large[size - 1] = 1;
    memset(small, 7, 10);
    assert_int_equal(large[0], 1);
    assert_int_equal(large[1], 0);
    arena_destroy(arena);
}

static void reset_forgets_and_zeroes_again(void **state)
{
    (void)state;
    struct arena *arena = arena_create("test");
    arena_reset(arena);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 100; i++) {
            unsigned char *memory = arena_alloc(arena, 5000);
            for (size_t j = 0; j < 5000; j++)
                assert_int_equal(memory[j], 0);
            memset(memory, 0xFF, 5000);
        }
        assert_int_equal(arena_used_bytes(arena), 500000);
        arena_reset(arena);
        assert_int_equal(arena_used_bytes(arena), 0);
    }
    arena_destroy(arena);
    arena_destroy(NULL);
}

/* A run that repeats with the same sizes asks the system for nothing: the chunk comes back. */
static void reset_keeps_the_memory(void **state)
{
    (void)state;
#ifdef STEPSIM_ARENA_FORWARD
    skip(); /* then it gives it back, for the sanitizer */
#endif
    struct arena *arena = arena_create("test");
    const void *first = arena_alloc(arena, 1000);
    arena_reset(arena);
    assert_ptr_equal(arena_alloc(arena, 2000), first);
    /* Of several chunks the largest stays. */
    const void *large = arena_alloc(arena, 10000000);
    arena_reset(arena);
    assert_ptr_equal(arena_alloc(arena, 10000000), large);
    arena_destroy(arena);
}

static void texts_are_copied(void **state)
{
    (void)state;
    struct arena *arena = arena_create("test");
    char source[] = "pangu";
    char *copy = arena_strdup(arena, source);
    char *part = arena_strndup(arena, source, 3);
    char *whole = arena_strndup(arena, source, 99);
    source[0] = 'X';
    assert_string_equal(copy, "pangu");
    assert_string_equal(part, "pan");
    assert_string_equal(whole, "pangu");
    assert_string_equal(arena_strdup(arena, ""), "");
    assert_string_equal(arena_printf(arena, "%s-%d", "ep", 32), "ep-32");
    /* Length 0, and a text longer than any buffer inside. */
    assert_string_equal(arena_printf(arena, "%s", ""), "");
    assert_int_equal(strlen(arena_printf(arena, "%*d", 100000, 1)), 100000);
    arena_destroy(arena);
}

struct triple {
    double a, b, c;
};

static void typed_requests_have_the_type(void **state)
{
    (void)state;
    struct arena *arena = arena_create("test");
    struct triple *one = ARENA_NEW(arena, struct triple);
    struct triple *many = ARENA_ARRAY(arena, 7, struct triple);
    assert_int_equal(arena_used_bytes(arena), 8 * sizeof(struct triple));
    one->c = 1.0;
    many[6].c = 2.0;
    assert_non_null(ARENA_ARRAY(arena, 0, struct triple));
    arena_destroy(arena);
}

/* (SIZE_MAX / 16 + 1) * 16 wraps to 0; without the check it would be an empty block. */
static void ask_for_a_product_that_wraps(void)
{
    arena_calloc(arena_create("test"), SIZE_MAX / 16 + 1, 16);
}

/* SIZE_MAX bytes and the head of the chunk wrap to a few bytes. */
static void ask_for_everything(void)
{
    arena_alloc(arena_create("test"), SIZE_MAX);
}

static void impossible_sizes_abort(void **state)
{
    (void)state;
    assert_aborts(ask_for_a_product_that_wraps);
    assert_aborts(ask_for_everything);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_zeroed_and_aligned),
        cmocka_unit_test(blocks_do_not_overlap),
        cmocka_unit_test(blocks_stay_inside_their_chunk),
        cmocka_unit_test(a_request_larger_than_a_chunk_is_served),
        cmocka_unit_test(reset_forgets_and_zeroes_again),
        cmocka_unit_test(reset_keeps_the_memory),
        cmocka_unit_test(texts_are_copied),
        cmocka_unit_test(typed_requests_have_the_type),
        cmocka_unit_test(impossible_sizes_abort),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
