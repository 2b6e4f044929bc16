/*
 * test_kernels.c - predicted against measured kernels of Ascend devices.
 *
 * Every row is a published measurement with the tolerance that the model keeps today; the
 * table that the test prints is the one of docs/models/compute.md. Tolerances are
 * ratios: 0.10 allows 1/1.10 to 1.10. A wide one is a known miss, explained beside it.
 *
 * The constants of the devices were fitted to some of these rows (see the `source` of
 * matmul_efficiency and attention_efficiency in configs/devices), so this test guards the
 * model and the fit together; rows marked "not fitted" are predictions.
 */
#include "stepsim/compute_cost.h"

#include <stdio.h>
#include <string.h>

#include "assert_close.h"
#include "stepsim/arena.h"

/* A row. The device file may be cut to the part that was measured: other cores or peak. */
struct row {
    const char *what;
    const char *device;
    struct compute_ask ask;
    double measured_s;
    double tolerance;
    const char *source;
    double cores, peak_flop_per_s; /* 0: as in the file */
    double host_s;                 /* host launch contained in the measurement */
};

#define US 1e-6
#define MATMUL(rows, columns, inner)                                                               \
    {                                                                                              \
        .kind = COMPUTE_MATMUL, .m = (rows), .n = (columns), .k = (inner),                         \
        .weight_bytes_per_element = 2.0                                                            \
    }
#define GROUPED(count, rows, columns, inner, element)                                              \
    {                                                                                              \
        .kind = COMPUTE_GROUPED_MATMUL, .groups = (count), .m = (rows), .n = (columns),            \
        .k = (inner), .weight_bytes_per_element = (element)                                        \
    }
#define ONE_HEAD(length)                                                                           \
    {                                                                                              \
        .kind = COMPUTE_ATTENTION_FORWARD, .queries = (length), .keys = (length),                  \
        .sequence = (length), .batch = 1, .heads = 1, .kv_heads = 1, .qk_dim = 128, .v_dim = 128   \
    }
#define VECTOR(moved)                                                                              \
    {                                                                                              \
        .kind = COMPUTE_VECTOR, .bytes = (moved), .kernels = 1                                     \
    }

/* Percent of the 353.9 TFLOP/s of a 910B2 reached by one head of 128 on S x S, as a time. */
#define OF_PEAK(length, percent) (4.0 * (length) * (length)*128 / (353.9e12 * (percent) / 100))

/* The source comes last, behind it whatever else a row states. */
#define ROW(name, file, question, seconds, allowed, ...)                                           \
    {                                                                                              \
        .what = (name), .device = (file), .ask = question, .measured_s = (seconds),                \
        .tolerance = (allowed), .source = __VA_ARGS__                                              \
    }

#define PTO   "PTO-ISA, matmul on an A3 die"
#define CATL  "catlass 04_matmul_summary, padded kernel"
#define ASCC  "Ascend C best practice, CANN 8.5, optimised kernel"
#define DGA   "DeepGEMM-Ascend README"
#define GEMS  "FlagGems#6325, torch_npu fp16, chip not named"
#define FA    "pto-isa flash attention README, torch_npu"
#define FAPTO "pto-isa flash attention README, hand-written kernel"
#define SWI   "FlagGems#6324, torch_npu SwiGLU, chip not named"

/* The 950DT that was measured has 32 cores at 1650 MHz: 432.5 TFLOP/s BF16, 865 FP8. */
#define CUT_950(flop_per_s) .cores = 32, .peak_flop_per_s = (flop_per_s)

/* One head on an idle host: the floor of the torch_npu rows is 47 us or more of host launch. */
#define HOST_LAUNCH .host_s = 47 * US

static const struct row rows[] = {
    /* Matrix products. A hand-written cube of 1536 keeps its cores busy for 55 %; three waves of
     * equal tiles do not say why, and the start-up is a compromise over all rows. */
    ROW("1536^3", "ascend_910c_die", MATMUL(1536, 1536, 1536), 38.8 * US, 0.10, PTO),
    ROW("3072^3", "ascend_910c_die", MATMUL(3072, 3072, 3072), 206.7 * US, 0.05, PTO),
    ROW("6144^3", "ascend_910c_die", MATMUL(6144, 6144, 6144), 1506 * US, 0.05, PTO),
    ROW("7680^3", "ascend_910c_die", MATMUL(7680, 7680, 7680), 3168 * US, 0.08, PTO),
    ROW("8192^3", "ascend_910b2", MATMUL(8192, 8192, 8192), 3630 * US, 0.05, "tilelang-ascend#79"),
    ROW("2048x4096x4000", "ascend_910b2", MATMUL(2048, 4096, 4000), 261 * US, 0.10, CATL),
    ROW("4096x4096x8000", "ascend_910b2", MATMUL(4096, 4096, 8000), 917 * US, 0.05, CATL),
    ROW("4096x4096x40000", "ascend_910b2", MATMUL(4096, 4096, 40000), 4669 * US, 0.05, CATL),
    ROW("30720x4096x1024", "ascend_910b2", MATMUL(30720, 4096, 1024), 806 * US, 0.10, ASCC),
    ROW("128x30720x1024", "ascend_910b2", MATMUL(128, 30720, 1024), 53.4 * US, 0.12, ASCC),
    /* Not fitted. The example does not say whether 20 or 24 cores ran; 20 fit better. */
    ROW("768x2048x6144", "ascend_910b3", MATMUL(768, 2048, 6144), 85.7 * US, 0.25, ASCC),
    /* Not fitted, and perhaps a model value of its source (0.85 of 20 cores to the digit). */
    ROW("4096x8192x3072", "ascend_910b3", MATMUL(4096, 8192, 3072), 803 * US, 0.10, ASCC),
    ROW("4096x7168x16384", "ascend_950dt", MATMUL(4096, 7168, 16384), 2229.9 * US, 0.05, DGA,
        CUT_950(432.5e12)),

    /* Experts: weights stream at few rows, the cube works at many. The rows of 950DT at FP8 take
     * the model with one byte per element; 6144x7168 is 5 % slower than its neighbours for no
     * reason that a tile model can see. */
    ROW("32 x 32, 2048x4096", "ascend_910b2", GROUPED(32, 32, 2048, 4096, 2), 359.7 * US, 0.06,
        GEMS),
    ROW("32 x 80, 2048x4096", "ascend_910b2", GROUPED(32, 80, 2048, 4096, 2), 367.1 * US, 0.06,
        GEMS),
    ROW("32 x 32, 4096x1024", "ascend_910b2", GROUPED(32, 32, 4096, 1024, 2), 184.1 * US, 0.10,
        GEMS),
    ROW("32 x 80, 4096x1024", "ascend_910b2", GROUPED(32, 80, 4096, 1024, 2), 177.3 * US, 0.20,
        GEMS),
    ROW("4 x 8192, 6144x7168 FP8", "ascend_950dt", GROUPED(4, 8192, 6144, 7168, 1), 3722 * US, 0.10,
        DGA, CUT_950(865e12)),
    ROW("4 x 8192, 7168x3072 FP8", "ascend_950dt", GROUPED(4, 8192, 7168, 3072, 1), 1778 * US, 0.06,
        DGA, CUT_950(865e12)),
    ROW("4 x 8192, 4096x4096 FP8", "ascend_950dt", GROUPED(4, 8192, 4096, 4096, 1), 1356 * US, 0.06,
        DGA, CUT_950(865e12)),
    ROW("4 x 8192, 4096x2048 FP8", "ascend_950dt", GROUPED(4, 8192, 4096, 2048, 1), 681 * US, 0.06,
        DGA, CUT_950(865e12)),
    ROW("8 x 4096, 6144x7168 FP8", "ascend_950dt", GROUPED(8, 4096, 6144, 7168, 1), 3689 * US, 0.10,
        DGA, CUT_950(865e12)),
    ROW("8 x 4096, 7168x3072 FP8", "ascend_950dt", GROUPED(8, 4096, 7168, 3072, 1), 1779 * US, 0.06,
        DGA, CUT_950(865e12)),

    /* Attention, one head of 128, full mask. The torch rows at 1024 to 4096 are mostly the host,
     * whose 47 us are the smallest seen. 64 blocks on 24 cores (8192) run slower than whole waves
     * say. */
    ROW("FA 1024", "ascend_910b2", ONE_HEAD(1024), 58.5 * US, 0.20, FA, HOST_LAUNCH),
    ROW("FA 2048", "ascend_910b2", ONE_HEAD(2048), 70.8 * US, 0.15, FA, HOST_LAUNCH),
    ROW("FA 4096", "ascend_910b2", ONE_HEAD(4096), 118.3 * US, 0.25, FA, HOST_LAUNCH),
    ROW("FA 8192", "ascend_910b2", ONE_HEAD(8192), 353 * US, 0.15, FA, HOST_LAUNCH),
    ROW("FA 16384", "ascend_910b2", ONE_HEAD(16384), 1118 * US, 0.10, FA, HOST_LAUNCH),
    ROW("FA 32768", "ascend_910b2", ONE_HEAD(32768), 3646 * US, 0.05, FA, HOST_LAUNCH),
    ROW("PTO 1024", "ascend_910b2", ONE_HEAD(1024), OF_PEAK(1024, 7.2), 0.10, FAPTO),
    ROW("PTO 2048", "ascend_910b2", ONE_HEAD(2048), OF_PEAK(2048, 18.7), 0.10, FAPTO),
    ROW("PTO 4096", "ascend_910b2", ONE_HEAD(4096), OF_PEAK(4096, 27.3), 0.12, FAPTO),
    ROW("PTO 8192", "ascend_910b2", ONE_HEAD(8192), OF_PEAK(8192, 33.2), 0.15, FAPTO),
    ROW("PTO 16384", "ascend_910b2", ONE_HEAD(16384), OF_PEAK(16384, 42.7), 0.12, FAPTO),
    ROW("PTO 32768", "ascend_910b2", ONE_HEAD(32768), OF_PEAK(32768, 47.6), 0.13, FAPTO),

    /* Element-wise. The traffic ratio of the device files stands for the chains of unfused kernels
     * that a layer counts as one pass; a fused SwiGLU moves its bytes once, so a single large one
     * is predicted twice too slow. In the L2 the two errors cancel. Input and half as much output.
     */
    ROW("SwiGLU 10000x65536", "ascend_910b2", VECTOR(10000.0 * 65536 * 3), 1610 * US, 1.20, SWI),
    ROW("SwiGLU 15000x2048", "ascend_910b2", VECTOR(15000.0 * 2048 * 3), 48.5 * US, 0.15, SWI),
    ROW("SwiGLU small", "ascend_910b2", VECTOR(65536), 3.5 * US, 0.15, SWI),
    ROW("RMSNorm 1 row", "ascend_910b2", VECTOR(2 * 2 * 7168.0), 3.5 * US, 0.15,
        "FlagGems-vllm#762"),
};

static double predict(const struct row *row, const struct device_spec *file)
{
    struct device_spec device = *file;
    if (row->cores > 0.0)
        device.cores = row->cores;
    if (row->peak_flop_per_s > 0.0)
        device.peak_flop_per_s = row->peak_flop_per_s;
    return compute_cost(&row->ask, &device, false).time_s + row->host_s;
}

static void kernels_are_predicted_within_their_tolerance(void **state)
{
    (void)state;
    struct arena *arena = arena_create("devices");
    struct error_list errors;
    error_list_init(&errors, arena);
    size_t missed = 0;
    double sum = 0.0;
    const size_t count = sizeof(rows) / sizeof(rows[0]);
    printf("| kernel | device | measured us | predicted us | ratio | source |\n");
    for (size_t i = 0; i < count; i++) {
        const struct row *row = &rows[i];
        const struct device_spec *device =
            scenario_load_device(row->device, STEPSIM_SOURCE_DIR "/configs", arena, &errors);
        if (!device)
            fail_msg("%s", error_list_text(&errors, arena));
        const double predicted_s = predict(row, device);
        const double ratio = predicted_s / row->measured_s;
        const bool miss = fabs(log(ratio)) > log(1.0 + row->tolerance);
        missed += miss;
        sum += fabs(log(ratio));
        printf("| %s | %s | %.1f | %.1f | %.2f | %s |%s\n", row->what, row->device,
               row->measured_s / US, predicted_s / US, ratio, row->source,
               miss ? " <- beyond its tolerance" : "");
    }
    printf("mean |ln ratio| %.3f over %zu rows\n", sum / (double)count, count);
    arena_destroy(arena);
    assert_int_equal(missed, 0);
}

/* The prototype that this model has to beat, on the rows of matrix products: its formula with its
 * constants for A2 (0.79, k0 294, 2.5 us, memory at 0.85, no L2, no alignment). */
static double prototype_s(const struct compute_ask *ask, double peak, double cores)
{
    const double rows_m = fmin(128.0, fmax(16.0, exp2(ceil(log2(ask->m)))));
    const double tiles = ceil(ask->m / rows_m) * ceil(ask->n / 256.0);
    const double slots = ceil(tiles / cores) * cores * rows_m * 256.0;
    const double speed =
        0.79 * sqrt(ask->m * ask->n / slots) * ask->k / (ask->k + 294.0) * pow(rows_m / 128.0, 0.7);
    const double traffic =
        2.0 * (ask->m * ask->n + ask->n * ask->k + ask->m * ask->k) / (1.6e12 * 0.85);
    return fmax(2.0 * ask->m * ask->n * ask->k / (peak * speed), traffic) + 2.5 * US;
}

static void the_matmul_model_beats_the_prototype(void **state)
{
    (void)state;
    struct arena *arena = arena_create("devices");
    struct error_list errors;
    error_list_init(&errors, arena);
    double ours = 0.0, theirs = 0.0;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct row *row = &rows[i];
        if (row->ask.kind != COMPUTE_MATMUL || row->cores > 0.0)
            continue;
        const struct device_spec *device =
            scenario_load_device(row->device, STEPSIM_SOURCE_DIR "/configs", arena, &errors);
        assert_non_null(device);
        ours += fabs(log(predict(row, device) / row->measured_s));
        theirs += fabs(
            log(prototype_s(&row->ask, device->peak_flop_per_s, device->cores) / row->measured_s));
    }
    printf("matmul: sum of |ln ratio| %.3f, of the prototype %.3f\n", ours, theirs);
    arena_destroy(arena);
    assert_true(ours < theirs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_are_predicted_within_their_tolerance),
        cmocka_unit_test(the_matmul_model_beats_the_prototype),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
