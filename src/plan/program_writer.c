/*
 * program_writer.c - appends ops with their waits and labels to the program of one stage.
 */
#include "plan_internal.h"

#include <string.h>

static void *grown(void *old, uint32_t count, uint32_t *capacity, size_t size, struct arena *arena)
{
    if (count < *capacity) {
        return old;
    }
    const uint32_t larger = *capacity ? *capacity * 2 : 1024;
    void *data = arena_calloc(arena, larger, size);
    if (count > 0) {
        memcpy(data, old, count * size);
    }
    *capacity = larger;
    return data;
}

void draft_wait(struct op_draft *draft, enum stream stream, uint32_t index)
{
    if (index == NO_INDEX || stream == draft->stream) {
        return;
    }
    for (uint32_t i = 0; i < draft->wait_count; i++) {
        struct program_wait *wait = &draft->waits[i];
        if (wait->stream == stream) {
            wait->index = wait->index > index ? wait->index : index;
            return;
        }
    }
    ASSERT(draft->wait_count < STREAM_COUNT);
    draft->waits[draft->wait_count++] = (struct program_wait){.stream = stream, .index = index};
}

uint32_t program_writer_last(const struct program_writer *writer, enum stream stream)
{
    return writer->count[stream] ? writer->count[stream] - 1 : NO_INDEX;
}

uint32_t program_writer_add(struct program_writer *writer, const struct op_draft *draft)
{
    struct arena *arena = writer->builder->arena;
    const enum stream stream = draft->stream;
    writer->ops[stream] = grown(writer->ops[stream], writer->count[stream],
                                &writer->capacity[stream], sizeof(struct program_op), arena);
    struct program_op *op = &writer->ops[stream][writer->count[stream]];
    *op = draft->op;
    op->wait_first = writer->wait_count;
    op->wait_count = (uint8_t)draft->wait_count;
    for (uint32_t i = 0; i < draft->wait_count; i++) {
        writer->waits = grown(writer->waits, writer->wait_count, &writer->wait_capacity,
                              sizeof(struct program_wait), arena);
        writer->waits[writer->wait_count++] = draft->waits[i];
    }
    const struct program_label label = {.name = draft->name,
                                        .phase = writer->phase,
                                        .chunk = writer->chunk,
                                        .microbatch = writer->microbatch,
                                        .layer = writer->layer,
                                        .pass = draft->pass};
    op->label = cost_table_label(&writer->builder->costs, &label, arena);
    return writer->count[stream]++;
}

void program_writer_reserve(struct program_writer *writer, const struct program *like)
{
    struct arena *arena = writer->builder->arena;
    for (int stream = 0; stream < STREAM_COUNT; stream++) {
        const uint32_t count = like->op_count[stream] + like->op_count[stream] / 8 + 16;
        writer->ops[stream] = ARENA_ARRAY(arena, count, struct program_op);
        writer->capacity[stream] = count;
    }
    writer->wait_capacity = like->wait_count + like->wait_count / 8 + 16;
    writer->waits = ARENA_ARRAY(arena, writer->wait_capacity, struct program_wait);
}
