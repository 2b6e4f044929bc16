/* Comparing answers: the wording of what moved, and keys in nested objects. */
#include <cjson/cJSON.h>
#include <string.h>

#include "assert_close.h"
#include "stepsim/arena.h"
#include "stepsim/compare.h"

static struct arena *arena;

/* Largest change first, whatever its sign; what did not move is not named; four at most. */
static void moved_terms_are_named_by_size(void **state)
{
    (void)state;
    struct answer_terms before = {.time_ps = {[CAUSE_COMPUTE] = 1000000000000}};
    struct answer_terms after = before;
    assert_string_equal(compare_time_text(&before, &after, arena), "");
    after.time_ps[CAUSE_TP] = 2000000000;
    after.time_ps[CAUSE_COMPUTE] -= 1500000000000 / 100;
    after.time_ps[CAUSE_BUBBLE] = 3000;
    assert_string_equal(compare_time_text(&before, &after, arena),
                        "compute -15 ms, tp +2 ms, bubble +3 ns");
    after.time_ps[CAUSE_EP] = after.time_ps[CAUSE_DP] = 1000000000;
    assert_string_equal(compare_time_text(&before, &after, arena),
                        "compute -15 ms, tp +2 ms, ep +1 ms, dp +1 ms");
    after.memory_bytes[MEMORY_TERM_LOGITS] = 2.0 * GIB_BYTES;
    assert_string_equal(compare_memory_text(&before, &after, arena), "logits +2.0 GiB");
}

static struct answer parsed(const char *text)
{
    const struct answer answer = {.name = text, .keys = cJSON_Parse(text)};
    assert_non_null(answer.keys);
    return answer;
}

/* Objects are compared key by key, lists as a whole; a key of one side only is shown too. */
static void keys_that_differ_are_found(void **state)
{
    (void)state;
    struct answer a =
        parsed("{\"p\": {\"tp\": 4, \"cp\": {\"size\": 1}}, \"l\": [1, 2], \"x\": 1}");
    struct answer b = parsed("{\"p\": {\"tp\": 8, \"cp\": {\"size\": 1}, \"ep\": 2}, "
                             "\"l\": [1, 3], \"m\": {\"e\": 8}}");
    const struct key_differences keys = compare_keys(&a, &b, arena);
    static const struct key_difference expected[] = {
        {"p.tp", "4", "8"},  {"l", "[1,2]", "[1,3]"}, {"x", "1", NULL},
        {"p.ep", NULL, "2"}, {"m.e", NULL, "8"},
    };
    assert_int_equal(keys.count, 5);
    for (uint32_t i = 0; i < keys.count; i++) {
        assert_string_equal(keys.items[i].key, expected[i].key);
        for (int side = 0; side < 2; side++) {
            const char *actual = side == 0 ? keys.items[i].a : keys.items[i].b;
            const char *wanted = side == 0 ? expected[i].a : expected[i].b;
            assert_true((actual == NULL) == (wanted == NULL));
            assert_true(actual == NULL || strcmp(actual, wanted) == 0);
        }
    }
    answer_free(&a);
    answer_free(&b);
    assert_null(a.keys);
}

static int setup(void **state)
{
    (void)state;
    arena = arena_create("test");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    arena_destroy(arena);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(moved_terms_are_named_by_size, setup, teardown),
        cmocka_unit_test_setup_teardown(keys_that_differ_are_found, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
