/*
 * routing_internal.h - what the files of src/routing share.
 */
#ifndef STEPSIM_ROUTING_INTERNAL_H
#define STEPSIM_ROUTING_INTERNAL_H

#include "stepsim/placement.h"
#include "stepsim/routing.h"

enum load_kind {
    LOAD_BALANCED,
    LOAD_ZIPF,
    LOAD_DIRICHLET,
    LOAD_HISTOGRAM,
    LOAD_HOT_EXPERTS,
    LOAD_HOT_RANK,
    LOAD_SPREAD_HEAT,
    LOAD_RAGGED_SOURCE,
    LOAD_EMPTY_RANK,
    LOAD_ROTATING_HOTSPOT,
    LOAD_BURST,
    LOAD_KIND_COUNT
};

/* The layer of a draw, and for whom it is. */
struct draw_ids {
    uint32_t layer, replica, microbatch, step;
};

/* Loads of one layer's experts before drift and auxiliary loss; mean 1. */
struct load_shape {
    const struct moe_run_spec *spec;
    enum load_kind kind;
    uint32_t experts, positions, top_k;
};
enum load_kind load_kind_of(const struct moe_run_spec *spec);
/* False with an error if the keys of the load cannot be had with this model and layout. */
bool load_shape_check(const struct load_shape *shape, const struct scenario *scenario,
                      struct error_list *errors);
void load_draw(const struct load_shape *shape, struct draw_ids ids, double *load,
               struct arena *scratch);
/* Cuts loads above experts / top_k and gives the rest to the others. */
void load_cap(double *load, uint32_t experts, uint32_t top_k);

/* Nodes of an expert group, and how many of them a token may reach. */
struct node_limit {
    uint32_t nodes, limit;   /* limit 0: no limit */
    const uint32_t *node_of; /* [experts]: where they are under the static placement */
};
/* Cuts the load of nodes above nodes / limit and gives the rest to the other nodes. */
void load_limit_nodes(const struct node_limit *nodes, double *load, uint32_t experts,
                      struct arena *scratch);
/* The first digits of a value out of pow() and the like, whose last digits may differ from one C
 * library to another. */
double load_rounded(double value);

/* Experts exchange their loads until the share `budget` of the layer's load has moved; what is
 * left or overdrawn stays in *budget. */
void load_drift(double *load, uint32_t experts, double *budget, struct rng *rng);

/* Tokens per layer and expert out of a file. */
struct load_table {
    uint32_t steps;     /* rows of time; step t reads row t % steps */
    const double *load; /* [(step * layers + layer) * experts + expert], mean 1 per layer */
};
struct load_table_ask {
    const struct scenario *scenario;
    const bool *moe_layer; /* [layers] */
    uint32_t layers, experts, top_k;
};
bool load_table_read(const struct load_table_ask *ask, struct arena *arena,
                     struct error_list *errors, struct load_table *table);

#endif
