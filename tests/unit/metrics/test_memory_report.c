/* Peaks of stages split into categories; all bytes are small and added by hand. */
#include "assert_close.h"

#include "report_fixture.h"

static struct report_fixture fixture;

/* Static bytes 100 + 200 + 300 + 40 + 50 = 690. */
static void start(void)
{
    fixture_init(&fixture, 1000000000);
    fixture.memory[0] = fixture.memory[1] = (struct stage_memory){
        .weights = 100, .gradients = 200, .optimizer = 300, .buffers = 40, .reserve = 50};
    fixture.hand.results[0].peak_bytes = 690;
    fixture.hand.results[1].peak_bytes = 690;
}

static double sum_of(const struct stage_report *stage)
{
    return stage->weights + stage->gradients + stage->optimizer + stage->activations +
           stage->logits + stage->buffers + stage->reserve;
}

/* 690 + 1,000 moving bytes are activations. */
static void what_moves_is_activations(void **state)
{
    (void)state;
    start();
    for (unsigned r = 0; r < 2; r++) {
        fixture.hand.results[r].peak_bytes = 1690;
        fixture.hand.results[r].peak_label = PHASE_WARMUP;
    }
    const struct report *report = fixture_report(&fixture);
    for (unsigned s = 0; s < 2; s++) {
        assert_close(report->stages[s].activations, 1000.0, 1e-15);
        assert_within(report->stages[s].logits, 0.0, 0.0);
        assert_close(sum_of(&report->stages[s]), report->stages[s].peak_bytes, 1e-15);
    }
    assert_int_equal(report->stages[1].peak_phase, MEMORY_WARMUP);
    assert_int_equal(report->stages[1].layers, 1);
    assert_close(report->peak_bytes, 1690.0, 1e-15);
    assert_int_equal(report->peak_stage, 0);
    fixture_free(&fixture);
}

/*
 * A layer 0..10, the head forward 10..20 and backward 20..30, the layer backward 30..40, of
 * one microbatch: 250 bytes of logits are there from 10 until 30, not before and not at 30.
 */
static void logits_live_from_the_head_to_its_backward(void **state)
{
    (void)state;
    static const struct {
        sim_time peak;
        double logits;
    } moments[] = {{9, 0.0}, {10, 250.0}, {29, 250.0}, {30, 0.0}};
    start();
    enum { LAYER_F, HEAD_F, HEAD_B, LAYER_B, LABELS };
    const struct program_label labels[LABELS] = {
        [LAYER_F] = {.name = "attention", .phase = PHASE_STEADY, .pass = 'F', .layer = 0},
        [HEAD_F] = {.name = "head_norm", .phase = PHASE_STEADY, .pass = 'F', .layer = -1},
        [HEAD_B] = {.name = "loss.grad", .phase = PHASE_STEADY, .pass = 'B', .layer = -1},
        [LAYER_B] = {.name = "mlp.grad", .phase = PHASE_STEADY, .pass = 'B', .layer = 0}};
    fixture.hand.programs.labels = labels;
    fixture.chunks[0].head = true;
    for (uint32_t i = 0; i < LABELS; i++) {
        hand_op(&fixture.hand, STREAM_COMPUTE, CAUSE_COMPUTE, 10 * i, 10 * i + 10)->label = i;
    }
    fixture.logits_bytes[0] = 250;
    fixture.hand.results[0].peak_bytes = 1690;
    fixture.hand.results[0].peak_label = HEAD_F;
    for (size_t i = 0; i < sizeof moments / sizeof moments[0]; i++) {
        fixture.hand.results[0].peak_time = moments[i].peak;
        const struct stage_report *stage = &fixture_report(&fixture)->stages[0];
        assert_close(stage->logits, moments[i].logits, 1e-15);
        assert_close(stage->activations, 1000.0 - moments[i].logits, 1e-15);
    }
    fixture_free(&fixture);
}

/* The workspace of the update is one byte less, then one byte more than the schedule needs. */
static void the_optimizer_step_can_be_the_peak(void **state)
{
    (void)state;
    start();
    fixture.hand.results[0].peak_bytes = 1690;
    fixture.hand.results[0].peak_label = PHASE_STEADY;
    fixture.memory[0].optimizer_workspace = 999;
    assert_int_equal(fixture_report(&fixture)->stages[0].peak_phase, MEMORY_STEADY);
    fixture.memory[0].optimizer_workspace = 1001;
    const struct stage_report *stage = &fixture_report(&fixture)->stages[0];
    assert_int_equal(stage->peak_phase, MEMORY_OPTIMIZER);
    assert_close(stage->peak_bytes, 1691.0, 1e-15);
    assert_close(stage->optimizer, 1301.0, 1e-15);
    assert_within(stage->activations, 0.0, 0.0);
    fixture_free(&fixture);
}

static void loading_can_be_the_peak(void **state)
{
    (void)state;
    start();
    fixture.memory[1].load_workspace = 10;
    const struct report *report = fixture_report(&fixture);
    assert_int_equal(report->stages[1].peak_phase, MEMORY_LOAD);
    assert_close(report->stages[1].peak_bytes, 700.0, 1e-15);
    assert_close(report->stages[1].weights, 110.0, 1e-15);
    assert_int_equal(report->peak_stage, 1);
    fixture_free(&fixture);
}

/* 60 GB are usable; a peak of exactly the limit fits, one byte more does not. */
static void the_limit_is_usable_memory_less_headroom(void **state)
{
    (void)state;
    start();
    fixture.scenario->memory.require_headroom_bytes = 1e9;
    fixture.hand.results[0].peak_bytes = 59000000000;
    fixture.hand.results[0].peak_label = PHASE_STEADY;
    const struct report *fits = fixture_report(&fixture);
    assert_close(fits->limit_bytes, 59e9, 1e-15);
    assert_within(fits->headroom_bytes, 0.0, 0.0);
    assert_true(fits->fits);
    fixture.hand.results[0].peak_bytes = 59000000001;
    const struct report *full = fixture_report(&fixture);
    assert_within(full->headroom_bytes, -1.0, 0.0);
    assert_false(full->fits);
    fixture_free(&fixture);
}

static void phases_have_names(void **state)
{
    (void)state;
    assert_string_equal(memory_phase_name(MEMORY_LOAD), "load");
    assert_string_equal(memory_phase_name(MEMORY_OPTIMIZER), "optimizer");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_moves_is_activations),
        cmocka_unit_test(logits_live_from_the_head_to_its_backward),
        cmocka_unit_test(the_optimizer_step_can_be_the_peak),
        cmocka_unit_test(loading_can_be_the_peak),
        cmocka_unit_test(the_limit_is_usable_memory_less_headroom),
        cmocka_unit_test(phases_have_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
