#include "core/ottl/ottl_draft.h"

#include "core/base/memory.h"
#include "core/ottl/ottl_writing.h"

#include <assert.h>
#include <stdlib.h>

struct ottl_draft {
    struct ottl_edit edit;
    const struct ottl_path_row *row; /* NULL: empty */
    bool is_own;                     /* of the item, not of a message around it */
    bool is_changed;                 /* by a statement that succeeded */
};

struct ottl_draft *ottl_draft_new(void)
{
    return memory_zalloc(sizeof(struct ottl_draft));
}

void ottl_draft_free(struct ottl_draft *draft)
{
    if (!draft)
        return;
    ottl_edit_deinit(&draft->edit);
    free(draft);
}

/* ---- statements ---- */

static struct arena *arena_of(const struct ottl_item *item)
{
    return item->way->iters[0].arena;
}

struct ottl_edit *ottl_draft_of(const struct ottl_item *item, const struct ottl_path_row *row)
{
    return item->draft && item->draft->row == row ? &item->draft->edit : NULL;
}

bool ottl_draft_is_changed(const struct ottl_item *item)
{
    return item->draft && item->draft->is_changed;
}

struct ottl_edit *ottl_draft_load(struct ottl_evaluation *evaluation,
                                  const struct ottl_path_row *row)
{
    struct ottl_item *item = ottl_evaluation_target(evaluation);
    struct ottl_draft *draft = item->draft;
    struct ottl_value map;
    if (draft->row == row)
        return &draft->edit;
    ottl_draft_write(item);
    bool ok = ottl_path_read(evaluation, row, &map);
    assert(ok && map.form == OTTL_FORM_ATTRIBUTES);
    ottl_edit_read(&draft->edit, &map);
    draft->row = row;
    draft->is_own = ottl_context_depth(row->context) == ottl_evaluation_depth(evaluation);
    return &draft->edit;
}

static void keep(struct arena *arena, struct slice *bytes, struct slice before)
{
    if (bytes->data != before.data)
        *bytes = arena_copy(arena, *bytes);
}

void ottl_draft_commit(struct ottl_evaluation *evaluation)
{
    struct ottl_item *item = ottl_evaluation_target(evaluation);
    struct ottl_draft *draft = item->draft;
    for (uint32_t i = 0; i < draft->edit.change_count; i++) {
        const struct ottl_edit_change *change = &draft->edit.changes[i];
        struct ottl_edit_entry *entry = &draft->edit.entries[change->at];
        struct ottl_edit_entry none = {.state = OTTL_ENTRY_ADDED};
        const struct ottl_edit_entry *before = change->is_new ? &none : &change->before;
        if (entry->state == OTTL_ENTRY_REMOVED)
            continue;
        keep(arena_of(item), &entry->key, before->key);
        keep(arena_of(item), &entry->value, before->value);
    }
    draft->edit.change_count = 0;
    draft->is_changed = true;
    ottl_forget(item, draft->row->context);
}

void ottl_draft_undo(struct ottl_item *item)
{
    if (item->draft->row)
        ottl_edit_undo(&item->draft->edit);
}

/* ---- writing ---- */

static size_t field_size(const struct ottl_draft *draft, const struct ottl_edit_entry *entry)
{
    return key_value_field_size(draft->row->number, entry->key, entry->value);
}

static size_t size_after(const struct ottl_draft *draft, size_t size)
{
    for (uint32_t i = 0; i < draft->edit.count; i++) {
        const struct ottl_edit_entry *entry = &draft->edit.entries[i];
        if (entry->state == OTTL_ENTRY_KEPT)
            continue;
        size -= entry->field.size;
        if (entry->state != OTTL_ENTRY_REMOVED)
            size += field_size(draft, entry);
    }
    return size;
}

static uint8_t *copy(uint8_t *to, const uint8_t *from, const uint8_t *end)
{
    memcpy(to, from, (size_t)(end - from));
    return to + (end - from);
}

/* One copy of the message with the changes costs less than a node for each of them, and is read
 * faster by what comes after. */
static void rewrite(const struct ottl_draft *draft, struct message_iter *place)
{
    struct slice raw = place->message->raw;
    size_t size = size_after(draft, raw.size);
    uint8_t *start = arena_alloc(place->arena, size), *to = start;
    const uint8_t *from = raw.data;
    for (uint32_t i = 0; i < draft->edit.count; i++) {
        const struct ottl_edit_entry *entry = &draft->edit.entries[i];
        if (entry->state == OTTL_ENTRY_KEPT)
            continue;
        if (entry->field.size > 0) {
            to = copy(to, from, entry->field.data);
            from = entry->field.data + entry->field.size;
        } else if (from) { /* the first that was added */
            to = copy(to, from, raw.data + raw.size);
            from = NULL;
        }
        if (entry->state != OTTL_ENTRY_REMOVED)
            to = key_value_field_write(to, draft->row->number, entry->key, entry->value);
    }
    if (from)
        to = copy(to, from, raw.data + raw.size);
    assert(to == start + size);
    message_rewrite(place->message, slice_of(start, size));
    *place = message_iter(place->message, place->arena);
}

/* Goes along the attributes, which are the first entries, and appends the rest. */
static void change_each(const struct ottl_draft *draft, struct message_iter *place)
{
    const struct ottl_edit *edit = &draft->edit;
    struct attribute attribute = attribute_first(*place, draft->row->number);
    uint32_t at = 0;
    for (; attribute_next(&attribute); at++) {
        const struct ottl_edit_entry *entry = &edit->entries[at];
        assert(at < edit->count && entry->state != OTTL_ENTRY_ADDED);
        if (entry->state == OTTL_ENTRY_REMOVED)
            attribute_remove(&attribute);
        else if (entry->state == OTTL_ENTRY_SET)
            message_replace(&attribute.it, &attribute.field,
                            key_value_encode(place->arena, entry->key, entry->value));
    }
    for (; ottl_edit_next(edit, &at); at++)
        attributes_append(place->message, place->arena, draft->row->number, edit->entries[at].key,
                          edit->entries[at].value);
}

void ottl_draft_write(struct ottl_item *item)
{
    struct ottl_draft *draft = item->draft;
    assert(draft->edit.change_count == 0);
    if (draft->row && draft->is_changed) {
        struct message_iter *place = ottl_item_open(item, draft->row);
        const struct message *message = place->message;
        /* Iterators are in the messages around the item: those must stay as they are. */
        if (draft->is_own && !message->children && !message->tail)
            rewrite(draft, place);
        else
            change_each(draft, place);
    }
    draft->row = NULL;
    draft->is_changed = false;
}

void ottl_item_finish(struct ottl_item *item)
{
    ottl_draft_write(item);
    ottl_edit_trim(&item->draft->edit);
}
