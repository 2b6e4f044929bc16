/*
 * validate_internal.h - what the rules of both formats share; private to src/validate.
 */
#ifndef STEPSIM_VALIDATE_INTERNAL_H
#define STEPSIM_VALIDATE_INTERNAL_H

#include "stepsim/validate.h"

/* The interleave of a source that states none: the largest divisor up to 8 of the layer slots
 * of a stage, if the microbatches fill whole groups of pp; 1 otherwise. */
unsigned mapping_unstated_vpp(unsigned slots, unsigned pp, unsigned microbatches);

/* The whole number at the start of a text, or the fallback; NULL is allowed. */
long atol_or(const char *text, long fallback);

#endif
