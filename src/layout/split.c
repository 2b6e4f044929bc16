/*
 * split.c - how many layers each chunk holds, by the rule that parallel.stages names.
 *
 * Every rule fills chunks in model order; where chunks run is layout.c's business. No layer
 * is ever dropped: what does not divide is refused, with the layers that an even split would
 * have lost and lists that would work.
 */
#include "layout_internal.h"

struct split {
    const struct layout_input *input;
    const struct parallel_spec *parallel;
    struct layout_chunk *chunks; /* [count] in model order */
    uint32_t pp, vpp, count, layers;
    uint32_t slots; /* layers and no-op slots */
};

static const char split_key[] = "parallel.stages.split";
static const char layers_key[] = "parallel.stages.layers";
static const char first_key[] = "parallel.stages.first";
static const char last_key[] = "parallel.stages.last";
static const char noop_key[] = "parallel.stages.noop_layers";
static const char layout_key[] = "parallel.stages.layout";

static struct location at(const struct split *split, const char *key)
{
    return scenario_at(split->input->scenario, key);
}

/* The stage that runs model chunk k. */
static uint32_t stage_of(const struct split *split, uint32_t k)
{
    const uint32_t s = k % split->pp;
    return split->input->v_shaped && k / split->pp % 2 == 1 ? split->pp - 1 - s : s;
}

/* ---- Keys that do not belong to the chosen split ---- */

static void refuse_key(const struct split *split, bool given, const char *key)
{
    if (given)
        error_add(split->input->errors, ERROR_conflicting_keys, at(split, key), key,
                  "given, but stages.split names another rule; leave one of the two out");
}

static void refuse_foreign_keys(const struct split *split)
{
    const struct parallel_spec *p = split->parallel;
    refuse_key(split, p->split != SPLIT_LAYERS && p->layers_count > 0, layers_key);
    refuse_key(split, p->split != SPLIT_FIRST_LAST && p->first_layers > 0, first_key);
    refuse_key(split, p->split != SPLIT_FIRST_LAST && p->last_layers > 0, last_key);
    refuse_key(split, p->split != SPLIT_NOOP && p->noop_count > 0, noop_key);
    refuse_key(split, p->split != SPLIT_LAYOUT && p->layout != NULL, layout_key);
}

/* ---- Even splits, with and without no-op slots ---- */

static void refuse_uneven_stages(const struct split *split)
{
    const uint32_t rest = split->slots % split->pp;
    error_add(
        split->input->errors, ERROR_layers_not_divisible_by_pp, at(split, "parallel.pp"),
        "parallel.pp",
        "%u layer slots over %u stages: an even split of %u would lose %u layers; stages "
        "{split: layers, layers: [%s]} or [%s], {split: balanced}, or pp %s would work",
        split->slots, split->pp, split->slots / split->pp, rest,
        layout_even_list(split->input->arena, split->slots, split->pp, 0),
        layout_even_list(split->input->arena, split->slots, split->pp, (split->pp - rest + 1) / 2),
        layout_near_divisors(split->input->arena, split->slots, split->pp));
}

/* Each of the stages given holds a number of slots that vpp does not divide. */
static void refuse_uneven_chunks(const struct split *split, const char *what, uint32_t per_stage,
                                 uint32_t stages)
{
    error_add(
        split->input->errors, ERROR_layers_per_stage_not_multiple_of_chunk,
        at(split, "parallel.vpp"), "parallel.vpp",
        "%u layer slots of %s over %u chunks: an even split of %u would lose %u layers; vpp %s, "
        "{split: balanced}, or a list per chunk would work",
        per_stage, what, split->vpp, per_stage / split->vpp, stages * (per_stage % split->vpp),
        per_stage > 0 ? layout_near_divisors(split->input->arena, per_stage, split->vpp) : "1");
}

/* Slots per chunk, 0 with an error added. */
static uint32_t even_slots(const struct split *split)
{
    const uint32_t per_stage = split->slots / split->pp;
    if (split->slots % split->pp != 0)
        refuse_uneven_stages(split);
    else if (per_stage % split->vpp != 0)
        refuse_uneven_chunks(split, "each stage", per_stage, split->pp);
    else
        return per_stage / split->vpp;
    return 0;
}

static void fill_even(const struct split *split)
{
    const uint32_t each = even_slots(split);
    for (uint32_t k = 0; k < split->count; k++)
        split->chunks[k].layer_count = each;
}

/* Every slot holds a layer except those named. */
static void fill_noop(const struct split *split)
{
    const struct parallel_spec *p = split->parallel;
    const uint32_t each = even_slots(split);
    if (each == 0)
        return;
    bool *empty = ARENA_ARRAY(split->input->arena, split->slots, bool);
    for (uint32_t i = 0; i < p->noop_count; i++) {
        const uint32_t slot = p->noop_layers[i];
        if (slot >= split->slots || empty[slot]) {
            error_add(split->input->errors,
                      slot >= split->slots ? ERROR_out_of_range : ERROR_conflicting_keys,
                      at(split, noop_key), noop_key,
                      slot >= split->slots ? "slot %u of %u layers and no-op slots: 0 to %u exist"
                                           : "slot %u is named twice (%u slots, 0 to %u)",
                      slot, split->slots, split->slots - 1);
            continue;
        }
        empty[slot] = true;
    }
    for (uint32_t slot = 0; slot < split->slots; slot++) {
        struct layout_chunk *chunk = &split->chunks[slot / each];
        chunk->noop_count += empty[slot];
        chunk->layer_count += !empty[slot];
    }
}

/* ---- Lists ---- */

/* The chunks of a stage get equal shares of its layers. */
static void fill_stage(const struct split *split, uint32_t stage, uint32_t layers)
{
    if (layers % split->vpp != 0) {
        refuse_uneven_chunks(split, arena_printf(split->input->arena, "stage %u", stage), layers,
                             1);
        return;
    }
    for (uint32_t k = 0; k < split->count; k++)
        if (stage_of(split, k) == stage)
            split->chunks[k].layer_count = layers / split->vpp;
}

static void fill_list(const struct split *split)
{
    const struct parallel_spec *p = split->parallel;
    struct arena *arena = split->input->arena;
    uint64_t sum = 0;
    if (p->layers_count != split->pp && p->layers_count != split->count) {
        error_add(split->input->errors, ERROR_stage_list_length, at(split, layers_key), layers_key,
                  "%u entries; %u (one per stage)%s would work", p->layers_count, split->pp,
                  split->vpp > 1 ? arena_printf(arena, " or %u (one per chunk)", split->count)
                                 : "");
        return;
    }
    for (uint32_t i = 0; i < p->layers_count; i++)
        sum += p->layers[i];
    if (sum != split->layers) {
        error_add(split->input->errors, ERROR_stage_layers_sum, at(split, layers_key), layers_key,
                  "the list adds up to %llu, but the model has %u layers; [%s] would work",
                  (unsigned long long)sum, split->layers,
                  layout_even_list(arena, split->layers, p->layers_count, 0));
        return;
    }
    for (uint32_t i = 0; i < p->layers_count; i++) {
        if (p->layers_count == split->count)
            split->chunks[i].layer_count = p->layers[i];
        else
            fill_stage(split, i, p->layers[i]);
    }
}

/* What the stages between (or beside) the given ones share evenly; false with an error added. */
static bool share_middle(const struct split *split, uint32_t given, uint32_t middle, uint32_t *each)
{
    const uint32_t rest = split->layers - given;
    if (middle == 0 ? rest == 0 : rest % middle == 0) {
        *each = middle == 0 ? 0 : rest / middle;
        return true;
    }
    if (middle == 0)
        error_add(split->input->errors, ERROR_stage_layers_sum, at(split, first_key), first_key,
                  "first and last add up to %u on pp %u, but the model has %u layers", given,
                  split->pp, split->layers);
    else
        error_add(split->input->errors, ERROR_layers_not_divisible_by_pp, at(split, "parallel.pp"),
                  "parallel.pp",
                  "%u layers are left for %u stages: an even split of %u would lose %u layers; "
                  "layers [%s] for them, or {split: balanced} would work",
                  rest, middle, rest / middle, rest % middle,
                  layout_even_list(split->input->arena, rest, middle, 0));
    return false;
}

static void fill_first_last(const struct split *split)
{
    const struct parallel_spec *p = split->parallel;
    const bool first = p->first_layers > 0;
    const bool last = p->last_layers > 0;
    const uint64_t given = (uint64_t)p->first_layers + p->last_layers;
    if ((!first && !last) || split->pp < 2) {
        error_add(split->input->errors, ERROR_conflicting_keys, at(split, split_key), split_key,
                  "first_last needs `first` or `last` and at least two stages (pp is %u)",
                  split->pp);
        return;
    }
    if (given > split->layers) {
        error_add(split->input->errors, ERROR_stage_layers_sum, at(split, first_key), first_key,
                  "first %u and last %u hold more than the %u layers of the model", p->first_layers,
                  p->last_layers, split->layers);
        return;
    }
    uint32_t each = 0;
    if (!share_middle(split, (uint32_t)given, split->pp - first - last, &each))
        return;
    for (uint32_t stage = 0; stage < split->pp; stage++) {
        uint32_t layers = each;
        if (first && stage == 0)
            layers = p->first_layers;
        if (last && stage == split->pp - 1)
            layers = p->last_layers;
        fill_stage(split, stage, layers);
    }
}

/* ---- Balanced ---- */

struct layout_weights layout_weights(const struct model *model, uint32_t seq_len,
                                     struct arena *arena)
{
    const struct flop_convention work = {ATTENTION_COUNT_CAUSAL, .mtp = true, .router = true};
    double *layer = ARENA_ARRAY(arena, model->layers, double);
    for (uint32_t i = 0; i < model->layers; i++)
        layer[i] = 3.0 * model_layer_flop(model, i, seq_len, &work);
    return (struct layout_weights){
        .layer = layer,
        .embedding = 3.0 * model_linear_flop(model, BLOCK_EMBEDDING),
        .mtp = 3.0 * model->spec->mtp_layers * model_mtp_flop(model, seq_len, &work),
        .head = 3.0 * model_linear_flop(model, BLOCK_HEAD),
    };
}

/* The search is quadratic in the layers; no transformer comes near this many. */
#define BALANCED_LAYERS_MAX 1024

static void fill_balanced(const struct split *split)
{
    const struct layout_input *input = split->input;
    if (split->layers > BALANCED_LAYERS_MAX) {
        error_add(input->errors, ERROR_out_of_range, at(split, split_key), split_key,
                  "balanced splits at most %d layers, the model has %u; {split: even} would work",
                  BALANCED_LAYERS_MAX, split->layers);
        return;
    }
    const struct layout_balance_ask ask = {
        .weights = layout_weights(input->model, input->scenario->training.seq_len, input->arena),
        .layers = split->layers,
        .pp = split->pp,
        .vpp = split->vpp,
        .v_shaped = input->v_shaped,
    };
    uint32_t *counts = ARENA_ARRAY(input->arena, split->count, uint32_t);
    layout_balance(&ask, input->arena, counts);
    for (uint32_t k = 0; k < split->count; k++)
        split->chunks[k].layer_count = counts[k];
}

static void fill_string(const struct split *split)
{
    if (split->parallel->layout == NULL)
        error_add(split->input->errors, ERROR_missing_key, at(split, layout_key), layout_key,
                  "split: layout needs the layout string");
    else
        layout_string_read(split->input, split->chunks, split->count);
}

struct layout_chunk *layout_resolve_split(const struct layout_input *input,
                                          const struct layout *layout)
{
    static void (*const fill[])(const struct split *) = {
        [SPLIT_BALANCED] = fill_balanced,
        [SPLIT_EVEN] = fill_even,
        [SPLIT_NOOP] = fill_noop,
        [SPLIT_LAYERS] = fill_list,
        [SPLIT_FIRST_LAST] = fill_first_last,
        [SPLIT_LAYOUT] = fill_string,
    };
    const struct parallel_spec *p = &input->scenario->parallel;
    const size_t before = input->errors->count;
    const struct split split = {
        .input = input,
        .parallel = p,
        .pp = layout->pp,
        .vpp = layout->vpp,
        .count = layout->pp * layout->vpp,
        .layers = input->model->layers,
        .slots = input->model->layers + p->noop_count,
        .chunks = ARENA_ARRAY(input->arena, (size_t)layout->pp * layout->vpp, struct layout_chunk),
    };
    refuse_foreign_keys(&split);
    fill[p->split](&split);
    if (input->errors->count > before)
        return NULL;

    uint32_t first = 0;
    for (uint32_t k = 0; k < split.count; k++) {
        split.chunks[k].first_layer = first;
        first += split.chunks[k].layer_count;
    }
    ASSERT(first == split.layers);
    if (p->split != SPLIT_LAYOUT) {
        split.chunks[0].embedding = true;
        split.chunks[split.count - 1].mtp = input->model->spec->mtp_layers;
        split.chunks[split.count - 1].head = true;
    }
    return split.chunks;
}
