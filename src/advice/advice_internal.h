/*
 * advice_internal.h - what the files of src/advice share.
 */
#ifndef STEPSIM_ADVICE_INTERNAL_H
#define STEPSIM_ADVICE_INTERNAL_H

#include "stepsim/advice.h"

struct variant_result {
    double step_time_s, tokens_per_s, peak_bytes;
    bool fits;
};

/* False if the program refuses it. */
bool variant_run(const struct scenario *scenario, struct variant_result *result);

/* Modules that recompute.modules may name, with their bits. */
struct module_name {
    const char *name;
    uint32_t bit;
};
#define RECOMPUTE_MODULE_COUNT 10
extern const struct module_name recompute_module_names[RECOMPUTE_MODULE_COUNT];

#endif
