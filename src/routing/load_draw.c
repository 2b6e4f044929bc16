/*
 * load_draw.c - shapes of expert loads: drawn distributions and the load scenarios by name.
 *
 * Scenarios that speak of a rank mean the rank that holds the experts of these numbers under
 * the static placement; so another placement can take their heat apart.
 */
#include <math.h>
#include <string.h>

#include "routing_internal.h"

#define KEPT_BITS 30

enum load_kind load_kind_of(const struct moe_run_spec *spec)
{
    static const char *const names[LOAD_KIND_COUNT] = {
        "balanced", "zipf",          "dirichlet",  "histogram",        "hot_experts", "hot_rank",
        "spread_heat", "ragged_source", "empty_rank", "rotating_hotspot", "burst"};
    if (spec->load == NULL) /* a scenario written by hand */
        return LOAD_BALANCED;
    for (int kind = 0; kind < LOAD_KIND_COUNT; kind++) {
        if (strcmp(spec->load, names[kind]) == 0)
            return (enum load_kind)kind;
    }
    ASSERT(!"the schema knows every load");
    return LOAD_BALANCED;
}

static void fill(double *load, uint32_t count, double value)
{
    for (uint32_t i = 0; i < count; i++)
        load[i] = value;
}

static struct rng stream_of(const struct load_shape *shape, struct draw_ids ids)
{
    uint64_t id = rng_mix(ids.layer, ids.replica);
    id = rng_mix(id, ids.microbatch);
    return rng_stream(shape->spec->routing_seed, rng_mix(id, ids.step));
}

static void shuffle(double *load, uint32_t count, struct rng *rng)
{
    for (uint32_t i = count; i > 1; i--) {
        const uint32_t other = (uint32_t)rng_below(rng, i);
        const double kept = load[i - 1];
        load[i - 1] = load[other];
        load[other] = kept;
    }
}

static void scale_to_mean_one(double *load, uint32_t count)
{
    double sum = 0.0;
    for (uint32_t i = 0; i < count; i++)
        sum += load[i];
    ASSERT(sum > 0.0);
    for (uint32_t i = 0; i < count; i++)
        load[i] = load[i] * (double)count / sum;
}

void load_cap(double *load, uint32_t experts, uint32_t top_k)
{
    const double most = (double)experts / (double)top_k;
    for (uint32_t round = 0; round < experts; round++) {
        double over = 0.0;
        double below = 0.0;
        for (uint32_t e = 0; e < experts; e++) {
            over += fmax(0.0, load[e] - most);
            below += load[e] < most ? load[e] : 0.0;
        }
        if (over <= 1e-12 || below <= 0.0)
            return;
        for (uint32_t e = 0; e < experts; e++)
            load[e] = load[e] < most ? load[e] * (1.0 + over / below) : most;
    }
}

double load_rounded(double value)
{
    int exponent;
    const double fraction = frexp(value, &exponent);
    return ldexp(round(ldexp(fraction, KEPT_BITS)), exponent - KEPT_BITS);
}

/* `hot` experts, on ranks of their own if spread, carry max_over_mean each. */
static void draw_hot_experts(const struct load_shape *shape, bool spread, struct rng *rng,
                             double *load, struct arena *scratch)
{
    const uint32_t hot = shape->spec->routing_hot;
    const double most = shape->spec->load_max_over_mean;
    const double rest =
        ((double)shape->experts - hot * most) / ((double)shape->experts - (double)hot);
    fill(load, shape->experts, rest);
    const uint32_t places = spread ? shape->positions : shape->experts;
    const uint32_t width = shape->experts / places;
    bool *taken = ARENA_ARRAY(scratch, places, bool);
    for (uint32_t i = 0; i < hot; i++) {
        uint32_t place = (uint32_t)rng_below(rng, places);
        while (taken[place])
            place = (place + 1) % places;
        taken[place] = true;
        load[place * width + (uint32_t)rng_below(rng, width)] = most;
    }
}

/* All experts of one position at `ratio`, the others share the rest. */
static void heat_rank(const struct load_shape *shape, uint32_t position, double ratio, double *load)
{
    const uint32_t width = shape->experts / shape->positions;
    const double others = (double)shape->positions - 1.0;
    fill(load, shape->experts, ((double)shape->positions - ratio) / others);
    fill(load + (size_t)position * width, width, ratio);
}

/* The rank of the scenarios about one rank: the same in every layer. */
static uint32_t rank_of_scenario(const struct load_shape *shape)
{
    struct rng rng = rng_stream(shape->spec->routing_seed, 0);
    return (uint32_t)rng_below(&rng, shape->positions);
}

static void draw_rank(const struct load_shape *shape, uint32_t step, double *load)
{
    const uint32_t rank = rank_of_scenario(shape);
    const uint32_t period = shape->spec->routing_period;
    const double most = shape->spec->load_max_over_mean;
    if (shape->kind == LOAD_EMPTY_RANK) {
        heat_rank(shape, rank, 0.0, load);
    } else if (shape->kind == LOAD_ROTATING_HOTSPOT) {
        heat_rank(shape, (rank + step / period) % shape->positions, most, load);
    } else if (shape->kind == LOAD_HOT_RANK || (step + 1) % period == 0) {
        heat_rank(shape, rank, most, load);
    } else {
        fill(load, shape->experts, 1.0);
    }
}

void load_draw(const struct load_shape *shape, struct draw_ids ids, double *load,
               struct arena *scratch)
{
    struct rng rng = stream_of(shape, ids);
    switch (shape->kind) {
    case LOAD_ZIPF:
        for (uint32_t i = 0; i < shape->experts; i++)
            load[i] = load_rounded(pow((double)i + 1.0, -shape->spec->zipf_s));
        scale_to_mean_one(load, shape->experts);
        load_cap(load, shape->experts, shape->top_k);
        shuffle(load, shape->experts, &rng);
        return;
    case LOAD_DIRICHLET:
        for (uint32_t i = 0; i < shape->experts; i++)
            load[i] = load_rounded(rng_gamma(&rng, shape->spec->dirichlet_alpha)) + 1e-300;
        scale_to_mean_one(load, shape->experts);
        load_cap(load, shape->experts, shape->top_k);
        return;
    case LOAD_HOT_EXPERTS:
    case LOAD_SPREAD_HEAT:
        draw_hot_experts(shape, shape->kind == LOAD_SPREAD_HEAT, &rng, load, scratch);
        return;
    case LOAD_HOT_RANK:
    case LOAD_EMPTY_RANK:
    case LOAD_ROTATING_HOTSPOT:
    case LOAD_BURST:
        draw_rank(shape, ids.step, load);
        return;
    default:
        fill(load, shape->experts, 1.0);
    }
}

/* What max_over_mean cannot pass: the group, the experts, and one choice per token; 0: the load
 * does not read it. */
static double most_possible(const struct load_shape *shape)
{
    const double once = (double)shape->experts / (double)shape->top_k;
    switch (shape->kind) {
    case LOAD_HOT_EXPERTS:
    case LOAD_SPREAD_HEAT:
        return fmin(once, (double)shape->experts / shape->spec->routing_hot);
    case LOAD_HOT_RANK:
    case LOAD_ROTATING_HOTSPOT:
    case LOAD_BURST:
        return fmin(once, (double)shape->positions);
    case LOAD_RAGGED_SOURCE:
        return (double)shape->positions;
    default:
        return 0.0;
    }
}

bool load_shape_check(const struct load_shape *shape, const struct scenario *scenario,
                      struct error_list *errors)
{
    const struct moe_run_spec *spec = shape->spec;
    const bool counts = shape->kind == LOAD_HOT_EXPERTS || shape->kind == LOAD_SPREAD_HEAT;
    const uint32_t places = shape->kind == LOAD_SPREAD_HEAT ? shape->positions : shape->experts - 1;
    if (counts && spec->routing_hot > places) {
        error_add(errors, ERROR_out_of_range, scenario_at(scenario, "moe.routing.hot"),
                  "moe.routing.hot", "%u hot experts do not fit; this load has room for %u",
                  spec->routing_hot, places);
        return false;
    }
    const double most = most_possible(shape);
    if (most > 0.0 && spec->load_max_over_mean > most) {
        error_add(errors, ERROR_out_of_range, scenario_at(scenario, "moe.routing.max_over_mean"),
                  "moe.routing.max_over_mean",
                  "%g is more than %u experts, top %u, on %u ranks can have under load %s: at "
                  "most %g",
                  spec->load_max_over_mean, shape->experts, shape->top_k, shape->positions,
                  spec->load, most);
        return false;
    }
    const bool of_rank = shape->kind >= LOAD_HOT_RANK && shape->kind != LOAD_SPREAD_HEAT;
    if (of_rank && shape->positions < 2) {
        error_add(errors, ERROR_conflicting_keys, scenario_at(scenario, "moe.routing.load"),
                  "moe.routing.load", "load %s needs an expert group; parallel.ep is 1",
                  spec->load);
        return false;
    }
    return true;
}
