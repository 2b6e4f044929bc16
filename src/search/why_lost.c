/*
 * why_lost.c - in which causes of the step a layout loses against the best one.
 *
 * Time shares sum to the step, so their differences sum to the difference of the steps: the
 * largest ones that grew explain it, the largest one that shrank is what the layout would win.
 */
#include "search_internal.h"
#include "stepsim/text.h"

static const char *const cause_words[CAUSE_COUNT] = {
    [CAUSE_COMPUTE] = "computation",
    [CAUSE_RECOMPUTE] = "recomputation",
    [CAUSE_TP] = "exposed tensor-parallel communication",
    [CAUSE_EP] = "exposed expert communication",
    [CAUSE_CP] = "exposed context-parallel communication",
    [CAUSE_PP] = "pipeline messages",
    [CAUSE_DP] = "exposed gradient and parameter communication",
    [CAUSE_SWAP] = "exposed copies to the host",
    [CAUSE_HOST] = "host issue",
    [CAUSE_IMBALANCE] = "uneven expert load",
    [CAUSE_BUBBLE] = "pipeline bubble",
    [CAUSE_OPTIMIZER] = "optimizer",
};

/* The cause that differs most in one direction beside `but`; CAUSE_COUNT if none does. */
static unsigned largest(const struct search_figures *a, const struct search_figures *b,
                        unsigned but, double *seconds)
{
    unsigned found = CAUSE_COUNT;
    *seconds = 0.0;
    for (unsigned c = 0; c < CAUSE_COUNT; c++) {
        const double more_s = sim_time_seconds(a->time_share_ps[c] - b->time_share_ps[c]);
        if (c != but && more_s > *seconds) {
            *seconds = more_s;
            found = c;
        }
    }
    return found;
}

const char *why_lost(const struct search_layout *layout, const struct search_layout *best,
                     struct arena *arena)
{
    const struct search_figures *mine = &layout->figures;
    const struct search_figures *its = &best->figures;
    const double later = (mine->step_s / its->step_s - 1.0) * 100.0;
    if (mine->step_s <= its->step_s) {
        return layout->score == best->score
                   ? "As good as the best; it comes later in the order of the keys."
                   : arena_printf(arena, "%.2f %% faster, but needs %s instead of %s.", -later,
                                  text_gib(arena, mine->peak_bytes),
                                  text_gib(arena, its->peak_bytes));
    }
    double first_s;
    double second_s;
    double won_s;
    const unsigned first = largest(mine, its, CAUSE_COUNT, &first_s);
    const unsigned second = largest(mine, its, first, &second_s);
    const unsigned won = largest(its, mine, CAUSE_COUNT, &won_s);
    if (first == CAUSE_COUNT) {
        return arena_printf(arena, "%.2f %% slower.", later);
    }
    const char *also = second != CAUSE_COUNT && second_s > first_s * 0.2
                           ? arena_printf(arena, ", %+.3g s %s", second_s, cause_words[second])
                           : "";
    const char *gain = won != CAUSE_COUNT && won_s > first_s * 0.05
                           ? arena_printf(arena, "; it saves %.3g s %s", won_s, cause_words[won])
                           : "";
    return arena_printf(arena, "%.2f %% slower: %+.3g s %s%s%s.", later, first_s,
                        cause_words[first], also, gain);
}

const char *why_won(const struct search_layout *best, const struct search_layout *second,
                    struct arena *arena)
{
    if (second == NULL) {
        return "The only layout asked for, or that fits.";
    }
    double seconds;
    const unsigned cause = largest(&second->figures, &best->figures, CAUSE_COUNT, &seconds);
    if (cause == CAUSE_COUNT || second->score == best->score) {
        return "The best; the runner-up is as good and comes later in the order of the keys.";
    }
    return arena_printf(arena, "The best: the runner-up has %.3g s more %s.", seconds,
                        cause_words[cause]);
}
