/*
 * notes.c - what the answer assumes or leaves out, one sentence each.
 *
 * A row of the table is a sentence and the condition under which it is true; whoever adds
 * a model takes its row away.
 */
#include "metrics_internal.h"

#include <string.h>

static bool always(const struct report *report)
{
    (void)report;
    return true;
}

static bool no_contention(const struct report *report)
{
    return strcmp(report->scenario->network, "closed_form") == 0 && report->layout->world > 1;
}

static bool balanced_experts(const struct report *report)
{
    return report->scenario->model.moe.experts > 0 &&
           strcmp(report->scenario->moe.load, "balanced") == 0;
}

static bool hfu_below_mfu(const struct report *report)
{
    return report->hfu < report->mfu;
}

static bool steps_alike(const struct report *report)
{
    return report->step_count > 1 && report->scenario->noise.kernel_jitter <= 0.0;
}

static bool headroom_is_small(const struct report *report)
{
    return report->fits && report->headroom_bytes < 0.03 * report->limit_bytes;
}

static bool days_given(const struct report *report)
{
    return report->scenario->training.tokens > 0.0;
}

static const struct note {
    bool (*applies)(const struct report *report);
    const char *text;
} note_table[] = {
    {no_contention, "Links are not shared: each collective has the fabric to itself "
                    "(network: closed_form), so crowded NICs and uplinks make a real step longer."},
    {balanced_experts,
     "Experts are balanced by assumption (moe.routing.load: balanced); the "
     "heaviest rank of a real routing makes a step longer and its memory larger."},
    {hfu_below_mfu, "MFU counts full attention while the kernels skip masked blocks, so HFU, "
                    "which counts what is executed, is the lower number."},
    {headroom_is_small, "The headroom is below 3 % of the limit; fragmentation of the allocator, "
                        "which is not simulated, can pass it."},
    {steps_alike, "Nothing in this scenario changes from step to step, so all steps are alike."},
    {days_given, "days_for_tokens counts no failures, restarts, evaluations or checkpoints."},
    {always, "Not modelled yet: schedules that overlap or split the backward pass, swap, expert "
             "imbalance and placement, shared links."},
};

void notes_write(struct report *report, struct arena *arena)
{
    const size_t rows = sizeof note_table / sizeof note_table[0];
    const char **notes = ARENA_ARRAY(arena, rows, const char *);
    for (size_t i = 0; i < rows; i++) {
        if (note_table[i].applies(report)) {
            notes[report->note_count++] = note_table[i].text;
        }
    }
    report->notes = notes;
}
