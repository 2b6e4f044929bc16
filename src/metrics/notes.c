/*
 * notes.c - what the answer assumes or leaves out, one sentence each.
 *
 * A row of the table is a sentence and the condition under which it is true; whoever adds
 * a model takes its row away. What is not modelled at all is read off the schema.
 */
#include "metrics_internal.h"

#include <string.h>

#include "stepsim/schema.h"

static bool no_contention(const struct report *report)
{
    return strcmp(report->scenario->network, "closed_form") == 0 && report->layout->world > 1;
}

static bool balanced_experts(const struct report *report)
{
    return report->scenario->model.moe.experts > 0 &&
           strcmp(report->scenario->moe.load, "balanced") == 0;
}

static bool steps_alike(const struct report *report)
{
    return report->step_count > 1 && report->scenario->noise.kernel_jitter <= 0.0 &&
           report->balanced_step_time_s == report->step_time_s;
}

static bool tokens_are_dropped(const struct report *report)
{
    return report->dropped_ratio > 0.0;
}

static bool loads_are_unequal(const struct report *report)
{
    return report->load_max_over_mean > 1.0;
}

static bool noise_unfolds(const struct report *report)
{
    return report->scenario->noise.kernel_jitter > 0.0;
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
    {noise_unfolds, "noise.kernel_jitter differs from rank to rank, so nothing folds: every rank "
                    "is simulated."},
    {tokens_are_dropped, "MFU counts dropped tokens as trained; HFU counts the rows that experts "
                         "really compute."},
    {loads_are_unequal, "Expert loads are an input (moe.routing); memory is that of the heaviest "
                        "rank, and a job fits if every simulated step does."},
    {headroom_is_small, "The headroom is below 3 % of the limit; fragmentation of the allocator, "
                        "which is not simulated, can pass it."},
    {steps_alike, "Nothing in this scenario changes from step to step, so all steps are alike."},
    {days_given, "days_for_tokens counts no failures, restarts, evaluations or checkpoints."},
};

/* Every key and choice that the loader still refuses, from the tables themselves. */
static void add_pending(void *context, const char *key, const struct schema_row *row)
{
    struct text *text = context;
    if (row->pending != NULL) {
        text_add(text, "%s%s", text->length > 0 ? ", " : "", key);
        return;
    }
    unsigned count = 0;
    for (uint32_t i = 0; i < row->choice_count; i++) {
        const struct schema_choice *choice = &row->choices[i];
        if (choice->name != NULL && choice->pending != NULL) {
            if (count == 0) {
                text_add(text, "%s%s (%s", text->length > 0 ? ", " : "", key, choice->name);
            } else {
                text_add(text, ", %s", choice->name);
            }
            count++;
        }
    }
    text_add(text, "%s", count > 0 ? ")" : "");
}

static const char *pending_note(struct arena *arena)
{
    struct text text = {0};
    schema_walk(add_pending, &text);
    const char *note =
        text.length > 0 ? arena_printf(arena, "Not modelled yet, and refused when asked for: %s.",
                                       text_string(&text))
                        : NULL;
    text_free(&text);
    return note;
}

#define HELD_NAMED 6

/* "; a, b and 3 more have no interval and are held" */
static const char *held_words(const struct scenario_fact *facts, uint32_t count,
                              struct arena *arena)
{
    struct text text = {0};
    unsigned held = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct origin *origin = facts[i].origin;
        if (origin->grade == GRADE_ASSUMED && !origin->bounded && held++ < HELD_NAMED) {
            text_add(&text, "%s%s", held > 1 ? ", " : "", facts[i].key);
        }
    }
    if (held > HELD_NAMED) {
        text_add(&text, " and %u more", held - HELD_NAMED);
    }
    const char *words =
        held == 0 ? ""
                  : arena_printf(arena,
                                 " Assumed without an interval (low:, high:), so held where a "
                                 "range is asked for: %s.",
                                 text_string(&text));
    text_free(&text);
    return words;
}

static const char *assumed_note(const struct report *report, struct arena *arena)
{
    const struct scenario *scenario = report->scenario;
    uint32_t count = 0;
    const struct scenario_fact *facts = scenario_facts(scenario, arena, &count);
    unsigned assumed = 0;
    for (uint32_t i = 0; i < count; i++) {
        assumed += facts[i].origin->grade == GRADE_ASSUMED ? 1 : 0;
    }
    if (assumed == 0) {
        return NULL;
    }
    return arena_printf(arena,
                        "%u of the %u numbers that describe device and links are assumed; "
                        "`stepsim describe %s` and `stepsim describe %s` give grade, interval and "
                        "source of each.%s",
                        assumed, count, scenario->cluster.device.name, scenario->cluster.name,
                        held_words(facts, count, arena));
}

void notes_write(struct report *report, struct arena *arena)
{
    const size_t rows = sizeof note_table / sizeof note_table[0];
    const char **notes = ARENA_ARRAY(arena, rows + 2, const char *);
    for (size_t i = 0; i < rows; i++) {
        if (note_table[i].applies(report)) {
            notes[report->note_count++] = note_table[i].text;
        }
    }
    const char *const built[] = {assumed_note(report, arena), pending_note(arena)};
    for (size_t i = 0; i < sizeof built / sizeof built[0]; i++) {
        if (built[i] != NULL) {
            notes[report->note_count++] = built[i];
        }
    }
    report->notes = notes;
}
