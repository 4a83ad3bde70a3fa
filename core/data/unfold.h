/*
 * unfold: what a request becomes behind the receiver, beside its size.
 *
 * A component looks at a table entry once, but what leaves repeats some: a sample its stack, a
 * series the labels of its resource, each profile and scope a record of its own. How often is known
 * from the scanned request; one that asks for too much is refused before it is answered, so that
 * nothing has to be refused behind. docs/architecture.md, Costs, has the bounds.
 *
 * Owner: nothing is kept.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_DATA_UNFOLD_H
#define PROFCOL_CORE_DATA_UNFOLD_H

#include "core/data/scan.h"

enum {
    UNFOLD_PROFILES_MAX = 100000,
    UNFOLD_PROFILES_SPARE = 8192,   /* what batch makes by default; beyond that */
    UNFOLD_BYTES_PER_PROFILE = 256, /* one for so many bytes: each may become a request */
    UNFOLD_SCOPES_MAX = 100000,
    UNFOLD_LABELS_MAX = 86016, /* bytes of a resource that labels take at most */
    UNFOLD_FRAMES_MAX = 1000,  /* of a stack, for each sample */
    UNFOLD_PER_BYTE = 32,      /* frames, and bytes of labels, for each byte of the request */
    UNFOLD_SPARE = 8 << 20,    /* and so many more */
    UNFOLD_ELEMENT_BYTES = 64, /* what is kept of a message or a string, at most */
    UNFOLD_USUAL_BYTES = 16,   /* in most components */
};

/* What components will usually allocate for the request, which nobody refuses any more. */
static inline size_t unfold_usual_bytes(const struct scan_result *scan)
{
    return (size_t)scan->elements * UNFOLD_USUAL_BYTES;
}

/* Of a request that passed the scan. memory_bytes: what all requests may take; 0: no limit. False:
 * err says what is too much. */
bool unfold_traces(struct slice request, const struct scan_result *scan, size_t memory_bytes,
                   struct error *err);
bool unfold_profiles(struct slice request, const struct scan_result *scan, size_t memory_bytes,
                     struct error *err);

#endif
