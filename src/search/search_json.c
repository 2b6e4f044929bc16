/* search_json.c - the answer as one object. */
#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

#include "search_internal.h"

static void number(cJSON *object, const char *name, double value)
{
    ASSERT(isfinite(value));
    const cJSON *item = cJSON_AddNumberToObject(object, name, value);
    ASSERT(item != NULL);
}

static void text(cJSON *object, const char *name, const char *value)
{
    const cJSON *item = cJSON_AddStringToObject(object, name, value);
    ASSERT(item != NULL);
}

static void world(cJSON *object, const struct search_layout *found)
{
    const struct layout *layout = found->layout;
    cJSON *world = cJSON_AddObjectToObject(object, "world");
    number(world, "devices", layout->world);
    number(world, "tp", layout->tp);
    number(world, "pp", layout->pp);
    number(world, "vpp", layout->vpp);
    number(world, "cp", layout->cp);
    number(world, "dp", layout->dp);
    number(world, "ep", layout->ep);
    number(world, "etp", layout->etp);
    number(world, "edp", layout->edp);
    number(world, "microbatches", layout->microbatches);
    number(world, "micro_batch_size", layout->micro_batch_size);
    number(world, "zero", found->scenario->parallel.zero);
    text(world, "schedule", found->schedule);
    text(world, "stages", layout->chunk_text);
}

static void figures(cJSON *object, const struct search_figures *figures)
{
    number(object, "step_time_s", figures->step_s);
    number(object, "tokens_per_s", figures->tokens_per_s);
    number(object, "mfu", figures->mfu);
    number(object, "peak_bytes", figures->peak_bytes);
    cJSON_AddBoolToObject(object, "fits", figures->fits);
    cJSON *share = cJSON_AddObjectToObject(object, "time_share");
    double step_ps = 0.0;
    for (unsigned c = 0; c < CAUSE_COUNT; c++) {
        step_ps += (double)figures->time_share_ps[c];
    }
    for (unsigned c = 0; c < CAUSE_COUNT; c++) {
        number(share, time_cause_name((enum time_cause)c),
               step_ps > 0.0 ? (double)figures->time_share_ps[c] / step_ps : 0.0);
    }
}

static void add_layout(cJSON *list, const struct search_layout *layout)
{
    cJSON *object = cJSON_CreateObject();
    world(object, layout);
    figures(object, &layout->figures);
    text(object, "why_lost", layout->why_lost);
    cJSON *set = cJSON_AddArrayToObject(object, "set");
    for (uint32_t i = 0; i < layout->choice_count; i++) {
        cJSON_AddItemToArray(set, cJSON_CreateString(layout->choices[i]));
    }
    cJSON_AddItemToArray(list, object);
}

struct cJSON *search_json(const struct search_answer *answer)
{
    cJSON *root = cJSON_CreateObject();
    cJSON *layouts = cJSON_AddArrayToObject(root, "layouts");
    for (uint32_t i = 0; i < answer->layout_count; i++) {
        add_layout(layouts, &answer->layouts[i]);
    }
    cJSON *counts = cJSON_AddObjectToObject(root, "counts");
    number(counts, "candidates", (double)answer->counts.candidates);
    number(counts, "legal", (double)answer->counts.legal);
    number(counts, "fits", (double)answer->counts.fits);
    number(counts, "bounded", (double)answer->counts.bounded);
    number(counts, "simulated", (double)answer->counts.simulated);
    cJSON *space = cJSON_AddObjectToObject(root, "space");
    for (uint32_t a = 0; a < answer->axis_count; a++) {
        cJSON *values = cJSON_AddArrayToObject(space, answer->axes[a].key);
        for (uint32_t v = 0; v < answer->axes[a].count; v++) {
            cJSON_AddItemToArray(values, cJSON_CreateString(answer->axes[a].values[v].text));
        }
    }
    if (answer->written_legal) {
        figures(cJSON_AddObjectToObject(root, "written"), &answer->written);
    }
    if (answer->one_more_gib != NULL) {
        text(root, "one_more_gib", answer->one_more_gib);
        text(root, "one_node_less", answer->one_node_less);
    }
    return root;
}
