/*
 * attributes: a repeated KeyValue field (of a resource, a scope, a span, an event), read and
 * changed by key.
 *
 *     struct attribute attribute;
 *     if (attributes_find(message_iter(resource, arena), RESOURCE_ATTRIBUTES, key, &attribute))
 *         attribute_set_value(&attribute, value);
 *
 * Reading needs no node: attributes_find also takes an iterator over bytes. To change an attribute,
 * pass an iterator over an open message. A value is the payload of an AnyValue (any_value.h).
 * Attributes of samples are in the dictionary: sample_attributes.h.
 *
 * Owner: encoded attributes live in the arena of the iterator; slices point into the message.
 *
 * Thread: that of the message.
 */
#ifndef PROFCOL_CORE_DATA_ATTRIBUTES_H
#define PROFCOL_CORE_DATA_ATTRIBUTES_H

#include "core/data/any_value.h"
#include "core/data/message.h"

/* An attribute at the position of an iterator. */
struct attribute {
    struct message_iter it;
    struct message_field field;
    uint32_t number; /* of the repeated KeyValue in its message */
    struct key_value pair;
};

/* Returns a cursor before the first attribute. `message` is an iterator at the start of the
 * message. */
static inline struct attribute attribute_first(struct message_iter message, uint32_t number)
{
    return (struct attribute){.it = message, .number = number};
}

/* Moves to the next attribute; returns false at the end. */
bool attribute_next(struct attribute *attribute);
/* Finds the first attribute with this key; returns false if there is none. */
bool attributes_find(struct message_iter message, uint32_t number, struct slice key,
                     struct attribute *attribute_out);

/* Finds the value of the first attribute with this key, without its place: faster than
 * attributes_find. `message` is at its start, and stays there. Returns false if there is none. */
bool attributes_get(const struct message_iter *message, uint32_t number, struct slice key,
                    struct slice *value_out);

/* The same of an encoded message. Returns the value; empty if it is absent, or has none. */
struct slice attribute_value(struct slice message, uint32_t number, struct slice key);

/* Moves to the next attribute with this key; returns false at the end. */
bool attribute_next_of_key(struct attribute *attribute, struct slice key);

/* Sets the value. Does nothing if the attribute has this value already. */
void attribute_set_value(struct attribute *attribute, struct slice value);
/* Removes the attribute from its message. */
void attribute_remove(struct attribute *attribute);
/* Appends an attribute. The caller has checked that the key is absent. */
void attributes_append(struct message *message, struct arena *arena, uint32_t number,
                       struct slice key, struct slice value);

/* ---- a decision about each attribute ---- */

enum attribute_decision { ATTRIBUTE_KEEP, ATTRIBUTE_SET, ATTRIBUTE_REMOVE };

struct attribute_rule {
    /* Decides about one attribute. For ATTRIBUTE_SET it has put the new value into *value, which
     * must live as long as the message's arena. The decision may depend on nothing but the
     * arguments. */
    enum attribute_decision (*decide)(void *context, struct slice key, struct slice *value);
    void *context;
};

/* A decision that changes the attribute at a position among those of the message. */
struct attribute_change {
    enum attribute_decision decision;
    struct slice value; /* the new one */
    uint32_t position;
};

/* Calls the rule. Returns ATTRIBUTE_KEEP also if it sets the value that is there. */
enum attribute_decision attribute_decide(const struct attribute_rule *rule, struct slice key,
                                         struct slice *value);
/* Finds the first attribute that the rule changes; returns false if there is none. Needs no node.
 */
bool attributes_find_change(struct message_iter message, uint32_t number,
                            const struct attribute_rule *rule, struct attribute_change *change_out);
/* Makes this first change, and applies the rule to the attributes after it. `message` is an
 * iterator over the open message. Returns how many attributes changed. */
uint32_t attributes_change_from(struct message_iter message, uint32_t number,
                                const struct attribute_rule *rule,
                                const struct attribute_change *first);

#endif
