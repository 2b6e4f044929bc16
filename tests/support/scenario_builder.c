/* scenario_builder.c - the models of the case table, and a plain scenario around them. */
#include "scenario_builder.h"

#include <string.h>

struct cluster_spec builder_cluster(uint32_t node)
{
    return (struct cluster_spec){
        .name = "test",
        .collectives = "hccl_a2",
        .devices_per_node = node,
        .level_count = 2,
        .levels = {{.name = "node",
                    .size = node,
                    .topology = TOPOLOGY_MESH,
                    .link = "hccs",
                    .bytes_per_s = 196e9,
                    .efficiency = 1.0,
                    .alltoall_efficiency = 1.0,
                    .oversubscription = 1.0,
                    .switches = 1},
                   {.name = "cluster",
                    .topology = TOPOLOGY_SWITCH,
                    .link = "roce",
                    .bytes_per_s = 25e9,
                    .efficiency = 1.0,
                    .alltoall_efficiency = 1.0,
                    .oversubscription = 1.0,
                    .switches = 1}},
        .device = {.name = "test", .vendor = "ascend", .unit = "die", .peak_flop_per_s = 1e14},
    };
}

struct model_spec builder_dense(struct dense_shape shape)
{
    return (struct model_spec){
        .name = "inline",
        .layers = shape.layers,
        .hidden_size = shape.hidden,
        .vocab_size = shape.vocab,
        .ffn_intermediate_size = shape.ffn,
        .ffn_kind = FFN_GATED,
        .norm_kind = NORM_RMS,
        .norms_per_layer = 2,
        .position = POSITION_ROPE,
        .attention = {.kind = shape.kv_heads == shape.heads ? ATTENTION_MHA : ATTENTION_GQA,
                      .heads = shape.heads,
                      .kv_heads = shape.kv_heads,
                      .head_dim = shape.head_dim,
                      .window_every = 1},
        .moe = {.layer_freq = 1},
    };
}

struct attention_spec builder_mla(uint32_t heads, uint32_t q_lora_rank)
{
    return (struct attention_spec){
        .kind = ATTENTION_MLA,
        .heads = heads,
        .q_lora_rank = q_lora_rank,
        .kv_lora_rank = 512,
        .qk_nope_head_dim = 128,
        .qk_rope_head_dim = 64,
        .v_head_dim = 128,
        .window_every = 1,
    };
}

struct moe_spec builder_moe(struct moe_shape shape)
{
    return (struct moe_spec){
        .experts = shape.experts,
        .top_k = shape.top_k,
        .intermediate_size = shape.intermediate,
        .shared_intermediate_size = shape.shared,
        .first_dense_layers = shape.first_dense_layers,
        .layer_freq = 1,
    };
}

/* Rows of the table in cases.md: layers, hidden, ffn, heads, kv heads (0: MLA), head width,
 * vocabulary; experts, top-k, expert width, shared width, dense layers; query LoRA. */
static const struct {
    const char *name;
    struct dense_shape dense;
    struct moe_shape moe;
    uint32_t q_lora_rank;
} models[] = {
    {"Mixtral-8x7B", {32, 4096, 14336, 32, 8, 128, 32000}, {8, 2, 14336, 0, 0}, 0},
    {"Qwen3-30B-A3B", {48, 2048, 6144, 32, 4, 128, 151936}, {128, 8, 768, 0, 0}, 0},
    {"Qwen3-235B-A22B", {94, 4096, 12288, 64, 4, 128, 151936}, {128, 8, 1536, 0, 0}, 0},
    {"DeepSeek-V3", {61, 7168, 18432, 128, 0, 0, 129280}, {256, 8, 2048, 2048, 3}, 1536},
    {"DeepSeek-V2", {60, 5120, 12288, 128, 0, 0, 102400}, {160, 6, 1536, 3072, 1}, 1536},
    {"DeepSeek-16B (V2-Lite shape)",
     {27, 2048, 10944, 16, 0, 0, 102400},
     {64, 6, 1408, 2816, 1},
     0},
    {"Moonlight-16B", {27, 2048, 11264, 16, 0, 0, 163840}, {64, 6, 1408, 2816, 1}, 0},
    {"GPT-OSS-120B", {36, 2880, 2880, 64, 8, 64, 201088}, {128, 4, 2880, 0, 0}, 0},
    {"Llama2-7B", {32, 4096, 11008, 32, 32, 128, 32000}, {0}, 0},
    {"Llama2-13B", {40, 5120, 13824, 40, 40, 128, 32000}, {0}, 0},
    {"Llama2-70B", {80, 8192, 28672, 64, 8, 128, 32000}, {0}, 0},
    {"Llama3-70B", {80, 8192, 28672, 64, 8, 128, 128256}, {0}, 0},
    {"Qwen2.5-32B", {64, 5120, 27648, 40, 8, 128, 152064}, {0}, 0},
    {"GLM-4.5-Air", {46, 4096, 10944, 96, 8, 128, 151552}, {128, 8, 1408, 1408, 1}, 0},
    /* Not a case; the headline model, with its widths from the report and the open weights. */
    {"Pangu-Ultra-MoE-718B", {61, 7680, 18432, 128, 0, 0, 153600}, {256, 8, 2048, 2048, 3}, 1536},
};

struct model_spec builder_model(const char *name)
{
    size_t i = 0;
    while (i < sizeof models / sizeof models[0] && strcmp(models[i].name, name) != 0)
        i++;
    ASSERT(i < sizeof models / sizeof models[0]);

    struct model_spec spec = builder_dense(models[i].dense);
    spec.name = models[i].name;
    if (models[i].moe.experts > 0)
        spec.moe = builder_moe(models[i].moe);
    if (models[i].dense.kv_heads == 0)
        spec.attention = builder_mla(models[i].dense.heads, models[i].q_lora_rank);
    if (strcmp(name, "GPT-OSS-120B") == 0) {
        spec.attention.window = 128;
        spec.attention.window_every = 2;
    }
    if (strcmp(name, "Pangu-Ultra-MoE-718B") == 0)
        spec.norms_per_layer = 4;
    return spec;
}

struct scenario builder_scenario(void)
{
    return (struct scenario){
        .path = "test.yaml",
        .model = builder_dense((struct dense_shape){8, 512, 2048, 8, 8, 64, 32000}),
        .cluster = builder_cluster(8),
        .devices = 8,
        .parallel = {.tp = 1,
                     .pp = 1,
                     .vpp = 1,
                     .ep = 1,
                     .etp = 1,
                     .cp = 1,
                     .sequence_parallel = true,
                     .zero = 1,
                     .order = "tp-cp-ep-dp-pp",
                     .split = SPLIT_EVEN},
        .training = {.seq_len = 1024, .micro_batch_size = 1, .global_batch_size = 64},
        .precision = {.compute = PRECISION_BF16,
                      .gradients = PRECISION_FP32,
                      .master = PRECISION_FP32,
                      .moments = PRECISION_FP32},
        .schedule = {.kind = "1f1b", .p2p_overlapped = true},
        .moe = {.grouped_matmul = true, .load = "balanced", .placement = "static"},
        .fusion = {.flash_attention = true},
        .collectives = {.buffer_bytes = 200e6, .expansion = "host"},
        .mfu = {.mtp = true},
        .network = "closed_form",
        .memory = {.logits_chunks = 1},
        .seed = 1,
    };
}
