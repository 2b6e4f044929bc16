/* test_rng.c - the generators against published words, the distributions against their moments. */
#include "stepsim/rng.h"

#include "assert_aborts.h"
#include "assert_close.h"

/*
 * SplitMix64 from 0. The first words are those of the reference generator for
 * seed 0, printed in many test suites; rng_mix(a, b) is word b of the sequence
 * that starts at a. The third line is the defining step by itself: starting
 * later by one increment is the same as skipping a word.
 */
static void mixing_is_splitmix64(void **state)
{
    (void)state;
    assert_true(rng_mix(0, 0) == UINT64_C(0xE220A8397B1DCDAF));
    assert_true(rng_mix(0, 1) == UINT64_C(0x6E789E6AA1B965F4));
    assert_true(rng_mix(0, 2) == UINT64_C(0x06C45D188009454F));
    assert_true(rng_mix(UINT64_C(0x9E3779B97F4A7C15), 0) == rng_mix(0, 1));
    assert_true(rng_mix(1, 2) != rng_mix(2, 1));
}

/*
 * xoshiro256** from the state (1, 2, 3, 4), worked by hand. A word is
 * rotl(5 * s1, 7) * 9, that is 5 * 128 * 9 * s1 = 5760 * s1 while nothing leaves at the top.
 *   word 0: s1 = 2                                       -> 11520
 *     t = 2 << 17; s2 = 3^1 = 2; s3 = 4^2 = 6; s1 = 2^2 = 0; s0 = 1^6 = 7;
 *     s2 = 2 ^ 2^18 = 262146; s3 = rotl(6, 45)
 *   word 1: s1 = 0                                       -> 0
 *     t = 0; s2 = 262146^7 = 262149; s3 stays (s1 is 0); s1 = 0^262149 = 262149;
 *     s0 = 7 ^ rotl(6, 45); s3 = rotl(6, 90) = rotl(6, 26)
 *   word 2: s1 = 262149                                  -> 262149 * 5760 = 1509978240
 *     t = 262149 << 17 = 2^35 + 5*2^17; s2 = 262149 ^ 7 ^ 6*2^45 = 262146 + 6*2^45;
 *     s3 = 6*2^26 ^ 262149; s1 = 262149 ^ 262146 ^ 6*2^45 = 7 + 6*2^45
 *   word 3: s1 = 7 + 6*2^45: 5*s1 = 35 + 30*2^45; rotl 7: 35*128 + 30*2^52; times 9:
 *           40320 + 270*2^52 = 40320 + 1215971899390033920 = 1215971899390074240
 */
static void words_are_xoshiro256_starstar(void **state)
{
    (void)state;
    struct rng rng = {.state = {1, 2, 3, 4}};
    assert_true(rng_next(&rng) == 11520);
    assert_true(rng_next(&rng) == 0);
    assert_true(rng_next(&rng) == 1509978240);
    assert_true(rng_next(&rng) == UINT64_C(1215971899390074240));
}

/*
 * The state moves by a linear map over bits, so from the sum (xor) of two states
 * it reaches the sum of the two it reaches from each. A wrong shift, rotation or
 * order of the six assignments would still be linear, hence the words above; a
 * stray addition would pass those and fail here.
 */
static void the_state_moves_linearly(void **state)
{
    (void)state;
    struct rng a = rng_stream(11, 1);
    struct rng b = rng_stream(12, 2);
    struct rng sum;
    for (int i = 0; i < 4; i++)
        sum.state[i] = a.state[i] ^ b.state[i];
    for (int step = 0; step < 1000; step++) {
        rng_next(&a);
        rng_next(&b);
        rng_next(&sum);
        for (int i = 0; i < 4; i++)
            assert_true(sum.state[i] == (a.state[i] ^ b.state[i]));
    }
}

static void streams_depend_on_seed_and_entity_only(void **state)
{
    (void)state;
    struct rng one = rng_stream(7, 3);
    struct rng same = rng_stream(7, 3);
    struct rng other_seed = rng_stream(8, 3);
    struct rng other_entity = rng_stream(7, 4);
    int equal_seed = 0;
    int equal_entity = 0;
    for (int i = 0; i < 1000; i++) {
        const uint64_t word = rng_next(&one);
        assert_true(word == rng_next(&same));
        equal_seed += word == rng_next(&other_seed);
        equal_entity += word == rng_next(&other_entity);
    }
    assert_int_equal(equal_seed, 0);
    assert_int_equal(equal_entity, 0);
}

/*
 * Sample mean, variance and a share, over COUNT draws. The tolerances are five
 * standard errors of the estimate, taken from the distribution's own moments;
 * the seeds are fixed, so a pass stays a pass.
 */
enum { COUNT = 1000000 };

static void uniform_moments(void **state)
{
    (void)state;
    struct rng rng = rng_stream(1, 1);
    double sum = 0.0;
    double square_sum = 0.0;
    double lag_sum = 0.0;
    double previous = 0.5;
    for (int i = 0; i < COUNT; i++) {
        const double u = rng_uniform(&rng);
        assert_true(u >= 0.0 && u < 1.0);
        sum += u;
        square_sum += (u - 0.5) * (u - 0.5);
        lag_sum += (u - 0.5) * (previous - 0.5);
        previous = u;
    }
    /* Mean 1/2, variance 1/12 = 0.0833; se of the mean sqrt(1/12/N) = 2.9e-4,
     * of the variance sqrt((1/80 - 1/144)/N) = 7.5e-5, of the lag product 1/12/sqrt(N) = 8.3e-5. */
    assert_within(sum / COUNT, 0.5, 5 * 2.9e-4);
    assert_within(square_sum / COUNT, 1.0 / 12.0, 5 * 7.5e-5);
    assert_within(lag_sum / COUNT, 0.0, 5 * 8.3e-5);
}

static void the_largest_word_stays_below_one(void **state)
{
    (void)state;
    /* rotl(5 * s1, 7) * 9 is all ones for s1 = rotr(ones/9, 7)/5, both divisions modulo 2^64:
     * ones/9 = -1/9, and rotating is undone before dividing. 9 * 0x8E38E38E38E38E39 = 1 and
     * 5 * 0xCCCCCCCCCCCCCCCD = 1 modulo 2^64. */
    const uint64_t ninth = UINT64_C(0) - UINT64_C(0x8E38E38E38E38E39);
    const uint64_t turned = (ninth >> 7) | (ninth << 57);
    struct rng rng = {.state = {1, turned * UINT64_C(0xCCCCCCCCCCCCCCCD), 3, 4}};
    struct rng copy = rng;
    assert_true(rng_next(&copy) == UINT64_MAX);
    assert_close(rng_uniform(&rng), 1.0 - 0x1p-53, 0.0);
}

static void below_is_uniform(void **state)
{
    (void)state;
    struct rng rng = rng_stream(1, 2);
    enum { BOUND = 7 };
    int counts[BOUND] = {0};
    for (int i = 0; i < COUNT; i++) {
        const uint64_t k = rng_below(&rng, BOUND);
        assert_true(k < BOUND);
        counts[k]++;
    }
    /* Binomial: N/7 = 142857, standard deviation sqrt(N * 6/49) = 350. */
    for (int k = 0; k < BOUND; k++)
        assert_within(counts[k], COUNT / 7.0, 5 * 350.0);
    assert_true(rng_below(&rng, 1) == 0);
}

/*
 * A bound of 3 * 2^62 takes three quarters of the words; a remainder without
 * refusal would put half of the draws, not a third, into the lowest third.
 */
static void below_is_unbiased_for_huge_bounds(void **state)
{
    (void)state;
    struct rng rng = rng_stream(1, 3);
    const uint64_t third = UINT64_C(1) << 62;
    int low = 0;
    enum { DRAWS = 100000 };
    for (int i = 0; i < DRAWS; i++) {
        const uint64_t k = rng_below(&rng, 3 * third);
        assert_true(k < 3 * third);
        low += k < third;
    }
    /* sqrt(N * 2/9) = 149 */
    assert_within(low, DRAWS / 3.0, 5 * 149.0);
}

static void normal_moments(void **state)
{
    (void)state;
    struct rng rng = rng_stream(1, 4);
    double sum = 0.0;
    double square_sum = 0.0;
    double cube_sum = 0.0;
    int inside = 0;
    int tail = 0;
    for (int i = 0; i < COUNT; i++) {
        const double z = rng_normal(&rng);
        assert_true(isfinite(z));
        sum += z;
        square_sum += z * z;
        cube_sum += z * z * z;
        inside += fabs(z) < 1.0;
        tail += z > 3.0;
    }
    /* se: mean 1e-3, variance sqrt(2/N) = 1.41e-3, third moment sqrt(15/N) = 3.9e-3. */
    assert_within(sum / COUNT, 0.0, 5 * 1e-3);
    assert_within(square_sum / COUNT, 1.0, 5 * 1.41e-3);
    assert_within(cube_sum / COUNT, 0.0, 5 * 3.9e-3);
    /* P(|z| < 1) = erf(1/sqrt 2) = 0.682689, P(z > 3) = 0.00134990. */
    assert_within((double)inside / COUNT, 0.682689, 5 * 4.7e-4);
    assert_within((double)tail / COUNT, 0.00134990, 5 * 3.7e-5);
}

/* The polar method again, with the C library's logarithm: the same to a few roundings. */
static void the_logarithm_is_one(void **state)
{
    (void)state;
    struct rng rng = rng_stream(1, 5);
    for (int i = 0; i < 100000; i++) {
        struct rng copy = rng;
        double x, y, square;
        do {
            x = 2.0 * rng_uniform(&copy) - 1.0;
            y = 2.0 * rng_uniform(&copy) - 1.0;
            square = x * x + y * y;
        } while (square >= 1.0 || square == 0.0);
        assert_close(rng_normal(&rng), x * sqrt(-2.0 * log(square) / square), 1e-15);
    }
}

/*
 * Gamma(k): mean k, variance k, third central moment 2k, E log = digamma(k), which
 * sees the lower tail that small shapes are about.
 *   digamma(0.1) = -10.423755, (0.5) = -gamma - 2 ln 2 = -1.963510, (1) = -gamma = -0.577216,
 *   (2.5) = digamma(0.5) + 2 + 2/3 = 0.703157, (30) = 3.384438
 * Variance of log: trigamma(k) = 101.4333, pi^2/2 = 4.934802, pi^2/6, 0.490358, 0.033895.
 */
static void gamma_moments(void **state)
{
    (void)state;
    static const struct {
        double shape, log_mean, log_variance;
    } rows[] = {{0.1, -10.423755, 101.4333},
                {0.5, -1.963510, 4.934802},
                {1.0, -0.577216, 1.644934},
                {2.5, 0.703157, 0.490358},
                {30.0, 3.384438, 0.033895}};
    for (uint64_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        const double k = rows[r].shape;
        struct rng rng = rng_stream(2, r);
        double sum = 0.0;
        double square_sum = 0.0;
        double log_sum = 0.0;
        for (int i = 0; i < COUNT; i++) {
            const double x = rng_gamma(&rng, k);
            assert_true(x > 0.0 && isfinite(x));
            sum += x;
            square_sum += (x - k) * (x - k);
            log_sum += log(x);
        }
        /* The fourth central moment is 3k^2 + 6k, so the variance has se sqrt((2k^2 + 6k)/N). */
        assert_within(sum / COUNT, k, 5 * sqrt(k / COUNT));
        assert_within(square_sum / COUNT, k, 5 * sqrt((2 * k * k + 6 * k) / COUNT));
        assert_within(log_sum / COUNT, rows[r].log_mean, 5 * sqrt(rows[r].log_variance / COUNT));
    }
}

/*
 * A gamma number of shape k is one of shape k + 1 times U^(1/k), with an independent uniform U
 * (the same paper, section 6). The stream gives U first. The power is the C library's.
 */
static void small_shapes_are_scaled_larger_ones(void **state)
{
    (void)state;
    struct rng rng = rng_stream(4, 0);
    for (int i = 0; i < 100000; i++) {
        const double shape = 0.01 + 0.98 * i / 100000;
        struct rng copy = rng;
        const double u = 1.0 - rng_uniform(&copy);
        const double larger = rng_gamma(&copy, shape + 1.0);
        assert_close(rng_gamma(&rng, shape), larger * pow(u, 1.0 / shape), 1e-12);
    }
}

/* Shapes so small that the draw underflows give 0 and never a NaN or an endless loop. */
static void tiny_shapes_give_zero_or_more(void **state)
{
    (void)state;
    struct rng rng = rng_stream(3, 0);
    for (int i = 0; i < 10000; i++) {
        const double x = rng_gamma(&rng, 1e-6);
        assert_true(x >= 0.0 && isfinite(x));
        assert_true(rng_gamma(&rng, 1e-308) >= 0.0);
    }
}

static void draw_below_zero_bound(void)
{
    struct rng rng = rng_stream(1, 1);
    rng_below(&rng, 0);
}

static void draw_gamma_of_zero(void)
{
    struct rng rng = rng_stream(1, 1);
    rng_gamma(&rng, 0.0);
}

static void nonsense_is_a_bug(void **state)
{
    (void)state;
    assert_aborts(draw_below_zero_bound);
    assert_aborts(draw_gamma_of_zero);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mixing_is_splitmix64),
        cmocka_unit_test(words_are_xoshiro256_starstar),
        cmocka_unit_test(the_state_moves_linearly),
        cmocka_unit_test(streams_depend_on_seed_and_entity_only),
        cmocka_unit_test(uniform_moments),
        cmocka_unit_test(the_largest_word_stays_below_one),
        cmocka_unit_test(below_is_uniform),
        cmocka_unit_test(below_is_unbiased_for_huge_bounds),
        cmocka_unit_test(normal_moments),
        cmocka_unit_test(the_logarithm_is_one),
        cmocka_unit_test(gamma_moments),
        cmocka_unit_test(small_shapes_are_scaled_larger_ones),
        cmocka_unit_test(tiny_shapes_give_zero_or_more),
        cmocka_unit_test(nonsense_is_a_bug),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
