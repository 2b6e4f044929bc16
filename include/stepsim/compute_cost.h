/*
 * compute_cost.h - time of one local operation on one device.
 *
 * PLUG-IN: a model is one file src/compute/NAME.c defining `const struct compute
 * compute_NAME`; it is a pure function of the ask and the device data. Every
 * efficiency is a field of struct device_spec with source and grade; none is in code.
 *
 * Laws (tests/law/test_compute.c), for every model and device: time is finite and at
 * least the start-up, never falls when work grows, never beats the peak or the HBM.
 */
#ifndef STEPSIM_COMPUTE_COST_H
#define STEPSIM_COMPUTE_COST_H

#include <stddef.h>

#include "stepsim/scenario.h"

enum compute_kind {
    COMPUTE_MATMUL,             /* [m, k] x [k, n] */
    COMPUTE_GROUPED_MATMUL,     /* `groups` matmuls of m rows each, one kernel */
    COMPUTE_ATTENTION_FORWARD,  /* flash attention */
    COMPUTE_ATTENTION_BACKWARD,
    COMPUTE_ATTENTION_UNFUSED,  /* scores to memory: full square and softmax traffic, forward */
    COMPUTE_ATTENTION_UNFUSED_BACKWARD,
    COMPUTE_VECTOR,             /* element-wise and norms: bytes moved */
    COMPUTE_PERMUTE,            /* gather and scatter of tokens: bytes moved */
    COMPUTE_OPTIMIZER,          /* bytes of states, weights and gradients moved */
    COMPUTE_KIND_COUNT
};

/* "matmul", "grouped_matmul", "attention_forward", ... */
const char *compute_kind_name(enum compute_kind kind);

/* Which fields count: matmul m, n, k; grouped also groups; attention all of the second
 * block; vector, permute, optimizer bytes and kernels. Unused fields are 0. */
struct compute_ask {
    enum compute_kind kind;
    double m, n, k;
    double groups;
    double weight_bytes_per_element; /* matmul operands; 2 for bf16 */
    double result_bytes; /* matmul: read and written per element of the result, such as 8 where it
                            is added to a 32-bit buffer; 0: written as wide as an operand */
    double queries;   /* query rows per sequence on this rank */
    double keys;      /* mean visible keys of one query (half of the sequence when causal) */
    double sequence;  /* keys of the sequence, for the efficiency ramp */
    double batch, heads, kv_heads, qk_dim, v_dim;
    double bytes;     /* read and written, counted once each */
    double kernels;   /* separate kernels that move them, at least 1 */
};

/* One input or intermediate of a formula, for `explain`. */
struct cost_term {
    const char *name;   /* as in the formula */
    double value;
    const char *unit;
    const char *origin_key; /* "cluster.device.matmul_efficiency", or NULL: derived */
};

#define COST_TERMS_MAX 64

struct compute_cost {
    double time_s;
    double flop;        /* really executed */
    double bytes;       /* HBM traffic */
    const char *bound;  /* "cube", "hbm", "l2", "floor" */
    uint32_t term_count; /* terms are filled only when `explain` was asked for */
    struct cost_term terms[COST_TERMS_MAX];
};

struct compute {
    const char *name;
    const char *title;
    const char *formula; /* shown by `explain`, cited in docs */
    uint32_t kinds;      /* bit set of 1 << compute_kind */
    void (*cost)(const struct compute_ask *ask, const struct device_spec *device, bool explain,
                 struct compute_cost *cost);
};

extern const struct compute *const compute_registry[]; /* sorted, NULL-terminated */
extern const size_t compute_count;

/* The model that covers a kind; every kind is covered by exactly one (asserted). */
const struct compute *compute_for(enum compute_kind kind);
/* Time and traffic; `explain` fills the terms. Asserts a finite result. */
struct compute_cost compute_cost(const struct compute_ask *ask, const struct device_spec *device,
                                 bool explain);

#endif
