/*
 * scenario_builder.h - scenarios written by hand, for tests of what reads a scenario.
 *
 * builder_scenario() is a small dense job on 8 devices in which everything is legal and
 * every degree is 1, so that a test sets only what matters to it. The builder_model
 * functions return public architectures in the words of the cases (tests/data/cases.csv),
 * independent of configs/models.
 *
 * Origins are NULL: errors of such a scenario have no position.
 */
#ifndef TEST_SCENARIO_BUILDER_H
#define TEST_SCENARIO_BUILDER_H

#include "stepsim/scenario.h"

/* 8 devices in nodes of 8, a dense model of 8 layers (hidden 512, 8 heads of 64, FFN 2048,
 * vocabulary 32000), sequence 1024, microbatches of 1, global batch 64, split even. */
struct scenario builder_scenario(void);

/* Two levels: nodes of `node` devices, then everything. */
struct cluster_spec builder_cluster(uint32_t node);

/* Gated FFN, RMSNorm, rotary positions, no biases, untied, no MTP. */
struct dense_shape {
    uint32_t layers, hidden, ffn, heads, kv_heads, head_dim, vocab;
};
struct model_spec builder_dense(struct dense_shape shape);

/* The model of this name in the case table ("Mixtral-8x7B"), without MTP; asserts that it
 * exists. */
struct model_spec builder_model(const char *name);

/* MLA with 128 + 64 key widths and values of 128, kv_lora 512. */
struct attention_spec builder_mla(uint32_t heads, uint32_t q_lora_rank);

/* Experts behind `first_dense_layers` dense layers, every layer MoE from there. */
struct moe_shape {
    uint32_t experts, top_k, intermediate, shared, first_dense_layers;
};
struct moe_spec builder_moe(struct moe_shape shape);

#endif
