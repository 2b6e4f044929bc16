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
    if (!sum->explain)
        return;
    ASSERT(cost->term_count < COST_TERMS_MAX);
    cost->terms[cost->term_count++] =
        (struct cost_term){.name = name, .value = value, .unit = unit, .origin_key = origin_key};
}

/* ---- Phases ---- */

static struct collective_phase *add_phase(struct sum *sum, double time_s, uint32_t steps)
{
    if (sum->phases == NULL)
        return NULL;
    ASSERT(sum->phase_count < COLLECTIVE_PHASES_MAX && steps > 0);
    struct collective_phase *phase = &sum->phases[sum->phase_count++];
    *phase = (struct collective_phase){.time_s = time_s, .steps = steps};
    return phase;
}

/* Bytes of the cost, and of the phase `back` behind the newest one. */
static void add_bytes(struct sum *sum, uint32_t back, uint32_t level, double bytes)
{
    sum->cost->sent_bytes[level] += bytes;
    if (sum->phases != NULL)
        sum->phases[sum->phase_count - 1 - back].sent_bytes[level] += bytes;
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
    add_phase(sum, longest_s, 1);
    add_term(sum, "launch", longest_s, "s", collective_level_key(slowest, LEVEL_LAUNCH));
}

static void add_launch_of_all(struct sum *sum)
{
    const struct tier all = collective_tier(sum->ask, 0, sum->ask->span.outer_level);
    add_launch(sum, &all);
}

/* One algorithm that ran on one tier. */
struct part {
    const struct collective *algorithm;
    struct tier tier;
    uint32_t slowest; /* level that sets the rate */
    bool again;       /* the way out of an all-reduce: its inputs are listed already */
    struct collective_level_ask ask;
    struct collective_level_cost cost;
};

/* The facts behind a rate and a latency. */
static void explain_links(struct sum *sum, uint32_t level, enum collective_kind kind, double rate)
{
    const struct level_spec *spec = &sum->ask->cluster->spec->levels[level];
    const bool exchange = kind == COLLECTIVE_ALL_TO_ALL;
    add_term(sum, "alpha", spec->latency_s, "s", collective_level_key(level, LEVEL_LATENCY));
    add_term(sum, "bandwidth", spec->bytes_per_s, "bytes/s",
             collective_level_key(level, LEVEL_BANDWIDTH));
    add_term(sum, "efficiency", exchange ? spec->alltoall_efficiency : spec->efficiency, "ratio",
             collective_level_key(level, exchange ? LEVEL_ALLTOALL : LEVEL_EFFICIENCY));
    add_term(sum, "rate", rate, "bytes/s", NULL);
}

/* The halves of a two-level algorithm are two phases, the outer one first, unless both run at
 * once. */
static bool has_halves(const struct part *part)
{
    const bool at_once =
        part->algorithm == &collective_pipeline || part->algorithm == &collective_deduplicated;
    return part->algorithm->two_level && !at_once && part->ask.inner.ranks > 1 &&
           part->ask.ranks > 1;
}

static void add_part_phases(struct sum *sum, const struct part *part)
{
    if (sum->phases == NULL)
        return;
    const double loops = collective_loops(&part->ask);
    double outside_s = 0.0;
    uint32_t outside_steps = 0;
    if (has_halves(part)) {
        struct collective_level_ask outside = part->ask;
        outside.inner.ranks = 1;
        const struct collective_level_cost cost = part->algorithm->cost(&outside);
        outside_s = cost.time_s;
        outside_steps = cost.steps;
        add_phase(sum, outside_s, (uint32_t)(loops * outside_steps));
    }
    struct collective_phase *phase = add_phase(
        sum, part->cost.time_s - outside_s, (uint32_t)(loops * (part->cost.steps - outside_steps)));
    const enum collective_kind kind = sum->ask->kind;
    const bool tokens =
        kind == COLLECTIVE_ALL_TO_ALL_HIERARCHICAL || kind == COLLECTIVE_ALL_TO_ALL_DEDUPLICATED;
    phase->exchange = kind == COLLECTIVE_ALL_TO_ALL ||
                      (tokens && (outside_steps > 0 || !part->algorithm->two_level));
    if (outside_steps > 0)
        sum->phases[sum->phase_count - 2].exchange = kind == COLLECTIVE_ALL_TO_ALL;
}

/* Time, latency and terms of one part; the bytes are booked by the caller, who knows the level. */
static void add_part(struct sum *sum, const struct part *part)
{
    add_part_phases(sum, part);
    struct collective_cost *cost = sum->cost;
    cost->time_s += part->cost.time_s;
    cost->latency_s += part->cost.latency_s;
    if (part->cost.time_s >= sum->longest_s) {
        sum->longest_s = part->cost.time_s;
        cost->algorithm = part->algorithm->name;
    }
    for (uint32_t level = part->tier.first; level <= part->tier.last; level++)
        if (collective_uses(&sum->ask->span, level))
            cost->level_algorithm[level] = part->algorithm->name;
    add_term(sum, part->algorithm->name, part->cost.time_s, "s", NULL);
    if (part->again || !sum->explain)
        return;
    add_term(sum, "p", part->ask.ranks, "ranks", NULL);
    add_term(sum, "n", part->ask.bytes, "bytes", NULL);
    explain_links(sum, part->slowest, part->ask.kind, part->ask.bytes_per_s);
}

/* Bytes that a shard-wise pass through a tier sends, level by level: at each level what goes
 * to other domains there, in proportion to 1/below - 1/within. */
static void book_bytes(struct sum *sum, const struct tier *tier, uint32_t back, double sent_bytes)
{
    const struct group_span *span = &sum->ask->span;
    const double within = (double)tier->below * tier->ranks;
    const double whole = 1.0 / tier->below - 1.0 / within;
    for (uint32_t level = tier->first; level <= tier->last; level++) {
        const double upper = level == tier->last ? within : collective_within(span, level);
        const double share = 1.0 / collective_below(span, level) - 1.0 / upper;
        add_bytes(sum, back, level, sent_bytes * share / whole);
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
    struct part part = {
        .algorithm = algorithm,
        .tier = *tier,
        .again = kind == COLLECTIVE_ALL_GATHER && sum->ask->kind == COLLECTIVE_ALL_REDUCE,
        .ask = {.kind = kind, .bytes = bytes, .buffer_bytes = buffer_bytes(sum)},
    };
    part.slowest = collective_fill_tier(sum->ask, tier, algorithm, sum->rules->flat, &part.ask);
    part.cost = algorithm->cost(&part.ask);
    add_part(sum, &part);
    book_bytes(sum, tier, 0, part.cost.sent_bytes);
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
    struct part part = {
        .algorithm = algorithm,
        .tier = *outer,
        .ask =
            {
                .kind = ask->kind,
                .bytes = ask->bytes * imbalance,
                .token_bytes = ask->token_bytes,
                .buffer_bytes = buffer_bytes(sum),
            },
    };
    part.slowest = collective_fill_tier(ask, outer, algorithm, false, &part.ask);
    const uint32_t slowest_inside = collective_fill_inner(ask, inner, &part.ask);
    part.cost = algorithm->cost(&part.ask);
    add_part(sum, &part);
    if (inner->ranks > 1) {
        const bool exchange = ask->kind == COLLECTIVE_ALL_TO_ALL_HIERARCHICAL ||
                              ask->kind == COLLECTIVE_ALL_TO_ALL_DEDUPLICATED;
        add_term(sum, "p_intra", part.ask.inner.ranks, "ranks", NULL);
        explain_links(sum, slowest_inside, exchange ? COLLECTIVE_ALL_TO_ALL : ask->kind,
                      part.ask.inner.bytes_per_s);
        for (uint32_t level = inner->first; level <= inner->last; level++)
            if (collective_uses(&ask->span, level))
                sum->cost->level_algorithm[level] = algorithm->name;
        book_bytes(sum, inner, 0, part.cost.inner_sent_bytes / imbalance);
    }
    /* The hierarchical exchange gathers tokens, which no expert load changes. */
    const bool balanced_outside = ask->kind == COLLECTIVE_ALL_TO_ALL_HIERARCHICAL ||
                                  ask->kind == COLLECTIVE_ALL_TO_ALL_DEDUPLICATED;
    book_bytes(sum, outer, has_halves(&part) ? 1 : 0,
               part.cost.sent_bytes / (balanced_outside ? 1.0 : imbalance));
}

/* ---- Flat over all levels ---- */

/* All-to-all between all pairs: at each level the blocks for ranks of other domains there. At
 * once (mesh) the slowest level counts, step by step (pairwise) all of them do. */
static void add_flat_exchange(struct sum *sum, const struct collective *algorithm)
{
    const struct collective_ask *ask = sum->ask;
    const double imbalance = fmax(1.0, ask->imbalance);
    struct part slowest = {
        .algorithm = algorithm,
        .tier = collective_tier(ask, 0, ask->span.outer_level),
    };
    struct collective_level_cost total = {0};
    double sent_bytes[LEVELS_MAX] = {0};
    for (uint32_t level = 0; level <= ask->span.outer_level; level++) {
        if (!collective_uses(&ask->span, level))
            continue;
        const uint32_t peers =
            collective_within(&ask->span, level) - collective_below(&ask->span, level);
        /* A group of peers + 1 sends peers blocks of the size that the whole group has. */
        const double share = (peers + 1.0) / ask->span.size;
        struct collective_level_ask level_ask = {
            .kind = COLLECTIVE_ALL_TO_ALL,
            .bytes = ask->bytes * imbalance * share,
            .ranks = peers + 1,
            .bytes_per_s = collective_level_rate(ask, level, COLLECTIVE_ALL_TO_ALL, algorithm),
            .buffer_bytes = buffer_bytes(sum) * share,
        };
        collective_level_latency(ask, level, &level_ask.alpha_s, &level_ask.ramp_s);
        const struct collective_level_cost part = algorithm->cost(&level_ask);
        sent_bytes[level] = part.sent_bytes / imbalance;
        if (part.time_s >= slowest.cost.time_s) {
            slowest.slowest = level;
            slowest.ask = level_ask;
            slowest.cost = part;
        }
        total.time_s += part.time_s;
        total.latency_s += part.latency_s;
        total.steps += part.steps;
    }
    if (algorithm->peers != 0)
        slowest.cost = total;
    add_part(sum, &slowest);
    for (uint32_t level = 0; level <= ask->span.outer_level; level++)
        add_bytes(sum, 0, level, sent_bytes[level]);
}

/* The tree's depth is that of the nodes, its chains are the ranks inside, its rate that of a ring
 * over rails: `ring` holds it. */
static struct collective_level_ask tree_ask(const struct collective_ask *ask,
                                            const struct tiers *tiers,
                                            const struct collective_level_ask *ring)
{
    const struct tier *outer = &tiers->items[tiers->count - 1];
    struct collective_level_ask tree = *ring;
    collective_fill_tier(ask, outer, &collective_tree, false, &tree);
    tree.bytes_per_s = ring->bytes_per_s;
    if (outer->below > 1) {
        const struct tier inside = collective_tier(ask, 0, outer->first - 1);
        struct collective_level_ask chain = {.kind = ask->kind};
        collective_fill_tier(ask, &inside, &collective_tree, false, &chain);
        tree.inner.ranks = chain.ranks;
        tree.inner.alpha_s = chain.alpha_s;
    }
    return tree;
}

/* Ring over everything, or for an all-reduce the tree if it is faster. */
static void add_flat_gather(struct sum *sum, const struct tiers *tiers)
{
    const struct collective_ask *ask = sum->ask;
    const struct tier all = collective_tier(ask, 0, ask->span.outer_level);
    const struct collective *forced = collective_forced(ask, false);
    const bool tree_only = forced == &collective_tree;
    struct part part = {
        .algorithm = forced && !forced->two_level && !tree_only ? forced : &collective_ring,
        .tier = all,
        .ask = {.kind = ask->kind, .bytes = ask->bytes},
    };
    part.slowest = collective_fill_tier(ask, &all, part.algorithm, true, &part.ask);
    part.cost = part.algorithm->cost(&part.ask);
    if (ask->kind == COLLECTIVE_ALL_REDUCE && (!forced || tree_only)) {
        const struct collective_level_ask tree = tree_ask(ask, tiers, &part.ask);
        const struct collective_level_cost cost = collective_tree.cost(&tree);
        if (tree_only || cost.time_s < part.cost.time_s) {
            part.algorithm = &collective_tree;
            part.ask = tree;
            part.cost = cost;
        }
    }
    add_part(sum, &part);
    book_bytes(sum, &all, 0, part.cost.sent_bytes);
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
    const bool small = rules->small_flat_bytes > 0.0 && ask->bytes <= rules->small_flat_bytes;
    if (small && ask->kind == COLLECTIVE_ALL_REDUCE && tiers.count == 2 &&
        !collective_forced(ask, false)) {
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
    if (ask->kind == COLLECTIVE_ALL_TO_ALL_DEDUPLICATED) {
        add_launch_of_all(sum);
        add_two_level(sum, &collective_deduplicated, &inner, &outer, fmax(1.0, ask->imbalance));
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
    struct part part = {
        .algorithm = &collective_send_recv,
        .tier = tier,
        .slowest = level,
        .ask = {.kind = ask->kind, .bytes = ask->bytes, .ranks = 2},
    };
    part.ask.bytes_per_s = collective_level_rate(ask, level, ask->kind, &collective_send_recv);
    collective_level_latency(ask, level, &part.ask.alpha_s, &part.ask.ramp_s);
    part.cost = collective_send_recv.cost(&part.ask);
    add_part(sum, &part);
    add_bytes(sum, 0, level, part.cost.sent_bytes);
}
