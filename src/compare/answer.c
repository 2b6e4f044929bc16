/*
 * answer.c - what two answers are compared by.
 */
#include <cjson/cJSON.h>
#include <math.h>

#include "stepsim/arena.h"
#include "stepsim/compare.h"
#include "stepsim/metric.h"
#include "stepsim/scenario.h"

const char *memory_term_name(enum memory_term term)
{
    static const char *const names[MEMORY_TERM_COUNT] = {
        "weights", "gradients", "optimizer", "activations", "logits", "buffers", "reserve"};
    ASSERT(term < MEMORY_TERM_COUNT);
    return names[term];
}

struct answer_terms answer_terms_of(const struct report *report)
{
    const struct stage_report *stage = &report->stages[report->peak_stage];
    struct answer_terms terms = {
        .time_stage = report->time_share_stage,
        .memory_stage = report->peak_stage,
        .memory_bytes = {stage->weights, stage->gradients, stage->optimizer, stage->activations,
                         stage->logits, stage->buffers, stage->reserve},
    };
    for (unsigned c = 0; c < CAUSE_COUNT; c++) {
        terms.time_ps[c] = report->time_share_ps[c];
    }
    return terms;
}

struct answer answer_of_report(const char *name, const struct report *report, struct arena *arena)
{
    double *metrics = ARENA_ARRAY(arena, metric_count, double);
    for (size_t i = 0; i < metric_count; i++) {
        metrics[i] = metric_table[i].value(report);
    }
    return (struct answer){
        .name = name,
        .title = report->scenario->title,
        .keys = scenario_json(report->scenario, false),
        .metrics = metrics,
        .terms = answer_terms_of(report),
    };
}

void answer_free(struct answer *answer)
{
    cJSON_Delete((cJSON *)(uintptr_t)answer->keys);
    answer->keys = NULL;
}

sim_time answer_step_ps(const struct answer_terms *terms)
{
    sim_time sum_ps = 0;
    for (unsigned c = 0; c < CAUSE_COUNT; c++) {
        sum_ps += terms->time_ps[c];
    }
    return sum_ps;
}

double answer_peak_bytes(const struct answer_terms *terms)
{
    double sum = 0.0;
    for (unsigned t = 0; t < MEMORY_TERM_COUNT; t++) {
        sum += terms->memory_bytes[t];
    }
    return sum;
}
