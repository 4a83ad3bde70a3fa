#include "core/data/attributes.h"

bool attribute_next(struct attribute *attribute)
{
    if (!message_next_bytes(&attribute->it, attribute->number, &attribute->field))
        return false;
    attribute->pair = key_value_read(attribute->field.wire.bytes);
    return true;
}

/* Whether a KeyValue is short, and has another key. */
static inline bool has_other_key(struct slice payload, struct slice key)
{
    struct key_value pair;
    return key_value_read_short(payload, &pair) && !slice_equal(pair.key, key);
}

/* Skips short fields that are no attribute with the key: nearly all fields of nearly all messages.
 * The tag is that of the attributes. */
static const uint8_t *skip_others(const uint8_t *at, const uint8_t *end, uint8_t tag,
                                  struct slice key)
{
    while (end - at >= 2) {
        size_t room = (size_t)(end - at), size = 2 + (size_t)at[1];
        if (*at == tag) {
            if (size > room || !has_other_key((struct slice){at + 2, at[1]}, key))
                break;
        } else {
            size = wire_short_field_size(at, end);
            if (size == 0 || size > room)
                break;
        }
        at += size;
    }
    return at;
}

static uint8_t short_tag(uint32_t number)
{
    assert(number < 16);
    return (uint8_t)(number << 3 | WIRE_BYTES);
}

bool attribute_next_of_key(struct attribute *attribute, struct slice key)
{
    struct message_iter *it = &attribute->it;
    for (;;) {
        if (!it->message || !it->message->children)
            it->cursor.next =
                skip_others(it->cursor.next, it->cursor.end, short_tag(attribute->number), key);
        if (!message_next_bytes(it, attribute->number, &attribute->field))
            return false;
        struct slice pair = attribute->field.wire.bytes;
        if (has_other_key(pair, key))
            continue;
        attribute->pair = key_value_read(pair);
        if (slice_equal(attribute->pair.key, key))
            return true;
    }
}

static bool get_from_tree(struct message_iter message, uint32_t number, struct slice key,
                          struct slice *value_out)
{
    struct attribute attribute;
    if (!attributes_find(message, number, key, &attribute))
        return false;
    *value_out = attribute.pair.value;
    return true;
}

bool attributes_get(const struct message_iter *message, uint32_t number, struct slice key,
                    struct slice *value_out)
{
    struct wire_cursor cursor = message->cursor;
    struct wire_field field;
    if (message->message)
        return get_from_tree(*message, number, key, value_out);
    for (;;) {
        cursor.next = skip_others(cursor.next, cursor.end, short_tag(number), key);
        if (!wire_next_bytes(&cursor, number, &field)) {
            assert(!cursor.broken); /* scanned */
            return false;
        }
        struct key_value pair = key_value_read(field.bytes);
        if (!slice_equal(pair.key, key))
            continue;
        value_out->data = pair.value.data; /* one by one, as they were just written */
        value_out->size = pair.value.size;
        return true;
    }
}

struct slice attribute_value(struct slice message, uint32_t number, struct slice key)
{
    const struct message_iter it = message_iter_bytes(message);
    struct slice value;
    return attributes_get(&it, number, key, &value) ? value : (struct slice){0};
}

bool attributes_find(struct message_iter message, uint32_t number, struct slice key,
                     struct attribute *attribute_out)
{
    *attribute_out = attribute_first(message, number);
    return attribute_next_of_key(attribute_out, key);
}

void attribute_set_value(struct attribute *attribute, struct slice value)
{
    if (slice_equal(attribute->pair.value, value))
        return;
    message_replace(&attribute->it, &attribute->field,
                    key_value_encode(attribute->it.arena, attribute->pair.key, value));
}

void attribute_remove(struct attribute *attribute)
{
    message_remove(&attribute->it, &attribute->field);
}

void attributes_append(struct message *message, struct arena *arena, uint32_t number,
                       struct slice key, struct slice value)
{
    message_append(message, arena, key_value_encode_field(arena, number, key, value));
}

/* ---- a decision about each attribute ---- */

enum attribute_decision attribute_decide(const struct attribute_rule *rule, struct slice key,
                                         struct slice *value)
{
    struct slice old = *value;
    enum attribute_decision decision = rule->decide(rule->context, key, value);
    if (decision == ATTRIBUTE_SET && slice_equal(old, *value))
        return ATTRIBUTE_KEEP;
    return decision;
}

bool attributes_find_change(struct message_iter message, uint32_t number,
                            const struct attribute_rule *rule, struct attribute_change *change_out)
{
    struct attribute attribute = attribute_first(message, number);
    for (change_out->position = 0; attribute_next(&attribute); change_out->position++) {
        change_out->value = attribute.pair.value;
        change_out->decision = attribute_decide(rule, attribute.pair.key, &change_out->value);
        if (change_out->decision != ATTRIBUTE_KEEP)
            return true;
    }
    return false;
}

static bool change(struct attribute *attribute, enum attribute_decision decision,
                   struct slice value)
{
    if (decision == ATTRIBUTE_SET)
        attribute_set_value(attribute, value);
    if (decision == ATTRIBUTE_REMOVE)
        attribute_remove(attribute);
    return decision != ATTRIBUTE_KEEP;
}

uint32_t attributes_change_from(struct message_iter message, uint32_t number,
                                const struct attribute_rule *rule,
                                const struct attribute_change *first)
{
    struct attribute attribute = attribute_first(message, number);
    uint32_t changed = 0;
    for (uint32_t i = 0; i <= first->position; i++) {
        bool is_there = attribute_next(&attribute);
        assert(is_there); /* attributes_find_change has seen it */
    }
    changed += change(&attribute, first->decision, first->value);
    assert(changed == 1);
    while (attribute_next(&attribute)) {
        struct slice value = attribute.pair.value;
        enum attribute_decision decision = attribute_decide(rule, attribute.pair.key, &value);
        changed += change(&attribute, decision, value);
    }
    return changed;
}
