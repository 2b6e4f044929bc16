/*
 * wishes.c - conditions and objectives that the user writes as expressions.
 *
 * Names are keys of the space, degrees that follow from them, results, and any other key of the
 * scenario. A condition without results is asked before a candidate is bounded; one with results
 * after its simulation, which leaves the proof as it is: what does not hold is not ranked.
 *
 * An objective is bounded by itself, for the shortest step and the least memory. That is right
 * only if it never falls as they grow, which cannot be read off an expression; it is tried on a
 * grid of steps and peaks around what the file's layout may take.
 */
#include <math.h>
#include <string.h>

#include "search_internal.h"
#include "stepsim/formula.h"
#include "stepsim/text.h"

/* Meanings of names: axes are their numbers, then these, then keys of the file. */
enum {
    NAME_DP = SEARCH_AXES_MAX,
    NAME_MICROBATCHES,
    NAME_STEP,
    NAME_TOKENS,
    NAME_TOKENS_PER_DEVICE,
    NAME_PEAK,
    NAME_HEADROOM,
    NAME_MFU,
    NAME_BASE,
};

static const struct {
    const char *name;
    int meaning;
} own_names[] = {
    {"dp", NAME_DP},
    {"microbatches", NAME_MICROBATCHES},
    {"step_time_s", NAME_STEP},
    {"tokens_per_s", NAME_TOKENS},
    {"tokens_per_s_per_device", NAME_TOKENS_PER_DEVICE},
    {"peak_bytes", NAME_PEAK},
    {"headroom_bytes", NAME_HEADROOM},
    {"mfu", NAME_MFU},
};
#define OWN_NAME_COUNT (sizeof own_names / sizeof own_names[0])

static bool is_result(int name)
{
    return name >= NAME_STEP && name < NAME_BASE;
}

/* What formulas ask with. */
struct wish_names {
    const struct space *space;
    struct arena *arena;
    const char *label;
    bool objective;
    const char *base_keys[FORMULA_NAMES_MAX], *base_texts[FORMULA_NAMES_MAX];
    uint32_t base_count;
    /* Of the point at hand */
    const struct wish_point *point;
    double step_s, peak_bytes;
};

static int resolve_base(struct wish_names *names, const char *name, struct error_list *errors)
{
    size_t same = 0;
    const char *key = formula_key(name, &same, names->arena);
    const struct location nowhere = {0};
    if (key == NULL) {
        error_add(errors, ERROR_bad_expression, nowhere, names->label,
                  "there is no \"%s\": names are keys of the scenario by their last part or with "
                  "underscores for dots, dp, microbatches, step_time_s, tokens_per_s, "
                  "tokens_per_s_per_device, mfu, peak_bytes and headroom_bytes",
                  name);
        return -1;
    }
    if (same > 1) {
        error_add(errors, ERROR_bad_expression, nowhere, names->label,
                  "\"%s\" is the end of %zu keys, %s among them; write more of it, with "
                  "underscores for dots",
                  name, same, key);
        return -1;
    }
    ASSERT(names->base_count < FORMULA_NAMES_MAX);
    names->base_keys[names->base_count] = key;
    names->base_texts[names->base_count] =
        scenario_value_text(names->space->base, key, names->arena);
    return NAME_BASE + (int)names->base_count++;
}

static int resolve(void *user, const char *name, struct error_list *errors)
{
    struct wish_names *names = user;
    for (size_t i = 0; i < OWN_NAME_COUNT; i++) {
        if (strcmp(name, own_names[i].name) != 0) {
            continue;
        }
        if (names->objective && own_names[i].meaning == NAME_MFU) {
            error_add(errors, ERROR_bad_expression, (struct location){0}, names->label,
                      "mfu is known only after the simulation; tokens_per_s_per_device is the same "
                      "but for a factor");
            return -1;
        }
        return own_names[i].meaning;
    }
    for (uint32_t a = 0; a < names->space->axis_count; a++) {
        if (formula_name_means(name, names->space->axes[a].key)) {
            return (int)a;
        }
    }
    return resolve_base(names, name, errors);
}

static double replicas(const struct scenario *scenario)
{
    const struct parallel_spec *p = &scenario->parallel;
    return (double)scenario->devices / ((double)p->tp * p->pp * p->cp);
}

static double headroom(const struct scenario *scenario, double peak_bytes)
{
    const struct device_spec *device = &scenario->cluster.device;
    return fmin(device->usable_bytes, device->hbm_bytes) - peak_bytes;
}

static struct formula_value number_value(double number)
{
    const bool whole = number == floor(number) && fabs(number) < 9e15;
    return (struct formula_value){.kind = whole ? FORMULA_WHOLE : FORMULA_NUMBER, .number = number};
}

static struct formula_value axis_value(const struct wish_names *names, uint32_t axis)
{
    const struct space *space = names->space;
    const uint64_t number = names->point->number;
    const struct search_value *value = space_value(
        space, axis, space->outers[number / space->inner_size], number % space->inner_size);
    return formula_value_of(space->axes[axis].key, value->text);
}

static struct formula_value value_of(void *user, int name)
{
    const struct wish_names *names = user;
    const struct scenario *scenario = names->point->scenario;
    const double tokens =
        (double)scenario->training.global_batch_size * (double)scenario->training.seq_len;
    switch (name) {
    case NAME_DP:
        return number_value(replicas(scenario));
    case NAME_MICROBATCHES:
        return number_value((double)scenario->training.global_batch_size /
                            (replicas(scenario) * scenario->training.micro_batch_size));
    case NAME_STEP:
        return (struct formula_value){.kind = FORMULA_NUMBER, .number = names->step_s};
    case NAME_TOKENS:
        return (struct formula_value){.kind = FORMULA_NUMBER, .number = tokens / names->step_s};
    case NAME_TOKENS_PER_DEVICE:
        return (struct formula_value){.kind = FORMULA_NUMBER,
                                      .number = tokens / names->step_s / scenario->devices};
    case NAME_PEAK:
        return (struct formula_value){.kind = FORMULA_NUMBER, .number = names->peak_bytes};
    case NAME_HEADROOM:
        return (struct formula_value){.kind = FORMULA_NUMBER,
                                      .number = headroom(scenario, names->peak_bytes)};
    case NAME_MFU:
        return (struct formula_value){.kind = FORMULA_NUMBER, .number = names->point->figures->mfu};
    default:
        break;
    }
    if (name >= NAME_BASE) {
        return formula_value_of(names->base_keys[name - NAME_BASE],
                                names->base_texts[name - NAME_BASE]);
    }
    return axis_value(names, (uint32_t)name);
}

/* ---- Building ---- */

static struct formula *make(struct wishes *wishes, const char *const *text, const char *label,
                            struct error_list *errors)
{
    struct wish_names *names = wishes->names;
    names->label = label;
    struct formula_ask *ask = ARENA_NEW(names->arena, struct formula_ask);
    *ask = (struct formula_ask){
        .texts = text, .count = 1, .label = label, .resolve = resolve, .value = value_of};
    return formula_create(ask, names, names->arena, errors);
}

static bool names_results(const struct formula *formula)
{
    for (int name = NAME_STEP; name < NAME_BASE; name++) {
        if (formula_uses(formula, name)) {
            ASSERT(is_result(name));
            return true;
        }
    }
    return false;
}

/* Does the objective ever fall as the step gets longer or the memory larger? */
static bool falls(const struct wishes *wishes)
{
    static const double steps[] = {0.01, 0.1, 1.0, 3.0, 10.0, 30.0, 100.0};
    static const double shares[] = {0.1, 0.5, 0.8, 0.95, 1.0, 1.2};
    enum { STEPS = sizeof steps / sizeof steps[0], SHARES = sizeof shares / sizeof shares[0] };
    const struct scenario *base = wishes->space->base;
    const struct wish_point point = {.scenario = base};
    double scores[STEPS][SHARES];
    for (int i = 0; i < STEPS; i++) {
        for (int k = 0; k < SHARES; k++) {
            scores[i][k] =
                wishes_score(wishes, &point, steps[i], shares[k] * base->cluster.device.hbm_bytes);
            if ((i > 0 && scores[i][k] < scores[i - 1][k]) ||
                (k > 0 && scores[i][k] < scores[i][k - 1])) {
                return true;
            }
        }
    }
    return false;
}

static bool build_objective(struct wishes *wishes, const struct search_ask *ask,
                            struct error_list *errors)
{
    wishes->names->objective = true;
    wishes->objective = make(wishes, &ask->objective_text, "--minimise", errors);
    wishes->names->objective = false;
    if (wishes->objective == NULL) {
        return false;
    }
    if (!ask->exhaustive && wishes->space->outer_size > 0 && falls(wishes)) {
        error_add(errors, ERROR_bad_expression, (struct location){0}, "--minimise",
                  "\"%s\" falls as the step gets longer or the memory larger, so bounds prove "
                  "nothing; turn its sign, or add --exhaustive",
                  ask->objective_text);
        return false;
    }
    return true;
}

bool wishes_build(struct wishes *wishes, const struct space *space, const struct search_ask *ask,
                  struct arena *arena, struct error_list *errors)
{
    *wishes = (struct wishes){.space = space};
    wishes->names = ARENA_NEW(arena, struct wish_names);
    *wishes->names = (struct wish_names){.space = space, .arena = arena};
    wishes->conditions = ARENA_ARRAY(arena, ask->where_count + 1, struct wish);
    bool good = true;
    for (uint32_t i = 0; i < ask->where_count; i++) {
        struct formula *formula = make(wishes, &ask->wheres[i], "--where", errors);
        if (formula == NULL) {
            good = false;
            continue;
        }
        wishes->conditions[wishes->condition_count++] =
            (struct wish){.formula = formula, .late = names_results(formula)};
    }
    if (good && ask->objective_text != NULL) {
        good = build_objective(wishes, ask, errors);
    }
    if (!good) {
        wishes_release(wishes);
    }
    return good;
}

void wishes_release(struct wishes *wishes)
{
    for (uint32_t i = 0; i < wishes->condition_count; i++) {
        formula_destroy(wishes->conditions[i].formula);
    }
    formula_destroy(wishes->objective);
    wishes->condition_count = 0;
    wishes->objective = NULL;
}

/* ---- Asking ---- */

bool wishes_hold(const struct wishes *wishes, const struct wish_point *point, bool late)
{
    struct wish_names *names = wishes->names;
    names->point = point;
    if (point->figures != NULL) {
        names->step_s = point->figures->step_s;
        names->peak_bytes = point->figures->peak_bytes;
    }
    for (uint32_t i = 0; i < wishes->condition_count; i++) {
        const struct wish *wish = &wishes->conditions[i];
        double holds = 1.0;
        if (wish->late == late) {
            formula_evaluate(wish->formula, names, &holds);
        }
        if (isnan(holds) || holds == 0.0) {
            return false;
        }
    }
    return true;
}

double wishes_score(const struct wishes *wishes, const struct wish_point *point, double step_s,
                    double peak_bytes)
{
    struct wish_names *names = wishes->names;
    names->point = point;
    names->step_s = step_s;
    names->peak_bytes = peak_bytes;
    double score = 0.0;
    formula_evaluate(wishes->objective, names, &score);
    return isnan(score) ? (double)INFINITY : score;
}
