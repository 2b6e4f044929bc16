/*
 * plan_internal.h - the program builder's own structs.
 *
 * A template is one block pass with costs: a short list of ops on their streams, with waits
 * between them by position. Stage programs are made by appending templates.
 */
#ifndef STEPSIM_PLAN_INTERNAL_H
#define STEPSIM_PLAN_INTERNAL_H

#include "stepsim/plan.h"

#include "partition.h"

/* ---- Growing tables ---- */

/* Durations and deltas by index; equal values may have several indices. */
struct cost_table {
    sim_time *durations;
    uint32_t duration_count, duration_capacity;
    int64_t *deltas; /* [0] is 0 */
    uint32_t delta_count, delta_capacity;
    struct program_label *labels;
    uint32_t label_count, label_capacity;
};

uint32_t cost_table_duration(struct cost_table *table, sim_time duration, struct arena *arena);
uint32_t cost_table_delta(struct cost_table *table, double bytes, struct arena *arena);
/* Room for so many labels; more still grows. */
void cost_table_reserve_labels(struct cost_table *table, uint32_t count, struct arena *arena);
uint32_t cost_table_label(struct cost_table *table, const struct program_label *label,
                          struct arena *arena);

/* ---- Costs that depend on the routed rows of a rank ---- */

/* One part of a program op whose duration grows with the rows. */
struct rows_part {
    bool collective;
    double factor, paired_factor; /* growth of compute; contention of a collective */
    struct compute_ask compute;
    struct collective_ask exchange;
    bool rows_in_k; /* weight gradients: rows are the inner dimension */
};

/* A duration, or a delta, that every rank class fills for its own rows of a layer. */
struct rows_duration {
    uint32_t duration;
    uint32_t layer;
    uint32_t part_first, part_count;
    sim_time fixed; /* of the parts that do not depend on rows */
    bool paired;
};
struct rows_delta {
    uint32_t delta;
    uint32_t layer;
    const struct block_ops *block;
    bool recompute, at_start;
    uint8_t which; /* enum template_kind */
};

/* Migration of experts at the end of a step: a collective whose bytes are those of the experts
 * that leave the rank. */
struct rows_move {
    uint32_t duration; /* set by rows_move() */
    uint32_t stage;
    enum collective_kind kind;
    enum group_slot slot;
    double bytes; /* of one expert */
};

/* Costs that some ranks share (class_tables.c). */
struct class_table {
    uint32_t position;  /* among the expert loads; 0 without */
    int64_t factor_ppm; /* on compute time, millionths */
    /* Repriced builders for slow links: the rank's own, and those of whom it sends to. NO_INDEX:
     * the links are as their levels say. */
    uint32_t links, peer_links[RANK_PEERS_MAX];
    sim_time *durations;
    int64_t *deltas;
};

/* Programs of a step behind the first, and the tables that are filled for it. */
struct later_step {
    struct programs *programs; /* NULL: never used */
    struct class_table *tables;
};

/* ---- Templates ---- */

#define TEMPLATE_OPS_MAX   224
#define TEMPLATE_WAITS_MAX 4

struct template_op {
    uint8_t kind, cause, flags, stream;
    uint8_t group; /* enum group_slot of a collective */
    uint8_t wait_count;
    bool cut_after; /* a pair may switch to the other list behind this compute op */
    char pass;
    int16_t waits[TEMPLATE_WAITS_MAX]; /* positions in the template */
    uint32_t duration;
    uint32_t duration_paired; /* beside the compute of an overlapped pair */
    uint32_t delta_start, delta_end;
    uint32_t part_first, part_count; /* rows_parts of this op */
    sim_time fixed;                  /* duration without them */
    const char *name;
};

struct template
{
    struct template_op *ops;
    uint32_t count;
    double flop;           /* executed by one rank */
    double recompute_flop; /* of it */
    double rows_flop;      /* of it: grows with the routed rows */
    const struct block_ops *block;
    bool recompute;
    uint8_t which; /* enum template_kind */
    /* With unequal loads: [layer][op][duration, paired, delta_start, delta_end] indices made
     * so far, NO_INDEX: not yet. */
    uint32_t(*by_layer)[4];
    double sent_bytes[CAUSE_COUNT]; /* by one rank */
};

/* Which template of a block. */
enum template_kind {
    TEMPLATE_FORWARD,
    TEMPLATE_BACKWARD,       /* recompute, input and weight gradient */
    TEMPLATE_BACKWARD_INPUT, /* recompute and input gradient */
    TEMPLATE_BACKWARD_WEIGHT,
    TEMPLATE_KIND_COUNT
};

#define PLAN_BLOCKS_MAX 8
#define NO_INDEX        UINT32_MAX

struct plan_builder {
    const struct plan_ask *ask;
    struct plan_ask own_ask; /* what ask points to; its loads change from step to step */
    struct arena *arena;
    struct cost_table costs;
    /* [block of the graph][recomputes][template_kind] */
    struct template templates[PLAN_BLOCKS_MAX][2][TEMPLATE_KIND_COUNT];
    struct template_op *scratch_ops; /* [TEMPLATE_OPS_MAX] the template being written */
    struct rows_part *parts;
    uint32_t part_count, part_capacity;
    struct rows_duration *rows_durations;
    uint32_t rows_duration_count, rows_duration_capacity;
    struct rows_delta *rows_deltas;
    uint32_t rows_delta_count, rows_delta_capacity;
    struct rows_move *moves;
    uint32_t move_count, move_capacity;
    /* Loads that differ, slow ranks: */
    struct class_table *tables; /* the newest */
    uint32_t table_count, table_capacity;
    const uint32_t *table_of;       /* [world]; NULL: the costs above are those of every rank */
    const bool *is_compute;         /* [duration]: read by compute ops */
    struct plan_builder **repriced; /* one for each set of slow links that a rank has */
    struct partition partition;
    struct later_step later[PLAN_LATER_MAX];
    struct transfers *transfers;     /* NULL: the network needs no model (transfers.c) */
    double compute_scale;            /* growth with the number of devices */
    bool explain;                    /* costs of collectives carry their terms */
    uint32_t *recv_ordinal[2];       /* [forward, backward][microbatch * chunks + model chunk] */
    const struct plan_builder *like; /* repriced: the builder with the same programs */
    uint32_t send_duration[RANK_PEERS_MAX]; /* of a message to the next, previous stage */
    double send_bytes;
    double *sent_bytes;                                    /* [stage][CAUSE_COUNT] */
    double *hardware_flop, *forward_flop, *recompute_flop; /* [stage] */
    double *rows_flop;                                     /* [stage] */
};

/* Duration and bytes of a message between neighbouring stages. */
void plan_price_send(struct plan_builder *builder);
void templates_build(struct plan_builder *builder);
struct template *template_of(struct plan_builder *builder, enum block_kind kind, bool windowed,
                             bool recompute, enum template_kind which);

/* The same programs with the links of another cluster: only durations differ. */
struct plan_builder *plan_reprice(const struct plan_builder *builder,
                                  const struct cluster *cluster);
/* Factor on compute: grows with the number of devices, and over kernels that run alone. */
double plan_growth(const struct plan_ask *ask);
/* Bytes of memory that a pass of a block takes at its start and gives back at its end. */
struct pass_deltas {
    double start, end;
};
struct pass_deltas pass_deltas(const struct op_graph *graph, const struct block_ops *block,
                               bool recompute, enum template_kind which, double rows_ratio);

/* ---- Links of ranks (link_speeds.c) ---- */

/* Shares of the bandwidth of each level that a rank has left. */
struct link_speeds {
    double slow[LEVELS_MAX]; /* noise.slow_links */
    double left[FAULT_KIND_COUNT][LEVELS_MAX];
};

struct link_speeds link_speeds_whole(void);
struct link_speeds link_speeds_of(const struct plan_builder *builder, uint32_t rank);
bool link_speeds_equal(const struct link_speeds *a, const struct link_speeds *b);
/* Of a transfer over the level while nothing else moves on what is shared, as if all the devices
 * that share it always sent. */
double link_speeds_alone(const struct cluster *cluster, const struct link_speeds *speeds,
                         uint32_t level);
/* Do two levels use the same ports of a rank? */
bool link_same_port(const struct level_spec *a, const struct level_spec *b);

/* ---- Transfers (transfers.c); nothing happens without a network model ---- */

/* Chooses the model; what transfers take alone may be priced on another cluster from here on. */
void transfers_start(struct plan_builder *builder);
/* Are links shared by resources, so that durations know nothing of it? */
bool transfers_share(const struct plan_builder *builder);
/* The domains whose ranks share something, by kind; their number. */
uint32_t transfers_domains(const struct plan_builder *builder, struct cluster_domains domains[]);
/* A duration is that of a collective or message, of a copy to or from the host, or of a transfer
 * like another one. */
void transfers_note(struct plan_builder *builder, uint32_t duration,
                    const struct collective_ask *ask);
void transfers_note_copy(struct plan_builder *builder, uint32_t duration);
void transfers_like(struct plan_builder *builder, uint32_t duration, uint32_t like);
/* When all ranks are known. */
const struct network_run *transfers_finish(struct plan_builder *builder,
                                           const struct programs *programs);

/* ---- Unequal loads (rows.c) ---- */

/* Notes that the op under construction has a part that depends on rows. */
void rows_part_add(struct plan_builder *builder, struct template_op *op,
                   const struct rows_part *part);
/* Indices of the op at the cursor: of its layer's own when its cost depends on rows. */
struct op_costs {
    uint32_t duration, delta_start, delta_end;
};
struct cursor;
struct op_costs rows_costs(struct plan_builder *builder, const struct cursor *cursor);
/* All durations at perfect balance. */
const sim_time *rows_balanced(const struct plan_builder *builder);
/* Index of the duration of a migration. */
uint32_t rows_move(struct plan_builder *builder, const struct rows_move *move);
/* Fills the durations and deltas of one class; the arrays hold the balanced values. */
void rows_fill(const struct plan_builder *builder, uint32_t position, sim_time *durations,
               int64_t *deltas);

/* Seconds of one op or collective with this scenario's settings. */
double plan_compute_s(const struct plan_builder *builder, const struct compute_ask *ask);
/* With the cluster and the settings of the scenario. */
struct collective_ask plan_collective_whole(const struct plan_builder *builder,
                                            const struct collective_ask *ask);
struct collective_cost plan_collective(const struct plan_builder *builder,
                                       const struct collective_ask *ask);
struct collective_ask plan_collective_ask(const struct plan_builder *builder, const struct op *op);
/* A collective of a whole tensor over one group, outside blocks. */
struct collective_ask plan_group_ask(const struct plan_builder *builder, enum collective_kind kind,
                                     enum group_slot slot, double bytes);
struct collective_cost plan_group_collective(const struct plan_builder *builder,
                                             enum collective_kind kind, enum group_slot slot,
                                             double bytes);

/* ---- Stage programs ---- */

/* A growing program of one stage. */
struct program_writer {
    struct plan_builder *builder;
    uint32_t stage;
    struct program_op *ops[STREAM_COUNT];
    uint32_t count[STREAM_COUNT], capacity[STREAM_COUNT];
    struct program_wait *waits;
    uint32_t wait_count, wait_capacity;
    uint32_t messages;
    /* position of the action being written */
    uint8_t phase;
    uint16_t chunk;
    int32_t microbatch;
    int32_t layer;
    uint32_t boundary; /* newest compute op when the block pass before began */
    uint32_t next_boundary;
    uint32_t *swapped_out;          /* [chunk][microbatch][block] op of the copy_out stream */
    struct program_wait blocked_on; /* a blocking send that the next compute op waits for */
    uint32_t *parameters_ready;     /* [vpp][CHUNK_BLOCKS_MAX] op that brings those of a block */
    struct param_count *reduced;    /* [vpp] parameters whose reduction was issued block by block */
    uint32_t *weights_done;         /* [vpp] microbatches whose weight gradient is done */
    bool *gradients_reduced;        /* [vpp] reduction issued already */
};

/* Appends an op with its waits; returns its index on the stream. */
struct op_draft {
    enum stream stream;
    struct program_op op;
    struct program_wait waits[STREAM_COUNT]; /* one per other stream */
    uint32_t wait_count;
    const char *name;
    char pass;
};
void draft_wait(struct op_draft *draft, enum stream stream, uint32_t index);
uint32_t program_writer_add(struct program_writer *writer, const struct op_draft *draft);
/* Room for a program about as long as this one; more still grows. */
void program_writer_reserve(struct program_writer *writer, const struct program *like);
/* Index of the newest op of a stream, NO_INDEX if there is none. */
uint32_t program_writer_last(const struct program_writer *writer, enum stream stream);

/* ---- Walks over the blocks of a chunk ---- */

#define CHUNK_BLOCKS_MAX 512
#define CURSOR_ENTRIES   5 /* message, blocking send, parameters, gather, copy */

struct chunk_block {
    enum block_kind kind;
    bool windowed, recompute;
    int32_t layer;
};

/* One template being appended, possibly in pieces. */
struct cursor {
    struct template *template;
    uint32_t next;
    uint32_t index[TEMPLATE_OPS_MAX];          /* template position -> index on its stream */
    struct program_wait entry[CURSOR_ENTRIES]; /* the first compute op waits for these;
                                                  index NO_INDEX: nothing */
    int32_t microbatch, layer;
    uint16_t chunk;
    bool paired; /* alternates with another walk */
};

/* One pass of one microbatch over one chunk: the cursor walks block after block. */
struct walk {
    struct cursor cursor;
    struct chunk_block blocks[CHUNK_BLOCKS_MAX];
    uint32_t count, position;
    bool reverse;
    bool gathers;      /* ZeRO 3: parameters come block by block */
    bool reduces;      /* gradients are final: they are reduced block by block */
    uint32_t gathered; /* op of the dp stream that brings those of the next block */
    enum template_kind which;
};

void walk_start(const struct program_writer *writer, struct walk *walk, uint32_t microbatch,
                uint32_t chunk, enum template_kind which);
/* The first compute op of the walk waits for this too (index NO_INDEX: nothing). */
void walk_wait(struct walk *walk, struct program_wait wait);
/* Appends one segment; false when the whole chunk is done. */
bool walk_segment(struct program_writer *writer, struct walk *walk);

/* ---- Parts of a stage program ---- */

/* Gives every recv its ordinal, before any program is written. */
void messages_number(struct plan_builder *builder);
/* The microbatch work of a stage in its order. */
void stage_actions_write(struct program_writer *writer);
/* Parameter gathers that overlap with the first forwards. */
void stage_start_write(struct program_writer *writer);
/* Gradient reduction that is left, gradient norm, optimizer, parameter gathers. */
void stage_end_write(struct program_writer *writer);
/* Called when the weight gradient of one microbatch on a chunk is done. */
void gradients_of_microbatch_write(struct program_writer *writer, uint32_t chunk);
/* ZeRO 3: gathers the parameters of a block (index on the dp stream, NO_INDEX: nothing to
 * gather); reduces its gradients. */
uint32_t block_gather_write(struct program_writer *writer, enum block_kind kind);
void block_reduce_write(struct program_writer *writer, enum block_kind kind);
/* Swap of activations: behind the forward of a block, and before its backward (index on the
 * copy_in stream that its first compute op waits for). */
bool swap_is_on(const struct program_writer *writer);
void swap_out_write(struct program_writer *writer, const struct walk *walk, uint32_t block);
uint32_t swap_in_write(struct program_writer *writer, const struct walk *walk, uint32_t block);
/* The optimizer step with its states on the host. */
void swap_optimizer_write(struct program_writer *writer, double state_bytes, double update_s);
/* Op of the dp stream that brings the parameters of a block; NO_INDEX: they are there. */
uint32_t block_parameters_ready(const struct program_writer *writer, uint32_t chunk,
                                uint32_t block);
/* Are the gradients of a chunk final, and reduced, when the next weight gradient is? */
bool gradients_reduce_next(const struct program_writer *writer, uint32_t chunk);
/* The blocks of a chunk in model order; returns their number. */
uint32_t chunk_blocks(const struct program_writer *writer, uint32_t chunk,
                      struct chunk_block blocks[]);
/* Does the block hold parameters that no earlier block of the chunk holds: a head that several
 * passes use, or one tied to the embedding, counts once. */
bool block_owns_params(const struct program_writer *writer, const struct chunk_block *blocks,
                       uint32_t block);

/* ---- Ranks ---- */

/* True if ranks of one stage may have different costs. */
bool class_tables_differ(const struct plan_builder *builder);
/* The table of every rank; no table is filled yet. */
uint32_t *class_tables_assign(struct plan_builder *builder);
/* New tables from the builder's loads and slow ranks, when all programs are written. */
void class_tables_build(struct plan_builder *builder, const struct programs *programs);
/* Fills the newest tables again, after the loads have changed. */
void class_tables_fill(struct plan_builder *builder);

/* Classes with tables of their own; the partition stays. */
void sim_ranks_classes(struct plan_builder *builder, const struct stage_memory *memory,
                       struct programs *programs);
/* Simulated ranks, groups and classes. */
void sim_ranks_build(struct plan_builder *builder, const struct stage_memory *memory,
                     struct programs *programs);

#endif
