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

static bool reaches_texts(const struct redact_lists *lists)
{
    return lists->redactor->rules->settings->redact_all_texts;
}

/* Whether the key of an attribute that stays has become another one. */
static bool renames_key(struct redact_lists *lists, struct redacted_attribute *found)
{
    return reaches_texts(lists) && found->outcome != REDACTION_IGNORED &&
           redactor_rename(lists->redactor, REDACTION_KEY, &found->key) &&
           found->outcome != REDACTION_REMOVED;
}

static void set_pair(struct attribute *attribute, const struct redacted_attribute *found)
{
    if (slice_equal(attribute->pair.key, found->key) &&
        !key_value_repeats(attribute->field.wire.bytes))
        attribute_set_value(attribute, found->value);
    else
        message_replace(&attribute->it, &attribute->field,
                        key_value_encode(attribute->it.arena, found->key, found->value));
}

/* Returns whether the message changes; what the summary needs is remembered in any case. */
static bool decide_all(struct redact_lists *lists, struct message_iter message, uint32_t number)
{
    struct attribute attribute = attribute_first(message, number);
    bool changes = false;
    lists->found_count = 0;
    for (uint32_t position = 0; attribute_next(&attribute); position++) {
        struct redacted_attribute found = {
            .position = position, .key = attribute.pair.key, .value = attribute.pair.value};
        found.outcome = redactor_decide(lists->redactor, found.key, &found.value);
        bool is_renamed = renames_key(lists, &found);
        if (is_renamed || (found.outcome != REDACTION_REMOVED && /* a key that does not count */
                           key_value_repeats(attribute.field.wire.bytes)))
            found.outcome = REDACTION_MASKED;
        changes |= found.outcome == REDACTION_MASKED || found.outcome == REDACTION_REMOVED;
        if (found.outcome != REDACTION_UNTOUCHED)
            remember(lists, &found);
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
            set_pair(&attribute, found);
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

/* ---- other texts ---- */

/* Fields that are texts; 0 ends a list. */
static const uint32_t group_texts[] = {GROUP_SCHEMA_URL, 0};
static const uint32_t entity_texts[] = {ENTITY_REF_SCHEMA_URL, ENTITY_REF_TYPE, ENTITY_REF_ID_KEYS,
                                        ENTITY_REF_DESCRIPTION_KEYS, 0};
static const uint32_t scope_texts[] = {SCOPE_NAME, SCOPE_VERSION, 0};
static const uint32_t span_texts[] = {SPAN_NAME, SPAN_TRACE_STATE, 0};
static const uint32_t event_texts[] = {EVENT_NAME, 0};
static const uint32_t link_texts[] = {SPAN_LINK_TRACE_STATE, 0};
static const uint32_t status_texts[] = {STATUS_MESSAGE, 0};

static bool is_text(const struct message_field *field, const uint32_t *numbers)
{
    for (; *numbers; numbers++)
        if (field->wire.number == *numbers && field->wire.type == WIRE_BYTES)
            return true;
    return false;
}

/* Redacts texts of the current message of a level. */
static void redact_texts(struct redact_lists *lists, unsigned level, const uint32_t *numbers)
{
    struct message_field field;
    if (!reaches_texts(lists))
        return;
    struct message_iter it = message_iter_into(&lists->fields[level], lists->redactor->arena);
    while (message_next(&it, &field)) {
        struct slice text = field.wire.bytes;
        if (!is_text(&field, numbers) || !redactor_rename(lists->redactor, REDACTION_TEXT, &text))
            continue;
        for (unsigned i = 1; i <= level; i++)
            message_iter_open(&lists->iters[i], &lists->iters[i - 1], &lists->fields[i - 1]);
        message_iter_open(&it, &lists->iters[level], &lists->fields[level]);
        message_replace(&it, &field, text);
        lists->changed = true;
    }
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

static void redact_inner(struct redact_lists *lists, uint32_t number, uint32_t attributes,
                         const uint32_t *texts)
{
    enter(lists, EVENT);
    while (next(lists, EVENT, number)) {
        if (attributes != 0)
            redact_message(lists, EVENT, attributes);
        redact_texts(lists, EVENT, texts);
    }
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
        redact_texts(lists, SPAN, span_texts);
        redact_inner(lists, SPAN_EVENTS, EVENT_ATTRIBUTES, event_texts);
        redact_inner(lists, SPAN_LINKS, SPAN_LINK_ATTRIBUTES, link_texts);
        if (reaches_texts(lists))
            redact_inner(lists, SPAN_STATUS, 0, status_texts);
    }
}

static void redact_resources(struct redact_lists *lists)
{
    enter(lists, SCOPE_GROUP);
    while (next(lists, SCOPE_GROUP, GROUP_RESOURCE)) {
        redact_message(lists, SCOPE_GROUP, RESOURCE_ATTRIBUTES);
        if (!reaches_texts(lists))
            continue;
        enter(lists, SPAN);
        while (next(lists, SPAN, RESOURCE_ENTITY_REFS))
            redact_texts(lists, SPAN, entity_texts);
    }
}

static void redact_group(struct redact_lists *lists, enum signal signal)
{
    redact_texts(lists, GROUP, group_texts);
    redact_resources(lists);
    enter(lists, SCOPE_GROUP);
    while (next(lists, SCOPE_GROUP, GROUP_SCOPES)) {
        redact_texts(lists, SCOPE_GROUP, group_texts);
        enter(lists, SPAN);
        while (next(lists, SPAN, SCOPE_SPANS_SCOPE)) {
            redact_message(lists, SPAN, SCOPE_ATTRIBUTES);
            redact_texts(lists, SPAN, scope_texts);
        }
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
