/*
 * rng.c - xoshiro256** and the distributions on top of it.
 *
 * Generator and seeding follow Blackman and Vigna, "Scrambled linear
 * pseudorandom number generators" (ACM TOMS 47(4), 2021), seeding through the
 * SplitMix64 of Steele, Lea and Flood (OOPSLA 2014).
 *
 * The C library may compute log and exp differently from machine to machine
 * (with and without fused multiply-add, from one version to the next), so the
 * distributions use the two functions below, which need only the operations
 * that IEEE 754 fixes to the last bit.
 */
#include "stepsim/rng.h"

#include <math.h>

#include "stepsim/error.h"

/* ---- The generator ---- */

static uint64_t rotate_left(uint64_t word, unsigned bits)
{
    return (word << bits) | (word >> (64 - bits));
}

/* Output number b of the SplitMix64 sequence that starts at a. */
uint64_t rng_mix(uint64_t a, uint64_t b)
{
    uint64_t word = a + (b + 1) * UINT64_C(0x9E3779B97F4A7C15);
    word = (word ^ (word >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    word = (word ^ (word >> 27)) * UINT64_C(0x94D049BB133111EB);
    return word ^ (word >> 31);
}

struct rng rng_stream(uint64_t seed, uint64_t entity)
{
    const uint64_t start = rng_mix(seed, entity);
    struct rng rng;
    /* Four different words, since the sequence never repeats early: the state is never zero. */
    for (uint64_t i = 0; i < 4; i++)
        rng.state[i] = rng_mix(start, i);
    return rng;
}

uint64_t rng_next(struct rng *rng)
{
    uint64_t *s = rng->state;
    const uint64_t result = rotate_left(s[1] * 5, 7) * 9;
    const uint64_t shifted = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= shifted;
    s[3] = rotate_left(s[3], 45);
    return result;
}

/* ---- Logarithm and exponential from exact operations ---- */

/* ln 2 in two parts; the first has 21 zero bits at its end, so its small multiples are exact. */
#define LN2_HIGH 0x1.62e42fee00000p-1
#define LN2_LOW  0x1.a39ef35793c76p-33

/* ln x for x > 0: x = m * 2^e, ln m = 2 artanh((m-1)/(m+1)), |argument| below 0.172. */
static double exact_log(double x)
{
    int exponent;
    double mantissa = frexp(x, &exponent);
    if (mantissa < 0.70710678118654752) {
        mantissa *= 2.0;
        exponent--;
    }
    const double ratio = (mantissa - 1.0) / (mantissa + 1.0);
    const double square = ratio * ratio;
    double series = 0.0;
    for (int power = 23; power >= 3; power -= 2)
        series = (series + 1.0 / power) * square;
    return exponent * LN2_HIGH + (2.0 * (ratio + ratio * series) + exponent * LN2_LOW);
}

/* e^x for x <= 0: x = k ln 2 + r with |r| below 0.347, the series of e^r to the 14th power. */
static double exact_exp(double x)
{
    if (x < -745.0)
        return 0.0; /* below the smallest double */
    const double k = nearbyint(x / (LN2_HIGH + LN2_LOW));
    const double rest = (x - k * LN2_HIGH) - k * LN2_LOW;
    double series = 1.0;
    for (int power = 14; power >= 1; power--)
        series = 1.0 + rest * series / power;
    return ldexp(series, (int)k);
}

/* ---- Distributions ---- */

double rng_uniform(struct rng *rng)
{
    return (double)(rng_next(rng) >> 11) * 0x1p-53;
}

/* Words below 2^64 mod bound are refused; what is left divides evenly. */
uint64_t rng_below(struct rng *rng, uint64_t bound)
{
    ASSERT(bound >= 1);
    const uint64_t refused_below = (UINT64_MAX - bound + 1) % bound;
    uint64_t word;
    do {
        word = rng_next(rng);
    } while (word < refused_below);
    return word % bound;
}

/*
 * Polar method: a point in the unit disc gives two normal numbers. The second is
 * thrown away, because a stream has no state beside the generator's.
 */
double rng_normal(struct rng *rng)
{
    double x, y, square;
    do {
        x = 2.0 * rng_uniform(rng) - 1.0;
        y = 2.0 * rng_uniform(rng) - 1.0;
        square = x * x + y * y;
    } while (square >= 1.0 || square == 0.0);
    return x * sqrt(-2.0 * exact_log(square) / square);
}

/*
 * Marsaglia and Tsang, "A simple method for generating gamma variables" (ACM TOMS
 * 26(3), 2000), without their quick test. A shape below 1 is drawn at shape + 1 and
 * multiplied by U^(1/shape); for very small shapes the product may be 0.
 */
double rng_gamma(struct rng *rng, double shape)
{
    ASSERT(isfinite(shape) && shape > 0.0);
    double factor = 1.0;
    if (shape < 1.0) {
        const double uniform = 1.0 - rng_uniform(rng); /* in (0, 1] */
        factor = exact_exp(exact_log(uniform) / shape);
        shape += 1.0;
    }
    const double d = shape - 1.0 / 3.0;
    const double c = 1.0 / sqrt(9.0 * d);
    for (;;) {
        const double normal = rng_normal(rng);
        const double root = 1.0 + c * normal;
        if (root <= 0.0)
            continue;
        const double cube = root * root * root;
        const double uniform = 1.0 - rng_uniform(rng);
        if (exact_log(uniform) < 0.5 * normal * normal + d - d * cube + d * exact_log(cube))
            return factor * d * cube;
    }
}
