/*
 * test_model.c - parameters by bucket and block, worked by hand from the widths.
 *
 * Counts are whole numbers below 2^53, so most comparisons are exact (ratio 0).
 */
#include "model_fixture.h"

static void assert_params(struct param_count count, double sharded, double replicated,
                          double expert)
{
    assert_close(count.tp_sharded, sharded, 0.0);
    assert_close(count.tp_replicated, replicated, 0.0);
    assert_close(count.expert, expert, 0.0);
}

/* Hidden 512, 8 heads of 64, FFN 2048: four square attention matrices, three of the FFN. */
static void a_plain_dense_layer(void **state)
{
    (void)state;
    struct model_fixture f = model_fixture_open(builder_scenario().model);
    const struct model *model = model_fixture_build(&f);
    assert_accepted(f.errors);
    const struct param_count *params = model->block_params;
    assert_params(params[BLOCK_DENSE], 4.0 * 512 * 512 + 3.0 * 512 * 2048, 2.0 * 512, 0);
    assert_params(params[BLOCK_EMBEDDING], 32000.0 * 512, 0, 0);
    assert_params(params[BLOCK_HEAD], 32000.0 * 512, 512, 0);
    const double layer = param_count_sum(&params[BLOCK_DENSE]);
    assert_close(model->params_total, 8 * layer + 32000.0 * 512 + 512, 0.0);
    assert_close(model->params_active, model->params_total, 0.0);
    assert_close(model->params_embedding, 32000.0 * 512, 0.0);
    assert_within(model->params_mtp, 0.0, 0.0);
    assert_int_equal(model->dense_layers, 8);
    model_fixture_close(&f);
}

/* Key heads narrower than queries; biases of q, k, v are split, that of the output is not; one
 * norm of the width of a head for queries and one for keys. */
static void grouped_queries_biases_and_head_norms(void **state)
{
    (void)state;
    struct model_fixture f =
        model_fixture_open(builder_dense((struct dense_shape){1, 512, 2048, 8, 2, 64, 32000}));
    f.scenario.model.attention.bias = true;
    f.scenario.model.attention.out_bias = true;
    f.scenario.model.attention.qk_norm = true;
    const struct model *model = model_fixture_build(&f);
    assert_accepted(f.errors);
    const double matrices = 512.0 * 512 + 2.0 * 512 * 128 + 512.0 * 512 + 3.0 * 512 * 2048;
    assert_params(model->block_params[BLOCK_DENSE], matrices + 512 + 2 * 128,
                  2 * 512 + 512 + 2 * 64, 0);
    assert_int_equal(model_kv_heads(model), 2);
    model_fixture_close(&f);
}

/* The textbook layer 12 h^2 + 13 h, one matrix for embedding and head, learned positions. The
 * paper prints 174,600 M, with the positions. */
static void gpt3(void **state)
{
    (void)state;
    const double h = 12288;
    struct model_fixture f = model_fixture_open(
        builder_dense((struct dense_shape){96, 12288, 49152, 96, 96, 128, 50257}));
    struct model_spec *spec = &f.scenario.model;
    spec->norm_kind = NORM_LAYER;
    spec->ffn_kind = FFN_PLAIN;
    spec->ffn_bias = true;
    spec->attention.bias = true;
    spec->attention.out_bias = true;
    spec->position = POSITION_LEARNED;
    spec->max_position = 2048;
    spec->tied_embedding = true;
    const struct model *model = model_fixture_build(&f);
    assert_accepted(f.errors);
    assert_close(param_count_sum(&model->block_params[BLOCK_DENSE]), 12 * h * h + 13 * h, 0.0);
    assert_close(model->params_total, 96 * (12 * h * h + 13 * h) + 50257 * h + 2 * h, 0.0);
    assert_close(model->params_embedding, 2048 * h, 0.0); /* tied: only the positions are left */
    assert_close(model->params_total + model->params_embedding, 174600e6, 1e-4);
    /* Both ends of a pipeline hold the matrix. */
    assert_params(model->block_params[BLOCK_EMBEDDING], 50257 * h, 2048 * h, 0);
    assert_params(model->block_params[BLOCK_HEAD], 50257 * h, 2 * h, 0);
    model_fixture_close(&f);
}

/* Pangu Ultra MoE: facts/pangu.md 1.1 works 196.6 M for attention, 47.19 M for an expert,
 * 424.7 M for a dense FFN. The projections down to the latents stay whole. */
static void latent_attention(void **state)
{
    (void)state;
    struct model_fixture f = model_fixture_open(builder_model("Pangu-Ultra-MoE-718B"));
    const struct model *model = model_fixture_build(&f);
    assert_accepted(f.errors);
    const double down = 7680.0 * 1536 + 7680.0 * 576;
    const double up = 1536.0 * 128 * 192 + 512.0 * 128 * 256 + 16384.0 * 7680;
    const double norms = 4 * 7680 + 1536 + 512;
    assert_close(down + up, 196.6e6, 0.0005);
    assert_params(model->block_params[BLOCK_DENSE], up + 3.0 * 7680 * 18432, down + norms, 0);
    assert_params(model->block_params[BLOCK_MOE], up + 3.0 * 7680 * 2048, down + norms + 7680 * 256,
                  256 * 3.0 * 7680 * 2048);
    assert_int_equal(model_qk_head_dim(model), 192);
    assert_int_equal(model_v_head_dim(model), 128);
    assert_int_equal(model_kv_heads(model), 128);
    model_fixture_close(&f);
}

/* Without a query latent, queries are one split matrix. */
static void latent_attention_with_direct_queries(void **state)
{
    (void)state;
    struct model_fixture f = model_fixture_open(builder_model("DeepSeek-16B (V2-Lite shape)"));
    f.scenario.model.attention.bias = true; /* of the down-projection */
    const struct model *model = model_fixture_build(&f);
    assert_accepted(f.errors);
    assert_params(model->block_params[BLOCK_DENSE],
                  2048.0 * 16 * 192 + 512.0 * 16 * 256 + 2048.0 * 2048 + 3.0 * 2048 * 10944,
                  2048.0 * 576 + 512 + 576 + 2 * 2048, 0);
    model_fixture_close(&f);
}

/* facts/pangu.md 1.1: 717.9 B and 39.19 B, MTP adds 12.4 B and 0.74 B without its head. */
static void the_headline_counts(void **state)
{
    (void)state;
    struct model_fixture f = model_fixture_open(builder_model("Pangu-Ultra-MoE-718B"));
    f.scenario.model.mtp_layers = 1;
    const struct model *model = model_fixture_build(&f);
    assert_accepted(f.errors);
    assert_close(model->params_total, 717.9e9, 0.0002);
    assert_close(model->params_active, 39.19e9, 0.0005);
    assert_close(model->params_embedding, 153600.0 * 7680, 0.0);
    assert_close(model->params_mtp, 12.4e9, 0.005);
    assert_close(model->active_params[BLOCK_MTP], 0.74e9, 0.005);
    const double added = model->params_mtp - param_count_sum(&model->block_params[BLOCK_MOE]);
    assert_close(added, 2.0 * 7680 * 7680 + 3 * 7680, 0.0);
    model_fixture_close(&f);
}

/* Shared experts behind a scalar gate; biases of expert matrices belong to the experts. */
static void shared_gate_and_expert_biases(void **state)
{
    (void)state;
    struct model_fixture f = model_fixture_open(builder_scenario().model);
    f.scenario.model.ffn_bias = true;
    f.scenario.model.moe = builder_moe((struct moe_shape){16, 4, 256, 1024, 0});
    f.scenario.model.moe.shared_gate = true;
    f.scenario.model.moe.router_bias = true; /* steers, is not trained, counts nothing */
    const struct model *model = model_fixture_build(&f);
    assert_accepted(f.errors);
    const double attention = 4.0 * 512 * 512;
    const double expert = 3.0 * 512 * 256 + 2 * 256 + 512;
    assert_params(model->block_params[BLOCK_MOE], attention + 3.0 * 512 * 1024 + 2 * 1024,
                  2 * 512 + 512 + 512 * 16 + 512, 16 * expert);
    const double all = param_count_sum(&model->block_params[BLOCK_MOE]);
    assert_close(model->active_params[BLOCK_MOE], all - 12 * expert, 0.0);
    model_fixture_close(&f);
}

static void which_layers_are_moe_and_which_have_the_window(void **state)
{
    (void)state;
    struct model_fixture f = model_fixture_open(builder_scenario().model);
    f.scenario.model.layers = 7;
    f.scenario.model.moe = builder_moe((struct moe_shape){16, 4, 256, 0, 2});
    f.scenario.model.moe.layer_freq = 3;
    f.scenario.model.attention.window = 128;
    f.scenario.model.attention.window_every = 2;
    f.scenario.model.mtp_layers = 1;
    const struct model *model = model_fixture_build(&f);
    assert_accepted(f.errors);
    static const bool moe[7] = {false, false, true, false, false, true, false};
    for (uint32_t i = 0; i < 7; i++) {
        assert_int_equal(model->layer_kind[i], moe[i] ? BLOCK_MOE : BLOCK_DENSE);
        assert_int_equal(model->layer_windowed[i], i % 2 == 0);
    }
    assert_int_equal(model->moe_layers, 2);
    assert_int_equal(model->dense_layers, 5);
    assert_int_equal(model->mtp_layer_kind, BLOCK_DENSE); /* like layer 6 */
    model_fixture_close(&f);
}

static void blocks_have_names(void **state)
{
    (void)state;
    assert_string_equal(block_kind_name(BLOCK_EMBEDDING), "embedding");
    assert_string_equal(block_kind_name(BLOCK_HEAD), "head");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plain_dense_layer),
        cmocka_unit_test(grouped_queries_biases_and_head_norms),
        cmocka_unit_test(gpt3),
        cmocka_unit_test(latent_attention),
        cmocka_unit_test(latent_attention_with_direct_queries),
        cmocka_unit_test(the_headline_counts),
        cmocka_unit_test(shared_gate_and_expert_biases),
        cmocka_unit_test(which_layers_are_moe_and_which_have_the_window),
        cmocka_unit_test(blocks_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
