/*
 * rng.h - seeded random streams: xoshiro256** seeded through SplitMix64.
 *
 * A stream belongs to (seed, entity id), never to call order, so a result does
 * not depend on which worker drew first. The same numbers on every machine.
 */
#ifndef STEPSIM_RNG_H
#define STEPSIM_RNG_H

#include <stdint.h>

struct rng {
    uint64_t state[4];
};

/* A stream for one entity; mix ids of several levels with rng_mix(). */
struct rng rng_stream(uint64_t seed, uint64_t entity);
/* Hash of two words, for building entity ids. */
uint64_t rng_mix(uint64_t a, uint64_t b);

uint64_t rng_next(struct rng *rng);
/* Uniform in [0, 1), 53 bits. */
double rng_uniform(struct rng *rng);
/* Uniform integer in [0, bound), unbiased; bound at least 1. */
uint64_t rng_below(struct rng *rng, uint64_t bound);
/* Standard normal (Marsaglia polar method). */
double rng_normal(struct rng *rng);
/* Gamma(shape, 1) by Marsaglia and Tsang, shape above 0; for Dirichlet draws. */
double rng_gamma(struct rng *rng, double shape);

#endif
