/*
 * scenario_facts.c - the numbers of hardware that a scenario rests on, one after another.
 *
 * Whoever asks how good they are, or what happens if they are off, needs no list of keys of
 * its own: a fact that is added to a table is here.
 */
#include <string.h>

#include "config/config_internal.h"

/* The structs that hold facts: one table each, at some place inside the scenario. */
struct fact_list {
    const struct scenario *scenario;
    struct arena *arena;
    struct scenario_fact *facts;
    uint32_t count;
};

static void add_table(struct fact_list *list, const struct schema_table *table, const void *base,
                      const char *prefix)
{
    const struct origin *origins = schema_origins(table, base);
    for (uint32_t i = 0; i < table->row_count; i++) {
        const struct schema_row *row = &table->rows[i];
        if (row->kind != SCHEMA_FACT || !origins || origins[i].kind == ORIGIN_ABSENT)
            continue;
        const char *stored = (const char *)base + row->offset;
        struct scenario_fact *fact = &list->facts[list->count++];
        fact->key = arena_printf(list->arena, "%s%s", prefix, row->key);
        fact->row = row;
        fact->origin = &origins[i];
        fact->offset = (size_t)(stored - (const char *)list->scenario);
        memcpy(&fact->value, stored, sizeof fact->value);
    }
}

const struct scenario_fact *scenario_facts(const struct scenario *scenario, struct arena *arena,
                                           uint32_t *count)
{
    const struct cluster_spec *cluster = &scenario->cluster;
    const uint32_t most = cluster_schema.row_count + device_schema.row_count +
                          cluster->level_count * level_schema.row_count;
    struct fact_list list = {.scenario = scenario,
                             .arena = arena,
                             .facts = ARENA_ARRAY(arena, most, struct scenario_fact)};
    add_table(&list, &cluster_schema, cluster, "cluster.");
    add_table(&list, &device_schema, &cluster->device, "cluster.device.");
    for (uint32_t i = 0; i < cluster->level_count; i++) {
        const struct level_spec *level = &cluster->levels[i];
        add_table(&list, &level_schema, level,
                  arena_printf(arena, "cluster.levels.%s.", level->name));
    }
    *count = list.count;
    return list.facts;
}
