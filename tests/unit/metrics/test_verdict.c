/* The verdict names the largest loss and a switch that is really off. */
#include "assert_close.h"

#include "report_fixture.h"

static struct report_fixture fixture;

static void assert_says(const char *verdict, const char *words)
{
    if (strstr(verdict, words) == NULL) {
        print_error("\"%s\" is not in: %s\n", words, verdict);
    }
    assert_non_null(strstr(verdict, words));
}

/* Compute for 0.5 of the step, tensor communication for 0.3, bubble for 0.2. */
static void the_largest_loss_comes_first(void **state)
{
    (void)state;
    fixture_init(&fixture, 1000000000);
    hand_op(&fixture.hand, STREAM_COMPUTE, CAUSE_COMPUTE, 0, 500000000);
    hand_op(&fixture.hand, STREAM_TP, CAUSE_TP, 500000000, 800000000);
    fixture.hardware_flop[0] = 250e6; /* half of what the peak does in 0.5 ms */
    const char *verdict = fixture_report(&fixture)->verdict;
    assert_says(verdict, "loses 30.0 % of the step to exposed tensor-parallel communication");
    assert_says(verdict, "overlap.matmul_collective: mc2");
    assert_says(verdict, "50 % of the peak");
    fixture.scenario->overlap.matmul_collective = MATMUL_COLLECTIVE_MC2;
    assert_null(strstr(fixture_report(&fixture)->verdict, "mc2"));
    fixture_free(&fixture);
}

/* Every cause can be the largest loss, and each has words of its own. */
static void every_loss_has_words(void **state)
{
    (void)state;
    static const struct {
        enum stream stream;
        enum time_cause cause;
        const char *words;
    } losses[] = {
        {STREAM_EP, CAUSE_EP, "exposed expert communication"},
        {STREAM_CP, CAUSE_CP, "exposed context-parallel communication"},
        {STREAM_DP, CAUSE_DP, "overlap.grad_reduce and overlap.param_gather"},
        {STREAM_COPY_IN, CAUSE_SWAP, "exposed copies to the host"},
        {STREAM_COMPUTE, CAUSE_RECOMPUTE, "to recomputation; recomputing fewer modules"},
        {STREAM_COMPUTE, CAUSE_HOST, "host.dispatch: graph"},
        {STREAM_COMPUTE, CAUSE_IMBALANCE, "uneven expert load"},
        {STREAM_COMPUTE, CAUSE_OPTIMIZER, "the optimizer step"},
    };
    for (size_t i = 0; i < sizeof losses / sizeof losses[0]; i++) {
        fixture_init(&fixture, 1000000000);
        hand_op(&fixture.hand, STREAM_COMPUTE, CAUSE_COMPUTE, 0, 100000000);
        hand_op(&fixture.hand, losses[i].stream, losses[i].cause, 100000000, 900000000);
        assert_says(fixture_report(&fixture)->verdict, "loses 80.0 %");
        assert_says(fixture_report(&fixture)->verdict, losses[i].words);
        fixture_free(&fixture);
    }
}

/* Stage 1 is busy twice as long as stage 0: 1.33 times the mean. */
static void a_bubble_of_uneven_stages_asks_for_another_split(void **state)
{
    (void)state;
    fixture_init(&fixture, 1000000000);
    hand_op(&fixture.hand, STREAM_COMPUTE, CAUSE_COMPUTE, 0, 300000000);
    fixture.hand.results[1].compute_busy = 600000000;
    assert_says(fixture_report(&fixture)->verdict, "stage 1 is busy 1.33 times the mean");
    fixture.hand.results[1].compute_busy = 300000000;
    assert_says(fixture_report(&fixture)->verdict, "more microbatches per replica");
    fixture_free(&fixture);
}

static void what_does_not_fit_is_told_first(void **state)
{
    (void)state;
    fixture_init(&fixture, 1000000000);
    fixture.memory[0] = (struct stage_memory){.weights = 2e9, .optimizer = 20e9};
    fixture.hand.results[0].peak_bytes = 70000000000;
    fixture.hand.results[0].peak_label = PHASE_STEADY;
    const char *verdict = fixture_report(&fixture)->verdict;
    assert_int_equal(strncmp(verdict, "Does not fit: stage 0 needs", 27), 0);
    assert_says(verdict, "are activations: recompute more modules");
    fixture.memory[0].optimizer = 60e9;
    assert_says(fixture_report(&fixture)->verdict, "raise zero");
    fixture_free(&fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_largest_loss_comes_first),
        cmocka_unit_test(every_loss_has_words),
        cmocka_unit_test(a_bubble_of_uneven_stages_asks_for_another_split),
        cmocka_unit_test(what_does_not_fit_is_told_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
