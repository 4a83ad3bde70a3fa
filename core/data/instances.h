/*
 * instances: the processes that spans and profiles come from, and up to which time the profiles of
 * each have arrived.
 *
 * An instance is a process as its senders name it (struct instance_ids). Spans and profiles of one
 * process may name it differently; then the spans that its samples name show which one it is
 * (docs/spanjoin.md, "Complete").
 *
 * Profiles cover time: uploads that end after a span contain all of its samples, if none is missing
 * between them. Each instance has a slot for each sample type that the caller distinguishes, with
 * the end of the latest upload and the gaps before it (upload_slot.h). A slot without an upload
 * within the window does not count. An instance is covered up to the earliest end of its slots, but
 * for the gaps of all of them, and for uploads that wait (instances_hold_upload). Some slots may
 * begin later than others: at first an instance is not covered without an upload of each of those
 * that the caller awaits.
 *
 * Instances have a number, which is free again when nothing was heard of them for a window and a
 * quarter. Number 0 is no instance: nothing is known of it. One owner (a tenant or peer) has at
 * most half of the numbers.
 *
 * Owner: a span_index. Waiters belong to those who wait.
 *
 * Thread: any (it locks); called a few times per resource of a request.
 */
#ifndef PROFCOL_CORE_DATA_INSTANCES_H
#define PROFCOL_CORE_DATA_INSTANCES_H

#include "core/base/timer.h"
#include "core/data/process_group.h"
#include "core/data/service_naming.h"
#include "core/data/span_records.h"
#include "core/data/upload_lead.h"
#include "core/data/upload_slot.h"

enum {
    INSTANCES_MAX = 65536, /* numbers, including 0 */
    INSTANCE_IDS_MAX = 2,
    INSTANCE_PIDS_MAX = 2,
    INSTANCE_CLAIMS_MAX = 5,
    INSTANCE_SLOTS_MAX = SPAN_INDEX_TYPES_MAX + 1,
};

struct instances;

/* Keyed hashes of what identifies a process. Its number on its host does if nothing contradicts it:
 * containers have numbers of their own, and a proxy on this host passes on what others send. Then
 * it stands for all processes that have it, and for the one of them that runs, if it is known
 * which. */
struct instance_ids {
    uint64_t ids[INSTANCE_IDS_MAX]; /* each of them alone identifies it */
    unsigned count;
    uint64_t pids[INSTANCE_PIDS_MAX]; /* its number on its host, and on this one; 0: not known */
    uint64_t claims[INSTANCE_CLAIMS_MAX]; /* what is the same for all that one process sends, such
                                             as its pod; 0: not known */
    uint64_t rest;    /* all that is known; used if nothing else identifies it. 0: none */
    uint64_t service; /* of the name of its service; 0: none */
    uint16_t owner;   /* number of its source's owner */
    const struct service_id *of_spans; /* the service that its spans name; NULL: not of spans */
};

/* What decides. All times are monotonic. */
struct instance_clock {
    uint64_t now_ns;
    uint64_t window_ns;
    uint64_t wait_ns; /* for how long an instance may be waited for; 0: it is not */
    uint32_t awaited; /* bits of slots: an instance without uploads of these is not covered in the
                         first wait_ns after its first upload */
};

/* Creates an empty table. slot_count: at most INSTANCE_SLOTS_MAX. most: numbers, including 0; at
 * most INSTANCES_MAX. */
struct instances *instances_new(unsigned slot_count, uint32_t most);
/* Frees the table. Nobody may wait, and nothing may be held. */
void instances_free(struct instances *instances);

/* Returns the number of an instance; gives it one if it has none. 0: there is no room. */
uint16_t instances_find(struct instances *instances, const struct instance_ids *ids,
                        uint64_t now_ns);

/* ---- uploads ---- */

/* What one upload says of an instance. */
struct instance_upload {
    uint16_t uploader;      /* the instance that it names itself */
    const uint16_t *joined; /* instances of the spans that its samples name */
    size_t joined_count;    /* without duplicates */
    struct upload_range ranges[INSTANCE_SLOTS_MAX]; /* to_ns 0: no profile of this slot; from_ns 0:
                                                       its begin is not known */
    struct service_id service;                      /* that it names itself */
    uint64_t moved_ns; /* by which its times were moved back more than those of uploads before it */
    uint32_t form;     /* which attributes its resource has */
    uint64_t content;  /* identifies its request, to know parts (upload_slot.h), except for the last
                          slot, which has several sample types; 0: not known */
    struct upload_range unasked; /* when samples were taken that name a thread, whose spans nobody
                                    looked for; to_ns 0: there are none */
    bool keeps_unasked;          /* they are kept for spans of the uploader itself that come later
                                    (left_samples.h) */
};
/* Under which service profiles stand (service_naming.h). */
struct instance_service {
    enum service_verdict verdict;
    struct service_id service; /* for SERVICE_CHANGES; points to `text` */
    uint8_t text[2 * SERVICE_NAME_MAX];
};
/* Records an upload, for the instance that it names and for those that its samples showed: those in
 * `joined`, and while its samples showed one instance only, that one. Appends the requests whose
 * spans are covered now to `wakeups`. Call it when the samples' totals are in the index.
 * service_out: like instances_name_upload; NULL: not wanted. */
void instances_add_upload(struct instances *instances, const struct instance_upload *upload,
                          const struct instance_clock *clock, struct span_wakeups *wakeups,
                          struct instance_service *service_out);
/* Wakes the requests whose waits have ended with time: for further parts of uploads, a sender that
 * is silent, a gap that nothing filled for a window, the uploads of an instance that has just begun
 * or that is not profiled. Appends them to `wakeups`. Returns when to call it again, monotonic,
 * maybe at once; UINT64_MAX: not until another upload or span has arrived. */
uint64_t instances_settle(struct instances *instances, const struct instance_clock *clock,
                          struct span_wakeups *wakeups);
/* Notes that an upload of this time leaves, whose samples name spans that have not arrived. Call it
 * before instances_add_upload. Only these members of the upload count: uploader, joined. */
void instances_note_unjoined(struct instances *instances, const struct instance_upload *upload,
                             struct upload_range range, const struct instance_clock *clock);
/* Notes that the times of an upload are ahead of its arrival. */
void instances_note_lead(struct instances *instances, uint16_t uploader, uint32_t form,
                         struct upload_ahead ahead, const struct instance_clock *clock);
/* Returns how far the times of such uploads are ahead. */
struct upload_ahead instances_lead(struct instances *instances, uint16_t uploader, uint32_t form,
                                   const struct instance_clock *clock);
/* Learns the service of the spans that the samples of an upload name, and decides under which
 * service its profiles stand. */
void instances_name_upload(struct instances *instances, const struct instance_upload *upload,
                           const struct instance_clock *clock,
                           struct instance_service *service_out);

/* An upload that waits, and may give samples to spans when it leaves: until then the spans of its
 * time are not covered, whatever other uploads say. */
struct instance_hold {
    struct held_upload *held[2]; /* NULL: none */
};
/* Begins to hold an upload. process: whose spans may get samples; 0: not known yet, so that it may
 * be any that the uploader's samples show. threads_only: only spans that name their thread may. */
void instances_hold_upload(struct instances *instances, uint16_t uploader, uint16_t process,
                           struct upload_range range, bool threads_only,
                           struct instance_hold *hold_out);
/* Ends it. Call it when the samples' totals are in the index, before instances_add_upload. Appends
 * the requests whose spans are covered now to `wakeups`. */
void instances_end_hold(struct instances *instances, struct instance_hold *hold,
                        const struct instance_clock *clock, struct span_wakeups *wakeups);

/* ---- spans ---- */

/* Up to when an instance is covered. */
struct instance_coverage {
    uint64_t until_ns; /* since 1970; 0: it has no uploads that count, or still awaits some */
    uint64_t from_ns;  /* what arrived for earlier times, another index may know; 0: nothing did */
    struct upload_ranges gaps;
    struct upload_ranges thread_gaps; /* further ones for spans that name their thread */
    struct upload_range unjoined;     /* instances_note_unjoined; to_ns 0: there was none */
    struct upload_range unasked[2];   /* instance_upload.unasked of it, and of the last other one
                                         whose samples showed it; likewise */
};

/* Who waits until an instance is covered. Allocated by instances_wait. */
struct instance_waiter {
    struct timer timer;    /* its deadline is the latest end of the ranges */
    struct list_link link; /* of those who wait for a gap, if the timer is not set */
    unsigned gaps;         /* for which it has waited */
    bool has_threads;      /* some of the spans name their thread */
    struct span_waiter waiter;
    struct instances *instances;
    struct instance_waiter *next; /* of the same request; set by the caller */
    uint16_t instance;
    unsigned range_count;
    struct upload_range ranges[]; /* of spans */
};

/* Returns up to when the instance is covered. */
struct instance_coverage instances_coverage(struct instances *instances, uint16_t number,
                                            const struct instance_clock *clock);
/* Whether samples of a range of time that name a thread may have left before anybody looked for
 * their spans. */
bool instance_was_unasked(const struct instance_coverage *coverage, struct upload_range range);
/* Whether a range of time is covered, for a span that names its thread or does not. */
bool instance_covers(const struct instance_coverage *coverage, struct upload_range range,
                     bool has_thread);
/* Waits until the instance covers the ranges of some spans, and returns the waiter; NULL if that
 * need not be waited for. It is waited for if it is profiled; if that cannot be known yet, then
 * too: in the first wait_ns after the first span of all, and, if other instances of its service are
 * profiled, after the first one of its own. */
struct instance_waiter *instances_wait(struct instances *instances, uint16_t number,
                                       const struct upload_ranges *spans, bool has_threads,
                                       const struct span_waiter *waiter,
                                       const struct instance_clock *clock);
/* Ends and frees all waiters of a request. */
void instances_stop_waiting(struct instances *instances, struct instance_waiter *first);

/* ---- threads ---- */

/* Groups of processes; of those in one group, maybe only one has spans that name their threads. */
enum instance_group { GROUP_OF_SERVICE, GROUP_OF_CONTAINER, GROUP_OF_POD, INSTANCE_GROUPS };
/* Where a process runs. */
struct instance_place {
    uint64_t groups[INSTANCE_GROUPS]; /* hashes; 0: none */
    uint64_t pids[INSTANCE_PIDS_MAX]; /* as in instance_ids */
    int64_t pid;                      /* in its pid namespace; 0: not known */
    bool is_all_known; /* of its sender nothing but the service is known, so that all of it look
                          alike */
};
/* An instance with threads. */
struct instance_threads {
    enum group_state state; /* whether it is sure that it is this one */
    uint16_t instance;      /* 0: GROUP_IS_EMPTY, or GROUP_RUNS_SEVERAL */
    uint16_t before; /* the one of which samples are that were taken before that time; 0: none */
    uint64_t since_ns;
    bool is_foreign;   /* its spans have ids of processes and threads of another pid namespace */
    uint16_t presumed; /* if there is none: the sender itself, of which spans with threads may come
                          that run now; 0: not likely */
};

/* Notes that spans of an instance name their threads (thread_spans.h). owner: of the groups. ran:
 * of these spans. */
void instances_note_threads(struct instances *instances, uint16_t number,
                            const struct instance_place *place, uint16_t owner,
                            struct upload_range ran, const struct instance_clock *clock);
/* Whether spans of any instance name their threads. */
bool instances_some_have_threads(struct instances *instances, const struct instance_clock *clock);
/* Returns the instance whose spans ran on the threads of this one, which sends profiles: itself,
 * the only one that its samples showed, or the only one of its first group that has any and runs
 * (process_group.h). That of a container or pod may be another process there, so that the names of
 * threads have to show that it is this one (struct sample_thread). If there is none, the sender is
 * presumed, in the first window of its uploads, and as soon as it has had spans with threads. */
struct instance_threads instances_with_threads(struct instances *instances, uint16_t number,
                                               const struct instance_place *place,
                                               const struct instance_clock *clock);

/* Returns up to which time samples of an instance that was presumed are of another pid namespace
 * than its spans, as has turned out; 0: none are. */
uint64_t instances_foreign_until(struct instances *instances, uint16_t number);

/* Notes that samples with threads of an instance arrived (upload_senders.h). */
void instances_note_sender(struct instances *instances, uint16_t number, uint64_t form,
                           struct upload_range range, const struct instance_clock *clock);
/* Whether samples with threads have shown within the window that the instance is several
 * processes. */
bool instances_are_several(struct instances *instances, uint16_t number,
                           const struct instance_clock *clock);

/* Frees the numbers of instances that nothing was heard of. Call it regularly. */
void instances_sweep(struct instances *instances, const struct instance_clock *clock);
/* Returns the memory in bytes. */
size_t instances_memory(struct instances *instances);

#endif
