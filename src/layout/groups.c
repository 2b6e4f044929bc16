/*
 * groups.c - rank order: coordinates, groups, and where groups sit.
 *
 * A view is a mixed-radix number: the digit of a rank on an axis is rank / stride % size.
 * A kind of group fixes some axes of a view (its members differ in them); the other axes
 * count the groups. Members of any group are its lowest rank plus the same offsets, so
 * the shape of a group in the nodes depends only on its lowest rank modulo the largest
 * domain that is not the whole cluster. Each such residue is looked at once.
 */
#include <string.h>

#include "layout_internal.h"

#define VIEW_AXES 4

static const enum layout_axis_name attention_view[VIEW_AXES] = {LAYOUT_TP, LAYOUT_CP, LAYOUT_DP,
                                                                LAYOUT_PP};
static const enum layout_axis_name expert_view[VIEW_AXES] = {LAYOUT_ETP, LAYOUT_EP, LAYOUT_EDP,
                                                             LAYOUT_PP};

#define AXIS(name) (1u << LAYOUT_##name)

/* The axes in which the members of a group differ. GROUP_ENDS is the two ends of PP. */
static const struct {
    const enum layout_axis_name *view;
    unsigned members;
} slots[GROUP_SLOT_COUNT] = {
    [GROUP_TP] = {attention_view, AXIS(TP)},
    [GROUP_CP] = {attention_view, AXIS(CP)},
    [GROUP_EP] = {expert_view, AXIS(EP)},
    [GROUP_ETP] = {expert_view, AXIS(ETP)},
    [GROUP_DP_CP] = {attention_view, AXIS(DP) | AXIS(CP)},
    [GROUP_EDP] = {expert_view, AXIS(EDP)},
    [GROUP_WORLD] = {attention_view, AXIS(TP) | AXIS(CP) | AXIS(DP) | AXIS(PP)},
    [GROUP_ENDS] = {attention_view, AXIS(PP)},
};

/* ---- The order of ranks ---- */

enum order_word { WORD_TP, WORD_CP, WORD_EP, WORD_DP, WORD_PP, WORD_COUNT };

static const char *const words[WORD_COUNT] = {"tp", "cp", "ep", "dp", "pp"};

/* Five words joined by '-', each once. */
static bool parse_order(const char *text, enum order_word order[WORD_COUNT])
{
    unsigned seen = 0;
    for (uint32_t i = 0; i < WORD_COUNT; i++) {
        uint32_t word = 0;
        while (word < WORD_COUNT && strncmp(text, words[word], 2) != 0)
            word++;
        if (word == WORD_COUNT || (seen & 1u << word) != 0)
            return false;
        seen |= 1u << word;
        order[i] = (enum order_word)word;
        text += 2;
        if (i + 1 < WORD_COUNT && *text++ != '-')
            return false;
    }
    return *text == '\0';
}

/* Which axis a word of the order stands for in each view; LAYOUT_AXIS_COUNT: none. */
static const struct {
    enum layout_axis_name attention, expert;
} word_axes[WORD_COUNT] = {
    [WORD_TP] = {LAYOUT_TP, LAYOUT_ETP},        [WORD_CP] = {LAYOUT_CP, LAYOUT_AXIS_COUNT},
    [WORD_EP] = {LAYOUT_AXIS_COUNT, LAYOUT_EP}, [WORD_DP] = {LAYOUT_DP, LAYOUT_EDP},
    [WORD_PP] = {LAYOUT_PP, LAYOUT_PP},
};

static void place_axis(struct layout *layout, enum layout_axis_name axis, uint32_t *stride)
{
    if (axis == LAYOUT_AXIS_COUNT)
        return;
    layout->axes[axis].stride = *stride;
    *stride *= layout->axes[axis].size;
}

bool layout_resolve_axes(const struct layout_input *input, struct layout *layout)
{
    const char *key = "parallel.order";
    const char *text = input->scenario->parallel.order;
    enum order_word order[WORD_COUNT];
    if (text == NULL || !parse_order(text, order)) {
        error_add(input->errors, ERROR_bad_value, scenario_at(input->scenario, key), key,
                  "\"%s\" is not an order of the five words tp, cp, ep, dp and pp, such as "
                  "tp-cp-ep-dp-pp",
                  text == NULL ? "" : text);
        return false;
    }

    const uint32_t sizes[LAYOUT_AXIS_COUNT] = {
        [LAYOUT_TP] = layout->tp,   [LAYOUT_CP] = layout->cp,   [LAYOUT_DP] = layout->dp,
        [LAYOUT_PP] = layout->pp,   [LAYOUT_ETP] = layout->etp, [LAYOUT_EP] = layout->ep,
        [LAYOUT_EDP] = layout->edp,
    };
    for (uint32_t axis = 0; axis < LAYOUT_AXIS_COUNT; axis++)
        layout->axes[axis].size = sizes[axis];

    uint32_t expert_stride = 1;
    for (uint32_t i = 0; i < WORD_COUNT; i++)
        place_axis(layout, word_axes[order[i]].expert, &expert_stride);
    const uint32_t expert_pp = layout->axes[LAYOUT_PP].stride;
    uint32_t attention_stride = 1;
    for (uint32_t i = 0; i < WORD_COUNT; i++)
        place_axis(layout, word_axes[order[i]].attention, &attention_stride);
    ASSERT(expert_stride == layout->world);
    ASSERT(attention_stride == layout->world);

    if (layout->pp > 1 && expert_pp != layout->axes[LAYOUT_PP].stride) {
        error_add(input->errors, ERROR_conflicting_keys, scenario_at(input->scenario, key), key,
                  "with %s, pipeline neighbours are %u ranks apart for attention and %u for "
                  "experts; put pp last",
                  text, layout->axes[LAYOUT_PP].stride, expert_pp);
        return false;
    }
    return true;
}

/* ---- Coordinates ---- */

static uint32_t digit(const struct layout *layout, enum layout_axis_name name, uint32_t rank)
{
    const struct layout_axis *axis = &layout->axes[name];
    return rank / axis->stride % axis->size;
}

struct rank_coordinates layout_coordinates(const struct layout *layout, uint32_t rank)
{
    ASSERT(rank < layout->world);
    return (struct rank_coordinates){
        .tp = digit(layout, LAYOUT_TP, rank),
        .cp = digit(layout, LAYOUT_CP, rank),
        .dp = digit(layout, LAYOUT_DP, rank),
        .pp = digit(layout, LAYOUT_PP, rank),
        .etp = digit(layout, LAYOUT_ETP, rank),
        .ep = digit(layout, LAYOUT_EP, rank),
        .edp = digit(layout, LAYOUT_EDP, rank),
    };
}

uint32_t layout_rank(const struct layout *layout, uint32_t tp, uint32_t cp, uint32_t dp,
                     uint32_t pp)
{
    ASSERT(tp < layout->tp);
    ASSERT(cp < layout->cp);
    ASSERT(dp < layout->dp);
    ASSERT(pp < layout->pp);
    const struct layout_axis *axes = layout->axes;
    return tp * axes[LAYOUT_TP].stride + cp * axes[LAYOUT_CP].stride + dp * axes[LAYOUT_DP].stride +
           pp * axes[LAYOUT_PP].stride;
}

/* ---- Groups ---- */

/* The axes of a view that are (or are not) in a mask, innermost first. */
struct axis_list {
    struct layout_axis axes[VIEW_AXES];
    uint32_t count;
};

static struct axis_list axes_of(const struct layout *layout, enum group_slot slot, bool members)
{
    ASSERT(slot < GROUP_SLOT_COUNT);
    struct axis_list list = {0};
    for (uint32_t i = 0; i < VIEW_AXES; i++) {
        const enum layout_axis_name name = slots[slot].view[i];
        if (((slots[slot].members >> name & 1u) != 0) != members)
            continue;
        struct layout_axis axis = layout->axes[name];
        if (slot == GROUP_ENDS && members && axis.size > 1)
            axis = (struct layout_axis){.size = 2, .stride = axis.stride * (axis.size - 1)};
        uint32_t place = list.count++;
        for (; place > 0 && list.axes[place - 1].stride > axis.stride; place--)
            list.axes[place] = list.axes[place - 1];
        list.axes[place] = axis;
    }
    return list;
}

static uint32_t list_size(const struct axis_list *list)
{
    uint32_t size = 1;
    for (uint32_t i = 0; i < list->count; i++)
        size *= list->axes[i].size;
    return size;
}

/* Rank offset of the index-th combination of digits, innermost digit first. */
static uint32_t list_offset(const struct axis_list *list, uint32_t index)
{
    uint32_t offset = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        offset += index % list->axes[i].size * list->axes[i].stride;
        index /= list->axes[i].size;
    }
    return offset;
}

uint32_t layout_group_count(const struct layout *layout, enum group_slot slot)
{
    const struct axis_list others = axes_of(layout, slot, false);
    return list_size(&others);
}

uint32_t layout_group_of(const struct layout *layout, enum group_slot slot, uint32_t rank)
{
    ASSERT(rank < layout->world);
    const uint32_t stage = digit(layout, LAYOUT_PP, rank);
    if (slot == GROUP_ENDS && stage != 0 && stage + 1 != layout->pp)
        return UINT32_MAX;
    const struct axis_list others = axes_of(layout, slot, false);
    uint32_t group = 0;
    for (uint32_t i = others.count; i > 0; i--) {
        const struct layout_axis *axis = &others.axes[i - 1];
        group = group * axis->size + rank / axis->stride % axis->size;
    }
    return group;
}

void layout_group_members(const struct layout *layout, enum group_slot slot, uint32_t group,
                          uint32_t *members)
{
    const struct axis_list inside = axes_of(layout, slot, true);
    const struct axis_list others = axes_of(layout, slot, false);
    ASSERT(group < list_size(&others));
    const uint32_t base = list_offset(&others, group);
    const uint32_t size = list_size(&inside);
    for (uint32_t i = 0; i < size; i++)
        members[i] = base + list_offset(&inside, i);
}

/* ---- Spans ---- */

/* Positive if `a` is the longer way: further out, or fewer members per domain from the outside
 * in; 0 if both have the same shape. */
static int compare_spans(const struct group_span *a, const struct group_span *b)
{
    if (a->outer_level != b->outer_level)
        return a->outer_level > b->outer_level ? 1 : -1;
    for (uint32_t level = a->outer_level; level > 0; level--) {
        const uint32_t in_a = a->per_domain[level - 1];
        const uint32_t in_b = b->per_domain[level - 1];
        if (in_a != in_b)
            return in_a < in_b ? 1 : -1;
    }
    return 0;
}

/* What worst_span() goes through: groups with these offsets, whose lowest ranks are the
 * combinations of `others`. */
struct span_search {
    const struct cluster *cluster;
    const uint32_t *offsets;
    uint32_t size;
    struct axis_list others;
};

/* Lowest ranks modulo `period`, each once, in `residues`; returns how many. Axis by axis: the
 * multiples of a stride come back to where they began after at most `period` steps. */
static uint32_t base_residues(const struct axis_list *others, uint32_t period, bool *seen,
                              uint32_t *residues)
{
    uint32_t count = 1;
    residues[0] = 0;
    seen[0] = true;
    for (uint32_t i = 0; i < others->count; i++) {
        const uint32_t step = others->axes[i].stride % period;
        const uint32_t before = count;
        for (uint32_t r = 0; r < before; r++) {
            uint32_t residue = residues[r];
            for (uint32_t k = 1; k < others->axes[i].size; k++) {
                residue = (residue + step) % period;
                if (residue == residues[r])
                    break;
                if (!seen[residue])
                    residues[count++] = residue;
                seen[residue] = true;
            }
        }
    }
    return count;
}

/* Lowest ranks whose groups may differ in shape: all of them where ranks are placed, else those
 * with different places in the largest domain that is not the whole cluster. */
static uint32_t find_bases(const struct span_search *search, struct arena *arena, uint32_t **bases)
{
    const struct cluster *cluster = search->cluster;
    const uint32_t levels = cluster->level_count;
    if (cluster->device_of != NULL) {
        const uint32_t count = list_size(&search->others);
        *bases = ARENA_ARRAY(arena, count, uint32_t);
        for (uint32_t i = 0; i < count; i++)
            (*bases)[i] = list_offset(&search->others, i);
        return count;
    }
    const uint32_t domain = levels > 1 ? cluster->level_size[levels - 2] : 1;
    const uint32_t period = domain > cluster->node_size ? domain : cluster->node_size;
    bool *seen = ARENA_ARRAY(arena, period, bool);
    *bases = ARENA_ARRAY(arena, period, uint32_t);
    return base_residues(&search->others, period, seen, *bases);
}

/* The worst shape; *differ tells whether there was another one. */
static struct group_span worst_span(const struct span_search *search, struct arena *arena,
                                    bool *differ)
{
    uint32_t *bases = NULL;
    const uint32_t base_count = find_bases(search, arena, &bases);
    uint32_t *members = ARENA_ARRAY(arena, search->size, uint32_t);

    struct group_span worst = {0};
    *differ = false;
    for (uint32_t i = 0; i < base_count; i++) {
        for (uint32_t k = 0; k < search->size; k++)
            members[k] = bases[i] + search->offsets[k];
        const struct group_span span = cluster_members_span(search->cluster, members, search->size);
        const int order = i == 0 ? 1 : compare_spans(&span, &worst);
        *differ = *differ || (i > 0 && order != 0);
        if (order > 0)
            worst = span;
    }
    return worst;
}

static void resolve_slot(const struct layout_input *input, struct layout *layout,
                         enum group_slot slot)
{
    const struct axis_list inside = axes_of(layout, slot, true);
    struct span_search search = {
        .cluster = input->cluster,
        .size = list_size(&inside),
        .others = axes_of(layout, slot, false),
    };
    if (search.size == 1 || slot == GROUP_WORLD) {
        layout->spans[slot] = cluster_group_span(input->cluster, search.size, 1);
        return;
    }
    uint32_t *offsets = ARENA_ARRAY(input->arena, search.size, uint32_t);
    for (uint32_t i = 0; i < search.size; i++)
        offsets[i] = list_offset(&inside, i);
    search.offsets = offsets;
    layout->spans[slot] = worst_span(&search, input->arena, &layout->spans_differ[slot]);
}

void layout_resolve_spans(const struct layout_input *input, struct layout *layout)
{
    for (uint32_t slot = 0; slot < GROUP_SLOT_COUNT; slot++)
        resolve_slot(input, layout, (enum group_slot)slot);

    if (layout->pp == 1) {
        layout->pp_next = cluster_group_span(input->cluster, 1, 1);
        return;
    }
    /* Every rank but those of the last stage, and the rank one stage on. */
    const uint32_t offsets[2] = {0, layout->axes[LAYOUT_PP].stride};
    struct span_search search = {.cluster = input->cluster, .offsets = offsets, .size = 2};
    for (uint32_t i = 0; i < VIEW_AXES; i++) {
        struct layout_axis axis = layout->axes[attention_view[i]];
        axis.size -= attention_view[i] == LAYOUT_PP;
        search.others.axes[search.others.count++] = axis;
    }
    bool differ = false;
    layout->pp_next = worst_span(&search, input->arena, &differ);
}
