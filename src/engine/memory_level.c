/*
 * memory_level.c - the high-water mark of each rank, by instants.
 *
 * What counts is the net level after an instant, so changes of one instant are only
 * added up, and compared with the peak when a later instant changes the level. This
 * makes the peak independent of the order of events, of rounds and of op fusion.
 */
#include "stepsim/error.h"

#define ENGINE_CLOCK_RUNS
#include "engine/engine_internal.h"
#include "engine/no_malloc.h"

static void close_instant(struct memory_level *memory)
{
    if (memory->level > memory->peak_bytes) {
        memory->peak_bytes = memory->level;
        memory->peak_time = memory->changed;
        memory->peak_label = memory->taken_label;
    }
}

void memory_level_change(struct engine *engine, uint32_t rank, uint32_t stream, bool at_start)
{
    struct memory_level *memory = &engine->memory[rank];
    const struct engine_rank *state = &engine->ranks[rank];
    const uint32_t index = at_start ? state->done[stream] : state->done[stream] - 1;
    const struct engine_class *class = &engine->classes[state->engine_class];
    const struct engine_op *op = &class->ops[stream][index];
    const int64_t bytes = class->deltas_bytes[at_start ? op->delta_start : op->delta_end];

    if (memory->changed != engine->now) {
        close_instant(memory);
        memory->changed = engine->now;
        memory->taken = 0;
        memory->taken_key = ENGINE_NONE;
    }
    const bool overflow = __builtin_add_overflow(memory->level, bytes, &memory->level);
    ASSERT(!overflow);
    /* Streams are few, so stream and index fit into one key. */
    ASSERT(index < UINT32_C(1) << 28);
    const uint32_t key = stream << 28 | index;
    if (bytes > memory->taken || (bytes == memory->taken && bytes > 0 && key < memory->taken_key)) {
        const struct sim_rank *sim_rank = &engine->programs->ranks[rank];
        const struct rank_class *rank_class = &engine->programs->classes[sim_rank->rank_class];
        memory->taken = bytes;
        memory->taken_key = key;
        memory->taken_label =
            engine->programs->programs[rank_class->program].ops[stream][index].label;
    }
}

void memory_level_finish(struct engine *engine)
{
    const struct programs *programs = engine->programs;
    for (uint32_t i = 0; i < programs->rank_count; i++) {
        struct rank_result *result = &engine->results[i];
        if (engine->memory == NULL) {
            result->peak_bytes = programs->classes[programs->ranks[i].rank_class].static_bytes;
            result->peak_label = UINT32_MAX;
            continue;
        }
        close_instant(&engine->memory[i]);
        result->peak_bytes = engine->memory[i].peak_bytes;
        result->peak_time = engine->memory[i].peak_time;
        result->peak_label = engine->memory[i].peak_label;
    }
}
