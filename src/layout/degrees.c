/*
 * degrees.c - the sizes of the parallel dimensions, and everything that must divide.
 *
 * Expert parallelism is carved out of the tp*cp*dp ranks of one pipeline stage, so a world
 * must be a whole number of both pp*tp*cp and pp*ep*etp. The vocabulary is no rule: it is
 * padded to the tensor group. Each check stands alone, so that one run reports them all.
 */
#include "layout_internal.h"

/* One check's surroundings, to keep signatures short. */
struct degrees {
    const struct layout_input *input;
    const struct parallel_spec *parallel;
    struct layout *layout;
};

static struct location at(const struct degrees *d, const char *key)
{
    return scenario_at(d->input->scenario, key);
}

static uint64_t greatest_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        const uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Degrees are at most 2^32, so saturating is enough for "more than all devices". */
static uint64_t times(uint64_t a, uint64_t b)
{
    return b != 0 && a > UINT64_MAX / b ? UINT64_MAX : a * b;
}

static uint64_t common_multiple(uint64_t a, uint64_t b)
{
    return times(a / greatest_divisor(a, b), b);
}

/* Smallest world with this expert group. */
static uint64_t world_unit(const struct degrees *d, uint32_t ep)
{
    const struct parallel_spec *p = d->parallel;
    const uint64_t attention = times(times(p->pp, p->tp), p->cp);
    if (d->input->model->spec->moe.experts == 0)
        return attention;
    return common_multiple(attention, times(times(p->pp, ep), p->etp));
}

static bool check_positive(const struct degrees *d)
{
    const struct parallel_spec *p = d->parallel;
    const struct {
        uint32_t value;
        const char *key;
    } rows[] = {
        {p->tp, "parallel.tp"},
        {p->pp, "parallel.pp"},
        {p->vpp, "parallel.vpp"},
        {p->ep, "parallel.ep"},
        {p->etp, "parallel.etp"},
        {p->cp, "parallel.cp.size"},
        {d->input->scenario->training.seq_len, "training.seq_len"},
        {d->input->scenario->training.micro_batch_size, "training.micro_batch_size"},
        {d->input->scenario->training.global_batch_size, "training.global_batch_size"},
    };
    const size_t before = d->input->errors->count;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (rows[i].value == 0)
            error_add(d->input->errors, ERROR_out_of_range, at(d, rows[i].key), rows[i].key,
                      "0; at least 1 is needed");
    return d->input->errors->count == before;
}

/* Expert groups that would fit this world, nearest to the one asked for. */
static const char *near_expert_groups(const struct degrees *d)
{
    const uint32_t experts = d->input->model->spec->moe.experts;
    uint32_t below = 0;
    uint32_t above = 0;
    for (uint32_t ep = 1; ep <= experts && above == 0; ep++) {
        if (experts % ep != 0 || d->layout->world % world_unit(d, ep) != 0)
            continue;
        if (ep <= d->parallel->ep)
            below = ep;
        else
            above = ep;
    }
    if (below == 0 && above == 0)
        return "";
    if (below == 0 || above == 0)
        return arena_printf(d->input->arena, ", or ep %u", below + above);
    return arena_printf(d->input->arena, ", or ep %u or %u", below, above);
}

/* world a multiple of lcm(pp*tp*cp, pp*ep*etp); then dp and edp are whole. */
static void resolve_world(const struct degrees *d)
{
    const struct parallel_spec *p = d->parallel;
    struct layout *layout = d->layout;
    const bool dense = d->input->model->spec->moe.experts == 0;
    const uint64_t attention = times(times(p->pp, p->tp), p->cp);
    const uint64_t expert = times(times(p->pp, layout->ep), layout->etp);
    const uint64_t unit = world_unit(d, layout->ep);

    if (layout->world % unit == 0) {
        layout->dp = (uint32_t)(layout->world / attention);
        layout->edp = (uint32_t)(layout->world / expert);
        return;
    }
    const char *rule =
        dense ? arena_printf(d->input->arena, "pp*tp*cp = %u*%u*%u", p->pp, p->tp, p->cp)
              : arena_printf(d->input->arena, "lcm(pp*tp*cp = %u*%u*%u, pp*ep*etp = %u*%u*%u)",
                             p->pp, p->tp, p->cp, p->pp, p->ep, p->etp);
    error_add(
        d->input->errors, ERROR_world_not_multiple, at(d, "devices"), "devices",
        "%u devices are no multiple of %llu = %s, the smallest world; devices %s%s would work",
        layout->world, (unsigned long long)unit, rule,
        layout_near_multiples(d->input->arena, unit, layout->world),
        dense ? "" : near_expert_groups(d));
}

static void check_data_parallel(const struct degrees *d)
{
    const struct parallel_spec *p = d->parallel;
    if (p->dp != 0 && d->layout->dp != 0 && p->dp != d->layout->dp)
        error_add(d->input->errors, ERROR_conflicting_keys, at(d, "parallel.dp"), "parallel.dp",
                  "%u, but %u devices / (tp %u * pp %u * cp %u) = %u; leave dp out or take %llu "
                  "devices",
                  p->dp, d->layout->world, p->tp, p->pp, p->cp, d->layout->dp,
                  (unsigned long long)times(times(times(p->tp, p->pp), p->cp), p->dp));
}

static void resolve_batch(const struct degrees *d)
{
    const struct training_spec *training = &d->input->scenario->training;
    struct layout *layout = d->layout;
    if (layout->dp == 0)
        return;
    const uint64_t unit = times(training->micro_batch_size, layout->dp);
    if (training->global_batch_size % unit == 0) {
        layout->microbatches = (uint32_t)(training->global_batch_size / unit);
        return;
    }
    error_add(d->input->errors, ERROR_batch_not_divisible, at(d, "training.global_batch_size"),
              "training.global_batch_size",
              "%u sequences are no multiple of micro_batch_size %u * dp %u = %llu; %s would work",
              training->global_batch_size, training->micro_batch_size, layout->dp,
              (unsigned long long)unit,
              layout_near_multiples(d->input->arena, unit, training->global_batch_size));
}

static void check_experts(const struct degrees *d)
{
    const struct parallel_spec *p = d->parallel;
    const struct model *model = d->input->model;
    const uint32_t experts = model->spec->moe.experts;
    if (experts == 0) {
        if (p->ep > 1 || p->etp > 1)
            error_add(d->input->errors, ERROR_ep_without_experts, at(d, "parallel.ep"),
                      "parallel.ep", "ep %u and etp %u on a model without experts; both must be 1",
                      p->ep, p->etp);
        return;
    }
    if (experts % p->ep != 0)
        error_add(d->input->errors, ERROR_experts_not_divisible_by_ep, at(d, "parallel.ep"),
                  "parallel.ep", "%u experts do not divide among %u ranks; ep %s would work",
                  experts, p->ep, layout_near_divisors(d->input->arena, experts, p->ep));
    else
        d->layout->experts_per_rank = experts / p->ep;
    if (p->tp > 1 && !p->sequence_parallel)
        error_add(d->input->errors, ERROR_conflicting_keys, at(d, "parallel.sequence_parallel"),
                  "parallel.sequence_parallel",
                  "false with tp %u, but experts exchange tokens of sequences that are split over "
                  "the tensor group; set it true, or tp 1",
                  p->tp);
}

static void check_width(const struct degrees *d, const char *key, uint32_t width, uint32_t ranks)
{
    if (width % ranks != 0)
        error_add(d->input->errors, ERROR_width_not_divisible_by_tp, at(d, key), key,
                  "%u does not divide among %u tensor ranks; %s would work", width, ranks,
                  layout_near_divisors(d->input->arena, width, ranks));
}

static void check_widths(const struct degrees *d)
{
    const struct model *model = d->input->model;
    const struct moe_spec *moe = &model->spec->moe;
    if (model->dense_layers > 0)
        check_width(d, "model.ffn.intermediate_size", model->spec->ffn_intermediate_size,
                    d->parallel->tp);
    if (model->moe_layers > 0) {
        check_width(d, "model.moe.shared_intermediate_size", moe->shared_intermediate_size,
                    d->parallel->tp);
        check_width(d, "model.moe.intermediate_size", moe->intermediate_size, d->parallel->etp);
    }
}

/* Key heads are split, or each is on a whole number of ranks. */
static bool heads_share(uint32_t heads, uint32_t kv_heads, uint64_t ranks)
{
    return heads % ranks == 0 && (kv_heads % ranks == 0 || ranks % kv_heads == 0);
}

/* Degrees around `asked` that share the heads, with `factor` ranks for each: "4 or 8". */
static const char *near_degrees(const struct degrees *d, uint32_t factor, uint32_t asked)
{
    const uint32_t heads = d->input->model->spec->attention.heads;
    const uint32_t kv_heads = model_kv_heads(d->input->model);
    uint32_t below = asked < heads ? asked : heads;
    while (!heads_share(heads, kv_heads, times(factor, below)))
        below--;
    uint32_t above = asked;
    while (above <= heads && !heads_share(heads, kv_heads, times(factor, above)))
        above++;
    return above <= heads ? arena_printf(d->input->arena, "%u or %u", below, above)
                          : arena_printf(d->input->arena, "%u", below);
}

/* Ulysses trades sequence for heads, so it divides what the tensor group left. */
static void resolve_heads(const struct degrees *d)
{
    const uint32_t heads = d->input->model->spec->attention.heads;
    const uint32_t kv_heads = model_kv_heads(d->input->model);
    struct layout *layout = d->layout;
    const uint64_t ranks = times(layout->tp, layout->ulysses);
    if (!heads_share(heads, kv_heads, layout->tp)) {
        error_add(d->input->errors, ERROR_heads_not_divisible_by_tp, at(d, "parallel.tp"),
                  "parallel.tp",
                  "%u heads and %u key heads do not divide among %u tensor ranks; tp %s would work",
                  heads, kv_heads, layout->tp, near_degrees(d, 1, layout->tp));
    } else if (!heads_share(heads, kv_heads, ranks)) {
        error_add(d->input->errors, ERROR_heads_not_divisible_by_ulysses, at(d, "parallel.cp.size"),
                  "parallel.cp.size",
                  "%u heads and %u key heads on tp %u do not divide among %u Ulysses ranks, nor by "
                  "replicating key heads; a degree of %s would work",
                  heads, kv_heads, layout->tp, layout->ulysses,
                  near_degrees(d, layout->tp, layout->ulysses));
    } else {
        layout->heads_per_rank = (uint32_t)(heads / ranks);
        layout->kv_heads_per_rank = ranks > kv_heads ? 1 : (uint32_t)(kv_heads / ranks);
        layout->kv_replication = ranks > kv_heads ? (uint32_t)(ranks / kv_heads) : 1;
    }
}

/* cp = ulysses * ring. */
static void resolve_context(const struct degrees *d)
{
    const struct parallel_spec *p = d->parallel;
    const char *key = "parallel.cp.ulysses_size";
    struct layout *layout = d->layout;
    layout->ulysses = 1;
    if (p->cp_method == CP_ULYSSES)
        layout->ulysses = p->cp;
    if (p->cp_method == CP_HYBRID) {
        if (p->ulysses_size == 0 || p->cp % p->ulysses_size != 0)
            error_add(d->input->errors, ERROR_conflicting_keys, at(d, key), key,
                      "%u does not divide cp %u; %s would work", p->ulysses_size, p->cp,
                      layout_near_divisors(d->input->arena, p->cp, p->ulysses_size));
        else
            layout->ulysses = p->ulysses_size;
    } else if (p->ulysses_size != 0) {
        error_add(d->input->errors, ERROR_conflicting_keys, at(d, key), key,
                  "%u is given, but only method hybrid reads it; leave it out", p->ulysses_size);
    }
    layout->ring = p->cp / layout->ulysses;
}

/* Ring ranks hold two pieces of the sequence each, so that causal work is equal. */
static void check_sequence(const struct degrees *d)
{
    const struct layout *layout = d->layout;
    const uint64_t pieces = times(layout->cp, layout->ring > 1 ? 2 : 1);
    const uint64_t ranks = times(layout->cp, layout->sequence_parallel ? layout->tp : 1);
    const uint64_t unit = common_multiple(pieces, ranks);
    if (layout->seq_len % unit != 0)
        error_add(d->input->errors, ERROR_seq_not_divisible, at(d, "training.seq_len"),
                  "training.seq_len",
                  "%u tokens are no multiple of %llu (cp %u%s%s); %s would work", layout->seq_len,
                  (unsigned long long)unit, layout->cp,
                  layout->ring > 1 ? ", two pieces per ring rank" : "",
                  layout->sequence_parallel
                      ? arena_printf(d->input->arena, ", sequence parallel over tp %u", layout->tp)
                      : "",
                  layout_near_multiples(d->input->arena, unit, layout->seq_len));
}

/* A chunk may hold a single layer, no-op slot, MTP module, embedding or head, and there may be
 * an empty one behind each. More chunks than that are a slip, and would take memory without a
 * bound. */
static uint64_t chunks_max(const struct layout_input *input)
{
    return 2 * ((uint64_t)input->model->layers + input->scenario->parallel.noop_count +
                input->model->spec->mtp_layers + 2);
}

bool layout_chunks_countable(const struct layout_input *input)
{
    const struct parallel_spec *p = &input->scenario->parallel;
    return p->pp > 0 && p->vpp > 0 && times(p->pp, p->vpp) <= chunks_max(input);
}

static void check_pipeline(const struct degrees *d)
{
    const struct parallel_spec *p = d->parallel;
    if (p->vpp > 1 && p->pp == 1)
        error_add(d->input->errors, ERROR_vpp_needs_pp, at(d, "parallel.vpp"), "parallel.vpp",
                  "%u virtual stages on pp 1; take vpp 1, or a pipeline", p->vpp);
    if (!layout_chunks_countable(d->input))
        error_add(d->input->errors, ERROR_out_of_range, at(d, "parallel.pp"), "parallel.pp",
                  "pp %u * vpp %u chunks for %u layers; more than %llu would be mostly empty",
                  p->pp, p->vpp, d->input->model->layers, (unsigned long long)chunks_max(d->input));
}

bool layout_resolve_degrees(const struct layout_input *input, struct layout *layout)
{
    const struct scenario *scenario = input->scenario;
    const struct parallel_spec *p = &scenario->parallel;
    const struct degrees d = {input, p, layout};
    const bool dense = input->model->spec->moe.experts == 0;
    const size_t before = input->errors->count;

    layout->world = input->cluster->devices;
    layout->tp = p->tp;
    layout->pp = p->pp;
    layout->vpp = p->vpp;
    layout->cp = p->cp;
    layout->ep = dense ? 1 : p->ep;
    layout->etp = dense ? 1 : p->etp;
    layout->micro_batch_size = scenario->training.micro_batch_size;
    layout->seq_len = scenario->training.seq_len;
    layout->sequence_parallel = p->sequence_parallel && p->tp > 1;
    layout->v_shaped = input->v_shaped;
    if (!check_positive(&d))
        return false;

    resolve_world(&d);
    check_data_parallel(&d);
    resolve_batch(&d);
    check_experts(&d);
    check_widths(&d);
    resolve_context(&d);
    resolve_heads(&d);
    check_sequence(&d);
    check_pipeline(&d);
    return input->errors->count == before;
}
