#include "processors/spanjoin/sample_ids.h"

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/base/saturate.h"
#include "processors/spanjoin/attribute_classes.h"
#include "processors/spanjoin/left_upload.h"
#include "processors/spanjoin/named_ids.h"
#include "processors/spanjoin/request_content.h"
#include "processors/spanjoin/request_instance.h"
#include "processors/spanjoin/sample_functions.h"
#include "processors/spanjoin/sample_totals.h"
#include "processors/spanjoin/sample_view.h"
#include "processors/spanjoin/thread_pairs.h"
#include "processors/spanjoin/upload_times.h"

#include <assert.h>
#include <stdlib.h>

/* ---- keys ---- */

enum {
    NO_KEY = UINT32_MAX,
    BEYOND_KEYS = UINT32_MAX - 1
}; /* the sample names no span; there is no room for another key */

/* Hashes the whole key; otherwise a sender could make keys collide that are equal in a part. */
static uint64_t key_hash(const struct span_key *ids, const struct span_source *source,
                         uint64_t from_ns, uint64_t to_ns)
{
    uint8_t whole[sizeof *ids + 3 * sizeof from_ns];
    uint64_t sender = source->scope ^ source->number;
    memcpy(whole, ids, sizeof *ids);
    memcpy(whole + sizeof *ids, &from_ns, sizeof from_ns);
    memcpy(whole + sizeof *ids + sizeof from_ns, &to_ns, sizeof to_ns);
    memcpy(whole + sizeof *ids + 2 * sizeof from_ns, &sender, sizeof sender);
    return hash_bytes(slice_of(whole, sizeof whole));
}

/* Makes room for as many keys as there are links, or samples if those are fewer. new_key writes all
 * of it. */
static void reserve_keys(struct sample_plan *plan)
{
    assert(plan->key_count == 0);
    uint32_t links = dictionary_count(plan->dictionary, DICTIONARY_LINK_TABLE);
    uint32_t likely = links < plan->batch->items ? links : plan->batch->items;
    plan->key_capacity = likely < SAMPLE_KEYS_MAX ? likely + 1 : SAMPLE_KEYS_MAX;
    plan->finds = arena_alloc(&plan->arena, plan->key_capacity * sizeof *plan->finds);
    plan->keys = arena_alloc(&plan->arena, plan->key_capacity * sizeof *plan->keys);
    plan->tallies = arena_alloc(&plan->arena, plan->key_capacity * sizeof *plan->tallies);
    plan->tallied = arena_alloc(&plan->arena, plan->key_capacity * sizeof *plan->tallied);
}

static void make_room_for_key(struct sample_plan *plan)
{
    if (plan->key_capacity == 0)
        reserve_keys(plan);
    uint32_t more = plan->key_count < plan->key_capacity ? plan->key_capacity - plan->key_count : 1;
    index_table_reserve(&plan->keys_by_hash, more, &plan->arena);
}

/* Returns an array with as much room as grow_keys gives to the keys. */
static void *grown(struct sample_plan *plan, void *of_keys, size_t size)
{
    uint32_t capacity = plan->key_capacity;
    return arena_grow(&plan->arena, of_keys, plan->key_count, &capacity, size);
}

static void grow_keys(struct sample_plan *plan)
{
    plan->finds = grown(plan, plan->finds, sizeof *plan->finds);
    plan->tallies = grown(plan, plan->tallies, sizeof *plan->tallies);
    plan->tallied = grown(plan, plan->tallied, sizeof *plan->tallied);
    plan->keys = arena_grow(&plan->arena, plan->keys, plan->key_count, &plan->key_capacity,
                            sizeof *plan->keys);
}

static uint32_t new_key(struct sample_plan *plan, const struct span_key *ids, bool has_trace,
                        uint64_t from_ns, uint64_t to_ns)
{
    assert(plan->key_count < SAMPLE_KEYS_MAX);
    if (plan->key_count == plan->key_capacity)
        grow_keys(plan);
    uint32_t k = plan->key_count++;
    plan->finds[k] = (struct span_find){.key = *ids, .source = plan->source};
    plan->tallies[k] = (struct key_tally){.samples = 0};
    plan->keys[k] = (struct sample_key){
        .from_ns = from_ns, .to_ns = to_ns, .trace_given = has_trace, .asks = k};
    return k;
}

static bool is_of_source(const struct sample_plan *plan, uint32_t key)
{
    return span_source_equal(&plan->finds[key].source, &plan->source);
}

/* Finds or adds a key. Returns BEYOND_KEYS if there is no room. */
static uint32_t find_exact_key(struct sample_plan *plan, const struct span_key *ids, bool has_trace,
                               uint64_t from_ns, uint64_t to_ns)
{
    if (index_table_is_full(&plan->keys_by_hash))
        make_room_for_key(plan);
    struct index_probe probe = index_table_probe(
        &plan->keys_by_hash, (uint32_t)key_hash(ids, &plan->source, from_ns, to_ns));
    for (uint32_t k; index_table_next(&plan->keys_by_hash, &probe, &k);) {
        const struct sample_key *key = &plan->keys[k];
        if (memcmp(&plan->finds[k].key, ids, sizeof *ids) == 0 && key->from_ns == from_ns &&
            key->to_ns == to_ns && is_of_source(plan, k))
            return k;
    }
    if (plan->key_count == SAMPLE_KEYS_MAX)
        return BEYOND_KEYS;
    uint32_t k = new_key(plan, ids, has_trace, from_ns, to_ns);
    index_table_add(&plan->keys_by_hash, &probe, k);
    return k;
}

/* Finds or adds a key. The time is part of it only without a trace id. Then one key without a time
 * is looked up for all keys with the same span id: the result can be large, and a sender can make
 * many keys at little cost. */
static uint32_t find_key(struct sample_plan *plan, const uint8_t *span_id, const uint8_t *trace_id,
                         uint64_t from_ns, uint64_t to_ns)
{
    struct span_key ids = {.trace_id = {0}};
    memcpy(ids.span_id, span_id, SPAN_ID_SIZE);
    if (trace_id) {
        memcpy(ids.trace_id, trace_id, TRACE_ID_SIZE);
        return find_exact_key(plan, &ids, true, 0, 0);
    }
    uint32_t asks = find_exact_key(plan, &ids, false, 0, 0);
    if (asks == BEYOND_KEYS || (from_ns == 0 && to_ns == 0))
        return asks;
    uint32_t k = find_exact_key(plan, &ids, false, from_ns, to_ns);
    if (k == BEYOND_KEYS)
        return k;
    assert(asks < k); /* sample_plan_choose goes through the keys in this order */
    plan->keys[k].asks = asks;
    plan->finds[k].skip = true;
    return k;
}

/* ---- the span of a sample ---- */

/* The resource and profile of a sample. */
struct surroundings {
    struct resource_plan *resource;
    struct profile_plan *profile;
    const struct profile_header *header;
    struct named_ids resource_ids;
    struct named_ids profile_ids;
    bool names_span; /* one of them does */
};

/* Whether an id is there, and not all zero. */
static bool any_byte(struct slice id, size_t size)
{
    static const uint8_t none[TRACE_ID_SIZE];
    assert(size <= sizeof none);
    return id.size == size && memcmp(id.data, none, size) != 0;
}

static void time_of(const struct sample_view *view, const struct profile_header *header,
                    uint64_t *from_out, uint64_t *to_out)
{
    *from_out = view->timestamps ? view->from_ns : header->time_ns;
    *to_out = view->timestamps ? view->to_ns : header->time_ns + header->duration_ns;
    if (*to_out < *from_out)
        *to_out = UINT64_MAX;
}

/* Times that a reader added are too many for keys, which have that of the profile, as without them.
 */
static void take_time_of_profile(struct sample_view *view, const struct profile_header *header)
{
    view->from_ns = header->time_ns;
    view->to_ns = header->time_ns + header->duration_ns;
}

/* Returns where the key of a Link is remembered. */
static inline struct known_link *known_link(struct sample_plan *plan, uint32_t link)
{
    if (!plan->links) {
        plan->link_count = dictionary_count(plan->dictionary, DICTIONARY_LINK_TABLE);
        plan->links = arena_array(&plan->arena, plan->link_count + 1, sizeof *plan->links);
    }
    assert(link < plan->link_count);
    return &plan->links[link];
}

/* Rule 1 of docs/spanjoin.md, for a Link with both ids; otherwise returns NO_KEY. */
static __attribute__((noinline)) uint32_t key_of_new_link(struct sample_plan *plan, uint32_t link,
                                                          struct known_link *known)
{
    struct dictionary_link ids = dictionary_link(plan->dictionary, link);
    if (!any_byte(ids.span_id, SPAN_ID_SIZE) || !any_byte(ids.trace_id, TRACE_ID_SIZE))
        return NO_KEY;
    uint32_t key = find_key(plan, ids.span_id.data, ids.trace_id.data, 0, 0);
    if (key != BEYOND_KEYS)
        *known = (struct known_link){.turn = plan->source_turn, .key = key};
    return key;
}

static inline uint32_t key_of_whole_link(struct sample_plan *plan, uint32_t link)
{
    if (link == 0)
        return NO_KEY;
    struct known_link *known = known_link(plan, link);
    return known->turn == plan->source_turn ? known->key : key_of_new_link(plan, link, known);
}

/* Rule 1. */
static uint32_t key_of_link(struct sample_plan *plan, const struct sample_view *view,
                            const struct profile_header *header)
{
    uint32_t key = key_of_whole_link(plan, view->link);
    if (key != NO_KEY || view->link == 0)
        return key;
    struct dictionary_link ids = dictionary_link(plan->dictionary, view->link);
    if (!any_byte(ids.span_id, SPAN_ID_SIZE))
        return NO_KEY;
    uint64_t from_ns, to_ns;
    time_of(view, header, &from_ns, &to_ns);
    return find_key(plan, ids.span_id.data, NULL, from_ns, to_ns);
}

/* Rule 2 of docs/spanjoin.md. */
static uint32_t key_of_attributes(struct sample_plan *plan, const struct sample_view *view,
                                  struct surroundings *around)
{
    struct named_ids own = named_ids_of_attributes(plan, view->attributes, view->attribute_count);
    const struct named_ids *levels[] = {&own, &around->profile_ids, &around->resource_ids};
    const struct named_ids *span = NULL, *trace = NULL;
    for (size_t i = 3; i-- > 0;) {
        span = levels[i]->has_span ? levels[i] : span;
        trace = levels[i]->has_trace ? levels[i] : trace;
    }
    if (!span)
        return NO_KEY;
    uint64_t from_ns, to_ns;
    time_of(view, around->header, &from_ns, &to_ns);
    uint32_t key = find_key(plan, span->span_id, trace ? trace->trace_id : NULL, from_ns, to_ns);
    if (key == BEYOND_KEYS)
        return key;
    around->profile->span_taken |= span == &around->profile_ids;
    around->profile->trace_taken |= trace == &around->profile_ids;
    around->resource->span_taken |= span == &around->resource_ids;
    around->resource->trace_taken |= trace == &around->resource_ids;
    return key;
}

/* Counts the sample that was appended last. amount: NULL if there are no totals. */
static inline void tally(struct sample_plan *plan, uint32_t key, const struct sample_amount *amount)
{
    struct key_tally *of = &plan->tallies[key];
    if (of->samples++ == 0)
        plan->tallied[plan->tallied_count++] = key;
    if (!amount || (plan->counts && !plan->counts[plan->sample_count - 1]))
        return;
    of->count += amount->count;
    of->sum = saturate_sum(of->sum, amount->sum);
}

static void add_totals(struct sample_plan *plan, struct span_find *find,
                       const struct profile_sums *sums, const struct key_tally *of)
{
    struct sample_amount amount = {.count = of->count, .sum = of->sum};
    if (!find->totals)
        find->totals = arena_array(&plan->arena, span_totals_count(plan->settings->type_count),
                                   sizeof(uint64_t));
    profile_sums_add(plan->settings, sums, amount, (uint64_t *)find->totals);
}

/* At the end of a profile. */
static void add_tallies(struct sample_plan *plan, const struct profile_sums *sums)
{
    bool are_shown = profile_sums_are_shown(plan->settings, sums);
    assert(plan->tallied_count <= plan->key_count);
    for (uint32_t i = 0; i < plan->tallied_count; i++) {
        uint32_t key = plan->tallied[i];
        struct key_tally *of = &plan->tallies[key];
        plan->keys[key].samples += of->samples;
        plan->keys[key].is_shown |= are_shown;
        if (of->count > 0) /* of samples in totals */
            add_totals(plan, &plan->finds[key], sums, of);
        *of = (struct key_tally){.samples = 0};
    }
    plan->tallied_count = 0;
}

static uint8_t traits_of(struct sample_plan *plan, const struct sample_view *view)
{
    uint8_t traits = 0;
    for (uint32_t i = 0; i < view->attribute_count; i++)
        traits |= sample_plan_class(plan, view->attributes[i])->traits;
    return traits;
}

/* Appends a sample that names no key yet, and returns where its key goes. */
static inline uint32_t *new_sample(struct sample_plan *plan)
{
    if (plan->sample_count == plan->sample_capacity)
        plan->samples = arena_grow(&plan->arena, plan->samples, plan->sample_count,
                                   &plan->sample_capacity, sizeof *plan->samples);
    return &plan->samples[plan->sample_count++];
}

static inline uint8_t traits_of_list(struct sample_plan *plan, struct slice packed)
{
    struct wire_cursor list = wire_cursor(packed);
    uint8_t traits = 0;
    for (uint64_t index; wire_packed_varint(&list, &index);)
        traits |= sample_plan_class(plan, (uint32_t)index)->traits;
    return traits;
}

/* Lists of a few attributes are remembered, because samples of one thread have equal ones. */
enum { LISTS_REMEMBERED = 64, LIST_BYTES_MIN = 3 /* shorter ones are as cheap to read */ };
struct remembered_traits {
    uint64_t list; /* 0: an empty slot */
    uint8_t traits;
};

/* Whether the traits of these attributes will not change. */
static inline bool are_final(const struct sample_plan *plan, uint8_t traits)
{
    return !(traits & TRAIT_UNPAIRED) || !thread_pairs_count(plan);
}

static __attribute__((noinline)) uint8_t remember_traits(struct sample_plan *plan, uint64_t list,
                                                         struct slice packed,
                                                         struct remembered_traits *place)
{
    uint8_t traits = traits_of_list(plan, packed);
    if (are_final(plan, traits))
        *place = (struct remembered_traits){list, traits};
    return traits;
}

/* list: what sample_short_list returns. */
static inline uint8_t traits_of_short(struct sample_plan *plan, uint64_t list, struct slice packed)
{
    if (!plan->lists)
        plan->lists = arena_array(&plan->arena, LISTS_REMEMBERED, sizeof *plan->lists);
    uint64_t hash = list * UINT64_C(0x9e3779b97f4a7c15);
    struct remembered_traits *known = &plan->lists[(hash >> 32) % LISTS_REMEMBERED];
    return known->list == list ? known->traits : remember_traits(plan, list, packed, known);
}

static inline uint8_t known_traits(struct sample_plan *plan, struct slice packed)
{
    uint64_t list = packed.size >= LIST_BYTES_MIN ? sample_short_list(packed) : 0;
    return list == 0 ? traits_of_list(plan, packed) : traits_of_short(plan, list, packed);
}

/* Notes a sample with thread and time of a process that is not known. */
static void plan_unknown(struct sample_plan *plan)
{
    struct resource_upload *upload = &plan->uploads[plan->upload_count - 1];
    struct unnamed_samples *unnamed = &upload->unnamed;
    upload->is_unasked = true;
    plan->may_have_threads |= plan->awaits_process;
    unnamed->ambiguous_thread += plan->is_of_several;
    unnamed->no_process += plan->awaits_process && !plan->is_of_several;
}

/* Appends a sample that names no span. */
static inline void plan_unnamed(struct sample_plan *plan, uint8_t traits, bool has_times)
{
    bool has_thread = has_times && (traits & TRAIT_THREAD);
    uint32_t *named = new_sample(plan);
    plan->without_id++;
    if (!has_thread)
        return;
    if (plan->process == 0) { /* then it cannot be joined by thread and time */
        plan_unknown(plan);
        return;
    }
    *named = SAMPLE_HAS_THREAD;
    plan->with_thread++;
}

static inline void plan_linked(struct sample_plan *plan, struct slice raw,
                               const struct sample_layout *layout, uint32_t key, uint8_t traits,
                               bool with_totals)
{
    *new_sample(plan) =
        (key + 1) | sample_bits_of_traits(traits) | sample_bits_of_place(raw, layout);
    if (!with_totals) {
        tally(plan, key, NULL);
        return;
    }
    uint64_t values = 0, sum = sample_sum(layout->values, &values);
    uint64_t timestamps = layout->timestamps.size / sizeof(uint64_t);
    struct sample_amount amount = sample_amount_of(timestamps, values, sum);
    tally(plan, key, &amount);
}

/* Plans a usual sample whose Link has both ids, or that names no span in any way. Nearly all
 * samples are such. Returns false if it is another one. */
static inline bool plan_usual(struct sample_plan *plan, const struct surroundings *around,
                              struct slice raw, const struct sample_layout *layout,
                              bool with_totals)
{
    if (layout->attributes.size > JOINED_ATTRIBUTES_MAX)
        return false;
    uint8_t traits = known_traits(plan, layout->attributes);
    if (!thread_pairs_are_noted(plan, layout->attributes, traits))
        return false;
    uint32_t key = key_of_whole_link(plan, layout->link);
    if (key < BEYOND_KEYS) {
        plan_linked(plan, raw, layout, key, traits, with_totals);
        return true;
    }
    if (layout->link != 0 || (traits & TRAIT_NAMES_SPAN) || around->names_span)
        return false;
    plan_unnamed(plan, traits, layout->timestamps.size > 0);
    return true;
}

/* Whether samples of one event can be planned by what is remembered of their lists: then the pairs
 * of those are noted. */
static bool are_known_by_lists(const struct sample_plan *plan)
{
    return plan->process != 0 && (plan->process == plan->pairs_process ||
                                  !thread_pairs_count(plan) || !plan->has_added_threads);
}

/* Plans the samples of one event at the cursor that name no span, as nearly all of a recording. It
 * moves to the first one that is not such. */
static __attribute__((noinline)) void plan_events(struct sample_plan *plan,
                                                  struct wire_cursor *samples)
{
    uint32_t *begin = &plan->samples[plan->sample_count], *to = begin, with_thread = 0;
    const uint32_t *end = &plan->samples[plan->sample_capacity];
    struct wire_cursor next = *samples;
    struct sample_event event;
    for (struct slice raw; to < end; *samples = next) {
        if (!wire_take_short(&next, PROFILE_SAMPLES << 3 | WIRE_BYTES, &raw) ||
            !sample_event_read(raw, &event))
            break;
        uint8_t traits = traits_of_short(plan, event.list, sample_event_attributes(&event));
        if ((traits & TRAIT_NAMES_SPAN) || !are_final(plan, traits))
            break;
        *to++ = traits & TRAIT_THREAD ? SAMPLE_HAS_THREAD : 0;
        with_thread += (traits & TRAIT_THREAD) != 0;
    }
    plan->sample_count += (uint32_t)(to - begin);
    plan->without_id += (uint32_t)(to - begin);
    plan->with_thread += with_thread;
}

/* Plans any sample. Returns whether it names a span. */
static bool plan_sample(struct sample_plan *plan, struct surroundings *around, struct slice raw,
                        bool with_totals)
{
    struct sample_layout layout;
    bool is_usual = sample_layout_read(raw, &layout);
    if (is_usual && plan_usual(plan, around, raw, &layout, with_totals))
        return layout.link != 0;
    struct sample_view view = sample_view_read(plan, raw);
    bool is_wide = view.attribute_count > JOINED_ATTRIBUTES_MAX;
    uint8_t traits = is_wide ? TRAIT_IS_NOT_PLAIN : traits_of(plan, &view);
    if (traits & TRAIT_ADDED)
        take_time_of_profile(&view, around->header);
    uint32_t key = is_wide ? BEYOND_KEYS : key_of_link(plan, &view, around->header);
    bool promoted = key == NO_KEY;
    if (promoted)
        key = key_of_attributes(plan, &view, around);
    if (traits & TRAIT_ADDED)
        thread_pairs_note(plan, &view);
    if (key == NO_KEY) {
        plan_unnamed(plan, traits, view.timestamps > 0);
        return false;
    }
    uint32_t *named = new_sample(plan);
    plan->beyond_keys += key == BEYOND_KEYS;
    if (key == BEYOND_KEYS)
        return true;
    assert(key < plan->key_count);
    *named = (key + 1) | (promoted ? SAMPLE_PROMOTED : 0) | sample_bits_of_traits(traits) |
             (is_usual ? sample_bits_of_place(raw, &layout) : 0);
    plan->keys[key].promoted |= promoted;
    struct sample_amount amount = sample_view_amount(&view);
    tally(plan, key, with_totals ? &amount : NULL);
    return true;
}

/* ---- the request ---- */

static struct named_ids ids_of_profile(struct sample_plan *plan,
                                       const struct profile_header *header)
{
    struct wire_cursor cursor = wire_cursor(header->raw);
    struct wire_field field;
    uint32_t count = 0;
    while (header->has_attributes && wire_next(&cursor, &field))
        if (field.number == PROFILE_ATTRIBUTE_INDICES)
            count = sample_view_attributes(plan, count, &field);
    return named_ids_of_attributes(plan, plan->attributes,
                                   count > JOINED_ATTRIBUTES_MAX ? 0 : count);
}

static void plan_samples(struct sample_plan *plan, struct surroundings *around, bool with_totals)
{
    struct wire_cursor cursor = wire_cursor(around->header->raw);
    if (plan->only_threads) {
        for (uint32_t i = 0; i < around->header->samples; i++)
            plan_unnamed(plan, TRAIT_THREAD, true);
        return;
    }
    bool names_span = around->names_span; /* the sample before */
    for (struct slice raw;;) {
        if (!names_span && are_known_by_lists(plan))
            plan_events(plan, &cursor);
        if (!wire_next_payload(&cursor, PROFILE_SAMPLES, &raw))
            break;
        names_span = plan_sample(plan, around, raw, with_totals) || around->names_span;
    }
    assert(!cursor.broken); /* scanned */
}

/* Returns what identifies a profile if the client sends it again; NULL: nothing does. Without a
 * time, it may be another one with the same content. */
static const uint8_t *id_of_profile(struct sample_plan *plan, const struct profile_header *header)
{
    return header->profile_id || header->time_ns == 0 ? header->profile_id
                                                      : request_content(plan, header->time_ns);
}

/* Whether totals contain the samples of a profile: not if it has arrived before. */
static bool are_in_totals(const struct sample_plan *plan, const struct profile_plan *profile)
{
    return plan->index && !profile_is_repeated(plan, profile, plan->index, plan->request);
}

static void plan_profile(struct sample_plan *plan, struct surroundings *around)
{
    const struct profile_header *header = around->header;
    assert(around->resource && header);
    plan->profiles = arena_grow(&plan->arena, plan->profiles, plan->profile_count,
                                &plan->profile_capacity, sizeof *plan->profiles);
    around->profile = &plan->profiles[plan->profile_count++];
    *around->profile = (struct profile_plan){.first_sample = plan->sample_count,
                                             .profile_id = id_of_profile(plan, header),
                                             .sums = header->sums,
                                             .source = plan->source,
                                             .process = plan->process,
                                             .sampler = plan->sampler};
    around->profile_ids = ids_of_profile(plan, header);
    around->names_span = around->profile_ids.has_span || around->resource_ids.has_span;
    bool with_totals = are_in_totals(plan, around->profile);
    plan_samples(plan, around, with_totals);
    add_tallies(plan, &header->sums);
    around->profile->sample_count = plan->sample_count - around->profile->first_sample;
    if (with_totals && plan->settings->top_functions > 0)
        sample_functions_note_all(plan, around->profile, header->raw);
}

static void plan_scope(struct sample_plan *plan, struct surroundings *around,
                       struct slice scope_profiles)
{
    struct profile_window window;
    profile_window_init(&window, plan, scope_profiles);
    while ((around->header = profile_window_next(&window)) != NULL) {
        upload_times_note(plan, around->header);
        plan_profile(plan, around);
    }
}

/* Even an upload without samples says up to which time there are none. */
static void plan_upload(struct sample_plan *plan, struct slice resource_profiles)
{
    struct slice resource = wire_first_bytes(resource_profiles, RESOURCE_PROFILES_RESOURCE);
    struct request_process process = request_process(plan->sender, resource, &plan->source);
    struct instance_threads threads = request_process_with_threads(plan->sender, &process);
    plan->process = threads.instance != 0 ? threads.instance : threads.presumed;
    plan->is_of_several = threads.state == GROUP_RUNS_SEVERAL;
    plan->is_doubted = threads.state == GROUP_MAY_RUN_ONE;
    plan->sampler = threads.is_foreign ? process.instance : 0;
    plan->awaits_process = threads.instance == 0 && request_threads_are_known(plan->sender);
    upload_times_begin(plan, &process, &threads);
    struct message_iter it = message_iter_bytes(resource_profiles);
    struct message_field field;
    while (message_next_bytes(&it, RESOURCE_PROFILES_SCOPE_PROFILES, &field))
        upload_times_note_empty(plan, field.wire.bytes);
}

static void set_source(struct sample_plan *plan, struct span_source source)
{
    bool changes = !span_source_equal(&source, &plan->source);
    plan->source_turn += changes || plan->source_turn == 0;
    plan->source = source;
}

static void plan_resource(struct sample_plan *plan, struct slice resource_profiles)
{
    struct surroundings around = {.resource = NULL};
    set_source(plan, request_source(plan->sender, wire_first_bytes(resource_profiles,
                                                                   RESOURCE_PROFILES_RESOURCE)));
    plan_upload(plan, resource_profiles);
    if (!resource_has_samples(resource_profiles))
        return;
    plan->resources = arena_grow(&plan->arena, plan->resources, plan->resource_count,
                                 &plan->resource_capacity, sizeof *plan->resources);
    around.resource = &plan->resources[plan->resource_count++];
    *around.resource = (struct resource_plan){.first_profile = plan->profile_count};
    struct message_iter it = message_iter_bytes(resource_profiles);
    struct message_field field;
    while (message_next_bytes(&it, RESOURCE_PROFILES_RESOURCE, &field))
        around.resource_ids = named_ids_of_resource(plan->settings, field.wire.bytes);
    it = message_iter_bytes(resource_profiles);
    while (message_next_bytes(&it, RESOURCE_PROFILES_SCOPE_PROFILES, &field))
        plan_scope(plan, &around, field.wire.bytes);
    around.resource->profile_count = plan->profile_count - around.resource->first_profile;
    upload_times_end(plan);
}

/* Makes room for the uploads of all resources, because growing leaves copies in the arena. */
static void reserve_uploads(struct sample_plan *plan)
{
    struct wire_cursor cursor = wire_cursor(plan->batch->parts[0].root.raw);
    struct wire_field field;
    while (wire_next_bytes(&cursor, PROFILES_RESOURCE_PROFILES, &field))
        plan->upload_capacity++;
    plan->uploads = arena_array(&plan->arena, plan->upload_capacity, sizeof *plan->uploads);
}

struct plan_before sample_plan_before(const struct sample_plan *plan)
{
    return (struct plan_before){.only_threads = plan->with_thread == plan->sample_count,
                                .has_added_threads = plan->has_added_threads,
                                .content = plan->content};
}

struct sample_plan *sample_plan_new(struct batch *batch, const struct request_sender *sender,
                                    const struct plan_totals *totals,
                                    const struct plan_before *before)
{
    assert(batch->part_count == 1 && !batch_is_changed(batch));
    assert(sender->arrived_ns > 0);
    struct sample_plan *plan = memory_zalloc(sizeof *plan);
    plan->batch = batch;
    arena_init(&plan->arena, batch->arena.budget);
    plan->dictionary = batch_dictionary(batch);
    plan->sender = sender;
    plan->settings = sender->settings;
    plan->index = totals->index;
    plan->counts = totals->counts;
    plan->now_ns = sender->now_ns;
    plan->arrived_ns = sender->arrived_ns;
    plan->request = totals->request;
    plan->content = totals->content;
    if (before && before->only_threads) {
        assert(!plan->index); /* totals need the samples */
        plan->only_threads = true;
        plan->has_added_threads = before->has_added_threads;
    }
    reserve_uploads(plan);
    plan->sample_capacity = batch->items + 1;
    plan->samples = arena_array(&plan->arena, plan->sample_capacity, sizeof *plan->samples);
    struct message_iter it = message_iter_bytes(batch->parts[0].root.raw);
    struct message_field field;
    while (message_next_bytes(&it, PROFILES_RESOURCE_PROFILES, &field))
        plan_resource(plan, field.wire.bytes);
    plan->sender = NULL; /* owned by the caller */
    return plan;
}

void sample_plan_free(struct sample_plan *plan)
{
    left_upload_free(plan->left);
    arena_deinit(&plan->arena);
    free(plan);
}

/* ---- samples that were planned without a span ---- */

void sample_plan_begin_naming(struct sample_plan *plan, const struct profile_plan *profile,
                              struct sample_naming *out)
{
    assert(plan->tallied_count == 0 && !plan->counts);
    plan->source = profile->source;
    *out = (struct sample_naming){
        .plan = plan, .profile = profile, .with_totals = are_in_totals(plan, profile)};
}

/* Finds or adds the key of a span. Returns BEYOND_KEYS if there is no room. */
static __attribute__((noinline)) uint32_t
new_key_of_span(struct sample_plan *plan, const struct span_key *span, uint32_t *place)
{
    uint32_t key = find_key(plan, span->span_id, span->trace_id, 0, 0);
    if (key == BEYOND_KEYS)
        return key;
    plan->keys[key].by_thread = true;
    *place = key + 1;
    return key;
}

/* The same; many samples are of one span. */
static inline uint32_t key_of_span(struct sample_naming *naming, const struct span_key *span)
{
    struct sample_plan *plan = naming->plan;
    uint32_t *known = &naming->keys[span->span_id[SPAN_ID_SIZE - 1] % NAMED_KEYS_REMEMBERED];
    bool is_known = *known > 0 && memcmp(&plan->finds[*known - 1].key, span, sizeof *span) == 0;
    return is_known ? *known - 1 : new_key_of_span(plan, span, known);
}

bool sample_plan_name(struct sample_naming *naming, const struct timed_sample *sample,
                      const struct span_key *span)
{
    struct sample_plan *plan = naming->plan;
    assert(plan->samples[sample->sample] == SAMPLE_HAS_THREAD);
    uint32_t key = key_of_span(naming, span);
    naming->named++;
    plan->beyond_keys += key == BEYOND_KEYS;
    if (key == BEYOND_KEYS)
        return false;
    plan->samples[sample->sample] |= (key + 1) | sample->bits;
    tally(plan, key, naming->with_totals ? &sample->amount : NULL);
    if (naming->with_totals && plan->settings->top_functions > 0)
        sample_functions_note(plan, key, &naming->profile->sums, sample->raw);
    return true;
}

void sample_plan_end_naming(struct sample_naming *naming)
{
    assert(naming->named <= naming->plan->with_thread);
    naming->plan->without_id -= naming->named;
    naming->plan->with_thread -= naming->named;
    add_tallies(naming->plan, &naming->profile->sums);
}

/* ---- after the look-up in the index ---- */

static bool covers(const struct span_facts *facts, const struct sample_key *key, uint64_t skew_ns)
{
    uint64_t from = facts->start_ns > skew_ns ? facts->start_ns - skew_ns : 0;
    uint64_t to = facts->end_ns < UINT64_MAX - skew_ns ? facts->end_ns + skew_ns : UINT64_MAX;
    return from <= key->to_ns && key->from_ns <= to;
}

static void take_answer(struct span_find *find, const struct span_find *asked)
{
    find->presence = asked->presence;
    find->matches = asked->matches;
    find->match_count = asked->match_count;
}

void sample_plan_choose(struct sample_plan *plan)
{
    uint64_t skew_ns = (uint64_t)plan->settings->clock_skew;
    for (uint32_t k = 0; k < plan->key_count; k++) {
        struct span_find *find = &plan->finds[k];
        struct sample_key *key = &plan->keys[k];
        assert(key->asks <= k && plan->keys[key->asks].asks == key->asks);
        take_answer(find, &plan->finds[key->asks]);
        key->match = find->match_count > 0 ? &find->matches[0] : NULL;
        key->ambiguous = find->match_count > 1;
        for (unsigned i = 0; key->ambiguous && i < find->match_count; i++) {
            if (covers(&find->matches[i].facts, key, skew_ns)) {
                key->match = &find->matches[i];
                break;
            }
        }
        find->chosen = key->match;
        if (key->match)
            find->key = key->match->key;
    }
}

static uint32_t double_key(struct sample_plan *plan, uint32_t k)
{
    const struct sample_key key = plan->keys[k];
    const struct span_find find = plan->finds[k];
    uint32_t second = new_key(plan, &find.key, key.trace_given, key.from_ns, key.to_ns);
    plan->keys[second] = key;
    plan->keys[second].samples = 0;
    plan->finds[second] = find;
    plan->finds[second].totals = NULL;
    return second;
}

const uint32_t *sample_plan_double_keys(struct sample_plan *plan, const bool *wanted)
{
    uint32_t count = plan->key_count;
    uint32_t *seconds = arena_array(&plan->arena, count, sizeof *seconds);
    for (uint32_t k = 0; k < count; k++)
        seconds[k] = wanted[k] && plan->key_count < SAMPLE_KEYS_MAX ? double_key(plan, k) : k;
    if (!plan->roots || plan->key_count == count)
        return seconds;
    const struct span_match **roots =
        arena_array(&plan->arena, plan->key_count, sizeof(const struct span_match *));
    for (uint32_t k = 0; k < count; k++)
        roots[k] = roots[seconds[k]] = plan->roots[k];
    plan->roots = roots;
    return seconds;
}

uint32_t sample_plan_missing(const struct sample_plan *plan)
{
    uint32_t missing = 0;
    for (uint32_t k = 0; k < plan->key_count; k++)
        missing += plan->finds[k].presence == SPAN_MISSING;
    return missing;
}

void sample_plan_remember_profiles(const struct sample_plan *plan)
{
    assert(plan->index); /* only then it has totals, which count once for each profile */
    for (uint32_t i = 0; i < plan->profile_count; i++)
        if (plan->profiles[i].profile_id)
            span_index_see_profile(plan->index, plan->now_ns, plan->profiles[i].profile_id,
                                   &plan->profiles[i].source, plan->request, true);
}
