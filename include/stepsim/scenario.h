/*
 * scenario.h - the whole question, resolved and checked: one struct per YAML section.
 *
 * scenario_load() composes files (model and cluster by name, path or inline map),
 * applies overrides, resolves defaults, checks units, ranges and names, and
 * reports every error at once. The result is read-only. Cross-checks that need
 * layout arithmetic belong to layout_build().
 *
 * Keys, units, ranges, defaults and meanings are rows of the tables in
 * src/config/scenario_schema.c, model_schema.c and cluster_schema.c; the loader,
 * `describe`, `schema` and docs/reference/config.md read them. Quantities are SI:
 * bytes, bytes/s, FLOP/s, seconds.
 *
 * Ownership: everything lives in the arena given to scenario_load().
 */
#ifndef STEPSIM_SCENARIO_H
#define STEPSIM_SCENARIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stepsim/origin.h"

/* ---- Model: configs/models/NAME.yaml, key `model:` ---- */

enum attention_kind { ATTENTION_MHA, ATTENTION_GQA, ATTENTION_MLA };
enum ffn_kind { FFN_GATED, FFN_PLAIN }; /* gated: gate, up, down (SwiGLU); plain: up, down */
enum norm_kind { NORM_RMS, NORM_LAYER };
enum position_kind { POSITION_ROPE, POSITION_LEARNED, POSITION_NONE };

struct attention_spec {
    enum attention_kind kind;
    uint32_t heads;
    uint32_t kv_heads;         /* gqa; equals heads for mha; unused for mla */
    uint32_t head_dim;         /* mha, gqa */
    uint32_t q_lora_rank;      /* mla; 0: queries are projected directly */
    uint32_t kv_lora_rank;     /* mla */
    uint32_t qk_nope_head_dim; /* mla */
    uint32_t qk_rope_head_dim; /* mla */
    uint32_t v_head_dim;       /* mla */
    uint32_t window;           /* sliding window in keys, 0: none */
    uint32_t window_every;     /* 1: every layer has the window, 2: every other layer ... */
    bool bias;                 /* bias on q, k, v */
    bool out_bias;             /* bias on the output projection */
    bool qk_norm;              /* a norm over each query and key head */
};

struct moe_spec {
    uint32_t experts; /* 0: dense model */
    uint32_t top_k;
    uint32_t intermediate_size;        /* of one routed expert */
    uint32_t shared_intermediate_size; /* all shared experts together, 0: none */
    bool shared_gate;                  /* a scalar gate on the shared experts (Qwen2-MoE) */
    uint32_t first_dense_layers;
    uint32_t layer_freq; /* 1: every layer after the dense ones is MoE, 2: every second ... */
    uint32_t groups;     /* routing groups, 0 or 1: none */
    uint32_t groups_top_k;
    bool router_bias; /* a bias per expert, not trained by gradients */
};

/* Published figures, for tests and `describe`; absent ones are 0. */
struct published_spec {
    double params_total;
    double params_active;
    bool with_input_embedding; /* does params_total count the input embedding */
    bool with_mtp;
    const char *source;
};

struct model_spec {
    const char *name; /* file name without .yaml, or "inline" */
    const char *title;
    const char *source;
    uint32_t layers;
    uint32_t hidden_size;
    uint32_t vocab_size;
    uint32_t max_position; /* rows of a learned position table, else 0 */
    uint32_t ffn_intermediate_size;
    enum ffn_kind ffn_kind;
    bool ffn_bias;
    enum norm_kind norm_kind;
    uint32_t norms_per_layer; /* 2, or 4 for sandwich norm */
    enum position_kind position;
    bool tied_embedding;
    uint32_t mtp_layers;
    struct attention_spec attention;
    struct moe_spec moe;
    struct published_spec published;
    const struct origin *origins; /* one per row of model_schema */
};

/* ---- Device: configs/devices/NAME.yaml ---- */

/* Every field is a fact with source and grade: {value:, source:, grade:}. */
struct device_spec {
    const char *name;
    const char *title;
    const char *vendor;         /* ascend, nvidia */
    const char *unit;           /* die, gpu: what one rank is */
    const char *const *aliases; /* other names that `device:` finds it by, alias_count of them */
    uint32_t alias_count;
    /* silicon */
    double peak_flop_per_s;     /* cube or tensor cores, dense bf16 */
    double marketed_flop_per_s; /* as advertised, dense bf16 */
    double vector_flop_per_s;   /* vector cores, fp32 */
    double cores;               /* cube cores or SMs */
    double hbm_bytes;           /* nominal capacity */
    double usable_bytes;        /* what a training process can allocate */
    double hbm_bytes_per_s;
    double hbm_efficiency; /* reachable share of hbm_bytes_per_s */
    double l2_bytes;
    double l2_bytes_per_s;
    double host_down_bytes_per_s; /* device to host, per device */
    double host_up_bytes_per_s;   /* host to device, per device */
    /* matmul: time = max(FLOP / (peak * efficiency * shape), traffic / HBM) + startup */
    double matmul_efficiency; /* plateau of large, aligned shapes */
    double matmul_k_half;     /* inner dimension at which efficiency halves, elements */
    double matmul_tile_m;
    double matmul_tile_n;
    double matmul_unaligned_ratio; /* speed when k is not a multiple of matmul_align */
    double matmul_align;           /* elements */
    double matmul_spill_ratio;     /* speed when the working set passes L2 */
    double matmul_startup_s;
    double grouped_matmul_ratio; /* speed of a grouped matmul over one matmul of equal tiles */
    /* flash attention */
    double attention_efficiency;     /* forward, long sequence, head size 128 */
    double attention_seq_half;       /* keys at which efficiency halves */
    double attention_backward_ratio; /* backward efficiency over forward */
    double attention_startup_s;
    /* vector kernels */
    double vector_traffic_ratio;  /* bytes really moved over bytes counted */
    double vector_startup_s;      /* floor of one kernel */
    double permute_traffic_ratio; /* same, for permute and unpermute of tokens */
    /* host */
    double host_eager_s;        /* issue time of one kernel, eager */
    double host_graph_s;        /* same, captured graph */
    double host_moe_sync_s;     /* device-to-host synchronisation of one MoE layer, eager */
    double step_overhead_s;     /* data, clipping, logging, per step */
    double growth_per_doubling; /* slow-down per doubling of devices beyond one node */
    double sustained_ratio;     /* speed of kernels in a long run over their speed alone */
    /* overlap */
    double contention_compute; /* compute time factor while communication runs beside it */
    double contention_comm;    /* communication time factor while compute runs beside it */
    double mc2_exposed_ratio;  /* share of a fused matmul-collective that stays exposed */
    double coc_exposed_ratio;
    const struct origin *origins; /* one per row of device_schema */
};

/* ---- Cluster: configs/clusters/NAME.yaml, key `cluster:` ---- */

enum level_topology { TOPOLOGY_MESH, TOPOLOGY_SWITCH, TOPOLOGY_RING };

/* A level joins `size` devices: package 2, node 8, supernode 384, cluster: all. */
struct level_spec {
    const char *name;
    uint32_t size; /* devices in one domain; 0: the whole cluster */
    enum level_topology topology;
    const char *link;   /* "hccs", "roce", "nvlink" */
    double bytes_per_s; /* per device, one direction, all its links of this level */
    double efficiency;  /* reachable share for reduce-scatter, all-gather, all-reduce, p2p */
    double alltoall_efficiency;   /* reachable share for all-to-all */
    double latency_s;             /* alpha: one step of a collective */
    double launch_s;              /* fixed cost of one collective at this level */
    double oversubscription;      /* 1: non-blocking */
    uint32_t nics;                /* ports of this level per node-below domain; 0: one per device */
    uint32_t switches;            /* that share the traffic of one domain */
    const struct origin *origins; /* one per row of level_schema */
};

#define LEVELS_MAX 6

struct cluster_spec {
    const char *name;
    const char *title;
    const char *collectives; /* selection rules: "hccl_a2", "hccl_a3", "nccl", ... */
    uint32_t devices_per_node;
    const char
        *hosts; /* file with the names of its nodes, as they are cabled; NULL: node0, node1 */
    double
        host_bytes_per_s; /* host memory bandwidth shared by the devices of a node, one direction */
    uint32_t level_count; /* innermost first */
    struct level_spec levels[LEVELS_MAX];
    struct device_spec device;
    const struct origin *origins; /* one per row of cluster_schema */
};

/* ---- The question ---- */

enum cp_method { CP_RING, CP_ULYSSES, CP_HYBRID };
enum stage_split {
    SPLIT_BALANCED,
    SPLIT_EVEN,
    SPLIT_NOOP,
    SPLIT_LAYERS,
    SPLIT_FIRST_LAST,
    SPLIT_LAYOUT
};

struct parallel_spec {
    uint32_t tp, pp, vpp, ep, etp, cp;
    uint32_t dp; /* derived from devices unless given; checked either way */
    bool sequence_parallel;
    enum cp_method cp_method;
    uint32_t ulysses_size; /* hybrid */
    uint32_t zero;         /* 0..3 */
    const char *order;     /* "tp-cp-ep-dp-pp", innermost first */
    const char *hosts;     /* file of hosts in the order of ranks; NULL: as they are cabled */
    enum stage_split split;
    const uint32_t *layers; /* SPLIT_LAYERS: per stage (pp entries) or per chunk (pp*vpp) */
    uint32_t layers_count;
    uint32_t first_layers, last_layers; /* SPLIT_FIRST_LAST: 0 where not given */
    const uint32_t *noop_layers;        /* SPLIT_NOOP: slot numbers that hold nothing */
    uint32_t noop_count;
    const char *layout; /* SPLIT_LAYOUT: "Et*3|t*2|..|mL" */
};

struct training_spec {
    uint32_t seq_len;
    uint32_t micro_batch_size;
    uint32_t global_batch_size; /* sequences */
    double tokens;              /* optional, 0: no days_for_tokens */
};

enum precision { PRECISION_BF16, PRECISION_FP16, PRECISION_FP32, PRECISION_FP8 };

struct precision_spec {
    enum precision compute, gradients, master, moments;
    bool reuse_fp32_param;
};

struct schedule_spec {
    const char *kind;          /* resolved against the schedule registry by run */
    uint32_t microbatch_group; /* 0: pp */
    bool p2p_overlapped;
};

enum moe_dispatcher { DISPATCHER_ALLTOALL, DISPATCHER_ALLGATHER };
enum moe_exchange { EXCHANGE_FLAT, EXCHANGE_HIERARCHICAL, EXCHANGE_DEDUPLICATED };
enum moe_policy { POLICY_DROPLESS, POLICY_DROP, POLICY_DROP_AND_PAD };

struct moe_run_spec {
    enum moe_dispatcher dispatcher;
    enum moe_exchange exchange;
    bool overlap_shared_expert;
    bool overlap_intra_layer;
    bool grouped_matmul;
    bool fused_permute;
    enum moe_policy policy;
    double capacity_factor;
    /* routing */
    const char *load; /* "balanced", "zipf", "dirichlet", "histogram", or a load scenario name */
    double zipf_s, dirichlet_alpha, load_max_over_mean;
    const char *load_file;
    bool routing_per_microbatch, routing_independent_replicas;
    uint32_t routing_hot;    /* hot_experts, spread_heat: how many are hot */
    uint32_t routing_period; /* rotating_hotspot, burst: steps */
    uint32_t routing_nodes;  /* nodes that hold all experts of a token; 0: no limit */
    uint64_t routing_seed;
    double drift;          /* share of load that moves per step, 0..1 */
    double aux_loss;       /* 0: none; narrows the distribution */
    double aux_loss_steps; /* time constant of the narrowing; 0: done before the first step */
    bool aux_loss_ep_group;
    /* placement */
    const char *placement;         /* "static", "random", "greedy", "dynamic", "replicate_hot" */
    const char *placement_predict; /* "ema", "window" */
    double placement_ema;
    uint32_t placement_window, placement_every;
    double placement_min_gain;
    uint32_t placement_hot; /* replicate_hot: experts */
};

/* Bits of recompute.modules and swap.activations. */
enum module_bit {
    MODULE_ATTENTION_CORE = 1 << 0, /* scores, softmax, values */
    MODULE_QKV = 1 << 1,            /* all query, key, value projections */
    MODULE_MLA_KV_UP_PROJ = 1 << 2, /* key and value up-projection only */
    MODULE_NORM = 1 << 3,
    MODULE_ACTIVATION = 1 << 4,     /* activation function of FFN and experts */
    MODULE_PERMUTE = 1 << 5,        /* permuted expert input; re-runs the dispatch */
    MODULE_EXPERT_MLP = 1 << 6,     /* expert inputs to outputs, without communication */
    MODULE_MLP = 1 << 7,            /* dense and shared FFN */
    MODULE_MOE_LAYER = 1 << 8,      /* router to combine, with communication */
    MODULE_LAYER = 1 << 9,          /* whole layer: only its input is kept */
    MODULE_PERMUTE_PROBS = 1 << 10, /* swap only: permuted tokens and probabilities */
    MODULE_ATTENTION = 1 << 11,     /* swap only: what attention keeps */
};

enum recompute_method { RECOMPUTE_ALL, RECOMPUTE_UNIFORM, RECOMPUTE_BLOCK, RECOMPUTE_PER_STAGE };

struct recompute_spec {
    uint32_t modules; /* module_bit set */
    enum recompute_method method;
    uint32_t layers;              /* block: layers per chunk; uniform: layers per checkpoint */
    const uint32_t *stage_layers; /* per_stage: layers of each stage */
    uint32_t stage_layers_count;
    bool in_bubble;
};

struct swap_spec {
    uint32_t activations; /* module_bit set */
    bool optimizer;
};

enum matmul_collective { MATMUL_COLLECTIVE_NONE, MATMUL_COLLECTIVE_MC2, MATMUL_COLLECTIVE_COC };

struct overlap_spec {
    bool grad_reduce, param_gather;
    enum matmul_collective matmul_collective;
    bool tp_backward;
    bool cp_comm;
};

enum host_dispatch { HOST_EAGER, HOST_GRAPH };

struct host_spec {
    enum host_dispatch dispatch;
};

struct fusion_spec {
    bool flash_attention, norm, swiglu, rope, grad_accumulation;
    bool cross_entropy; /* fused: no fp32 copy of the logits */
};

struct collectives_spec {
    double buffer_bytes;   /* HCCL_BUFFSIZE; allocated twice per communicator */
    const char *expansion; /* "host", "aicpu", "aiv" */
    const char *intra_algorithm, *inter_algorithm; /* "auto", or an algorithm name */
};

enum mfu_peak { MFU_PEAK_CUBE, MFU_PEAK_MARKETED };

struct mfu_spec {
    enum mfu_peak peak;
    bool attention_causal; /* attention: full | causal */
    bool mtp, router;
};

struct noise_spec {
    double kernel_jitter; /* relative standard deviation per compute op */
    const struct slow_rank {
        uint32_t rank;
        double factor; /* time factor, above 1: slower */
    } * slow_ranks;
    uint32_t slow_rank_count;
    const struct slow_link {
        const char *level;
        uint32_t rank;
        double factor; /* bandwidth factor, below 1: slower */
    } * slow_links;
    uint32_t slow_link_count;
};

/* Broken or slow hardware by name; cluster_build() says what a name means. */
struct fault_spec {
    const char *part;             /* "node 17", "spine 2", "nic 5 of node 17" */
    double speed;                 /* share that is left; 0: broken */
    const struct origin *origins; /* one per row of the fault table */
};

struct memory_spec {
    double reserve_bytes;
    double require_headroom_bytes;
    uint32_t logits_chunks; /* loss computed over this many sequence chunks */
    bool mtp_own_embedding; /* the MTP stage holds its own embedding and head */
};

struct scenario {
    const char *path;  /* file it was read from */
    const char *title; /* optional */
    struct model_spec model;
    struct cluster_spec cluster;
    uint32_t devices;
    struct parallel_spec parallel;
    struct training_spec training;
    struct precision_spec precision;
    struct schedule_spec schedule;
    struct moe_run_spec moe;
    struct recompute_spec recompute;
    struct swap_spec swap;
    struct overlap_spec overlap;
    struct host_spec host;
    struct fusion_spec fusion;
    struct collectives_spec collectives;
    struct mfu_spec mfu;
    const char *network; /* resolved against the network registry by run */
    struct noise_spec noise;
    const struct fault_spec *faults;
    uint32_t fault_count;
    struct memory_spec memory;
    uint64_t seed;
    const struct origin *origins; /* one per row of scenario_schema */
};

/* ---- Loading ---- */

/*
 * One --set. Keys are paths of the schema; an entry of a list is meant by its index or its name.
 * A value that is a map replaces a section, so nothing stale stays; null takes a key away. Plain
 * text for a section means its shorthand: stages=even replaces the section, cp=8 sets the size.
 * model=NAME, cluster=NAME and cluster.device=NAME replace the whole. A fact may be a bare
 * quantity; its source is then "--set" and its grade assumed.
 */
struct scenario_override {
    const char *key;   /* "parallel.tp", "model.layers", "cluster.device.hbm_bandwidth" */
    const char *value; /* YAML text */
};

/*
 * Parsed files, kept between loads: a sweep reads and parses each file once. Files are taken not to
 * change meanwhile. Scenarios may point into the cache, which must outlive them. Not for several
 * threads at once.
 */
struct scenario_cache;
struct scenario_cache *scenario_cache_create(void);
/* Accepts NULL. */
void scenario_cache_destroy(struct scenario_cache *cache);

struct scenario_source {
    const char *path; /* a file, or NULL with text */
    const char *text; /* YAML text, with text_name for messages */
    const char *text_name;
    const char *config_dir; /* folder of models/, devices/, clusters/; NULL: the installed one */
    const struct scenario_override *overrides;
    uint32_t override_count;
    struct scenario_cache *cache; /* or NULL */
};

/* NULL, with at least one error added, if anything is wrong. */
struct scenario *scenario_load(const struct scenario_source *source, struct arena *arena,
                               struct error_list *errors);

/* One model, cluster or device by name or path, for tests, `describe` and calibration. NULL
 * config_dir as above; NULL with errors if anything is wrong. */
struct model_spec *scenario_load_model(const char *name, const char *config_dir,
                                       struct arena *arena, struct error_list *errors);
struct cluster_spec *scenario_load_cluster(const char *name, const char *config_dir,
                                           struct arena *arena, struct error_list *errors);
struct device_spec *scenario_load_device(const char *name, const char *config_dir,
                                         struct arena *arena, struct error_list *errors);
/* The names in a folder of config_dir ("models", "clusters", "devices"), sorted. */
const char *const *scenario_config_names(const char *config_dir, const char *folder,
                                         struct arena *arena, size_t *count);

/* The origin of one scenario key ("parallel.tp", "model.layers", "cluster.device.cores",
 * "cluster.levels.0.latency"); NULL if there is no such key. */
const struct origin *scenario_origin(const struct scenario *scenario, const char *key);

/* Position of a key for an error message: where it was written, else the file alone. */
struct location scenario_at(const struct scenario *scenario, const char *key);

/* The resolved value of a key as it would be written, quantities in SI without unit ("8", "ring",
 * "1.6e12", "[4, 4]"), in the arena; NULL if there is no such key or it is absent. */
const char *scenario_value_text(const struct scenario *scenario, const char *key,
                                struct arena *arena);
/* The same as a number: numeric keys, and bools as 0 and 1. False for other kinds. */
bool scenario_number(const struct scenario *scenario, const char *key, double *value);

/* A number of hardware of a loaded scenario: of its cluster, a level, or its device. */
struct scenario_fact {
    const char *key; /* "cluster.device.cores", "cluster.levels.node.latency" */
    const struct schema_row *row;
    const struct origin *origin;
    size_t offset; /* of its double in struct scenario */
    double value;  /* SI */
};
/* All of them in the order of the schema: cluster, device, levels from the inside. In the arena. */
const struct scenario_fact *scenario_facts(const struct scenario *scenario, struct arena *arena,
                                           uint32_t *count);

struct cJSON;
/* The resolved scenario as JSON: {"parallel": {"tp": {"value": 8, "origin": "file"}, ...}, ...}.
 * Origins are "default", "file" and "set"; a file's has "at": "FILE:LINE:COL"; a fact has "source"
 * and "grade", and "low" and "high" if it has an interval; a quantity has its SI "unit".
 * with_origin false gives plain values, without titles, sources, published figures and other
 * labels. Absent keys are left out. Caller frees. */
struct cJSON *scenario_json(const struct scenario *scenario, bool with_origin);

/* The canonical form: plain values, keys sorted bytewise, no spaces, shortest doubles, SI units.
 * Two files that ask the same question, however written, have the same text. In the arena. */
char *scenario_canonical(const struct scenario *scenario, struct arena *arena);

/* XXH3-128 of the canonical form, 32 hex digits, in the arena. */
const char *scenario_hash(const struct scenario *scenario, struct arena *arena);

#endif
