/*
 * collective.h - what one collective costs one group of ranks.
 *
 * PLUG-IN: an algorithm is one file src/collective/NAME.c defining `const struct
 * collective collective_NAME`, a pure function with the published formula. The rules
 * that choose one per level are rule sets ("hccl_a2", "hccl_a3", "nccl") in
 * src/collective/collective_select.c; the cluster file names the set.
 *
 * What a rank reaches on a level is
 *     bandwidth * efficiency / oversubscription * share of its links * share of the ports
 * - links: a full mesh of D devices gives a rank D - 1 links, and an algorithm uses one per
 *   peer that it serves at once; a ring has two; behind a switch all bandwidth goes to any peer;
 * - ports: only where a level has fewer than one per device, all ranks of the node that
 *   communicate at that moment share them.
 * Groups with several ranks in a node drive the ports of each (a ring per rail).
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
    COLLECTIVE_ALL_TO_ALL_DEDUPLICATED, /* one copy per node, further copies inside */
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
    double buffer_bytes;                           /* collectives larger than this run in loops */
    const char *algorithm_intra, *algorithm_inter; /* "auto", or forced names */
};

struct collective_cost {
    double time_s;
    double latency_s;              /* part that does not depend on bytes */
    double sent_bytes[LEVELS_MAX]; /* per rank, by level */
    const char *algorithm;         /* that takes the longest part; "none" in a group of one */
    const char *level_algorithm[LEVELS_MAX]; /* by level, NULL where the group does not use it */
    uint32_t term_count;
    struct cost_term terms[COST_TERMS_MAX];
};

/* One algorithm on one level: `ranks` members joined by one level's links. */
struct collective_level_ask {
    enum collective_kind kind;
    double bytes; /* as above, of the part that this level carries */
    uint32_t ranks;
    double alpha_s;      /* one step */
    double launch_s;     /* one call */
    double ramp_s;       /* latency of a step that grows with the step, see collective_step_s() */
    double bytes_per_s;  /* reachable, one direction, per rank */
    double buffer_bytes; /* 0: no loops */
    double token_bytes;  /* all_to_all_hierarchical: what a rank holds before copies */
    /* Two-level algorithms: the ranks inside one member domain, and their links. ranks 0 or 1:
     * nothing inside. */
    struct {
        uint32_t ranks;
        double alpha_s, ramp_s, bytes_per_s;
    } inner;
};

struct collective_level_cost {
    double time_s, latency_s;
    double sent_bytes;       /* per rank */
    double inner_sent_bytes; /* per rank, two-level algorithms */
    uint32_t steps;          /* on this level, one loop */
};

struct collective {
    const char *name;
    const char *title;
    const char *formula; /* shown by `explain`, cited in docs */
    uint32_t kinds;      /* bit set of 1 << collective_kind */
    uint32_t peers;      /* that a rank serves at once; 0: all the others */
    bool two_level;      /* covers the level inside as well */
    struct collective_level_cost (*cost)(const struct collective_level_ask *ask);
};

extern const struct collective *const collective_registry[]; /* sorted, NULL-terminated */
extern const size_t collective_count;

/* NULL if there is none. */
const struct collective *collective_find(const char *name);

/* Names of the rule sets, sorted, NULL-terminated; cluster.collectives must be one of them. */
extern const char *const collective_rules_names[];

/* One step that moves `bytes` over a level: alpha + x + ramp * x / (x + ramp) with
 * x = bytes / bytes_per_s. The last part is how links without a handshake start: short
 * copies run at half the rate, long ones pay the whole ramp. */
double collective_step_s(const struct collective_level_ask *ask, double bytes);

/* Selects per level by the cluster's rules and adds the levels up. The launch of the slowest
 * level is paid once (twice by the hierarchical all-to-all, which is two operations). */
struct collective_cost collective_cost(const struct collective_ask *ask, bool explain);

/* The same cost as the parts that run one after another, for network models. Their times add
 * up to that of the cost, their bytes to its bytes. */
#define COLLECTIVE_PHASES_MAX 16
struct collective_phase {
    double time_s;
    uint32_t steps;          /* of equal length */
    bool exchange;           /* reaches alltoall_efficiency instead of efficiency */
    double sent_bytes[LEVELS_MAX]; /* per rank, by level; none in a launch */
};
uint32_t collective_phases(const struct collective_ask *ask,
                           struct collective_phase phases[COLLECTIVE_PHASES_MAX]);

/* "mesh+ring": the algorithms of a cost from the innermost level outwards. */
void collective_algorithm_text(const struct collective_cost *cost, char *text, size_t size);

#endif
