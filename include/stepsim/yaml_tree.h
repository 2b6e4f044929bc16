/*
 * yaml_tree.h - YAML text as a tree of nodes that know where they were written.
 *
 * One pass over libyaml's events builds the tree; every limit is checked before
 * the node that would pass it exists, so hostile text costs no more than the
 * limits allow. Aliases share their target, merge keys (`<<`) are resolved, and
 * scalars keep their raw text: what is a number is decided by the reader.
 *
 * Limits: 16 MiB of text, 64 levels, 10^6 events, 10^4 anchors and aliases, 10^6
 * nodes after expansion of aliases and merge keys, one document. Refused: invalid
 * UTF-8, control characters, tags, keys that are not plain text, duplicate keys.
 *
 * A tree is read-only once parsed and may be shared. Nodes, strings and arrays
 * live in the arena; nothing points into the parsed text.
 */
#ifndef STEPSIM_YAML_TREE_H
#define STEPSIM_YAML_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stepsim/error.h"

struct arena;

enum yaml_tree_kind { YAML_TREE_SCALAR, YAML_TREE_LIST, YAML_TREE_MAP };

/* Who wrote a node. */
enum yaml_tree_writer {
    YAML_TREE_FILE,
    YAML_TREE_OVERRIDE, /* the value of a --set */
    YAML_TREE_PATH,     /* a map made of the dotted key of a --set */
};

struct yaml_tree_entry {
    const char *key;
    struct location at; /* of the key */
    const struct yaml_tree *value;
};

struct yaml_tree {
    enum yaml_tree_kind kind;
    enum yaml_tree_writer writer;
    bool plain;         /* scalar without quotes */
    uint32_t count;     /* items of a list, entries of a map */
    uint32_t expanded;  /* nodes below and including this one, aliases counted each time */
    struct location at; /* of the node's first character */
    const char *text;   /* scalar: never NULL, no NUL inside */
    const char *name;   /* map composed from a file of that name, else NULL */
    const struct yaml_tree *const *items;  /* list, in order */
    const struct yaml_tree_entry *entries; /* map, in the order written, merged ones last */
};

/* The root of a text, or NULL with an error. The name stands in positions; it must outlive the
 * tree. An empty text is an error. */
const struct yaml_tree *yaml_tree_parse(const char *text, size_t length, const char *name,
                                        struct arena *arena, struct error_list *errors);

/* The root of a file. The path is copied. */
const struct yaml_tree *yaml_tree_read(const char *path, struct arena *arena,
                                       struct error_list *errors);

/* The value of a --set: like parse, but positions are unknown and nodes say OVERRIDE. An empty
 * text is a null. The key is named in errors. */
const struct yaml_tree *yaml_tree_parse_override(const char *text, const char *key,
                                                 struct arena *arena, struct error_list *errors);

/* The value of a key of a map, or NULL. */
const struct yaml_tree *yaml_tree_get(const struct yaml_tree *map, const char *key);

/* A scalar written as nothing, ~ or null without quotes. */
bool yaml_tree_is_null(const struct yaml_tree *node);

/* "a map", "a list", "text": for messages. */
const char *yaml_tree_kind_noun(const struct yaml_tree *node);

#endif
