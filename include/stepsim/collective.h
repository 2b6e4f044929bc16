/*
 * collective.h - what one collective costs one group of ranks.
 *
 * PLUG-IN: an algorithm is one file src/collective/NAME.c defining `const struct
 * collective collective_NAME`, a pure function with the published formula. The rules
 * that choose one per level are rule sets ("hccl_a2", "hccl_a3", "nccl") in
 * src/collective/collective_select.c, data-driven by the cluster file.
 *
 * Bytes: for all_gather, reduce_scatter and all_reduce `bytes` is the whole tensor (the
 * gathered result, the unreduced input); for all_to_all it is what one rank holds to
 * send, its own share included; for send_recv the message.
 *
 * Laws (tests/law/test_collectives.c): a group of one costs zero; time grows with bytes;
 * bytes sent equal bytes received; nothing beats the links; positive and finite for
 * every group size.
 */
#ifndef STEPSIM_COLLECTIVE_H
#define STEPSIM_COLLECTIVE_H

#include <stddef.h>

#include "stepsim/cluster.h"
#include "stepsim/compute_cost.h" /* struct cost_term */

enum collective_kind {
    COLLECTIVE_ALL_REDUCE,
    COLLECTIVE_ALL_GATHER,
    COLLECTIVE_REDUCE_SCATTER,
    COLLECTIVE_ALL_TO_ALL,
    COLLECTIVE_ALL_TO_ALL_HIERARCHICAL, /* all-gather between nodes, all-to-all inside */
    COLLECTIVE_SEND_RECV,               /* one message to one peer */
    COLLECTIVE_KIND_COUNT
};

const char *collective_kind_name(enum collective_kind kind);

struct collective_ask {
    enum collective_kind kind;
    double bytes;
    /* all_to_all: mean copies of one token (top_k after capacity), for the volumes of the
     * hierarchical exchange: token_bytes is what the rank holds before copies are made. */
    double token_bytes, copies;
    /* heaviest sender or receiver over the mean, at least 1 */
    double imbalance;
    struct group_span span;
    const struct cluster *cluster;
    double buffer_bytes;    /* collectives larger than this run in loops */
    const char *algorithm_intra, *algorithm_inter; /* "auto", or forced names */
};

struct collective_cost {
    double time_s;
    double latency_s;                   /* part that does not depend on bytes */
    double sent_bytes[LEVELS_MAX];      /* per rank, by level */
    const char *algorithm;              /* "mesh+ring", ... */
    uint32_t term_count;
    struct cost_term terms[COST_TERMS_MAX];
};

/* One algorithm on one level: `ranks` members joined by one level's links. */
struct collective_level_ask {
    enum collective_kind kind;
    double bytes;          /* as above, of the part that this level carries */
    uint32_t ranks;
    double alpha_s;        /* one step */
    double launch_s;       /* one call */
    double bytes_per_s;    /* reachable, one direction, per rank */
    double buffer_bytes;
};

struct collective_level_cost {
    double time_s, latency_s;
    double sent_bytes;     /* per rank */
    uint32_t steps;
};

struct collective {
    const char *name;
    const char *title;
    const char *formula; /* shown by `explain`, cited in docs */
    uint32_t kinds;      /* bit set of 1 << collective_kind */
    struct collective_level_cost (*cost)(const struct collective_level_ask *ask);
};

extern const struct collective *const collective_registry[]; /* sorted, NULL-terminated */
extern const size_t collective_count;

const struct collective *collective_find(const char *name);

/* Selects per level by the cluster's rules and adds the levels up. */
struct collective_cost collective_cost(const struct collective_ask *ask, bool explain);

#endif
