/* test_schedule_draft.c - counting microbatches, oldest W first, phases, and what trips. */
#include "schedule/schedule_internal.h"

#include "assert_aborts.h"
#include "assert_close.h"

static struct schedule_draft draft_of(uint32_t vpp, uint32_t microbatches, uint32_t capacity,
                                      struct arena *arena)
{
    const struct schedule_ask ask = {.pp = 1, .vpp = vpp, .microbatches = microbatches};
    struct schedule_draft draft = schedule_draft_begin(&ask, capacity, arena);
    schedule_draft_stage(&draft, 0);
    return draft;
}

static void each_chunk_counts_its_own_microbatches(void **state)
{
    (void)state;
    struct arena *arena = arena_create("test");
    struct schedule_draft draft = draft_of(2, 2, 8, arena);
    schedule_draft_forward(&draft, 0);
    schedule_draft_forward(&draft, 1);
    schedule_draft_forward(&draft, 0);
    schedule_draft_pair(&draft, 1, 1);
    schedule_draft_backward(&draft, 0);
    schedule_draft_backward(&draft, 0);
    schedule_draft_backward(&draft, 1);
    const struct pipeline_order *order = schedule_draft_finish(&draft);

    static const struct order_action expected[] = {
        {.kind = ORDER_F, .phase = PHASE_WARMUP, .chunk = 0, .microbatch = 0},
        {.kind = ORDER_F, .phase = PHASE_WARMUP, .chunk = 1, .microbatch = 0},
        {.kind = ORDER_F, .phase = PHASE_WARMUP, .chunk = 0, .microbatch = 1},
        {.kind = ORDER_FB, .phase = PHASE_STEADY, .chunk = 1, .microbatch = 1, .back_chunk = 1},
        {.kind = ORDER_B, .phase = PHASE_COOLDOWN, .chunk = 0, .microbatch = 0},
        {.kind = ORDER_B, .phase = PHASE_COOLDOWN, .chunk = 0, .microbatch = 1},
        {.kind = ORDER_B, .phase = PHASE_COOLDOWN, .chunk = 1, .microbatch = 1},
    };
    assert_int_equal(order->action_count[0], sizeof(expected) / sizeof(expected[0]));
    for (uint32_t i = 0; i < order->action_count[0]; i++) {
        const struct order_action *action = &order->actions[0][i];
        assert_int_equal(action->kind, expected[i].kind);
        assert_int_equal(action->phase, expected[i].phase);
        assert_int_equal(action->chunk, expected[i].chunk);
        assert_int_equal(action->microbatch, expected[i].microbatch);
        assert_int_equal(action->back_chunk, expected[i].back_chunk);
        assert_int_equal(action->back_microbatch, expected[i].back_microbatch);
    }
    arena_destroy(arena);
}

static void weight_gradients_leave_oldest_first(void **state)
{
    (void)state;
    struct arena *arena = arena_create("test");
    struct schedule_draft draft = draft_of(2, 1, 6, arena);
    assert_false(schedule_draft_weight_gradient(&draft));
    schedule_draft_forward(&draft, 0);
    schedule_draft_forward(&draft, 1);
    schedule_draft_input_gradient(&draft, 1);
    schedule_draft_input_gradient(&draft, 0);
    assert_true(schedule_draft_weight_gradient(&draft));
    assert_true(schedule_draft_weight_gradient(&draft));
    assert_false(schedule_draft_weight_gradient(&draft));
    const struct pipeline_order *order = schedule_draft_finish(&draft);
    assert_int_equal(order->actions[0][4].kind, ORDER_W);
    assert_int_equal(order->actions[0][4].chunk, 1);
    assert_int_equal(order->actions[0][5].chunk, 0);
    arena_destroy(arena);
}

/* Two of three forwards exist, so the third adds nothing; the same for backwards. */
static void passes_beyond_the_last_microbatch_are_left_out(void **state)
{
    (void)state;
    struct arena *arena = arena_create("test");
    struct schedule_draft draft = draft_of(1, 2, 4, arena);
    for (uint32_t i = 0; i < 3; i++)
        schedule_draft_forward(&draft, 0);
    for (uint32_t i = 0; i < 3; i++)
        schedule_draft_backward(&draft, 0);
    assert_int_equal(schedule_draft_finish(&draft)->action_count[0], 4);
    arena_destroy(arena);
}

static void finish_without_a_backward(void)
{
    struct arena *arena = arena_create("test");
    struct schedule_draft draft = draft_of(1, 1, 2, arena);
    schedule_draft_forward(&draft, 0);
    schedule_draft_finish(&draft);
}

static void finish_without_a_weight_gradient(void)
{
    struct arena *arena = arena_create("test");
    struct schedule_draft draft = draft_of(1, 1, 3, arena);
    schedule_draft_forward(&draft, 0);
    schedule_draft_input_gradient(&draft, 0);
    schedule_draft_finish(&draft);
}

static void pass_the_capacity(void)
{
    struct arena *arena = arena_create("test");
    struct schedule_draft draft = draft_of(1, 2, 1, arena);
    schedule_draft_forward(&draft, 0);
    schedule_draft_forward(&draft, 0);
}

static void pair_a_microbatch_with_itself(void)
{
    struct arena *arena = arena_create("test");
    struct schedule_draft draft = draft_of(1, 2, 4, arena);
    schedule_draft_pair(&draft, 0, 0);
}

static void name_a_chunk_that_is_not_there(void)
{
    struct arena *arena = arena_create("test");
    struct schedule_draft draft = draft_of(2, 2, 4, arena);
    schedule_draft_forward(&draft, 2);
}

static void half_written_orders_trip(void **state)
{
    (void)state;
    assert_aborts(finish_without_a_backward);
    assert_aborts(finish_without_a_weight_gradient);
    assert_aborts(pass_the_capacity);
    assert_aborts(pair_a_microbatch_with_itself);
    assert_aborts(name_a_chunk_that_is_not_there);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_chunk_counts_its_own_microbatches),
        cmocka_unit_test(weight_gradients_leave_oldest_first),
        cmocka_unit_test(passes_beyond_the_last_microbatch_are_left_out),
        cmocka_unit_test(half_written_orders_trip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
