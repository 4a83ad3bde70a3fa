#include "core/data/fold.h"

#include "core/base/arena.h"
#include "core/base/saturate.h"
#include "core/data/fold_groups.h"
#include "core/data/sample_fields.h"

#include <math.h>

/* ---- keys ---- */

/* Of span and trace ids: the sources of the join (processors/spanjoin/spanjoin_settings.c), and
 * what it can add of one span. Of time: what the join can add, and labels of pprof. */
static const char *const folded_keys[] = {
    "span_id",
    "profile_id",
    "span.id",
    "otel.span_id",
    "process.context.label.span_id",
    "span id",
    "local root span id",
    "trace_id",
    "otel.traceid",
    "process.context.label.trace_id",
    "trace.id",
    "span.trace_id",
    "span.parent_id",
    "parent_span_id",
    "span.start_time",
    "span.end_time",
    "span.duration",
    "span.duration_ns",
    "span_start_time",
    "span_end_time",
    "span_duration",
    "span_duration_ns",
    "end_timestamp_ns",
};

bool fold_takes_key(struct slice key)
{
    for (size_t i = 0; i < sizeof folded_keys / sizeof *folded_keys; i++)
        if (slice_is(key, folded_keys[i]))
            return true;
    return false;
}

/* ---- state ---- */

/* What becomes of a sample: one of these, or the number of its group and FATE_GROUP. The first
 * sample of a group is where the group is written; the others are FATE_GOES. */
enum { FATE_STAYS, FATE_GOES, FATE_GROUP };

/* Samples that do not stay, one after another, and what is written in their place. */
struct fold_run {
    const uint8_t *start, *end;
    uint32_t fate; /* FATE_GOES: nothing is written */
};

enum combining { FOLDS, MOVES, STRIPS };

/* A sample that is combined, as far as it decides to which group it goes. */
struct fold_likeness {
    struct slice attributes, gains;
    uint32_t stack, link;
    enum combining how;
};

/* One that was combined. Those that are like it go to the same group, so that most samples need no
 * key. */
struct fold_known {
    struct fold_likeness like;
    uint32_t group;
    uint32_t profile; /* number of the profile that has the group, from 1 on */
    enum fold_shape shape;
    bool is_stripped;
};

struct folding {
    const struct fold_rule *rule;
    struct dictionary *dictionary;
    struct arena *arena; /* of the batch */
    struct fold_result result;
    uint8_t
        *takes; /* for each entry of the attribute_table; 0: not asked yet, otherwise enum taking
                 */
    uint32_t attribute_count;
    struct arena request_scratch;
    struct fold_known *known; /* by hash; a newer one takes the place of an older one */
    uint32_t known_mask, known_wanted;
    /* Of the profile that is being read: */
    uint32_t profile; /* its number */
    struct arena scratch;
    struct fold_run *runs;
    uint32_t run_count, run_capacity;
    struct fold_groups groups;
    double carried; /* what rounding has taken away */
};

/* ---- attributes ---- */

/* STRIPPED: whatever becomes of the sample. */
enum taking { TAKEN = 1, STRIPPED, STAYING };

static bool is_one_of(struct slice key, const struct slice *keys, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (slice_equal(keys[i], key))
            return true;
    return false;
}

static enum taking taking_of_key(const struct fold_rule *rule, struct slice key)
{
    if (is_one_of(key, rule->stripped_keys, rule->stripped_count))
        return STRIPPED;
    return is_one_of(key, rule->keys, rule->key_count) || fold_takes_key(key) ? TAKEN : STAYING;
}

/* Returns whether folding takes the entry away. A key is compared once for each entry. */
static enum taking taking_of(struct folding *folding, uint32_t index)
{
    assert(index < folding->attribute_count); /* scanned */
    if (folding->takes[index] == 0) {
        uint32_t key = dictionary_attribute(folding->dictionary, index).key;
        folding->takes[index] =
            (uint8_t)taking_of_key(folding->rule, dictionary_string(folding->dictionary, key));
    }
    return (enum taking)folding->takes[index];
}

/* Whether a sample with these attributes is stripped. */
static bool is_stripped(struct folding *folding, struct slice attributes)
{
    struct wire_cursor packed = wire_cursor(attributes);
    for (uint64_t index; folding->rule->stripped_count > 0 && wire_packed_varint(&packed, &index);)
        if (index != 0 && taking_of(folding, (uint32_t)index) == STRIPPED)
            return true;
    return false;
}

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
static int64_t sum_of(struct slice values, struct slice timestamps)
{
    struct wire_cursor packed = wire_cursor(values);
    int64_t sum = 0;
    if (values.size == 0)
        return (int64_t)(timestamps.size / sizeof(uint64_t));
    for (uint64_t value; wire_packed_varint(&packed, &value);)
        sum = saturate_add(sum, (int64_t)value);
    return sum;
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

/* Adds the attributes that stay to the key. */
static void add_attributes(struct folding *folding, struct slice attributes, enum combining how)
{
    struct wire_cursor packed = wire_cursor(attributes);
    bool takes_none = how != FOLDS && folding->rule->stripped_count == 0;
    for (uint64_t index; wire_packed_varint(&packed, &index);) {
        enum taking taking =
            takes_none || index == 0 ? STAYING : taking_of(folding, (uint32_t)index);
        if (index != 0 && taking != STRIPPED && (how != FOLDS || taking != TAKEN))
            fold_groups_add_attribute(&folding->groups, (uint32_t)index);
    }
}

static uint32_t stack_by_rule(const struct folding *folding, uint32_t stack)
{
    const struct fold_rule *rule = folding->rule;
    return rule->stack ? rule->stack(rule->context, stack) : stack;
}

/* ---- samples that are like one before ---- */

enum { KNOWN_MIN = 16, KNOWN_MAX = 4096, SAMPLE_BYTES = 16 };

/* Returns for how many samples of a profile there is room, a power of two. */
static uint32_t known_wanted(struct slice profile)
{
    uint32_t count = KNOWN_MIN;
    while (count < KNOWN_MAX && count < profile.size / SAMPLE_BYTES / 2)
        count *= 2;
    return count;
}

static void reserve_known(struct folding *folding)
{
    uint32_t count = folding->known_wanted;
    folding->known = arena_array(&folding->request_scratch, count, sizeof *folding->known);
    folding->known_mask = count - 1;
}

/* Hashes a few bytes of the list. A sender who finds lists with the same hash gains nothing: each
 * of them then needs a key. */
static inline uint32_t hash_of_list(const uint8_t *list, size_t size)
{
    uint32_t begin = 0, end;
    if (size < sizeof begin) {
        for (size_t i = 0; i < size; i++)
            begin = begin << 8 | list[i];
        return begin ^ (uint32_t)size << 24;
    }
    memcpy(&begin, list, sizeof begin);
    memcpy(&end, list + size - sizeof end, sizeof end);
    return (uint32_t)size ^ begin ^ end * UINT32_C(0x9e3779b1);
}

static inline struct fold_known *known_like(const struct folding *folding,
                                            const struct fold_likeness *like)
{
    uint64_t hash = ((uint64_t)like->stack << 32 | like->link) ^ (uintptr_t)like->gains.data << 16;
    hash ^= hash_of_list(like->attributes.data, like->attributes.size);
    hash *= UINT64_C(0x9e3779b97f4a7c15);
    return &folding->known[hash >> 40 & folding->known_mask];
}

static inline bool is_like(const struct folding *folding, const struct fold_known *known,
                           const struct fold_likeness *like)
{
    return known->profile == folding->profile && known->like.stack == like->stack &&
           known->like.link == like->link && known->like.how == like->how &&
           known->like.gains.data == like->gains.data &&
           known->like.gains.size == like->gains.size &&
           slice_equal(known->like.attributes, like->attributes);
}

/* Makes the key of a sample. */
static void begin_key(struct folding *folding, const struct fold_likeness *like,
                      enum fold_shape shape)
{
    fold_groups_begin_key(&folding->groups, stack_by_rule(folding, like->stack), like->link, shape,
                          like->attributes.size + like->gains.size);
    add_attributes(folding, like->attributes, like->how);
    add_attributes(folding, like->gains, like->how);
    fold_groups_sort_key(&folding->groups);
}

static bool keep_apart(struct folding *folding, const struct fold_likeness *like,
                       const struct sample_fields *sample, bool is_stripped)
{
    const struct sample_layout *layout = &sample->layout;
    begin_key(folding, like, SHAPE_APART);
    if (is_stripped)
        fold_groups_keep_value(&folding->groups, sum_of(layout->values, layout->timestamps),
                               sample->others);
    else
        fold_groups_keep_apart(&folding->groups, layout->values, layout->timestamps,
                               sample->others);
    return true;
}

/* Adds a sample to a group. Returns whether it begins another one. */
static inline bool add_to_group(struct folding *folding, const struct fold_known *known,
                                const struct sample_layout *layout, int64_t value)
{
    if (known->shape == SHAPE_SUM)
        return fold_groups_sum(&folding->groups, known->group, value);
    fold_groups_append(&folding->groups, known->group, layout->values, layout->timestamps);
    return false;
}

static struct slice gains_of(const struct folding *folding, enum combining how)
{
    const struct fold_rule *rule = folding->rule;
    return how == FOLDS && rule->gains ? rule->gains(rule->context) : (struct slice){0};
}

/* Folds, moves or strips a sample. Returns whether it begins a group. */
static bool combine_one(struct folding *folding, const struct sample_fields *sample,
                        enum combining how)
{
    const struct sample_layout *layout = &sample->layout;
    if (folding->known_mask + 1 < folding->known_wanted)
        reserve_known(folding);
    const struct fold_likeness like = {.attributes = layout->attributes,
                                       .gains = gains_of(folding, how),
                                       .stack = layout->stack,
                                       .link = how == FOLDS ? 0 : layout->link,
                                       .how = how};
    struct fold_known *known = known_like(folding, &like);
    bool is_known = is_like(folding, known, &like), is_new = false;
    bool strips = is_known ? known->is_stripped : is_stripped(folding, layout->attributes);
    int64_t value;
    enum fold_shape shape = shape_of(sample, strips, &value);
    if (shape == SHAPE_APART)
        return keep_apart(folding, &like, sample, strips);
    if (!is_known || known->shape != shape) {
        begin_key(folding, &like, shape);
        *known = (struct fold_known){.like = like,
                                     .group = fold_groups_find(&folding->groups, &is_new),
                                     .profile = folding->profile,
                                     .shape = shape,
                                     .is_stripped = strips};
    }
    return add_to_group(folding, known, layout, value) || is_new;
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
    struct wire_cursor attributes = wire_cursor(sample->layout.attributes);
    int64_t value;
    fold_groups_begin_key(&folding->groups, sample->layout.stack, sample->layout.link, SHAPE_APART,
                          sample->layout.attributes.size);
    for (uint64_t index; wire_packed_varint(&attributes, &index);)
        fold_groups_add_attribute(&folding->groups, (uint32_t)index);
    if (sample->layout.timestamps.size == 0 &&
        sample_single_value(sample->layout.values, (uint64_t *)&value)) {
        fold_groups_keep_value(&folding->groups, weighed(folding, value), sample->others);
        return;
    }
    struct slice values = weigh_values(folding, sample->layout.values,
                                       sample->layout.timestamps.size / sizeof(uint64_t));
    fold_groups_keep_apart(&folding->groups, values, sample->layout.timestamps, sample->others);
}

/* ---- a profile ---- */

static uint32_t newest_group(const struct folding *folding)
{
    return FATE_GROUP + folding->groups.count - 1;
}

static uint32_t combine(struct folding *folding, const struct sample_fields *sample,
                        enum combining how)
{
    if (!combine_one(folding, sample, how))
        return FATE_GOES;
    folding->result.combined++;
    return newest_group(folding);
}

/* Keeps a sample, but for what is stripped. */
static uint32_t keep(struct folding *folding, const struct sample_fields *sample)
{
    folding->result.kept++;
    if (!is_stripped(folding, sample->layout.attributes))
        return FATE_STAYS;
    if (combine_one(folding, sample, STRIPS))
        return newest_group(folding);
    folding->result.merged++;
    return FATE_GOES;
}

static enum fold_decision decision_of(struct folding *folding, const struct sample_layout *layout)
{
    const struct fold_rule *rule = folding->rule;
    if (!rule->decide)
        return FOLD_KEEP;
    struct fold_sample seen = seen_by_rule(folding, layout);
    return rule->decide(rule->context, &seen);
}

static uint32_t decide(struct folding *folding, struct slice raw)
{
    struct sample_fields sample;
    struct fold_result *result = &folding->result;
    sample_fields_read(raw, &folding->scratch, &sample);
    switch (decision_of(folding, &sample.layout)) {
    case FOLD_FOLD:
        result->folded++;
        return combine(folding, &sample, FOLDS);
    case FOLD_MOVE:
        result->moved++;
        return combine(folding, &sample, MOVES);
    case FOLD_WEIGH:
        result->kept++;
        weigh_one(folding, &sample);
        return newest_group(folding);
    case FOLD_DROP:
        result->dropped++;
        return FATE_GOES;
    case FOLD_KEEP:
        break;
    }
    return keep(folding, &sample);
}

static void note_run(struct folding *folding, const struct wire_field *field, uint32_t fate)
{
    struct fold_run *last = folding->run_count > 0 ? &folding->runs[folding->run_count - 1] : NULL;
    if (last && fate == FATE_GOES && last->end == field->start) {
        last->end = field->end;
        return;
    }
    folding->runs = arena_grow(&folding->scratch, folding->runs, folding->run_count,
                               &folding->run_capacity, sizeof *folding->runs);
    folding->runs[folding->run_count++] = (struct fold_run){field->start, field->end, fate};
}

/* Decides about all samples of a profile. Without runs afterwards, nothing in it changes. */
static void decide_all(struct folding *folding, struct slice profile)
{
    struct wire_cursor cursor = wire_cursor(profile);
    struct wire_field field;
    folding->profile++;
    folding->known_wanted = known_wanted(profile);
    if (folding->rule->begin_profile)
        folding->rule->begin_profile(folding->rule->context, profile);
    while (wire_next_bytes(&cursor, PROFILE_SAMPLES, &field)) {
        uint32_t fate = decide(folding, field.bytes);
        if (fate != FATE_STAYS)
            note_run(folding, &field, fate);
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
        if (run->fate >= FATE_GROUP)
            size += fold_groups_measure(&folding->groups, run->fate - FATE_GROUP);
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

static struct slice write_profile(struct folding *folding, struct slice profile)
{
    size_t size = measure_profile(folding, profile);
    uint8_t *data = arena_alloc(folding->arena, size), *to = data;
    const uint8_t *unwritten = profile.data;
    for (uint32_t i = 0; i < folding->run_count; i++) {
        const struct fold_run *run = &folding->runs[i];
        to = copy_run(to, unwritten, run->start);
        if (run->fate >= FATE_GROUP)
            to = fold_groups_write(&folding->groups, run->fate - FATE_GROUP, to);
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
    folding->groups = (struct fold_groups){.arena = &folding->scratch};
    folding->carried = 0;
}

/* Returns the profile as plain bytes, written out if it was changed. */
static struct slice plain_profile(struct folding *folding, const struct message_field *field)
{
    if (!field->node || !field->node->changed)
        return field->wire.bytes;
    size_t size = message_measure(field->node);
    uint8_t *data = arena_alloc(&folding->scratch, size);
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
    folding.groups.arena = &folding.scratch;
    folding.attribute_count = dictionary_count(dictionary, DICTIONARY_ATTRIBUTE_TABLE);
    folding.takes =
        arena_array(&folding.request_scratch, folding.attribute_count, sizeof *folding.takes);
    fold_all(&folding, root);
    arena_deinit(&folding.request_scratch);
    return folding.result;
}
