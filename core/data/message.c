#include "core/data/message.h"

#include "core/base/arena.h"

#include <assert.h>

/* An empty slice may be NULL, to which not even 0 may be added. */
static struct slice with_address(struct slice bytes)
{
    return bytes.size > 0 ? bytes : slice_of("", 0);
}

void message_init(struct message *message, struct slice raw)
{
    *message = (struct message){.raw = with_address(raw)};
}

void message_iter_open(struct message_iter *it, struct message_iter *parent,
                       struct message_field *field)
{
    if (it->message)
        return;
    it->message = message_open(parent, field);
    it->arena = parent->arena;
    /* The bytes are the same, so the position stays valid; nodes are searched from the front. */
    assert(it->cursor.end == it->message->raw.data + it->message->raw.size && !it->previous);
}

/* Moves to the next run of appended fields; returns false if there is none. */
static bool next_tail(struct message_iter *it)
{
    if (it->tail && it->cursor.end < it->tail->fields.data + it->tail->fields.size) {
        it->cursor.end =
            it->tail->fields.data + it->tail->fields.size; /* it may have grown since */
        return true;
    }
    const struct message_tail *next = it->tail ? it->tail->next : it->message->tail;
    if (!next)
        return false;
    it->tail = next;
    it->cursor = wire_cursor(next->fields);
    return true;
}

static uint32_t current_segment(const struct message_iter *it)
{
    return it->tail ? it->tail->segment : 0;
}

/* Whether a node is after a position. Nodes are ordered by run of bytes, then by position in the
 * run. */
static bool is_behind(const struct message *node, uint32_t segment, const uint8_t *field_start)
{
    return node->segment != segment ? node->segment > segment : node->field_start > field_start;
}

/* Returns the node of the field that starts here, or NULL. Moves it->previous to the last node at
 * or before it. */
static struct message *find_node(struct message_iter *it, const uint8_t *field_start)
{
    for (;;) {
        struct message *next = it->previous ? it->previous->next : it->message->children;
        if (!next || is_behind(next, current_segment(it), field_start))
            return NULL;
        it->previous = next;
        if (next->segment == current_segment(it) && next->field_start == field_start)
            return next;
    }
}

bool message_next_in_tree(struct message_iter *it, struct message_field *field)
{
    for (;;) {
        if (!wire_next(&it->cursor, &field->wire)) {
            assert(!it->cursor.broken);
            if (!next_tail(it))
                return false;
            continue;
        }
        field->node = it->message->children ? find_node(it, field->wire.start) : NULL;
        if (!field->node)
            return true;
        if (!field->node->removed) {
            field->wire.bytes =
                field->node->raw_is_stale ? slice_of(wire_stale, 1) : field->node->raw;
            return true;
        }
    }
}

/* Returns the first node at the position or after it in the same run of bytes; NULL: none. */
static struct message *next_node_in_run(const struct message_iter *it)
{
    struct message *next = NULL;
    if (it->message)
        next = it->previous ? it->previous->next : it->message->children;
    return next && next->segment == current_segment(it) ? next : NULL;
}

const uint8_t *message_plain_end(const struct message_iter *it)
{
    const struct message *node = next_node_in_run(it);
    assert(!node || node->field_start >= it->cursor.next);
    return node ? node->field_start : it->cursor.end;
}

bool message_next_piece(struct message_iter *it, struct message_piece *piece)
{
    for (;;) {
        const uint8_t *at = it->cursor.next;
        struct message *node = next_node_in_run(it);
        const uint8_t *end = message_plain_end(it);
        it->cursor.next = end;
        *piece = (struct message_piece){.fields = slice_of(at, (size_t)(end - at))};
        if (at < end)
            return true;
        if (!node && (!it->message || !next_tail(it)))
            return false;
        if (!node)
            continue;
        it->previous = node;
        it->cursor.next = node->field_end;
        piece->node = node;
        if (!node->removed)
            return true;
    }
}

/* Marks a message as changed, so that the received bytes of all messages above it are stale. */
static void mark_changed(struct message *message)
{
    message->changed = true;
    for (struct message *up = message->parent; up && !up->raw_is_stale; up = up->parent)
        up->changed = up->raw_is_stale = true;
}

/* Creates a node for the current field, in order among its siblings. */
static struct message *add_node(struct message_iter *it, struct message_field *field)
{
    assert(it->message && it->arena && !field->node);
    /* Another iterator may have created nodes here since this one passed. */
    struct message *node = find_node(it, field->wire.start);
    if (node) {
        field->node = node;
        return node;
    }
    node = arena_zalloc(it->arena, sizeof *node);
    node->raw = field->wire.type == WIRE_BYTES ? field->wire.bytes : (struct slice){0};
    node->parent = it->message;
    node->field_start = field->wire.start;
    node->field_end = field->wire.end;
    node->number = field->wire.number;
    node->segment = current_segment(it);
    struct message **link = it->previous ? &it->previous->next : &it->message->children;
    node->next = *link;
    *link = node;
    assert(!node->next || is_behind(node->next, node->segment, node->field_start));
    it->previous = node;
    field->node = node;
    return node;
}

struct message *message_open(struct message_iter *it, struct message_field *field)
{
    assert(field->wire.type == WIRE_BYTES);
    return field->node ? field->node : add_node(it, field);
}

void message_remove(struct message_iter *it, struct message_field *field)
{
    struct message *node = field->node ? field->node : add_node(it, field);
    assert(!node->removed); /* no iterator is at it any more */
    node->removed = true;
    mark_changed(node);
}

void message_rewrite(struct message *message, struct slice payload)
{
    assert(!message->removed);
    message->raw = with_address(payload);
    message->children = NULL;
    message->tail = message->tail_last = NULL;
    message->raw_is_stale = false;
    mark_changed(message);
}

void message_replace(struct message_iter *it, struct message_field *field, struct slice payload)
{
    message_rewrite(message_open(it, field), payload);
}

void message_append(struct message *message, struct arena *arena, struct slice fields)
{
    assert(!message->removed);
    struct message_tail *last = message->tail_last;
    message->raw_is_stale = true;
    if (last && last->fields.data + last->fields.size == fields.data) {
        last->fields.size += fields.size; /* one run if the caller appends to the same memory */
        mark_changed(message);
        return;
    }
    struct message_tail *tail = arena_alloc(arena, sizeof *tail);
    *tail = (struct message_tail){.fields = fields, .segment = last ? last->segment + 1 : 1};
    if (last)
        last->next = tail;
    else
        message->tail = tail;
    message->tail_last = tail;
    mark_changed(message);
}

size_t message_measure(struct message *message)
{
    size_t size = message->raw.size;
    if (message->changed) {
        for (const struct message_tail *tail = message->tail; tail; tail = tail->next)
            size += tail->fields.size;
        for (struct message *child = message->children; child; child = child->next) {
            if (!child->changed)
                continue;
            assert(child->parent == message);
            size -= (size_t)(child->field_end - child->field_start);
            if (!child->removed)
                size += wire_size_bytes(child->number, message_measure(child));
        }
    }
    message->size = size;
    return size;
}

/* Whether the payload still is the received one, which ends where its field ends. */
static bool has_own_bytes(const struct message *message)
{
    return !message->parent || message->raw.data + message->raw.size == message->field_end;
}

static bool is_in_received_bytes(const struct message *message)
{
    const struct message *root = message;
    while (root->parent)
        root = root->parent;
    uintptr_t start = (uintptr_t)root->raw.data, at = (uintptr_t)message->raw.data;
    return at >= start && at < start + root->raw.size;
}

/* Whether the new payload of a message is not longer than the old one. It may not be a copy of
 * received bytes, which may have been written over when it is read. */
static bool is_replaced_by_less(const struct message *message)
{
    size_t old = (size_t)(message->field_end - message->field_start);
    return !message->children && wire_size_bytes(message->number, message->raw.size) <= old &&
           !is_in_received_bytes(message);
}

bool message_shrinks(const struct message *message)
{
    if (message->removed || !message->changed)
        return true;
    if (message->tail)
        return false;
    if (!has_own_bytes(message))
        return is_replaced_by_less(message);
    for (const struct message *child = message->children; child; child = child->next)
        if (!message_shrinks(child))
            return false;
    return true;
}

/* The destination of encoded bytes: memory, or a list of slices. Exactly one is set. */
struct sink {
    uint8_t *to;
    struct slice_list *list;
    struct arena *arena;
};

static void emit(struct sink *sink, const uint8_t *from, const uint8_t *end)
{
    size_t size = (size_t)(end - from);
    if (size == 0)
        return;
    if (sink->list) {
        slice_list_add(sink->list, sink->arena, slice_of(from, size));
        return;
    }
    assert(sink->to);
    if (sink->to != from) /* it may be written over itself */
        memmove(sink->to, from, size);
    sink->to += size;
}

static void emit_header(struct sink *sink, uint32_t number, size_t payload)
{
    uint8_t header[WIRE_HEADER_MAX];
    uint8_t *end = wire_write_header(header, number, payload);
    emit(sink, header, end); /* short, so a list copies it */
}

static void emit_message(struct sink *sink, const struct message *message);

/* Emits one run of the message's bytes, with the changed children in it. Returns the first child
 * after it. */
static const struct message *emit_segment(struct sink *sink, struct slice bytes, uint32_t segment,
                                          const struct message *child)
{
    const uint8_t *position = bytes.data;
    for (; child && child->segment == segment; child = child->next) {
        if (!child->changed)
            continue;
        assert(position <= child->field_start);
        emit(sink, position, child->field_start);
        if (!child->removed) {
            emit_header(sink, child->number, child->size);
            emit_message(sink, child);
        }
        position = child->field_end;
    }
    emit(sink, position, bytes.data + bytes.size);
    return child;
}

static void emit_message(struct sink *sink, const struct message *message)
{
    if (!message->changed) {
        emit(sink, message->raw.data, message->raw.data + message->raw.size);
        return;
    }
    const struct message *child = emit_segment(sink, message->raw, 0, message->children);
    for (const struct message_tail *tail = message->tail; tail; tail = tail->next)
        child = emit_segment(sink, tail->fields, tail->segment, child);
    assert(!child);
}

uint8_t *message_write(const struct message *message, uint8_t *to)
{
    struct sink sink = {.to = to};
    emit_message(&sink, message);
    assert(sink.to == to + message->size);
    return sink.to;
}

void message_gather(const struct message *message, struct arena *arena, struct slice_list *out)
{
    struct sink sink = {.list = out, .arena = arena};
    emit_message(&sink, message);
}

/* Blocks for copied slices become larger, because most requests need only the first. */
enum { COPIED_BELOW = 512, SCRATCH_MIN = 1024, SCRATCH_MAX = 16384 };

static void add_item(struct slice_list *list, struct arena *arena, struct slice bytes)
{
    assert(list->count <= list->capacity && (list->items || list->capacity == 0));
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? list->capacity * 2 : 16;
        struct slice *items = arena_alloc(arena, capacity * sizeof *items);
        if (list->count > 0)
            memcpy(items, list->items, list->count * sizeof *items);
        list->items = items;
        list->capacity = capacity;
    }
    assert(list->count < list->capacity);
    list->items[list->count++] = bytes;
}

static void add_copied(struct slice_list *list, struct arena *arena, struct slice bytes)
{
    if (!list->scratch || (size_t)(list->scratch_end - list->scratch) < bytes.size) {
        size_t size = list->scratch_size * 2;
        list->scratch_size = size < SCRATCH_MIN   ? SCRATCH_MIN
                             : size < SCRATCH_MAX ? size
                                                  : SCRATCH_MAX;
        list->scratch = arena_alloc(arena, list->scratch_size);
        list->scratch_end = list->scratch + list->scratch_size;
    }
    memcpy(list->scratch, bytes.data, bytes.size);
    struct slice *last = list->count > 0 ? &list->items[list->count - 1] : NULL;
    if (last && last->data + last->size == list->scratch)
        last->size += bytes.size;
    else
        add_item(list, arena, slice_of(list->scratch, bytes.size));
    list->scratch += bytes.size;
}

void slice_list_add(struct slice_list *list, struct arena *arena, struct slice bytes)
{
    if (bytes.size == 0)
        return;
    list->size += bytes.size;
    if (bytes.size < COPIED_BELOW)
        add_copied(list, arena, bytes);
    else
        add_item(list, arena, bytes);
}
