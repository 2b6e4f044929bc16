/* test_cluster.c - nested levels, and the shapes of groups in them. */
#include "assert_refused.h"
#include "scenario_builder.h"
#include "stepsim/cluster.h"
#include "stepsim/rng.h"

struct fixture {
    struct arena *arena;
    struct error_list *errors;
    struct scenario scenario;
};

static struct fixture open_fixture(uint32_t devices)
{
    struct fixture f = {.arena = arena_create("test"), .scenario = builder_scenario()};
    f.errors = ARENA_NEW(f.arena, struct error_list);
    error_list_init(f.errors, f.arena);
    f.scenario.devices = devices;
    return f;
}

static const struct cluster *build(struct fixture *f)
{
    error_list_init(f->errors, f->arena);
    const struct cluster *cluster = cluster_build(&f->scenario, f->arena, f->errors);
    assert_true((cluster == NULL) == (f->errors->count > 0));
    return cluster;
}

/* Pairs of dies, nodes of 8, supernodes of 384, then everything. */
static void four_levels(struct scenario *scenario)
{
    static const uint32_t sizes[4] = {2, 8, 384, 0};
    static const char *const names[4] = {"package", "node", "supernode", "cluster"};
    scenario->cluster.level_count = 4;
    for (uint32_t i = 0; i < 4; i++) {
        scenario->cluster.levels[i] = scenario->cluster.levels[i < 3 ? 0 : 1];
        scenario->cluster.levels[i].name = names[i];
        scenario->cluster.levels[i].size = sizes[i];
    }
}

static void levels_end_at_the_devices(void **state)
{
    (void)state;
    struct fixture f = open_fixture(6144);
    const struct cluster *cluster = build(&f);
    assert_int_equal(cluster->level_count, 2);
    assert_int_equal(cluster->level_size[0], 8);
    assert_int_equal(cluster->level_size[1], 6144);

    f.scenario.devices = 4; /* half a node */
    cluster = build(&f);
    assert_int_equal(cluster->level_count, 1);
    assert_int_equal(cluster->level_size[0], 4);
    assert_int_equal(cluster->node_size, 4);

    f.scenario.devices = 8; /* exactly one node: the outer level is not used */
    assert_int_equal(build(&f)->level_count, 1);

    f.scenario.devices = 512; /* one full supernode of 384 and 128 of the next */
    four_levels(&f.scenario);
    cluster = build(&f);
    assert_int_equal(cluster->level_count, 4);
    assert_int_equal(cluster->level_size[2], 384);
    assert_int_equal(cluster->level_size[3], 512);
    arena_destroy(f.arena);
}

static void wrong_clusters_are_refused(void **state)
{
    (void)state;
    struct fixture f = open_fixture(12);
    assert_null(build(&f));
    assert_refused(f.errors, ERROR_devices_not_multiple_of_node, "8 or 16 would");

    f.scenario.devices = 16;
    f.scenario.cluster.levels[1].size = 8;
    build(&f);
    assert_refused(f.errors, ERROR_conflicting_keys, "no larger multiple");
    assert_refused(f.errors, ERROR_out_of_range, "joins 8");

    four_levels(&f.scenario);
    f.scenario.cluster.levels[2].size = 0;
    build(&f);
    assert_refused(f.errors, ERROR_conflicting_keys, "no level can lie outside it");

    four_levels(&f.scenario);
    f.scenario.cluster.devices_per_node = 6;
    build(&f);
    assert_refused(f.errors, ERROR_conflicting_keys, "does not nest with level node of 8");

    f.scenario.cluster.level_count = 0;
    build(&f);
    assert_refused(f.errors, ERROR_missing_key, "link levels (0)");
    arena_destroy(f.arena);
}

static void pairs_use_the_innermost_common_level(void **state)
{
    (void)state;
    struct fixture f = open_fixture(768);
    four_levels(&f.scenario);
    const struct cluster *cluster = build(&f);
    assert_int_equal(cluster_level_of_pair(cluster, 5, 5), 0);
    assert_int_equal(cluster_level_of_pair(cluster, 0, 1), 0);
    assert_int_equal(cluster_level_of_pair(cluster, 1, 2), 1); /* two packages, one node */
    assert_int_equal(cluster_level_of_pair(cluster, 7, 8), 2);
    assert_int_equal(cluster_level_of_pair(cluster, 383, 384), 3);
    arena_destroy(f.arena);
}

/* A tensor group of 8, an expert group of 32, a data group that has one rank in each node. */
static void regular_groups(void **state)
{
    (void)state;
    struct fixture f = open_fixture(64);
    const struct cluster *cluster = build(&f);
    struct group_span span = cluster_group_span(cluster, 8, 1);
    assert_int_equal(span.outer_level, 0);
    assert_int_equal(span.per_domain[0], 8);
    assert_int_equal(span.groups_per_node, 1);

    span = cluster_group_span(cluster, 32, 1);
    assert_int_equal(span.outer_level, 1);
    assert_int_equal(span.per_domain[0], 8);
    assert_int_equal(span.per_domain[1], 32);
    assert_int_equal(span.groups_per_node, 1);

    span = cluster_group_span(cluster, 8, 8);
    assert_int_equal(span.outer_level, 1);
    assert_int_equal(span.per_domain[0], 1);
    assert_int_equal(span.groups_per_node, 8);

    span = cluster_group_span(cluster, 16, 4);
    assert_int_equal(span.per_domain[0], 2);
    assert_int_equal(span.groups_per_node, 4);

    span = cluster_group_span(cluster, 1, 1);
    assert_int_equal(span.outer_level, 0);
    assert_int_equal(span.per_domain[0], 1);
    arena_destroy(f.arena);
}

/* Ranks 6..11 on nodes of 8: 2 in the first, 4 in the second. */
static void groups_that_straddle_nodes(void **state)
{
    (void)state;
    struct fixture f = open_fixture(24);
    const struct cluster *cluster = build(&f);
    const uint32_t members[] = {6, 7, 8, 9, 10, 11};
    const struct group_span span = cluster_members_span(cluster, members, 6);
    assert_int_equal(span.outer_level, 1);
    assert_int_equal(span.per_domain[0], 4);
    assert_int_equal(span.per_domain[1], 6);
    assert_int_equal(span.groups_per_node, 2);

    const uint32_t inside[] = {8, 11, 12};
    const struct group_span near = cluster_members_span(cluster, inside, 3);
    assert_int_equal(near.outer_level, 0);
    assert_int_equal(near.per_domain[0], 3);
    assert_int_equal(near.stride, 3);
    arena_destroy(f.arena);
}

static void the_closed_form_equals_the_count(void **state)
{
    (void)state;
    struct fixture f = open_fixture(768);
    four_levels(&f.scenario);
    const struct cluster *cluster = build(&f);
    struct rng rng = rng_stream(1, 1);
    for (uint32_t trial = 0; trial < 500; trial++) {
        uint32_t members[768];
        const uint32_t stride = 1 + (uint32_t)rng_below(&rng, 100);
        const uint32_t size = 1 + (uint32_t)rng_below(&rng, 767 / stride + 1);
        for (uint32_t i = 0; i < size; i++)
            members[i] = i * stride;
        const struct group_span closed = cluster_group_span(cluster, size, stride);
        const struct group_span counted = cluster_members_span(cluster, members, size);
        assert_memory_equal(&closed, &counted, sizeof closed);
    }
    arena_destroy(f.arena);
}

static void slow_ranks_exist_each_once(void **state)
{
    (void)state;
    struct fixture f = open_fixture(16);
    struct slow_rank slow[2] = {{.rank = 15, .factor = 2.0}, {.rank = 16, .factor = 1.5}};
    f.scenario.noise.slow_ranks = slow;
    f.scenario.noise.slow_rank_count = 1;
    assert_non_null(build(&f));
    f.scenario.noise.slow_rank_count = 2;
    build(&f);
    assert_refused(f.errors, ERROR_out_of_range, "no rank 16");
    slow[1].rank = 15;
    build(&f);
    assert_refused(f.errors, ERROR_conflicting_keys, "listed twice");
    arena_destroy(f.arena);
}

static void slow_links_hang_on_used_levels(void **state)
{
    (void)state;
    struct fixture f = open_fixture(16);
    struct slow_link slow[2] = {{.level = "node", .rank = 15, .factor = 0.5},
                                {.level = "leaf", .rank = 15, .factor = 0.5}};
    f.scenario.noise.slow_links = slow;
    f.scenario.noise.slow_link_count = 1;
    assert_non_null(build(&f));
    f.scenario.noise.slow_link_count = 2;
    build(&f);
    assert_refused(f.errors, ERROR_unknown_name, "no level \"leaf\"");
    slow[1].level = "node";
    build(&f);
    assert_refused(f.errors, ERROR_conflicting_keys, "listed twice");
    slow[1].rank = 16;
    build(&f);
    assert_refused(f.errors, ERROR_out_of_range, "no rank 16");
    slow[1] = (struct slow_link){.level = "cluster", .rank = 3, .factor = 0.5};
    assert_non_null(build(&f));
    f.scenario.devices = 8; /* one node: the cluster level is not used */
    slow[0].rank = 7;
    build(&f);
    assert_refused(f.errors, ERROR_unknown_name, "no level \"cluster\"");
    arena_destroy(f.arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels_end_at_the_devices),
        cmocka_unit_test(wrong_clusters_are_refused),
        cmocka_unit_test(pairs_use_the_innermost_common_level),
        cmocka_unit_test(regular_groups),
        cmocka_unit_test(groups_that_straddle_nodes),
        cmocka_unit_test(the_closed_form_equals_the_count),
        cmocka_unit_test(slow_ranks_exist_each_once),
        cmocka_unit_test(slow_links_hang_on_used_levels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
