/*
 * ffn_ops.h - pieces of a feed-forward network that dense and MoE layers share.
 *
 * Private to src/workload.
 */
#ifndef STEPSIM_FFN_OPS_H
#define STEPSIM_FFN_OPS_H

#include "op_writer.h"

/* 2 for a gated FFN (gate and up), 1 for a plain one. */
double ffn_gates(const struct op_sizes *sizes);
/* Bytes of the activation function over `elements` outputs. */
double activation_bytes(const struct op_sizes *sizes, double elements, bool backward);
double activation_kernels(const struct op_sizes *sizes);

int16_t ffn_forward(struct op_writer *writer, bool shared, int16_t after);
int16_t ffn_backward(struct op_writer *writer, bool shared, int16_t after);
void ffn_saved(const struct op_sizes *sizes, bool shared, struct block_ops *block);
/* Input and norm in front of an FFN or of the experts. */
void ffn_entry_saved(const struct op_sizes *sizes, struct block_ops *block);
/* Adds the residual stream. */
void ffn_residual(struct op_writer *writer, const char *name, int16_t after);

#endif
