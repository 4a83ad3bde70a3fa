#include "core/base/memory.h"
#include "core/data/attributes.h"
#include "core/data/utf8.h"
#include "core/pipeline/attribute_actions_private.h"
#include "core/pipeline/identity.h"

#include <assert.h>

/* The operator writes the pattern, but any client can send the text. So the cost of a match is
 * limited. */
enum { MATCH_LIMIT = 100000, HEAP_LIMIT_KIB = 1024 };

struct attribute_editor *attribute_editor_new(const struct config_list *list)
{
    struct attribute_editor *editor = memory_zalloc(sizeof *editor);
    uint32_t groups = 0;
    editor->actions = list->items;
    editor->action_count = list->count;
    editor->from_contexts = memory_array(list->count + 1, sizeof *editor->from_contexts);
    editor->of_actions = memory_array(list->count + 1, sizeof *editor->of_actions);
    for (size_t i = 0; i < list->count; i++)
        if (editor->actions[i].compiled && editor->actions[i].compiled->group_count > groups)
            groups = editor->actions[i].compiled->group_count;
    editor->match = pcre2_match_data_create(groups + 1, NULL);
    editor->limits = pcre2_match_context_create(NULL);
    assert(editor->match && editor->limits);
    pcre2_set_match_limit(editor->limits, MATCH_LIMIT);
    pcre2_set_heap_limit(editor->limits, HEAP_LIMIT_KIB);
    return editor;
}

void attribute_editor_free(struct attribute_editor *editor)
{
    if (!editor)
        return;
    pcre2_match_data_free(editor->match);
    pcre2_match_context_free(editor->limits);
    free(editor->from_contexts);
    free(editor->of_actions);
    free(editor);
}

/* ---- values of the request ---- */

static const char *context_text(const struct context *context, const char *from)
{
    char name[256];
    if (strcmp(from, "client.address") == 0)
        return context && context->peer[0] ? context->peer : NULL;
    if (strncmp(from, "metadata.", 9) == 0 && strlen(from + 9) < sizeof name) {
        size_t size = 0;
        for (const char *c = from + 9; *c; c++)
            name[size++] = (char)(*c >= 'A' && *c <= 'Z' ? *c | 0x20 : *c);
        name[size] = '\0';
        return context_get(context, name);
    }
    if (strncmp(from, "auth.", 5) == 0 && context)
        return identity_get(context->identity, from + 5);
    return NULL;
}

/* Unlike a header, an OTLP string must be UTF-8. */
static bool find_in_context(const struct attribute_action *action, const struct context *context,
                            struct slice *text_out)
{
    const char *text = attribute_setting_is_given(action->from_context)
                           ? context_text(context, action->from_context)
                           : NULL;
    *text_out = text ? slice_of_string(text) : (struct slice){0};
    return text && utf8_is_valid(*text_out);
}

void attribute_editor_begin(struct attribute_editor *editor, struct arena *arena,
                            const struct context *context)
{
    editor->arena = arena;
    sample_edits_begin(editor);
    for (size_t i = 0; i < editor->action_count; i++) {
        struct slice text;
        editor->from_contexts[i] = (struct slice){0};
        if (find_in_context(&editor->actions[i], context, &text))
            editor->from_contexts[i] = attribute_encode_string(arena, text);
    }
}

bool attribute_actions_take_away(const struct config_list *list)
{
    const struct attribute_action *actions = list->items;
    for (size_t i = 0; i < list->count; i++)
        if (actions[i].action != ACTION_INSERT)
            return true;
    return false;
}

size_t attribute_actions_context_bytes(const struct config_list *list,
                                       const struct context *context)
{
    const struct attribute_action *actions = list->items;
    size_t longest = 0;
    struct slice text;
    for (size_t i = 0; i < list->count; i++)
        if (find_in_context(&actions[i], context, &text) && text.size > longest)
            longest = text.size;
    return longest;
}

/* ---- one message ---- */

struct edit {
    struct attribute_editor *editor;
    struct message_iter start; /* if `message` is NULL: only reading */
    struct message *message;
    uint32_t number;
    struct arena *arena;
};

static struct message_iter start_of(const struct edit *edit)
{
    return edit->message ? message_iter(edit->message, edit->arena) : edit->start;
}

static struct attribute first_attribute(struct edit *edit)
{
    return attribute_first(start_of(edit), edit->number);
}

static bool find_attribute(struct edit *edit, struct slice key, struct attribute *attribute)
{
    return attributes_find(start_of(edit), edit->number, key, attribute);
}

static void append_attribute(struct edit *edit, struct slice key, struct slice value)
{
    attributes_append(edit->message, edit->arena, edit->number, key, value);
}

static void upsert(struct edit *edit, struct slice key, struct slice value)
{
    struct attribute attribute;
    if (find_attribute(edit, key, &attribute))
        attribute_set_value(&attribute, value);
    else
        append_attribute(edit, key, value);
}

/* Finds the value that the action sets. Returns false if there is none; the action is then
 * skipped. */
static bool source_value(struct edit *edit, const struct attribute_action *action,
                         struct slice *out)
{
    struct attribute source;
    if (action->has_value) {
        *out = action->value_bytes;
        return true;
    }
    if (attribute_setting_is_given(action->from_attribute) &&
        find_attribute(edit, slice_of_string(action->from_attribute), &source)) {
        *out = source.pair.value;
        return true;
    }
    *out = edit->editor->from_contexts[action - edit->editor->actions];
    if (out->data)
        return true;
    *out = action->default_bytes;
    return action->has_default;
}

static void apply_set(struct edit *edit, const struct attribute_action *action)
{
    struct slice key = slice_of_string(action->key), value;
    struct attribute attribute;
    if (!source_value(edit, action, &value))
        return;
    bool exists = find_attribute(edit, key, &attribute);
    if (exists && action->action != ACTION_INSERT)
        attribute_set_value(&attribute, value);
    if (!exists && action->action != ACTION_UPDATE)
        append_attribute(edit, key, value);
}

bool attribute_pattern_matches(struct attribute_editor *editor,
                               const struct attribute_pattern *pattern, struct slice text)
{
    static const uint8_t nothing[1];
    return pattern && pcre2_match(pattern->code, text.data ? text.data : nothing, text.size, 0, 0,
                                  editor->match, editor->limits) >= 0;
}

bool attribute_action_means(struct attribute_editor *editor, const struct attribute_action *action,
                            struct slice key)
{
    return (attribute_setting_is_given(action->key) && slice_is(key, action->key)) ||
           attribute_pattern_matches(editor, action->compiled, key);
}

struct slice attribute_pattern_group(const struct attribute_editor *editor, struct slice text,
                                     uint32_t number)
{
    const PCRE2_SIZE *at = &pcre2_get_ovector_pointer(editor->match)[(size_t)2 * number];
    if (at[0] == PCRE2_UNSET)
        return attribute_encode_string(editor->arena, (struct slice){0});
    return attribute_encode_string(editor->arena, slice_of(text.data + at[0], at[1] - at[0]));
}

static void apply_delete(struct edit *edit, const struct attribute_action *action)
{
    struct attribute attribute = first_attribute(edit);
    if (!action->compiled) {
        while (attribute_next_of_key(&attribute, slice_of_string(action->key)))
            attribute_remove(&attribute);
        return;
    }
    while (attribute_next(&attribute))
        if (attribute_action_means(edit->editor, action, attribute.pair.key))
            attribute_remove(&attribute);
}

static void apply_hash(struct edit *edit, const struct attribute_action *action)
{
    struct attribute attribute = first_attribute(edit);
    while (attribute_next(&attribute))
        if (attribute_action_means(edit->editor, action, attribute.pair.key))
            attribute_set_value(&attribute,
                                attribute_hash_value(edit->arena, attribute.pair.value));
}

static void apply_extract(struct edit *edit, const struct attribute_action *action)
{
    assert(action->compiled && action->compiled->group_count > 0); /* attribute_actions_check */
    struct attribute attribute;
    if (!find_attribute(edit, slice_of_string(action->key), &attribute))
        return;
    struct any_value value = any_value_read(attribute.pair.value);
    if (value.kind != ANY_VALUE_STRING ||
        !attribute_pattern_matches(edit->editor, action->compiled, value.bytes))
        return;
    for (uint32_t i = 1; i <= action->compiled->group_count; i++)
        upsert(edit, action->compiled->group_names[i],
               attribute_pattern_group(edit->editor, value.bytes, i));
}

static void apply_convert(struct edit *edit, const struct attribute_action *action)
{
    struct attribute attribute;
    if (!find_attribute(edit, slice_of_string(action->key), &attribute))
        return;
    struct slice old = attribute.pair.value;
    attribute_set_value(&attribute, attribute_convert_value(
                                        edit->arena, old, (enum converted)action->converted_type));
}

static void apply(struct edit *edit, const struct attribute_action *action)
{
    switch ((enum action)action->action) {
    case ACTION_INSERT:
    case ACTION_UPDATE:
    case ACTION_UPSERT:
        apply_set(edit, action);
        break;
    case ACTION_DELETE:
        apply_delete(edit, action);
        break;
    case ACTION_HASH:
        apply_hash(edit, action);
        break;
    case ACTION_EXTRACT:
        apply_extract(edit, action);
        break;
    case ACTION_CONVERT:
        apply_convert(edit, action);
        break;
    }
}

void attribute_editor_apply(struct attribute_editor *editor, struct message *message,
                            uint32_t number)
{
    struct edit edit = {
        .editor = editor, .message = message, .number = number, .arena = editor->arena};
    for (size_t i = 0; i < editor->action_count; i++)
        apply(&edit, &editor->actions[i]);
}

/* ---- whether it changes anything ---- */

static bool set_changes(struct edit *edit, const struct attribute_action *action)
{
    struct slice value;
    struct attribute attribute;
    if (!source_value(edit, action, &value))
        return false;
    if (!find_attribute(edit, slice_of_string(action->key), &attribute))
        return action->action != ACTION_UPDATE;
    return action->action != ACTION_INSERT && !slice_equal(attribute.pair.value, value);
}

static bool any_is_meant(struct edit *edit, const struct attribute_action *action)
{
    struct attribute attribute = first_attribute(edit);
    while (attribute_next(&attribute))
        if (attribute_action_means(edit->editor, action, attribute.pair.key))
            return true;
    return false;
}

static bool action_changes(struct edit *edit, const struct attribute_action *action)
{
    struct attribute attribute;
    switch ((enum action)action->action) {
    case ACTION_INSERT:
    case ACTION_UPDATE:
    case ACTION_UPSERT:
        return set_changes(edit, action);
    case ACTION_DELETE:
    case ACTION_HASH:
        return any_is_meant(edit, action);
    case ACTION_EXTRACT:
    case ACTION_CONVERT: /* rarely in vain, so that is found out when it is applied */
        return find_attribute(edit, slice_of_string(action->key), &attribute);
    }
    return true;
}

/* If no action changes the message as it is, none comes to see another one. */
bool attribute_editor_changes(struct attribute_editor *editor, struct message_iter message,
                              uint32_t number)
{
    struct edit edit = {
        .editor = editor, .start = message, .number = number, .arena = editor->arena};
    for (size_t i = 0; i < editor->action_count; i++)
        if (action_changes(&edit, &editor->actions[i]))
            return true;
    return false;
}
