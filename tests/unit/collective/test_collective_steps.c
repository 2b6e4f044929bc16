/* test_collective_steps.c - every algorithm's published formula, worked by hand on one level of
 * 1 GB/s and 1 us per step. */
#include "stepsim/collective.h"

#include "assert_close.h"

#define TINY 1e-12
#define US   1e-6

static struct collective_level_ask level(enum collective_kind kind, uint32_t ranks, double bytes)
{
    return (struct collective_level_ask){
        .kind = kind, .bytes = bytes, .ranks = ranks, .alpha_s = 1 * US, .bytes_per_s = 1e9};
}

static struct collective_level_cost cost_of(const char *name,
                                            const struct collective_level_ask *ask)
{
    const struct collective *algorithm = collective_find(name);
    assert_non_null(algorithm);
    assert_true(algorithm->kinds & 1u << ask->kind);
    return algorithm->cost(ask);
}

/* A row of the table of published formulas: 8 ms is n beta for 8 MB at 1 GB/s. */
struct row {
    const char *name;
    enum collective_kind kind;
    uint32_t ranks;
    double steps, volume; /* of alpha, of n beta */
};

static void published_formulas(void **state)
{
    (void)state;
    const struct row rows[] = {
        /* mesh: alpha + n (p-1)/p beta over all links; all-reduce twice */
        {"mesh", COLLECTIVE_ALL_GATHER, 8, 1, 7.0 / 8},
        {"mesh", COLLECTIVE_REDUCE_SCATTER, 8, 1, 7.0 / 8},
        {"mesh", COLLECTIVE_ALL_REDUCE, 8, 2, 2 * 7.0 / 8},
        {"mesh", COLLECTIVE_ALL_TO_ALL, 5, 1, 4.0 / 5},
        {"mesh_one_shot", COLLECTIVE_ALL_REDUCE, 8, 1, 7},
        /* ring: (p-1) alpha + (p-1)/p n beta; all-reduce twice */
        {"ring", COLLECTIVE_ALL_GATHER, 6, 5, 5.0 / 6},
        {"ring", COLLECTIVE_ALL_REDUCE, 6, 10, 2 * 5.0 / 6},
        {"double_ring", COLLECTIVE_REDUCE_SCATTER, 8, 7, 7.0 / 8},
        {"double_ring", COLLECTIVE_ALL_REDUCE, 8, 14, 2 * 7.0 / 8},
        /* halving-doubling, p a power of two: log p steps, the volume of the ring */
        {"halving_doubling", COLLECTIVE_ALL_GATHER, 16, 4, 15.0 / 16},
        {"halving_doubling", COLLECTIVE_ALL_REDUCE, 16, 8, 2 * 15.0 / 16},
        /* otherwise (2 floor(log p) + 2) alpha + (2 (p'-1)/p' + 2) n beta; p = 6, p' = 4 */
        {"halving_doubling", COLLECTIVE_ALL_REDUCE, 6, 6, 2 * 3.0 / 4 + 2},
        {"halving_doubling", COLLECTIVE_REDUCE_SCATTER, 6, 3, 3.0 / 4 + 1},
        /* p = 3, p' = 2 */
        {"halving_doubling", COLLECTIVE_ALL_REDUCE, 3, 4, 2 * 1.0 / 2 + 2},
        /* NHR: ceil(log2 p) alpha + (p-1)/p n beta */
        {"nhr", COLLECTIVE_ALL_GATHER, 6, 3, 5.0 / 6},
        {"nhr", COLLECTIVE_ALL_GATHER, 9, 4, 8.0 / 9},
        {"nhr", COLLECTIVE_ALL_REDUCE, 2, 2, 1},
        /* pairwise: (p-1) alpha, and each step a block of n/p */
        {"pairwise", COLLECTIVE_ALL_TO_ALL, 12, 11, 11.0 / 12},
        {"staged", COLLECTIVE_ALL_TO_ALL, 12, 11, 11.0 / 12},
        {"send_recv", COLLECTIVE_SEND_RECV, 2, 1, 1},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct row *row = &rows[i];
        const struct collective_level_ask ask = level(row->kind, row->ranks, 8e6);
        const struct collective_level_cost cost = cost_of(row->name, &ask);
        assert_close(cost.time_s, row->steps * US + row->volume * 8e-3, TINY);
        assert_close(cost.latency_s, row->steps * US, TINY);
        assert_close(cost.sent_bytes, row->volume * 8e6, TINY);
    }
}

static void the_launch_is_added_once(void **state)
{
    (void)state;
    struct collective_level_ask ask = level(COLLECTIVE_ALL_REDUCE, 4, 8e6);
    const double without_s = cost_of("ring", &ask).time_s;
    ask.launch_s = 20 * US;
    assert_close(cost_of("ring", &ask).time_s, without_s + 20 * US, TINY);
}

/* 8 MB through a buffer of 3 MB: three loops, so three times the steps and the same bytes. */
static void a_small_buffer_makes_loops(void **state)
{
    (void)state;
    struct collective_level_ask ask = level(COLLECTIVE_ALL_GATHER, 4, 8e6);
    ask.buffer_bytes = 3e6;
    assert_close(cost_of("ring", &ask).time_s, 3 * 3 * US + 6e-3, TINY);
    ask.buffer_bytes = 8e6;
    assert_close(cost_of("ring", &ask).time_s, 3 * US + 6e-3, TINY);
    ask.buffer_bytes = 0.0;
    assert_close(cost_of("ring", &ask).time_s, 3 * US + 6e-3, TINY);
}

/* A ramp of 10 us: a step of 10 us on the wire pays half of it, one of 90 us pays 9 us, nothing
 * pays nothing. */
static void a_ramp_is_paid_by_long_steps(void **state)
{
    (void)state;
    struct collective_level_ask ask = level(COLLECTIVE_ALL_GATHER, 8, 0);
    ask.alpha_s = 2 * US;
    ask.ramp_s = 10 * US;
    assert_close(collective_step_s(&ask, 0), 2 * US, TINY);
    assert_close(collective_step_s(&ask, 10e3), 2 * US + 10 * US + 5 * US, TINY);
    assert_close(collective_step_s(&ask, 90e3), 2 * US + 90 * US + 9 * US, TINY);
}

/* 4 domains of 8 ranks, n = 32 MB, n/p = 1 MB: outside 1 ms a step at 1 GB/s; inside 7 MB a step at
 * 14 GB/s, 0.5 ms, alpha 3 us. */
static struct collective_level_ask two_levels(enum collective_kind kind)
{
    struct collective_level_ask ask = level(kind, 4, 32e6);
    ask.inner.ranks = 8;
    ask.inner.alpha_s = 3 * US;
    ask.inner.bytes_per_s = 14e9;
    return ask;
}

/* 3 max(1 ms + 1 us, 0.5 ms + 3 us) + 0.5 ms + 3 us */
static void pipeline_overlaps_both_levels(void **state)
{
    (void)state;
    struct collective_level_ask ask = two_levels(COLLECTIVE_REDUCE_SCATTER);
    struct collective_level_cost cost = cost_of("pipeline", &ask);
    assert_close(cost.time_s, 3 * (1e-3 + 1 * US) + 0.5e-3 + 3 * US, TINY);
    assert_close(cost.sent_bytes, 3e6, TINY);
    assert_close(cost.inner_sent_bytes, 28e6, TINY); /* 32 MB 7/8 */
    ask.kind = COLLECTIVE_ALL_REDUCE;
    assert_close(cost_of("pipeline", &ask).time_s, 2.0 * cost.time_s, TINY);
    /* Links inside four times slower: the inside is the longer half of each step. */
    ask = two_levels(COLLECTIVE_ALL_GATHER);
    ask.inner.bytes_per_s = 3.5e9;
    assert_close(cost_of("pipeline", &ask).time_s, 4 * (2e-3 + 3 * US), TINY);
}

/* All-to-all of 32 MB: 8 MB a step outside; as much spread inside, 7 MB at 14 GB/s. */
static void pipelined_all_to_all_moves_blocks_of_domains(void **state)
{
    (void)state;
    const struct collective_level_ask ask = two_levels(COLLECTIVE_ALL_TO_ALL);
    const struct collective_level_cost cost = cost_of("pipeline", &ask);
    assert_close(cost.time_s, 3 * (8e-3 + 1 * US) + 0.5e-3 + 3 * US, TINY);
    assert_close(cost.sent_bytes, 24e6, TINY);
    assert_close(cost.inner_sent_bytes, 28e6, TINY);
}

/* Inside 28 MB at 14 GB/s, then three steps of 8 MB. */
static void staged_all_to_all_adds_its_stages(void **state)
{
    (void)state;
    const struct collective_level_ask ask = two_levels(COLLECTIVE_ALL_TO_ALL);
    const struct collective_level_cost cost = cost_of("staged", &ask);
    assert_close(cost.time_s, 2e-3 + 3 * US + 24e-3 + 3 * US, TINY);
    assert_close(cost.sent_bytes, 24e6, TINY);
    assert_close(cost.inner_sent_bytes, 28e6, TINY);
}

/* Tokens of 4 MB with 8 copies: gather 3 * 4 MB outside in 2 steps, then 32 MB 7/8 inside. */
static void hierarchical_all_to_all_gathers_tokens_once(void **state)
{
    (void)state;
    struct collective_level_ask ask = two_levels(COLLECTIVE_ALL_TO_ALL_HIERARCHICAL);
    ask.token_bytes = 4e6;
    const struct collective_level_cost cost = cost_of("hierarchical", &ask);
    assert_close(cost.time_s, 12e-3 + 2 * US + 2e-3 + 3 * US, TINY);
    assert_close(cost.sent_bytes, 12e6, TINY);
    assert_close(cost.inner_sent_bytes, 28e6, TINY);
}

/* Depth 2 over four nodes at 1 us, chains of 7 at 3 us, both ways; 2 n bytes at 0.92 of the rate
 * of a ring (NCCL). */
static void a_tree_has_chains_in_its_nodes(void **state)
{
    (void)state;
    const struct collective_level_ask ask = two_levels(COLLECTIVE_ALL_REDUCE);
    const struct collective_level_cost cost = cost_of("tree", &ask);
    assert_close(cost.latency_s, 2 * (2 * 1 * US + 7 * 3 * US), TINY);
    assert_close(cost.time_s, cost.latency_s + 64e-3 / 0.92, TINY);
    assert_close(cost.sent_bytes, 64e6, TINY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_formulas),
        cmocka_unit_test(the_launch_is_added_once),
        cmocka_unit_test(a_small_buffer_makes_loops),
        cmocka_unit_test(a_ramp_is_paid_by_long_steps),
        cmocka_unit_test(pipeline_overlaps_both_levels),
        cmocka_unit_test(pipelined_all_to_all_moves_blocks_of_domains),
        cmocka_unit_test(staged_all_to_all_adds_its_stages),
        cmocka_unit_test(hierarchical_all_to_all_gathers_tokens_once),
        cmocka_unit_test(a_tree_has_chains_in_its_nodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
