/*
 * closed_form.c - transfers take what they take alone: durations are final when programs are built,
 * so the engine needs no model while the clock runs.
 */
#include "stepsim/network.h"

const struct network network_closed_form = {
    .name = "closed_form",
    .title = "Formulas by algorithm and level; nothing contends.",
};
