/*
 * compare.c - keys that differ, and terms that moved.
 */
#include "stepsim/compare.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

#include "stepsim/arena.h"
#include "stepsim/metric.h"
#include "stepsim/text.h"

#define MOVED_MAX 4u

/* ---- Keys ---- */

struct key_walk {
    struct key_difference *items;
    uint32_t count, capacity;
    struct arena *arena;
};

static const char *json_text(const cJSON *value, struct arena *arena)
{
    char *text = cJSON_PrintUnformatted(value);
    ASSERT(text != NULL);
    const char *copy = arena_strdup(arena, text);
    cJSON_free(text);
    return copy;
}

static void add_difference(struct key_walk *walk, struct key_difference difference)
{
    if (walk->count == walk->capacity) {
        const uint32_t capacity = walk->capacity > 0 ? 2 * walk->capacity : 32;
        struct key_difference *items = ARENA_ARRAY(walk->arena, capacity, struct key_difference);
        if (walk->count > 0) {
            memcpy(items, walk->items, walk->count * sizeof *items);
        }
        walk->items = items;
        walk->capacity = capacity;
    }
    walk->items[walk->count++] = difference;
}

/* Objects are walked together; anything else is compared as a whole. */
static void walk_keys(struct key_walk *walk, const char *path, const cJSON *a, const cJSON *b)
{
    if (cJSON_IsObject(a) && (b == NULL || cJSON_IsObject(b))) {
        const cJSON *member = NULL;
        cJSON_ArrayForEach(member, a)
        {
            const char *key = path[0] == '\0'
                                  ? member->string
                                  : arena_printf(walk->arena, "%s.%s", path, member->string);
            walk_keys(walk, key, member,
                      b != NULL ? cJSON_GetObjectItemCaseSensitive(b, member->string) : NULL);
        }
    } else if (b == NULL || !cJSON_Compare(a, b, true)) {
        add_difference(walk, (struct key_difference){path, json_text(a, walk->arena),
                                                     b != NULL ? json_text(b, walk->arena) : NULL});
    }
}

/* What only b has. */
static void walk_missing(struct key_walk *walk, const char *path, const cJSON *a, const cJSON *b)
{
    const cJSON *member = NULL;
    cJSON_ArrayForEach(member, b)
    {
        const char *key = path[0] == '\0'
                              ? member->string
                              : arena_printf(walk->arena, "%s.%s", path, member->string);
        const cJSON *other = a != NULL ? cJSON_GetObjectItemCaseSensitive(a, member->string) : NULL;
        if (cJSON_IsObject(member) && (other == NULL || cJSON_IsObject(other))) {
            walk_missing(walk, key, other, member);
        } else if (other == NULL) {
            add_difference(walk,
                           (struct key_difference){key, NULL, json_text(member, walk->arena)});
        }
    }
}

struct key_differences compare_keys(const struct answer *a, const struct answer *b,
                                    struct arena *arena)
{
    struct key_walk walk = {.arena = arena};
    walk_keys(&walk, "", a->keys, b->keys);
    walk_missing(&walk, "", a->keys, b->keys);
    return (struct key_differences){walk.items, walk.count};
}

/* ---- Terms ---- */

struct moved_term {
    const char *name;
    double change;
};

/* The largest changes first; terms of equal size in their usual order. */
static const char *moved_text(struct moved_term *terms, uint32_t count, bool bytes,
                              struct arena *arena)
{
    const char *text = "";
    for (uint32_t shown = 0; shown < MOVED_MAX; shown++) {
        struct moved_term *largest = NULL;
        for (uint32_t i = 0; i < count; i++) {
            if (terms[i].change != 0.0 &&
                (largest == NULL || fabs(terms[i].change) > fabs(largest->change))) {
                largest = &terms[i];
            }
        }
        if (largest == NULL) {
            break;
        }
        const double size = fabs(largest->change);
        text = arena_printf(arena, "%s%s%s %c%s", text, shown > 0 ? ", " : "", largest->name,
                            largest->change > 0.0 ? '+' : '-',
                            bytes ? text_gib(arena, size) : text_duration(arena, size));
        largest->change = 0.0;
    }
    return text;
}

const char *compare_time_text(const struct answer_terms *before, const struct answer_terms *after,
                              struct arena *arena)
{
    struct moved_term terms[CAUSE_COUNT];
    for (unsigned c = 0; c < CAUSE_COUNT; c++) {
        const sim_time change = after->time_ps[c] - before->time_ps[c];
        terms[c] = (struct moved_term){time_cause_name((enum time_cause)c), (double)change / 1e12};
    }
    return moved_text(terms, CAUSE_COUNT, false, arena);
}

const char *compare_memory_text(const struct answer_terms *before, const struct answer_terms *after,
                                struct arena *arena)
{
    struct moved_term terms[MEMORY_TERM_COUNT];
    for (unsigned t = 0; t < MEMORY_TERM_COUNT; t++) {
        terms[t] = (struct moved_term){memory_term_name((enum memory_term)t),
                                       after->memory_bytes[t] - before->memory_bytes[t]};
    }
    return moved_text(terms, MEMORY_TERM_COUNT, true, arena);
}

/* ---- JSON ---- */

static void add_pair(cJSON *object, const char *name, double a, double b)
{
    cJSON *pair = cJSON_AddObjectToObject(object, name);
    cJSON_AddNumberToObject(pair, "a", a);
    cJSON_AddNumberToObject(pair, "b", b);
    cJSON_AddNumberToObject(pair, "change", b - a);
}

static void add_times(cJSON *root, const struct answer_terms *a, const struct answer_terms *b)
{
    cJSON *time = cJSON_AddObjectToObject(root, "time_ps");
    for (unsigned c = 0; c < CAUSE_COUNT; c++) {
        add_pair(time, time_cause_name((enum time_cause)c), (double)a->time_ps[c],
                 (double)b->time_ps[c]);
    }
    add_pair(root, "step_time_ps", (double)answer_step_ps(a), (double)answer_step_ps(b));
    cJSON *memory = cJSON_AddObjectToObject(root, "memory_bytes");
    for (unsigned t = 0; t < MEMORY_TERM_COUNT; t++) {
        add_pair(memory, memory_term_name((enum memory_term)t), a->memory_bytes[t],
                 b->memory_bytes[t]);
    }
    add_pair(root, "peak_bytes", answer_peak_bytes(a), answer_peak_bytes(b));
}

static void add_side(cJSON *root, const char *letter, const struct answer *answer)
{
    cJSON *side = cJSON_AddObjectToObject(root, letter);
    cJSON_AddStringToObject(side, "name", answer->name);
    cJSON_AddNumberToObject(side, "time_stage", answer->terms.time_stage);
    cJSON_AddNumberToObject(side, "memory_stage", answer->terms.memory_stage);
}

struct cJSON *compare_json(const struct answer *a, const struct answer *b, struct arena *arena)
{
    cJSON *root = cJSON_CreateObject();
    ASSERT(root != NULL);
    add_side(root, "a", a);
    add_side(root, "b", b);
    const struct key_differences keys = compare_keys(a, b, arena);
    cJSON *list = cJSON_AddArrayToObject(root, "keys");
    for (uint32_t i = 0; i < keys.count; i++) {
        cJSON *item = cJSON_CreateObject();
        cJSON_AddStringToObject(item, "key", keys.items[i].key);
        cJSON_AddRawToObject(item, "a", keys.items[i].a != NULL ? keys.items[i].a : "null");
        cJSON_AddRawToObject(item, "b", keys.items[i].b != NULL ? keys.items[i].b : "null");
        cJSON_AddItemToArray(list, item);
    }
    cJSON *metrics = cJSON_AddObjectToObject(root, "metrics");
    for (size_t i = 0; i < metric_count; i++) {
        const bool there = isfinite(a->metrics[i]) && isfinite(b->metrics[i]);
        if (there && strncmp(metric_table[i].name, "engine.", 7) != 0) {
            add_pair(metrics, metric_table[i].name, a->metrics[i], b->metrics[i]);
        }
    }
    add_times(root, &a->terms, &b->terms);
    return root;
}
