/*
 * op_cost.c - the cost of one op with all that went into it, as the programs use it.
 */
#include <string.h>

#include "plan_internal.h"

static void compute_op_cost(const struct plan_builder *builder, const struct op *op,
                            struct op_cost *out)
{
    const struct compute *model = compute_for(op->compute.kind);
    const struct compute_cost cost =
        compute_cost(&op->compute, builder->ask->cluster->device, true);
    /* An op without a kernel of its own is part of another one. */
    out->time_s = op->kernels > 0.0 ? cost.time_s * builder->compute_scale : 0.0;
    out->scale = builder->compute_scale;
    out->flop = cost.flop;
    out->bytes = cost.bytes;
    out->bound = cost.bound;
    out->model = model->name;
    out->formula = model->formula;
    out->term_count = cost.term_count;
    memcpy(out->terms, cost.terms, cost.term_count * sizeof cost.terms[0]);
}

static void collective_op_cost(const struct plan_builder *builder, const struct op *op,
                               struct op_cost *out)
{
    const struct collective_ask ask = plan_collective_ask(builder, op);
    const struct collective_cost cost = plan_collective(builder, &ask);
    const struct collective *longest = collective_find(cost.algorithm);
    char algorithms[128];
    collective_algorithm_text(&cost, algorithms, sizeof algorithms);
    out->time_s = cost.time_s;
    out->scale = 1.0;
    for (unsigned level = 0; level < LEVELS_MAX; level++) {
        out->bytes += cost.sent_bytes[level];
    }
    out->bound = cost.latency_s > 0.5 * cost.time_s ? "latency" : "links";
    out->model = arena_strdup(builder->arena, algorithms);
    out->formula = longest != NULL ? longest->formula : "0";
    out->term_count = cost.term_count;
    memcpy(out->terms, cost.terms, cost.term_count * sizeof cost.terms[0]);
}

void plan_op_cost(const struct plan_ask *ask, const struct op *op, struct arena *arena,
                  struct op_cost *cost)
{
    const struct plan_builder builder = {
        .ask = ask,
        .arena = arena,
        .compute_scale = plan_growth(ask),
        .explain = true,
    };
    *cost = (struct op_cost){0};
    if (op->op_class == OP_CLASS_COMPUTE) {
        compute_op_cost(&builder, op, cost);
    } else {
        collective_op_cost(&builder, op, cost);
    }
}
