/* graph_builder.c - model, cluster, layout and op graph of a hand-written scenario. */
#include "graph_builder.h"

#include <stdio.h>
#include <string.h>

#include "assert_close.h"

const struct op_graph *graph_of(const struct scenario *scenario, struct arena *arena)
{
    struct error_list errors;
    error_list_init(&errors, arena);
    const struct model *model = model_build(scenario, arena, &errors);
    const struct cluster *cluster = cluster_build(scenario, arena, &errors);
    const struct layout *layout = NULL;
    if (model != NULL && cluster != NULL) {
        const struct layout_ask ask = {.scenario = scenario, .model = model, .cluster = cluster};
        layout = layout_build(&ask, arena, &errors);
    }
    const struct op_graph *graph = NULL;
    if (layout != NULL) {
        const struct op_graph_ask ask = {.scenario = scenario, .model = model, .layout = layout};
        graph = op_graph_build(&ask, arena, &errors);
    }
    if (graph == NULL) {
        print_error("%s", error_list_text(&errors, arena));
    }
    assert_non_null(graph);
    return graph;
}

double list_flop(const struct op_list *list)
{
    double sum = 0.0;
    for (uint32_t i = 0; i < list->count; i++) {
        sum += op_flop(&list->ops[i]);
    }
    return sum;
}

const struct op *list_find(const struct op_list *list, const char *name)
{
    for (uint32_t i = 0; i < list->count; i++) {
        if (strcmp(list->ops[i].name, name) == 0) {
            return &list->ops[i];
        }
    }
    return NULL;
}

double block_saved_bytes(const struct block_ops *block)
{
    double sum = 0.0;
    for (uint32_t i = 0; i < block->saved_count; i++) {
        sum += block->saved[i].bytes;
    }
    return sum;
}
