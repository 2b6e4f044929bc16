/*
 * class_tables.c - tables of costs that ranks share, and which rank has which.
 *
 * A table holds the durations and memory deltas of all programs for one position of the
 * expert group (where loads differ), one speed (where ranks are slow) and one set of slow
 * links. Only combinations that occur get one; a job without any has the table of the builder.
 *
 * Slow links (link_speeds.c): all programs are priced again on a cluster whose levels are as slow
 * as the links of the rank. A collective takes the longest of its members' durations, so it is as
 * slow as its slowest member; a message is as slow as the slower of its two ends.
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

/* Factor on the compute time of every rank: of its own, and of what is left of its node. */
static int64_t *rank_factors(const struct plan_builder *builder)
{
    const struct noise_spec *noise = &builder->ask->graph->scenario->noise;
    const uint32_t world = builder->ask->graph->layout->world;
    int64_t *factors = ARENA_ARRAY(builder->arena, world, int64_t);
    for (uint32_t rank = 0; rank < world; rank++)
        factors[rank] =
            (int64_t)llround(PPM / cluster_speed(builder->ask->cluster, FAULT_COMPUTE, 0, rank));
    for (uint32_t i = 0; i < noise->slow_rank_count; i++) {
        ASSERT(noise->slow_ranks[i].rank < world);
        int64_t *factor = &factors[noise->slow_ranks[i].rank];
        *factor = *factor * factor_ppm_of(&noise->slow_ranks[i]) / PPM;
    }
    return factors;
}

static bool same_kind(const struct class_table *a, const struct class_table *b)
{
    return a->position == b->position && a->factor_ppm == b->factor_ppm && a->links == b->links &&
           a->peer_links[PEER_NEXT] == b->peer_links[PEER_NEXT] &&
           a->peer_links[PEER_PREVIOUS] == b->peer_links[PEER_PREVIOUS];
}

static uint32_t find_table(struct plan_builder *builder, const struct class_table *wanted)
{
    for (uint32_t i = builder->table_count; i > 0; i--) {
        if (same_kind(&builder->tables[i - 1], wanted))
            return i - 1;
    }
    if (builder->table_count == builder->table_capacity) {
        struct class_table *old = builder->tables;
        builder->table_capacity = builder->table_capacity ? builder->table_capacity * 2 : 64;
        builder->tables = ARENA_ARRAY(builder->arena, builder->table_capacity, struct class_table);
        if (old != NULL)
            memcpy(builder->tables, old, builder->table_count * sizeof *old);
    }
    builder->tables[builder->table_count] = *wanted;
    return builder->table_count++;
}

/* ---- Links that are not as their levels say ---- */

static struct plan_builder *repriced_by(const struct plan_builder *builder,
                                        const struct link_speeds *speeds)
{
    struct cluster *cluster = ARENA_NEW(builder->arena, struct cluster);
    struct cluster_spec *spec = ARENA_NEW(builder->arena, struct cluster_spec);
    *cluster = *builder->ask->cluster;
    *spec = *cluster->spec;
    /* Where links are resources, these are slow; the ranks still differ. */
    for (uint32_t level = 0; level < cluster->level_count && !transfers_share(builder); level++)
        spec->levels[level].bytes_per_s *= link_speeds_alone(cluster, speeds, level);
    cluster->spec = spec;
    return plan_reprice(builder, cluster);
}

/* For every rank, the repriced builder of its links; NO_INDEX for ordinary ones. */
static uint32_t *find_links(struct plan_builder *builder)
{
    const uint32_t world = builder->ask->graph->layout->world;
    const struct link_speeds whole = link_speeds_whole();
    uint32_t *links_of = ARENA_ARRAY(builder->arena, world, uint32_t);
    struct link_speeds *known = NULL;
    uint32_t count = 0, capacity = 0;
    for (uint32_t rank = 0; rank < world; rank++) {
        links_of[rank] = NO_INDEX;
        const struct link_speeds speeds = link_speeds_of(builder, rank);
        if (link_speeds_equal(&speeds, &whole))
            continue;
        uint32_t found = 0;
        while (found < count && !link_speeds_equal(&known[found], &speeds))
            found++;
        if (found == capacity) {
            capacity = capacity ? capacity * 2 : 8;
            struct link_speeds *more = ARENA_ARRAY(builder->arena, capacity, struct link_speeds);
            for (uint32_t i = 0; i < count; i++)
                more[i] = known[i];
            known = more;
        }
        if (found == count)
            known[count++] = speeds;
        links_of[rank] = found;
    }
    builder->repriced = ARENA_ARRAY(builder->arena, count + 1, struct plan_builder *);
    for (uint32_t i = 0; i < count; i++)
        builder->repriced[i] = repriced_by(builder, &known[i]);
    return links_of;
}

/* Sends run at the slower end's pace. */
static void slow_sends(const struct plan_builder *builder, const struct class_table *table)
{
    for (int peer = 0; peer < RANK_PEERS_MAX; peer++) {
        if (table->peer_links[peer] == NO_INDEX)
            continue;
        const uint32_t send = builder->send_duration[peer];
        const sim_time there = builder->repriced[table->peer_links[peer]]->costs.durations[send];
        if (there > table->durations[send])
            table->durations[send] = there;
    }
}

/* ---- Tables of ranks ---- */

bool class_tables_differ(const struct plan_builder *builder)
{
    const struct noise_spec *noise = &builder->ask->graph->scenario->noise;
    return builder->ask->loads != NULL || noise->slow_rank_count > 0 ||
           noise->slow_link_count > 0 || builder->ask->cluster->fault_count > 0;
}

uint32_t *class_tables_assign(struct plan_builder *builder)
{
    const struct layout *layout = builder->ask->graph->layout;
    const uint32_t positions = builder->ask->loads != NULL ? builder->ask->loads->positions : 1;
    const int64_t *factors = rank_factors(builder);
    const uint32_t *links_of = find_links(builder);
    uint32_t *table_of = ARENA_ARRAY(builder->arena, layout->world, uint32_t);
    struct class_table ordinary = {
        .factor_ppm = PPM, .links = NO_INDEX, .peer_links = {NO_INDEX, NO_INDEX}};
    for (; ordinary.position < positions; ordinary.position++)
        find_table(builder, &ordinary); /* table number = position for ordinary ranks */
    for (uint32_t rank = 0; rank < layout->world; rank++) {
        struct class_table wanted = {.position = position_of(builder, rank),
                                     .factor_ppm = factors[rank],
                                     .links = links_of[rank]};
        for (int peer = 0; peer < RANK_PEERS_MAX; peer++)
            wanted.peer_links[peer] = links_of[partition_peer(layout, rank, peer)];
        ordinary.position = wanted.position;
        table_of[rank] =
            same_kind(&wanted, &ordinary) ? wanted.position : find_table(builder, &wanted);
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
    for (uint32_t i = 0; builder->repriced[i] != NULL; i++)
        builder->repriced[i]->own_ask.loads = builder->ask->loads; /* may be newer */
    for (uint32_t i = 0; i < builder->table_count; i++) {
        const struct class_table *table = &builder->tables[i];
        const struct plan_builder *priced =
            table->links == NO_INDEX ? builder : builder->repriced[table->links];
        memcpy(table->durations, priced->costs.durations, costs->duration_count * sizeof(sim_time));
        if (builder->ask->loads != NULL)
            rows_fill(priced, table->position, table->durations, table->deltas);
        slow_sends(builder, table);
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
