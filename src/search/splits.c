/*
 * splits.c - the splits of layers that a search tries, worked out once for each pipeline.
 */
#include <string.h>

#include "search_internal.h"
#include "stepsim/text.h"

/* The same number of layers in every chunk until none are left: embedding and first chunks are
 * light or equal, head and MTP then stand beside fewer layers. */
void splits_tail(struct scenario *scenario, struct arena *arena)
{
    struct parallel_spec *p = &scenario->parallel;
    const uint32_t chunks = p->pp * p->vpp;
    const uint32_t most = (scenario->model.layers + chunks - 1) / chunks;
    uint32_t *layers = ARENA_ARRAY(arena, chunks, uint32_t);
    uint32_t left = scenario->model.layers;
    for (uint32_t k = 0; k < chunks; k++) {
        layers[k] = left < most ? left : most;
        left -= layers[k];
    }
    p->split = SPLIT_LAYERS;
    p->layers = layers;
    p->layers_count = chunks;
}

const struct known_split *splits_known(const struct space *space, const struct scenario *scenario)
{
    const struct schedule *schedule = schedule_find(scenario->schedule.kind);
    const struct parallel_spec *p = &scenario->parallel;
    for (uint32_t i = 0; schedule != NULL && i < space->split_count; i++) {
        const struct known_split *known = &space->splits[i];
        if (known->pp == p->pp && known->vpp == p->vpp && known->v_shaped == schedule->v_shaped) {
            return known;
        }
    }
    return NULL;
}

/* The balanced split, worked out once for each pipeline of the space. */
bool splits_use_balanced(const struct space *space, struct scenario *scenario)
{
    const struct known_split *known = splits_known(space, scenario);
    if (known == NULL) {
        return false;
    }
    struct parallel_spec *p = &scenario->parallel;
    p->split = SPLIT_LAYERS;
    p->layers = known->layers;
    p->layers_count = p->pp * p->vpp;
    return true;
}

static const struct search_axis *axis_of(const struct space *space, const char *key)
{
    for (uint32_t a = 0; a < space->axis_count; a++) {
        if (strcmp(space->axes[a].key, key) == 0) {
            return &space->axes[a];
        }
    }
    ASSERT(!"an axis");
    return NULL;
}

/*
 * The head alone on the last chunk, MTP modules on the one before it, layers one after another to
 * the lightest of the others, the first of equals. With 61 layers and one module on 32 chunks
 * that is the split of NVIDIA's recipes for DeepSeek-V3, Et*3|(tt|)*29m|L. NULL: no chunks for it.
 */
static const char *apart_split(const struct layout_balance_ask *ask, uint32_t mtp_layers,
                               struct arena *arena)
{
    const uint32_t chunks = ask->pp * ask->vpp;
    if (mtp_layers == 0 || chunks < 3 || chunks - 2 > ask->layers) {
        return NULL;
    }
    double layer = 0.0;
    for (uint32_t i = 0; i < ask->layers; i++) {
        layer += ask->weights.layer[i] / ask->layers;
    }
    uint32_t *layers = ARENA_ARRAY(arena, chunks, uint32_t);
    for (uint32_t i = 0; i < ask->layers; i++) {
        uint32_t lightest = 0;
        for (uint32_t k = 1; k + 1 < chunks; k++) {
            const double extra = k + 2 == chunks ? ask->weights.mtp / layer : 0.0;
            lightest = layers[k] + extra < layers[lightest] ? k : lightest;
        }
        layers[lightest]++;
    }
    struct text text = {0};
    text_add(&text, "E");
    for (uint32_t k = 0; k + 2 < chunks;) {
        uint32_t equal = 1; /* neighbours, but not the first chunk, which has the embedding */
        while (k > 0 && k + equal + 2 < chunks && layers[k + equal] == layers[k]) {
            equal++;
        }
        const char *some = layers[k] > 0 ? arena_printf(arena, "t*%u", layers[k]) : "";
        text_add(&text, equal > 1 ? "(%s|)*%u" : "%s|", some, equal);
        k += equal;
    }
    if (layers[chunks - 2] > 0) {
        text_add(&text, "t*%u", layers[chunks - 2]);
    }
    text_add(&text, "m*%u|L", mtp_layers);
    const char *split = arena_strdup(arena, text_string(&text));
    text_free(&text);
    return split;
}

void splits_find(struct space *space, struct arena *arena, struct error_list *errors)
{
    const struct model *model = model_build(space->base, arena, errors);
    if (model == NULL) {
        return;
    }
    const struct search_axis *pp = axis_of(space, "parallel.pp");
    const struct search_axis *vpp = axis_of(space, "parallel.vpp");
    const struct layout_weights weights =
        layout_weights(model, space->base->training.seq_len, arena);
    space->splits = ARENA_ARRAY(arena, (size_t)pp->count * vpp->count * 2, struct known_split);
    for (uint32_t i = 0; i < pp->count * vpp->count * 2; i++) {
        struct known_split *known = &space->splits[space->split_count];
        known->pp = pp->values[i / 2 / vpp->count].number;
        known->vpp = vpp->values[i / 2 % vpp->count].number;
        known->v_shaped = i % 2 == 1;
        if (known->v_shaped && known->vpp != 2) {
            continue;
        }
        known->layers = ARENA_ARRAY(arena, known->pp * known->vpp, uint32_t);
        const struct layout_balance_ask ask = {.weights = weights,
                                               .layers = model->layers,
                                               .pp = known->pp,
                                               .vpp = known->vpp,
                                               .v_shaped = known->v_shaped};
        layout_balance(&ask, arena, known->layers);
        known->apart = apart_split(&ask, model->spec->mtp_layers, arena);
        space->split_count++;
    }
}
