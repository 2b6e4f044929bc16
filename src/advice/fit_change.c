/*
 * fit_change.c - single changes that would make a layout fit in memory.
 *
 * Tried: one more recompute module, one more swapped module, the optimizer on the host, a
 * higher ZeRO level, smaller microbatches, twice tp, pp, cp or vpp, chunks of the logits, and
 * the split by layers instead of work. Whatever the program refuses is left out.
 */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "advice_internal.h"

#define CHANGES_MAX 40

struct search {
    const struct scenario *scenario;
    struct arena *arena;
    struct fit_change *items;
    struct fit_changes found;
};

static void try_change(struct search *search, const struct scenario *changed, const char *key,
                       const char *value)
{
    struct variant_result result;
    if (!variant_run(changed, &result))
        return;
    search->found.tried++;
    if (!result.fits)
        return;
    ASSERT(search->found.count < CHANGES_MAX);
    search->items[search->found.count++] =
        (struct fit_change){.key = key,
                            .value = arena_strdup(search->arena, value),
                            .step_time_s = result.step_time_s,
                            .peak_bytes = result.peak_bytes,
                            .tokens_per_s = result.tokens_per_s};
}

static void try_modules(struct search *search)
{
    for (int m = 0; m < RECOMPUTE_MODULE_COUNT; m++) {
        const struct module_name *module = &recompute_module_names[m];
        struct scenario changed = *search->scenario;
        if ((changed.recompute.modules & module->bit) != 0)
            continue;
        changed.recompute.modules |= module->bit;
        try_change(search, &changed, "recompute.modules",
                   arena_printf(search->arena, "also %s", module->name));
    }
    static const struct module_name swapped[] = {{"attention", MODULE_ATTENTION},
                                                 {"moe_permute_probs", MODULE_PERMUTE_PROBS}};
    for (size_t m = 0; m < sizeof swapped / sizeof swapped[0]; m++) {
        struct scenario changed = *search->scenario;
        if ((changed.swap.activations & swapped[m].bit) != 0)
            continue;
        changed.swap.activations |= swapped[m].bit;
        try_change(search, &changed, "swap.activations",
                   arena_printf(search->arena, "also %s", swapped[m].name));
    }
}

static void try_states(struct search *search)
{
    struct scenario changed = *search->scenario;
    if (!changed.swap.optimizer) {
        changed.swap.optimizer = true;
        try_change(search, &changed, "swap.optimizer", "true");
    }
    changed = *search->scenario;
    if (changed.parallel.zero < 3) {
        changed.parallel.zero++;
        try_change(search, &changed, "parallel.zero",
                   arena_printf(search->arena, "%u", changed.parallel.zero));
    }
    changed = *search->scenario;
    if (changed.memory.logits_chunks < 8) {
        changed.memory.logits_chunks = 8;
        try_change(search, &changed, "memory.logits_chunks", "8");
    }
}

/* Doubles one degree; dp follows from the devices. */
static void try_double(struct search *search, const char *key, size_t offset)
{
    struct scenario changed = *search->scenario;
    uint32_t degree = 0;
    char *field = (char *)&changed.parallel + offset;
    memcpy(&degree, field, sizeof degree);
    degree *= 2;
    memcpy(field, &degree, sizeof degree);
    changed.parallel.dp = 0;
    if (strcmp(key, "parallel.tp") == 0 && degree > 1)
        changed.parallel.sequence_parallel = true;
    try_change(search, &changed, key, arena_printf(search->arena, "%u", degree));
}

static void try_degrees(struct search *search)
{
    struct scenario changed = *search->scenario;
    if (changed.training.micro_batch_size % 2 == 0) {
        changed.training.micro_batch_size /= 2;
        try_change(search, &changed, "training.micro_batch_size",
                   arena_printf(search->arena, "%u", changed.training.micro_batch_size));
    }
    try_double(search, "parallel.tp", offsetof(struct parallel_spec, tp));
    try_double(search, "parallel.pp", offsetof(struct parallel_spec, pp));
    try_double(search, "parallel.cp", offsetof(struct parallel_spec, cp));
    try_double(search, "parallel.ep", offsetof(struct parallel_spec, ep));
}

static int by_speed(const void *a, const void *b)
{
    const struct fit_change *x = a;
    const struct fit_change *y = b;
    if (x->tokens_per_s != y->tokens_per_s)
        return x->tokens_per_s > y->tokens_per_s ? -1 : 1;
    const int key = strcmp(x->key, y->key);
    return key != 0 ? key : strcmp(x->value, y->value);
}

struct fit_changes advice_fit(const struct scenario *scenario, struct arena *arena)
{
    struct search search = {.scenario = scenario,
                            .arena = arena,
                            .items = ARENA_ARRAY(arena, CHANGES_MAX, struct fit_change)};
    try_modules(&search);
    try_states(&search);
    try_degrees(&search);
    qsort(search.items, search.found.count, sizeof *search.items, by_speed);
    search.found.items = search.items;
    return search.found;
}
