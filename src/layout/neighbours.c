/*
 * neighbours.c - legal values near an illegal one, for messages.
 *
 * A refusal is only useful with the way out: these find the nearest values that would have
 * been accepted. Plain searches; they run once per error.
 */
#include "layout_internal.h"

#include "stepsim/text.h"

static const char *one_or_two(struct arena *arena, uint64_t below, uint64_t above)
{
    if (below == 0 || above == 0)
        return arena_printf(arena, "%llu", (unsigned long long)(below + above));
    return arena_printf(arena, "%llu or %llu", (unsigned long long)below,
                        (unsigned long long)above);
}

const char *layout_near_divisors(struct arena *arena, uint32_t n, uint32_t x)
{
    ASSERT(n >= 1);
    uint32_t below = 0;
    uint32_t above = 0;
    for (uint32_t d = 1; d <= n && above == 0; d++) {
        if (n % d != 0)
            continue;
        if (d <= x)
            below = d;
        else
            above = d;
    }
    return one_or_two(arena, below, above);
}

const char *layout_near_multiples(struct arena *arena, uint64_t unit, uint64_t x)
{
    ASSERT(unit >= 1);
    return one_or_two(arena, x / unit * unit, (x / unit + 1) * unit);
}

const char *layout_even_list(struct arena *arena, uint32_t total, uint32_t parts, uint32_t first)
{
    ASSERT(parts >= 1);
    struct text text = {0};
    for (uint32_t i = 0; i < parts; i++) {
        const bool larger = i >= first && i - first < total % parts;
        text_add(&text, "%s%u", i > 0 ? "," : "", total / parts + larger);
    }
    const char *list = arena_strdup(arena, text_string(&text));
    text_free(&text);
    return list;
}
