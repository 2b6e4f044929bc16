/* The search returns what simulating everything returns, and says what it did. */
#include <stdio.h>
#include <string.h>

#include "assert_close.h"
#include "assert_refused.h"
#include "stepsim/search.h"

static struct arena *arena;
static struct error_list errors;

/* 64 NPUs and a small mixture of experts: a space of a few hundred legal layouts. */
static const char small[] =
    "model: {base: deepseek_v2_lite, layers: 9}\n"
    "cluster: atlas_800t_a2\n"
    "devices: 64\n"
    "parallel: {tp: 2, pp: 4, vpp: 2, ep: 8, etp: 1, zero: 1}\n"
    "training: {seq_len: 4096, micro_batch_size: 1, global_batch_size: 128}\n"
    "schedule: {kind: interleaved}\n"
    "recompute: {modules: [norm, activation]}\n"
    "overlap: {grad_reduce: true, param_gather: true}\n";

/* Fits hardly: most layouts need recompute, more stages or smaller microbatches. */
static const char tight[] =
    "model: {base: pangu_ultra_moe_718b, layers: 12}\n"
    "cluster: atlas_800t_a2\n"
    "devices: 256\n"
    "parallel: {tp: 8, pp: 4, vpp: 1, ep: 32, etp: 1, zero: 1}\n"
    "training: {seq_len: 4096, micro_batch_size: 1, global_batch_size: 256}\n"
    "schedule: {kind: 1f1b}\n"
    "recompute: {modules: [layer]}\n";

static const char dense[] =
    "model: {base: llama2_13b, layers: 12}\n"
    "cluster: a100_selene\n"
    "devices: 32\n"
    "parallel: {tp: 2, pp: 2, vpp: 1, zero: 1}\n"
    "training: {seq_len: 2048, micro_batch_size: 1, global_batch_size: 256}\n"
    "schedule: {kind: 1f1b}\n"
    "recompute: {modules: []}\n";

struct question {
    const char *text;
    struct search_change changes[8];
    uint32_t change_count;
    enum search_objective objective;
    uint32_t top, jobs;
    bool exhaustive;
};

static const struct search_answer *ask_search(const struct question *question)
{
    struct scenario_cache *cache = scenario_cache_create();
    const struct scenario_source source = {
        .text = question->text, .text_name = "test", .cache = cache};
    const struct search_ask ask = {
        .source = &source,
        .changes = question->changes,
        .change_count = question->change_count,
        .objective = question->objective,
        .top = question->top,
        .jobs = question->jobs,
        .exhaustive = question->exhaustive,
    };
    error_list_init(&errors, arena);
    const struct search_answer *answer = search_run(&ask, arena, &errors);
    /* The answer points into the cache; it lives as long as the test. */
    return answer;
}

#define FEW_KEYS                                                                                   \
    .changes = {{"schedule.kind", "1f1b,interleaved,zb_v,overlapped_1f1b"},                        \
                {"moe.dispatcher", NULL},                                                          \
                {"moe.exchange", NULL},                                                            \
                {"parallel.etp", NULL},                                                            \
                {"parallel.vpp", "1,2"},                                                           \
                {"training.micro_batch_size", "1,2"},                                              \
                {"parallel.pp", "2,4,8"}},                                                         \
    .change_count = 7

static void assert_same(const struct search_answer *a, const struct search_answer *b)
{
    assert_int_equal(a->layout_count, b->layout_count);
    for (uint32_t i = 0; i < a->layout_count; i++) {
        assert_true(a->layouts[i].candidate == b->layouts[i].candidate);
        assert_true(a->layouts[i].figures.step_s == b->layouts[i].figures.step_s);
        assert_string_equal(a->layouts[i].why_lost, b->layouts[i].why_lost);
    }
}

static void pruned_and_exhaustive_agree(void **state)
{
    (void)state;
    static const char *const texts[] = {small, tight, dense};
    static const enum search_objective objectives[] = {SEARCH_TOKENS_PER_S, SEARCH_MEMORY};
    for (size_t t = 0; t < sizeof texts / sizeof texts[0]; t++) {
        for (size_t o = 0; o < sizeof objectives / sizeof objectives[0]; o++) {
            struct question question = {
                .text = texts[t], FEW_KEYS, .objective = objectives[o], .top = 7, .jobs = 2};
            const struct search_answer *pruned = ask_search(&question);
            assert_accepted(&errors);
            question.exhaustive = true;
            const struct search_answer *all = ask_search(&question);
            assert_accepted(&errors);
            assert_same(pruned, all);
            assert_true(all->counts.simulated == all->counts.legal);
            assert_true(all->counts.legal == pruned->counts.legal);
            assert_true(all->counts.bounded == 0);
            assert_true(pruned->counts.simulated < all->counts.simulated);
            print_message("%llu legal, %llu simulated by the pruned search\n",
                          (unsigned long long)all->counts.legal,
                          (unsigned long long)pruned->counts.simulated);
        }
    }
}

static void workers_change_nothing(void **state)
{
    (void)state;
    struct question question = {.text = small, FEW_KEYS, .top = 5, .jobs = 1};
    const struct search_answer *one = ask_search(&question);
    question.jobs = 3;
    const struct search_answer *three = ask_search(&question);
    assert_same(one, three);
    assert_memory_equal(&one->counts, &three->counts, sizeof one->counts);
}

/* Every combination of two tensor sizes and two micro-batches, simulated through the loader. */
static void a_small_space_by_hand(void **state)
{
    (void)state;
    struct question question = {.text = small, .top = 10, .jobs = 1};
    question.changes[0] = (struct search_change){"parallel.tp", "4,2"};
    question.changes[1] = (struct search_change){"training.micro_batch_size", "1,2"};
    question.change_count = 2;
    /* Everything else stays: only these keys take several values. */
    struct search_change changes[32];
    uint32_t count = 0;
    for (size_t k = 0; search_keys[k].key != NULL; k++) {
        changes[count++] = (struct search_change){search_keys[k].key, NULL};
    }
    changes[count++] = question.changes[0];
    changes[count++] = question.changes[1];
    const struct scenario_source source = {
        .text = small, .text_name = "test", .cache = scenario_cache_create()};
    const struct search_ask ask = {
        .source = &source, .changes = changes, .change_count = count, .top = 10, .jobs = 1};
    error_list_init(&errors, arena);
    const struct search_answer *answer = search_run(&ask, arena, &errors);
    assert_accepted(&errors);
    assert_true(answer->counts.candidates == 4);
    assert_true(answer->counts.legal == 4);
    assert_int_equal(answer->layout_count, 4);
    for (uint32_t i = 0; i < 4; i++) {
        const struct search_layout *found = &answer->layouts[i];
        char tp[8];
        char batch[8];
        snprintf(tp, sizeof tp, "%u", found->layout->tp);
        snprintf(batch, sizeof batch, "%u", found->layout->micro_batch_size);
        const struct scenario_override overrides[] = {{"parallel.tp", tp},
                                                      {"training.micro_batch_size", batch}};
        const struct scenario_source one = {
            .text = small, .text_name = "test", .overrides = overrides, .override_count = 2};
        struct run run;
        const struct run_options options = {.steps = 1};
        const struct scenario *scenario = scenario_load(&one, arena, &errors);
        assert_true(run_simulate(&run, scenario, &options, arena, &errors));
        assert_true(run.report->step_time_s == found->figures.step_s);
        assert_true(i == 0 || answer->layouts[i - 1].score <= found->score);
    }
}

static void what_fits_nowhere_is_refused(void **state)
{
    (void)state;
    struct question question = {.text = tight, FEW_KEYS, .top = 1, .jobs = 1};
    question.changes[7] = (struct search_change){"parallel.ep", "1"};
    question.change_count = 8;
    assert_null(ask_search(&question));
    assert_refused(&errors, ERROR_does_not_fit, "legal layouts");
}

static void unknown_keys_and_values_are_refused(void **state)
{
    (void)state;
    struct question question = {.text = small, .top = 1, .jobs = 1};
    question.changes[0] = (struct search_change){"parallel.tpp", "1,2"};
    question.change_count = 1;
    assert_null(ask_search(&question));
    assert_refused(&errors, ERROR_unknown_key, "did you mean parallel.tp");
    question.changes[0] = (struct search_change){"recompute.modules", "[],[norms]"};
    assert_null(ask_search(&question));
    assert_true(errors.count > 0);
}

static int set_up(void **state)
{
    (void)state;
    arena = arena_create("test");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    arena_destroy(arena);
    return 0;
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(pruned_and_exhaustive_agree),
        TEST(workers_change_nothing),
        TEST(a_small_space_by_hand),
        TEST(what_fits_nowhere_is_refused),
        TEST(unknown_keys_and_values_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
