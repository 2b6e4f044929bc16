/*
 * test_cases_static.c - public cases of layer splits (L) and world arithmetic (W).
 *
 * Configuration and expected values come from tests/data/cases.csv; each function below says
 * only how a case is asked. Every L and W row must have a function of its name:
 * every_case_is_asked fails otherwise. FLOPs are asked in test_cases_flop.c.
 */
#include "case_list.h"
#include "layout_fixture.h"
#include "stepsim/schedule.h"

static struct case_table *table;

/* ---- Asking ---- */

struct asked {
    size_t row;
    struct layout_fixture f;
};

/* Degrees and batch of one variant of a row; what the row leaves open is 1, the world the
 * smallest that fills nodes. */
static struct asked ask(const char *id, uint32_t variant)
{
    const size_t row = case_row(table, id);
    struct asked asked = {.row = row, .f = layout_fixture_open()};
    struct scenario *scenario = &asked.f.scenario;
    struct parallel_spec *p = &scenario->parallel;
    scenario->model = case_model(table, row);
    p->tp = case_number(table, row, "tp", variant, 1);
    p->pp = case_number(table, row, "pp", variant, 1);
    p->vpp = case_number(table, row, "vpp", variant, 1);
    p->cp = case_number(table, row, "cp", variant, 1);
    p->ep = case_number(table, row, "ep", variant, 1);
    p->etp = case_number(table, row, "etp", variant, 1);
    p->dp = case_number(table, row, "dp", variant, 0);
    scenario->devices = case_number(table, row, "devices", variant, 8 * p->tp * p->pp * p->cp);
    scenario->training.seq_len = case_number(table, row, "seq", variant, 1024);
    scenario->training.micro_batch_size = case_number(table, row, "mbs", variant, 1);
    scenario->training.global_batch_size =
        case_number(table, row, "gbs", variant, scenario->devices);
    return asked;
}

static void close_asked(struct asked *asked)
{
    layout_fixture_close(&asked->f);
}

static double expected(const struct asked *asked, const char *key, uint32_t item)
{
    return case_expected(table, asked->row, key, item);
}

static uint32_t expected_count(const struct asked *asked, const char *key)
{
    return (uint32_t)case_expected(table, asked->row, key, 0);
}

static void build_accepted(struct asked *asked)
{
    layout_fixture_build(&asked->f);
    assert_accepted(asked->f.errors);
}

/* Refused with the code that the row names, and this in the message. */
static void build_refused(struct asked *asked, const char *fragment)
{
    const char *reason = case_expected_text(table, asked->row, "reason");
    layout_fixture_build(&asked->f);
    const struct error_list *errors = asked->f.errors;
    for (size_t i = 0; i < errors->count; i++)
        if (strcmp(error_code_name(errors->items[i].code), reason) == 0 &&
            strstr(errors->items[i].message, fragment) != NULL)
            return;
    print_error("no %s with \"%s\":\n%s\n", reason, fragment,
                error_list_text(errors, asked->f.arena));
    fail();
}

/* Does some error have this code? */
static void build_refused_with(struct asked *asked, enum error_code code, const char *fragment)
{
    layout_fixture_build(&asked->f);
    assert_refused(asked->f.errors, code, fragment);
}

static void use_string(struct asked *asked, const char *text)
{
    asked->f.scenario.parallel.split = SPLIT_LAYOUT;
    asked->f.scenario.parallel.layout = text;
}

static void assert_stages(const struct asked *asked, const char *key)
{
    assert_string_equal(asked->f.layout->split_text, case_expected_text(table, asked->row, key));
}

/* Stage that holds the head; MTP modules and embedding are looked for likewise. */
enum slot_of_chunk { SLOT_EMBEDDING, SLOT_MTP, SLOT_HEAD };

static uint32_t stage_with(const struct layout *layout, enum slot_of_chunk slot)
{
    for (uint32_t i = 0; i < layout->pp * layout->vpp; i++) {
        const struct layout_chunk *chunk = &layout->chunks[i];
        const bool there[] = {chunk->embedding, chunk->mtp > 0, chunk->head};
        if (there[slot])
            return i / layout->vpp;
    }
    return UINT32_MAX;
}

/* ---- L: layer splits ---- */

/* Five layers per stage are cut into chunks of two: what two virtual stages by floor do. */
static void l01(void **state)
{
    (void)state;
    struct asked asked = ask("L01", 0);
    asked.f.scenario.parallel.vpp = 2;
    build_refused(&asked, arena_printf(asked.f.arena, "would lose %u layers; vpp 1 or 5",
                                       expected_count(&asked, "lost_layers")));
    close_asked(&asked);
}

static void l03(void **state)
{
    (void)state;
    struct asked asked = ask("L03", 0);
    build_refused(&asked, arena_printf(asked.f.arena, "would lose %u layers",
                                       expected_count(&asked, "lost_layers")));
    build_refused(&asked, case_expected_text(table, asked.row, "alt_stage_layers"));
    close_asked(&asked);
}

static void l05(void **state)
{
    (void)state;
    static const uint32_t list[] = {3, 4};
    struct asked asked = ask("L05", 0);
    build_refused_with(&asked, ERROR_layers_not_divisible_by_pp, "3,4");
    asked.f.scenario.parallel.split = SPLIT_LAYERS;
    asked.f.scenario.parallel.layers = list;
    asked.f.scenario.parallel.layers_count = 2;
    build_accepted(&asked);
    assert_string_equal(asked.f.layout->split_text, "3,4");
    assert_int_equal(3 + 4, expected_count(&asked, "sum"));
    close_asked(&asked);
}

static void l07(void **state)
{
    (void)state;
    struct asked asked = ask("L07", 0);
    use_string(&asked, "Et|(tt|)*30,L");
    build_accepted(&asked);
    assert_int_equal(asked.f.layout->pp * asked.f.layout->vpp, expected_count(&asked, "chunks"));
    assert_int_equal(asked.f.layout->layer_slots, expected_count(&asked, "layers"));
    assert_stages(&asked, "stage_layers");
    close_asked(&asked);
}

static void l09(void **state)
{
    (void)state;
    struct asked asked = ask("L09", 0);
    use_string(&asked, "Et|(tt|)*30,mL");
    build_accepted(&asked);
    assert_stages(&asked, "stage_layers");
    const struct layout *layout = asked.f.layout;
    assert_int_equal(stage_with(layout, SLOT_EMBEDDING), expected_count(&asked, "embedding_rank"));
    assert_int_equal(stage_with(layout, SLOT_MTP), expected_count(&asked, "mtp_rank"));
    assert_int_equal(stage_with(layout, SLOT_HEAD), expected_count(&asked, "loss_rank"));
    close_asked(&asked);
}

static void l11(void **state)
{
    (void)state;
    struct asked asked = ask("L11", 0);
    use_string(&asked, "Ett|(tt|)*34,ttt|(tt|)*3,tL");
    build_accepted(&asked);
    assert_int_equal(asked.f.layout->pp * asked.f.layout->vpp, expected_count(&asked, "chunks"));
    assert_stages(&asked, "stage_layers");
    close_asked(&asked);
}

static void l13(void **state)
{
    (void)state;
    struct asked asked = ask("L13", 0);
    asked.f.scenario.parallel.split = SPLIT_FIRST_LAST;
    asked.f.scenario.parallel.last_layers = 13;
    build_accepted(&asked);
    assert_stages(&asked, "stage_layers");
    close_asked(&asked);
}

static void l15(void **state)
{
    (void)state;
    struct asked asked = ask("L15", 0);
    asked.f.scenario.parallel.split = SPLIT_FIRST_LAST;
    asked.f.scenario.parallel.first_layers = 11;
    asked.f.scenario.parallel.last_layers = 11;
    build_accepted(&asked);
    assert_stages(&asked, "pp8");
    close_asked(&asked);

    asked = ask("L15", 1);
    asked.f.scenario.parallel.split = SPLIT_FIRST_LAST;
    asked.f.scenario.parallel.first_layers = 5;
    asked.f.scenario.parallel.last_layers = 5;
    build_accepted(&asked);
    assert_string_equal(case_expected_text(table, asked.row, "pp16"), "5,6x14,5");
    assert_string_equal(asked.f.layout->split_text, "5,6,6,6,6,6,6,6,6,6,6,6,6,6,6,5");
    close_asked(&asked);
}

/* DualPipeV: two chunks per stage in a V, 64 slots of which the last three hold nothing. */
static void l17(void **state)
{
    (void)state;
    static const uint32_t empty[] = {61, 62, 63};
    struct asked asked = ask("L17", 0);
    asked.f.v_shaped = true;
    asked.f.scenario.parallel.vpp = 2;
    asked.f.scenario.parallel.split = SPLIT_NOOP;
    asked.f.scenario.parallel.noop_layers = empty;
    asked.f.scenario.parallel.noop_count = 3;
    build_accepted(&asked);
    assert_int_equal(asked.f.layout->layer_slots, 64);
    assert_int_equal(asked.f.layout->dp, expected_count(&asked, "dp"));
    assert_int_equal(asked.f.layout->microbatches, expected_count(&asked, "microbatches"));
    assert_int_equal(asked.f.layout->edp, expected_count(&asked, "edp"));
    assert_int_equal(asked.f.model->layers, expected_count(&asked, "flop_layers"));
    assert_int_equal(stage_with(asked.f.layout, SLOT_HEAD), 0);
    close_asked(&asked);
}

/* 1F1B with two microbatches on four stages: legal, and m + pp - 1 slots of F and of B. */
static void l23(void **state)
{
    (void)state;
    struct asked asked = ask("L23", 0);
    asked.f.scenario.training.global_batch_size = 2 * 8;
    build_accepted(&asked);
    assert_int_equal(asked.f.layout->microbatches, 2);
    const struct schedule *schedule = schedule_find("1f1b");
    const struct schedule_ask sizes = {.pp = 4, .vpp = 1, .microbatches = 2, .layer_slots = 8};
    const struct schedule_times times = {
        .forward = 1.0, .backward_input = 0.5, .backward_weight = 0.5};
    assert_close(schedule->makespan(&sizes, &times), 2 * expected(&asked, "makespan_slots", 0),
                 1e-12);
    close_asked(&asked);
}

/* 32 sequences over dp 8 are 4 microbatches, which is not above pp 4. The schedule refuses; the
 * layout alone is legal. */
static void l19(void **state)
{
    (void)state;
    struct asked asked = ask("L19", 0);
    asked.f.scenario.devices = 4 * 8;
    build_accepted(&asked);
    const struct layout *layout = asked.f.layout;
    const struct schedule_ask sizes = {
        .pp = layout->pp, .vpp = layout->vpp, .microbatches = layout->microbatches};
    const struct schedule *schedule = schedule_find("overlapped_1f1b");
    assert_false(schedule->check(&sizes, (struct location){0}, asked.f.errors));
    assert_string_equal(error_code_name(asked.f.errors->items[0].code),
                        case_expected_text(table, asked.row, "reason"));
    close_asked(&asked);
}

static void l21(void **state)
{
    (void)state;
    struct asked asked = ask("L21", 0);
    use_string(&asked, "Ett|tt|ttt|tmL");
    build_refused_with(&asked, ERROR_stage_list_length, "4 chunks");
    build_refused_with(&asked, ERROR_stage_list_length,
                       arena_printf(asked.f.arena, "vpp %u would", expected_count(&asked, "vpp")));
    asked.f.scenario.parallel.vpp = expected_count(&asked, "vpp");
    build_accepted(&asked);
    assert_stages(&asked, "stage_layers");
    assert_int_equal(stage_with(asked.f.layout, SLOT_MTP), 1);
    close_asked(&asked);
}

static void l25(void **state)
{
    (void)state;
    static const char *const keys[] = {"sp8", "sp40", "sp16"};
    for (uint32_t variant = 0; variant < 3; variant++) {
        struct asked asked = ask("L25", variant);
        asked.f.scenario.parallel.cp_method = CP_ULYSSES;
        asked.f.scenario.training.seq_len = 6400;
        const char *verdict = case_expected_text(table, asked.row, keys[variant]);
        if (strcmp(verdict, "reject") == 0) {
            build_refused_with(&asked, ERROR_heads_not_divisible_by_ulysses, "8 or 40 would work");
        } else {
            build_accepted(&asked);
            assert_int_equal(asked.f.layout->kv_heads_per_rank, 1);
            assert_int_equal(asked.f.layout->kv_replication,
                             strcmp(verdict, "accept_kv_replication_5") == 0 ? 5 : 1);
        }
        close_asked(&asked);
    }
}

/* EP 32 that extends over TP 2 is an expert group of 64. */
static void l27(void **state)
{
    (void)state;
    struct asked asked = ask("L27", 0);
    asked.f.scenario.parallel.ep *= asked.f.scenario.parallel.tp;
    asked.f.scenario.devices = 64;
    asked.f.scenario.training.global_batch_size = 64;
    build_accepted(&asked);
    assert_int_equal(asked.f.layout->experts_per_rank, expected_count(&asked, "experts_per_rank"));
    asked.f.scenario.model.moe.experts = 96;
    build_refused_with(&asked, ERROR_experts_not_divisible_by_ep, "96 experts");
    close_asked(&asked);
}

/* ---- W: world arithmetic ---- */

static void w01(void **state)
{
    (void)state;
    struct asked asked = ask("W01", 0);
    asked.f.scenario.parallel.ep = 2;
    build_accepted(&asked);
    assert_string_equal(asked.f.layout->split_text, "24,24");
    asked.f.scenario.parallel.ep = 4;
    build_refused_with(&asked, ERROR_world_not_multiple,
                       arena_printf(asked.f.arena, "4 devices are no multiple of %u",
                                    expected_count(&asked, "ep4_min_world")));
    build_refused_with(&asked, ERROR_world_not_multiple, "ep 2");
    close_asked(&asked);
}

static void w03(void **state)
{
    (void)state;
    struct asked asked = ask("W03", 0);
    build_refused_with(
        &asked, ERROR_world_not_multiple,
        arena_printf(asked.f.arena, "no multiple of %u", expected_count(&asked, "min_world")));
    build_refused_with(&asked, ERROR_world_not_multiple, "or ep 4");
    asked.f.scenario.parallel.ep = 4;
    build_accepted(&asked);
    assert_int_equal(asked.f.layout->dp, expected_count(&asked, "ep4_dp"));
    assert_int_equal(asked.f.layout->edp, expected_count(&asked, "ep4_edp"));
    close_asked(&asked);
}

static void w05(void **state)
{
    (void)state;
    static const char *const keys[] = {"ep4_edp", "ep8_edp"};
    for (uint32_t variant = 0; variant < 2; variant++) {
        struct asked asked = ask("W05", variant);
        build_accepted(&asked);
        assert_int_equal(asked.f.layout->edp, expected_count(&asked, keys[variant]));
        close_asked(&asked);
    }
    struct asked asked = ask("W05", 2);
    build_refused_with(&asked, ERROR_world_not_multiple, "8 devices");
    build_refused_with(&asked, ERROR_experts_not_divisible_by_ep, "ep 2 or 4");
    close_asked(&asked);
}

static void w07(void **state)
{
    (void)state;
    struct asked asked = ask("W07", 0);
    asked.f.scenario.model.moe = builder_moe((struct moe_shape){8, 1, 256, 0, 0});
    build_accepted(&asked);
    const struct layout *layout = asked.f.layout;
    assert_int_equal(layout_group_count(layout, GROUP_EP), expected_count(&asked, "ep_groups"));
    assert_int_equal(layout_group_count(layout, GROUP_EDP), expected_count(&asked, "edp_groups"));
    assert_int_equal(layout->spans[GROUP_EDP].size, expected_count(&asked, "edp_size"));
    uint32_t members[16];
    layout_group_members(layout, GROUP_EP, 0, members);
    assert_int_equal(members[0], (uint32_t)expected(&asked, "ep_group0", 0));
    assert_int_equal(members[1], (uint32_t)expected(&asked, "ep_group0", 1));
    layout_group_members(layout, GROUP_EDP, 1, members);
    for (uint32_t i = 0; i < 8; i++)
        assert_int_equal(members[i], 2 * i + 1); /* the odd ranks */
    close_asked(&asked);
}

/* The group that exchanges tokens is the expert group, whatever TP is. */
static void w09(void **state)
{
    (void)state;
    for (uint32_t ep = 2; ep <= 8; ep *= 2) {
        struct asked asked = ask("W09", 0);
        asked.f.scenario.parallel.ep = ep;
        build_accepted(&asked);
        assert_int_equal(asked.f.layout->spans[GROUP_EP].size, ep);
        close_asked(&asked);
    }
}

static void w11(void **state)
{
    (void)state;
    struct asked asked = ask("W11", 0);
    build_accepted(&asked);
    const struct layout *layout = asked.f.layout;
    assert_int_equal(layout->dp, expected_count(&asked, "dp"));
    assert_int_equal(layout->edp, expected_count(&asked, "edp"));
    assert_int_equal(layout->microbatches, expected_count(&asked, "microbatches"));
    assert_int_equal(layout->experts_per_rank, expected_count(&asked, "local_experts"));
    assert_int_equal(layout->chunks[0].layer_count, expected_count(&asked, "layers_per_stage"));
    assert_int_equal(layout->chunks[1].layer_count, expected_count(&asked, "layers_per_stage"));
    close_asked(&asked);
}

/* ---- The list ---- */

static void every_case_is_asked(void **state);

static const struct CMUnitTest cases[] = {
    CASE_TEST(l01), CASE_TEST(l03), CASE_TEST(l05),
    CASE_TEST(l07), CASE_TEST(l09), CASE_TEST(l11),
    CASE_TEST(l13), CASE_TEST(l15), CASE_TEST(l17),
    CASE_TEST(l19), CASE_TEST(l21), CASE_TEST(l23),
    CASE_TEST(l25), CASE_TEST(l27), CASE_TEST(w01),
    CASE_TEST(w03), CASE_TEST(w05), CASE_TEST(w07),
    CASE_TEST(w09), CASE_TEST(w11), CASE_TEST(every_case_is_asked),
};

static void every_case_is_asked(void **state)
{
    (void)state;
    assert_cases_listed(table, "LW", cases, sizeof cases / sizeof cases[0]);
}

int main(void)
{
    struct arena *arena = arena_create("cases");
    table = case_table_read(STEPSIM_SOURCE_DIR "/tests/data/cases.csv", arena);
    const int failed = table != NULL ? cmocka_run_group_tests(cases, NULL, NULL) : 1;
    arena_destroy(arena);
    return failed;
}
