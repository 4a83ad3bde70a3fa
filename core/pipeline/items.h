/*
 * items: every span of a traces batch, or every sample of a profiles batch, one after the other, to
 * read, change or remove it.
 *
 *     struct items items = items_of(batch);
 *     struct slice value;
 *     while (items_next(&items)) {
 *         if (item_get_attribute(&items, SLICE("http.route"), &value)) ...
 *         item_set_attribute(&items, SLICE("env"), production);
 *     }
 *
 * Worked examples, and what each costs: docs/data.md. Reading opens nothing; changing opens the
 * item and the messages above it. Whoever changes most samples of a request in more than one place
 * writes whole profiles instead (docs/data.md, Costs).
 *
 * Owner: the iterator is the caller's and lives no longer than the batch is his; keys and values
 * that are set must live as long as batch->arena.
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
    size_t part;     /* the next one */
    unsigned levels; /* of this signal */
    unsigned level;  /* that is being read; levels: none */
    struct message_iter iters[ITEM_LEVELS_MAX];
    struct message_field fields[ITEM_LEVELS_MAX];
    struct sample_attributes sample_attributes; /* of a profiles batch */
    bool is_removed;                            /* the item */
};

struct items items_of(struct batch *batch);
/* Goes on to the next item; false at the end. */
bool items_next(struct items *items);

/* Over the fields of the item, with what was changed in it. */
struct message_iter item_read(const struct items *items);
/* The item's node, to change it. */
struct message *item_open(struct items *items);
/* Takes the item out of the batch, and out of batch->items. */
void item_remove(struct items *items);

/* The item's attributes; a value is the payload of an AnyValue (core/data/any_value.h). */
/* False when it has none with this key. The value lives as long as the batch's arena. */
bool item_get_attribute(struct items *items, struct slice key, struct slice *value_out);
/* Adds an attribute or gives it another value; false when it has this value already. The unit of
 * a sample's attribute stays. */
bool item_set_attribute(struct items *items, struct slice key, struct slice value);
/* False when there was none. */
bool item_remove_attribute(struct items *items, struct slice key);

/* Returns how many bytes of values the items of a batch may gain together, whatever their number: 4
 * times its size and 1 MiB. Without such a limit, many small items could gain the same large value.
 */
size_t items_values_room(const struct batch *batch);

#endif
