/*
 * space.c - which keys a search varies, over which values, and how a candidate is made.
 *
 * A key is one row: where its field lies in struct scenario and which values it takes when none
 * are given. Values on the command line are read by the loader itself, one load per value, so
 * that they are checked and refused as everywhere else. A candidate is a copy of the scenario
 * with fields changed, which costs nothing beside what follows.
 *
 * Degrees come first: most combinations of them are refused for arithmetic that no other key can
 * mend, and are sorted out before the other keys are looked at.
 */
#include <stdlib.h>
#include <string.h>

#include "search_internal.h"
#include "stepsim/text.h"

#define VALUES_MAX 64

enum axis_kind { AXIS_NUMBER, AXIS_CHOICE, AXIS_SET, AXIS_FLAG, AXIS_TEXT, AXIS_STAGES };

/* How layers are dealt to stages. */
enum { STAGES_FILE, STAGES_BALANCED, STAGES_TAIL, STAGES_APART };

struct maker {
    const struct search_ask *ask;
    const struct scenario *base;
    struct arena *arena;
    struct error_list *errors;
    struct search_value *values;
    uint32_t count;
    const struct axis_row *row;
};

struct axis_row {
    const char *key;
    enum axis_kind kind;
    size_t offset;
    void (*defaults)(struct maker *maker);
};

/* ---- Values ---- */

static void add_value(struct maker *maker, const char *text, uint32_t number)
{
    for (uint32_t i = 0; i < maker->count; i++) {
        const bool same = maker->row->kind == AXIS_TEXT ? strcmp(maker->values[i].text, text) == 0
                                                        : maker->values[i].number == number;
        if (same) {
            return;
        }
    }
    if (maker->count < VALUES_MAX) {
        maker->values[maker->count++] = (struct search_value){.text = text, .number = number};
    }
}

static void add_number(struct maker *maker, uint32_t number)
{
    add_value(maker, arena_printf(maker->arena, "%u", number), number);
}

static uint32_t field_number(const struct axis_row *row, const struct scenario *scenario)
{
    const char *field = (const char *)scenario + row->offset;
    if (row->kind == AXIS_FLAG) {
        return *(const bool *)(const void *)field ? 1 : 0;
    }
    uint32_t number = 0;
    memcpy(&number, field, sizeof number);
    return number;
}

/* What the file has. */
static void add_written(struct maker *maker)
{
    const struct scenario *base = maker->base;
    const struct axis_row *row = maker->row;
    if (row->kind == AXIS_STAGES) {
        const bool balanced = base->parallel.split == SPLIT_BALANCED;
        add_value(maker, balanced ? "balanced" : "file", balanced ? STAGES_BALANCED : STAGES_FILE);
        return;
    }
    if (row->kind == AXIS_TEXT) {
        add_value(maker, *(const char *const *)(const void *)((const char *)base + row->offset), 0);
        return;
    }
    const char *text = scenario_value_text(base, row->key, maker->arena);
    add_value(maker, text != NULL ? text : "0", field_number(row, base));
}

/* A value as the loader reads it. */
static void add_parsed(struct maker *maker, const char *text)
{
    const struct axis_row *row = maker->row;
    if (row->kind == AXIS_STAGES) {
        if (strcmp(text, "balanced") == 0) {
            add_value(maker, "balanced", STAGES_BALANCED);
        } else if (strcmp(text, "tail") == 0) {
            add_value(maker, "tail", STAGES_TAIL);
        } else if (strcmp(text, "apart") == 0) {
            add_value(maker, "apart", STAGES_APART);
        } else if (strcmp(text, "file") == 0) {
            add_value(maker, "file", STAGES_FILE);
        } else {
            error_add(maker->errors, ERROR_bad_value, (struct location){0}, row->key,
                      "\"%s\" is not one of balanced, tail, apart, file", text);
        }
        return;
    }
    const struct scenario_source *source = maker->ask->source;
    struct scenario_override *overrides =
        ARENA_ARRAY(maker->arena, source->override_count + 1, struct scenario_override);
    for (uint32_t i = 0; i < source->override_count; i++) {
        overrides[i] = source->overrides[i];
    }
    overrides[source->override_count] = (struct scenario_override){.key = row->key, .value = text};
    struct scenario_source changed = *source;
    changed.overrides = overrides;
    changed.override_count = source->override_count + 1;
    const struct scenario *scenario = scenario_load(&changed, maker->arena, maker->errors);
    if (scenario == NULL) {
        return;
    }
    if (row->kind == AXIS_TEXT) {
        add_value(maker, text, 0);
    } else {
        add_value(maker, text, field_number(row, scenario));
    }
}

/* "1,2,4" or "[],[norm, activation]": commas inside brackets belong to the item. */
static void add_list(struct maker *maker, const char *list)
{
    int depth = 0;
    const char *begin = list;
    for (const char *at = list;; at++) {
        depth += *at == '[' || *at == '{' ? 1 : *at == ']' || *at == '}' ? -1 : 0;
        if (*at != '\0' && (*at != ',' || depth > 0)) {
            continue;
        }
        while (*begin == ' ') {
            begin++;
        }
        add_parsed(maker, arena_strndup(maker->arena, begin, (size_t)(at - begin)));
        if (*at == '\0') {
            return;
        }
        begin = at + 1;
    }
}

/* ---- Values when none are given ---- */

static void powers_of_two(struct maker *maker, uint64_t maximum)
{
    for (uint64_t value = 1; value <= maximum; value *= 2) {
        add_number(maker, (uint32_t)value);
    }
    add_written(maker);
}

static void tp_values(struct maker *maker)
{
    powers_of_two(maker, maker->base->cluster.devices_per_node);
}

/* Numbers of stages with factors 2 and 3 alone that the devices divide by. */
static void pp_values(struct maker *maker)
{
    const uint32_t layers = maker->base->model.layers;
    for (uint32_t pp = 1; pp <= layers && pp <= 64; pp++) {
        uint32_t rest = pp;
        while (rest % 2 == 0) {
            rest /= 2;
        }
        if ((rest == 1 || rest == 3) && maker->base->devices % pp == 0) {
            add_number(maker, pp);
        }
    }
    add_written(maker);
}

static void ep_values(struct maker *maker)
{
    const uint32_t experts = maker->base->model.moe.experts;
    for (uint32_t ep = 1; ep <= experts && ep <= maker->base->devices; ep++) {
        if (experts % ep == 0) {
            add_number(maker, ep);
        }
    }
    add_written(maker);
}

static void etp_values(struct maker *maker)
{
    if (maker->base->model.moe.experts > 0) {
        add_number(maker, 1);
    }
    add_written(maker);
}

static void cp_values(struct maker *maker)
{
    powers_of_two(maker, maker->base->training.seq_len / 4096);
}

static void micro_batch_values(struct maker *maker)
{
    powers_of_two(maker, 4);
}

static void vpp_values(struct maker *maker)
{
    powers_of_two(maker, 4);
}

static void schedule_values(struct maker *maker)
{
    add_written(maker);
    for (size_t i = 0; i < schedule_count; i++) {
        if (strcmp(schedule_registry[i]->name, "gpipe") != 0) {
            add_value(maker, schedule_registry[i]->name, 0);
        }
    }
}

static void group_values(struct maker *maker)
{
    add_number(maker, 0);
    if (maker->base->schedule.microbatch_group != maker->base->parallel.pp) {
        add_written(maker);
    }
}

static void zero_values(struct maker *maker)
{
    add_number(maker, 1);
    add_number(maker, 2);
    add_written(maker);
}

static void dispatcher_values(struct maker *maker)
{
    if (maker->base->model.moe.experts > 0) {
        add_parsed(maker, "alltoall");
        add_parsed(maker, "allgather");
    }
    add_written(maker);
}

static void exchange_values(struct maker *maker)
{
    if (maker->base->model.moe.experts > 0) {
        add_parsed(maker, "flat");
        add_parsed(maker, "hierarchical");
    }
    add_written(maker);
}

static void recompute_values(struct maker *maker)
{
    add_parsed(maker, "[]");
    if (maker->base->recompute.method == RECOMPUTE_ALL) {
        add_parsed(maker, "[norm, activation]");
        add_parsed(maker, "[layer]");
    }
    add_written(maker);
}

static void swap_values(struct maker *maker)
{
    add_parsed(maker, "[]");
    if (maker->base->model.moe.experts > 0) {
        add_parsed(maker, "[moe_permute_probs]");
    }
    add_written(maker);
}

static void stages_values(struct maker *maker)
{
    add_written(maker);
    add_value(maker, "balanced", STAGES_BALANCED);
    add_value(maker, "tail", STAGES_TAIL);
    if (maker->base->model.mtp_layers > 0) {
        add_value(maker, "apart", STAGES_APART);
    }
}

#define AT(field) offsetof(struct scenario, field)

/* Degrees first; then what changes the ops; then the rest, so that candidates with the same ops are
 * neighbours; stages last, so that equal splits are neighbours. */
static const struct axis_row axis_rows[] = {
    {"devices", AXIS_NUMBER, AT(devices), add_written},
    {"parallel.tp", AXIS_NUMBER, AT(parallel.tp), tp_values},
    {"parallel.pp", AXIS_NUMBER, AT(parallel.pp), pp_values},
    {"parallel.ep", AXIS_NUMBER, AT(parallel.ep), ep_values},
    {"parallel.etp", AXIS_NUMBER, AT(parallel.etp), etp_values},
    {"parallel.cp.size", AXIS_NUMBER, AT(parallel.cp), cp_values},
    {"training.micro_batch_size", AXIS_NUMBER, AT(training.micro_batch_size), micro_batch_values},
    {"schedule.kind", AXIS_TEXT, AT(schedule.kind), schedule_values},
    {"moe.dispatcher", AXIS_CHOICE, AT(moe.dispatcher), dispatcher_values},
    {"moe.exchange", AXIS_CHOICE, AT(moe.exchange), exchange_values},
    {"recompute.modules", AXIS_SET, AT(recompute.modules), recompute_values},
    {"schedule.microbatch_group", AXIS_NUMBER, AT(schedule.microbatch_group), group_values},
    {"parallel.zero", AXIS_NUMBER, AT(parallel.zero), zero_values},
    {"swap.activations", AXIS_SET, AT(swap.activations), swap_values},
    {"swap.optimizer", AXIS_FLAG, AT(swap.optimizer), add_written},
    {"parallel.vpp", AXIS_NUMBER, AT(parallel.vpp), vpp_values},
    {"parallel.stages", AXIS_STAGES, 0, stages_values},
};

#define AXIS_ROW_COUNT (sizeof axis_rows / sizeof axis_rows[0])
#define OUTER_ROWS     7
#define OPS_ROWS       11 /* the others leave the ops as they are */

const struct search_key search_keys[] = {
    {"devices", "the file's"},
    {"parallel.tp", "powers of two up to the devices of a node"},
    {"parallel.pp", "1, 2, 3 times powers of two that divide the devices, up to 64 and the layers"},
    {"parallel.ep", "divisors of the number of experts"},
    {"parallel.etp", "1 and the file's"},
    {"parallel.cp.size", "powers of two that leave 4,096 tokens to a rank"},
    {"training.micro_batch_size", "1, 2, 4"},
    {"schedule.kind",
     "every schedule but gpipe, which 1f1b equals with less memory; and the file's"},
    {"moe.dispatcher", "alltoall, allgather"},
    {"moe.exchange", "flat, hierarchical"},
    {"recompute.modules", "none, [norm, activation], [layer], and the file's"},
    {"schedule.microbatch_group", "0, which is pp, and the file's"},
    {"parallel.zero", "1, 2, and the file's"},
    {"swap.activations", "none, with experts [moe_permute_probs], and the file's"},
    {"swap.optimizer", "the file's"},
    {"parallel.vpp", "1, 2, 4, and the file's"},
    {"parallel.stages",
     "balanced; tail, which gives every chunk the same number of layers until none are left; "
     "apart, with MTP modules, which leaves the last chunk to the head alone; and the file's"},
    {NULL, NULL},
};

/* ---- Candidates ---- */

const struct search_value *space_value(const struct space *space, uint32_t axis, uint64_t outer,
                                       uint64_t inner)
{
    const bool is_outer = axis < space->outer_count;
    const uint32_t last = is_outer ? space->outer_count : space->axis_count;
    uint64_t digits = is_outer ? outer : inner;
    for (uint32_t a = last; a-- > axis + 1;) {
        digits /= space->axes[a].count;
    }
    return &space->axes[axis].values[digits % space->axes[axis].count];
}

static void set_stages(struct scenario *scenario, uint32_t which, struct arena *arena)
{
    struct parallel_spec *p = &scenario->parallel;
    if (which == STAGES_FILE) {
        return;
    }
    p->split = SPLIT_BALANCED;
    p->layers = NULL;
    p->layers_count = p->first_layers = p->last_layers = p->noop_count = 0;
    p->noop_layers = NULL;
    p->layout = NULL;
    if (which == STAGES_TAIL) {
        splits_tail(scenario, arena);
    }
}

static void apply(const struct axis_row *row, const struct search_value *value,
                  struct scenario *scenario, struct arena *arena)
{
    char *field = (char *)scenario + row->offset;
    switch (row->kind) {
    case AXIS_NUMBER:
    case AXIS_CHOICE:
    case AXIS_SET:
        memcpy(field, &value->number, sizeof value->number);
        break;
    case AXIS_FLAG:
        *(bool *)(void *)field = value->number != 0;
        break;
    case AXIS_TEXT:
        *(const char **)(void *)field = value->text;
        break;
    case AXIS_STAGES:
        set_stages(scenario, value->number, arena);
        break;
    }
}

/* Would another candidate be the same layout? */
static bool is_double(const struct space *space, const struct scenario *scenario, uint64_t inner)
{
    const struct scenario *base = space->base;
    const struct moe_run_spec *moe = &scenario->moe;
    if (scenario->schedule.microbatch_group == scenario->parallel.pp) {
        return true; /* 0 says the same */
    }
    if (space_value(space, space->axis_count - 1, 0, inner)->number == STAGES_TAIL) {
        struct scenario balanced = *scenario;
        const uint32_t *tail = scenario->parallel.layers;
        if (splits_use_balanced(space, &balanced) &&
            memcmp(tail, balanced.parallel.layers, balanced.parallel.layers_count * sizeof *tail) ==
                0) {
            return true;
        }
    }
    /* The all-gather dispatcher has one exchange; the file's stands for it. */
    return moe->dispatcher == DISPATCHER_ALLGATHER && moe->exchange != base->moe.exchange;
}

/* What a schedule does not have can be told without a layout. */
static bool schedule_takes(const struct scenario *scenario)
{
    const struct schedule *schedule = schedule_find(scenario->schedule.kind);
    const uint32_t vpp = scenario->parallel.vpp;
    return schedule != NULL && vpp >= schedule->vpp_min &&
           (schedule->vpp_max == 0 || vpp <= schedule->vpp_max);
}

const struct scenario *space_scenario(const struct space *space, uint64_t outer, uint64_t inner,
                                      struct arena *arena)
{
    struct scenario *scenario = ARENA_NEW(arena, struct scenario);
    *scenario = *space->base;
    scenario->parallel.dp = 0; /* follows from the others */
    if (scenario->schedule.microbatch_group == scenario->parallel.pp) {
        scenario->schedule.microbatch_group = 0;
    }
    for (uint32_t a = 0; a < space->axis_count; a++) {
        apply(space->rows[a], space_value(space, a, outer, inner), scenario, arena);
    }
    if (scenario->recompute.modules == 0) {
        scenario->recompute.method = RECOMPUTE_ALL;
    }
    const uint32_t stages = space_value(space, space->axis_count - 1, 0, inner)->number;
    if (stages == STAGES_APART) {
        const struct known_split *known = splits_known(space, scenario);
        if (known == NULL || known->apart == NULL) {
            return NULL;
        }
        scenario->parallel.split = SPLIT_LAYOUT;
        scenario->parallel.layout = known->apart;
    } else if (scenario->parallel.split == SPLIT_BALANCED) {
        splits_use_balanced(space, scenario);
    }
    return is_double(space, scenario, inner) || !schedule_takes(scenario) ? NULL : scenario;
}

/* ---- Degrees ---- */

/* Do these degrees divide devices, batch, experts, heads and sequence? Asked with all layers on
 * the first stage, which no rule about stages can refuse. */
static bool degrees_work(const struct space *space, uint64_t outer, struct run *run,
                         struct arena *arena)
{
    struct scenario *scenario = ARENA_NEW(arena, struct scenario);
    *scenario = *space->base;
    scenario->parallel.dp = 0;
    for (uint32_t a = 0; a < space->outer_count; a++) {
        apply(space->rows[a], space_value(space, a, outer, 0), scenario, arena);
    }
    set_stages(scenario, STAGES_BALANCED, arena);
    uint32_t *layers = ARENA_ARRAY(arena, scenario->parallel.pp, uint32_t);
    layers[0] = scenario->model.layers;
    scenario->parallel.vpp = 1;
    scenario->parallel.split = SPLIT_LAYERS;
    scenario->parallel.layers = layers;
    scenario->parallel.layers_count = scenario->parallel.pp;
    struct error_list errors;
    error_list_init(&errors, arena);
    const struct layout_ask ask = {
        .scenario = scenario,
        .model = model_build(scenario, arena, &errors),
        .cluster = cluster_build(scenario, arena, &errors),
    };
    *run = (struct run){.scenario = scenario, .model = ask.model, .cluster = ask.cluster};
    if (ask.model != NULL && ask.cluster != NULL) {
        run->layout = layout_build(&ask, arena, &errors);
    }
    return run->layout != NULL;
}

static void find_outers(struct space *space, struct arena *arena)
{
    struct arena *scratch = arena_create("degrees");
    space->outers = ARENA_ARRAY(arena, space->outer_total, uint64_t);
    space->likes = ARENA_ARRAY(arena, space->outer_total, struct run);
    for (uint64_t outer = 0; outer < space->outer_total; outer++) {
        struct run run;
        if (degrees_work(space, outer, &run, scratch)) {
            /* Again, in the arena that stays. */
            degrees_work(space, outer, &space->likes[space->outer_size], arena);
            space->outers[space->outer_size++] = outer;
        }
        arena_reset(scratch);
    }
    arena_destroy(scratch);
}

/* ---- The space ---- */

/* The last change of a key counts. */
static const struct search_change *change_of(const struct search_ask *ask, const char *key)
{
    const struct search_change *found = NULL;
    for (uint32_t i = 0; i < ask->change_count; i++) {
        if (strcmp(ask->changes[i].key, key) == 0) {
            found = &ask->changes[i];
        }
    }
    return found;
}

static void check_changes(const struct search_ask *ask, struct arena *arena,
                          struct error_list *errors)
{
    const char **names = ARENA_ARRAY(arena, AXIS_ROW_COUNT, const char *);
    for (size_t r = 0; r < AXIS_ROW_COUNT; r++) {
        names[r] = axis_rows[r].key;
    }
    for (uint32_t i = 0; i < ask->change_count; i++) {
        bool known = false;
        for (size_t r = 0; r < AXIS_ROW_COUNT; r++) {
            known = known || strcmp(names[r], ask->changes[i].key) == 0;
        }
        if (!known) {
            const char *nearest = text_nearest(ask->changes[i].key, names, AXIS_ROW_COUNT);
            error_add(errors, ERROR_unknown_key, (struct location){0}, ask->changes[i].key,
                      "is not a key that a search varies%s%s; `stepsim search --help` lists them, "
                      "and --set changes any other",
                      nearest != NULL ? ", did you mean " : "", nearest != NULL ? nearest : "");
        }
    }
}

static int by_number(const void *a, const void *b)
{
    const uint32_t x = ((const struct search_value *)a)->number;
    const uint32_t y = ((const struct search_value *)b)->number;
    return x < y ? -1 : x > y;
}

static void make_axis(struct space *space, struct maker *maker)
{
    const struct axis_row *row = maker->row;
    const struct search_change *change = change_of(maker->ask, row->key);
    maker->values = ARENA_ARRAY(maker->arena, VALUES_MAX, struct search_value);
    maker->count = 0;
    if (change == NULL) {
        row->defaults(maker);
    } else if (change->values == NULL) {
        add_written(maker);
    } else {
        add_list(maker, change->values);
    }
    if (row->kind == AXIS_NUMBER) {
        qsort(maker->values, maker->count, sizeof *maker->values, by_number);
    }
    const uint32_t a = space->axis_count++;
    space->rows[a] = row;
    space->axes[a] =
        (struct search_axis){.key = row->key, .values = maker->values, .count = maker->count};
}

bool space_build(struct space *space, const struct search_ask *ask, struct arena *arena,
                 struct error_list *errors)
{
    const size_t before = errors->count;
    *space = (struct space){.base = scenario_load(ask->source, arena, errors)};
    check_changes(ask, arena, errors);
    if (errors->count > before) {
        return false;
    }
    struct maker maker = {.ask = ask, .base = space->base, .arena = arena, .errors = errors};
    space->inner_size = space->outer_total = space->alike = 1;
    for (size_t r = 0; r < AXIS_ROW_COUNT; r++) {
        maker.row = &axis_rows[r];
        make_axis(space, &maker);
        uint64_t *size = r < OUTER_ROWS ? &space->outer_total : &space->inner_size;
        *size *= space->axes[r].count;
        space->alike *= r >= OPS_ROWS ? space->axes[r].count : 1;
    }
    space->outer_count = OUTER_ROWS;
    if (errors->count > before) {
        return false;
    }
    splits_find(space, arena, errors);
    find_outers(space, arena);
    return errors->count == before;
}
