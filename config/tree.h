/*
 * tree: a configuration as a tree of nodes while it is being loaded.
 *
 * Every node knows the position where it was written, so that later errors can show it. The nodes
 * that replace a placeholder have the position of the placeholder.
 *
 * Owner: the configuration's arena owns all nodes.
 *
 * Thread: one at a time while loading, then read-only.
 */
#ifndef PROFCOL_CONFIG_TREE_H
#define PROFCOL_CONFIG_TREE_H

#include "config/node.h"
#include "core/base/arena.h"
#include "core/base/index_table.h"
#include "core/base/text.h"

struct config_source {
    const char *name;  /* as messages show it: "collector.yaml", "env:CONFIG" */
    unsigned order;    /* position on the command line */
    struct slice yaml; /* its text, until it is loaded */
};

struct config_place {
    const struct config_source *source;
    unsigned line; /* from 1 */
    unsigned column;
};

enum config_style {
    CONFIG_STYLE_PLAIN,  /* may be a number or a boolean */
    CONFIG_STYLE_QUOTED, /* a string, because it was written in quotes */
    CONFIG_STYLE_JOINED, /* a string, because it contains the text of a placeholder */
};

struct config_node {
    enum config_node_kind kind;
    enum config_style style;
    bool broken; /* an error was reported for it; report no other */
    struct config_place place;
    const char *text;     /* of a scalar; "" for null */
    const char *verbatim; /* the text of a placeholder that was read as YAML, for fields of text */
    struct config_node **keys; /* of a map; all are scalars */
    struct config_node **items;
    size_t count;
    size_t capacity;
    struct index_table index; /* of the keys of a large map, by their hash */
};

/* Creates an empty node. */
struct config_node *config_node_new(struct arena *arena, enum config_node_kind kind,
                                    struct config_place place);
/* Creates a scalar. A plain text that means null in YAML creates a null node. */
struct config_node *config_node_scalar(struct arena *arena, struct config_place place,
                                       const char *text, enum config_style style);

/* Appends an item to a list. */
void config_node_append(struct arena *arena, struct config_node *list, struct config_node *item);
/* Adds a key to a map. Returns false, and changes nothing, if the key exists already. */
bool config_node_put(struct arena *arena, struct config_node *map, struct config_node *key,
                     struct config_node *value);
/* Returns the index of a key in a map; SIZE_MAX if it is absent or node is not a map. */
size_t config_node_find(const struct config_node *node, const char *key);

/* Appends the node as JSON. */
void config_node_print_json(const struct config_node *node, struct text *out);

/* Returns the text of a scalar for fields of text: as written, or as the placeholder's value. */
const char *config_node_verbatim(const struct config_node *node);
/* Returns "a map", "a list", "nothing" or "text", for messages. */
const char *config_node_describe(const struct config_node *node);

/* Whether YAML reads a plain text as something other than a string: a number, a boolean, null. */
bool config_text_is_typed(const char *text);

#endif
