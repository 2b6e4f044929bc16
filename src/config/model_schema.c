/*
 * model_schema.c - the keys of configs/models/NAME.yaml and of `model:` in a scenario.
 */
#include "config/schema_rows.h"

#define SCHEMA_STRUCT struct model_spec

#define MHA         (1u << ATTENTION_MHA)
#define GQA         (1u << ATTENTION_GQA)
#define MLA         (1u << ATTENTION_MLA)
#define HAS_EXPERTS WHEN("moe.experts", SCHEMA_WHEN_NONZERO)

static const struct schema_choice norm_kinds[] = {
    [NORM_RMS] = {"rms", "Root mean square norm, one weight per channel.", NULL},
    [NORM_LAYER] = {"layer", "Layer norm, weight and bias per channel.", NULL},
};

static const struct schema_choice position_kinds[] = {
    [POSITION_ROPE] = {"rope", "Rotary embedding inside attention, no parameters.", NULL},
    [POSITION_LEARNED] = {"learned", "A table of max_position rows beside the embedding.", NULL},
    [POSITION_NONE] = {"none", "No position information.", NULL},
};

static const struct schema_choice ffn_kinds[] = {
    [FFN_GATED] = {"gated", "Gate, up and down matrices (SwiGLU).", NULL},
    [FFN_PLAIN] = {"plain", "Up and down matrices.", NULL},
};

static const struct schema_choice attention_kinds[] = {
    [ATTENTION_MHA] = {"mha", "As many key-value heads as query heads.", NULL},
    [ATTENTION_GQA] = {"gqa", "Groups of query heads share a key-value head.", NULL},
    [ATTENTION_MLA] = {"mla", "Keys and values go through a low-rank bottleneck.", NULL},
};

static const struct schema_row rows[] = {
    {ROW(SCHEMA_STRING, "title", title), .flags = SCHEMA_LABEL, .example = "DeepSeek-V3",
     .meaning = "Name for people."},
    {ROW(SCHEMA_STRING, "source", source), .flags = SCHEMA_LABEL,
     .example = "config.json of the release", .meaning = "Where the numbers were published."},
    {ROW(SCHEMA_UINT, "layers", layers), RANGE(1, 100000), REQUIRED("61"),
     .meaning = "Transformer layers, without MTP layers."},
    {ROW(SCHEMA_UINT, "hidden_size", hidden_size), RANGE(1, ELEMENTS_MAX), REQUIRED("7168"),
     .meaning = "Width of the residual stream."},
    {ROW(SCHEMA_UINT, "vocab_size", vocab_size), RANGE(1, ELEMENTS_MAX), REQUIRED("129280"),
     .meaning = "Rows of the embedding and of the head, padding included."},
    {ROW(SCHEMA_UINT, "max_position", max_position), RANGE(0, ELEMENTS_MAX), .fallback = "0",
     .meaning = "Rows of a learned position table; not used by other positions."},
    {ROW(SCHEMA_CHOICE, "position", position), CHOICES(position_kinds), .fallback = "rope",
     .meaning = "How positions enter the model."},
    {ROW(SCHEMA_BOOL, "tied_embedding", tied_embedding), .fallback = "false",
     .meaning = "The head uses the embedding's matrix."},
    {ROW(SCHEMA_UINT, "mtp_layers", mtp_layers), RANGE(0, 1000), .fallback = "0",
     .meaning = "Multi-token-prediction layers behind the last layer, each with a pass through the "
                "head."},
    {ROW(SCHEMA_CHOICE, "norm.kind", norm_kind), CHOICES(norm_kinds), .fallback = "rms",
     .meaning = "Norm before attention and feed-forward."},
    {ROW(SCHEMA_UINT, "norm.per_layer", norms_per_layer), RANGE(2, 4), .fallback = "2",
     .meaning = "Norms in a layer: 2, or 4 for sandwich norm."},
    {ROW(SCHEMA_CHOICE, "ffn.kind", ffn_kind), CHOICES(ffn_kinds), .fallback = "gated",
     .meaning = "Matrices of a feed-forward block, dense and expert alike."},
    {ROW(SCHEMA_UINT, "ffn.intermediate_size", ffn_intermediate_size), RANGE(0, ELEMENTS_MAX),
     .fallback = "0",
     .meaning = "Inner width of the dense feed-forward block; needed if any layer is dense."},
    {ROW(SCHEMA_BOOL, "ffn.bias", ffn_bias), .fallback = "false",
     .meaning = "Bias on the feed-forward matrices."},
    {ROW(SCHEMA_CHOICE, "attention.kind", attention.kind), CHOICES(attention_kinds),
     REQUIRED("mla"), .meaning = "Family of the attention block."},
    {ROW(SCHEMA_UINT, "attention.heads", attention.heads), RANGE(1, 65536), REQUIRED("128"),
     .meaning = "Query heads."},
    {ROW(SCHEMA_UINT, "attention.kv_heads", attention.kv_heads), RANGE(1, 65536), .example = "8",
     WHEN("attention.kind", MHA | GQA),
     .meaning = "Key-value heads; needed for gqa, equal to heads for mha."},
    {ROW(SCHEMA_UINT, "attention.head_dim", attention.head_dim), RANGE(1, 65536), REQUIRED("128"),
     WHEN("attention.kind", MHA | GQA), .meaning = "Width of a query, key or value head."},
    {ROW(SCHEMA_UINT, "attention.q_lora_rank", attention.q_lora_rank), RANGE(0, ELEMENTS_MAX),
     .fallback = "0", WHEN("attention.kind", MLA),
     .meaning = "Width of the query bottleneck; 0 where queries are projected directly."},
    {ROW(SCHEMA_UINT, "attention.kv_lora_rank", attention.kv_lora_rank), RANGE(1, ELEMENTS_MAX),
     REQUIRED("512"), WHEN("attention.kind", MLA), .meaning = "Width of the key-value bottleneck."},
    {ROW(SCHEMA_UINT, "attention.qk_nope_head_dim", attention.qk_nope_head_dim), RANGE(1, 65536),
     REQUIRED("128"), WHEN("attention.kind", MLA),
     .meaning = "Part of a query or key head without rotary embedding."},
    {ROW(SCHEMA_UINT, "attention.qk_rope_head_dim", attention.qk_rope_head_dim), RANGE(0, 65536),
     REQUIRED("64"), WHEN("attention.kind", MLA),
     .meaning = "Part of a query or key head with rotary embedding, shared by the heads of a key."},
    {ROW(SCHEMA_UINT, "attention.v_head_dim", attention.v_head_dim), RANGE(1, 65536),
     REQUIRED("128"), WHEN("attention.kind", MLA), .meaning = "Width of a value head."},
    {ROW(SCHEMA_UINT, "attention.window", attention.window), RANGE(0, ELEMENTS_MAX),
     .fallback = "0", .meaning = "Keys that a query sees in a sliding window; 0 for all."},
    {ROW(SCHEMA_UINT, "attention.window_every", attention.window_every), RANGE(1, 100000),
     .fallback = "1", WHEN("attention.window", SCHEMA_WHEN_NONZERO),
     .meaning = "1 where every layer has the window, 2 where every second layer has it."},
    {ROW(SCHEMA_BOOL, "attention.bias", attention.bias), .fallback = "false",
     .meaning = "Bias on the query, key and value projections."},
    {ROW(SCHEMA_BOOL, "attention.out_bias", attention.out_bias), .fallback = "false",
     .meaning = "Bias on the output projection."},
    {ROW(SCHEMA_BOOL, "attention.qk_norm", attention.qk_norm), .fallback = "false",
     .meaning = "A norm over each query and key head."},
    {ROW(SCHEMA_UINT, "moe.experts", moe.experts), RANGE(0, 1000000), .fallback = "0",
     .meaning = "Routed experts of a MoE layer; 0 for a dense model."},
    {ROW(SCHEMA_UINT, "moe.top_k", moe.top_k), RANGE(1, 1000000), REQUIRED("8"), HAS_EXPERTS,
     .meaning = "Routed experts that a token visits."},
    {ROW(SCHEMA_UINT, "moe.intermediate_size", moe.intermediate_size), RANGE(1, ELEMENTS_MAX),
     REQUIRED("2048"), HAS_EXPERTS, .meaning = "Inner width of one routed expert."},
    {ROW(SCHEMA_UINT, "moe.shared_intermediate_size", moe.shared_intermediate_size),
     RANGE(0, ELEMENTS_MAX), .fallback = "0", HAS_EXPERTS,
     .meaning = "Inner width of all shared experts together; 0 for none."},
    {ROW(SCHEMA_BOOL, "moe.shared_gate", moe.shared_gate), .fallback = "false", HAS_EXPERTS,
     .meaning = "A scalar gate on the shared experts (Qwen2-MoE)."},
    {ROW(SCHEMA_UINT, "moe.first_dense_layers", moe.first_dense_layers), RANGE(0, 100000),
     .fallback = "0", HAS_EXPERTS, .meaning = "Dense layers at the start."},
    {ROW(SCHEMA_UINT, "moe.layer_freq", moe.layer_freq), RANGE(1, 100000), .fallback = "1",
     HAS_EXPERTS,
     .meaning = "1 where every layer behind the dense ones is MoE, 2 where every second is."},
    {ROW(SCHEMA_UINT, "moe.groups", moe.groups), RANGE(0, 1000000), .fallback = "0", HAS_EXPERTS,
     .meaning = "Routing groups; 0 or 1 for none."},
    {ROW(SCHEMA_UINT, "moe.groups_top_k", moe.groups_top_k), RANGE(0, 1000000), .fallback = "0",
     HAS_EXPERTS, .meaning = "Groups that a token may choose experts from."},
    {ROW(SCHEMA_BOOL, "moe.router_bias", moe.router_bias), .fallback = "false", HAS_EXPERTS,
     .meaning = "A bias per expert that steers the load and is not trained by gradients."},
    {ROW(SCHEMA_QUANTITY, "published.params_total", published.params_total),
     .dimension = DIMENSION_COUNT, RANGE(1, 1e18), .flags = SCHEMA_LABEL, .example = "671B",
     .meaning = "Published parameter count; tests compare with it."},
    {ROW(SCHEMA_QUANTITY, "published.params_active", published.params_active),
     .dimension = DIMENSION_COUNT, RANGE(1, 1e18), .flags = SCHEMA_LABEL, .example = "37B",
     .meaning = "Published parameters that a token visits."},
    {ROW(SCHEMA_BOOL, "published.with_input_embedding", published.with_input_embedding),
     .flags = SCHEMA_LABEL, .fallback = "true",
     .meaning = "The published counts include the input embedding."},
    {ROW(SCHEMA_BOOL, "published.with_mtp", published.with_mtp), .flags = SCHEMA_LABEL,
     .fallback = "false", .meaning = "The published counts include the MTP layers."},
    {ROW(SCHEMA_STRING, "published.source", published.source), .flags = SCHEMA_LABEL,
     .example = "technical report, section 4.2", .meaning = "Where the counts were published."},
};

static const struct schema_section sections[] = {
    {"norm", "Norms of a layer."},
    {"ffn", "Feed-forward block."},
    {"attention", "Attention block."},
    {"moe", "Experts; leave the section out for a dense model."},
    {"published", "Published figures, for tests and for people; they do not enter a simulation."},
};

const struct schema_table model_schema = {
    .name = "model",
    .title = "Model",
    .folder = "models",
    .noun = "model",
    .rows = rows,
    .row_count = COUNT_OF(rows),
    .sections = sections,
    .section_count = COUNT_OF(sections),
    .struct_size = sizeof(struct model_spec),
    .origins_offset = offsetof(struct model_spec, origins),
};
