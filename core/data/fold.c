#include "core/data/fold.h"

#include "core/base/arena.h"
#include "core/base/saturate.h"
#include "core/data/equal_entries.h"
#include "core/data/fold_attributes.h"
#include "core/data/fold_groups.h"
#include "core/data/sample_fields.h"

#include <math.h>

/* ---- state ---- */

/* Samples that do not stay, one after another, and the groups that they begin, which are written in
 * their place. */
struct fold_run {
    const uint8_t *start, *end;
    uint32_t first_group, group_end;
};

/* What stays of the attributes of known samples. */
struct known_list {
    struct fold_attributes_result stays;
    bool is_set;
};

enum combining { FOLDS, MOVES, STRIPS, COMBININGS };

struct folding {
    const struct fold_rule *rule;
    struct dictionary *dictionary;
    struct arena *arena; /* of the batch */
    struct fold_result result;
    struct arena request_scratch; /* also of what `attributes` remembers: lists of attributes */
    struct equal_entries equals;
    struct fold_attributes attributes;
    struct known_list *known_lists; /* those of the rule */
    uint32_t next_sample;
    /* Of the profile that is being read: */
    struct arena scratch;
    struct fold_run *runs;
    uint32_t run_count, run_capacity;
    struct fold_groups groups;
    double carried; /* what rounding has taken away */
};

/* ---- what a rule sees ---- */

static bool is_zero_id(struct slice id)
{
    for (size_t i = 0; i < id.size; i++)
        if (id.data[i] != 0)
            return false;
    return true;
}

static struct fold_sample seen_by_rule(struct folding *folding, const struct sample_layout *layout)
{
    struct fold_sample sample = {.stack = layout->stack};
    if (layout->link == 0 || folding->rule->ignores_ids)
        return sample;
    struct dictionary_link link = dictionary_link(folding->dictionary, layout->link);
    if (!is_zero_id(link.trace_id))
        sample.trace_id = link.trace_id;
    if (!is_zero_id(link.span_id))
        sample.span_id = link.span_id;
    return sample;
}

/* ---- folding ---- */

/* Returns the sum of the values; without values, the number of timestamps. */
static int64_t sum_any(struct slice values, struct slice timestamps)
{
    struct wire_cursor packed = wire_cursor(values);
    int64_t sum = 0;
    if (values.size == 0)
        return (int64_t)(timestamps.size / sizeof(uint64_t));
    if (sample_single_value_any(values, (uint64_t *)&sum))
        return sum;
    sum = 0;
    for (uint64_t value; wire_packed_varint(&packed, &value);)
        sum = saturate_add(sum, (int64_t)value);
    return sum;
}

static inline int64_t sum_of(struct slice values, struct slice timestamps)
{
    uint64_t value;
    return wire_packed_single(values, &value) ? (int64_t)value : sum_any(values, timestamps);
}

/* Returns how a sample is combined with others, and its only value. */
static enum fold_shape shape_of(const struct sample_fields *sample, bool is_stripped,
                                int64_t *value_out)
{
    bool single = true;
    if (is_stripped)
        *value_out = sum_of(sample->layout.values, sample->layout.timestamps);
    else
        single = sample_single_value(sample->layout.values, (uint64_t *)value_out);
    if (sample->others.size > 0)
        return SHAPE_APART;
    if (sample->layout.timestamps.size > 0 && !is_stripped)
        return sample->layout.values.size > 0 ? SHAPE_PAIRS : SHAPE_TIMESTAMPS;
    return single ? SHAPE_SUM : SHAPE_APART;
}

static inline const struct fold_gain *gain_of(const struct folding *folding, enum combining how)
{
    static const struct fold_gain nothing;
    const struct fold_rule *rule = folding->rule;
    const struct fold_gain *gain =
        how != MOVES && rule->gains ? rule->gains(rule->context) : &nothing;
    return gain ? gain : &nothing;
}

static const enum fold_attributes_change changes[COMBININGS] = {[FOLDS] = FOLD_ATTRIBUTES_TAKEN,
                                                                [MOVES] = FOLD_ATTRIBUTES_SORTED,
                                                                [STRIPS] = FOLD_ATTRIBUTES_KEPT};

static void keep_apart(struct folding *folding, const struct fold_key *key,
                       const struct sample_fields *sample, bool is_stripped)
{
    const struct sample_layout *layout = &sample->layout;
    if (is_stripped)
        fold_groups_keep_value(&folding->groups, key, sum_of(layout->values, layout->timestamps),
                               sample->others);
    else
        fold_groups_keep_apart(&folding->groups, key, layout->values, layout->timestamps,
                               sample->others);
}

/* Sets what others refer to by the first of equal entries. Readers that add what is stripped make
 * no equal ones. */
static void find_first(struct folding *folding, struct fold_key *key)
{
    key->stack = equal_entries_first(&folding->equals, DICTIONARY_STACK_TABLE, key->stack);
    key->link = equal_entries_first(&folding->equals, DICTIONARY_LINK_TABLE, key->link);
}

/* ---- combining ---- */

/* Adds a sample to a group, or begins one. key: without its shape. */
static void combine_one(struct folding *folding, const struct sample_fields *sample,
                        enum combining how, bool is_stripped, struct fold_key *key)
{
    const struct sample_layout *layout = &sample->layout;
    const struct fold_rule *rule = folding->rule;
    int64_t value;
    bool is_new;
    key->shape = shape_of(sample, is_stripped, &value);
    if (rule->stack)
        key->stack = rule->stack(rule->context, layout->stack);
    if (key->shape == SHAPE_APART) {
        keep_apart(folding, key, sample, is_stripped);
        return;
    }
    if (how != STRIPS)
        find_first(folding, key);
    uint32_t group = fold_groups_find(&folding->groups, key, &is_new);
    if (key->shape == SHAPE_SUM)
        fold_groups_sum(&folding->groups, group, value);
    else
        fold_groups_append(&folding->groups, group, layout->values, layout->timestamps);
}

/* ---- weighing ---- */

/* Returns the value times the weight, as an integer; a value beyond 64 bits becomes the limit. */
static int64_t weighed(struct folding *folding, int64_t value)
{
    double exact = (double)value * folding->rule->weight + folding->carried;
    double rounded = round(exact);
    if (rounded >= 9223372036854775808.0)
        return INT64_MAX;
    if (rounded <= -9223372036854775808.0)
        return INT64_MIN;
    folding->carried = exact - rounded;
    return (int64_t)rounded;
}

/* Writes the weighed values of a sample; without values, those of so many timestamps. */
static struct slice weigh_values(struct folding *folding, struct slice values, size_t timestamps)
{
    enum { VALUE_MAX_BYTES = 10 };
    size_t count = values.size > 0 ? values.size : timestamps; /* at least a byte for each value */
    uint8_t *list = arena_alloc(&folding->scratch, count * VALUE_MAX_BYTES), *to = list;
    struct wire_cursor packed = wire_cursor(values);
    for (uint64_t value; wire_packed_varint(&packed, &value);)
        to = wire_write_varint(to, (uint64_t)weighed(folding, (int64_t)value));
    if (values.size == 0)
        for (size_t i = 0; i < count; i++)
            to = wire_write_varint(to, (uint64_t)weighed(folding, 1));
    return slice_of(list, (size_t)(to - list));
}

static void weigh_one(struct folding *folding, const struct sample_fields *sample)
{
    const struct sample_layout *layout = &sample->layout;
    int64_t value;
    struct fold_key key = {.stack = layout->stack, .link = layout->link, .shape = SHAPE_APART};
    key.list =
        fold_attributes_change(&folding->attributes, layout->attributes, FOLD_ATTRIBUTES_KEPT).list;
    if (layout->timestamps.size == 0 && sample_single_value(layout->values, (uint64_t *)&value)) {
        fold_groups_keep_value(&folding->groups, &key, weighed(folding, value), sample->others);
        return;
    }
    struct slice values =
        weigh_values(folding, layout->values, layout->timestamps.size / sizeof(uint64_t));
    fold_groups_keep_apart(&folding->groups, &key, values, layout->timestamps, sample->others);
}

/* ---- a profile ---- */

static void combine(struct folding *folding, const struct sample_fields *sample, enum combining how)
{
    const struct sample_layout *layout = &sample->layout;
    uint32_t groups = folding->groups.count;
    struct fold_attributes *attributes = &folding->attributes;
    struct fold_attributes_result stays =
        fold_attributes_change(attributes, layout->attributes, changes[how]);
    struct slice gains = gain_of(folding, how)->attributes;
    struct fold_key key = {.stack = layout->stack,
                           .link = how == FOLDS ? 0 : layout->link,
                           .list =
                               fold_attributes_add(attributes, stays.list, gains, changes[how])};
    combine_one(folding, sample, how, stays.is_stripped, &key);
    folding->result.combined += folding->groups.count - groups;
}

/* Keeps a sample as it is. */
static void stay(struct folding *folding, const struct sample_layout *layout)
{
    const struct sample_references references = {layout->stack, layout->link, layout->attributes};
    if (folding->rule->marks)
        sample_marks_add(folding->rule->marks, &references);
}

/* Keeps a sample, but for what is stripped. Returns whether it stays as it is. */
static bool keep(struct folding *folding, const struct sample_fields *sample)
{
    folding->result.kept++;
    if (folding->rule->stripped_count == 0) {
        stay(folding, &sample->layout);
        return true;
    }
    struct fold_attributes_result stays = fold_attributes_change(
        &folding->attributes, sample->layout.attributes, FOLD_ATTRIBUTES_KEPT);
    if (!stays.is_stripped) {
        stay(folding, &sample->layout);
        return true;
    }
    uint32_t groups = folding->groups.count;
    const struct fold_gain *gain = gain_of(folding, STRIPS);
    struct fold_key key = {.stack = sample->layout.stack,
                           .link = gain->link > 0 ? gain->link : sample->layout.link,
                           .list = fold_attributes_add(&folding->attributes, stays.list,
                                                       gain->attributes, FOLD_ATTRIBUTES_KEPT)};
    combine_one(folding, sample, STRIPS, true, &key);
    folding->result.merged += folding->groups.count == groups;
    return false;
}

/* ---- known samples ---- */

/* Returns the next sample if it is known; otherwise NULL. */
static inline const struct fold_known_sample *take_known(struct folding *folding)
{
    if (!folding->known_lists)
        return NULL;
    const struct fold_known_sample *known = &folding->rule->known->samples[folding->next_sample++];
    assert(known->list <= folding->rule->known->list_count);
    return known->list > 0 ? known : NULL;
}

static inline struct fold_attributes_result stays_of_known(struct folding *folding,
                                                           const struct fold_known_sample *known)
{
    struct known_list *list = &folding->known_lists[known->list - 1];
    if (!list->is_set)
        *list =
            (struct known_list){fold_attributes_change(&folding->attributes,
                                                       folding->rule->known->lists[known->list - 1],
                                                       FOLD_ATTRIBUTES_KEPT),
                                true};
    return list->stays;
}

/* Does what `keep` does. Neither whether it gains something is asked, nor whether it begins a
 * group, because no branch would predict it. */
static inline bool keep_known(struct folding *folding, const struct fold_known_sample *known)
{
    struct fold_attributes_result stays = stays_of_known(folding, known);
    bool is_new;
    folding->result.kept++;
    if (!stays.is_stripped) {
        const struct sample_layout layout = {
            .stack = known->stack, .attributes = folding->rule->known->lists[known->list - 1]};
        stay(folding, &layout);
        return true;
    }
    const struct fold_gain *gain = gain_of(folding, STRIPS);
    const struct fold_key key = {.stack = known->stack,
                                 .link = gain->link,
                                 .list = fold_attributes_add_known(&folding->attributes, stays.list,
                                                                   gain->attributes,
                                                                   FOLD_ATTRIBUTES_KEPT),
                                 .shape = SHAPE_SUM};
    uint32_t groups = folding->groups.count;
    uint32_t group = fold_groups_find(&folding->groups, &key, &is_new);
    fold_groups_sum(&folding->groups, group, known->value);
    folding->result.merged += folding->groups.count == groups;
    return false;
}

/* ---- any samples ---- */

static inline enum fold_decision decision_of(const struct folding *folding,
                                             const struct fold_sample *seen)
{
    const struct fold_rule *rule = folding->rule;
    return rule->decide ? rule->decide(rule->context, seen) : FOLD_KEEP;
}

/* Returns whether the sample stays as it is; so do the next functions. */
static bool apply(struct folding *folding, const struct sample_fields *sample,
                  enum fold_decision decision)
{
    struct fold_result *result = &folding->result;
    switch (decision) {
    case FOLD_FOLD:
        result->folded++;
        combine(folding, sample, FOLDS);
        return false;
    case FOLD_MOVE:
        result->moved++;
        combine(folding, sample, MOVES);
        return false;
    case FOLD_WEIGH:
        result->kept++;
        weigh_one(folding, sample);
        return false;
    case FOLD_DROP:
        result->dropped++;
        return false;
    case FOLD_KEEP:
        break;
    }
    return keep(folding, sample);
}

static bool decide_read(struct folding *folding, struct slice raw)
{
    struct sample_fields sample;
    sample_fields_read(raw, &folding->request_scratch, &sample);
    struct fold_sample seen = {.stack = sample.layout.stack};
    if (folding->rule->decide)
        seen = seen_by_rule(folding, &sample.layout);
    return apply(folding, &sample, decision_of(folding, &seen));
}

static inline bool decide(struct folding *folding, struct slice raw)
{
    const struct fold_known_sample *known = take_known(folding);
    if (!known)
        return decide_read(folding, raw);
    const struct fold_sample seen = {.stack = known->stack};
    enum fold_decision decision = decision_of(folding, &seen);
    if (decision == FOLD_KEEP)
        return keep_known(folding, known);
    struct sample_fields sample;
    sample_fields_read(raw, &folding->request_scratch, &sample);
    return apply(folding, &sample, decision);
}

/* Notes a sample that does not stay. groups: their number before it. */
static inline void note_run(struct folding *folding, const uint8_t *start, const uint8_t *end,
                            uint32_t groups)
{
    struct fold_run *last = folding->run_count > 0 ? &folding->runs[folding->run_count - 1] : NULL;
    if (last && last->end == start) {
        last->end = end;
        last->group_end = folding->groups.count;
        return;
    }
    folding->runs = arena_grow(&folding->scratch, folding->runs, folding->run_count,
                               &folding->run_capacity, sizeof *folding->runs);
    folding->runs[folding->run_count++] =
        (struct fold_run){start, end, groups, folding->groups.count};
}

/* Of a profile with a group for each so many bytes, none need be put in another place. */
enum { GROUP_BYTES = 64 };

/* Decides about all samples of a profile. Without runs afterwards, nothing in it changes. */
static void decide_all(struct folding *folding, struct slice profile)
{
    struct wire_cursor cursor = wire_cursor(profile);
    struct wire_field field;
    fold_groups_expect(&folding->groups, (uint32_t)(profile.size / GROUP_BYTES));
    if (folding->rule->begin_profile)
        folding->rule->begin_profile(folding->rule->context, profile);
    for (struct slice sample;;) {
        const uint8_t *start = cursor.next;
        if (!wire_take_short(&cursor, PROFILE_SAMPLES << 3 | WIRE_BYTES, &sample)) {
            if (!wire_next_bytes(&cursor, PROFILE_SAMPLES, &field))
                break;
            start = field.start;
            sample = field.bytes;
        }
        uint32_t groups = folding->groups.count;
        if (!decide(folding, sample))
            note_run(folding, start, cursor.next, groups);
    }
    assert(!cursor.broken);
}

/* Returns the size of the profile as it is written. */
static size_t measure_profile(struct folding *folding, struct slice profile)
{
    size_t size = profile.size;
    for (uint32_t i = 0; i < folding->run_count; i++) {
        const struct fold_run *run = &folding->runs[i];
        size -= (size_t)(run->end - run->start);
        for (uint32_t group = run->first_group; group < run->group_end; group++)
            size += fold_groups_measure(&folding->groups, group);
    }
    return size;
}

static uint8_t *copy_run(uint8_t *to, const uint8_t *from, const uint8_t *end)
{
    size_t size = (size_t)(end - from);
    if (size > 0)
        memcpy(to, from, size);
    return to + size;
}

static uint8_t *write_group(struct folding *folding, uint32_t group, uint8_t *to)
{
    if (folding->rule->marks)
        fold_groups_mark(&folding->groups, group, folding->rule->marks);
    return fold_groups_write(&folding->groups, group, to);
}

static struct slice write_profile(struct folding *folding, struct slice profile)
{
    size_t size = measure_profile(folding, profile);
    uint8_t *data = arena_alloc(folding->arena, size), *to = data;
    const uint8_t *unwritten = profile.data;
    for (uint32_t i = 0; i < folding->run_count; i++) {
        const struct fold_run *run = &folding->runs[i];
        to = copy_run(to, unwritten, run->start);
        for (uint32_t group = run->first_group; group < run->group_end; group++)
            to = write_group(folding, group, to);
        unwritten = run->end;
    }
    to = copy_run(to, unwritten, profile.data + profile.size);
    assert(to == data + size);
    return slice_of(data, size);
}

/* ---- a request ---- */

/* Forgets the profile that was read. */
static void reset(struct folding *folding)
{
    arena_deinit(&folding->scratch);
    folding->runs = NULL;
    folding->run_count = folding->run_capacity = 0;
    folding->groups =
        (struct fold_groups){.arena = &folding->scratch, .attributes = &folding->attributes};
    folding->carried = 0;
}

/* Returns the profile as plain bytes, written out if it was changed. */
static struct slice plain_profile(struct folding *folding, const struct message_field *field)
{
    if (!field->node || !field->node->changed)
        return field->wire.bytes;
    size_t size = message_measure(field->node);
    uint8_t *data = arena_alloc(&folding->request_scratch, size);
    message_write(field->node, data);
    return slice_of(data, size);
}

/* The iterators of a profile and of what contains it, as they are opened for a change. */
struct fold_way {
    struct message_iter groups, scopes, profiles;
    struct message_field group, scope, profile;
};

static void fold_profile(struct folding *folding, struct fold_way *way)
{
    struct slice profile = plain_profile(folding, &way->profile);
    uint32_t before = folding->result.kept + folding->result.combined;
    decide_all(folding, profile);
    if (folding->run_count > 0 && !folding->rule->counts_only) {
        message_iter_open(&way->scopes, &way->groups, &way->group);
        message_iter_open(&way->profiles, &way->scopes, &way->scope);
        if (folding->result.kept + folding->result.combined == before)
            message_remove(&way->profiles, &way->profile);
        else
            message_replace(&way->profiles, &way->profile, write_profile(folding, profile));
    }
    reset(folding);
}

static void fold_all(struct folding *folding, struct message *root)
{
    struct fold_way way = {.groups = message_iter(root, folding->arena)};
    while (message_next_bytes(&way.groups, PROFILES_RESOURCE_PROFILES, &way.group)) {
        way.scopes = message_iter_into(&way.group, folding->arena);
        while (message_next_bytes(&way.scopes, RESOURCE_PROFILES_SCOPE_PROFILES, &way.scope)) {
            way.profiles = message_iter_into(&way.scope, folding->arena);
            while (message_next_bytes(&way.profiles, SCOPE_PROFILES_PROFILES, &way.profile))
                fold_profile(folding, &way);
        }
    }
}

struct fold_result profiles_fold(struct message *root, struct dictionary *dictionary,
                                 struct arena *arena, const struct fold_rule *rule)
{
    struct folding folding = {.rule = rule, .dictionary = dictionary, .arena = arena};
    arena_init(&folding.request_scratch, arena->budget);
    arena_init(&folding.scratch, arena->budget);
    const struct fold_keys keys = {rule->keys, rule->key_count, rule->stripped_keys,
                                   rule->stripped_count};
    equal_entries_init(&folding.equals, dictionary, &folding.request_scratch);
    fold_attributes_init(&folding.attributes, &keys, &folding.equals, &folding.request_scratch);
    for (size_t i = 0; i < rule->taken_count; i++)
        fold_attributes_take(&folding.attributes, rule->taken[i]);
    assert(!rule->known || !rule->stack);
    if (rule->known && rule->stripped_count > 0)
        folding.known_lists = arena_array(&folding.request_scratch, rule->known->list_count,
                                          sizeof *folding.known_lists);
    reset(&folding);
    fold_all(&folding, root);
    equal_entries_deinit(&folding.equals);
    arena_deinit(&folding.request_scratch);
    return folding.result;
}
