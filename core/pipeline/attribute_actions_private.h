/*
 * attribute_actions_private: what the files of attribute_actions share.
 *
 * attribute_actions.c reads the settings, attribute_editor.c applies them, attribute_values.c makes
 * the values that hash and convert set.
 *
 * Owner: as in attribute_actions.h; values belong to the caller's arena.
 *
 * Thread: as in attribute_actions.h.
 */
#ifndef PROFCOL_CORE_PIPELINE_ATTRIBUTE_ACTIONS_PRIVATE_H
#define PROFCOL_CORE_PIPELINE_ATTRIBUTE_ACTIONS_PRIVATE_H

#include "core/data/any_value.h"
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
    uint32_t group_count;
    struct slice *group_names; /* of group 1, 2, ... */
};

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
