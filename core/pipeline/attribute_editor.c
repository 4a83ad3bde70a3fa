#include "core/base/memory.h"
#include "core/data/utf8.h"
#include "core/pipeline/attribute_actions_private.h"
#include "core/pipeline/identity.h"

#include <assert.h>

/* The operator writes the pattern, but any client can send the text. So the cost of a match is
 * limited. */
enum { MATCH_LIMIT = 100000, HEAP_LIMIT_KIB = 1024 };

/* ---- the keys that actions name ---- */

static void add_key(struct attribute_editor *editor, struct slice key)
{
    if (editor->key_count == editor->key_capacity) {
        editor->key_capacity = editor->key_capacity > 0 ? 2 * editor->key_capacity : 8;
        editor->keys = memory_realloc(editor->keys, editor->key_capacity * sizeof *editor->keys);
    }
    editor->keys[editor->key_count++] = key;
    editor->filter.key_sizes |= UINT64_C(1) << key.size % 64;
}

static void add_keys_of(struct attribute_editor *editor, const struct attribute_action *action)
{
    if (attribute_setting_is_given(action->key))
        add_key(editor, slice_of_string(action->key));
    if (attribute_setting_is_given(action->from_attribute))
        add_key(editor, slice_of_string(action->from_attribute));
    for (uint32_t i = 1; action->action == ACTION_EXTRACT && i <= action->compiled->group_count;
         i++)
        add_key(editor, action->compiled->group_names[i]);
}

/* Whether an action reads or changes attributes with this key. */
static bool is_wanted(void *context, struct slice key)
{
    struct attribute_editor *editor = context;
    for (uint32_t i = 0; i < editor->key_count; i++)
        if (slice_equal(editor->keys[i], key))
            return true;
    for (size_t i = 0; editor->has_patterns && i < editor->action_count; i++)
        if (attribute_action_means(editor, &editor->actions[i], key))
            return true;
    return false;
}

/* ---- the editor ---- */

struct attribute_editor *attribute_editor_new(const struct config_list *list)
{
    struct attribute_editor *editor = memory_zalloc(sizeof *editor);
    uint32_t groups = 0;
    editor->actions = list->items;
    editor->action_count = list->count;
    editor->from_contexts = memory_array(list->count + 1, sizeof *editor->from_contexts);
    editor->of_actions = memory_array(list->count + 1, sizeof *editor->of_actions);
    for (size_t i = 0; i < list->count; i++) {
        const struct attribute_action *action = &editor->actions[i];
        add_keys_of(editor, action);
        editor->has_patterns |= action->compiled && action->action != ACTION_EXTRACT;
        if (action->compiled && action->compiled->group_count > groups)
            groups = action->compiled->group_count;
    }
    editor->filter.is_wanted = is_wanted;
    editor->filter.context = editor;
    if (editor->has_patterns)
        editor->filter.key_sizes = UINT64_MAX;
    editor->match = pcre2_match_data_create(groups + 1, NULL);
    editor->limits = pcre2_match_context_create(NULL);
    assert(editor->match && editor->limits);
    pcre2_set_heap_limit(editor->limits, HEAP_LIMIT_KIB);
    return editor;
}

void attribute_editor_free(struct attribute_editor *editor)
{
    if (!editor)
        return;
    pcre2_match_data_free(editor->match);
    pcre2_match_context_free(editor->limits);
    attribute_list_deinit(&editor->list);
    free(editor->keys);
    free(editor->from_contexts);
    free(editor->of_actions);
    free(editor);
}

/* ---- values of the request ---- */

static const char *context_text(const struct context *context, const char *from)
{
    char name[256];
    size_t size = 0;
    if (strcmp(from, "client.address") == 0)
        return context && context->peer[0] ? context->peer : NULL;
    if (strncmp(from, "auth.", 5) == 0)
        return context ? identity_get(context->identity, from + 5) : NULL;
    if (strncmp(from, "metadata.", 9) == 0)
        from += 9;
    if (strlen(from) >= sizeof name)
        return NULL;
    for (const char *c = from; *c; c++)
        name[size++] = (char)(*c >= 'A' && *c <= 'Z' ? *c | 0x20 : *c);
    name[size] = '\0';
    return context_get(context, name);
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

/* ---- matching ---- */

/* PCRE2 counts the steps from each place of a text anew. */
static uint32_t steps_from_each_place(const struct attribute_pattern *pattern, size_t size)
{
    enum { ALL_STEPS = 10000000, LEAST = 32 };
    size_t steps = pattern->is_anchored ? MATCH_LIMIT : ALL_STEPS / (size + 1);
    if (steps > MATCH_LIMIT)
        return MATCH_LIMIT;
    return steps > LEAST ? (uint32_t)steps : (uint32_t)LEAST;
}

/* places: the last one of the text that is tried; PCRE2_UNSET: all are. */
static int match_at(struct attribute_editor *editor, const struct attribute_pattern *pattern,
                    struct slice text, size_t places, uint32_t steps)
{
    static const uint8_t nothing[1];
    pcre2_set_match_limit(editor->limits, steps);
    pcre2_set_offset_limit(editor->limits, places);
    return pcre2_match(pattern->code, text.data ? text.data : nothing, text.size, 0, 0,
                       editor->match, editor->limits);
}

/* Where few steps do not suffice, the first places get all of them: `.*x` needs many from one. */
static int match(struct attribute_editor *editor, const struct attribute_pattern *pattern,
                 struct slice text)
{
    enum { FIRST_PLACES = 100 };
    uint32_t steps = steps_from_each_place(pattern, text.size);
    int result = match_at(editor, pattern, text, PCRE2_UNSET, steps);
    if (result != PCRE2_ERROR_MATCHLIMIT || steps == MATCH_LIMIT)
        return result;
    result = match_at(editor, pattern, text, FIRST_PLACES, MATCH_LIMIT);
    return result == PCRE2_ERROR_NOMATCH ? PCRE2_ERROR_MATCHLIMIT : result;
}

bool attribute_pattern_matches(struct attribute_editor *editor,
                               const struct attribute_pattern *pattern, struct slice text)
{
    return match(editor, pattern, text) >= 0;
}

/* What deletes or hashes must not be avoidable by a key that a client chooses: one that needs too
 * many steps is meant. */
bool attribute_action_means(struct attribute_editor *editor, const struct attribute_action *action,
                            struct slice key)
{
    return (attribute_setting_is_given(action->key) && slice_is(key, action->key)) ||
           (action->compiled && action->action != ACTION_EXTRACT &&
            match(editor, action->compiled, key) != PCRE2_ERROR_NOMATCH);
}

struct slice attribute_pattern_group(const struct attribute_editor *editor, struct slice text,
                                     uint32_t number)
{
    const PCRE2_SIZE *at = &pcre2_get_ovector_pointer(editor->match)[(size_t)2 * number];
    if (at[0] == PCRE2_UNSET)
        return attribute_encode_string(editor->arena, (struct slice){0});
    return attribute_encode_string(editor->arena, slice_of(text.data + at[0], at[1] - at[0]));
}

/* ---- one message ---- */

static bool find(struct attribute_editor *editor, const char *key, uint32_t *at_out)
{
    return attribute_list_find(&editor->list, slice_of_string(key), at_out);
}

static void upsert(struct attribute_editor *editor, struct slice key, struct slice value)
{
    uint32_t at;
    if (attribute_list_find(&editor->list, key, &at))
        attribute_list_set_value(&editor->list, at, value);
    else
        attribute_list_add(&editor->list, key, value);
}

/* Finds the value that the action sets. Returns false if there is none; the action is then
 * skipped. */
static bool source_value(struct attribute_editor *editor, const struct attribute_action *action,
                         struct slice *out)
{
    uint32_t source;
    if (action->has_value) {
        *out = action->value_bytes;
        return true;
    }
    if (attribute_setting_is_given(action->from_attribute) &&
        find(editor, action->from_attribute, &source)) {
        *out = editor->list.entries[source].value;
        return true;
    }
    *out = editor->from_contexts[action - editor->actions];
    if (out->data)
        return true;
    *out = action->default_bytes;
    return action->has_default;
}

static void apply_set(struct attribute_editor *editor, const struct attribute_action *action)
{
    struct slice value;
    uint32_t at;
    if (!source_value(editor, action, &value))
        return;
    bool exists = find(editor, action->key, &at);
    if (exists && action->action != ACTION_INSERT)
        attribute_list_set_value(&editor->list, at, value);
    if (!exists && action->action != ACTION_UPDATE)
        attribute_list_add(&editor->list, slice_of_string(action->key), value);
}

static void apply_delete(struct attribute_editor *editor, const struct attribute_action *action)
{
    for (uint32_t i = 0; attribute_list_next(&editor->list, &i); i++)
        if (attribute_action_means(editor, action, editor->list.entries[i].key))
            attribute_list_remove(&editor->list, i);
}

static void apply_hash(struct attribute_editor *editor, const struct attribute_action *action)
{
    struct attribute_list *list = &editor->list;
    for (uint32_t i = 0; attribute_list_next(list, &i); i++)
        if (attribute_action_means(editor, action, list->entries[i].key))
            attribute_list_set_value(list, i,
                                     attribute_hash_value(editor->arena, list->entries[i].value));
}

static void apply_extract(struct attribute_editor *editor, const struct attribute_action *action)
{
    assert(action->compiled && action->compiled->group_count > 0); /* attribute_actions_check */
    uint32_t at;
    if (!find(editor, action->key, &at))
        return;
    struct any_value value = any_value_read(editor->list.entries[at].value);
    if (value.kind != ANY_VALUE_STRING ||
        !attribute_pattern_matches(editor, action->compiled, value.bytes))
        return;
    for (uint32_t i = 1; i <= action->compiled->group_count; i++)
        upsert(editor, action->compiled->group_names[i],
               attribute_pattern_group(editor, value.bytes, i));
}

static void apply_convert(struct attribute_editor *editor, const struct attribute_action *action)
{
    uint32_t at;
    if (find(editor, action->key, &at))
        attribute_list_set_value(&editor->list, at,
                                 attribute_convert_value(editor->arena,
                                                         editor->list.entries[at].value,
                                                         (enum converted)action->converted_type));
}

static void apply(struct attribute_editor *editor, const struct attribute_action *action)
{
    switch ((enum action)action->action) {
    case ACTION_INSERT:
    case ACTION_UPDATE:
    case ACTION_UPSERT:
        apply_set(editor, action);
        break;
    case ACTION_DELETE:
        apply_delete(editor, action);
        break;
    case ACTION_HASH:
        apply_hash(editor, action);
        break;
    case ACTION_EXTRACT:
        apply_extract(editor, action);
        break;
    case ACTION_CONVERT:
        apply_convert(editor, action);
        break;
    }
}

bool attribute_editor_apply(struct attribute_editor *editor, struct message_iter message,
                            uint32_t number)
{
    attribute_list_read(&editor->list, message, number, &editor->filter, UINT32_MAX - 1);
    for (size_t i = 0; i < editor->action_count; i++)
        apply(editor, &editor->actions[i]);
    return editor->list.change_count > 0;
}

bool attribute_editor_took_away(const struct attribute_editor *editor)
{
    return attribute_list_takes_away(&editor->list);
}

void attribute_editor_write(struct attribute_editor *editor, struct message *message,
                            uint32_t number)
{
    attribute_list_write(&editor->list, message, number, editor->arena, true);
}
