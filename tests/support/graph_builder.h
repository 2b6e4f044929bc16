/*
 * graph_builder.h - from a hand-written scenario to its op graph, for tests.
 */
#ifndef TEST_GRAPH_BUILDER_H
#define TEST_GRAPH_BUILDER_H

#include "stepsim/op_graph.h"

/* Builds model, cluster, layout and op graph; asserts that nothing is refused. */
const struct op_graph *graph_of(const struct scenario *scenario, struct arena *arena);

/* Sum of op_flop over a list. */
double list_flop(const struct op_list *list);

/* The op of this name; NULL if the list has none. */
const struct op *list_find(const struct op_list *list, const char *name);

/* Sum of all tensors that a block keeps. */
double block_saved_bytes(const struct block_ops *block);

#endif
