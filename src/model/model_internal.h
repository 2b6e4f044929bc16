/* model_internal.h - shared by the files of src/model only. */
#ifndef MODEL_INTERNAL_H
#define MODEL_INTERNAL_H

#include "stepsim/model.h"

/* False, with errors added, if the model contradicts itself. */
bool model_check(const struct scenario *scenario, struct error_list *errors);

/* Is layer `layer` of this spec a MoE layer? */
bool model_spec_layer_is_moe(const struct model_spec *spec, uint32_t layer);

#endif
