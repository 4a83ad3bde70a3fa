#include "core/base/container_of.h"
#include "core/base/memory.h"
#include "core/data/instances.h"
#include "core/data/instances_private.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define SECOND_NS UINT64_C(1000000000)

enum {
    WAITS_FOR_GAPS_MAX = 8, /* of a request, so that uploads cannot ask it again and again */
    HELD_MAX = 64,          /* of an instance; further uploads share the last one */
    SETTLED_AT_ONCE = 256,  /* instances, in one turn of a worker's loop */
};

/* ---- what uploads cover ---- */

static bool is_profiled(const struct instance *instance, const struct instance_clock *clock)
{
    return is_within(instance->profiled_ns, clock->now_ns, clock->window_ns);
}

/* Whether an instance of its service is profiled. */
static bool has_profiled_service(const struct instances *instances, const struct instance *instance,
                                 const struct instance_clock *clock)
{
    return instance->service != 0 && is_profiled(&instances->items[instance->service], clock);
}

/* Whether it may turn out to be profiled. */
static bool may_be_profiled(const struct instances *instances, const struct instance *instance,
                            const struct instance_clock *clock)
{
    if (is_within(instances->first_span_ns, clock->now_ns, clock->wait_ns) ||
        instance_held_count(instance) > 0)
        return true;
    return is_within(instance->first_ns, clock->now_ns, clock->wait_ns) &&
           has_profiled_service(instances, instance, clock);
}

static bool is_waited_for(const struct instances *instances, const struct instance *instance,
                          const struct instance_clock *clock)
{
    return is_profiled(instance, clock) || may_be_profiled(instances, instance, clock);
}

/* Returns the slots whose first upload may still come. Go's SDK sends memory profiles 15 s before
 * its first CPU profile, and others send each type in a request of its own. */
static uint32_t awaited_slots(const struct instance *instance, const struct instance_clock *clock)
{
    bool begins =
        clock->wait_ns > 0 && is_within(instance->uploads_from_ns, clock->now_ns, clock->wait_ns);
    return begins ? clock->awaited : 0;
}

/* Whether an instance still awaits the first upload of a slot. */
static bool awaits_first(const struct instances *instances, uint16_t number,
                         const struct instance_clock *clock)
{
    const struct upload_slot *slots = instance_slots(instances, number);
    uint32_t awaited = awaited_slots(&instances->items[number], clock);
    for (unsigned i = 0; i < instances->slot_count; i++)
        if ((awaited & UINT32_C(1) << i) &&
            !upload_slot_counts(&slots[i], clock->now_ns, clock->window_ns))
            return true;
    return false;
}

/* Returns 0 if it has no uploads that count, or still awaits some. */
static uint64_t covered(const struct instances *instances, uint16_t number,
                        const struct instance_clock *clock)
{
    const struct upload_slot *slots = instance_slots(instances, number);
    uint64_t until_ns = UINT64_MAX;
    if (awaits_first(instances, number, clock))
        return 0;
    for (unsigned i = 0; i < instances->slot_count; i++) {
        if (!upload_slot_counts(&slots[i], clock->now_ns, clock->window_ns))
            continue;
        uint64_t covered_ns = upload_slot_covered(&slots[i], clock->now_ns);
        until_ns = covered_ns < until_ns ? covered_ns : until_ns;
    }
    return until_ns == UINT64_MAX ? 0 : until_ns;
}

/* Returns the uploader whose samples showed this instance last; 0: there is none. */
static uint16_t shown_by_of(const struct instances *instances, uint16_t number)
{
    uint16_t uploader = instances->items[number].shown_by;
    return instance_is_live(instances, uploader) && instances->items[uploader].shows == number
               ? uploader
               : 0;
}

/* Returns the gap of the newest upload that waits and overlaps with one of the ranges; NULL: there
 * is none. */
static struct upload_gap *find_held(const struct instance *instance,
                                    const struct upload_range *ranges, unsigned count,
                                    bool has_threads)
{
    struct list_link *newest = instance->held ? instance->held->last : NULL;
    for (struct list_link *link = newest; link; link = link->previous) {
        struct held_upload *held = container_of(link, struct held_upload, link);
        for (unsigned k = 0; k < count && (has_threads || !held->threads_only); k++)
            if (upload_ranges_overlap(held->gap.range, ranges[k]))
                return &held->gap;
    }
    return NULL;
}

/* Returns a gap in one of the ranges; NULL: there is none. */
static struct upload_gap *find_gap(const struct instances *instances, uint16_t number,
                                   const struct upload_range *ranges, unsigned count,
                                   bool has_threads, const struct instance_clock *clock)
{
    const struct upload_slot *slots = instance_slots(instances, number);
    struct upload_gap *gap = find_held(&instances->items[number], ranges, count, has_threads);
    uint16_t shown_by = shown_by_of(instances, number);
    if (!gap && shown_by != 0)
        gap = find_held(&instances->items[shown_by], ranges, count, has_threads);
    for (unsigned i = 0; i < instances->slot_count && !gap; i++)
        if (slots[i].gaps && upload_slot_counts(&slots[i], clock->now_ns, clock->window_ns))
            for (unsigned k = 0; k < count && !gap; k++)
                gap = upload_slot_find_gap(&slots[i], ranges[k], clock->now_ns, clock->window_ns);
    return gap;
}

static void wait_for_gap(struct instances *instances, struct instance_waiter *waiter,
                         struct upload_gap *gap)
{
    list_append(&gap->waiting, &waiter->link);
    waiter->gaps++;
    instances->items[waiter->instance].waiting_for_gaps++;
}

static uint64_t latest_end(const struct upload_range *spans, unsigned count)
{
    uint64_t end_ns = 0;
    for (unsigned i = 0; i < count; i++)
        end_ns = spans[i].to_ns > end_ns ? spans[i].to_ns : end_ns;
    return end_ns;
}

static void wait_for_later(struct instances *instances, struct instance_waiter *waiter)
{
    timer_queue_set(instances->items[waiter->instance].waiting, &waiter->timer,
                    latest_end(waiter->ranges, waiter->range_count));
}

/* Returns the time up to which nobody has to wait for later uploads. */
static uint64_t waited_until(const struct instances *instances, uint16_t number,
                             const struct instance_clock *clock)
{
    return is_waited_for(instances, &instances->items[number], clock)
               ? covered(instances, number, clock)
               : UINT64_MAX;
}

/* Wakes a request if its spans have ended before the latest uploads did, and none is missing. */
static void wake(struct instances *instances, struct instance_waiter *waiter)
{
    if (waited_until(instances, waiter->instance, instances->clock) <
        latest_end(waiter->ranges, waiter->range_count)) {
        wait_for_later(instances, waiter);
        return;
    }
    struct upload_gap *gap = find_gap(instances, waiter->instance, waiter->ranges,
                                      waiter->range_count, waiter->has_threads, instances->clock);
    if (gap && waiter->gaps < WAITS_FOR_GAPS_MAX)
        wait_for_gap(instances, waiter, gap);
    else
        span_wakeups_add(instances->wakeups,
                         (struct span_wakeup){waiter->waiter, SPAN_WAITS_FOR_SAMPLES});
}

static void on_covered(struct timer *timer)
{
    struct instance_waiter *waiter = container_of(timer, struct instance_waiter, timer);
    wake(waiter->instances, waiter);
}

/* Wakes those who waited for a gap that is smaller now, or lets them wait for what is missing. */
static void wake_released(struct instances *instances, struct list *released)
{
    for (struct list_link *link; (link = list_pop(released));) {
        struct instance_waiter *waiter = container_of(link, struct instance_waiter, link);
        assert(instances->items[waiter->instance].waiting_for_gaps > 0);
        instances->items[waiter->instance].waiting_for_gaps--;
        wake(instances, waiter);
    }
}

/* ---- time ---- */

static void on_settled(struct timer *timer);

/* Returns when the beginning of an instance has passed, in which it is waited for although nothing
 * is known of its uploads, or of those of some types; UINT64_MAX: it has. */
static uint64_t beginning_ends(const struct instances *instances, uint16_t number,
                               const struct instance_clock *clock)
{
    const struct instance *instance = &instances->items[number];
    if (awaits_first(instances, number, clock))
        return instance->uploads_from_ns + clock->wait_ns + 1;
    if (is_profiled(instance, clock))
        return UINT64_MAX;
    if (is_within(instances->first_span_ns, clock->now_ns, clock->wait_ns))
        return instances->first_span_ns + clock->wait_ns + 1;
    bool is_new = is_within(instance->first_ns, clock->now_ns, clock->wait_ns);
    return is_new ? instance->first_ns + clock->wait_ns + 1 : UINT64_MAX;
}

/* Sets the timer that settles an instance. */
static void settle_at(struct instances *instances, uint16_t number, uint64_t next_ns)
{
    struct instance *instance = &instances->items[number];
    if (next_ns == UINT64_MAX)
        return;
    if (!instance->settling) {
        instance->settling = memory_zalloc(sizeof *instance->settling);
        instance->settling->timer.on_timer = on_settled;
        instance->settling->instances = instances;
        instance->settling->number = number;
    }
    timer_queue_set(&instances->settling, &instance->settling->timer, next_ns);
}

/* Moves those who need not wait for gaps any more to `released`, and sets the timer for what ends
 * with time. */
static void settle(struct instances *instances, uint16_t number, const struct instance_clock *clock,
                   struct list *released)
{
    struct upload_slot *slots = instance_slots(instances, number);
    uint64_t next_ns = beginning_ends(instances, number, clock);
    for (unsigned i = 0; i < instances->slot_count; i++) {
        uint64_t slot_ns = upload_slot_settle(&slots[i], clock->now_ns, clock->window_ns, released);
        next_ns = slot_ns < next_ns ? slot_ns : next_ns;
    }
    settle_at(instances, number, next_ns);
}

/* Wakes those whose spans are covered now. released: they waited for gaps. */
static void wake_covered(struct instances *instances, uint16_t number,
                         const struct instance_clock *clock, struct list *released)
{
    struct timer_queue *waiting = instances->items[number].waiting;
    settle(instances, number, clock, released);
    if (waiting)
        timer_queue_run(waiting, waited_until(instances, number, clock));
    wake_released(instances, released);
}

static void on_settled(struct timer *timer)
{
    const struct settling *settling = container_of(timer, struct settling, timer);
    struct list released = {NULL};
    wake_covered(settling->instances, settling->number, settling->instances->clock, &released);
}

uint64_t instances_settle(struct instances *instances, const struct instance_clock *clock,
                          struct span_wakeups *wakeups)
{
    pthread_mutex_lock(&instances->lock);
    instances->wakeups = wakeups;
    instances->clock = clock;
    timer_queue_run_some(&instances->settling, clock->now_ns, SETTLED_AT_ONCE);
    instances->wakeups = NULL;
    instances->clock = NULL;
    uint64_t next_ns = timer_queue_next(&instances->settling);
    pthread_mutex_unlock(&instances->lock);
    return next_ns;
}

/* ---- uploads of an instance ---- */

/* Notes that an upload has arrived. */
static void note_upload(struct instance *instance, const struct instance_clock *clock)
{
    if (!is_profiled(instance, clock))
        instance->uploads_from_ns = happened_at(clock->now_ns);
    instance->profiled_ns = happened_at(clock->now_ns);
}

/* Notes what identifies the request of an upload. What splits requests does so for all processes of
 * a service, so that a new one may send parts from the first upload on. */
static void note_content(struct instances *instances, const struct instance *instance,
                         struct upload_slot *slot, struct upload_range range,
                         const struct instance_upload *upload, const struct instance_clock *clock)
{
    struct instance *service = instance->service ? &instances->items[instance->service] : NULL;
    if (service && !upload_slot_counts(slot, clock->now_ns, clock->window_ns) &&
        is_within(service->in_parts_ns, clock->now_ns, clock->window_ns))
        upload_slot_expect_parts(slot, clock->now_ns);
    upload_slot_note_content(slot, range, upload->form, upload->content, clock->now_ns,
                             clock->window_ns);
    if (service && slot->has_parts)
        service->in_parts_ns = slot->parts_ns;
}

static void cover(struct instances *instances, uint16_t number,
                  const struct instance_upload *upload, const struct instance_clock *clock)
{
    struct instance *instance = &instances->items[number];
    struct upload_slot *slots = instance_slots(instances, number);
    struct list released = {NULL};
    for (unsigned i = 0; i < instances->slot_count; i++) {
        if (upload->moved_ns > 0) /* also if it covers nothing yet, or has other types only */
            upload_slot_move(&slots[i], upload->form, upload->moved_ns, &released);
        if (upload->ranges[i].to_ns == 0)
            continue;
        if (upload->content != 0 && i + 1 < instances->slot_count)
            note_content(instances, instance, &slots[i], upload->ranges[i], upload, clock);
        upload_slot_add(&slots[i], upload->ranges[i], upload->form, clock->now_ns, clock->window_ns,
                        &released);
        note_upload(instance, clock);
    }
    if (instance->service != 0) {
        instances->items[instance->service].profiled_ns = clock->now_ns;
        instances->items[instance->service].used_ns = clock->now_ns;
    }
    instance->used_ns = clock->now_ns;
    wake_covered(instances, number, clock, &released);
}

/* ---- uploads that wait ---- */

static struct held_upload *hold(struct instance *instance, struct upload_range range,
                                bool threads_only)
{
    struct held_upload *held;
    if (!instance->held)
        instance->held = memory_zalloc(sizeof *instance->held);
    if (instance->held->count < HELD_MAX) {
        held = memory_zalloc(sizeof *held);
        held->gap.range = range;
        held->threads_only = threads_only;
        list_append(instance->held, &held->link);
    } else {
        held = container_of(instance->held->last, struct held_upload, link);
        held->gap.range = upload_ranges_union(held->gap.range, range);
        held->threads_only &= threads_only;
    }
    held->uploads++;
    return held;
}

void instances_hold_upload(struct instances *instances, uint16_t uploader, uint16_t process,
                           struct upload_range range, bool threads_only,
                           struct instance_hold *hold_out)
{
    const uint16_t numbers[2] = {uploader, process != uploader ? process : 0};
    assert(range.from_ns <= range.to_ns);
    pthread_mutex_lock(&instances->lock);
    for (unsigned i = 0; i < 2; i++)
        hold_out->held[i] = instance_is_live(instances, numbers[i])
                                ? hold(&instances->items[numbers[i]], range, threads_only)
                                : NULL;
    pthread_mutex_unlock(&instances->lock);
}

static void end_hold(struct held_upload *held, struct list *released)
{
    assert(held->uploads > 0 && held->link.list);
    if (--held->uploads > 0)
        return;
    for (struct list_link *link; (link = list_pop(&held->gap.waiting));)
        list_append(released, link);
    list_remove(held->link.list, &held->link);
    free(held);
}

void instances_end_hold(struct instances *instances, struct instance_hold *hold,
                        const struct instance_clock *clock, struct span_wakeups *wakeups)
{
    struct list released = {NULL};
    pthread_mutex_lock(&instances->lock);
    for (unsigned i = 0; i < 2; i++)
        if (hold->held[i])
            end_hold(hold->held[i], &released);
    *hold = (struct instance_hold){.held = {NULL}};
    instances->wakeups = wakeups;
    instances->clock = clock;
    wake_released(instances, &released);
    instances->wakeups = NULL;
    instances->clock = NULL;
    pthread_mutex_unlock(&instances->lock);
}

/* ---- whom uploads show ---- */

static void show(struct instance *uploader, uint16_t number, const struct instance_clock *clock)
{
    if (uploader->shows != 0 && uploader->shows != number &&
        is_within(uploader->showed_ns, clock->now_ns, clock->window_ns))
        uploader->shared_ns = clock->now_ns;
    uploader->shows = number;
    uploader->showed_ns = clock->now_ns;
}

bool instance_shows_one(const struct instances *instances, const struct instance *uploader,
                        const struct instance_clock *clock)
{
    return instance_is_live(instances, uploader->shows) &&
           is_within(uploader->showed_ns, clock->now_ns, clock->window_ns) &&
           !is_within(uploader->shared_ns, clock->now_ns, clock->window_ns);
}

/* ---- services ---- */

static void copy_service(struct instance_service *out, const struct service_id *service)
{
    size_t name = service->name.size, space = service->space.size;
    assert(name + space <= sizeof out->text);
    memcpy(out->text, service->name.data, name);
    memcpy(out->text + name, service->space.data, space);
    out->service.name = slice_of(out->text, name);
    out->service.space = slice_of(out->text + name, space);
}

static void name_upload(struct instances *instances, const struct instance_upload *upload,
                        const struct instance_clock *clock, struct instance_service *out)
{
    uint64_t now_ns = clock->now_ns, window_ns = clock->window_ns;
    struct service_id service;
    out->verdict = SERVICE_STAYS;
    if (!instance_is_live(instances, upload->uploader))
        return;
    struct service_naming *naming = &instances->items[upload->uploader].naming;
    for (size_t i = 0; i < upload->joined_count; i++)
        if (instance_is_live(instances, upload->joined[i]))
            service_naming_learn(naming, &instances->items[upload->joined[i]].naming, now_ns);
    service_naming_keep(naming, now_ns, window_ns);
    out->verdict = service_naming_decide(naming, &upload->service, now_ns, window_ns, &service);
    if (out->verdict == SERVICE_CHANGES)
        copy_service(out, &service);
}

void instances_name_upload(struct instances *instances, const struct instance_upload *upload,
                           const struct instance_clock *clock, struct instance_service *service_out)
{
    pthread_mutex_lock(&instances->lock);
    name_upload(instances, upload, clock, service_out);
    pthread_mutex_unlock(&instances->lock);
}

/* ---- uploads ---- */

static void note_range(struct noted_range *noted, struct upload_range range,
                       const struct instance_clock *clock)
{
    bool is_first = !is_within(noted->noted_ns, clock->now_ns, clock->window_ns);
    noted->range = is_first ? range : upload_ranges_union(noted->range, range);
    if (clock->now_ns > noted->noted_ns) /* the clock of another worker may be behind */
        noted->noted_ns = clock->now_ns;
}

void instances_add_upload(struct instances *instances, const struct instance_upload *upload,
                          const struct instance_clock *clock, struct span_wakeups *wakeups,
                          struct instance_service *service_out)
{
    pthread_mutex_lock(&instances->lock);
    if (service_out)
        name_upload(instances, upload, clock, service_out);
    instances->wakeups = wakeups;
    instances->clock = clock;
    struct instance *uploader =
        instance_is_live(instances, upload->uploader) ? &instances->items[upload->uploader] : NULL;
    bool told = false;
    if (uploader && upload->unasked.to_ns > 0)
        note_range(upload->keeps_unasked ? &uploader->kept : &uploader->unasked, upload->unasked,
                   clock);
    for (size_t i = 0; i < upload->joined_count; i++) {
        if (!instance_is_live(instances, upload->joined[i]))
            continue;
        if (uploader)
            show(uploader, upload->joined[i], clock);
        if (uploader && upload->joined[i] != upload->uploader)
            instances->items[upload->joined[i]].shown_by = upload->uploader;
        cover(instances, upload->joined[i], upload, clock);
        told |= upload->joined[i] == upload->uploader;
    }
    if (uploader && !told)
        cover(instances, upload->uploader, upload, clock);
    if (uploader && upload->joined_count == 0 && uploader->shows != upload->uploader &&
        instance_shows_one(instances, uploader, clock))
        cover(instances, uploader->shows, upload, clock);
    instances->wakeups = NULL;
    instances->clock = NULL;
    pthread_mutex_unlock(&instances->lock);
}

/* ---- samples that name unknown spans ---- */

static void note_unjoined(struct instances *instances, uint16_t number, struct upload_range range,
                          const struct instance_clock *clock)
{
    if (instance_is_live(instances, number))
        note_range(&instances->items[number].unjoined, range, clock);
}

void instances_note_unjoined(struct instances *instances, const struct instance_upload *upload,
                             struct upload_range range, const struct instance_clock *clock)
{
    pthread_mutex_lock(&instances->lock);
    for (size_t i = 0; i < upload->joined_count; i++)
        note_unjoined(instances, upload->joined[i], range, clock);
    note_unjoined(instances, upload->uploader, range, clock);
    if (instance_is_live(instances, upload->uploader))
        note_unjoined(instances, instances->items[upload->uploader].shows, range, clock);
    pthread_mutex_unlock(&instances->lock);
}

/* ---- clocks that are ahead ---- */

void instances_note_lead(struct instances *instances, uint16_t uploader, uint32_t form,
                         struct upload_ahead ahead, const struct instance_clock *clock)
{
    pthread_mutex_lock(&instances->lock);
    if (instance_is_live(instances, uploader)) {
        struct instance *instance = &instances->items[uploader];
        if (!instance->leads)
            instance->leads = memory_zalloc(sizeof *instance->leads);
        upload_lead_note(instance->leads, form, ahead, clock->now_ns, clock->window_ns);
    }
    pthread_mutex_unlock(&instances->lock);
}

struct upload_ahead instances_lead(struct instances *instances, uint16_t uploader, uint32_t form,
                                   const struct instance_clock *clock)
{
    struct upload_ahead ahead = {.ns = 0};
    pthread_mutex_lock(&instances->lock);
    if (instance_is_live(instances, uploader) && instances->items[uploader].leads)
        ahead = upload_lead_largest(instances->items[uploader].leads, form, clock->now_ns,
                                    clock->window_ns);
    pthread_mutex_unlock(&instances->lock);
    return ahead;
}

/* ---- spans ---- */

static void tell_held(const struct instances *instances, uint16_t number,
                      struct instance_coverage *coverage)
{
    const struct list *held = number != 0 ? instances->items[number].held : NULL;
    for (struct list_link *link = held ? held->first : NULL; link; link = link->next) {
        const struct held_upload *each = container_of(link, struct held_upload, link);
        upload_ranges_add(each->threads_only ? &coverage->thread_gaps : &coverage->gaps,
                          each->gap.range);
    }
}

static void tell_gaps(const struct upload_slot *slot, const struct instance_clock *clock,
                      struct instance_coverage *coverage)
{
    for (int i = 0; slot->gaps && i < UPLOAD_GAPS_MAX; i++)
        if (upload_gap_counts(&slot->gaps[i], clock->now_ns, clock->window_ns))
            upload_ranges_add(&coverage->gaps, slot->gaps[i].range);
}

/* Returns since when the uploads of a slot are known, if there may have been some before this index
 * was created, for example before profcol was started anew; 0: there were none. A begin that is a
 * whole second may be rounded. */
static uint64_t known_since(const struct instances *instances, const struct upload_slot *slot,
                            const struct instance_clock *clock)
{
    if (!is_within(instances->began_ns, slot->began_ns, clock->window_ns))
        return 0;
    bool is_rounded = slot->since_ns >= SECOND_NS && slot->since_ns % SECOND_NS == 0;
    return is_rounded ? slot->since_ns - SECOND_NS : slot->since_ns;
}

/* The last slot has the types that do not matter to spans. */
static void tell_slots(const struct instances *instances, uint16_t number,
                       const struct instance_clock *clock, struct instance_coverage *coverage)
{
    const struct upload_slot *slots = instance_slots(instances, number);
    for (unsigned i = 0; i < instances->slot_count; i++) {
        if (!upload_slot_counts(&slots[i], clock->now_ns, clock->window_ns))
            continue;
        uint64_t since_ns =
            i + 1 < instances->slot_count ? known_since(instances, &slots[i], clock) : 0;
        coverage->from_ns = since_ns > coverage->from_ns ? since_ns : coverage->from_ns;
        tell_gaps(&slots[i], clock, coverage);
    }
}

/* Returns both, of which there may be none. */
static struct upload_range both_noted(const struct noted_range *a, const struct noted_range *b)
{
    if (a->range.to_ns == 0 || b->range.to_ns == 0)
        return a->range.to_ns == 0 ? b->range : a->range;
    return upload_ranges_union(a->range, b->range);
}

/* Whether it was noted before uploads of this slot were known. */
static bool is_noted_before(const struct noted_range *noted, const struct upload_slot *slot)
{
    return noted->range.to_ns == 0 || noted->noted_ns <= slot->began_ns;
}

/* Returns when the uploads begin that an instance is known by, in each of its slots, or up to a
 * second later, if nothing of another one was noted since; UINT64_MAX: not known. */
static uint64_t uploads_begin(const struct instances *instances, uint16_t number,
                              const struct instance *other, const struct instance_clock *clock)
{
    const struct upload_slot *slots = instance_slots(instances, number);
    uint64_t begin_ns = 0;
    for (unsigned i = 0; i < instances->slot_count; i++) {
        if (!upload_slot_counts(&slots[i], clock->now_ns, clock->window_ns))
            continue;
        if (slots[i].since_ns == 0 || !is_noted_before(&other->unasked, &slots[i]) ||
            !is_noted_before(&other->kept, &slots[i]))
            return UINT64_MAX;
        begin_ns = slots[i].since_ns > begin_ns ? slots[i].since_ns : begin_ns;
    }
    bool is_rounded = begin_ns % SECOND_NS == 0;
    return is_rounded ? begin_ns + SECOND_NS : begin_ns;
}

/* Returns what was not looked for of another instance whose samples showed this one. */
static struct upload_range unasked_of(const struct instances *instances, uint16_t number,
                                      const struct instance *other,
                                      const struct instance_clock *clock)
{
    struct upload_range range = both_noted(&other->unasked, &other->kept);
    uint64_t begin_ns = uploads_begin(instances, number, other, clock);
    if (begin_ns <= range.from_ns)
        return (struct upload_range){0, 0};
    range.to_ns = begin_ns < range.to_ns ? begin_ns : range.to_ns;
    return range;
}

/* What was kept, spans of the instance itself have got, if its threads are the same. */
static void tell_unasked(const struct instances *instances, uint16_t number,
                         const struct instance_clock *clock, struct instance_coverage *coverage)
{
    const struct instance *instance = &instances->items[number];
    uint16_t shown_by = shown_by_of(instances, number);
    coverage->unasked[0] = instance_kept_is_foreign(instance)
                               ? both_noted(&instance->unasked, &instance->kept)
                               : instance->unasked.range;
    if (shown_by != 0)
        coverage->unasked[1] = unasked_of(instances, number, &instances->items[shown_by], clock);
}

struct instance_coverage instances_coverage(struct instances *instances, uint16_t number,
                                            const struct instance_clock *clock)
{
    struct instance_coverage coverage;
    coverage.until_ns = coverage.from_ns = 0;
    coverage.gaps.count = coverage.thread_gaps.count = 0;
    coverage.unjoined = coverage.unasked[0] = coverage.unasked[1] = (struct upload_range){0, 0};
    pthread_mutex_lock(&instances->lock);
    if (instance_is_live(instances, number)) {
        coverage.until_ns = covered(instances, number, clock);
        tell_held(instances, number, &coverage);
        tell_held(instances, shown_by_of(instances, number), &coverage);
        tell_slots(instances, number, clock, &coverage);
        coverage.unjoined = instances->items[number].unjoined.range;
        tell_unasked(instances, number, clock, &coverage);
    }
    pthread_mutex_unlock(&instances->lock);
    return coverage;
}

bool instance_was_unasked(const struct instance_coverage *coverage, struct upload_range range)
{
    return upload_ranges_overlap(coverage->unasked[0], range) ||
           upload_ranges_overlap(coverage->unasked[1], range);
}

static bool has_overlap(const struct upload_ranges *gaps, struct upload_range range)
{
    for (unsigned i = 0; i < gaps->count; i++)
        if (upload_ranges_overlap(gaps->items[i], range))
            return true;
    return false;
}

bool instance_covers(const struct instance_coverage *coverage, struct upload_range range,
                     bool has_thread)
{
    return coverage->until_ns >= range.to_ns && range.from_ns >= coverage->from_ns &&
           !has_overlap(&coverage->gaps, range) &&
           !(has_thread && has_overlap(&coverage->thread_gaps, range));
}

/* gap: NULL: waits for later uploads. */
static struct instance_waiter *begin_wait(struct instances *instances, uint16_t number,
                                          const struct upload_ranges *spans,
                                          const struct span_waiter *waiter, struct upload_gap *gap)
{
    struct instance *instance = &instances->items[number];
    size_t size = spans->count * sizeof *spans->items;
    struct instance_waiter *begun = memory_zalloc(sizeof *begun + size);
    memcpy(begun->ranges, spans->items, size);
    begun->range_count = spans->count;
    begun->instances = instances;
    begun->instance = number;
    begun->waiter = *waiter;
    begun->timer.on_timer = on_covered;
    if (!instance->waiting)
        instance->waiting = memory_zalloc(sizeof *instance->waiting);
    if (gap)
        wait_for_gap(instances, begun, gap);
    else
        wait_for_later(instances, begun);
    return begun;
}

struct instance_waiter *instances_wait(struct instances *instances, uint16_t number,
                                       const struct upload_ranges *spans, bool has_threads,
                                       const struct span_waiter *waiter,
                                       const struct instance_clock *clock)
{
    struct instance_waiter *begun = NULL;
    pthread_mutex_lock(&instances->lock);
    if (instances->first_span_ns == 0)
        instances->first_span_ns = happened_at(clock->now_ns);
    if (instance_is_live(instances, number)) {
        uint64_t until_ns = covered(instances, number, clock);
        bool is_early = is_profiled(&instances->items[number], clock)
                            ? until_ns < latest_end(spans->items, spans->count)
                            : may_be_profiled(instances, &instances->items[number], clock);
        struct upload_gap *gap =
            is_early ? NULL
                     : find_gap(instances, number, spans->items, spans->count, has_threads, clock);
        if (is_early || gap)
            begun = begin_wait(instances, number, spans, waiter, gap);
        if (begun)
            begun->has_threads = has_threads;
        if (begun && !is_profiled(&instances->items[number], clock))
            settle_at(instances, number, beginning_ends(instances, number, clock));
    }
    pthread_mutex_unlock(&instances->lock);
    return begun;
}

void instances_stop_waiting(struct instances *instances, struct instance_waiter *first)
{
    if (!first)
        return;
    pthread_mutex_lock(&instances->lock);
    while (first) {
        struct instance_waiter *next = first->next;
        struct instance *instance = &instances->items[first->instance];
        timer_queue_cancel(instance->waiting, &first->timer);
        if (first->link.list) {
            list_remove(first->link.list, &first->link);
            instance->waiting_for_gaps--;
        }
        free(first);
        first = next;
    }
    pthread_mutex_unlock(&instances->lock);
}
