#include "core/ottl/ottl_draft.h"

#include "core/base/memory.h"
#include "core/ottl/ottl_writing.h"

#include <assert.h>
#include <stdlib.h>

struct ottl_draft {
    struct attribute_list list;
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
    attribute_list_deinit(&draft->list);
    free(draft);
}

/* ---- statements ---- */

static struct arena *arena_of(const struct ottl_item *item)
{
    return item->way->iters[0].arena;
}

struct attribute_list *ottl_draft_of(const struct ottl_item *item, const struct ottl_path_row *row)
{
    return item->draft && item->draft->row == row ? &item->draft->list : NULL;
}

bool ottl_draft_is_changed(const struct ottl_item *item)
{
    return item->draft && item->draft->is_changed;
}

struct attribute_list *ottl_draft_load(struct ottl_evaluation *evaluation,
                                       const struct ottl_path_row *row)
{
    struct ottl_item *item = ottl_evaluation_target(evaluation);
    struct ottl_draft *draft = item->draft;
    struct ottl_value map;
    if (draft->row == row)
        return &draft->list;
    ottl_draft_write(item);
    bool ok = ottl_path_read(evaluation, row, &map);
    assert(ok && map.form == OTTL_FORM_ATTRIBUTES);
    attribute_list_read(&draft->list, *map.message, map.number, NULL, OTTL_EDIT_MAX);
    draft->row = row;
    draft->is_own = ottl_context_depth(row->context) == ottl_evaluation_depth(evaluation);
    return &draft->list;
}

static void keep(struct arena *arena, struct slice *bytes, const uint8_t *before)
{
    if (bytes->data != before)
        *bytes = arena_copy(arena, *bytes);
}

void ottl_draft_commit(struct ottl_evaluation *evaluation)
{
    struct ottl_item *item = ottl_evaluation_target(evaluation);
    struct ottl_draft *draft = item->draft;
    for (uint32_t i = 0; i < draft->list.change_count; i++) {
        const struct attribute_list_change *change = &draft->list.changes[i];
        struct attribute_entry *entry = &draft->list.entries[change->at];
        if (entry->state == ATTRIBUTE_IS_REMOVED)
            continue;
        keep(arena_of(item), &entry->key, change->is_new ? NULL : change->before.key.data);
        keep(arena_of(item), &entry->value, change->is_new ? NULL : change->before.value.data);
    }
    attribute_list_commit(&draft->list);
    draft->is_changed = true;
    ottl_forget(item, draft->row->context);
}

void ottl_draft_undo(struct ottl_item *item)
{
    if (item->draft->row)
        attribute_list_undo(&item->draft->list);
}

/* ---- writing ---- */

void ottl_draft_write(struct ottl_item *item)
{
    struct ottl_draft *draft = item->draft;
    assert(!draft->row || draft->list.change_count == 0);
    if (draft->row && draft->is_changed) {
        struct message_iter *place = ottl_item_open(item, draft->row);
        /* Iterators are in the messages around the item: those must stay as they are. */
        attribute_list_write(&draft->list, place->message, draft->row->number, place->arena,
                             draft->is_own);
        *place = message_iter(place->message, place->arena);
    }
    draft->row = NULL;
    draft->is_changed = false;
}

void ottl_item_finish(struct ottl_item *item)
{
    ottl_draft_write(item);
    attribute_list_clear(&item->draft->list);
}
