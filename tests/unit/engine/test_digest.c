/* test_digest.c - what a fingerprint depends on, and what it must not depend on. */
#include "engine/digest.h"

#include "engine_fixture.h"

static int set_up(void **state)
{
    *state = arena_create("test");
    return 0;
}

static int tear_down(void **state)
{
    arena_destroy(*state);
    return 0;
}

struct given {
    struct rank_result ranks[4];
    uint32_t stages[4];
    uint32_t rank_count;
    sim_time end;
};

/* The digests of hand-made results. */
static struct timeline digest_of(const struct given *given, struct arena *arena)
{
    struct sim_rank ranks[4];
    struct rank_class classes[4];
    struct programs programs = {.ranks = ranks,
                                .rank_count = given->rank_count,
                                .classes = classes,
                                .class_count = given->rank_count,
                                .stage_count = 2};
    for (uint32_t i = 0; i < given->rank_count; i++) {
        ranks[i] = (struct sim_rank){.rank_class = i, .rank = i};
        classes[i] = (struct rank_class){.stage = given->stages[i], .rank_count = 1};
    }
    struct timeline timeline = {.end = given->end, .ranks = given->ranks};
    digest_timeline(&timeline, &programs, arena);
    return timeline;
}

static const struct given base = {
    .ranks = {{.end = 10, .compute_busy = 5, .peak_bytes = 70, .busy_hash = 1},
              {.end = 12, .compute_busy = 9, .peak_bytes = 50, .busy_hash = 2},
              {.end = 11, .compute_busy = 6, .peak_bytes = 60, .busy_hash = 3}},
    .stages = {0, 1, 1},
    .rank_count = 3,
    .end = 12,
};

/* Each of them moves a maximum of a stage or the end of the step. */
static void every_value_that_counts_moves_the_digest(void **state)
{
    const uint64_t digest = digest_of(&base, *state).digest;
    struct given moved[7];
    for (int i = 0; i < 7; i++) {
        moved[i] = base;
    }
    moved[0].end++;
    moved[1].ranks[0].end++;
    moved[2].ranks[0].compute_busy++;
    moved[3].ranks[0].peak_bytes++;
    moved[4].ranks[1].end++;
    moved[5].ranks[1].compute_busy++;
    moved[6].ranks[2].peak_bytes++;
    for (int i = 0; i < 7; i++) {
        const uint64_t other = digest_of(&moved[i], *state).digest;
        assert_true(other != digest);
        for (int j = 0; j < i; j++) {
            assert_true(other != digest_of(&moved[j], *state).digest);
        }
    }
}

/* Another rank below the maxima of its stage, other hashes, another order of ranks. */
static void the_digest_knows_maxima_per_stage_only(void **state)
{
    const uint64_t digest = digest_of(&base, *state).digest;
    struct given more = base;
    more.ranks[3] =
        (struct rank_result){.end = 12, .compute_busy = 9, .peak_bytes = 60, .busy_hash = 9};
    more.stages[3] = 1;
    more.rank_count = 4;
    more.ranks[0].peak_time = 4;
    assert_true(digest_of(&more, *state).digest == digest);
    assert_true(digest_of(&more, *state).event_digest != digest_of(&base, *state).event_digest);
    more.stages[3] = 0;
    assert_true(digest_of(&more, *state).digest != digest);
}

/* Completions: both parts count, the order does not. */
static void completions_mix_time_and_op(void **state)
{
    (void)state;
    const uint64_t hash = digest_completion(100, 3);
    assert_true(digest_completion(101, 3) != hash);
    assert_true(digest_completion(100, 4) != hash);
    /* Exchanging the times of two ops must show in the sum. */
    assert_true(digest_completion(1, 0) + digest_completion(2, 1) !=
                digest_completion(2, 0) + digest_completion(1, 1));
}

/* A stage that is fused into one op ends, works and peaks alike; completions differ. */
static void the_digest_does_not_see_fusion(void **state)
{
    struct arena *arena = *state;
    const struct timeline *t[2];
    for (int fused = 0; fused < 2; fused++) {
        struct builder *b = builder_create(arena);
        builder_contention(b, 1150000);
        const uint32_t p = builder_program(b);
        for (int i = 0; i < (fused != 0 ? 1 : 7); i++) {
            builder_op(b, p,
                       (struct build_op){.duration = fused != 0 ? 7 * 13 : 13,
                                         .flags = PROGRAM_OP_SLOWED});
        }
        builder_op(b, p,
                   (struct build_op){.kind = PROGRAM_OP_COPY,
                                     .stream = STREAM_COPY_IN,
                                     .duration = 60,
                                     .flags = PROGRAM_OP_CONTENDS});
        builder_rank(b, builder_class(b, p, 0, 0));
        t[fused] = run_all(builder_finish(b), arena);
    }
    /* 60 / 1.15 = 52.17 done by 60, 38.83 left: 98.83, so 99. */
    assert_time_equal(t[0]->end, 99);
    assert_true(t[0]->digest == t[1]->digest);
    assert_true(t[0]->event_digest != t[1]->event_digest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_value_that_counts_moves_the_digest, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(the_digest_knows_maxima_per_stage_only, set_up, tear_down),
        cmocka_unit_test(completions_mix_time_and_op),
        cmocka_unit_test_setup_teardown(the_digest_does_not_see_fusion, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
