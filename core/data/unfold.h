/*
 * unfold: computes how much a request grows in the components after the receiver.
 *
 * A component reads a table entry once, but its output repeats some: each sample its stack, each
 * series the labels of its resource, and each profile and scope becomes a record of its own. The
 * scanned request shows how often. A request that unfolds to too much is refused before it is
 * answered, so that no component has to refuse it later. docs/architecture.md, Costs, has the
 * limits.
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
    UNFOLD_PROFILES_SPARE =
        8192, /* allowed in any case: what batch sends by default. Beyond that: */
    UNFOLD_BYTES_PER_PROFILE =
        256, /* one profile for so many bytes, because each may become a request */
    UNFOLD_SCOPES_MAX = 100000,
    UNFOLD_LABELS_MAX = 86016, /* bytes of a resource that labels take at most */
    UNFOLD_FRAMES_MAX = 1000,  /* of a stack that count for each sample */
    UNFOLD_PER_BYTE = 32,      /* frames, and bytes of labels, for each byte of the request */
    UNFOLD_SPARE = 8 << 20,    /* and this many in addition */
    UNFOLD_ELEMENT_BYTES = 64, /* kept of a message or a string, at most */
    UNFOLD_USUAL_BYTES = 16,   /* in most components */
};

/* Returns the number of bytes that components usually allocate for the request. They cannot refuse
 * it any more. */
static inline size_t unfold_usual_bytes(const struct scan_result *scan)
{
    return (size_t)scan->elements * UNFOLD_USUAL_BYTES;
}

/* Check a request that passed the scan. memory_bytes: the memory limit for all requests; 0: no
 * limit. Return false if it unfolds to too much; err then says what does. */
bool unfold_traces(struct slice request, const struct scan_result *scan, size_t memory_bytes,
                   struct error *err);
bool unfold_profiles(struct slice request, const struct scan_result *scan, size_t memory_bytes,
                     struct error *err);

#endif
