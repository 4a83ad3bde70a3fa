/*
 * count_table: counts by metric, resource and combination of attribute values.
 *
 *     count_table_begin(&table, conditions, signal, room, budget);
 *     count_table_add(&table, COUNTED_SPANS, sources);    // of the first resource
 *     ... tally_of(&table, COUNTED_SPANS)[0].plain ...
 *     count_table_next_resource(&table);
 *     count_table_end(&table);
 *
 * Each value gets a number, and equal values the same one, so a combination is a list of numbers.
 * A value is hashed and compared where it is read: once for a resource, a scope, an item or an
 * entry of a dictionary, whatever refers to it. An item without attributes to read costs an
 * addition for each metric.
 *
 * Combinations and values have a limit together (`room`), in proportion to the size of the request:
 * a request may have a new value every ten bytes, and many combinations may share a large value,
 * which each data point repeats. What comes after that counts as `overflow`.
 *
 * Owner: the caller; values are those of the batch. The memory is charged to the budget.
 *
 * Thread: one at a time.
 */
#ifndef PROFCOL_CONNECTORS_COUNT_COUNT_TABLE_H
#define PROFCOL_CONNECTORS_COUNT_COUNT_TABLE_H

#include "connectors/count/count_conditions.h"
#include "core/base/arena.h"
#include "core/base/index_table.h"

/* OTHER_VALUE: any value that came when the room was used up. It is in no set. */
enum { NO_VALUE, OTHER_VALUE, FIRST_VALUE_NUMBER };
enum { NO_SET = 0 };

/* One combination of values, in one resource. */
struct count_set {
    uint64_t count;
    /* The numbers of the resource and of the metric, and of the value of each attribute. */
    const uint32_t *numbers;
    uint32_t next; /* of the same metric and resource; NO_SET: the last one */
};

/* The counts of one metric in the current resource. */
struct tally {
    uint64_t plain;    /* of a metric without attributes */
    uint64_t overflow; /* in no set, because `room` is used up */
    uint32_t first_set;
    uint32_t last_set;
    uint32_t set_count;
    uint32_t number;          /* of the metric in the table */
    const uint32_t *defaults; /* value numbers, for each attribute; NO_VALUE: none */
};

/* The values of an item for each of the signal's keys, and of its scope and resource. */
struct value_sources {
    const uint32_t *item;
    const uint32_t *scope;
    const uint32_t *resource;
};

struct count_table {
    const struct count_settings *settings;
    struct count_conditions *conditions;
    const struct count_keys *keys;
    struct arena arena;
    size_t room; /* bytes for further values and sets */
    uint32_t resource;
    struct tally *tallies[COUNTED_KINDS]; /* for each metric; NULL: nothing of this kind */
    uint32_t *numbers;                    /* of the set that is looked up */
    struct slice *values;                 /* the payload of an AnyValue */
    uint32_t value_count;
    uint32_t value_capacity;
    struct index_table by_value;
    struct count_set *sets; /* 0 is no set */
    uint32_t set_count;
    uint32_t set_capacity;
    struct index_table by_numbers;
};

/* Begins with the first resource. conditions: they, and their settings, must outlive the table.
 * room: bytes. */
void count_table_begin(struct count_table *table, struct count_conditions *conditions,
                       enum signal signal, size_t room, struct budget *budget);
void count_table_end(struct count_table *table);
/* Forgets the counts of the resource. */
void count_table_next_resource(struct count_table *table);

/* Returns the number of a value, the payload of an AnyValue; OTHER_VALUE if there is no room for a
 * new one. */
uint32_t count_table_value(struct count_table *table, struct slice value);
/* Returns the position of a key among those that are read; table->keys->count if it is not. */
uint32_t count_table_key(const struct count_table *table, struct slice key);
/* Counts one item for each metric of its kind whose conditions want it. An item that lacks an
 * attribute, and has no default for it, does not count. */
void count_table_add(struct count_table *table, enum counted kind,
                     const struct value_sources *sources);
/* Returns the value of an attribute of the set's metric. */
struct slice count_set_value(const struct count_table *table, const struct count_set *set,
                             size_t attribute);
/* Whether something of this kind is counted. */
static inline bool count_table_has(const struct count_table *table, enum counted kind)
{
    return table->tallies[kind] != NULL;
}

#endif
