/*
 * items: iterates over the spans or samples of a batch, to read, change or remove them.
 *
 *     struct items items = items_of(batch);
 *     struct slice value;
 *     while (items_next(&items)) {
 *         if (item_get_attribute(&items, SLICE("http.route"), &value)) ...
 *         item_set_attribute(&items, SLICE("env"), production);
 *     }
 *
 * docs/data.md has worked examples and their costs. Reading opens nothing; changing opens the item
 * and the messages that contain it. To change most samples of a request in more than one place,
 * write whole profiles instead (docs/data.md, Costs).
 *
 * Owner: the caller owns the iterator, and may use it as long as it owns the batch. Keys and values
 * that you set must live as long as batch->arena.
 *
 * Thread: that of the batch.
 */
#ifndef PROFCOL_CORE_PIPELINE_ITEMS_H
#define PROFCOL_CORE_PIPELINE_ITEMS_H

#include "core/data/sample_attributes.h"
#include "core/pipeline/batch.h"

/* Messages below the root: resource, scope, span; or resource, scope, profile, sample. */
enum { ITEM_LEVELS_MAX = 4 };

struct items {
    struct batch *batch;
    size_t part;     /* index of the next part */
    unsigned levels; /* number of levels of this signal */
    unsigned level;  /* the level being read; equal to `levels`: none */
    struct message_iter iters[ITEM_LEVELS_MAX];
    struct message_field fields[ITEM_LEVELS_MAX];
    struct sample_attributes sample_attributes; /* of a profiles batch; not for components */
    bool is_removed;                            /* the current item is removed */
};

/* Returns an iterator before the first item of a traces or profiles batch; metrics and logs are
 * relayed unread. */
struct items items_of(struct batch *batch);
/* Moves to the next item; returns false at the end. */
bool items_next(struct items *items);

/* Returns an iterator over the fields of the item, including changes. */
struct message_iter item_read(const struct items *items);
/* Returns the node of the item, to change it. */
struct message *item_open(struct items *items);
/* Removes the item from the batch, and subtracts it from batch->items. */
void item_remove(struct items *items);

/* ---- attributes ---- */

/* Gets the value of an attribute, as the payload of an AnyValue (core/data/any_value.h). Returns
 * false if the item has none with this key. The value lives as long as the batch's arena. */
bool item_get_attribute(struct items *items, struct slice key, struct slice *value_out);
/* Sets an attribute, or adds it; returns false if it has this value already. The unit of a sample's
 * attribute is kept. */
bool item_set_attribute(struct items *items, struct slice key, struct slice value);
/* Removes an attribute; returns false if there is none. */
bool item_remove_attribute(struct items *items, struct slice key);

/* An attribute of an item, to read all of them:
 *
 *     struct item_attribute attribute = item_attribute_first(&items);
 *     while (item_attribute_next(&attribute))
 *         ... attribute.key, attribute.value ...
 *
 * The item must not change meanwhile. */
struct item_attribute {
    struct slice key;
    struct slice value; /* the payload of an AnyValue */
    /* Index of a sample's attribute in the dictionary's attribute table, where key and value are;
     * 0: of a span. Many samples may refer to one large entry, so remember what you made of it
     * under this number. */
    uint32_t entry;
    /* items.c's: */
    struct items *items;
    struct attribute of_span;
    struct sample_attribute_indices of_sample;
};

/* Returns a cursor before the first attribute of the current item. */
struct item_attribute item_attribute_first(struct items *items);
/* Moves to the next attribute; returns false at the end. */
bool item_attribute_next(struct item_attribute *attribute);

/* Applies a rule (core/data/attributes.h) to all attributes of the item, and returns how many of
 * them changed. The rule is asked once for each attribute of a span. Of samples, it is asked once
 * for each entry of the attribute table, and the answer holds for every sample, so one `struct
 * items` takes only one rule. A profile, location or mapping that shares the entry keeps it. */
uint32_t item_edit_attributes(struct items *items, const struct attribute_rule *rule);

/* Returns how many bytes of values the items of a batch may gain together, whatever their number: 4
 * times its size and 1 MiB. Without such a limit, many small items could gain the same large value.
 */
size_t items_values_room(const struct batch *batch);

#endif
