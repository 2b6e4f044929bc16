/*
 * switches.c - preconditions of overlap, recompute and swap switches.
 *
 * A switch that could not act is refused with the reason, never ignored: a setting without
 * effect in a published layout is a mistake of the layout. docs/switches.md has the table.
 */

#include "op_writer.h"

struct refusal {
    enum error_code code;
    const char *key;
    const char *reason; /* what clashes and what would work */
};

static void refuse(const struct op_graph_ask *ask, const struct refusal *refusal,
                   struct error_list *errors)
{
    error_add(errors, refusal->code, scenario_at(ask->scenario, refusal->key), refusal->key, "%s",
              refusal->reason);
}

/* One row a condition; rows whose `broken` is true are refused. */
struct rule {
    bool broken;
    struct refusal refusal;
};

static void apply(const struct op_graph_ask *ask, const struct rule *rules, size_t count,
                  struct error_list *errors)
{
    for (size_t i = 0; i < count; i++) {
        if (rules[i].broken)
            refuse(ask, &rules[i].refusal, errors);
    }
}

#define APPLY(ask, rules, errors) apply(ask, rules, sizeof(rules) / sizeof((rules)[0]), errors)

static bool has_experts(const struct op_graph_ask *ask)
{
    return ask->model->spec->moe.experts > 0;
}

/* Pairs of a forward and a backward hide the all-to-all of experts: MindSpeed's conditions
 * for moe-fb-overlap (cases.csv L19), less those that are limits of its code alone. */
static void check_pairs(const struct op_graph_ask *ask, struct error_list *errors)
{
    const struct scenario *s = ask->scenario;
    const bool pairs = ask->pairs && has_experts(ask);
    const struct rule rules[] = {
        {pairs && s->moe.dispatcher != DISPATCHER_ALLTOALL,
         {ERROR_overlap_precondition, "moe.dispatcher",
          "an overlapping schedule hides an all-to-all; set moe.dispatcher: alltoall or another "
          "schedule.kind"}},
        {pairs && !s->moe.grouped_matmul,
         {ERROR_overlap_precondition, "moe.grouped_matmul",
          "an overlapping schedule needs grouped matmuls: kernels in a loop leave no room for "
          "another microbatch; set moe.grouped_matmul: true"}},
        {pairs && ask->layout->etp > 1,
         {ERROR_overlap_precondition, "parallel.etp",
          "an overlapping schedule needs whole experts on a rank; set parallel.etp: 1 and a "
          "larger ep"}},
    };
    APPLY(ask, rules, errors);
}

static void check_overlap(const struct op_graph_ask *ask, struct error_list *errors)
{
    const struct scenario *s = ask->scenario;
    const struct layout *layout = ask->layout;
    const bool shared = ask->model->spec->moe.shared_intermediate_size > 0;
    const struct rule rules[] = {
        {s->overlap.matmul_collective != MATMUL_COLLECTIVE_NONE && layout->tp > 1 &&
             !layout->sequence_parallel,
         {ERROR_overlap_precondition, "overlap.matmul_collective",
          "fused matmul-collective kernels need sequence parallelism; set "
          "parallel.sequence_parallel: true or overlap.matmul_collective: none"}},
        {s->moe.overlap_shared_expert && !(has_experts(ask) && shared),
         {ERROR_overlap_precondition, "moe.overlap.shared_expert",
          "the model has no shared experts that could compute while tokens travel; leave it "
          "false"}},
        {s->moe.overlap_intra_layer && !has_experts(ask),
         {ERROR_overlap_precondition, "moe.overlap.intra_layer",
          "the model has no experts; leave it false"}},
        {s->moe.exchange == EXCHANGE_HIERARCHICAL && s->moe.dispatcher != DISPATCHER_ALLTOALL,
         {ERROR_overlap_precondition, "moe.exchange",
          "the hierarchical exchange is an all-to-all; set moe.dispatcher: alltoall or "
          "moe.exchange: flat"}},
        {s->parallel.zero == 3 && (ask->splits_backward || ask->pairs),
         {ERROR_overlap_precondition, "parallel.zero",
          "zero 3 gathers weights around whole backward passes; use it with gpipe, 1f1b or "
          "interleaved, or set parallel.zero: 1"}},
    };
    APPLY(ask, rules, errors);
    if (has_experts(ask) && layout->tp > 1 && !layout->sequence_parallel &&
        layout->etp != layout->tp) {
        error_add(errors, ERROR_overlap_precondition, scenario_at(s, "parallel.etp"),
                  "parallel.etp",
                  "experts with tp %u and no sequence parallelism need etp = tp, not %u; set "
                  "parallel.sequence_parallel: true or etp: %u",
                  layout->tp, layout->etp, layout->tp);
    }
}

static void check_recompute(const struct op_graph_ask *ask, struct error_list *errors)
{
    const struct recompute_spec *spec = &ask->scenario->recompute;
    const bool mla = ask->model->spec->attention.kind == ATTENTION_MLA;
    const uint32_t of_experts = MODULE_PERMUTE | MODULE_EXPERT_MLP | MODULE_MOE_LAYER;
    const struct rule rules[] = {
        {(spec->modules & MODULE_MLA_KV_UP_PROJ) != 0 && !mla,
         {ERROR_recompute_precondition, "recompute.modules",
          "mla_kv_up_proj is a part of multi-head latent attention, which this model has not; "
          "qkv is the like of it"}},
        {(spec->modules & of_experts) != 0 && !has_experts(ask),
         {ERROR_recompute_precondition, "recompute.modules",
          "permute, expert_mlp and moe_layer are parts of a MoE layer, and the model has no "
          "experts; mlp is the like of them"}},
        {spec->method == RECOMPUTE_PER_STAGE && spec->stage_layers_count != ask->layout->pp,
         {ERROR_recompute_precondition, "recompute.layers",
          "the list of layers per stage needs one number for each of the pp stages"}},
    };
    APPLY(ask, rules, errors);
}

static void check_swap(const struct op_graph_ask *ask, struct error_list *errors)
{
    const struct swap_spec *swap = &ask->scenario->swap;
    const uint32_t of_experts =
        MODULE_PERMUTE_PROBS | MODULE_PERMUTE | MODULE_EXPERT_MLP | MODULE_MOE_LAYER;
    const struct rule rules[] = {
        {(swap->activations & of_experts) != 0 && !has_experts(ask),
         {ERROR_swap_precondition, "swap.activations",
          "the model has no experts whose tokens could wait in host memory; attention can"}},
        {swap->optimizer && ask->scenario->parallel.zero == 3,
         {ERROR_swap_precondition, "swap.optimizer",
          "states of zero 3 stay with their shards; set parallel.zero: 1 or swap.optimizer: "
          "false"}},
    };
    APPLY(ask, rules, errors);
}

bool switches_check(const struct op_graph_ask *ask, struct error_list *errors)
{
    const size_t before = errors->count;
    check_pairs(ask, errors);
    check_overlap(ask, errors);
    check_recompute(ask, errors);
    check_swap(ask, errors);
    return errors->count == before;
}
