/*
 * upload_lead: how far the clock of a profiler is ahead.
 *
 * An upload cannot arrive before it ends. If it seems to, its times are later than they should be:
 * the profiler's clock is ahead, or it sends the end where the begin is meant. The largest such
 * lead of the last uploads is taken off the times of all of them, so that one which is slow does
 * not seem to contain what came after it.
 *
 * A lead is remembered for one to two windows.
 *
 * Owner: an instance, for the sender whose uploads had one last.
 *
 * Thread: whoever holds the lock of the instances.
 */
#ifndef PROFCOL_CORE_DATA_UPLOAD_LEAD_H
#define PROFCOL_CORE_DATA_UPLOAD_LEAD_H

#include <stdint.h>

/* All-zero is none. */
struct upload_lead {
    uint64_t newer_ns; /* the largest one since `since_ns` */
    uint64_t older_ns; /* the largest one in the window before */
    uint64_t since_ns; /* monotonic */
    uint32_t form;     /* of the sender's uploads (upload_slot.h) */
};

/* Notes the lead of one upload. */
void upload_lead_note(struct upload_lead *lead, uint32_t form, uint64_t lead_ns, uint64_t now_ns,
                      uint64_t window_ns);
/* Returns the largest one of the sender. */
uint64_t upload_lead_largest(const struct upload_lead *lead, uint32_t form, uint64_t now_ns,
                             uint64_t window_ns);

#endif
