/*
 * sample_attributes: the attributes of samples, by key.
 *
 * A Sample contains indices into the dictionary's attribute_table. These functions look them up,
 * add entries and pack the indices. A long value is read and hashed once per address, not once per
 * sample.
 *
 *     struct slice value;
 *     if (sample_attributes_get(&attributes, sample, SLICE("thread.name"), &value)) ...
 *     if (sample_attributes_set(&attributes, sample, SLICE("env"), production))
 *         sample_attributes_write(&attributes, message_open(&it, &field));
 *
 * `sample` is an iterator at the start of a Sample (message_iter_into). A value is the payload of
 * an AnyValue (any_value.h). Components use core/pipeline/items.h, which calls all of these
 * functions, sample_attributes_write too.
 *
 * Owner: allocated in the batch's arena, like the dictionary. Values that you set must stay valid
 * and unchanged as long as the arena, because a long value is recognised by its address.
 *
 * Thread: the worker that owns the batch.
 */
#ifndef PROFCOL_CORE_DATA_SAMPLE_ATTRIBUTES_H
#define PROFCOL_CORE_DATA_SAMPLE_ATTRIBUTES_H

#include "core/base/index_table.h"
#include "core/data/attributes.h"
#include "core/data/dictionary.h"

/* One struct serves all samples of a request. Its members belong to sample_attributes.c. */
struct sample_attributes {
    struct dictionary *dictionary;
    struct arena *arena;
    uint32_t *indices; /* of one sample */
    uint32_t count;
    uint32_t capacity;
    uint32_t *keys; /* for each entry of the attribute_table: the index of its key in the
                       string_table, plus 1 */
    uint32_t key_count;
    /* Long values that were set, found by their address. */
    struct long_value *long_values;
    uint32_t long_value_count;
    uint32_t long_value_capacity;
    struct index_table by_place;
    /* For each entry of the attribute_table, what `rule` decided about it; 0: not asked yet. */
    uint32_t *decisions;
    uint32_t decision_count;
    struct attribute_rule rule; /* of sample_attributes_edit */
};

/* Goes over the attributes of one sample: {.sample = iterator at the start of the Sample}. */
struct sample_attribute_indices {
    struct message_iter sample;
    struct wire_cursor packed; /* the rest of a packed field */
};

/* Returns an empty struct for the samples of one request. */
struct sample_attributes sample_attributes_init(struct dictionary *dictionary, struct arena *arena);

/* Gets the value of the first attribute with this key; returns false if there is none. */
bool sample_attributes_get(struct sample_attributes *attributes, struct message_iter sample,
                           struct slice key, struct slice *value_out);
/* Sets the value of the attribute and keeps its unit; adds an attribute without a unit if there is
 * none. Returns true if this changes the sample: then call sample_attributes_write. */
bool sample_attributes_set(struct sample_attributes *attributes, struct message_iter sample,
                           struct slice key, struct slice value);
/* Removes all attributes with this key. Returns true if this changes the sample, too. */
bool sample_attributes_remove(struct sample_attributes *attributes, struct message_iter sample,
                              struct slice key);
/* Moves to the next attribute; returns false at the end. *entry_out: its index in the
 * attribute_table, which is not 0. */
bool sample_attributes_next(const struct sample_attributes *attributes,
                            struct sample_attribute_indices *indices, uint32_t *entry_out,
                            struct slice *key_out, struct slice *value_out);
/* Applies the rule to all attributes of the sample, and returns how many changed; above 0, call
 * sample_attributes_write. The rule is asked once for each entry of the table, not for each sample,
 * so it must be the same for all samples. An entry that changes stays in the table for those that
 * share it (dictionary_add_entry). */
uint32_t sample_attributes_edit(struct sample_attributes *attributes, struct message_iter sample,
                                const struct attribute_rule *rule);
/* Writes the list of indices that the last call of _set, _remove or _edit has made to the sample
 * that was passed to it. */
void sample_attributes_write(struct sample_attributes *attributes, struct message *sample);

#endif
