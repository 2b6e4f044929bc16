/* test_text.c - growing text, spelling distance, numbers for people. */
#include "stepsim/text.h"

#include <float.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "assert_aborts.h"
#include "assert_close.h"
#include "stepsim/arena.h"
#include "stepsim/rng.h"

static void text_grows(void **state)
{
    (void)state;
    struct text text = {0};
    assert_string_equal(text_string(&text), "");
    text_add(&text, "%s", "");
    assert_string_equal(text_string(&text), "");
    for (int i = 0; i < 1000; i++)
        text_add(&text, "%03d,", i);
    assert_int_equal(text.length, 4000);
    assert_int_equal(strlen(text_string(&text)), 4000);
    assert_memory_equal(text_string(&text) + 4 * 517, "517,", 4);
    text_add_bytes(&text, "a\0b", 3);
    assert_int_equal(text.length, 4003);
    assert_memory_equal(text.data + 4000, "a\0b", 4);
    text_free(&text);
    assert_null(text.data);
    text_add_bytes(&text, NULL, 0);
    assert_string_equal(text_string(&text), "");
    text_free(&text);
}

/* Each pair with the edits that turn one into the other, counted by hand. */
static void distance_counts_edits(void **state)
{
    (void)state;
    static const struct {
        const char *a, *b;
        unsigned distance;
    } pairs[] = {
        {"", "", 0},
        {"", "layers", 6},
        {"layers", "layers", 0},
        {"Layers", "lAYERS", 0},          /* case does not count */
        {"layer", "layers", 1},           /* insert s */
        {"hiden_size", "hidden_size", 1}, /* insert d */
        {"layesr", "layers", 1},          /* swap neighbours */
        {"kitten", "sitting", 3},         /* k-s, e-i, insert g */
        {"ca", "abc", 2},                 /* swap, then insert b between */
        {"a cat", "an act", 2},           /* insert n, swap */
        {"ab", "ba", 1},                  /* swap */
        {"abcdef", "badcfe", 3},          /* three swaps */
        {"abc", "xyz", 3},                /* all replaced */
        {"zero", "zer\xc3\xb6", 2},       /* bytes, not characters */
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        assert_int_equal(text_distance(pairs[i].a, pairs[i].b), pairs[i].distance);
        assert_int_equal(text_distance(pairs[i].b, pairs[i].a), pairs[i].distance);
    }
}

static char random_letter(struct rng *rng)
{
    return (char)('a' + rng_below(rng, 3));
}

/* A metric: zero only for equal words, symmetric, and no detour is shorter. */
static void distance_is_a_metric(void **state)
{
    (void)state;
    struct rng rng = rng_stream(1, 0);
    for (int round = 0; round < 3000; round++) {
        char words[3][8] = {{0}};
        for (int w = 0; w < 3; w++) {
            const uint64_t length = rng_below(&rng, 7);
            for (uint64_t i = 0; i < length; i++)
                words[w][i] = random_letter(&rng);
        }
        const unsigned ab = text_distance(words[0], words[1]);
        const unsigned bc = text_distance(words[1], words[2]);
        const unsigned ac = text_distance(words[0], words[2]);
        assert_int_equal(ab, text_distance(words[1], words[0]));
        assert_int_equal(ab == 0, strcmp(words[0], words[1]) == 0);
        assert_true(ac <= ab + bc);
    }
}

static void nearest_name_is_suggested(void **state)
{
    (void)state;
    static const char *const names[] = {"layers",   "hidden_size", "vocab_size", "experts",
                                        "schedule", "tp",          "top_k"};
    const size_t count = sizeof names / sizeof names[0];
    assert_string_equal(text_nearest("layesr", names, count), "layers");
    assert_string_equal(text_nearest("hiddensize", names, count), "hidden_size");
    assert_string_equal(text_nearest("EXPERT", names, count), "experts");
    assert_string_equal(text_nearest("TP", names, count), "tp");
    /* Two edits of five letters are more than a third; of six they are not. */
    assert_null(text_nearest("layxx", names, count));
    assert_string_equal(text_nearest("layxxs", names, count), "layers");
    assert_null(text_nearest("zzz", names, count));
    assert_null(text_nearest("", names, count));
    assert_null(text_nearest("layers", names, 0));
}

static void the_first_of_equally_near_names_wins(void **state)
{
    (void)state;
    static const char *const names[] = {"cat_b", "cat_a", "cat_c"};
    assert_string_equal(text_nearest("cat_x", names, 3), "cat_b");
}

/* A key of a megabyte is far from every name, and finding out takes no time. */
static void a_huge_word_is_cheap(void **state)
{
    (void)state;
    static const char *const names[] = {"layers", "hidden_size"};
    const size_t length = 1 << 20;
    char *word = malloc(length + 1);
    assert_non_null(word);
    memset(word, 'l', length);
    word[length] = '\0';
    assert_null(text_nearest(word, names, 2));
    free(word);
}

static void si_prefixes(void **state)
{
    (void)state;
    struct arena *arena = arena_create("test");
    assert_string_equal(text_si(arena, 1.46e6, ""), "1.46 M");
    assert_string_equal(text_si(arena, 371.5e9, "FLOP"), "371.5 GFLOP");
    assert_string_equal(text_si(arena, 294.912e12, "FLOP/s"), "294.9 TFLOP/s");
    assert_string_equal(text_si(arena, 12.0, "FLOP"), "12 FLOP");
    assert_string_equal(text_si(arena, 12.0, ""), "12");
    assert_string_equal(text_si(arena, 0.0, "B/s"), "0 B/s");
    assert_string_equal(text_si(arena, -2500.0, "B"), "-2.5 kB");
    assert_string_equal(text_si(arena, 18e12, ""), "18 T");
    assert_string_equal(text_si(arena, 1e25, "FLOP"), "10 YFLOP");
    assert_string_equal(text_si(arena, 3e-6, "s"), "3 us");
    assert_string_equal(text_si(arena, 1e-12, "s"), "1 ps");
    assert_string_equal(text_si(arena, 0.25, ""), "0.25");
    /* At the border the rounded number decides: never 1000 of anything. */
    assert_string_equal(text_si(arena, 999.9, "B"), "999.9 B");
    assert_string_equal(text_si(arena, 999.96, "B"), "1 kB");
    assert_string_equal(text_si(arena, 999960.0, "B"), "1 MB");
    assert_string_equal(text_si(arena, 0.99996, "s"), "1 s");
    assert_string_equal(text_si(arena, 0.9999, "s"), "999.9 ms");
    arena_destroy(arena);
}

static void bytes_in_gib(void **state)
{
    (void)state;
    struct arena *arena = arena_create("test");
    /* 2^30 * 12.3 */
    assert_string_equal(text_gib(arena, 13207024435.2), "12.3 GiB");
    assert_string_equal(text_gib(arena, 68719476736.0), "64.0 GiB");
    assert_string_equal(text_gib(arena, 200.0 * 1048576.0), "0.2 GiB");
    assert_string_equal(text_gib(arena, 1048576.0), "1.0 MiB");
    assert_string_equal(text_gib(arena, 512.0), "512 B");
    assert_string_equal(text_gib(arena, 0.0), "0 B");
    assert_string_equal(text_gib(arena, -68719476736.0), "-64.0 GiB");
    arena_destroy(arena);
}

static void durations(void **state)
{
    (void)state;
    struct arena *arena = arena_create("test");
    assert_string_equal(text_duration(arena, 4.56e-3), "4.56 ms");
    assert_string_equal(text_duration(arena, 17.24), "17.24 s");
    assert_string_equal(text_duration(arena, 119.0), "119 s");
    assert_string_equal(text_duration(arena, 150.0), "2.5 min");
    assert_string_equal(text_duration(arena, 9000.0), "2.5 h");
    assert_string_equal(text_duration(arena, 1.5 * 86400.0), "36 h");
    assert_string_equal(text_duration(arena, 143.2 * 86400.0), "143.2 days");
    assert_string_equal(text_duration(arena, 0.0), "0 s");
    arena_destroy(arena);
}

static void doubles_are_short_where_they_can(void **state)
{
    (void)state;
    struct arena *arena = arena_create("test");
    assert_string_equal(text_double(arena, 0.1), "0.1");
    assert_string_equal(text_double(arena, 0.3), "0.3");
    /* The sum is the next double after 0.3, and needs 17 digits. */
    assert_string_equal(text_double(arena, 0.1 + 0.2), "0.30000000000000004");
    assert_string_equal(text_double(arena, 2.949e14), "294900000000000");
    assert_string_equal(text_double(arena, 1e300), "1e+300");
    assert_string_equal(text_double(arena, -2.5), "-2.5");
    assert_string_equal(text_double(arena, 0.0), "0");
    assert_string_equal(text_double(arena, -0.0), "-0");
    assert_string_equal(text_double(arena, 9007199254740991.0), "9007199254740991");
    /* From 2^53 on not every integer is a double, and digits would promise more than there is. */
    assert_string_equal(text_double(arena, 9007199254740994.0), "9007199254740994");
    assert_string_equal(text_double(arena, 1e22), "1e+22");
    assert_string_equal(text_double(arena, DBL_TRUE_MIN), "5e-324");
    assert_string_equal(text_double(arena, DBL_MAX), "1.7976931348623157e+308");
    arena_destroy(arena);
}

/* Every finite double reads back as itself; 200,000 of them by their bits. */
static void doubles_read_back(void **state)
{
    (void)state;
    struct arena *arena = arena_create("test");
    struct rng rng = rng_stream(2, 0);
    for (int i = 0; i < 200000; i++) {
        const uint64_t bits = rng_next(&rng);
        double value;
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value))
            continue;
        assert_close(strtod(text_double(arena, value), NULL), value, 0.0);
        arena_reset(arena);
    }
    arena_destroy(arena);
}

static void doubles_do_not_follow_the_locale(void **state)
{
    (void)state;
    struct arena *arena = arena_create("test");
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "fr_FR"};
    bool changed = false;
    for (size_t i = 0; i < 4 && !changed; i++)
        changed = setlocale(LC_NUMERIC, names[i]) != NULL;
    if (!changed) {
        arena_destroy(arena);
        skip(); /* no such locale on this machine */
    }
    const char *text = text_double(arena, 0.25);
    setlocale(LC_NUMERIC, "C");
    assert_string_equal(text, "0.25");
    arena_destroy(arena);
}

static void print_nan(void)
{
    text_double(arena_create("test"), strtod("nan", NULL));
}

static void nan_has_no_decimal(void **state)
{
    (void)state;
    assert_aborts(print_nan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_grows),
        cmocka_unit_test(distance_counts_edits),
        cmocka_unit_test(distance_is_a_metric),
        cmocka_unit_test(nearest_name_is_suggested),
        cmocka_unit_test(the_first_of_equally_near_names_wins),
        cmocka_unit_test(a_huge_word_is_cheap),
        cmocka_unit_test(si_prefixes),
        cmocka_unit_test(bytes_in_gib),
        cmocka_unit_test(durations),
        cmocka_unit_test(doubles_are_short_where_they_can),
        cmocka_unit_test(doubles_read_back),
        cmocka_unit_test(doubles_do_not_follow_the_locale),
        cmocka_unit_test(nan_has_no_decimal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
