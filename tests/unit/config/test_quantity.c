/* test_quantity.c - units, exact conversion, and the numbers that are refused. */
#include "stepsim/quantity.h"

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "assert_close.h"

static double parsed(const char *text, enum dimension dimension)
{
    double value = NAN;
    struct quantity_problem problem = {.message = ""};
    if (!quantity_parse(text, dimension, &value, &problem))
        print_error("\"%s\": %s\n", text, problem.message);
    return value;
}

/* Exactly the double that a C compiler makes of the written SI value. */
#define assert_exact(text, dimension, expected)                                                    \
    assert_true(parsed(text, dimension) >= (expected) && parsed(text, dimension) <= (expected))

static void assert_refused_quantity(const char *text, enum dimension dimension,
                                    enum error_code code)
{
    double value = 0.0;
    struct quantity_problem problem = {.message = ""};
    if (quantity_parse(text, dimension, &value, &problem) || problem.code != code) {
        print_error("\"%s\" gave %g, code %s, message %s\n", text, value,
                    error_code_name(problem.code), problem.message);
        fail();
    }
    assert_true(strlen(problem.message) > 10);
}

static void bytes(void **state)
{
    (void)state;
    assert_exact("0 B", DIMENSION_BYTES, 0.0);
    assert_exact("1 kB", DIMENSION_BYTES, 1000.0);
    assert_exact("200 MB", DIMENSION_BYTES, 200e6);
    assert_exact("64 GB", DIMENSION_BYTES, 64e9);
    assert_exact("64 GiB", DIMENSION_BYTES, 68719476736.0); /* 64 * 2^30 */
    assert_exact("64GiB", DIMENSION_BYTES, 68719476736.0);
    assert_exact("1.5 KiB", DIMENSION_BYTES, 1536.0);
    assert_exact("2 TiB", DIMENSION_BYTES, 2199023255552.0); /* 2^41 */
    assert_exact("1 PB", DIMENSION_BYTES, 1e15);
}

static void rates(void **state)
{
    (void)state;
    assert_exact("196 GB/s", DIMENSION_BYTES_PER_S, 196e9);
    assert_exact("1.6 TB/s", DIMENSION_BYTES_PER_S, 1.6e12);
    /* A bit is an eighth of a byte: 200 Gb/s are 25 GB/s. */
    assert_exact("200 Gb/s", DIMENSION_BYTES_PER_S, 25e9);
    assert_exact("200 Gbps", DIMENSION_BYTES_PER_S, 25e9);
    assert_exact("200 Gbit/s", DIMENSION_BYTES_PER_S, 25e9);
    assert_exact("1 GiB/s", DIMENSION_BYTES_PER_S, 1073741824.0);
    assert_exact("294.9 TFLOP/s", DIMENSION_FLOP_PER_S, 294.9e12);
    assert_exact("1 PFLOP/s", DIMENSION_FLOP_PER_S, 1e15);
    assert_exact("9000 GFLOP/s", DIMENSION_FLOP_PER_S, 9e12);
}

static void times(void **state)
{
    (void)state;
    assert_exact("3 us", DIMENSION_SECONDS, 3e-6);
    assert_exact("3 \xc2\xb5s", DIMENSION_SECONDS, 3e-6);
    assert_exact("3 \xce\xbcs", DIMENSION_SECONDS, 3e-6);
    assert_exact("0.28 s", DIMENSION_SECONDS, 0.28);
    assert_exact("7 ns", DIMENSION_SECONDS, 7e-9);
    assert_exact("5 ps", DIMENSION_SECONDS, 5e-12);
    /* One rounding whatever the unit, so that one value has one hash. */
    assert_exact("200 us", DIMENSION_SECONDS, parsed("0.2 ms", DIMENSION_SECONDS));
    assert_exact("1.1 us", DIMENSION_SECONDS, parsed("1100 ns", DIMENSION_SECONDS));
}

static void counts_and_ratios(void **state)
{
    (void)state;
    assert_exact("18T", DIMENSION_COUNT, 18e12);
    assert_exact("718B", DIMENSION_COUNT, 718e9);
    assert_exact("718.5 B", DIMENSION_COUNT, 718.5e9);
    assert_exact("7M", DIMENSION_COUNT, 7e6);
    assert_exact("4k", DIMENSION_COUNT, 4000.0);
    assert_exact("1000", DIMENSION_COUNT, 1000.0);
    assert_exact("35 %", DIMENSION_RATIO, 0.35);
    assert_exact("0.35", DIMENSION_RATIO, 0.35);
    assert_exact("-2.5e-3", DIMENSION_NUMBER, -2.5e-3);
    assert_exact("+1", DIMENSION_NUMBER, 1.0);
    assert_exact("-0", DIMENSION_NUMBER, 0.0);
}

/* Values beyond the exact fast path against the C library's own rounding. */
static void long_numbers_round_like_strtod(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "0.1234567890123456789",
        "123456789012345678",
        "9007199254740993",
        "1.7976931348623157e-300",
        "8.98846567431158e20",
        "5e-324",
        "0.000000000000000000000000000000123456789",
        "1234567890.0987654321e-11",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        assert_exact(texts[i], DIMENSION_NUMBER, strtod(texts[i], NULL));
}

static void locale_does_not_matter(void **state)
{
    (void)state;
    static const char *const locales[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "C.UTF-8"};
    for (size_t i = 0; i < 3; i++) {
        setlocale(LC_ALL, locales[i]); /* where it is installed */
        assert_exact("0.12345678901234567", DIMENSION_NUMBER, 0.12345678901234567);
    }
    setlocale(LC_ALL, "C");
}

static void missing_units(void **state)
{
    (void)state;
    assert_refused_quantity("64", DIMENSION_BYTES, ERROR_missing_unit);
    assert_refused_quantity("64 ", DIMENSION_BYTES_PER_S, ERROR_missing_unit);
    assert_refused_quantity("3e-6", DIMENSION_SECONDS, ERROR_missing_unit);
    assert_refused_quantity("300", DIMENSION_FLOP_PER_S, ERROR_missing_unit);
}

static void wrong_units(void **state)
{
    (void)state;
    assert_refused_quantity("196 GB", DIMENSION_BYTES_PER_S, ERROR_bad_unit);
    assert_refused_quantity("196 GB/s", DIMENSION_BYTES, ERROR_bad_unit);
    assert_refused_quantity("196 gb/s", DIMENSION_BYTES_PER_S, ERROR_bad_unit);
    assert_refused_quantity("196 Gib", DIMENSION_BYTES, ERROR_bad_unit);
    assert_refused_quantity("196 KB", DIMENSION_BYTES, ERROR_bad_unit);
    assert_refused_quantity("300 TFLOPS", DIMENSION_FLOP_PER_S, ERROR_bad_unit);
    assert_refused_quantity("3 minutes", DIMENSION_SECONDS, ERROR_bad_unit);
    assert_refused_quantity("3 us us", DIMENSION_SECONDS, ERROR_bad_unit);
    assert_refused_quantity("8k", DIMENSION_NUMBER, ERROR_bad_unit);
    assert_refused_quantity("1e", DIMENSION_NUMBER, ERROR_bad_unit);
    assert_refused_quantity("1e+", DIMENSION_NUMBER, ERROR_bad_unit);
    assert_refused_quantity("35%%", DIMENSION_RATIO, ERROR_bad_unit);
}

static void not_numbers(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",   " 1", "nan", ".nan", "inf",   "-inf", ".inf", "0x10", "0o17",  "0b1",
        "01", "00", "1.",  ".5",   "1_000", "-",    "+",    "--1",  "1,000", "abc",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        double value = 0.0;
        struct quantity_problem problem;
        if (quantity_parse(texts[i], DIMENSION_NUMBER, &value, &problem)) {
            print_error("\"%s\" was taken for %g\n", texts[i], value);
            fail();
        }
    }
    assert_refused_quantity("01 GiB", DIMENSION_BYTES, ERROR_bad_number);
    assert_refused_quantity("1_000 GiB", DIMENSION_BYTES, ERROR_bad_number);
    assert_refused_quantity("GiB", DIMENSION_BYTES, ERROR_bad_number);
}

static void too_large(void **state)
{
    (void)state;
    assert_refused_quantity("1e300 GiB", DIMENSION_BYTES, ERROR_out_of_range);
    assert_refused_quantity("1e22", DIMENSION_NUMBER, ERROR_out_of_range);
    assert_refused_quantity("-1e22", DIMENSION_NUMBER, ERROR_out_of_range);
    assert_refused_quantity("1e999999999999", DIMENSION_NUMBER, ERROR_out_of_range);
    assert_exact("1e21", DIMENSION_NUMBER, 1e21);
    assert_exact("1e-999999999999", DIMENSION_NUMBER, 0.0);
    char digits[200];
    memset(digits, '7', sizeof digits - 1);
    digits[sizeof digits - 1] = '\0';
    assert_refused_quantity(digits, DIMENSION_NUMBER, ERROR_bad_number);
}

static void whole_numbers(void **state)
{
    (void)state;
    struct quantity_problem problem;
    uint64_t value = 7;
    assert_true(quantity_parse_uint("0", 10, &value, &problem));
    assert_int_equal(value, 0);
    assert_true(quantity_parse_uint("10", 10, &value, &problem));
    assert_int_equal(value, 10);
    assert_false(quantity_parse_uint("11", 10, &value, &problem));
    assert_int_equal(problem.code, ERROR_out_of_range);
    assert_true(quantity_parse_uint("18446744073709551615", UINT64_MAX, &value, &problem));
    assert_true(value == UINT64_MAX);
    assert_false(quantity_parse_uint("18446744073709551616", UINT64_MAX, &value, &problem));
    assert_int_equal(problem.code, ERROR_out_of_range);
    assert_false(quantity_parse_uint("9", 8, &value, &problem));
    assert_false(quantity_parse_uint("-1", 8, &value, &problem));
    assert_int_equal(problem.code, ERROR_out_of_range);
    static const char *const refused[] = {"1.0", "1e3", "8k", "", "08", "0x8", "8 ", "8B", "1_0"};
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        assert_false(quantity_parse_uint(refused[i], 1000, &value, &problem));
        assert_int_equal(problem.code, ERROR_bad_number);
    }
}

static void every_example_is_accepted(void **state)
{
    (void)state;
    for (int d = DIMENSION_BYTES; d <= DIMENSION_LAST; d++) {
        const enum dimension dimension = (enum dimension)d;
        char example[32];
        snprintf(example, sizeof example, "%s", quantity_example(dimension));
        char *or_else = strstr(example, " or ");
        if (or_else)
            *or_else = '\0';
        assert_true(parsed(example, dimension) > 0.0);
        assert_true(strlen(quantity_units(dimension)) > 0);
        assert_int_equal(quantity_pattern(dimension)[0], '^');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes),
        cmocka_unit_test(rates),
        cmocka_unit_test(times),
        cmocka_unit_test(counts_and_ratios),
        cmocka_unit_test(long_numbers_round_like_strtod),
        cmocka_unit_test(locale_does_not_matter),
        cmocka_unit_test(missing_units),
        cmocka_unit_test(wrong_units),
        cmocka_unit_test(not_numbers),
        cmocka_unit_test(too_large),
        cmocka_unit_test(whole_numbers),
        cmocka_unit_test(every_example_is_accepted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
