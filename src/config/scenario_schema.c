/*
 * scenario_schema.c - the keys of a scenario: the question that a simulation answers.
 */
#include "config/schema_rows.h"

/* ---- Items of lists ---- */

#define SCHEMA_STRUCT struct slow_rank
static const struct schema_row slow_rank_rows[] = {
    {ROW(SCHEMA_UINT, "rank", rank), RANGE(0, RANKS_MAX), REQUIRED("17"),
     .meaning = "The rank that is slow."},
    {ROW(SCHEMA_QUANTITY, "factor", factor), .dimension = DIMENSION_RATIO, RANGE(1, 1000),
     REQUIRED("1.2"), .meaning = "Factor on its compute time."},
};

static const struct schema_table slow_rank_schema = {
    .name = "slow_rank",
    .title = "Slow rank",
    .noun = "slow rank",
    .rows = slow_rank_rows,
    .row_count = COUNT_OF(slow_rank_rows),
    .struct_size = sizeof(struct slow_rank),
    .origins_offset = SCHEMA_NO_ORIGINS,
};

#undef SCHEMA_STRUCT
#define SCHEMA_STRUCT struct slow_link
static const struct schema_row slow_link_rows[] = {
    {ROW(SCHEMA_STRING, "level", level), REQUIRED("cluster"),
     .meaning = "Name of the level whose link is slow."},
    {ROW(SCHEMA_UINT, "rank", rank), RANGE(0, RANKS_MAX), REQUIRED("17"),
     .meaning = "The rank at the end of the link."},
    {ROW(SCHEMA_QUANTITY, "factor", factor), .dimension = DIMENSION_RATIO, RANGE(1e-6, 1),
     REQUIRED("0.5"), .meaning = "Factor on its bandwidth."},
};

static const struct schema_table slow_link_schema = {
    .name = "slow_link",
    .title = "Slow link",
    .noun = "slow link",
    .rows = slow_link_rows,
    .row_count = COUNT_OF(slow_link_rows),
    .struct_size = sizeof(struct slow_link),
    .origins_offset = SCHEMA_NO_ORIGINS,
};

#undef SCHEMA_STRUCT
#define SCHEMA_STRUCT struct fault_spec
static const struct schema_row fault_rows[] = {
    {ROW(SCHEMA_STRING, "part", part), .flags = SCHEMA_REQUIRED | SCHEMA_SHORTHAND,
     .example = "node 17",
     .meaning = "What is broken or slow: `node N`, `nic N of node N`, `LEVEL N` for a switch of a "
                "level, `uplinks of node N`, `uplinks of LEVEL N`; all are counted from 0."},
    {ROW(SCHEMA_QUANTITY, "speed", speed), .dimension = DIMENSION_RATIO, RANGE(0, 1),
     .fallback = "0",
     .meaning = "Share of its bandwidth that is left, of a node the share of its compute speed; 0 "
                "is broken."},
};

static const struct schema_table fault_schema = {
    .name = "fault",
    .title = "Fault",
    .noun = "fault",
    .rows = fault_rows,
    .row_count = COUNT_OF(fault_rows),
    .struct_size = sizeof(struct fault_spec),
    .origins_offset = offsetof(struct fault_spec, origins),
};

/* ---- Choices; the order is that of the enums. A reason in the third column refuses a value. ----
 */

static const struct schema_choice cp_methods[] = {
    [CP_RING] = {"ring", "Keys and values travel around the context ranks.", NULL},
    [CP_ULYSSES] = {"ulysses", "All-to-all turns sequence shards into head shards.", NULL},
    [CP_HYBRID] = {"hybrid", "Ulysses inside groups of ulysses_size, ring between them.", NULL},
};

static const struct schema_choice stage_splits[] = {
    [SPLIT_BALANCED] = {"balanced",
                        "Least time of the slowest chunk; embedding, head and MTP weigh.", NULL},
    [SPLIT_EVEN] = {"even", "The same number of layers in every chunk, or a refusal.", NULL},
    [SPLIT_NOOP] = {"noop", "Even slots, the noop_layers of which hold nothing.", NULL},
    [SPLIT_LAYERS] = {"layers", "A list of layers per stage or chunk.", NULL},
    [SPLIT_FIRST_LAST] = {"first_last", "Counts for the first and last stage, the rest even.",
                          NULL},
    [SPLIT_LAYOUT] = {"layout", "A layout string as Megatron takes it.", NULL},
};

#define FP8_STATES "states in fp8 are not simulated"
static const struct schema_choice compute_precisions[] = {
    [PRECISION_BF16] = {"bf16", "16 bit, the range of fp32.", NULL},
    [PRECISION_FP16] = {"fp16", "16 bit, at the speed of bf16.", NULL},
    [PRECISION_FP32] = {"fp32", "32 bit.", "device files hold bf16 peaks only"},
    [PRECISION_FP8] = {"fp8", "8 bit.", "device files hold bf16 peaks only"},
};

static const struct schema_choice state_precisions[] = {
    [PRECISION_BF16] = {"bf16", "2 bytes.", NULL},
    [PRECISION_FP16] = {"fp16", "2 bytes.", NULL},
    [PRECISION_FP32] = {"fp32", "4 bytes.", NULL},
    [PRECISION_FP8] = {"fp8", "1 byte.", FP8_STATES},
};

static const struct schema_choice schedules[] = {
    {"gpipe", "All forwards, then all backwards.", NULL},
    {"1f1b", "One forward, one backward in the steady state.", NULL},
    {"interleaved", "1F1B over vpp chunks per stage.", NULL},
    {"zb_h1", "Zero bubble: weight gradients fill the cool-down.", NULL},
    {"zb_v", "Zero bubble over two chunks per stage, folded as a V.", NULL},
    {"dualpipe_v", "Forward and backward of both pipeline ends interleave on each stage.", NULL},
    {"overlapped_1f1b",
     "The forward of one microbatch hides the expert communication of another's "
     "backward.",
     NULL},
};

static const struct schema_choice p2p_modes[] = {
    {"blocking", "A stage waits for its sends and receives.", NULL},
    {"overlapped", "Sends and receives run beside compute.", NULL},
};

static const struct schema_choice dispatchers[] = {
    [DISPATCHER_ALLTOALL] = {"alltoall", "Tokens go to the ranks of their experts.", NULL},
    [DISPATCHER_ALLGATHER] = {"allgather", "Every rank of the group gathers all tokens.", NULL},
};

static const struct schema_choice exchanges[] = {
    [EXCHANGE_FLAT] = {"flat", "One all-to-all over the expert group.", NULL},
    [EXCHANGE_HIERARCHICAL] = {"hierarchical", "All-gather between nodes, then all-to-all inside.",
                               NULL},
    [EXCHANGE_DEDUPLICATED] = {"deduplicated",
                               "One copy of a token per node, further copies inside (DeepEP).",
                               NULL},
};

static const struct schema_choice policies[] = {
    [POLICY_DROPLESS] = {"dropless", "Every expert takes all of its tokens.", NULL},
    [POLICY_DROP] = {"drop", "Tokens above the capacity are dropped.", NULL},
    [POLICY_DROP_AND_PAD] = {"drop_and_pad",
                             "Dropped above the capacity, padded up to it: padding counts in HFU, "
                             "not in MFU.",
                             NULL},
};

static const struct schema_choice loads[] = {
    {"balanced", "Every expert receives the same number of tokens.", NULL},
    {"zipf", "Load of the i-th expert falls as i^-s; each layer has its own order.", NULL},
    {"dirichlet", "Loads drawn from a Dirichlet distribution; small alpha is uneven.", NULL},
    {"histogram", "Tokens per layer and expert are read from `file`.", NULL},
    {"hot_experts", "`hot` experts of each layer receive max_over_mean times the mean each.", NULL},
    {"hot_rank",
     "All experts of one rank, the same in every layer, receive max_over_mean times "
     "the mean: states the load of the heaviest rank.",
     NULL},
    {"spread_heat",
     "Like hot_experts (`hot`, max_over_mean), each hot expert on a rank of its "
     "own.",
     NULL},
    {"ragged_source",
     "Experts are balanced; one source rank sends max_over_mean times the mean "
     "tokens, the others share the rest.",
     NULL},
    {"empty_rank", "The experts of one rank receive nothing, the others share it; no parameter.",
     NULL},
    {"rotating_hotspot",
     "Like hot_rank (max_over_mean); every `period` steps the next rank is "
     "hot.",
     NULL},
    {"burst", "Balanced, but every `period`-th step is a hot_rank step (max_over_mean).", NULL},
};
#define LOAD_ZIPF      (1u << 1)
#define LOAD_DIRICHLET (1u << 2)
#define LOAD_HISTOGRAM (1u << 3)
#define LOAD_HOT       (1u << 4 | 1u << 6)  /* hot_experts, spread_heat */
#define LOAD_PERIODIC  (1u << 9 | 1u << 10) /* rotating_hotspot, burst */
#define LOAD_STATED    (LOAD_HOT | LOAD_PERIODIC | 1u << 5 | 1u << 7)
#define LOAD_DRIFTS    (LOAD_ZIPF | LOAD_DIRICHLET | LOAD_HOT | 1u << 5 | 1u << 8)

static const struct schema_choice granularities[] = {
    {"step", "Loads are drawn once per step.", NULL},
    {"microbatch", "Loads are drawn for every microbatch.", NULL},
};

static const struct schema_choice replica_modes[] = {
    {"shared", "All data-parallel replicas see the same loads.", NULL},
    {"independent", "Each replica draws its own.", NULL},
};

static const struct schema_choice placements[] = {
    {"static", "Experts lie on the ranks in the order of their numbers.", NULL},
    {"random", "Static, in a seeded random order.", NULL},
    {"greedy",
     "Static, by the loads of the first step, known beforehand: the heaviest expert "
     "first, each to the lightest rank.",
     NULL},
    {"dynamic",
     "Planned anew from predicted loads; weights and optimizer states migrate at the "
     "end of the step.",
     NULL},
    {"replicate_hot", "Every rank holds the hottest experts of the first step as well.", NULL},
};
#define PLACEMENT_DYNAMIC   (1u << 3)
#define PLACEMENT_REPLICATE (1u << 4)

static const struct schema_choice predictors[] = {
    {"ema", "Exponential moving average of past loads.", NULL},
    {"window", "Mean over the last steps.", NULL},
};
#define PREDICT_EMA    (1u << 0)
#define PREDICT_WINDOW (1u << 1)

/* The index is the bit in enum module_bit. */
#define KEPT_BY_RECOMPUTE                                                                          \
    {"attention_core", "Scores, softmax and values.", NULL},                                       \
        {"qkv", "All query, key and value projections.", NULL},                                    \
        {"mla_kv_up_proj", "Key and value up-projection of MLA.", NULL}, {"norm", "Norms.", NULL}, \
        {"activation", "Activation function of feed-forward blocks and experts.", NULL},           \
        {"permute", "Permuted expert input; the dispatch runs again.", NULL},                      \
        {"expert_mlp", "Experts from input to output, without communication.", NULL},              \
        {"mlp", "Dense and shared feed-forward blocks.", NULL},                                    \
        {"moe_layer", "Router to combine, with communication.", NULL},                             \
    {                                                                                              \
        "layer", "The whole layer: only its input is kept.", NULL                                  \
    }

static const struct schema_choice recompute_modules[] = {KEPT_BY_RECOMPUTE};
static const struct schema_choice swap_modules[] = {
    KEPT_BY_RECOMPUTE,
    {"moe_permute_probs", "Permuted tokens and their probabilities.", NULL},
    {"attention", "What attention keeps for its backward pass.", NULL},
};
_Static_assert(1 << (COUNT_OF(swap_modules) - 1) == MODULE_ATTENTION, "one choice per bit");
_Static_assert(1 << (COUNT_OF(recompute_modules) - 1) == MODULE_LAYER, "one choice per bit");

static const struct schema_choice recompute_methods[] = {
    [RECOMPUTE_ALL] = {"all", "The modules of every layer.", NULL},
    [RECOMPUTE_UNIFORM] = {"uniform", "Checkpoints every `uniform` layers.", NULL},
    [RECOMPUTE_BLOCK] = {"block", "The first `block` layers of every chunk.", NULL},
    [RECOMPUTE_PER_STAGE] = {"per_stage", "A number of layers for each stage.", NULL},
};

static const struct schema_choice matmul_collectives[] = {
    [MATMUL_COLLECTIVE_NONE] = {"none", "Collectives follow their matmul.", NULL},
    [MATMUL_COLLECTIVE_MC2] = {"mc2", "One fused kernel for matmul and collective.", NULL},
    [MATMUL_COLLECTIVE_COC] = {"coc", "Matmul and collective in slices that overlap.", NULL},
};

static const struct schema_choice dispatches[] = {
    [HOST_EAGER] = {"eager", "The host issues every kernel.", NULL},
    [HOST_GRAPH] = {"graph", "The host launches captured graphs.", NULL},
};

static const struct schema_choice expansions[] = {
    {"host", "Task queues filled by the host.", NULL},
    {"aicpu", "Expanded by the AI CPU of the device.", NULL},
    {"aiv", "Kernels on the vector cores.", NULL},
};

static const struct schema_choice mfu_peaks[] = {
    [MFU_PEAK_CUBE] = {"cube", "Peak of the cube or tensor cores.", NULL},
    [MFU_PEAK_MARKETED] = {"marketed", "Peak as advertised.", NULL},
};

static const struct schema_choice mfu_attentions[] = {
    {"full", "Every query is counted with every key.", NULL},
    {"causal", "Half of that.", NULL},
};

static const struct schema_choice networks[] = {
    {"closed_form", "Formulas by algorithm and level; nothing contends.", NULL},
    {"ports", "Every step of an algorithm; sending and receiving ports serialise.", NULL},
    {"fair_share", "Max-min sharing of every link that a transfer uses.", NULL},
};

/* ---- Rows ---- */

#undef SCHEMA_STRUCT
#define SCHEMA_STRUCT struct scenario

#define SKEWED WHEN("moe.routing.load", SCHEMA_WHEN_NONZERO)

static const struct schema_row rows[] = {
    {ROW(SCHEMA_STRING, "title", title), .flags = SCHEMA_LABEL, .example = "What this file asks",
     .meaning = "One line for people."},
    {ROW(SCHEMA_INCLUDE, "model", model), .items = &model_schema, REQUIRED("pangu_ultra_moe_718b"),
     .meaning = "The architecture: a name in configs/models, a path, or a map. A map may start "
                "from another model with `base: NAME` and change keys."},
    {ROW(SCHEMA_INCLUDE, "cluster", cluster), .items = &cluster_schema, REQUIRED("atlas_800t_a2"),
     .meaning = "The hardware: a name in configs/clusters, a path, or a map. A map may start from "
                "another cluster with `base: NAME` and change keys."},
    {ROW(SCHEMA_UINT, "devices", devices), RANGE(1, RANKS_MAX), REQUIRED("6144"),
     .meaning = "Devices of the job, one rank each."},
    {ROW(SCHEMA_UINT64, "seed", seed), .fallback = "1",
     .meaning = "Seed of every random stream that has none of its own."},

    {ROW(SCHEMA_UINT, "parallel.tp", parallel.tp), RANGE(1, RANKS_MAX), .example = "8",
     .fallback = "1", .meaning = "Tensor-parallel ranks."},
    {ROW(SCHEMA_BOOL, "parallel.sequence_parallel", parallel.sequence_parallel), .fallback = "true",
     .meaning = "Activations outside the tensor-parallel matmuls are split over the sequence; no "
                "effect at tp 1."},
    {ROW(SCHEMA_UINT, "parallel.pp", parallel.pp), RANGE(1, RANKS_MAX), .example = "16",
     .fallback = "1", .meaning = "Pipeline stages."},
    {ROW(SCHEMA_UINT, "parallel.vpp", parallel.vpp), RANGE(1, 1024), .example = "2",
     .fallback = "1", .meaning = "Chunks (virtual stages) per stage."},
    {ROW(SCHEMA_UINT, "parallel.ep", parallel.ep), RANGE(1, RANKS_MAX), .example = "32",
     .fallback = "1",
     .meaning = "Real size of the expert group: over how many ranks the experts of a layer are "
                "spread. With etp 1 it spans the tensor ranks (tp-extend-ep)."},
    {ROW(SCHEMA_UINT, "parallel.etp", parallel.etp), RANGE(1, RANKS_MAX), .fallback = "1",
     .meaning = "Tensor-parallel ranks of one expert. It never follows tp: it must be written "
                "when the model has experts and ep is above 1."},
    {ROW(SCHEMA_UINT, "parallel.cp.size", parallel.cp), RANGE(1, RANKS_MAX),
     .flags = SCHEMA_SHORTHAND | SCHEMA_KEEPS, .fallback = "1",
     .meaning = "Context-parallel ranks."},
    {ROW(SCHEMA_CHOICE, "parallel.cp.method", parallel.cp_method), CHOICES(cp_methods),
     .fallback = "ring", .meaning = "How attention reaches keys of other context ranks."},
    {ROW(SCHEMA_UINT, "parallel.cp.ulysses_size", parallel.ulysses_size), RANGE(1, RANKS_MAX),
     REQUIRED("2"), WHEN("parallel.cp.method", 1u << CP_HYBRID),
     .meaning = "Ranks of the inner all-to-all group of the hybrid method."},
    {ROW(SCHEMA_UINT, "parallel.dp", parallel.dp), RANGE(1, RANKS_MAX), .zero_word = "derived",
     .fallback = "derived",
     .meaning = "Data-parallel replicas; follows from devices, and is checked if written."},
    {ROW(SCHEMA_UINT, "parallel.zero", parallel.zero), RANGE(0, 3), .fallback = "1",
     .meaning = "ZeRO stage over dp*cp: 0 nothing, 1 optimizer states (the distributed optimizer), "
                "2 gradients too, 3 parameters too."},
    {ROW(SCHEMA_STRING, "parallel.order", parallel.order), .fallback = "tp-cp-ep-dp-pp",
     .meaning = "Rank order, innermost dimension first."},
    {ROW(SCHEMA_STRING, "parallel.hosts", parallel.hosts), .example = "hosts.txt",
     .meaning = "File with one host per line in the order of ranks, as `host slots=8` or `host`; "
                "without it nodes have their ranks in the order in which they are cabled."},
    {ROW(SCHEMA_CHOICE, "parallel.stages.split", parallel.split), CHOICES(stage_splits),
     .flags = SCHEMA_SHORTHAND, .fallback = "balanced",
     .meaning = "How layers are dealt to stages. The keys below choose it by being there."},
    {ROW(SCHEMA_UINT_LIST, "parallel.stages.layers", parallel.layers),
     COUNTED(parallel.layers_count), RANGE(0, 100000), REQUIRED("[4, 4, 4, 3]"),
     WHEN("parallel.stages.split", 1u << SPLIT_LAYERS),
     IMPLIES("parallel.stages.split", SPLIT_LAYERS),
     .meaning = "Layers of each stage (pp entries) or of each chunk (pp*vpp entries, in the order "
                "in which a token passes them)."},
    {ROW(SCHEMA_UINT, "parallel.stages.first", parallel.first_layers), RANGE(1, 100000),
     .example = "3", WHEN("parallel.stages.split", 1u << SPLIT_FIRST_LAST),
     IMPLIES("parallel.stages.split", SPLIT_FIRST_LAST), .meaning = "Layers of the first stage."},
    {ROW(SCHEMA_UINT, "parallel.stages.last", parallel.last_layers), RANGE(1, 100000),
     .example = "3", WHEN("parallel.stages.split", 1u << SPLIT_FIRST_LAST),
     IMPLIES("parallel.stages.split", SPLIT_FIRST_LAST), .meaning = "Layers of the last stage."},
    {ROW(SCHEMA_UINT_LIST, "parallel.stages.noop_layers", parallel.noop_layers),
     COUNTED(parallel.noop_count), RANGE(0, 100000), REQUIRED("[0, 62, 63]"),
     WHEN("parallel.stages.split", 1u << SPLIT_NOOP), IMPLIES("parallel.stages.split", SPLIT_NOOP),
     .meaning = "Numbers of the slots that hold no layer, counted from 0."},
    {ROW(SCHEMA_STRING, "parallel.stages.layout", parallel.layout), REQUIRED("Et*3|t*4|t*4|t*3mL"),
     WHEN("parallel.stages.split", 1u << SPLIT_LAYOUT),
     IMPLIES("parallel.stages.split", SPLIT_LAYOUT),
     .meaning = "One part per chunk: E embedding, t layer, m MTP layer, L loss, *N repeats."},

    {ROW(SCHEMA_UINT, "training.seq_len", training.seq_len), RANGE(1, ELEMENTS_MAX),
     REQUIRED("8192"), .meaning = "Tokens of one sequence."},
    {ROW(SCHEMA_UINT, "training.micro_batch_size", training.micro_batch_size), RANGE(1, 1000000),
     REQUIRED("2"), .meaning = "Sequences of one microbatch."},
    {ROW(SCHEMA_UINT, "training.global_batch_size", training.global_batch_size),
     RANGE(1, ELEMENTS_MAX), REQUIRED("3072"), .meaning = "Sequences of one step, all replicas."},
    {ROW(SCHEMA_QUANTITY, "training.tokens", training.tokens), .dimension = DIMENSION_COUNT,
     RANGE(1, 1e18), .example = "18T", .meaning = "Tokens of the whole training: gives its days."},

    {ROW(SCHEMA_CHOICE, "precision.compute", precision.compute), CHOICES(compute_precisions),
     .fallback = "bf16", .meaning = "Weights and activations in forward and backward."},
    {ROW(SCHEMA_CHOICE, "precision.gradients", precision.gradients), CHOICES(state_precisions),
     .fallback = "fp32", .meaning = "Accumulated gradients."},
    {ROW(SCHEMA_CHOICE, "precision.master", precision.master), CHOICES(state_precisions),
     .fallback = "fp32", .meaning = "Master weights of the optimizer."},
    {ROW(SCHEMA_CHOICE, "precision.moments", precision.moments), CHOICES(state_precisions),
     .fallback = "fp32", .meaning = "The two moments of Adam."},
    {ROW(SCHEMA_BOOL, "precision.reuse_fp32_param", precision.reuse_fp32_param),
     .fallback = "false",
     .meaning = "The 16-bit weights are the upper half of the master weights: no second copy."},

    {ROW(SCHEMA_NAME, "schedule.kind", schedule.kind), CHOICES(schedules), .example = "interleaved",
     .fallback = "1f1b", .meaning = "Pipeline schedule."},
    {ROW(SCHEMA_UINT, "schedule.microbatch_group", schedule.microbatch_group), RANGE(1, 1000000),
     .zero_word = "pp", .fallback = "pp",
     .meaning = "Microbatches per turn of a chunk in interleaved schedules."},
    {ROW(SCHEMA_SWITCH, "schedule.p2p", schedule.p2p_overlapped), CHOICES(p2p_modes),
     .fallback = "overlapped", .meaning = "Sends and receives between stages."},

    {ROW(SCHEMA_CHOICE, "moe.dispatcher", moe.dispatcher), CHOICES(dispatchers),
     .fallback = "alltoall", .meaning = "How tokens reach their experts."},
    {ROW(SCHEMA_CHOICE, "moe.exchange", moe.exchange), CHOICES(exchanges), .fallback = "flat",
     .meaning = "Shape of the exchange between nodes."},
    {ROW(SCHEMA_BOOL, "moe.overlap.shared_expert", moe.overlap_shared_expert), .fallback = "false",
     .meaning = "Shared experts compute while tokens travel."},
    {ROW(SCHEMA_BOOL, "moe.overlap.intra_layer", moe.overlap_intra_layer), .fallback = "false",
     .meaning = "Exchange and experts of one layer overlap in slices."},
    {ROW(SCHEMA_BOOL, "moe.grouped_matmul", moe.grouped_matmul), .fallback = "true",
     .meaning = "One kernel for all experts of a rank; else one kernel per expert."},
    {ROW(SCHEMA_BOOL, "moe.fused_permute", moe.fused_permute), .fallback = "true",
     .meaning = "One kernel for each permute and unpermute."},
    {ROW(SCHEMA_CHOICE, "moe.policy", moe.policy), CHOICES(policies), .fallback = "dropless",
     .meaning = "What happens to tokens above an expert's capacity."},
    {ROW(SCHEMA_QUANTITY, "moe.capacity_factor", moe.capacity_factor), .dimension = DIMENSION_RATIO,
     RANGE(0.01, 1000), REQUIRED("1.2"),
     WHEN("moe.policy", 1u << POLICY_DROP | 1u << POLICY_DROP_AND_PAD),
     .meaning = "Capacity of an expert over the mean load."},
    {ROW(SCHEMA_WORD, "moe.routing.load", moe.load), CHOICES(loads), .flags = SCHEMA_SHORTHAND,
     .fallback = "balanced", .meaning = "How tokens spread over experts."},
    {ROW(SCHEMA_QUANTITY, "moe.routing.s", moe.zipf_s), .dimension = DIMENSION_NUMBER, RANGE(0, 10),
     REQUIRED("0.6"), WHEN("moe.routing.load", LOAD_ZIPF), .meaning = "Exponent of the Zipf law."},
    {ROW(SCHEMA_QUANTITY, "moe.routing.alpha", moe.dirichlet_alpha), .dimension = DIMENSION_NUMBER,
     RANGE(1e-3, 1e6), REQUIRED("4"), WHEN("moe.routing.load", LOAD_DIRICHLET),
     .meaning = "Concentration: small is uneven."},
    {ROW(SCHEMA_QUANTITY, "moe.routing.max_over_mean", moe.load_max_over_mean),
     .dimension = DIMENSION_RATIO, RANGE(1, 1e6), REQUIRED("2.5"),
     WHEN("moe.routing.load", LOAD_STATED),
     .meaning = "Load of what is hot over the mean: of an expert for hot_experts and spread_heat, "
                "of a rank for hot_rank, rotating_hotspot and burst, of a sender for "
                "ragged_source."},
    {ROW(SCHEMA_UINT, "moe.routing.hot", moe.routing_hot), RANGE(1, 1000000), REQUIRED("4"),
     WHEN("moe.routing.load", LOAD_HOT), .meaning = "Experts of a layer that are hot."},
    {ROW(SCHEMA_UINT, "moe.routing.period", moe.routing_period), RANGE(1, 1000000),
     .fallback = "10", WHEN("moe.routing.load", LOAD_PERIODIC),
     .meaning = "Steps until the hot rank changes, or from burst to burst."},
    {ROW(SCHEMA_STRING, "moe.routing.file", moe.load_file), REQUIRED("loads.csv"),
     WHEN("moe.routing.load", LOAD_HISTOGRAM),
     .meaning = "Tokens per layer and expert: CSV with the columns layer, expert, tokens and, if "
                "wished, step; or a JSON array [step][layer][expert] or [layer][expert] over the "
                "MoE layers. A relative path starts from the folder of the scenario. Steps "
                "beyond the last begin again with the first."},
    {ROW(SCHEMA_SWITCH, "moe.routing.granularity", moe.routing_per_microbatch),
     CHOICES(granularities), .fallback = "step", .meaning = "How often loads are drawn."},
    {ROW(SCHEMA_SWITCH, "moe.routing.replicas", moe.routing_independent_replicas),
     CHOICES(replica_modes), .fallback = "shared", .meaning = "For whom loads are drawn."},
    {ROW(SCHEMA_UINT, "moe.routing.node_limit", moe.routing_nodes), RANGE(0, 100000),
     .fallback = "0", SKEWED,
     .meaning = "Node-limited routing: the experts of a token are on at most so many nodes, so "
                "that no node gets more than (nodes of the expert group) / node_limit times the "
                "mean. What a node would get above that goes to the others. 0: no limit."},
    {ROW(SCHEMA_UINT64, "moe.routing.seed", moe.routing_seed), .fallback = "1",
     .meaning = "Seed of the loads."},
    {ROW(SCHEMA_QUANTITY, "moe.routing.drift", moe.drift), .dimension = DIMENSION_RATIO,
     RANGE(0, 1), .fallback = "0", WHEN("moe.routing.load", LOAD_DRIFTS),
     .meaning = "Share of a layer's load that moves to another expert from step to step: pairs of "
                "experts exchange their loads, so that the shape stays."},
    {ROW(SCHEMA_QUANTITY, "moe.routing.aux_loss", moe.aux_loss), .dimension = DIMENSION_NUMBER,
     RANGE(0, 1000), .fallback = "0", SKEWED,
     .meaning = "Strength a of the auxiliary loss: the excess of every load over the mean settles "
                "at 1/(1+a) of what was drawn; 0 for none."},
    {ROW(SCHEMA_QUANTITY, "moe.routing.aux_loss_steps", moe.aux_loss_steps),
     .dimension = DIMENSION_NUMBER, RANGE(0, 1e9), .fallback = "0", SKEWED,
     .meaning = "Time constant, in steps, with which the auxiliary loss narrows the loads; 0: they "
                "are narrow from the first step."},
    {ROW(SCHEMA_BOOL, "moe.routing.aux_loss_ep_group", moe.aux_loss_ep_group), .fallback = "false",
     SKEWED,
     .meaning = "The auxiliary loss balances each expert group alone; else only what the replicas "
                "(and microbatches) have in common. No difference while they share their loads."},
    {ROW(SCHEMA_WORD, "moe.placement.kind", moe.placement), CHOICES(placements),
     .flags = SCHEMA_SHORTHAND, .fallback = "static", .meaning = "Which rank holds which expert."},
    {ROW(SCHEMA_WORD, "moe.placement.predict", moe.placement_predict), CHOICES(predictors),
     .fallback = "ema", WHEN("moe.placement.kind", PLACEMENT_DYNAMIC),
     .meaning = "How the next load is predicted."},
    {ROW(SCHEMA_QUANTITY, "moe.placement.ema", moe.placement_ema), .dimension = DIMENSION_RATIO,
     RANGE(1e-6, 1), .fallback = "0.1", WHEN("moe.placement.predict", PREDICT_EMA),
     .meaning = "Weight of the newest step in the moving average."},
    {ROW(SCHEMA_UINT, "moe.placement.window", moe.placement_window), RANGE(1, 1000000),
     .fallback = "10", WHEN("moe.placement.predict", PREDICT_WINDOW),
     .meaning = "Steps in the window."},
    {ROW(SCHEMA_UINT, "moe.placement.every", moe.placement_every), RANGE(1, 1000000),
     .fallback = "10", WHEN("moe.placement.kind", PLACEMENT_DYNAMIC),
     .meaning = "Steps between two plans."},
    {ROW(SCHEMA_QUANTITY, "moe.placement.min_gain", moe.placement_min_gain),
     .dimension = DIMENSION_RATIO, RANGE(0, 1), .fallback = "2 %",
     WHEN("moe.placement.kind", PLACEMENT_DYNAMIC),
     .meaning = "A plan is carried out if it takes this share off the heaviest load."},
    {ROW(SCHEMA_UINT, "moe.placement.hot", moe.placement_hot), RANGE(1, 1000000), REQUIRED("4"),
     WHEN("moe.placement.kind", PLACEMENT_REPLICATE),
     .meaning = "Experts of a layer that every rank holds."},

    {ROW(SCHEMA_SET, "recompute.modules", recompute.modules), CHOICES(recompute_modules),
     .example = "[mla_kv_up_proj, norm, activation, permute]", .fallback = "[]",
     .meaning = "What is dropped after the forward pass and computed again."},
    {ROW(SCHEMA_CHOICE, "recompute.layers.method", recompute.method), CHOICES(recompute_methods),
     .flags = SCHEMA_SHORTHAND, .fallback = "all",
     .meaning = "Which layers recompute: `layers: all`, `layers: {uniform: N}`, "
                "`layers: {block: N}` or `layers: {per_stage: [..]}`."},
    {ROW(SCHEMA_UINT, "recompute.layers.uniform", recompute.layers), RANGE(1, 100000),
     REQUIRED("1"), WHEN("recompute.layers.method", 1u << RECOMPUTE_UNIFORM),
     IMPLIES("recompute.layers.method", RECOMPUTE_UNIFORM), .meaning = "Layers per checkpoint."},
    {ROW(SCHEMA_UINT, "recompute.layers.block", recompute.layers), RANGE(1, 100000), REQUIRED("2"),
     WHEN("recompute.layers.method", 1u << RECOMPUTE_BLOCK),
     IMPLIES("recompute.layers.method", RECOMPUTE_BLOCK),
     .meaning = "Layers at the start of each chunk."},
    {ROW(SCHEMA_UINT_LIST, "recompute.layers.per_stage", recompute.stage_layers),
     COUNTED(recompute.stage_layers_count), RANGE(0, 100000), REQUIRED("[4, 2, 1, 0]"),
     WHEN("recompute.layers.method", 1u << RECOMPUTE_PER_STAGE),
     IMPLIES("recompute.layers.method", RECOMPUTE_PER_STAGE), .meaning = "Layers of each stage."},
    {ROW(SCHEMA_BOOL, "recompute.in_bubble", recompute.in_bubble), .fallback = "false",
     .pending = "recompute inside pipeline bubbles is not simulated",
     .meaning = "Recompute starts early, in the bubble before the backward pass."},

    {ROW(SCHEMA_SET, "swap.activations", swap.activations), CHOICES(swap_modules), .fallback = "[]",
     .meaning = "Activations that wait in host memory."},
    {ROW(SCHEMA_BOOL, "swap.optimizer", swap.optimizer), .fallback = "false",
     .meaning = "Optimizer states live in host memory."},

    {ROW(SCHEMA_BOOL, "overlap.grad_reduce", overlap.grad_reduce), .example = "true",
     .fallback = "false", .meaning = "Gradient reduction runs beside the backward pass."},
    {ROW(SCHEMA_BOOL, "overlap.param_gather", overlap.param_gather), .example = "true",
     .fallback = "false", .meaning = "Parameter gathers run beside the forward pass."},
    {ROW(SCHEMA_CHOICE, "overlap.matmul_collective", overlap.matmul_collective),
     CHOICES(matmul_collectives), .fallback = "none",
     .meaning = "Overlap of tensor-parallel collectives with their matmul."},
    {ROW(SCHEMA_BOOL, "overlap.tp_backward", overlap.tp_backward), .fallback = "true",
     .meaning = "Tensor-parallel communication of input gradients runs beside the matmul of the "
                "weight gradient (Megatron's asynchronous all-reduce)."},
    {ROW(SCHEMA_BOOL, "overlap.cp_comm", overlap.cp_comm), .fallback = "true",
     .meaning = "Context-parallel transfers run beside attention."},

    {ROW(SCHEMA_CHOICE, "host.dispatch", host.dispatch), CHOICES(dispatches), .fallback = "eager",
     .meaning = "How kernels are issued."},

    {ROW(SCHEMA_BOOL, "fusion.flash_attention", fusion.flash_attention), .fallback = "true",
     .meaning = "Attention without a matrix of scores in memory."},
    {ROW(SCHEMA_BOOL, "fusion.norm", fusion.norm), .fallback = "true",
     .meaning = "One kernel per norm."},
    {ROW(SCHEMA_BOOL, "fusion.swiglu", fusion.swiglu), .fallback = "true",
     .meaning = "One kernel for gate, activation and product."},
    {ROW(SCHEMA_BOOL, "fusion.rope", fusion.rope), .fallback = "true",
     .meaning = "One kernel per rotary embedding."},
    {ROW(SCHEMA_BOOL, "fusion.grad_accumulation", fusion.grad_accumulation), .fallback = "true",
     .meaning = "Weight-gradient matmuls read and write the gradient buffer; false: they write a "
                "16-bit tensor, which a kernel per parameter adds."},
    {ROW(SCHEMA_BOOL, "fusion.cross_entropy", fusion.cross_entropy), .fallback = "false",
     .meaning = "Loss without an fp32 copy of the logits."},

    {ROW(SCHEMA_QUANTITY, "collectives.buffer", collectives.buffer_bytes),
     .dimension = DIMENSION_BYTES, RANGE(1e3, 1e12), .fallback = "200 MB",
     .meaning = "Buffer of one communicator (HCCL_BUFFSIZE); it is allocated twice."},
    {ROW(SCHEMA_WORD, "collectives.expansion", collectives.expansion), CHOICES(expansions),
     .fallback = "host", .meaning = "Who expands a collective into transfers."},
    {ROW(SCHEMA_NAME, "collectives.intra_algorithm", collectives.intra_algorithm),
     .fallback = "auto", .meaning = "Algorithm inside a node; auto follows the cluster's rules."},
    {ROW(SCHEMA_NAME, "collectives.inter_algorithm", collectives.inter_algorithm),
     .fallback = "auto", .meaning = "Algorithm between nodes; auto follows the cluster's rules."},

    {ROW(SCHEMA_CHOICE, "mfu.peak", mfu.peak), CHOICES(mfu_peaks), .fallback = "cube",
     .meaning = "Peak that MFU is measured against."},
    {ROW(SCHEMA_SWITCH, "mfu.attention", mfu.attention_causal), CHOICES(mfu_attentions),
     .fallback = "full", .meaning = "How the FLOPs of attention are counted."},
    {ROW(SCHEMA_BOOL, "mfu.mtp", mfu.mtp), .fallback = "true",
     .meaning = "MTP layers and their pass through the head count as model FLOPs."},
    {ROW(SCHEMA_BOOL, "mfu.router", mfu.router), .fallback = "false",
     .meaning = "The router counts as model FLOPs."},

    {ROW(SCHEMA_NAME, "network", network), CHOICES(networks), .fallback = "closed_form",
     .meaning = "Fidelity of the network."},

    {ROW(SCHEMA_QUANTITY, "noise.kernel_jitter", noise.kernel_jitter), .dimension = DIMENSION_RATIO,
     RANGE(0, 1), .fallback = "0",
     .meaning = "Relative standard deviation of the time of every compute operation; above 0 all "
                "ranks are simulated."},
    {ROW(SCHEMA_ITEMS, "noise.slow_ranks", noise.slow_ranks), COUNTED(noise.slow_rank_count),
     .items = &slow_rank_schema, .fallback = "[]",
     .meaning = "Ranks that compute slowly: rank, and factor on the time of its compute "
                "operations."},
    {ROW(SCHEMA_ITEMS, "noise.slow_links", noise.slow_links), COUNTED(noise.slow_link_count),
     .items = &slow_link_schema, .fallback = "[]",
     .meaning = "Links that carry less than their bandwidth: level, rank at its end, factor. A "
                "collective over the level is as slow as its slowest member, a message as the "
                "slower of its ends."},

    {ROW(SCHEMA_ITEMS, "faults", faults), COUNTED(fault_count), .items = &fault_schema,
     .fallback = "[]",
     .meaning =
         "Broken and slow hardware by name. Plain text is the part, broken: [spine 2, "
         "{part: nic 5 of node 17, speed: 0.5}]. Spare nodes take the place of broken ones."},

    {ROW(SCHEMA_QUANTITY, "memory.reserve", memory.reserve_bytes), .dimension = DIMENSION_BYTES,
     RANGE(0, 1e15), .fallback = "1 GiB",
     .meaning = "What the framework holds besides tensors; hbm_usable leaves the driver out."},
    {ROW(SCHEMA_QUANTITY, "memory.require_headroom", memory.require_headroom_bytes),
     .dimension = DIMENSION_BYTES, RANGE(0, 1e15), .fallback = "0 B",
     .meaning = "Memory that must stay free for a layout to fit."},
    {ROW(SCHEMA_UINT, "memory.logits_chunks", memory.logits_chunks), RANGE(1, 1000000),
     .fallback = "1", .meaning = "The loss is computed over this many chunks of the sequence."},
    {ROW(SCHEMA_BOOL, "memory.mtp_own_embedding", memory.mtp_own_embedding), .fallback = "true",
     .meaning = "A stage with MTP holds an embedding and a head of its own."},
};

static const struct schema_section sections[] = {
    {"parallel", "The layout: degrees, rank order and the deal of layers to stages."},
    {"parallel.cp", "Context parallelism; a plain number is its size."},
    {"parallel.stages", "Deal of layers; a plain word is its split."},
    {"training", "Batch and sequence."},
    {"precision", "Number formats of weights and states."},
    {"schedule", "Order of microbatches on the pipeline."},
    {"moe", "How experts are run; no effect on a dense model."},
    {"moe.overlap", "Overlap inside a MoE layer."},
    {"moe.routing", "Expert loads; a plain word is the load."},
    {"moe.placement", "Experts on ranks; a plain word is the kind."},
    {"recompute", "Activations computed twice instead of kept."},
    {"recompute.layers", "Which layers recompute; a plain word is the method."},
    {"swap", "Memory moved to the host."},
    {"overlap", "Communication beside compute."},
    {"host", "Issue of kernels."},
    {"fusion", "Fused kernels."},
    {"collectives", "Communication library."},
    {"mfu", "Convention by which model FLOPs utilisation is stated."},
    {"noise", "Slow and noisy hardware."},
    {"memory", "Memory besides the model's own."},
};

const struct schema_table scenario_schema = {
    .name = "scenario",
    .title = "Scenario",
    .noun = "scenario",
    .rows = rows,
    .row_count = COUNT_OF(rows),
    .sections = sections,
    .section_count = COUNT_OF(sections),
    .struct_size = sizeof(struct scenario),
    .origins_offset = offsetof(struct scenario, origins),
};
