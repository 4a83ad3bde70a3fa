#include "core/data/instances.h"

#include "core/base/memory.h"
#include "core/data/instances_private.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

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

static void deinit_slots(struct instances *instances, uint32_t number)
{
    for (unsigned i = 0; i < instances->slot_count; i++)
        upload_slot_deinit(&instance_slots(instances, number)[i]);
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

void instances_free(struct instances *instances)
{
    if (!instances)
        return;
    for (uint32_t i = 1; i < instances->used; i++) {
        assert(instance_held_count(&instances->items[i]) == 0);
        deinit_slots(instances, i);
        free_waiting(&instances->items[i]);
        free_settling(instances, &instances->items[i]);
        free(instances->items[i].held);
        free(instances->items[i].senders);
        free(instances->items[i].leads);
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

uint16_t instances_number_of(const struct instances *instances, uint64_t id)
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
    if (id == 0 || instance->id_count == INSTANCE_NAMES_MAX ||
        instances_number_of(instances, id) != 0)
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
    if (instances->began_ns == 0)
        instances->began_ns = happened_at(now_ns);
    instances->items[number] = (struct instance){.first_ns = happened_at(now_ns), .owner = owner};
    memset(instance_slots(instances, number), 0, instances->slot_count * sizeof *instances->slots);
    return number;
}

uint16_t instances_number_for(struct instances *instances, uint64_t id, uint16_t owner,
                              uint64_t now_ns)
{
    uint16_t number = instances_number_of(instances, id);
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

static bool contradicts(const struct instance *instance, const struct instance_ids *ids)
{
    return instance_claims_differ(instance->claims, ids->claims);
}

/* Finds a process by its number on a host. */
static uint16_t find_by_pid(const struct instances *instances, const struct instance_ids *ids,
                            uint64_t pid)
{
    uint16_t number = pid != 0 ? instances_number_of(instances, pid) : 0;
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
        number = instances_number_of(instances, ids->ids[i]);
    for (unsigned i = 0; i < INSTANCE_PIDS_MAX && number == 0; i++)
        number = find_by_pid(instances, ids, ids->pids[i]);
    if (number == 0 && ids->count == 0 && ids->rest != 0)
        number = instances_number_of(instances, ids->rest);
    return number;
}

void instances_set_member(struct instances *instances, uint16_t of_group, unsigned place,
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
    uint16_t first = instances_number_of(instances, pid);
    remove_id(instances, first, pid);
    uint16_t shared = add(instances, owner, now_ns);
    if (shared == 0)
        return;
    add_id(instances, shared, pid);
    instances_set_member(instances, shared, 0, first);
    instances->items[shared].is_shared = true;
    instances->items[shared].used_ns = now_ns;
}

static void note_pid(struct instances *instances, uint16_t number, const struct instance_ids *ids,
                     uint64_t pid, uint64_t now_ns)
{
    uint16_t other = pid != 0 ? instances_number_of(instances, pid) : number;
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
        service = instances_number_for(instances, ids->service, ids->owner, now_ns);
    uint16_t number = find_or_add_process(instances, ids, now_ns);
    if (number != 0 && number != service)
        instances->items[number].service = service;
    if (number != 0 && ids->of_spans)
        service_naming_note(&instances->items[number].naming, ids->of_spans, now_ns);
    pthread_mutex_unlock(&instances->lock);
    return number;
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
    free(instance->leads);
    free(instance->recent);
    service_naming_deinit(&instance->naming);
    *instance = (struct instance){.first_ns = 0};
    if (number < instances->likely_free)
        instances->likely_free = number;
}

/* Numbers that are free now may be given to other processes. */
static void forget_services(struct instances *instances)
{
    for (uint32_t i = 1; i < instances->used; i++)
        if (!instance_is_live(instances, instances->items[i].service))
            instances->items[i].service = 0;
}

void instances_sweep(struct instances *instances, const struct instance_clock *clock)
{
    uint64_t idle_ns = clock->window_ns + clock->window_ns / 4;
    pthread_mutex_lock(&instances->lock);
    for (uint32_t i = 1; i < instances->used; i++) {
        const struct instance *instance = &instances->items[i];
        bool is_in_use = instance->waiting_for_gaps > 0 || instance_held_count(instance) > 0 ||
                         (instance->waiting && instance->waiting->count > 0);
        if (instance->first_ns != 0 && !is_in_use &&
            !is_within(instance->used_ns, clock->now_ns, idle_ns))
            forget(instances, i);
    }
    forget_services(instances);
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
        size += instance_held_count(&instances->items[i]) * sizeof(struct held_upload);
        size += instances->items[i].senders ? sizeof(struct upload_senders) : 0;
        size += instances->items[i].leads ? sizeof(struct upload_leads) : 0;
        size += instances->items[i].settling ? sizeof(struct settling) : 0;
        size += instances->items[i].recent ? sizeof(struct recent_processes) : 0;
        for (unsigned k = 0; k < instances->slot_count; k++)
            size += upload_slot_memory(&instance_slots(instances, i)[k]);
    }
    pthread_mutex_unlock(&instances->lock);
    return size;
}
