#include "processors/spanjoin/upload_times.h"

#include "core/base/hash.h"
#include "core/base/memory.h"
#include "core/data/thread_spans.h"
#include "processors/spanjoin/request_content.h"

#include <assert.h>
#include <stdlib.h>

#define SECOND_NS UINT64_C(1000000000)

static unsigned slot_count(const struct sample_plan *plan)
{
    return plan->settings->type_count + 1;
}

static bool has_time(const struct profile_header *profile)
{
    return profile->time_ns != 0 && profile->time_ns + profile->duration_ns >= profile->time_ns;
}

/* Returns the end of a profile as it says. An end that is a whole second may be rounded. */
static uint64_t end_of(const struct profile_header *profile)
{
    uint64_t end_ns = profile->time_ns + profile->duration_ns;
    return end_ns % SECOND_NS == 0 ? end_ns - SECOND_NS : end_ns;
}

static uint64_t time_after(uint64_t time_ns, uint64_t other_ns)
{
    return time_ns > other_ns ? time_ns - other_ns : 0;
}

/* Returns how far the times of a profile are ahead at least. Node's profiler sends the end as the
 * time. Then the end that follows from the duration is later than the arrival, by more than clocks
 * differ. To take a time for the end by mistake only makes spans wait for one more upload. known:
 * of the sender. */
static struct upload_ahead ahead_of(const struct profile_header *profile, uint64_t arrived_ns,
                                    struct upload_ahead known)
{
    uint64_t lead_ns = time_after(end_of(profile), arrived_ns);
    bool is_long = lead_ns > 0 && profile->duration_ns > 0 && lead_ns >= profile->duration_ns / 2;
    if (!is_long && !upload_sends_end(known, profile->duration_ns))
        return (struct upload_ahead){lead_ns, 0};
    return (struct upload_ahead){time_after(profile->time_ns, arrived_ns),
                                 is_long ? profile->duration_ns : 0};
}

/* Returns the time of which a profile has all samples. */
static struct upload_range range_of(const struct profile_header *profile, struct upload_ahead ahead,
                                    uint64_t arrived_ns)
{
    if (!has_time(profile))
        return (struct upload_range){0, arrived_ns};
    uint64_t shift_ns = upload_sends_end(ahead, profile->duration_ns) ? profile->duration_ns : 0;
    uint64_t begin_ns = time_after(time_after(profile->time_ns, shift_ns), ahead.ns);
    uint64_t end_ns = time_after(time_after(end_of(profile), shift_ns), ahead.ns);
    end_ns = end_ns > 0 ? end_ns : 1; /* 0: there is no profile */
    assert(end_ns <= arrived_ns);
    bool is_known = profile->duration_ns > 0 && begin_ns < end_ns;
    return (struct upload_range){is_known ? begin_ns : 0, end_ns};
}

/* The same by the sender's clock; with to_ns 0, its begin or its end is not known. */
static struct upload_range sent_range(const struct profile_header *profile)
{
    struct upload_range range = {profile->time_ns, end_of(profile)};
    bool is_known = has_time(profile) && range.from_ns < range.to_ns;
    return is_known ? range : (struct upload_range){0, 0};
}

/* Adds a range whose begin may be unknown. */
static void widen(struct upload_range *all, struct upload_range range)
{
    if (range.from_ns != 0 && (all->from_ns == 0 || range.from_ns < all->from_ns))
        all->from_ns = range.from_ns;
    if (range.to_ns > all->to_ns)
        all->to_ns = range.to_ns;
}

/* Returns how far the times of a process's uploads are ahead, as far as is known. */
static struct upload_ahead known_ahead(const struct sample_plan *plan,
                                       const struct request_process *process)
{
    struct span_index *index = plan->sender->index;
    struct instance_clock clock = request_clock(plan->sender);
    struct upload_ahead ahead =
        instances_lead(span_index_instances(index), process->instance, process->form, &clock);
    int64_t offset_ns =
        plan->process != 0 ? thread_spans_offset(span_index_threads(index), plan->process) : 0;
    if (offset_ns < 0 && (uint64_t)-offset_ns > ahead.ns)
        ahead.ns = (uint64_t)-offset_ns;
    return ahead;
}

void upload_times_begin(struct sample_plan *plan, const struct request_process *process,
                        const struct instance_threads *threads)
{
    plan->uploads = arena_grow(&plan->arena, plan->uploads, plan->upload_count,
                               &plan->upload_capacity, sizeof *plan->uploads);
    plan->threads_before = plan->with_thread;
    plan->without_before = plan->without_id;
    plan->uploads[plan->upload_count++] = (struct resource_upload){
        .uploader = process->instance,
        .service = process->service,
        .process = plan->process,
        .is_doubted = threads->state == GROUP_MAY_RUN_ONE,
        .is_presumed = threads->presumed != 0,
        .is_awaited = plan->awaits_process,
        .before = threads->before,
        .since_ns = threads->since_ns,
        .form = process->form,
        .keys = process->keys,
        .ahead = known_ahead(plan, process),
        .first_sample = plan->sample_count,
        .ranges = arena_array(&plan->arena, slot_count(plan), sizeof(struct upload_range)),
        .sent = arena_array(&plan->arena, slot_count(plan), sizeof(struct upload_range))};
}

static void note_ahead(const struct sample_plan *plan, struct resource_upload *upload,
                       struct upload_ahead ahead, uint64_t duration_ns)
{
    if (ahead.ns > upload->ahead.ns)
        upload->moved_ns += ahead.ns - upload->ahead.ns;
    if (ahead.ends_ns > 0 && !upload_sends_end(upload->ahead, duration_ns))
        upload->moved_ns += duration_ns;
    struct instance_clock clock = request_clock(plan->sender);
    instances_note_lead(span_index_instances(plan->sender->index), upload->uploader, upload->form,
                        ahead, &clock);
    upload->ahead = upload_ahead_union(upload->ahead, ahead);
}

void upload_times_note(struct sample_plan *plan, const struct profile_header *profile)
{
    assert(plan->upload_count > 0);
    struct resource_upload *upload = &plan->uploads[plan->upload_count - 1];
    unsigned slot = profile_header_slot(plan->settings, profile);
    struct upload_ahead ahead = {.ns = 0};
    if (has_time(profile))
        ahead = ahead_of(profile, plan->arrived_ns, upload->ahead);
    if (upload_is_ahead(ahead))
        note_ahead(plan, upload, ahead, profile->duration_ns);
    widen(&upload->ranges[slot], range_of(profile, upload->ahead, plan->arrived_ns));
    widen(&upload->sent[slot], sent_range(profile));
}

void upload_times_note_empty(struct sample_plan *plan, struct slice scope_profiles)
{
    struct message_iter it = message_iter_bytes(scope_profiles);
    struct message_field field;
    while (message_next_bytes(&it, SCOPE_PROFILES_PROFILES, &field)) {
        if (profile_has_samples(field.wire.bytes))
            continue;
        struct profile_header profile;
        profile_header_read(plan, &profile, field.wire.bytes);
        upload_times_note(plan, &profile);
    }
}

void upload_times_end(struct sample_plan *plan)
{
    struct resource_upload *upload = &plan->uploads[plan->upload_count - 1];
    upload->sample_count = plan->sample_count - upload->first_sample;
    plan->unnamed.ambiguous_thread += upload->unnamed.ambiguous_thread;
    plan->unnamed.no_process += upload->unnamed.no_process;
    bool may_have_threads = plan->awaits_process && plan->may_have_threads;
    upload->has_threads = plan->with_thread > plan->threads_before;
    upload->names_spans = upload->sample_count > plan->without_id - plan->without_before;
    if (upload->is_presumed)
        plan->with_presumed += plan->with_thread - plan->threads_before;
    /* its process may have no spans that name their threads, and need not wait for them then */
    bool is_of_threads = upload->is_presumed && upload->names_spans && !upload->is_awaited;
    upload->adds_later = (upload->has_threads && !is_of_threads) || may_have_threads ||
                         plan->settings->attribute_children;
}

/* ---- several processes that count as one ---- */

/* Tells of the first sample type whose begin is known. Its time is the one that was sent: what is
 * taken off a clock that is ahead may differ from upload to upload, so that they would overlap. */
static void note_sender(const struct sample_plan *plan, const struct resource_upload *upload,
                        struct instances *instances, const struct instance_clock *clock)
{
    unsigned slot = 0;
    while (slot < slot_count(plan) && upload->sent[slot].from_ns == 0)
        slot++;
    if (slot < slot_count(plan))
        instances_note_sender(instances, upload->process, upload->keys + slot, upload->sent[slot],
                              clock);
}

void upload_times_find_several(struct sample_plan *plan, struct instances *instances,
                               const struct instance_clock *clock, bool notes)
{
    for (uint32_t i = 0; i < plan->upload_count; i++) {
        struct resource_upload *upload = &plan->uploads[i];
        if (!upload->has_threads || upload->is_presumed)
            continue;
        if (notes)
            note_sender(plan, upload, instances, clock);
        upload->is_of_several = instances_are_several(instances, upload->process, clock);
    }
}

/* ---- telling ---- */

/* The instances of the spans that samples were joined to. */
struct joined_instances {
    uint16_t *numbers;
    size_t count;
    size_t capacity;
    uint64_t *seen; /* a bit for each number; NULL: none seen yet */
};

static void add_joined(struct joined_instances *joined, uint16_t number)
{
    enum { BITS = 64 };
    if (joined->count > 0 && joined->numbers[joined->count - 1] == number)
        return;
    if (!joined->seen)
        joined->seen = memory_zalloc(INSTANCES_MAX / BITS * sizeof *joined->seen);
    uint64_t bit = UINT64_C(1) << number % BITS;
    if (joined->seen[number / BITS] & bit)
        return;
    joined->seen[number / BITS] |= bit;
    if (joined->count == joined->capacity) {
        joined->capacity = joined->capacity ? joined->capacity * 2 : 8;
        joined->numbers = memory_grow(joined->numbers, joined->capacity, sizeof(uint16_t));
    }
    joined->numbers[joined->count++] = number;
}

static void find_joined(const struct sample_plan *plan, const struct resource_upload *upload,
                        struct joined_instances *joined)
{
    if (plan->upload_count == 1) { /* all keys are its keys */
        for (uint32_t k = 0; k < plan->key_count; k++)
            if (plan->keys[k].samples > 0 && plan->keys[k].match &&
                plan->keys[k].match->instance != 0)
                add_joined(joined, plan->keys[k].match->instance);
        return;
    }
    const uint32_t *sample = plan->samples + upload->first_sample;
    for (uint32_t i = 0; i < upload->sample_count; i++) {
        uint32_t key = sample[i] & SAMPLE_KEY;
        const struct span_match *match = key ? plan->keys[key - 1].match : NULL;
        if (match && match->instance != 0)
            add_joined(joined, match->instance);
    }
}

/* An upload as instances.h wants it. Owns the numbers of the joined instances. */
struct told_upload {
    struct instance_upload told;
    struct joined_instances joined;
};

/* Returns what tells a part of an upload from one that is sent again: the id of the first profile,
 * or the content if no profile has samples. 0: not known. */
static uint64_t content_of(struct sample_plan *plan)
{
    const uint8_t *id =
        plan->profile_count > 0 ? plan->profiles[0].profile_id : request_content(plan, 0);
    return id ? hash_bytes(slice_of(id, PROFILE_ID_SIZE)) | 1 : 0;
}

static void begin_telling(struct told_upload *upload, const struct sample_plan *plan,
                          const struct resource_upload *read, uint64_t content)
{
    upload->joined = (struct joined_instances){0};
    find_joined(plan, read, &upload->joined);
    upload->told = (struct instance_upload){.uploader = read->uploader,
                                            .joined = upload->joined.numbers,
                                            .joined_count = upload->joined.count,
                                            .service = read->service,
                                            .moved_ns = read->moved_ns,
                                            .form = read->form,
                                            .content = content};
}

static void end_telling(struct told_upload *upload)
{
    free(upload->joined.numbers);
    free(upload->joined.seen);
}

static bool names_services(const struct sample_plan *plan)
{
    return plan->settings->service_from == SERVICE_FROM_SPAN;
}

static void take_service(struct sample_plan *plan, struct resource_upload *upload,
                         const struct instance_service *found)
{
    upload->verdict = found->verdict;
    if (found->verdict != SERVICE_CHANGES)
        return;
    upload->service.name = arena_copy(&plan->arena, found->service.name);
    if (found->service.space.size > 0)
        upload->service.space = arena_copy(&plan->arena, found->service.space);
}

/* Returns when the samples of an upload were taken, and up to a second more: ends are as
 * range_of. */
static struct upload_range all_times(const struct sample_plan *plan,
                                     const struct resource_upload *upload)
{
    struct upload_range all = {0, 0};
    for (unsigned i = 0; i < slot_count(plan); i++)
        widen(&all, upload->ranges[i]);
    all.to_ns += all.to_ns > 0 ? SECOND_NS : 0;
    return all;
}

/* Returns when the samples of an upload were taken by either clock, or somewhat more. */
static struct upload_range taken_times(const struct sample_plan *plan,
                                       const struct resource_upload *upload)
{
    struct upload_range all = all_times(plan, upload);
    for (unsigned i = 0; i < slot_count(plan); i++)
        widen(&all, upload->sent[i]);
    return all;
}

struct upload_range upload_times_taken(const struct sample_plan *plan)
{
    struct upload_range all = {UINT64_MAX, 0};
    for (uint32_t i = 0; i < plan->upload_count; i++) {
        struct upload_range taken = taken_times(plan, &plan->uploads[i]);
        if (taken.to_ns > 0)
            all = upload_ranges_union(all, taken);
    }
    return all;
}

static bool has_missing(const struct sample_plan *plan, const struct resource_upload *upload)
{
    const uint32_t *samples = plan->samples + upload->first_sample;
    for (uint32_t i = 0; i < upload->sample_count; i++) {
        uint32_t key = samples[i] & SAMPLE_KEY;
        if (key > 0 && plan->finds[key - 1].presence == SPAN_MISSING)
            return true;
    }
    return false;
}

void upload_times_note_unjoined(const struct sample_plan *plan, struct instances *instances,
                                const struct instance_clock *clock)
{
    for (uint32_t i = 0; i < plan->upload_count; i++) {
        struct told_upload upload;
        if (!has_missing(plan, &plan->uploads[i]))
            continue;
        begin_telling(&upload, plan, &plan->uploads[i], 0);
        instances_note_unjoined(instances, &upload.told, taken_times(plan, &plan->uploads[i]),
                                clock);
        end_telling(&upload);
    }
}

/* Tells of samples that name a thread, and were not looked for. If others of the upload name their
 * span, so that the profiler knows it, those that do not are most likely of none. */
static void tell_unasked(const struct sample_plan *plan, const struct resource_upload *read,
                         struct instance_upload *told)
{
    told->keeps_unasked = read->is_presumed && read->has_threads;
    if ((read->is_unasked || told->keeps_unasked) && !read->names_spans)
        told->unasked = all_times(plan, read);
}

void upload_times_tell(struct sample_plan *plan, struct instances *instances,
                       const struct instance_clock *clock, bool waits, struct span_wakeups *wakeups)
{
    bool names = names_services(plan);
    uint64_t content = content_of(plan);
    for (uint32_t i = 0; i < plan->upload_count; i++) {
        struct told_upload upload;
        struct instance_service service;
        bool covers = !waits || !plan->uploads[i].adds_later;
        begin_telling(&upload, plan, &plan->uploads[i], content);
        if (covers && plan->beyond_keys == 0) /* else samples of some spans are not counted */
            memcpy(upload.told.ranges, plan->uploads[i].ranges,
                   slot_count(plan) * sizeof *upload.told.ranges);
        if (covers)
            tell_unasked(plan, &plan->uploads[i], &upload.told);
        instances_add_upload(instances, &upload.told, clock, wakeups, names ? &service : NULL);
        if (names)
            take_service(plan, &plan->uploads[i], &service);
        end_telling(&upload);
    }
}

void upload_times_hold(const struct sample_plan *plan, struct instances *instances,
                       struct held_uploads *held_out)
{
    *held_out = (struct held_uploads){.count = 0};
    for (uint32_t i = 0; i < plan->upload_count; i++) {
        const struct resource_upload *upload = &plan->uploads[i];
        if (!upload->adds_later && !upload->has_threads)
            continue;
        if (!held_out->items)
            held_out->items = memory_grow(NULL, plan->upload_count, sizeof *held_out->items);
        instances_hold_upload(instances, upload->uploader, upload->process, all_times(plan, upload),
                              !upload->adds_later, &held_out->items[held_out->count++]);
    }
}

/* Holds the upload of a resource, unless it is that of `last`, which is held. Returns whose it is.
 */
static uint16_t hold_unread(const struct request_sender *sender, struct slice resource,
                            uint16_t last, struct held_uploads *held)
{
    struct upload_range until_now = {0, sender->arrived_ns};
    struct span_source source = request_source(sender, resource);
    struct request_process process = request_process(sender, resource, &source);
    uint16_t with_threads = request_process_with_threads(sender, &process).instance;
    if (process.instance == last)
        return last;
    if (!held->items)
        held->items = memory_grow(NULL, UPLOADS_HELD_UNREAD, sizeof *held->items);
    instances_hold_upload(span_index_instances(sender->index), process.instance, with_threads,
                          until_now, false, &held->items[held->count++]);
    return process.instance;
}

void upload_times_hold_unread(const struct request_sender *sender, struct held_uploads *held_out)
{
    struct wire_cursor cursor = wire_cursor(sender->batch->parts[0].root.raw);
    struct wire_field field;
    uint16_t last = 0;
    *held_out = (struct held_uploads){.count = 0};
    for (unsigned i = 0; i < UPLOADS_HELD_UNREAD; i++) {
        if (!wire_next_bytes(&cursor, PROFILES_RESOURCE_PROFILES, &field))
            return;
        struct slice resource = wire_first_bytes(field.bytes, RESOURCE_PROFILES_RESOURCE);
        last = hold_unread(sender, resource, last, held_out);
    }
}

void upload_times_end_hold(struct held_uploads *held, struct instances *instances,
                           const struct instance_clock *clock, struct span_wakeups *wakeups)
{
    for (uint32_t i = 0; i < held->count; i++)
        instances_end_hold(instances, &held->items[i], clock, wakeups);
    free(held->items);
    *held = (struct held_uploads){.count = 0};
}

void upload_times_give_up_hold(struct held_uploads *held, struct span_index *index, uint64_t now_ns)
{
    struct span_wakeups wakeups = {0};
    struct instance_clock clock = {.now_ns = now_ns, .window_ns = span_index_window(index)};
    upload_times_end_hold(held, span_index_instances(index), &clock, &wakeups);
    span_wakeups_deinit(&wakeups);
}

void upload_times_learn_services(struct sample_plan *plan, struct instances *instances,
                                 const struct instance_clock *clock)
{
    for (uint32_t i = 0; i < plan->upload_count && names_services(plan); i++) {
        struct told_upload upload;
        struct instance_service service;
        begin_telling(&upload, plan, &plan->uploads[i], 0);
        instances_name_upload(instances, &upload.told, clock, &service);
        take_service(plan, &plan->uploads[i], &service);
        end_telling(&upload);
    }
}
