/*
 * collective_compose.c - how the levels of one collective add up.
 *
 * Three compositions exist:
 * - tier by tier (HCCL): reduce-scatter and all-gather pass a tensor through the tiers, an
 *   all-reduce goes in by reduce-scatter, over the outermost tier, and out by all-gather;
 * - two tiers in one algorithm: pipeline, staged, hierarchical;
 * - flat over all levels: rings and trees of NCCL, direct and pairwise all-to-all.
 */
#include <math.h>

#include "collective_internal.h"

#include "stepsim/error.h"

static void add_term(struct sum *sum, const char *name, double value, const char *unit,
                     const char *origin_key)
{
    struct collective_cost *cost = sum->cost;
    if (!sum->explain || cost->term_count == COST_TERMS_MAX)
        return;
    cost->terms[cost->term_count++] =
        (struct cost_term){.name = name, .value = value, .unit = unit, .origin_key = origin_key};
}

/* The longest launch of the levels of a tier: an operation is started once for all of them. */
static void add_launch(struct sum *sum, const struct tier *tier)
{
    const struct collective_ask *ask = sum->ask;
    double longest_s = 0.0;
    uint32_t slowest = tier->first;
    for (uint32_t level = tier->first; level <= tier->last; level++) {
        const double level_s = ask->cluster->spec->levels[level].launch_s;
        if (collective_uses(&ask->span, level) && level_s >= longest_s) {
            longest_s = level_s;
            slowest = level;
        }
    }
    sum->cost->time_s += longest_s;
    sum->cost->latency_s += longest_s;
    add_term(sum, "launch", longest_s, "s", collective_level_key(slowest, LEVEL_LAUNCH));
}

static void add_launch_of_all(struct sum *sum)
{
    const struct tier all = collective_tier(sum->ask, 0, sum->ask->span.outer_level);
    add_launch(sum, &all);
}

/* Time, latency and terms of one part; the bytes are booked by the caller, who knows the level. */
static void add_part(struct sum *sum, const struct collective *algorithm, const struct tier *tier,
                     const struct collective_level_ask *ask,
                     const struct collective_level_cost *part)
{
    struct collective_cost *cost = sum->cost;
    cost->time_s += part->time_s;
    cost->latency_s += part->latency_s;
    if (part->time_s >= sum->longest_s) {
        sum->longest_s = part->time_s;
        cost->algorithm = algorithm->name;
    }
    for (uint32_t level = tier->first; level <= tier->last; level++)
        if (collective_uses(&sum->ask->span, level))
            cost->level_algorithm[level] = algorithm->name;
    if (!sum->explain)
        return;
    add_term(sum, algorithm->name, part->time_s, "s", NULL);
    add_term(sum, "p", ask->ranks, "ranks", NULL);
    add_term(sum, "n", ask->bytes, "bytes", NULL);
    add_term(sum, "alpha", ask->alpha_s + ask->ramp_s, "s",
             collective_level_key(tier->last, LEVEL_LATENCY));
    add_term(sum, "rate", ask->bytes_per_s, "bytes/s",
             collective_level_key(tier->last, LEVEL_BANDWIDTH));
}

/* Bytes that a shard-wise pass through a tier sends, level by level: at each level what goes
 * to other domains there, in proportion to 1/below - 1/within. */
static void book_bytes(struct sum *sum, const struct tier *tier, double sent_bytes)
{
    const struct group_span *span = &sum->ask->span;
    const double within = (double)tier->below * tier->ranks;
    const double whole = 1.0 / tier->below - 1.0 / within;
    for (uint32_t level = tier->first; level <= tier->last; level++) {
        const double upper = level == tier->last ? within : collective_within(span, level);
        const double share = 1.0 / collective_below(span, level) - 1.0 / upper;
        sum->cost->sent_bytes[level] += sent_bytes * share / whole;
    }
}

static double buffer_bytes(const struct sum *sum)
{
    return sum->rules->loops ? sum->ask->buffer_bytes : 0.0;
}

/* ---- Reductions and gathers, tier by tier ---- */

static void add_tier(struct sum *sum, const struct tier *tier, const struct collective *algorithm,
                     enum collective_kind kind, double bytes)
{
    struct collective_level_ask level_ask = {
        .kind = kind, .bytes = bytes, .buffer_bytes = buffer_bytes(sum)};
    collective_fill_tier(sum->ask, tier, algorithm, sum->rules->flat, &level_ask);
    const struct collective_level_cost part = algorithm->cost(&level_ask);
    add_part(sum, algorithm, tier, &level_ask, &part);
    book_bytes(sum, tier, part.sent_bytes);
}

static const struct collective *choose(const struct sum *sum, const struct tiers *tiers,
                                       uint32_t index, double bytes)
{
    const struct collective *forced = collective_forced(sum->ask, tiers->items[index].in_node);
    if (forced && !forced->two_level)
        return forced;
    return sum->rules->gather(sum->ask, tiers, index, bytes);
}

static void add_tiers(struct sum *sum, const struct tiers *tiers)
{
    const struct collective_ask *ask = sum->ask;
    const bool reduce_all = ask->kind == COLLECTIVE_ALL_REDUCE;
    const bool whole_blocks = sum->rules->whole_blocks && !reduce_all;
    double bytes = ask->bytes;
    for (uint32_t step = 0; step < tiers->count; step++) {
        /* Whole blocks shrink from the outside in, shards from the inside out. */
        const uint32_t index = whole_blocks ? tiers->count - 1 - step : step;
        const struct tier *tier = &tiers->items[index];
        const struct collective *algorithm = choose(sum, tiers, index, bytes);
        if (reduce_all && index + 1 < tiers->count) {
            add_tier(sum, tier, algorithm, COLLECTIVE_REDUCE_SCATTER, bytes);
            add_tier(sum, tier, algorithm, COLLECTIVE_ALL_GATHER, bytes);
        } else {
            add_tier(sum, tier, algorithm, ask->kind, bytes);
        }
        bytes /= tier->ranks;
    }
}

/* ---- Two tiers in one algorithm ---- */

/* `inner` may be unused (ranks 1). */
static void add_two_level(struct sum *sum, const struct collective *algorithm,
                          const struct tier *inner, const struct tier *outer, double imbalance)
{
    const struct collective_ask *ask = sum->ask;
    struct collective_level_ask level_ask = {
        .kind = ask->kind,
        .bytes = ask->bytes * imbalance,
        .token_bytes = ask->token_bytes,
        .buffer_bytes = buffer_bytes(sum),
    };
    collective_fill_tier(ask, outer, algorithm, false, &level_ask);
    collective_fill_inner(ask, inner, &level_ask);
    const struct collective_level_cost part = algorithm->cost(&level_ask);
    add_part(sum, algorithm, outer, &level_ask, &part);
    if (inner->ranks > 1) {
        add_term(sum, "p_intra", level_ask.inner.ranks, "ranks", NULL);
        add_term(sum, "alpha_intra", level_ask.inner.alpha_s + level_ask.inner.ramp_s, "s",
                 collective_level_key(inner->last, LEVEL_LATENCY));
        add_term(sum, "rate_intra", level_ask.inner.bytes_per_s, "bytes/s",
                 collective_level_key(inner->last, LEVEL_BANDWIDTH));
        for (uint32_t level = inner->first; level <= inner->last; level++)
            if (collective_uses(&ask->span, level))
                sum->cost->level_algorithm[level] = algorithm->name;
        book_bytes(sum, inner, part.inner_sent_bytes / imbalance);
    }
    /* The hierarchical exchange gathers tokens, which no expert load changes. */
    const bool balanced_outside = ask->kind == COLLECTIVE_ALL_TO_ALL_HIERARCHICAL;
    book_bytes(sum, outer, part.sent_bytes / (balanced_outside ? 1.0 : imbalance));
}

/* ---- Flat over all levels ---- */

/* All-to-all between all pairs: at each level the blocks for ranks of other domains there. At
 * once (mesh) the slowest level counts, step by step (pairwise) all of them do. */
static void add_flat_exchange(struct sum *sum, const struct collective *algorithm)
{
    const struct collective_ask *ask = sum->ask;
    const double imbalance = fmax(1.0, ask->imbalance);
    const struct tier all = collective_tier(ask, 0, ask->span.outer_level);
    struct collective_level_cost total = {0};
    struct collective_level_ask slowest = {0};
    double slowest_s = -1.0;
    for (uint32_t level = 0; level <= ask->span.outer_level; level++) {
        const uint32_t peers =
            collective_within(&ask->span, level) - collective_below(&ask->span, level);
        if (peers == 0)
            continue;
        /* A group of peers + 1 sends peers blocks of the size that the whole group has. */
        struct collective_level_ask level_ask = {
            .kind = COLLECTIVE_ALL_TO_ALL,
            .bytes = ask->bytes * imbalance * (peers + 1.0) / ask->span.size,
            .ranks = peers + 1,
            .bytes_per_s = collective_level_rate(ask, level, COLLECTIVE_ALL_TO_ALL, algorithm),
            .buffer_bytes = buffer_bytes(sum),
        };
        collective_level_latency(ask, level, &level_ask.alpha_s, &level_ask.ramp_s);
        const struct collective_level_cost part = algorithm->cost(&level_ask);
        sum->cost->sent_bytes[level] += part.sent_bytes / imbalance;
        const bool longer = part.time_s > slowest_s;
        if (longer) {
            slowest_s = part.time_s;
            slowest = level_ask;
        }
        if (algorithm->peers == 0) {
            total.time_s = fmax(total.time_s, part.time_s);
            total.latency_s = fmax(total.latency_s, part.latency_s);
        } else {
            total.time_s += part.time_s;
            total.latency_s += part.latency_s;
        }
    }
    add_part(sum, algorithm, &all, &slowest, &total);
}

/* Ring over everything, or for an all-reduce the tree if it is faster. */
static void add_flat_gather(struct sum *sum, const struct tiers *tiers)
{
    const struct collective_ask *ask = sum->ask;
    const struct tier all = collective_tier(ask, 0, ask->span.outer_level);
    const struct collective *forced = collective_forced(ask, false);
    const struct collective *algorithm = forced && !forced->two_level ? forced : &collective_ring;
    struct collective_level_ask level_ask = {.kind = ask->kind, .bytes = ask->bytes};
    collective_fill_tier(ask, &all, algorithm, true, &level_ask);
    struct collective_level_cost part = algorithm->cost(&level_ask);

    const bool may_tree =
        ask->kind == COLLECTIVE_ALL_REDUCE && (!forced || forced == &collective_tree);
    if (may_tree) {
        struct collective_level_ask tree_ask = level_ask;
        const struct tier *outer = &tiers->items[tiers->count - 1];
        struct collective_level_ask outer_ask = {.kind = ask->kind};
        collective_fill_tier(ask, outer, &collective_tree, false, &outer_ask);
        tree_ask.ranks = outer_ask.ranks;
        tree_ask.alpha_s = outer_ask.alpha_s;
        if (outer->below > 1) {
            const struct tier inside = collective_tier(ask, 0, outer->first - 1);
            struct collective_level_ask inside_ask = {.kind = ask->kind};
            collective_fill_tier(ask, &inside, &collective_tree, false, &inside_ask);
            tree_ask.inner.ranks = inside_ask.ranks;
            tree_ask.inner.alpha_s = inside_ask.alpha_s;
        }
        const struct collective_level_cost tree = collective_tree.cost(&tree_ask);
        if (forced || tree.time_s < part.time_s) {
            part = tree;
            algorithm = &collective_tree;
            level_ask = tree_ask;
        }
    }
    add_part(sum, algorithm, &all, &level_ask, &part);
    book_bytes(sum, &all, part.sent_bytes);
}

/* ---- By kind ---- */

void collective_sum_gather(struct sum *sum)
{
    const struct collective_ask *ask = sum->ask;
    add_launch_of_all(sum);
    const struct rules *rules = sum->rules;
    const struct tiers tiers = collective_tiers(ask, rules->merge_outer);
    if (rules->flat) {
        add_flat_gather(sum, &tiers);
        return;
    }
    const struct tier all = collective_tier(ask, 0, ask->span.outer_level);
    if (ask->kind == COLLECTIVE_ALL_REDUCE && tiers.count == 2 &&
        ask->bytes <= rules->small_flat_bytes && !collective_forced(ask, false)) {
        add_tier(sum, &all, &collective_nhr, ask->kind, ask->bytes);
        return;
    }
    if (tiers.count == 2) {
        const struct collective *two_level = collective_forced(ask, false);
        if (!two_level && rules->gather_two_level)
            two_level = rules->gather_two_level(ask, &tiers);
        if (two_level && two_level->two_level) {
            add_two_level(sum, two_level, &tiers.items[0], &tiers.items[1], 1.0);
            return;
        }
    }
    add_tiers(sum, &tiers);
}

/* The outermost tier, and all that lies inside it as one. */
static void split(const struct sum *sum, const struct tiers *tiers, struct tier *inner,
                  struct tier *outer)
{
    *outer = tiers->items[tiers->count - 1];
    *inner = outer->first > 0 ? collective_tier(sum->ask, 0, outer->first - 1)
                              : (struct tier){.below = 1, .ranks = 1};
}

void collective_sum_all_to_all(struct sum *sum)
{
    const struct collective_ask *ask = sum->ask;
    add_launch_of_all(sum);
    const struct tiers tiers = collective_tiers(ask, sum->rules->merge_outer);
    const bool one_node = tiers.count == 1 && tiers.items[0].in_node;
    const struct collective *algorithm = collective_forced(ask, one_node);
    if (!algorithm)
        algorithm = sum->rules->all_to_all(ask, &tiers);
    if (!algorithm->two_level) {
        add_flat_exchange(sum, algorithm);
        return;
    }
    struct tier inner, outer;
    split(sum, &tiers, &inner, &outer);
    add_two_level(sum, algorithm, &inner, &outer, fmax(1.0, ask->imbalance));
}

/* Without several nodes there is nothing to gather: a plain exchange. */
void collective_sum_hierarchical(struct sum *sum)
{
    const struct collective_ask *ask = sum->ask;
    const struct tiers tiers = collective_tiers(ask, sum->rules->merge_outer);
    struct tier inner, outer;
    split(sum, &tiers, &inner, &outer);
    if (outer.in_node) {
        add_launch(sum, &outer);
        add_flat_exchange(sum, &collective_mesh);
        return;
    }
    /* Two operations on two groups, so two launches. */
    add_launch(sum, &outer);
    if (inner.ranks > 1)
        add_launch(sum, &inner);
    add_two_level(sum, &collective_hierarchical, &inner, &outer, fmax(1.0, ask->imbalance));
}

void collective_sum_send_recv(struct sum *sum)
{
    const struct collective_ask *ask = sum->ask;
    const uint32_t level = ask->span.outer_level;
    const struct tier tier = collective_tier(ask, level, level);
    add_launch(sum, &tier);
    struct collective_level_ask level_ask = {
        .kind = ask->kind,
        .bytes = ask->bytes,
        .ranks = 2,
        .bytes_per_s = collective_level_rate(ask, level, ask->kind, &collective_send_recv),
    };
    collective_level_latency(ask, level, &level_ask.alpha_s, &level_ask.ramp_s);
    const struct collective_level_cost part = collective_send_recv.cost(&level_ask);
    add_part(sum, &collective_send_recv, &tier, &level_ask, &part);
    sum->cost->sent_bytes[level] += part.sent_bytes;
}
