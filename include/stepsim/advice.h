/*
 * advice.h - answers found by running variants: what would make a layout fit, and what each
 * recompute module saves and costs.
 *
 * Every variant is one changed key of the scenario, simulated whole; nothing is estimated.
 * Variants that the program refuses are left out. Each run has an arena of its own; the
 * answers live in the arena given.
 */
#ifndef STEPSIM_ADVICE_H
#define STEPSIM_ADVICE_H

#include "stepsim/run.h"

/* One changed key and what it leads to. */
struct fit_change {
    const char *key;   /* "recompute.modules" */
    const char *value; /* "+ permute", "1", as a person would write it */
    double step_time_s, peak_bytes;
    double tokens_per_s;
};

struct fit_changes {
    const struct fit_change *items; /* those that fit, most tokens/s first */
    uint32_t count;
    uint32_t tried; /* legal variants that were run */
};

/* Single changes that would make it fit. */
struct fit_changes advice_fit(const struct scenario *scenario, struct arena *arena);

/* One module of recompute.modules, toggled against the scenario as it is. */
struct recompute_item {
    const char *module;
    bool on;            /* the scenario recomputes it already */
    double saved_bytes; /* of the peak: what the module saves, or would save */
    double added_s;     /* of the step */
};

struct recompute_menu {
    const struct recompute_item *items; /* in the order of the schema */
    uint32_t count;
};

struct recompute_menu advice_recompute(const struct scenario *scenario, struct arena *arena);

/* The best of the switches that act on the largest loss of the step. */
struct switch_gain {
    const char *name;   /* "moe.exchange: hierarchical"; NULL: none is off, or none is legal */
    double step_time_s; /* with the switch */
    double share;       /* of the step recovered; negative if the step gets longer */
    bool fits;
};

/* At most three simulations. The report is that of the scenario. */
struct switch_gain advice_switch(const struct scenario *scenario, const struct report *report,
                                 struct arena *arena);

#endif
