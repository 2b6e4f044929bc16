/*
 * test_cases_memory.c - public cases of memory (M) that counting decides: parameters, states,
 * logits, kept activations. Scenarios are written out here, expected values and tolerances come
 * from tests/data/cases.csv. Cases whose answer is a measured peak or a measured time are rows
 * of docs/VALIDATION.md instead.
 */
#include <stdlib.h>
#include <string.h>

#include "case_list.h"
#include "stepsim/arena.h"
#include "stepsim/memory_model.h"
#include "stepsim/run.h"

static struct case_table *table;
static struct arena *arena;

#define MIB (1024.0 * 1024.0)
#define GIB (1024.0 * MIB)

static struct run prepare(const char *text)
{
    struct error_list errors;
    error_list_init(&errors, arena);
    const struct scenario_source source = {
        .text = text, .text_name = "case.yaml", .config_dir = STEPSIM_SOURCE_DIR "/configs"};
    const struct scenario *scenario = scenario_load(&source, arena, &errors);
    struct run run;
    if (scenario == NULL || !run_prepare(&run, scenario, arena, &errors))
        fail_msg("%s", error_list_text(&errors, arena));
    return run;
}

static double static_bytes(const struct run *run, uint32_t stage)
{
    const struct stage_memory memory = memory_model_stage(run->graph, stage);
    return memory.weights + memory.gradients + memory.optimizer;
}

static double expected(const char *id, const char *key, uint32_t item)
{
    return case_expected(table, case_row(table, id), key, item);
}

static double bytes_per_parameter(const char *text)
{
    const struct run run = prepare(text);
    const struct stage_memory memory = memory_model_stage(run.graph, 0);
    return static_bytes(&run, 0) / param_count_sum(&memory.params);
}

static void m01(void **state)
{
    (void)state;
    const char *alone = "model: llama2_7b\ncluster: a100_selene\ndevices: 1\n"
                        "training: {seq_len: 4096, micro_batch_size: 1, global_batch_size: 8}\n";
    const char *eight = "model: llama2_7b\ncluster: a100_selene\ndevices: 8\n"
                        "training: {seq_len: 4096, micro_batch_size: 1, global_batch_size: 8}\n";
    assert_close(bytes_per_parameter(alone), expected("M01", "bytes_dp1", 0), 1e-9);
    assert_close(bytes_per_parameter(eight), expected("M01", "bytes_dp8", 0), 1e-9);
}

static void m03(void **state)
{
    (void)state;
    const struct run run =
        prepare("model: llama2_7b\ncluster: atlas_900_a2_pod\ndevices: 8\n"
                "parallel: {pp: 8, stages: even}\n"
                "training: {seq_len: 4096, micro_batch_size: 1, global_batch_size: 1}\n");
    assert_close(static_bytes(&run, 0) / MIB, expected("M03", "static_mib", 0), 0.01);
    assert_close(static_bytes(&run, 3) / MIB, expected("M03", "static_mib", 1), 0.01);
    assert_close(static_bytes(&run, 7) / MIB, expected("M03", "static_mib", 2), 0.01);
}

/* The stage with the MTP module holds its own embedding and head (memory.mtp_own_embedding). */
static void m05(void **state)
{
    (void)state;
    const struct run run =
        prepare("model: {base: deepseek_v3, layers: 2, moe: {experts: 16, first_dense_layers: 1}}\n"
                "cluster: atlas_900_a2_pod\ndevices: 8\n"
                "parallel: {pp: 2, ep: 4, etp: 1, stages: {noop_layers: [2, 3]}}\n"
                "precision: {reuse_fp32_param: true}\nrecompute: {modules: [layer]}\n"
                "training: {seq_len: 4096, micro_batch_size: 1, global_batch_size: 8}\n");
    assert_close(static_bytes(&run, 0) / MIB, expected("M05", "static_mib", 0), 0.01);
    assert_close(static_bytes(&run, 1) / MIB, expected("M05", "static_mib", 1), 0.01);
}

static void m09(void **state)
{
    (void)state;
    const struct run run =
        prepare("model: llama2_7b\ncluster: atlas_900_a2_pod\ndevices: 8\n"
                "parallel: {tp: 2, pp: 4, vpp: 4, stages: even}\nschedule: {kind: interleaved}\n"
                "precision: {reuse_fp32_param: true}\n"
                "training: {seq_len: 4096, micro_batch_size: 1, global_batch_size: 32}\n");
    for (uint32_t stage = 0; stage < 4; stage++)
        assert_close(static_bytes(&run, stage) / MIB, expected("M09", "static_mib", stage), 0.01);
}

/* What the head keeps for the loss, per microbatch. */
static double logits(const struct run *run)
{
    const struct block_ops *head = op_graph_block(run->graph, BLOCK_HEAD, false);
    return memory_model_kept(run->graph, head, false, 1.0).logits;
}

static void m11(void **state)
{
    (void)state;
    const struct run run =
        prepare("model: {base: qwen2_5_7b, layers: 2, vocab_size: 151936}\n"
                "cluster: atlas_900_a2_pod\ndevices: 8\n"
                "parallel: {pp: 2, cp: {size: 2, method: ulysses}, stages: even}\n"
                "training: {seq_len: 32768, micro_batch_size: 1, global_batch_size: 64}\n");
    assert_close(logits(&run) / MIB, expected("M11", "pred", 0), 0.001);
    assert_close(logits(&run) / MIB, expected("M11", "extra_last_stage_mib", 0), 0.10);
}

/* 4 s b ffn / tp L: silu and product of an unfused SwiGLU, two tensors of two bytes. The third
 * row is an outlier of the source. */
static void m15(void **state)
{
    (void)state;
    static const uint32_t rows[] = {0, 1, 3, 4};
    const size_t row = case_row(table, "M15");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const uint32_t tp = case_number(table, row, "tp", rows[i], 1);
        const char *text = arena_printf(
            arena,
            "model: llama2_7b\ncluster: atlas_900_a2_pod\ndevices: %u\n"
            "parallel: {tp: %u}\nfusion: {swiglu: false}\nrecompute: {modules: [activation]}\n"
            "training: {seq_len: %u, micro_batch_size: %u, global_batch_size: %u}\n",
            tp, tp, case_number(table, row, "seq", rows[i], 1),
            case_number(table, row, "mbs", rows[i], 1), case_number(table, row, "mbs", rows[i], 1));
        const struct run run = prepare(text);
        const struct block_ops *layer = op_graph_block(run.graph, BLOCK_DENSE, false);
        const double saved = 32.0 * memory_model_kept(run.graph, layer, true, 1.0).recomputed;
        assert_close(saved / GIB, expected("M15", "saved_gib", rows[i]), 0.01);
    }
}

static void m17(void **state)
{
    (void)state;
    const struct run run =
        prepare("model: qwen3_30b_a3b\ncluster: h100_dgx\ndevices: 8\n"
                "parallel: {ep: 8, etp: 1}\n"
                "training: {seq_len: 4096, micro_batch_size: 1, global_batch_size: 8}\n");
    assert_close(static_bytes(&run, 0) / GIB, expected("M17", "static_gib", 0), 0.02);
    struct error_list errors;
    error_list_init(&errors, arena);
    const struct run_options options = {.steps = 1};
    struct run simulated;
    assert_true(run_simulate(&simulated, run.scenario, &options, arena, &errors));
    assert_false(simulated.report->fits);
}

/* 6 + 12/2 bytes of 4.1055e9 parameters. */
static void m21(void **state)
{
    (void)state;
    const double each = bytes_per_parameter(
        "model: llama2_13b\ncluster: a100_selene\ndevices: 8\nparallel: {tp: 4}\n"
        "training: {seq_len: 4096, micro_batch_size: 1, global_batch_size: 2}\n");
    assert_close(4.1055e9 * each / MIB, expected("M21", "static_mib", 0), 0.002);
}

static void m25(void **state)
{
    (void)state;
    const struct run run =
        prepare("model: {base: qwen2_5_7b, vocab_size: 248320}\ncluster: h100_dgx\ndevices: 2\n"
                "parallel: {tp: 2}\nfusion: {cross_entropy: true}\n"
                "training: {seq_len: 9216, micro_batch_size: 1, global_batch_size: 1}\n");
    assert_close(logits(&run) / GIB, expected("M25", "logits_gib", 0), 0.03);
}

/* The 32-bit copy is what a fused loss does not keep. */
static double fp32_copy(uint32_t chunks)
{
    static const char format[] =
        "model: {base: qwen2_5_7b, vocab_size: 151936}\ncluster: h100_dgx\ndevices: 1\n"
        "fusion: {cross_entropy: %s}\nmemory: {logits_chunks: %u}\n"
        "training: {seq_len: 8192, micro_batch_size: 1, global_batch_size: 1}\n";
    const struct run whole = prepare(arena_printf(arena, format, "false", chunks));
    const struct run fused = prepare(arena_printf(arena, format, "true", chunks));
    return logits(&whole) - logits(&fused);
}

static void m27(void **state)
{
    (void)state;
    assert_close(fp32_copy(1) / GIB, expected("M27", "gib", 0), 0.002);
    assert_close(fp32_copy(8) / GIB, expected("M27", "chunked", 0), 0.002);
}

static const char slice[] =
    "model: {base: deepseek_v3, layers: 4, mtp_layers: 0, moe: {first_dense_layers: 1}}\n"
    "cluster: b200_dgx\ndevices: 8\nparallel: {pp: %u, ep: %u, etp: 1, stages: even}\n"
    "training: {seq_len: 4096, micro_batch_size: 1, global_batch_size: 32}\n";

static void m33(void **state)
{
    (void)state;
    const struct run whole = prepare(arena_printf(arena, slice, 1, 8));
    const struct run two = prepare(arena_printf(arena, slice, 2, 4));
    assert_close(static_bytes(&whole, 0) / GIB, expected("M33", "static_gib", 0), 0.03);
    assert_close(static_bytes(&two, 1) / GIB, expected("M33", "static_gib", 1), 0.03);
}

int main(void)
{
    static const struct CMUnitTest cases[] = {
        CASE_TEST(m01), CASE_TEST(m03), CASE_TEST(m05), CASE_TEST(m09),
        CASE_TEST(m11), CASE_TEST(m15), CASE_TEST(m17), CASE_TEST(m21),
        CASE_TEST(m25), CASE_TEST(m27), CASE_TEST(m33),
    };
    arena = arena_create("cases");
    table = case_table_read(STEPSIM_SOURCE_DIR "/tests/data/cases.csv", arena);
    const int failed = table != NULL ? cmocka_run_group_tests(cases, NULL, NULL) : 1;
    arena_destroy(arena);
    return failed;
}
