/*
 * model_check.c - combinations that no model can have.
 *
 * Ranges of single values belong to the schema; here are the rules that join several
 * keys. What a kind of attention or FFN needs must be there, and what it cannot use must
 * not be, so that no number is silently ignored.
 */
#include "model_internal.h"

struct checker {
    const struct scenario *scenario;
    struct error_list *errors;
};

static struct location at(const struct checker *check, const char *key)
{
    return scenario_at(check->scenario, key);
}

/* A width that the model cannot do without. */
static void need(const struct checker *check, uint32_t value, const char *key, const char *why)
{
    if (value == 0)
        error_add(check->errors, ERROR_missing_key, at(check, key), key, "0 or not given, but %s",
                  why);
}

static void check_headed_attention(const struct checker *check)
{
    const struct attention_spec *attention = &check->scenario->model.attention;
    const char *key = "model.attention.kv_heads";
    need(check, attention->head_dim, "model.attention.head_dim",
         "multi-head and grouped-query attention need the width of a head");
    if (attention->kind == ATTENTION_MHA) {
        if (attention->kv_heads != 0 && attention->kv_heads != attention->heads)
            error_add(check->errors, ERROR_conflicting_keys, at(check, key), key,
                      "%u, but multi-head attention has as many as heads (%u); leave it out or use "
                      "kind gqa",
                      attention->kv_heads, attention->heads);
        return;
    }
    need(check, attention->kv_heads, key, "grouped-query attention needs the number of key heads");
    if (attention->kv_heads > 0 && attention->heads % attention->kv_heads != 0)
        error_add(check->errors, ERROR_conflicting_keys, at(check, key), key,
                  "%u heads do not divide into %u groups of queries", attention->heads,
                  attention->kv_heads);
}

static void check_latent_attention(const struct checker *check)
{
    const struct attention_spec *attention = &check->scenario->model.attention;
    const char *why = "latent attention needs it";
    need(check, attention->kv_lora_rank, "model.attention.kv_lora_rank", why);
    need(check, attention->qk_nope_head_dim + attention->qk_rope_head_dim,
         "model.attention.qk_nope_head_dim", why);
    need(check, attention->v_head_dim, "model.attention.v_head_dim", why);
    if (attention->qk_norm)
        error_add(check->errors, ERROR_conflicting_keys, at(check, "model.attention.qk_norm"),
                  "model.attention.qk_norm",
                  "latent attention has its norms on the latents, always; leave this key out");
}

static void check_attention(const struct checker *check)
{
    const struct attention_spec *attention = &check->scenario->model.attention;
    need(check, attention->heads, "model.attention.heads", "attention has at least one head");
    if (attention->kind == ATTENTION_MLA)
        check_latent_attention(check);
    else
        check_headed_attention(check);
    if (attention->window > 0)
        need(check, attention->window_every, "model.attention.window_every",
             "a window needs to know which layers have it (1: every layer)");
}

static void check_groups(const struct checker *check)
{
    const struct moe_spec *moe = &check->scenario->model.moe;
    if (moe->groups <= 1)
        return;
    if (moe->experts % moe->groups != 0) {
        error_add(check->errors, ERROR_conflicting_keys, at(check, "model.moe.groups"),
                  "model.moe.groups", "%u experts do not divide into %u groups", moe->experts,
                  moe->groups);
        return;
    }
    const uint32_t reachable = moe->groups_top_k * (moe->experts / moe->groups);
    if (moe->groups_top_k == 0 || moe->groups_top_k > moe->groups || moe->top_k > reachable)
        error_add(check->errors, ERROR_conflicting_keys, at(check, "model.moe.groups_top_k"),
                  "model.moe.groups_top_k",
                  "%u of %u groups hold %u experts, but a token goes to %u", moe->groups_top_k,
                  moe->groups, reachable, moe->top_k);
}

static void check_dense_model(const struct checker *check)
{
    const struct moe_spec *moe = &check->scenario->model.moe;
    if (moe->shared_intermediate_size > 0 || moe->intermediate_size > 0)
        error_add(check->errors, ERROR_conflicting_keys, at(check, "model.moe.experts"),
                  "model.moe.experts",
                  "0, but expert widths are given (%u routed, %u shared); give the number of "
                  "experts or leave out `moe`",
                  moe->intermediate_size, moe->shared_intermediate_size);
}

static void check_moe(const struct checker *check)
{
    const struct model_spec *model = &check->scenario->model;
    const struct moe_spec *moe = &model->moe;
    need(check, moe->intermediate_size, "model.moe.intermediate_size",
         "routed experts need their width");
    need(check, moe->layer_freq, "model.moe.layer_freq",
         "it tells which layers are MoE (1: every layer after the dense ones)");
    if (moe->top_k == 0 || moe->top_k > moe->experts)
        error_add(check->errors, ERROR_conflicting_keys, at(check, "model.moe.top_k"),
                  "model.moe.top_k", "a token goes to %u of %u experts; 1 to %u would work",
                  moe->top_k, moe->experts, moe->experts);
    if (moe->first_dense_layers >= model->layers)
        error_add(check->errors, ERROR_conflicting_keys, at(check, "model.moe.first_dense_layers"),
                  "model.moe.first_dense_layers",
                  "%u of %u layers are dense, which leaves no layer to the experts",
                  moe->first_dense_layers, model->layers);
    if (moe->shared_gate)
        need(check, moe->shared_intermediate_size, "model.moe.shared_intermediate_size",
             "shared_gate needs shared experts");
    check_groups(check);
}

static bool has_dense_layer(const struct model_spec *model)
{
    return model->moe.experts == 0 || model->moe.first_dense_layers > 0 ||
           (model->moe.layer_freq > 1 && model->layers > 1);
}

static void check_positions(const struct checker *check)
{
    const struct model_spec *model = &check->scenario->model;
    if (model->position != POSITION_LEARNED)
        return;
    need(check, model->max_position, "model.max_position",
         "learned positions need the length of their table");
    if (model->max_position > 0 && check->scenario->training.seq_len > model->max_position)
        error_add(check->errors, ERROR_conflicting_keys, at(check, "training.seq_len"),
                  "training.seq_len", "%u tokens pass the %u learned positions of the model",
                  check->scenario->training.seq_len, model->max_position);
}

bool model_check(const struct scenario *scenario, struct error_list *errors)
{
    const struct checker check = {scenario, errors};
    const struct model_spec *model = &scenario->model;
    const size_t before = errors->count;

    need(&check, model->layers, "model.layers", "a model has at least one layer");
    need(&check, model->hidden_size, "model.hidden_size", "every matrix needs it");
    need(&check, model->vocab_size, "model.vocab_size", "embedding and head need it");
    need(&check, model->norms_per_layer, "model.norm.per_layer",
         "a layer has 2 norms, or 4 with sandwich norm");
    check_attention(&check);
    if (model->moe.experts == 0)
        check_dense_model(&check);
    else
        check_moe(&check);
    if (has_dense_layer(model))
        need(&check, model->ffn_intermediate_size, "model.ffn.intermediate_size",
             "dense layers need the width of their FFN");
    check_positions(&check);
    return errors->count == before;
}
