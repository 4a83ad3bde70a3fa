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

/* Skips short fields that are no attribute with the key. */
static void skip_others(struct wire_cursor *cursor, uint32_t number, struct slice key)
{
    const uint8_t *at = cursor->next;
    size_t size;
    while (cursor->end - at >= 2) {
        if (at[0] == (number << 3 | WIRE_BYTES)) {
            size = 2 + (size_t)at[1];
            if (size > (size_t)(cursor->end - at) ||
                !has_other_key((struct slice){at + 2, at[1]}, key))
                break;
        } else {
            size = wire_short_field_size(at, cursor->end);
            if (size == 0 || size > (size_t)(cursor->end - at))
                break;
        }
        at += size;
    }
    cursor->next = at;
}

bool attribute_next_of_key(struct attribute *attribute, struct slice key)
{
    struct message_iter *it = &attribute->it;
    for (;;) {
        if (!it->message || !it->message->children)
            skip_others(&it->cursor, attribute->number, key);
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
