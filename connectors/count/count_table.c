#include "connectors/count/count_table.h"

#include "core/base/hash.h"
#include "core/data/any_value.h"

#include <assert.h>

/* Where the numbers of a set begin. */
enum { NUMBER_OF_RESOURCE, NUMBER_OF_METRIC, FIRST_VALUE };

/* About what a value takes in the table, and a set in the table and as a data point, without the
 * bytes of its values. */
enum { VALUE_BYTES = 48, SET_BYTES = 96 };

static bool take_room(struct count_table *table, size_t size)
{
    if (size > table->room)
        return false;
    table->room -= size;
    return true;
}

/* ---- values ---- */

uint32_t count_table_value(struct count_table *table, struct slice value)
{
    /* A payload may repeat its member; only the last one is the value. */
    struct slice last = any_value_is_short_string(value) ? value : any_value_last_member(value);
    index_table_reserve(&table->by_value, 1, &table->arena);
    struct index_probe probe = index_table_probe(&table->by_value, (uint32_t)hash_bytes(last));
    for (uint32_t number; index_table_next(&table->by_value, &probe, &number);)
        if (slice_equal(table->values[number], last))
            return number;
    if (!take_room(table, VALUE_BYTES))
        return OTHER_VALUE;
    assert(table->value_count >= FIRST_VALUE_NUMBER);
    index_table_add(&table->by_value, &probe, table->value_count);
    table->values = arena_grow(&table->arena, table->values, table->value_count,
                               &table->value_capacity, sizeof *table->values);
    table->values[table->value_count] = last;
    return table->value_count++;
}

uint32_t count_table_key(const struct count_table *table, struct slice key)
{
    uint32_t i = 0;
    while (i < table->keys->count && !slice_equal(table->keys->keys[i], key))
        i++;
    return i;
}

/* ---- sets ---- */

/* Looks up the values of the metric's attributes. Returns false if the item lacks one. */
static bool find_values(struct count_table *table, const struct count_metric *metric,
                        const struct tally *tally, const struct value_sources *sources)
{
    const struct count_attribute *attributes = count_attributes_of(metric);
    for (size_t i = 0; i < metric->attributes.count; i++) {
        uint32_t key = attributes[i].position;
        assert(key < table->keys->count);
        uint32_t value = sources->item[key];
        value = value ? value : sources->scope[key];
        value = value ? value : sources->resource[key];
        value = value ? value : tally->defaults[i];
        if (value == NO_VALUE)
            return false;
        table->numbers[FIRST_VALUE + i] = value;
    }
    table->numbers[NUMBER_OF_RESOURCE] = table->resource;
    table->numbers[NUMBER_OF_METRIC] = tally->number;
    return true;
}

/* Takes room for the set and the bytes of its values. Returns false if there is too little. */
static bool take_room_for_set(struct count_table *table, size_t value_count)
{
    size_t size = SET_BYTES;
    for (size_t i = 0; i < value_count; i++) {
        uint32_t value = table->numbers[FIRST_VALUE + i];
        if (value == OTHER_VALUE)
            return false;
        size += table->values[value].size;
    }
    return take_room(table, size);
}

static uint32_t add_set(struct count_table *table, size_t numbers_size, struct tally *tally)
{
    table->sets = arena_grow(&table->arena, table->sets, table->set_count, &table->set_capacity,
                             sizeof *table->sets);
    uint32_t number = table->set_count++;
    struct slice numbers = arena_copy(&table->arena, slice_of(table->numbers, numbers_size));
    table->sets[number] =
        (struct count_set){.numbers = (const uint32_t *)(const void *)numbers.data};
    if (tally->first_set == NO_SET)
        tally->first_set = number;
    else
        table->sets[tally->last_set].next = number;
    tally->last_set = number;
    tally->set_count++;
    return number;
}

/* Returns the set of table->numbers, which it adds if it is new; NO_SET if there is no room. */
static uint32_t find_set(struct count_table *table, size_t value_count, struct tally *tally)
{
    size_t size = (FIRST_VALUE + value_count) * sizeof *table->numbers;
    index_table_reserve(&table->by_numbers, 1, &table->arena);
    uint32_t hash = (uint32_t)hash_bytes(slice_of(table->numbers, size));
    struct index_probe probe = index_table_probe(&table->by_numbers, hash);
    for (uint32_t number; index_table_next(&table->by_numbers, &probe, &number);) {
        /* The same metric has as many numbers. */
        const uint32_t *numbers = table->sets[number].numbers;
        if (numbers[NUMBER_OF_METRIC] == tally->number &&
            memcmp(numbers, table->numbers, size) == 0)
            return number;
    }
    if (!take_room_for_set(table, value_count))
        return NO_SET;
    uint32_t number = add_set(table, size, tally);
    index_table_add(&table->by_numbers, &probe, number);
    return number;
}

static void add_to_metric(struct count_table *table, const struct count_metric *metric,
                          struct tally *tally, const struct value_sources *sources)
{
    bool has_attributes = metric->attributes.count > 0;
    if (has_attributes && !find_values(table, metric, tally, sources))
        return;
    if (metric->conditions.count > 0 && !count_conditions_match(table->conditions, metric))
        return;
    if (!has_attributes) {
        tally->plain++;
        return;
    }
    uint32_t set = find_set(table, metric->attributes.count, tally);
    if (set == NO_SET)
        tally->overflow++;
    else
        table->sets[set].count++;
}

void count_table_add(struct count_table *table, enum counted kind,
                     const struct value_sources *sources)
{
    const struct count_metric *metrics = count_metrics_of(table->settings, kind);
    for (size_t i = 0; i < table->settings->sections[kind]->count; i++)
        add_to_metric(table, &metrics[i], &table->tallies[kind][i], sources);
}

struct slice count_set_value(const struct count_table *table, const struct count_set *set,
                             size_t attribute)
{
    uint32_t value = set->numbers[FIRST_VALUE + attribute];
    assert(value >= FIRST_VALUE_NUMBER && value < table->value_count);
    return table->values[value];
}

/* ---- begin and end ---- */

static const uint32_t *number_defaults(struct count_table *table, const struct count_metric *metric)
{
    const struct count_attribute *attributes = count_attributes_of(metric);
    uint32_t *numbers = arena_array(&table->arena, metric->attributes.count, sizeof *numbers);
    for (size_t i = 0; i < metric->attributes.count; i++)
        if (attributes[i].default_value)
            numbers[i] = count_table_value(table, attributes[i].encoded_default);
    return numbers;
}

/* Returns the largest number of attributes of these metrics. */
static size_t make_tallies(struct count_table *table, enum counted kind, uint32_t *metric_count)
{
    const struct config_list *section = table->settings->sections[kind];
    const struct count_metric *metrics = section->items;
    size_t attributes_max = 0;
    if (section->count == 0)
        return 0;
    table->tallies[kind] = arena_array(&table->arena, section->count, sizeof(struct tally));
    for (size_t i = 0; i < section->count; i++) {
        table->tallies[kind][i].number = (*metric_count)++;
        table->tallies[kind][i].defaults = number_defaults(table, &metrics[i]);
        if (metrics[i].attributes.count > attributes_max)
            attributes_max = metrics[i].attributes.count;
    }
    return attributes_max;
}

void count_table_begin(struct count_table *table, struct count_conditions *conditions,
                       enum signal signal, size_t room, struct budget *budget)
{
    size_t attributes_max = 0;
    uint32_t metric_count = 0;
    const struct count_settings *settings = conditions->settings;
    *table = (struct count_table){.settings = settings,
                                  .conditions = conditions,
                                  .keys = &settings->keys[signal],
                                  .room = room,
                                  .value_count = FIRST_VALUE_NUMBER,
                                  .set_count = NO_SET + 1};
    arena_init(&table->arena, budget);
    table->values =
        arena_grow(&table->arena, NULL, 0, &table->value_capacity, sizeof *table->values);
    table->sets = arena_grow(&table->arena, NULL, 0, &table->set_capacity, sizeof *table->sets);
    for (int kind = COUNTED_NOTHING + 1; kind < COUNTED_KINDS; kind++) {
        if (count_signal_of((enum counted)kind) != signal)
            continue;
        size_t attributes = make_tallies(table, (enum counted)kind, &metric_count);
        attributes_max = attributes > attributes_max ? attributes : attributes_max;
    }
    table->numbers =
        arena_array(&table->arena, FIRST_VALUE + attributes_max, sizeof *table->numbers);
}

void count_table_end(struct count_table *table)
{
    arena_deinit(&table->arena);
}

void count_table_next_resource(struct count_table *table)
{
    for (int kind = COUNTED_NOTHING + 1; kind < COUNTED_KINDS; kind++)
        for (size_t i = 0; table->tallies[kind] && i < table->settings->sections[kind]->count;
             i++) {
            struct tally *tally = &table->tallies[kind][i];
            *tally = (struct tally){.number = tally->number, .defaults = tally->defaults};
        }
    table->resource++;
}
