/*
 * memory_level.c - the high-water mark of each rank, by instants.
 *
 * What counts is the net level after an instant, so changes of one instant are only
 * added up, and compared with the peak when a later instant changes the level. This
 * makes the peak independent of the order of events, of rounds and of op fusion.
 */
#define ENGINE_CLOCK_RUNS
#include "engine/engine_internal.h"
#include "engine/no_malloc.h"

static void close_instant(struct memory_level *memory)
{
    if (memory->level > memory->peak_bytes) {
        memory->peak_bytes = memory->level;
        memory->peak_time = memory->changed;
        memory->peak_op = memory->taken_op;
    }
}

void memory_level_change(struct engine *engine, uint32_t rank, uint32_t cursor, int64_t bytes)
{
    struct memory_level *memory = &engine->memory[rank];
    if (memory->changed != engine->now) {
        close_instant(memory);
        memory->changed = engine->now;
        memory->taken = 0;
        memory->taken_op = ENGINE_NONE;
    }
    const bool overflow = __builtin_add_overflow(memory->level, bytes, &memory->level);
    ASSERT(!overflow);
    /* Cursors grow with the stream, then with the index. */
    if (bytes > memory->taken ||
        (bytes == memory->taken && bytes > 0 && cursor < memory->taken_op)) {
        memory->taken = bytes;
        memory->taken_op = cursor;
    }
}

static uint32_t label_at(const struct engine *engine, uint32_t rank, uint32_t cursor)
{
    const struct programs *programs = engine->programs;
    const struct rank_class *class = &programs->classes[programs->ranks[rank].rank_class];
    const struct engine_program *program = engine_program_of(engine, rank);
    uint32_t stream = 0;
    while (cursor >= program->first[stream + 1]) {
        stream++;
    }
    return programs->programs[class->program].ops[stream][cursor - program->first[stream]].label;
}

void memory_level_finish(struct engine *engine)
{
    const struct programs *programs = engine->programs;
    for (uint32_t i = 0; i < programs->rank_count; i++) {
        struct rank_result *result = &engine->results[i];
        result->peak_bytes = programs->classes[programs->ranks[i].rank_class].static_bytes;
        result->peak_label = UINT32_MAX;
        if (engine->memory == NULL) {
            continue;
        }
        struct memory_level *memory = &engine->memory[i];
        close_instant(memory);
        if (memory->peak_op != ENGINE_NONE) {
            result->peak_bytes = memory->peak_bytes;
            result->peak_time = memory->peak_time;
            result->peak_label = label_at(engine, i, memory->peak_op);
        }
    }
}
