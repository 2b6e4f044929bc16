/*
 * placement.c - plans from loads: by number, at random, greedily, and by few swaps.
 */
#include "stepsim/placement.h"

#include "stepsim/error.h"

struct placement placement_create(uint32_t experts, uint32_t positions, struct arena *arena)
{
    ASSERT(positions > 0 && experts % positions == 0);
    struct placement placement = {.experts = experts,
                                  .positions = positions,
                                  .position_of = ARENA_ARRAY(arena, experts, uint32_t)};
    placement_contiguous(&placement);
    return placement;
}

void placement_contiguous(struct placement *placement)
{
    const uint32_t slots = placement->experts / placement->positions;
    for (uint32_t e = 0; e < placement->experts; e++)
        placement->position_of[e] = e / slots;
}

void placement_random(struct placement *placement, struct rng *rng)
{
    placement_contiguous(placement);
    for (uint32_t e = placement->experts; e > 1; e--) {
        const uint32_t other = (uint32_t)rng_below(rng, e);
        const uint32_t kept = placement->position_of[e - 1];
        placement->position_of[e - 1] = placement->position_of[other];
        placement->position_of[other] = kept;
    }
}

void placement_greedy(struct placement *placement, const double *load, struct arena *scratch)
{
    const uint32_t slots = placement->experts / placement->positions;
    double *sum = ARENA_ARRAY(scratch, placement->positions, double);
    uint32_t *held = ARENA_ARRAY(scratch, placement->positions, uint32_t);
    bool *placed = ARENA_ARRAY(scratch, placement->experts, bool);
    for (uint32_t turn = 0; turn < placement->experts; turn++) {
        uint32_t heaviest = UINT32_MAX;
        for (uint32_t e = 0; e < placement->experts; e++) {
            if (!placed[e] && (heaviest == UINT32_MAX || load[e] > load[heaviest]))
                heaviest = e;
        }
        uint32_t lightest = UINT32_MAX;
        for (uint32_t p = 0; p < placement->positions; p++) {
            if (held[p] < slots && (lightest == UINT32_MAX || sum[p] < sum[lightest]))
                lightest = p;
        }
        placed[heaviest] = true;
        placement->position_of[heaviest] = lightest;
        sum[lightest] += load[heaviest];
        held[lightest]++;
    }
}

/* Loads of positions, and the heaviest of them. */
static uint32_t position_loads(const struct placement *placement, const double *load, double *sum)
{
    uint32_t heaviest = 0;
    for (uint32_t p = 0; p < placement->positions; p++)
        sum[p] = 0.0;
    for (uint32_t e = 0; e < placement->experts; e++)
        sum[placement->position_of[e]] += load[e];
    for (uint32_t p = 1; p < placement->positions; p++) {
        if (sum[p] > sum[heaviest])
            heaviest = p;
    }
    return heaviest;
}

struct swap {
    uint32_t out, in; /* experts */
    double heavier;   /* of the two positions afterwards */
};

static struct swap best_swap(const struct placement *placement, const double *load,
                             const double *sum, uint32_t heaviest)
{
    struct swap best = {UINT32_MAX, UINT32_MAX, sum[heaviest] * (1.0 - 1e-6)};
    for (uint32_t out = 0; out < placement->experts; out++) {
        if (placement->position_of[out] != heaviest)
            continue;
        for (uint32_t in = 0; in < placement->experts; in++) {
            const uint32_t other = placement->position_of[in];
            const double moved = load[out] - load[in];
            if (other == heaviest || moved <= 0.0)
                continue;
            const double here = sum[heaviest] - moved;
            const double there = sum[other] + moved;
            const double heavier = here > there ? here : there;
            if (heavier < best.heavier)
                best = (struct swap){out, in, heavier};
        }
    }
    return best;
}

void placement_improve(struct placement *placement, const double *load, struct arena *scratch)
{
    double *sum = ARENA_ARRAY(scratch, placement->positions, double);
    for (uint32_t turn = 0; turn < placement->experts; turn++) {
        const uint32_t heaviest = position_loads(placement, load, sum);
        const struct swap swap = best_swap(placement, load, sum, heaviest);
        if (swap.out == UINT32_MAX)
            return;
        placement->position_of[swap.out] = placement->position_of[swap.in];
        placement->position_of[swap.in] = heaviest;
    }
}

double placement_heaviest(const struct placement *placement, const double *load,
                          struct arena *scratch)
{
    double *sum = ARENA_ARRAY(scratch, placement->positions, double);
    double total = 0.0;
    const uint32_t heaviest = position_loads(placement, load, sum);
    for (uint32_t p = 0; p < placement->positions; p++)
        total += sum[p];
    return total > 0.0 ? sum[heaviest] * (double)placement->positions / total : 1.0;
}
