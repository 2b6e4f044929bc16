/*
 * class_tables.c - tables of costs that ranks share, and which rank has which.
 *
 * A table holds the durations and memory deltas of all programs for one position of the
 * expert group (where loads differ) and one speed (where ranks are slow). Only pairs that
 * occur get one; a job without either has the one table of the builder.
 */
#include <math.h>
#include <string.h>

#include "plan_internal.h"

#define PPM 1000000

/* Position of a rank among the loads: with independent replicas each has its own. */
static uint32_t position_of(const struct plan_builder *builder, uint32_t rank)
{
    const struct expert_loads *loads = builder->ask->loads;
    if (loads == NULL || loads->positions == 1)
        return 0;
    const struct layout *layout = builder->ask->graph->layout;
    const struct rank_coordinates at = layout_coordinates(layout, rank);
    return loads->positions > layout->ep ? at.edp * layout->ep + at.ep : at.ep;
}

static int64_t factor_ppm_of(const struct slow_rank *slow)
{
    return (int64_t)llround(slow->factor * PPM);
}

/* Factor on the compute time of every slow rank; the last entry of a rank counts. */
static int64_t *rank_factors(const struct plan_builder *builder)
{
    const struct noise_spec *noise = &builder->ask->graph->scenario->noise;
    const uint32_t world = builder->ask->graph->layout->world;
    int64_t *factors = ARENA_ARRAY(builder->arena, world, int64_t);
    for (uint32_t rank = 0; rank < world; rank++)
        factors[rank] = PPM;
    for (uint32_t i = 0; i < noise->slow_rank_count; i++) {
        ASSERT(noise->slow_ranks[i].rank < world);
        factors[noise->slow_ranks[i].rank] = factor_ppm_of(&noise->slow_ranks[i]);
    }
    return factors;
}

static uint32_t find_table(struct plan_builder *builder, uint32_t position, int64_t factor_ppm)
{
    for (uint32_t i = builder->table_count; i > 0; i--) {
        const struct class_table *table = &builder->tables[i - 1];
        if (table->position == position && table->factor_ppm == factor_ppm)
            return i - 1;
    }
    if (builder->table_count == builder->table_capacity) {
        struct class_table *old = builder->tables;
        builder->table_capacity = builder->table_capacity ? builder->table_capacity * 2 : 64;
        builder->tables = ARENA_ARRAY(builder->arena, builder->table_capacity, struct class_table);
        if (old != NULL)
            memcpy(builder->tables, old, builder->table_count * sizeof *old);
    }
    builder->tables[builder->table_count] =
        (struct class_table){.position = position, .factor_ppm = factor_ppm};
    return builder->table_count++;
}

bool class_tables_differ(const struct plan_builder *builder)
{
    return builder->ask->loads != NULL || builder->ask->graph->scenario->noise.slow_rank_count > 0;
}

uint32_t *class_tables_assign(struct plan_builder *builder)
{
    const uint32_t world = builder->ask->graph->layout->world;
    const uint32_t positions = builder->ask->loads != NULL ? builder->ask->loads->positions : 1;
    const int64_t *factors = rank_factors(builder);
    uint32_t *table_of = ARENA_ARRAY(builder->arena, world, uint32_t);
    for (uint32_t position = 0; position < positions; position++)
        find_table(builder, position, PPM); /* table number = position for ordinary ranks */
    for (uint32_t rank = 0; rank < world; rank++) {
        const uint32_t position = position_of(builder, rank);
        table_of[rank] =
            factors[rank] == PPM ? position : find_table(builder, position, factors[rank]);
    }
    return table_of;
}

/* Durations that compute ops read. A duration is of compute or of something else. */
static const bool *compute_durations(const struct plan_builder *builder,
                                     const struct programs *programs)
{
    bool *is_compute = ARENA_ARRAY(builder->arena, builder->costs.duration_count, bool);
    for (uint32_t p = 0; p < programs->program_count; p++) {
        const struct program *program = &programs->programs[p];
        for (uint32_t i = 0; i < program->op_count[STREAM_COMPUTE]; i++) {
            const struct program_op *op = &program->ops[STREAM_COMPUTE][i];
            if (op->kind == PROGRAM_OP_COMPUTE)
                is_compute[op->duration] = true;
        }
    }
    for (uint32_t p = 0; p < programs->program_count; p++) {
        const struct program *program = &programs->programs[p];
        for (int stream = 0; stream < STREAM_COUNT; stream++) {
            for (uint32_t i = 0; i < program->op_count[stream]; i++) {
                const struct program_op *op = &program->ops[stream][i];
                ASSERT(op->kind == PROGRAM_OP_COMPUTE || !is_compute[op->duration] ||
                       builder->costs.durations[op->duration] == 0);
            }
        }
    }
    return is_compute;
}

/* Rounded up to a whole picosecond, like every duration. */
static sim_time slowed(sim_time duration, int64_t factor_ppm)
{
    ASSERT(duration <= INT64_MAX / factor_ppm - 1);
    return (duration * factor_ppm + PPM - 1) / PPM;
}

void class_tables_fill(struct plan_builder *builder)
{
    const struct cost_table *costs = &builder->costs;
    for (uint32_t i = 0; i < builder->table_count; i++) {
        const struct class_table *table = &builder->tables[i];
        memcpy(table->durations, costs->durations, costs->duration_count * sizeof(sim_time));
        if (builder->ask->loads != NULL)
            rows_fill(builder, table->position, table->durations, table->deltas);
        for (uint32_t d = 0; table->factor_ppm != PPM && d < costs->duration_count; d++) {
            if (builder->is_compute[d])
                table->durations[d] = slowed(table->durations[d], table->factor_ppm);
        }
    }
}

void class_tables_build(struct plan_builder *builder, const struct programs *programs)
{
    const struct cost_table *costs = &builder->costs;
    builder->is_compute = compute_durations(builder, programs);
    for (uint32_t i = 0; i < builder->table_count; i++) {
        struct class_table *table = &builder->tables[i];
        table->durations = ARENA_ARRAY(builder->arena, costs->duration_count, sim_time);
        table->deltas = ARENA_ARRAY(builder->arena, costs->delta_count, int64_t);
        memcpy(table->deltas, costs->deltas, costs->delta_count * sizeof *table->deltas);
    }
    class_tables_fill(builder);
}
