/*
 * model_flop.c - model FLOPs of one token, from the widths of every matmul.
 *
 * A matmul of one row with an a-by-b matrix is a*b multiply-adds, 2*a*b FLOPs. Only the
 * experts that a token goes to count. Recompute and padding are no model FLOPs.
 */
#include "stepsim/model.h"

static double attention_linear_mac(const struct model *model)
{
    const struct attention_spec *attention = &model->spec->attention;
    const double hidden = model->spec->hidden_size;
    const double q_width = (double)attention->heads * model_qk_head_dim(model);
    const double out = (double)attention->heads * model_v_head_dim(model) * hidden;
    if (attention->kind != ATTENTION_MLA)
        return hidden * q_width + out +
               2.0 * hidden * (double)model_kv_heads(model) * attention->head_dim;

    const double kv_lora = attention->kv_lora_rank;
    const double kv_up =
        (double)attention->heads * ((double)attention->qk_nope_head_dim + attention->v_head_dim);
    const double queries =
        attention->q_lora_rank > 0 ? attention->q_lora_rank * (hidden + q_width) : hidden * q_width;
    return queries + hidden * (kv_lora + attention->qk_rope_head_dim) + kv_lora * kv_up + out;
}

static double ffn_mac(const struct model_spec *spec, double width)
{
    const double matrices = spec->ffn_kind == FFN_GATED ? 3.0 : 2.0;
    return matrices * spec->hidden_size * width;
}

static double moe_mac(const struct model_spec *spec)
{
    const struct moe_spec *moe = &spec->moe;
    const double gate = moe->shared_gate ? spec->hidden_size : 0.0;
    return moe->top_k * ffn_mac(spec, moe->intermediate_size) +
           ffn_mac(spec, moe->shared_intermediate_size) + gate;
}

double model_linear_flop(const struct model *model, enum block_kind kind)
{
    const struct model_spec *spec = model->spec;
    const double hidden = spec->hidden_size;
    switch (kind) {
    case BLOCK_DENSE:
        return 2.0 * (attention_linear_mac(model) + ffn_mac(spec, spec->ffn_intermediate_size));
    case BLOCK_MOE:
        return 2.0 * (attention_linear_mac(model) + moe_mac(spec));
    case BLOCK_MTP:
        return 2.0 * 2.0 * hidden * hidden + model_linear_flop(model, model->mtp_layer_kind);
    case BLOCK_HEAD:
        return 2.0 * hidden * spec->vocab_size;
    case BLOCK_EMBEDDING: /* a table look-up */
    case BLOCK_KIND_COUNT:
        break;
    }
    return 0.0;
}

double model_attention_flop(const struct model *model, double keys)
{
    const double widths = (double)model_qk_head_dim(model) + model_v_head_dim(model);
    return 2.0 * model->spec->attention.heads * widths * keys;
}

double model_router_flop(const struct model *model)
{
    return 2.0 * model->spec->hidden_size * model->spec->moe.experts;
}

double model_visible_keys(const struct model *model, bool windowed, double seq_len,
                          enum attention_count count)
{
    const double window = model->spec->attention.window;
    const bool narrow = windowed && window < seq_len;
    if (count == ATTENTION_COUNT_FULL)
        return narrow ? window : seq_len;
    return narrow ? window - window * window / (2.0 * seq_len) : seq_len / 2.0;
}

/* Scores, values and router of a layer of this kind. */
static double variable_flop(const struct model *model, enum block_kind kind, double keys,
                            const struct flop_convention *convention)
{
    const bool router = convention->router && kind == BLOCK_MOE;
    return model_attention_flop(model, keys) + (router ? model_router_flop(model) : 0.0);
}

double model_layer_flop(const struct model *model, uint32_t layer, double seq_len,
                        const struct flop_convention *convention)
{
    ASSERT(layer < model->layers);
    const enum block_kind kind = model->layer_kind[layer];
    const double keys =
        model_visible_keys(model, model->layer_windowed[layer], seq_len, convention->attention);
    return model_linear_flop(model, kind) + variable_flop(model, kind, keys, convention);
}

double model_mtp_flop(const struct model *model, double seq_len,
                      const struct flop_convention *convention)
{
    const bool windowed = model->layer_windowed[model->layers - 1];
    const double keys = model_visible_keys(model, windowed, seq_len, convention->attention);
    return model_linear_flop(model, BLOCK_MTP) + model_linear_flop(model, BLOCK_HEAD) +
           variable_flop(model, model->mtp_layer_kind, keys, convention);
}

double model_train_flop_per_token(const struct model *model, double seq_len,
                                  const struct flop_convention *convention)
{
    double forward = model_linear_flop(model, BLOCK_HEAD);
    for (uint32_t i = 0; i < model->layers; i++)
        forward += model_layer_flop(model, i, seq_len, convention);
    if (convention->mtp)
        forward += model->spec->mtp_layers * model_mtp_flop(model, seq_len, convention);
    return 3.0 * forward;
}

double model_train_flop_per_batch(const struct model *model, const double *sample_lengths,
                                  uint32_t samples, const struct flop_convention *convention)
{
    double sum = 0.0;
    for (uint32_t i = 0; i < samples; i++)
        sum += sample_lengths[i] * model_train_flop_per_token(model, sample_lengths[i], convention);
    return sum;
}
