/*
 * layout.c - puts the parts together: degrees, rank order, groups, and stages.
 *
 * Degrees and stages are resolved independently, so that one run reports the mistakes of
 * both.
 */
#include "layout_internal.h"

#include "stepsim/text.h"

#include <string.h>

uint32_t layout_chunk_of(const struct layout *layout, uint32_t model_chunk)
{
    ASSERT(model_chunk < layout->pp * layout->vpp);
    return model_chunk / layout->pp;
}

uint32_t layout_stage_of(const struct layout *layout, uint32_t model_chunk)
{
    const uint32_t step = model_chunk % layout->pp;
    const bool backwards = layout->v_shaped && layout_chunk_of(layout, model_chunk) % 2 == 1;
    return backwards ? layout->pp - 1 - step : step;
}

uint32_t layout_model_chunk(const struct layout *layout, uint32_t stage, uint32_t chunk)
{
    ASSERT(stage < layout->pp);
    ASSERT(chunk < layout->vpp);
    const bool backwards = layout->v_shaped && chunk % 2 == 1;
    return chunk * layout->pp + (backwards ? layout->pp - 1 - stage : stage);
}

/* "3,4,4,...": layers per stage. */
static const char *stage_list(const struct layout *layout, struct arena *arena)
{
    struct text text = {0};
    for (uint32_t stage = 0; stage < layout->pp; stage++) {
        uint32_t layers = 0;
        for (uint32_t chunk = 0; chunk < layout->vpp; chunk++)
            layers += layout->chunks[stage * layout->vpp + chunk].layer_count;
        text_add(&text, "%s%u", stage > 0 ? "," : "", layers);
    }
    const char *list = arena_strdup(arena, text_string(&text));
    text_free(&text);
    return list;
}

/* From model order to stage order. */
static void place_chunks(struct layout *layout, const struct layout_chunk *in_model_order,
                         struct arena *arena)
{
    const uint32_t count = layout->pp * layout->vpp;
    struct layout_chunk *chunks = ARENA_ARRAY(arena, count, struct layout_chunk);
    for (uint32_t k = 0; k < count; k++) {
        const uint32_t place =
            layout_stage_of(layout, k) * layout->vpp + layout_chunk_of(layout, k);
        chunks[place] = in_model_order[k];
        layout->layer_slots += in_model_order[k].layer_count + in_model_order[k].noop_count;
    }
    layout->chunks = chunks;
}

static void take_groups(struct layout *layout, const struct layout *like)
{
    ASSERT(layout->world == like->world && layout->tp == like->tp && layout->pp == like->pp);
    ASSERT(layout->cp == like->cp && layout->ep == like->ep && layout->etp == like->etp);
    memcpy(layout->spans, like->spans, sizeof layout->spans);
    memcpy(layout->spans_differ, like->spans_differ, sizeof layout->spans_differ);
    layout->pp_next = like->pp_next;
}

const struct layout *layout_build(const struct layout_ask *ask, struct arena *arena,
                                  struct error_list *errors)
{
    const struct layout_input input = {
        .scenario = ask->scenario,
        .model = ask->model,
        .cluster = ask->cluster,
        .v_shaped = ask->v_shaped,
        .arena = arena,
        .errors = errors,
    };
    struct layout *layout = ARENA_NEW(arena, struct layout);
    const bool degrees = layout_resolve_degrees(&input, layout);
    const bool axes = degrees && layout_resolve_axes(&input, layout);

    const struct layout_chunk *chunks = NULL;
    if (layout_chunks_countable(&input))
        chunks = layout_resolve_split(&input, layout);
    if (!axes || chunks == NULL)
        return NULL;
    if (ask->like != NULL) {
        take_groups(layout, ask->like);
    } else {
        layout_resolve_spans(&input, layout);
    }
    place_chunks(layout, chunks, arena);
    if (ask->like == NULL) {
        layout->split_text = stage_list(layout, arena);
        layout->chunk_text = layout_string_write(chunks, layout->pp * layout->vpp, arena);
    }
    return layout;
}
