/*
 * model.c - assembles blocks and counts their parameters.
 *
 * A layer is attention, norms, and a dense FFN or experts. Each part is counted into
 * the bucket that tells how a layout divides it; the rest is sums. Counts are doubles:
 * every model below 2^53 parameters is exact.
 */
#include "stepsim/model.h"

#include "model_internal.h"

double param_count_sum(const struct param_count *count)
{
    return count->tp_sharded + count->tp_replicated + count->expert;
}

const char *block_kind_name(enum block_kind kind)
{
    static const char *const names[BLOCK_KIND_COUNT] = {
        [BLOCK_EMBEDDING] = "embedding",
        [BLOCK_DENSE] = "dense",
        [BLOCK_MOE] = "moe",
        [BLOCK_MTP] = "mtp",
        [BLOCK_HEAD] = "head",
    };
    ASSERT(kind < BLOCK_KIND_COUNT);
    return names[kind];
}

bool model_spec_layer_is_moe(const struct model_spec *spec, uint32_t layer)
{
    const struct moe_spec *moe = &spec->moe;
    return moe->experts > 0 && layer >= moe->first_dense_layers &&
           (layer - moe->first_dense_layers) % moe->layer_freq == 0;
}

uint32_t model_kv_heads(const struct model *model)
{
    const struct attention_spec *attention = &model->spec->attention;
    return attention->kind == ATTENTION_GQA ? attention->kv_heads : attention->heads;
}

uint32_t model_qk_head_dim(const struct model *model)
{
    const struct attention_spec *attention = &model->spec->attention;
    return attention->kind == ATTENTION_MLA
               ? attention->qk_nope_head_dim + attention->qk_rope_head_dim
               : attention->head_dim;
}

uint32_t model_v_head_dim(const struct model *model)
{
    const struct attention_spec *attention = &model->spec->attention;
    return attention->kind == ATTENTION_MLA ? attention->v_head_dim : attention->head_dim;
}

static struct param_count add(struct param_count a, struct param_count b)
{
    a.tp_sharded += b.tp_sharded;
    a.tp_replicated += b.tp_replicated;
    a.expert += b.expert;
    return a;
}

/* RMSNorm has a scale, LayerNorm a scale and a shift. */
static double norm_params(const struct model_spec *spec, double width)
{
    return spec->norm_kind == NORM_LAYER ? 2.0 * width : width;
}

/* Queries, keys, values and the output projection with one width per head. */
static struct param_count headed_attention_params(const struct model *model)
{
    const struct attention_spec *attention = &model->spec->attention;
    const double hidden = model->spec->hidden_size;
    const double q_width = (double)attention->heads * attention->head_dim;
    const double kv_width = (double)model_kv_heads(model) * attention->head_dim;

    struct param_count count = {.tp_sharded = 2.0 * hidden * (q_width + kv_width)};
    if (attention->bias)
        count.tp_sharded += q_width + 2.0 * kv_width;
    if (attention->out_bias)
        count.tp_replicated += hidden;
    if (attention->qk_norm)
        count.tp_replicated += 2.0 * norm_params(model->spec, attention->head_dim);
    return count;
}

/*
 * Multi-head latent attention: queries and keys/values go through narrow latents. The
 * projections down to the latents (and the shared rotary key) are whole on every tensor
 * rank, those up from them are split by heads. q_lora_rank 0 projects queries directly.
 * A bias belongs to the down-projections, as in the published implementations.
 */
static struct param_count latent_attention_params(const struct model *model)
{
    const struct attention_spec *attention = &model->spec->attention;
    const double hidden = model->spec->hidden_size;
    const double heads = attention->heads;
    const double q_lora = attention->q_lora_rank;
    const double kv_lora = attention->kv_lora_rank;
    const double kv_down = kv_lora + attention->qk_rope_head_dim;
    const double kv_up = heads * ((double)attention->qk_nope_head_dim + attention->v_head_dim);
    const double q_width = heads * model_qk_head_dim(model);

    struct param_count count = {
        .tp_sharded = kv_lora * kv_up + heads * attention->v_head_dim * hidden,
        .tp_replicated = hidden * kv_down + norm_params(model->spec, kv_lora),
    };
    if (attention->q_lora_rank > 0) {
        count.tp_sharded += q_lora * q_width;
        count.tp_replicated += hidden * q_lora + norm_params(model->spec, q_lora);
    } else {
        count.tp_sharded += hidden * q_width;
    }
    if (attention->bias)
        count.tp_replicated += q_lora + kv_down;
    if (attention->out_bias)
        count.tp_replicated += hidden;
    return count;
}

/* Attention and the norms of a layer. */
static struct param_count attention_params(const struct model *model)
{
    const struct model_spec *spec = model->spec;
    struct param_count count = spec->attention.kind == ATTENTION_MLA
                                   ? latent_attention_params(model)
                                   : headed_attention_params(model);
    count.tp_replicated += spec->norms_per_layer * norm_params(spec, spec->hidden_size);
    return count;
}

/* An FFN of this width: matrices and the biases of the wide side, then the bias of the output. */
static struct param_count ffn_params(const struct model_spec *spec, double width)
{
    const double wide_matrices = spec->ffn_kind == FFN_GATED ? 2.0 : 1.0;
    struct param_count count = {
        .tp_sharded = (wide_matrices + 1.0) * spec->hidden_size * width,
    };
    if (spec->ffn_bias && width > 0.0) {
        count.tp_sharded += wide_matrices * width;
        count.tp_replicated += spec->hidden_size;
    }
    return count;
}

/* Router, shared experts and `experts` routed experts. */
static struct param_count moe_params(const struct model_spec *spec, double experts)
{
    const struct moe_spec *moe = &spec->moe;
    const struct param_count routed = ffn_params(spec, moe->intermediate_size);
    struct param_count count = ffn_params(spec, moe->shared_intermediate_size);
    count.tp_replicated += (double)spec->hidden_size * moe->experts;
    if (moe->shared_gate)
        count.tp_replicated += spec->hidden_size;
    count.expert = experts * param_count_sum(&routed);
    return count;
}

static void count_layers(struct model *model)
{
    const struct model_spec *spec = model->spec;
    const struct param_count attention = attention_params(model);
    struct param_count *params = model->block_params;

    params[BLOCK_DENSE] = add(attention, ffn_params(spec, spec->ffn_intermediate_size));
    params[BLOCK_MOE] = add(attention, moe_params(spec, spec->moe.experts));
    const struct param_count moe_active = add(attention, moe_params(spec, spec->moe.top_k));
    model->active_params[BLOCK_DENSE] = param_count_sum(&params[BLOCK_DENSE]);
    model->active_params[BLOCK_MOE] = param_count_sum(&moe_active);
}

static void count_ends(struct model *model)
{
    const struct model_spec *spec = model->spec;
    const double hidden = spec->hidden_size;
    const double vocabulary = (double)spec->vocab_size * hidden;
    const struct param_count mtp_own = {
        .tp_sharded = 2.0 * hidden * hidden,
        .tp_replicated = 3.0 * norm_params(spec, hidden),
    };
    struct param_count *params = model->block_params;

    params[BLOCK_EMBEDDING] = (struct param_count){.tp_sharded = vocabulary};
    if (spec->position == POSITION_LEARNED)
        params[BLOCK_EMBEDDING].tp_replicated = (double)spec->max_position * hidden;
    params[BLOCK_HEAD] = (struct param_count){
        .tp_sharded = vocabulary,
        .tp_replicated = norm_params(spec, hidden),
    };
    params[BLOCK_MTP] = add(mtp_own, params[model->mtp_layer_kind]);
    model->active_params[BLOCK_HEAD] = param_count_sum(&params[BLOCK_HEAD]);
    model->active_params[BLOCK_MTP] =
        param_count_sum(&mtp_own) + model->active_params[model->mtp_layer_kind];
}

static void count_totals(struct model *model)
{
    const struct param_count *params = model->block_params;
    const double *active = model->active_params;
    model->params_total = model->dense_layers * param_count_sum(&params[BLOCK_DENSE]) +
                          model->moe_layers * param_count_sum(&params[BLOCK_MOE]) +
                          param_count_sum(&params[BLOCK_HEAD]);
    model->params_active = model->dense_layers * active[BLOCK_DENSE] +
                           model->moe_layers * active[BLOCK_MOE] + active[BLOCK_HEAD];
    model->params_embedding = model->spec->tied_embedding
                                  ? params[BLOCK_EMBEDDING].tp_replicated
                                  : param_count_sum(&params[BLOCK_EMBEDDING]);
    model->params_mtp = model->spec->mtp_layers * param_count_sum(&params[BLOCK_MTP]);
}

const struct model *model_build(const struct scenario *scenario, struct arena *arena,
                                struct error_list *errors)
{
    if (!model_check(scenario, errors))
        return NULL;

    const struct model_spec *spec = &scenario->model;
    struct model *model = ARENA_NEW(arena, struct model);
    enum block_kind *kinds = ARENA_ARRAY(arena, spec->layers, enum block_kind);
    bool *windowed = ARENA_ARRAY(arena, spec->layers, bool);
    *model = (struct model){.spec = spec, .layers = spec->layers};
    for (uint32_t i = 0; i < spec->layers; i++) {
        const bool moe = model_spec_layer_is_moe(spec, i);
        kinds[i] = moe ? BLOCK_MOE : BLOCK_DENSE;
        model->moe_layers += moe;
        model->dense_layers += !moe;
        windowed[i] = spec->attention.window > 0 && i % spec->attention.window_every == 0;
    }
    model->layer_kind = kinds;
    model->layer_windowed = windowed;
    model->mtp_layer_kind = kinds[spec->layers - 1];

    count_layers(model);
    count_ends(model);
    count_totals(model);
    return model;
}
