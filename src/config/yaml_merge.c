/*
 * yaml_merge.c - the entries of one map: own keys, merge keys, duplicates.
 *
 * A merge key `<<` takes a map or a list of maps. Own keys win over merged ones,
 * earlier maps of a list over later ones. A key that is written twice is an
 * error; the first stays, so that checking can go on.
 *
 * Small maps are compared pair by pair. Larger ones are sorted by (key, position)
 * so that a map of a million keys costs n log n.
 */
#include <stdlib.h>
#include <string.h>

#include "config/config_internal.h"

#define PAIRWISE_MAX 16
#define ON_STACK_MAX 64

struct candidate {
    struct yaml_tree_entry entry;
    size_t position;
    bool merged;
    bool dropped;
};

static int compare_candidates(const void *left, const void *right)
{
    const struct candidate *a = left;
    const struct candidate *b = right;
    const int order = strcmp(a->entry.key, b->entry.key);
    if (order != 0)
        return order;
    return a->position < b->position ? -1 : a->position > b->position;
}

static int compare_positions(const void *left, const void *right)
{
    const struct candidate *a = left;
    const struct candidate *b = right;
    return a->position < b->position ? -1 : a->position > b->position;
}

static bool is_merge_key(const struct yaml_tree *key)
{
    return key->plain && strcmp(key->text, "<<") == 0;
}

/* A map, or a list of maps. */
static bool is_merge_value(const struct yaml_tree *value)
{
    bool good = value->kind != YAML_TREE_SCALAR;
    for (uint32_t i = 0; value->kind == YAML_TREE_LIST && i < value->count; i++)
        good = good && value->items[i]->kind == YAML_TREE_MAP;
    return good;
}

/* How many entries a merge value brings. */
static size_t merged_count(const struct yaml_tree *value)
{
    if (value->kind == YAML_TREE_MAP)
        return value->count;
    size_t count = 0;
    for (uint32_t i = 0; value->kind == YAML_TREE_LIST && i < value->count; i++)
        count += value->items[i]->kind == YAML_TREE_MAP ? value->items[i]->count : 0;
    return count;
}

static size_t take_map(struct candidate *out, size_t at, const struct yaml_tree *map)
{
    for (uint32_t i = 0; i < map->count; i++)
        out[at + i] =
            (struct candidate){.entry = map->entries[i], .position = at + i, .merged = true};
    return at + map->count;
}

static size_t take_merged(struct candidate *out, size_t at, const struct yaml_tree *value)
{
    if (value->kind == YAML_TREE_MAP)
        return take_map(out, at, value);
    for (uint32_t i = 0; i < value->count; i++)
        at = take_map(out, at, value->items[i]);
    return at;
}

/* The later of two candidates with one key goes; that is a mistake if it was written here. */
static void drop_later(const struct candidate *first, struct candidate *later,
                       struct error_list *errors)
{
    later->dropped = true;
    if (later->merged)
        return;
    char quoted[CONFIG_QUOTE_SIZE];
    error_add(errors, ERROR_yaml_duplicate_key, later->entry.at, NULL,
              "the key %s is already given at line %u", config_quote(quoted, later->entry.key),
              first->entry.at.line);
}

static void drop_repeated(struct candidate *candidates, size_t count, struct error_list *errors)
{
    if (count <= PAIRWISE_MAX) {
        for (size_t i = 1; i < count; i++) {
            size_t j = 0;
            while (j < i && strcmp(candidates[j].entry.key, candidates[i].entry.key) != 0)
                j++;
            if (j < i)
                drop_later(&candidates[j], &candidates[i], errors);
        }
        return;
    }
    qsort(candidates, count, sizeof *candidates, compare_candidates);
    size_t first = 0;
    for (size_t i = 1; i < count; i++) {
        if (strcmp(candidates[first].entry.key, candidates[i].entry.key) == 0)
            drop_later(&candidates[first], &candidates[i], errors);
        else
            first = i;
    }
    qsort(candidates, count, sizeof *candidates, compare_positions);
}

/* Own entries first, then what the merge key brings; returns how many there are. */
static size_t gather(struct candidate *out, struct yaml_children children,
                     struct error_list *errors)
{
    size_t at = 0;
    const struct yaml_tree *merge = NULL;
    for (size_t i = 0; i + 1 < children.count; i += 2) {
        const struct yaml_tree *key = children.nodes[i];
        const struct yaml_tree *value = children.nodes[i + 1];
        if (!is_merge_key(key)) {
            out[at] = (struct candidate){.entry = {key->text, key->at, value}, .position = at};
            at++;
        } else if (merge) {
            error_add(errors, ERROR_yaml_duplicate_key, key->at, "<<",
                      "a map takes one merge key; write `<<: [*a, *b]` for several maps");
        } else if (!is_merge_value(value)) {
            error_add(errors, ERROR_wrong_type, value->at, "<<",
                      "a merge key takes an alias of a map, or a list of such aliases");
        } else {
            merge = value;
        }
    }
    return merge ? take_merged(out, at, merge) : at;
}

/* Room that gather() needs; false when merging costs more than is left. */
static bool bound_candidates(struct yaml_children children, size_t *bound)
{
    size_t merged = 0;
    for (size_t i = 0; i + 1 < children.count; i += 2) {
        if (is_merge_key(children.nodes[i]))
            merged += merged_count(children.nodes[i + 1]);
    }
    if (merged > *children.merge_budget)
        return false;
    *children.merge_budget -= merged;
    *bound = children.count / 2 + merged;
    return true;
}

bool yaml_merge_entries(struct yaml_tree *map, struct yaml_children children, struct arena *arena,
                        struct error_list *errors)
{
    size_t bound = 0;
    if (!bound_candidates(children, &bound))
        return false;
    struct candidate few[ON_STACK_MAX];
    struct candidate *candidates = few;
    if (bound > ON_STACK_MAX)
        candidates = calloc(bound, sizeof *candidates);
    ASSERT(candidates != NULL);
    const size_t count = gather(candidates, children, errors);
    ASSERT(count <= bound);
    drop_repeated(candidates, count, errors);

    struct yaml_tree_entry *entries = ARENA_ARRAY(arena, count, struct yaml_tree_entry);
    uint64_t expanded = 1;
    for (size_t i = 0; i < count; i++) {
        if (candidates[i].dropped)
            continue;
        entries[map->count++] = candidates[i].entry;
        expanded += 1 + candidates[i].entry.value->expanded;
    }
    if (candidates != few)
        free(candidates);
    map->entries = entries;
    map->expanded = (uint32_t)(expanded <= CONFIG_NODES_MAX ? expanded : CONFIG_NODES_MAX);
    return expanded <= CONFIG_NODES_MAX;
}
