/*
 * sample_edits: applies actions to the attributes of samples.
 *
 * A sample refers to entries of the dictionary's attribute table, which many samples may share. So
 * delete, hash and convert are rules that are asked once for each entry, and extract remembers what
 * it found by the address of the value.
 */
#include "core/base/arena.h"
#include "core/base/hash.h"
#include "core/pipeline/attribute_actions_private.h"
#include "core/pipeline/items.h"

#include <assert.h>

/* What extract found in a value. */
struct extracted {
    const uint8_t *address;
    struct slice *groups; /* encoded, the first is group 1; NULL: the pattern does not match */
};

void sample_edits_begin(struct attribute_editor *editor)
{
    for (size_t i = 0; i < editor->action_count; i++)
        editor->of_actions[i] =
            (struct action_of_samples){.editor = editor, .action = &editor->actions[i]};
}

/* ---- insert, update, upsert ---- */

static bool source_of(struct action_of_samples *of, struct items *items, struct slice *value_out)
{
    const struct attribute_action *action = of->action;
    *value_out = action->value_bytes;
    if (action->has_value)
        return true;
    if (attribute_setting_is_given(action->from_attribute) &&
        item_get_attribute(items, slice_of_string(action->from_attribute), value_out))
        return true;
    *value_out = of->editor->from_contexts[action - of->editor->actions];
    if (value_out->data)
        return true;
    *value_out = action->default_bytes;
    return action->has_default;
}

static bool set(struct action_of_samples *of, struct items *items)
{
    struct slice key = slice_of_string(of->action->key), value, old;
    if (!source_of(of, items, &value))
        return false;
    bool exists = of->action->action != ACTION_UPSERT && item_get_attribute(items, key, &old);
    if (exists ? of->action->action == ACTION_INSERT : of->action->action == ACTION_UPDATE)
        return false;
    return item_set_attribute(items, key, value);
}

/* ---- delete, hash, convert ---- */

static enum attribute_decision decide(void *context, struct slice key, struct slice *value)
{
    struct action_of_samples *of = context;
    const struct attribute_action *action = of->action;
    if (action->action == ACTION_CONVERT) {
        if (!slice_is(key, action->key))
            return ATTRIBUTE_KEEP;
        *value = attribute_convert_value(of->editor->arena, *value,
                                         (enum converted)action->converted_type);
        return ATTRIBUTE_SET;
    }
    if (!attribute_action_means(of->editor, action, key))
        return ATTRIBUTE_KEEP;
    if (action->action == ACTION_DELETE)
        return ATTRIBUTE_REMOVE;
    *value = attribute_hash_value(of->editor->arena, *value);
    return ATTRIBUTE_SET;
}

static bool decide_about_all(struct action_of_samples *of, struct items *items)
{
    struct attribute_rule rule = {decide, of};
    if (!of->has_begun)
        of->attributes =
            sample_attributes_init(batch_dictionary(items->batch), &items->batch->arena);
    of->has_begun = true;
    if (sample_attributes_edit(&of->attributes, item_read(items), &rule) == 0)
        return false;
    sample_attributes_write(&of->attributes, item_open(items));
    return true;
}

/* ---- extract ---- */

static struct slice *extract_groups(struct action_of_samples *of, struct slice any)
{
    const struct attribute_pattern *pattern = of->action->compiled;
    struct any_value value = any_value_read(any);
    if (value.kind != ANY_VALUE_STRING ||
        !attribute_pattern_matches(of->editor, pattern, value.bytes))
        return NULL;
    struct slice *groups = arena_array(of->editor->arena, pattern->group_count, sizeof *groups);
    for (uint32_t i = 1; i <= pattern->group_count; i++)
        groups[i - 1] = attribute_pattern_group(of->editor, value.bytes, i);
    return groups;
}

static const struct extracted *add_extracted(struct action_of_samples *of, uint32_t hash,
                                             struct slice any)
{
    if (of->extracted_count == of->extracted_capacity) {
        uint32_t capacity = of->extracted_capacity ? 2 * of->extracted_capacity : 16;
        struct extracted *grown = arena_array(of->editor->arena, capacity, sizeof *grown);
        if (of->extracted_count > 0)
            memcpy(grown, of->extracted, of->extracted_count * sizeof *grown);
        of->extracted = grown;
        of->extracted_capacity = capacity;
    }
    struct extracted *added = &of->extracted[of->extracted_count];
    *added = (struct extracted){any.data, extract_groups(of, any)};
    index_table_reserve(&of->by_address, 1, of->editor->arena);
    index_table_add_new(&of->by_address, hash, of->extracted_count++);
    return added;
}

static const struct extracted *extracted_from(struct action_of_samples *of, struct slice any)
{
    uint32_t hash = (uint32_t)hash_u64((uintptr_t)any.data), number;
    if (of->by_address.slots) {
        struct index_probe probe = index_table_probe(&of->by_address, hash);
        while (index_table_next(&of->by_address, &probe, &number))
            if (of->extracted[number].address == any.data)
                return &of->extracted[number];
    }
    return add_extracted(of, hash, any);
}

static bool extract(struct action_of_samples *of, struct items *items)
{
    const struct attribute_pattern *pattern = of->action->compiled;
    struct slice value;
    bool changes = false;
    if (!item_get_attribute(items, slice_of_string(of->action->key), &value))
        return false;
    const struct slice *groups = extracted_from(of, value)->groups;
    for (uint32_t i = 1; groups && i <= pattern->group_count; i++)
        changes |= item_set_attribute(items, pattern->group_names[i], groups[i - 1]);
    return changes;
}

/* ---- all actions ---- */

static bool apply(struct action_of_samples *of, struct items *items)
{
    switch ((enum action)of->action->action) {
    case ACTION_INSERT:
    case ACTION_UPDATE:
    case ACTION_UPSERT:
        return set(of, items);
    case ACTION_DELETE:
    case ACTION_HASH:
    case ACTION_CONVERT:
        return decide_about_all(of, items);
    case ACTION_EXTRACT:
        return extract(of, items);
    }
    return false;
}

bool attribute_editor_apply_to_sample(struct attribute_editor *editor, struct items *items)
{
    bool changes = false;
    for (size_t i = 0; i < editor->action_count; i++)
        changes |= apply(&editor->of_actions[i], items);
    return changes;
}
