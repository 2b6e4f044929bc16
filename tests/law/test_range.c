/*
 * Ranges of real scenarios: the point lies inside, no input reaches further than all together,
 * an end is what --set of its value gives, and threads change nothing.
 */
#include <string.h>

#include "assert_close.h"
#include "stepsim/range.h"

static const char *const texts[] = {
    "model: {base: deepseek_v2_lite, layers: 9}\ncluster: atlas_800t_a2\ndevices: 32\n"
    "parallel: {tp: 1, pp: 4, ep: 8, etp: 1, zero: 1}\n"
    "training: {seq_len: 4096, micro_batch_size: 1, global_batch_size: 64}\n"
    "schedule: {kind: 1f1b}\nmoe: {exchange: flat}\nswap: {activations: [moe_permute_probs]}\n",
    "model: {base: qwen3_30b_a3b, layers: 8}\ncluster: h100_dgx\ndevices: 32\n"
    "parallel: {tp: 2, pp: 2, ep: 8, etp: 1, zero: 1}\n"
    "training: {seq_len: 4096, micro_batch_size: 1, global_batch_size: 64}\n"
    "schedule: {kind: 1f1b}\n",
    "model: {base: llama2_7b, layers: 8}\ncluster: atlas_950_supernode\ndevices: 64\n"
    "parallel: {tp: 4, pp: 2}\n"
    "training: {seq_len: 4096, micro_batch_size: 1, global_batch_size: 64}\n"
    "network: ports\n",
    "model: {base: pangu_pro_moe_72b, layers: 8}\ncluster: cloudmatrix384\ndevices: 64\n"
    "parallel: {tp: 4, pp: 2, ep: 8, etp: 1}\n"
    "training: {seq_len: 4096, micro_batch_size: 1, global_batch_size: 64}\n"
    "moe: {routing: {load: zipf, s: 0.6}}\nnoise: {kernel_jitter: 0.02}\n",
};

static const struct report *simulate(const char *text, const struct scenario_override *override,
                                     struct arena *arena)
{
    struct error_list errors;
    error_list_init(&errors, arena);
    const struct scenario_source source = {.text = text,
                                           .text_name = "law",
                                           .config_dir = STEPSIM_SOURCE_DIR "/configs",
                                           .overrides = override,
                                           .override_count = override != NULL ? 1 : 0};
    const struct scenario *scenario = scenario_load(&source, arena, &errors);
    const struct run_options options = {.steps = 1};
    struct run *run = ARENA_NEW(arena, struct run);
    if (scenario == NULL || !run_simulate(run, scenario, &options, arena, &errors))
        print_error("%s", error_list_text(&errors, arena));
    assert_non_null(run->report);
    return run->report;
}

static void holds(struct range_span span, double value)
{
    assert_true(span.low <= value && value <= span.high);
}

static void the_point_lies_inside(void **state)
{
    (void)state;
    for (size_t t = 0; t < sizeof texts / sizeof texts[0]; t++) {
        struct arena *arena = arena_create("law");
        const struct report *point = simulate(texts[t], NULL, arena);
        const struct range_ask ask = {.point = point, .jobs = 2};
        const struct range *range = range_run(&ask, arena);
        holds(range->step_time_s, point->step_time_s);
        holds(range->tokens_per_s, point->tokens_per_s);
        holds(range->mfu, point->mfu);
        holds(range->peak_bytes, point->peak_bytes);
        assert_true(range->tried > 0 && range->input_count > 0);
        assert_true(range->step_time_s.low < range->step_time_s.high);
        assert_int_equal(range->held_count, 0);
        for (uint32_t i = 0; i < range->input_count; i++) {
            const struct range_input *input = &range->inputs[i];
            assert_true(input->low <= input->value && input->value <= input->high);
            holds(range->step_time_s, input->step_time_s.low);
            holds(range->step_time_s, input->step_time_s.high);
        }
        arena_destroy(arena);
    }
}

/* The other way to change an input goes through text, loader and checks. */
static void ends_are_what_set_gives(void **state)
{
    (void)state;
    struct arena *arena = arena_create("law");
    const struct report *point = simulate(texts[1], NULL, arena);
    const struct range_ask ask = {.point = point, .jobs = 2};
    const struct range *range = range_run(&ask, arena);
    for (uint32_t i = 0; i < range->input_count && i < 4; i++) {
        const struct range_input *input = &range->inputs[i];
        const char *unit = strncmp(input->unit, "byte", 4) == 0
                               ? arena_printf(arena, "B%s", input->unit + 4)
                               : input->unit;
        const double ends[] = {input->low, input->high};
        const double steps[] = {input->step_time_s.low, input->step_time_s.high};
        for (int end = 0; end < 2; end++) {
            const struct scenario_override override = {
                input->key, arena_printf(arena, "%.17g %s", ends[end], unit)};
            assert_close(simulate(texts[1], &override, arena)->step_time_s, steps[end], 0.0);
        }
    }
    arena_destroy(arena);
}

static void threads_change_nothing(void **state)
{
    (void)state;
    struct arena *arena = arena_create("law");
    const struct report *point = simulate(texts[0], NULL, arena);
    const struct range *ranges[3];
    static const uint32_t jobs[] = {1, 3, 100};
    for (int i = 0; i < 3; i++) {
        const struct range_ask ask = {.point = point, .jobs = jobs[i]};
        ranges[i] = range_run(&ask, arena);
        assert_close(ranges[i]->step_time_s.low, ranges[0]->step_time_s.low, 0.0);
        assert_close(ranges[i]->step_time_s.high, ranges[0]->step_time_s.high, 0.0);
        assert_int_equal(ranges[i]->input_count, ranges[0]->input_count);
        for (uint32_t k = 0; k < ranges[i]->input_count; k++)
            assert_string_equal(ranges[i]->inputs[k].key, ranges[0]->inputs[k].key);
    }
    arena_destroy(arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_point_lies_inside),
        cmocka_unit_test(ends_are_what_set_gives),
        cmocka_unit_test(threads_change_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
