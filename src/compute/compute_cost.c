/*
 * compute_cost.c - finds the model of a kind and guards its answer.
 */
#include "stepsim/compute_cost.h"

#include <math.h>

#include "compute_internal.h"

#include "stepsim/error.h"

void compute_term(struct compute_cost *cost, const char *name, double value, const char *unit,
                  const char *origin_key)
{
    ASSERT(cost->term_count < COST_TERMS_MAX);
    cost->terms[cost->term_count++] =
        (struct cost_term){.name = name, .value = value, .unit = unit, .origin_key = origin_key};
}

const char *compute_kind_name(enum compute_kind kind)
{
    static const char *const names[] = {
        [COMPUTE_MATMUL] = "matmul",
        [COMPUTE_GROUPED_MATMUL] = "grouped_matmul",
        [COMPUTE_ATTENTION_FORWARD] = "attention_forward",
        [COMPUTE_ATTENTION_BACKWARD] = "attention_backward",
        [COMPUTE_ATTENTION_UNFUSED] = "attention_unfused",
        [COMPUTE_ATTENTION_UNFUSED_BACKWARD] = "attention_unfused_backward",
        [COMPUTE_VECTOR] = "vector",
        [COMPUTE_PERMUTE] = "permute",
        [COMPUTE_OPTIMIZER] = "optimizer",
    };
    _Static_assert(sizeof(names) / sizeof(names[0]) == COMPUTE_KIND_COUNT, "a name per kind");
    ASSERT(kind < COMPUTE_KIND_COUNT);
    return names[kind];
}

const struct compute *compute_for(enum compute_kind kind)
{
    ASSERT(kind < COMPUTE_KIND_COUNT);
    const struct compute *found = NULL;
    for (size_t i = 0; i < compute_count; i++) {
        if (!(compute_registry[i]->kinds & 1u << kind))
            continue;
        ASSERT(!found);
        found = compute_registry[i];
    }
    ASSERT(found);
    return found;
}

struct compute_cost compute_cost(const struct compute_ask *ask, const struct device_spec *device,
                                 bool explain)
{
    struct compute_cost cost;
    cost.term_count = 0;
    compute_for(ask->kind)->cost(ask, device, explain, &cost);
    ASSERT(isfinite(cost.time_s) && cost.time_s >= 0.0);
    ASSERT(isfinite(cost.flop) && cost.flop >= 0.0);
    ASSERT(isfinite(cost.bytes) && cost.bytes >= 0.0);
    return cost;
}
