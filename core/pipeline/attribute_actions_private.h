/*
 * attribute_actions_private: what the files of attribute_actions share.
 *
 * attribute_actions.c reads the settings, attribute_editor.c applies them to messages and
 * sample_edits.c to samples, attribute_values.c makes the values that hash and convert set.
 *
 * Owner: as in attribute_actions.h; values belong to the caller's arena.
 *
 * Thread: as in attribute_actions.h.
 */
#ifndef PROFCOL_CORE_PIPELINE_ATTRIBUTE_ACTIONS_PRIVATE_H
#define PROFCOL_CORE_PIPELINE_ATTRIBUTE_ACTIONS_PRIVATE_H

#include "core/data/attribute_list.h"
#include "core/data/sample_attributes.h"
#include "core/pipeline/attribute_actions.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

/* In the order of their names in YAML. */
enum action {
    ACTION_INSERT,
    ACTION_UPDATE,
    ACTION_UPSERT,
    ACTION_DELETE,
    ACTION_HASH,
    ACTION_EXTRACT,
    ACTION_CONVERT
};

enum converted { CONVERTED_NONE, CONVERTED_INT, CONVERTED_DOUBLE, CONVERTED_STRING };

struct attribute_pattern {
    pcre2_code *code;
    bool is_anchored; /* is matched from the start of a text only */
    uint32_t group_count;
    struct slice *group_names; /* of group 1, 2, ... */
};

/* What is remembered of one action about the samples of a batch. */
struct action_of_samples {
    struct attribute_editor *editor;
    const struct attribute_action *action;
    bool has_begun;
    struct sample_attributes attributes; /* with the rule of delete, hash and convert */
    struct extracted *extracted;         /* by the address of a value */
    uint32_t extracted_count;
    uint32_t extracted_capacity;
    struct index_table by_address;
};

struct attribute_editor {
    const struct attribute_action *actions;
    size_t action_count;
    pcre2_match_data *match;
    pcre2_match_context *limits;
    struct arena *arena;         /* of the batch */
    struct slice *from_contexts; /* of each action, encoded; no data: there is none */
    struct action_of_samples *of_actions;
    /* Of one message, those attributes that an action reads or changes: */
    struct attribute_list list;
    struct slice *keys; /* that actions name */
    uint32_t key_count;
    uint32_t key_capacity;
    struct attribute_filter filter; /* for those and the patterns */
    bool has_patterns;              /* of delete or hash */
};

/* Whether the text matches. A match that exceeds the limits counts as none. */
bool attribute_pattern_matches(struct attribute_editor *editor,
                               const struct attribute_pattern *pattern, struct slice text);
/* Returns a group of that match in `text`, encoded; a group that did not match is "". */
struct slice attribute_pattern_group(const struct attribute_editor *editor, struct slice text,
                                     uint32_t number);
/* Whether delete or hash acts on attributes with this key. */
bool attribute_action_means(struct attribute_editor *editor, const struct attribute_action *action,
                            struct slice key);
/* Forgets what was remembered of the samples of the last batch. */
void sample_edits_begin(struct attribute_editor *editor);

/* Whether a setting is present and not empty. */
static inline bool attribute_setting_is_given(const char *text)
{
    return text && *text;
}

static inline struct slice attribute_encode_string(struct arena *arena, struct slice text)
{
    return any_value_encode(arena, any_value_string(text));
}

/* Returns the SHA-256 of the value in hex, as an encoded string; "" for lists, maps, bytes and
 * the empty value. */
struct slice attribute_hash_value(struct arena *arena, struct slice value);
/* Returns the value with the type, encoded; the value itself if it cannot be converted. */
struct slice attribute_convert_value(struct arena *arena, struct slice value, enum converted type);

#endif
