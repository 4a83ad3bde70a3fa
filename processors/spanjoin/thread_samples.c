#include "processors/spanjoin/thread_samples.h"

#include "core/base/container_of.h"
#include "core/base/memory.h"
#include "core/data/any_value.h"
#include "core/data/span_index.h"
#include "core/data/thread_spans.h"
#include "core/pipeline/items.h"
#include "processors/spanjoin/attribute_classes.h"
#include "processors/spanjoin/left_upload.h"
#include "processors/spanjoin/sample_view.h"
#include "processors/spanjoin/thread_of_span.h"
#include "processors/spanjoin/upload_times.h"

#include <assert.h>
#include <stdlib.h>

enum { PIECE_OVERHEAD = 40 }; /* bytes of a sample besides what it had: headers and the Link */

/* Many samples have the same thread or the same span. The last ones are remembered, in slots by a
 * hash; what is replaced is read or added again. */
enum { REMEMBERED = 64, THREAD_ATTRIBUTES = THREAD_ATTRIBUTE_RUNTIME_ID + 1 };
/* The attributes of a sample that name its thread, by enum thread_attribute; 0: none. Of several of
 * one kind, the last one counts. */
struct thread_attributes {
    uint32_t of[THREAD_ATTRIBUTES];
};
struct remembered_thread {
    struct thread_attributes attributes;
    const struct sample_thread *thread; /* NULL: an empty slot */
};
/* What the attributes of a sample say. */
struct list_facts {
    const struct sample_thread *thread;
    uint8_t traits; /* enum attribute_traits */
};
/* Those of samples with the same list, if that is short. */
struct remembered_list {
    uint64_t packed; /* with its size; 0: an empty slot */
    struct list_facts facts;
};
struct remembered_link {
    struct span_key key;
    uint32_t link; /* 0: an empty slot */
};

struct linking {
    struct sample_plan *plan;
    struct link_source *source;
    struct timed_sample *samples;
    uint32_t sample_count;
    struct thread_ask *asks;
    size_t ask_count;
    size_t ask_capacity;
    size_t room;   /* bytes by which the request may still grow */
    uint32_t more; /* samples that the request gains at most */
    /* while it is written */
    const struct timed_sample *next;
    uint8_t *is_linked;
    uint32_t written; /* samples */
    uint64_t linked;  /* of these */
    uint64_t not_split;
    uint32_t resource; /* of the last sample that was counted */
    struct remembered_list lists[REMEMBERED];
    struct remembered_thread threads[REMEMBERED];
    struct remembered_link links[REMEMBERED];
};

/* ---- reading ---- */

static void read_attribute(struct sample_plan *plan, enum thread_attribute which,
                           uint32_t attribute, struct sample_thread *thread)
{
    struct any_value value =
        any_value_read(dictionary_attribute(plan->dictionary, attribute).value);
    enum thread_id_kind kind =
        which == THREAD_ATTRIBUTE_RUNTIME_ID ? THREAD_ID_RUNTIME : THREAD_ID_OS;
    if (which == THREAD_ATTRIBUTE_NAME)
        thread->name = value.kind == ANY_VALUE_STRING ? value.bytes : (struct slice){0};
    else if (thread_id_read(&value, &thread->id[kind]))
        thread->has_id[kind] = true;
}

static const struct sample_thread *new_thread(struct sample_plan *plan, const uint32_t *attributes,
                                              const struct profile_plan *profile)
{
    struct sample_thread *thread = arena_zalloc(&plan->arena, sizeof *thread);
    thread->instance = profile->process;
    thread->sampler = profile->sampler;
    for (int i = THREAD_ATTRIBUTE_NONE + 1; i < THREAD_ATTRIBUTES; i++)
        if (attributes[i] != 0)
            read_attribute(plan, (enum thread_attribute)i, attributes[i], thread);
    return thread;
}

/* Returns the traits of the attribute. */
static inline uint8_t note_attribute(struct linking *linking, struct thread_attributes *attributes,
                                     uint32_t attribute)
{
    const struct attribute_class *class = sample_plan_class(linking->plan, attribute);
    attributes->of[class->thread] = attribute;
    return class->traits;
}

/* Whether a thread is of the process of a profile. */
static bool is_of_profile(const struct sample_thread *thread, const struct profile_plan *profile)
{
    return thread->instance == profile->process && thread->sampler == profile->sampler;
}

static const struct sample_thread *find_thread(struct linking *linking,
                                               struct thread_attributes *attributes,
                                               const struct profile_plan *profile)
{
    uint32_t hash = 0;
    attributes->of[THREAD_ATTRIBUTE_NONE] = 0;
    for (int i = 0; i < THREAD_ATTRIBUTES; i++)
        hash = (hash ^ attributes->of[i]) * 0x9E3779B1u; /* their numbers are next to each other */
    struct remembered_thread *known = &linking->threads[(hash >> 16) % REMEMBERED];
    if (!known->thread || !is_of_profile(known->thread, profile) ||
        memcmp(&known->attributes, attributes, sizeof *attributes) != 0) {
        known->thread = new_thread(linking->plan, attributes->of, profile);
        known->attributes = *attributes;
    }
    return known->thread;
}

static void add_ask(struct linking *linking, const struct sample_thread *thread, uint64_t time_ns)
{
    assert(linking->ask_count < linking->ask_capacity);
    struct thread_ask *ask = &linking->asks[linking->ask_count++];
    ask->thread = thread;
    ask->time_ns = time_ns;
    ask->answer = THREAD_NO_SPAN;
    ask->has_spans = false;
}

static void add_asks(struct linking *linking, struct timed_sample *threaded,
                     const struct sample_thread *thread)
{
    struct wire_cursor cursor = wire_cursor(threaded->raw);
    struct wire_field field;
    uint64_t time_ns;
    while (wire_next(&cursor, &field)) {
        if (field.number == SAMPLE_VALUES || field.number == SAMPLE_TIMESTAMPS_UNIX_NANO)
            threaded->repeated -= (uint32_t)(field.end - field.start);
        if (field.number != SAMPLE_TIMESTAMPS_UNIX_NANO)
            continue;
        struct wire_cursor packed =
            wire_cursor(field.type == WIRE_BYTES ? field.bytes : (struct slice){0});
        while (wire_packed_fixed64(&packed, &time_ns))
            add_ask(linking, thread, time_ns);
        if (field.type != WIRE_BYTES)
            add_ask(linking, thread, field.value);
    }
}

static void reserve_asks(struct linking *linking, uint64_t more)
{
    if (linking->ask_count + more <= linking->ask_capacity)
        return;
    size_t capacity = (linking->ask_count + more) * 2;
    if (capacity < linking->source->sample_count) /* at least one time for each sample */
        capacity = linking->source->sample_count;
    struct thread_ask *asks = arena_alloc(&linking->plan->arena, capacity * sizeof *asks);
    if (linking->ask_count > 0)
        memcpy(asks, linking->asks, linking->ask_count * sizeof *asks);
    linking->asks = asks;
    linking->ask_capacity = capacity;
}

/* Whether a usual sample has a Link, even one to nothing. */
static inline bool has_link_field(struct slice raw, const struct sample_layout *layout)
{
    const uint8_t *place = layout->attributes_end;
    return place < raw.data + raw.size && *place == (SAMPLE_LINK_INDEX << 3 | WIRE_VARINT);
}

static struct list_facts read_list(struct linking *linking, struct slice packed,
                                   const struct profile_plan *profile)
{
    struct thread_attributes attributes = {.of = {0}};
    struct wire_cursor list = wire_cursor(packed);
    uint8_t traits = 0;
    for (uint64_t number; wire_packed_varint(&list, &number);)
        traits |= note_attribute(linking, &attributes, (uint32_t)number);
    return (struct list_facts){find_thread(linking, &attributes, profile), traits};
}

static struct list_facts facts_of_list(struct linking *linking, struct slice list,
                                       const struct profile_plan *profile)
{
    uint64_t packed = sample_short_list(list);
    if (packed == 0)
        return read_list(linking, list, profile);
    uint64_t hash = packed * UINT64_C(0x9e3779b97f4a7c15);
    struct remembered_list *known = &linking->lists[(hash >> 32) % REMEMBERED];
    if (known->packed != packed || !is_of_profile(known->facts.thread, profile))
        *known = (struct remembered_list){packed, read_list(linking, list, profile)};
    return known->facts;
}

static void set_amount(struct timed_sample *threaded, uint64_t times, uint64_t values, uint64_t sum)
{
    threaded->amount = sample_amount_of(times, values, sum);
    threaded->is_paired = values == 0 || values == times;
}

static void read_usual(struct linking *linking, struct timed_sample *threaded,
                       const struct profile_plan *profile, const struct sample_layout *layout)
{
    uint64_t times = layout->timestamps.size / sizeof(uint64_t), values = 0;
    uint64_t sum = sample_sum(layout->values, &values);
    const struct list_facts facts = facts_of_list(linking, layout->attributes, profile);
    const struct sample_thread *thread = facts.thread;
    threaded->bits = sample_bits_of_traits(facts.traits);
    if (!has_link_field(threaded->raw, layout))
        threaded->bits |= sample_bits_of_place(threaded->raw, layout);
    set_amount(threaded, times, values, sum);
    threaded->repeated -= (uint32_t)(layout->values.size + layout->timestamps.size);
    reserve_asks(linking, times);
    struct wire_cursor list = wire_cursor(layout->timestamps);
    for (uint64_t time_ns; wire_packed_fixed64(&list, &time_ns);)
        add_ask(linking, thread, time_ns);
}

static void read_any(struct linking *linking, struct timed_sample *threaded,
                     const struct profile_plan *profile)
{
    struct thread_attributes attributes = {.of = {0}};
    struct sample_view view = sample_view_read(linking->plan, threaded->raw);
    uint8_t traits = 0;
    for (uint32_t i = 0; i < view.attribute_count; i++)
        traits |= note_attribute(linking, &attributes, view.attributes[i]);
    const struct sample_thread *thread = find_thread(linking, &attributes, profile);
    threaded->bits = sample_bits_of_traits(traits);
    set_amount(threaded, view.timestamps, view.values, view.sum);
    reserve_asks(linking, view.timestamps);
    add_asks(linking, threaded, thread);
}

static void read_sample(struct linking *linking, uint32_t sample,
                        const struct profile_plan *profile, struct slice raw)
{
    assert(linking->sample_count < linking->source->sample_count);
    struct timed_sample *threaded = &linking->samples[linking->sample_count++];
    struct sample_layout layout;
    *threaded = (struct timed_sample){.raw = raw,
                                      .sample = sample,
                                      .first_ask = (uint32_t)linking->ask_count,
                                      .repeated = (uint32_t)raw.size};
    if (sample_layout_read(raw, &layout) && layout.timestamps.size % sizeof(uint64_t) == 0)
        read_usual(linking, threaded, profile, &layout);
    else
        read_any(linking, threaded, profile);
    threaded->ask_count = (uint32_t)(linking->ask_count - threaded->first_ask);
}

static void read_profile(struct linking *linking, const struct profile_plan *profile,
                         struct slice raw)
{
    uint32_t sample = profile->first_sample;
    struct wire_cursor cursor = wire_cursor(raw);
    for (struct slice one; wire_next_payload(&cursor, PROFILE_SAMPLES, &one); sample++)
        if (linking->plan->samples[sample] & SAMPLE_HAS_THREAD)
            read_sample(linking, sample, profile, one);
}

static void read_request(struct linking *linking)
{
    const struct profile_plan *profile = linking->plan->profiles;
    struct wire_cursor resources = wire_cursor(linking->plan->batch->parts[0].root.raw);
    assert(linking->plan->batch->parts[0].root.raw.size <= UINT32_MAX); /* sizes and counts fit */
    struct wire_field resource, scope, field;
    while (wire_next_bytes(&resources, PROFILES_RESOURCE_PROFILES, &resource)) {
        struct wire_cursor scopes = wire_cursor(resource.bytes);
        while (wire_next_bytes(&scopes, RESOURCE_PROFILES_SCOPE_PROFILES, &scope)) {
            struct wire_cursor profiles = wire_cursor(scope.bytes);
            while (wire_next_bytes(&profiles, SCOPE_PROFILES_PROFILES, &field))
                if (profile_has_samples(field.bytes))
                    read_profile(linking, profile++, field.bytes);
        }
    }
    assert(profile == linking->plan->profiles + linking->plan->profile_count);
}

/* ---- deciding ---- */

struct sorted_ask {
    const struct thread_ask *ask;
};

static int compare_asks(const void *left, const void *right)
{
    const struct thread_ask *a = ((const struct sorted_ask *)left)->ask;
    const struct thread_ask *b = ((const struct sorted_ask *)right)->ask;
    int order = (a->answer == THREAD_SPAN) - (b->answer == THREAD_SPAN);
    if (!order && a->answer == THREAD_SPAN)
        order = memcmp(&a->key, &b->key, sizeof a->key);
    return order ? order : (a > b) - (a < b);
}

static bool is_same_span(const struct thread_ask *a, const struct thread_ask *b)
{
    bool both = a->answer == THREAD_SPAN && b->answer == THREAD_SPAN;
    return both ? memcmp(&a->key, &b->key, sizeof a->key) == 0
                : a->answer != THREAD_SPAN && b->answer != THREAD_SPAN;
}

/* Returns the asks of a sample in the order of their spans; those without a span are first. */
static const struct sorted_ask *sort_asks(struct linking *linking,
                                          const struct timed_sample *threaded)
{
    struct sorted_ask *sorted =
        arena_array(&linking->plan->arena, threaded->ask_count, sizeof *sorted);
    for (uint32_t i = 0; i < threaded->ask_count; i++)
        sorted[i].ask = &linking->asks[threaded->first_ask + i];
    qsort(sorted, threaded->ask_count, sizeof *sorted, compare_asks);
    return sorted;
}

static bool has_spans_only(const struct linking *linking, const struct timed_sample *threaded)
{
    for (uint32_t i = 0; i < threaded->ask_count; i++)
        if (linking->asks[threaded->first_ask + i].answer != THREAD_SPAN)
            return false;
    return true;
}

static bool has_answer(const struct linking *linking, const struct timed_sample *threaded,
                       enum thread_answer answer)
{
    for (uint32_t i = 0; i < threaded->ask_count; i++)
        if (linking->asks[threaded->first_ask + i].answer == answer)
            return true;
    return false;
}

/* Returns into how many samples it is split at most; fewer if a span comes again. */
static uint32_t count_pieces(const struct linking *linking, const struct timed_sample *threaded)
{
    const struct thread_ask *asks = &linking->asks[threaded->first_ask];
    uint32_t pieces = 1;
    for (uint32_t i = 1; i < threaded->ask_count; i++)
        pieces += !is_same_span(&asks[i - 1], &asks[i]);
    return pieces;
}

/* Counts a sample, or the part of one, that gets no span. Samples come in their order. */
static void note_unnamed(struct linking *linking, const struct timed_sample *threaded)
{
    const struct sample_plan *plan = linking->plan;
    const struct resource_upload *upload = &plan->uploads[linking->resource];
    if (!linking->source->unnamed_of)
        return;
    for (; threaded->sample >= upload->first_sample + upload->sample_count; upload++)
        linking->resource++;
    assert(linking->resource < plan->upload_count);
    struct unnamed_samples *unnamed = &linking->source->unnamed_of[linking->resource];
    if (has_answer(linking, threaded, THREAD_AMBIGUOUS))
        unnamed->ambiguous_thread++;
    else
        unnamed->no_span_on_thread++;
}

/* Returns by how many bytes a sample grows at most if it is split. */
static size_t growth_of(const struct timed_sample *threaded, uint32_t pieces)
{
    assert(pieces > 0 && threaded->repeated <= threaded->raw.size);
    return (size_t)(pieces - 1) * threaded->repeated + (size_t)pieces * PIECE_OVERHEAD;
}

/* Decides whether the sample is linked. A split repeats its attributes, so that there is a limit on
 * what all splits of a request may add. */
static void decide(struct linking *linking, struct timed_sample *threaded)
{
    if (!has_answer(linking, threaded, THREAD_SPAN)) {
        note_unnamed(linking, threaded);
        return;
    }
    uint32_t pieces = count_pieces(linking, threaded);
    size_t growth = growth_of(threaded, pieces);
    if ((pieces > 1 && !threaded->is_paired) || growth > linking->room) {
        linking->not_split++;
        return;
    }
    linking->room -= growth;
    linking->more += pieces - 1;
    threaded->pieces = pieces;
    if (pieces > 1 && !has_spans_only(linking, threaded))
        note_unnamed(linking, threaded); /* the part without a span */
}

/* ---- writing ---- */

static uint32_t link_of(struct linking *linking, const struct thread_ask *ask)
{
    if (ask->answer != THREAD_SPAN)
        return 0;
    const struct span_key *key = &ask->key;
    uint8_t hash = key->span_id[0] ^ key->span_id[SPAN_ID_SIZE - 1];
    struct remembered_link *known = &linking->links[hash % REMEMBERED];
    if (known->link == 0 || memcmp(&known->key, key, sizeof *key) != 0) {
        known->key = *key;
        known->link =
            dictionary_add_link(linking->plan->dictionary, slice_of(key->trace_id, TRACE_ID_SIZE),
                                slice_of(key->span_id, SPAN_ID_SIZE));
    }
    return known->link;
}

static uint8_t *write_link(uint8_t *to, uint32_t link)
{
    return wire_write_varint(wire_write_tag(to, SAMPLE_LINK_INDEX, WIRE_VARINT), link);
}

static void note_written(struct linking *linking, bool is_linked)
{
    linking->is_linked[linking->written++] = is_linked ? SAMPLE_IS_LINKED : 0;
    linking->linked += is_linked;
}

/* Notes that a part of a sample is linked, maybe to another span than the sample was. */
static void note_linked(struct linking *linking, uint32_t sample)
{
    const struct sample_plan *plan = linking->plan;
    uint32_t key = plan->samples[sample] & SAMPLE_KEY;
    note_written(linking, true);
    if (key > 0 && plan->finds[key - 1].is_kept)
        linking->is_linked[linking->written - 1] |= SAMPLE_IS_KEPT;
}

/* Returns the end of the stack and the attributes. */
static const uint8_t *place_of_link(struct slice raw)
{
    const uint8_t *place = raw.data;
    struct wire_cursor cursor = wire_cursor(raw);
    struct wire_field field;
    while (wire_next(&cursor, &field))
        if (field.number == SAMPLE_STACK_INDEX || field.number == SAMPLE_ATTRIBUTE_INDICES)
            place = field.end;
    return place;
}

/* Writes a sample of one span. The Link follows the attributes, where the join expects it. */
static uint8_t *write_whole(struct linking *linking, const struct timed_sample *threaded,
                            uint8_t *to)
{
    uint32_t link = link_of(linking, &linking->asks[threaded->first_ask]);
    struct slice raw = threaded->raw;
    size_t before = threaded->bits & SAMPLE_IS_USUAL ? sample_list_place(threaded->bits).end
                                                     : (size_t)(place_of_link(raw) - raw.data);
    to = wire_write_header(to, PROFILE_SAMPLES,
                           raw.size + wire_size_tag(SAMPLE_LINK_INDEX) + wire_size_varint(link));
    to = write_link(wire_write_raw(to, slice_of(raw.data, before)), link);
    note_written(linking, true);
    return wire_write_raw(to, slice_of(raw.data + before, raw.size - before));
}

/* The parts of a sample that is split. */
struct parts {
    struct slice others; /* all other fields */
    struct slice linked; /* likewise, for what gets a new Link: without attributes that named the
                            old span */
    uint32_t link;       /* of what gets no new one; 0: none */
    uint64_t *values;    /* as many as timestamps; NULL: none */
};

/* Whether an attribute belongs to the span that a sample named by attributes. */
static bool names_span(struct sample_plan *plan, uint32_t attribute)
{
    uint8_t role = sample_plan_class(plan, attribute)->role;
    if (role != ATTRIBUTE_SPAN_NAME)
        return role == ATTRIBUTE_SPAN_ID || role == ATTRIBUTE_TRACE_ID;
    const struct spanjoin_side *side = &plan->settings->samples;
    for (size_t i = 0; i < side->joined_count; i++)
        if (side->joined[i].path == JOIN_SPAN_NAME)
            return true;
    return false;
}

/* Returns the fields without attributes that name a span. The attributes become the last one. */
static struct slice without_names(struct linking *linking, const struct timed_sample *threaded,
                                  struct slice others)
{
    struct sample_plan *plan = linking->plan;
    struct sample_view view = sample_view_read(plan, threaded->raw);
    struct wire_cursor cursor = wire_cursor(others);
    struct wire_field field;
    size_t size = 0;
    uint8_t *data = arena_alloc(&plan->arena, others.size + PIECE_OVERHEAD), *to = data;
    while (wire_next(&cursor, &field))
        if (field.number != SAMPLE_ATTRIBUTE_INDICES)
            to = wire_write_raw(to, slice_of(field.start, (size_t)(field.end - field.start)));
    for (uint32_t i = 0; i < view.attribute_count; i++)
        size += names_span(plan, view.attributes[i]) ? 0 : wire_size_varint(view.attributes[i]);
    if (size > 0)
        to = wire_write_header(to, SAMPLE_ATTRIBUTE_INDICES, size);
    for (uint32_t i = 0; i < view.attribute_count; i++)
        if (!names_span(plan, view.attributes[i]))
            to = wire_write_varint(to, view.attributes[i]);
    assert((size_t)(to - data) <= others.size + PIECE_OVERHEAD);
    return slice_of(data, (size_t)(to - data));
}

static struct parts parts_of(struct linking *linking, const struct timed_sample *threaded)
{
    struct arena *arena = &linking->plan->arena;
    uint8_t *others = arena_alloc(arena, threaded->raw.size), *to = others;
    uint64_t *values = arena_array(arena, threaded->ask_count, sizeof *values);
    struct parts parts = {.link = 0};
    uint32_t count = 0;
    struct wire_cursor cursor = wire_cursor(threaded->raw);
    struct wire_field field;
    while (wire_next(&cursor, &field)) {
        if (field.number == SAMPLE_VALUES) {
            struct wire_cursor packed =
                wire_cursor(field.type == WIRE_BYTES ? field.bytes : (struct slice){0});
            while (count < threaded->ask_count && wire_packed_varint(&packed, &values[count]))
                count++;
            if (field.type != WIRE_BYTES)
                values[count++] = field.value;
        } else if (field.number == SAMPLE_LINK_INDEX) {
            parts.link = linking->source->keeps_links ? (uint32_t)field.value : 0;
        } else if (field.number != SAMPLE_TIMESTAMPS_UNIX_NANO) {
            to = wire_write_raw(to, slice_of(field.start, (size_t)(field.end - field.start)));
        }
    }
    assert(count == 0 || count == threaded->ask_count);
    parts.values = count > 0 ? values : NULL;
    parts.others = parts.linked = slice_of(others, (size_t)(to - others));
    if (linking->plan->samples[threaded->sample] & SAMPLE_PROMOTED)
        parts.linked = without_names(linking, threaded, parts.others);
    return parts;
}

/* Writes the part of a sample that belongs to one span, or to none. */
static uint8_t *write_piece(struct linking *linking, const struct timed_sample *threaded,
                            const struct parts *parts, const struct sorted_ask *asks,
                            uint32_t count, uint8_t *to)
{
    const struct thread_ask *first = &linking->asks[threaded->first_ask];
    bool is_linked = asks[0].ask->answer == THREAD_SPAN;
    uint32_t link = is_linked ? link_of(linking, asks[0].ask) : parts->link;
    struct slice others = is_linked ? parts->linked : parts->others;
    size_t values = 0, times = count * sizeof(uint64_t);
    for (uint32_t i = 0; parts->values && i < count; i++)
        values += wire_size_varint(parts->values[asks[i].ask - first]);
    size_t size = others.size + wire_size_bytes(SAMPLE_TIMESTAMPS_UNIX_NANO, times);
    size += link ? wire_size_tag(SAMPLE_LINK_INDEX) + wire_size_varint(link) : 0;
    size += values ? wire_size_bytes(SAMPLE_VALUES, values) : 0;
    to = wire_write_header(to, PROFILE_SAMPLES, size);
    to = wire_write_raw(to, others);
    if (link)
        to = write_link(to, link);
    if (values)
        to = wire_write_header(to, SAMPLE_VALUES, values);
    for (uint32_t i = 0; values && i < count; i++)
        to = wire_write_varint(to, parts->values[asks[i].ask - first]);
    to = wire_write_header(to, SAMPLE_TIMESTAMPS_UNIX_NANO, times);
    for (uint32_t i = 0; i < count; i++)
        to = wire_write_raw(to, slice_of(&asks[i].ask->time_ns, sizeof asks[i].ask->time_ns));
    if (is_linked)
        note_linked(linking, threaded->sample);
    else
        note_written(linking, false);
    return to;
}

static uint8_t *write_pieces(struct linking *linking, const struct timed_sample *threaded,
                             uint8_t *to)
{
    const struct sorted_ask *asks = sort_asks(linking, threaded);
    struct parts parts = parts_of(linking, threaded);
    for (uint32_t first = 0, count; first < threaded->ask_count; first += count) {
        count = 1;
        while (first + count < threaded->ask_count &&
               is_same_span(asks[first].ask, asks[first + count].ask))
            count++;
        to = write_piece(linking, threaded, &parts, asks + first, count, to);
    }
    return to;
}

/* Whether it has a Link, which names no span, or the field of one. */
static bool has_link(struct slice raw)
{
    struct wire_cursor cursor = wire_cursor(raw);
    struct wire_field field;
    while (wire_next(&cursor, &field))
        if (field.number == SAMPLE_LINK_INDEX)
            return true;
    return false;
}

/* Writes a sample of one span that had another Link, or attributes that named another span. Its
 * values need not be paired with its times. */
static uint8_t *write_anew(struct linking *linking, const struct timed_sample *threaded,
                           uint8_t *to)
{
    uint32_t link = link_of(linking, &linking->asks[threaded->first_ask]);
    uint8_t *data = arena_alloc(&linking->plan->arena, threaded->raw.size), *end = data;
    struct wire_cursor cursor = wire_cursor(threaded->raw);
    struct wire_field field;
    while (wire_next(&cursor, &field))
        if (field.number != SAMPLE_LINK_INDEX)
            end = wire_write_raw(end, slice_of(field.start, (size_t)(field.end - field.start)));
    struct slice others = slice_of(data, (size_t)(end - data));
    if (linking->plan->samples[threaded->sample] & SAMPLE_PROMOTED)
        others = without_names(linking, threaded, others);
    to = wire_write_header(to, PROFILE_SAMPLES,
                           others.size + wire_size_tag(SAMPLE_LINK_INDEX) + wire_size_varint(link));
    to = write_link(wire_write_raw(to, others), link);
    note_linked(linking, threaded->sample);
    return to;
}

static uint8_t *write_threaded(struct linking *linking, const struct timed_sample *threaded,
                               uint8_t *to)
{
    if (threaded->pieces > 1)
        return write_pieces(linking, threaded, to);
    bool has_no_link = (threaded->bits & SAMPLE_IS_USUAL) || !has_link(threaded->raw);
    return linking->source->keeps_links || !has_no_link ? write_anew(linking, threaded, to)
                                                        : write_whole(linking, threaded, to);
}

/* Returns the threaded samples of a profile, which are the next ones, and by how many bytes they
 * grow at most. */
static uint32_t growth_of_profile(const struct linking *linking, const struct profile_plan *profile,
                                  size_t *growth_out)
{
    const struct timed_sample *end = linking->samples + linking->sample_count;
    uint32_t last = profile->first_sample + profile->sample_count, linked = 0;
    *growth_out = 0;
    for (const struct timed_sample *threaded = linking->next;
         threaded < end && threaded->sample < last; threaded++) {
        linked += threaded->pieces > 0;
        if (threaded->pieces > 0)
            *growth_out += growth_of(threaded, threaded->pieces);
    }
    return linked;
}

/* Takes the next sample of a profile. Returns where its field starts; NULL: there is none. */
static inline const uint8_t *take_sample(struct wire_cursor *profile)
{
    const uint8_t *start = profile->next;
    struct slice raw;
    struct wire_field field;
    if (wire_take_short(profile, PROFILE_SAMPLES << 3 | WIRE_BYTES, &raw))
        return start;
    return wire_next_bytes(profile, PROFILE_SAMPLES, &field) ? field.start : NULL;
}

static struct slice rewrite_profile(struct linking *linking, const struct profile_plan *profile,
                                    struct slice raw, size_t growth)
{
    uint8_t *data = arena_alloc(&linking->plan->batch->arena, raw.size + growth), *to = data;
    const struct timed_sample *end = linking->samples + linking->sample_count;
    const uint8_t *unchanged = raw.data; /* start of the bytes that are not written yet */
    uint32_t sample = profile->first_sample;
    struct wire_cursor cursor = wire_cursor(raw);
    for (const uint8_t *start; (start = take_sample(&cursor));) {
        bool is_threaded = linking->next < end && linking->next->sample == sample;
        const struct timed_sample *threaded = is_threaded ? linking->next++ : NULL;
        sample++;
        if (!threaded || threaded->pieces == 0) {
            note_written(linking, false);
            continue;
        }
        to = wire_write_raw(to, slice_of(unchanged, (size_t)(start - unchanged)));
        to = write_threaded(linking, threaded, to);
        unchanged = cursor.next;
    }
    to = wire_write_raw(to, slice_of(unchanged, (size_t)(raw.data + raw.size - unchanged)));
    assert(sample == profile->first_sample + profile->sample_count);
    assert((size_t)(to - data) <= raw.size + growth);
    return slice_of(data, (size_t)(to - data));
}

static void skip_profile(struct linking *linking, const struct profile_plan *profile)
{
    const struct timed_sample *end = linking->samples + linking->sample_count;
    uint32_t last = profile->first_sample + profile->sample_count;
    while (linking->next < end && linking->next->sample < last)
        linking->next++;
    for (uint32_t i = 0; i < profile->sample_count; i++)
        note_written(linking, false);
}

static void change_scope(struct linking *linking, struct message *scope_profiles,
                         const struct profile_plan **profile)
{
    struct message_iter it = message_iter(scope_profiles, &linking->plan->batch->arena);
    struct message_field field;
    while (message_next_bytes(&it, SCOPE_PROFILES_PROFILES, &field)) {
        size_t growth;
        if (!profile_has_samples(field.wire.bytes))
            continue;
        if (growth_of_profile(linking, *profile, &growth) > 0)
            message_replace(&it, &field,
                            rewrite_profile(linking, *profile, field.wire.bytes, growth));
        else
            skip_profile(linking, *profile);
        (*profile)++;
    }
}

static void change_request(struct linking *linking)
{
    struct arena *arena = &linking->plan->batch->arena;
    const struct profile_plan *profile = linking->plan->profiles;
    struct message_iter it = message_iter(&linking->plan->batch->parts[0].root, arena);
    struct message_field field;
    while (message_next_bytes(&it, PROFILES_RESOURCE_PROFILES, &field)) {
        struct message_iter scopes = message_iter(message_open(&it, &field), arena);
        while (message_next_bytes(&scopes, RESOURCE_PROFILES_SCOPE_PROFILES, &field))
            change_scope(linking, message_open(&scopes, &field), &profile);
    }
    assert(profile == linking->plan->profiles + linking->plan->profile_count);
}

static void write_links(struct linking *linking, struct thread_links *links)
{
    struct sample_plan *plan = linking->plan;
    linking->next = linking->samples;
    linking->is_linked = memory_zalloc(plan->sample_count + linking->more);
    change_request(linking);
    links->more = linking->written - plan->sample_count;
    plan->batch->items += linking->written - plan->sample_count;
    links->is_linked = linking->is_linked;
}

/* ---- naming, where the request need not be written ---- */

/* Names the spans of the samples of a profile. Returns the first sample that is not one of them. */
static const struct timed_sample *name_of_profile(struct linking *linking,
                                                  const struct profile_plan *profile,
                                                  const struct timed_sample *threaded)
{
    const struct timed_sample *end = linking->samples + linking->sample_count;
    uint32_t last = profile->first_sample + profile->sample_count;
    struct sample_naming naming;
    sample_plan_begin_naming(linking->plan, profile, &naming);
    for (; threaded < end && threaded->sample < last; threaded++) {
        struct found_span found = {.span = &linking->asks[threaded->first_ask].key,
                                   .raw = threaded->raw,
                                   .amount = threaded->amount,
                                   .sample = threaded->sample,
                                   .bits = threaded->bits};
        if (threaded->pieces > 0)
            linking->linked += sample_plan_name(&naming, &found);
    }
    sample_plan_end_naming(&naming);
    return threaded;
}

static void name_samples(struct linking *linking)
{
    struct sample_plan *plan = linking->plan;
    const struct timed_sample *next = linking->samples, *end = next + linking->sample_count;
    plan->index = linking->source->totals.index;
    plan->request = linking->source->totals.request;
    for (uint32_t i = 0; i < plan->profile_count && next < end; i++)
        if (next->sample < plan->profiles[i].first_sample + plan->profiles[i].sample_count)
            next = name_of_profile(linking, &plan->profiles[i], next);
    assert(next == end);
}

/* ---- both ---- */

/* Returns whether any sample has a span. */
static bool find_spans(struct linking *linking)
{
    struct link_source *source = linking->source;
    bool any = false;
    source->find(source, linking->samples, linking->sample_count, linking->asks,
                 linking->ask_count);
    for (uint32_t i = 0; i < linking->sample_count; i++) {
        struct timed_sample *sample = &linking->samples[i];
        decide(linking, sample);
        any |= sample->pieces > 0;
        if (sample->pieces != 1 && source->leaves)
            source->leaves(source, sample, &linking->asks[sample->first_ask]);
    }
    return any;
}

bool timed_samples_link(struct sample_plan *plan, struct link_source *source,
                        struct thread_links *links_out)
{
    struct linking linking = {
        .plan = plan, .source = source, .room = items_values_room(plan->batch)};
    linking.samples = arena_alloc(&plan->arena, source->sample_count * sizeof *linking.samples);
    read_request(&linking);
    bool any = find_spans(&linking);
    bool writes = any && (source->writes || linking.more > 0);
    *links_out =
        (struct thread_links){.unnamed_of = source->unnamed_of, .not_split = linking.not_split};
    if (writes)
        write_links(&linking, links_out);
    else if (any)
        name_samples(&linking);
    links_out->linked = linking.linked;
    return writes;
}

/* ---- by thread ---- */

struct thread_source {
    struct link_source source;
    struct sample_plan *plan;
};

/* Returns the upload of a sample, which is this one or a later one. */
static const struct resource_upload *upload_of(const struct resource_upload *upload,
                                               const struct timed_sample *sample)
{
    while (sample->sample >= upload->first_sample + upload->sample_count)
        upload++;
    return upload;
}

/* Several processes that count as one have threads with the same ids: which of them the span ran in
 * is not known. */
static void doubt_several(const struct sample_plan *plan, const struct timed_sample *samples,
                          uint32_t sample_count, struct thread_ask *asks)
{
    const struct resource_upload *upload = plan->uploads;
    for (uint32_t i = 0; i < sample_count; i++) {
        upload = upload_of(upload, &samples[i]);
        struct thread_ask *of_sample = &asks[samples[i].first_ask];
        for (uint32_t k = 0; upload->is_of_several && k < samples[i].ask_count; k++)
            if (of_sample[k].answer == THREAD_SPAN)
                of_sample[k].answer = THREAD_AMBIGUOUS;
    }
}

/* Asks about samples of uploads that may be of several processes, one after the other. */
struct asking {
    struct sample_plan *plan;
    struct thread_ask *asked; /* in the order of the asks, without those that need no search */
    size_t count;
    const struct sample_thread *thread; /* the last one that was asked for the process before */
    const struct sample_thread *before; /* the same of that process */
};

static const struct sample_thread *
thread_of_before(struct asking *asking, const struct sample_thread *thread, uint16_t before)
{
    if (asking->thread == thread && asking->before->instance == before)
        return asking->before;
    struct sample_thread *same = arena_alloc(&asking->plan->arena, sizeof *same);
    *same = *thread;
    same->instance = before;
    asking->thread = thread;
    return asking->before = same;
}

static bool is_of_before(const struct resource_upload *upload, const struct thread_ask *ask)
{
    return upload->before != 0 && ask->time_ns < upload->since_ns;
}

static void add_asked(struct asking *asking, const struct resource_upload *upload,
                      struct thread_ask *ask)
{
    bool is_before = is_of_before(upload, ask);
    ask->answer = THREAD_AMBIGUOUS;
    if (upload->is_doubted && !is_before)
        return;
    struct thread_ask *asked = &asking->asked[asking->count++];
    *asked = *ask;
    asked->answer = THREAD_NO_SPAN;
    if (is_before)
        asked->thread = thread_of_before(asking, ask->thread, upload->before);
}

static void add_all_asked(struct asking *asking, const struct timed_sample *samples,
                          uint32_t sample_count, struct thread_ask *asks)
{
    const struct resource_upload *upload = asking->plan->uploads;
    for (uint32_t i = 0; i < sample_count; i++) {
        upload = upload_of(upload, &samples[i]);
        for (uint32_t k = 0; k < samples[i].ask_count; k++)
            add_asked(asking, upload, &asks[samples[i].first_ask + k]);
    }
}

static void take_answers(const struct asking *asking, const struct timed_sample *samples,
                         uint32_t sample_count, struct thread_ask *asks)
{
    const struct resource_upload *upload = asking->plan->uploads;
    const struct thread_ask *asked = asking->asked;
    for (uint32_t i = 0; i < sample_count; i++) {
        upload = upload_of(upload, &samples[i]);
        struct thread_ask *ask = &asks[samples[i].first_ask];
        for (const struct thread_ask *end = ask + samples[i].ask_count; ask < end; ask++) {
            if (upload->is_doubted && !is_of_before(upload, ask))
                continue;
            ask->thread = asked->thread;
            ask->answer = asked->answer;
            ask->has_spans = asked->has_spans;
            ask->key = asked->key;
            asked++;
        }
    }
    assert(asked == asking->asked + asking->count);
}

static bool any_may_be_of_before(const struct sample_plan *plan)
{
    for (uint32_t i = 0; i < plan->upload_count; i++)
        if (plan->uploads[i].is_doubted || plan->uploads[i].before != 0)
            return true;
    return false;
}

static void find_by_thread(struct link_source *source, const struct timed_sample *samples,
                           uint32_t sample_count, struct thread_ask *asks, size_t ask_count)
{
    struct sample_plan *plan = container_of(source, struct thread_source, source)->plan;
    struct thread_spans *threads = span_index_threads(source->totals.index);
    if (any_may_be_of_before(plan)) {
        struct asking asking = {.plan = plan,
                                .asked = arena_array(&plan->arena, ask_count, sizeof *asks)};
        add_all_asked(&asking, samples, sample_count, asks);
        thread_spans_find(threads, asking.asked, asking.count, plan->arrived_ns);
        take_answers(&asking, samples, sample_count, asks);
    } else {
        thread_spans_find(threads, asks, ask_count, plan->arrived_ns);
    }
    doubt_several(plan, samples, sample_count, asks);
}

static void leave_by_thread(struct link_source *source, const struct timed_sample *sample,
                            const struct thread_ask *asks)
{
    const struct sample_plan *plan = container_of(source, struct thread_source, source)->plan;
    left_upload_note(plan->left, plan, sample, asks);
}

/* Returns what is known of samples that are not asked for, because the plan may become another
 * one. */
static struct unnamed_samples *copy_unnamed(const struct sample_plan *plan)
{
    struct unnamed_samples *copy = memory_zalloc(plan->upload_count * sizeof *copy);
    for (uint32_t i = 0; i < plan->upload_count; i++)
        copy[i] = plan->uploads[i].unnamed;
    return copy;
}

bool thread_samples_link(struct sample_plan *plan, const struct plan_totals *totals,
                         struct thread_links *links_out)
{
    struct thread_source by_thread = {
        .source =
            {
                .find = find_by_thread,
                .leaves = plan->left ? leave_by_thread : NULL,
                .sample_count = plan->with_thread,
                /* child_samples.h reads the Links of the request */
                .writes = plan->settings->attribute_children,
                .unnamed_of = copy_unnamed(plan),
                .totals = *totals,
            },
        .plan = plan,
    };
    return timed_samples_link(plan, &by_thread.source, links_out);
}

void thread_links_deinit(struct thread_links *links)
{
    free(links->is_linked);
    free(links->unnamed_of);
    links->is_linked = NULL;
    links->unnamed_of = NULL;
}
