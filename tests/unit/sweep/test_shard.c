/* Which part is ours: by hand, and as each launcher says it. */
#include <stdlib.h>

#include "assert_refused.h"
#include "stepsim/sweep.h"

static struct arena *arena;
static struct error_list errors;

static const char *const variables[] = {"OMPI_COMM_WORLD_RANK",
                                        "OMPI_COMM_WORLD_SIZE",
                                        "PMI_RANK",
                                        "PMI_SIZE",
                                        "SLURM_PROCID",
                                        "SLURM_STEP_NUM_TASKS",
                                        "SLURM_STEP_ID",
                                        "SLURM_ARRAY_TASK_ID",
                                        "SLURM_ARRAY_TASK_MIN",
                                        "SLURM_ARRAY_TASK_MAX",
                                        "SLURM_ARRAY_TASK_STEP"};

static int setup(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof variables / sizeof variables[0]; i++) {
        unsetenv(variables[i]);
    }
    arena = arena_create("test");
    error_list_init(&errors, arena);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    arena_destroy(arena);
    return 0;
}

static void expect_shard(const char *text, uint32_t index, uint32_t count)
{
    struct sweep_shard shard = {0, 0};
    assert_true(sweep_shard_parse(text, &shard, &errors));
    assert_int_equal(shard.index, index);
    assert_int_equal(shard.count, count);
}

static void by_hand(void **state)
{
    (void)state;
    expect_shard("1/1", 1, 1);
    expect_shard("2/8", 2, 8);
    expect_shard("0/8", 8, 8); /* counting from 0 gives the same parts */
    static const char *const wrong[] = {"", "3", "9/8", "1/0", "-1/2", "a/b", "1/2/3", "1 /2"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct sweep_shard shard;
        assert_false(sweep_shard_parse(wrong[i], &shard, &errors));
    }
    assert_refused(&errors, ERROR_usage, "is not I/N");
}

static void no_launcher(void **state)
{
    (void)state;
    struct sweep_shard shard;
    assert_false(sweep_shard_parse("auto", &shard, &errors));
    assert_refused(&errors, ERROR_usage, "needs a launcher");
}

static void open_mpi(void **state)
{
    (void)state;
    setenv("OMPI_COMM_WORLD_RANK", "0", 1);
    setenv("OMPI_COMM_WORLD_SIZE", "4", 1);
    expect_shard("auto", 1, 4);
}

/* Tasks 4, 7, 10, 13: the third of four. */
static void array_with_step(void **state)
{
    (void)state;
    setenv("SLURM_ARRAY_TASK_ID", "10", 1);
    setenv("SLURM_ARRAY_TASK_MIN", "4", 1);
    setenv("SLURM_ARRAY_TASK_MAX", "13", 1);
    setenv("SLURM_ARRAY_TASK_STEP", "3", 1);
    expect_shard("auto", 3, 4);
    /* In the batch script itself the rank is that of the allocation: it does not count. */
    setenv("SLURM_PROCID", "0", 1);
    setenv("SLURM_STEP_NUM_TASKS", "2", 1);
    expect_shard("auto", 3, 4);
    /* Started by srun, each of its ranks is a part: task 2 of 0..3, rank 1 of 2. */
    setenv("SLURM_STEP_ID", "0", 1);
    setenv("SLURM_PROCID", "1", 1);
    expect_shard("auto", 6, 8);
}

static void rank_beyond_its_count(void **state)
{
    (void)state;
    setenv("PMI_RANK", "4", 1);
    setenv("PMI_SIZE", "4", 1);
    struct sweep_shard shard;
    assert_false(sweep_shard_parse("auto", &shard, &errors));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(by_hand, setup, teardown),
        cmocka_unit_test_setup_teardown(no_launcher, setup, teardown),
        cmocka_unit_test_setup_teardown(open_mpi, setup, teardown),
        cmocka_unit_test_setup_teardown(array_with_step, setup, teardown),
        cmocka_unit_test_setup_teardown(rank_beyond_its_count, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
