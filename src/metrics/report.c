/*
 * report.c - from what happened to what people ask: speed, utilisation, time, memory.
 *
 * MFU is computed as it is defined, tokens per second times FLOPs per token over devices
 * times peak, so that a reader who multiplies the printed numbers gets the printed MFU.
 */
#include "metrics_internal.h"

#define SECONDS_PER_DAY 86400.0

static double tokens_per_step(const struct scenario *scenario)
{
    return (double)scenario->training.global_batch_size * (double)scenario->training.seq_len;
}

/* Utilisation of the whole job by flop_per_token. */
static double utilisation(const struct report *report, double flop_per_token)
{
    return report->tokens_per_s * flop_per_token /
           ((double)report->layout->world * report->peak_flop_per_s);
}

static void speed_measure(struct report *report, const struct report_parts *parts)
{
    const struct scenario *scenario = parts->scenario;
    const struct device_spec *device = parts->cluster->device;
    const double tokens = tokens_per_step(scenario);
    report->step_time_s = sim_time_seconds(parts->timeline->end);
    ASSERT(report->step_time_s > 0.0);
    report->tokens_per_s = tokens / report->step_time_s;
    report->tokens_per_s_per_device = report->tokens_per_s / (double)parts->layout->world;
    report->days = scenario->training.tokens / report->tokens_per_s / SECONDS_PER_DAY;
    report->peak_flop_per_s = scenario->mfu.peak == MFU_PEAK_MARKETED ? device->marketed_flop_per_s
                                                                      : device->peak_flop_per_s;
    report->convention = (struct flop_convention){
        .attention = scenario->mfu.attention_causal ? ATTENTION_COUNT_CAUSAL : ATTENTION_COUNT_FULL,
        .mtp = scenario->mfu.mtp,
        .router = scenario->mfu.router,
    };
    report->model_flop_per_token = model_train_flop_per_token(
        parts->model, (double)scenario->training.seq_len, &report->convention);
    report->model_flop_per_s_per_device =
        report->tokens_per_s_per_device * report->model_flop_per_token;

    /* Executed FLOPs in the convention of MFU: three times forward, and forward once more for
     * the share that recompute runs again. */
    double forward = 0.0;
    double recompute = 0.0;
    double rows = 0.0; /* more rows than a dropless step computes: padding; or fewer: dropped */
    const double more = parts->loads != NULL ? parts->loads[0].rows_mean - 1.0 : 0.0;
    for (uint32_t s = 0; s < parts->layout->pp; s++) {
        forward += parts->plan->forward_flop[s];
        recompute += parts->plan->recompute_flop[s];
        rows += more != 0.0 ? more * parts->plan->rows_flop[s] : 0.0;
    }
    ASSERT(forward > 0.0);
    report->hardware_flop_per_token =
        report->model_flop_per_token * (1.0 + (recompute + rows) / (3.0 * forward));
    report->mfu = utilisation(report, report->model_flop_per_token);
    report->hfu = utilisation(report, report->hardware_flop_per_token);
}

static void time_measure(struct report *report, const struct report_parts *parts,
                         struct arena *arena)
{
    const struct programs *programs = parts->plan->programs;
    const struct timeline *timeline = parts->timeline;
    const struct observed_rank *rank = observed_busiest(timeline);
    const uint32_t stage = programs->classes[programs->ranks[rank->rank].rank_class].stage;
    struct sweep sweep;
    struct sweep_slice slice;
    struct overlap overlap = {0};
    struct time_share share = {.balanced_ps = parts->plan->balanced_ps};
    sweep_init(&sweep, programs, timeline, rank, arena);
    while (sweep_next(&sweep, &slice)) {
        time_share_add(&share, &slice);
        overlap_add(&overlap, programs->labels, &slice);
    }
    time_share_finish(&share, timeline->end, parts->balanced != NULL ? parts->balanced->end : 0,
                      report->time_share_ps);
    overlap_finish(&overlap, report->comm);
    sim_time sum_ps = 0;
    for (unsigned c = 0; c < CAUSE_COUNT; c++) {
        sum_ps += report->time_share_ps[c];
    }
    ASSERT(sum_ps == timeline->end);
    for (unsigned c = 0; c < CAUSE_COUNT; c++) {
        report->comm[c].bytes_per_device = parts->plan->sent_bytes[stage * CAUSE_COUNT + c];
    }
    report->time_share_stage = stage;
    report->bubble_ratio = bubble_measure(programs, timeline, arena);
}

/* A step fits if its fullest stage does; loading and the optimizer step are alike in all. */
static void step_memory(struct report *report, const struct report_parts *parts,
                        struct step_report *step, const struct step_outcome *outcome)
{
    const double scheduled = (double)outcome->peak_bytes;
    const double other = memory_other_peak(parts);
    const bool described = step->step == 1;
    step->peak_bytes = described ? report->peak_bytes : scheduled > other ? scheduled : other;
    step->fits = step->peak_bytes <= report->limit_bytes;
    report->misfit_steps += step->fits ? 0 : 1;
    if (step->peak_bytes > report->worst_peak_bytes) {
        report->worst_peak_bytes = step->peak_bytes;
        report->worst_step = step->step;
    }
}

static void steps_measure(struct report *report, const struct report_parts *parts,
                          struct arena *arena)
{
    struct step_report *steps = ARENA_ARRAY(arena, parts->step_count, struct step_report);
    const double tokens = tokens_per_step(parts->scenario);
    for (uint32_t i = 0; i < parts->step_count; i++) {
        const double step_time_s = sim_time_seconds(parts->steps[i].end);
        steps[i] = (struct step_report){
            .step = i + 1,
            .step_time_s = step_time_s,
            .tokens_per_s = tokens / step_time_s,
            .mfu = tokens / step_time_s * report->model_flop_per_token /
                   ((double)parts->layout->world * report->peak_flop_per_s),
            .load_max_over_mean = parts->loads != NULL ? parts->loads[i].max_over_mean : 1.0,
            .load_mean_max_over_mean =
                parts->loads != NULL ? parts->loads[i].mean_max_over_mean : 1.0,
            .dropped_ratio = parts->loads != NULL ? parts->loads[i].dropped_ratio : 0.0,
            .migrations = parts->loads != NULL ? parts->loads[i].migrations : 0,
        };
        step_memory(report, parts, &steps[i], &parts->steps[i]);
        report->migrations += steps[i].migrations;
        report->mean_step_time_s += step_time_s / parts->step_count;
    }
    report->mean_mfu = tokens / report->mean_step_time_s * report->model_flop_per_token /
                       ((double)parts->layout->world * report->peak_flop_per_s);
    report->steps = steps;
    report->step_count = parts->step_count;
    report->fits = report->misfit_steps == 0;
}

static void loads_measure(struct report *report, const struct report_parts *parts)
{
    const bool balanced = parts->loads == NULL;
    report->load_max_over_mean = balanced ? 1.0 : parts->loads[0].max_over_mean;
    report->load_mean_max_over_mean = balanced ? 1.0 : parts->loads[0].mean_max_over_mean;
    report->dropped_ratio = balanced ? 0.0 : parts->loads[0].dropped_ratio;
    report->padded_ratio = balanced ? 0.0 : parts->loads[0].padded_ratio;
    report->layer_dropped = parts->layer_dropped;
    report->layer_count = parts->model->layers + parts->model->spec->mtp_layers;
    report->balanced_step_time_s =
        sim_time_seconds(parts->balanced != NULL ? parts->balanced->end : parts->timeline->end);
}

static bool plausible(const struct report *report, struct error_list *errors)
{
    if (report->mfu <= 1.0 && report->hfu <= 1.0) {
        return true;
    }
    error_add(errors, ERROR_mfu_above_one, scenario_at(report->scenario, "mfu.peak"), "mfu",
              "%.4g TFLOP/token x %.4g tokens/s on %u devices of %.4g TFLOP/s is an MFU of %.3f "
              "(HFU %.3f); no device does more than its peak: check mfu.peak and mfu.attention",
              report->model_flop_per_token / 1e12, report->tokens_per_s, report->layout->world,
              report->peak_flop_per_s / 1e12, report->mfu, report->hfu);
    return false;
}

struct report *report_build(const struct report_parts *parts, struct arena *arena,
                            struct error_list *errors)
{
    ASSERT(parts->step_count >= 1);
    const struct timeline *timeline = parts->timeline;
    struct report *report = ARENA_NEW(arena, struct report);
    report->scenario = parts->scenario;
    report->model = parts->model;
    report->cluster = parts->cluster;
    report->layout = parts->layout;
    report->scenario_hash = scenario_hash(parts->scenario, arena);
    loads_measure(report, parts);
    report->ranks_all = parts->ranks_all;
    report->simulated_ranks = parts->plan->programs->rank_count;
    report->classes = parts->plan->programs->class_count;
    report->events = timeline->events;
    report->digest = timeline->digest;
    report->event_digest = timeline->event_digest;
    speed_measure(report, parts);
    if (!plausible(report, errors)) {
        return NULL;
    }
    time_measure(report, parts, arena);
    memory_measure(report, parts, arena);
    steps_measure(report, parts, arena);
    notes_write(report, arena);
    verdict_write(report, parts, arena);
    return report;
}
