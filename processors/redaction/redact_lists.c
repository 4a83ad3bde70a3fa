#include "processors/redaction/redact_lists.h"

#include "core/base/memory.h"
#include "core/data/attributes.h"
#include "core/pipeline/batch.h"
#include "processors/redaction/span_names.h"

#include <assert.h>
#include <stdlib.h>

/* Iterators: of the request, of a group, of a scope group, of a span (events and links). Their
 * fields are one level further in. */
enum { GROUP, SCOPE_GROUP, SPAN, EVENT };

/* ---- one message ---- */

static void remember(struct redact_lists *lists, const struct redacted_attribute *found)
{
    lists->found = arena_grow(lists->redactor->arena, lists->found, lists->found_count,
                              &lists->found_capacity, sizeof *lists->found);
    lists->found[lists->found_count++] = *found;
}

/* Returns whether the message changes; what the summary needs is remembered in any case. */
static bool decide_all(struct redact_lists *lists, struct message_iter message, uint32_t number)
{
    struct attribute attribute = attribute_first(message, number);
    bool changes = false;
    lists->found_count = 0;
    for (uint32_t position = 0; attribute_next(&attribute); position++) {
        struct slice value = attribute.pair.value;
        enum redaction_outcome outcome =
            redactor_decide(lists->redactor, attribute.pair.key, &value);
        changes |= outcome == REDACTION_MASKED || outcome == REDACTION_REMOVED;
        if (outcome != REDACTION_UNTOUCHED)
            remember(lists,
                     &(struct redacted_attribute){outcome, position, attribute.pair.key, value});
    }
    return changes;
}

static void change_all(const struct redact_lists *lists, struct message_iter message,
                       uint32_t number)
{
    struct attribute attribute = attribute_first(message, number);
    uint32_t next = 0;
    for (uint32_t position = 0; next < lists->found_count && attribute_next(&attribute);
         position++) {
        const struct redacted_attribute *found = &lists->found[next];
        if (found->position != position)
            continue;
        next++;
        if (found->outcome == REDACTION_MASKED)
            attribute_set_value(&attribute, found->value);
        else if (found->outcome == REDACTION_REMOVED)
            attribute_remove(&attribute);
    }
}

/* ---- the summary ---- */

struct summary_row {
    enum redaction_outcome outcome;
    const char *keys; /* NULL: none */
    const char *count;
};

/* In the order in which the Collector adds them. */
static const struct summary_row summary_rows[] = {
    {REDACTION_REMOVED, "redaction.redacted.keys", "redaction.redacted.count"},
    {REDACTION_MASKED, "redaction.masked.keys", "redaction.masked.count"},
    {REDACTION_ALLOWED, "redaction.allowed.keys", "redaction.allowed.count"},
    {REDACTION_IGNORED, NULL, "redaction.ignored.count"},
};
enum { SUMMARY_ROWS = sizeof summary_rows / sizeof *summary_rows };

static void put_attribute(struct message *message, struct arena *arena, uint32_t number,
                          struct slice key, struct any_value value)
{
    struct attribute attribute;
    struct slice payload = any_value_encode(arena, value);
    if (attributes_find(message_iter(message, arena), number, key, &attribute))
        attribute_set_value(&attribute, payload);
    else
        attributes_append(message, arena, number, key, payload);
}

static struct any_value find_value(struct message *message, struct arena *arena, uint32_t number,
                                   struct slice key)
{
    struct attribute attribute;
    if (!attributes_find(message_iter(message, arena), number, key, &attribute))
        return (struct any_value){0};
    return any_value_read(attribute.pair.value);
}

static int compare_keys(const void *left, const void *right)
{
    const struct slice *a = left, *b = right;
    size_t size = a->size < b->size ? a->size : b->size;
    int order = size > 0 ? memcmp(a->data, b->data, size) : 0;
    return order != 0 ? order : (a->size > b->size) - (a->size < b->size);
}

static struct slice join(struct slice *keys, size_t count, struct arena *arena)
{
    struct text text = {0};
    qsort(keys, count, sizeof *keys, compare_keys);
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            text_append_char(&text, ',');
        text_append_slice(&text, keys[i]);
    }
    struct slice joined = arena_copy(arena, slice_of(text.data, text.size));
    text_deinit(&text);
    return joined;
}

/* Splits what another processor has put there; counts without `keys`. */
static size_t split(struct slice text, struct slice *keys)
{
    size_t count = 0;
    while (text.data) {
        const uint8_t *comma = text.size > 0 ? memchr(text.data, ',', text.size) : NULL;
        size_t size = comma ? (size_t)(comma - text.data) : text.size;
        if (keys)
            keys[count] = slice_of(text.data, size);
        count++;
        if (!comma)
            break;
        text = slice_of(comma + 1, text.size - size - 1);
    }
    return count;
}

static struct slice joined_keys(const struct redact_lists *lists, enum redaction_outcome outcome,
                                struct slice old)
{
    struct arena *arena = lists->redactor->arena;
    size_t old_count = old.size > 0 ? split(old, NULL) : 0, count = 0;
    struct slice *keys = memory_array(lists->found_count + old_count + 1, sizeof *keys);
    for (uint32_t i = 0; i < lists->found_count; i++)
        if (lists->found[i].outcome == outcome)
            keys[count++] = lists->found[i].key;
    if (old_count > 0)
        count += split(old, keys + count);
    struct slice joined = join(keys, count, arena);
    free(keys);
    return joined;
}

static int64_t count_of(const struct redact_lists *lists, enum redaction_outcome outcome)
{
    int64_t count = 0;
    for (uint32_t i = 0; i < lists->found_count; i++)
        count += lists->found[i].outcome == outcome;
    return count;
}

/* Takes the bytes from the room of the batch; without room, there is no summary. */
static bool has_room(struct redactor *redactor, size_t bytes)
{
    if (redactor->room < bytes)
        return false;
    redactor->room -= bytes;
    return true;
}

static void add_row(struct redact_lists *lists, struct message *message, uint32_t number,
                    const struct summary_row *row)
{
    enum { ROW_BYTES = 96 };
    struct arena *arena = lists->redactor->arena;
    int64_t count = count_of(lists, row->outcome);
    if (count == 0 || !has_room(lists->redactor, ROW_BYTES))
        return;
    if (row->keys && lists->redactor->rules->summary == SUMMARY_DEBUG) {
        struct slice name = slice_of_string(row->keys);
        struct any_value old = find_value(message, arena, number, name);
        bool is_text = old.kind == ANY_VALUE_STRING;
        struct slice keys =
            joined_keys(lists, row->outcome, is_text ? old.bytes : (struct slice){0});
        if (has_room(lists->redactor, keys.size))
            put_attribute(message, arena, number, name, any_value_string(keys));
    }
    struct slice name = slice_of_string(row->count);
    struct any_value old = find_value(message, arena, number, name);
    uint64_t sum = (uint64_t)count + (old.kind == ANY_VALUE_INT ? (uint64_t)old.integer : 0);
    put_attribute(message, arena, number, name, any_value_int((int64_t)sum));
}

/* Opens the current message of a level, and those around it. */
static struct message *open_message(struct redact_lists *lists, unsigned level)
{
    for (unsigned i = 1; i <= level; i++)
        message_iter_open(&lists->iters[i], &lists->iters[i - 1], &lists->fields[i - 1]);
    return message_open(&lists->iters[level], &lists->fields[level]);
}

/* Redacts the attributes `number` of the current message of a level. */
static void redact_message(struct redact_lists *lists, unsigned level, uint32_t number)
{
    struct arena *arena = lists->redactor->arena;
    struct message_iter read = message_iter_into(&lists->fields[level], arena);
    if (lists->redactor->has_databases)
        lists->redactor->database = span_names_database(read, number);
    bool changes = decide_all(lists, read, number);
    bool summarises = lists->found_count > 0 && lists->redactor->rules->summary != SUMMARY_SILENT;
    if (!changes && !summarises)
        return;
    struct message *message = open_message(lists, level);
    if (changes)
        change_all(lists, message_iter(message, arena), number);
    for (size_t i = 0; summarises && i < SUMMARY_ROWS; i++)
        add_row(lists, message, number, &summary_rows[i]);
    lists->changed = true;
}

/* ---- the walk ---- */

static void enter(struct redact_lists *lists, unsigned level)
{
    lists->iters[level] = message_iter_into(&lists->fields[level - 1], lists->redactor->arena);
}

static bool next(struct redact_lists *lists, unsigned level, uint32_t number)
{
    return message_next_bytes(&lists->iters[level], number, &lists->fields[level]);
}

static void redact_spans(struct redact_lists *lists)
{
    struct arena *arena = lists->redactor->arena;
    enter(lists, SPAN);
    while (next(lists, SPAN, SCOPE_ITEMS)) {
        struct slice name;
        bool is_renamed = span_names_sanitize(
            lists->redactor, message_iter_into(&lists->fields[SPAN], arena), &name);
        redact_message(lists, SPAN, SPAN_ATTRIBUTES);
        if (is_renamed) {
            span_names_set(message_iter(open_message(lists, SPAN), arena), name);
            lists->changed = true;
        }
        enter(lists, EVENT);
        while (next(lists, EVENT, SPAN_EVENTS))
            redact_message(lists, EVENT, EVENT_ATTRIBUTES);
        enter(lists, EVENT);
        while (next(lists, EVENT, SPAN_LINKS))
            redact_message(lists, EVENT, SPAN_LINK_ATTRIBUTES);
    }
}

static void redact_group(struct redact_lists *lists, enum signal signal)
{
    enter(lists, SCOPE_GROUP);
    while (next(lists, SCOPE_GROUP, GROUP_RESOURCE))
        redact_message(lists, SCOPE_GROUP, RESOURCE_ATTRIBUTES);
    enter(lists, SCOPE_GROUP);
    while (next(lists, SCOPE_GROUP, GROUP_SCOPES)) {
        enter(lists, SPAN);
        while (next(lists, SPAN, SCOPE_SPANS_SCOPE))
            redact_message(lists, SPAN, SCOPE_ATTRIBUTES);
        if (signal == SIGNAL_TRACES)
            redact_spans(lists);
    }
}

void redact_lists_batch(struct redact_lists *lists, struct batch *batch)
{
    lists->found = NULL; /* it was in the arena of the last batch */
    lists->found_count = lists->found_capacity = 0;
    lists->changed = false;
    for (size_t i = 0; i < batch->part_count; i++) {
        lists->iters[GROUP] = message_iter(&batch->parts[i].root, &batch->arena);
        while (next(lists, GROUP, REQUEST_GROUPS))
            redact_group(lists, batch->signal);
    }
}
