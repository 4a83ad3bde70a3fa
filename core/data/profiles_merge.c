#include "core/data/profiles_merge.h"

#include "core/base/budget.h"
#include "core/base/memory.h"
#include "core/data/merge_source.h"

#include <assert.h>

/* What is merged is mostly as large as what was merged before; growing towards it copies it. */
enum { EXPECTED_MAX = 1 << 20 };

struct profiles_merge {
    struct budget *budget;
    struct merge_target target;
    struct wire_out resources; /* the encoded ResourceProfiles, unknown fields of requests */
    struct wire_out dictionary_unknown; /* unknown fields of dictionaries */
    struct merge_source last;           /* of the request before, or all zero */
    struct buffer **held;               /* requests: what is merged may still lie in there */
    size_t held_count;
    uint32_t items;
    size_t expected; /* bytes of resources: as many as the last time, up to EXPECTED_MAX */
};

/* A message without those fields that are looked at one by one: their bytes, one behind the other.
 */
struct source_profile {
    struct slice header;
    uint32_t first_sample;
    uint32_t sample_count;
};

struct source_scope {
    struct slice header;
    uint32_t first_profile;
    uint32_t profile_count;
};

struct source_group {
    struct slice header;
    uint32_t first_scope;
    uint32_t scope_count;
};

struct profiles_source {
    struct profiles_merge *merge;
    struct buffer *request;
    struct arena arena;
    struct merge_source dictionary;
    struct wire_out unknown;            /* fields of the request */
    struct wire_out dictionary_unknown; /* fields of the dictionary */
    struct source_group *groups;
    struct source_scope *scopes;
    struct source_profile *profiles;
    struct slice *samples;
    uint32_t group_count, scope_count, profile_count, sample_count;
};

static void put(struct wire_out *out, const struct wire_out *bytes)
{
    wire_out_put(out, slice_of(bytes->data, bytes->size));
}

static struct slice whole_field(const struct wire_field *field)
{
    return slice_of(field->start, (size_t)(field->end - field->start));
}

/* Of a message: its number said so, and a scan that the rest fits. */
static struct slice payload_of(const struct wire_field *field)
{
    assert(field->type == WIRE_BYTES);
    return field->bytes;
}

/* The dictionary of a request that was normalised: there is one, or none. */
static struct slice find_dictionary(struct slice request)
{
    struct wire_cursor cursor = wire_cursor(request);
    struct wire_field field;
    return wire_next_bytes(&cursor, PROFILES_DICTIONARY, &field) ? field.bytes : (struct slice){0};
}

/* Until the result is written. */
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

/* Can the samples refer to all of the dictionary? */
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
            merge_source_rewrite(&source, merge_request_rules, whole_field(&field),
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

/* Collects the fields of a message that are not taken out of it. */
struct header {
    struct slice run;     /* as long as it is one */
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

/* How many there are of everything, so that the arrays can be allocated at once. */
static void count_profile(struct profiles_source *source, struct slice profile)
{
    struct wire_cursor cursor = wire_cursor(profile);
    struct wire_field field;
    source->profile_count++;
    while (wire_next_bytes(&cursor, PROFILE_SAMPLES, &field))
        source->sample_count++;
}

static void count_group(struct profiles_source *source, struct slice group)
{
    struct wire_cursor scopes = wire_cursor(group);
    struct wire_field scope, profile;
    source->group_count++;
    while (wire_next_bytes(&scopes, RESOURCE_PROFILES_SCOPE_PROFILES, &scope)) {
        struct wire_cursor profiles = wire_cursor(scope.bytes);
        source->scope_count++;
        while (wire_next_bytes(&profiles, SCOPE_PROFILES_PROFILES, &profile))
            count_profile(source, profile.bytes);
    }
}

static void read_profile(struct profiles_source *source, struct slice payload)
{
    struct source_profile *profile = &source->profiles[source->profile_count++];
    struct wire_cursor cursor = wire_cursor(payload);
    struct header header = {0};
    struct wire_field field;
    profile->first_sample = source->sample_count;
    while (wire_next(&cursor, &field))
        if (field.number == PROFILE_SAMPLES)
            source->samples[source->sample_count++] = whole_field(&field);
        else
            header_add(&header, &field);
    profile->sample_count = source->sample_count - profile->first_sample;
    profile->header = header_finish(&header, &source->arena);
}

static void read_scope(struct profiles_source *source, struct slice payload)
{
    struct source_scope *scope = &source->scopes[source->scope_count++];
    struct wire_cursor cursor = wire_cursor(payload);
    struct header header = {0};
    struct wire_field field;
    scope->first_profile = source->profile_count;
    while (wire_next(&cursor, &field))
        if (field.number == SCOPE_PROFILES_PROFILES)
            read_profile(source, payload_of(&field));
        else
            header_add(&header, &field);
    scope->profile_count = source->profile_count - scope->first_profile;
    scope->header = header_finish(&header, &source->arena);
}

static void read_group(struct profiles_source *source, struct slice payload)
{
    struct source_group *group = &source->groups[source->group_count++];
    struct wire_cursor cursor = wire_cursor(payload);
    struct header header = {0};
    struct wire_field field;
    group->first_scope = source->scope_count;
    while (wire_next(&cursor, &field))
        if (field.number == RESOURCE_PROFILES_SCOPE_PROFILES)
            read_scope(source, payload_of(&field));
        else
            header_add(&header, &field);
    group->scope_count = source->scope_count - group->first_scope;
    group->header = header_finish(&header, &source->arena);
}

static void allocate_arrays(struct profiles_source *source)
{
    source->groups = arena_array(&source->arena, source->group_count, sizeof *source->groups);
    source->scopes = arena_array(&source->arena, source->scope_count, sizeof *source->scopes);
    source->profiles = arena_array(&source->arena, source->profile_count, sizeof *source->profiles);
    source->samples = arena_array(&source->arena, source->sample_count, sizeof *source->samples);
    source->group_count = source->scope_count = source->profile_count = source->sample_count = 0;
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
        if (field.number == PROFILES_RESOURCE_PROFILES)
            count_group(source, payload_of(&field));
        else if (field.number != PROFILES_DICTIONARY)
            wire_out_put(&source->unknown, whole_field(&field));
    uint32_t profiles = source->profile_count, samples = source->sample_count;
    allocate_arrays(source);
    cursor = wire_cursor(buffer_slice(request));
    while (wire_next_bytes(&cursor, PROFILES_RESOURCE_PROFILES, &field))
        read_group(source, field.bytes);
    assert(!cursor.broken);
    assert(source->profile_count == profiles && source->sample_count == samples);
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

/* Which samples are added, and what of the flat arrays they touch. Everything is found by
 * bisection, so that a request cut into many parts is not walked for each of them. */
struct range {
    uint32_t first;
    uint32_t end;
    uint32_t first_profile, end_profile;
    uint32_t first_scope, end_scope;
    uint32_t first_group, end_group;
};

/* The first of `count` for which the question is answered with yes; the answers are no, no, ...,
 * yes, yes. */
static uint32_t bisect(const struct profiles_source *source, uint32_t count, uint32_t argument,
                       bool (*is_behind)(const struct profiles_source *source, uint32_t i,
                                         uint32_t argument))
{
    uint32_t low = 0;
    while (low < count) {
        uint32_t middle = low + (count - low) / 2;
        if (is_behind(source, middle, argument))
            count = middle;
        else
            low = middle + 1;
    }
    return low;
}

static bool profile_reaches(const struct profiles_source *source, uint32_t i, uint32_t sample)
{
    const struct source_profile *profile = &source->profiles[i];
    return profile->first_sample >= sample ||
           profile->first_sample + profile->sample_count > sample;
}

static bool profile_starts_at(const struct profiles_source *source, uint32_t i, uint32_t sample)
{
    return source->profiles[i].first_sample >= sample;
}

static bool scope_reaches(const struct profiles_source *source, uint32_t i, uint32_t profile)
{
    return source->scopes[i].first_profile + source->scopes[i].profile_count > profile;
}

static bool scope_starts_at(const struct profiles_source *source, uint32_t i, uint32_t profile)
{
    return source->scopes[i].first_profile >= profile;
}

static bool group_reaches(const struct profiles_source *source, uint32_t i, uint32_t scope)
{
    return source->groups[i].first_scope + source->groups[i].scope_count > scope;
}

static bool group_starts_at(const struct profiles_source *source, uint32_t i, uint32_t scope)
{
    return source->groups[i].first_scope >= scope;
}

static struct range range_of(const struct profiles_source *source, uint32_t first, uint32_t end)
{
    struct range range = {.first = first, .end = end, .end_profile = source->profile_count};
    range.first_profile = bisect(source, source->profile_count, first, profile_reaches);
    if (end < source->sample_count)
        range.end_profile = bisect(source, source->profile_count, end, profile_starts_at);
    assert(range.first_profile <= range.end_profile);
    range.first_scope = bisect(source, source->scope_count, range.first_profile, scope_reaches);
    range.end_scope = bisect(source, source->scope_count, range.end_profile, scope_starts_at);
    range.first_group = bisect(source, source->group_count, range.first_scope, group_reaches);
    range.end_group = bisect(source, source->group_count, range.end_scope, group_starts_at);
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

/* The header of a profile's second part and those behind it: what stands for the whole is not
 * repeated. */
static void put_later_header(struct profiles_source *source, struct slice header,
                             struct wire_out *out)
{
    struct wire_cursor cursor = wire_cursor(header);
    struct wire_field field;
    while (wire_next(&cursor, &field))
        if (field.number != PROFILE_PROFILE_ID && field.number != PROFILE_ORIGINAL_PAYLOAD &&
            field.number != PROFILE_ORIGINAL_PAYLOAD_FORMAT)
            merge_source_rewrite(&source->dictionary, merge_profile_rules, whole_field(&field),
                                 out);
}

static void add_profile(struct profiles_source *source, const struct source_profile *profile,
                        const struct range *range)
{
    struct wire_out *out = &source->merge->resources;
    uint32_t first = max_u32(profile->first_sample, range->first);
    uint32_t end = min_u32(profile->first_sample + profile->sample_count, range->end);
    struct wire_out_field opened =
        wire_out_open(out, SCOPE_PROFILES_PROFILES, profile->header.size);
    if (first == profile->first_sample)
        merge_source_rewrite(&source->dictionary, merge_profile_rules, profile->header, out);
    else
        put_later_header(source, profile->header, out);
    for (uint32_t i = first; i < end; i++)
        merge_source_rewrite(&source->dictionary, merge_profile_rules, source->samples[i], out);
    source->merge->items += first < end ? end - first : 0;
    wire_out_close(out, opened, SCOPE_PROFILES_PROFILES);
}

static void add_scope(struct profiles_source *source, const struct source_scope *scope,
                      const struct range *range)
{
    struct wire_out *out = &source->merge->resources;
    struct wire_out_field opened =
        wire_out_open(out, RESOURCE_PROFILES_SCOPE_PROFILES, scope->header.size);
    wire_out_put(out, scope->header);
    uint32_t end = min_u32(scope->first_profile + scope->profile_count, range->end_profile);
    for (uint32_t i = max_u32(scope->first_profile, range->first_profile); i < end; i++)
        add_profile(source, &source->profiles[i], range);
    wire_out_close(out, opened, RESOURCE_PROFILES_SCOPE_PROFILES);
}

static void add_group(struct profiles_source *source, const struct source_group *group,
                      const struct range *range)
{
    struct wire_out *out = &source->merge->resources;
    struct wire_out_field opened =
        wire_out_open(out, PROFILES_RESOURCE_PROFILES, group->header.size);
    wire_out_put(out, group->header);
    uint32_t end = min_u32(group->first_scope + group->scope_count, range->end_scope);
    for (uint32_t i = max_u32(group->first_scope, range->first_scope); i < end; i++)
        add_scope(source, &source->scopes[i], range);
    wire_out_close(out, opened, PROFILES_RESOURCE_PROFILES);
}

void profiles_source_add(struct profiles_source *source, uint32_t first, uint32_t count)
{
    assert(first <= source->sample_count && count <= source->sample_count - first);
    if (count == 0 && source->sample_count > 0)
        return;
    struct range range = range_of(source, first, first + count);
    hold(source->merge, source->request);
    merge_source_begin(&source->dictionary);
    for (uint32_t i = range.first_group; i < range.end_group; i++)
        add_group(source, &source->groups[i], &range);
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
    merge->target.round = 1; /* 0 in a source: never mapped */
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
