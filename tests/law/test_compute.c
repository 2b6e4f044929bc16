/*
 * test_compute.c - what every compute model must do on every device of configs/devices.
 *
 * Time is finite and at least the start-up; it never falls when work grows; no model computes
 * faster than the peak or moves more than the memory can.
 */
#include "stepsim/compute_cost.h"

#include <stdio.h>
#include <string.h>

#include "assert_close.h"
#include "device_builder.h"
#include "stepsim/arena.h"

/* A comparison of two doubles that were computed on different ways. */
#define ROUNDING 1e-12

static struct arena *arena;
static const struct device_spec **devices;
static size_t device_count;

static int load_devices(void **state)
{
    (void)state;
    static struct device_spec round;
    round = device_round();
    arena = arena_create("devices");
    struct error_list errors;
    error_list_init(&errors, arena);
    size_t count = 0;
    const char *const *names =
        scenario_config_names(STEPSIM_SOURCE_DIR "/configs", "devices", arena, &count);
    devices = ARENA_ARRAY(arena, count + 1, const struct device_spec *);
    devices[device_count++] = &round;
    for (size_t i = 0; i < count; i++) {
        const struct device_spec *device =
            scenario_load_device(names[i], STEPSIM_SOURCE_DIR "/configs", arena, &errors);
        if (!device) {
            fprintf(stderr, "%s\n", error_list_text(&errors, arena));
            return -1;
        }
        devices[device_count++] = device;
    }
    return device_count > 10 ? 0 : -1;
}

static int free_devices(void **state)
{
    (void)state;
    arena_destroy(arena);
    return 0;
}

/* One work size of a kind; every field grows the work. */
struct size {
    double a, b, c, d;
};

static struct compute_ask ask_of(enum compute_kind kind, struct size size)
{
    struct compute_ask ask = {.kind = kind};
    switch (kind) {
    case COMPUTE_MATMUL:
    case COMPUTE_GROUPED_MATMUL:
        ask.m = size.a;
        ask.n = size.b;
        ask.k = size.c;
        ask.groups = kind == COMPUTE_GROUPED_MATMUL ? size.d : 0.0;
        ask.weight_bytes_per_element = 2.0;
        break;
    case COMPUTE_ATTENTION_FORWARD:
    case COMPUTE_ATTENTION_BACKWARD:
    case COMPUTE_ATTENTION_UNFUSED:
    case COMPUTE_ATTENTION_UNFUSED_BACKWARD:
        ask.queries = ask.sequence = size.a;
        ask.keys = size.a / 2.0;
        ask.heads = size.b;
        ask.kv_heads = size.b;
        ask.qk_dim = size.c;
        ask.v_dim = size.c;
        ask.batch = size.d;
        break;
    default:
        ask.bytes = size.a * size.b;
        ask.kernels = size.d;
        break;
    }
    return ask;
}

static double startup_s(enum compute_kind kind, const struct device_spec *device)
{
    switch (kind) {
    case COMPUTE_MATMUL:
    case COMPUTE_GROUPED_MATMUL:
    case COMPUTE_ATTENTION_UNFUSED:
    case COMPUTE_ATTENTION_UNFUSED_BACKWARD:
        return device->matmul_startup_s;
    case COMPUTE_ATTENTION_FORWARD:
    case COMPUTE_ATTENTION_BACKWARD:
        return device->attention_startup_s;
    default:
        return device->vector_startup_s;
    }
}

static const double extents[] = {0, 1, 16, 48, 127, 128, 129, 640, 1024, 2048, 5000, 16384};
static const double heads[] = {1, 2, 5, 8, 64};
static const double widths[] = {64, 128, 192, 512, 1536, 7680}; /* multiples of every alignment */
static const double counts[] = {1, 2, 3, 8, 32};

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static bool is_attention(enum compute_kind kind)
{
    return kind >= COMPUTE_ATTENTION_FORWARD && kind <= COMPUTE_ATTENTION_UNFUSED_BACKWARD;
}

static void check_bounds(enum compute_kind kind, const struct device_spec *device, struct size size)
{
    const struct compute_ask ask = ask_of(kind, size);
    const struct compute_cost cost = compute_cost(&ask, device, false);
    if (!(isfinite(cost.time_s) && cost.time_s >= startup_s(kind, device) &&
          cost.flop <= cost.time_s * device->peak_flop_per_s * (1.0 + ROUNDING) &&
          cost.bytes <= cost.time_s * device->hbm_bytes_per_s * (1.0 + ROUNDING)))
        fail_msg("%s on %s (%g %g %g %g): %g s, %g flop, %g bytes", compute_kind_name(kind),
                 device->name, size.a, size.b, size.c, size.d, cost.time_s, cost.flop, cost.bytes);
}

static void check_order(enum compute_kind kind, const struct device_spec *device, struct size less,
                        struct size more)
{
    const struct compute_ask less_ask = ask_of(kind, less);
    const struct compute_ask more_ask = ask_of(kind, more);
    const double less_s = compute_cost(&less_ask, device, false).time_s;
    const double more_s = compute_cost(&more_ask, device, false).time_s;
    if (more_s < less_s * (1.0 - ROUNDING))
        fail_msg("%s on %s: (%g %g %g %g) takes %g s, (%g %g %g %g) only %g s",
                 compute_kind_name(kind), device->name, less.a, less.b, less.c, less.d, less_s,
                 more.a, more.b, more.c, more.d, more_s);
}

/* Visits all sizes of a kind; `next` is the size with one field one step larger, four times. */
static void visit(enum compute_kind kind, const struct device_spec *device, bool order)
{
    const double *second = is_attention(kind) ? heads : extents;
    const size_t second_count = is_attention(kind) ? LENGTH(heads) : LENGTH(extents);
    for (size_t i = 0; i < LENGTH(extents); i++)
        for (size_t j = 0; j < second_count; j++)
            for (size_t k = 0; k < LENGTH(widths); k++)
                for (size_t l = 0; l < LENGTH(counts); l++) {
                    const struct size size = {extents[i], second[j], widths[k], counts[l]};
                    if (!order) {
                        check_bounds(kind, device, size);
                        continue;
                    }
                    struct size next = size;
                    next.a = i + 1 < LENGTH(extents) ? extents[i + 1] : size.a;
                    check_order(kind, device, size, next);
                    next = size;
                    next.b = j + 1 < second_count ? second[j + 1] : size.b;
                    check_order(kind, device, size, next);
                    next = size;
                    next.c = k + 1 < LENGTH(widths) ? widths[k + 1] : size.c;
                    check_order(kind, device, size, next);
                }
}

static void every_time_is_possible(void **state)
{
    (void)state;
    for (size_t i = 0; i < device_count; i++)
        for (int kind = 0; kind < COMPUTE_KIND_COUNT; kind++)
            visit((enum compute_kind)kind, devices[i], false);
}

static void more_work_never_takes_less_time(void **state)
{
    (void)state;
    for (size_t i = 0; i < device_count; i++)
        for (int kind = 0; kind < COMPUTE_KIND_COUNT; kind++)
            visit((enum compute_kind)kind, devices[i], true);
}

/* Rows, columns and bytes one by one, where a coarse grid could step over a dip. */
static void time_never_dips(void **state)
{
    (void)state;
    for (size_t i = 0; i < device_count; i++) {
        for (double m = 1; m < 1200; m += 1.0) {
            check_order(COMPUTE_MATMUL, devices[i], (struct size){m, 4096, 4096, 1},
                        (struct size){m + 1, 4096, 4096, 1});
            check_order(COMPUTE_MATMUL, devices[i], (struct size){2048, m, 4096, 1},
                        (struct size){2048, m + 1, 4096, 1});
            check_order(COMPUTE_GROUPED_MATMUL, devices[i], (struct size){m, 2048, 4096, 8},
                        (struct size){m + 0.25, 2048, 4096, 8});
            check_order(COMPUTE_ATTENTION_FORWARD, devices[i], (struct size){m, 4, 128, 1},
                        (struct size){m + 1, 4, 128, 1});
            check_order(COMPUTE_VECTOR, devices[i], (struct size){m * 1e3, 1e3, 0, 1},
                        (struct size){(m + 1) * 1e3, 1e3, 0, 1});
        }
    }
}

/* The same work in more groups reads more weights, so it cannot be faster. */
static void splitting_a_matmul_into_groups_never_helps(void **state)
{
    (void)state;
    for (size_t i = 0; i < device_count; i++) {
        double before_s = 0.0;
        for (double groups = 1; groups <= 256; groups *= 2) {
            const struct compute_ask ask = {.kind = COMPUTE_GROUPED_MATMUL,
                                            .m = 65536.0 / groups,
                                            .n = 2048,
                                            .k = 4096,
                                            .groups = groups,
                                            .weight_bytes_per_element = 2.0};
            const double time_s = compute_cost(&ask, devices[i], false).time_s;
            assert_true(time_s >= before_s * (1.0 - ROUNDING));
            before_s = time_s;
        }
    }
}

/* Adding to a wider buffer moves more. */
static void a_wider_result_never_takes_less_time(void **state)
{
    (void)state;
    for (size_t i = 0; i < device_count; i++) {
        for (double k = 16; k <= 16384; k *= 4) {
            struct compute_ask ask = ask_of(COMPUTE_MATMUL, (struct size){2048, 5120, k, 1});
            const double written_s = compute_cost(&ask, devices[i], false).time_s;
            ask.result_bytes = 4.0;
            const double narrow_s = compute_cost(&ask, devices[i], false).time_s;
            ask.result_bytes = 8.0;
            const struct compute_cost wide = compute_cost(&ask, devices[i], false);
            assert_true(narrow_s > written_s && wide.time_s > narrow_s);
            assert_true(wide.time_s >= wide.bytes / devices[i]->hbm_bytes_per_s);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_time_is_possible),
        cmocka_unit_test(more_work_never_takes_less_time),
        cmocka_unit_test(time_never_dips),
        cmocka_unit_test(a_wider_result_never_takes_less_time),
        cmocka_unit_test(splitting_a_matmul_into_groups_never_helps),
    };
    return cmocka_run_group_tests(tests, load_devices, free_devices);
}
