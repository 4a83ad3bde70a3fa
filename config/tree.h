/*
 * tree: the nodes that a configuration is while it is being loaded.
 *
 * Every node knows where it was written, so that whatever is found wrong later can be shown to the
 * user. What a placeholder turned into stands at the place of the placeholder.
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

struct config_source {
    const char *name; /* as messages show it: "collector.yaml", "env:CONFIG" */
    unsigned order;   /* position on the command line */
};

struct config_place {
    const struct config_source *source;
    unsigned line; /* from 1 */
    unsigned column;
};

enum config_style {
    CONFIG_STYLE_PLAIN,  /* may be a number, a boolean */
    CONFIG_STYLE_QUOTED, /* a string, because it was written in quotes */
    CONFIG_STYLE_JOINED, /* a string, because a placeholder gave text or a part of it */
};

struct config_node {
    enum config_node_kind kind;
    enum config_style style;
    bool broken; /* an error was told about it; whoever meets it says nothing more */
    struct config_place place;
    const char *text;     /* of a scalar; "" of a null */
    const char *verbatim; /* the text behind a placeholder that was read as YAML, for fields that
                             want text */
    struct config_node **keys; /* of a map: scalars */
    struct config_node **items;
    size_t count;
    size_t capacity;
    struct index_table index; /* of the keys of a large map, by their hash */
};

struct config_node *config_node_new(struct arena *arena, enum config_node_kind kind,
                                    struct config_place place);
/* A plain text that spells null makes a node of that kind. */
struct config_node *config_node_scalar(struct arena *arena, struct config_place place,
                                       const char *text, enum config_style style);

void config_node_append(struct arena *arena, struct config_node *list, struct config_node *item);
/* False when the key is there already; the map is then unchanged. */
bool config_node_put(struct arena *arena, struct config_node *map, struct config_node *key,
                     struct config_node *value);
/* Position of a key in a map; SIZE_MAX when it is not there or node is no map. */
size_t config_node_find(const struct config_node *node, const char *key);

/* The text behind a scalar for fields that take text: what was written, or what the placeholder
 * stood for. */
const char *config_node_verbatim(const struct config_node *node);
/* "a map", "a list", "nothing", "text", for messages. */
const char *config_node_describe(const struct config_node *node);

/* Whether a plain text is more than a string in YAML: a number, a boolean, null. */
bool config_text_is_typed(const char *text);

#endif
