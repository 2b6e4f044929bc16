/*
 * routing.c - one step of expert loads: draw, narrow, place, apply the policy, predict.
 *
 * The auxiliary loss is an input, not a prediction: under strength a the excess of every load
 * over the mean settles at 1 / (1 + a) of what was drawn, approached with the time constant
 * aux_loss_steps. What it narrows is the load that the replicas (and microbatches) have in
 * common; with aux_loss_ep_group the load of each expert group on its own.
 */
#include <math.h>
#include <string.h>

#include "routing_internal.h"

struct routing {
    const struct scenario *scenario;
    const struct moe_run_spec *spec;
    struct load_shape shape;
    struct load_table table;
    struct arena *scratch;
    uint32_t layers, replicas, draws, ep;
    uint32_t positions; /* of the answer: ep * replicas, or 1 */
    struct node_limit nodes;
    bool *moe_layer;
    uint32_t moe_layers;
    double *current; /* [(replica * layers + layer) * experts]: loads that drift, undamped */
    double *budget;  /* [replica * layers + layer] of drift */
    struct placement *placement; /* [layers] */
    bool *replicated;            /* [layer * experts + expert] */
    double *predicted;           /* [layer * experts + expert] */
    double *history;             /* window: [(slot * layers + layer) * experts + expert] */
    double *observed;            /* of this step, mean over draws and replicas */
    double *rows, *receive, *send, *dropped, *moved;
    struct expert_loads loads;
};

static uint32_t index_of(const struct routing *routing, uint32_t a, uint32_t layer)
{
    return a * routing->layers + layer;
}

/* ---- Building ---- */

static bool is_placed(const struct moe_run_spec *spec, const char *kind)
{
    return spec->placement != NULL && strcmp(spec->placement, kind) == 0;
}

static void find_moe_layers(struct routing *routing, const struct model *model, struct arena *arena)
{
    routing->layers = model->layers + model->spec->mtp_layers;
    routing->moe_layer = ARENA_ARRAY(arena, routing->layers, bool);
    for (uint32_t i = 0; i < routing->layers; i++) {
        const enum block_kind kind =
            i < model->layers ? model->layer_kind[i] : model->mtp_layer_kind;
        routing->moe_layer[i] = kind == BLOCK_MOE;
        routing->moe_layers += routing->moe_layer[i];
    }
}

static void allocate(struct routing *routing, struct arena *arena)
{
    const uint32_t experts = routing->shape.experts;
    const size_t loads = (size_t)routing->layers * experts;
    const size_t ratios = (size_t)routing->layers * routing->draws * routing->positions;
    routing->current = ARENA_ARRAY(arena, loads * routing->replicas, double);
    routing->budget = ARENA_ARRAY(arena, (size_t)routing->layers * routing->replicas, double);
    routing->placement = ARENA_ARRAY(arena, routing->layers, struct placement);
    routing->replicated = ARENA_ARRAY(arena, loads, bool);
    routing->predicted = ARENA_ARRAY(arena, loads, double);
    routing->observed = ARENA_ARRAY(arena, loads, double);
    if (is_placed(routing->spec, "dynamic") &&
        strcmp(routing->spec->placement_predict, "window") == 0)
        routing->history = ARENA_ARRAY(arena, loads * routing->spec->placement_window, double);
    routing->rows = ARENA_ARRAY(arena, ratios, double);
    routing->receive = ARENA_ARRAY(arena, ratios, double);
    routing->send = ARENA_ARRAY(arena, ratios, double);
    routing->dropped = ARENA_ARRAY(arena, routing->layers, double);
    routing->moved = ARENA_ARRAY(arena, (size_t)routing->layers * routing->positions, double);
    for (uint32_t layer = 0; layer < routing->layers; layer++) {
        routing->placement[layer] = placement_create(experts, routing->ep, arena);
        if (is_placed(routing->spec, "random")) {
            struct rng rng = rng_stream(routing->spec->routing_seed, rng_mix(1, layer));
            placement_random(&routing->placement[layer], &rng);
        }
    }
}

/* Where experts are before anything moves, and the nodes there. */
static void find_nodes(struct routing *routing, const struct routing_ask *ask, struct arena *arena)
{
    const uint32_t ep = routing->ep;
    const uint32_t experts = routing->shape.experts;
    uint32_t *members = ARENA_ARRAY(arena, ep, uint32_t);
    uint32_t *node_of = ARENA_ARRAY(arena, experts, uint32_t);
    uint32_t *node_of_rank = ARENA_ARRAY(arena, ep, uint32_t);
    const uint32_t node_size = ask->cluster->spec->devices_per_node;
    if (ep > 1)
        layout_group_members(ask->layout, GROUP_EP, 0, members);
    for (uint32_t p = 0; p < ep; p++) {
        const uint32_t node = cluster_device(ask->cluster, members[p]) / node_size;
        uint32_t number = 0;
        while (number < p && cluster_device(ask->cluster, members[number]) / node_size != node)
            number++;
        node_of_rank[p] = number == p ? routing->nodes.nodes++ : node_of_rank[number];
    }
    for (uint32_t e = 0; e < experts; e++)
        node_of[e] = node_of_rank[e / (experts / ep)];
    routing->nodes.node_of = node_of;
    routing->nodes.limit = routing->spec->routing_nodes;
}

/* The loads before the first step, from which drift goes on. */
static void draw_first(struct routing *routing)
{
    for (uint32_t r = 0; r < routing->replicas; r++) {
        for (uint32_t layer = 0; layer < routing->layers; layer++) {
            const struct draw_ids ids = {.layer = layer, .replica = r};
            load_draw(&routing->shape, ids,
                      routing->current +
                          (size_t)index_of(routing, r, layer) * routing->shape.experts,
                      routing->scratch);
        }
        arena_reset(routing->scratch);
    }
}

static bool check(const struct routing *routing, const struct scenario *scenario,
                  struct error_list *errors)
{
    const struct moe_run_spec *spec = routing->spec;
    if (spec->routing_per_microbatch && spec->drift > 0.0) {
        error_add(errors, ERROR_conflicting_keys, scenario_at(scenario, "moe.routing.drift"),
                  "moe.routing.drift",
                  "loads that are drawn anew for every microbatch do not drift; write "
                  "granularity: step, or leave drift out");
        return false;
    }
    if (is_placed(spec, "replicate_hot") && spec->placement_hot >= routing->shape.experts) {
        error_add(errors, ERROR_out_of_range, scenario_at(scenario, "moe.placement.hot"),
                  "moe.placement.hot", "%u of %u experts cannot be replicated; at most %u",
                  spec->placement_hot, routing->shape.experts, routing->shape.experts - 1);
        return false;
    }
    if (spec->routing_nodes > routing->nodes.nodes) {
        error_add(errors, ERROR_out_of_range, scenario_at(scenario, "moe.routing.node_limit"),
                  "moe.routing.node_limit",
                  "%u is more than the expert group has nodes; it lies on %u", spec->routing_nodes,
                  routing->nodes.nodes);
        return false;
    }
    return load_shape_check(&routing->shape, scenario, errors);
}

bool routing_differs(const struct scenario *scenario, const struct layout *layout)
{
    const struct moe_run_spec *spec = &scenario->moe;
    const bool even = spec->policy == POLICY_DROPLESS || spec->capacity_factor == 1.0;
    return layout->experts_per_rank > 0 &&
           (load_kind_of(spec) != LOAD_BALANCED || !even || is_placed(spec, "replicate_hot"));
}

/* rows_ratio under balanced loads. */
static double even_ratio(const struct moe_run_spec *spec)
{
    switch (spec->policy) {
    case POLICY_DROP:
        return fmin(1.0, spec->capacity_factor);
    case POLICY_DROP_AND_PAD:
        return spec->capacity_factor;
    default:
        return 1.0;
    }
}

const struct expert_loads *routing_even(const struct routing *routing, struct arena *arena)
{
    double *ratio = ARENA_ARRAY(arena, routing->layers, double);
    for (uint32_t layer = 0; layer < routing->layers; layer++)
        ratio[layer] = routing->moe_layer[layer] ? even_ratio(routing->spec) : 1.0;
    struct expert_loads *loads = ARENA_NEW(arena, struct expert_loads);
    *loads = (struct expert_loads){.layers = routing->layers,
                                   .positions = 1,
                                   .rows_ratio = ratio,
                                   .receive_ratio = ratio,
                                   .send_ratio = ratio,
                                   .even_ratio = even_ratio(routing->spec),
                                   .replicated = routing->loads.replicated};
    return loads;
}

static void place_beforehand(struct routing *routing);

bool routing_build(const struct routing_ask *ask, struct arena *arena, struct error_list *errors,
                   struct routing **out)
{
    *out = NULL;
    if (!routing_differs(ask->scenario, ask->layout))
        return true;
    const struct moe_run_spec *spec = &ask->scenario->moe;
    struct routing *routing = ARENA_NEW(arena, struct routing);
    *routing = (struct routing){
        .scenario = ask->scenario,
        .spec = spec,
        .shape = {.spec = spec,
                  .kind = load_kind_of(spec),
                  .experts = ask->layout->experts_per_rank * ask->layout->ep,
                  .positions = ask->layout->ep,
                  .top_k = ask->scenario->model.moe.top_k},
        .scratch = ask->scratch,
        .replicas = spec->routing_independent_replicas ? ask->layout->edp : 1,
        .draws = spec->routing_per_microbatch ? ask->layout->microbatches : 1,
        .ep = ask->layout->ep,
    };
    routing->positions = spec->policy == POLICY_DROP_AND_PAD ? 1 : routing->ep * routing->replicas;
    find_moe_layers(routing, ask->model, arena);
    find_nodes(routing, ask, arena);
    if (!check(routing, ask->scenario, errors))
        return false;
    const struct load_table_ask table = {.scenario = ask->scenario,
                                         .moe_layer = routing->moe_layer,
                                         .layers = routing->layers,
                                         .experts = routing->shape.experts,
                                         .top_k = routing->shape.top_k};
    if (routing->shape.kind == LOAD_HISTOGRAM &&
        !load_table_read(&table, arena, errors, &routing->table))
        return false;
    allocate(routing, arena);
    draw_first(routing);
    place_beforehand(routing);
    *out = routing;
    return true;
}

/* ---- Loads of a step ---- */

/* Share of the drawn excess that the auxiliary loss has left by this step. */
static double excess_left(const struct moe_run_spec *spec, uint32_t step)
{
    const double settled = 1.0 / (1.0 + spec->aux_loss);
    if (spec->aux_loss_steps <= 0.0)
        return settled;
    return settled + (1.0 - settled) * load_rounded(exp(-(double)step / spec->aux_loss_steps));
}

/* One draw of one layer before the auxiliary loss. */
static void raw_loads(const struct routing *routing, struct draw_ids ids, double *load)
{
    const uint32_t experts = routing->shape.experts;
    const size_t bytes = experts * sizeof *load;
    const enum load_kind kind = routing->shape.kind;
    if (kind == LOAD_HISTOGRAM) {
        const size_t row = (size_t)(ids.step % routing->table.steps) * routing->layers + ids.layer;
        memcpy(load, routing->table.load + row * experts, bytes);
        return;
    }
    const bool timed = kind == LOAD_ROTATING_HOTSPOT || kind == LOAD_BURST;
    if (routing->draws > 1 || timed) {
        load_draw(&routing->shape, ids, load, routing->scratch);
        return;
    }
    memcpy(load, routing->current + (size_t)index_of(routing, ids.replica, ids.layer) * experts,
           bytes);
}

/* `common` is the mean load over replicas and draws, which a loss over all of them narrows. */
static void narrow(const struct routing *routing, const double *common, uint32_t step, double *load)
{
    const double left = excess_left(routing->spec, step);
    for (uint32_t e = 0; e < routing->shape.experts && left < 1.0; e++) {
        const double target = routing->spec->aux_loss_ep_group ? load[e] : common[e];
        load[e] = fmax(0.0, load[e] - (1.0 - left) * (target - 1.0));
    }
}

struct layer_sum {
    double rows, dropped, padded;
};

/* With padding every expert has the same rows, so every rank has. */
static void fill_even(struct routing *routing, size_t at, double ratio)
{
    routing->rows[at] = routing->receive[at] = routing->send[at] = ratio;
}

/* Policy and placement: expert loads of one draw -> ratios of the positions. */
static struct layer_sum place_loads(struct routing *routing, uint32_t layer, const double *load,
                                    size_t at)
{
    const struct moe_run_spec *spec = routing->spec;
    const uint32_t experts = routing->shape.experts;
    const double slots = (double)experts / (double)routing->ep;
    const uint32_t *position_of = routing->placement[layer].position_of;
    struct layer_sum sum = {0};
    double shared = 0.0;
    const bool even = spec->policy == POLICY_DROP_AND_PAD;
    for (uint32_t p = 0; p < routing->ep && !even; p++)
        routing->rows[at + p] = 0.0;
    for (uint32_t e = 0; e < experts; e++) {
        const bool capped = spec->policy != POLICY_DROPLESS;
        const double kept = capped ? fmin(load[e], spec->capacity_factor) : load[e];
        const double rows = spec->policy == POLICY_DROP_AND_PAD ? spec->capacity_factor : kept;
        sum.rows += rows;
        sum.dropped += load[e] - kept;
        sum.padded += rows - kept;
        if (even)
            continue;
        if (routing->replicated[(size_t)layer * experts + e])
            shared += rows;
        else
            routing->rows[at + position_of[e]] += rows;
    }
    if (even) {
        fill_even(routing, at, spec->capacity_factor);
        return sum;
    }
    const double sent = 1.0 - sum.dropped / (double)experts - shared / (double)experts;
    for (uint32_t p = 0; p < routing->ep; p++) {
        routing->receive[at + p] = routing->rows[at + p] / slots;
        routing->rows[at + p] = (routing->rows[at + p] + shared / (double)routing->ep) / slots;
        routing->send[at + p] = sent;
    }
    return sum;
}

/* Ragged sources: one rank has max_over_mean times the mean tokens to send. */
static void rag_sources(struct routing *routing, size_t at)
{
    const double most = routing->spec->load_max_over_mean;
    const double others = ((double)routing->ep - most) / ((double)routing->ep - 1.0);
    for (uint32_t p = 0; p < routing->ep; p++)
        routing->send[at + p] = p == 0 ? most : others;
}

static void dense_layer(struct routing *routing, uint32_t layer)
{
    for (uint32_t d = 0; d < routing->draws; d++) {
        const size_t at = (size_t)index_of(routing, d, layer) * routing->positions;
        for (uint32_t p = 0; p < routing->positions; p++)
            fill_even(routing, at + p, 1.0);
    }
}

static double heaviest_over_mean(const struct routing *routing, size_t at)
{
    double heaviest = 0.0;
    double mean = 0.0;
    for (uint32_t p = 0; p < routing->ep; p++) {
        heaviest = fmax(heaviest, routing->rows[at + p]);
        mean += routing->rows[at + p] / (double)routing->ep;
    }
    return mean > 0.0 ? heaviest / mean : 1.0;
}

/* All draws of a layer: first their mean, which the loss and the prediction see. */
static struct layer_sum step_layer(struct routing *routing, uint32_t layer, uint32_t step)
{
    const uint32_t experts = routing->shape.experts;
    const uint32_t count = routing->replicas * routing->draws;
    double *loads = ARENA_ARRAY(routing->scratch, (size_t)count * experts, double);
    double *common = ARENA_ARRAY(routing->scratch, experts, double);
    double *observed = routing->observed + (size_t)layer * experts;
    memset(observed, 0, experts * sizeof *observed);
    for (uint32_t i = 0; i < count; i++) {
        const struct draw_ids ids = {layer, i / routing->draws, i % routing->draws, step};
        double *load = loads + (size_t)i * experts;
        raw_loads(routing, ids, load);
        load_limit_nodes(&routing->nodes, load, experts, routing->scratch);
        for (uint32_t e = 0; e < experts; e++)
            common[e] += loads[(size_t)i * experts + e] / (double)count;
    }
    struct layer_sum sum = {0};
    double heaviest_sum = 0.0;
    const bool even = routing->positions == 1;
    for (uint32_t i = 0; i < count; i++) {
        double *load = loads + (size_t)i * experts;
        narrow(routing, common, step, load);
        const uint32_t replica = i / routing->draws;
        const size_t at =
            (size_t)index_of(routing, i % routing->draws, layer) * routing->positions +
            (even ? 0 : (size_t)replica * routing->ep);
        const struct layer_sum one = place_loads(routing, layer, load, at);
        if (routing->shape.kind == LOAD_RAGGED_SOURCE && !even)
            rag_sources(routing, at);
        const double heaviest = even ? 1.0 : heaviest_over_mean(routing, at);
        routing->loads.max_over_mean = fmax(routing->loads.max_over_mean, heaviest);
        heaviest_sum += heaviest;
        sum.rows += one.rows / count;
        sum.dropped += one.dropped / count;
        sum.padded += one.padded / count;
        for (uint32_t e = 0; e < experts; e++)
            observed[e] += load[e] / (double)count;
    }
    routing->loads.mean_max_over_mean += heaviest_sum / count;
    return sum;
}

/* ---- Placement over time ---- */

/* Greedy and replicated placements know the loads of the first step. */
static void place_beforehand(struct routing *routing)
{
    const bool greedy = is_placed(routing->spec, "greedy");
    const bool hot = is_placed(routing->spec, "replicate_hot");
    const uint32_t experts = routing->shape.experts;
    routing->loads.replicated = hot ? routing->spec->placement_hot : 0;
    for (uint32_t layer = 0; layer < routing->layers && (greedy || hot); layer++) {
        if (!routing->moe_layer[layer])
            continue;
        step_layer(routing, layer, 0);
        const double *load = routing->observed + (size_t)layer * experts;
        if (greedy)
            placement_greedy(&routing->placement[layer], load, routing->scratch);
        for (uint32_t i = 0; hot && i < routing->spec->placement_hot; i++) {
            bool *held = routing->replicated + (size_t)layer * experts;
            uint32_t hottest = UINT32_MAX;
            for (uint32_t e = 0; e < experts; e++) {
                if (!held[e] && (hottest == UINT32_MAX || load[e] > load[hottest]))
                    hottest = e;
            }
            held[hottest] = true;
        }
        arena_reset(routing->scratch);
    }
}

static void predict(struct routing *routing, uint32_t step)
{
    const size_t count = (size_t)routing->layers * routing->shape.experts;
    const uint32_t window = routing->spec->placement_window;
    if (routing->history == NULL) {
        const double weight = step == 0 ? 1.0 : routing->spec->placement_ema;
        for (size_t i = 0; i < count; i++)
            routing->predicted[i] += weight * (routing->observed[i] - routing->predicted[i]);
        return;
    }
    memcpy(routing->history + (step % window) * count, routing->observed,
           count * sizeof *routing->observed);
    const uint32_t known = step + 1 < window ? step + 1 : window;
    for (size_t i = 0; i < count; i++) {
        double sum = 0.0;
        for (uint32_t s = 0; s < known; s++)
            sum += routing->history[s * count + i];
        routing->predicted[i] = sum / known;
    }
}

/* Takes over a plan that gains enough; notes who leaves where. */
static void move_layer(struct routing *routing, uint32_t layer)
{
    const uint32_t experts = routing->shape.experts;
    const double *load = routing->predicted + (size_t)layer * experts;
    struct placement *now = &routing->placement[layer];
    struct placement plan = placement_create(experts, routing->ep, routing->scratch);
    memcpy(plan.position_of, now->position_of, experts * sizeof *plan.position_of);
    placement_improve(&plan, load, routing->scratch);
    const double before = placement_heaviest(now, load, routing->scratch);
    const double after = placement_heaviest(&plan, load, routing->scratch);
    if (before - after < routing->spec->placement_min_gain * before || after >= before)
        return;
    for (uint32_t e = 0; e < experts; e++) {
        if (plan.position_of[e] == now->position_of[e])
            continue;
        for (uint32_t r = 0; r < routing->replicas; r++)
            routing->moved[((size_t)layer * routing->replicas + r) * routing->ep +
                           now->position_of[e]] += 1.0;
        routing->loads.migrations++;
        now->position_of[e] = plan.position_of[e];
    }
}

static void place_dynamically(struct routing *routing, uint32_t step)
{
    const size_t count = (size_t)routing->layers * routing->positions;
    memset(routing->moved, 0, count * sizeof *routing->moved);
    predict(routing, step);
    if ((step + 1) % routing->spec->placement_every != 0)
        return;
    for (uint32_t layer = 0; layer < routing->layers; layer++) {
        if (routing->moe_layer[layer])
            move_layer(routing, layer);
        arena_reset(routing->scratch);
    }
}

static void drift(struct routing *routing, uint32_t step)
{
    for (uint32_t r = 0; r < routing->replicas; r++) {
        for (uint32_t layer = 0; layer < routing->layers; layer++) {
            const uint32_t at = index_of(routing, r, layer);
            const uint64_t id = rng_mix(rng_mix(step, layer), rng_mix(2, r));
            struct rng rng = rng_stream(routing->spec->routing_seed, id);
            routing->budget[at] += routing->spec->drift;
            load_drift(routing->current + (size_t)at * routing->shape.experts,
                       routing->shape.experts, &routing->budget[at], &rng);
        }
    }
}

const struct expert_loads *routing_step(struct routing *routing, uint32_t step)
{
    if (step > 0 && routing->spec->drift > 0.0)
        drift(routing, step);
    /* Where all ranks have the same rows, moving experts gains nothing. */
    const bool dynamic = is_placed(routing->spec, "dynamic") && routing->positions > 1;
    struct expert_loads *loads = &routing->loads;
    *loads = (struct expert_loads){
        .layers = routing->layers,
        .positions = routing->positions,
        .even_ratio = even_ratio(routing->spec),
        .draws = routing->draws,
        .rows_ratio = routing->rows,
        .receive_ratio = routing->receive,
        .send_ratio = routing->send,
        .max_over_mean = 1.0,
        .layer_dropped = routing->dropped,
        .moved = dynamic ? routing->moved : NULL,
        .replicated = loads->replicated,
    };
    const double moe_experts = (double)routing->moe_layers * routing->shape.experts;
    struct layer_sum all = {0};
    for (uint32_t layer = 0; layer < routing->layers; layer++) {
        if (!routing->moe_layer[layer]) {
            dense_layer(routing, layer);
            continue;
        }
        const struct layer_sum sum = step_layer(routing, layer, step);
        arena_reset(routing->scratch);
        routing->dropped[layer] = sum.dropped / routing->shape.experts;
        all.rows += sum.rows;
        all.dropped += sum.dropped;
        all.padded += sum.padded;
    }
    loads->mean_max_over_mean /= routing->moe_layers;
    loads->rows_mean = all.rows / moe_experts;
    loads->dropped_ratio = all.dropped / moe_experts;
    loads->padded_ratio = all.rows > 0.0 ? all.padded / all.rows : 0.0;
    if (dynamic)
        place_dynamically(routing, step);
    return loads;
}
