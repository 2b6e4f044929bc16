/* test_model_flop.c - FLOPs of one token, worked by hand from the widths. */
#include "model_fixture.h"

static const struct flop_convention full = {ATTENTION_COUNT_FULL, false, false};
static const struct flop_convention causal = {ATTENTION_COUNT_CAUSAL, false, false};

/* Two FLOPs per weight of every matrix, keys and values of S or S/2 tokens. */
static void a_dense_model(void **state)
{
    (void)state;
    struct model_fixture f =
        model_fixture_open(builder_dense((struct dense_shape){2, 512, 2048, 8, 2, 64, 32000}));
    f.scenario.model.attention.bias = true; /* biases are no matmuls */
    const struct model *model = model_fixture_build(&f);
    const double layer = 2.0 * (2.0 * 512 * 512 + 2.0 * 512 * 128 + 3.0 * 512 * 2048);
    const double head = 2.0 * 512 * 32000;
    assert_close(model_linear_flop(model, BLOCK_DENSE), layer, 0.0);
    assert_close(model_linear_flop(model, BLOCK_HEAD), head, 0.0);
    assert_within(model_linear_flop(model, BLOCK_EMBEDDING), 0.0, 0.0);
    assert_close(model_attention_flop(model, 1000), 2.0 * 8 * (64 + 64) * 1000, 0.0);
    assert_close(model_train_flop_per_token(model, 1024, &full),
                 3 * (2 * (layer + 2.0 * 8 * 128 * 1024) + head), 1e-15);
    assert_close(model_train_flop_per_token(model, 1024, &causal),
                 3 * (2 * (layer + 2.0 * 8 * 128 * 512) + head), 1e-15);
    model_fixture_close(&f);
}

/* A plain FFN has no gate: two matrices instead of three. */
static void a_plain_ffn(void **state)
{
    (void)state;
    struct model_fixture f = model_fixture_open(builder_scenario().model);
    f.scenario.model.ffn_kind = FFN_PLAIN;
    const struct model *model = model_fixture_build(&f);
    assert_close(model_linear_flop(model, BLOCK_DENSE), 2.0 * (4.0 * 512 * 512 + 2.0 * 512 * 2048),
                 0.0);
    model_fixture_close(&f);
}

static void experts_that_a_token_visits(void **state)
{
    (void)state;
    struct model_fixture f = model_fixture_open(builder_scenario().model);
    f.scenario.model.moe = builder_moe((struct moe_shape){16, 4, 256, 1024, 0});
    f.scenario.model.moe.shared_gate = true;
    const struct model *model = model_fixture_build(&f);
    const double moe = 2.0 * (4.0 * 512 * 512 + 4 * 3.0 * 512 * 256 + 3.0 * 512 * 1024 + 512);
    assert_close(model_linear_flop(model, BLOCK_MOE), moe, 0.0);
    assert_close(model_router_flop(model), 2.0 * 512 * 16, 0.0);
    const struct flop_convention router = {ATTENTION_COUNT_FULL, false, true};
    assert_close(model_train_flop_per_token(model, 64, &router) -
                     model_train_flop_per_token(model, 64, &full),
                 3 * 8 * 2.0 * 512 * 16, 1e-12);
    model_fixture_close(&f);
}

/* qk width 192 and v width 128; F of the headline (facts/pangu.md 2.2): 371.5 GFLOP/token with MTP
 * and its head, 357.9 without. Those figures count the router; leaving it out takes 0.7 off. */
static void the_headline_flops(void **state)
{
    (void)state;
    struct model_fixture f = model_fixture_open(builder_model("Pangu-Ultra-MoE-718B"));
    f.scenario.model.mtp_layers = 1;
    const struct model *model = model_fixture_build(&f);
    assert_close(model_attention_flop(model, 8192), 2.0 * 128 * (192 + 128) * 8192, 0.0);
    assert_close(model_linear_flop(model, BLOCK_MTP),
                 2.0 * 2 * 7680 * 7680 + model_linear_flop(model, BLOCK_MOE), 0.0);
    const struct flop_convention all = {ATTENTION_COUNT_FULL, true, true};
    const struct flop_convention headline = {ATTENTION_COUNT_FULL, true, false};
    const struct flop_convention no_mtp = {ATTENTION_COUNT_FULL, false, true};
    const struct flop_convention half = {ATTENTION_COUNT_CAUSAL, false, true};
    assert_close(model_train_flop_per_token(model, 8192, &all), 371.5e9, 0.0002);
    assert_close(model_train_flop_per_token(model, 8192, &headline), 371.5e9, 0.002);
    assert_close(model_train_flop_per_token(model, 8192, &no_mtp), 357.9e9, 0.0002);
    assert_close(model_train_flop_per_token(model, 4096, &half), 265.8e9, 0.0003);
    model_fixture_close(&f);
}

/* A token's layers, MTP and head add up to the model. */
static void parts_add_up(void **state)
{
    (void)state;
    struct model_fixture f = model_fixture_open(builder_model("Moonlight-16B"));
    f.scenario.model.mtp_layers = 2;
    const struct model *model = model_fixture_build(&f);
    const struct flop_convention all = {ATTENTION_COUNT_CAUSAL, true, true};
    double sum = model_linear_flop(model, BLOCK_HEAD) + 2 * model_mtp_flop(model, 4096, &all);
    for (uint32_t i = 0; i < model->layers; i++)
        sum += model_layer_flop(model, i, 4096, &all);
    assert_close(model_train_flop_per_token(model, 4096, &all), 3 * sum, 1e-14);
    model_fixture_close(&f);
}

/* A window of 128 in 4096 tokens: the first 128 queries see 64 on average, the others 128:
 * (128 * 64 + 3968 * 128) / 4096 = 126. Below the window's length it does not matter. */
static void windows(void **state)
{
    (void)state;
    struct model_fixture f = model_fixture_open(builder_model("GPT-OSS-120B"));
    const struct model *model = model_fixture_build(&f);
    assert_close(model_visible_keys(model, true, 4096, ATTENTION_COUNT_CAUSAL), 126.0, 1e-15);
    assert_close(model_visible_keys(model, true, 4096, ATTENTION_COUNT_FULL), 128.0, 0.0);
    assert_close(model_visible_keys(model, false, 4096, ATTENTION_COUNT_CAUSAL), 2048.0, 0.0);
    assert_close(model_visible_keys(model, true, 128, ATTENTION_COUNT_CAUSAL), 64.0, 0.0);
    assert_close(model_visible_keys(model, true, 100, ATTENTION_COUNT_CAUSAL), 50.0, 0.0);
    assert_close(model_visible_keys(model, true, 100, ATTENTION_COUNT_FULL), 100.0, 0.0);
    model_fixture_close(&f);
}

/* Attention of a packed batch grows with the sum of squares, the rest with the sum. */
static void packed_samples(void **state)
{
    (void)state;
    static const double lengths[] = {512, 1024, 2048};
    struct model_fixture f = model_fixture_open(builder_model("Llama2-7B"));
    const struct model *model = model_fixture_build(&f);
    const double linear = model_train_flop_per_token(model, 0, &causal);
    const double squares = 512.0 * 512 + 1024.0 * 1024 + 2048.0 * 2048;
    const double attention = 3 * 32 * model_attention_flop(model, 1) * squares / 2;
    assert_close(model_train_flop_per_batch(model, lengths, 3, &causal), 3584 * linear + attention,
                 1e-13);
    model_fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dense_model),
        cmocka_unit_test(a_plain_ffn),
        cmocka_unit_test(experts_that_a_token_visits),
        cmocka_unit_test(the_headline_flops),
        cmocka_unit_test(parts_add_up),
        cmocka_unit_test(windows),
        cmocka_unit_test(packed_samples),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
