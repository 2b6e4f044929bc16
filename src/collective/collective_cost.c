/*
 * collective_cost.c - one collective of one group: finds names, dispatches by kind and guards the
 * answer. The sums are in collective_compose.c, the choices in collective_select.c.
 */
#include "stepsim/collective.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "collective_internal.h"

#include "stepsim/error.h"

const char *collective_kind_name(enum collective_kind kind)
{
    static const char *const names[] = {
        [COLLECTIVE_ALL_REDUCE] = "all_reduce",
        [COLLECTIVE_ALL_GATHER] = "all_gather",
        [COLLECTIVE_REDUCE_SCATTER] = "reduce_scatter",
        [COLLECTIVE_ALL_TO_ALL] = "all_to_all",
        [COLLECTIVE_ALL_TO_ALL_HIERARCHICAL] = "all_to_all_hierarchical",
        [COLLECTIVE_ALL_TO_ALL_DEDUPLICATED] = "all_to_all_deduplicated",
        [COLLECTIVE_SEND_RECV] = "send_recv",
    };
    _Static_assert(sizeof(names) / sizeof(names[0]) == COLLECTIVE_KIND_COUNT, "a name per kind");
    ASSERT(kind < COLLECTIVE_KIND_COUNT);
    return names[kind];
}

const struct collective *collective_find(const char *name)
{
    for (size_t i = 0; i < collective_count; i++)
        if (strcmp(collective_registry[i]->name, name) == 0)
            return collective_registry[i];
    return NULL;
}

static void check(const struct collective_ask *ask, const struct collective_cost *cost)
{
    ASSERT(isfinite(cost->time_s) && cost->time_s >= 0.0);
    ASSERT(isfinite(cost->latency_s) && cost->latency_s >= 0.0);
    for (uint32_t level = 0; level <= ask->span.outer_level; level++)
        ASSERT(isfinite(cost->sent_bytes[level]) && cost->sent_bytes[level] >= 0.0);
}

/* phases: NULL, or room for COLLECTIVE_PHASES_MAX. */
static struct collective_cost run(const struct collective_ask *ask, bool explain,
                                  struct collective_phase *phases, uint32_t *phase_count)
{
    ASSERT(ask->kind < COLLECTIVE_KIND_COUNT);
    ASSERT(ask->bytes >= 0.0);
    ASSERT(ask->span.outer_level < ask->cluster->level_count);
    struct collective_cost cost;
    memset(&cost, 0, offsetof(struct collective_cost, terms));
    cost.algorithm = "none";
    if (ask->span.size <= 1)
        return cost;

    struct sum sum = {
        .ask = ask,
        .rules = collective_rules(ask->cluster->spec->collectives),
        .cost = &cost,
        .longest_s = -1.0,
        .explain = explain,
        .phases = phases,
    };
    switch (ask->kind) {
    case COLLECTIVE_ALL_REDUCE:
    case COLLECTIVE_ALL_GATHER:
    case COLLECTIVE_REDUCE_SCATTER:
        collective_sum_gather(&sum);
        break;
    case COLLECTIVE_ALL_TO_ALL:
        collective_sum_all_to_all(&sum);
        break;
    case COLLECTIVE_ALL_TO_ALL_HIERARCHICAL:
    case COLLECTIVE_ALL_TO_ALL_DEDUPLICATED:
        collective_sum_hierarchical(&sum);
        break;
    case COLLECTIVE_SEND_RECV:
        collective_sum_send_recv(&sum);
        break;
    case COLLECTIVE_KIND_COUNT:
        break;
    }
    check(ask, &cost);
    *phase_count = sum.phase_count;
    return cost;
}

struct collective_cost collective_cost(const struct collective_ask *ask, bool explain)
{
    uint32_t phase_count = 0;
    return run(ask, explain, NULL, &phase_count);
}

uint32_t collective_phases(const struct collective_ask *ask,
                           struct collective_phase phases[COLLECTIVE_PHASES_MAX])
{
    uint32_t phase_count = 0;
    run(ask, false, phases, &phase_count);
    return phase_count;
}

void collective_algorithm_text(const struct collective_cost *cost, char *text, size_t size)
{
    ASSERT(size > 0);
    const char *last = NULL;
    size_t length = 0;
    text[0] = '\0';
    for (uint32_t level = 0; level < LEVELS_MAX && length < size; level++) {
        const char *name = cost->level_algorithm[level];
        if (!name || (last && strcmp(name, last) == 0))
            continue;
        length += (size_t)snprintf(text + length, size - length, "%s%s", last ? "+" : "", name);
        last = name;
    }
    if (!last)
        snprintf(text, size, "%s", cost->algorithm);
}
