/*
 * ascend_rules.c - how a row of script arguments on Ascend becomes a scenario.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "stepsim/arena.h"
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
    else
        mapping_refuse(mapping, "column %s is empty", column);
}

static const char *flags(const struct mapping *mapping)
{
    return measurement_text(mapping->row, "flags");
}

/* The text behind "name=" in the flags, up to a blank; NULL if it is not there. */
static const char *flag_value(const struct mapping *mapping, const char *name)
{
    const char *at = strstr(flags(mapping), name);
    if (at == NULL || at[strlen(name)] != '=')
        return NULL;
    at += strlen(name) + 1;
    return arena_strndup(mapping->arena, at, strcspn(at, " "));
}

static void published_time(struct mapping *mapping)
{
    if (mapping->row->step_s <= 0.0 && mapping->row->memory_bytes <= 0.0)
        mapping_refuse(mapping, "neither a step time nor a peak memory was published");
}

/* ---- Model ---- */

static bool number_after(const char *text, const char *word, unsigned *value)
{
    const char *at = strstr(text, word);
    if (at == NULL)
        return false;
    const long number = atol_or(at + strlen(word), 0);
    *value = number > 0 ? (unsigned)number : 0;
    return number > 0;
}

static void attention(struct mapping *mapping)
{
    const char *text = measurement_text(mapping->row, "attn");
    const unsigned heads = count_of(mapping, "heads", 0);
    unsigned groups = count_of(mapping, "kv_groups", 0);
    copy_count(mapping, "heads", "model.attention.heads");
    if (strncmp(text, "MLA(", 4) == 0) {
        unsigned kv = 0, nope = 0, rope = 0, v = 0, q = 0;
        if (!number_after(text, "kv_lora ", &kv) || !number_after(text, "nope ", &nope) ||
            !number_after(text, ",rope ", &rope) || !number_after(text, ",v ", &v)) {
            mapping_refuse(mapping, "the widths of MLA are not all stated");
            return;
        }
        number_after(text, "(q_lora ", &q);
        mapping_set(mapping, "model.attention.kind", "mla");
        mapping_set(mapping, "model.attention.q_lora_rank", "%u", q);
        mapping_set(mapping, "model.attention.kv_lora_rank", "%u", kv);
        mapping_set(mapping, "model.attention.qk_nope_head_dim", "%u", nope);
        mapping_set(mapping, "model.attention.qk_rope_head_dim", "%u", rope);
        mapping_set(mapping, "model.attention.v_head_dim", "%u", v);
        return;
    }
    if (strcmp(text, "GQA") != 0 && strcmp(text, "MHA") != 0) {
        mapping_refuse(mapping, "attention \"%s\" is not modelled", text);
        return;
    }
    /* Scripts of models with grouped heads that print no number of groups use 8, or 2 for GLM. */
    if (groups == 0 && strcmp(text, "GQA") == 0)
        mapping_refuse(mapping, "the number of key-value heads is not stated");
    groups = strcmp(text, "GQA") == 0 ? groups : heads;
    mapping_set(mapping, "model.attention.kind", "%s", groups == heads ? "mha" : "gqa");
    mapping_set(mapping, "model.attention.kv_heads", "%u", groups);
    if (mapping_value(mapping, "model.attention.head_dim") == NULL && heads > 0)
        mapping_set(mapping, "model.attention.head_dim", "%u",
                    count_of(mapping, "hidden", 0) / heads);
}

static void widths(struct mapping *mapping)
{
    copy_count(mapping, "layers", "model.layers");
    copy_count(mapping, "hidden", "model.hidden_size");
    if (count_of(mapping, "vocab", 0) > 0)
        copy_count(mapping, "vocab", "model.vocab_size");
    else if (mapping_value(mapping, "model.vocab_size") == NULL)
        mapping_refuse(mapping, "the vocabulary is not stated and not known for this model");
    if (count_of(mapping, "ffn", 0) > 0)
        copy_count(mapping, "ffn", "model.ffn.intermediate_size");
    else if (!mapping->row->moe || count_of(mapping, "moe_ffn", 0) == 0)
        mapping_refuse(mapping, "the width of the feed-forward block is not stated");
    if (count_of(mapping, "mtp", 0) > 0)
        copy_count(mapping, "mtp", "model.mtp_layers");
}

static void experts(struct mapping *mapping)
{
    if (!mapping->row->moe)
        return;
    const unsigned expert = count_of(mapping, "moe_ffn", count_of(mapping, "ffn", 0));
    const char *shared = measurement_text(mapping->row, "shared_experts");
    copy_count(mapping, "experts", "model.moe.experts");
    copy_count(mapping, "topk", "model.moe.top_k");
    mapping_set(mapping, "model.moe.intermediate_size", "%u", expert);
    if (shared[0] == 'w')
        mapping_set(mapping, "model.moe.shared_intermediate_size", "%ld", atol_or(shared + 1, 0));
    else
        mapping_set(mapping, "model.moe.shared_intermediate_size", "%u",
                    expert * count_of(mapping, "shared_experts", 0));
    if (count_of(mapping, "first_dense", 0) > 0)
        copy_count(mapping, "first_dense", "model.moe.first_dense_layers");
}

/* ---- Layout ---- */

static void degrees(struct mapping *mapping)
{
    copy_count(mapping, "ranks", "devices");
    copy_count(mapping, "tp", "parallel.tp");
    mapping_set(mapping, "parallel.pp", "%u", count_of(mapping, "pp", 1));
    mapping_set(mapping, "parallel.cp.size", "%u", count_of(mapping, "cp", 1));
    mapping_set(mapping, "parallel.sequence_parallel", "%s",
                strstr(flags(mapping), "sequence-parallel") ? "true" : "false");
    mapping_set(mapping, "parallel.zero", "%d",
                strstr(flags(mapping), "use-distributed-optimizer") ? 1 : 0);
    mapping_drop_fusion(mapping);
    const char *algorithm = measurement_text(mapping->row, "cp_algo");
    if (count_of(mapping, "cp", 1) > 1) {
        if (strstr(algorithm, "ulysses"))
            mapping_set(mapping, "parallel.cp.method", "ulysses");
        if (strstr(algorithm, "hybrid")) {
            mapping_set(mapping, "parallel.cp.method", "hybrid");
            mapping_set(mapping, "parallel.cp.ulysses_size", "2");
        }
    }
    if (mapping->row->moe) {
        const unsigned tp = count_of(mapping, "tp", 1);
        mapping_set(mapping, "parallel.ep", "%u", count_of(mapping, "ep", 1));
        mapping_set(mapping, "parallel.etp", "%u", count_of(mapping, "etp", tp));
    }
}

static void batch(struct mapping *mapping)
{
    copy_count(mapping, "seq", "training.seq_len");
    mapping_set(mapping, "training.micro_batch_size", "%u", count_of(mapping, "mbs", 1));
    copy_count(mapping, "gbs", "training.global_batch_size");
}

/* Slots of an even split: the layers and, where noop-layers names any, the empty ones. */
static unsigned empty_slots(const char *noop)
{
    unsigned count = noop != NULL ? 1 : 0;
    for (; noop != NULL && *noop != '\0'; noop++)
        count += *noop == ',';
    return count;
}

static void split(struct mapping *mapping)
{
    const char *noop = flag_value(mapping, "noop-layers");
    const char *list = flag_value(mapping, "num-layer-list");
    const unsigned pp = count_of(mapping, "pp", 1);
    /* The layers column counts slots: no-op layers are among them. */
    const unsigned slots = count_of(mapping, "layers", 1);
    const unsigned each = count_of(mapping, "layers_per_vstage", 0);
    unsigned vpp = 1;
    if (each > 0 && pp > 1 && slots % (pp * each) == 0)
        vpp = slots / (pp * each);
    mapping_set(mapping, "parallel.vpp", "%u", vpp);
    if (vpp > 1 && mapping_value(mapping, "schedule.kind") == NULL)
        mapping_set(mapping, "schedule.kind", "interleaved");
    if (noop != NULL) {
        mapping_set(mapping, "model.layers", "%u", slots - empty_slots(noop));
        mapping_set(mapping, "parallel.stages.noop_layers", "[%s]", noop);
    } else if (list != NULL) {
        mapping_set(mapping, "parallel.stages.layers", "[%s]", list);
    } else {
        mapping_set(mapping, "parallel.stages.split",
                    slots % (pp * vpp) == 0 ? "even" : "balanced");
    }
}

/* ---- Switches ---- */

static void recompute(struct mapping *mapping)
{
    const char *text = measurement_text(mapping->row, "recompute");
    const char *block = strstr(text, "block/");
    if (text[0] == '\0')
        return;
    if (block == NULL && strstr(text, "full") == NULL)
        return;
    mapping_append(mapping, "recompute.modules", "layer");
    if (block == NULL)
        return;
    const unsigned pp = count_of(mapping, "pp", 1);
    const unsigned each = (count_of(mapping, "layers", 1) + pp - 1) / pp;
    const unsigned asked = (unsigned)atol_or(block + strlen("block/"), 1);
    if (strstr(flags(mapping), "enable-recompute-layers-per-pp-rank") == NULL) {
        mapping_set(mapping, "recompute.layers.block", "%u", asked);
        return;
    }
    for (unsigned i = 0; i < pp; i++)
        mapping_append(mapping, "recompute.layers.per_stage",
                       arena_printf(mapping->arena, "%u", asked < each ? asked : each));
}

static void capacity(struct mapping *mapping)
{
    mapping_set(mapping, "memory.reserve", "0 B");
}

const struct mapping_rule ascend_rules[] = {
    {"published_time", "A row needs a step time or a peak memory.", published_time},
    {"attention",
     "Heads and MLA widths come from the row; the width of a head is hidden over heads unless the "
     "model is known for another one (table models).",
     attention},
    {"widths", "An empty vocabulary is that of the model's tokenizer (table models).", widths},
    {"experts",
     "An empty width of an expert is that of the FFN; shared experts have the width of routed "
     "ones unless a width is printed.",
     experts},
    {"degrees",
     "An empty etp means tensor-parallel experts of degree tp. Sequence parallelism and the "
     "distributed optimizer are on where the script has the flag. The inner group of hybrid "
     "context parallelism is 2.",
     degrees},
    {"batch", "Sequence and batch are those of the script.", batch},
    {"split",
     "Layers per virtual stage give vpp; noop-layers and num-layer-list are taken over; else "
     "layers are even if they divide, and balanced if not.",
     split},
    {"recompute",
     "full or block/N recomputes whole layers: N of each chunk, or of each stage with "
     "enable-recompute-layers-per-pp-rank.",
     recompute},
    {"capacity", "No memory is reserved, as for the other format.", capacity},
    {NULL, NULL, NULL},
};
