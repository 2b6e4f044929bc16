/*
 * schedule_check.c - the refusals that several schedules share, worded once.
 *
 * The position is that of schedule.kind: it is the schedule that refuses. Messages name the
 * other key with its value and end with what would work.
 */
#include "schedule/schedule_internal.h"

static const char *const key = "schedule.kind";

/* Chunk passes of one stage: keeps every counter in 32 bits and its list below 1 GiB. */
#define PASSES_MAX (1u << 24)

/* Groups named in one message. */
#define GROUPS_SHOWN 8

bool schedule_check_chunks(const struct schedule *schedule, const struct schedule_ask *ask,
                           struct location at, struct error_list *errors)
{
    ASSERT(ask->pp >= 1);
    ASSERT(ask->vpp >= 1);
    if (ask->vpp < schedule->vpp_min) {
        error_add(errors, ERROR_schedule_vpp, at, key,
                  "%s runs at least %u chunks per stage, parallel.vpp is %u: set vpp to %u%s, "
                  "or use 1f1b, which runs vpp 1",
                  schedule->name, schedule->vpp_min, ask->vpp, schedule->vpp_min,
                  schedule->vpp_max == schedule->vpp_min ? "" : " or more");
        return false;
    }
    if (schedule->vpp_max != 0 && ask->vpp > schedule->vpp_max) {
        error_add(errors, ERROR_schedule_vpp, at, key,
                  "%s runs at most %u chunk%s per stage, parallel.vpp is %u: set vpp to %u, "
                  "or use interleaved, which runs any vpp from 2",
                  schedule->name, schedule->vpp_max, schedule->vpp_max == 1 ? "" : "s", ask->vpp,
                  schedule->vpp_max);
        return false;
    }
    if ((uint64_t)ask->vpp * ask->microbatches > PASSES_MAX || ask->vpp > UINT16_MAX) {
        error_add(errors, ERROR_out_of_range, at, key,
                  "parallel.vpp %u times %u microbatches per replica is above %u passes per "
                  "stage: lower vpp or training.global_batch_size",
                  ask->vpp, ask->microbatches, PASSES_MAX);
        return false;
    }
    return true;
}

bool schedule_check_microbatches(const struct schedule *schedule, const struct schedule_ask *ask,
                                 uint32_t per_stage, struct location at, struct error_list *errors)
{
    const uint32_t minimum = per_stage == 0 ? 1 : per_stage * ask->pp;
    if (ask->microbatches >= minimum)
        return true;
    if (per_stage == 0) {
        error_add(errors, ERROR_microbatches_below_minimum, at, key,
                  "%s needs at least 1 microbatch per replica, there is none: raise "
                  "training.global_batch_size to micro_batch_size * dp, or lower dp",
                  schedule->name);
        return false;
    }
    const uint32_t pp_max = ask->microbatches / per_stage;
    const char *lower_pp =
        pp_max == 0 ? "" : arena_printf(errors->arena, ", lower pp to at most %u", pp_max);
    error_add(errors, ERROR_microbatches_below_minimum, at, key,
              "%s needs at least %u microbatches per replica (%u*pp, pp %u), there are %u: raise "
              "training.global_batch_size to %u * micro_batch_size * dp, lower dp%s, or use 1f1b, "
              "which runs any number",
              schedule->name, minimum, per_stage, ask->pp, ask->microbatches, minimum, lower_pp);
    return false;
}

/* "4, 8, 16": groups of at least pp that divide the microbatches; the first GROUPS_SHOWN. */
static const char *legal_groups(const struct schedule_ask *ask, struct arena *arena)
{
    const char *text = "";
    uint32_t shown = 0;
    for (uint32_t group = ask->pp; group <= ask->microbatches && shown < GROUPS_SHOWN; group++) {
        if (ask->microbatches % group != 0)
            continue;
        text = arena_printf(arena, "%s%s%u", text, shown == 0 ? "" : ", ", group);
        shown++;
    }
    return text;
}

bool schedule_check_group(const struct schedule_ask *ask, struct location at,
                          struct error_list *errors)
{
    ASSERT(ask->microbatches >= ask->pp);
    const uint32_t group = schedule_turn_group(ask);
    if (group < ask->pp) {
        error_add(errors, ERROR_out_of_range, at, key,
                  "schedule.microbatch_group %u is below pp %u, so a stage would wait for its own "
                  "output: with %u microbatches the groups %s work",
                  group, ask->pp, ask->microbatches, legal_groups(ask, errors->arena));
        return false;
    }
    const uint32_t rest = ask->microbatches % group;
    if (rest == 0)
        return true;
    const char *groups = legal_groups(ask, errors->arena);
    if (group > ask->microbatches)
        error_add(errors, ERROR_microbatches_not_multiple_of_group, at, key,
                  "%u microbatches per replica do not fill one group of %u "
                  "(schedule.microbatch_group, pp if left out): %u microbatches work, or the "
                  "groups %s",
                  ask->microbatches, group, group, groups);
    else
        error_add(errors, ERROR_microbatches_not_multiple_of_group, at, key,
                  "%u microbatches per replica do not fill whole groups of %u "
                  "(schedule.microbatch_group, pp if left out): %u or %u microbatches work, or "
                  "the groups %s",
                  ask->microbatches, group, ask->microbatches - rest,
                  ask->microbatches - rest + group, groups);
    return false;
}
