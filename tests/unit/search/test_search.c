/* The search returns what simulating everything returns, and says what it did. */
#include <stdio.h>
#include <string.h>

#include "assert_close.h"
#include "assert_refused.h"
#include "stepsim/search.h"

static struct arena *arena;
static struct error_list errors;

/* Answers point into caches, which live as long as their test. */
static struct scenario_cache *caches[32];
static uint32_t cache_count;

static struct scenario_cache *new_cache(void)
{
    assert_true(cache_count < sizeof caches / sizeof caches[0]);
    caches[cache_count] = scenario_cache_create();
    return caches[cache_count++];
}

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
    struct search_change changes[16];
    const char *wheres[2], *minimise;
    uint32_t where_count;
    double score_cut;
    uint32_t change_count;
    enum search_objective objective;
    uint32_t top, jobs;
    bool exhaustive;
};

static const struct search_answer *ask_search(const struct question *question)
{
    const struct scenario_source source = {
        .text = question->text, .text_name = "test", .cache = new_cache()};
    const struct search_ask ask = {
        .source = &source,
        .changes = question->changes,
        .change_count = question->change_count,
        .objective = question->objective,
        .objective_text = question->minimise,
        .wheres = question->wheres,
        .where_count = question->where_count,
        .score_cut = question->score_cut,
        .top = question->top,
        .jobs = question->jobs,
        .exhaustive = question->exhaustive,
    };
    error_list_init(&errors, arena);
    const struct search_answer *answer = search_run(&ask, arena, &errors);
    return answer;
}

#define FEW_KEYS                                                                                   \
    .changes = {{"schedule.kind", "interleaved,zb_v,overlapped_1f1b"},                             \
                {"moe.dispatcher", NULL},                                                          \
                {"moe.exchange", NULL},                                                            \
                {"parallel.etp", NULL},                                                            \
                {"parallel.vpp", "1,2"},                                                           \
                {"training.micro_batch_size", "1,2"},                                              \
                {"parallel.zero", "1"},                                                            \
                {"swap.optimizer", NULL},                                                          \
                {"swap.activations", NULL},                                                        \
                {"recompute.modules", "[],[layer]"},                                               \
                {"parallel.pp", "2,4"}},                                                           \
    .change_count = 11

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
        .text = small, .text_name = "test", .cache = new_cache()};
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

/* Of four layouts, tensor sizes 2 and 4 by micro-batches 1 and 2; everything else is kept. */
static struct question four_layouts(void)
{
    struct question question = {.text = small, .top = 4, .jobs = 1};
    static const char *const kept[] = {"parallel.pp",      "parallel.ep",       "parallel.etp",
                                       "parallel.cp.size", "schedule.kind",     "moe.dispatcher",
                                       "moe.exchange",     "recompute.modules", "parallel.zero",
                                       "swap.activations", "swap.optimizer",    "parallel.vpp",
                                       "parallel.stages"};
    for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
        question.changes[question.change_count++].key = kept[i];
    }
    question.changes[question.change_count++] = (struct search_change){"parallel.tp", "2,4"};
    question.changes[question.change_count++] =
        (struct search_change){"training.micro_batch_size", "1,2"};
    return question;
}

static void conditions_hold_for_every_layout(void **state)
{
    (void)state;
    struct question question = four_layouts();
    const struct search_answer *all = ask_search(&question);
    assert_accepted(&errors);
    assert_int_equal(all->layout_count, 4);

    /* Known before the simulation: 64 devices, pp 4, so dp is 8 at tp 2 and 4 at tp 4. */
    question.wheres[0] = "dp = 8 and micro_batch_size < 2";
    question.where_count = 1;
    const struct search_answer *one = ask_search(&question);
    assert_accepted(&errors);
    assert_int_equal(one->layout_count, 1);
    assert_int_equal(one->layouts[0].layout->tp, 2);
    assert_int_equal(one->layouts[0].layout->micro_batch_size, 1);
    assert_true(one->counts.legal == 1);

    /* Known behind it: slower than the best of all. */
    char slower[64];
    snprintf(slower, sizeof slower, "step_time_s > %.17g", all->layouts[0].figures.step_s);
    question.wheres[0] = slower;
    const struct search_answer *rest = ask_search(&question);
    assert_accepted(&errors);
    assert_int_equal(rest->layout_count, 3);
    for (uint32_t i = 0; i < 3; i++) {
        assert_true(rest->layouts[i].candidate == all->layouts[i + 1].candidate);
    }
    question.wheres[0] = "mfu > 1";
    assert_null(ask_search(&question));
    assert_refused(&errors, ERROR_does_not_fit, "conditions");
}

static void objectives_of_the_user_rank(void **state)
{
    (void)state;
    struct question question = four_layouts();
    question.objective = SEARCH_MEMORY;
    const struct search_answer *named = ask_search(&question);
    question.minimise = "peak_bytes";
    const struct search_answer *written = ask_search(&question);
    assert_accepted(&errors);
    assert_int_equal(written->layout_count, 4);
    for (uint32_t i = 0; i < 4; i++) {
        assert_true(written->layouts[i].candidate == named->layouts[i].candidate);
    }
    /* A price of tensor parallelism that outweighs everything. */
    question.minimise = "step_time_s + 1000 * tp";
    written = ask_search(&question);
    assert_accepted(&errors);
    assert_int_equal(written->layouts[0].layout->tp, 2);
    assert_int_equal(written->layouts[1].layout->tp, 2);
    assert_close(written->layouts[0].score, written->layouts[0].figures.step_s + 2000.0, 1e-12);

    question.minimise = "tokens_per_s";
    assert_null(ask_search(&question));
    assert_refused(&errors, ERROR_bad_expression, "--exhaustive");
    question.minimise = "mfu";
    assert_null(ask_search(&question));
    assert_refused(&errors, ERROR_bad_expression, "tokens_per_s_per_device");
    question.minimise = "step_time_s * nonsense";
    assert_null(ask_search(&question));
    assert_refused(&errors, ERROR_bad_expression, "nonsense");
    question.minimise = "(select count(*) from sqlite_master)";
    assert_null(ask_search(&question));
    assert_refused(&errors, ERROR_bad_expression, "not authorized");
}

/* Layouts that cannot beat a score are not looked at, and those that do are all found. */
static void a_cut_leaves_what_is_better(void **state)
{
    (void)state;
    struct question question = four_layouts();
    const struct search_answer *all = ask_search(&question);
    question.score_cut = all->layouts[1].score;
    const struct search_answer *two = ask_search(&question);
    assert_accepted(&errors);
    assert_int_equal(two->layout_count, 2);
    assert_true(two->layouts[0].candidate == all->layouts[0].candidate);
    assert_true(two->layouts[1].candidate == all->layouts[1].candidate);
    question.score_cut = all->layouts[0].score * 0.5;
    assert_null(ask_search(&question));
    assert_refused(&errors, ERROR_not_among_best, "");
}

/* NVIDIA's recipes give DeepSeek-V3, 61 layers and an MTP module on pp 16 and vpp 2, the layout
 * Et*3|(tt|)*29m|L (Megatron-Bridge, recipes/deepseek). */
static void head_and_modules_apart(void **state)
{
    (void)state;
    static const char big[] =
        "model: pangu_ultra_moe_718b\n"
        "cluster: atlas_800t_a2\n"
        "devices: 512\n"
        "parallel: {tp: 8, pp: 16, vpp: 2, ep: 32, etp: 1, zero: 1, stages: balanced}\n"
        "training: {seq_len: 4096, micro_batch_size: 1, global_batch_size: 64}\n"
        "schedule: {kind: interleaved}\n"
        "recompute: {modules: [layer]}\n";
    struct question question = four_layouts();
    question.text = big;
    question.changes[question.change_count - 2].values = NULL;
    question.changes[question.change_count - 1].values = NULL;
    question.changes[question.change_count - 3].values = "apart";
    const struct search_answer *answer = ask_search(&question);
    assert_accepted(&errors);
    assert_int_equal(answer->layout_count, 1);
    const struct search_layout *found = &answer->layouts[0];
    assert_string_equal(found->choices[found->choice_count - 1],
                        "parallel.stages={layout: \"Et*3|(t*2|)*29m*1|L\"}");
    uint32_t layers = 0;
    for (uint32_t i = 0; i < 32; i++) {
        layers += found->layout->chunks[i].layer_count;
    }
    assert_int_equal(layers, 61);
}

static void what_fits_nowhere_is_refused(void **state)
{
    (void)state;
    struct question question = {.text = tight, FEW_KEYS, .top = 1, .jobs = 1};
    question.changes[11] = (struct search_change){"parallel.ep", "1"};
    question.change_count = 12;
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
    while (cache_count > 0) {
        scenario_cache_destroy(caches[--cache_count]);
    }
    return 0;
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(pruned_and_exhaustive_agree),
        TEST(workers_change_nothing),
        TEST(a_small_space_by_hand),
        TEST(conditions_hold_for_every_layout),
        TEST(objectives_of_the_user_rank),
        TEST(a_cut_leaves_what_is_better),
        TEST(head_and_modules_apart),
        TEST(what_fits_nowhere_is_refused),
        TEST(unknown_keys_and_values_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
