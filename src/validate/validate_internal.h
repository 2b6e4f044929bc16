/*
 * validate_internal.h - what the rules of both formats share; private to src/validate.
 */
#ifndef STEPSIM_VALIDATE_INTERNAL_H
#define STEPSIM_VALIDATE_INTERNAL_H

#include "stepsim/validate.h"

/* The interleave of a source that states none: the largest divisor up to 8 of the layer slots
 * of a stage, if the microbatches fill whole groups of pp; 1 otherwise. */
unsigned mapping_unstated_vpp(unsigned slots, unsigned pp, unsigned microbatches);

/* Do the columns of a row hold what an entry's `when` says; without it, yes. */
bool table_applies(const struct measurement *row, const struct yaml_tree *entry);

/* Fused matmul-collectives are modelled for sequence parallelism: without it, or without tensor
 * ranks, the switch is dropped and the all-reduce runs beside the weight gradient. */
void mapping_drop_fusion(struct mapping *mapping);

/* The whole number at the start of a text, or the fallback; NULL is allowed. */
long atol_or(const char *text, long fallback);

#endif
