/*
 * yaml_tree.c - libyaml's events become nodes; limits come first.
 *
 * libyaml 0.2.5 has no limit of depth, is quadratic on deep flow nesting, and
 * leaves duplicate keys and merge keys to its caller. The loop below counts every
 * event before it does anything with it and stops at the first limit, so the time
 * is bounded by the limits and not by the text.
 *
 * States: a stack of open collections. A node that is complete is pushed on
 * `pending`; when a collection closes, its children are the top of `pending`. An
 * anchor becomes known when its node is complete, so a node cannot contain
 * itself.
 */
#include "stepsim/yaml_tree.h"

#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "config/config_internal.h"

#define DEPTH_MAX   64
#define EVENTS_MAX  1000000u
#define ALIASES_MAX 10000u

struct anchor {
    const char *name;
    const struct yaml_tree *node;
};

struct level {
    struct yaml_tree *node;
    yaml_mark_t start;
    const char *anchor; /* or NULL */
    size_t first;       /* of its children in pending */
};

struct builder {
    struct arena *arena;
    struct error_list *errors;
    const char *file; /* NULL for an override */
    const char *key;  /* of an override */
    enum yaml_tree_writer writer;

    struct level levels[DEPTH_MAX];
    size_t level_count;
    const struct yaml_tree **pending; /* heap */
    size_t pending_count, pending_capacity;
    struct anchor *anchors; /* heap */
    size_t anchor_count, anchor_capacity;
    size_t event_count, alias_count, document_count;
    size_t merge_budget;
};

static struct location place(const struct builder *builder, yaml_mark_t mark)
{
    if (builder->writer != YAML_TREE_FILE)
        return (struct location){0};
    return (struct location){.file = builder->file,
                             .line = (uint32_t)mark.line + 1,
                             .column = (uint32_t)mark.column + 1};
}

static bool refuse(struct builder *builder, enum error_code code, yaml_mark_t mark,
                   const char *reason)
{
    error_add(builder->errors, code, place(builder, mark), builder->key, "%s", reason);
    return false;
}

static bool limit(struct builder *builder, yaml_mark_t mark, const char *reason)
{
    return refuse(builder, ERROR_yaml_limit, mark, reason);
}

/* Doubles a heap array so that one more element fits. */
static void *grown(void *array, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity)
        return array;
    *capacity = *capacity ? *capacity * 2 : 64;
    void *bigger = realloc(array, *capacity * size);
    ASSERT(bigger != NULL);
    return bigger;
}

static bool add_anchor(struct builder *builder, const char *name, const struct yaml_tree *node,
                       yaml_mark_t mark)
{
    if (!name)
        return true;
    if (builder->anchor_count >= ALIASES_MAX)
        return limit(builder, mark, "has more than 10,000 anchors");
    builder->anchors = grown(builder->anchors, builder->anchor_count, &builder->anchor_capacity,
                             sizeof *builder->anchors);
    builder->anchors[builder->anchor_count++] = (struct anchor){name, node};
    return true;
}

/* The latest node of that anchor, or NULL. */
static const struct yaml_tree *find_anchor(const struct builder *builder, const char *name)
{
    for (size_t i = builder->anchor_count; i > 0; i--) {
        if (strcmp(builder->anchors[i - 1].name, name) == 0)
            return builder->anchors[i - 1].node;
    }
    return NULL;
}

static bool push(struct builder *builder, const struct yaml_tree *node, yaml_mark_t mark)
{
    if (builder->level_count > 0) {
        const struct level *level = &builder->levels[builder->level_count - 1];
        const bool is_key =
            level->node->kind == YAML_TREE_MAP && (builder->pending_count - level->first) % 2 == 0;
        if (is_key && node->kind != YAML_TREE_SCALAR)
            return refuse(builder, ERROR_wrong_type, mark, "a key must be plain text");
    }
    builder->pending = grown(builder->pending, builder->pending_count, &builder->pending_capacity,
                             sizeof *builder->pending);
    builder->pending[builder->pending_count++] = node;
    return true;
}

static const char *copy_anchor(struct builder *builder, const yaml_char_t *anchor)
{
    return anchor ? arena_strdup(builder->arena, (const char *)anchor) : NULL;
}

static struct yaml_tree *new_node(struct builder *builder, enum yaml_tree_kind kind,
                                  yaml_mark_t mark)
{
    struct yaml_tree *node = ARENA_NEW(builder->arena, struct yaml_tree);
    node->kind = kind;
    node->writer = builder->writer;
    node->at = place(builder, mark);
    node->expanded = 1;
    node->text = "";
    return node;
}

static bool refuse_tag(struct builder *builder, const yaml_char_t *tag, yaml_mark_t mark)
{
    if (!tag || strcmp((const char *)tag, "!") == 0)
        return true;
    return refuse(builder, ERROR_yaml_syntax, mark,
                  "a tag (!name) is not accepted; write the plain value");
}

static bool on_scalar(struct builder *builder, const yaml_event_t *event)
{
    const char *value = (const char *)event->data.scalar.value;
    const size_t length = event->data.scalar.length;
    if (!refuse_tag(builder, event->data.scalar.tag, event->start_mark))
        return false;
    if (memchr(value, '\0', length))
        return refuse(builder, ERROR_yaml_syntax, event->start_mark, "text must not contain NUL");
    struct yaml_tree *node = new_node(builder, YAML_TREE_SCALAR, event->start_mark);
    node->plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    node->text = length > 0 ? arena_strndup(builder->arena, value, length) : "";
    const char *anchor = copy_anchor(builder, event->data.scalar.anchor);
    return add_anchor(builder, anchor, node, event->start_mark) &&
           push(builder, node, event->start_mark);
}

static bool on_alias(struct builder *builder, const yaml_event_t *event)
{
    const char *name = (const char *)event->data.alias.anchor;
    char quoted[CONFIG_QUOTE_SIZE];
    if (++builder->alias_count > ALIASES_MAX)
        return limit(builder, event->start_mark, "has more than 10,000 aliases");
    const struct yaml_tree *node = find_anchor(builder, name);
    if (!node) {
        error_add(builder->errors, ERROR_yaml_syntax, place(builder, event->start_mark),
                  builder->key, "no complete anchor %s before this alias",
                  config_quote(quoted, name));
        return false;
    }
    return push(builder, node, event->start_mark);
}

static bool open_level(struct builder *builder, enum yaml_tree_kind kind, const yaml_event_t *event)
{
    const bool is_map = kind == YAML_TREE_MAP;
    const yaml_char_t *tag =
        is_map ? event->data.mapping_start.tag : event->data.sequence_start.tag;
    const yaml_char_t *anchor =
        is_map ? event->data.mapping_start.anchor : event->data.sequence_start.anchor;
    if (builder->level_count == DEPTH_MAX)
        return limit(builder, event->start_mark, "is nested deeper than 64 levels");
    if (!refuse_tag(builder, tag, event->start_mark))
        return false;
    builder->levels[builder->level_count++] =
        (struct level){.node = new_node(builder, kind, event->start_mark),
                       .start = event->start_mark,
                       .anchor = copy_anchor(builder, anchor),
                       .first = builder->pending_count};
    return true;
}

static bool close_list(struct builder *builder, struct level *level)
{
    const size_t count = builder->pending_count - level->first;
    const struct yaml_tree **items =
        arena_calloc(builder->arena, count, sizeof(const struct yaml_tree *));
    uint64_t expanded = 1;
    for (size_t i = 0; i < count; i++) {
        items[i] = builder->pending[level->first + i];
        expanded += items[i]->expanded;
    }
    level->node->items = items;
    level->node->count = (uint32_t)count;
    level->node->expanded = (uint32_t)(expanded <= CONFIG_NODES_MAX ? expanded : CONFIG_NODES_MAX);
    return expanded <= CONFIG_NODES_MAX;
}

static bool close_level(struct builder *builder, const yaml_event_t *event)
{
    struct level level = builder->levels[--builder->level_count];
    bool fits;
    if (level.node->kind == YAML_TREE_LIST) {
        fits = close_list(builder, &level);
    } else {
        const size_t count = builder->pending_count - level.first;
        const struct yaml_children children = {.nodes =
                                                   count ? builder->pending + level.first : NULL,
                                               .count = count,
                                               .merge_budget = &builder->merge_budget};
        fits = yaml_merge_entries(level.node, children, builder->arena, builder->errors);
    }
    if (!fits)
        return limit(builder, event->start_mark,
                     "grows past 1,000,000 nodes when aliases and merge keys are expanded");
    builder->pending_count = level.first;
    return add_anchor(builder, level.anchor, level.node, level.start) &&
           push(builder, level.node, level.start);
}

/* False ends the parse with an error already reported. */
static bool on_event(struct builder *builder, const yaml_event_t *event)
{
    if (++builder->event_count > EVENTS_MAX)
        return limit(builder, event->start_mark, "has more than 1,000,000 events");
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        if (++builder->document_count > 1)
            return limit(builder, event->start_mark,
                         "holds a second document; one file is one document");
        return true;
    case YAML_SCALAR_EVENT:
        return on_scalar(builder, event);
    case YAML_ALIAS_EVENT:
        return on_alias(builder, event);
    case YAML_MAPPING_START_EVENT:
        return open_level(builder, YAML_TREE_MAP, event);
    case YAML_SEQUENCE_START_EVENT:
        return open_level(builder, YAML_TREE_LIST, event);
    case YAML_MAPPING_END_EVENT:
    case YAML_SEQUENCE_END_EVENT:
        return close_level(builder, event);
    default:
        return true;
    }
}

static void report_syntax(struct builder *builder, const yaml_parser_t *parser)
{
    const char *problem = parser->problem ? parser->problem : "cannot be parsed";
    const struct location at = place(builder, parser->problem_mark);
    if (parser->context && parser->context_mark.line != parser->problem_mark.line)
        error_add(builder->errors, ERROR_yaml_syntax, at, builder->key, "%s (%s, line %zu)",
                  problem, parser->context, parser->context_mark.line + 1);
    else
        error_add(builder->errors, ERROR_yaml_syntax, at, builder->key, "%s", problem);
}

static bool run(struct builder *builder, const char *text, size_t length)
{
    yaml_parser_t parser;
    const int initialized = yaml_parser_initialize(&parser);
    ASSERT(initialized);
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, length);
    bool good = true;
    bool done = false;
    while (good && !done) {
        yaml_event_t event;
        if (!yaml_parser_parse(&parser, &event)) {
            report_syntax(builder, &parser);
            good = false;
            break;
        }
        good = on_event(builder, &event);
        done = event.type == YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    return good;
}

static const struct yaml_tree *build(struct builder *builder, const char *text, size_t length)
{
    builder->merge_budget = CONFIG_NODES_MAX;
    const bool good = run(builder, text, length);
    const struct yaml_tree *root = good && builder->pending_count > 0 ? builder->pending[0] : NULL;
    free(builder->pending);
    free(builder->anchors);
    if (good && !root && builder->writer != YAML_TREE_FILE) {
        struct yaml_tree *nothing = new_node(builder, YAML_TREE_SCALAR, (yaml_mark_t){0});
        nothing->plain = true;
        return nothing;
    }
    if (good && !root)
        error_add(builder->errors, ERROR_wrong_type, (struct location){.file = builder->file}, NULL,
                  "holds nothing");
    return root;
}

const struct yaml_tree *yaml_tree_parse(const char *text, size_t length, const char *name,
                                        struct arena *arena, struct error_list *errors)
{
    ASSERT(text != NULL);
    ASSERT(name != NULL);
    if (!config_check_text(text, length, name, errors))
        return NULL;
    struct builder builder = {.arena = arena, .errors = errors, .file = name};
    return build(&builder, text, length);
}

const struct yaml_tree *yaml_tree_read(const char *path, struct arena *arena,
                                       struct error_list *errors)
{
    size_t length = 0;
    char *text = config_read_file(path, &length, errors);
    if (!text)
        return NULL;
    const struct yaml_tree *root =
        yaml_tree_parse(text, length, arena_strdup(arena, path), arena, errors);
    free(text);
    return root;
}

/* A value that is plainly one scalar needs no parser: most overrides of a sweep are. */
static bool is_simple(const char *text)
{
    const bool head = (*text >= '0' && *text <= '9') || (*text >= 'a' && *text <= 'z') ||
                      (*text >= 'A' && *text <= 'Z');
    if (!head)
        return false;
    const size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                       "0123456789_./%+- ");
    return text[length] == '\0' && text[length - 1] != ' ';
}

const struct yaml_tree *yaml_tree_parse_override(const char *text, const char *key,
                                                 struct arena *arena, struct error_list *errors)
{
    ASSERT(text != NULL);
    ASSERT(key != NULL);
    struct builder builder = {
        .arena = arena, .errors = errors, .key = key, .writer = YAML_TREE_OVERRIDE};
    if (is_simple(text)) {
        struct yaml_tree *node = new_node(&builder, YAML_TREE_SCALAR, (yaml_mark_t){0});
        node->plain = true;
        node->text = arena_strdup(arena, text);
        return node;
    }
    const size_t length = strlen(text);
    if (!config_check_text(text, length, NULL, errors))
        return NULL;
    return build(&builder, text, length);
}

const struct yaml_tree *yaml_tree_get(const struct yaml_tree *map, const char *key)
{
    ASSERT(map->kind == YAML_TREE_MAP);
    for (uint32_t i = 0; i < map->count; i++) {
        if (strcmp(map->entries[i].key, key) == 0)
            return map->entries[i].value;
    }
    return NULL;
}

bool yaml_tree_is_null(const struct yaml_tree *node)
{
    return node->kind == YAML_TREE_SCALAR && node->plain &&
           (node->text[0] == '\0' || strcmp(node->text, "~") == 0 ||
            strcmp(node->text, "null") == 0);
}

const char *yaml_tree_kind_noun(const struct yaml_tree *node)
{
    if (yaml_tree_is_null(node))
        return "nothing";
    return node->kind == YAML_TREE_MAP ? "a map" : node->kind == YAML_TREE_LIST ? "a list" : "text";
}
