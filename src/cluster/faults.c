/*
 * faults.c - what the names of broken and slow parts mean.
 *
 *     node N                  its devices: broken, or slower in computing
 *     nic N of node N         traffic of a broken one takes the others of the node
 *     LEVEL N                 a switch: its share of what passes the level in its domain
 *     uplinks of node N       all ports of a node together
 *     uplinks of LEVEL N      all links of a domain to the level above it
 *
 * A level has `switches` of them per domain, numbered through all domains. The only one of a
 * domain takes the whole domain with it.
 */
#include <stdio.h>
#include <string.h>

#include "cluster_internal.h"

#include "stepsim/text.h"

#define WORDS_MAX 5
#define WORD_SIZE 64
#define LITTLE    1e-9 /* of a share: rounding of sums */

struct reader {
    const struct cluster_input *input;
    struct cluster *cluster;
    struct cluster_fault *faults;
    const struct fault_spec *spec; /* the one being read */
    const char *key;
    char words[WORDS_MAX][WORD_SIZE];
    uint32_t count;
};

static struct location at_fault(const struct reader *reader)
{
    return scenario_at(reader->input->scenario, reader->key);
}

/* "leaf N, spine N", for messages. */
static const char *level_names(const struct reader *reader)
{
    struct arena *arena = reader->input->arena;
    const struct cluster_spec *spec = reader->cluster->spec;
    const char *names = "";
    for (uint32_t i = 0; i < spec->level_count; i++) {
        if (strcmp(spec->levels[i].name, "node") != 0)
            names = arena_printf(arena, "%s, %s N", names, spec->levels[i].name);
    }
    return names;
}

static void refuse_name(const struct reader *reader)
{
    error_add(
        reader->input->errors, ERROR_unknown_name, at_fault(reader), reader->key,
        "\"%s\" names no part of %s; parts are: node N, nic N of node N, uplinks of node N%s, "
        "uplinks of LEVEL N",
        reader->spec->part, reader->cluster->spec->name, level_names(reader));
}

static void split_words(struct reader *reader)
{
    reader->count = 0;
    for (const char *at = reader->spec->part; *at != '\0' && reader->count <= WORDS_MAX;) {
        at += strspn(at, " ");
        const size_t length = strcspn(at, " ");
        if (length == 0)
            break;
        if (reader->count < WORDS_MAX && length < WORD_SIZE) {
            memcpy(reader->words[reader->count], at, length);
            reader->words[reader->count][length] = '\0';
        }
        reader->count += length < WORD_SIZE ? 1 : WORDS_MAX + 1;
        at += length;
    }
}

/* Do the words read like this, with "#" for a number and "*" for any word? */
static bool reads(const struct reader *reader, const char *const pattern[], uint32_t count)
{
    bool like = reader->count == count;
    for (uint32_t i = 0; like && i < count; i++) {
        const char *word = reader->words[i];
        const size_t digits = strspn(word, "0123456789");
        if (strcmp(pattern[i], "#") == 0)
            like = digits > 0 && digits < 10 && word[digits] == '\0';
        else if (strcmp(pattern[i], "*") != 0)
            like = strcmp(pattern[i], word) == 0;
    }
    return like;
}

static uint32_t number_in(const struct reader *reader, uint32_t word)
{
    uint32_t number = 0;
    for (const char *at = reader->words[word]; *at != '\0'; at++)
        number = number * 10 + (uint32_t)(*at - '0');
    return number;
}

/* The number of a part below `count`; false, refused, if there are not so many. */
static bool number_of(const struct reader *reader, uint32_t word, const char *noun, uint32_t count,
                      uint32_t *number)
{
    const bool nic = strcmp(noun, "nic") == 0;
    *number = number_in(reader, word);
    if (*number < count)
        return true;
    error_add(reader->input->errors, ERROR_out_of_range, at_fault(reader), reader->key,
              "there is no %s %u: %s %s with %u devices has %s 0 to %u", noun, *number,
              nic ? "a node of" : "the cluster", reader->cluster->spec->name,
              nic ? reader->cluster->spec->devices_per_node : reader->cluster->capacity, noun,
              count - 1);
    return false;
}

static void add_fault(struct reader *reader, struct cluster_fault fault)
{
    const uint32_t capacity = reader->cluster->capacity;
    fault.last = fault.last < capacity ? fault.last : capacity;
    reader->faults[reader->cluster->fault_count++] = fault;
}

static uint32_t node_count(const struct cluster *cluster)
{
    const uint32_t node = cluster->spec->devices_per_node;
    return (cluster->capacity + node - 1) / node;
}

static uint32_t domain_count(const struct cluster *cluster, uint32_t level)
{
    const uint32_t size = cluster_domain_size(cluster, level);
    return (cluster->capacity + size - 1) / size;
}

/* ---- Parts ---- */

static void read_node(struct reader *reader)
{
    uint32_t node;
    const uint32_t size = reader->cluster->spec->devices_per_node;
    if (!number_of(reader, 1, "node", node_count(reader->cluster), &node))
        return;
    const bool broken = reader->spec->speed <= 0.0;
    add_fault(reader, (struct cluster_fault){.kind = broken ? FAULT_DEVICES : FAULT_COMPUTE,
                                             .first = node * size,
                                             .last = (node + 1) * size,
                                             .lost = 1.0 - reader->spec->speed});
}

/* The level of the NICs; false, refused, in a cluster of one node. */
static bool nic_level_of(const struct reader *reader, uint32_t *level)
{
    *level = cluster_nic_level(reader->cluster->spec);
    if (*level < LEVELS_MAX)
        return true;
    error_add(reader->input->errors, ERROR_unknown_name, at_fault(reader), reader->key,
              "nodes of %s have no links to the outside: no level is larger than a node of %u",
              reader->cluster->spec->name, reader->cluster->spec->devices_per_node);
    return false;
}

static void read_nic(struct reader *reader)
{
    uint32_t level, node, nic;
    const struct cluster_spec *spec = reader->cluster->spec;
    const uint32_t size = spec->devices_per_node;
    if (!nic_level_of(reader, &level) ||
        !number_of(reader, 4, "node", node_count(reader->cluster), &node) ||
        !number_of(reader, 1, "nic", cluster_nics_of_node(spec), &nic))
        return;
    struct cluster_fault fault = {.kind = FAULT_NODE_LINKS,
                                  .level = level,
                                  .first = node * size,
                                  .last = (node + 1) * size,
                                  .lost = (1.0 - reader->spec->speed) / cluster_nics_of_node(spec)};
    /* A slow port of one device stays its own; there is nothing to go around. */
    if (spec->levels[level].nics == 0 && reader->spec->speed > 0.0)
        fault = (struct cluster_fault){.kind = FAULT_OWN_LINKS,
                                       .level = level,
                                       .first = node * size + nic,
                                       .last = node * size + nic + 1,
                                       .lost = 1.0 - reader->spec->speed};
    add_fault(reader, fault);
}

static void read_node_uplinks(struct reader *reader)
{
    uint32_t level, node;
    const uint32_t size = reader->cluster->spec->devices_per_node;
    if (!nic_level_of(reader, &level) ||
        !number_of(reader, 3, "node", node_count(reader->cluster), &node))
        return;
    add_fault(reader, (struct cluster_fault){.kind = FAULT_NODE_LINKS,
                                             .level = level,
                                             .first = node * size,
                                             .last = (node + 1) * size,
                                             .lost = 1.0 - reader->spec->speed});
}

/* The level that a word names; false, refused, if none. */
static bool level_named(const struct reader *reader, uint32_t word, uint32_t *level)
{
    const struct cluster_spec *spec = reader->cluster->spec;
    for (*level = 0; *level < spec->level_count; ++*level) {
        if (strcmp(spec->levels[*level].name, reader->words[word]) == 0)
            return true;
    }
    refuse_name(reader);
    return false;
}

static void read_switch(struct reader *reader)
{
    uint32_t level, number;
    struct cluster *cluster = reader->cluster;
    if (!level_named(reader, 0, &level))
        return;
    const struct level_spec *spec = &cluster->spec->levels[level];
    const uint32_t size = cluster_domain_size(cluster, level);
    const uint32_t domains = domain_count(cluster, level);
    if (!number_of(reader, 1, spec->name, domains * spec->switches, &number))
        return;
    const bool whole = spec->switches == 1 && reader->spec->speed <= 0.0;
    if (whole && domains == 1) {
        error_add(reader->input->errors, ERROR_conflicting_keys, at_fault(reader), reader->key,
                  "without its only switch level %s joins nothing; say how many it has: "
                  "cluster.levels.%s.switches",
                  spec->name, spec->name);
        return;
    }
    const uint32_t domain = number / spec->switches;
    add_fault(reader, (struct cluster_fault){.kind = whole        ? FAULT_DEVICES
                                                     : level == 0 ? FAULT_OWN_LINKS
                                                                  : FAULT_LINKS,
                                             .level = level,
                                             .first = domain * size,
                                             .last = (domain + 1) * size,
                                             .lost = (1.0 - reader->spec->speed) / spec->switches});
}

static void read_uplinks(struct reader *reader)
{
    uint32_t level, domain;
    struct cluster *cluster = reader->cluster;
    if (!level_named(reader, 2, &level))
        return;
    const char *name = cluster->spec->levels[level].name;
    if (level + 1 == cluster->spec->level_count) {
        error_add(reader->input->errors, ERROR_unknown_name, at_fault(reader), reader->key,
                  "level %s is the outermost one and has no uplinks", name);
        return;
    }
    const uint32_t size = cluster_domain_size(cluster, level);
    if (!number_of(reader, 3, name, domain_count(cluster, level), &domain))
        return;
    add_fault(reader, (struct cluster_fault){.kind = FAULT_LINKS,
                                             .level = level + 1,
                                             .first = domain * size,
                                             .last = (domain + 1) * size,
                                             .lost = 1.0 - reader->spec->speed});
}

/* ---- All of them ---- */

static const struct form {
    uint32_t count;
    const char *words[WORDS_MAX];
    void (*read)(struct reader *reader);
} forms[] = {
    {2, {"node", "#"}, read_node},
    {2, {"*", "#"}, read_switch},
    {5, {"nic", "#", "of", "node", "#"}, read_nic},
    {4, {"uplinks", "of", "node", "#"}, read_node_uplinks},
    {4, {"uplinks", "of", "*", "#"}, read_uplinks},
};

static void read_fault(struct reader *reader)
{
    split_words(reader);
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        if (reads(reader, forms[i].words, forms[i].count)) {
            forms[i].read(reader);
            return;
        }
    }
    refuse_name(reader);
}

static double left_at(const struct cluster *cluster, enum fault_kind kind, uint32_t level,
                      uint32_t device)
{
    double left = 1.0;
    for (uint32_t i = 0; i < cluster->fault_count; i++) {
        const struct cluster_fault *fault = &cluster->faults[i];
        if (fault->kind == kind && fault->level == level && fault->first <= device &&
            device < fault->last)
            left -= fault->lost;
    }
    return left;
}

/* A part once, and something left of what faults share. */
static void check_rest(const struct reader *reader, uint32_t index)
{
    const struct cluster *cluster = reader->cluster;
    const struct scenario *scenario = reader->input->scenario;
    const struct cluster_fault *fault = &cluster->faults[cluster->fault_count - 1];
    for (uint32_t i = 0; i < index; i++) {
        if (strcmp(scenario->faults[i].part, reader->spec->part) == 0) {
            error_add(reader->input->errors, ERROR_conflicting_keys, at_fault(reader), reader->key,
                      "%s is listed twice", reader->spec->part);
            return;
        }
    }
    if (fault->kind != FAULT_DEVICES &&
        left_at(cluster, fault->kind, fault->level, fault->first) < LITTLE)
        error_add(reader->input->errors, ERROR_conflicting_keys, at_fault(reader), reader->key,
                  "with %s nothing is left of level %s for devices %u to %u; write the nodes that "
                  "are cut off, such as `node %u`",
                  reader->spec->part, cluster->spec->levels[fault->level].name, fault->first,
                  fault->last - 1, fault->first / cluster->spec->devices_per_node);
}

bool faults_resolve(const struct cluster_input *input, struct cluster *cluster)
{
    const struct scenario *scenario = input->scenario;
    const size_t before = input->errors->count;
    struct reader reader = {
        .input = input,
        .cluster = cluster,
        .faults = ARENA_ARRAY(input->arena, scenario->fault_count, struct cluster_fault)};
    cluster->faults = reader.faults;
    for (uint32_t i = 0; i < scenario->fault_count; i++) {
        const uint32_t count = cluster->fault_count;
        reader.spec = &scenario->faults[i];
        reader.key = arena_printf(input->arena, "faults.%u.part", i);
        read_fault(&reader);
        if (cluster->fault_count > count)
            check_rest(&reader, i);
    }
    return input->errors->count == before;
}

double cluster_speed(const struct cluster *cluster, enum fault_kind kind, uint32_t level,
                     uint32_t rank)
{
    return left_at(cluster, kind, level, cluster_device(cluster, rank));
}
