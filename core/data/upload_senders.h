/*
 * upload_senders: whether several senders upload as one process.
 *
 * Replicas that nothing tells apart (the same host name, process 1 in each container) count as one
 * process. Their threads have the same ids, so that samples of one of them would be joined by
 * thread to spans of the other one. But a continuous profiler uploads one range of time after the
 * other: if two uploads of one form overlap, they are of two senders. Uploads of several profilers
 * of one process have different forms.
 *
 * Owner: instances.
 *
 * Thread: whoever holds its lock.
 */
#ifndef PROFCOL_CORE_DATA_UPLOAD_SENDERS_H
#define PROFCOL_CORE_DATA_UPLOAD_SENDERS_H

#include "core/data/upload_slot.h"

/* All-zero: nothing was uploaded. */
struct upload_senders {
    struct {
        uint64_t form;
        struct upload_range range; /* of the upload that ended last; to_ns 0: there is none here */
    } latest[UPLOAD_FORMS_MAX];
    unsigned next;      /* the place that is used next */
    uint64_t shared_ns; /* uploads of two senders arrived; monotonic; 0: never */
};

/* Notes an upload. form: which attributes its resource has, and which sample types. range: both
 * ends are known. */
void upload_senders_note(struct upload_senders *senders, uint64_t form, struct upload_range range,
                         uint64_t now_ns);

#endif
