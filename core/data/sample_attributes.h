/*
 * sample_attributes: the attributes of samples, by key.
 *
 * A Sample holds numbers of entries of the dictionary's attribute table. Here they are looked up,
 * added and packed. A value that is long is read and hashed once for each place that it has in
 * memory, not once for each sample.
 *
 *     struct slice value;
 *     if (sample_attributes_get(&attributes, sample, SLICE("thread.name"), &value)) ...
 *     if (sample_attributes_set(&attributes, sample, SLICE("env"), production))
 *         sample_attributes_write(&attributes, message_open(&it, &field));
 *
 * `sample` is an iterator at the start of a Sample (message_iter_into). A value is the payload of
 * an AnyValue (any_value.h). Components use core/pipeline/items.h, which writes by itself.
 *
 * Owner: the batch's arena, as the dictionary. Values that are set must live as long and stay as
 * they are: a long one is known by its address.
 *
 * Thread: the worker that owns the batch.
 */
#ifndef PROFCOL_CORE_DATA_SAMPLE_ATTRIBUTES_H
#define PROFCOL_CORE_DATA_SAMPLE_ATTRIBUTES_H

#include "core/base/index_table.h"
#include "core/data/dictionary.h"

/* One for all samples of a request. */
struct sample_attributes {
    struct dictionary *dictionary;
    struct arena *arena;
    uint32_t *indices; /* of one sample */
    uint32_t count;
    uint32_t capacity;
    uint32_t *keys; /* of the attribute table: the key's number in the string table, plus 1 */
    uint32_t key_count;
    /* Long values that were set, by where they are in memory. */
    struct long_value *long_values;
    uint32_t long_value_count;
    uint32_t long_value_capacity;
    struct index_table by_place;
};

struct sample_attributes sample_attributes_init(struct dictionary *dictionary, struct arena *arena);

/* The value of the first attribute with this key; false when there is none. */
bool sample_attributes_get(struct sample_attributes *attributes, struct message_iter sample,
                           struct slice key, struct slice *value_out);
/* Gives the attribute another value, and keeps its unit; adds one without a unit when there is
 * none. True when the sample changes by that: then sample_attributes_write must follow. */
bool sample_attributes_set(struct sample_attributes *attributes, struct message_iter sample,
                           struct slice key, struct slice value);
/* Takes out all attributes with this key. True as above. */
bool sample_attributes_remove(struct sample_attributes *attributes, struct message_iter sample,
                              struct slice key);
/* Puts what the last call decided into the sample. */
void sample_attributes_write(struct sample_attributes *attributes, struct message *sample);

#endif
