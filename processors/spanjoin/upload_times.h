/*
 * upload_times: reads of which time the profiles of a resource contain the samples of its process,
 * and tells instances.h.
 *
 * An upload ends at the time and duration of its profile, not at the `until` that an SDK sends with
 * it, which is often rounded. Where that is later than the arrival, by half of the
 * duration or more, the time is the end, as some clients send it. An end that is a whole second may
 * be rounded, so it counts as a second earlier. If it is still later than the arrival, the clock of
 * the sender is ahead, and so are the times of its other uploads (upload_lead.h); or it is known
 * from the samples' threads (process_clocks.h). A profile without a time ends when it arrives. A
 * request that waited is read again; what counts is when it arrived. An upload without a duration
 * does not say when it begins.
 *
 * Owner: arrays live in the arena of the plan.
 *
 * Thread: that of the plan. upload_times_tell: any.
 */
#ifndef PROFCOL_SPANJOIN_UPLOAD_TIMES_H
#define PROFCOL_SPANJOIN_UPLOAD_TIMES_H

#include "core/pipeline/join_feed.h"
#include "processors/spanjoin/request_instance.h"
#include "processors/spanjoin/sample_totals.h"

/* What a resource of the request says of its process. */
struct resource_upload {
    struct upload_range *ranges; /* by slot: sample types of the settings, then all others */
    struct upload_range *sent;   /* likewise, by the sender's clock */
    struct service_id service;   /* that it names, or is to get (upload_services.h) */
    enum service_verdict verdict;
    uint32_t first_sample;
    uint32_t sample_count;
    struct unnamed_samples unnamed;
    uint16_t uploader;         /* the instance that it names */
    uint16_t process;          /* the instance whose spans ran on its threads; 0: not known */
    uint32_t form;             /* of its resource (struct request_process) */
    uint64_t keys;             /* likewise */
    struct upload_ahead ahead; /* how far its times are ahead */
    uint64_t moved_ns;         /* this moved them back more than those of the uploads before */
    bool adds_later;           /* its samples may be joined to more spans when it leaves */
    bool has_threads;          /* some of its samples may be joined by thread: if it does not add
                                  later, only to spans that name their thread */
    bool is_of_several;        /* its process is several ones, so that none are */
    bool is_doubted;           /* it may be of another process, so that none are yet */
    bool is_presumed;          /* its process is presumed, so that most likely none are */
    bool is_awaited;           /* spans of other processes name threads */
    bool is_unasked;           /* some name a thread, for whose spans nobody looks */
    bool names_spans;          /* some name their span */
    uint16_t before; /* the process of which samples are that were taken before that time; 0:
                        none */
    uint64_t since_ns;
};

/* Adds a resource, before its profiles are read. threads: whose spans ran on its threads. */
void upload_times_begin(struct sample_plan *plan, const struct request_process *process,
                        const struct instance_threads *threads);
/* Notes a profile of the resource, with or without samples. */
void upload_times_note(struct sample_plan *plan, const struct profile_header *profile);
/* Notes the profiles without samples of an encoded ScopeProfiles. */
void upload_times_note_empty(struct sample_plan *plan, struct slice scope_profiles);
/* Ends the resource, after its profiles were read. */
void upload_times_end(struct sample_plan *plan);

/* Finds out which uploads are of several processes that count as one. notes: first tells
 * instances.h of the uploads, which have just arrived. */
void upload_times_find_several(struct sample_plan *plan, struct instances *instances,
                               const struct instance_clock *clock, bool notes);
/* Tells instances.h of the uploads, and of the instances whose spans their samples were joined to.
 * Appends the requests that waited for these uploads to `wakeups`. Learns the services of the
 * uploads, like upload_times_learn_services. waits: the request
 * is not sent on yet. Of uploads that will add to costs then (adds_later), only the process is
 * told. */
void upload_times_tell(struct sample_plan *plan, struct instances *instances,
                       const struct instance_clock *clock, bool waits,
                       struct span_wakeups *wakeups);
/* Returns when the samples of the request were taken, or somewhat more; to_ns 0: it has none. */
struct upload_range upload_times_taken(const struct sample_plan *plan);
/* Tells instances.h which uploads have samples that name spans which have not arrived. Call it when
 * the request leaves, before its time is covered. */
void upload_times_note_unjoined(const struct sample_plan *plan, struct instances *instances,
                                const struct instance_clock *clock);
enum { UPLOADS_HELD_UNREAD = 1024 };
/* The uploads of a request that waits. All-zero: none. */
struct held_uploads {
    struct instance_hold *items;
    uint32_t count;
};
/* Begins to hold the uploads whose samples may be joined to more spans when they leave. */
void upload_times_hold(const struct sample_plan *plan, struct instances *instances,
                       struct held_uploads *held_out);
/* Begins to hold all uploads of a request that has just arrived, before it is read: what they
 * contain is not known. Of many, the first UPLOADS_HELD_UNREAD. The batch is flat. */
void upload_times_hold_unread(const struct request_sender *sender, struct held_uploads *held_out);
/* Ends it, and frees the memory. Like instances_end_hold. */
void upload_times_end_hold(struct held_uploads *held, struct instances *instances,
                           const struct instance_clock *clock, struct span_wakeups *wakeups);
/* The same at the stop, when nobody is woken any more. */
void upload_times_give_up_hold(struct held_uploads *held, struct span_index *index,
                               uint64_t now_ns);
/* Decides under which service the profiles of each upload stand, unless the settings say that names
 * stay. */
void upload_times_learn_services(struct sample_plan *plan, struct instances *instances,
                                 const struct instance_clock *clock);

#endif
