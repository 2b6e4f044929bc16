/* search_answer.c - the best layouts in words: choices, reasons, and what a change would do. */
#include <math.h>
#include <string.h>

#include "search_internal.h"
#include "stepsim/text.h"

static void list_choices(const struct hunt *hunt, struct search_layout *layout)
{
    const struct space *space = &hunt->space;
    const char **choices = ARENA_ARRAY(hunt->arena, space->axis_count, const char *);
    for (uint32_t a = 0; a < space->axis_count; a++) {
        const struct search_value *value =
            space_value(space, a, space->outers[layout->candidate / space->inner_size],
                        layout->candidate % space->inner_size);
        const char *text = value->text;
        if (strcmp(space->axes[a].key, "parallel.stages") == 0) {
            if (strcmp(text, "file") == 0) {
                continue;
            }
            if (strcmp(text, "apart") == 0) {
                text = arena_printf(hunt->arena, "{layout: \"%s\"}",
                                    layout->scenario->parallel.layout);
            } else if (strcmp(text, "tail") == 0) {
                struct text list = {0};
                for (uint32_t k = 0; k < layout->scenario->parallel.layers_count; k++) {
                    text_add(&list, "%s%u", k > 0 ? "," : "", layout->scenario->parallel.layers[k]);
                }
                text = arena_printf(hunt->arena, "{layers: [%s]}", text_string(&list));
                text_free(&list);
            }
        }
        choices[layout->choice_count++] =
            arena_printf(hunt->arena, "%s=%s", space->axes[a].key, text);
    }
    layout->choices = choices;
}

static struct search_layout layout_of(const struct hunt *hunt, const struct candidate *candidate)
{
    struct error_list errors;
    error_list_init(&errors, hunt->arena);
    struct search_layout layout = {
        .candidate = candidate->number,
        .scenario = candidate_scenario(hunt, candidate->number, hunt->arena),
        .figures = candidate->figures,
        .score = candidate->score,
    };
    struct run run;
    const bool prepared = run_prepare(&run, layout.scenario, hunt->arena, &errors);
    ASSERT(prepared);
    layout.layout = run.layout;
    layout.schedule = run.schedule->name;
    list_choices(hunt, &layout);
    return layout;
}

void answer_list(const struct hunt *hunt, const struct ranking *ranking,
                 struct search_answer *answer)
{
    struct search_layout *layouts = ARENA_ARRAY(hunt->arena, ranking->count, struct search_layout);
    for (uint64_t i = 0; i < ranking->count; i++) {
        layouts[i] = layout_of(hunt, ranking->best[i]);
    }
    for (uint64_t i = 1; i < ranking->count; i++) {
        layouts[i].why_lost = why_lost(&layouts[i], &layouts[0], hunt->arena);
    }
    layouts[0].why_lost =
        why_won(&layouts[0], ranking->count > 1 ? &layouts[1] : NULL, hunt->arena);
    answer->layouts = layouts;
    answer->layout_count = (uint32_t)ranking->count;
}

/* The best layout again on fewer whole nodes, with the same degrees and fewer replicas. */
const char *answer_one_node_less(const struct hunt *hunt, const struct search_layout *best)
{
    struct arena *scratch = arena_create("fewer");
    struct scenario fewer = *best->scenario;
    struct search_figures figures;
    const char *sentence = "No smaller number of nodes takes this layout with the same batch.";
    while (fewer.devices > fewer.cluster.devices_per_node) {
        fewer.devices -= fewer.cluster.devices_per_node;
        struct error_list errors;
        error_list_init(&errors, scratch);
        struct run run;
        if (run_prepare(&run, &fewer, scratch, &errors) && figures_of(&fewer, &figures, scratch)) {
            const uint32_t nodes =
                (best->scenario->devices - fewer.devices) / fewer.cluster.devices_per_node;
            sentence = arena_printf(
                hunt->arena,
                "The next smaller cluster that this layout and batch divide has %u devices (%u "
                "%s less): %.4g s per step (%+.1f %%), %s tokens/s per device%s.",
                fewer.devices, nodes, nodes == 1 ? "node" : "nodes", figures.step_s,
                (figures.step_s / best->figures.step_s - 1.0) * 100.0,
                text_si(hunt->arena, figures.tokens_per_s / fewer.devices, ""),
                figures.fits ? "" : ", but it does not fit in memory");
            break;
        }
        arena_reset(scratch);
    }
    arena_destroy(scratch);
    return sentence;
}

const char *answer_one_more_gib(struct hunt *hunt, const struct search_layout *best)
{
    const struct ranking more = hunt_best_within(hunt, hunt->limit_bytes + MORE_MEMORY_BYTES, 1);
    if (more.count == 0 || more.best[0]->score >= best->score) {
        return "One more GiB of memory on each device would change nothing.";
    }
    const struct search_layout other = layout_of(hunt, more.best[0]);
    struct text text = {0};
    for (uint32_t i = 0; i < other.choice_count; i++) {
        const char *mine = i < best->choice_count ? best->choices[i] : "";
        if (strcmp(other.choices[i], mine) != 0) {
            text_add(&text, "%s%s", text.length > 0 ? ", " : "", other.choices[i]);
        }
    }
    const char *sentence =
        arena_printf(hunt->arena,
                     "One more GiB of memory on each device would allow %s: %.4g s per step "
                     "(%+.1f %%).",
                     text_string(&text), other.figures.step_s,
                     (other.figures.step_s / best->figures.step_s - 1.0) * 100.0);
    text_free(&text);
    return sentence;
}

void answer_written(const struct hunt *hunt, struct search_answer *answer)
{
    struct arena *scratch = arena_create("written");
    answer->written_legal = figures_of(hunt->space.base, &answer->written, scratch);
    arena_destroy(scratch);
}

void answer_refuse(const struct hunt *hunt, struct error_list *errors)
{
    double least = INFINITY;
    for (uint64_t i = 0; i < hunt->candidate_count; i++) {
        const struct candidate *candidate = &hunt->candidates[i];
        least =
            fmin(least, candidate->done ? candidate->figures.peak_bytes : candidate->memory_bound);
    }
    bool unwanted = false; /* something fits, but a condition does not hold for its results */
    for (uint64_t i = 0; i < hunt->candidate_count; i++) {
        const struct candidate *candidate = &hunt->candidates[i];
        unwanted = unwanted || (candidate->done && candidate->figures.fits && !candidate->holds);
    }
    if (hunt->ask->score_cut > 0.0) {
        error_add(errors, ERROR_not_among_best, scenario_at(hunt->space.base, "devices"), "search",
                  "none of %llu legal layouts fits and scores at most %.6g",
                  (unsigned long long)hunt->progress.counts.legal, hunt->ask->score_cut);
    } else if (unwanted) {
        error_add(errors, ERROR_does_not_fit, scenario_at(hunt->space.base, "devices"), "search",
                  "layouts fit, but the conditions of --where hold for none of them");
    } else if (hunt->progress.counts.legal == 0) {
        error_add(errors, ERROR_does_not_fit, scenario_at(hunt->space.base, "devices"), "search",
                  "none of %llu combinations is legal; check devices and "
                  "training.global_batch_size, or vary more keys",
                  (unsigned long long)hunt->progress.counts.candidates);
    } else if (isinf(least)) {
        error_add(errors, ERROR_does_not_fit, scenario_at(hunt->space.base, "devices"), "search",
                  "none of %llu legal layouts comes within a GiB of the limit of %s; take more "
                  "devices, or vary more keys",
                  (unsigned long long)hunt->progress.counts.legal,
                  text_gib(hunt->arena, hunt->limit_bytes));
    } else {
        error_add(errors, ERROR_does_not_fit, scenario_at(hunt->space.base, "devices"), "search",
                  "none of %llu legal layouts fits; the smallest needs %s and may use %s",
                  (unsigned long long)hunt->progress.counts.legal, text_gib(hunt->arena, least),
                  text_gib(hunt->arena, hunt->limit_bytes));
    }
}
