/* metric.c - the rows of metric_list.def as a table with one function per value. */
#include "stepsim/metric.h"

#include <string.h>

/* Rows that exist once per cause and once per kind of communication. */
#define METRIC_CAUSE_ROWS(id, cause, text)                                                         \
    METRIC_ROW(time_share_##id, "time_share." #id, "", RATIO, cause_share(report, CAUSE_##cause),  \
               "Share of the step: " text ".")
#define METRIC_COMM_ROWS(id, cause, text)                                                          \
    METRIC_ROW(comm_##id##_total_s, "comm." #id ".total_s", "s", REAL,                             \
               report->comm[CAUSE_##cause].total_s, "Time of the step with " text " running.")     \
    METRIC_ROW(comm_##id##_exposed_s, "comm." #id ".exposed_s", "s", REAL,                         \
               report->comm[CAUSE_##cause].exposed_s,                                              \
               "Of it, the part that the compute stream waits for: " text ".")                     \
    METRIC_ROW(comm_##id##_bytes, "comm." #id ".bytes_per_device", "bytes", REAL,                  \
               report->comm[CAUSE_##cause].bytes_per_device,                                       \
               "Bytes that one device sends in a step: " text ".")                                 \
    METRIC_ROW(comm_##id##_warmup, "comm." #id ".exposed_share.warmup", "", RATIO,                 \
               report->comm[CAUSE_##cause].exposed_share[PHASE_WARMUP],                            \
               "Exposed over total in the warm-up: " text ".")                                     \
    METRIC_ROW(comm_##id##_steady, "comm." #id ".exposed_share.steady", "", RATIO,                 \
               report->comm[CAUSE_##cause].exposed_share[PHASE_STEADY],                            \
               "Exposed over total in the steady phase: " text ".")                                \
    METRIC_ROW(comm_##id##_cooldown, "comm." #id ".exposed_share.cooldown", "", RATIO,             \
               report->comm[CAUSE_##cause].exposed_share[PHASE_COOLDOWN],                          \
               "Exposed over total in the cool-down: " text ".")                                   \
    METRIC_ROW(comm_##id##_optimizer, "comm." #id ".exposed_share.optimizer", "", RATIO,           \
               report->comm[CAUSE_##cause].exposed_share[PHASE_OPTIMIZER],                         \
               "Exposed over total around the optimizer step: " text ".")

static double cause_share(const struct report *report, enum time_cause cause)
{
    sim_time step_ps = 0;
    for (unsigned i = 0; i < CAUSE_COUNT; i++) {
        step_ps += report->time_share_ps[i];
    }
    ASSERT(step_ps > 0);
    return (double)report->time_share_ps[cause] / (double)step_ps;
}

#define METRIC_ROW(id, name, unit, kind, value, meaning)                                           \
    static double metric_##id(const struct report *report)                                         \
    {                                                                                              \
        return value;                                                                              \
    }
#include "metric_list.def"
#undef METRIC_ROW

const struct metric metric_table[] = {
#define METRIC_ROW(id, name, unit, kind, value, meaning)                                           \
    {name, unit, METRIC_##kind, meaning, metric_##id},
#include "metric_list.def"
#undef METRIC_ROW
};
const size_t metric_count = sizeof metric_table / sizeof metric_table[0];

const struct metric *metric_find(const char *name)
{
    for (size_t i = 0; i < metric_count; i++) {
        if (strcmp(metric_table[i].name, name) == 0) {
            return &metric_table[i];
        }
    }
    return NULL;
}

const char *metric_kind_name(enum metric_kind kind)
{
    static const char *const names[METRIC_KIND_COUNT] = {"real", "count", "ratio", "flag"};
    ASSERT(kind < METRIC_KIND_COUNT);
    return names[kind];
}
