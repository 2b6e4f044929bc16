/*
 * memory_report.c - the fullest moment of every stage, split into what fills it.
 *
 * Three moments can be the peak of a stage: loading the weights, the fullest instant of
 * the schedule as the engine saw it, and the optimizer step with its workspace. What does
 * not move is known from the plan; of the rest the logits are known, and what remains are
 * activations. The categories therefore sum to the peak by construction, and the asserts
 * check that no category is negative.
 */
#include <string.h>

#include "metrics_internal.h"

static const char *const phase_names[MEMORY_PHASE_COUNT] = {"load", "warmup", "steady", "cooldown",
                                                            "optimizer"};

const char *memory_phase_name(enum memory_phase phase)
{
    ASSERT(phase < MEMORY_PHASE_COUNT);
    return phase_names[phase];
}

static enum memory_phase memory_phase_of(unsigned step_phase)
{
    switch (step_phase) {
    case PHASE_WARMUP:
        return MEMORY_WARMUP;
    case PHASE_STEADY:
        return MEMORY_STEADY;
    case PHASE_COOLDOWN:
        return MEMORY_COOLDOWN;
    default:
        return MEMORY_OPTIMIZER;
    }
}

/* The simulated rank of a stage with the highest peak; ties go to the first. */
static const struct rank_result *fullest_rank(const struct programs *programs,
                                              const struct timeline *timeline, uint32_t stage)
{
    const struct rank_result *best = NULL;
    for (uint32_t r = 0; r < programs->rank_count; r++) {
        const struct rank_result *result = &timeline->ranks[r];
        if (programs->classes[programs->ranks[r].rank_class].stage == stage &&
            (best == NULL || result->peak_bytes > best->peak_bytes)) {
            best = result;
        }
    }
    ASSERT(best != NULL);
    return best;
}

/* NULL if the rank is not observed. */
static const struct observed_rank *observed_times(const struct timeline *timeline, uint32_t rank)
{
    for (uint32_t i = 0; i < timeline->observed_count; i++) {
        if (timeline->observed[i].rank == rank) {
            return &timeline->observed[i];
        }
    }
    return NULL;
}

static uint32_t stage_layers(const struct layout *layout, uint32_t stage)
{
    uint32_t layers = 0;
    for (uint32_t c = 0; c < layout->vpp; c++) {
        layers += layout->chunks[stage * layout->vpp + c].layer_count;
    }
    return layers;
}

/* Do two neighbouring ops belong to one pass of one block? */
static bool same_pass(const struct program_label *labels, const struct program_op *a,
                      const struct program_op *b)
{
    const struct program_label *left = &labels[a->label];
    const struct program_label *right = &labels[b->label];
    return left->microbatch == right->microbatch && left->chunk == right->chunk &&
           left->layer == right->layer && left->pass == right->pass;
}

/* Is this op part of a head pass, in the chunk that holds the head? */
static bool is_head_op(const struct report_parts *parts, uint32_t stage,
                       const struct program_label *label)
{
    const struct layout *layout = parts->layout;
    if (label->phase == PHASE_OPTIMIZER || label->microbatch < 0 || label->layer >= 0) {
        return false;
    }
    ASSERT(label->chunk < layout->vpp);
    const struct layout_chunk *chunk = &layout->chunks[stage * layout->vpp + label->chunk];
    return (chunk->head || chunk->mtp > 0) && strncmp(label->name, "embedding", 9) != 0;
}

/* Head passes of a stage: each leaves its logits. */
static double head_passes(const struct layout *layout, uint32_t stage)
{
    double passes = 0.0;
    for (uint32_t c = 0; c < layout->vpp; c++) {
        const struct layout_chunk *chunk = &layout->chunks[stage * layout->vpp + c];
        passes += (chunk->head ? 1.0 : 0.0) + (double)chunk->mtp;
    }
    return passes;
}

/*
 * Logits live from the start of a head's forward to the end of its backward. Ops of one
 * pass stand together on the compute stream, so passes are counted where they begin and
 * where they end.
 */
static double logits_at_peak(const struct report_parts *parts, uint32_t stage,
                             const struct observed_rank *times, sim_time peak_time)
{
    const struct programs *programs = parts->plan->programs;
    const double passes = head_passes(parts->layout, stage);
    if (passes == 0.0 || times == NULL) {
        return 0.0;
    }
    const struct rank_class *class = &programs->classes[programs->ranks[times->rank].rank_class];
    const struct program *program = &programs->programs[class->program];
    const uint32_t count = program->op_count[STREAM_COMPUTE];
    double alive = 0.0;
    for (uint32_t i = 0; i < count; i++) {
        const struct program_op *op = &program->ops[STREAM_COMPUTE][i];
        const struct program_label *label = &programs->labels[op->label];
        if (!is_head_op(parts, stage, label)) {
            continue;
        }
        const bool begins =
            i == 0 || !same_pass(programs->labels, op, &program->ops[STREAM_COMPUTE][i - 1]);
        const bool ends = i + 1 == count ||
                          !same_pass(programs->labels, op, &program->ops[STREAM_COMPUTE][i + 1]);
        alive += label->pass == 'F' && begins && times->start[STREAM_COMPUTE][i] <= peak_time ? 1.0
                                                                                              : 0.0;
        alive -=
            label->pass == 'B' && ends && times->end[STREAM_COMPUTE][i] <= peak_time ? 1.0 : 0.0;
    }
    return alive > 0.0 ? alive * parts->plan->logits_bytes[stage] / passes : 0.0;
}

/* What the engine saw, before loading and the optimizer step are looked at. */
static struct stage_report stage_in_schedule(const struct report_parts *parts, uint32_t stage)
{
    const struct programs *programs = parts->plan->programs;
    const struct timeline *timeline = parts->timeline;
    const struct stage_memory *fixed = &parts->plan->stage_memory[stage];
    const struct rank_result *rank = fullest_rank(programs, timeline, stage);
    const double static_bytes =
        fixed->weights + fixed->gradients + fixed->optimizer + fixed->buffers + fixed->reserve;
    struct stage_report out = {
        .stage = stage,
        .peak_bytes = (double)rank->peak_bytes,
        .weights = fixed->weights,
        .gradients = fixed->gradients,
        .optimizer = fixed->optimizer,
        .buffers = fixed->buffers,
        .reserve = fixed->reserve,
        .peak_phase = rank->peak_label == UINT32_MAX
                          ? MEMORY_LOAD
                          : memory_phase_of(programs->labels[rank->peak_label].phase),
        .compute_busy_s = sim_time_seconds(rank->compute_busy),
        .end_s = sim_time_seconds(rank->end),
        .layers = stage_layers(parts->layout, stage),
    };
    /* The engine counts whole bytes, rounded up per category. */
    double moving_bytes = out.peak_bytes - static_bytes;
    ASSERT(moving_bytes > -8.0);
    moving_bytes = moving_bytes > 0.0 ? moving_bytes : 0.0;
    const double logits =
        logits_at_peak(parts, stage, observed_times(timeline, (uint32_t)(rank - timeline->ranks)),
                       rank->peak_time);
    out.logits = logits < moving_bytes ? logits : moving_bytes;
    out.activations = moving_bytes - out.logits;
    out.peak_bytes = static_bytes + moving_bytes;
    return out;
}

/* Replaces the peak if loading or the optimizer step is fuller. A workspace counts with
 * what it works for: the second copy of a block with the weights, the temporaries of the
 * update with the optimizer states. */
static void stage_other_moments(struct stage_report *stage, const struct stage_memory *fixed)
{
    const double static_bytes =
        fixed->weights + fixed->gradients + fixed->optimizer + fixed->buffers + fixed->reserve;
    if (static_bytes + fixed->load_workspace > stage->peak_bytes) {
        stage->peak_bytes = static_bytes + fixed->load_workspace;
        stage->peak_phase = MEMORY_LOAD;
        stage->weights = fixed->weights + fixed->load_workspace;
        stage->optimizer = fixed->optimizer;
        stage->activations = 0.0;
        stage->logits = 0.0;
    }
    if (static_bytes + fixed->optimizer_workspace > stage->peak_bytes) {
        stage->peak_bytes = static_bytes + fixed->optimizer_workspace;
        stage->peak_phase = MEMORY_OPTIMIZER;
        stage->weights = fixed->weights;
        stage->optimizer = fixed->optimizer + fixed->optimizer_workspace;
        stage->activations = 0.0;
        stage->logits = 0.0;
    }
}

double memory_other_peak(const struct report_parts *parts)
{
    double peak = 0.0;
    for (uint32_t s = 0; s < parts->layout->pp; s++) {
        struct stage_report stage = {0};
        stage_other_moments(&stage, &parts->plan->stage_memory[s]);
        peak = stage.peak_bytes > peak ? stage.peak_bytes : peak;
    }
    return peak;
}

static void stage_check(const struct stage_report *stage)
{
    const double sum = stage->weights + stage->gradients + stage->optimizer + stage->activations +
                       stage->logits + stage->buffers + stage->reserve;
    ASSERT(stage->weights >= 0.0 && stage->gradients >= 0.0 && stage->optimizer >= 0.0);
    ASSERT(stage->activations >= 0.0 && stage->logits >= 0.0);
    ASSERT(stage->buffers >= 0.0 && stage->reserve >= 0.0);
    ASSERT(sum - stage->peak_bytes < 1.0 && stage->peak_bytes - sum < 1.0);
}

void memory_measure(struct report *report, const struct report_parts *parts, struct arena *arena)
{
    const uint32_t stage_count = parts->layout->pp;
    struct stage_report *stages = ARENA_ARRAY(arena, stage_count, struct stage_report);
    for (uint32_t s = 0; s < stage_count; s++) {
        stages[s] = stage_in_schedule(parts, s);
        stage_other_moments(&stages[s], &parts->plan->stage_memory[s]);
        stage_check(&stages[s]);
        if (stages[s].peak_bytes > report->peak_bytes) {
            report->peak_bytes = stages[s].peak_bytes;
            report->peak_stage = s;
        }
    }
    const struct device_spec *device = parts->cluster->device;
    const double usable_bytes =
        device->usable_bytes < device->hbm_bytes ? device->usable_bytes : device->hbm_bytes;
    report->stages = stages;
    report->stage_count = stage_count;
    report->limit_bytes = usable_bytes - parts->scenario->memory.require_headroom_bytes;
    report->headroom_bytes = report->limit_bytes - report->peak_bytes;
    report->fits = report->headroom_bytes >= 0.0;
    report->balanced_peak_bytes = report->peak_bytes;
    if (parts->balanced != NULL) {
        const double scheduled = (double)parts->balanced->peak_bytes;
        const double other = memory_other_peak(parts);
        report->balanced_peak_bytes = scheduled > other ? scheduled : other;
    }
}
