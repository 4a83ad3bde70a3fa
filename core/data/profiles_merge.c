#include "core/data/profiles_merge.h"

#include "core/base/arena.h"
#include "core/base/budget.h"
#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/data/otlp.h"
#include "core/data/scan.h"
#include "core/data/wire.h"

#include <assert.h>

/* Bytes that grow; charged to a budget. */
struct bytes {
    uint8_t *data;
    size_t size;
    size_t capacity;
    struct budget *budget;
};

/* One table of the merged dictionary. */
struct table {
    struct slice *entries; /* all arrays live in the merge's arena */
    uint32_t count;
    uint32_t capacity;
    size_t payload_size; /* sum of the encoded entries, with tag and length */
    struct table_slot {
        uint32_t hash;
        uint32_t index; /* 0: free, for index 0 is never looked up */
    } * slots;
    uint32_t slot_count; /* a power of two */
};

struct profiles_merge {
    struct budget *budget;
    struct arena arena;
    struct table tables[DICTIONARY_TABLE_COUNT];
    struct bytes resources; /* the encoded ResourceProfiles, and unknown fields of requests */
    struct bytes dictionary_unknown; /* unknown fields of dictionaries */
    uint32_t items;
    uint32_t round; /* counts results: what sources know of the tables is void in the next round */
};

/* Of a source's entry: its index in the merged table, if known in this round. */
struct mapped {
    uint32_t round;
    uint32_t index;
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
    struct arena arena;
    struct slice *entries[DICTIONARY_TABLE_COUNT];
    uint32_t entry_count[DICTIONARY_TABLE_COUNT];
    struct mapped *mapped[DICTIONARY_TABLE_COUNT];
    struct slice unknown;            /* fields of the request */
    struct slice dictionary_unknown; /* fields of the dictionary */
    struct source_group *groups;
    struct source_scope *scopes;
    struct source_profile *profiles;
    struct slice *samples;
    uint32_t group_count, scope_count, profile_count, sample_count;
    struct bytes scratch[DICTIONARY_TABLE_COUNT]; /* entries being rewritten: one needs only tables
                                                     other than its own */
};

/* ---- growing bytes ---- */

static uint8_t *room(struct bytes *bytes, size_t more)
{
    if (bytes->capacity - bytes->size < more) {
        size_t capacity = bytes->capacity < 256 ? 256 : bytes->capacity * 2;
        if (capacity < bytes->size + more)
            capacity = bytes->size + more;
        budget_charge(bytes->budget, capacity - bytes->capacity);
        bytes->data = memory_realloc(bytes->data, capacity);
        bytes->capacity = capacity;
    }
    return bytes->data + bytes->size;
}

static void put(struct bytes *bytes, const uint8_t *from, const uint8_t *end)
{
    size_t size = (size_t)(end - from);
    if (size == 0)
        return;
    memcpy(room(bytes, size), from, size);
    bytes->size += size;
}

static void put_varint(struct bytes *bytes, uint64_t value)
{
    uint8_t *to = room(bytes, WIRE_HEADER_MAX);
    bytes->size = (size_t)(wire_write_varint(to, value) - bytes->data);
}

static void put_tag(struct bytes *bytes, uint32_t number, enum wire_type type)
{
    uint8_t *to = room(bytes, WIRE_HEADER_MAX);
    bytes->size = (size_t)(wire_write_tag(to, number, type) - bytes->data);
}

/* A field whose payload is written behind `open` and closed when its size is known. */
static size_t open_field(struct bytes *bytes)
{
    room(bytes, WIRE_HEADER_MAX);
    bytes->size += WIRE_HEADER_MAX;
    return bytes->size;
}

static void close_field(struct bytes *bytes, size_t open, uint32_t number)
{
    uint8_t header[WIRE_HEADER_MAX];
    size_t payload = bytes->size - open;
    size_t size = (size_t)(wire_write_header(header, number, payload) - header);
    uint8_t *to = bytes->data + open - WIRE_HEADER_MAX;
    memmove(to + size, bytes->data + open, payload);
    memcpy(to, header, size);
    bytes->size = open - WIRE_HEADER_MAX + size + payload;
}

static void free_bytes(struct bytes *bytes)
{
    budget_release(bytes->budget, bytes->capacity);
    free(bytes->data);
    *bytes = (struct bytes){.budget = bytes->budget};
}

/* ---- the merged tables ---- */

static struct slice zero_entry(int table)
{
    /* The proto prefers a link of zero bytes to one of empty ids. */
    static const uint8_t link[2 + TRACE_ID_SIZE + 2 + SPAN_ID_SIZE] = {
        [0] = LINK_TRACE_ID << 3 | WIRE_BYTES,
        [1] = TRACE_ID_SIZE,
        [2 + TRACE_ID_SIZE] = LINK_SPAN_ID << 3 | WIRE_BYTES,
        [3 + TRACE_ID_SIZE] = SPAN_ID_SIZE,
    };
    return table == DICTIONARY_LINK_TABLE ? slice_of(link, sizeof link) : (struct slice){0};
}

static void grow_slots(struct table *table, struct arena *arena)
{
    uint32_t count = table->slot_count ? table->slot_count * 2 : 64;
    struct table_slot *slots = arena_array(arena, count, sizeof *slots);
    for (uint32_t i = 0; i < table->slot_count; i++) {
        if (table->slots[i].index == 0)
            continue;
        uint32_t at = table->slots[i].hash & (count - 1);
        while (slots[at].index != 0)
            at = (at + 1) & (count - 1);
        slots[at] = table->slots[i];
    }
    table->slots = slots;
    table->slot_count = count;
}

static void append_entry(struct table *table, int number, struct arena *arena, struct slice payload)
{
    if (table->count == table->capacity) {
        uint32_t capacity = table->capacity ? table->capacity * 2 : 32;
        struct slice *entries = arena_array(arena, capacity, sizeof *entries);
        if (table->count > 0)
            memcpy(entries, table->entries, table->count * sizeof *entries);
        table->entries = entries;
        table->capacity = capacity;
    }
    table->entries[table->count++] = payload;
    table->payload_size += wire_size_bytes((uint32_t)number, payload.size);
}

/* Index of the entry, which is copied when it is new. */
static uint32_t intern(struct profiles_merge *merge, int number, struct slice payload)
{
    struct table *table = &merge->tables[number];
    if (scan_is_zero_entry(number, payload))
        return 0;
    if (table->count == 0)
        append_entry(table, number, &merge->arena, zero_entry(number));
    if (table->count * 2 > table->slot_count)
        grow_slots(table, &merge->arena);
    uint32_t hash = (uint32_t)hash_bytes(payload);
    uint32_t mask = table->slot_count - 1;
    uint32_t at = hash & mask;
    for (; table->slots[at].index != 0; at = (at + 1) & mask)
        if (table->slots[at].hash == hash &&
            slice_equal(table->entries[table->slots[at].index], payload))
            return table->slots[at].index;
    table->slots[at] = (struct table_slot){hash, table->count};
    append_entry(table, number, &merge->arena, arena_copy(&merge->arena, payload));
    return table->slots[at].index;
}

/* ---- rewriting indices ---- */

/* What a field number means for a message: indices into `table`, or a message with rules of its
 * own. All others are copied. */
struct rule {
    uint32_t number;
    int table;                /* 0: a message */
    const struct rule *rules; /* of that message */
};

static const struct rule line_rules[] = {{LINE_FUNCTION_INDEX, DICTIONARY_FUNCTION_TABLE, NULL},
                                         {0}};
static const struct rule value_type_rules[] = {
    {VALUE_TYPE_TYPE_STRINDEX, DICTIONARY_STRING_TABLE, NULL},
    {VALUE_TYPE_UNIT_STRINDEX, DICTIONARY_STRING_TABLE, NULL},
    {0},
};
static const struct rule sample_rules[] = {
    {SAMPLE_STACK_INDEX, DICTIONARY_STACK_TABLE, NULL},
    {SAMPLE_ATTRIBUTE_INDICES, DICTIONARY_ATTRIBUTE_TABLE, NULL},
    {SAMPLE_LINK_INDEX, DICTIONARY_LINK_TABLE, NULL},
    {0},
};
static const struct rule profile_rules[] = {
    {PROFILE_SAMPLE_TYPE, 0, value_type_rules},
    {PROFILE_PERIOD_TYPE, 0, value_type_rules},
    {PROFILE_ATTRIBUTE_INDICES, DICTIONARY_ATTRIBUTE_TABLE, NULL},
    {0},
};
static const struct rule *const entry_rules[DICTIONARY_TABLE_COUNT] = {
    [DICTIONARY_MAPPING_TABLE] =
        (const struct rule[]){
            {MAPPING_FILENAME_STRINDEX, DICTIONARY_STRING_TABLE, NULL},
            {MAPPING_ATTRIBUTE_INDICES, DICTIONARY_ATTRIBUTE_TABLE, NULL},
            {0},
        },
    [DICTIONARY_LOCATION_TABLE] =
        (const struct rule[]){
            {LOCATION_MAPPING_INDEX, DICTIONARY_MAPPING_TABLE, NULL},
            {LOCATION_LINES, 0, line_rules},
            {LOCATION_ATTRIBUTE_INDICES, DICTIONARY_ATTRIBUTE_TABLE, NULL},
            {0},
        },
    [DICTIONARY_FUNCTION_TABLE] =
        (const struct rule[]){
            {FUNCTION_NAME_STRINDEX, DICTIONARY_STRING_TABLE, NULL},
            {FUNCTION_SYSTEM_NAME_STRINDEX, DICTIONARY_STRING_TABLE, NULL},
            {FUNCTION_FILENAME_STRINDEX, DICTIONARY_STRING_TABLE, NULL},
            {0},
        },
    [DICTIONARY_ATTRIBUTE_TABLE] =
        (const struct rule[]){
            {KEY_VALUE_AND_UNIT_KEY_STRINDEX, DICTIONARY_STRING_TABLE, NULL},
            {KEY_VALUE_AND_UNIT_UNIT_STRINDEX, DICTIONARY_STRING_TABLE, NULL},
            {0},
        },
    [DICTIONARY_STACK_TABLE] =
        (const struct rule[]){
            {STACK_LOCATION_INDICES, DICTIONARY_LOCATION_TABLE, NULL},
            {0},
        },
    /* links and strings refer to nothing */
};

static void rewrite(struct profiles_source *source, const struct rule *rules, struct slice payload,
                    struct bytes *out);

/* The index in the merged table for one of the source. */
static uint32_t map_index(struct profiles_source *source, int table, uint64_t index)
{
    if (index == 0)
        return 0;
    assert(index < source->entry_count[table]); /* scanned */
    struct mapped *mapped = &source->mapped[table][index];
    if (mapped->round == source->merge->round)
        return mapped->index;
    struct slice payload = source->entries[table][index];
    if (entry_rules[table]) {
        struct bytes *scratch = &source->scratch[table];
        scratch->size = 0;
        rewrite(source, entry_rules[table], payload, scratch);
        payload = slice_of(scratch->data, scratch->size);
    }
    *mapped = (struct mapped){source->merge->round, intern(source->merge, table, payload)};
    return mapped->index;
}

/* A repeated index keeps its zeros, a single one that is zero is left out. */
static bool is_repeated(int table)
{
    return table == DICTIONARY_ATTRIBUTE_TABLE || table == DICTIONARY_LOCATION_TABLE;
}

/* A list of indices: most of what there is to rewrite. Writing one never writes to `out`
 * otherwise, because a table refers only to others. */
static void rewrite_list(struct profiles_source *source, int table, struct slice list,
                         struct bytes *out)
{
    enum { INDEX_MAX_BYTES = 5 };
    const struct mapped *mapped = source->mapped[table];
    uint32_t round = source->merge->round;
    struct wire_cursor packed = wire_cursor(list);
    uint8_t *to = room(out, list.size * INDEX_MAX_BYTES);
    uint64_t index;
    while (wire_packed_varint(&packed, &index)) {
        assert(index == 0 || index < source->entry_count[table]); /* scanned */
        bool is_known = index != 0 && mapped[index].round == round;
        uint32_t value = is_known ? mapped[index].index : map_index(source, table, index);
        if (value < 0x80) {
            *to++ = (uint8_t)value;
        } else if (value < 0x4000) {
            *to++ = (uint8_t)(value | 0x80);
            *to++ = (uint8_t)(value >> 7);
        } else {
            to = wire_write_varint(to, value);
        }
    }
    out->size = (size_t)(to - out->data);
}

static void rewrite_field(struct profiles_source *source, const struct rule *rule,
                          const struct wire_field *field, struct bytes *out)
{
    if (rule->table != 0 && field->type == WIRE_VARINT) {
        uint32_t index = map_index(source, rule->table, field->value);
        if (index == 0 && !is_repeated(rule->table))
            return;
        put_tag(out, field->number, WIRE_VARINT);
        put_varint(out, index);
        return;
    }
    assert(field->type == WIRE_BYTES);
    size_t open = open_field(out);
    if (rule->table == 0)
        rewrite(source, rule->rules, field->bytes, out);
    else
        rewrite_list(source, rule->table, field->bytes, out);
    close_field(out, open, field->number);
}

static const struct rule *find_rule(const struct rule *rules, uint32_t number)
{
    for (; rules->number != 0; rules++)
        if (rules->number == number)
            return rules;
    return NULL;
}

/* Appends the message with its indices mapped; runs of other fields are copied as they are. */
static void rewrite(struct profiles_source *source, const struct rule *rules, struct slice payload,
                    struct bytes *out)
{
    struct wire_cursor cursor = wire_cursor(payload);
    struct wire_field field;
    const uint8_t *copied = payload.data;
    if (payload.size == 0)
        return;
    while (wire_next(&cursor, &field)) {
        const struct rule *rule = find_rule(rules, field.number);
        if (!rule)
            continue;
        put(out, copied, field.start);
        copied = field.end;
        rewrite_field(source, rule, &field, out);
    }
    assert(!cursor.broken);
    put(out, copied, payload.data + payload.size);
}

/* ---- looking through a source ---- */

/* Collects the fields of a message that are not taken out of it. */
struct header {
    const uint8_t *first; /* one run, as long as it is one */
    const uint8_t *end;
    struct bytes copy; /* several runs */
};

static void header_add(struct header *header, const struct wire_field *field)
{
    if (header->copy.size > 0) {
        put(&header->copy, field->start, field->end);
    } else if (!header->first || header->end == field->start) {
        header->first = header->first ? header->first : field->start;
        header->end = field->end;
    } else {
        put(&header->copy, header->first, header->end);
        put(&header->copy, field->start, field->end);
    }
}

static struct slice header_finish(struct header *header, struct arena *arena)
{
    struct slice result = {0};
    if (header->first)
        result = slice_of(header->first, (size_t)(header->end - header->first));
    if (header->copy.size > 0)
        result = arena_copy(arena, slice_of(header->copy.data, header->copy.size));
    free_bytes(&header->copy);
    return result;
}

/* How many there are of everything, so that the arrays can be allocated at once. */
static void count_profile(struct profiles_source *source, struct slice profile)
{
    struct wire_cursor cursor = wire_cursor(profile);
    struct wire_field field;
    source->profile_count++;
    while (wire_next(&cursor, &field))
        source->sample_count += field.number == PROFILE_SAMPLES;
}

static void count_group(struct profiles_source *source, struct slice group)
{
    struct wire_cursor scopes = wire_cursor(group);
    struct wire_field scope, profile;
    source->group_count++;
    while (wire_next(&scopes, &scope)) {
        if (scope.number != RESOURCE_PROFILES_SCOPE_PROFILES)
            continue;
        struct wire_cursor profiles = wire_cursor(scope.bytes);
        source->scope_count++;
        while (wire_next(&profiles, &profile))
            if (profile.number == SCOPE_PROFILES_PROFILES)
                count_profile(source, profile.bytes);
    }
}

static bool is_table(uint32_t number)
{
    return number >= DICTIONARY_MAPPING_TABLE && number <= DICTIONARY_STACK_TABLE;
}

static void read_dictionary(struct profiles_source *source, struct slice dictionary)
{
    struct wire_cursor cursor = wire_cursor(dictionary);
    struct header unknown = {0};
    struct wire_field field;
    while (wire_next(&cursor, &field))
        if (is_table(field.number))
            source->entry_count[field.number]++;
    for (int table = 1; table < DICTIONARY_TABLE_COUNT; table++) {
        source->entries[table] =
            arena_array(&source->arena, source->entry_count[table], sizeof(struct slice));
        source->mapped[table] =
            arena_array(&source->arena, source->entry_count[table], sizeof(struct mapped));
        source->entry_count[table] = 0;
    }
    cursor = wire_cursor(dictionary);
    while (wire_next(&cursor, &field))
        if (is_table(field.number))
            source->entries[field.number][source->entry_count[field.number]++] = field.bytes;
        else
            header_add(&unknown, &field);
    source->dictionary_unknown = header_finish(&unknown, &source->arena);
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
            source->samples[source->sample_count++] = field.bytes;
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
            read_profile(source, field.bytes);
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
            read_scope(source, field.bytes);
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

struct profiles_source *profiles_source_new(struct profiles_merge *merge, struct slice request)
{
    struct profiles_source *source = memory_zalloc(sizeof *source);
    struct wire_cursor cursor = wire_cursor(request);
    struct header unknown = {0};
    struct wire_field field;
    source->merge = merge;
    arena_init(&source->arena, merge->budget);
    for (int table = 0; table < DICTIONARY_TABLE_COUNT; table++)
        source->scratch[table].budget = merge->budget;
    while (wire_next(&cursor, &field))
        if (field.number == PROFILES_RESOURCE_PROFILES)
            count_group(source, field.bytes);
        else if (field.number == PROFILES_DICTIONARY)
            read_dictionary(source, field.bytes);
        else
            header_add(&unknown, &field);
    source->unknown = header_finish(&unknown, &source->arena);
    allocate_arrays(source);
    cursor = wire_cursor(request);
    while (wire_next(&cursor, &field))
        if (field.number == PROFILES_RESOURCE_PROFILES)
            read_group(source, field.bytes);
    assert(!cursor.broken);
    return source;
}

void profiles_source_free(struct profiles_source *source)
{
    if (!source)
        return;
    for (int table = 0; table < DICTIONARY_TABLE_COUNT; table++)
        free_bytes(&source->scratch[table]);
    arena_deinit(&source->arena);
    free(source);
}

uint32_t profiles_source_items(const struct profiles_source *source)
{
    return source->sample_count;
}

/* ---- adding ---- */

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
static void put_later_header(struct profiles_source *source, struct slice header, struct bytes *out)
{
    struct wire_cursor cursor = wire_cursor(header);
    struct wire_field field;
    while (wire_next(&cursor, &field))
        if (field.number != PROFILE_PROFILE_ID && field.number != PROFILE_ORIGINAL_PAYLOAD &&
            field.number != PROFILE_ORIGINAL_PAYLOAD_FORMAT)
            rewrite(source, profile_rules, slice_of(field.start, (size_t)(field.end - field.start)),
                    out);
}

static void add_profile(struct profiles_source *source, const struct source_profile *profile,
                        const struct range *range)
{
    struct bytes *out = &source->merge->resources;
    uint32_t first = max_u32(profile->first_sample, range->first);
    uint32_t end = min_u32(profile->first_sample + profile->sample_count, range->end);
    size_t open = open_field(out);
    if (first == profile->first_sample)
        rewrite(source, profile_rules, profile->header, out);
    else
        put_later_header(source, profile->header, out);
    for (uint32_t i = first; i < end; i++) {
        size_t sample = open_field(out);
        rewrite(source, sample_rules, source->samples[i], out);
        close_field(out, sample, PROFILE_SAMPLES);
        source->merge->items++;
    }
    close_field(out, open, SCOPE_PROFILES_PROFILES);
}

static void put_slice(struct bytes *out, struct slice bytes)
{
    if (bytes.size > 0)
        put(out, bytes.data, bytes.data + bytes.size);
}

static void add_scope(struct profiles_source *source, const struct source_scope *scope,
                      const struct range *range)
{
    struct bytes *out = &source->merge->resources;
    size_t open = open_field(out);
    put_slice(out, scope->header);
    uint32_t end = min_u32(scope->first_profile + scope->profile_count, range->end_profile);
    for (uint32_t i = max_u32(scope->first_profile, range->first_profile); i < end; i++)
        add_profile(source, &source->profiles[i], range);
    close_field(out, open, RESOURCE_PROFILES_SCOPE_PROFILES);
}

static void add_group(struct profiles_source *source, const struct source_group *group,
                      const struct range *range)
{
    struct bytes *out = &source->merge->resources;
    size_t open = open_field(out);
    put_slice(out, group->header);
    uint32_t end = min_u32(group->first_scope + group->scope_count, range->end_scope);
    for (uint32_t i = max_u32(group->first_scope, range->first_scope); i < end; i++)
        add_scope(source, &source->scopes[i], range);
    close_field(out, open, PROFILES_RESOURCE_PROFILES);
}

static void add(struct profiles_source *source, const struct range *range)
{
    for (uint32_t i = range->first_group; i < range->end_group; i++)
        add_group(source, &source->groups[i], range);
    if (range->first > 0)
        return;
    put_slice(&source->merge->resources, source->unknown);
    put_slice(&source->merge->dictionary_unknown, source->dictionary_unknown);
}

void profiles_source_add(struct profiles_source *source, uint32_t first, uint32_t count)
{
    assert(first <= source->sample_count && count <= source->sample_count - first);
    if (count == 0 && source->sample_count > 0)
        return;
    struct range range = range_of(source, first, first + count);
    add(source, &range);
}

void profiles_merge_add(struct profiles_merge *merge, struct slice request)
{
    struct profiles_source *source = profiles_source_new(merge, request);
    struct range range = {
        .end = source->sample_count,
        .end_profile = source->profile_count,
        .end_scope = source->scope_count,
        .end_group = source->group_count,
    };
    add(source, &range);
    profiles_source_free(source);
}

/* ---- the result ---- */

struct profiles_merge *profiles_merge_new(struct budget *budget)
{
    struct profiles_merge *merge = memory_zalloc(sizeof *merge);
    merge->budget = budget;
    merge->round = 1; /* 0 in a source: never mapped */
    merge->resources.budget = merge->dictionary_unknown.budget = budget;
    arena_init(&merge->arena, budget);
    return merge;
}

static void clear(struct profiles_merge *merge)
{
    free_bytes(&merge->resources);
    free_bytes(&merge->dictionary_unknown);
    arena_deinit(&merge->arena);
    memset(merge->tables, 0, sizeof merge->tables);
    merge->items = 0;
    merge->round++;
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
    size_t size = merge->dictionary_unknown.size;
    for (int table = 1; table < DICTIONARY_TABLE_COUNT; table++)
        size += merge->tables[table].payload_size;
    return size;
}

size_t profiles_merge_size(const struct profiles_merge *merge)
{
    return merge->resources.size + dictionary_size(merge) + WIRE_HEADER_MAX;
}

static uint8_t *write_bytes(uint8_t *to, const struct bytes *bytes)
{
    if (bytes->size > 0)
        memcpy(to, bytes->data, bytes->size);
    return to + bytes->size;
}

static uint8_t *write_table(uint8_t *to, const struct table *table, uint32_t number)
{
    for (uint32_t i = 0; i < table->count; i++)
        to = wire_write_bytes(to, number, table->entries[i]);
    return to;
}

struct buffer *profiles_merge_finish(struct profiles_merge *merge)
{
    if (merge->resources.size == 0 && merge->dictionary_unknown.size == 0)
        return buffer_new_charged(0, merge->budget);
    for (int table = 1; table < DICTIONARY_TABLE_COUNT; table++)
        if (merge->tables[table].count == 0)
            append_entry(&merge->tables[table], table, &merge->arena, zero_entry(table));
    size_t dictionary = dictionary_size(merge);
    size_t size = merge->resources.size + wire_size_bytes(PROFILES_DICTIONARY, dictionary);
    struct buffer *result = buffer_new_charged(size, merge->budget);
    uint8_t *to = write_bytes(result->data, &merge->resources);
    to = wire_write_header(to, PROFILES_DICTIONARY, dictionary);
    for (int table = 1; table < DICTIONARY_TABLE_COUNT; table++)
        to = write_table(to, &merge->tables[table], (uint32_t)table);
    to = write_bytes(to, &merge->dictionary_unknown);
    assert(to == result->data + size);
    result->size = size;
    clear(merge);
    return result;
}
