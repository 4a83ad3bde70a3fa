#include "core/ottl/ottl_draft.h"

#include "core/base/memory.h"
#include "core/ottl/ottl_profile_tables.h"
#include "core/ottl/ottl_writing.h"

#include <assert.h>
#include <stdlib.h>

struct ottl_draft *ottl_draft_new(void)
{
    return memory_zalloc(sizeof(struct ottl_draft));
}

void ottl_draft_free(struct ottl_draft *draft)
{
    if (!draft)
        return;
    for (unsigned i = 0; i < OTTL_DEPTH_COUNT; i++)
        attribute_list_deinit(&draft->parts[i].list);
    free(draft);
}

void ottl_draft_begin(struct ottl_item *item, unsigned depth)
{
    if (item->draft->depth != depth)
        ottl_item_leave(item, 0);
    item->draft->depth = depth;
}

static bool is_around(const struct ottl_draft *draft, const struct ottl_path_row *row)
{
    return ottl_context_depth(row->context) < draft->depth;
}

static struct ottl_draft_part *part_of(struct ottl_draft *draft, const struct ottl_path_row *row)
{
    return &draft->parts[ottl_context_depth(row->context)];
}

static struct arena *arena_of(const struct ottl_item *item)
{
    return item->way->iters[0].arena;
}

/* ---- reading ---- */

bool ottl_draft_check(struct ottl_evaluation *evaluation, const struct attribute_list *list)
{
    return list->count <= OTTL_EDIT_MAX ||
           error_set(ottl_evaluation_error(evaluation),
                     "a map with more than %d entries cannot be changed", OTTL_EDIT_MAX);
}

static bool read_indices(struct ottl_evaluation *evaluation, struct attribute_list *list,
                         uint32_t number)
{
    struct ottl_profile_tables *tables = ottl_evaluation_item(evaluation)->tables;
    struct ottl_numbers indices = ottl_attribute_indices(tables, number);
    struct slice key, value;
    attribute_list_clear(list);
    while (list->count <= OTTL_EDIT_MAX && !tables->ran_out &&
           ottl_table_attribute_next(tables, &indices, &key, &value))
        attribute_list_push(list, key, value, (uint32_t)indices.last);
    return !tables->ran_out || error_set(ottl_evaluation_error(evaluation), "%s", ottl_steps_error);
}

static bool read(struct ottl_evaluation *evaluation, const struct ottl_path_row *row,
                 struct attribute_list *list)
{
    if (row->is_indices)
        return read_indices(evaluation, list, row->number);
    attribute_list_read(list, *ottl_message_of(evaluation, row), row->number, NULL, OTTL_EDIT_MAX);
    return true;
}

/* Attributes that many items share are not read again and again in vain. */
static bool is_refused(struct ottl_evaluation *evaluation, const struct ottl_draft_part *part)
{
    return part->is_refused &&
           !error_set(ottl_evaluation_error(evaluation),
                      "the attributes around the item are too many to be changed");
}

struct attribute_list *ottl_draft_load(struct ottl_evaluation *evaluation,
                                       const struct ottl_path_row *row)
{
    struct ottl_draft *draft = ottl_evaluation_item(evaluation)->draft;
    struct ottl_draft_part *part = part_of(draft, row);
    if (part->row == row)
        return &part->list;
    assert(!part->row);
    if (is_refused(evaluation, part))
        return NULL;
    if (!read(evaluation, row, &part->list) || !ottl_draft_check(evaluation, &part->list)) {
        attribute_list_clear(&part->list);
        part->is_refused = is_around(draft, row);
        return NULL;
    }
    part->row = row;
    return &part->list;
}

struct attribute_list *ottl_draft_find(struct ottl_evaluation *evaluation,
                                       const struct ottl_path_row *row)
{
    const struct ottl_item *item = ottl_evaluation_item(evaluation);
    if (!item->draft || !row->is_map || row->is_cache)
        return NULL;
    struct ottl_draft_part *part = part_of(item->draft, row);
    if (part->row == row)
        return &part->list;
    return ottl_outer_is_open(item, row) ? ottl_draft_load(evaluation, row) : NULL;
}

struct attribute_list *ottl_draft_find_changed(struct ottl_evaluation *evaluation,
                                               const struct ottl_path_row *row)
{
    const struct ottl_item *item = ottl_evaluation_item(evaluation);
    struct attribute_list *list = ottl_draft_find(evaluation, row);
    return list && part_of(item->draft, row)->is_changed ? list : NULL;
}

bool ottl_draft_is_changed(const struct ottl_item *item)
{
    return item->draft && item->draft->parts[item->draft->depth].is_changed;
}

/* ---- statements ---- */

static void keep(struct arena *arena, struct slice *bytes, const uint8_t *before)
{
    if (bytes->data != before)
        *bytes = arena_copy(arena, *bytes);
}

/* The next search reads all entries then. */
static void pay_for_index(struct ottl_item *item, const struct attribute_list *list)
{
    if (!list->is_indexed)
        item->steps -= list->count < item->steps ? list->count : item->steps;
}

void ottl_draft_commit(struct ottl_evaluation *evaluation, const struct ottl_path_row *row)
{
    struct ottl_item *item = ottl_evaluation_target(evaluation);
    struct ottl_draft_part *part = part_of(item->draft, row);
    assert(part->row == row);
    for (uint32_t i = 0; i < part->list.change_count; i++) {
        const struct attribute_list_change *change = &part->list.changes[i];
        struct attribute_entry *entry = &part->list.entries[change->at];
        if (entry->state == ATTRIBUTE_IS_REMOVED)
            continue;
        keep(arena_of(item), &entry->key, change->is_new ? NULL : change->before.key.data);
        keep(arena_of(item), &entry->value, change->is_new ? NULL : change->before.value.data);
    }
    attribute_list_commit(&part->list);
    if (is_around(item->draft, row)) {
        attribute_list_compact(&part->list);
        pay_for_index(item, &part->list);
    }
    part->is_changed = true;
    ottl_forget(item, row->context);
}

void ottl_draft_undo(struct ottl_item *item)
{
    for (unsigned i = 0; i < OTTL_DEPTH_COUNT; i++) {
        struct ottl_draft_part *part = &item->draft->parts[i];
        if (!part->row || part->list.change_count == 0)
            continue;
        attribute_list_undo(&part->list);
        pay_for_index(item, &part->list);
    }
}

/* ---- writing ---- */

static void empty(struct ottl_draft_part *part)
{
    part->row = NULL;
    part->is_changed = part->is_refused = false;
    attribute_list_clear(&part->list);
}

/* Iterators are in the messages around the items: those must stay as they are. */
static void write_part(struct ottl_item *item, struct ottl_draft_part *part)
{
    assert(!part->row || part->list.change_count == 0);
    if (part->row && part->is_changed) {
        struct message_iter *place = ottl_item_open(item, part->row->message, part->row->context);
        attribute_list_write(&part->list, place->message, part->row->number, place->arena,
                             !is_around(item->draft, part->row));
        *place = message_iter(place->message, place->arena);
    }
    empty(part);
}

void ottl_draft_write_indices(struct ottl_item *item)
{
    enum { OF_PROFILE = 2 };
    struct ottl_draft_part *part = item->draft ? &item->draft->parts[OF_PROFILE] : NULL;
    struct wire_writer writer = {0};
    if (!part || !part->row || !part->row->is_indices)
        return;
    if (part->is_changed) {
        ottl_encode_indices(item->tables, &part->list, part->row->number, &writer);
        struct message_iter *field = ottl_outer_change(item, part->row);
        message_rewrite(field->message, arena_copy(field->arena, wire_writer_slice(&writer)));
        ottl_outer_settle(item);
        wire_writer_deinit(&writer);
    }
    empty(part);
}

void ottl_item_finish(struct ottl_item *item)
{
    write_part(item, &item->draft->parts[item->draft->depth]);
}

void ottl_item_leave(struct ottl_item *item, unsigned depth)
{
    if (item->kept >> depth == 0 && !item->draft->parts[item->draft->depth].row)
        return;
    ottl_draft_write_indices(item);
    for (unsigned i = OTTL_DEPTH_COUNT; i-- > depth;) {
        write_part(item, &item->draft->parts[i]);
        if (item->kept & OTTL_KEPT(i))
            ottl_outer_close(item, i);
        item->kept &= ~OTTL_KEPT(i);
    }
}
