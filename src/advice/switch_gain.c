/*
 * switch_gain.c - what one switch would recover of the largest loss.
 *
 * The verdict names the loss; here the switches that act on it are thrown, one at a time, and
 * simulated. At most three are tried, so that a person does not wait for the answer.
 */
#include "advice_internal.h"

#define SWITCHES_MAX 3

struct switch_set {
    struct scenario changed[SWITCHES_MAX];
    const char *names[SWITCHES_MAX];
    uint32_t count;
};

/* The slot of one more switch, which starts as the scenario is. */
static struct scenario *add(struct switch_set *set, const struct scenario *scenario,
                            const char *name)
{
    ASSERT(set->count < SWITCHES_MAX);
    set->names[set->count] = name;
    set->changed[set->count] = *scenario;
    return &set->changed[set->count++];
}

static void add_exchange(struct switch_set *set, const struct scenario *scenario)
{
    if (scenario->moe.dispatcher == DISPATCHER_ALLTOALL &&
        scenario->moe.exchange == EXCHANGE_FLAT) {
        add(set, scenario, "moe.exchange: hierarchical")->moe.exchange = EXCHANGE_HIERARCHICAL;
    }
    if (!scenario->moe.overlap_shared_expert)
        add(set, scenario, "moe.overlap.shared_expert: true")->moe.overlap_shared_expert = true;
}

static void add_data(struct switch_set *set, const struct scenario *scenario)
{
    if (!scenario->overlap.grad_reduce)
        add(set, scenario, "overlap.grad_reduce: true")->overlap.grad_reduce = true;
    if (!scenario->overlap.param_gather)
        add(set, scenario, "overlap.param_gather: true")->overlap.param_gather = true;
}

static void add_switches(struct switch_set *set, const struct scenario *scenario,
                         enum time_cause cause)
{
    switch (cause) {
    case CAUSE_EP:
        add_exchange(set, scenario);
        return;
    case CAUSE_DP:
        add_data(set, scenario);
        return;
    case CAUSE_TP:
        if (scenario->overlap.matmul_collective == MATMUL_COLLECTIVE_NONE) {
            add(set, scenario, "overlap.matmul_collective: mc2")->overlap.matmul_collective =
                MATMUL_COLLECTIVE_MC2;
        }
        return;
    case CAUSE_PP:
        if (!scenario->schedule.p2p_overlapped)
            add(set, scenario, "schedule.p2p: overlapped")->schedule.p2p_overlapped = true;
        return;
    case CAUSE_HOST:
        if (scenario->host.dispatch == HOST_EAGER)
            add(set, scenario, "host.dispatch: graph")->host.dispatch = HOST_GRAPH;
        return;
    default:
        return;
    }
}

struct switch_gain advice_switch(const struct scenario *scenario, const struct report *report,
                                 struct arena *arena)
{
    enum time_cause worst = CAUSE_BUBBLE;
    for (unsigned c = CAUSE_COMPUTE + 1; c < CAUSE_COUNT; c++) {
        if (report->time_share_ps[c] > report->time_share_ps[worst])
            worst = (enum time_cause)c;
    }
    struct switch_set *set = ARENA_ARRAY(arena, 1, struct switch_set);
    set->count = 0;
    add_switches(set, scenario, worst);
    struct switch_gain best = {0};
    for (uint32_t i = 0; i < set->count; i++) {
        struct variant_result result;
        if (!variant_run(&set->changed[i], &result))
            continue;
        if (best.name == NULL || result.step_time_s < best.step_time_s) {
            best = (struct switch_gain){.name = set->names[i],
                                        .step_time_s = result.step_time_s,
                                        .share = 1.0 - result.step_time_s / report->step_time_s,
                                        .fits = result.fits};
        }
    }
    return best;
}
