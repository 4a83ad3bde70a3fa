#include "processors/spanjoin/timed_reading.h"

#include "core/data/any_value.h"
#include "core/data/thread_ids.h"
#include "processors/spanjoin/attribute_classes.h"

#include <assert.h>
#include <string.h>

/* Many samples have the same thread. The last ones are remembered, in slots by a hash; what is
 * replaced is read again. */
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
    uint32_t bits;   /* of sample_bits_of_traits */
    uint32_t number; /* in plan->known, + 1; 0: it has none */
};
/* Those of samples with the same list, if that is short. */
struct remembered_list {
    uint64_t packed; /* with its size; 0: an empty slot */
    struct list_facts facts;
};

struct reading {
    struct sample_plan *plan;
    struct timed_samples *out;
    const struct profile_plan *profile; /* that is being read */
    uint32_t capacity;                  /* of samples */
    size_t ask_capacity;
    struct slice *known_lists; /* of plan->known */
    uint32_t known_list_capacity;
    struct remembered_list lists[REMEMBERED]; /* of the process of the profile being read */
    struct remembered_thread threads[REMEMBERED];
};

/* ---- threads ---- */

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
static inline uint8_t note_attribute(struct reading *reading, struct thread_attributes *attributes,
                                     uint32_t attribute)
{
    const struct attribute_class *class = sample_plan_class(reading->plan, attribute);
    attributes->of[class->thread] = attribute;
    return class->traits;
}

/* Whether a thread is of the process of a profile. */
static bool is_of_profile(const struct sample_thread *thread, const struct profile_plan *profile)
{
    return thread->instance == profile->process && thread->sampler == profile->sampler;
}

static const struct sample_thread *find_thread(struct reading *reading,
                                               struct thread_attributes *attributes,
                                               const struct profile_plan *profile)
{
    uint32_t hash = 0;
    attributes->of[THREAD_ATTRIBUTE_NONE] = 0;
    for (int i = 0; i < THREAD_ATTRIBUTES; i++)
        hash = (hash ^ attributes->of[i]) * 0x9E3779B1u; /* their numbers are next to each other */
    struct remembered_thread *known = &reading->threads[(hash >> 16) % REMEMBERED];
    if (!known->thread || !is_of_profile(known->thread, profile) ||
        memcmp(&known->attributes, attributes, sizeof *attributes) != 0) {
        known->thread = new_thread(reading->plan, attributes->of, profile);
        known->attributes = *attributes;
    }
    return known->thread;
}

static void add_ask(struct reading *reading, const struct sample_thread *thread, uint64_t time_ns)
{
    assert(reading->out->ask_count < reading->ask_capacity);
    struct thread_ask *ask = &reading->out->asks[reading->out->ask_count++];
    ask->thread = thread;
    ask->time_ns = time_ns;
    ask->answer = THREAD_NO_SPAN;
    ask->has_spans = false;
    ask->by_name = true; /* unless somebody says so: nothing is known of its thread */
}

static void add_asks(struct reading *reading, struct timed_sample *threaded,
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
            add_ask(reading, thread, time_ns);
        if (field.type != WIRE_BYTES)
            add_ask(reading, thread, field.value);
    }
}

static void reserve_asks(struct reading *reading, uint64_t more)
{
    if (reading->out->ask_count + more <= reading->ask_capacity)
        return;
    size_t capacity = (reading->out->ask_count + more) * 2;
    if (capacity < reading->capacity) /* at least one time for each sample */
        capacity = reading->capacity;
    struct thread_ask *asks = arena_alloc(&reading->plan->arena, capacity * sizeof *asks);
    if (reading->out->ask_count > 0)
        memcpy(asks, reading->out->asks, reading->out->ask_count * sizeof *asks);
    reading->out->asks = asks;
    reading->ask_capacity = capacity;
}

/* Whether a usual sample has a Link, even one to nothing. */
static inline bool has_link_field(struct slice raw, const struct sample_layout *layout)
{
    const uint8_t *place = layout->attributes_end;
    return place < raw.data + raw.size && *place == (SAMPLE_LINK_INDEX << 3 | WIRE_VARINT);
}

static struct list_facts read_list(struct reading *reading, struct slice packed,
                                   const struct profile_plan *profile)
{
    struct thread_attributes attributes = {.of = {0}};
    struct wire_cursor list = wire_cursor(packed);
    uint8_t traits = 0;
    for (uint64_t number; wire_packed_varint(&list, &number);)
        traits |= note_attribute(reading, &attributes, (uint32_t)number);
    return (struct list_facts){find_thread(reading, &attributes, profile),
                               sample_bits_of_traits(traits), 0};
}

/* Returns the number of a list of known samples; 0: nobody needs them. */
static uint32_t number_list(struct reading *reading, struct slice list)
{
    struct fold_known *known = &reading->plan->known;
    if (!known->samples)
        return 0;
    reading->known_lists =
        arena_grow(&reading->plan->arena, reading->known_lists, known->list_count,
                   &reading->known_list_capacity, sizeof *reading->known_lists);
    reading->known_lists[known->list_count++] = list;
    known->lists = reading->known_lists;
    return known->list_count;
}

static __attribute__((noinline)) void remember_list(struct reading *reading, uint64_t packed,
                                                    struct slice list,
                                                    const struct profile_plan *profile,
                                                    struct remembered_list *place)
{
    *place = (struct remembered_list){packed, read_list(reading, list, profile)};
    place->facts.number = number_list(reading, list);
}

/* packed: what sample_short_list returns. */
static inline const struct list_facts *facts_of_short(struct reading *reading, uint64_t packed,
                                                      struct slice list,
                                                      const struct profile_plan *profile)
{
    uint64_t hash = packed * UINT64_C(0x9e3779b97f4a7c15);
    struct remembered_list *known = &reading->lists[(hash >> 32) % REMEMBERED];
    if (known->packed != packed)
        remember_list(reading, packed, list, profile, known);
    return &known->facts;
}

static struct list_facts facts_of_list(struct reading *reading, struct slice list,
                                       const struct profile_plan *profile)
{
    uint64_t packed = sample_short_list(list);
    return packed == 0 ? read_list(reading, list, profile)
                       : *facts_of_short(reading, packed, list, profile);
}

/* ---- samples ---- */

static void set_amount(struct timed_sample *threaded, uint64_t times, uint64_t values, uint64_t sum)
{
    threaded->amount = sample_amount_of(times, values, sum);
    threaded->is_paired = values == 0 || values == times;
}

static void read_usual(struct reading *reading, struct timed_sample *threaded,
                       const struct profile_plan *profile, const struct sample_layout *layout)
{
    uint64_t times = layout->timestamps.size / sizeof(uint64_t), values = 0;
    uint64_t sum = sample_sum(layout->values, &values);
    const struct list_facts facts = facts_of_list(reading, layout->attributes, profile);
    const struct sample_thread *thread = facts.thread;
    threaded->bits = facts.bits;
    if (!has_link_field(threaded->raw, layout))
        threaded->bits |= sample_bits_of_place(threaded->raw, layout);
    set_amount(threaded, times, values, sum);
    threaded->repeated -= (uint32_t)(layout->values.size + layout->timestamps.size);
    reserve_asks(reading, times);
    struct wire_cursor list = wire_cursor(layout->timestamps);
    for (uint64_t time_ns; wire_packed_fixed64(&list, &time_ns);)
        add_ask(reading, thread, time_ns);
}

static void read_any(struct reading *reading, struct timed_sample *threaded,
                     const struct profile_plan *profile)
{
    struct thread_attributes attributes = {.of = {0}};
    struct sample_view view = sample_view_read(reading->plan, threaded->raw);
    uint8_t traits = 0;
    for (uint32_t i = 0; i < view.attribute_count; i++)
        traits |= note_attribute(reading, &attributes, view.attributes[i]);
    const struct sample_thread *thread = find_thread(reading, &attributes, profile);
    threaded->bits = sample_bits_of_traits(traits);
    set_amount(threaded, view.timestamps, view.values, view.sum);
    reserve_asks(reading, view.timestamps);
    add_asks(reading, threaded, thread);
}

/* Reads a sample of one event with one value. Returns false if it is another one. */
static inline bool read_event(struct reading *reading, uint32_t sample,
                              const struct profile_plan *profile, struct slice raw)
{
    struct sample_event event;
    uint64_t value;
    if (!sample_event_read(raw, &event) || !wire_packed_single(event.values, &value))
        return false;
    struct slice list = sample_event_attributes(&event);
    const struct list_facts *facts = facts_of_short(reading, event.list, list, profile);
    struct timed_sample *timed = &reading->out->items[reading->out->count++];
    uint32_t start = (uint32_t)(event.attributes_start - raw.data);
    assert(start <= SAMPLE_START_MAX && list.size <= SAMPLE_LIST_MAX);
    timed->raw = raw;
    timed->amount = (struct sample_amount){.count = 1, .sum = value};
    timed->sample = sample;
    timed->first_ask = (uint32_t)reading->out->ask_count;
    timed->ask_count = 1;
    timed->repeated = (uint32_t)(raw.size - event.values.size - sizeof event.time_ns);
    timed->pieces = 0;
    timed->bits = facts->bits | SAMPLE_IS_USUAL | start << SAMPLE_START_SHIFT |
                  (uint32_t)list.size << SAMPLE_LIST_SHIFT;
    timed->is_paired = true;
    reserve_asks(reading, 1);
    add_ask(reading, facts->thread, event.time_ns);
    if (facts->number > 0)
        reading->plan->known.samples[sample] =
            (struct fold_known_sample){event.stack, facts->number, (int64_t)value};
    return true;
}

static void read_sample(struct reading *reading, uint32_t sample,
                        const struct profile_plan *profile, struct slice raw)
{
    struct timed_sample *threaded = &reading->out->items[reading->out->count++];
    struct sample_layout layout;
    *threaded = (struct timed_sample){.raw = raw,
                                      .sample = sample,
                                      .first_ask = (uint32_t)reading->out->ask_count,
                                      .repeated = (uint32_t)raw.size};
    if (sample_layout_read(raw, &layout) && layout.timestamps.size % sizeof(uint64_t) == 0)
        read_usual(reading, threaded, profile, &layout);
    else
        read_any(reading, threaded, profile);
    threaded->ask_count = (uint32_t)(reading->out->ask_count - threaded->first_ask);
    reading->out->are_single &= threaded->ask_count == 1;
}

/* Forgets the lists of another process. */
static void begin_process(struct reading *reading, const struct profile_plan *profile)
{
    const struct profile_plan *before = reading->profile;
    if (before && (before->process != profile->process || before->sampler != profile->sampler))
        memset(reading->lists, 0, sizeof reading->lists);
    reading->profile = profile;
}

static void read_profile(struct reading *reading, const struct profile_plan *profile,
                         struct slice raw)
{
    uint32_t sample = profile->first_sample;
    struct wire_cursor cursor = wire_cursor(raw);
    begin_process(reading, profile);
    for (struct slice one; wire_next_payload(&cursor, PROFILE_SAMPLES, &one); sample++) {
        if (!(reading->plan->samples[sample] & SAMPLE_HAS_THREAD))
            continue;
        assert(reading->out->count < reading->capacity);
        if (!read_event(reading, sample, profile, one))
            read_sample(reading, sample, profile, one);
    }
}

static void read_request(struct reading *reading)
{
    const struct profile_plan *profile = reading->plan->profiles;
    struct wire_cursor resources = wire_cursor(reading->plan->batch->parts[0].root.raw);
    assert(reading->plan->batch->parts[0].root.raw.size <= UINT32_MAX); /* sizes and counts fit */
    struct wire_field resource, scope, field;
    while (wire_next_bytes(&resources, PROFILES_RESOURCE_PROFILES, &resource)) {
        struct wire_cursor scopes = wire_cursor(resource.bytes);
        while (wire_next_bytes(&scopes, RESOURCE_PROFILES_SCOPE_PROFILES, &scope)) {
            struct wire_cursor profiles = wire_cursor(scope.bytes);
            while (wire_next_bytes(&profiles, SCOPE_PROFILES_PROFILES, &field))
                if (profile_has_samples(field.bytes))
                    read_profile(reading, profile++, field.bytes);
        }
    }
    assert(profile == reading->plan->profiles + reading->plan->profile_count);
}

void timed_samples_read(struct sample_plan *plan, uint32_t sample_count, struct timed_samples *out)
{
    struct reading reading = {.plan = plan, .out = out, .capacity = sample_count};
    *out = (struct timed_samples){
        .items = arena_alloc(&plan->arena, sample_count * sizeof *out->items), .are_single = true};
    plan->known = (struct fold_known){.samples = NULL};
    if (plan->has_added_threads)
        plan->known.samples =
            arena_array(&plan->arena, plan->sample_count, sizeof *plan->known.samples);
    read_request(&reading);
}
