/*
 * op_writer.h - builds op lists: sizes of one microbatch on one rank, and the units
 * (column- and row-parallel linear layers, vector ops, collectives) that blocks are made of.
 *
 * Private to src/workload. Deps: a compute op needs an `after` only for communication,
 * since compute ops run in list order.
 */
#ifndef STEPSIM_OP_WRITER_H
#define STEPSIM_OP_WRITER_H

#include "stepsim/op_graph.h"

#define OPS_PER_LIST_MAX 160
#define ELEMENT_BYTES    2.0 /* bf16 and fp16 activations */

/* Sizes that every block uses; per rank and microbatch. */
struct op_sizes {
    const struct scenario *scenario;
    const struct model *model;
    const struct layout *layout;
    double batch; /* sequences of a microbatch */
    double seq_len;
    double tokens;      /* batch * seq_len / cp */
    double tokens_norm; /* tokens of a sequence-parallel shard: tokens / tp, else tokens */
    double hidden;
    double tp, cp, ep, etp;
    bool sequence_parallel; /* and tp above 1 */
    bool decouple_weight;
    bool fuse_collective; /* mc2 or coc */
};

struct op_writer {
    const struct op_sizes *sizes;
    struct op *ops; /* [OPS_PER_LIST_MAX], of the caller */
    uint32_t count;
    uint32_t module; /* module bits given to every op written */
    bool rows_scale;
    bool weight; /* ops belong to the weight gradient */
};

void op_writer_start(struct op_writer *writer, const struct op_sizes *sizes, struct op *ops);
/* A copy of what was written. */
struct op_list op_writer_finish(const struct op_writer *writer, struct arena *arena);

/* Index of the newest compute op, OP_NONE if there is none: what communication waits for. */
int16_t op_last_compute(const struct op_writer *writer);
/* Makes op `index` wait for `dependency` too. */
void op_wait(struct op_writer *writer, int16_t index, int16_t dependency);

int16_t op_vector(struct op_writer *writer, const char *name, double bytes, double kernels);
int16_t op_permute(struct op_writer *writer, const char *name, double bytes, double kernels);
int16_t op_matmul(struct op_writer *writer, const char *name, double m, double n, double k);

/* The weight gradient of `parts` parameters that `matmul` makes: the matmul adds into the gradient
 * buffer (fusion.grad_accumulation), or writes a 16-bit tensor that a kernel per parameter adds. */
void op_accumulate(struct op_writer *writer, const char *name, int16_t matmul, double parts);
/* The kernels alone, for gradients that no matmul makes. */
void op_gradient_add(struct op_writer *writer, const char *name, double weights, double parts);

struct op_collective {
    const char *name;
    enum collective_kind kind;
    enum group_slot group;
    enum stream stream;
    double bytes;
    double token_bytes, copies;
};
/* Waits for the newest compute op and for `after`. */
int16_t op_collective(struct op_writer *writer, const struct op_collective *collective,
                      int16_t after);

/* A linear layer with its weight [in, out] sharded over tp. */
struct linear {
    const char *name;        /* "qkv" */
    const char *input_grad;  /* "qkv.dgrad" */
    const char *weight_grad; /* "qkv.wgrad" */
    const char *grad_add;    /* "qkv.grad_add" */
    const char *gather;      /* collective in front of it (column) or behind it (row), forward */
    const char *gather_back; /* the same in the backward pass */
    const char *regather;    /* column: the input gathered again for the weight gradient */
    double tokens;           /* rows */
    double in, out;          /* per rank */
    double comm_bytes;       /* whole tensor of its collective; 0: none */
    bool shares_gather;      /* column: the gathered input is there already */
};

/* Column parallel: the input is gathered over tp (sequence parallel), outputs are sharded. */
int16_t op_column_forward(struct op_writer *writer, const struct linear *linear, int16_t after);
int16_t op_column_backward(struct op_writer *writer, const struct linear *linear, int16_t after);
/* Row parallel: inputs are sharded, the output is reduced (scattered) over tp. Returns the
 * index that a consumer must wait for. */
int16_t op_row_forward(struct op_writer *writer, const struct linear *linear, int16_t after);
int16_t op_row_backward(struct op_writer *writer, const struct linear *linear, int16_t after);

/* ---- Blocks: each writes one half of a layer and returns what its consumer waits for ---- */

int16_t attention_forward(struct op_writer *writer, bool windowed, int16_t after);
int16_t attention_backward(struct op_writer *writer, bool windowed, int16_t after);
void attention_saved(const struct op_sizes *sizes, bool windowed, struct block_ops *block);

int16_t dense_forward(struct op_writer *writer, int16_t after);
int16_t dense_backward(struct op_writer *writer, int16_t after);
void dense_saved(const struct op_sizes *sizes, struct block_ops *block);

int16_t moe_forward(struct op_writer *writer, int16_t after);
int16_t moe_backward(struct op_writer *writer, int16_t after);
void moe_saved(const struct op_sizes *sizes, struct block_ops *block);

int16_t embedding_forward(struct op_writer *writer, int16_t after);
int16_t embedding_backward(struct op_writer *writer, int16_t after);
int16_t head_forward(struct op_writer *writer, int16_t after);
int16_t head_backward(struct op_writer *writer, int16_t after);
void head_saved(const struct op_sizes *sizes, struct block_ops *block);
int16_t mtp_entry_forward(struct op_writer *writer, int16_t after);
int16_t mtp_entry_backward(struct op_writer *writer, int16_t after);
void mtp_entry_saved(const struct op_sizes *sizes, struct block_ops *block);

/* Adds a saved tensor to a block. */
void op_saved(struct block_ops *block, const struct saved_tensor *tensor);

/* Norm over the sequence-parallel shard, forward and backward. */
int16_t norm_forward(struct op_writer *writer, const char *name, double width, int16_t after);
int16_t norm_backward(struct op_writer *writer, const char *name, double width, int16_t after);

/* Kernels of an op that a fusion switch turns into one. */
double fused_kernels(bool fused, double unfused_kernels);

/* ---- Preconditions (switches.c) ---- */

/* Adds an error for every switch whose precondition does not hold. */
bool switches_check(const struct op_graph_ask *ask, struct error_list *errors);

#endif
