/*
 * launch_args.c - the arguments with which Megatron-LM or MindSpeed-LLM would run a layout.
 *
 * Only what the layout and its switches say: sizes of the model, data and optimizer stay with
 * the user's script. Settings that a dialect has no argument for become comments, so that
 * nothing is dropped in silence.
 */
#include "search_internal.h"
#include "stepsim/text.h"

#include <string.h>

struct writer {
    struct text text;
    const struct scenario *scenario;
    const struct layout *layout;
    bool mindspeed;
};

#define ARGUMENT(writer, ...)                                                                      \
    (text_add(&(writer)->text, __VA_ARGS__), text_add(&(writer)->text, "\n"))

static void write_degrees(struct writer *w)
{
    const struct layout *layout = w->layout;
    ARGUMENT(w, "--tensor-model-parallel-size %u", layout->tp);
    ARGUMENT(w, "--pipeline-model-parallel-size %u", layout->pp);
    if (layout->cp > 1) {
        ARGUMENT(w, "--context-parallel-size %u", layout->cp);
        const enum cp_method method = w->scenario->parallel.cp_method;
        if (w->mindspeed) {
            ARGUMENT(w, "--context-parallel-algo %s",
                     method == CP_RING      ? "megatron_cp_algo"
                     : method == CP_ULYSSES ? "ulysses_cp_algo"
                                            : "hybrid_cp_algo");
            if (method == CP_HYBRID) {
                ARGUMENT(w, "--ulysses-degree-in-cp %u", layout->ulysses);
            }
        } else {
            ARGUMENT(w, "--cp-comm-type %s",
                     method == CP_RING      ? "p2p"
                     : method == CP_ULYSSES ? "a2a"
                                            : "a2a+p2p");
            if (method == CP_HYBRID) {
                ARGUMENT(w, "--hierarchical-context-parallel-sizes %u %u", layout->ulysses,
                         layout->ring);
            }
        }
    }
    if (layout->sequence_parallel) {
        ARGUMENT(w, "--sequence-parallel");
    }
}

/* MindSpeed counts the expert group in tensor groups when it spans them. */
static void write_experts(struct writer *w)
{
    const struct layout *layout = w->layout;
    const struct moe_run_spec *moe = &w->scenario->moe;
    if (layout->experts_per_rank == 0) {
        return;
    }
    const bool extends = w->mindspeed && layout->tp > 1 && layout->etp == 1;
    if (extends && layout->ep % layout->tp == 0) {
        ARGUMENT(w, "--expert-model-parallel-size %u", layout->ep / layout->tp);
        ARGUMENT(w, "--moe-tp-extend-ep");
    } else {
        ARGUMENT(w, "--expert-model-parallel-size %u", layout->ep);
        if (extends || (w->mindspeed && layout->etp != layout->tp)) {
            ARGUMENT(w, "# etp %u beside tp %u, with ep no multiple of tp, has no argument",
                     layout->etp, layout->tp);
        }
        if (!w->mindspeed) {
            ARGUMENT(w, "--expert-tensor-parallel-size %u", layout->etp);
        }
    }
    ARGUMENT(w, "--moe-token-dispatcher-type %s",
             moe->dispatcher == DISPATCHER_ALLGATHER ? "allgather" : "alltoall");
    if (moe->grouped_matmul) {
        ARGUMENT(w, "--moe-grouped-gemm");
    }
    if (moe->overlap_shared_expert) {
        ARGUMENT(w, "%s",
                 w->mindspeed ? "--moe-alltoall-overlap-comm" : "--moe-shared-expert-overlap");
    }
    if (moe->exchange == EXCHANGE_HIERARCHICAL && moe->dispatcher == DISPATCHER_ALLTOALL) {
        ARGUMENT(w, "# the hierarchical exchange is chosen by the dispatcher's own settings");
    }
    if (moe->policy != POLICY_DROPLESS) {
        ARGUMENT(w, "--moe-expert-capacity-factor %g", moe->capacity_factor);
    }
    if (moe->policy == POLICY_DROP_AND_PAD) {
        ARGUMENT(w, "--moe-pad-expert-input-to-capacity");
    }
}

/* Do all chunks hold the same number of layers? */
static bool even(const struct layout *layout)
{
    for (uint32_t i = 1; i < layout->pp * layout->vpp; i++) {
        if (layout->chunks[i].layer_count != layout->chunks[0].layer_count) {
            return false;
        }
    }
    return true;
}

/* Uneven layers for MindSpeed: slots that hold nothing fill every chunk up to the largest. */
static void write_noop_layers(struct writer *w)
{
    const struct layout *layout = w->layout;
    uint32_t most = 0;
    for (uint32_t i = 0; i < layout->pp * layout->vpp; i++) {
        most = layout->chunks[i].layer_count > most ? layout->chunks[i].layer_count : most;
    }
    struct text list = {0};
    for (uint32_t k = 0; k < layout->pp * layout->vpp; k++) {
        const struct layout_chunk *chunk =
            &layout->chunks[layout_stage_of(layout, k) * layout->vpp + layout_chunk_of(layout, k)];
        for (uint32_t i = chunk->layer_count; i < most; i++) {
            text_add(&list, "%s%u", list.length > 0 ? "," : "", k * most + i);
        }
    }
    ARGUMENT(w, "--num-layers %u", most * layout->pp * layout->vpp);
    ARGUMENT(w, "--noop-layers %s", text_string(&list));
    if (layout->vpp > 1) {
        ARGUMENT(w, "--num-layers-per-virtual-pipeline-stage %u", most);
    }
    text_free(&list);
}

static void write_pipeline(struct writer *w)
{
    const struct layout *layout = w->layout;
    const char *kind = w->scenario->schedule.kind;
    if (layout->pp == 1) {
        return;
    }
    if (even(layout)) {
        if (layout->vpp > 1 && !layout->v_shaped) {
            ARGUMENT(w, "--num-layers-per-virtual-pipeline-stage %u",
                     layout->chunks[0].layer_count);
        }
    } else if (w->mindspeed) {
        write_noop_layers(w);
    } else {
        ARGUMENT(w, "--pipeline-model-parallel-layout \"%s\"", layout->chunk_text);
    }
    if (strcmp(kind, "overlapped_1f1b") == 0) {
        ARGUMENT(w, "%s", w->mindspeed ? "--moe-fb-overlap" : "--overlap-moe-expert-parallel-comm");
    } else if (strcmp(kind, "dualpipe_v") == 0 && w->mindspeed) {
        ARGUMENT(w, "--schedules-method dualpipev");
        ARGUMENT(w, "--moe-fb-overlap");
    } else if (strcmp(kind, "1f1b") != 0 && strcmp(kind, "interleaved") != 0) {
        ARGUMENT(w, "# schedule %s has no argument", kind);
    }
    const uint32_t group = w->scenario->schedule.microbatch_group;
    if (group != 0 && group != layout->pp && layout->vpp > 1) {
        ARGUMENT(w, "--microbatch-group-size-per-virtual-pipeline-stage %u", group);
    }
    if (w->mindspeed ? w->scenario->schedule.p2p_overlapped && layout->vpp > 1
                     : !w->scenario->schedule.p2p_overlapped && layout->vpp > 1) {
        ARGUMENT(w, "%s",
                 w->mindspeed ? "--overlap-p2p-communication" : "--no-overlap-p2p-communication");
    }
}

static void write_data(struct writer *w)
{
    const struct scenario *scenario = w->scenario;
    ARGUMENT(w, "--micro-batch-size %u", w->layout->micro_batch_size);
    ARGUMENT(w, "--global-batch-size %u", scenario->training.global_batch_size);
    ARGUMENT(w, "--seq-length %u", scenario->training.seq_len);
    if (scenario->parallel.zero >= 1) {
        ARGUMENT(w, "--use-distributed-optimizer");
    }
    if (scenario->parallel.zero >= 2) {
        ARGUMENT(w, "# zero %u: --data-parallel-sharding-strategy %s, with Megatron-FSDP",
                 scenario->parallel.zero,
                 scenario->parallel.zero == 2 ? "optim_grads" : "optim_grads_params");
    }
    if (scenario->overlap.grad_reduce) {
        ARGUMENT(w, "--overlap-grad-reduce");
    }
    if (scenario->overlap.param_gather) {
        ARGUMENT(w, "--overlap-param-gather");
    }
    if (scenario->overlap.matmul_collective != MATMUL_COLLECTIVE_NONE) {
        const bool mc2 = scenario->overlap.matmul_collective == MATMUL_COLLECTIVE_MC2;
        ARGUMENT(w, "%s",
                 !w->mindspeed ? "--tp-comm-overlap"
                 : mc2         ? "--use-ascend-mc2"
                               : "--use-ascend-coc");
    }
}

struct module_word {
    uint32_t bit;
    const char *megatron;  /* --recompute-modules; NULL: none */
    const char *mindspeed; /* an argument of its own; NULL: none */
    const char *name;
};

static const struct module_word modules[] = {
    {MODULE_ATTENTION_CORE, "core_attn", NULL, "attention_core"},
    {MODULE_QKV, NULL, NULL, "qkv"},
    {MODULE_MLA_KV_UP_PROJ, "mla_up_proj", "--recompute-mla-up-proj", "mla_kv_up_proj"},
    {MODULE_NORM, "layernorm", "--recompute-norm", "norm"},
    {MODULE_ACTIVATION, "moe_act", "--recompute-activation-function", "activation"},
    {MODULE_MLP, "mlp", NULL, "mlp"},
    {MODULE_MOE_LAYER, "moe", NULL, "moe_layer"},
    {MODULE_PERMUTE, NULL, NULL, "permute"},
    {MODULE_EXPERT_MLP, NULL, NULL, "expert_mlp"},
};

static void write_memory(struct writer *w)
{
    const struct scenario *scenario = w->scenario;
    const struct recompute_spec *spec = &scenario->recompute;
    if ((spec->modules & MODULE_LAYER) != 0) {
        ARGUMENT(w, "--recompute-granularity full");
        ARGUMENT(w, "--recompute-method %s", spec->method == RECOMPUTE_BLOCK ? "block" : "uniform");
        ARGUMENT(w, "--recompute-num-layers %u", spec->layers > 0 ? spec->layers : 1);
    } else if (spec->modules != 0) {
        struct text list = {0};
        for (size_t i = 0; i < sizeof modules / sizeof modules[0]; i++) {
            if ((spec->modules & modules[i].bit) == 0) {
                continue;
            }
            const char *word = w->mindspeed ? modules[i].mindspeed : modules[i].megatron;
            if (word == NULL) {
                ARGUMENT(w, "# recompute of %s has no argument", modules[i].name);
            } else if (w->mindspeed) {
                ARGUMENT(w, "%s", word);
            } else {
                text_add(&list, " %s", word);
            }
        }
        if (list.length > 0) {
            ARGUMENT(w, "--recompute-granularity selective");
            ARGUMENT(w, "--recompute-modules%s", text_string(&list));
        }
        text_free(&list);
    }
    if (scenario->swap.activations != 0) {
        ARGUMENT(w, "%s",
                 w->mindspeed && (scenario->swap.activations & MODULE_ATTENTION) != 0
                     ? "--swap-attention"
                     : "# the swap of these activations has no argument");
    }
    if (scenario->swap.optimizer) {
        ARGUMENT(w, "%s", w->mindspeed ? "--swap-optimizer" : "--optimizer-cpu-offload");
    }
    if (scenario->precision.reuse_fp32_param && w->mindspeed) {
        ARGUMENT(w, "--reuse-fp32-param");
    }
}

const char *launch_arguments(const struct scenario *scenario, const struct layout *layout,
                             enum launch_dialect dialect, struct arena *arena)
{
    struct writer writer = {
        .scenario = scenario, .layout = layout, .mindspeed = dialect == LAUNCH_MINDSPEED};
    write_degrees(&writer);
    write_experts(&writer);
    write_pipeline(&writer);
    write_data(&writer);
    write_memory(&writer);
    const char *text = arena_strdup(arena, text_string(&writer.text));
    text_free(&writer.text);
    return text;
}
