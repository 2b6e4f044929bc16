/*
 * The op graph against arithmetic that does not come from it: FLOPs of the model module,
 * the activation formula of Korthikanti et al. (2022), and the exchange volumes worked out in
 * the public analysis of Pangu Ultra MoE (TP 8, expert group 32, two sequences of 8192).
 */
#include <string.h>

#include "../../support/assert_close.h"
#include "../../support/graph_builder.h"
#include "../../support/scenario_builder.h"

static struct arena *arena;

static int start(void **state)
{
    (void)state;
    arena = arena_create("test");
    return 0;
}

static int stop(void **state)
{
    (void)state;
    arena_destroy(arena);
    return 0;
}

static const struct block_ops *layer_of(const struct op_graph *graph, enum block_kind kind)
{
    return op_graph_block(graph, kind, false);
}

/* Every tensor rank does its share of a layer: tp times the FLOPs of one rank are the
 * forward FLOPs of the model arithmetic, and backward is twice forward for matmuls and
 * 2.5 times for flash attention, which computes scores again. */
static void check_layer_flop(const struct scenario *scenario, enum block_kind kind)
{
    const struct op_graph *graph = graph_of(scenario, arena);
    const struct block_ops *block = layer_of(graph, kind);
    const double tokens = graph->tokens;
    const double ranks = (double)graph->layout->tp;
    const double keys = model_visible_keys(graph->model, false, (double)graph->layout->seq_len,
                                           ATTENTION_COUNT_CAUSAL);
    const double router = kind == BLOCK_MOE ? model_router_flop(graph->model) : 0.0;
    const double linear = tokens * (model_linear_flop(graph->model, kind) + router);
    const double attention = tokens * model_attention_flop(graph->model, keys);
    /* Whole on every tensor rank without sequence parallelism: not in these scenarios. */
    assert_close(ranks * list_flop(&block->pass[PASS_FORWARD]), linear + attention, 1e-9);
    assert_close(ranks * list_flop(&block->backward), 2.0 * linear + 2.5 * attention, 1e-9);
    assert_close(list_flop(&block->pass[PASS_BACKWARD_INPUT]) +
                     list_flop(&block->pass[PASS_BACKWARD_WEIGHT]),
                 list_flop(&block->backward), 1e-12);
}

static void test_dense_flop(void **state)
{
    (void)state;
    struct scenario scenario = builder_scenario();
    scenario.model = builder_model("Llama2-70B");
    scenario.parallel.tp = 8;
    scenario.parallel.sequence_parallel = true;
    check_layer_flop(&scenario, BLOCK_DENSE);
}

static void test_mla_moe_flop(void **state)
{
    (void)state;
    struct scenario scenario = builder_scenario();
    scenario.model = builder_model("DeepSeek-V3");
    scenario.parallel.ep = 8;
    check_layer_flop(&scenario, BLOCK_MOE);
    check_layer_flop(&scenario, BLOCK_DENSE);
}

static void test_etp_moe_flop(void **state)
{
    (void)state;
    struct scenario scenario = builder_scenario();
    scenario.model = builder_model("Mixtral-8x7B");
    scenario.parallel.tp = 4;
    scenario.parallel.sequence_parallel = true;
    scenario.parallel.ep = 2;
    scenario.parallel.etp = 4;
    check_layer_flop(&scenario, BLOCK_MOE);
}

/* Pangu Ultra MoE: t = 8192 * 2 / 8 tokens enter a rank, one copy is t * 7680 * 2 B = 31.46 MB,
 * a dispatch carries 8 copies, and a rank computes t * 8 rows on 8 experts: 2048 each. */
static void test_published_exchange(void **state)
{
    (void)state;
    struct scenario scenario = builder_scenario();
    scenario.model = builder_model("DeepSeek-V3");
    scenario.model.hidden_size = 7680;
    scenario.devices = 32;
    scenario.cluster = builder_cluster(8);
    scenario.parallel.tp = 8;
    scenario.parallel.sequence_parallel = true;
    scenario.parallel.ep = 32;
    scenario.parallel.etp = 1;
    scenario.training.seq_len = 8192;
    scenario.training.micro_batch_size = 2;
    scenario.training.global_batch_size = 64;
    const struct op_graph *graph = graph_of(&scenario, arena);
    const struct block_ops *block = layer_of(graph, BLOCK_MOE);
    const struct op *dispatch = list_find(&block->pass[PASS_FORWARD], "dispatch");
    assert_non_null(dispatch);
    assert_close(dispatch->token_bytes, 2048.0 * 7680.0 * 2.0, 1e-12);
    assert_close(dispatch->bytes, 8.0 * 2048.0 * 7680.0 * 2.0, 1e-12);
    const struct op *up = list_find(&block->pass[PASS_FORWARD], "expert_up");
    assert_close(up->compute.m, 2048.0, 1e-12);
    assert_close(up->compute.groups, 8.0, 1e-12);
    assert_close(up->compute.n, 4096.0, 1e-12);
    assert_close(up->compute.k, 7680.0, 1e-12);
}

/* Routed activations follow top_k * s * b * etp / tp, not ep (Megatron-LM issue 6782). */
static void test_rows_do_not_follow_ep(void **state)
{
    (void)state;
    struct scenario scenario = builder_scenario();
    scenario.model = builder_model("Mixtral-8x7B");
    scenario.devices = 8;
    scenario.parallel.ep = 2;
    const struct op_graph *two = graph_of(&scenario, arena);
    scenario.parallel.ep = 8;
    const struct op_graph *eight = graph_of(&scenario, arena);
    assert_close(block_saved_bytes(layer_of(two, BLOCK_MOE)),
                 block_saved_bytes(layer_of(eight, BLOCK_MOE)), 1e-12);
}

/* Korthikanti et al. table 2, tensor and sequence parallel, flash attention (no scores), no
 * dropout: a GPT layer keeps s*b*h*(34 - 3)/t bytes, the 3 being dropout masks: one byte each
 * after attention, after the MLP and ... the scores' is in the part that flash drops. The
 * table's 34 counts two masks of one byte: 32 remain. We keep 4 more bytes per token and
 * head for the softmax sums. */
static void test_activation_bytes(void **state)
{
    (void)state;
    struct scenario scenario = builder_scenario();
    scenario.model.ffn_kind = FFN_PLAIN;
    scenario.model.position = POSITION_LEARNED;
    scenario.model.max_position = 1024;
    scenario.model.ffn_intermediate_size = 4 * scenario.model.hidden_size;
    scenario.parallel.tp = 4;
    scenario.parallel.sequence_parallel = true;
    const struct op_graph *graph = graph_of(&scenario, arena);
    const double s = (double)scenario.training.seq_len;
    const double h = (double)scenario.model.hidden_size;
    const double heads = (double)scenario.model.attention.heads;
    const double expected = s * h * 32.0 / 4.0 + s * heads / 4.0 * 4.0;
    assert_close(block_saved_bytes(layer_of(graph, BLOCK_DENSE)), expected, 1e-9);
}

static void test_recompute_pass(void **state)
{
    (void)state;
    struct scenario scenario = builder_scenario();
    scenario.model = builder_model("DeepSeek-V3");
    scenario.parallel.ep = 8;
    scenario.recompute.modules = MODULE_MLA_KV_UP_PROJ;
    const struct op_graph *graph = graph_of(&scenario, arena);
    const struct block_ops *block = layer_of(graph, BLOCK_MOE);
    assert_non_null(list_find(&block->pass[PASS_RECOMPUTE], "kv_up"));
    assert_null(list_find(&block->pass[PASS_RECOMPUTE], "q_up"));
    assert_null(list_find(&block->pass[PASS_RECOMPUTE], "dispatch"));
    scenario.recompute.modules = MODULE_PERMUTE;
    graph = graph_of(&scenario, arena);
    block = layer_of(graph, BLOCK_MOE);
    assert_non_null(list_find(&block->pass[PASS_RECOMPUTE], "dispatch"));
    assert_null(list_find(&block->pass[PASS_RECOMPUTE], "expert_up"));
    scenario.recompute.modules = MODULE_LAYER;
    graph = graph_of(&scenario, arena);
    block = layer_of(graph, BLOCK_MOE);
    assert_int_equal(block->pass[PASS_RECOMPUTE].count, block->pass[PASS_FORWARD].count);
}

/* Bytes that the additions of weight gradients move, and whether the matmuls add themselves. */
static double added_bytes(const struct block_ops *block)
{
    double bytes = 0.0;
    for (uint32_t i = 0; i < block->backward.count; i++) {
        const struct op *op = &block->backward.ops[i];
        if (strstr(op->name, ".grad_add") != NULL) {
            assert_true(op->in_weight_pass);
            bytes += op->compute.bytes;
        }
    }
    return bytes;
}

/* Unfused, each weight of a layer costs 2 + 4 + 4 bytes per microbatch: the 16-bit gradient and the
 * 32-bit buffer read, the buffer written. Norms take no part, so the weights are those of the
 * linear layers: 4 h^2 + 3 h f at tensor degree 1 and equal head counts. */
static void test_gradients_are_added(void **state)
{
    (void)state;
    struct scenario scenario = builder_scenario();
    scenario.model = builder_model("Llama2-7B");
    const double h = (double)scenario.model.hidden_size;
    const double f = (double)scenario.model.ffn_intermediate_size;
    const double weights = 4.0 * h * h + 3.0 * h * f;
    scenario.fusion.grad_accumulation = false;
    const struct op_graph *graph = graph_of(&scenario, arena);
    const struct block_ops *block = layer_of(graph, BLOCK_DENSE);
    assert_close(added_bytes(block), 10.0 * weights, 1e-12);
    /* The largest gradient, gate and up, is a tensor of its own for a while. */
    assert_close(block->workspace_gradient_bytes, 2.0 * h * 2.0 * f, 1e-12);
    assert_close(list_find(&block->backward, "qkv.wgrad")->compute.result_bytes, 0.0, 0.0);
    scenario.precision.gradients = PRECISION_BF16;
    graph = graph_of(&scenario, arena);
    assert_close(added_bytes(layer_of(graph, BLOCK_DENSE)), 6.0 * weights, 1e-12);
}

/* Fused, the matmul reads and writes the buffer: 8 bytes a weight. */
static void test_matmuls_add_gradients(void **state)
{
    (void)state;
    struct scenario scenario = builder_scenario();
    scenario.model = builder_model("Mixtral-8x7B");
    scenario.fusion.grad_accumulation = true;
    const struct op_graph *graph = graph_of(&scenario, arena);
    const struct block_ops *block = layer_of(graph, BLOCK_MOE);
    assert_close(added_bytes(block), 0.0, 0.0);
    assert_close(block->workspace_gradient_bytes, 0.0, 0.0);
    assert_close(list_find(&block->backward, "expert_up.wgrad")->compute.result_bytes, 8.0, 0.0);
    assert_close(list_find(&block->backward, "qkv.dgrad")->compute.result_bytes, 0.0, 0.0);
    /* No matmul makes the gradient of the embedding: it is added in both cases. */
    const struct model_spec *model = &scenario.model;
    const double table = (double)model->vocab_size * (double)model->hidden_size;
    const struct block_ops *embedding = op_graph_block(graph, BLOCK_EMBEDDING, false);
    assert_close(added_bytes(embedding), 10.0 * table, 1e-12);
    assert_close(embedding->workspace_gradient_bytes, 2.0 * table, 1e-12);
}

/* A loop over experts has a parameter, and so a kernel, for each. */
static void test_looped_experts_add_one_by_one(void **state)
{
    (void)state;
    struct scenario scenario = builder_scenario();
    scenario.model = builder_model("Mixtral-8x7B");
    scenario.fusion.grad_accumulation = false;
    scenario.moe.grouped_matmul = false;
    const struct op_graph *graph = graph_of(&scenario, arena);
    const struct op_list *list = &layer_of(graph, BLOCK_MOE)->backward;
    const double experts = (double)scenario.model.moe.experts;
    assert_close(list_find(list, "expert_up.grad_add")->kernels, experts, 0.0);
    assert_close(list_find(list, "expert_up.grad_add")->compute.bytes,
                 10.0 * experts * 2.0 * (double)scenario.model.hidden_size *
                     (double)scenario.model.moe.intermediate_size,
                 1e-12);
}

/* Names are unique inside a list: explain addresses ops by name. */
static void test_names_unique(void **state)
{
    (void)state;
    struct scenario scenario = builder_scenario();
    scenario.model = builder_model("DeepSeek-V3");
    scenario.model.mtp_layers = 1;
    scenario.model.norms_per_layer = 4;
    scenario.parallel.ep = 8;
    scenario.parallel.tp = 2;
    scenario.parallel.sequence_parallel = true;
    const struct op_graph *graph = graph_of(&scenario, arena);
    for (uint32_t b = 0; b < graph->block_count; b++) {
        const struct op_list *lists[2] = {&graph->blocks[b].pass[PASS_FORWARD],
                                          &graph->blocks[b].backward};
        for (int l = 0; l < 2; l++) {
            for (uint32_t i = 0; i < lists[l]->count; i++) {
                assert_ptr_equal(list_find(lists[l], lists[l]->ops[i].name), &lists[l]->ops[i]);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_dense_flop, start, stop),
        cmocka_unit_test_setup_teardown(test_mla_moe_flop, start, stop),
        cmocka_unit_test_setup_teardown(test_etp_moe_flop, start, stop),
        cmocka_unit_test_setup_teardown(test_published_exchange, start, stop),
        cmocka_unit_test_setup_teardown(test_rows_do_not_follow_ep, start, stop),
        cmocka_unit_test_setup_teardown(test_activation_bytes, start, stop),
        cmocka_unit_test_setup_teardown(test_recompute_pass, start, stop),
        cmocka_unit_test_setup_teardown(test_gradients_are_added, start, stop),
        cmocka_unit_test_setup_teardown(test_matmuls_add_gradients, start, stop),
        cmocka_unit_test_setup_teardown(test_looped_experts_add_one_by_one, start, stop),
        cmocka_unit_test_setup_teardown(test_names_unique, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
