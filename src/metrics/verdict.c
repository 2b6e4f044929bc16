/*
 * verdict.c - one sentence for people: what costs most, and what would recover it.
 *
 * The largest loss is the largest share of the step that is not computation. The advice
 * follows from the settings: it names a switch that is off, or the number to raise. A
 * layout that does not fit is told so first, with what fills the fullest stage.
 */
#include "metrics_internal.h"

/* A stage whose compute stream is busier than the mean by this is worth a better split. */
#define UNEVEN_STAGES_RATIO 1.1

static const char *ep_advice(const struct report *report)
{
    const struct scenario *scenario = report->scenario;
    const uint32_t level = report->layout->spans[GROUP_EP].outer_level;
    const bool crosses_nodes =
        report->cluster->level_size[level] > report->cluster->spec->devices_per_node;
    if (crosses_nodes && scenario->moe.exchange == EXCHANGE_FLAT &&
        scenario->moe.dispatcher == DISPATCHER_ALLTOALL) {
        return "a hierarchical exchange sends fewer bytes between nodes, and an overlapping "
               "schedule hides the rest";
    }
    return "an overlapping schedule hides it behind another microbatch, a smaller ep shortens it";
}

static const char *tp_advice(const struct report *report)
{
    if (report->scenario->overlap.matmul_collective == MATMUL_COLLECTIVE_NONE) {
        return "overlap.matmul_collective: mc2 fuses it with the matmuls, a smaller tp shortens it";
    }
    return "a smaller tp shortens it";
}

static const char *dp_advice(const struct report *report)
{
    const struct overlap_spec *overlap = &report->scenario->overlap;
    if (!overlap->grad_reduce || !overlap->param_gather) {
        return "overlap.grad_reduce and overlap.param_gather hide it behind the last backward and "
               "the first forward";
    }
    return "more microbatches per step spread it over more work";
}

static const char *bubble_advice(const struct report *report, struct arena *arena)
{
    double busiest_s = 0.0;
    double sum_s = 0.0;
    uint32_t busiest = 0;
    for (uint32_t s = 0; s < report->stage_count; s++) {
        const double busy_s = report->stages[s].compute_busy_s;
        sum_s += busy_s;
        if (busy_s > busiest_s) {
            busiest_s = busy_s;
            busiest = s;
        }
    }
    const double ratio = sum_s > 0.0 ? busiest_s * (double)report->stage_count / sum_s : 1.0;
    if (ratio > UNEVEN_STAGES_RATIO) {
        return arena_printf(arena,
                            "stage %u is busy %.2f times the mean: another split of the layers, "
                            "then more microbatches or virtual stages",
                            busiest, ratio);
    }
    return "more microbatches per replica or more virtual stages shorten it";
}

static const char *advice(const struct report *report, enum time_cause cause, struct arena *arena)
{
    switch (cause) {
    case CAUSE_RECOMPUTE:
        return arena_printf(arena,
                            "recomputing fewer modules saves it at the price of memory "
                            "(%s are free)",
                            text_gib(arena, report->headroom_bytes));
    case CAUSE_TP:
        return tp_advice(report);
    case CAUSE_EP:
        return ep_advice(report);
    case CAUSE_CP:
        return "a smaller cp or a longer sequence hides more of it";
    case CAUSE_PP:
        return report->scenario->schedule.p2p_overlapped
                   ? "fewer virtual stages send fewer messages"
                   : "schedule.p2p: overlapped hides it";
    case CAUSE_DP:
        return dp_advice(report);
    case CAUSE_SWAP:
        return "swapping fewer tensors, or recomputing them instead, shortens it";
    case CAUSE_HOST:
        return report->scenario->host.dispatch == HOST_EAGER
                   ? "host.dispatch: graph or a larger micro-batch feeds the device faster"
                   : "a larger micro-batch feeds the device faster";
    case CAUSE_IMBALANCE:
        return "a better expert placement or a stronger balance loss evens it out";
    case CAUSE_OPTIMIZER:
        return "a higher ZeRO level or a larger batch makes it smaller";
    default:
        return bubble_advice(report, arena);
    }
}

static const char *const cause_text[CAUSE_COUNT] = {
    [CAUSE_COMPUTE] = "computation",
    [CAUSE_RECOMPUTE] = "recomputation",
    [CAUSE_TP] = "exposed tensor-parallel communication",
    [CAUSE_EP] = "exposed expert communication",
    [CAUSE_CP] = "exposed context-parallel communication",
    [CAUSE_PP] = "waiting for pipeline messages",
    [CAUSE_DP] = "exposed gradient and parameter communication",
    [CAUSE_SWAP] = "exposed copies to the host",
    [CAUSE_HOST] = "the host, which issues kernels too slowly",
    [CAUSE_IMBALANCE] = "uneven expert load",
    [CAUSE_BUBBLE] = "the pipeline bubble",
    [CAUSE_OPTIMIZER] = "the optimizer step",
};

/* Speed of the kernels of the described stage while they run, over the peak that MFU uses. */
static double kernel_ratio(const struct report *report, const struct report_parts *parts)
{
    const double busy_s = sim_time_seconds(report->time_share_ps[CAUSE_COMPUTE] +
                                           report->time_share_ps[CAUSE_RECOMPUTE]);
    return busy_s > 0.0 ? parts->plan->hardware_flop[report->time_share_stage] /
                              (busy_s * report->peak_flop_per_s)
                        : 0.0;
}

static const char *speed_verdict(const struct report *report, const struct report_parts *parts,
                                 struct arena *arena)
{
    enum time_cause worst = CAUSE_BUBBLE;
    for (unsigned c = CAUSE_COMPUTE + 1; c < CAUSE_COUNT; c++) {
        if (report->time_share_ps[c] > report->time_share_ps[worst]) {
            worst = (enum time_cause)c;
        }
    }
    const double share =
        (double)report->time_share_ps[worst] / (double)parts->timeline->end * 100.0;
    return arena_printf(arena,
                        "Stage %u loses %.1f %% of the step to %s; %s. Its kernels reach %.0f %% "
                        "of the peak while they run.",
                        report->time_share_stage, share, cause_text[worst],
                        advice(report, worst, arena), kernel_ratio(report, parts) * 100.0);
}

static const char *memory_verdict(const struct report *report, struct arena *arena)
{
    static const char *const moments[MEMORY_PHASE_COUNT] = {
        "while loading", "in the warm-up", "in the steady phase", "in the cool-down",
        "in the optimizer step"};
    const struct stage_report *stage = &report->stages[report->peak_stage];
    if (report->steps[0].fits) {
        return arena_printf(arena,
                            "Does not fit: the heaviest rank of step %u needs %s and may use %s; "
                            "%u of %u steps do not fit, the first one does.",
                            report->worst_step, text_gib(arena, report->worst_peak_bytes),
                            text_gib(arena, report->limit_bytes), report->misfit_steps,
                            report->step_count);
    }
    const double moving = stage->activations + stage->logits;
    const char *largest = "activations";
    const char *remedy = "recompute more modules, halve micro_batch_size or raise pp";
    double bytes = moving;
    if (stage->optimizer + stage->gradients > bytes) {
        bytes = stage->optimizer + stage->gradients;
        largest = "gradients and optimizer states";
        remedy = "raise zero or the number of data ranks";
    }
    if (stage->weights > bytes) {
        bytes = stage->weights;
        largest = "weights";
        remedy = "raise pp, ep or tp";
    }
    return arena_printf(
        arena, "Does not fit: stage %u needs %s %s and may use %s; %s of it are %s: %s.",
        stage->stage, text_gib(arena, stage->peak_bytes), moments[stage->peak_phase],
        text_gib(arena, report->limit_bytes), text_gib(arena, bytes), largest, remedy);
}

void verdict_write(struct report *report, const struct report_parts *parts, struct arena *arena)
{
    const char *speed = speed_verdict(report, parts, arena);
    report->verdict =
        report->fits ? speed : arena_printf(arena, "%s %s", memory_verdict(report, arena), speed);
}
