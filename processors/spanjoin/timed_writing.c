#include "processors/spanjoin/timed_writing.h"

#include "core/base/memory.h"
#include "core/data/any_value.h"
#include "processors/spanjoin/attribute_classes.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* The last Links are remembered, in slots by a hash; what is replaced is added again. */
enum { LINKS_REMEMBERED = 64, ROOM_OF_ATTRIBUTES = 40 };
struct remembered_link {
    struct span_key key;
    uint32_t link; /* 0: an empty slot */
};

struct writing {
    struct sample_plan *plan;
    const struct timed_samples *timed;
    bool keeps_links;
    const struct timed_sample *next;
    struct timed_written written;
    struct remembered_link links[LINKS_REMEMBERED];
};

/* ---- spans ---- */

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

/* Returns the asks of a sample in the order of their spans; those without a span are first. */
static const struct sorted_ask *sort_asks(struct writing *writing,
                                          const struct timed_sample *threaded)
{
    struct sorted_ask *sorted =
        arena_array(&writing->plan->arena, threaded->ask_count, sizeof *sorted);
    for (uint32_t i = 0; i < threaded->ask_count; i++)
        sorted[i].ask = &writing->timed->asks[threaded->first_ask + i];
    qsort(sorted, threaded->ask_count, sizeof *sorted, compare_asks);
    return sorted;
}

/* ---- samples ---- */

static uint32_t link_of(struct writing *writing, const struct thread_ask *ask)
{
    if (ask->answer != THREAD_SPAN)
        return 0;
    const struct span_key *key = &ask->key;
    uint8_t hash = key->span_id[0] ^ key->span_id[SPAN_ID_SIZE - 1];
    struct remembered_link *known = &writing->links[hash % LINKS_REMEMBERED];
    if (known->link == 0 || memcmp(&known->key, key, sizeof *key) != 0) {
        known->key = *key;
        known->link =
            dictionary_add_link(writing->plan->dictionary, slice_of(key->trace_id, TRACE_ID_SIZE),
                                slice_of(key->span_id, SPAN_ID_SIZE));
    }
    return known->link;
}

static uint8_t *write_link(uint8_t *to, uint32_t link)
{
    return wire_write_varint(wire_write_tag(to, SAMPLE_LINK_INDEX, WIRE_VARINT), link);
}

static void note_written(struct writing *writing, bool is_linked)
{
    writing->written.is_linked[writing->written.samples++] = is_linked ? SAMPLE_IS_LINKED : 0;
    writing->written.linked += is_linked;
}

/* Notes that a part of a sample is linked, maybe to another span than the sample was. */
static void note_linked(struct writing *writing, uint32_t sample)
{
    const struct sample_plan *plan = writing->plan;
    uint32_t key = plan->samples[sample] & SAMPLE_KEY;
    note_written(writing, true);
    if (key > 0 && plan->finds[key - 1].kept_by)
        writing->written.is_linked[writing->written.samples - 1] |= SAMPLE_IS_KEPT;
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
static uint8_t *write_whole(struct writing *writing, const struct timed_sample *threaded,
                            uint8_t *to)
{
    uint32_t link = link_of(writing, &writing->timed->asks[threaded->first_ask]);
    struct slice raw = threaded->raw;
    size_t before = threaded->bits & SAMPLE_IS_USUAL ? sample_list_place(threaded->bits).end
                                                     : (size_t)(place_of_link(raw) - raw.data);
    to = wire_write_header(to, PROFILE_SAMPLES,
                           raw.size + wire_size_tag(SAMPLE_LINK_INDEX) + wire_size_varint(link));
    to = write_link(wire_write_raw(to, slice_of(raw.data, before)), link);
    note_written(writing, true);
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
static struct slice without_names(struct writing *writing, const struct timed_sample *threaded,
                                  struct slice others)
{
    struct sample_plan *plan = writing->plan;
    struct sample_view view = sample_view_read(plan, threaded->raw);
    struct wire_cursor cursor = wire_cursor(others);
    struct wire_field field;
    size_t size = 0;
    uint8_t *data = arena_alloc(&plan->arena, others.size + ROOM_OF_ATTRIBUTES), *to = data;
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
    assert((size_t)(to - data) <= others.size + ROOM_OF_ATTRIBUTES);
    return slice_of(data, (size_t)(to - data));
}

static struct parts parts_of(struct writing *writing, const struct timed_sample *threaded)
{
    struct arena *arena = &writing->plan->arena;
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
            parts.link = writing->keeps_links ? (uint32_t)field.value : 0;
        } else if (field.number != SAMPLE_TIMESTAMPS_UNIX_NANO) {
            to = wire_write_raw(to, slice_of(field.start, (size_t)(field.end - field.start)));
        }
    }
    assert(count == 0 || count == threaded->ask_count);
    parts.values = count > 0 ? values : NULL;
    parts.others = parts.linked = slice_of(others, (size_t)(to - others));
    if (writing->plan->samples[threaded->sample] & SAMPLE_PROMOTED)
        parts.linked = without_names(writing, threaded, parts.others);
    return parts;
}

/* Writes the part of a sample that belongs to one span, or to none. */
static uint8_t *write_piece(struct writing *writing, const struct timed_sample *threaded,
                            const struct parts *parts, const struct sorted_ask *asks,
                            uint32_t count, uint8_t *to)
{
    const struct thread_ask *first = &writing->timed->asks[threaded->first_ask];
    bool is_linked = asks[0].ask->answer == THREAD_SPAN;
    uint32_t link = is_linked ? link_of(writing, asks[0].ask) : parts->link;
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
        note_linked(writing, threaded->sample);
    else
        note_written(writing, false);
    return to;
}

static uint8_t *write_pieces(struct writing *writing, const struct timed_sample *threaded,
                             uint8_t *to)
{
    const struct sorted_ask *asks = sort_asks(writing, threaded);
    struct parts parts = parts_of(writing, threaded);
    for (uint32_t first = 0, count; first < threaded->ask_count; first += count) {
        count = 1;
        while (first + count < threaded->ask_count &&
               timed_asks_are_of_same_span(asks[first].ask, asks[first + count].ask))
            count++;
        to = write_piece(writing, threaded, &parts, asks + first, count, to);
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
static uint8_t *write_anew(struct writing *writing, const struct timed_sample *threaded,
                           uint8_t *to)
{
    uint32_t link = link_of(writing, &writing->timed->asks[threaded->first_ask]);
    uint8_t *data = arena_alloc(&writing->plan->arena, threaded->raw.size), *end = data;
    struct wire_cursor cursor = wire_cursor(threaded->raw);
    struct wire_field field;
    while (wire_next(&cursor, &field))
        if (field.number != SAMPLE_LINK_INDEX)
            end = wire_write_raw(end, slice_of(field.start, (size_t)(field.end - field.start)));
    struct slice others = slice_of(data, (size_t)(end - data));
    if (writing->plan->samples[threaded->sample] & SAMPLE_PROMOTED)
        others = without_names(writing, threaded, others);
    to = wire_write_header(to, PROFILE_SAMPLES,
                           others.size + wire_size_tag(SAMPLE_LINK_INDEX) + wire_size_varint(link));
    to = write_link(wire_write_raw(to, others), link);
    note_linked(writing, threaded->sample);
    return to;
}

static uint8_t *write_threaded(struct writing *writing, const struct timed_sample *threaded,
                               uint8_t *to)
{
    if (threaded->pieces > 1)
        return write_pieces(writing, threaded, to);
    bool has_no_link = (threaded->bits & SAMPLE_IS_USUAL) || !has_link(threaded->raw);
    return writing->keeps_links || !has_no_link ? write_anew(writing, threaded, to)
                                                : write_whole(writing, threaded, to);
}

/* Returns the threaded samples of a profile, which are the next ones, and by how many bytes they
 * grow at most. */
static uint32_t growth_of_profile(const struct writing *writing, const struct profile_plan *profile,
                                  size_t *growth_out)
{
    const struct timed_sample *end = writing->timed->items + writing->timed->count;
    uint32_t last = profile->first_sample + profile->sample_count, linked = 0;
    *growth_out = 0;
    for (const struct timed_sample *threaded = writing->next;
         threaded < end && threaded->sample < last; threaded++) {
        linked += threaded->pieces > 0;
        if (threaded->pieces > 0)
            *growth_out += timed_sample_growth(threaded, threaded->pieces);
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

static struct slice rewrite_profile(struct writing *writing, const struct profile_plan *profile,
                                    struct slice raw, size_t growth)
{
    uint8_t *data = arena_alloc(&writing->plan->batch->arena, raw.size + growth), *to = data;
    const struct timed_sample *end = writing->timed->items + writing->timed->count;
    const uint8_t *unchanged = raw.data; /* start of the bytes that are not written yet */
    uint32_t sample = profile->first_sample;
    struct wire_cursor cursor = wire_cursor(raw);
    for (const uint8_t *start; (start = take_sample(&cursor));) {
        bool is_threaded = writing->next < end && writing->next->sample == sample;
        const struct timed_sample *threaded = is_threaded ? writing->next++ : NULL;
        sample++;
        if (!threaded || threaded->pieces == 0) {
            note_written(writing, false);
            continue;
        }
        to = wire_write_raw(to, slice_of(unchanged, (size_t)(start - unchanged)));
        to = write_threaded(writing, threaded, to);
        unchanged = cursor.next;
    }
    to = wire_write_raw(to, slice_of(unchanged, (size_t)(raw.data + raw.size - unchanged)));
    assert(sample == profile->first_sample + profile->sample_count);
    assert((size_t)(to - data) <= raw.size + growth);
    return slice_of(data, (size_t)(to - data));
}

static void skip_profile(struct writing *writing, const struct profile_plan *profile)
{
    const struct timed_sample *end = writing->timed->items + writing->timed->count;
    uint32_t last = profile->first_sample + profile->sample_count;
    while (writing->next < end && writing->next->sample < last)
        writing->next++;
    for (uint32_t i = 0; i < profile->sample_count; i++)
        note_written(writing, false);
}

static void change_scope(struct writing *writing, struct message *scope_profiles,
                         const struct profile_plan **profile)
{
    struct message_iter it = message_iter(scope_profiles, &writing->plan->batch->arena);
    struct message_field field;
    while (message_next_bytes(&it, SCOPE_PROFILES_PROFILES, &field)) {
        size_t growth;
        if (!profile_has_samples(field.wire.bytes))
            continue;
        if (growth_of_profile(writing, *profile, &growth) > 0)
            message_replace(&it, &field,
                            rewrite_profile(writing, *profile, field.wire.bytes, growth));
        else
            skip_profile(writing, *profile);
        (*profile)++;
    }
}

static void change_request(struct writing *writing)
{
    struct arena *arena = &writing->plan->batch->arena;
    const struct profile_plan *profile = writing->plan->profiles;
    struct message_iter it = message_iter(&writing->plan->batch->parts[0].root, arena);
    struct message_field field;
    while (message_next_bytes(&it, PROFILES_RESOURCE_PROFILES, &field)) {
        struct message_iter scopes = message_iter(message_open(&it, &field), arena);
        while (message_next_bytes(&scopes, RESOURCE_PROFILES_SCOPE_PROFILES, &field))
            change_scope(writing, message_open(&scopes, &field), &profile);
    }
    assert(profile == writing->plan->profiles + writing->plan->profile_count);
}

struct timed_written timed_samples_write(struct sample_plan *plan,
                                         const struct timed_samples *timed, bool keeps_links,
                                         uint32_t more)
{
    struct writing writing = {.plan = plan,
                              .timed = timed,
                              .keeps_links = keeps_links,
                              .next = timed->items,
                              .written.is_linked = memory_zalloc(plan->sample_count + more)};
    change_request(&writing);
    plan->batch->items += writing.written.samples - plan->sample_count;
    return writing.written;
}
