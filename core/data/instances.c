#include "core/data/instances.h"

#include "core/base/container_of.h"
#include "core/base/index_table.h"
#include "core/base/memory.h"
#include "core/data/process_group.h"
#include "core/data/upload_senders.h"

#include <assert.h>
#include <pthread.h>

enum {
    IDS_MAX = INSTANCE_IDS_MAX + INSTANCE_PIDS_MAX + 1,
    WAITS_FOR_GAPS_MAX = 8, /* of a request, so that uploads cannot ask it again and again */
    HELD_MAX = 64,          /* of an instance; further uploads share the last one */
};

/* One upload that waits, or several. Its gap is the time in which spans may get samples of it. */
struct held_upload {
    struct list_link link; /* of the instance */
    struct upload_gap gap;
    uint32_t uploads;
};

/* Ends the wait for further parts of an upload, and for gaps that are too old. */
struct settling {
    struct timer timer;
    struct instances *instances;
    uint16_t number;
};

/* The processes of a group that have sent spans with threads last. */
struct recent_processes {
    struct {
        uint16_t number;   /* 0: there is none here */
        uint64_t first_ns; /* of the instance that had the number */
    } items[GROUP_MEMBERS_MAX];
    uint64_t crowded_ns; /* one was forgotten for another one; 0: never */
};

struct instance {
    uint64_t ids[IDS_MAX];
    uint64_t claims[INSTANCE_CLAIMS_MAX];
    uint64_t first_ns; /* monotonic, like the others; 0: the number is free */
    uint64_t used_ns;
    uint64_t profiled_ns;     /* its last upload, or that of an instance of this service; 0: none */
    uint64_t uploads_from_ns; /* when an upload came after none for a window; 0: never */
    uint64_t showed_ns;       /* its samples showed `shows` last */
    uint64_t shared_ns;       /* they showed another one than before; 0: never */
    uint64_t in_container_ns; /* profiles of its container asked for its threads last; 0: never */
    struct process_spans spans;      /* that name their threads */
    struct recent_processes *recent; /* NULL: it stands for no group */
    int64_t pid;                     /* of its spans with threads; 0: not known */
    struct timer_queue *waiting;     /* by the ends of spans; NULL: none yet */
    uint32_t waiting_for_gaps;
    struct list *held;              /* struct held_upload, the newest last; NULL: none so far */
    struct settling *settling;      /* NULL: none so far */
    struct upload_senders *senders; /* of samples with its threads; NULL: none so far */
    struct service_naming naming;
    uint16_t shows;
    uint16_t shown_by; /* the last uploader whose samples showed this one, if it is another one */
    uint16_t service;  /* the instance that stands for its service */
    uint16_t owner;
    uint8_t id_count;
    bool is_shared; /* stands for a number that several processes have */
};

struct instances {
    pthread_mutex_t lock;
    unsigned slot_count;
    uint32_t most; /* numbers, including 0 */
    struct index_table by_id;
    struct instance *items;    /* by number */
    struct upload_slot *slots; /* slot_count for each */
    uint32_t capacity;
    uint32_t used;        /* numbers that were given out, including 0 */
    uint32_t likely_free; /* the first number that may be free */
    uint32_t owned[SPAN_SOURCES_MAX];
    uint64_t first_span_ns;             /* when instances_wait was first asked; 0: never */
    struct timer_queue settling;        /* instances with gaps, or that wait for parts */
    uint64_t threads_ns;                /* the last span with a thread; 0: none */
    struct span_wakeups *wakeups;       /* of the upload being added */
    const struct instance_clock *clock; /* likewise */
};

struct instances *instances_new(unsigned slot_count, uint32_t most)
{
    assert(slot_count > 0 && slot_count <= INSTANCE_SLOTS_MAX);
    assert(most > 1 && most <= INSTANCES_MAX);
    struct instances *instances = memory_zalloc(sizeof *instances);
    pthread_mutex_init(&instances->lock, NULL);
    instances->slot_count = slot_count;
    instances->most = most;
    instances->used = instances->likely_free = 1;
    return instances;
}

static struct upload_slot *slots_of(const struct instances *instances, uint32_t number)
{
    return &instances->slots[(size_t)number * instances->slot_count];
}

static void deinit_slots(struct instances *instances, uint32_t number)
{
    for (unsigned i = 0; i < instances->slot_count; i++)
        upload_slot_deinit(&slots_of(instances, number)[i]);
}

static void free_waiting(struct instance *instance)
{
    if (!instance->waiting)
        return;
    timer_queue_deinit(instance->waiting);
    free(instance->waiting);
    instance->waiting = NULL;
}

static void free_settling(struct instances *instances, struct instance *instance)
{
    if (instance->settling)
        timer_queue_cancel(&instances->settling, &instance->settling->timer);
    free(instance->settling);
    instance->settling = NULL;
}

static size_t held_count(const struct instance *instance)
{
    return instance->held ? instance->held->count : 0;
}

void instances_free(struct instances *instances)
{
    if (!instances)
        return;
    for (uint32_t i = 1; i < instances->used; i++) {
        assert(held_count(&instances->items[i]) == 0);
        deinit_slots(instances, i);
        free_waiting(&instances->items[i]);
        free_settling(instances, &instances->items[i]);
        free(instances->items[i].held);
        free(instances->items[i].senders);
        free(instances->items[i].recent);
        service_naming_deinit(&instances->items[i].naming);
    }
    timer_queue_deinit(&instances->settling);
    pthread_mutex_destroy(&instances->lock);
    free(instances->by_id.slots);
    free(instances->items);
    free(instances->slots);
    free(instances);
}

/* ---- numbers ---- */

static uint16_t find(const struct instances *instances, uint64_t id)
{
    if (!instances->by_id.slots)
        return 0;
    struct index_probe probe = index_table_probe(&instances->by_id, (uint32_t)id);
    for (uint32_t number; index_table_next(&instances->by_id, &probe, &number);) {
        const struct instance *instance = &instances->items[number];
        for (unsigned i = 0; i < instance->id_count; i++)
            if (instance->ids[i] == id)
                return (uint16_t)number;
    }
    return 0;
}

static void grow(struct instances *instances)
{
    uint32_t capacity = instances->capacity ? instances->capacity * 2 : 64;
    instances->items = memory_grow(instances->items, capacity, sizeof *instances->items);
    instances->slots = memory_grow(instances->slots, (size_t)capacity * instances->slot_count,
                                   sizeof *instances->slots);
    instances->capacity = capacity;
}

static uint16_t take_number(struct instances *instances)
{
    while (instances->likely_free < instances->used &&
           instances->items[instances->likely_free].first_ns != 0)
        instances->likely_free++;
    uint32_t number = instances->likely_free;
    if (number == instances->most)
        return 0;
    if (number == instances->capacity || instances->capacity == 0)
        grow(instances);
    if (number == instances->used)
        instances->used++;
    return (uint16_t)number;
}

static void add_id(struct instances *instances, uint16_t number, uint64_t id)
{
    struct instance *instance = &instances->items[number];
    if (id == 0 || instance->id_count == IDS_MAX || find(instances, id) != 0)
        return;
    index_table_grow(&instances->by_id, 1);
    instance->ids[instance->id_count++] = id;
    index_table_add_new(&instances->by_id, (uint32_t)id, number);
}

static uint16_t add(struct instances *instances, uint16_t owner, uint64_t now_ns)
{
    assert(owner < SPAN_SOURCES_MAX);
    uint16_t number = instances->owned[owner] < instances->most / 2 ? take_number(instances) : 0;
    if (number == 0)
        return 0;
    instances->owned[owner]++;
    instances->items[number] = (struct instance){.first_ns = happened_at(now_ns), .owner = owner};
    memset(slots_of(instances, number), 0, instances->slot_count * sizeof *instances->slots);
    return number;
}

/* Returns the number that an id has; gives it one if it has none. */
static uint16_t find_or_add(struct instances *instances, uint64_t id, uint16_t owner,
                            uint64_t now_ns)
{
    uint16_t number = find(instances, id);
    if (number == 0)
        number = add(instances, owner, now_ns);
    if (number != 0) {
        add_id(instances, number, id);
        instances->items[number].used_ns = now_ns;
    }
    return number;
}

static void remove_id(struct instances *instances, uint16_t number, uint64_t id)
{
    struct instance *instance = &instances->items[number];
    for (unsigned i = 0; i < instance->id_count; i++)
        if (instance->ids[i] == id) {
            index_table_remove(&instances->by_id, (uint32_t)id, number);
            instance->ids[i] = instance->ids[--instance->id_count];
            return;
        }
}

/* ---- processes ---- */

static bool has_claims(const struct instance_ids *ids)
{
    for (unsigned i = 0; i < INSTANCE_CLAIMS_MAX; i++)
        if (ids->claims[i] != 0)
            return true;
    return false;
}

static bool are_different(const uint64_t *claims, const uint64_t *others)
{
    for (unsigned i = 0; i < INSTANCE_CLAIMS_MAX; i++)
        if (claims[i] != 0 && others[i] != 0 && claims[i] != others[i])
            return true;
    return false;
}

static bool contradicts(const struct instance *instance, const struct instance_ids *ids)
{
    return are_different(instance->claims, ids->claims);
}

/* Finds a process by its number on a host. */
static uint16_t find_by_pid(const struct instances *instances, const struct instance_ids *ids,
                            uint64_t pid)
{
    uint16_t number = pid != 0 ? find(instances, pid) : 0;
    if (number == 0)
        return 0;
    const struct instance *instance = &instances->items[number];
    bool is_other =
        instance->is_shared ? ids->count > 0 || has_claims(ids) : contradicts(instance, ids);
    return is_other ? 0 : number;
}

static uint16_t find_process(const struct instances *instances, const struct instance_ids *ids)
{
    uint16_t number = 0;
    for (unsigned i = 0; i < ids->count && number == 0; i++)
        number = find(instances, ids->ids[i]);
    for (unsigned i = 0; i < INSTANCE_PIDS_MAX && number == 0; i++)
        number = find_by_pid(instances, ids, ids->pids[i]);
    if (number == 0 && ids->count == 0 && ids->rest != 0)
        number = find(instances, ids->rest);
    return number;
}

static void set_member(struct instances *instances, uint16_t of_group, unsigned place,
                       uint16_t number)
{
    struct instance *group = &instances->items[of_group];
    if (!group->recent)
        group->recent = memory_zalloc(sizeof *group->recent);
    group->recent->items[place].number = number;
    group->recent->items[place].first_ns = instances->items[number].first_ns;
}

/* Lets a number on a host stand for a group of processes, because several have it: in different
 * containers, or one after the other. */
static void share_pid(struct instances *instances, uint64_t pid, uint16_t owner, uint64_t now_ns)
{
    uint16_t first = find(instances, pid);
    remove_id(instances, first, pid);
    uint16_t shared = add(instances, owner, now_ns);
    if (shared == 0)
        return;
    add_id(instances, shared, pid);
    set_member(instances, shared, 0, first);
    instances->items[shared].is_shared = true;
    instances->items[shared].used_ns = now_ns;
}

static void note_pid(struct instances *instances, uint16_t number, const struct instance_ids *ids,
                     uint64_t pid, uint64_t now_ns)
{
    uint16_t other = pid != 0 ? find(instances, pid) : number;
    if (other == 0)
        add_id(instances, number, pid);
    else if (other != number && contradicts(&instances->items[other], ids))
        share_pid(instances, pid, ids->owner, now_ns);
}

/* Notes what a process has told of itself. */
static void note_ids(struct instances *instances, uint16_t number, const struct instance_ids *ids,
                     uint64_t now_ns)
{
    struct instance *instance = &instances->items[number];
    instance->used_ns = now_ns;
    for (unsigned i = 0; i < ids->count; i++)
        add_id(instances, number, ids->ids[i]);
    if (instance->is_shared)
        return;
    for (unsigned i = 0; i < INSTANCE_CLAIMS_MAX; i++)
        if (instance->claims[i] == 0)
            instance->claims[i] = ids->claims[i];
    for (unsigned i = 0; i < INSTANCE_PIDS_MAX; i++)
        note_pid(instances, number, ids, ids->pids[i], now_ns);
}

static uint16_t find_or_add_process(struct instances *instances, const struct instance_ids *ids,
                                    uint64_t now_ns)
{
    uint16_t number = find_process(instances, ids);
    if (number == 0) {
        number = add(instances, ids->owner, now_ns);
        if (number != 0 && ids->count == 0)
            add_id(instances, number, ids->rest);
    }
    if (number != 0)
        note_ids(instances, number, ids, now_ns);
    return number;
}

uint16_t instances_find(struct instances *instances, const struct instance_ids *ids,
                        uint64_t now_ns)
{
    assert(ids->count <= INSTANCE_IDS_MAX);
    pthread_mutex_lock(&instances->lock);
    uint16_t service = 0;
    if (ids->service != 0)
        service = find_or_add(instances, ids->service, ids->owner, now_ns);
    uint16_t number = find_or_add_process(instances, ids, now_ns);
    if (number != 0 && number != service)
        instances->items[number].service = service;
    if (number != 0 && ids->of_spans)
        service_naming_note(&instances->items[number].naming, ids->of_spans, now_ns);
    pthread_mutex_unlock(&instances->lock);
    return number;
}

/* ---- what uploads cover ---- */

static bool is_live(const struct instances *instances, uint16_t number)
{
    return number != 0 && number < instances->used && instances->items[number].first_ns != 0;
}

static bool is_profiled(const struct instance *instance, const struct instance_clock *clock)
{
    return is_within(instance->profiled_ns, clock->now_ns, clock->window_ns);
}

/* Returns the slots whose first upload may still come. Go's SDK sends memory profiles 15 s before
 * its first CPU profile, and others send each type in a request of its own. */
static uint32_t awaited_slots(const struct instance *instance, const struct instance_clock *clock)
{
    bool begins =
        clock->wait_ns > 0 && is_within(instance->uploads_from_ns, clock->now_ns, clock->wait_ns);
    return begins ? clock->awaited : 0;
}

/* Returns 0 if it has no uploads that count, or still awaits some. */
static uint64_t covered(const struct instances *instances, uint16_t number,
                        const struct instance_clock *clock)
{
    const struct upload_slot *slots = slots_of(instances, number);
    uint32_t awaited = awaited_slots(&instances->items[number], clock);
    uint64_t until_ns = UINT64_MAX;
    for (unsigned i = 0; i < instances->slot_count; i++) {
        bool counts = upload_slot_counts(&slots[i], clock->now_ns, clock->window_ns);
        if (!counts && (awaited & UINT32_C(1) << i))
            return 0;
        if (!counts)
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
    return is_live(instances, uploader) && instances->items[uploader].shows == number ? uploader
                                                                                      : 0;
}

/* Returns the gap of the newest upload that waits and overlaps with one of the ranges; NULL: there
 * is none. */
static struct upload_gap *find_held(const struct instance *instance,
                                    const struct upload_range *ranges, unsigned count)
{
    struct list_link *newest = instance->held ? instance->held->last : NULL;
    for (struct list_link *link = newest; link; link = link->previous) {
        struct held_upload *held = container_of(link, struct held_upload, link);
        for (unsigned k = 0; k < count; k++)
            if (upload_ranges_overlap(held->gap.range, ranges[k]))
                return &held->gap;
    }
    return NULL;
}

/* Returns a gap in one of the ranges; NULL: there is none. */
static struct upload_gap *find_gap(const struct instances *instances, uint16_t number,
                                   const struct upload_range *ranges, unsigned count,
                                   const struct instance_clock *clock)
{
    const struct upload_slot *slots = slots_of(instances, number);
    struct upload_gap *gap = find_held(&instances->items[number], ranges, count);
    uint16_t shown_by = shown_by_of(instances, number);
    if (!gap && shown_by != 0)
        gap = find_held(&instances->items[shown_by], ranges, count);
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

/* Wakes a request if its spans have ended before the latest uploads did, and none is missing. */
static void wake(struct instances *instances, struct instance_waiter *waiter)
{
    if (covered(instances, waiter->instance, instances->clock) <
        latest_end(waiter->ranges, waiter->range_count)) {
        wait_for_later(instances, waiter);
        return;
    }
    struct upload_gap *gap = find_gap(instances, waiter->instance, waiter->ranges,
                                      waiter->range_count, instances->clock);
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

/* Moves those who need not wait for gaps any more to `released`, and sets the timer for the others
 * and for those who wait for parts. */
static void settle(struct instances *instances, uint16_t number, const struct instance_clock *clock,
                   struct list *released)
{
    struct upload_slot *slots = slots_of(instances, number);
    struct instance *instance = &instances->items[number];
    uint64_t next_ns = UINT64_MAX;
    for (unsigned i = 0; i < instances->slot_count; i++) {
        uint64_t slot_ns = upload_slot_settle(&slots[i], clock->now_ns, clock->window_ns, released);
        next_ns = slot_ns < next_ns ? slot_ns : next_ns;
    }
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

/* Wakes those whose spans are covered now. released: they waited for gaps. */
static void wake_covered(struct instances *instances, uint16_t number,
                         const struct instance_clock *clock, struct list *released)
{
    struct timer_queue *waiting = instances->items[number].waiting;
    settle(instances, number, clock, released);
    if (waiting)
        timer_queue_run(waiting, covered(instances, number, clock));
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
    timer_queue_run(&instances->settling, clock->now_ns);
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

static void cover(struct instances *instances, uint16_t number,
                  const struct instance_upload *upload, const struct instance_clock *clock)
{
    struct instance *instance = &instances->items[number];
    struct upload_slot *slots = slots_of(instances, number);
    struct list released = {NULL};
    for (unsigned i = 0; i < instances->slot_count; i++) {
        if (upload->ranges[i].to_ns == 0)
            continue;
        if (upload->content != 0 && i + 1 < instances->slot_count)
            upload_slot_note_content(&slots[i], upload->ranges[i], upload->form, upload->content,
                                     clock->now_ns, clock->window_ns);
        upload_slot_add(&slots[i], upload->ranges[i], upload->form, clock->now_ns, clock->window_ns,
                        &released);
        note_upload(instance, clock);
    }
    if (instance->service != 0)
        instances->items[instance->service].profiled_ns = clock->now_ns;
    instance->used_ns = clock->now_ns;
    wake_covered(instances, number, clock, &released);
}

/* ---- uploads that wait ---- */

static struct held_upload *hold(struct instance *instance, struct upload_range range)
{
    struct held_upload *held;
    if (!instance->held)
        instance->held = memory_zalloc(sizeof *instance->held);
    if (instance->held->count < HELD_MAX) {
        held = memory_zalloc(sizeof *held);
        held->gap.range = range;
        list_append(instance->held, &held->link);
    } else {
        held = container_of(instance->held->last, struct held_upload, link);
        held->gap.range = upload_ranges_union(held->gap.range, range);
    }
    held->uploads++;
    return held;
}

void instances_hold_upload(struct instances *instances, uint16_t uploader, uint16_t process,
                           struct upload_range range, struct instance_hold *hold_out)
{
    const uint16_t numbers[2] = {uploader, process != uploader ? process : 0};
    assert(range.from_ns <= range.to_ns);
    pthread_mutex_lock(&instances->lock);
    for (unsigned i = 0; i < 2; i++)
        hold_out->held[i] =
            is_live(instances, numbers[i]) ? hold(&instances->items[numbers[i]], range) : NULL;
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

/* Whether the instance that the uploader's samples showed is the only one. */
static bool shows_one(const struct instances *instances, const struct instance *uploader,
                      const struct instance_clock *clock)
{
    return is_live(instances, uploader->shows) &&
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
    if (!is_live(instances, upload->uploader))
        return;
    struct service_naming *naming = &instances->items[upload->uploader].naming;
    for (size_t i = 0; i < upload->joined_count; i++)
        if (is_live(instances, upload->joined[i]))
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
        is_live(instances, upload->uploader) ? &instances->items[upload->uploader] : NULL;
    bool told = false;
    for (size_t i = 0; i < upload->joined_count; i++) {
        if (!is_live(instances, upload->joined[i]))
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
        shows_one(instances, uploader, clock))
        cover(instances, uploader->shows, upload, clock);
    instances->wakeups = NULL;
    instances->clock = NULL;
    pthread_mutex_unlock(&instances->lock);
}

/* ---- spans ---- */

static void tell_held(const struct instances *instances, uint16_t number,
                      struct instance_coverage *coverage)
{
    const struct list *held = number != 0 ? instances->items[number].held : NULL;
    for (struct list_link *link = held ? held->first : NULL; link; link = link->next)
        upload_ranges_add(&coverage->gaps, container_of(link, struct held_upload, link)->gap.range);
}

static void tell_gaps(const struct upload_slot *slot, const struct instance_clock *clock,
                      struct instance_coverage *coverage)
{
    for (int i = 0; slot->gaps && i < UPLOAD_GAPS_MAX; i++)
        if (upload_gap_counts(&slot->gaps[i], clock->now_ns, clock->window_ns))
            upload_ranges_add(&coverage->gaps, slot->gaps[i].range);
}

struct instance_coverage instances_coverage(struct instances *instances, uint16_t number,
                                            const struct instance_clock *clock)
{
    struct instance_coverage coverage;
    coverage.until_ns = 0;
    coverage.gaps.count = 0;
    pthread_mutex_lock(&instances->lock);
    if (is_live(instances, number)) {
        const struct upload_slot *slots = slots_of(instances, number);
        coverage.until_ns = covered(instances, number, clock);
        tell_held(instances, number, &coverage);
        tell_held(instances, shown_by_of(instances, number), &coverage);
        for (unsigned i = 0; i < instances->slot_count; i++)
            if (upload_slot_counts(&slots[i], clock->now_ns, clock->window_ns))
                tell_gaps(&slots[i], clock, &coverage);
    }
    pthread_mutex_unlock(&instances->lock);
    return coverage;
}

bool instance_covers(const struct instance_coverage *coverage, struct upload_range range)
{
    if (coverage->until_ns < range.to_ns)
        return false;
    for (unsigned i = 0; i < coverage->gaps.count; i++)
        if (upload_ranges_overlap(coverage->gaps.items[i], range))
            return false;
    return true;
}

/* Whether it may turn out to be profiled. */
static bool may_be_profiled(const struct instances *instances, const struct instance *instance,
                            const struct instance_clock *clock)
{
    if (is_within(instances->first_span_ns, clock->now_ns, clock->wait_ns) ||
        held_count(instance) > 0)
        return true;
    return is_within(instance->first_ns, clock->now_ns, clock->wait_ns) && instance->service != 0 &&
           is_within(instances->items[instance->service].profiled_ns, clock->now_ns,
                     clock->window_ns);
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
                                       const struct upload_ranges *spans,
                                       const struct span_waiter *waiter,
                                       const struct instance_clock *clock)
{
    struct instance_waiter *begun = NULL;
    pthread_mutex_lock(&instances->lock);
    if (instances->first_span_ns == 0)
        instances->first_span_ns = happened_at(clock->now_ns);
    if (is_live(instances, number)) {
        uint64_t until_ns = covered(instances, number, clock);
        bool is_early = is_profiled(&instances->items[number], clock)
                            ? until_ns < latest_end(spans->items, spans->count)
                            : may_be_profiled(instances, &instances->items[number], clock);
        struct upload_gap *gap =
            is_early ? NULL : find_gap(instances, number, spans->items, spans->count, clock);
        if (is_early || gap)
            begun = begin_wait(instances, number, spans, waiter, gap);
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

/* ---- threads ---- */

static bool has_threads(const struct instances *instances, uint16_t number,
                        const struct instance_clock *clock)
{
    return is_live(instances, number) &&
           is_within(instances->items[number].spans.arrived_ns, clock->now_ns, clock->window_ns);
}

/* Returns the only instance with threads that this one shows; 0: there is none. */
static uint16_t shown_with_threads(const struct instances *instances, uint16_t number,
                                   const struct instance_clock *clock)
{
    if (!is_live(instances, number) || !shows_one(instances, &instances->items[number], clock))
        return 0;
    uint16_t shows = instances->items[number].shows;
    return has_threads(instances, shows, clock) ? shows : 0;
}

/* ---- groups ---- */

/* Returns the member's number, if spans with threads of it have arrived within the window; 0: not.
 */
static uint16_t member_of(const struct instances *instances, const struct recent_processes *recent,
                          unsigned i, const struct instance_clock *clock)
{
    uint16_t number = recent->items[i].number;
    bool is_it = has_threads(instances, number, clock) &&
                 instances->items[number].first_ns == recent->items[i].first_ns;
    return is_it ? number : 0;
}

/* Returns the place of a process; if it has none, an unused one, or the one that arrived first. */
static unsigned place_of_member(const struct instances *instances,
                                const struct recent_processes *recent, uint16_t number,
                                const struct instance_clock *clock)
{
    unsigned place = 0;
    uint64_t first_ns = UINT64_MAX;
    for (unsigned i = 0; i < GROUP_MEMBERS_MAX; i++) {
        uint16_t member = member_of(instances, recent, i, clock);
        uint64_t arrived_ns = member != 0 ? instances->items[member].spans.arrived_ns : 0;
        if (member == number)
            return i;
        if (arrived_ns < first_ns) {
            place = i;
            first_ns = arrived_ns;
        }
    }
    return place;
}

static void note_member(struct instances *instances, uint16_t of_group, uint16_t number,
                        const struct instance_clock *clock)
{
    struct instance *group = &instances->items[of_group];
    unsigned place = group->recent ? place_of_member(instances, group->recent, number, clock) : 0;
    uint16_t before = group->recent ? member_of(instances, group->recent, place, clock) : 0;
    set_member(instances, of_group, place, number);
    if (before != 0 && before != number)
        group->recent->crowded_ns = happened_at(clock->now_ns);
    group->used_ns = clock->now_ns;
}

/* Returns the instance that stands for a number which several processes have; 0: only one has it.
 */
static uint16_t find_shared_pid(const struct instances *instances, uint64_t pid)
{
    uint16_t number = pid != 0 ? find(instances, pid) : 0;
    return number != 0 && instances->items[number].is_shared ? number : 0;
}

static void note_in_pid(struct instances *instances, uint64_t pid, uint16_t number,
                        const struct instance_clock *clock)
{
    uint16_t shared = find_shared_pid(instances, pid);
    if (shared != 0)
        note_member(instances, shared, number, clock);
}

static void note_in_group(struct instances *instances, uint64_t group, uint16_t number,
                          uint16_t owner, const struct instance_clock *clock)
{
    uint16_t of_group = group != 0 ? find_or_add(instances, group, owner, clock->now_ns) : 0;
    if (of_group != 0)
        note_member(instances, of_group, number, clock);
}

/* Whether nothing that the sender of profiles says of itself contradicts that it is this process.
 */
static bool may_be(const struct instances *instances, uint16_t sender, uint16_t number)
{
    return sender == 0 ||
           !are_different(instances->items[sender].claims, instances->items[number].claims);
}

/* Judges those of a group that the sender of profiles may be. of_group, sender: 0: none. */
static struct group_finding judge_group(const struct instances *instances, uint16_t of_group,
                                        uint16_t sender, const struct instance_clock *clock)
{
    struct group_member members[GROUP_MEMBERS_MAX] = {{.number = 0}};
    unsigned count = 0;
    const struct recent_processes *recent =
        is_live(instances, of_group) ? instances->items[of_group].recent : NULL;
    for (unsigned i = 0; recent && i < GROUP_MEMBERS_MAX; i++) {
        uint16_t number = member_of(instances, recent, i, clock);
        if (number != 0 && may_be(instances, sender, number))
            members[count++] = (struct group_member){number, &instances->items[number].spans};
    }
    struct group_finding finding = process_group_judge(members, count, clock->now_ns);
    if (recent && is_within(recent->crowded_ns, clock->now_ns, clock->window_ns))
        finding.state = GROUP_RUNS_SEVERAL;
    return finding;
}

void instances_note_threads(struct instances *instances, uint16_t number,
                            const struct instance_place *place, uint16_t owner,
                            struct upload_range ran, const struct instance_clock *clock)
{
    pthread_mutex_lock(&instances->lock);
    if (is_live(instances, number)) {
        instances->threads_ns = clock->now_ns;
        process_spans_note(&instances->items[number].spans, ran, clock->now_ns);
        instances->items[number].pid = place->pid;
        for (unsigned i = 0; i < INSTANCE_GROUPS; i++)
            note_in_group(instances, place->groups[i], number, owner, clock);
        for (unsigned i = 0; i < INSTANCE_PIDS_MAX; i++)
            note_in_pid(instances, place->pids[i], number, clock);
    }
    pthread_mutex_unlock(&instances->lock);
}

bool instances_some_have_threads(struct instances *instances, const struct instance_clock *clock)
{
    pthread_mutex_lock(&instances->lock);
    bool some = is_within(instances->threads_ns, clock->now_ns, clock->window_ns);
    pthread_mutex_unlock(&instances->lock);
    return some;
}

/* The process that is meant by a place. */
struct of_place {
    struct group_finding finding;
    enum instance_group group;
    uint16_t of_group; /* the instance that stands for it */
};

/* Of a pod no process is meant whose container others have named, so that its profiles are known;
 * nor one of several. */
static struct group_finding judge_kind(struct instances *instances, enum instance_group kind,
                                       uint16_t of_group, const struct instance_clock *clock)
{
    struct group_finding finding = judge_group(instances, of_group, 0, clock);
    struct instance *instance = &instances->items[finding.number];
    if (finding.state == GROUP_IS_EMPTY)
        return finding;
    if (kind == GROUP_OF_CONTAINER)
        instance->in_container_ns = happened_at(clock->now_ns);
    bool is_elsewhere = is_within(instance->in_container_ns, clock->now_ns, clock->window_ns);
    if (kind == GROUP_OF_POD && (is_elsewhere || finding.state == GROUP_RUNS_SEVERAL))
        finding = (struct group_finding){.state = GROUP_IS_EMPTY};
    return finding;
}

/* Judges the processes that have had the sender's number on its host. */
static struct of_place judge_pids(const struct instances *instances, uint16_t sender,
                                  const struct instance_place *place,
                                  const struct instance_clock *clock)
{
    struct of_place found = {.finding = {.state = GROUP_IS_EMPTY}, .group = GROUP_OF_SERVICE};
    for (unsigned i = 0; i < INSTANCE_PIDS_MAX && found.finding.state == GROUP_IS_EMPTY; i++) {
        found.of_group = find_shared_pid(instances, place->pids[i]);
        found.finding = judge_group(instances, found.of_group, sender, clock);
    }
    return found;
}

/* Judges the first group of which spans with threads are known. */
static struct of_place judge_place(struct instances *instances, uint16_t sender,
                                   const struct instance_place *place,
                                   const struct instance_clock *clock)
{
    struct of_place found = judge_pids(instances, sender, place, clock);
    for (unsigned i = 0; i < INSTANCE_GROUPS && found.finding.state == GROUP_IS_EMPTY; i++) {
        found.group = (enum instance_group)i;
        found.of_group = place->groups[i] != 0 ? find(instances, place->groups[i]) : 0;
        if (found.of_group != 0)
            found.finding = judge_kind(instances, found.group, found.of_group, clock);
    }
    return found;
}

/* Whether a process was one of the group, of which another one runs that this sender may be. */
static bool has_ended(const struct instances *instances, uint16_t number, uint16_t sender,
                      const struct of_place *found, const struct instance_clock *clock)
{
    uint16_t runs = found->finding.number;
    if (found->finding.state != GROUP_RUNS_ONE || number == runs ||
        !may_be(instances, sender, runs))
        return false;
    for (unsigned i = 0; i < GROUP_MEMBERS_MAX; i++)
        if (member_of(instances, instances->items[found->of_group].recent, i, clock) == number)
            return true;
    return false;
}

/* Returns the instance with threads that is known by more than the place: itself, or what its
 * samples showed. */
static uint16_t own_with_threads(const struct instances *instances, uint16_t number,
                                 const struct instance_place *place, const struct of_place *found,
                                 const struct instance_clock *clock)
{
    if (has_threads(instances, number, clock))
        return number;
    if (found->group == GROUP_OF_SERVICE && found->finding.state > GROUP_RUNS_ONE &&
        place->is_all_known)
        return 0;
    uint16_t shown = shown_with_threads(instances, number, clock);
    return shown != 0 && !has_ended(instances, shown, number, found, clock) ? shown : 0;
}

struct instance_threads instances_with_threads(struct instances *instances, uint16_t number,
                                               const struct instance_place *place,
                                               const struct instance_clock *clock)
{
    struct instance_threads threads = {.state = GROUP_RUNS_ONE};
    pthread_mutex_lock(&instances->lock);
    struct of_place found = judge_place(instances, number, place, clock);
    threads.instance = own_with_threads(instances, number, place, &found, clock);
    if (threads.instance == 0) {
        threads.state = found.finding.state;
        threads.instance = threads.state < GROUP_RUNS_SEVERAL ? found.finding.number : 0;
        threads.is_foreign = threads.instance != 0 && found.group != GROUP_OF_SERVICE;
    }
    if (threads.instance != 0 && threads.instance == found.finding.number) {
        threads.before = found.finding.before;
        threads.since_ns = found.finding.since_ns;
    }
    int64_t pid = threads.instance != 0 ? instances->items[threads.instance].pid : 0;
    if (pid != 0 && place->pid != 0)
        threads.is_foreign = pid != place->pid;
    pthread_mutex_unlock(&instances->lock);
    return threads;
}

void instances_note_sender(struct instances *instances, uint16_t number, uint64_t form,
                           struct upload_range range, const struct instance_clock *clock)
{
    pthread_mutex_lock(&instances->lock);
    if (is_live(instances, number)) {
        struct instance *instance = &instances->items[number];
        if (!instance->senders)
            instance->senders = memory_zalloc(sizeof *instance->senders);
        upload_senders_note(instance->senders, form, range, clock->now_ns);
    }
    pthread_mutex_unlock(&instances->lock);
}

bool instances_are_several(struct instances *instances, uint16_t number,
                           const struct instance_clock *clock)
{
    pthread_mutex_lock(&instances->lock);
    const struct upload_senders *senders =
        is_live(instances, number) ? instances->items[number].senders : NULL;
    bool are_several = senders && is_within(senders->shared_ns, clock->now_ns, clock->window_ns);
    pthread_mutex_unlock(&instances->lock);
    return are_several;
}

/* ---- unused instances ---- */

static void forget(struct instances *instances, uint32_t number)
{
    struct instance *instance = &instances->items[number];
    assert(instances->owned[instance->owner] > 0);
    instances->owned[instance->owner]--;
    for (unsigned i = 0; i < instance->id_count; i++)
        index_table_remove(&instances->by_id, (uint32_t)instance->ids[i], number);
    deinit_slots(instances, number);
    free_waiting(instance);
    free_settling(instances, instance);
    free(instance->held);
    free(instance->senders);
    free(instance->recent);
    service_naming_deinit(&instance->naming);
    *instance = (struct instance){.first_ns = 0};
    if (number < instances->likely_free)
        instances->likely_free = number;
}

void instances_sweep(struct instances *instances, const struct instance_clock *clock)
{
    uint64_t idle_ns = clock->window_ns + clock->window_ns / 4;
    pthread_mutex_lock(&instances->lock);
    for (uint32_t i = 1; i < instances->used; i++) {
        const struct instance *instance = &instances->items[i];
        bool is_in_use = instance->waiting_for_gaps > 0 || held_count(instance) > 0 ||
                         (instance->waiting && instance->waiting->count > 0);
        if (instance->first_ns != 0 && !is_in_use &&
            !is_within(instance->used_ns, clock->now_ns, idle_ns))
            forget(instances, i);
    }
    pthread_mutex_unlock(&instances->lock);
}

size_t instances_memory(struct instances *instances)
{
    pthread_mutex_lock(&instances->lock);
    size_t size = sizeof *instances + (size_t)instances->capacity * sizeof *instances->items +
                  (size_t)instances->capacity * instances->slot_count * sizeof *instances->slots;
    size += index_table_memory(&instances->by_id);
    for (uint32_t i = 1; i < instances->used; i++) {
        size += service_naming_memory(&instances->items[i].naming);
        size += held_count(&instances->items[i]) * sizeof(struct held_upload);
        size += instances->items[i].senders ? sizeof(struct upload_senders) : 0;
        size += instances->items[i].settling ? sizeof(struct settling) : 0;
        size += instances->items[i].recent ? sizeof(struct recent_processes) : 0;
        for (unsigned k = 0; k < instances->slot_count; k++)
            size += upload_slot_memory(&slots_of(instances, i)[k]);
    }
    pthread_mutex_unlock(&instances->lock);
    return size;
}
