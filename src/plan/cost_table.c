/*
 * cost_table.c - durations, memory deltas and labels that ops refer to by index, so that
 * one program serves ranks with different costs.
 */
#include "plan_internal.h"

#include <math.h>
#include <string.h>

static void *grown(void *old, uint32_t count, uint32_t *capacity, size_t size, struct arena *arena)
{
    if (count < *capacity) {
        return old;
    }
    const uint32_t larger = *capacity ? *capacity * 2 : 256;
    void *data = arena_calloc(arena, larger, size);
    if (count > 0) {
        memcpy(data, old, count * size);
    }
    *capacity = larger;
    return data;
}

uint32_t cost_table_duration(struct cost_table *table, sim_time duration, struct arena *arena)
{
    ASSERT(duration >= 0);
    table->durations = grown(table->durations, table->duration_count, &table->duration_capacity,
                             sizeof(sim_time), arena);
    table->durations[table->duration_count] = duration;
    return table->duration_count++;
}

uint32_t cost_table_delta(struct cost_table *table, double bytes, struct arena *arena)
{
    const int64_t whole = (int64_t)llround(bytes);
    if (table->delta_count == 0) {
        table->deltas = grown(table->deltas, 0, &table->delta_capacity, sizeof(int64_t), arena);
        table->deltas[table->delta_count++] = 0;
    }
    if (whole == 0) {
        return 0;
    }
    table->deltas =
        grown(table->deltas, table->delta_count, &table->delta_capacity, sizeof(int64_t), arena);
    table->deltas[table->delta_count] = whole;
    return table->delta_count++;
}

void cost_table_reserve_labels(struct cost_table *table, uint32_t count, struct arena *arena)
{
    if (count <= table->label_capacity)
        return;
    struct program_label *labels = ARENA_ARRAY(arena, count, struct program_label);
    if (table->label_count > 0)
        memcpy(labels, table->labels, table->label_count * sizeof *labels);
    table->labels = labels;
    table->label_capacity = count;
}

uint32_t cost_table_label(struct cost_table *table, const struct program_label *label,
                          struct arena *arena)
{
    table->labels = grown(table->labels, table->label_count, &table->label_capacity,
                          sizeof(struct program_label), arena);
    table->labels[table->label_count] = *label;
    return table->label_count++;
}
