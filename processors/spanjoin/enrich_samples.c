#include "processors/spanjoin/enrich_samples.h"

#include "core/data/any_value.h"
#include "core/pipeline/items.h"
#include "processors/spanjoin/attribute_classes.h"
#include "processors/spanjoin/keep_samples.h"
#include "processors/spanjoin/sample_view.h"

#include <assert.h>

/* ---- dictionary entries of the keys; first, because this opens the request ---- */

static void add_link(struct sample_plan *plan, uint32_t k)
{
    struct sample_key *key = &plan->keys[k];
    const struct span_key *ids = &plan->finds[k].key;
    bool gains_trace = key->match && !key->trace_given;
    if (!key->promoted && !key->by_thread && !gains_trace)
        return;
    bool has_trace = key->trace_given || key->match;
    key->link = dictionary_add_link(
        plan->dictionary, has_trace ? slice_of(ids->trace_id, TRACE_ID_SIZE) : (struct slice){0},
        slice_of(ids->span_id, SPAN_ID_SIZE));
}

static size_t packed_size(const uint32_t *numbers, uint32_t count)
{
    size_t size = 0;
    for (uint32_t i = 0; i < count; i++)
        size += wire_size_varint(numbers[i]);
    return size;
}

/* What is copied in blocks may be read, and written, up to a block beyond its end. */
enum { COPY_BLOCK = 16 };

static inline uint8_t *copy_blocks(uint8_t *to, const uint8_t *from, size_t size)
{
    for (size_t done = 0; done < size; done += COPY_BLOCK)
        memcpy(to + done, from + done, COPY_BLOCK);
    return to + size;
}

/* Returns numbers as the payload of a packed field, which may be copied in blocks. */
static struct slice pack(struct sample_plan *plan, const uint32_t *numbers, uint32_t count)
{
    size_t size = packed_size(numbers, count);
    uint8_t *packed = arena_alloc(&plan->arena, size + COPY_BLOCK), *to = packed;
    for (uint32_t i = 0; i < count; i++)
        to = wire_write_varint(to, numbers[i]);
    return slice_of(packed, size);
}

/* Returns the dictionary index of an attribute that samples gain. */
static uint32_t add_attribute(struct sample_plan *plan, size_t joined, struct slice value)
{
    const struct spanjoin_side *side = &plan->settings->samples;
    if (!plan->joined_keys)
        plan->joined_keys = arena_array(&plan->arena, side->joined_count, sizeof(uint32_t));
    uint32_t *key = &plan->joined_keys[joined];
    if (*key == 0)
        *key = dictionary_add(plan->dictionary, DICTIONARY_STRING_TABLE, side->joined[joined].key);
    struct key_value_and_unit entry = {.key = *key, .value = value};
    return dictionary_add_entry(plan->dictionary, &entry);
}

/* The span of a key, and the local root above it. */
struct joined_spans {
    const struct span_match *match;
    const struct span_match *root; /* NULL: not known, or not needed */
    bool lose_detail;              /* samples are folded, or dropped (keep_samples.h) */
};

static const struct sample_gain *new_gain(struct sample_plan *plan,
                                          const struct joined_spans *spans)
{
    const struct spanjoin_side *side = &plan->settings->samples;
    struct sample_gain *gain = arena_zalloc(&plan->arena, sizeof *gain);
    gain->attributes = arena_array(&plan->arena, side->joined_count + 1, sizeof *gain->attributes);
    uint32_t added[JOIN_ATTRIBUTES_MAX], count = 0;
    for (size_t i = 0; i < side->joined_count; i++) {
        if (spans->lose_detail && join_path_is_of_one_span(side->joined[i].path))
            continue;
        struct slice value = value_for_sample(side, i, spans->match, spans->root, &plan->arena);
        bool fits = value.size <= plan->room;
        plan->room -= fits ? value.size : 0;
        if (value.size > 0 && fits)
            gain->attributes[i] = add_attribute(plan, i, value);
        if (gain->attributes[i] == 0)
            continue;
        gain->has_name |= side->joined[i].path == JOIN_SPAN_NAME;
        added[count++] = gain->attributes[i];
    }
    gain->packed = pack(plan, added, count);
    return gain;
}

/* A cache of gains of this request, by the facts that they depend on. One that was replaced is
 * built again. */
enum { GAINS_REMEMBERED = 256 };
struct remembered_gains {
    bool are_shared;
    struct remembered_gain {
        struct joined_spans spans; /* match NULL: an empty slot */
        const struct sample_gain *gain;
    } of[GAINS_REMEMBERED];
};

/* Whether two spans have equal sets, from which all values come. */
static bool have_equal_sets(const struct span_match *a, const struct span_match *b)
{
    return a == b || (a && b && a->set == b->set);
}

static const struct sample_gain *find_gain(struct sample_plan *plan, struct remembered_gains *gains,
                                           const struct joined_spans *spans)
{
    if (!gains->are_shared)
        return new_gain(plan, spans);
    uint64_t hash = spans->match->set ^ (spans->root ? spans->root->set * 31 : 0);
    struct remembered_gain *known = &gains->of[hash % GAINS_REMEMBERED];
    if (!have_equal_sets(known->spans.match, spans->match) ||
        known->spans.lose_detail != spans->lose_detail ||
        !have_equal_sets(known->spans.root, spans->root))
        *known = (struct remembered_gain){*spans, new_gain(plan, spans)};
    return known->gain;
}

/* ---- samples ---- */

static struct sample_key *key_of(const struct sample_plan *plan, uint32_t sample)
{
    uint32_t named = plan->samples[sample] & SAMPLE_KEY;
    return named ? &plan->keys[named - 1] : NULL;
}

/* Whether the samples of each key change, whatever else they have: by index + 1; of 0, which is no
 * key, they do not. */
enum key_change {
    CHANGES_NOT,
    CHANGES,
    CHANGES_UNLESS_PLAIN,
    CHANGES_UNLESS_STRIPPED = 4 /* bit: plain ones that are stripped do not, either */
};

static enum key_change change_of_key(const struct sample_plan *plan, uint32_t k)
{
    if (!plan->keys[k].match)
        return CHANGES_NOT;
    return keep_takes_detail(plan, k) ? CHANGES_UNLESS_PLAIN : CHANGES;
}

static uint8_t *changes_of_keys(struct sample_plan *plan)
{
    uint8_t *changes = arena_array(&plan->arena, plan->key_count + 1, sizeof *changes);
    const uint32_t stripped = SAMPLE_IS_PLAIN | SAMPLE_IS_STRIPPED;
    for (uint32_t k = 0; k < plan->key_count; k++)
        changes[k + 1] =
            (uint8_t)(change_of_key(plan, k) |
                      (keep_takes_sample(plan, (k + 1) | stripped) ? CHANGES_UNLESS_STRIPPED : 0));
    return changes;
}

/* Whether a sample with a thread is stripped as it came, or has no key: it does not change. Most
 * are such, but no branch would predict which ones have a key. */
static inline bool is_left_to_strip(const uint8_t *changes, uint32_t named)
{
    const uint32_t stripped = SAMPLE_IS_PLAIN | SAMPLE_IS_STRIPPED;
    bool is_stripped = (named & (stripped | SAMPLE_PROMOTED)) == stripped;
    bool is_taken = (changes[named & SAMPLE_KEY] & CHANGES_UNLESS_STRIPPED) != 0;
    return (is_stripped & is_taken) | ((named & (SAMPLE_KEY | SAMPLE_PROMOTED)) == 0);
}

static inline bool sample_changes(const struct sample_plan *plan, const uint8_t *changes,
                                  uint32_t named)
{
    uint8_t change = changes[named & SAMPLE_KEY];
    if (!(named & (SAMPLE_PROMOTED | SAMPLE_IS_STRIPPED | SAMPLE_HAS_THREAD)))
        return (change & CHANGES) ||
               ((change & CHANGES_UNLESS_PLAIN) && !(named & SAMPLE_IS_PLAIN));
    if (is_left_to_strip(changes, named))
        return false;
    return !keep_takes_sample(plan, named) &&
           ((change & (CHANGES | CHANGES_UNLESS_PLAIN)) || sample_gains_link(named));
}

/* Marks the samples of the profiles that change, and counts them. */
static void mark_changes(struct sample_plan *plan)
{
    const uint8_t *changes = changes_of_keys(plan);
    for (uint32_t p = 0; p < plan->profile_count; p++) {
        struct profile_plan *profile = &plan->profiles[p];
        uint32_t *samples = &plan->samples[profile->first_sample];
        for (uint32_t i = 0; i < profile->sample_count; i++) {
            bool does = sample_changes(plan, changes, samples[i]);
            samples[i] |= does ? SAMPLE_CHANGES : 0;
            profile->changes += does;
        }
    }
}

/* A sample that is rewritten: its attributes, its link, and all other fields. */
struct sample_parts {
    struct slice before;
    struct slice after;
    struct slice attributes; /* packed */
    uint32_t link;
    bool are_scattered; /* the attributes and the link are not adjacent */
};

static struct sample_parts parts_of(struct slice raw)
{
    struct sample_parts parts = {.link = 0};
    struct wire_cursor cursor = wire_cursor(raw);
    struct wire_field field;
    const uint8_t *begin = NULL, *end = raw.data + raw.size, *raw_end = end;
    while (wire_next(&cursor, &field)) {
        if (field.number == SAMPLE_LINK_INDEX) {
            parts.link = field.type == WIRE_BYTES ? parts.link : (uint32_t)field.value;
        } else if (field.number == SAMPLE_ATTRIBUTE_INDICES) {
            parts.are_scattered |= field.type != WIRE_BYTES || parts.attributes.data;
            parts.attributes = field.type == WIRE_BYTES ? field.bytes : parts.attributes;
        } else {
            continue;
        }
        parts.are_scattered |= begin && end != field.start;
        begin = begin ? begin : field.start;
        end = field.end;
    }
    begin = begin ? begin : end;
    parts.before = slice_of(raw.data, (size_t)(begin - raw.data));
    parts.after = slice_of(end, (size_t)(raw_end - end));
    return parts;
}

/* Returns all fields that are neither attributes nor the link. */
static struct slice other_fields(struct sample_plan *plan, struct slice raw)
{
    uint8_t *others = arena_alloc(&plan->arena, raw.size), *to = others;
    struct wire_cursor cursor = wire_cursor(raw);
    struct wire_field field;
    while (wire_next(&cursor, &field))
        if (field.number != SAMPLE_ATTRIBUTE_INDICES && field.number != SAMPLE_LINK_INDEX)
            to = wire_write_raw(to, slice_of(field.start, (size_t)(field.end - field.start)));
    return slice_of(others, (size_t)(to - others));
}

static uint32_t *plan_scratch(struct sample_plan *plan, uint32_t attribute_count)
{
    size_t need = attribute_count + plan->settings->samples.joined_count + 1;
    if (plan->scratch_capacity < need) {
        plan->scratch_capacity = need * 2;
        plan->scratch = arena_array(&plan->arena, plan->scratch_capacity, sizeof *plan->scratch);
    }
    return plan->scratch;
}

/* Whether the name of the span that the sender put next to its id goes: it does if the join adds
 * one. The id may have been a label of which the reader made the Link. */
static bool loses_name(const struct sample_plan *plan, const struct sample_key *key, bool promoted)
{
    bool was_label = promoted || (plan->batch->links_are_labels && !key->by_thread);
    return was_label && key->gain && key->gain->has_name;
}

/* Returns the attributes of a sample that does not keep its old ones. */
static struct slice new_attributes(struct sample_plan *plan, struct slice raw,
                                   const struct sample_key *key, bool promoted)
{
    const struct sample_gain *gain = key->gain;
    bool without_name = loses_name(plan, key, promoted);
    struct sample_view view = sample_view_read(plan, raw);
    uint32_t *out = plan_scratch(plan, view.attribute_count);
    uint64_t taken = 0; /* bit per joined attribute whose key the sample has already */
    uint32_t count = 0;
    for (uint32_t i = 0; i < view.attribute_count; i++) {
        const struct attribute_class *class = sample_plan_class(plan, view.attributes[i]);
        bool is_id = class->role == ATTRIBUTE_SPAN_ID || class->role == ATTRIBUTE_TRACE_ID;
        if ((promoted && is_id) || (without_name && class->role == ATTRIBUTE_SPAN_NAME))
            continue;
        if (class->joined < JOIN_ATTRIBUTES_MAX)
            taken |= UINT64_C(1) << class->joined;
        out[count++] = view.attributes[i];
    }
    for (size_t i = 0; gain && i < plan->settings->samples.joined_count; i++)
        if (gain->attributes[i] && !(taken & UINT64_C(1) << i))
            out[count++] = gain->attributes[i];
    return pack(plan, out, count);
}

/* Returns by how many bytes a changed sample may grow. */
static size_t sample_growth(const struct sample_plan *plan)
{
    return 5 * plan->settings->samples.joined_count + 24;
}

/* The Link of a sample; 0: none is written. */
static inline size_t link_size(uint32_t link)
{
    return link > 0 ? wire_size_tag(SAMPLE_LINK_INDEX) + wire_size_varint(link) : 0;
}

static inline uint8_t *write_link(uint8_t *to, uint32_t link)
{
    if (link == 0)
        return to;
    return wire_write_varint(wire_write_tag(to, SAMPLE_LINK_INDEX, WIRE_VARINT), link);
}

/* Returns what a usual sample gains that keeps its attributes, and its Link if it has one; NULL: it
 * does not. */
static inline const struct slice *more_of(const struct sample_plan *plan, uint32_t named)
{
    const uint32_t usual = SAMPLE_IS_USUAL | SAMPLE_IS_PLAIN;
    bool keeps_all = (named & (usual | SAMPLE_PROMOTED)) == usual;
    return keeps_all ? plan->more[named & SAMPLE_KEY] : NULL;
}

/* Writes such a sample: as received, with more attributes, and maybe a Link. */
static uint8_t *write_more(uint32_t named, struct slice raw, struct slice more, uint32_t link,
                           uint8_t *to)
{
    struct list_place place = sample_list_place(named);
    size_t size = place.list + more.size;
    size_t field = size > 0 ? wire_size_bytes(SAMPLE_ATTRIBUTE_INDICES, size) : 0;
    assert(place.end <= raw.size);
    size_t others = raw.size - (place.end - place.start);
    to = wire_write_header(to, PROFILE_SAMPLES, others + field + link_size(link));
    to = wire_write_raw(to, (struct slice){raw.data, place.start});
    if (size > 0) {
        to = wire_write_header(to, SAMPLE_ATTRIBUTE_INDICES, size);
        to = wire_write_raw(to, (struct slice){raw.data + place.start + 2, place.list});
        to = wire_write_raw(to, more);
    }
    to = write_link(to, link);
    return wire_write_raw(to, (struct slice){raw.data + place.end, raw.size - place.end});
}

/* The same for one that is short afterwards, too, and may be copied in blocks. */
static inline uint8_t *write_more_short(uint32_t named, struct slice raw, struct slice more,
                                        uint32_t link, uint8_t *to)
{
    struct list_place place = sample_list_place(named);
    size_t list = place.list + more.size;
    size_t size = raw.size - (place.end - place.start) + 2 + list + link_size(link);
    assert(place.end <= raw.size && list > 0 && size < 0x80);
    to[0] = PROFILE_SAMPLES << 3 | WIRE_BYTES;
    to[1] = (uint8_t)size;
    to = copy_blocks(to + 2, raw.data, place.start);
    to[0] = SAMPLE_ATTRIBUTE_INDICES << 3 | WIRE_BYTES;
    to[1] = (uint8_t)list;
    to = copy_blocks(to + 2, raw.data + place.start + 2, place.list);
    to = write_link(copy_blocks(to, more.data, more.size), link);
    return copy_blocks(to, raw.data + place.end, raw.size - place.end);
}

static uint8_t *write_other(struct sample_plan *plan, uint32_t sample, struct slice raw,
                            uint8_t *to)
{
    uint32_t named = plan->samples[sample];
    bool promoted = named & SAMPLE_PROMOTED;
    const struct sample_key *key = key_of(plan, sample);
    struct sample_parts parts = parts_of(raw);
    struct slice more = key->gain ? key->gain->packed : (struct slice){0};
    if (parts.are_scattered) {
        parts.before = other_fields(plan, raw);
        parts.after = (struct slice){0};
    }
    if (parts.are_scattered || !(named & SAMPLE_IS_PLAIN)) {
        parts.attributes = new_attributes(plan, raw, key, promoted);
        more = (struct slice){0};
    }
    bool gains_link = sample_gains_link(named) || (key->match && !key->trace_given);
    uint32_t link = gains_link ? key->link : parts.link;

    size_t attributes = parts.attributes.size + more.size;
    size_t size = parts.before.size + parts.after.size;
    if (attributes > 0)
        size += wire_size_bytes(SAMPLE_ATTRIBUTE_INDICES, attributes);
    size += link_size(link);
    to = wire_write_header(to, PROFILE_SAMPLES, size);
    uint8_t *end = to + size;
    to = wire_write_raw(to, parts.before);
    if (attributes > 0) {
        to = wire_write_header(to, SAMPLE_ATTRIBUTE_INDICES, attributes);
        to = wire_write_raw(wire_write_raw(to, parts.attributes), more);
    }
    to = wire_write_raw(write_link(to, link), parts.after);
    assert(to == end);
    return to;
}

/* ---- profiles ---- */

/* Writes the attributes of a profile, without those that named the span. */
static uint8_t *write_profile_attributes(struct sample_plan *plan,
                                         const struct profile_plan *profile,
                                         const struct wire_field *field, uint8_t *to)
{
    bool single = field->type != WIRE_BYTES; /* then it is a varint, as the scan has checked */
    uint64_t number = single ? field->value : 0;
    struct slice list = single ? (struct slice){0} : field->bytes;
    struct wire_cursor packed = wire_cursor(list);
    uint32_t *kept = plan_scratch(plan, (uint32_t)list.size + 1);
    uint32_t count = 0;
    while (single || wire_packed_varint(&packed, &number)) {
        enum attribute_role role = sample_plan_class(plan, (uint32_t)number)->role;
        bool goes =
            role == ATTRIBUTE_TRACE_ID || (role == ATTRIBUTE_SPAN_ID && profile->span_taken);
        if (!goes)
            kept[count++] = (uint32_t)number;
        if (single)
            break;
    }
    if (count == 0)
        return to;
    if (single)
        return wire_write_raw(to, slice_of(field->start, (size_t)(field->end - field->start)));
    return wire_write_bytes(to, PROFILE_ATTRIBUTE_INDICES, pack(plan, kept, count));
}

struct rewriting {
    struct sample_plan *plan;
    const struct profile_plan *profile;
    uint32_t sample;          /* the next one */
    const uint8_t *unwritten; /* start of the received bytes that are not written yet */
    const uint8_t *end;       /* of the profile */
    uint8_t *to;
};

/* Writes the received bytes that are not written yet. */
static inline void write_until(struct rewriting *rewriting, const uint8_t *end)
{
    size_t size = (size_t)(end - rewriting->unwritten);
    if (size > 0)
        rewriting->to = wire_write_raw(rewriting->to, (struct slice){rewriting->unwritten, size});
}

static inline uint8_t *write_sample(const struct rewriting *rewriting, uint32_t sample,
                                    struct slice raw)
{
    struct sample_plan *plan = rewriting->plan;
    uint32_t named = plan->samples[sample];
    const struct slice *more = more_of(plan, named);
    if (!more)
        return write_other(plan, sample, raw, rewriting->to);
    uint32_t link = sample_gains_link(named) ? plan->keys[(named & SAMPLE_KEY) - 1].link : 0;
    bool is_short = raw.size + more->size + link_size(link) < 0x80 - 2 && more->size > 0 &&
                    rewriting->end - (raw.data + raw.size) >= COPY_BLOCK;
    return is_short ? write_more_short(named, raw, *more, link, rewriting->to)
                    : write_more(named, raw, *more, link, rewriting->to);
}

static inline void rewrite_sample(struct rewriting *rewriting, const uint8_t *start,
                                  struct slice raw)
{
    uint32_t sample = rewriting->sample++;
    if (!(rewriting->plan->samples[sample] & SAMPLE_CHANGES))
        return;
    write_until(rewriting, start);
    rewriting->to = write_sample(rewriting, sample, raw);
    rewriting->unwritten = raw.data + raw.size;
}

static void rewrite_attributes(struct rewriting *rewriting, const struct wire_field *field)
{
    if (!rewriting->profile->span_taken && !rewriting->profile->trace_taken)
        return;
    write_until(rewriting, field->start);
    rewriting->to =
        write_profile_attributes(rewriting->plan, rewriting->profile, field, rewriting->to);
    rewriting->unwritten = field->end;
}

static void rewrite_fields(struct rewriting *rewriting, struct slice profile)
{
    struct wire_cursor cursor = wire_cursor(profile);
    struct wire_field field;
    for (struct slice raw;;) {
        if (wire_take_short(&cursor, PROFILE_SAMPLES << 3 | WIRE_BYTES, &raw))
            rewrite_sample(rewriting, raw.data - 2, raw);
        else if (!wire_next(&cursor, &field))
            break;
        else if (field.number == PROFILE_SAMPLES && field.type == WIRE_BYTES)
            rewrite_sample(rewriting, field.start, field.bytes);
        else if (field.number == PROFILE_ATTRIBUTE_INDICES)
            rewrite_attributes(rewriting, &field);
    }
    write_until(rewriting, rewriting->end);
}

/* The samples that change are not as they were read. */
static void forget_known(struct sample_plan *plan, const struct profile_plan *profile)
{
    uint32_t end = profile->first_sample + profile->sample_count;
    for (uint32_t i = profile->first_sample; plan->known.samples && i < end; i++)
        if (plan->samples[i] & SAMPLE_CHANGES)
            plan->known.samples[i].list = 0;
}

static struct slice rewrite_profile(struct sample_plan *plan, const struct profile_plan *profile,
                                    struct slice raw)
{
    size_t capacity = raw.size + profile->changes * sample_growth(plan);
    uint8_t *data = arena_alloc(&plan->batch->arena, capacity + COPY_BLOCK);
    struct rewriting rewriting = {.plan = plan,
                                  .profile = profile,
                                  .sample = profile->first_sample,
                                  .unwritten = raw.data,
                                  .end = raw.data + raw.size,
                                  .to = data};
    rewrite_fields(&rewriting, raw);
    assert(rewriting.sample == profile->first_sample + profile->sample_count);
    assert((size_t)(rewriting.to - data) <= capacity);
    forget_known(plan, profile);
    return slice_of(data, (size_t)(rewriting.to - data));
}

static void apply_to_scope(struct sample_plan *plan, struct message *scope_profiles,
                           uint32_t *profile_position)
{
    struct message_iter it = message_iter(scope_profiles, &plan->batch->arena);
    struct message_field field;
    while (message_next_bytes(&it, SCOPE_PROFILES_PROFILES, &field)) {
        if (!profile_has_samples(field.wire.bytes))
            continue;
        const struct profile_plan *profile = &plan->profiles[(*profile_position)++];
        if (profile->changes > 0)
            message_replace(&it, &field, rewrite_profile(plan, profile, field.wire.bytes));
    }
}

/* ---- resources ---- */

static bool is_source(struct slice key, const struct config_strings *sources)
{
    for (size_t i = 0; i < sources->count; i++)
        if (slice_is(key, sources->items[i]))
            return true;
    return false;
}

static void remove_ids(struct sample_plan *plan, struct message *resource, bool span_taken)
{
    const struct spanjoin_settings *settings = plan->settings;
    struct message_iter it = message_iter(resource, &plan->batch->arena);
    struct message_field field;
    while (message_next_bytes(&it, RESOURCE_ATTRIBUTES, &field)) {
        struct slice key = key_value_read(field.wire.bytes).key;
        if (is_source(key, &settings->trace_sources) ||
            (span_taken && is_source(key, &settings->sources)))
            message_remove(&it, &field);
    }
}

static void apply_to_resource(struct sample_plan *plan, struct message *resource_profiles,
                              const struct resource_plan *resource)
{
    uint32_t profile_position = resource->first_profile;
    struct message_iter it = message_iter(resource_profiles, &plan->batch->arena);
    struct message_field field;
    while (message_next(&it, &field)) {
        if (field.wire.type != WIRE_BYTES)
            continue;
        if (field.wire.number == RESOURCE_PROFILES_SCOPE_PROFILES)
            apply_to_scope(plan, message_open(&it, &field), &profile_position);
        else if (field.wire.number == RESOURCE_PROFILES_RESOURCE &&
                 (resource->span_taken || resource->trace_taken))
            remove_ids(plan, message_open(&it, &field), resource->span_taken);
    }
    assert(profile_position == resource->first_profile + resource->profile_count);
}

static bool resource_changes(const struct sample_plan *plan, const struct resource_plan *resource)
{
    for (uint32_t i = 0; i < resource->profile_count; i++)
        if (plan->profiles[resource->first_profile + i].changes > 0)
            return true;
    return false;
}

void sample_plan_apply(struct sample_plan *plan)
{
    struct remembered_gains gains = {.are_shared = values_are_shared(&plan->settings->samples)};
    plan->room = items_values_room(plan->batch);
    plan->more = arena_array(&plan->arena, plan->key_count + 1, sizeof(const struct slice *));
    for (uint32_t k = 0; k < plan->key_count; k++) {
        struct joined_spans spans = {plan->keys[k].match, plan->roots ? plan->roots[k] : NULL,
                                     keep_takes_detail(plan, k)};
        if (spans.match)
            plan->keys[k].gain = find_gain(plan, &gains, &spans);
        if (spans.match && plan->keys[k].trace_given)
            plan->more[k + 1] = &plan->keys[k].gain->packed;
        add_link(plan, k);
    }
    mark_changes(plan);
    uint32_t position = 0;
    struct message_iter it = message_iter(&plan->batch->parts[0].root, &plan->batch->arena);
    struct message_field field;
    while (message_next_bytes(&it, PROFILES_RESOURCE_PROFILES, &field)) {
        if (!resource_has_samples(field.wire.bytes))
            continue;
        const struct resource_plan *resource = &plan->resources[position++];
        if (resource_changes(plan, resource))
            apply_to_resource(plan, message_open(&it, &field), resource);
    }
    assert(position == plan->resource_count);
}
