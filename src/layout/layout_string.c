/*
 * layout_string.c - Megatron's notation of a pipeline layout, read and written.
 *
 *   layout = item*
 *   item   = ( symbol | "(" item* ")" ) [ "*" number ]
 *   symbol = "E" | "t" | "m" | "L" | "|"
 *
 * Blanks and commas mean nothing. Reading is recursive descent into one flat list of symbols,
 * bounded in depth and length so that "((t*999)*999)*999" is refused rather than built; then
 * the list is cut at the bars and checked against the model.
 */
#include <stdlib.h>
#include <string.h>

#include "layout_internal.h"

#include "stepsim/text.h"

#define DEPTH_MAX   8
#define SYMBOLS_MAX 65536

struct reader {
    const char *start, *next;
    struct text symbols;
    const char *mistake; /* NULL: none; else what is wrong at `next` */
};

static void skip_blanks(struct reader *reader)
{
    while (*reader->next == ' ' || *reader->next == ',' || *reader->next == '\t')
        reader->next++;
}

/* "*12" or nothing (1). */
static uint32_t read_repeat(struct reader *reader)
{
    skip_blanks(reader);
    if (*reader->next != '*')
        return 1;
    reader->next++;
    skip_blanks(reader);
    uint32_t count = 0;
    const char *digits = reader->next;
    while (*reader->next >= '0' && *reader->next <= '9' && count <= SYMBOLS_MAX)
        count = count * 10 + (uint32_t)(*reader->next++ - '0');
    if (reader->next == digits || count == 0 || count > SYMBOLS_MAX)
        reader->mistake = "a repeat needs a number from 1 up behind '*'";
    return count;
}

/* Repeats what was added since `from`. */
static void repeat_symbols(struct reader *reader, size_t from, uint32_t count)
{
    const size_t length = reader->symbols.length - from;
    if (from + length * count > SYMBOLS_MAX) {
        reader->mistake = "the layout is too long";
        return;
    }
    char *piece = length > 0 ? strndup(reader->symbols.data + from, length) : NULL;
    for (uint32_t i = 1; i < count && length > 0; i++)
        text_add_bytes(&reader->symbols, piece, length);
    free(piece);
}

static void read_items(struct reader *reader, uint32_t depth)
{
    for (skip_blanks(reader); reader->mistake == NULL; skip_blanks(reader)) {
        const size_t from = reader->symbols.length;
        const char symbol = *reader->next;
        if (symbol == '\0' || symbol == ')') {
            if ((symbol == ')') != (depth > 0))
                reader->mistake = symbol == ')' ? "')' without '('" : "'(' without ')'";
            return;
        }
        if (symbol == '(') {
            if (depth == DEPTH_MAX) {
                reader->mistake = "groups are nested too deeply";
                return;
            }
            reader->next++;
            read_items(reader, depth + 1);
        } else if (strchr("EtmL|", symbol) != NULL) {
            text_add_bytes(&reader->symbols, &symbol, 1);
        } else {
            reader->mistake = "expected one of E, t, m, L, |, ( and )";
        }
        if (reader->mistake != NULL)
            return;
        reader->next++;
        const uint32_t repeat = read_repeat(reader);
        if (reader->mistake == NULL)
            repeat_symbols(reader, from, repeat);
    }
}

/* What one chunk may hold, and in which order. */
struct placed {
    uint32_t embeddings, layers, mtp, heads;
    bool order_broken; /* something before E, a layer after m, something after L */
};

static void place_symbol(char symbol, struct layout_chunk *chunk, struct placed *placed)
{
    const bool first = placed->embeddings + placed->layers + placed->mtp + placed->heads == 0;
    switch (symbol) {
    case 'E':
        placed->order_broken = placed->order_broken || !first;
        placed->embeddings++;
        chunk->embedding = true;
        break;
    case 't':
        placed->order_broken = placed->order_broken || placed->mtp > 0 || placed->heads > 0;
        placed->layers++;
        chunk->layer_count++;
        break;
    case 'm':
        placed->order_broken = placed->order_broken || placed->heads > 0;
        placed->mtp++;
        chunk->mtp++;
        break;
    default:
        placed->heads++;
        chunk->head = true;
        break;
    }
}

static void check_placed(const struct layout_input *input, const struct placed *placed,
                         const struct layout_chunk *chunks, uint32_t count)
{
    const char *key = "parallel.stages.layout";
    const struct location at = scenario_at(input->scenario, key);
    const uint32_t mtp = input->model->spec->mtp_layers;
    if (placed->embeddings != 1 || !chunks[0].embedding)
        error_add(input->errors, ERROR_bad_layout_string, at, key,
                  "the embedding E belongs once, at the start of the first chunk");
    if (placed->heads != 1 || !chunks[count - 1].head)
        error_add(input->errors, ERROR_bad_layout_string, at, key,
                  "the loss L belongs once, at the end of the last chunk");
    if (placed->order_broken)
        error_add(input->errors, ERROR_bad_layout_string, at, key,
                  "model order is E, then layers t, then MTP modules m, then L");
    if (placed->layers != input->model->layers)
        error_add(input->errors, ERROR_stage_layers_sum, at, key,
                  "%u layers t, but the model has %u", placed->layers, input->model->layers);
    if (placed->mtp != mtp)
        error_add(input->errors, ERROR_stage_layers_sum, at, key,
                  "%u MTP modules m, but the model has %u", placed->mtp, mtp);
}

static bool place_symbols(const struct layout_input *input, const char *symbols,
                          struct layout_chunk *chunks, uint32_t count)
{
    const char *key = "parallel.stages.layout";
    const struct parallel_spec *p = &input->scenario->parallel;
    uint32_t bars = 0;
    for (const char *s = symbols; *s != '\0'; s++)
        bars += *s == '|';
    if (bars + 1 != count) {
        error_add(input->errors, ERROR_stage_list_length, scenario_at(input->scenario, key), key,
                  "%u chunks, but pp %u * vpp %u = %u%s", bars + 1, p->pp, p->vpp, count,
                  (bars + 1) % p->pp == 0
                      ? arena_printf(input->arena, "; vpp %u would work", (bars + 1) / p->pp)
                      : "");
        return false;
    }

    const size_t before = input->errors->count;
    struct placed placed = {0};
    uint32_t chunk = 0;
    for (const char *s = symbols; *s != '\0'; s++) {
        if (*s == '|')
            chunk++;
        else
            place_symbol(*s, &chunks[chunk], &placed);
    }
    check_placed(input, &placed, chunks, count);
    return input->errors->count == before;
}

bool layout_string_read(const struct layout_input *input, struct layout_chunk *chunks,
                        uint32_t count)
{
    const char *key = "parallel.stages.layout";
    const char *text = input->scenario->parallel.layout;
    struct reader reader = {.start = text, .next = text};
    read_items(&reader, 0);
    if (reader.mistake != NULL)
        error_add(input->errors, ERROR_bad_layout_string, scenario_at(input->scenario, key), key,
                  "%s, at character %u: \"%.20s\"", reader.mistake,
                  (unsigned)(reader.next - reader.start) + 1, reader.next);
    const bool good =
        reader.mistake == NULL && place_symbols(input, text_string(&reader.symbols), chunks, count);
    text_free(&reader.symbols);
    return good;
}

/* ---- Writing ---- */

static void write_symbols(struct text *text, char symbol, uint32_t count)
{
    if (count > 4)
        text_add(text, "%c*%u", symbol, count);
    for (uint32_t i = 0; i < count && count <= 4; i++)
        text_add_bytes(text, &symbol, 1);
}

static void write_chunk(struct text *text, const struct layout_chunk *chunk)
{
    write_symbols(text, 'E', chunk->embedding);
    write_symbols(text, 't', chunk->layer_count);
    write_symbols(text, 'm', chunk->mtp);
    write_symbols(text, 'L', chunk->head);
}

static bool same_content(const struct layout_chunk *a, const struct layout_chunk *b)
{
    return a->layer_count == b->layer_count && a->mtp == b->mtp && a->embedding == b->embedding &&
           a->head == b->head;
}

const char *layout_string_write(const struct layout_chunk *chunks, uint32_t count,
                                struct arena *arena)
{
    struct text text = {0};
    for (uint32_t i = 0; i < count;) {
        /* The last chunk has no bar behind it, so it never joins a repeat. */
        uint32_t run = 1;
        while (i + run + 1 < count && same_content(&chunks[i], &chunks[i + run]))
            run++;
        const bool last = i + 1 == count;
        if (run < 3)
            run = 1;
        if (run > 1)
            text_add(&text, "(");
        write_chunk(&text, &chunks[i]);
        if (!last)
            text_add(&text, "|");
        if (run > 1)
            text_add(&text, ")*%u,", run);
        i += run;
    }
    const char *string = arena_strdup(arena, text_string(&text));
    text_free(&text);
    return string;
}
