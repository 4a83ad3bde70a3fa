/*
 * attribute_actions: the Collector's list of edits to attributes, used by the processors `resource`
 * and `attributes`.
 *
 * An editor applies insert, update, upsert, delete, hash, extract and convert, in order, to one
 * message that has a repeated KeyValue field, or to one sample, whose attributes are in the
 * dictionary. What the actions do not change is not marked as changed, so its
 * bytes are sent on as they are.
 *
 * Owner: settings and compiled patterns live in the configuration's arena; an editor belongs to a
 * node.
 *
 * Thread: that of the editor's node; settings are read-only.
 */
#ifndef PROFCOL_CORE_PIPELINE_ATTRIBUTE_ACTIONS_H
#define PROFCOL_CORE_PIPELINE_ATTRIBUTE_ACTIONS_H

#include "config/check.h"
#include "core/pipeline/batch.h"

struct attribute_pattern; /* a compiled regular expression */
struct items;             /* core/pipeline/items.h */

/* One item of the list, with YAML's keys. */
struct attribute_action {
    const char *key;
    int action;
    const struct config_node *value;
    const char *from_attribute;
    const char *from_context;
    const struct config_node *default_value;
    const char *pattern;
    int converted_type;
    /* attribute_actions_check sets these: */
    bool has_value;
    bool has_default;
    struct slice value_bytes; /* AnyValue payload */
    struct slice default_bytes;
    struct attribute_pattern *compiled;
};
extern const struct field attribute_action_fields[];

/* Checks and compiles a list of struct attribute_action. key: its name in the component's
 * settings, for messages. */
void attribute_actions_check(struct config_list *list, struct config_check *check, const char *key);

/* Applies actions. It has the scratch memory and the limits of the pattern matcher. */
struct attribute_editor;
/* Creates an editor for a list that attribute_actions_check has checked. */
struct attribute_editor *attribute_editor_new(const struct config_list *list);
/* Frees the editor. NULL is allowed. */
void attribute_editor_free(struct attribute_editor *editor);

/* Begins a batch: finds the values of `from_context`, once for all its messages. New bytes are
 * allocated in the arena of the batch. context may be NULL. */
void attribute_editor_begin(struct attribute_editor *editor, struct arena *arena,
                            const struct context *context);
/* Applies the actions to the attributes of a message, which has them in the field `number`; the
 * iterator is at its start, and need not be over an open message. Returns whether they change. */
bool attribute_editor_apply(struct attribute_editor *editor, struct message_iter message,
                            uint32_t number);
/* Whether the actions removed or replaced an attribute of that message. */
bool attribute_editor_took_away(const struct attribute_editor *editor);
/* Writes what changed to the same message, which is open now. No iterator may be inside it. */
void attribute_editor_write(struct attribute_editor *editor, struct message *message,
                            uint32_t number);
/* Applies the actions to the current sample; returns whether that changed it. What depends on a
 * long value only is done once for each entry of the dictionary, not for each sample. */
bool attribute_editor_apply_to_sample(struct attribute_editor *editor, struct items *items);
/* Whether an action can remove or replace something, and not only add. */
bool attribute_actions_take_away(const struct config_list *list);
/* Returns the bytes of the longest value that `from_context` finds for a request. Any client
 * chooses them, and each message may gain a copy. */
size_t attribute_actions_context_bytes(const struct config_list *list,
                                       const struct context *context);

#endif
