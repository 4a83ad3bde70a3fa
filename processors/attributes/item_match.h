/*
 * item_match: `include` and `exclude`: which spans or samples a processor acts on.
 *
 * The Collector's filterspan: every property that is given must match. Of a list of services,
 * names, kinds or libraries, one entry must; of attributes and resources, all. `strict` compares,
 * `regexp` searches with RE2's meaning, and converts bool, int and double to text first.
 *
 * Owner: settings and compiled patterns belong to the configuration; a matcher to a node.
 *
 * Thread: settings are read-only; a matcher belongs to its node's work, one batch at a time.
 */
#ifndef PROFCOL_ATTRIBUTES_ITEM_MATCH_H
#define PROFCOL_ATTRIBUTES_ITEM_MATCH_H

#include "config/check.h"
#include "core/pipeline/items.h"

/* With YAML's keys. */
struct match_attribute {
    const char *key;
    const struct config_node *value; /* NULL: any */
    struct slice value_bytes;        /* AnyValue payload; set by item_match_check */
    struct ottl_regex *regex;
};

struct match_library {
    const char *name;
    const struct config_node *version; /* NULL: any */
};

struct match_settings {
    bool enabled; /* it is written */
    int match_type;
    const struct config_node *regexp;
    struct config_strings services;
    struct config_strings span_names;
    struct config_strings span_kinds;
    struct config_list attributes; /* of struct match_attribute */
    struct config_list resources;  /* of struct match_attribute */
    struct config_list libraries;  /* of struct match_library */
};
extern const struct field match_fields[];

/* Checks and prepares `include` or `exclude`; name: which one, for messages. */
void item_match_check(struct match_settings *settings, struct config_check *check,
                      const char *name);

struct item_matcher;
/* Compiles settings that were checked. Free it with item_matcher_free. */
struct item_matcher *item_matcher_new(const struct match_settings *settings);
/* Frees the matcher. NULL is allowed. */
void item_matcher_free(struct item_matcher *matcher);
/* Begins a batch. */
void item_matcher_begin(struct item_matcher *matcher, struct batch *batch);
/* Whether the current item has the properties. A pattern that needs too many steps for a text gives
 * `when_unsure`. */
bool item_matcher_matches(struct item_matcher *matcher, struct items *items, bool when_unsure);

#endif
