/*
 * request_instance: determines which process a resource comes from (core/data/instances.h).
 *
 * A process is identified by `service.instance.id`, or by `process.pid` with `container.id` or
 * `host.id`. Without these, all of its identifying attributes and the peer stand for it.
 *
 * Owner: nothing is kept.
 *
 * Thread: the batch's worker, or a job.
 */
#ifndef PROFCOL_SPANJOIN_REQUEST_INSTANCE_H
#define PROFCOL_SPANJOIN_REQUEST_INSTANCE_H

#include "core/data/instances.h"
#include "processors/spanjoin/request_source.h"

/* The process of a resource. */
struct request_process {
    uint16_t instance;  /* its number; 0: not known */
    uint16_t owner;     /* number of its source's owner */
    bool is_identified; /* its resource says which process it is, not only of which service */
    uint32_t form;      /* a bit for each attribute of its resource that identifies it */
    uint64_t keys;      /* hash of the keys of all its attributes */
    struct instance_place place;
    struct service_id service; /* that the resource names */
};
/* Returns the process of a resource, which is encoded and may be empty. source: its source. */
struct request_process request_process(const struct request_sender *sender, struct slice resource,
                                       const struct span_source *source);
/* Notes that spans of the process name their threads. ran: of all of these spans. */
void request_process_note_threads(const struct request_sender *sender,
                                  const struct request_process *process, struct upload_range ran);
/* Returns the instance whose spans ran on the threads of this process, which sends profiles; 0: not
 * known, or spans do not name their threads. */
struct instance_threads request_process_with_threads(const struct request_sender *sender,
                                                     const struct request_process *process);
/* Whether spans of any process name their threads. */
bool request_threads_are_known(const struct request_sender *sender);
/* The times of a request, for instances.h. */
struct instance_clock request_clock(const struct request_sender *sender);

#endif
