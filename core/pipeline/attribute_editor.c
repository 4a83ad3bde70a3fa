#include "core/base/memory.h"
#include "core/data/attributes.h"
#include "core/data/utf8.h"
#include "core/pipeline/attribute_actions_private.h"
#include "core/pipeline/identity.h"

#include <assert.h>

/* The operator writes the pattern, but any client can send the text. So the cost of a match is
 * limited. */
enum { MATCH_LIMIT = 100000, HEAP_LIMIT_KIB = 1024 };

struct attribute_editor {
    const struct attribute_action *actions;
    size_t action_count;
    pcre2_match_data *match;
    pcre2_match_context *limits;
};

struct attribute_editor *attribute_editor_new(const struct config_list *list)
{
    struct attribute_editor *editor = memory_zalloc(sizeof *editor);
    uint32_t groups = 0;
    editor->actions = list->items;
    editor->action_count = list->count;
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
    free(editor);
}

/* The state while one message is edited. */
struct edit {
    struct attribute_editor *editor;
    struct message *message;
    uint32_t number;
    struct arena *arena;
    const struct context *context;
};

static struct attribute first_attribute(struct edit *edit)
{
    return attribute_first(message_iter(edit->message, edit->arena), edit->number);
}

static bool find_attribute(struct edit *edit, struct slice key, struct attribute *attribute)
{
    return attributes_find(message_iter(edit->message, edit->arena), edit->number, key, attribute);
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

static bool value_from_context(struct edit *edit, const char *from, struct slice *out)
{
    const char *text = NULL;
    char name[256];
    if (strcmp(from, "client.address") == 0) {
        text = edit->context && edit->context->peer[0] ? edit->context->peer : NULL;
    } else if (strncmp(from, "metadata.", 9) == 0 && strlen(from + 9) < sizeof name) {
        size_t size = 0;
        for (const char *c = from + 9; *c; c++)
            name[size++] = (char)(*c >= 'A' && *c <= 'Z' ? *c | 0x20 : *c);
        name[size] = '\0';
        text = context_get(edit->context, name);
    } else if (strncmp(from, "auth.", 5) == 0 && edit->context) {
        text = identity_get(edit->context->identity, from + 5);
    }
    if (!text || !utf8_is_valid(slice_of_string(text)))
        return false; /* unlike a header, an OTLP string must be UTF-8 */
    *out = attribute_encode_string(edit->arena, slice_of_string(text));
    return true;
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
    if (attribute_setting_is_given(action->from_context) &&
        value_from_context(edit, action->from_context, out))
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

/* Whether the text matches. A match that exceeds the limits counts as none. */
static bool matches(struct edit *edit, const struct attribute_pattern *pattern, struct slice text)
{
    static const uint8_t nothing[1];
    return pattern && pcre2_match(pattern->code, text.data ? text.data : nothing, text.size, 0, 0,
                                  edit->editor->match, edit->editor->limits) >= 0;
}

static bool is_meant(struct edit *edit, const struct attribute_action *action, struct slice key)
{
    return (attribute_setting_is_given(action->key) && slice_is(key, action->key)) ||
           matches(edit, action->compiled, key);
}

static void apply_delete(struct edit *edit, const struct attribute_action *action)
{
    struct attribute attribute = first_attribute(edit);
    while (attribute_next(&attribute))
        if (is_meant(edit, action, attribute.pair.key))
            attribute_remove(&attribute);
}

static void apply_hash(struct edit *edit, const struct attribute_action *action)
{
    struct attribute attribute = first_attribute(edit);
    while (attribute_next(&attribute))
        if (is_meant(edit, action, attribute.pair.key))
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
    if (value.kind != ANY_VALUE_STRING || !matches(edit, action->compiled, value.bytes))
        return;
    const PCRE2_SIZE *offsets = pcre2_get_ovector_pointer(edit->editor->match);
    for (uint32_t i = 1; i <= action->compiled->group_count; i++) {
        struct slice group = {0};
        const PCRE2_SIZE *at = &offsets[(size_t)2 * i];
        if (at[0] != PCRE2_UNSET)
            group = slice_of(value.bytes.data + at[0], at[1] - at[0]);
        upsert(edit, action->compiled->group_names[i], attribute_encode_string(edit->arena, group));
    }
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
                            uint32_t number, struct arena *arena, const struct context *context)
{
    struct edit edit = {editor, message, number, arena, context};
    for (size_t i = 0; i < editor->action_count; i++)
        apply(&edit, &editor->actions[i]);
}
