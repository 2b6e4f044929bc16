/*
 * measurement_rules.c - how a row of the measurement format becomes a scenario.
 *
 * Each rule is a named function with the sentence that docs/VALIDATION.md prints. What a
 * word in a cell means is a table of configs/validate.yaml; here is what needs arithmetic.
 */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "stepsim/arena.h"
#include "stepsim/text.h"
#include "validate_internal.h"

static unsigned count_of(const struct mapping *mapping, const char *column, unsigned fallback)
{
    const double value = measurement_number(mapping->row, column, 0.0);
    return value >= 1.0 ? (unsigned)lround(value) : fallback;
}

static void copy_count(struct mapping *mapping, const char *column, const char *key)
{
    const unsigned value = count_of(mapping, column, 0);
    if (value > 0)
        mapping_set(mapping, key, "%u", value);
}

static bool column_is(const struct mapping *mapping, const char *column, const char *text)
{
    return strcasecmp(measurement_text(mapping->row, column), text) == 0;
}

static bool column_holds(const struct mapping *mapping, const char *column, const char *text)
{
    return strcasestr(measurement_text(mapping->row, column), text) != NULL;
}

/* ---- What the model is ---- */

static void whole_step(struct mapping *mapping)
{
    if (mapping->row->kind == MEASUREMENT_CHUNK)
        mapping_refuse(mapping, "an overlapped pair of chunks without a pipeline is not a step");
}

static void sixteen_bit(struct mapping *mapping)
{
    if (!mapping->row->sixteen_bit)
        mapping_refuse(mapping, "%s: device files hold 16-bit peaks only",
                       measurement_text(mapping->row, "precision"));
    else if (column_is(mapping, "precision", "fp16"))
        mapping_set(mapping, "precision.compute", "fp16");
}

static void model_widths(struct mapping *mapping)
{
    copy_count(mapping, "layers", "model.layers");
    copy_count(mapping, "hidden", "model.hidden_size");
    copy_count(mapping, "vocab", "model.vocab_size");
    copy_count(mapping, "ffn", "model.ffn.intermediate_size");
    copy_count(mapping, "mtp_layers", "model.mtp_layers");
    mapping_set(mapping, "model.attention.kind", "%s", measurement_text(mapping->row, "attn_type"));
    copy_count(mapping, "heads", "model.attention.heads");
    if (column_is(mapping, "attn_type", "mla")) {
        copy_count(mapping, "q_lora", "model.attention.q_lora_rank");
        copy_count(mapping, "kv_lora", "model.attention.kv_lora_rank");
        copy_count(mapping, "qk_nope", "model.attention.qk_nope_head_dim");
        copy_count(mapping, "qk_rope", "model.attention.qk_rope_head_dim");
        copy_count(mapping, "v_head", "model.attention.v_head_dim");
    } else {
        copy_count(mapping, "kv_heads", "model.attention.kv_heads");
        copy_count(mapping, "head_dim", "model.attention.head_dim");
    }
    copy_count(mapping, "swa_window", "model.attention.window");
    if (!mapping->row->moe)
        return;
    copy_count(mapping, "experts", "model.moe.experts");
    copy_count(mapping, "topk", "model.moe.top_k");
    copy_count(mapping, "moe_ffn", "model.moe.intermediate_size");
    copy_count(mapping, "shared_ffn", "model.moe.shared_intermediate_size");
    copy_count(mapping, "dense_layers", "model.moe.first_dense_layers");
}

static void model_generation(struct mapping *mapping)
{
    if (column_is(mapping, "gated", "1"))
        return;
    mapping_set(mapping, "model.ffn.kind", "plain");
    mapping_set(mapping, "model.norm.kind", "layer");
    if (!column_is(mapping, "attn_type", "mha"))
        return;
    mapping_set(mapping, "model.position", "learned");
    mapping_set(mapping, "model.max_position", "%s", measurement_text(mapping->row, "seq_len"));
    mapping_set(mapping, "model.tied_embedding", "true");
    mapping_set(mapping, "model.ffn.bias", "true");
    mapping_set(mapping, "model.attention.bias", "true");
    mapping_set(mapping, "model.attention.out_bias", "true");
}

/* ---- Where it ran ---- */

static void device_named(struct mapping *mapping)
{
    if (mapping_value(mapping, "cluster") == NULL)
        mapping_refuse(mapping, "no cluster is known for device \"%s\"", mapping->row->device);
    copy_count(mapping, "n_devices", "devices");
}

static void link_speeds(struct mapping *mapping)
{
    const double inside = measurement_number(mapping->row, "intra_gbyte_s_uni", 0.0);
    const double between = measurement_number(mapping->row, "inter_gbit_s_per_dev", 0.0);
    if (inside > 0.0)
        mapping_set(mapping, "cluster.levels.0.bandwidth", "%g GB/s", inside);
    if (between > 0.0 && !mapping->row->ascend)
        mapping_set(mapping, "cluster.levels.1.bandwidth", "%g GB/s", between / 8.0);
}

/* ---- Layout ---- */

static void degrees(struct mapping *mapping)
{
    copy_count(mapping, "tp", "parallel.tp");
    copy_count(mapping, "pp", "parallel.pp");
    copy_count(mapping, "cp", "parallel.cp.size");
    mapping_set(mapping, "parallel.sequence_parallel", "%s",
                column_is(mapping, "sp", "0") ? "false" : "true");
    mapping_set(mapping, "parallel.zero", "%u",
                (unsigned)measurement_number(mapping->row, "zero", 0.0));
    mapping_drop_fusion(mapping);
    if (count_of(mapping, "cp", 1) > 1 && column_holds(mapping, "cp_type", "ulysses"))
        mapping_set(mapping, "parallel.cp.method", "ulysses");
    if (!mapping->row->moe)
        return;
    mapping_set(mapping, "parallel.ep", "%u", count_of(mapping, "ep", 1));
    mapping_set(mapping, "parallel.etp", "%u",
                count_of(mapping, "etp", count_of(mapping, "tp", 1)));
}

static void batch(struct mapping *mapping)
{
    copy_count(mapping, "seq_len", "training.seq_len");
    mapping_set(mapping, "training.micro_batch_size", "%u", count_of(mapping, "mbs", 1));
    if (mapping->row->kind == MEASUREMENT_STEP && count_of(mapping, "gbs", 0) == 0)
        mapping_refuse(mapping, "the global batch was not published");
    copy_count(mapping, "gbs", "training.global_batch_size");
}

static unsigned microbatches(const struct mapping *mapping)
{
    const unsigned replicas =
        count_of(mapping, "n_devices", 1) /
        (count_of(mapping, "tp", 1) * count_of(mapping, "pp", 1) * count_of(mapping, "cp", 1));
    return replicas > 0 ? count_of(mapping, "gbs", 1) / (replicas * count_of(mapping, "mbs", 1))
                        : 0;
}

/* Layer slots: what an even split counts, with embedding and loss where the source counts them. */
static unsigned slots_of(const struct mapping *mapping)
{
    const bool ends = column_holds(mapping, "pp_layout", "counted as layer slots") ||
                      column_holds(mapping, "pp_layout", "hold one layer less");
    return count_of(mapping, "layers", 1) + (ends ? 2 : 0);
}

static void interleave(struct mapping *mapping)
{
    const unsigned pp = count_of(mapping, "pp", 1);
    unsigned vpp = count_of(mapping, "vpp", 0);
    if (vpp == 0)
        vpp = mapping_unstated_vpp(slots_of(mapping), pp, microbatches(mapping));
    mapping_set(mapping, "parallel.vpp", "%u", vpp);
    if (vpp > 1 && mapping_value(mapping, "schedule.kind") == NULL)
        mapping_set(mapping, "schedule.kind", "interleaved");
}

/* "5,6x10,5" as a list. */
static void stage_list(struct mapping *mapping, const char *text)
{
    while (*text != '\0') {
        char *end = NULL;
        const long layers = strtol(text, &end, 10);
        if (end == text)
            return;
        long times = 1;
        if (*end == 'x')
            times = strtol(end + 1, &end, 10);
        for (long i = 0; i < times && i < 4096; i++)
            mapping_append(mapping, "parallel.stages.layers",
                           arena_printf(mapping->arena, "%ld", layers));
        text = *end == ',' ? end + 1 : end;
    }
}

/* One layer less in the first and last chunk, as embedding and loss take a slot. */
static void less_at_ends(struct mapping *mapping, unsigned chunks)
{
    const unsigned each = slots_of(mapping) / chunks;
    for (unsigned i = 0; i < chunks; i++)
        mapping_append(mapping, "parallel.stages.layers",
                       arena_printf(mapping->arena, "%u", each - (i == 0) - (i + 1 == chunks)));
}

static void offsets(struct mapping *mapping, const char *text)
{
    const long each = count_of(mapping, "layers", 1) / count_of(mapping, "pp", 1);
    while (*text != '\0' && *text != ']') {
        char *end = NULL;
        const long offset = strtol(text, &end, 10);
        if (end == text)
            return;
        mapping_append(mapping, "parallel.stages.layers",
                       arena_printf(mapping->arena, "%ld", each + offset));
        text = end + strspn(end, ", ");
    }
}

static void layer_split(struct mapping *mapping)
{
    const char *layout = measurement_text(mapping->row, "pp_layout");
    const unsigned chunks =
        count_of(mapping, "pp", 1) * (unsigned)atol_or(mapping_value(mapping, "parallel.vpp"), 1);
    const char *list = strcasestr(layout, "layers per stage ");
    const char *offset = strcasestr(layout, "offsets [");
    const char *noop = strcasestr(layout, "no-op layer slots ");
    if (layout[0] == 'E' && strchr(layout, '|') != NULL) {
        mapping_set(mapping, "parallel.stages.layout", "\"%.*s\"", (int)strcspn(layout, " "),
                    layout);
    } else if (list != NULL) {
        stage_list(mapping, list + strlen("layers per stage "));
    } else if (offset != NULL) {
        offsets(mapping, offset + strlen("offsets ["));
    } else if (noop != NULL) {
        mapping_set(mapping, "parallel.stages.noop_layers", "[%.*s]",
                    (int)strcspn(noop + strlen("no-op layer slots "), " "),
                    noop + strlen("no-op layer slots "));
    } else if (slots_of(mapping) != count_of(mapping, "layers", 1) &&
               slots_of(mapping) % chunks == 0 && chunks > 1) {
        less_at_ends(mapping, chunks);
    } else {
        const bool even = count_of(mapping, "layers", 1) % chunks == 0;
        mapping_set(mapping, "parallel.stages.split", even ? "even" : "balanced");
    }
}

/* ---- Recompute ---- */

static void recompute_layers(struct mapping *mapping)
{
    const char *text = measurement_text(mapping->row, "recompute");
    mapping->recompute_unknown = text[0] == '\0' || strcasecmp(text, "not stated") == 0;
    const unsigned pp = count_of(mapping, "pp", 1);
    const char *list = strcasestr(text, "layers per stage ");
    const char *block = strcasestr(text, "block, ");
    if (list != NULL) {
        mapping_set(mapping, "recompute.layers.per_stage", "[%s]",
                    list + strlen("layers per stage "));
    } else if (block != NULL) {
        /* More layers than a stage holds means all of them. */
        const unsigned each = (count_of(mapping, "layers", 1) + pp - 1) / pp;
        unsigned layers = (unsigned)atol_or(block + strlen("block, "), 1);
        layers = layers < each ? layers : each;
        for (unsigned i = 0; i < pp; i++)
            mapping_append(mapping, "recompute.layers.per_stage",
                           arena_printf(mapping->arena, "%u", layers));
    } else if (strncasecmp(text, "full, ", 6) == 0 && isdigit((unsigned char)text[6])) {
        mapping_set(mapping, "recompute.layers.block", "%ld", atol_or(text + 6, 1));
    } else if (strcasestr(text, "per-op SAC") != NULL) {
        mapping_set(mapping, "recompute.layers.block", "%u",
                    (count_of(mapping, "layers", 2) + 1) / 2);
    }
}

/* ---- Memory ---- */

static void measured_memory(struct mapping *mapping)
{
    mapping_set(mapping, "memory.reserve", "0 B");
}

const struct mapping_rule measurement_rules[] = {
    {"whole_step",
     "A row of kind chunk has no pipeline around it and is not simulated; a row of kind layer is "
     "the growth of a step with one layer and one microbatch more.",
     whole_step},
    {"sixteen_bit", "Only bf16 and fp16 rows are simulated: device files hold no fp8 peaks.",
     sixteen_bit},
    {"model_widths",
     "All widths of the model come from the columns of the row, not from a "
     "model file of that name.",
     model_widths},
    {"model_generation",
     "An FFN without a gate means layer norm; together with multi-head attention it means a GPT "
     "of 2020 to 2023: learned positions, biases, embedding and head tied.",
     model_generation},
    {"device_named", "The device column and the fabric columns name the cluster (table clusters).",
     device_named},
    {"link_speeds",
     "Link rates in the row replace the nominal rate of the cluster file; efficiencies and "
     "latencies stay. Ascend rows keep the rates of the file.",
     link_speeds},
    {"degrees",
     "Degrees are taken as printed. An empty etp means tensor-parallel experts of degree tp, as "
     "Megatron does; sequence parallelism is on unless the row says 0. Without it a fused "
     "matmul-collective "
     "is an all-reduce beside the weight gradient.",
     degrees},
    {"batch", "An empty micro-batch is 1; a row without a global batch cannot be simulated.",
     batch},
    {"interleave",
     "An empty vpp with a pipeline is the largest number of chunks up to 8 that divides the "
     "layers of a stage, if the microbatches fill whole groups of pp; else 1.",
     interleave},
    {"layer_split",
     "Layout strings, stage lists, offsets and no-op slots are taken over; where embedding and "
     "loss count as slots, the first and the last chunk hold one layer less; else layers are "
     "spread evenly if they divide, and balanced by FLOPs if not.",
     layer_split},
    {"recompute_layers",
     "Recomputed modules come from the words of the row (table recompute). Where a source does not "
     "say, nothing is recomputed, or whole layers if the predicted peak does not fit without: the "
     "run must have fitted. Numbers of layers per stage are taken over. Per-op selective "
     "checkpointing recomputes "
     "every second matmul: the MLP and the norms of half of the layers.",
     recompute_layers},
    {"measured_memory",
     "No memory is reserved: the peak is compared with what the framework allocated, without "
     "communication buffers. Peaks that CI logs print are of the first step, whose passes ran "
     "before Adam had moments: these are left out of the peak of the passes.",
     measured_memory},
    {NULL, NULL, NULL},
};
