#include "core/data/profiles_merge.h"

#include "core/base/budget.h"
#include "core/base/memory.h"
#include "core/data/merge_source.h"

#include <assert.h>

/* Results have mostly similar sizes, so a result begins with the capacity of the previous one, up
 * to this; growing would copy it. */
enum { EXPECTED_MAX = 1 << 20 };

struct profiles_merge {
    struct budget *budget;
    struct merge_target target;
    struct wire_out resources; /* the encoded ResourceProfiles, unknown fields of requests */
    struct wire_out dictionary_unknown; /* unknown fields of dictionaries */
    struct merge_source last;           /* dictionary of the previous request, or all zero */
    struct buffer **held;               /* requests whose bytes the result still refers to */
    size_t held_count;
    uint32_t items;
    size_t expected; /* size of `resources` in the last result, up to EXPECTED_MAX */
};

/* A request has messages on three levels. The parts of a message are the messages in it on the next
 * level; the parts of a profile are its samples. */
enum { LEVEL_RESOURCE, LEVEL_SCOPE, LEVEL_PROFILE, LEVELS };

/* The field number of the messages on each level; the last one is that of samples. */
static const uint32_t level_fields[LEVELS + 1] = {PROFILES_RESOURCE_PROFILES,
                                                  RESOURCE_PROFILES_SCOPE_PROFILES,
                                                  SCOPE_PROFILES_PROFILES, PROFILE_SAMPLES};

struct source_message {
    struct slice header;        /* the fields that are not parts, joined */
    uint32_t first_part, parts; /* on the next level */
};

/* All messages of a level, in order. */
struct source_level {
    struct source_message *messages;
    uint32_t count;
};

struct profiles_source {
    struct profiles_merge *merge;
    struct buffer *request;
    struct arena arena;
    struct merge_source dictionary;
    struct wire_out unknown;            /* fields of the request */
    struct wire_out dictionary_unknown; /* fields of the dictionary */
    struct source_level levels[LEVELS];
    struct slice *samples;
    uint32_t sample_count;
};

static void put(struct wire_out *out, const struct wire_out *bytes)
{
    wire_out_put(out, slice_of(bytes->data, bytes->size));
}

static struct slice whole_field(const struct wire_field *field)
{
    return slice_of(field->start, (size_t)(field->end - field->start));
}

/* Returns the payload of a message. The caller has checked the number, the scan the wire type. */
static struct slice payload_of(const struct wire_field *field)
{
    assert(field->type == WIRE_BYTES);
    return field->bytes;
}

/* Finds the dictionary of a normalised request, which has at most one. */
static struct slice find_dictionary(struct slice request)
{
    struct wire_cursor cursor = wire_cursor(request);
    struct wire_field field;
    return wire_next_bytes(&cursor, PROFILES_DICTIONARY, &field) ? field.bytes : (struct slice){0};
}

/* Keeps a reference to a request until the result is written. */
static void hold(struct profiles_merge *merge, struct buffer *request)
{
    if (merge->held_count > 0 && merge->held[merge->held_count - 1] == request)
        return;
    if (merge->held_count == 0)
        wire_out_room(&merge->resources, merge->expected + merge->expected / 8);
    merge->held = memory_grow(merge->held, merge->held_count + 1, sizeof(struct buffer *));
    merge->held[merge->held_count++] = buffer_ref(request);
}

/* ---- adding a request ---- */

static uint32_t count_fields(struct slice message, uint32_t number)
{
    struct wire_cursor cursor = wire_cursor(message);
    struct wire_field field;
    uint32_t count = 0;
    while (wire_next_bytes(&cursor, number, &field))
        count++;
    return count;
}

static uint32_t count_samples(struct slice group)
{
    struct wire_cursor scopes = wire_cursor(group);
    struct wire_field scope, profile;
    uint32_t count = 0;
    while (wire_next_bytes(&scopes, RESOURCE_PROFILES_SCOPE_PROFILES, &scope)) {
        struct wire_cursor profiles = wire_cursor(scope.bytes);
        while (wire_next_bytes(&profiles, SCOPE_PROFILES_PROFILES, &profile))
            count += count_fields(profile.bytes, PROFILE_SAMPLES);
    }
    return count;
}

static uint32_t count_items(struct slice request)
{
    struct wire_cursor cursor = wire_cursor(request);
    struct wire_field field;
    uint32_t count = 0;
    while (wire_next_bytes(&cursor, PROFILES_RESOURCE_PROFILES, &field))
        count += count_samples(field.bytes);
    return count;
}

/* Whether there are enough samples to refer to all entries of the dictionary. */
static bool may_all_be_referenced(const struct merge_source *source, uint32_t samples)
{
    return merge_source_count(source, DICTIONARY_STACK_TABLE) <= samples + 1 &&
           merge_source_count(source, DICTIONARY_LINK_TABLE) <= samples + 1;
}

void profiles_merge_add(struct profiles_merge *merge, struct buffer *buffer)
{
    struct slice request = buffer_slice(buffer);
    struct merge_source source;
    struct wire_cursor cursor = wire_cursor(request);
    struct wire_field field;
    uint32_t items = count_items(request);
    hold(merge, buffer);
    merge_source_init(&source, &merge->target, find_dictionary(request),
                      merge->last.target ? &merge->last : NULL, &merge->dictionary_unknown);
    merge_source_begin(&source);
    if (may_all_be_referenced(&source, items))
        merge_source_map_all(&source);
    while (wire_next(&cursor, &field))
        if (field.number == PROFILES_RESOURCE_PROFILES)
            merge_source_rewrite(&source, request_references, whole_field(&field),
                                 &merge->resources);
        else if (field.number != PROFILES_DICTIONARY)
            wire_out_put(&merge->resources, whole_field(&field));
    assert(!cursor.broken); /* scanned */
    merge->items += items;
    merge_source_deinit(&merge->last);
    if (merge_source_is_worth_keeping(&source))
        merge->last = source;
    else
        merge_source_deinit(&source);
}

/* ---- looking through a request that is added in parts ---- */

/* Collects the fields of a message that are not parts. */
struct header {
    struct slice run;     /* the bytes, as long as they are adjacent */
    struct wire_out copy; /* several runs */
};

static void header_add(struct header *header, const struct wire_field *field)
{
    struct slice *run = &header->run;
    if (header->copy.size == 0 && (run->size == 0 || run->data + run->size == field->start)) {
        run->data = run->size ? run->data : field->start;
        run->size = (size_t)(field->end - run->data);
        return;
    }
    if (header->copy.size == 0)
        wire_out_put(&header->copy, *run);
    wire_out_put(&header->copy, whole_field(field));
}

static struct slice header_finish(struct header *header, struct arena *arena)
{
    struct slice result = header->run;
    if (header->copy.size > 0)
        result = arena_copy(arena, slice_of(header->copy.data, header->copy.size));
    wire_out_deinit(&header->copy);
    return result;
}

/* Returns the counter of the parts of all messages on a level. */
static uint32_t *part_count(struct profiles_source *source, int level)
{
    return level + 1 < LEVELS ? &source->levels[level + 1].count : &source->sample_count;
}

/* Counts all messages, so that the arrays can be allocated at once. */
static void count_parts(struct profiles_source *source, int level, struct slice payload)
{
    struct wire_cursor cursor = wire_cursor(payload);
    struct wire_field field;
    uint32_t *count = part_count(source, level);
    while (wire_next_bytes(&cursor, level_fields[level + 1], &field)) {
        (*count)++;
        if (level + 1 < LEVELS)
            count_parts(source, level + 1, field.bytes);
    }
}

static void read_message(struct profiles_source *source, int level, struct slice payload)
{
    struct source_level *all = &source->levels[level];
    struct source_message *message = &all->messages[all->count++];
    struct wire_cursor cursor = wire_cursor(payload);
    struct header header = {0};
    struct wire_field field;
    const uint32_t *parts = part_count(source, level);
    message->first_part = *parts;
    while (wire_next(&cursor, &field))
        if (field.number != level_fields[level + 1])
            header_add(&header, &field);
        else if (level + 1 < LEVELS)
            read_message(source, level + 1, payload_of(&field));
        else
            source->samples[source->sample_count++] = whole_field(&field);
    message->parts = *parts - message->first_part;
    message->header = header_finish(&header, &source->arena);
}

static void allocate_arrays(struct profiles_source *source)
{
    for (int level = 0; level < LEVELS; level++) {
        struct source_level *all = &source->levels[level];
        all->messages = arena_array(&source->arena, all->count, sizeof *all->messages);
        all->count = 0;
    }
    source->samples = arena_array(&source->arena, source->sample_count, sizeof *source->samples);
    source->sample_count = 0;
}

struct profiles_source *profiles_source_new(struct profiles_merge *merge, struct buffer *request)
{
    struct profiles_source *source = memory_zalloc(sizeof *source);
    struct wire_cursor cursor = wire_cursor(buffer_slice(request));
    struct wire_field field;
    source->merge = merge;
    source->request = buffer_ref(request);
    source->unknown.budget = source->dictionary_unknown.budget = merge->budget;
    arena_init(&source->arena, merge->budget);
    merge_source_init(&source->dictionary, &merge->target, find_dictionary(buffer_slice(request)),
                      NULL, &source->dictionary_unknown);
    while (wire_next(&cursor, &field))
        if (field.number == PROFILES_RESOURCE_PROFILES) {
            source->levels[LEVEL_RESOURCE].count++;
            count_parts(source, LEVEL_RESOURCE, payload_of(&field));
        } else if (field.number != PROFILES_DICTIONARY) {
            wire_out_put(&source->unknown, whole_field(&field));
        }
    uint32_t profiles = source->levels[LEVEL_PROFILE].count, samples = source->sample_count;
    allocate_arrays(source);
    cursor = wire_cursor(buffer_slice(request));
    while (wire_next_bytes(&cursor, PROFILES_RESOURCE_PROFILES, &field))
        read_message(source, LEVEL_RESOURCE, field.bytes);
    assert(!cursor.broken);
    assert(source->levels[LEVEL_PROFILE].count == profiles && source->sample_count == samples);
    return source;
}

void profiles_source_free(struct profiles_source *source)
{
    if (!source)
        return;
    merge_source_deinit(&source->dictionary);
    wire_out_deinit(&source->unknown);
    wire_out_deinit(&source->dictionary_unknown);
    arena_deinit(&source->arena);
    buffer_unref(source->request);
    free(source);
}

uint32_t profiles_source_items(const struct profiles_source *source)
{
    return source->sample_count;
}

size_t profiles_source_item_bytes(const struct profiles_source *source, uint32_t first,
                                  uint32_t count)
{
    size_t size = 0;
    assert(first <= source->sample_count && count <= source->sample_count - first);
    for (uint32_t i = first; i < first + count; i++)
        size += source->samples[i].size;
    return size;
}

/* ---- adding a part ---- */

/* The samples that are added, and the messages that contain them on each level. They are found by
 * bisection, so that a request that is split into many parts is not read for each of them. */
struct range {
    uint32_t first[LEVELS + 1], end[LEVELS + 1]; /* the last element is for the samples */
};

/* Whether a message contains the part or a later one. A profile without samples belongs to the next
 * sample. */
static bool reaches(int level, const struct source_message *message, uint32_t part)
{
    return message->first_part + message->parts > part ||
           (level == LEVEL_PROFILE && message->first_part >= part);
}

static bool starts_at(int level, const struct source_message *message, uint32_t part)
{
    (void)level;
    return message->first_part >= part;
}

/* Returns the first message of a level for which the predicate is true. It must be false for all
 * earlier messages and true for all later ones. */
static uint32_t bisect(const struct profiles_source *source, int level, uint32_t part,
                       bool (*is_behind)(int level, const struct source_message *message,
                                         uint32_t part))
{
    uint32_t low = 0, high = source->levels[level].count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (is_behind(level, &source->levels[level].messages[middle], part))
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static struct range range_of(const struct profiles_source *source, uint32_t first, uint32_t end)
{
    struct range range;
    range.first[LEVELS] = first;
    range.end[LEVELS] = end;
    for (int level = LEVELS - 1; level >= 0; level--) {
        range.first[level] = bisect(source, level, range.first[level + 1], reaches);
        if (level == LEVEL_PROFILE && end == source->sample_count)
            range.end[level] = source->levels[level].count;
        else
            range.end[level] = bisect(source, level, range.end[level + 1], starts_at);
        assert(range.first[level] <= range.end[level]);
    }
    return range;
}

static uint32_t max_u32(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static uint32_t min_u32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Writes the header of a later part of a profile, without fields for the whole profile (profile_id,
 * original_payload). */
static void put_later_header(struct profiles_source *source, struct slice header,
                             struct wire_out *out)
{
    struct wire_cursor cursor = wire_cursor(header);
    struct wire_field field;
    while (wire_next(&cursor, &field))
        if (field.number != PROFILE_PROFILE_ID && field.number != PROFILE_ORIGINAL_PAYLOAD &&
            field.number != PROFILE_ORIGINAL_PAYLOAD_FORMAT)
            merge_source_rewrite(&source->dictionary, profile_references, whole_field(&field), out);
}

static void add_header(struct profiles_source *source, int level,
                       const struct source_message *message, bool is_first)
{
    struct wire_out *out = &source->merge->resources;
    if (level != LEVEL_PROFILE)
        wire_out_put(out, message->header);
    else if (is_first)
        merge_source_rewrite(&source->dictionary, profile_references, message->header, out);
    else
        put_later_header(source, message->header, out);
}

static void add_message(struct profiles_source *source, int level, uint32_t index,
                        const struct range *range)
{
    const struct source_message *message = &source->levels[level].messages[index];
    struct wire_out *out = &source->merge->resources;
    uint32_t first = max_u32(message->first_part, range->first[level + 1]);
    uint32_t end = min_u32(message->first_part + message->parts, range->end[level + 1]);
    struct wire_out_field opened = wire_out_open(out, level_fields[level], message->header.size);
    add_header(source, level, message, first == message->first_part);
    for (uint32_t i = first; i < end; i++)
        if (level + 1 < LEVELS)
            add_message(source, level + 1, i, range);
        else
            merge_source_rewrite(&source->dictionary, profile_references, source->samples[i], out);
    wire_out_close(out, opened, level_fields[level]);
}

void profiles_source_add(struct profiles_source *source, uint32_t first, uint32_t count)
{
    assert(first <= source->sample_count && count <= source->sample_count - first);
    if (count == 0 && source->sample_count > 0)
        return;
    struct range range = range_of(source, first, first + count);
    hold(source->merge, source->request);
    merge_source_begin(&source->dictionary);
    for (uint32_t i = range.first[LEVEL_RESOURCE]; i < range.end[LEVEL_RESOURCE]; i++)
        add_message(source, LEVEL_RESOURCE, i, &range);
    source->merge->items += count;
    if (first > 0)
        return;
    put(&source->merge->resources, &source->unknown);
    put(&source->merge->dictionary_unknown, &source->dictionary_unknown);
}

/* ---- the result ---- */

struct profiles_merge *profiles_merge_new(struct budget *budget)
{
    struct profiles_merge *merge = memory_zalloc(sizeof *merge);
    merge->budget = budget;
    merge->resources.budget = merge->dictionary_unknown.budget = budget;
    merge_tables_init(&merge->target.tables, budget);
    for (int table = 0; table < DICTIONARY_TABLE_COUNT; table++)
        merge->target.made[table].budget = budget;
    merge->target.round = 1; /* 0 in a source means never mapped */
    return merge;
}

static void clear(struct profiles_merge *merge)
{
    wire_out_deinit(&merge->resources);
    wire_out_deinit(&merge->dictionary_unknown);
    merge_tables_deinit(&merge->target.tables);
    for (int table = 0; table < DICTIONARY_TABLE_COUNT; table++)
        wire_out_deinit(&merge->target.made[table]);
    merge_source_deinit(&merge->last);
    for (size_t i = 0; i < merge->held_count; i++)
        buffer_unref(merge->held[i]);
    free(merge->held);
    merge->held = NULL;
    merge->held_count = 0;
    merge->items = 0;
    merge->target.round++;
    merge->target.read_bytes = 0;
}

void profiles_merge_free(struct profiles_merge *merge)
{
    if (!merge)
        return;
    clear(merge);
    free(merge);
}

uint32_t profiles_merge_items(const struct profiles_merge *merge)
{
    return merge->items;
}

static size_t dictionary_size(const struct profiles_merge *merge)
{
    return merge->dictionary_unknown.size + merge->target.tables.size;
}

size_t profiles_merge_size(const struct profiles_merge *merge)
{
    return merge->resources.size + dictionary_size(merge) + WIRE_HEADER_MAX;
}

size_t profiles_merge_work(const struct profiles_merge *merge)
{
    size_t size = profiles_merge_size(merge), written = dictionary_size(merge);
    size_t read = merge->target.read_bytes;
    return read > written ? size + (read - written) : size;
}

static uint8_t *write_bytes(uint8_t *to, const struct wire_out *bytes)
{
    if (bytes->size > 0)
        memcpy(to, bytes->data, bytes->size);
    return to + bytes->size;
}

struct buffer *profiles_merge_finish(struct profiles_merge *merge)
{
    if (merge->resources.size == 0 && merge->dictionary_unknown.size == 0) {
        clear(merge);
        return buffer_new_charged(0, merge->budget);
    }
    merge->expected = merge->resources.size < EXPECTED_MAX ? merge->resources.size : EXPECTED_MAX;
    merge_tables_complete(&merge->target.tables);
    size_t dictionary = dictionary_size(merge);
    size_t size = merge->resources.size + wire_size_bytes(PROFILES_DICTIONARY, dictionary);
    struct buffer *result = buffer_new_charged(size, merge->budget);
    uint8_t *to = write_bytes(result->data, &merge->resources);
    to = wire_write_header(to, PROFILES_DICTIONARY, dictionary);
    to = merge_tables_write(&merge->target.tables, to);
    to = write_bytes(to, &merge->dictionary_unknown);
    assert(to == result->data + size);
    result->size = size;
    clear(merge);
    return result;
}
