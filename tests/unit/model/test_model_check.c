/* test_model_check.c - combinations that no model can have. */
#include "model_fixture.h"

static struct model_spec dense(void)
{
    return builder_dense((struct dense_shape){4, 512, 2048, 8, 2, 64, 32000});
}

static struct model_spec moe(void)
{
    struct model_spec spec = dense();
    spec.moe = builder_moe((struct moe_shape){16, 4, 256, 0, 1});
    return spec;
}

static struct model_spec mla(void)
{
    struct model_spec spec = dense();
    spec.attention = builder_mla(8, 128);
    return spec;
}

static void assert_model_refused(struct model_spec spec, enum error_code code, const char *key,
                                 const char *fragment)
{
    struct model_fixture f = model_fixture_open(spec);
    assert_null(model_fixture_build(&f));
    assert_refused(f.errors, code, fragment);
    assert_string_equal(f.errors->items[0].key, key);
    model_fixture_close(&f);
}

static void the_bases_are_legal(void **state)
{
    (void)state;
    struct model_spec (*const bases[])(void) = {dense, moe, mla};
    for (size_t i = 0; i < sizeof bases / sizeof bases[0]; i++) {
        struct model_fixture f = model_fixture_open(bases[i]());
        model_fixture_build(&f);
        assert_accepted(f.errors);
        model_fixture_close(&f);
    }
}

static void sizes_that_every_model_has(void **state)
{
    (void)state;
    struct model_spec spec = dense();
    spec.layers = 0;
    assert_model_refused(spec, ERROR_missing_key, "model.layers", "at least one layer");
    spec = dense();
    spec.hidden_size = 0;
    assert_model_refused(spec, ERROR_missing_key, "model.hidden_size", "every matrix");
    spec = dense();
    spec.vocab_size = 0;
    assert_model_refused(spec, ERROR_missing_key, "model.vocab_size", "embedding and head");
    spec = dense();
    spec.norms_per_layer = 0;
    assert_model_refused(spec, ERROR_missing_key, "model.norm.per_layer", "2 norms");
    spec = dense();
    spec.ffn_intermediate_size = 0;
    assert_model_refused(spec, ERROR_missing_key, "model.ffn.intermediate_size", "dense layers");
}

static void attention_of_one_width(void **state)
{
    (void)state;
    struct model_spec spec = dense();
    spec.attention.kv_heads = 3;
    assert_model_refused(spec, ERROR_conflicting_keys, "model.attention.kv_heads",
                         "8 heads do not divide into 3");
    spec.attention.kv_heads = 0;
    assert_model_refused(spec, ERROR_missing_key, "model.attention.kv_heads", "grouped-query");
    spec = dense();
    spec.attention.kind = ATTENTION_MHA;
    assert_model_refused(spec, ERROR_conflicting_keys, "model.attention.kv_heads", "kind gqa");
    spec = dense();
    spec.attention.head_dim = 0;
    assert_model_refused(spec, ERROR_missing_key, "model.attention.head_dim", "width of a head");
    spec = dense();
    spec.attention.heads = 0;
    assert_model_refused(spec, ERROR_missing_key, "model.attention.heads", "at least one head");
    spec = dense();
    spec.attention.window = 128;
    spec.attention.window_every = 0;
    assert_model_refused(spec, ERROR_missing_key, "model.attention.window_every", "1: every layer");
}

/* Attention with no key heads written is multi-head attention. */
static void multi_head_attention_needs_no_key_heads(void **state)
{
    (void)state;
    struct model_spec spec = dense();
    spec.attention.kind = ATTENTION_MHA;
    spec.attention.kv_heads = 0;
    struct model_fixture f = model_fixture_open(spec);
    assert_int_equal(model_kv_heads(model_fixture_build(&f)), 8);
    model_fixture_close(&f);
}

static void latent_attention(void **state)
{
    (void)state;
    struct model_spec spec = mla();
    spec.attention.kv_lora_rank = 0;
    assert_model_refused(spec, ERROR_missing_key, "model.attention.kv_lora_rank", "latent");
    spec = mla();
    spec.attention.v_head_dim = 0;
    assert_model_refused(spec, ERROR_missing_key, "model.attention.v_head_dim", "latent");
    spec = mla();
    spec.attention.qk_nope_head_dim = 0;
    spec.attention.qk_rope_head_dim = 0;
    assert_model_refused(spec, ERROR_missing_key, "model.attention.qk_nope_head_dim", "latent");
    spec = mla();
    spec.attention.qk_norm = true;
    assert_model_refused(spec, ERROR_conflicting_keys, "model.attention.qk_norm", "on the latents");
}

static void experts(void **state)
{
    (void)state;
    struct model_spec spec = moe();
    spec.moe.top_k = 17;
    assert_model_refused(spec, ERROR_conflicting_keys, "model.moe.top_k", "17 of 16 experts");
    spec.moe.top_k = 0;
    assert_model_refused(spec, ERROR_conflicting_keys, "model.moe.top_k", "1 to 16 would work");
    spec = moe();
    spec.moe.intermediate_size = 0;
    assert_model_refused(spec, ERROR_missing_key, "model.moe.intermediate_size", "their width");
    spec = moe();
    spec.moe.layer_freq = 0;
    assert_model_refused(spec, ERROR_missing_key, "model.moe.layer_freq", "which layers");
    spec = moe();
    spec.moe.first_dense_layers = 4;
    assert_model_refused(spec, ERROR_conflicting_keys, "model.moe.first_dense_layers", "no layer");
    spec = moe();
    spec.moe.shared_gate = true;
    assert_model_refused(spec, ERROR_missing_key, "model.moe.shared_intermediate_size", "shared");
    spec = moe();
    spec.moe.experts = 0;
    assert_model_refused(spec, ERROR_conflicting_keys, "model.moe.experts", "256 routed");
}

/* 16 experts in 8 groups of 2: 2 groups hold 4 experts, enough for top-4; 1 does not. */
static void routing_groups(void **state)
{
    (void)state;
    struct model_spec spec = moe();
    spec.moe.groups = 8;
    spec.moe.groups_top_k = 2;
    struct model_fixture f = model_fixture_open(spec);
    model_fixture_build(&f);
    assert_accepted(f.errors);
    model_fixture_close(&f);
    spec.moe.groups_top_k = 1;
    assert_model_refused(spec, ERROR_conflicting_keys, "model.moe.groups_top_k", "hold 2 experts");
    spec.moe.groups_top_k = 9;
    assert_model_refused(spec, ERROR_conflicting_keys, "model.moe.groups_top_k", "9 of 8 groups");
    spec.moe.groups = 3;
    assert_model_refused(spec, ERROR_conflicting_keys, "model.moe.groups", "3 groups");
}

static void positions(void **state)
{
    (void)state;
    struct model_spec spec = dense();
    spec.position = POSITION_LEARNED;
    assert_model_refused(spec, ERROR_missing_key, "model.max_position", "length of their table");
    spec.max_position = 1023;
    assert_model_refused(spec, ERROR_conflicting_keys, "training.seq_len",
                         "1024 tokens pass the 1023");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bases_are_legal),
        cmocka_unit_test(sizes_that_every_model_has),
        cmocka_unit_test(attention_of_one_width),
        cmocka_unit_test(multi_head_attention_needs_no_key_heads),
        cmocka_unit_test(latent_attention),
        cmocka_unit_test(experts),
        cmocka_unit_test(routing_groups),
        cmocka_unit_test(positions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
