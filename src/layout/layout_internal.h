/* layout_internal.h - shared by the files of src/layout only. */
#ifndef LAYOUT_INTERNAL_H
#define LAYOUT_INTERNAL_H

#include "stepsim/layout.h"

/* What every step of layout_build() reads. */
struct layout_input {
    const struct scenario *scenario;
    const struct model *model;
    const struct cluster *cluster;
    bool v_shaped;
    struct arena *arena;
    struct error_list *errors;
};

/* ---- degrees.c: sizes of the dimensions, and everything that must divide ---- */

/* Fills the sizes of the layout (tp .. sequence_parallel); false with errors added. */
bool layout_resolve_degrees(const struct layout_input *input, struct layout *layout);
/* Are pp and vpp at least 1, and not absurdly many chunks for this model? */
bool layout_chunks_countable(const struct layout_input *input);

/* ---- groups.c: rank order, groups, spans ---- */

/* Fills axes from parallel.order; false with errors added. */
bool layout_resolve_axes(const struct layout_input *input, struct layout *layout);
/* Fills spans, spans_differ and pp_next from axes. */
void layout_resolve_spans(const struct layout_input *input, struct layout *layout);

/* ---- split.c: which layers a chunk holds ---- */

/* Chunks in model order, pp*vpp of them; NULL with errors added. */
struct layout_chunk *layout_resolve_split(const struct layout_input *input,
                                          const struct layout *layout);

/* ---- layout_string.c: Megatron's notation ---- */

/* Reads parallel.layout into count chunks in model order; false with errors added. */
bool layout_string_read(const struct layout_input *input, struct layout_chunk *chunks,
                        uint32_t count);
/* Writes chunks in model order. */
const char *layout_string_write(const struct layout_chunk *chunks, uint32_t count,
                                struct arena *arena);

/* ---- balance.c, balance_prefix.c: layout_balance() ---- */

/* Whole weights; the same in both files. */
struct balance {
    uint32_t layers, pp, count;
    const int64_t *layer;  /* [layers] at least 1 */
    const int64_t *extra;  /* [count] embedding, or MTP and head */
    const uint32_t *stage; /* [count] the stage that runs a chunk */
    int64_t cap;           /* layers of one chunk weigh at most this */
};

/* How good a split is: smaller is better, first member first. */
struct score {
    int64_t stage, chunk, squares;
};

int64_t balance_total(const struct balance *balance);
/* Layers from `prefix` on weigh the same. counts has count entries in model order. False: the
 * method finds no split under the cap, and counts are undefined. */
bool balance_prefix_split(const struct balance *balance, uint32_t prefix, struct arena *arena,
                          uint32_t *counts);

/* ---- neighbours.c: legal values near an illegal one, for messages ---- */

/* Largest divisor of n at most x and smallest above x: "4 or 8", or one of them. n at least 1. */
const char *layout_near_divisors(struct arena *arena, uint32_t n, uint32_t x);
/* Multiples of unit around x that are not 0: "5632 or 6144". */
const char *layout_near_multiples(struct arena *arena, uint64_t unit, uint64_t x);
/* "8,8,7,7": total over parts as evenly as it goes, the larger shares from part `first` on. */
const char *layout_even_list(struct arena *arena, uint32_t total, uint32_t parts, uint32_t first);

#endif
