/*
 * shard.c - which part of a sweep is ours, from the option or from the launcher.
 *
 * A Slurm array counts its tasks; a step or mpirun inside it counts its ranks. Both together
 * are one number: array task * ranks + rank. Inside a batch script that no srun started, the
 * variables of the rank describe the allocation, not us: SLURM_STEP_ID tells.
 */
#include <stdlib.h>
#include <string.h>

#include "stepsim/quantity.h"
#include "stepsim/rng.h"
#include "sweep/sweep_internal.h"

static const struct location nowhere = {NULL, 0, 0};

static bool environment_number(const char *name, uint32_t *value)
{
    const char *text = getenv(name);
    struct quantity_problem problem;
    uint64_t number = 0;
    if (text == NULL || !quantity_parse_uint(text, UINT32_MAX, &number, &problem)) {
        return false;
    }
    *value = (uint32_t)number;
    return true;
}

/* The rank among processes that one launcher started. */
static bool launcher_rank(uint32_t *rank, uint32_t *ranks)
{
    static const struct {
        const char *rank, *count, *only_with;
    } launchers[] = {
        {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", NULL},
        {"PMI_RANK", "PMI_SIZE", NULL},
        {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_ID"},
    };
    for (size_t i = 0; i < sizeof launchers / sizeof launchers[0]; i++) {
        const bool started = launchers[i].only_with == NULL || getenv(launchers[i].only_with);
        if (started && environment_number(launchers[i].rank, rank) &&
            environment_number(launchers[i].count, ranks)) {
            return true;
        }
    }
    return false;
}

static bool array_task(uint32_t *task, uint32_t *tasks)
{
    uint32_t id = 0, first = 0, last = 0, step = 1;
    if (!environment_number("SLURM_ARRAY_TASK_ID", &id) ||
        !environment_number("SLURM_ARRAY_TASK_MIN", &first) ||
        !environment_number("SLURM_ARRAY_TASK_MAX", &last)) {
        return false;
    }
    environment_number("SLURM_ARRAY_TASK_STEP", &step);
    if (step == 0 || id < first || id > last) {
        return false;
    }
    *task = (id - first) / step;
    *tasks = (last - first) / step + 1;
    return true;
}

static bool automatic(struct sweep_shard *shard, struct error_list *errors)
{
    uint32_t rank = 0, ranks = 1, task = 0, tasks = 1;
    const bool launched = launcher_rank(&rank, &ranks);
    const bool array = array_task(&task, &tasks);
    const uint64_t count = (uint64_t)ranks * tasks;
    if ((!launched && !array) || rank >= ranks || count == 0 || count > UINT32_MAX) {
        error_add(errors, ERROR_usage, nowhere, "--shard",
                  "auto needs a launcher: a Slurm array or srun, mpirun of Open MPI, or one that "
                  "sets PMI_RANK and PMI_SIZE; by hand it is --shard 1/8 to 8/8");
        return false;
    }
    *shard = (struct sweep_shard){task * ranks + rank + 1, (uint32_t)count};
    return true;
}

bool sweep_shard_parse(const char *text, struct sweep_shard *shard, struct error_list *errors)
{
    if (strcmp(text, "auto") == 0) {
        return automatic(shard, errors);
    }
    const char *slash = strchr(text, '/');
    char index_text[16];
    const size_t length = slash != NULL ? (size_t)(slash - text) : sizeof index_text;
    struct quantity_problem problem;
    uint64_t index = 0, count = 0;
    bool good = length < sizeof index_text;
    if (good) {
        memcpy(index_text, text, length);
        index_text[length] = '\0';
        good = quantity_parse_uint(index_text, UINT32_MAX, &index, &problem) &&
               quantity_parse_uint(slash + 1, UINT32_MAX, &count, &problem) && count > 0 &&
               index <= count;
    }
    if (!good) {
        error_add(errors, ERROR_usage, nowhere, "--shard",
                  "\"%s\" is not I/N with I from 1 to N, as in 2/8, nor auto", text);
        return false;
    }
    *shard = (struct sweep_shard){(uint32_t)(index > 0 ? index : count), (uint32_t)count};
    return true;
}

bool *sweep_shard_points(const struct sweep *sweep, struct sweep_shard shard, struct arena *arena)
{
    const uint64_t count = sweep->point_count;
    bool *ours = ARENA_ARRAY(arena, count + 1, bool);
    uint32_t *shuffled = ARENA_ARRAY(arena, count + 1, uint32_t);
    struct rng rng = rng_stream(sweep->seed, 0x7368617264u);
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t other = rng_below(&rng, i + 1);
        shuffled[i] = shuffled[other];
        shuffled[other] = (uint32_t)i;
    }
    for (uint64_t i = 0; i < count; i++) {
        ours[shuffled[i]] = i % shard.count == shard.index % shard.count;
    }
    return ours;
}
