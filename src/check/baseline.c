/*
 * baseline.c - the baseline file: read with positions, written one metric a line.
 *
 * JSON is YAML, so the reader of configuration files reads it and its errors name line and
 * column. The writer makes a file whose differences are easy to review.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stepsim/arena.h"
#include "stepsim/check.h"
#include "stepsim/metric.h"
#include "stepsim/scenario.h"
#include "stepsim/text.h"
#include "stepsim/yaml_tree.h"

struct reader {
    struct arena *arena;
    struct error_list *errors;
    bool for_update;
};

/* ---- Reading ---- */

const char *const check_default_metrics[] = {"step_time_s", "tokens_per_s", "mfu",
                                             "memory.peak_bytes"};
const size_t check_default_metric_count =
    sizeof check_default_metrics / sizeof check_default_metrics[0];

static bool expect(const struct reader *reader, const struct yaml_tree *node,
                   enum yaml_tree_kind kind, const char *key)
{
    static const char *const nouns[] = {"text or a number", "a list", "an object"};
    if (node->kind != kind) {
        error_add(reader->errors, ERROR_wrong_type, node->at, key, "is %s where %s belongs",
                  yaml_tree_kind_noun(node), nouns[kind]);
        return false;
    }
    return true;
}

static void refuse_key(const struct reader *reader, const struct yaml_tree_entry *entry,
                       const char *known)
{
    error_add(reader->errors, ERROR_unknown_key, entry->at, entry->key, "a baseline knows %s here",
              known);
}

static bool read_number(const struct reader *reader, const struct yaml_tree *node, const char *key,
                        double *value)
{
    if (!expect(reader, node, YAML_TREE_SCALAR, key)) {
        return false;
    }
    if (node->plain && (strcmp(node->text, "true") == 0 || strcmp(node->text, "false") == 0)) {
        *value = node->text[0] == 't' ? 1.0 : 0.0;
        return true;
    }
    char *end = NULL;
    *value = strtod(node->text, &end);
    if (end == node->text || *end != '\0' || !isfinite(*value)) {
        error_add(reader->errors, ERROR_bad_number, node->at, key, "\"%s\" is not a number",
                  node->text);
        return false;
    }
    return true;
}

static size_t find_metric(const struct reader *reader, const struct yaml_tree_entry *entry)
{
    const struct metric *metric = metric_find(entry->key);
    if (metric != NULL) {
        return (size_t)(metric - metric_table);
    }
    const char **names = ARENA_ARRAY(reader->arena, metric_count, const char *);
    for (size_t i = 0; i < metric_count; i++) {
        names[i] = metric_table[i].name;
    }
    const char *nearest = text_nearest(entry->key, names, metric_count);
    error_add(reader->errors, ERROR_unknown_name, entry->at, entry->key,
              "there is no such metric%s%s; `stepsim list metrics` prints them",
              nearest != NULL ? ", did you mean " : "", nearest != NULL ? nearest : "");
    return metric_count;
}

static void read_metric(const struct reader *reader, const struct yaml_tree_entry *entry,
                        struct baseline_metric *metric)
{
    *metric = (struct baseline_metric){.name = entry->key, .index = find_metric(reader, entry)};
    if (!expect(reader, entry->value, YAML_TREE_MAP, entry->key)) {
        return;
    }
    uint32_t tolerances = 0;
    for (uint32_t i = 0; i < entry->value->count; i++) {
        const struct yaml_tree_entry *part = &entry->value->entries[i];
        if (strcmp(part->key, "value") == 0) {
            metric->has_value = read_number(reader, part->value, entry->key, &metric->value);
        } else if (strcmp(part->key, "rel") == 0 || strcmp(part->key, "abs") == 0) {
            tolerances++;
            metric->relative = part->key[0] == 'r';
            if (read_number(reader, part->value, entry->key, &metric->tolerance) &&
                metric->tolerance < 0.0) {
                error_add(reader->errors, ERROR_out_of_range, part->value->at, entry->key,
                          "a tolerance is not negative");
            }
        } else {
            refuse_key(reader, part, "value, rel and abs");
        }
    }
    if (tolerances != 1) {
        error_add(reader->errors, tolerances == 0 ? ERROR_missing_key : ERROR_conflicting_keys,
                  entry->at, entry->key, "needs exactly one of rel and abs");
    }
    if (!metric->has_value && !reader->for_update) {
        error_add(reader->errors, ERROR_missing_key, entry->at, entry->key,
                  "has no value yet; `stepsim check --update` writes it");
    }
}

static void read_metrics(const struct reader *reader, const struct yaml_tree *node,
                         struct baseline_scenario *scenario)
{
    if (!expect(reader, node, YAML_TREE_MAP, "metrics")) {
        return;
    }
    scenario->metrics = ARENA_ARRAY(reader->arena, node->count + 1, struct baseline_metric);
    scenario->metric_count = node->count;
    for (uint32_t i = 0; i < node->count; i++) {
        read_metric(reader, &node->entries[i], &scenario->metrics[i]);
    }
}

/* The usual metrics of an entry that names none. */
static void add_default_metrics(struct baseline_scenario *scenario, struct arena *arena)
{
    scenario->metrics = ARENA_ARRAY(arena, check_default_metric_count, struct baseline_metric);
    for (size_t i = 0; i < check_default_metric_count; i++) {
        const struct metric *metric = metric_find(check_default_metrics[i]);
        ASSERT(metric != NULL);
        scenario->metrics[scenario->metric_count++] = (struct baseline_metric){
            .name = metric->name,
            .index = (size_t)(metric - metric_table),
            .relative = true,
            .tolerance = CHECK_DEFAULT_REL,
        };
    }
}

static void read_set(const struct reader *reader, const struct yaml_tree *node,
                     struct baseline_scenario *scenario)
{
    if (!expect(reader, node, YAML_TREE_MAP, "set")) {
        return;
    }
    struct scenario_override *overrides =
        ARENA_ARRAY(reader->arena, node->count + 1, struct scenario_override);
    for (uint32_t i = 0; i < node->count; i++) {
        const struct yaml_tree_entry *entry = &node->entries[i];
        if (expect(reader, entry->value, YAML_TREE_SCALAR, entry->key)) {
            overrides[scenario->override_count++] =
                (struct scenario_override){entry->key, entry->value->text};
        }
    }
    scenario->overrides = overrides;
}

/* Index of a term, or -1. */
static int time_term(const char *name)
{
    for (unsigned c = 0; c < CAUSE_COUNT; c++) {
        if (strcmp(time_cause_name((enum time_cause)c), name) == 0) {
            return (int)c;
        }
    }
    return -1;
}

static int memory_term(const char *name)
{
    for (unsigned t = 0; t < MEMORY_TERM_COUNT; t++) {
        if (strcmp(memory_term_name((enum memory_term)t), name) == 0) {
            return (int)t;
        }
    }
    return -1;
}

/* A term that this version does not know is one that is gone: its whole value has moved. */
static void read_terms(const struct reader *reader, const struct yaml_tree *node,
                       struct baseline_scenario *scenario)
{
    if (!expect(reader, node, YAML_TREE_MAP, "terms")) {
        return;
    }
    scenario->has_terms = true;
    for (uint32_t i = 0; i < node->count; i++) {
        const struct yaml_tree_entry *part = &node->entries[i];
        const bool is_time = strcmp(part->key, "time_s") == 0;
        if (!is_time && strcmp(part->key, "memory_bytes") != 0) {
            refuse_key(reader, part, "time_s and memory_bytes");
            continue;
        }
        if (!expect(reader, part->value, YAML_TREE_MAP, part->key)) {
            continue;
        }
        for (uint32_t t = 0; t < part->value->count; t++) {
            const struct yaml_tree_entry *entry = &part->value->entries[t];
            const int term = is_time ? time_term(entry->key) : memory_term(entry->key);
            double value = 0.0;
            if (!read_number(reader, entry->value, entry->key, &value) || term < 0) {
                continue;
            }
            if (is_time) {
                scenario->terms.time_ps[term] = (sim_time)llround(value * SIM_TIME_PER_S);
            } else {
                scenario->terms.memory_bytes[term] = value;
            }
        }
    }
}

static void read_scenario(const struct reader *reader, const struct yaml_tree *node,
                          struct baseline_scenario *scenario)
{
    *scenario = (struct baseline_scenario){.at = node->at};
    if (!expect(reader, node, YAML_TREE_MAP, "scenarios")) {
        return;
    }
    for (uint32_t i = 0; i < node->count; i++) {
        const struct yaml_tree_entry *entry = &node->entries[i];
        if (strcmp(entry->key, "file") == 0) {
            if (expect(reader, entry->value, YAML_TREE_SCALAR, "file")) {
                scenario->file = entry->value->text;
            }
        } else if (strcmp(entry->key, "set") == 0) {
            read_set(reader, entry->value, scenario);
        } else if (strcmp(entry->key, "metrics") == 0) {
            read_metrics(reader, entry->value, scenario);
        } else if (strcmp(entry->key, "terms") == 0) {
            read_terms(reader, entry->value, scenario);
        } else {
            refuse_key(reader, entry, "file, set, metrics and terms");
        }
    }
    if (scenario->file == NULL) {
        error_add(reader->errors, ERROR_missing_key, node->at, "file",
                  "every entry names its scenario, relative to the folder of the baseline");
    }
    scenario->name = scenario->file;
    for (uint32_t i = 0; i < scenario->override_count; i++) {
        scenario->name = arena_printf(reader->arena, "%s %s=%s", scenario->name,
                                      scenario->overrides[i].key, scenario->overrides[i].value);
    }
    if (scenario->metric_count == 0 && reader->for_update) {
        add_default_metrics(scenario, reader->arena);
    } else if (scenario->metric_count == 0) {
        error_add(reader->errors, ERROR_missing_key, node->at, "metrics",
                  "nothing to check; `stepsim check --update` writes the usual metrics");
    }
}

struct baseline *baseline_read(const char *path, bool for_update, struct arena *arena,
                               struct error_list *errors)
{
    const size_t errors_before = errors->count;
    const struct reader reader = {arena, errors, for_update};
    const struct yaml_tree *root = yaml_tree_read(path, arena, errors);
    if (root == NULL || !expect(&reader, root, YAML_TREE_MAP, "the file")) {
        return NULL;
    }
    const struct yaml_tree *list = NULL;
    for (uint32_t i = 0; i < root->count; i++) {
        if (strcmp(root->entries[i].key, "scenarios") == 0) {
            list = root->entries[i].value;
        } else {
            refuse_key(&reader, &root->entries[i], "scenarios");
        }
    }
    struct baseline *baseline = ARENA_NEW(arena, struct baseline);
    baseline->path = arena_strdup(arena, path);
    if (list == NULL || list->kind != YAML_TREE_LIST || list->count == 0) {
        error_add(errors, ERROR_missing_key, root->at, "scenarios",
                  "a baseline is {\"scenarios\": [{\"file\": \"sim.yaml\"}]} with at least one "
                  "entry");
        return NULL;
    }
    baseline->scenario_count = list->count;
    baseline->scenarios = ARENA_ARRAY(arena, list->count, struct baseline_scenario);
    for (uint32_t i = 0; i < list->count; i++) {
        read_scenario(&reader, list->items[i], &baseline->scenarios[i]);
    }
    return errors->count == errors_before ? baseline : NULL;
}

/* ---- Writing ---- */

static void add_string(struct text *out, const char *value)
{
    text_add(out, "\"");
    for (; *value != '\0'; value++) {
        const unsigned char letter = (unsigned char)*value;
        if (letter == '"' || letter == '\\') {
            text_add(out, "\\%c", letter);
        } else if (letter < 0x20) {
            text_add(out, "\\u%04x", letter);
        } else {
            text_add_bytes(out, value, 1);
        }
    }
    text_add(out, "\"");
}

static void add_set(struct text *out, const struct baseline_scenario *scenario)
{
    text_add(out, ",\n      \"set\": {");
    for (uint32_t i = 0; i < scenario->override_count; i++) {
        text_add(out, "%s", i > 0 ? ", " : "");
        add_string(out, scenario->overrides[i].key);
        text_add(out, ": ");
        add_string(out, scenario->overrides[i].value);
    }
    text_add(out, "}");
}

static void add_terms(struct text *out, const struct answer_terms *terms, struct arena *arena)
{
    const char *separator = "";
    text_add(out, ",\n      \"terms\": {\n        \"time_s\": {");
    for (unsigned c = 0; c < CAUSE_COUNT; c++) {
        if (terms->time_ps[c] != 0) {
            text_add(out, "%s\"%s\": %s", separator, time_cause_name((enum time_cause)c),
                     text_double(arena, sim_time_seconds(terms->time_ps[c])));
            separator = ", ";
        }
    }
    text_add(out, "},\n        \"memory_bytes\": {");
    for (unsigned t = 0; t < MEMORY_TERM_COUNT; t++) {
        text_add(out, "%s\"%s\": %s", t > 0 ? ", " : "", memory_term_name((enum memory_term)t),
                 text_double(arena, terms->memory_bytes[t]));
    }
    text_add(out, "}\n      }");
}

static void add_scenario(struct text *out, const struct baseline_scenario *scenario,
                         struct arena *arena)
{
    text_add(out, "    {\n      \"file\": ");
    add_string(out, scenario->file);
    if (scenario->override_count > 0) {
        add_set(out, scenario);
    }
    text_add(out, ",\n      \"metrics\": {");
    for (uint32_t i = 0; i < scenario->metric_count; i++) {
        const struct baseline_metric *metric = &scenario->metrics[i];
        text_add(out, "%s\n        \"%s\": {", i > 0 ? "," : "", metric->name);
        if (metric->has_value) {
            text_add(out, "\"value\": %s, ", text_double(arena, metric->value));
        }
        text_add(out, "\"%s\": %s}", metric->relative ? "rel" : "abs",
                 text_double(arena, metric->tolerance));
    }
    text_add(out, "\n      }");
    if (scenario->has_terms) {
        add_terms(out, &scenario->terms, arena);
    }
    text_add(out, "\n    }");
}

static bool write_file(const char *path, const char *text)
{
    errno = 0;
    FILE *file = fopen(path, "w");
    bool written = file != NULL && fputs(text, file) != EOF;
    if (file != NULL && fclose(file) != 0) {
        written = false;
    }
    return written;
}

bool baseline_write(const struct baseline *baseline, struct error_list *errors)
{
    struct arena *arena = arena_create("baseline");
    struct text out = {0};
    text_add(&out, "{\n  \"scenarios\": [\n");
    for (uint32_t i = 0; i < baseline->scenario_count; i++) {
        text_add(&out, "%s", i > 0 ? ",\n" : "");
        add_scenario(&out, &baseline->scenarios[i], arena);
    }
    text_add(&out, "\n  ]\n}\n");
    /* Beside the file first: a full disk must not cost the old baseline. */
    const char *beside = arena_printf(arena, "%s.new", baseline->path);
    const bool written =
        write_file(beside, text_string(&out)) && rename(beside, baseline->path) == 0;
    if (!written) {
        error_add(errors, ERROR_file_not_writable, (struct location){baseline->path, 0, 0}, NULL,
                  "%s", strerror(errno));
        remove(beside);
    }
    text_free(&out);
    arena_destroy(arena);
    return written;
}
