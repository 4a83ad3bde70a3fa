/*
 * instances_private: what is known of the instances (instances.h), for the files that implement
 * them: instances.c (their numbers), instance_uploads.c and instance_threads.c.
 *
 * Owner: instances.
 *
 * Thread: whoever holds its lock.
 */
#ifndef PROFCOL_CORE_DATA_INSTANCES_PRIVATE_H
#define PROFCOL_CORE_DATA_INSTANCES_PRIVATE_H

#include "core/base/index_table.h"
#include "core/base/list.h"
#include "core/base/timer.h"
#include "core/data/instances.h"
#include "core/data/process_group.h"
#include "core/data/service_naming.h"
#include "core/data/upload_lead.h"
#include "core/data/upload_senders.h"
#include "core/data/upload_slot.h"

#include <pthread.h>

enum { INSTANCE_NAMES_MAX = INSTANCE_IDS_MAX + INSTANCE_PIDS_MAX + 1 };

/* One upload that waits, or several. Its gap is the time in which spans may get samples of it. */
struct held_upload {
    struct list_link link; /* of the instance */
    struct upload_gap gap;
    uint32_t uploads;
    bool threads_only; /* only spans that name their thread */
};

/* Ends the waits that end with time: for further parts of an upload, for gaps that are too old, for
 * a sender that is silent, and those at the beginning of an instance. */
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

/* A range of time that was noted more than once, without a window between two of them. */
struct noted_range {
    struct upload_range range; /* to_ns 0: none */
    uint64_t noted_ns;         /* last; monotonic */
};

struct instance {
    uint64_t ids[INSTANCE_NAMES_MAX];
    uint64_t claims[INSTANCE_CLAIMS_MAX];
    uint64_t first_ns; /* monotonic, like the others; 0: the number is free */
    uint64_t used_ns;
    uint64_t profiled_ns;     /* its last upload, or that of an instance of this service; 0: none */
    uint64_t in_parts_ns;     /* an instance of this service sent another part of an upload */
    uint64_t uploads_from_ns; /* when an upload came after none for a window; 0: never */
    uint64_t showed_ns;       /* its samples showed `shows` last */
    uint64_t shared_ns;       /* they showed another one than before; 0: never */
    uint64_t in_container_ns; /* profiles of its container asked for its threads last; 0: never */
    struct noted_range unjoined;     /* instances_note_unjoined */
    struct noted_range unasked;      /* instance_upload.unasked, what is not kept, */
    struct noted_range kept;         /* and what is */
    int64_t kept_pid;                /* of its uploads then; 0: not known */
    struct process_spans spans;      /* that name their threads */
    struct recent_processes *recent; /* NULL: it stands for no group */
    int64_t pid;                     /* of its spans with threads; 0: not known */
    struct timer_queue *waiting;     /* by the ends of spans; NULL: none yet */
    uint32_t waiting_for_gaps;
    struct list *held;              /* struct held_upload, the newest last; NULL: none so far */
    struct settling *settling;      /* NULL: none so far */
    struct upload_senders *senders; /* of samples with its threads; NULL: none so far */
    struct upload_leads *leads;     /* of what it uploads; NULL: none so far */
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
    uint64_t began_ns;                  /* when the first number was given out; 0: never */
    uint64_t first_span_ns;             /* when instances_wait was first asked; 0: never */
    struct timer_queue settling;        /* instances whose waits end with time */
    uint64_t threads_ns;                /* the last span with a thread; 0: none */
    struct span_wakeups *wakeups;       /* of the upload being added */
    const struct instance_clock *clock; /* likewise */
};

static inline struct upload_slot *instance_slots(const struct instances *instances, uint32_t number)
{
    return &instances->slots[(size_t)number * instances->slot_count];
}

static inline size_t instance_held_count(const struct instance *instance)
{
    return instance->held ? instance->held->count : 0;
}

static inline bool instance_is_live(const struct instances *instances, uint16_t number)
{
    return number != 0 && number < instances->used && instances->items[number].first_ns != 0;
}

/* Whether what was kept for spans of an instance has ids of another pid namespace than they have.
 */
static inline bool instance_kept_is_foreign(const struct instance *instance)
{
    return instance->kept_pid != 0 && instance->pid != 0 && instance->kept_pid != instance->pid;
}

static inline bool instance_claims_differ(const uint64_t *claims, const uint64_t *others)
{
    for (unsigned i = 0; i < INSTANCE_CLAIMS_MAX; i++)
        if (claims[i] != 0 && others[i] != 0 && claims[i] != others[i])
            return true;
    return false;
}

/* Returns the number of the instance with this id; 0: there is none. */
uint16_t instances_number_of(const struct instances *instances, uint64_t id);
/* Returns the number that an id has; gives it one if it has none. 0: there is no room. */
uint16_t instances_number_for(struct instances *instances, uint64_t id, uint16_t owner,
                              uint64_t now_ns);
/* Makes an instance the member of a group that has this place. */
void instances_set_member(struct instances *instances, uint16_t of_group, unsigned place,
                          uint16_t number);
/* Whether the instance that the uploader's samples showed is the only one. */
bool instance_shows_one(const struct instances *instances, const struct instance *uploader,
                        const struct instance_clock *clock);

#endif
